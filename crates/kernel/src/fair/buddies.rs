//! Buddies: entities that are preferred (next, last) or passed over (skip) at the next pick.

use crate::all_cpus::Shared;
use crate::cfs_rq::Buddy;
use crate::entity::SeId;
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
        for kind in [Buddy::Last, Buddy::Next, Buddy::Skip] {
            let mut level = Some(se);
            while let Some(se) = level {
                let entity = &self.entities[se.0 as usize];
                let was_buddy = self.cfs_rqs[entity.cfs_rq.0 as usize].forget(kind, se);
                level = entity.parent.filter(|_| was_buddy);
            }
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

    pub(super) fn for_each_queued_level(&mut self, se: SeId, set: impl Fn(&mut Shared, SeId)) {
        let mut level = Some(se);
        while let Some(se) = level.filter(|&se| self.se(se).on_rq && !self.is_idle_policy(se)) {
            set(self, se);
            level = self.se(se).parent;
        }
    }
}

impl Shared {
    /// An entity is no longer preferred (`clear_buddies()`).
    pub(crate) fn forget_buddy_on_line(&mut self, se: SeId) {
        let line = self.line_of(self.se(se).cfs_rq);
        self.cfs_mut(line).forget_buddy(se);
    }

    /// An entity is preferred, unless it sleeps or is idle by policy (`set_next_buddy()`).
    pub(crate) fn prefer_on_line(&mut self, se: SeId) {
        let entity = self.se(se);
        if entity.on_rq && !entity.sched_delayed && !self.is_idle_policy(se) {
            let line = self.line_of(self.se(se).cfs_rq);
            self.cfs_mut(line).next = Some(se);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::group::GroupId;
    use crate::testbed::{MS, SchedulerTestbed};
    use fairlab_event::Cpu;

    /// Who is preferred within its group may stand for a group that is passed over: a pick in the group ends the one, not the other.
    #[test]
    fn each_kind_of_buddy_is_cleared_as_far_as_it_reaches() {
        let mut bed = SchedulerTestbed::new("v6.1", 1, 1);
        let group = bed.scheduler.new_group(GroupId::ROOT, 100);
        let (task, _) = (bed.spawn_in(group, 0), bed.spawn_in(group, 0));
        let se = bed.scheduler.shared.tasks[task.index()].se;
        let above = bed.entity(task).parent.expect("its group");
        let (root, within) = (bed.scheduler.rqs[0].cfs, bed.entity(task).cfs_rq);
        bed.scheduler.cfs_mut(within).next = Some(se);
        bed.scheduler.cfs_mut(root).next = Some(above);
        bed.scheduler.cfs_mut(root).skip = Some(above);
        bed.scheduler.shared.clear_buddies(se);
        let queue = bed.scheduler.cfs(root);
        assert_eq!((queue.next, queue.skip), (None, Some(above)));
    }

    /// A woken task that wins over one of another group is preferred from where the two were compared, not within its group.
    #[test]
    fn a_winner_is_preferred_from_where_it_was_compared() {
        for kernel in ["v5.10", "v6.1"] {
            let mut bed = SchedulerTestbed::new(kernel, 1, 1);
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
    /// the CPU stays with the same group; from v5.14 the group must get the CPU again.
    #[test]
    fn a_pick_within_a_group_ends_its_preference_above() {
        for (kernel, stays) in [("v5.10", false), ("v5.13", false), ("v5.14", true)] {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
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
