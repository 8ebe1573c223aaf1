//! Pages as the kernel gives them, in a stretch of a file.
//!
//! Must not know: what is in the pages.

use std::io;

use super::stream::{PageSource, PagesRead};
use crate::store::Store;

/// Pages as they are, read some at a time.
#[derive(Debug)]
pub(crate) struct StoredPages<'s> {
    store: &'s Store,
    /// Where what was read last begins, and what comes next.
    position: u64,
    next: u64,
    end: u64,
    /// How much is read at a time: a multiple of the page.
    piece: usize,
}

impl<'s> StoredPages<'s> {
    /// The pages of `page` bytes in `store` from `start` to `end`, in pieces of about `piece` bytes.
    pub(crate) fn new(store: &'s Store, start: u64, end: u64, page: usize, piece: usize) -> StoredPages<'s> {
        let piece = (piece / page.max(1)).max(1) * page;
        StoredPages { store, position: start, next: start, end: end.min(store.length()), piece }
    }
}

impl PageSource for StoredPages<'_> {
    fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<PagesRead> {
        let left = usize::try_from(self.end.saturating_sub(self.next)).unwrap_or(usize::MAX);
        let wanted = left.min(self.piece);
        buffer.resize(wanted, 0);
        let filled = self.store.read_at(buffer, self.next)?;
        buffer.truncate(filled);
        self.position = self.next;
        self.next += filled as u64;
        Ok(if filled > 0 { PagesRead::Pages } else { PagesRead::End })
    }

    fn position(&self) -> u64 {
        self.position
    }
}

/// Memory for the pages of all CPUs, shared by them …
const PIECES_BYTES: usize = 4 << 20;
/// … in pieces of no more than this.
const PIECE_MAX: usize = 1 << 18;

/// How much is read at a time when so many CPUs are read side by side.
pub(crate) fn piece_bytes(cpus: usize) -> usize {
    (PIECES_BYTES / cpus.max(1)).min(PIECE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_whole_and_the_last_one_as_it_is() {
        let store = Store::Memory((0..100).collect());
        let pieces = |start, end, page, piece| {
            let mut pages = StoredPages::new(&store, start, end, page, piece);
            let mut buffer = Vec::new();
            let mut pieces = Vec::new();
            while pages.read(&mut buffer).expect("memory") == PagesRead::Pages {
                assert_eq!(pages.position(), u64::from(buffer[0]));
                pieces.push(buffer.len());
            }
            pieces
        };
        assert_eq!(pieces(10, 40, 8, 20), [16, 14]);
        assert_eq!(pieces(10, 40, 8, 3), [8, 8, 8, 6]);
        assert_eq!(pieces(90, 1000, 8, 8), [8, 2]);
        assert!(pieces(200, 1000, 8, 8).is_empty());
        assert!(pieces(20, 10, 8, 8).is_empty());
        assert!(piece_bytes(1) == PIECE_MAX && piece_bytes(1024) == 4096);
    }
}
