//! Numbers, texts and sized blocks, one after another.
//!
//! Must not know: what they mean.

use std::io;

use crate::endian::Endian;
use crate::store::Store;

/// Why something could not be read.
#[derive(Debug)]
pub(super) enum ReadFault {
    /// The operating system refused.
    Io(io::Error),
    /// The stretch ends before, or says something that cannot be, such as a block longer than itself.
    Cut,
}

impl From<io::Error> for ReadFault {
    fn from(error: io::Error) -> ReadFault {
        ReadFault::Io(error)
    }
}

/// The bytes that are read: those of the file, or some that were decompressed.
#[derive(Debug)]
enum ByteSource<'s> {
    File(&'s Store),
    Memory(Store),
}

/// A place in a stretch of bytes.
#[derive(Debug)]
pub(super) struct ByteCursor<'s> {
    source: ByteSource<'s>,
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

impl<'s> ByteCursor<'s> {
    /// The bytes of `store` from `start` up to `end`.
    pub(super) fn new(store: &'s Store, endian: Endian, start: u64, end: u64) -> ByteCursor<'s> {
        let end = end.min(store.length());
        ByteCursor {
            source: ByteSource::File(store),
            endian,
            position: start,
            end,
            buffer: Vec::new(),
            start: 0,
        }
    }

    /// These bytes.
    pub(super) fn of_bytes(bytes: Vec<u8>, endian: Endian) -> ByteCursor<'s> {
        let end = bytes.len() as u64;
        let source = ByteSource::Memory(Store::Memory(bytes));
        ByteCursor { source, endian, position: 0, end, buffer: Vec::new(), start: 0 }
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
    pub(super) fn take(&mut self, count: usize) -> Result<&[u8], ReadFault> {
        self.look(count)?;
        let start = self.start;
        self.start += count;
        self.position += count as u64;
        self.buffer.get(start..self.start).ok_or(ReadFault::Cut)
    }

    /// Goes on by `count` bytes.
    pub(super) fn skip(&mut self, count: u64) -> Result<(), ReadFault> {
        if count > self.left() {
            return Err(ReadFault::Cut);
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
    pub(super) fn tag(&mut self, tag: &[u8]) -> Result<(), ReadFault> {
        if self.take(tag.len())? == tag { Ok(()) } else { Err(ReadFault::Cut) }
    }

    pub(super) fn u16(&mut self) -> Result<u16, ReadFault> {
        let endian = self.endian;
        endian.u16(self.take(size_of::<u16>())?, 0).ok_or(ReadFault::Cut)
    }

    pub(super) fn u32(&mut self) -> Result<u32, ReadFault> {
        let endian = self.endian;
        endian.u32(self.take(size_of::<u32>())?, 0).ok_or(ReadFault::Cut)
    }

    pub(super) fn u64(&mut self) -> Result<u64, ReadFault> {
        let endian = self.endian;
        endian.u64(self.take(size_of::<u64>())?, 0).ok_or(ReadFault::Cut)
    }

    /// A text, without the NUL behind it.
    pub(super) fn text(&mut self) -> Result<String, ReadFault> {
        let most = usize::try_from(self.left()).unwrap_or(usize::MAX).min(TEXT_MAX);
        let ahead = self.look(most)?;
        let length = memchr::memchr(0, ahead).ok_or(ReadFault::Cut)?;
        let text = String::from_utf8_lossy(ahead.get(..length).ok_or(ReadFault::Cut)?).into_owned();
        self.take(length + 1)?;
        Ok(text)
    }

    /// The block of `size` bytes that comes next, if it is no longer than `max`.
    pub(super) fn block(&mut self, size: u64, max: usize) -> Result<Vec<u8>, ReadFault> {
        let count = usize::try_from(size).ok().filter(|&count| count <= max).ok_or(ReadFault::Cut)?;
        Ok(self.take(count)?.to_vec())
    }

    /// Brings the next `count` bytes into memory.
    fn look(&mut self, count: usize) -> Result<&[u8], ReadFault> {
        if count as u64 > self.left() {
            return Err(ReadFault::Cut);
        }
        if self.buffer.len() - self.start < count {
            self.buffer.drain(..self.start);
            self.start = 0;
            let there = self.buffer.len();
            let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
            self.buffer.resize(count.max(AHEAD_BYTES).min(left), 0);
            let store = match &self.source {
                ByteSource::File(store) => store,
                ByteSource::Memory(store) => store,
            };
            let filled = store.read_at(&mut self.buffer[there..], self.position + there as u64)?;
            self.buffer.truncate(there + filled);
        }
        self.buffer.get(self.start..self.start + count).ok_or(ReadFault::Cut)
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
        let mut cursor = ByteCursor::new(&store, Endian::Little, 0, u64::MAX);
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
        assert!(matches!(cursor.take(1), Err(ReadFault::Cut)));
        assert_eq!(cursor.take(0).expect("nothing"), b"");
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        let cursor = || ByteCursor::of_bytes(b"ab\x01".to_vec(), Endian::Little);
        assert!(matches!(cursor().tag(b"ax"), Err(ReadFault::Cut)));
        assert!(matches!(cursor().u32(), Err(ReadFault::Cut)));
        assert!(matches!(cursor().text(), Err(ReadFault::Cut)));
        assert!(matches!(cursor().skip(4), Err(ReadFault::Cut)));
        assert!(matches!(cursor().block(u64::MAX, usize::MAX), Err(ReadFault::Cut)));
        assert!(matches!(cursor().block(3, 2), Err(ReadFault::Cut)));
        let store = Store::Memory(vec![0; 9]);
        assert_eq!(ByteCursor::new(&store, Endian::Little, 20, 30).left(), 0);
        assert!(matches!(ByteCursor::new(&store, Endian::Little, 20, 30).take(1), Err(ReadFault::Cut)));
        assert_eq!(ByteCursor::new(&store, Endian::Little, 4, 6).left(), 2);
    }
}
