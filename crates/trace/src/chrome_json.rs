//! The kernel's trace in a trace of Chrome: a string of text within JSON.
//!
//! `chrome://tracing` and systrace keep what they recorded of the kernel as one string, `systemTraceEvents`,
//! beside their own events. It is handed out as the text that it was.
//!
//! Facts: catapult's docs "Trace Event Format". Must not know: what the text says.

use std::io::{self, BufRead, Read};

/// The string's name, as it stands in the file: within a string its quotes would have backslashes before them.
const NAME: &[u8] = b"\"systemTraceEvents\"";
/// The name of what any trace of Chrome has.
const EVENTS: &[u8] = b"\"traceEvents\"";

/// Whether `start` is the beginning of a trace of Chrome that is an object, which may hold the kernel's trace.
pub(crate) fn is_it(start: &[u8]) -> bool {
    let is_object = start.trim_ascii_start().starts_with(b"{");
    is_object && [NAME, EVENTS].iter().any(|name| memchr::memmem::find(start, name).is_some())
}

/// The text of the kernel's trace in `source`; `None` if it has none.
pub(crate) fn kernel_text<R: BufRead>(mut source: R) -> io::Result<Option<KernelText<R>>> {
    while find_name(&mut source)? {
        if next_but_blanks(&mut source)? == Some(b':') && next_but_blanks(&mut source)? == Some(b'"') {
            return Ok(Some(KernelText::new(source)));
        }
    }
    Ok(None)
}

/// Passes over everything up to and with the name; whether there is one.
fn find_name(source: &mut impl BufRead) -> io::Result<bool> {
    let (mut matched, mut before) = (0, 0);
    loop {
        let bytes = source.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let (mut passed, mut is_found) = (0, false);
        for &byte in bytes {
            passed += 1;
            // A quote begins the name wherever it stands, and ends it.
            matched = match byte {
                _ if matched > 0 && byte == NAME[matched] => matched + 1,
                b'"' if before != b'\\' => 1,
                _ => 0,
            };
            before = byte;
            if matched == NAME.len() {
                is_found = true;
                break;
            }
        }
        source.consume(passed);
        if is_found {
            return Ok(true);
        }
    }
}

fn next_byte(source: &mut impl BufRead) -> io::Result<Option<u8>> {
    let byte = source.fill_buf()?.first().copied();
    if byte.is_some() {
        source.consume(1);
    }
    Ok(byte)
}

fn next_but_blanks(source: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        match next_byte(source)? {
            Some(b' ' | b'\t' | b'\n' | b'\r') => {}
            byte => return Ok(byte),
        }
    }
}

/// What a string of JSON holds.
#[derive(Debug)]
pub(crate) struct KernelText<R> {
    source: R,
    /// What is at hand, and how much of it has been consumed.
    text: Vec<u8>,
    at: usize,
    /// What stood before it.
    before: u8,
    /// The first half of a character that takes two escapes.
    high: Option<u32>,
    ended: bool,
}

/// So much is had at hand, about.
const PIECE_BYTES: usize = 1 << 16;

impl<R: BufRead> Read for KernelText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let there = self.fill_buf()?;
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for KernelText<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.text.len() {
            self.before = self.text.last().copied().unwrap_or(self.before);
            self.text.clear();
            self.at = 0;
            while self.text.len() < PIECE_BYTES && !self.ended {
                if self.is_at_mark()? {
                    self.mark()?;
                }
            }
        }
        Ok(self.text.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

impl<R: BufRead> KernelText<R> {
    fn new(source: R) -> KernelText<R> {
        KernelText { source, text: Vec::new(), at: 0, before: b'\n', high: None, ended: false }
    }

    /// Takes of what is buffered what stands for itself; whether there is a mark, or nothing, behind it.
    fn is_at_mark(&mut self) -> io::Result<bool> {
        let bytes = self.source.fill_buf()?;
        let bytes = &bytes[..bytes.len().min(PIECE_BYTES)];
        let mark = memchr::memchr2(b'"', b'\\', bytes);
        let plain = mark.unwrap_or(bytes.len());
        self.text.extend_from_slice(&bytes[..plain]);
        self.source.consume(plain);
        Ok(mark.is_some() || plain == 0)
    }

    /// Takes the end of the string, or an escape.
    fn mark(&mut self) -> io::Result<()> {
        let byte = match next_byte(&mut self.source)? {
            Some(b'\\') => next_byte(&mut self.source)?,
            Some(_) => {
                // The string is whole: so is its last line.
                if self.text.last().copied().unwrap_or(self.before) != b'\n' {
                    self.text.push(b'\n');
                }
                None
            }
            None => None,
        };
        match byte {
            Some(b'n') => self.text.push(b'\n'),
            Some(b't') => self.text.push(b'\t'),
            Some(b'r') => self.text.push(b'\r'),
            Some(b'b') => self.text.push(8),
            Some(b'f') => self.text.push(12),
            Some(b'u') => self.character()?,
            Some(byte) => self.text.push(byte),
            None => self.ended = true,
        }
        Ok(())
    }

    /// Takes the four digits of a character, or of half of one.
    fn character(&mut self) -> io::Result<()> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = next_byte(&mut self.source)?.and_then(|byte| char::from(byte).to_digit(16));
            code = code << 4 | digit.unwrap_or(0);
        }
        let whole = match self.high.take() {
            Some(high) if (0xdc00..0xe000).contains(&code) => {
                0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00)
            }
            _ => code,
        };
        if (0xd800..0xdc00).contains(&whole) {
            self.high = Some(whole);
            return Ok(());
        }
        let character = char::from_u32(whole).unwrap_or(char::REPLACEMENT_CHARACTER);
        self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn text(json: &str, buffered: usize) -> Option<String> {
        let source = BufReader::with_capacity(buffered, json.as_bytes());
        let mut found = kernel_text(source).expect("memory")?;
        let mut text = String::new();
        found.read_to_string(&mut text).expect("memory");
        Some(text)
    }

    #[test]
    fn the_string_is_handed_out_as_the_text_that_it_was() {
        let json = r#"{"traceEvents":[{"args":{"x":"\"systemTraceEvents\":\"no\""}},{"name":"systemTraceEvents"}],
            "systemTraceEvents" : "a\tb\nA\u00e9\ud83d\ude00\\\"c\/","more":"x"}"#;
        for buffered in [1, 2, 7, 4096] {
            assert_eq!(text(json, buffered).as_deref(), Some("a\tb\nAé😀\\\"c/\n"), "{buffered}");
        }
        assert_eq!(text(r#"{"systemTraceEvents":"ended\n"}"#, 3).as_deref(), Some("ended\n"));
        assert_eq!(text(r#"{"systemTraceEvents":"cut"#, 3).as_deref(), Some("cut"));
        assert_eq!(text(r#"{"traceEvents":[],"systemTraceEvents":{"x":"y"}}"#, 3), None);
        assert_eq!(text(r#"{"traceEvents":[]}"#, 3), None);
    }

    #[test]
    fn other_json_is_none_of_chrome() {
        assert!(is_it(br#" {"traceEvents":["#) && is_it(br#"{"systemTraceEvents":"x""#));
        assert!(!is_it(br#"{"log":"x"}"#) && !is_it(br#"[{"traceEvents":1"#));
    }
}
