//! Records in the order of time.
//!
//! Each CPU has a buffer, which perf writes out whole, one after another, round after round. So the file is a sequence of
//! *runs*, each in order of time. A merge of the runs says from which of them how many records come next; the reader then
//! takes the records from their places. The times of waiting records are kept, up to a limit. Of further runs only the place
//! is kept, and the merge reads their times again. So memory grows with the number of runs that overlap in time, not with the
//! trace or the size of a round.
//!
//! A run can be merged only when no earlier record can follow. `FINISHED_ROUND` says when: a round takes everything from each
//! buffer. So, in a buffer, the *next* round is later than the end of *this* round. At the end of a round everything up to
//! the latest record of the round before is complete. A file without rounds has one run per buffer dump until its end.
//!
//! Must not know: what records mean.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::window::{BufferPool, FileWindow, NextRecord, chunk};
use crate::endian::Endian;
use crate::store::Store;

/// So many runs are taken for the end of a round, lest a file without rounds, or made of disorder, fill memory.
const RUNS_MAX: usize = 1 << 14;
/// The times of so many records are kept: 8 MiB.
const TIMES_MAX: usize = 1 << 20;

/// What is to be read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeStep {
    /// A run from a place of the file to another is read from now on; `slot` is what it is called.
    Open { slot: usize, start: u64, end: u64 },
    /// The next records of a run that are in order of time; those that are not stand between them.
    Read { slot: usize, count: u64 },
    /// The run has no more.
    Close { slot: usize },
}

/// Takes the steps in order.
pub(super) trait StepReceiver {
    /// The time by which `record` is to be put in order; `None` when it is of a kind that is not ordered.
    fn order_time(&self, record: &[u8]) -> Option<u64>;

    /// Takes a step.
    fn step(&mut self, step: MergeStep);
}

/// A stretch of the file whose records are in order of time.
#[derive(Debug)]
struct OrderedRun {
    start: u64,
    end: u64,
    last_time: u64,
    times: RunTimes,
    /// Whether the receiver has heard of it.
    opened: bool,
}

/// The times of a run's records that wait.
#[derive(Debug)]
enum RunTimes {
    /// Those from `next` on.
    Kept { times: Vec<u64>, next: usize },
    /// The first; the others are read again.
    First(u64),
    /// They are being read; this is the next.
    Reading(Box<FileWindow>),
}

/// Puts runs in order.
#[derive(Debug)]
pub(super) struct RunMerger {
    endian: Endian,
    /// The run that is being found.
    current: Option<OrderedRun>,
    /// Runs in wait; free places are `None`.
    runs: Vec<Option<OrderedRun>>,
    free: Vec<usize>,
    /// Runs in wait by the time of their next record, then by their place in the file.
    heap: BinaryHeap<Reverse<WaitingRun>>,
    /// How many times are kept, and no more than how many.
    kept: usize,
    kept_max: usize,
    /// Memory of lists that are gone.
    lists: Vec<Vec<u64>>,
    buffers: BufferPool,
    /// Runs whose times are read again.
    reading: usize,
    /// Runs since the last end of a round.
    runs_in_round: usize,
    /// The latest time found.
    latest: u64,
    /// Everything up to here was complete when the last round ended.
    complete: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WaitingRun {
    next_time: u64,
    start: u64,
    slot: usize,
}

impl RunMerger {
    pub(super) fn new(endian: Endian) -> RunMerger {
        RunMerger {
            endian,
            current: None,
            runs: Vec::new(),
            free: Vec::new(),
            heap: BinaryHeap::new(),
            kept: 0,
            kept_max: TIMES_MAX,
            lists: Vec::new(),
            buffers: BufferPool::default(),
            reading: 0,
            runs_in_round: 0,
            latest: 0,
            complete: None,
        }
    }

    /// A record of `time` stands at `position` and ends at `end`.
    #[inline]
    pub(super) fn found(&mut self, time: u64, position: u64, end: u64) {
        if let Some(run) = &mut self.current
            && run.last_time <= time
        {
            run.last_time = time;
            run.end = end;
            if let RunTimes::Kept { times, .. } = &mut run.times {
                times.push(time);
                self.kept += 1;
                if self.kept >= self.kept_max {
                    self.forget_times();
                }
            }
            return;
        }
        self.close_run();
        let times = if self.kept < self.kept_max {
            let mut times = self.lists.pop().unwrap_or_default();
            times.push(time);
            self.kept += 1;
            RunTimes::Kept { times, next: 0 }
        } else {
            RunTimes::First(time)
        };
        self.current = Some(OrderedRun { start: position, end, last_time: time, times, opened: false });
    }

    /// There is no room for the times of the run that is being found.
    #[cold]
    fn forget_times(&mut self) {
        let Some(run) = &mut self.current else { return };
        if let RunTimes::Kept { times, .. } = &mut run.times {
            self.kept -= times.len();
            run.times = RunTimes::First(times[0]);
        }
    }

    /// What follows cannot be read together with what was before.
    pub(super) fn close_run(&mut self) {
        let Some(run) = self.current.take() else { return };
        self.latest = self.latest.max(run.last_time);
        let first_time = match &run.times {
            RunTimes::Kept { times, .. } => times[0],
            RunTimes::First(time) => *time,
            RunTimes::Reading(_) => return,
        };
        let start = run.start;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.runs[slot] = Some(run);
                slot
            }
            None => {
                self.runs.push(Some(run));
                self.runs.len() - 1
            }
        };
        self.heap.push(Reverse(WaitingRun { next_time: first_time, start, slot }));
        self.runs_in_round += 1;
    }

    /// Whether a round has to be ended though the file does not say so.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.runs_in_round >= RUNS_MAX
    }

    /// Ends a round: passes on all that is complete.
    pub(super) fn end_round(&mut self, store: &Store, receiver: &mut impl StepReceiver) -> io::Result<()> {
        self.close_run();
        if let Some(limit) = self.complete {
            self.merge(limit, store, receiver)?;
        }
        self.complete = Some(self.latest);
        self.runs_in_round = 0;
        Ok(())
    }

    /// Passes on all that is left.
    pub(super) fn end(&mut self, store: &Store, receiver: &mut impl StepReceiver) -> io::Result<()> {
        self.close_run();
        self.merge(u64::MAX, store, receiver)
    }

    /// Passes on every record up to time `limit`.
    fn merge(&mut self, limit: u64, store: &Store, receiver: &mut impl StepReceiver) -> io::Result<()> {
        while let Some(&Reverse(waiting)) = self.heap.peek() {
            let WaitingRun { next_time, start, slot } = waiting;
            if next_time > limit {
                break;
            }
            // The root stays in the heap until it is known where it goes: the next one is one of its children.
            let children = self.heap.as_slice().get(1..).unwrap_or_default().iter().take(2);
            let rival = children.map(|Reverse(rival)| (rival.next_time, rival.start)).min();
            let goes_on = |time: u64| time <= limit && rival.is_none_or(|rival| (time, start) < rival);
            let Some(run) = self.runs.get_mut(slot).and_then(Option::as_mut) else {
                self.heap.pop();
                continue;
            };
            if !run.opened {
                run.opened = true;
                receiver.step(MergeStep::Open { slot, start: run.start, end: run.end });
                if let RunTimes::First(_) = run.times {
                    let window = FileWindow::new(run.start, run.end, 0).with_buffer(self.buffers.take());
                    run.times = RunTimes::Reading(Box::new(window));
                    self.reading += 1;
                }
            }
            let (count, next_time) = match &mut run.times {
                RunTimes::Kept { times, next } => {
                    let more = times[*next + 1..].iter().take_while(|&&time| goes_on(time)).count();
                    *next += 1 + more;
                    (1 + more as u64, times.get(*next).copied())
                }
                RunTimes::Reading(window) => {
                    window.set_chunk(chunk(self.reading));
                    read_times(window, goes_on, store, self.endian, receiver)?
                }
                RunTimes::First(_) => (0, None),
            };
            receiver.step(MergeStep::Read { slot, count });
            if let (Some(next_time), Some(mut root)) = (next_time, self.heap.peek_mut()) {
                root.0.next_time = next_time;
                continue;
            }
            self.heap.pop();
            self.close(slot, receiver);
        }
        Ok(())
    }

    /// All of a run was passed on.
    fn close(&mut self, slot: usize, receiver: &mut impl StepReceiver) {
        /// Lists for later runs: as many as there are CPUs in most machines.
        const LISTS_MAX: usize = 64;
        receiver.step(MergeStep::Close { slot });
        self.free.push(slot);
        match self.runs[slot].take().map(|run| run.times) {
            Some(RunTimes::Kept { mut times, .. }) => {
                self.kept -= times.len();
                times.clear();
                // Long ones are rare, and would stay.
                if self.lists.len() < LISTS_MAX && times.capacity() <= TIMES_MAX / LISTS_MAX {
                    self.lists.push(times);
                }
            }
            Some(RunTimes::Reading(window)) => {
                self.reading -= 1;
                self.buffers.give(window.into_buffer());
            }
            _ => {}
        }
    }
}

/// Passes over a run's records while their time `goes_on`, at least one; returns how many, and the time of the next.
fn read_times(
    window: &mut FileWindow,
    goes_on: impl Fn(u64) -> bool,
    store: &Store,
    endian: Endian,
    receiver: &impl StepReceiver,
) -> io::Result<(u64, Option<u64>)> {
    let mut count = 0;
    while let NextRecord::Record(size) = window.look(store, endian)? {
        if let Some(time) = receiver.order_time(window.bytes(size)) {
            if count > 0 && !goes_on(time) {
                return Ok((count, Some(time)));
            }
            count += 1;
        }
        window.advance(size as u64);
    }
    Ok((count, None))
}

#[cfg(test)]
mod tests {
    use super::super::runs::RunReader;
    use super::*;

    /// Records of 16 bytes that hold nothing but a time; time 0 is not ordered.
    struct Taken<'s> {
        runs: RunReader<'s>,
        taken: Vec<(u64, u64)>,
    }

    impl StepReceiver for Taken<'_> {
        fn order_time(&self, record: &[u8]) -> Option<u64> {
            time(record)
        }

        fn step(&mut self, step: MergeStep) {
            let Taken { runs, taken } = self;
            runs.step(step, |record, position| {
                let time = time(record);
                taken.extend(time.map(|time| (time, position / 16)));
                time.is_some()
            });
        }
    }

    fn time(record: &[u8]) -> Option<u64> {
        Endian::Little.u64(record, 8).filter(|&time| time != 0)
    }

    const ROUND: u64 = u64::MAX;

    /// Orders records of these times; `ROUND` ends a round. Returns (time, index). It is the same however many times are
    /// kept.
    fn order(times: &[u64]) -> Vec<(u64, u64)> {
        let taken = order_keeping(times, TIMES_MAX);
        for kept_max in [0, 1, 2, 3, 7] {
            assert!(order_keeping(times, kept_max) == taken, "{kept_max} times kept");
        }
        taken
    }

    fn order_keeping(times: &[u64], kept_max: usize) -> Vec<(u64, u64)> {
        let record = |&time: &u64| [&[9, 0, 0, 0, 0, 0, 16, 0], &time.to_le_bytes()[..]].concat();
        let store = Store::Memory(times.iter().flat_map(record).collect());
        let mut order = RunMerger { kept_max, ..RunMerger::new(Endian::Little) };
        let mut receiver = Taken { runs: RunReader::new(&store, Endian::Little), taken: Vec::new() };
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
        assert!(order.heap.is_empty() && order.runs.iter().all(Option::is_none));
        assert_eq!((order.kept, order.reading), (0, 0));
        receiver.runs.finish().expect("memory");
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
