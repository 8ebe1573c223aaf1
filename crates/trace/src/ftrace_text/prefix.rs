//! The front of a trace line: task, CPU, flags and time stamp, in every layout that the field prints.
//!
//! Must not know: which events exist and what fields they have.
//!
//! ```text
//! tracefs              bash-15487   (  15487) [000] d..2.  1555.069808: …    TGID and flags may be missing
//! trace-cmd report     bash-15487 [000]  1555.069808: …                      3.3 has flags: [000] d..2.  1555.069808: …
//!                      bash-15487 [000] d..2.920058677513: …                 a long stamp leaves no blank
//! trace-cmd report -l  bash-15487   0d..2.  1555.069808: …
//! latency-format       bash-15487   0d..2. 1555069808us+: …
//! with verbose         bash 15487 0 1 00000002 00000045 [5cb0ab70] 1555069.808ms (+0.012ms): …
//! perf script          perf 10924 [000]  1356.932346: …                      or 10924/10924; with -F fewer of these
//! ```
//! A task's name may hold blanks, brackets and dashes, so nothing is found by splitting at blanks: tracefs and trace-cmd
//! print names in a column of 16, so that the dash stands at a known place (the quick way); elsewhere the bracketed CPU
//! number is looked for whose surroundings on both sides read as they must (the slow way).

use std::cell::Cell;

use fairlab_event::{Comm, Context, Cpu, Flags, Ns, Pid};

use super::cursor::LineCursor;
use super::layout::PrefixLayout;
use super::stamp::{PrintedStamp, stamp};
use crate::tracepoint::flags;

/// What stands before an event's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) context: Context,
    pub(super) cpu: Cpu,
    pub(super) stamp: PrintedStamp,
}

/// Where tracefs and trace-cmd print the dash between name and id.
pub(super) const DASH_COLUMN: usize = 16;

/// More flag columns than any kernel prints.
const FLAG_COLUMNS_MAX: usize = 12;

/// Reads a line's front. Returns it with the cursor behind the stamp's colon, or `None` when this is no trace line.
#[inline(always)]
pub(super) fn prefix<'l>(
    line: &'l [u8],
    long_names: &'l Cell<u64>,
    layout: &mut PrefixLayout,
) -> Option<(Prefix, LineCursor<'l>)> {
    let mut cursor = LineCursor::new(line, long_names);
    if let Some(prefix) = layout.read(line) {
        cursor.skip(layout.passed());
        return Some((prefix, cursor));
    }
    generally(line, cursor, layout)
}

#[inline(never)]
fn generally<'l>(
    line: &'l [u8],
    cursor: LineCursor<'l>,
    layout: &mut PrefixLayout,
) -> Option<(Prefix, LineCursor<'l>)> {
    let columns = layout.flag_columns;
    let found = match in_columns(line, cursor, columns) {
        Some(found) => {
            *layout = PrefixLayout::of(line, found.1.passed() - 1).unwrap_or(*layout);
            found
        }
        None => anywhere(line, cursor, columns)?,
    };
    // A last flag that is a digit may be the stamp's first.
    let flags = found.0.context.flags;
    let shown = flags.as_bytes().last().is_some_and(|last| !last.is_ascii_digit());
    layout.flag_columns = if shown { flags.as_bytes().len() } else { columns };
    Some(found)
}

/// The quick way: the name in its column of 16.
#[inline(always)]
fn in_columns<'l>(
    line: &'l [u8],
    mut cursor: LineCursor<'l>,
    columns: usize,
) -> Option<(Prefix, LineCursor<'l>)> {
    // No name fills the column: a line that begins with anything but a blank has other columns.
    if line.get(DASH_COLUMN) != Some(&b'-') || line[0] != b' ' {
        return None;
    }
    let comm = comm_in_column(*line.first_chunk()?);
    cursor.skip(DASH_COLUMN + 1);
    let pid = task_id(&mut cursor)?;
    cursor.blanks();
    let tgid = if cursor.peek() == b'(' { tgid(&mut cursor)? } else { Pid::UNKNOWN };
    cursor.byte(b'[')?;
    let cpu = cursor.cpu()?;
    cursor.byte(b']')?;
    let (flags, stamp) = flags_and_stamp(&mut cursor, columns)?;
    Some((Prefix { context: Context { comm, pid, tgid, flags }, cpu, stamp }, cursor))
}

/// The name without the blanks that fill its column.
#[inline(always)]
pub(super) fn comm_in_column(column: [u8; DASH_COLUMN]) -> Comm {
    const BLANKS: u128 = u128::from_le_bytes([b' '; DASH_COLUMN]);
    const UNKNOWN: u128 = u128::from_le_bytes(*b"<...>\0\0\0\0\0\0\0\0\0\0\0");
    let name = u128::from_le_bytes(column);
    let blanks = (name ^ BLANKS).trailing_zeros() / 8;
    let name = name.checked_shr(8 * blanks).unwrap_or(0);
    if name == UNKNOWN { Comm::default() } else { Comm::from_padded(name.to_le_bytes()) }
}

/// `<...>` is how ftrace prints a name that it does not know.
#[inline]
fn known_comm(cursor: &LineCursor<'_>, name: &[u8]) -> Comm {
    if name == b"<...>" { Comm::default() } else { cursor.comm(name) }
}

/// The digits of a task id. Ids beyond the signed range stand for negative ones, which a dash could not introduce.
#[inline(always)]
fn task_id(cursor: &mut LineCursor<'_>) -> Option<Pid> {
    Some(Pid(u32::try_from(cursor.unsigned()?).ok()? as i32))
}

/// `(  15487)` or `(-------)`, and the blanks behind it.
#[inline(always)]
fn tgid(cursor: &mut LineCursor<'_>) -> Option<Pid> {
    cursor.byte(b'(')?;
    cursor.blanks();
    let tgid = if cursor.peek() == b'-' {
        while cursor.byte(b'-').is_some() {}
        Pid::UNKNOWN
    } else {
        task_id(cursor)?
    };
    cursor.byte(b')')?;
    cursor.blanks();
    Some(tgid)
}

/// Flags if there are any, the stamp and its colon. Flags never begin with a digit, stamps always do. `columns`: how many
/// flags lines before had, 0 if none has shown it.
#[inline(always)]
fn flags_and_stamp(cursor: &mut LineCursor<'_>, columns: usize) -> Option<(Flags, PrintedStamp)> {
    cursor.blanks();
    let mut flags = Flags::NONE;
    if !cursor.peek().is_ascii_digit() {
        let start = *cursor;
        flags = match cursor.short_word() {
            Some(columns) => Flags::new(&columns),
            None => match cursor.word()? {
                word if word.ends_with(b":") => {
                    *cursor = start;
                    return stuck_flags(cursor, columns);
                }
                word if word.len() <= FLAG_COLUMNS_MAX => Flags::new(word),
                _ => return None,
            },
        };
        if !flags.as_bytes().iter().all(|&byte| is_flag(byte)) {
            return None;
        }
        cursor.blanks();
    }
    let stamp = stamp(cursor)?;
    cursor.byte(b':')?;
    Some((flags, stamp))
}

/// What libtraceevent prints of a kernel's flags, from 1.3 on.
const FLAG_COLUMNS: usize = 5;

/// Flags and a stamp without a blank between them, as trace-cmd prints stamps that are longer than their column. Flags may end in
/// digits (how deep preemption and migration are disabled): as many columns belong to them as on lines that show it.
#[cold]
fn stuck_flags(cursor: &mut LineCursor<'_>, columns: usize) -> Option<(Flags, PrintedStamp)> {
    let rest = cursor.rest();
    let word = &rest[..memchr::memchr(b':', rest)?];
    let tail = |end: usize| word[..end].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = tail(word.len());
    let mut start = word.len() - digits;
    // A fraction, and the seconds before it. Whole numbers that leave no blank have more digits.
    if matches!(digits, 6 | 9) && word.get(start.wrapping_sub(1)) == Some(&b'.') {
        start -= 1 + tail(start - 1);
    }
    let columns = if columns > 0 { columns } else { FLAG_COLUMNS };
    let flags = word.get(..start.max(columns))?;
    if !(3..=FLAG_COLUMNS_MAX).contains(&flags.len()) || !flags.iter().all(|&byte| is_flag(byte)) {
        return None;
    }
    cursor.skip(flags.len());
    let stamp = stamp(cursor)?;
    cursor.byte(b':')?;
    Some((Flags::new(flags), stamp))
}

/// Whether a flag column may hold `byte`: anything visible but the mark behind a stamp.
#[inline]
pub(super) const fn is_flag(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b':'
}

/// The slow way: the first bracketed number that has a task before it and a stamp behind it.
fn anywhere<'l>(line: &'l [u8], cursor: LineCursor<'l>, columns: usize) -> Option<(Prefix, LineCursor<'l>)> {
    for bracket in memchr::memchr_iter(b'[', line) {
        let mut after = cursor;
        after.skip(bracket + 1);
        let Some((cpu, flags, stamp)) = behind_bracket(&mut after, columns) else { continue };
        if let Some(context) = task(&cursor, &line[..bracket], flags) {
            return Some((Prefix { context, cpu, stamp }, after));
        }
    }
    latency_format(line, cursor, columns)
        .or_else(|| verbose_format(line, cursor))
        .or_else(|| without_task(line, cursor))
}

/// perf's line where neither name nor id were asked for: `[001]  1356.932346: …`.
fn without_task<'l>(line: &'l [u8], cursor: LineCursor<'l>) -> Option<(Prefix, LineCursor<'l>)> {
    let (cpu, flags, stamp, after) = of_perf(line, cursor, <[u8]>::is_empty)?;
    Some((Prefix { context: Context { flags, ..Context::default() }, cpu, stamp }, after))
}

/// perf's line where no id was asked for: `swapper [001]  1356.932346: …`. Prose may look like it: what follows must be an
/// event that is known.
pub(super) fn without_id<'l>(line: &'l [u8], long_names: &'l Cell<u64>) -> Option<(Prefix, LineCursor<'l>)> {
    let cursor = LineCursor::new(line, long_names);
    let mut name = &b""[..];
    let (cpu, flags, stamp, after) = of_perf(line, cursor, |left| {
        name = left;
        !left.is_empty()
    })?;
    let context = Context { comm: perf_comm(&cursor, name, Pid::UNKNOWN), flags, ..Context::default() };
    Some((Prefix { context, cpu, stamp }, after))
}

/// The first bracket with a CPU's three digits that has a stamp behind it, and before it what `is_front` takes.
fn of_perf<'l>(
    line: &'l [u8],
    cursor: LineCursor<'l>,
    mut is_front: impl FnMut(&'l [u8]) -> bool,
) -> Option<(Cpu, Flags, PrintedStamp, LineCursor<'l>)> {
    memchr::memchr_iter(b'[', line).find_map(|bracket| {
        let mut after = cursor;
        after.skip(bracket + 1);
        let (cpu, flags, stamp) = behind_bracket(&mut after, 0)?;
        let padded = line.get(bracket + 1..bracket + 4)?.iter().all(u8::is_ascii_digit);
        (padded && is_front(line[..bracket].trim_ascii())).then_some((cpu, flags, stamp, after))
    })
}

fn behind_bracket(after: &mut LineCursor<'_>, columns: usize) -> Option<(Cpu, Flags, PrintedStamp)> {
    let cpu = after.cpu()?;
    after.byte(b']')?;
    let (flags, stamp) = flags_and_stamp(after, columns)?;
    Some((cpu, flags, stamp))
}

/// The task that `left` names: `name-id`, `name-id (tgid)`, `name id` or `name pid/tid`; perf leaves the name out on demand.
fn task(cursor: &LineCursor<'_>, left: &[u8], flags: Flags) -> Option<Context> {
    let (left, tgid) = split_tgid(without_quote_marks(left.trim_ascii()))?;
    let (front, digits) = split_digits(left)?;
    let pid = id(digits)?;
    let of = |comm, pid, tgid| Some(Context { comm, pid, tgid, flags });
    if matches!(front, b"" | b"-" | b"-1/-") {
        let pid = if front.is_empty() { pid } else { Pid::UNKNOWN };
        return of(Comm::default(), pid, Pid::UNKNOWN);
    }
    match front.split_last()? {
        (b'-', b"<...>-") => of(Comm::default(), Pid(pid.0.checked_neg()?), tgid),
        (b'-', name) if digits == b"1" && is_before_unknown(name) => {
            let name = name.strip_suffix(b"-1/").unwrap_or(name);
            of(perf_comm(cursor, name, Pid::UNKNOWN), Pid::UNKNOWN, Pid::UNKNOWN)
        }
        (b'-', name) => of(known_comm(cursor, name), pid, tgid),
        (b' ' | b'\t', name) => of(perf_comm(cursor, name, pid), pid, tgid),
        (b'/', process) => {
            let (name, digits) = split_digits(process)?;
            if name.is_empty() {
                return of(Comm::default(), pid, id(digits)?);
            }
            let (b' ' | b'\t', name) = name.split_last()? else { return None };
            of(perf_comm(cursor, name, pid), pid, id(digits)?)
        }
        _ => None,
    }
}

/// Whether `-1` after `name` is perf's unknown task (` -1`, ` -1/-1`) and not the id 1 of a task.
fn is_before_unknown(name: &[u8]) -> bool {
    matches!(name, [.., b' ' | b'\t'] | [.., b' ' | b'\t', b'-', b'1', b'/'])
}

/// The name before a perf line's id. perf prints `:PID` for a name that it does not know.
fn perf_comm(cursor: &LineCursor<'_>, name: &[u8], pid: Pid) -> Comm {
    let name = name.trim_ascii_end();
    let unknown = match name.strip_prefix(b":") {
        Some(b"-1") => true,
        Some(digits) => id(digits).is_some_and(|printed| printed == pid),
        None => false,
    };
    if unknown { Comm::default() } else { known_comm(cursor, name) }
}

/// Drops the marks of quoted mail (`> > `).
fn without_quote_marks(mut left: &[u8]) -> &[u8] {
    while let [b'>', tail @ ..] = left {
        let trimmed = tail.trim_ascii_start();
        if trimmed.len() == tail.len() && !tail.starts_with(b">") {
            break;
        }
        left = trimmed;
    }
    left
}

fn split_tgid(left: &[u8]) -> Option<(&[u8], Pid)> {
    let Some(inner) = left.strip_suffix(b")") else { return Some((left, Pid::UNKNOWN)) };
    let open = memchr::memrchr(b'(', inner)?;
    let printed = inner[open + 1..].trim_ascii();
    let unknown = !printed.is_empty() && printed.iter().all(|&byte| byte == b'-');
    let tgid = if unknown { Pid::UNKNOWN } else { id(printed)? };
    Some((inner[..open].trim_ascii_end(), tgid))
}

/// Splits off the digits at the end; `None` when there are none.
fn split_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = text.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    (start < text.len()).then(|| text.split_at(start))
}

fn id(digits: &[u8]) -> Option<Pid> {
    let value: u32 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(Pid(value as i32))
}

/// `trace-cmd report -l`, and tracefs with `options/latency-format`, whose stamps are microseconds and a mark that tells
/// how long it is to the next line: name cut to 8, CPU and flags without blank between them, no brackets.
fn latency_format<'l>(
    line: &'l [u8],
    cursor: LineCursor<'l>,
    columns: usize,
) -> Option<(Prefix, LineCursor<'l>)> {
    let (front, cpu, flags, stamp, after) =
        match bare_stamp(line, cursor).or_else(|| marked_stamp(line, cursor)) {
            Some((start, stamp, after)) => {
                let left = line[..start].trim_ascii_end();
                let front = left.iter().rposition(|&byte| byte == b' ')? + 1;
                let mut word = cursor;
                word.skip(front);
                let cpu = word.cpu()?;
                let flags = word.word().filter(|flags| (3..=FLAG_COLUMNS_MAX).contains(&flags.len()))?;
                (front, cpu, Flags::new(flags), stamp, after)
            }
            None => {
                let colon = memchr::memmem::find(line, b": ")?;
                let front = line[..colon].iter().rposition(|&byte| byte == b' ')? + 1;
                let mut after = cursor;
                after.skip(front);
                let cpu = after.cpu()?;
                let (flags, stamp) = stuck_flags(&mut after, columns)?;
                (front, cpu, flags, stamp, after)
            }
        };
    let columns = flags.as_bytes();
    let plausible = columns.iter().all(|&byte| is_flag(byte))
        && matches!(columns, [b'.' | b'd' | b'D' | b'b' | b'X', ..]);
    if !plausible {
        return None;
    }
    let mut context = task(&cursor, line[..front].trim_ascii(), flags)?;
    if context.comm.as_bytes().len() == NAME_CUT {
        // Most likely the beginning of a longer name.
        context.comm = Comm::default();
    }
    Some((Prefix { context, cpu, stamp }, after))
}

/// tracefs with `options/latency-format` and `options/verbose`: name, id, CPU, the flags and the preemption depth as numbers,
/// the line's number, the stamp in microseconds (hexadecimal), and how long it is since the buffer began and to the next
/// line. With a clock of ticks the stamp counts these, and the times have no unit.
fn verbose_format<'l>(line: &'l [u8], cursor: LineCursor<'l>) -> Option<(Prefix, LineCursor<'l>)> {
    let (open, since) = memchr::memmem::find_iter(line, b" (+").find_map(|since| {
        let open = memchr::memrchr(b'[', &line[..since])?;
        Some((open, since))
    })?;
    let close = open + memchr::memchr(b']', &line[open..since])?;
    let end = since + memchr::memmem::find(&line[since..], b"): ")?;
    let hexadecimal = std::str::from_utf8(&line[open + 1..close]).ok()?;
    let value = u64::from_str_radix(hexadecimal, 16).ok()?;
    let stamp = match line[..end].ends_with(b"ms") {
        true => PrintedStamp::Time(Ns(value.checked_mul(1000)?)),
        false => PrintedStamp::Ticks(value),
    };
    // Padded columns are cut from behind: a name may hold anything.
    let (rest, number) = last_word(&line[..open])?;
    let (rest, depth) = last_word(rest)?;
    let (rest, flags) = last_word(rest)?;
    let (rest, cpu) = last_word(rest)?;
    let (name, pid) = last_word(rest)?;
    let hexadecimal = |word| u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok();
    let (_, depth) = (hexadecimal(number)?, u8::try_from(hexadecimal(depth)?).ok()?);
    let flags = u8::try_from(id(flags)?.0).ok()?;
    let mut after = cursor;
    after.skip(end + b"):".len());
    let context = Context {
        comm: known_comm(&cursor, name.trim_ascii()),
        pid: id(pid)?,
        tgid: Pid::UNKNOWN,
        flags: flags::columns(flags, depth),
    };
    Some((Prefix { context, cpu: Cpu(u32::try_from(id(cpu)?.0).ok()?), stamp }, after))
}

/// `text` without its last word, and that.
fn last_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_end();
    let start = text.iter().rposition(|&byte| byte == b' ').map_or(0, |blank| blank + 1);
    let (rest, word) = text.split_at_checked(start)?;
    (!word.is_empty()).then_some((rest, word))
}

/// How much of a name latency format has.
const NAME_CUT: usize = 8;

/// The stamp before the first colon, where it begins, and what follows the colon.
fn bare_stamp<'l>(line: &[u8], cursor: LineCursor<'l>) -> Option<(usize, PrintedStamp, LineCursor<'l>)> {
    let colon = memchr::memmem::find(line, b": ")?;
    let start = line[..colon].iter().rposition(|&byte| byte == b' ')? + 1;
    let mut after = cursor;
    after.skip(start);
    let stamp = stamp(&mut after)?;
    after.byte(b':')?;
    Some((start, stamp, after))
}

/// The same for `1234us+: `.
fn marked_stamp<'l>(line: &[u8], cursor: LineCursor<'l>) -> Option<(usize, PrintedStamp, LineCursor<'l>)> {
    let unit = memchr::memmem::find_iter(line, b"us").find(|&unit| {
        let [mark, b':', b' ', ..] = line[unit + 2..] else { return false };
        b" +!#*@$".contains(&mark)
    })?;
    let digits = line[..unit].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let mut after = cursor;
    after.skip(unit - digits);
    let microseconds = after.unsigned().filter(|_| digits > 0)?;
    after.skip(b"us+:".len());
    let time = Ns(microseconds.checked_mul(1000)?);
    Some((unit - digits, PrintedStamp::Time(time), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Read {
        task: (String, i32, i32),
        cpu: u32,
        flags: String,
        stamp: PrintedStamp,
        rest: String,
    }

    fn read(line: &str) -> Option<Read> {
        let long_names = Cell::new(0);
        let (prefix, cursor) = prefix(line.as_bytes(), &long_names, &mut PrefixLayout::default())?;
        Some(Read {
            task: (prefix.context.comm.to_string(), prefix.context.pid.0, prefix.context.tgid.0),
            cpu: prefix.cpu.0,
            flags: String::from_utf8_lossy(prefix.context.flags.as_bytes()).into_owned(),
            stamp: prefix.stamp,
            rest: String::from_utf8_lossy(cursor.rest()).into_owned(),
        })
    }

    #[track_caller]
    fn check(line: &str, task: (&str, i32, i32), cpu: u32, flags: &str, stamp: PrintedStamp) {
        let found = read(line).unwrap_or_else(|| panic!("no prefix in {line:?}"));
        assert_eq!(found.task, (task.0.to_string(), task.1, task.2), "{line:?}");
        assert_eq!((found.cpu, found.flags.as_str(), found.stamp), (cpu, flags, stamp), "{line:?}");
        assert_eq!(found.rest, " x: y", "{line:?}");
    }

    fn us(us: u64) -> PrintedStamp {
        PrintedStamp::Time(Ns::from_us(us))
    }

    #[test]
    fn tracefs_columns() {
        let t = us(1_555_069_808);
        check(
            "            bash-15487   (  15487) [000] d..2.  1555.069808: x: y",
            ("bash", 15487, 15487),
            0,
            "d..2.",
            t,
        );
        check(
            "          <idle>-0       (-------) [001] d.s4.  1555.069808: x: y",
            ("<idle>", 0, -1),
            1,
            "d.s4.",
            t,
        );
        check(
            "          <idle>-0     (-----) [001] d.s4  1555.069808: x: y",
            ("<idle>", 0, -1),
            1,
            "d.s4",
            t,
        );
        check(
            "           <...>-123     [191] d..2.....  1555.069808: x: y",
            ("", 123, -1),
            191,
            "d..2....",
            t,
        );
        check("            init-1       [003] d...  1555.069808: x: y", ("init", 1, -1), 3, "d...", t);
        check(
            "            init-1       [003] d...   4666290303: x: y",
            ("init", 1, -1),
            3,
            "d...",
            PrintedStamp::Ticks(4_666_290_303),
        );
        check("            bash-15487 [000]  1555.069808: x: y", ("bash", 15487, -1), 0, "", t);
        check(
            "      opt cgu.14-16722   (  16340) [000] d.h1.  1555.069808: x: y",
            ("opt cgu.14", 16722, 16340),
            0,
            "d.h1.",
            t,
        );
    }

    #[test]
    fn names_that_look_like_the_rest_of_a_line() {
        let t = us(5_600_000);
        check(
            " a-1 [0] 1.2: y:-123     [001] d..2.     5.600000: x: y",
            ("a-1 [0] 1.2: y:", 123, -1),
            1,
            "d..2.",
            t,
        );
        check("           a-b-c-9       [001] d..2.     5.600000: x: y", ("a-b-c", 9, -1), 1, "d..2.", t);
        check("[001] 5.6: x-9 [001] d..2. 5.600000: x: y", ("[001] 5.6: x", 9, -1), 1, "d..2.", t);
        check("(7) [3] .-9 (  12) [001] d..2. 5.600000: x: y", ("(7) [3] .", 9, 12), 1, "d..2.", t);
    }

    #[test]
    fn mail_without_columns() {
        let t = us(576_161_432);
        check("CPU 3/KVM-2950 [014] d.... 576.161432: x: y", ("CPU 3/KVM", 2950, -1), 14, "d....", t);
        check(
            "> > kworker/14:0-6525 [014] d.... 576.161432: x: y",
            ("kworker/14:0", 6525, -1),
            14,
            "d....",
            t,
        );
        check(">> migration/14-85 [014] d..1. 576.161432: x: y", ("migration/14", 85, -1), 14, "d..1.", t);
        check(">odd-85 [014] d..1. 576.161432: x: y", (">odd", 85, -1), 14, "d..1.", t);
    }

    #[test]
    fn perf_script() {
        let t = us(1_356_932_346);
        check("            perf 10924 [000]  1356.932346: x: y", ("perf", 10924, -1), 0, "", t);
        check("perf   10924 [000]  1356.932346: x: y", ("perf", 10924, -1), 0, "", t);
        check("     migration/0    18/18    [000]  1356.932346: x: y", ("migration/0", 18, 18), 0, "", t);
        check("     Web Content   181/17    [000]  1356.932346: x: y", ("Web Content", 17, 181), 0, "", t);
        check("             :-1    -1 [001]  1356.932346: x: y", ("", -1, -1), 1, "", t);
        check("             :-1    -1/-1    [001]  1356.932346: x: y", ("", -1, -1), 1, "", t);
        check("          :10954 10954 [001]  1356.932346: x: y", ("", 10954, -1), 1, "", t);
        check("         swapper     0 [001]  1356.932346: x: y", ("swapper", 0, -1), 1, "", t);
        check(
            "perf 10924 [000]  1356.932346848: x: y",
            ("perf", 10924, -1),
            0,
            "",
            PrintedStamp::Time(Ns(1_356_932_346_848)),
        );
    }

    #[test]
    fn latency_format_of_trace_cmd_and_tracefs() {
        let t = us(1_600_174_990);
        check("opt cgu.-16722   0d.h1.  1600.174990: x: y", ("", 16722, -1), 0, "d.h1.", t);
        check("  opt cg-16722   0d.h1.  1600.174990: x: y", ("opt cg", 16722, -1), 0, "d.h1.", t);
        check("  <idle>-0      13d.s4.  1600.174990: x: y", ("<idle>", 0, -1), 13, "d.s4.", t);
        let t = us(14_940_956_155);
        check("    bash-17696     0d..2. 14940956155us!: x: y", ("bash", 17696, -1), 0, "d..2.", t);
        check("rcu_pree-15       13dNs3. 14940956155us : x: y", ("", 15, -1), 13, "dNs3.", t);
        check("  <idle>-0         0d..2.    7us+: x: y", ("<idle>", 0, -1), 0, "d..2.", us(7));
        for line in ["the wakeup took 7us : x: y", "  <idle>-0         0d..2. us+: x: y", "us+: ", "1us+: x"]
        {
            assert!(read(line).is_none(), "{line}");
        }
    }

    /// trace-cmd 3.4 leaves no blank before whole numbers of twelve digits, nor before seconds of ten.
    #[test]
    fn stamps_that_stick_to_the_flags() {
        let ticks = PrintedStamp::Ticks;
        let load = ("load.sh", 5089, -1);
        for (cpu, cpu_flags, flags, stamp, expected) in [
            (0, "[000] ", "d..3.", "920058677513", ticks(920_058_677_513)),
            (0, "[000] ", "dN.4.", "920058680952", ticks(920_058_680_952)),
            (1, "[001] ", "d..21", "920058680952", ticks(920_058_680_952)),
            (1, "[001] ", "dNs.1", "3016121788855", ticks(3_016_121_788_855)),
            (1, "[001] ", "d..2..", "920058677513", ticks(920_058_677_513)),
            (1, "[001]", "", "3016121788855", ticks(3_016_121_788_855)),
            (1, "[001] ", "d..3.", "1764394487.123456", us(1_764_394_487_123_456)),
            (1, "[001] ", "d..31", "1764394487.123456789", PrintedStamp::Time(Ns(1_764_394_487_123_456_789))),
            (1, "[001] ", ".....", "1764394487.123456", us(1_764_394_487_123_456)),
        ] {
            let line = format!("         load.sh-5089  {cpu_flags}{flags}{stamp}: x: y");
            check(&line, load, cpu, flags, expected);
        }
        check(
            "  load.s-6826    0d..3.3016121788855: x: y",
            ("load.s", 6826, -1),
            0,
            "d..3.",
            ticks(3_016_121_788_855),
        );
        check(
            " load.sh-6826   12d..313016121788855: x: y",
            ("load.sh", 6826, -1),
            12,
            "d..31",
            ticks(3_016_121_788_855),
        );
        // How many flags there are, an earlier line tells.
        let mut layout = PrefixLayout::default();
        let long_names = Cell::new(0);
        let mut read = |line: &[u8]| {
            let (prefix, _) = prefix(line, &long_names, &mut layout).expect("a front");
            (String::from_utf8_lossy(prefix.context.flags.as_bytes()).into_owned(), prefix.stamp)
        };
        let line = |word: &str| format!("         load.sh-5089  [000] {word}: x: y").into_bytes();
        assert_eq!(read(&line("d..2920058677513")).0, "d..29");
        assert_eq!(read(&line("d... 20058677513")).0, "d...");
        assert_eq!(read(&line("d..2920058677513")), ("d..2".to_string(), ticks(920_058_677_513)));
        assert_eq!(read(&line("d..2....920058677513")).0, "d..2....");
        assert_eq!(read(&line("d..2..31920058677513")), ("d..2..31".to_string(), ticks(920_058_677_513)));
        for word in ["d.:920058677513", "d..3.", "d..3.x", "............d..3.920058677513"] {
            assert!(prefix(&line(word), &long_names, &mut PrefixLayout::default()).is_none(), "{word}");
        }
    }

    #[test]
    fn verbose_lines() {
        let t = us(0x5cb0_ab70);
        let behind = "[5cb0ab70] 1555069.808ms (+0.012ms): x: y";
        check(
            &format!("            bash   17696   0 1 00000002 00000045 {behind}"),
            ("bash", 17696, -1),
            0,
            "d..2.",
            t,
        );
        check(
            &format!("     Web Content     181  13 17 00000000 00000045 {behind}"),
            ("Web Content", 181, -1),
            13,
            "d.s..",
            t,
        );
        let ticks = "[0000000116300000] 14940 (+12): x: y";
        check(
            &format!("            bash 17696 0 1 00000002 00000045 {ticks}"),
            ("bash", 17696, -1),
            0,
            "d..2.",
            PrintedStamp::Ticks(0x1_1630_0000),
        );
    }

    #[test]
    fn perf_leaves_out_what_is_not_asked_for() {
        let t = us(1_356_932_346);
        check("  10924 [000]  1356.932346: x: y", ("", 10924, -1), 0, "", t);
        check("  10924/10925 [000]  1356.932346: x: y", ("", 10925, 10924), 0, "", t);
        check("     -1 [000]  1356.932346: x: y", ("", -1, -1), 0, "", t);
        check("     -1/-1  [000]  1356.932346: x: y", ("", -1, -1), 0, "", t);
        check("[000]  1356.932346: x: y", ("", -1, -1), 0, "", t);
        let long_names = Cell::new(0);
        let (prefix, _) = without_id(b"     Web Content [001] 1.5: x: y", &long_names).expect("a front");
        assert_eq!((prefix.context.comm.to_string().as_str(), prefix.cpu), ("Web Content", Cpu(1)));
        assert!(without_id(b"see [1] 2.5: x: y", &long_names).is_none());
    }

    #[test]
    fn ids_beyond_the_signed_range_are_negative() {
        let t = us(1_000_000);
        check(
            "           <...>-4294967295 (-------) [000] d.... 1.000000: x: y",
            ("", -1, -1),
            0,
            "d....",
            t,
        );
        check("<...>--1 [000] d.... 1.000000: x: y", ("", -1, -1), 0, "d....", t);
        check("            foo--1       [000] d.... 1.000000: x: y", ("foo-", 1, -1), 0, "d....", t);
    }

    #[test]
    fn prose_is_no_trace_line() {
        for line in [
            "",
            "On timestamp 576.162767, the vhost process triggers",
            "--> migrates task from cpu 15 to 14",
            "CPU 2/KVM:(2) | 5399.650 ms | 108698 | avg: 0.003 ms | max: 3.077 ms",
            "cpus=2",
            "bash-15487 [000] d..2.",
            "bash-15487 [000] d..2. 1555.",
            "bash [000] d..2. 1555.069808: x: y",
            "swapper/0 [000] 1555.069808: x: y",
            "bash 17696 0 1 00000002 00000045 [5cb0ab70] 1555069.808ms: x: y",
            "bash 17696 0 1 [5cb0ab70] 1555069.808ms (+0.012ms): x: y",
            "see [1] 2.5: foo: bar",
            "bash-15487 [99999999999] d..2. 1555.069808: x: y",
            "bash-4294967296 [000] d..2. 1555.069808: x: y",
            " => do_syscall_64",
        ] {
            assert!(read(line).is_none(), "{line:?}");
        }
    }
}
