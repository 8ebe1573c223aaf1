//! `trace_printk`: records that hold the address of a format in the kernel's memory, and the raw arguments.
//!
//! The formats are elsewhere in a trace, as in tracefs's `printk_formats`: `0xffffffff8281a97c : "text\n"`. Arguments are
//! packed as by the kernel's `vbin_printf()` (lib/vsprintf.c). Numbers are aligned to their size, at most to four bytes.
//! Texts come unaligned, with their NUL. So do pointers that the kernel had to follow while it recorded.
//!
//! Must not know: which records these are.

use std::collections::HashMap;
use std::fmt::Write;

use crate::endian::Endian;

/// Formats and texts of `trace_printk`, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrintkFormats {
    by_address: HashMap<u64, String>,
}

impl PrintkFormats {
    /// Reads what tracefs has in `printk_formats`; lines that are none are passed over.
    pub(crate) fn add(&mut self, text: &str) {
        self.by_address.extend(text.lines().filter_map(line));
    }

    /// What stands at `address`.
    pub(super) fn get(&self, address: u64) -> Option<&str> {
        self.by_address.get(&address).map(String::as_str)
    }
}

/// Address and text of a line.
fn line(line: &str) -> Option<(u64, String)> {
    let (address, text) = line.split_once(" : ")?;
    let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
    let quoted = text.trim_end().strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(quoted.len());
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                't' => '\t',
                other => other,
            },
            other => other,
        });
    }
    Some((address, text))
}

/// Replaces `text` by what `format` makes of `arguments`; `None` when there are too few. A `long` has `long_bytes`.
pub(super) fn render(
    format: &str,
    arguments: &[u8],
    endian: Endian,
    long_bytes: usize,
    text: &mut String,
) -> Option<()> {
    text.clear();
    let mut arguments = PrintkArguments { bytes: arguments, at: 0, endian, long_bytes };
    let mut rest = format;
    while let Some((plain, directive)) = rest.split_once('%') {
        text.push_str(plain);
        rest = match directive.strip_prefix('%') {
            Some(rest) => {
                text.push('%');
                rest
            }
            None => arguments.directive(directive, text)?,
        };
    }
    text.push_str(rest);
    Some(())
}

/// The arguments that are left.
struct PrintkArguments<'a> {
    bytes: &'a [u8],
    at: usize,
    endian: Endian,
    long_bytes: usize,
}

/// What stands between `%` and the letter.
#[derive(Clone, Copy, Debug, Default)]
struct PrintkSpec {
    left: bool,
    plus: bool,
    blank: bool,
    prefixed: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
}

/// Wider fields are garbage.
const WIDTH_MAX: usize = 4096;

impl PrintkArguments<'_> {
    /// Adds what one directive stands for, without its `%`; returns what follows it.
    fn directive<'f>(&mut self, directive: &'f str, text: &mut String) -> Option<&'f str> {
        let (mut layout, rest) = flags(directive);
        let (width, rest) = self.number_or_argument(rest)?;
        let width = width.unwrap_or(0);
        (layout.left, layout.width) = (layout.left || width < 0, width.unsigned_abs() as usize);
        let rest = match rest.strip_prefix('.') {
            Some(rest) => {
                let (precision, rest) = self.number_or_argument(rest)?;
                layout.precision = usize::try_from(precision.unwrap_or(0)).ok();
                rest
            }
            None => rest,
        };
        if layout.width > WIDTH_MAX || layout.precision.is_some_and(|precision| precision > WIDTH_MAX) {
            return None;
        }
        let letter = rest.find(|letter: char| !"hlLqjzt".contains(letter))?;
        let size = match &rest[..letter] {
            "hh" => 1,
            "h" => 2,
            "l" | "z" | "t" => self.long_bytes,
            "" => 4,
            _ => 8,
        };
        let mut letters = rest[letter..].chars();
        let conversion = letters.next()?;
        let rest = letters.as_str();
        match conversion {
            'd' | 'i' => {
                let value = self.integer(size, true)? as i64;
                layout.number(value < 0, &value.unsigned_abs().to_string(), "", text);
            }
            'u' => layout.number(false, &self.integer(size, false)?.to_string(), "", text),
            'x' => layout.number(false, &format!("{:x}", self.integer(size, false)?), "0x", text),
            'X' => layout.number(false, &format!("{:X}", self.integer(size, false)?), "0X", text),
            'o' => layout.number(false, &format!("{:o}", self.integer(size, false)?), "0", text),
            'c' => {
                let letter = char::from(self.integer(1, false)? as u8);
                layout.pad(letter.encode_utf8(&mut [0; 4]), text);
            }
            's' => {
                let word = self.text()?;
                let length = layout.precision.map_or(word.len(), |most| most.min(word.len()));
                layout.pad(&String::from_utf8_lossy(word.get(..length)?), text);
            }
            'p' => return self.pointer(layout, rest, text),
            _ => return None,
        }
        Some(rest)
    }

    /// `%p` and its kin: addresses that the kernel names later stand as they are, all others as text.
    fn pointer<'f>(&mut self, layout: PrintkSpec, rest: &'f str, text: &mut String) -> Option<&'f str> {
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (kind, rest) = rest.split_at(end);
        if kind.is_empty() || kind.starts_with(['S', 's', 'F', 'f', 'x', 'K', 'e', 'B']) {
            let address = self.integer(self.long_bytes, false)?;
            layout.pad(&format!("{address:#x}"), text);
        } else {
            layout.pad(&String::from_utf8_lossy(self.text()?), text);
        }
        Some(rest)
    }

    /// A number in the format, or `*` and an argument.
    fn number_or_argument<'f>(&mut self, rest: &'f str) -> Option<(Option<i32>, &'f str)> {
        if let Some(rest) = rest.strip_prefix('*') {
            return Some((Some(self.integer(4, true)? as i32), rest));
        }
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        Some((if digits.is_empty() { None } else { Some(digits.parse().ok()?) }, rest))
    }

    /// The next number of `size` bytes.
    fn integer(&mut self, size: usize, signed: bool) -> Option<u64> {
        self.at = self.at.next_multiple_of(size.clamp(1, 4));
        let value = super::value::read_integer(self.bytes, self.at, size as u8, signed, self.endian)?;
        self.at += size;
        Some(value)
    }

    /// The next text.
    fn text(&mut self) -> Option<&[u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = memchr::memchr(0, rest)?;
        self.at += length + 1;
        rest.get(..length)
    }
}

/// The flags that a directive begins with, and what follows them.
fn flags(directive: &str) -> (PrintkSpec, &str) {
    let mut layout = PrintkSpec::default();
    for (at, letter) in directive.char_indices() {
        match letter {
            '-' => layout.left = true,
            '+' => layout.plus = true,
            ' ' => layout.blank = true,
            '#' => layout.prefixed = true,
            '0' => layout.zeros = true,
            _ => return (layout, &directive[at..]),
        }
    }
    (layout, "")
}

impl PrintkSpec {
    /// Adds `word`, padded with blanks.
    fn pad(self, word: &str, text: &mut String) {
        let width = self.width;
        // A string takes everything.
        let _ = if self.left { write!(text, "{word:<width$}") } else { write!(text, "{word:>width$}") };
    }

    /// Adds a number without its sign, with everything that may stand before its digits.
    fn number(self, negative: bool, digits: &str, prefix: &str, text: &mut String) {
        let sign = if negative {
            "-"
        } else if self.plus {
            "+"
        } else if self.blank {
            " "
        } else {
            ""
        };
        let prefix = if self.prefixed { prefix } else { "" };
        let before = sign.len() + prefix.len();
        let least = match self.precision {
            Some(precision) => precision,
            None if self.zeros && !self.left => self.width.saturating_sub(before),
            None => 0,
        };
        let zeros = "0".repeat(least.saturating_sub(digits.len()));
        self.pad(&format!("{sign}{prefix}{zeros}{digits}"), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(format: &str, arguments: &[u8]) -> Option<String> {
        let mut text = String::from("left over");
        render(format, arguments, Endian::Little, 8, &mut text).map(|()| text)
    }

    #[test]
    fn tables_are_read_with_what_is_escaped_in_them() {
        let mut formats = PrintkFormats::default();
        formats.add("0xffffffff8281a97c : \"a \\\"b\\\"\\t\\\\ %d\\n\"\n0x10 : \"x : y\"\nnonsense\n0xz : \"\"\n0x1 : \"a\\\"");
        assert_eq!(formats.get(0xffff_ffff_8281_a97c), Some("a \"b\"\t\\ %d\n"));
        assert_eq!((formats.get(0x10), formats.get(1)), (Some("x : y"), None));
    }

    #[test]
    fn arguments_lie_where_the_kernel_packs_them() {
        // A char at 0, a short at 2, an int at 4, a text at 8, a long at 12 (not 16), a text that was a pointer, an int.
        let mut packed = vec![b'c', 0, 0xfe, 0xff];
        packed.extend((-7_i32).to_le_bytes());
        packed.extend(b"ab\0\0");
        packed.extend(0xffff_8bb3_1da3_5f00_u64.to_le_bytes());
        packed.extend(b"10-15\0\0\0");
        packed.extend(9_u32.to_le_bytes());
        assert_eq!(rendered("%c %hd %d %s %px cpus=%*pbl 100%% %u\n", &[]), None);
        assert_eq!(
            rendered("%c %hd %d %s %px cpus=%pbl 100%% %u\n", &packed).as_deref(),
            Some("c -2 -7 ab 0xffff8bb31da35f00 cpus=10-15 100% 9\n")
        );
        for cut in 0..packed.len() {
            assert_eq!(rendered("%c %hd %d %s %px cpus=%pbl 100%% %u\n", &packed[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn numbers_are_laid_out_as_printf_does() {
        let seven = 7_u32.to_le_bytes();
        for (format, expected) in [
            ("[%5d]", "[    7]"),
            ("[%-5d]", "[7    ]"),
            ("[%05d]", "[00007]"),
            ("[%+d]", "[+7]"),
            ("[% d]", "[ 7]"),
            ("[%#x]", "[0x7]"),
            ("[%#06x]", "[0x0007]"),
            ("[%.3u]", "[007]"),
            ("[%6.3o]", "[   007]"),
            ("[%*s", "x"),
        ] {
            let found = rendered(format, &seven);
            assert_eq!(found.as_deref().unwrap_or("x"), expected, "{format}");
        }
        let star = [5_u32.to_le_bytes(), 7_u32.to_le_bytes()].concat();
        assert_eq!(rendered("%*d|", &star).as_deref(), Some("    7|"));
        assert_eq!(rendered("%.2s|%5.1s|", b"abc\0xy\0").as_deref(), Some("ab|    x|"));
        assert_eq!(rendered("%lld", &(-1_i64).to_le_bytes()).as_deref(), Some("-1"));
    }

    #[test]
    fn garbage_is_no_text() {
        for format in ["%", "%5", "%l", "%k", "%99999d", "%.99999d", "%999999999999d"] {
            assert_eq!(rendered(format, &[1; 32]), None, "{format}");
        }
        assert_eq!(rendered("plain", &[]).as_deref(), Some("plain"));
    }
}
