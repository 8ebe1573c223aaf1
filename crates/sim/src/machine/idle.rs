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
    /// From an interrupt's arrival to its handler at worst, whatever the frequency (`exit_latency`).
    pub exit: Ns,
    /// How much of that is for entering it: who is woken meanwhile waits for the rest, and who is woken later does not
    /// (`entry-latency-us` of device trees, which the kernel adds to `exit-latency-us`).
    pub entry: Ns,
    /// For how long a CPU must stay in it to gain anything (`target_residency`).
    pub residency: Ns,
    /// It takes effect only while all of these CPUs are in it or in deeper ones; otherwise the next shallower one does.
    pub together: bool,
}

impl IdleState {
    /// From an interrupt's arrival to its handler, for a CPU that went idle so long ago.
    pub fn wakes_in(&self, slept: Ns) -> Ns {
        self.exit - self.entry + Ns(self.entry.0.saturating_sub(slept.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entering_delays_only_who_is_woken_meanwhile() {
        let (exit, entry) = (Ns(950), Ns(700));
        let state = IdleState { cpus: CpuMask::first(1), exit, entry, residency: Ns(1000), together: false };
        assert_eq!([0, 300, 700, 9_000].map(|slept| state.wakes_in(Ns(slept)).0), [950, 650, 250, 250]);
        let at_once = IdleState { entry: Ns::ZERO, ..state };
        assert_eq!([0, 9_000].map(|slept| at_once.wakes_in(Ns(slept)).0), [950, 950]);
    }
}
