//! The wakeup granularity of CFS: how far two entities of one queue are apart.
//!
//! Must not know: what follows from that.

use crate::all_cpus::Shared;
use crate::entity::SeId;

/// How two entities of one queue compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeupPreemptionTest {
    /// The first is not past the second.
    Ahead,
    /// The first is past the second by no more than the wakeup granularity.
    Close,
    /// The first is past the second by more than the wakeup granularity.
    Behind,
}

impl Shared {
    /// Whether `curr` is so far past `se` on their queue that `se` should run instead (`Behind`).
    ///
    /// Kernel: `wakeup_preempt_entity()`, `wakeup_gran()`: the granularity is virtual time of the *woken* entity.
    pub(crate) fn wakeup_preempt_entity(&self, curr: SeId, se: SeId) -> WakeupPreemptionTest {
        let distance = self.se(curr).vruntime.minus(self.se(se).vruntime);
        let granularity = self.calc_delta_fair(self.se(se).load, self.sysctl.wakeup_granularity);
        match distance {
            distance if distance <= 0 => WakeupPreemptionTest::Ahead,
            distance if distance as u64 > granularity => WakeupPreemptionTest::Behind,
            _ => WakeupPreemptionTest::Close,
        }
    }
}
