//! Text of others as a terminal may be given it: what it would obey is escaped.
//!
//! A task may be called anything, a guest prints what it likes, and a file's name holds any byte but two. All of it passes
//! here before a person sees it.
//!
//! Must not know: where the text came from, where it goes.

use std::fmt::{self, Write};
use std::path::Path;

/// Shows text on one line: each character that a terminal would obey is written as Rust writes it in a string.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'t>(pub &'t str);

impl fmt::Display for Shown<'_> {
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

/// Shows text of several lines: as [`Shown`], but lines end and tabs stand.
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

/// Shows a file's name: as [`Shown`], and bytes that are no text as `\xff`.
#[derive(Clone, Copy, Debug)]
pub struct ShownPath<'t>(pub &'t Path);

impl fmt::Display for ShownPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&bytes(self.0.as_os_str().as_encoded_bytes()))
    }
}

/// Bytes as one line of text: as [`Shown`], and what is no text as `\xff`.
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
        let shown = Shown(&every).to_string();
        assert!(!shown.chars().any(is_obeyed));
        let lines = ShownLines(&every).to_string();
        assert!(!lines.chars().any(|char| is_obeyed(char) && !matches!(char, '\n' | '\t')));
    }

    #[test]
    fn what_is_shown_tells_what_it_was() {
        assert_eq!(Shown("a\n\x1b[31m\u{9b}\u{202e}ü").to_string(), "a\\n\\x1b[31m\\u{9b}\\u{202e}ü");
        assert_eq!(ShownLines("one\r\ntwo\t\x07\r3\n").to_string(), "one\ntwo\t\\x07\\r3\n");
        assert_eq!(ShownPath(Path::new(OsStr::from_bytes(b"a\xff\x1b/b"))).to_string(), "a\\xff\\x1b/b");
        assert_eq!(bytes(b"x\0\xc3"), "x\\x00\\xc3");
    }

    #[test]
    fn widths_count_what_is_shown() {
        assert_eq!(format!("[{:>4}|{:<4}]", Shown("ab"), Shown("\n")), "[  ab|\\n  ]");
    }
}
