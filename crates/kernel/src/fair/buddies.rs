//! Buddies: entities that are preferred (next, last) or passed over (skip) at the next pick.

use crate::core::Scheduler;
use crate::decision::{PreemptDecision, PreemptReason};
use crate::entity::SeId;
use crate::generation::Feature;
use crate::task::{Policy, TaskId};

impl Scheduler {
    /// Makes an entity and its groups no longer anybody's buddy.
    ///
    /// Kernel: `clear_buddies()`: each kind of buddy is cleared upwards as long as the level's buddy is this entity.
    pub(crate) fn clear_buddies(&mut self, se: SeId) {
        let mut level = Some(se);
        while let Some(se) = level {
            let queue = self.entities[se.0 as usize].cfs_rq;
            let queue = self.cfs_mut(queue);
            let mut was_buddy = false;
            for buddy in [&mut queue.next, &mut queue.last, &mut queue.skip] {
                was_buddy |= *buddy == Some(se);
                *buddy = buddy.filter(|&buddy| buddy != se);
            }
            level = self.se(se).parent.filter(|_| was_buddy);
        }
    }

    /// The same for a task that is picked, at every level.
    pub(crate) fn clear_buddies_of_task(&mut self, task: TaskId) {
        let mut level = Some(self.tasks[task.index()].se);
        while let Some(se) = level {
            self.clear_buddies(se);
            level = self.se(se).parent;
        }
    }

    /// Prefers a task, and at each level its group, at the next pick (`set_next_buddy()`).
    pub(crate) fn set_next_buddy(&mut self, se: SeId) {
        self.for_each_queued_level(se, |scheduler, se| {
            let queue = scheduler.se(se).cfs_rq;
            scheduler.cfs_mut(queue).next = Some(se);
        });
    }

    /// Passes a task over at the next pick (`set_skip_buddy()`).
    pub(crate) fn set_skip_buddy(&mut self, se: SeId) {
        self.for_each_queued_level(se, |scheduler, se| {
            let queue = scheduler.se(se).cfs_rq;
            scheduler.cfs_mut(queue).skip = Some(se);
        });
    }

    fn set_last_buddy(&mut self, se: SeId) {
        self.for_each_queued_level(se, |scheduler, se| {
            let queue = scheduler.se(se).cfs_rq;
            scheduler.cfs_mut(queue).last = Some(se);
        });
    }

    fn for_each_queued_level(&mut self, se: SeId, set: impl Fn(&mut Scheduler, SeId)) {
        let mut level = Some(se);
        while let Some(se) = level.filter(|&se| self.se(se).on_rq) {
            set(self, se);
            level = self.se(se).parent;
        }
    }

    /// What a wakeup's preemption test leaves behind: the woken task is preferred, and the preempted one after it.
    ///
    /// Kernel: the buddies set by `check_preempt_wakeup()`. The last buddy is set only on a queue so long that the
    /// preempted task would otherwise wait for many others.
    pub(crate) fn set_buddies_after(&mut self, task: TaskId, decision: PreemptDecision) {
        let cpu = self.tasks[task.index()].cpu;
        let rq = &self.rqs[cpu.index()];
        let curr = rq.curr;
        let curr_is_idle = curr == rq.idle;
        let se = self.tasks[task.index()].se;
        let asked = !matches!(decision.reason, PreemptReason::SameEntity | PreemptReason::LowerClass);
        let wins_by_vruntime = decision.reason == PreemptReason::BeyondGranularity;
        if self.tasks[curr.index()].policy.is_fair()
            && (wins_by_vruntime || (asked && self.has(Feature::NextBuddy)))
        {
            self.set_next_buddy(se);
        }
        let by_class = decision.reason == PreemptReason::HigherClass;
        if !decision.preempt || curr_is_idle || by_class || !self.has(Feature::LastBuddy) {
            return;
        }
        let preempted = self.tasks[curr.index()].se;
        let queue = self.cfs(self.se(preempted).cfs_rq);
        let crowded = u64::from(queue.nr_running) >= self.sysctl.nr_latency;
        if crowded && self.se(preempted).on_rq && self.tasks[curr.index()].policy != Policy::Swapper {
            self.set_last_buddy(preempted);
        }
    }
}
