//! What can happen next, and the queue that orders it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::TaskId;

/// Everything that the loop can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occurrence {
    /// A CPU's phase ends, unless it was replaced since (`serial` is old) or extended.
    PhaseEnds { cpu: Cpu, serial: u32 },
    /// A CPU's periodic tick.
    Tick { cpu: Cpu },
    /// An interrupt reaches a CPU.
    Interrupt { cpu: Cpu, interrupt: Interrupt },
}

/// An interrupt other than the tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// Reschedule.
    Resched,
    /// A wakeup left to this CPU (`ttwu_queue_wakelist()`).
    WakeList { task: TaskId, migrated: bool },
    /// A thread's sleep timer expires here.
    Timer { thread: usize },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    time: Ns,
    sequence: u64,
    occurrence: Occurrence,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Earliest first; of several at one time the one that was put in first.
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        (other.time, other.sequence).cmp(&(self.time, self.sequence))
    }
}

/// Occurrences by time, and by insertion where times are equal.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Entry>,
    inserted: u64,
}

impl Queue {
    pub fn push(&mut self, time: Ns, occurrence: Occurrence) {
        self.inserted += 1;
        self.heap.push(Entry { time, sequence: self.inserted, occurrence });
    }

    /// The next occurrence, if it is not after `end`.
    pub fn pop_until(&mut self, end: Ns) -> Option<(Ns, Occurrence)> {
        if self.heap.peek()?.time > end {
            return None;
        }
        self.heap.pop().map(|entry| (entry.time, entry.occurrence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_by_insertion() {
        let mut queue = Queue::default();
        for (time, cpu) in [(5, 0), (3, 1), (5, 2), (3, 3), (4, 4)] {
            queue.push(Ns(time), Occurrence::Tick { cpu: Cpu(cpu) });
        }
        let mut order = Vec::new();
        while let Some((time, Occurrence::Tick { cpu })) = queue.pop_until(Ns(4)) {
            order.push((time.0, cpu.0));
        }
        assert_eq!(order, [(3, 1), (3, 3), (4, 4)]);
        assert_eq!(queue.pop_until(Ns(5)), Some((Ns(5), Occurrence::Tick { cpu: Cpu(0) })));
    }
}
