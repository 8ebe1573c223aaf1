//! Records from the thread that finds them to the one that makes events of them.
//!
//! Finding means reading, unpacking and putting in order; it takes about as long as decoding and analysing do. Both go
//! on at once where there is more than one core. Records are copied into batches, and what is taken, in which order, is
//! the same with one core: the order of what was sent.
//!
//! Must not know: what records are.

use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

/// Bytes of records in a batch: few enough that a batch is still in a cache when the other thread takes it.
const BATCH_BYTES: usize = 1 << 17;
/// Batches on their way.
const BATCHES: usize = 3;

/// Records, each with what is known of it.
#[derive(Debug)]
struct RecordBatchOf<T> {
    bytes: Vec<u8>,
    /// With where each record ends.
    heads: Vec<(T, usize)>,
}

impl<T> Default for RecordBatchOf<T> {
    fn default() -> RecordBatchOf<T> {
        RecordBatchOf { bytes: Vec::new(), heads: Vec::new() }
    }
}

impl<T> RecordBatchOf<T> {
    /// Takes everything out. Heads are taken where they stand: some are large.
    fn take_each(&mut self, take: &mut impl FnMut(&mut T, &[u8])) {
        let mut start = 0;
        for (head, end) in &mut self.heads {
            take(head, self.bytes.get(start..*end).unwrap_or_default());
            start = *end;
        }
        self.heads.clear();
        self.bytes.clear();
    }
}

/// Where records are sent.
pub(crate) struct RecordOutlet<'a, T> {
    batch: RecordBatchOf<T>,
    /// Takes a full batch and gives an empty one.
    exchange: Box<dyn FnMut(RecordBatchOf<T>) -> RecordBatchOf<T> + 'a>,
}

impl<T> RecordOutlet<'_, T> {
    /// Sends a record and what is known of it.
    #[inline]
    pub(crate) fn send(&mut self, head: T, record: &[u8]) {
        self.batch.bytes.extend_from_slice(record);
        self.batch.heads.push((head, self.batch.bytes.len()));
        // What has no bytes fills a batch too.
        if self.batch.bytes.len() + self.batch.heads.len() * size_of::<T>() >= BATCH_BYTES {
            self.flush();
        }
    }

    #[cold]
    fn flush(&mut self) {
        let full = std::mem::take(&mut self.batch);
        self.batch = (self.exchange)(full);
    }
}

/// Has `take` take what `find` sends, in that order; at the same time if there are two cores.
///
/// # Errors
/// Those of `find`, when all that it sent before was taken.
pub(crate) fn relay<T: Send>(
    find: impl FnOnce(&mut RecordOutlet<'_, T>) -> io::Result<()> + Send,
    take: impl FnMut(&mut T, &[u8]),
) -> io::Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if cores > 1 { relay_between_threads(find, take) } else { relay_in_turns(find, take) }
}

fn relay_in_turns<T>(
    find: impl FnOnce(&mut RecordOutlet<'_, T>) -> io::Result<()>,
    mut take: impl FnMut(&mut T, &[u8]),
) -> io::Result<()> {
    let exchange = Box::new(move |mut batch: RecordBatchOf<T>| {
        batch.take_each(&mut take);
        batch
    });
    let mut outlet = RecordOutlet { batch: RecordBatchOf::default(), exchange };
    let found = find(&mut outlet);
    outlet.flush();
    found
}

fn relay_between_threads<T: Send>(
    find: impl FnOnce(&mut RecordOutlet<'_, T>) -> io::Result<()> + Send,
    mut take: impl FnMut(&mut T, &[u8]),
) -> io::Result<()> {
    thread::scope(|scope| {
        let (full, filled) = sync_channel(BATCHES);
        let (empty, emptied) = channel();
        let finder = scope.spawn(move || {
            let exchange = Box::new(move |batch| exchange(batch, &full, &emptied));
            let mut outlet = RecordOutlet { batch: RecordBatchOf::default(), exchange };
            let found = find(&mut outlet);
            outlet.flush();
            found
        });
        for mut batch in filled {
            batch.take_each(&mut take);
            // The finder may have ended.
            let _ = empty.send(batch);
        }
        finder.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn exchange<T>(
    full: RecordBatchOf<T>,
    filled: &SyncSender<RecordBatchOf<T>>,
    emptied: &Receiver<RecordBatchOf<T>>,
) -> RecordBatchOf<T> {
    // A taker that panicked takes no more.
    let _ = filled.send(full);
    emptied.try_recv().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(outlet: &mut RecordOutlet<'_, u32>) -> io::Result<()> {
        for number in 0..20_000 {
            let length = number as usize % 300;
            outlet.send(number, &[length as u8; 300][..length]);
        }
        Err(io::Error::other("the end"))
    }

    #[test]
    fn everything_is_taken_in_order_and_the_finders_error_comes_last() {
        for threads in [false, true] {
            let mut taken = 0;
            let take = |number: &mut u32, record: &[u8]| {
                let number = *number;
                let length = number as usize % 300;
                assert!(
                    number == taken && record == &[length as u8; 300][..length],
                    "{number} after {taken}"
                );
                taken += 1;
            };
            let end = if threads { relay_between_threads(find, take) } else { relay_in_turns(find, take) };
            assert_eq!((taken, end.expect_err("the finder's").to_string().as_str()), (20_000, "the end"));
        }
    }

    #[test]
    fn a_panic_on_either_side_ends_both() {
        let taker = std::panic::catch_unwind(|| relay_between_threads(find, |_, _| panic!("taker")));
        assert!(taker.is_err());
        let finder = |_: &mut RecordOutlet<'_, u32>| -> io::Result<()> { panic!("finder") };
        assert!(std::panic::catch_unwind(|| relay_between_threads(finder, |_, _| {})).is_err());
    }
}
