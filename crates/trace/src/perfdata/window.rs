//! Records one after another, out of a stretch of the file, through a buffer.
//!
//! Must not know: what records mean, nor their order in time.

use std::io;

use crate::endian::Endian;
use crate::store::Store;

/// Bytes of a record's header: type (u32), misc (u16), size of the whole record (u16).
pub(super) const RECORD_HEADER: usize = 8;

/// Memory for windows that are read side by side, shared by all of them …
pub(super) const BUFFERS_BYTES: usize = 4 << 20;
/// … in pieces of no less and no more than this.
const CHUNK_MIN: usize = 1 << 12;
const CHUNK_MAX: usize = 1 << 16;

/// How much each of `windows` windows reads at a time.
pub(super) fn chunk(windows: usize) -> usize {
    (BUFFERS_BYTES / windows.max(1)).clamp(CHUNK_MIN, CHUNK_MAX)
}

/// Memory of windows that are gone, for later ones; as much as windows that are read may have.
#[derive(Debug, Default)]
pub(super) struct BufferPool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl BufferPool {
    pub(super) fn take(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    pub(super) fn give(&mut self, buffer: Vec<u8>) {
        if self.bytes + buffer.capacity() <= BUFFERS_BYTES {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

/// A stretch of the file, and the part of it that is in memory.
#[derive(Debug)]
pub(super) struct FileWindow {
    buffer: Vec<u8>,
    /// The unread part of `buffer`.
    start: usize,
    filled: usize,
    /// The place of `start` in the file.
    position: u64,
    end: u64,
    /// How much is read at a time.
    chunk: usize,
}

/// What stands at a window's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextRecord {
    /// A whole record of that many bytes, now in memory.
    Record(usize),
    /// No record: a size or type that cannot be.
    Garbage,
    /// The beginning of a record that runs over the end of the stretch.
    Torn,
    /// Nothing more.
    End,
}

impl FileWindow {
    /// The bytes of the file from `start` to `end`, read `chunk` at a time.
    pub(super) fn new(start: u64, end: u64, chunk: usize) -> FileWindow {
        FileWindow { buffer: Vec::new(), start: 0, filled: 0, position: start, end, chunk }
    }

    /// The same, reading into `buffer`, whose content does not matter.
    pub(super) fn with_buffer(self, buffer: Vec<u8>) -> FileWindow {
        FileWindow { buffer, ..self }
    }

    /// Its memory.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Where in the file the next record begins.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Reads `chunk` bytes at a time from now on.
    pub(super) fn set_chunk(&mut self, chunk: usize) {
        self.chunk = chunk;
    }

    /// Looks at what comes next, and brings it into memory.
    #[inline]
    pub(super) fn look(&mut self, store: &Store, endian: Endian) -> io::Result<NextRecord> {
        if !self.has(RECORD_HEADER) && !self.fill(store, RECORD_HEADER)? {
            return Ok(if self.position < self.end { NextRecord::Torn } else { NextRecord::End });
        }
        let header = &self.buffer[self.start..self.filled];
        let (Some(kind), Some(size)) = (endian.u32(header, 0), endian.u16(header, 6)) else {
            return Ok(NextRecord::End);
        };
        let size = usize::from(size);
        if size < RECORD_HEADER || kind == 0 || kind > KIND_MAX {
            return Ok(NextRecord::Garbage);
        }
        if !self.has(size) && !self.fill(store, size)? {
            return Ok(NextRecord::Torn);
        }
        Ok(NextRecord::Record(size))
    }

    /// The next `size` bytes, whatever they are; `None` when the stretch ends before.
    pub(super) fn peek(&mut self, store: &Store, size: usize) -> io::Result<Option<&[u8]>> {
        Ok(if self.has(size) || self.fill(store, size)? { Some(self.bytes(size)) } else { None })
    }

    /// The next `size` bytes, which must be in memory.
    #[inline]
    pub(super) fn bytes(&self, size: usize) -> &[u8] {
        &self.buffer[self.start..self.start + size]
    }

    /// Goes on by `size` bytes, which need not be in memory.
    #[inline]
    pub(super) fn advance(&mut self, size: u64) {
        let unread = (self.filled - self.start) as u64;
        self.start = if size <= unread { self.start + size as usize } else { self.filled };
        self.position = self.position.saturating_add(size);
    }

    #[inline]
    fn has(&self, wanted: usize) -> bool {
        self.filled - self.start >= wanted
    }

    /// Reads on until `wanted` bytes are in memory; false when the stretch ends before.
    #[cold]
    fn fill(&mut self, store: &Store, wanted: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        let left = self.end.saturating_sub(self.position.saturating_add(self.filled as u64));
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(self.chunk.max(wanted) - self.filled);
        if self.buffer.len() < self.filled + room {
            self.buffer.resize(self.filled + room, 0);
        }
        let from = self.position.saturating_add(self.filled as u64);
        self.filled += store.read_at(&mut self.buffer[self.filled..self.filled + room], from)?;
        Ok(self.has(wanted))
    }
}

/// Kernel records count from 1, perf's own from 64; both have room left below this.
const KIND_MAX: u32 = 127;

/// Whether a record might begin here: used to find the next one behind garbage, hence stricter than `look`.
pub(super) fn might_be_record(header: &[u8], endian: Endian) -> bool {
    let (Some(kind), Some(size)) = (endian.u32(header, 0), endian.u16(header, 6)) else { return false };
    matches!(kind, 1..=22 | 64..=84) && usize::from(size) >= RECORD_HEADER && size % 8 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, size: u16) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(size.to_le_bytes());
        bytes.resize(usize::from(size).max(8), 0xab);
        bytes
    }

    fn walk(content: Vec<u8>, chunk: usize) -> Vec<NextRecord> {
        let mut window = FileWindow::new(0, content.len() as u64, chunk);
        let store = Store::Memory(content);
        let mut found = Vec::new();
        loop {
            let next = window.look(&store, Endian::Little).expect("memory");
            found.push(next);
            let NextRecord::Record(size) = next else { return found };
            assert_eq!(window.bytes(size).len(), size);
            window.advance(size as u64);
        }
    }

    #[test]
    fn records_are_found_whatever_the_buffer() {
        let content = [record(9, 40), record(68, 8), record(9, 65_528), record(3, 16)].concat();
        let expected = [
            NextRecord::Record(40),
            NextRecord::Record(8),
            NextRecord::Record(65_528),
            NextRecord::Record(16),
            NextRecord::End,
        ];
        for chunk in [8, 9, 64, 4096, 1 << 20] {
            assert_eq!(walk(content.clone(), chunk), expected, "chunk {chunk}");
        }
    }

    #[test]
    fn torn_and_impossible_records_are_told() {
        assert_eq!(walk(record(9, 40)[..39].to_vec(), 16), [NextRecord::Torn]);
        assert_eq!(walk(record(9, 40)[..5].to_vec(), 16), [NextRecord::Torn]);
        for (kind, size) in [(9, 0), (9, 7), (0, 16), (128, 16), (u32::MAX, 16)] {
            assert_eq!(walk(record(kind, size), 64), [NextRecord::Garbage], "type {kind} size {size}");
            assert!(!might_be_record(&record(kind, size), Endian::Little));
        }
        assert!(!might_be_record(&record(9, 41), Endian::Little));
        assert!(might_be_record(&record(9, 48), Endian::Little));
    }

    #[test]
    fn skipping_may_leave_the_buffer() {
        let content = [record(9, 40), record(68, 8), record(9, 16)].concat();
        let mut window = FileWindow::new(0, content.len() as u64, 16);
        let store = Store::Memory(content);
        assert_eq!(window.look(&store, Endian::Little).expect("memory"), NextRecord::Record(40));
        window.advance(48);
        assert_eq!(window.position(), 48);
        assert_eq!(window.look(&store, Endian::Little).expect("memory"), NextRecord::Record(16));
        window.advance(u64::MAX);
        assert_eq!(window.look(&store, Endian::Little).expect("memory"), NextRecord::End);
    }
}
