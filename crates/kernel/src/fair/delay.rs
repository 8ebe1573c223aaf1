//! Delayed dequeue: a sleeper that has run ahead stays on its queue until its lag has burnt off.

use crate::all_cpus::Shared;
use crate::entity::{CfsRqId, SeId};
use crate::generation::Feature;
use crate::rq::{DequeueFlags, LockedRq};

impl Shared {
    /// Whether an entity that goes to sleep stays on its queue. Pure; run time must be accounted up to now.
    ///
    /// Kernel: `dequeue_entity()`, kernel/sched/fair.c (152e11f6df29).
    pub(crate) fn delays_dequeue(&self, cfs_rq: CfsRqId, se: SeId, flags: DequeueFlags) -> bool {
        self.has(Feature::DelayDequeue)
            && flags.sleep
            && !flags.special
            && !flags.throttle
            && !self.cfs(cfs_rq).is_eligible(self.se(se).vruntime, self.running(cfs_rq))
    }

    fn count_runnable(&mut self, se: SeId, change: i32) {
        // A delayed group holds no runnable task.
        if self.se(se).task.is_none() {
            return;
        }
        let mut level = Some(se);
        while let Some(se) = level {
            let cfs_rq = self.se(se).cfs_rq;
            let queue = self.cfs_mut(cfs_rq);
            queue.h_nr_delayed = queue.h_nr_delayed.wrapping_add_signed(-change);
            level = self.se(se).parent.filter(|_| !self.cuts_off(cfs_rq));
        }
    }
}

impl LockedRq<'_> {
    /// Marks an entity as asleep on its queue: it competes on, but its task no longer counts as runnable.
    pub(crate) fn set_delayed(&mut self, se: SeId) {
        let entity = self.se(se);
        debug_assert!(
            entity.on_rq && !entity.sched_delayed,
            "entity {} falls asleep on no queue, or twice",
            se.0
        );
        if let Some(task) = entity.task {
            self.count_at_preferred(task, -1);
        }
        self.se_mut(se).sched_delayed = true;
        self.count_delayed_group(se, 1);
        self.shared.count_runnable(se, -1);
    }

    /// An entity is awake again, or has left its queue.
    pub(crate) fn clear_delayed(&mut self, se: SeId) {
        debug_assert!(self.se(se).sched_delayed, "entity {} is awake already", se.0);
        self.se_mut(se).sched_delayed = false;
        if let Some(task) = self.se(se).task {
            self.count_at_preferred(task, 1);
        }
        self.count_delayed_group(se, -1);
        self.shared.count_runnable(se, 1);
    }

    fn count_delayed_group(&mut self, se: SeId, change: i32) {
        if self.se(se).task.is_none() {
            let rq = &mut *self.rq;
            rq.nr_delayed_groups = rq.nr_delayed_groups.wrapping_add_signed(change);
        }
    }

    /// Whether anything sleeps on a queue of `cpu`, tasks of throttled groups aside.
    #[inline]
    pub(crate) fn has_delayed(&self) -> bool {
        let rq = &*self.rq;
        rq.nr_delayed_groups > 0 || self.cfs(rq.cfs).h_nr_delayed > 0
    }

    /// What is left when a delayed entity really leaves: no lag to its credit.
    ///
    /// Kernel: `finish_delayed_dequeue_entity()` (`DELAY_ZERO`, 54a58a787791).
    pub(crate) fn finish_delayed_dequeue(&mut self, se: SeId) {
        self.clear_delayed(se);
        if self.has(Feature::DelayZero) {
            self.shared.note_lag(se, self.se(se).vlag.min(0));
        }
    }
}
