//! Preemption by a wakeup.

use crate::core::Scheduler;
use crate::decision::{PreemptDecision, PreemptReason};
use crate::entity::SeId;
use crate::generation::Feature;
use crate::generation::behaviour::WakeupPreemption;
use crate::task::{Policy, TaskId};

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

impl Scheduler {
    /// Whether `curr` is so far past `se` on their queue that `se` should run instead (`Behind`).
    ///
    /// Kernel: `wakeup_preempt_entity()`, `wakeup_gran()`: the granularity is virtual time of the *woken* entity.
    pub(crate) fn wakeup_preempt_entity(&self, curr: SeId, se: SeId) -> WakeupPreemptionTest {
        let distance = self.se(curr).vruntime.minus(self.se(se).vruntime);
        let granularity = self.se(se).load.virtual_time(self.sysctl.wakeup_granularity);
        match distance {
            distance if distance <= 0 => WakeupPreemptionTest::Ahead,
            distance if distance as u64 > granularity => WakeupPreemptionTest::Behind,
            _ => WakeupPreemptionTest::Close,
        }
    }

    /// Whether the test for `task`'s preemption gets as far as comparing virtual times; only then is `curr` charged.
    pub(crate) fn wakeup_preempt_looks_at_vruntime(&self, task: TaskId) -> bool {
        matches!(
            self.wakeup_preempt(task).reason,
            PreemptReason::WithinGranularity
                | PreemptReason::BeyondGranularity
                | PreemptReason::WouldBePicked
                | PreemptReason::WouldNotBePicked
        )
    }

    /// Whether a fair task that was just queued takes the CPU from a running fair task. Pure.
    ///
    /// Kernel: `check_preempt_wakeup()` (v6.7: `check_preempt_wakeup_fair()`), kernel/sched/fair.c. Variants:
    /// `Granularity` to v6.5, `PickDecides` from v6.6.
    /// Departs: throttled hierarchies are not modelled.
    pub(crate) fn check_preempt_wakeup(&self, curr: TaskId, task: TaskId) -> PreemptDecision {
        let decide = |preempt, reason| PreemptDecision { preempt, reason };
        if curr == task {
            return decide(false, PreemptReason::SameEntity);
        }
        let (running, woken) = (&self.tasks[curr.index()], &self.tasks[task.index()]);
        if self.need_resched(running.cpu) {
            return decide(false, PreemptReason::AlreadyPending);
        }
        if running.policy == Policy::Idle && woken.policy != Policy::Idle {
            return decide(true, PreemptReason::CurrIsIdlePolicy);
        }
        if woken.policy != Policy::Normal {
            return decide(false, PreemptReason::PolicyNeverPreempts);
        }
        if !self.has(Feature::WakeupPreemption) {
            return decide(false, PreemptReason::FeatureOff);
        }
        let (curr, woken) = self.find_matching_se(running.se, woken.se);
        match self.generation.behaviours.wakeup_preemption {
            WakeupPreemption::Granularity => match self.wakeup_preempt_entity(curr, woken) {
                WakeupPreemptionTest::Behind => decide(true, PreemptReason::BeyondGranularity),
                _ => decide(false, PreemptReason::WithinGranularity),
            },
            WakeupPreemption::PickDecides => {
                let picked = self.pick_next_entity(self.se(woken).cfs_rq);
                match picked.is_some_and(|(se, _)| se == woken) {
                    true => decide(true, PreemptReason::WouldBePicked),
                    false => decide(false, PreemptReason::WouldNotBePicked),
                }
            }
        }
    }

    /// The two entities, or those of their groups, that share a queue (`find_matching_se()`).
    fn find_matching_se(&self, mut one: SeId, mut other: SeId) -> (SeId, SeId) {
        let depth = |mut se: SeId| {
            let mut levels = 0;
            while let Some(parent) = self.se(se).parent {
                se = parent;
                levels += 1;
            }
            levels
        };
        let up = |se: SeId| self.se(se).parent.expect("entities of one CPU meet at its root queue");
        while depth(one) > depth(other) {
            one = up(one);
        }
        while depth(other) > depth(one) {
            other = up(other);
        }
        while self.se(one).cfs_rq != self.se(other).cfs_rq {
            (one, other) = (up(one), up(other));
        }
        (one, other)
    }
}
