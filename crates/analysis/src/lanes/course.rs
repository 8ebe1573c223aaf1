//! The course of a CPU, a task or a set of tasks in few entries.
//!
//! An entry covers the time up to the next one. Up to [`FINE`] slices have an entry each. After that, neighbouring entries
//! are merged, again and again, up to [`COARSE`] slices per entry. So a task with few slices is drawn exactly, and one with
//! many by sums.
//!
//! Must not know: whose course it is.

use fairlab_event::{Cpu, Ns};

use super::stretch::LaneOccupant;

/// How many entries there are before two become one.
const FINE: usize = 64;

/// At most so many slices are in an entry.
const COARSE: u32 = 64;

/// The sums of a few slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneSums {
    /// When the first begins: of a task, when it began to wait for it.
    pub from: Ns,
    /// How many slices.
    pub slices: u32,
    /// For how long tasks ran.
    pub ran: u64,
    /// For how long tasks waited: those of a CPU, or the task before it ran.
    pub waited: u64,
    /// What is neither: of a CPU, time that is unknown; of tasks, time in uninterruptible sleep before the first slice.
    pub other: u64,
    /// Of a CPU, what it did longest; of a task, on which CPU it ran last.
    pub top: u32,
    /// For how long that was.
    top_ran: u64,
    /// Of a CPU, the greatest depth of its runqueue; of tasks, the longest wait, ns.
    pub peak: u64,
}

impl LaneSums {
    fn join(&mut self, next: &LaneSums) {
        self.slices += next.slices;
        self.ran += next.ran;
        self.waited += next.waited;
        self.other += next.other;
        self.peak = self.peak.max(next.peak);
        if next.top_ran > self.top_ran {
            (self.top, self.top_ran) = (next.top, next.top_ran);
        }
    }
}

/// Entries one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneSeries {
    /// The earliest first.
    pub entries: Vec<LaneSums>,
    /// When the last one ends.
    pub to: Ns,
    /// At most so many slices are in an entry by now.
    width: u32,
    /// What ran in the last entry, and for how long.
    shares: Vec<(u32, u64)>,
}

impl LaneSeries {
    /// A CPU did `what`; meanwhile tasks waited there for `waited` in all, and its queue was `depth` deep.
    pub(super) fn slice(&mut self, from: Ns, to: Ns, what: LaneOccupant, waited: u64, depth: u64) {
        let time = to.since(from).0;
        let known = if what == LaneOccupant::UNKNOWN { 0 } else { time };
        let ran = if what.task().is_some() { time } else { 0 };
        let (other, top) = (time - known, what.0);
        self.add(LaneSums { from, slices: 1, ran, waited, other, top, top_ran: time, peak: depth }, to);
    }

    /// A task ran on `cpu` after it had waited; before that it had been blocked.
    pub(super) fn run(&mut self, (from, to): (Ns, Ns), cpu: Cpu, waited: Ns, blocked: Ns) {
        let begin = Ns(from.0.saturating_sub(waited.0));
        // Waits of several tasks in a set overlap.
        let begin = self.entries.last().map_or(begin, |last| begin.max(last.from));
        let ran = to.since(from).0;
        let (waited, other, top) = (waited.0, blocked.0, cpu.0);
        self.add(
            LaneSums { from: begin, slices: 1, ran, waited, other, top, top_ran: ran, peak: waited },
            to,
        );
    }

    fn add(&mut self, entry: LaneSums, to: Ns) {
        self.to = self.to.max(to);
        self.width = self.width.max(1);
        match self.entries.last_mut() {
            Some(last) if last.slices < self.width => {
                match self.shares.iter_mut().find(|(what, _)| *what == entry.top) {
                    Some((_, time)) => *time += entry.top_ran,
                    None => self.shares.push((entry.top, entry.top_ran)),
                }
                last.join(&entry);
                let longest = self.shares.iter().rev().max_by_key(|&&(_, time)| time);
                (last.top, last.top_ran) = longest.copied().unwrap_or_default();
            }
            _ => {
                self.shares.clear();
                self.shares.push((entry.top, entry.top_ran));
                self.entries.push(entry);
                self.narrow();
            }
        }
    }

    /// Two neighbours become one where there are many.
    fn narrow(&mut self) {
        if self.width >= COARSE || self.entries.len() <= FINE {
            return;
        }
        self.width *= 2;
        let pairs = self.entries.chunks(2).map(|pair| {
            let mut first = pair[0];
            if let Some(second) = pair.get(1) {
                first.join(second);
            }
            first
        });
        self.entries = pairs.collect();
        let last = self.entries.last().copied().unwrap_or_default();
        self.shares.clear();
        self.shares.push((last.top, last.top_ran));
    }

    pub(super) fn finished(mut self, end: Ns) -> LaneSeries {
        self.to = self.to.max(end);
        self.shares = Vec::new();
        self
    }
}
