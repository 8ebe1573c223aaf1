//! Who looks for a CPU, and what is answered.
//!
//! Must not know: how one is found.

use fairlab_event::Cpu;

use crate::decision::{CpuDecision, IdleCpuSearch, SelectReason};
use crate::ids::TaskId;

/// Who looks for a CPU, and from where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wakee {
    pub(crate) task: TaskId,
    /// The CPU on which the selection is made.
    pub(crate) here: Cpu,
    /// The CPU that the task last ran on.
    pub(crate) prev: Cpu,
}

pub(crate) fn decide(cpu: Cpu, reason: SelectReason, scanned: u32) -> CpuDecision {
    CpuDecision { cpu, reason, scanned, no_idle_core_in: None, search: IdleCpuSearch::default() }
}
