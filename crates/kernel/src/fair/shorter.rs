//! Preemption by a shorter request, and who preempts by nothing else.
//!
//! Must not know: what the test leaves behind.

use crate::all_cpus::Shared;
use crate::decision::PreemptReason;
use crate::entity::SeId;
use crate::fair::preemption_rules::{DelayedShort, ShortTest};
use crate::fair::rules::{ForkPreemption, SliceProtection};
use crate::generation::Feature;
use crate::task::TaskId;

impl Shared {
    /// Why a task that is tested does not preempt but by a shorter request.
    pub(crate) fn never_preempts(&self, task: TaskId, woken: SeId) -> Option<PreemptReason> {
        if self.generation.fair.fork_preemption != ForkPreemption::OnlyShorter {
            return None;
        }
        match (self.tasks[task.index()].is_new, self.se(woken).sched_delayed) {
            (true, _) => Some(PreemptReason::NewTask),
            (false, true) => Some(PreemptReason::AsleepOnQueue),
            (false, false) => None,
        }
    }

    /// Whether a woken entity with a shorter request takes the running one's protection away.
    ///
    /// Kernel: `do_preempt_short()`, kernel/sched/fair.c (`PREEMPT_SHORT`); from v6.17 the request alone decides.
    pub(crate) fn preempts_by_shorter_request(&self, woken: SeId, curr: SeId) -> bool {
        if !self.own_requests || !self.has(Feature::PreemptShort) {
            return false;
        }
        if self.generation.preemption.delayed_short == DelayedShort::Never && self.se(woken).sched_delayed {
            return false;
        }
        let cfs_rq = self.line_of(self.se(woken).cfs_rq);
        let shorter = self.se(woken).slice < self.se(curr).slice;
        let eligible = |se: SeId| self.cfs(cfs_rq).is_eligible(self.se(se).vruntime, self.running(cfs_rq));
        shorter
            && match self.generation.fair.slice_protection {
                SliceProtection::UntilShortestRequest => true,
                SliceProtection::UntilNewDeadline => {
                    let earlier = self.se(woken).deadline.is_before(self.se(curr).deadline);
                    eligible(woken) && (earlier || !eligible(curr))
                }
            }
    }

    /// Whether a woken entity with a shorter request preempts though another would be picked (ba0d3bf5f97b).
    pub(crate) fn short_and_eligible(&self, woken: SeId) -> bool {
        let line = self.line_of(self.se(woken).cfs_rq);
        self.generation.preemption.short_test == ShortTest::PickedOrEligible
            && self.cfs(line).is_eligible(self.se(woken).vruntime, self.running(line))
    }
}
