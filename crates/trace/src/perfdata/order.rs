//! Records in the order of time.
//!
//! Each CPU has a buffer of its own, which perf writes out whole, one after another, round after round: the file is a
//! sequence of *runs*, each in order of time within itself. Only the place of each run is kept; a merge reads the
//! runs again, side by side. So memory grows with the number of runs that overlap in time, not with the trace, nor
//! with the size of a round.
//!
//! A run can be merged only when no earlier record can follow. `FINISHED_ROUND` says when: a round takes from each
//! buffer all that is there, hence what the *next* round takes is later than all that *this* round ended with, in
//! the same buffer, and at the end of a round everything up to the latest record of the round before is complete.
//! A file without rounds is one run a buffer dump until its end.
//!
//! Must not know: what records mean.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::window::{Found, Window};
use crate::endian::Endian;
use crate::store::Store;

/// So many runs are taken for the end of a round, lest a file without rounds, or made of disorder, fill memory.
const RUNS_MAX: usize = 1 << 14;
/// Memory for reading runs side by side, shared by all of them …
const BUFFERS_BYTES: usize = 4 << 20;
/// … in pieces of no less and no more than this.
const CHUNK_MIN: usize = 1 << 12;
const CHUNK_MAX: usize = 1 << 18;

/// Takes the records in order.
pub(super) trait Receiver {
    /// The time by which `record` is to be put in order; `None` when it is of a kind that is not ordered.
    fn order_time(&self, record: &[u8]) -> Option<u64>;

    /// Takes a record that was found at `position` of the file.
    fn ordered(&mut self, record: &[u8], time: u64, position: u64);
}

/// A stretch of the file whose records are in order of time.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    first_time: u64,
    last_time: u64,
}

/// Puts runs in order.
#[derive(Debug)]
pub(super) struct Order {
    endian: Endian,
    /// The run that is being found.
    current: Option<Run>,
    /// Where reading of each run in wait has come to; free places are `None`.
    windows: Vec<Option<Window>>,
    free: Vec<usize>,
    /// Memory of windows that are gone.
    buffers: Vec<Vec<u8>>,
    /// Runs in wait by the time of their next record, then by their place in the file.
    heap: BinaryHeap<Reverse<Waiting>>,
    /// Runs since the last end of a round.
    runs_in_round: usize,
    /// The latest time found.
    latest: u64,
    /// Everything up to here was complete when the last round ended.
    complete: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    next_time: u64,
    start: u64,
    slot: usize,
}

impl Order {
    pub(super) fn new(endian: Endian) -> Order {
        Order {
            endian,
            current: None,
            windows: Vec::new(),
            free: Vec::new(),
            buffers: Vec::new(),
            heap: BinaryHeap::new(),
            runs_in_round: 0,
            latest: 0,
            complete: None,
        }
    }

    /// A record of `time` stands at `position` and ends at `end`.
    #[inline]
    pub(super) fn found(&mut self, time: u64, position: u64, end: u64) {
        match &mut self.current {
            Some(run) if run.last_time <= time => {
                run.last_time = time;
                run.end = end;
            }
            _ => {
                self.close_run();
                self.current = Some(Run { start: position, end, first_time: time, last_time: time });
            }
        }
    }

    /// What follows cannot be read together with what was before.
    pub(super) fn close_run(&mut self) {
        let Some(run) = self.current.take() else { return };
        self.latest = self.latest.max(run.last_time);
        let buffer = self.buffers.pop().unwrap_or_default();
        let window = Some(Window::new(run.start, run.end, 0).with_buffer(buffer));
        let slot = match self.free.pop() {
            Some(slot) => {
                self.windows[slot] = window;
                slot
            }
            None => {
                self.windows.push(window);
                self.windows.len() - 1
            }
        };
        self.heap.push(Reverse(Waiting { next_time: run.first_time, start: run.start, slot }));
        self.runs_in_round += 1;
    }

    /// Whether a round has to be ended though the file does not say so.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.runs_in_round >= RUNS_MAX
    }

    /// Ends a round: passes on all that is complete.
    pub(super) fn end_round(&mut self, store: &Store, receiver: &mut impl Receiver) -> io::Result<()> {
        self.close_run();
        if let Some(limit) = self.complete {
            self.merge(limit, store, receiver)?;
        }
        self.complete = Some(self.latest);
        self.runs_in_round = 0;
        Ok(())
    }

    /// Passes on all that is left.
    pub(super) fn end(&mut self, store: &Store, receiver: &mut impl Receiver) -> io::Result<()> {
        self.close_run();
        self.merge(u64::MAX, store, receiver)
    }

    /// Passes on every record up to time `limit`.
    fn merge(&mut self, limit: u64, store: &Store, receiver: &mut impl Receiver) -> io::Result<()> {
        let chunk = (BUFFERS_BYTES / self.heap.len().max(1)).clamp(CHUNK_MIN, CHUNK_MAX);
        while let Some(&Reverse(waiting)) = self.heap.peek() {
            if waiting.next_time > limit {
                break;
            }
            // The root stays in the heap until it is known where it goes: the next one is one of its children.
            let children = self.heap.as_slice().get(1..).unwrap_or_default().iter().take(2);
            let rival = children.map(|Reverse(rival)| (rival.next_time, rival.start)).min();
            let Some(window) = self.windows.get_mut(waiting.slot).and_then(Option::as_mut) else {
                self.heap.pop();
                continue;
            };
            window.set_chunk(chunk);
            let goes_on =
                |time: u64| time <= limit && rival.is_none_or(|rival| (time, waiting.start) < rival);
            let next_time = pass_on(window, goes_on, store, self.endian, receiver)?;
            if let (Some(next_time), Some(mut root)) = (next_time, self.heap.peek_mut()) {
                root.0.next_time = next_time;
                continue;
            }
            self.heap.pop();
            if let Some(window) = self.windows[waiting.slot].take() {
                keep_buffer(&mut self.buffers, window.into_buffer());
            }
            self.free.push(waiting.slot);
        }
        Ok(())
    }
}

/// Keeps memory for later windows, as much as windows that are read may have.
fn keep_buffer(buffers: &mut Vec<Vec<u8>>, buffer: Vec<u8>) {
    const KEPT_MAX: usize = 64;
    let kept: usize = buffers.iter().map(Vec::capacity).sum();
    if buffers.len() < KEPT_MAX && kept + buffer.capacity() <= BUFFERS_BYTES {
        buffers.push(buffer);
    }
}

/// Passes on a run's records while their time `goes_on`, at least one; returns the time of the first that stays.
fn pass_on(
    window: &mut Window,
    goes_on: impl Fn(u64) -> bool,
    store: &Store,
    endian: Endian,
    receiver: &mut impl Receiver,
) -> io::Result<Option<u64>> {
    let mut first = true;
    while let Found::Record(size) = window.look(store, endian)? {
        let record = window.bytes(size);
        if let Some(time) = receiver.order_time(record) {
            if !first && !goes_on(time) {
                return Ok(Some(time));
            }
            first = false;
            receiver.ordered(record, time, window.position());
        }
        window.advance(size as u64);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of 16 bytes that hold nothing but a time; time 0 is not ordered.
    #[derive(Default)]
    struct Times {
        taken: Vec<(u64, u64)>,
    }

    impl Receiver for Times {
        fn order_time(&self, record: &[u8]) -> Option<u64> {
            Endian::Little.u64(record, 8).filter(|&time| time != 0)
        }

        fn ordered(&mut self, _: &[u8], time: u64, position: u64) {
            self.taken.push((time, position / 16));
        }
    }

    const ROUND: u64 = u64::MAX;

    /// Orders records of these times; `ROUND` ends a round. Returns (time, index).
    fn order(times: &[u64]) -> Vec<(u64, u64)> {
        let record = |&time: &u64| [&[9, 0, 0, 0, 0, 0, 16, 0], &time.to_le_bytes()[..]].concat();
        let store = Store::Memory(times.iter().flat_map(record).collect());
        let mut order = Order::new(Endian::Little);
        let mut receiver = Times::default();
        for (index, &time) in times.iter().enumerate() {
            let at = index as u64 * 16;
            match time {
                0 => {}
                ROUND => order.end_round(&store, &mut receiver).expect("memory"),
                time => order.found(time, at, at + 16),
            }
            if order.is_full() {
                order.end_round(&store, &mut receiver).expect("memory");
            }
        }
        order.end(&store, &mut receiver).expect("memory");
        assert!(order.heap.is_empty() && order.windows.iter().all(Option::is_none));
        receiver.taken
    }

    fn sorted(times: &[u64]) -> Vec<(u64, u64)> {
        let mut all: Vec<_> =
            times.iter().copied().zip(0..).filter(|&(time, _)| time != 0 && time != ROUND).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn buffers_are_merged_and_equal_times_keep_the_order_of_the_file() {
        for times in [
            &[1, 3, 5, 2, 4, 6][..],
            &[5, 5, 5, 5, 4, 5, 5],
            &[10, 20, 15, 0, 25, 5, 0, 0, 30],
            &[9, 8, 7, 6, 5, 4, 3, 2, 1],
            &[],
        ] {
            assert_eq!(order(times), sorted(times), "{times:?}");
        }
    }

    #[test]
    fn what_the_next_round_may_still_precede_waits() {
        // Two CPUs, three rounds: the second CPU's records of a round come after the first's of the round before.
        let times = [10, 20, 5, 15, ROUND, 30, 40, 16, 39, ROUND, 50, 41, 60, ROUND, 55, ROUND];
        assert_eq!(order(&times), sorted(&times));
    }

    #[test]
    fn a_record_later_than_the_rounds_allow_comes_late_and_is_not_lost() {
        let times = [10, 20, ROUND, 30, ROUND, 7, 40, ROUND];
        let taken: Vec<u64> = order(&times).into_iter().map(|(time, _)| time).collect();
        assert_eq!(taken, [10, 20, 7, 30, 40]);
    }

    #[test]
    fn many_runs_without_rounds_are_ordered_as_far_as_memory_goes() {
        let interleaved: Vec<u64> = (0..100_000).map(|index| 1 + index / 2 + (index % 2) * 1000).collect();
        assert!(order(&interleaved) == sorted(&interleaved));
        let backwards: Vec<u64> = (1..=3 * RUNS_MAX as u64).rev().collect();
        assert_eq!(order(&backwards).len(), backwards.len());
    }
}
