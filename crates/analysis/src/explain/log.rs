//! What happened on each CPU lately: as much as the waits that go on now may need for their stories.
//!
//! Must not know: which tasks wait, how stories are told.

use std::collections::VecDeque;

use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, TaskState};

use super::story::NamedPid;
use crate::tracker::{Departure, MoveCause, Resched, StayOnCpu};

/// Something that happened on a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) enum CpuLogEntry {
    /// A stay on the CPU came to its end.
    Ran(RanEntry),
    /// The idle task's stay came to its end; it had begun, or was first seen, at `from`.
    Idled { from: Ns, to: Ns },
    /// A group's queue was throttled there and is back.
    Throttled { group: u32, from: Ns, to: Ns },
    /// The tick went by.
    Tick(TickEntry),
    /// A task was moved from here to another CPU while it did not run.
    Moved(MovedEntry),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RanEntry {
    pub(super) task: u32,
    pub(super) stay: StayOnCpu,
    pub(super) how: Departure,
    pub(super) resched: Option<Resched>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TickEntry {
    pub(super) time: Ns,
    pub(super) task: u32,
    /// CPU time since the accounting before.
    pub(super) runtime: Ns,
    pub(super) vruntime: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MovedEntry {
    pub(super) time: Ns,
    pub(super) task: u32,
    pub(super) to: Cpu,
    pub(super) cause: MoveCause,
    pub(super) by: NamedPid,
}

impl CpuLogEntry {
    pub(super) const fn time(&self) -> Ns {
        match self {
            CpuLogEntry::Ran(ran) => ran.stay.to,
            CpuLogEntry::Idled { to, .. } | CpuLogEntry::Throttled { to, .. } => *to,
            CpuLogEntry::Tick(tick) => tick.time,
            CpuLogEntry::Moved(moved) => moved.time,
        }
    }
}

/// One CPU's recent past, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuLog {
    entries: VecDeque<CpuLogEntry>,
    /// How many entries there were before those.
    dropped: u64,
    /// What ended before is forgotten though somebody may need it.
    forgotten: Option<Ns>,
    /// An accounting in interrupt context, which is a tick unless a wakeup turns out to be behind it.
    accounting: Option<TickEntry>,
    ticked: Option<Ns>,
}

/// How much of each CPU a story may be made of.
const ENTRIES_MAX: usize = 4096;

/// How much more is kept, for stories that are not told at once.
const ENTRIES_MORE: usize = ENTRIES_MAX / 2;

/// Ticks come no more often than every millisecond (HZ 1000); other timers account too.
const TICK_MIN: Ns = Ns(500_000);

impl CpuLog {
    /// Adds what happened, and drops what ended before `horizon`.
    pub(super) fn push(&mut self, entry: CpuLogEntry, horizon: Ns) {
        while self.entries.front().is_some_and(|oldest| oldest.time() < horizon) {
            self.entries.pop_front();
            self.dropped += 1;
        }
        if let Some(place) = self.entries.len().checked_sub(ENTRIES_MAX) {
            self.forgotten = self.entries.get(place).map(CpuLogEntry::time);
        }
        self.entries.push_back(entry);
    }

    /// Whether there is no room for more than a story may be made of.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= ENTRIES_MAX + ENTRIES_MORE
    }

    /// Drops what no story may be made of that is yet to be told.
    pub(super) fn drop_forgotten(&mut self) {
        let surplus = self.entries.len().saturating_sub(ENTRIES_MAX);
        self.entries.drain(..surplus);
        self.dropped += surplus as u64;
    }

    /// How many entries there have been.
    pub(super) fn count(&self) -> u64 {
        self.dropped + self.entries.len() as u64
    }

    /// The latest stay of a task ended with a sleep, other than it seemed.
    pub(super) fn blocked_after_all(&mut self, task: u32) {
        let latest = self.entries.iter_mut().rev().find_map(|entry| match entry {
            CpuLogEntry::Ran(ran) if ran.task == task => Some(ran),
            _ => None,
        });
        if let Some(ran) = latest {
            ran.how = Departure::Slept(TaskState::RUNNABLE);
        }
    }

    /// What ended at `from` or later, the oldest first.
    pub(super) fn since(&self, from: Ns) -> impl Iterator<Item = &CpuLogEntry> {
        self.between(from, self.count())
    }

    /// The same when there had been `count` entries.
    pub(super) fn between(&self, from: Ns, count: u64) -> impl Iterator<Item = &CpuLogEntry> {
        let end = (count.saturating_sub(self.dropped) as usize).min(self.entries.len());
        let first = end.saturating_sub(ENTRIES_MAX);
        let start = self.entries.partition_point(|entry| entry.time() < from);
        self.entries.range(start.clamp(first, end)..end)
    }

    /// Whether something that ended at `from` or later is forgotten.
    pub(super) fn has_gap_since(&self, from: Ns) -> bool {
        self.forgotten.is_some_and(|forgotten| forgotten >= from)
    }

    /// Forgets everything: events were lost.
    pub(super) fn clear(&mut self) {
        *self = CpuLog::default();
    }

    /// Takes an event of the CPU, on which `running` runs; `is_waking`: between a sched_waking and its sched_wakeup.
    /// Returns a tick when it is certain that there was one.
    pub(super) fn hear(
        &mut self,
        event: &Event<'_>,
        running: Option<(u32, Pid)>,
        is_waking: bool,
    ) -> Option<TickEntry> {
        let confirmed = self.accounting.take().filter(|_| !queues_a_task(&event.kind));
        if let EventKind::SchedStatRuntime { pid, runtime, vruntime, .. } = event.kind
            && event.context.flags.in_hardirq()
            && !is_waking
            && let Some((task, _)) = running.filter(|&(_, running)| running == pid)
        {
            self.accounting = Some(TickEntry { time: event.time, task, runtime, vruntime });
        }
        let tick =
            confirmed.filter(|tick| self.ticked.is_none_or(|last| tick.time.since(last) >= TICK_MIN))?;
        self.ticked = Some(tick.time);
        Some(tick)
    }
}

/// Whether an event that follows an accounting in interrupt context says that a task was being queued: then the
/// accounting was made for that. Only fair tasks are queued with an accounting of the fair task that runs.
fn queues_a_task(kind: &EventKind<'_>) -> bool {
    match kind {
        EventKind::SchedWakeup(wakeup) | EventKind::SchedWakeupNew(wakeup) => wakeup.prio.nice().is_some(),
        EventKind::SchedStatSleep(_)
        | EventKind::SchedStatBlocked(_)
        | EventKind::SchedStatIowait(_)
        | EventKind::SchedPlace(_) => true,
        _ => false,
    }
}
