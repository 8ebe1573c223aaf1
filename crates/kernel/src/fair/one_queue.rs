//! One queue for all fair tasks of a CPU: they compete there, whatever groups they are in, and groups are levels of load alone.
//!
//! A task weighs there what is left of its CPU's weight after each of its groups has taken its part.

use crate::cfs_rq::QueueCountChange;
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair::load_update::LoadUpdate;
use crate::generation::Feature;
use crate::rq::{DequeueFlags, DequeueOutcome, EnqueueFlags, LockedRq};

impl LockedRq<'_> {
    /// Queues a task's entity at each level that is not queued yet, and places it on its CPU's time line. Returns whether the root
    /// queue counts it, which it does.
    ///
    /// Kernel: `enqueue_task_fair()`, `enqueue_hierarchy()`, kernel/sched/fair.c.
    pub(crate) fn enqueue_on_one_queue(
        &mut self,
        se: SeId,
        flags: EnqueueFlags,
        change: QueueCountChange,
    ) -> bool {
        let line = self.shared.line_of(self.se(se).cfs_rq);
        self.charge_line(line);
        let is_curr = self.cfs(line).curr == Some(se);
        if is_curr {
            // Before its weight is what it will be.
            self.place_entity(line, se, flags);
        }
        self.enqueue_at_all_levels(se, flags, change);
        if !is_curr {
            self.shared.reweigh_on_line(se, self.shared.part_of_weight(se), false);
            self.place_entity(line, se, flags);
            self.shared.insert_waiting(line, se);
        }
        true
    }

    fn enqueue_at_all_levels(&mut self, se: SeId, mut flags: EnqueueFlags, mut change: QueueCountChange) {
        let mut level = Some(se);
        while let Some(se) = level {
            let SchedEntity { cfs_rq, parent, on_rq, .. } = *self.se(se);
            match on_rq {
                true => self.follow_level(cfs_rq, se),
                false => self.enqueue_entity(cfs_rq, se, flags),
            }
            self.shared.count_change(cfs_rq, &mut change);
            flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
            level = parent;
        }
    }

    /// Something below a queued group came or went.
    fn follow_level(&mut self, cfs_rq: CfsRqId, se: SeId) {
        self.update_curr(cfs_rq);
        self.update_load_avg(se, LoadUpdate::TELL);
        self.shared.se_update_runnable(se);
        self.update_cfs_group(se);
    }

    /// Takes a task's entity off its CPU's time line, and at each level up to the first group that still has others.
    ///
    /// Kernel: `__dequeue_task()`, `dequeue_hierarchy()`, kernel/sched/fair.c.
    pub(crate) fn dequeue_from_one_queue(&mut self, se: SeId, flags: DequeueFlags) -> DequeueOutcome {
        let line = self.shared.line_of(self.se(se).cfs_rq);
        self.shared.forget_buddy_on_line(se);
        self.charge_line(line);
        self.shared.update_entity_lag(line, se);
        if !flags.delayed && self.shared.delays_dequeue(line, se, flags) {
            self.update_load_avg(se, LoadUpdate::AGE);
            self.set_delayed(se);
            return DequeueOutcome::Delayed;
        }
        self.dequeue_at_levels(se, flags);
        if self.has(Feature::PlaceRelDeadline) && !flags.sleep {
            self.shared.keep_distance_to_deadline(se);
        }
        if self.cfs(line).curr != Some(se) {
            self.shared.remove_waiting(line, se);
        }
        if flags.delayed {
            self.finish_delayed_dequeue(se);
        }
        DequeueOutcome::Counted
    }

    fn dequeue_at_levels(&mut self, se: SeId, mut flags: DequeueFlags) {
        let sleeps_on = self.se(se).sched_delayed && !flags.delayed;
        let idle = i32::from(self.shared.is_idle_policy(se));
        let mut change = QueueCountChange { tasks: -1, delayed: -i32::from(sleeps_on), idle: -idle };
        let (mut level, mut leaving) = (Some(se), true);
        while let Some(se) = level {
            let SchedEntity { cfs_rq, parent, .. } = *self.se(se);
            match leaving {
                true => drop(self.dequeue_entity(cfs_rq, se, flags)),
                false => self.follow_level(cfs_rq, se),
            }
            leaving &= self.cfs(cfs_rq).nr_running == 0;
            self.shared.count_change(cfs_rq, &mut change);
            flags = DequeueFlags { sleep: true, throttle: flags.throttle, ..DequeueFlags::default() };
            level = parent;
        }
    }
}
