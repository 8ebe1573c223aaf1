//! Numbers, texts and sized blocks, one after another.
//!
//! Must not know: what they mean.

use std::io;

use crate::endian::Endian;
use crate::store::Store;

/// Why something could not be read.
#[derive(Debug)]
pub(super) enum Fault {
    /// The operating system refused.
    Io(io::Error),
    /// The stretch ends before, or says something that cannot be, such as a block longer than itself.
    Cut,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Io(error)
    }
}

/// The bytes that are read: those of the file, or some that were decompressed.
#[derive(Debug)]
enum Source<'s> {
    File(&'s Store),
    Memory(Store),
}

/// A place in a stretch of bytes.
#[derive(Debug)]
pub(super) struct Cursor<'s> {
    source: Source<'s>,
    endian: Endian,
    position: u64,
    end: u64,
    /// What was read ahead; its end lies at `position + buffer.len() - start`.
    buffer: Vec<u8>,
    start: usize,
}

/// How much is read ahead.
const AHEAD_BYTES: usize = 1 << 14;
/// Texts of any length end in a NUL within this.
const TEXT_MAX: usize = 1 << 12;

impl<'s> Cursor<'s> {
    /// The bytes of `store` from `start` up to `end`.
    pub(super) fn new(store: &'s Store, endian: Endian, start: u64, end: u64) -> Cursor<'s> {
        let end = end.min(store.length());
        Cursor { source: Source::File(store), endian, position: start, end, buffer: Vec::new(), start: 0 }
    }

    /// These bytes.
    pub(super) fn of_bytes(bytes: Vec<u8>, endian: Endian) -> Cursor<'s> {
        let end = bytes.len() as u64;
        let source = Source::Memory(Store::Memory(bytes));
        Cursor { source, endian, position: 0, end, buffer: Vec::new(), start: 0 }
    }

    /// Numbers are read in this byte order from now on.
    pub(super) fn set_endian(&mut self, endian: Endian) {
        self.endian = endian;
    }

    /// The byte order in which numbers are read.
    pub(super) fn endian(&self) -> Endian {
        self.endian
    }

    /// Where the next byte lies.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// How many bytes there are yet.
    pub(super) fn left(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }

    /// The next `count` bytes, which must be a reasonable number: they are kept in memory.
    pub(super) fn take(&mut self, count: usize) -> Result<&[u8], Fault> {
        self.look(count)?;
        let start = self.start;
        self.start += count;
        self.position += count as u64;
        self.buffer.get(start..self.start).ok_or(Fault::Cut)
    }

    /// Goes on by `count` bytes.
    pub(super) fn skip(&mut self, count: u64) -> Result<(), Fault> {
        if count > self.left() {
            return Err(Fault::Cut);
        }
        let ahead = self.buffer.len() - self.start;
        if count <= ahead as u64 {
            self.start += count as usize;
        } else {
            self.buffer.clear();
            self.start = 0;
        }
        self.position += count;
        Ok(())
    }

    /// Passes exactly these bytes.
    pub(super) fn tag(&mut self, tag: &[u8]) -> Result<(), Fault> {
        if self.take(tag.len())? == tag { Ok(()) } else { Err(Fault::Cut) }
    }

    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        let endian = self.endian;
        endian.u16(self.take(size_of::<u16>())?, 0).ok_or(Fault::Cut)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        let endian = self.endian;
        endian.u32(self.take(size_of::<u32>())?, 0).ok_or(Fault::Cut)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        let endian = self.endian;
        endian.u64(self.take(size_of::<u64>())?, 0).ok_or(Fault::Cut)
    }

    /// A text, without the NUL behind it.
    pub(super) fn text(&mut self) -> Result<String, Fault> {
        let most = usize::try_from(self.left()).unwrap_or(usize::MAX).min(TEXT_MAX);
        let ahead = self.look(most)?;
        let length = memchr::memchr(0, ahead).ok_or(Fault::Cut)?;
        let text = String::from_utf8_lossy(ahead.get(..length).ok_or(Fault::Cut)?).into_owned();
        self.take(length + 1)?;
        Ok(text)
    }

    /// The block of `size` bytes that comes next, if it is no longer than `max`.
    pub(super) fn block(&mut self, size: u64, max: usize) -> Result<Vec<u8>, Fault> {
        let count = usize::try_from(size).ok().filter(|&count| count <= max).ok_or(Fault::Cut)?;
        Ok(self.take(count)?.to_vec())
    }

    /// Brings the next `count` bytes into memory.
    fn look(&mut self, count: usize) -> Result<&[u8], Fault> {
        if count as u64 > self.left() {
            return Err(Fault::Cut);
        }
        if self.buffer.len() - self.start < count {
            self.buffer.drain(..self.start);
            self.start = 0;
            let there = self.buffer.len();
            let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
            self.buffer.resize(count.max(AHEAD_BYTES).min(left), 0);
            let store = match &self.source {
                Source::File(store) => store,
                Source::Memory(store) => store,
            };
            let filled = store.read_at(&mut self.buffer[there..], self.position + there as u64)?;
            self.buffer.truncate(there + filled);
        }
        self.buffer.get(self.start..self.start + count).ok_or(Fault::Cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_read_in_turn_across_what_was_read_ahead() {
        let mut bytes = b"tag\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0ename\0".to_vec();
        bytes.extend([7; 3 * AHEAD_BYTES]);
        bytes.extend(b"end");
        let store = Store::Memory(bytes);
        let mut cursor = Cursor::new(&store, Endian::Little, 0, u64::MAX);
        cursor.tag(b"tag").expect("a tag");
        assert_eq!(cursor.u16().expect("two bytes"), 0x0201);
        cursor.set_endian(Endian::Big);
        assert_eq!(cursor.u32().expect("four bytes"), 0x0304_0506);
        assert_eq!(cursor.u64().expect("eight bytes"), 0x0708_090a_0b0c_0d0e);
        assert_eq!((cursor.text().expect("a text").as_str(), cursor.position()), ("name", 22));
        assert_eq!(cursor.block(5, 5).expect("a block"), [7; 5]);
        cursor.skip(AHEAD_BYTES as u64 + 9).expect("bytes");
        assert_eq!(cursor.take(AHEAD_BYTES + 1).expect("bytes"), [7; AHEAD_BYTES + 1]);
        cursor.skip(AHEAD_BYTES as u64 - 15).expect("bytes");
        assert_eq!((cursor.left(), cursor.take(3).expect("bytes")), (3, &b"end"[..]));
        assert!(matches!(cursor.take(1), Err(Fault::Cut)));
        assert_eq!(cursor.take(0).expect("nothing"), b"");
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        let cursor = || Cursor::of_bytes(b"ab\x01".to_vec(), Endian::Little);
        assert!(matches!(cursor().tag(b"ax"), Err(Fault::Cut)));
        assert!(matches!(cursor().u32(), Err(Fault::Cut)));
        assert!(matches!(cursor().text(), Err(Fault::Cut)));
        assert!(matches!(cursor().skip(4), Err(Fault::Cut)));
        assert!(matches!(cursor().block(u64::MAX, usize::MAX), Err(Fault::Cut)));
        assert!(matches!(cursor().block(3, 2), Err(Fault::Cut)));
        let store = Store::Memory(vec![0; 9]);
        assert_eq!(Cursor::new(&store, Endian::Little, 20, 30).left(), 0);
        assert!(matches!(Cursor::new(&store, Endian::Little, 20, 30).take(1), Err(Fault::Cut)));
        assert_eq!(Cursor::new(&store, Endian::Little, 4, 6).left(), 2);
    }
}
