//! The pages of one CPU, compressed piece by piece.
//!
//! Must not know: what is in the pages.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::compression::Codec;
use crate::Trouble;
use crate::endian::Endian;
use crate::ringbuffer::stream::{PageSource, PagesRead};
use crate::store::Store;

/// Pages in compressed pieces, each with its size before and after.
#[derive(Debug)]
pub(super) struct CompressedPages<'s> {
    store: &'s Store,
    endian: Endian,
    /// One for all CPUs: it takes more memory than a piece does.
    codec: Arc<Mutex<Codec>>,
    compressed: Vec<u8>,
    position: u64,
    next: u64,
    /// Where the file ends.
    end: u64,
    /// How many pieces there are yet; not known before the first.
    left: Option<u32>,
    /// The longest piece that is no garbage.
    most: usize,
}

/// A piece of the recorder has ten pages. Longer ones are garbage beyond so many pages, and so many bytes …
const PIECE_PAGES: usize = 10;
const PIECE_PAGES_MAX: usize = 64;
const PIECE_BYTES_MAX: usize = 4 << 20;
/// … and where that is more than ten, they may not take more than this for all CPUs together.
const PIECES_BYTES_MAX: usize = 1 << 30;
/// Bytes before each piece: its size, compressed and not.
const PIECE_HEAD: usize = 8;

impl<'s> CompressedPages<'s> {
    /// The pieces that `store` has at `start`, after their number; their pages are of `page` bytes. So many CPUs are
    /// read side by side.
    pub(super) fn new(
        store: &'s Store,
        endian: Endian,
        codec: Arc<Mutex<Codec>>,
        start: u64,
        page: usize,
        cpus: usize,
    ) -> CompressedPages<'s> {
        let share = PIECES_BYTES_MAX / cpus.max(1);
        let most = share
            .clamp(PIECE_PAGES * page, PIECE_PAGES_MAX * page)
            .min(PIECE_BYTES_MAX.max(PIECE_PAGES * page));
        CompressedPages {
            store,
            endian,
            codec,
            compressed: Vec::new(),
            position: start,
            next: start,
            end: store.length(),
            left: None,
            most,
        }
    }

    /// Fills `compressed` with the next `count` bytes; false at the file's end.
    fn take(&mut self, count: usize) -> io::Result<bool> {
        if count as u64 > self.end.saturating_sub(self.next) {
            return Ok(false);
        }
        self.compressed.resize(count, 0);
        let filled = self.store.read_at(&mut self.compressed, self.next)?;
        self.next += filled as u64;
        Ok(filled == count)
    }

    /// Gives up all pieces that are left.
    fn give_up(&mut self, trouble: Trouble) -> PagesRead {
        self.left = Some(0);
        PagesRead::Unreadable(trouble)
    }
}

impl PageSource for CompressedPages<'_> {
    fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<PagesRead> {
        self.position = self.next;
        let left = match self.left {
            Some(left) => left,
            None => {
                if !self.take(size_of::<u32>())? {
                    return Ok(self.give_up(Trouble::TruncatedFile));
                }
                self.endian.u32(&self.compressed, 0).unwrap_or(0)
            }
        };
        self.left = Some(left.saturating_sub(1));
        if left == 0 {
            return Ok(PagesRead::End);
        }
        if !self.take(PIECE_HEAD)? {
            return Ok(self.give_up(Trouble::TruncatedFile));
        }
        let size = |at| self.endian.u32(&self.compressed, at).unwrap_or(u32::MAX) as usize;
        let (compressed, size) = (size(0), size(4));
        if compressed as u64 > self.end.saturating_sub(self.next) {
            return Ok(self.give_up(Trouble::TruncatedFile));
        }
        if size > self.most || compressed > 2 * self.most {
            return Ok(self.give_up(Trouble::CorruptRecord));
        }
        if !self.take(compressed)? {
            return Ok(self.give_up(Trouble::TruncatedFile));
        }
        let whole = self.codec.lock().unwrap_or_else(PoisonError::into_inner).decompress(
            &self.compressed,
            size,
            buffer,
        );
        Ok(if whole { PagesRead::Pages } else { PagesRead::Unreadable(Trouble::CorruptRecord) })
    }

    fn position(&self) -> u64 {
        self.position
    }
}
