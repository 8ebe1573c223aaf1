//! What became of a mask of idle CPUs, for those who explain it.
//!
//! Must not know: who changes masks.

use fairlab_event::{Comm, Cpu, Ns, Pid};

use crate::cpumask::CpuMask;
use crate::trace::Mode;

/// What happened to a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleMaskEvent {
    /// A CPU was set or cleared.
    Updated {
        /// It was set.
        idle: bool,
    },
    /// A wakeup scanned it.
    Scanned,
}

/// A mask at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleMaskNote {
    /// When.
    pub time: Ns,
    /// The CPU on which it happened.
    pub cpu: Cpu,
    /// The task that ran there.
    pub comm: Comm,
    /// The same.
    pub pid: Pid,
    /// In what context.
    pub mode: Mode,
    /// What happened.
    pub event: IdleMaskEvent,
    /// The mask: after an update, or as it was scanned.
    pub mask: CpuMask,
}
