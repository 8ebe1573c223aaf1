//! Idle states: how deep CPUs sleep and how long they take to come back.
//!
//! Must not know: when a CPU goes idle.

use fairlab_event::Ns;
use fairlab_kernel::CpuMask;

/// One idle state of some CPUs (`struct cpuidle_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// The CPUs that have it.
    pub cpus: CpuMask,
    /// From an interrupt's arrival to its handler, whatever the frequency (`exit_latency`).
    pub exit: Ns,
    /// For how long a CPU must stay in it to gain anything (`target_residency`).
    pub residency: Ns,
    /// It takes effect only while all of these CPUs are in it or in deeper ones; otherwise the next shallower one does.
    pub together: bool,
}
