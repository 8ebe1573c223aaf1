//! Delayed dequeue: a sleeper that has run ahead stays on its queue until its lag has burnt off.

use crate::entity::{CfsRqId, SeId};
use crate::fair::Dequeued;
use crate::fair::load::LoadUpdate;
use crate::fair::rules::DelayedLag;
use crate::generation::Feature;
use crate::rq::LockedRq;
use crate::rq::{DequeueFlags, EnqueueFlags};
use crate::shared::Shared;
use crate::task::{OnRq, TaskId};

/// How a sleeper leaves the queue that it was kept on.
const DELAYED_SLEEPER: DequeueFlags = DequeueFlags {
    sleep: true,
    delayed: true,
    special: false,
    save: false,
    migrating: false,
    throttle: false,
};

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

    /// The delayed entity, of whichever level, that would be picked next.
    pub(crate) fn delayed_candidate(&self, root: CfsRqId) -> Option<SeId> {
        let mut queue = root;
        loop {
            let (se, _) = self.pick_next_entity(queue)?;
            if self.se(se).sched_delayed {
                return Some(se);
            }
            queue = self.se(se).my_q?;
        }
    }
}

impl LockedRq<'_> {
    /// Marks an entity as asleep on its queue: it competes on, but its task no longer counts as runnable.
    pub(crate) fn set_delayed(&mut self, se: SeId) {
        self.se_mut(se).sched_delayed = true;
        self.count_delayed_group(se, 1);
        self.shared.count_runnable(se, -1);
    }

    /// An entity is awake again, or has left its queue.
    pub(crate) fn clear_delayed(&mut self, se: SeId) {
        self.se_mut(se).sched_delayed = false;
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
            let entity = self.se_mut(se);
            entity.vlag = entity.vlag.min(0);
        }
    }

    /// A delayed entity wakes up where it is. If it is owed time it is placed anew without that credit; from v7.1 it is
    /// placed anew whenever its lag is not what its vruntime says.
    ///
    /// Kernel: `requeue_delayed_entity()`, kernel/sched/fair.c. To v7.0 it runs *without* charging the running entity.
    pub(crate) fn requeue_delayed_entity(&mut self, se: SeId) {
        self.shared.probe_requeue(se);
        let cfs_rq = self.shared.line_of(self.se(se).cfs_rq);
        let anew = match self.shared.generation.fair.delayed_lag {
            DelayedLag::NeverWorse => {
                self.charge_line(cfs_rq);
                self.shared.update_entity_lag(cfs_rq, se);
                self.shared.average(cfs_rq).minus(self.se(se).vruntime) != self.se(se).vlag
            }
            DelayedLag::OfThen if self.has(Feature::DelayZero) => {
                self.shared.update_entity_lag(cfs_rq, se);
                let owed = self.se(se).vlag > 0;
                if owed {
                    self.se_mut(se).vlag = 0;
                }
                owed
            }
            DelayedLag::OfThen => false,
        };
        if anew {
            self.place_anew(cfs_rq, se);
        }
        self.update_load_avg(se, LoadUpdate::AGE);
        self.clear_delayed(se);
        if let Some(task) = self.se(se).task {
            self.shared.util_est_enqueue(task);
        }
    }

    fn place_anew(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let is_curr = self.cfs(cfs_rq).curr == Some(se);
        self.cfs_mut(cfs_rq).nr_running -= 1;
        if !is_curr {
            self.shared.remove_waiting(cfs_rq, se);
        }
        self.place_entity(cfs_rq, se, EnqueueFlags::default());
        if !is_curr {
            self.shared.insert_waiting(cfs_rq, se);
        }
        self.cfs_mut(cfs_rq).nr_running += 1;
    }

    /// Takes delayed entities that would be picked off their queues, until one would be picked that is awake, or none.
    ///
    /// Kernel: the loop in `pick_task_fair()` around `pick_next_entity()`.
    #[inline]
    pub(crate) fn finish_delayed_dequeues(&mut self) {
        if self.has_delayed() {
            self.finish_delayed_dequeues_but(|_| false);
        }
    }

    /// The same, until it would be the turn of a task that `stays`: for a driver that knows when the kernel did it.
    pub(crate) fn finish_delayed_dequeues_but(&mut self, stays: impl Fn(TaskId) -> bool) {
        while let Some(se) = self.shared.delayed_candidate(self.rq.cfs) {
            if self.se(se).task.is_some_and(&stays) {
                break;
            }
            self.finish_delayed(se);
        }
    }

    /// A delayed entity leaves its queue now.
    pub(crate) fn finish_delayed(&mut self, se: SeId) {
        match self.se(se).task {
            Some(task) => self.dequeue_delayed(task),
            None => drop(self.dequeue_entities(se, DELAYED_SLEEPER)),
        }
    }

    /// A task that slept on its queue leaves it now (`dequeue_task()` with `DEQUEUE_DELAYED`, `__block_task()`).
    pub(crate) fn dequeue_delayed(&mut self, task: TaskId) {
        let OnRq::Delayed(state) = self.shared.tasks[task.index()].on_rq else {
            panic!("a delayed entity's task sleeps on its queue")
        };
        self.shared.tasks[task.index()].on_rq = OnRq::Sleeping(state);
        self.sched_info_dequeue(task);
        let dequeued = self.dequeue_task_fair(task, DELAYED_SLEEPER);
        self.count_running(-i32::from(dequeued == Dequeued::Counted));
    }
}
