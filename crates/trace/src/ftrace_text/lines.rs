//! Cuts a byte stream into lines without copying them, whatever the stream holds.
//!
//! Must not know: what a line says.

use std::io::{self, BufRead};
use std::ops::ControlFlow;

use memchr::memchr;

/// No line of a trace is longer; what is longer is passed over in constant memory.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;

/// One line, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextLine<'l> {
    /// A line that a line feed ended; a carriage return before it is cut off.
    Whole(&'l [u8]),
    /// The last bytes of a stream that does not end with a line feed.
    Unended(&'l [u8]),
    /// The first bytes of a line longer than [`LINE_BYTES_MAX`].
    TooLong(&'l [u8]),
}

/// Hands every line of `source` to `take`, until it breaks.
///
/// # Errors
/// Those of `source`.
pub(super) fn each_line(
    mut source: impl BufRead,
    mut take: impl FnMut(TextLine<'_>) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut begun = PartialLine::default();
    loop {
        let buffer = match source.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            break;
        }
        let length = buffer.len();
        if split(buffer, &mut begun, &mut take).is_break() {
            return Ok(());
        }
        source.consume(length);
    }
    if !begun.bytes.is_empty() {
        let _ = take(TextLine::Unended(&begun.bytes));
    }
    Ok(())
}

/// A line whose end is not in the buffer yet.
#[derive(Default)]
struct PartialLine {
    bytes: Vec<u8>,
    /// Its first bytes were handed out as too long; the rest is passed over.
    handed_out: bool,
}

#[inline]
fn split(
    mut buffer: &[u8],
    begun: &mut PartialLine,
    take: &mut impl FnMut(TextLine<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if begun.handed_out || !begun.bytes.is_empty() {
        let end = memchr(b'\n', buffer);
        begun.grow(&buffer[..end.unwrap_or(buffer.len())], take)?;
        let Some(end) = end else { return ControlFlow::Continue(()) };
        begun.end(take)?;
        buffer = &buffer[end + 1..];
    }
    while let Some(end) = memchr(b'\n', buffer) {
        take(whole(&buffer[..end]))?;
        buffer = &buffer[end + 1..];
    }
    begun.grow(buffer, take)
}

#[inline]
fn whole(line: &[u8]) -> TextLine<'_> {
    if line.len() > LINE_BYTES_MAX {
        return TextLine::TooLong(&line[..LINE_BYTES_MAX]);
    }
    TextLine::Whole(line.strip_suffix(b"\r").unwrap_or(line))
}

impl PartialLine {
    fn grow(
        &mut self,
        more: &[u8],
        take: &mut impl FnMut(TextLine<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.handed_out {
            return ControlFlow::Continue(());
        }
        self.bytes.extend_from_slice(&more[..more.len().min(LINE_BYTES_MAX + 1 - self.bytes.len())]);
        if self.bytes.len() <= LINE_BYTES_MAX {
            return ControlFlow::Continue(());
        }
        self.handed_out = true;
        let flow = take(TextLine::TooLong(&self.bytes[..LINE_BYTES_MAX]));
        self.bytes.clear();
        flow
    }

    fn end(&mut self, take: &mut impl FnMut(TextLine<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let flow = if self.handed_out { ControlFlow::Continue(()) } else { take(whole(&self.bytes)) };
        self.handed_out = false;
        self.bytes.clear();
        flow
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn lines(source: impl BufRead) -> Vec<String> {
        let mut seen = Vec::new();
        each_line(source, |line| {
            seen.push(match line {
                TextLine::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                TextLine::Unended(bytes) => format!("{}$", String::from_utf8_lossy(bytes)),
                TextLine::TooLong(bytes) => format!("{} bytes of {:?}", bytes.len(), bytes[0] as char),
            });
            ControlFlow::Continue(())
        })
        .expect("memory can be read");
        seen
    }

    #[test]
    fn lines_are_the_same_whatever_the_buffer_holds() {
        let text = b"one\r\n\ntwo \r three\n\r\nend";
        for capacity in 1..30 {
            let source = BufReader::with_capacity(capacity, &text[..]);
            assert_eq!(lines(source), ["one", "", "two \r three", "", "end$"], "capacity {capacity}");
        }
        assert_eq!(lines(&b""[..]), [""; 0]);
        assert_eq!(lines(&b"\n"[..]), [""]);
    }

    #[test]
    fn an_endless_line_costs_no_more_than_its_limit() {
        let mut text = vec![b'a'; LINE_BYTES_MAX];
        text.push(b'\n');
        text.extend(vec![b'b'; 3 * LINE_BYTES_MAX]);
        text.extend_from_slice(b"\nafter\n");
        text.extend(vec![b'c'; 2 * LINE_BYTES_MAX]);
        let limit = format!("{LINE_BYTES_MAX} bytes of");
        for capacity in [4096, 1 << 18, 1 << 23] {
            let seen = lines(BufReader::with_capacity(capacity, &text[..]));
            assert_eq!(seen.len(), 4, "capacity {capacity}");
            assert_eq!(seen[0].len(), LINE_BYTES_MAX);
            assert_eq!(seen[1..], [format!("{limit} 'b'"), "after".to_string(), format!("{limit} 'c'")]);
        }
    }

    #[test]
    fn a_break_ends_the_reading() {
        let mut count = 0;
        each_line(&b"1\n2\n3\n"[..], |_| {
            count += 1;
            if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .expect("memory can be read");
        assert_eq!(count, 2);
    }
}
