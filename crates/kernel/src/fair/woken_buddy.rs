//! Whom a test for preemption leaves preferred.
//!
//! Must not know: how preferred entities are picked.

use crate::all_cpus::Shared;
use crate::decision::{PreemptDecision, PreemptReason};
use crate::entity::SeId;
use crate::fair::rules::{Pick, WokenBuddy};
use crate::generation::Feature;
use crate::task::TaskId;

impl Shared {
    /// Whether a woken task is preferred on the queue that it and the running one share, from there upwards, when the test for its
    /// preemption compares them: unless one is preferred already whose deadline is earlier. Pure.
    ///
    /// Kernel: `set_preempt_buddy()`, kernel/sched/fair.c (e837456fdca8). Who has a shorter request is compared before.
    pub(crate) fn becomes_buddy(&self, task: TaskId, (curr, woken): (SeId, SeId)) -> bool {
        if !self.has(Feature::NextBuddy)
            || self.generation.fair.woken_buddy != WokenBuddy::EarlierDeadline
            || self.preempts_by_shorter_request(woken, curr)
            || self.never_preempts(task, woken).is_some()
        {
            return false;
        }
        let deadline = |se: SeId| self.se(se).deadline;
        let next = self.cfs(self.line_of(self.se(woken).cfs_rq)).next;
        !next.is_some_and(|next| deadline(next).is_before(deadline(woken)))
    }

    pub(crate) fn set_last_buddy(&mut self, se: SeId) {
        self.for_each_queued_level(se, |shared, se| {
            let queue = shared.se(se).cfs_rq;
            shared.cfs_mut(queue).last = Some(se);
        });
    }

    /// What a wakeup's preemption test leaves behind: the woken task is preferred, and the preempted one after it. Below the
    /// level at which the two were compared only `NEXT_BUDDY` prefers anything.
    ///
    /// Kernel: the buddies set by `check_preempt_wakeup()`. To v6.5 `NEXT_BUDDY` and `LAST_BUDDY` count only on queues so
    /// long that a task would otherwise wait for many others; `NEXT_BUDDY` prefers no new tasks, and none that is asleep on its
    /// queue. Variants: `Latest` to v6.18, `EarlierDeadline` from
    /// v6.19 (e837456fdca8).
    pub(crate) fn set_buddies_after(&mut self, task: TaskId, decision: PreemptDecision) {
        match self.generation.fair.woken_buddy {
            WokenBuddy::Latest => self.prefer_latest(task, decision),
            WokenBuddy::EarlierDeadline => self.prefer_earlier_deadline(task, decision),
        }
    }

    /// Only a test that comes to the comparison of the two prefers anybody.
    pub(crate) fn prefer_earlier_deadline(&mut self, task: TaskId, decision: PreemptDecision) {
        let not_compared = matches!(
            decision.reason,
            PreemptReason::HigherClass
                | PreemptReason::LowerClass
                | PreemptReason::SameEntity
                | PreemptReason::Throttled
                | PreemptReason::AlreadyPending
                | PreemptReason::FeatureOff
                | PreemptReason::CurrIsIdlePolicy
                | PreemptReason::PolicyNeverPreempts
        );
        // What a real kernel was seen to do is told in the words of older ones.
        let beyond = decision.reason == PreemptReason::BeyondGranularity;
        if not_compared || !(beyond || self.has(Feature::NextBuddy)) {
            return;
        }
        let (curr, woken) = self.competitors(self.curr(self.tasks[task.index()].cpu), task);
        if beyond || self.becomes_buddy(task, (curr, woken)) {
            self.set_next_buddy(woken);
        }
    }

    pub(crate) fn prefer_latest(&mut self, task: TaskId, decision: PreemptDecision) {
        let compares_classes =
            matches!(decision.reason, PreemptReason::HigherClass | PreemptReason::LowerClass);
        let beyond = decision.reason == PreemptReason::BeyondGranularity;
        let prefers =
            beyond || self.has(Feature::NextBuddy) || (decision.preempt && self.has(Feature::LastBuddy));
        if !prefers || compares_classes || decision.reason == PreemptReason::SameEntity {
            return;
        }
        let curr = self.curr(self.tasks[task.index()].cpu);
        let (woken, preempted) = (self.tasks[task.index()].se, self.tasks[curr.index()].se);
        let cfs = self.generation.fair.pick == Pick::Leftmost;
        let queue = self.cfs(self.se(preempted).cfs_rq);
        let crowded = u64::from(queue.nr_running) >= self.sysctl.nr_latency;
        let (at_common_level, woken_there) = self.find_matching_se(preempted, woken);
        // A new task is none, nor one that is asleep on its queue.
        let is_woken = !self.tasks[task.index()].is_new && !self.se(woken).sched_delayed;
        let may_run = decision.reason != PreemptReason::Throttled;
        if self.has(Feature::NextBuddy) && (crowded || !cfs) && is_woken && may_run {
            self.set_next_buddy(woken);
        } else if beyond {
            self.set_next_buddy(woken_there);
        }
        if !(decision.preempt && crowded && self.has(Feature::LastBuddy)) {
            return;
        }
        if self.se(at_common_level).on_rq && self.se(at_common_level).task.is_some() {
            self.set_last_buddy(at_common_level);
        }
    }
}
