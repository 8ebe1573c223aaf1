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

#[cfg(test)]
mod tests {
    use fairlab_event::Ns;

    use crate::task::Policy;
    use crate::testbed::{MS, SchedulerTestbed};

    /// Whether a sleeper that the pick of a test comes upon has left its queue after the test of a shorter request.
    fn sleeper_leaves(kernel: &str) -> bool {
        let mut bed = SchedulerTestbed::new(kernel, 8, 1);
        let short = bed.spawn(0, 0);
        bed.scheduler.set_scheduler(short, Policy::Normal, 0, Some(Ns(MS)));
        bed.sleep(0);
        let (sleeper, _) = (bed.spawn(0, 0), bed.spawn(0, 0));
        bed.pass(2 * MS);
        bed.sleep(0);
        assert!(bed.scheduler.task(sleeper).is_delayed(), "{kernel}: it has no lag left");
        bed.pass(20 * MS);
        bed.wake(short, 0);
        !bed.scheduler.task(sleeper).is_delayed()
    }

    /// Where who is eligible preempts whoever is picked, the pick comes first all the same (ba0d3bf5f97b).
    #[test]
    fn the_pick_of_a_test_lets_sleepers_leave_before_a_shorter_request_preempts() {
        let kernels = ["v7.0", "v7.1", "v7.2", "v7.3"];
        assert_eq!(kernels.map(sleeper_leaves), [false, true, true, true]);
    }
}
