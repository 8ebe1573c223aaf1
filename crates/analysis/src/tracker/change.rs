//! What an event meant for tasks and CPUs.
//!
//! Must not know: how that is found out.

use fairlab_event::{Cpu, Ns};

use super::{Departure, MoveCause, Resched, Wait};

/// What an event meant. Tasks are given by their place among all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing that is followed here.
    None,
    /// A sleeping task is woken: its wait begins; it is not queued yet. `seemed`: it was taken to have left its CPU
    /// runnable, in this way, and turns out to have blocked.
    Woken { task: u32, seemed: Option<Departure> },
    /// A task is queued on a CPU; its wait `begins` here unless it was woken before.
    Queued { task: u32, cpu: Cpu, begins: bool },
    /// A task is moved while it does not run.
    Moved { task: u32, from: Cpu, to: Cpu, cause: MoveCause },
    /// A CPU changes tasks.
    Switched { cpu: Cpu, left: Option<Left>, entered: Option<Entered> },
    /// Events are missing.
    Lost,
}

/// A task that leaves its CPU; if it stays runnable a wait begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) task: u32,
    /// When it was switched in; none when that is not in the trace.
    pub(crate) ran_since: Option<Ns>,
    pub(crate) how: Departure,
    pub(crate) resched: Option<Resched>,
}

/// A task that starts on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) task: u32,
    pub(crate) wait: Option<EndedWait>,
}

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedWait {
    pub(crate) wait: Wait,
    pub(crate) length: Ns,
    /// Events were lost meanwhile: it is no measurement.
    pub(crate) crossed_loss: bool,
}
