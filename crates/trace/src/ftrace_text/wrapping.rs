//! What other programs put around the lines of a trace: the escapes of HTML and of JavaScript's strings, and what `grep`,
//! `dmesg`, `journalctl`, `logcat` and `trace-cmd report` write before each line.
//!
//! ```text
//! &lt;idle&gt;-0  [001] … R ==&gt; …                    a page of HTML, a mail's archive
//!           <idle>-0  [001] … next_prio=120\n\            systrace's old pages
//! 123:          <idle>-0  [001] …                         grep -n; with the file's name: grep -H
//! lab:          <idle>-0  [001] …                         trace-cmd report: an instance, or a file of several
//! [  123.456789]   <idle>-0  1d..2 …                      dmesg; with date, host and `kernel: `: journalctl
//! 11-25 15:24:01.123   99   99 I ftrace  :    <idle>-0 …  logcat
//! ```
//! None of it is part of a task's name. Where a name would be longer than a kernel's, the line begins further on.
//!
//! Must not know: what a trace line holds.

use memchr::{memchr, memmem};

/// How many pieces may stand before a line.
const PIECES_MAX: usize = 6;

/// Places that are looked at for a line's beginning, and how far they may lie from the start.
const BEGINNINGS_MAX: usize = 12;
const BEGINNING_BYTES_MAX: usize = 256;

/// The entities that stand in escaped traces.
const ENTITIES: [(&[u8], u8); 6] =
    [(b"lt", b'<'), (b"gt", b'>'), (b"amp", b'&'), (b"quot", b'"'), (b"apos", b'\''), (b"nbsp", b' ')];

/// The longest entity that is one, without its marks.
const ENTITY_BYTES_MAX: usize = 8;

/// The character that `&…;` at the beginning of `text` stands for, and the length of that.
fn entity(text: &[u8]) -> Option<(char, usize)> {
    let end = memchr(b';', text.get(..text.len().min(ENTITY_BYTES_MAX + 2))?)?;
    let inside = text.get(1..end)?;
    let char = match inside.strip_prefix(b"#") {
        Some(number) => {
            let number = std::str::from_utf8(number).ok()?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|char| !char.is_control())?
        }
        None => ENTITIES.iter().find(|(name, _)| *name == inside).map(|&(_, byte)| char::from(byte))?,
    };
    Some((if char == '\u{a0}' { ' ' } else { char }, end + 1))
}

/// Whether `line` holds an entity of HTML.
pub(super) fn has_entity(line: &[u8]) -> bool {
    memchr::memchr_iter(b'&', line).any(|at| entity(&line[at..]).is_some())
}

/// Whether `line` shows that its file is not escaped: no entity stands for what stands here.
pub(super) fn is_unescaped(line: &[u8]) -> bool {
    [&b" ==> "[..], b"<idle>-", b"<...>-"].iter().any(|mark| memmem::find(line, mark).is_some())
}

/// `line` with what its entities stand for, and without the tags that wrap lines.
pub(super) fn without_markup(line: &[u8]) -> Vec<u8> {
    let line = without_tags(line);
    let mut text = Vec::with_capacity(line.len());
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        let entity = if byte == b'&' { entity(&line[at..]) } else { None };
        match entity {
            Some((char, length)) => {
                text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                at += length;
            }
            None => {
                text.push(byte);
                at += 1;
            }
        }
    }
    text
}

/// The tags that stand around lines of text.
const TAGS: [&[u8]; 10] = [b"pre", b"code", b"br", b"br/", b"br /", b"p", b"span", b"div", b"td", b"samp"];

/// `line` without tags at its beginning and end; what stands within is the line's.
pub(super) fn without_tags(mut line: &[u8]) -> &[u8] {
    let name = |inside: &[u8]| {
        let inside = inside.strip_prefix(b"/").unwrap_or(inside);
        let word = inside.split(|&byte| byte == b' ').next().unwrap_or_default();
        TAGS.contains(&inside) || TAGS.contains(&word)
    };
    for _ in 0..PIECES_MAX {
        let trimmed = line.trim_ascii();
        if let Some(rest) = trimmed.strip_prefix(b"<")
            && let Some(end) = memchr(b'>', rest)
            && name(&rest[..end])
        {
            line = &rest[end + 1..];
        } else if let Some(rest) = trimmed.strip_suffix(b">")
            && let Some(start) = memchr::memrchr(b'<', rest)
            && name(&rest[start + 1..])
        {
            line =
                &line[..line.len() - (line.len() - line.trim_ascii_end().len()) - (rest.len() - start) - 1];
        } else {
            return line;
        }
    }
    line
}

/// The line that a line of a JavaScript string holds: one that ends in `\n\`, or in `\n` and a quote.
pub(super) fn of_string(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.trim_ascii_end();
    let ends: [&[u8]; 8] =
        [b"\\n\\", b"\\n\" +", b"\\n\"+", b"\\n\",", b"\\n\";", b"\\n\"", b"\\n' +", b"\\n',"];
    let inside = ends.iter().find_map(|end| line.strip_suffix(*end))?;
    let quote = inside.iter().position(|&byte| matches!(byte, b'"' | b'\''));
    // What stands before the string is code, or nothing.
    let before = |at: usize| {
        let code = inside[..at].trim_ascii_end();
        memchr(b']', code).is_none() && code.last().is_none_or(|&byte| matches!(byte, b'=' | b'(' | b'['))
    };
    let inside = quote.filter(|&at| before(at)).map_or(inside, |at| &inside[at + 1..]);
    Some(without_backslashes(inside))
}

fn without_backslashes(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let (b'\\', Some((&escape, after))) = (byte, rest.split_first()) else {
            plain.push(byte);
            continue;
        };
        rest = after;
        let digits = match escape {
            b'u' => 4,
            b'x' => 2,
            b't' => {
                plain.push(b'\t');
                continue;
            }
            _ => {
                plain.push(escape);
                continue;
            }
        };
        let code = rest.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32) {
            Some(char) => {
                plain.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[digits..];
            }
            None => plain.extend_from_slice(&[b'\\', escape]),
        }
    }
    plain
}

/// A line without the colours that terminals are sent (`grep --color=always`).
pub(super) fn without_colours(line: &[u8]) -> Option<Vec<u8>> {
    if line.first() != Some(&b'\x1b') {
        return None;
    }
    let mut plain = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memmem::find(rest, b"\x1b[") {
        plain.extend_from_slice(&rest[..at]);
        let sequence = &rest[at + 2..];
        let length = sequence.iter().position(u8::is_ascii_alphabetic).map_or(sequence.len(), |end| end + 1);
        rest = &sequence[length..];
    }
    plain.extend_from_slice(rest);
    Some(plain)
}

/// A line, and what was found before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnwrappedLine<'l> {
    /// The line itself, or what is left to be found in.
    pub(super) line: &'l [u8],
    /// The file, machine or instance that it is of.
    pub(super) source: Option<&'l [u8]>,
    /// A log's time was before it: host, program and the like may follow, up to a colon.
    pub(super) logged: bool,
}

/// Takes off what cannot be the beginning of a trace line. Most lines begin with a blank and have nothing before them.
pub(super) fn peeled(line: &[u8]) -> UnwrappedLine<'_> {
    let mut peeled = UnwrappedLine { line, source: None, logged: false };
    for _ in 0..PIECES_MAX {
        let line = peeled.line;
        if let Some(rest) = line.strip_prefix(b"\xef\xbb\xbf") {
            peeled.line = rest;
        } else if let Some(length) = log_stamp(line) {
            (peeled.line, peeled.logged) = (&line[length..], true);
        } else if let Some(length) = line_number(line) {
            peeled.line = &line[length..];
        } else if let Some((source, length)) = file_name(line).or_else(|| virtual_machine(line)) {
            (peeled.line, peeled.source) = (&line[length..], Some(source));
        } else {
            break;
        }
    }
    peeled
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// `123:` of `grep -n`, `123-` of its context. A task may be called by a number, too: then its id follows the dash.
fn line_number(line: &[u8]) -> Option<usize> {
    let length = digits(line);
    let follows_digit = line.get(length + 1).is_some_and(u8::is_ascii_digit);
    match line.get(length)? {
        b':' if length > 0 => Some(length + 1),
        b'-' if length > 0 && !follows_digit => Some(length + 1),
        _ => None,
    }
}

/// `trace.txt:` or `trace.txt:123:` of `grep -H`, or the same with dashes around a number.
fn file_name(line: &[u8]) -> Option<(&[u8], usize)> {
    const ENDING_BYTES_MAX: usize = 6;
    // trace-cmd puts blanks before the shorter names, and one behind the colon.
    let blanks = line.len() - line.trim_ascii_start().len();
    if blanks > 0 {
        let (source, length) = file_name(&line[blanks..])?;
        return (line.get(blanks + length) == Some(&b' ')).then_some((source, blanks + length));
    }
    let end = line.iter().position(|byte| matches!(byte, b':' | b' ' | b'\t' | b'[' | b'('))?;
    let word = &line[..end];
    let is_file = |word: &[u8]| {
        let point = memchr::memrchr(b'.', word).unwrap_or(0);
        let ending = word.get(point + 1..).unwrap_or_default();
        let named =
            (1..=ENDING_BYTES_MAX).contains(&ending.len()) && ending.iter().all(u8::is_ascii_alphanumeric);
        point > 0 && named && !ending[0].is_ascii_digit()
    };
    if line[end] == b':' && is_file(word) {
        let number = line_number(&line[end + 1..]).unwrap_or(0);
        return Some((word, end + 1 + number));
    }
    // `trace.txt-123-`: the context of what was searched for.
    let dash = memchr::memchr_iter(b'-', word).find(|&dash| is_file(&word[..dash]))?;
    let number = line_number(&line[dash + 1..])?;
    (line.get(dash + number) == Some(&b'-')).then_some((&word[..dash], dash + 1 + number))
}

/// `VM:13107 VCPU:00 ` of `perf script -F +machine_pid,+vcpu`.
fn virtual_machine(line: &[u8]) -> Option<(&[u8], usize)> {
    let rest = line.strip_prefix(b"VM:")?;
    let blanks = rest.len() - rest.trim_ascii_start().len();
    let end = 3 + blanks + digits(&rest[blanks..]);
    let behind = line.get(end..)?.strip_prefix(b" ")?;
    let cpu = match behind.strip_prefix(b"VCPU:") {
        Some(rest) => b"VCPU:".len() + digits(rest) + blank(&rest[digits(rest)..]),
        None => 0,
    };
    Some((&line[..end], end + 1 + cpu))
}

/// The length of a log's time at the beginning of `line`, with the blank behind it: `[  123.456789] `, `<6>`, `15:24:01 `,
/// `11-25 15:24:01.123 `, `Nov 25 15:24:01 `, `2026-11-25T15:24:01+0000 `, `[Wed Nov 25 15:24:01 2026] `; or of logcat's
/// `I/ftrace  ( 1234): `.
fn log_stamp(line: &[u8]) -> Option<usize> {
    match line.first()? {
        b'<' => {
            let length = digits(&line[1..]);
            ((1..=3).contains(&length) && line.get(1 + length) == Some(&b'>')).then_some(length + 2)
        }
        b'[' => {
            let end = memchr(b']', line)?;
            let inside = line[1..end].trim_ascii();
            let seconds = digits(inside);
            let decimals = inside.get(seconds..).and_then(|rest| rest.strip_prefix(b".")).map_or(0, digits);
            let is_stamp = seconds > 0 && decimals >= 3 && seconds + 1 + decimals == inside.len();
            let is_caller =
                matches!(inside, [b'T' | b'C', rest @ ..] if !rest.is_empty() && digits(rest) == rest.len());
            let is_date = inside
                .windows(3)
                .any(|three| matches!(three, [b':', a, b] if a.is_ascii_digit() && b.is_ascii_digit()));
            (is_stamp || is_caller || is_date).then(|| end + 1 + blank(&line[end + 1..]))
        }
        b'V' | b'D' | b'I' | b'W' | b'E' | b'F' if line.get(1) == Some(&b'/') => {
            memmem::find(line.get(..line.len().min(64))?, b"): ").map(|end| end + 3)
        }
        _ => dated(line),
    }
}

fn blank(text: &[u8]) -> usize {
    usize::from(text.first() == Some(&b' '))
}

/// A date, a time of day, or both.
fn dated(line: &[u8]) -> Option<usize> {
    const MONTHS: [&[u8]; 12] = [
        b"Jan ", b"Feb ", b"Mar ", b"Apr ", b"May ", b"Jun ", b"Jul ", b"Aug ", b"Sep ", b"Oct ", b"Nov ",
        b"Dec ",
    ];
    let mut at = 0;
    if MONTHS.iter().any(|month| line.starts_with(month)) {
        let day = line[4..].trim_ascii_start();
        at = line.len() - day.len() + digits(day);
        at += blank(&line[at..]);
    } else if let [_, _, b'-', _, _, b' ', ..] | [_, _, _, _, b'-', _, _, b'-', _, _, b' ' | b'T', ..] = line
    {
        at = line.iter().position(|byte| matches!(byte, b' ' | b'T'))?;
        if !line[..at].iter().all(|byte| byte.is_ascii_digit() || *byte == b'-') {
            return None;
        }
        at += 1;
    }
    let [h, i, b':', m, n, b':', s, t, rest @ ..] = &line[at..] else { return None };
    if ![h, i, m, n, s, t].iter().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Fractions and the zone.
    let zone = rest.iter().position(|&byte| byte == b' ')?;
    let plain = rest[..zone].iter().all(|byte| byte.is_ascii_digit() || b".,:+-Z".contains(byte));
    plain.then_some(at + 8 + zone + 1)
}

/// A place where a line may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineStart {
    /// How many bytes stand before it.
    pub(super) at: usize,
    /// A mark stands before it, as programs put one; otherwise blanks do.
    pub(super) marked: bool,
}

/// Where the line may begin behind a prefix that has no form of its own, nearest first.
pub(super) fn beginnings(line: &[u8]) -> impl Iterator<Item = LineStart> + '_ {
    let end = line.len().min(BEGINNING_BYTES_MAX);
    let places = (1..end).filter_map(move |at| match (line[at - 1], line[at]) {
        (b':' | b']' | b'|', b' ' | b'\t') => Some(LineStart { at: at + 1, marked: true }),
        (b'\t', _) => Some(LineStart { at, marked: true }),
        (b' ', b' ') if line.get(at + 1) != Some(&b' ') => Some(LineStart { at: at + 1, marked: false }),
        _ => None,
    });
    places.filter(|beginning| beginning.at < line.len()).take(BEGINNINGS_MAX)
}

/// What a prefix says of where its line comes from: the one word before its colon.
pub(super) fn source(prefix: &[u8]) -> Option<&[u8]> {
    let word = prefix.trim_ascii().strip_suffix(b":")?;
    let word = match memchr::memrchr(b':', word) {
        Some(colon) if digits(&word[colon + 1..]) == word.len() - colon - 1 => &word[..colon],
        _ => word,
    };
    let is_name = !word.is_empty()
        && word.iter().all(|byte| byte.is_ascii_graphic() && !b"[]()|\"'=<>,".contains(byte));
    (is_name && digits(word) < word.len()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn peels(before: &str, line: &str, source: Option<&str>, logged: bool) {
        let whole = format!("{before}{line}");
        let found = peeled(whole.as_bytes());
        assert_eq!(String::from_utf8_lossy(found.line), line, "{whole}");
        assert_eq!((found.source, found.logged), (source.map(str::as_bytes), logged), "{whole}");
    }

    #[test]
    fn what_cannot_begin_a_line_is_taken_off() {
        let line = "          <idle>-0       [001] d..2.    50.000900: sched_switch: x";
        for before in ["123:", "7-", "1:2:"] {
            peels(before, line, None, false);
        }
        for before in [
            "[    5.600000] ",
            "[12345.678] ",
            "<6>[    5.600000] ",
            "[    5.600000][  T123] ",
            "Nov 25 15:24:01 ",
            "Nov  5 15:24:01.123456 ",
            "2026-11-25T15:24:01+0000 ",
            "2026-11-25 15:24:01.123 ",
            "11-25 15:24:01.123 ",
            "15:24:01 ",
            "[Wed Nov 25 15:24:01 2026] ",
            "I/ftrace  ( 1234): ",
        ] {
            peels(before, line, None, true);
        }
        for before in ["trace.txt:", "a/b/trace.txt:12:", "trace.txt-12-"] {
            let file = before.split([':', '-']).next();
            peels(before, line, file, false);
        }
        peels("VM:13107 VCPU:00 ", line, Some("VM:13107"), false);
    }

    #[test]
    fn lines_as_tools_print_them_are_left_alone() {
        for line in [
            "          <idle>-0       [001] d..2.    50.000900: sched_switch: x",
            "CPU 3/KVM-2950 [014] d.... 576.161432: x: y",
            "kworker/14:0-6525 [014] d.... 576.161432: x: y",
            "[001] 5.6: x-9 [001] d..2. 5.600000: x: y",
            "[001]   900.000150000: sched:sched_switch: x",
            "100-5 [000] 1.5: x: y",
            "perf 10924 [000]  1356.932346: x: y",
            "CPU:3 [LOST 5 EVENTS]",
            "##### CPU 1 buffer started ####",
            "",
        ] {
            peels("", line, None, false);
        }
    }

    #[test]
    fn entities_and_tags_stand_for_what_they_say() {
        let plain = |line: &str| String::from_utf8_lossy(&without_markup(line.as_bytes())).into_owned();
        assert_eq!(
            plain("&lt;idle&gt;-0 &amp;lt; &#62; &#x3E; &quot;&apos;&nbsp;x"),
            "<idle>-0 &lt; > > \"' x"
        );
        assert_eq!(plain("a & b; &unknown; &#1; &#xzz; &"), "a & b; &unknown; &#1; &#xzz; &");
        assert_eq!(plain("<pre>  a &gt;<br/>"), "  a >");
        assert_eq!(plain("<span class=\"x\">  a &gt;</span><br>"), "  a >");
        assert_eq!(plain("  <idle>-0 &gt;"), "  <idle>-0 >");
        assert!(has_entity(b"a &gt; b") && !has_entity(b"a & b; c") && !has_entity(b"a &gt b"));
    }

    #[test]
    fn strings_hold_lines() {
        let held =
            |line: &str| of_string(line.as_bytes()).map(|held| String::from_utf8_lossy(&held).into_owned());
        assert_eq!(
            held("  a-1 \\\"x\\\" \\\\ \\u003c\\x3e\\/ y\\n\\").as_deref(),
            Some("  a-1 \"x\" \\ <>/ y")
        );
        assert_eq!(held("var data = \"  a-1\\n\\").as_deref(), Some("  a-1"));
        assert_eq!(held("  \"  a-1\\n\" +").as_deref(), Some("  a-1"));
        for line in ["  a-1", "a\\n", "\\", "", "\\u00"] {
            assert_eq!(held(line), None, "{line}");
        }
    }

    #[test]
    fn colours_are_no_text() {
        let plain = without_colours(b"\x1b[32m12\x1b[m\x1b[36m:\x1b[K  a-1").expect("colours");
        assert_eq!(plain, b"12:  a-1");
        assert_eq!(without_colours(b"  a\x1b[m"), None);
    }

    #[test]
    fn prefixes_name_files_and_instances_only() {
        let of = |prefix: &'static str| {
            source(prefix.as_bytes()).map(|name| String::from_utf8_lossy(name).into_owned())
        };
        assert_eq!(of("lab: ").as_deref(), Some("lab"));
        assert_eq!(of("  host.dat:  ").as_deref(), Some("host.dat"));
        assert_eq!(of("my-file:12: ").as_deref(), Some("my-file"));
        for prefix in ["Nov 25 host kernel: ", "[ 1.5] ", "12: ", ": ", "x  ", "a=\""] {
            assert_eq!(of(prefix), None, "{prefix}");
        }
    }
}
