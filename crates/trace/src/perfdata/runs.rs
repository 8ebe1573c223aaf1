//! The records of runs, read where they stand when their turn has come.
//!
//! Must not know: how it was found whose turn it is, nor what records mean.

use std::io;

use super::order::MergeStep;
use super::window::{BufferPool, FileWindow, NextRecord, chunk};
use crate::endian::Endian;
use crate::store::Store;

/// Runs that are being read.
#[derive(Debug)]
pub(super) struct RunReader<'s> {
    store: &'s Store,
    endian: Endian,
    /// Where reading has come to, by slot.
    windows: Vec<Option<FileWindow>>,
    open: usize,
    /// How much each of them reads at a time.
    chunk: usize,
    buffers: BufferPool,
    error: Option<io::Error>,
}

impl<'s> RunReader<'s> {
    pub(super) fn new(store: &'s Store, endian: Endian) -> RunReader<'s> {
        RunReader {
            store,
            endian,
            windows: Vec::new(),
            open: 0,
            chunk: 0,
            buffers: BufferPool::default(),
            error: None,
        }
    }

    /// Takes a step. `take` is given each record with its place, and says whether it is one of those that are counted.
    #[inline]
    pub(super) fn step(&mut self, step: MergeStep, take: impl FnMut(&[u8], u64) -> bool) {
        match step {
            MergeStep::Read { slot, count } if self.error.is_none() => {
                self.error = self.read(slot, count, take).err();
            }
            MergeStep::Read { .. } => {}
            MergeStep::Open { slot, start, end } => {
                if self.windows.len() <= slot {
                    self.windows.resize_with(slot + 1, || None);
                }
                self.windows[slot] = Some(FileWindow::new(start, end, 0).with_buffer(self.buffers.take()));
                self.open += 1;
                self.chunk = chunk(self.open);
            }
            MergeStep::Close { slot } => {
                if let Some(window) = self.windows.get_mut(slot).and_then(Option::take) {
                    self.open -= 1;
                    self.chunk = chunk(self.open);
                    self.buffers.give(window.into_buffer());
                }
            }
        }
    }

    #[inline]
    fn read(&mut self, slot: usize, count: u64, mut take: impl FnMut(&[u8], u64) -> bool) -> io::Result<()> {
        let Some(window) = self.windows.get_mut(slot).and_then(Option::as_mut) else { return Ok(()) };
        window.set_chunk(self.chunk);
        let mut left = count;
        while left > 0
            && let NextRecord::Record(size) = window.look(self.store, self.endian)?
        {
            left -= u64::from(take(window.bytes(size), window.position()));
            window.advance(size as u64);
        }
        Ok(())
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// The first one.
    pub(super) fn finish(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }
}
