//! What an event meant for tasks and CPUs.
//!
//! Must not know: how that is found out.

use fairlab_event::{Cpu, Ns};

use super::{Departure, MoveCause, Resched, TrackedWait};

/// What an event meant. Tasks are given by their place among all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrackerChange {
    /// Nothing that is followed here.
    None,
    /// A sleeping task is woken: its wait begins; it is not queued yet. `seemed`: it was taken to have left its CPU
    /// runnable, in this way and then, and turns out to have blocked. `lost_wait`: it was thought to wait since a wakeup
    /// before, so that it has run unseen.
    /// `retracted`: it was supposed to have been woken as it left, and it was not.
    Woken { task: u32, seemed: Option<(Departure, Ns)>, lost_wait: bool, retracted: bool },
    /// A task is queued on a CPU; its wait `begins` here unless it was woken before.
    Queued { task: u32, cpu: Cpu, begins: bool },
    /// A task is moved while it does not run.
    Moved { task: u32, from: Cpu, to: Cpu, cause: MoveCause },
    /// A CPU changes tasks. `stay`: that of what leaves; `left`: that is a task, and not the idle task.
    Switched { cpu: Cpu, stay: StayOnCpu, left: Option<LeftCpu>, entered: Option<EnteredCpu> },
    /// Events are missing.
    Lost,
}

/// A stay on a CPU that is over. The stays on one CPU follow each other: none begins before the one before has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StayOnCpu {
    /// When it was switched in; none when that is not in the trace.
    pub(crate) since: Option<Ns>,
    /// From when on events show it there; its end where none does.
    pub(crate) seen_since: Ns,
    /// When it ended.
    pub(crate) to: Ns,
    /// Its beginning is missing since events before it are, in the middle of the trace.
    pub(crate) after_hole: bool,
}

impl StayOnCpu {
    /// How long it was, as far as is known.
    pub(crate) const fn known(&self) -> Ns {
        self.to.since(self.seen_since)
    }
}

/// A task's stay on a CPU that no switch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnfinishedStay {
    pub(crate) task: u32,
    pub(crate) cpu: Cpu,
    /// Its number there.
    pub(crate) number: u32,
    /// Since when the task was seen there, and for how long.
    pub(crate) since: Ns,
    pub(crate) ran: Ns,
}

/// A task that leaves its CPU; if it stays runnable a wait begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeftCpu {
    pub(crate) task: u32,
    pub(crate) how: Departure,
    pub(crate) resched: Option<Resched>,
    /// It was thought to wait until now: when its wait ended is not in the trace.
    pub(crate) lost_wait: bool,
    /// It makes way for a task of the background.
    pub(crate) to_background: bool,
}

impl LeftCpu {
    /// It stays runnable, and no task of the background takes its CPU.
    pub(crate) const fn is_involuntary(&self) -> bool {
        !matches!(self.how, Departure::Slept(_) | Departure::Exited) && !self.to_background
    }
}

/// A task that starts on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnteredCpu {
    pub(crate) task: u32,
    pub(crate) wait: Option<EndedWait>,
}

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedWait {
    pub(crate) wait: TrackedWait,
    pub(crate) length: Ns,
    /// For how long of that the task's group was throttled.
    pub(crate) throttled: Ns,
    /// It crossed a hole: it is no measurement.
    pub(crate) crossed_loss: bool,
}
