//! Buddies: entities that are preferred (next, last) or passed over (skip) at the next pick.

use crate::decision::{PreemptDecision, PreemptReason};
use crate::entity::SeId;
use crate::fair::rules::{Pick, WokenBuddy};
use crate::generation::Feature;
use crate::shared::Shared;
use crate::task::TaskId;

impl Shared {
    /// Makes an entity and its groups no longer anybody's buddy.
    ///
    /// Kernel: `clear_buddies()`: each kind of buddy is cleared upwards as long as the level's buddy is this entity.
    #[inline(always)]
    pub(crate) fn clear_buddies(&mut self, se: SeId) {
        if self.competes_on_one_queue() {
            self.forget_buddy_on_line(se);
        } else if self.cfs(self.se(se).cfs_rq).has_buddies() {
            self.clear_buddies_upwards(se);
        }
    }

    #[inline(never)]
    pub(crate) fn clear_buddies_upwards(&mut self, se: SeId) {
        let mut level = Some(se);
        while let Some(se) = level {
            let entity = &self.entities[se.0 as usize];
            let was_buddy = self.cfs_rqs[entity.cfs_rq.0 as usize].forget_buddy(se);
            level = entity.parent.filter(|_| was_buddy);
        }
    }

    /// The same for a task that is picked, at every level.
    pub(crate) fn clear_buddies_of_task(&mut self, task: TaskId) {
        let mut level = Some(self.tasks[task.index()].se);
        while let Some(se) = level {
            let entity = &self.entities[se.0 as usize];
            let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize];
            if queue.has_buddies() {
                queue.forget_buddy(se);
            }
            level = entity.parent;
        }
    }

    /// Prefers an entity, and at each level above its group, at the next pick (`set_next_buddy()`).
    pub(crate) fn set_next_buddy(&mut self, se: SeId) {
        if self.competes_on_one_queue() {
            return self.prefer_on_line(se);
        }
        self.for_each_queued_level(se, |shared, se| {
            let queue = shared.se(se).cfs_rq;
            shared.cfs_mut(queue).next = Some(se);
        });
    }

    /// Passes a task over at the next pick (`set_skip_buddy()`).
    pub(crate) fn set_skip_buddy(&mut self, se: SeId) {
        let mut level = Some(se);
        while let Some(se) = level {
            let queue = self.se(se).cfs_rq;
            self.cfs_mut(queue).skip = Some(se);
            level = self.se(se).parent;
        }
    }

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

    fn set_last_buddy(&mut self, se: SeId) {
        self.for_each_queued_level(se, |shared, se| {
            let queue = shared.se(se).cfs_rq;
            shared.cfs_mut(queue).last = Some(se);
        });
    }

    fn for_each_queued_level(&mut self, se: SeId, set: impl Fn(&mut Shared, SeId)) {
        let mut level = Some(se);
        while let Some(se) = level.filter(|&se| self.se(se).on_rq && !self.is_idle_policy(se)) {
            set(self, se);
            level = self.se(se).parent;
        }
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
    fn prefer_earlier_deadline(&mut self, task: TaskId, decision: PreemptDecision) {
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

    fn prefer_latest(&mut self, task: TaskId, decision: PreemptDecision) {
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

#[cfg(test)]
mod tests {
    use crate::group::GroupId;
    use crate::testbed::{Bed, MS};
    use fairlab_event::Cpu;

    /// A woken task that wins over one of another group is preferred from where the two were compared, not within its group.
    #[test]
    fn a_winner_is_preferred_from_where_it_was_compared() {
        for kernel in ["v5.10", "v6.1"] {
            let mut bed = Bed::new(kernel, 1, 1);
            let group = bed.scheduler.new_group(GroupId::ROOT, 100);
            let members = [bed.spawn_in(group, 0), bed.spawn_in(group, 0)];
            let hog = bed.spawn(0, 0);
            let mut asleep = 0;
            while asleep < members.len() {
                if members.contains(&bed.schedule(0).task) {
                    bed.sleep(0);
                    asleep += 1;
                }
                bed.pass(4 * MS);
            }
            bed.schedule(0);
            bed.pass(100 * MS);
            assert_eq!(bed.scheduler.curr(Cpu(0)), hog);
            assert!(bed.wake(members[0], 0), "{kernel}: it takes the CPU");
            let entity = bed.scheduler.shared.tasks[members[0].index()].se;
            let (queue, above) = (bed.scheduler.se(entity).cfs_rq, bed.scheduler.se(entity).parent);
            let root = bed.scheduler.rqs[0].cfs;
            assert_eq!(bed.scheduler.cfs(root).next, above, "{kernel}");
            assert_eq!(bed.scheduler.cfs(queue).next, None, "{kernel}");
        }
    }

    /// A task that goes to sleep leaves its groups preferred. To v5.13 the pick that follows ends that at every level, though
    /// the CPU stays with the same group; from v5.14 the group must get the CPU anew.
    #[test]
    fn a_pick_within_a_group_ends_its_preference_above() {
        for (kernel, stays) in [("v5.10", false), ("v5.13", false), ("v5.14", true)] {
            let mut bed = Bed::new(kernel, 8, 1);
            let group = bed.scheduler.new_group(GroupId::ROOT, 100);
            let others = [bed.spawn_in(group, 0), bed.spawn_in(group, 0)];
            bed.spawn(0, 0);
            while !others.contains(&bed.scheduler.curr(Cpu(0))) {
                bed.pass(4 * MS);
                bed.schedule(0);
            }
            bed.pass(MS / 10);
            bed.leave(0);
            let root = bed.scheduler.rqs[0].cfs;
            assert!(bed.scheduler.cfs(root).next.is_some(), "{kernel}: its group is preferred");
            let pick = bed.schedule(0);
            assert!(others.contains(&pick.task), "{kernel}");
            assert_eq!(bed.scheduler.cfs(root).next.is_some(), stays, "{kernel}");
        }
    }
}
