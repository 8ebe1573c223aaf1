//! Text of others as a terminal may be given it: what it would obey is escaped.
//!
//! A task may be called anything, a guest prints what it likes, and a file's name holds any byte but two. All of it passes
//! here before a person sees it.
//!
//! Must not know: where the text came from, where it goes.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::path::Path;

/// Shows text on one line: each character that a terminal would obey is written as Rust writes it in a string.
#[derive(Clone, Copy, Debug)]
pub struct EscapedText<'t>(pub &'t str);

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Most text has nothing to escape, and keeps the width that it is asked for.
        if !self.0.chars().any(is_obeyed) {
            return f.pad(self.0);
        }
        let mut text = String::with_capacity(self.0.len() + 8);
        escape(self.0, |_| false, &mut text);
        f.pad(&text)
    }
}

/// Shows text of several lines: as [`EscapedText`], but lines end and tabs stand.
#[derive(Clone, Copy, Debug)]
pub struct ShownLines<'t>(pub &'t str);

impl fmt::Display for ShownLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Programs end a line with both, too.
        for (index, line) in self.0.split('\n').enumerate() {
            if index > 0 {
                f.write_char('\n')?;
            }
            let mut text = String::new();
            escape(line.strip_suffix('\r').unwrap_or(line), |char| char == '\t', &mut text);
            f.write_str(&text)?;
        }
        Ok(())
    }
}

/// Shows a file's name: as [`EscapedText`], and bytes that are no text as `\xff`.
#[derive(Clone, Copy, Debug)]
pub struct ShownPath<'t>(pub &'t Path);

impl fmt::Display for ShownPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&bytes(self.0.as_os_str().as_encoded_bytes()))
    }
}

/// Bytes as one line of text: as [`EscapedText`], and what is no text as `\xff`.
pub fn bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        escape(chunk.valid(), |_| false, &mut text);
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// JSON with what a terminal would obey written as `\u…`: in JSON that JSON makes, such characters stand in strings only.
pub fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|char| char != '\n' && is_obeyed(char)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        if char == '\n' || !is_obeyed(char) {
            safe.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            let _ = write!(safe, "\\u{unit:04x}");
        }
    }
    Cow::Owned(safe)
}

/// Text as a part of a line of Markdown: no character of it begins markup, nor a cell of a table.
pub fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for char in EscapedText(text).to_string().chars() {
        match char {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\\' | '`' | '*' | '[' | ']' | '|' => safe.extend(['\\', char]),
            _ => safe.push(char),
        }
    }
    safe
}

/// Text as a field of CSV. Names of kernels have commas in them where they set tunables.
pub fn csv(text: &str) -> String {
    let text = EscapedText(text).to_string();
    // A spreadsheet would take it for a formula.
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Text as it stands in XML, between tags or in an attribute's quotes.
pub fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for char in EscapedText(text).to_string().chars() {
        match char {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&apos;"),
            _ => safe.push(char),
        }
    }
    safe
}

fn escape(from: &str, keeps: impl Fn(char) -> bool, to: &mut String) {
    for char in from.chars() {
        match char {
            char if !is_obeyed(char) || keeps(char) => to.push(char),
            '\n' | '\r' | '\t' => to.extend(char.escape_default()),
            '\0'..='\x7f' => {
                let _ = write!(to, "\\x{:02x}", u32::from(char));
            }
            char => to.extend(char.escape_unicode()),
        }
    }
}

/// Whether a terminal or a reader's eye is led by this character instead of shown it: control characters of both sets, ends of
/// lines and paragraphs, marks of direction (which reorder what stands around them), and characters that have no width.
pub fn is_obeyed(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn no_character_is_obeyed_once_it_is_shown() {
        let every = (0..=0x10_ffff).filter_map(char::from_u32).collect::<String>();
        let shown = EscapedText(&every).to_string();
        assert!(!shown.chars().any(is_obeyed));
        let lines = ShownLines(&every).to_string();
        assert!(!lines.chars().any(|char| is_obeyed(char) && !matches!(char, '\n' | '\t')));
    }

    #[test]
    fn what_is_shown_tells_what_it_was() {
        assert_eq!(EscapedText("a\n\x1b[31m\u{9b}\u{202e}ü").to_string(), "a\\n\\x1b[31m\\u{9b}\\u{202e}ü");
        assert_eq!(ShownLines("one\r\ntwo\t\x07\r3\n").to_string(), "one\ntwo\t\\x07\\r3\n");
        assert_eq!(ShownPath(Path::new(OsStr::from_bytes(b"a\xff\x1b/b"))).to_string(), "a\\xff\\x1b/b");
        assert_eq!(bytes(b"x\0\xc3"), "x\\x00\\xc3");
    }

    #[test]
    fn json_stays_the_same_value() {
        let every = (0x80..=0x10_ffff).filter_map(char::from_u32).collect::<String>();
        let text = format!("{{\n  \"name\": \"{every}\"\n}}");
        let safe = json(&text);
        assert!(!safe.chars().any(|char| char != '\n' && is_obeyed(char)));
        assert!(safe.contains("\\u009b") && safe.contains("\\u202e") && safe.contains("\\udb40\\udc01"));
        assert!(matches!(json("{\n}"), Cow::Borrowed("{\n}")));
    }

    #[test]
    fn names_are_no_markup() {
        let name = "a|b\n<script>`x`[y](z)*&\"'\\";
        assert_eq!(markdown(name), "a\\|b\\\\n&lt;script&gt;\\`x\\`\\[y\\](z)\\*&amp;\"'\\\\");
        assert_eq!(xml(name), "a|b\\n&lt;script&gt;`x`[y](z)*&amp;&quot;&apos;\\");
        assert_eq!(markdown("v6.6,base_slice_ns=1"), "v6.6,base_slice_ns=1");
    }

    #[test]
    fn widths_count_what_is_shown() {
        assert_eq!(format!("[{:>4}|{:<4}]", EscapedText("ab"), EscapedText("\n")), "[  ab|\\n  ]");
    }
}
