//! One queue for all fair tasks of a CPU: they compete there, whatever groups they are in, and groups are levels of load alone.
//!
//! A task weighs there what is left of its CPU's weight after each of its groups has taken its part.

use crate::cfs_rq::Change;
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair::Dequeued;
use crate::fair::load::LoadUpdate;
use crate::fair::rules::SliceProtection;
use crate::generation::Feature;
use crate::group::Competition;
use crate::pelt::MIN_SHARES;
use crate::rq::LockedRq;
use crate::rq::{DequeueFlags, EnqueueFlags};
use crate::shared::Shared;
use crate::weight::LoadWeight;
use fairlab_event::Ns;

impl Shared {
    /// Whether all fair tasks of a CPU compete on its root queue (85570f10a4c6).
    #[inline(always)]
    pub(crate) fn competes_on_one_queue(&self) -> bool {
        self.generation.groups.competition == Competition::OneQueue
    }

    /// The queue on whose time line those on `cfs_rq` compete.
    #[inline(always)]
    pub(crate) fn line_of(&self, cfs_rq: CfsRqId) -> CfsRqId {
        if self.competes_on_one_queue() { CfsRqId::root(self.cfs(cfs_rq).cpu) } else { cfs_rq }
    }

    /// How many entities compete on a time line, the running one included.
    #[inline(always)]
    pub(crate) fn competitors_on(&self, line: CfsRqId) -> u32 {
        let queue = self.cfs(line);
        if self.competes_on_one_queue() { queue.h_nr_running } else { queue.nr_running }
    }

    /// Whether there are others where an entity is about to be placed.
    #[inline]
    pub(crate) fn has_company(&self, line: CfsRqId, se: SeId) -> bool {
        let queue = self.cfs(line);
        match self.competes_on_one_queue() {
            true => queue.timeline.len() > 0 || self.running_entity(line).is_some_and(|curr| curr != se),
            false => queue.nr_running > 0,
        }
    }

    /// What a task weighs on its CPU's time line: of its own weight the part that each of its groups has of what is beside it.
    ///
    /// Kernel: `__calc_prop_weight()`, kernel/sched/fair.c. Units: scaled up, quotients truncated.
    pub(crate) fn part_of_weight(&self, se: SeId) -> LoadWeight {
        let whole = LoadWeight::of_nice(0).raw();
        let (mut level, mut weight) = (Some(se), whole);
        while let Some(se) = level {
            let entity = self.se(se);
            let beside = if entity.parent.is_some() { self.cfs(entity.cfs_rq).load.raw() } else { whole };
            weight = (weight.wrapping_mul(entity.load.raw()) / beside.max(1)).max(MIN_SHARES as u64);
            level = entity.parent;
        }
        LoadWeight::from_raw(weight)
    }

    /// A task that had the CPU joins those that wait, if it is still queued (`put_prev_task_fair()`).
    pub(crate) fn put_on_line(&mut self, se: SeId) {
        let line = self.line_of(self.se(se).cfs_rq);
        if self.cfs(line).curr == Some(se) {
            self.cfs_mut(line).curr = None;
            if self.se(se).on_rq {
                self.insert_waiting(line, se);
            }
        }
    }

    /// A task gets the CPU: it no longer waits (the beginning of `set_next_task_fair()`).
    pub(crate) fn take_off_line(&mut self, se: SeId) {
        let line = self.line_of(self.se(se).cfs_rq);
        self.forget_buddy_on_line(se);
        if self.se(se).on_rq {
            self.remove_waiting(line, se);
        }
    }

    /// It runs, with the weight that it has now (the end of `set_next_task_fair()`).
    pub(crate) fn run_on_line(&mut self, se: SeId, picked: bool) {
        let line = self.line_of(self.se(se).cfs_rq);
        self.cfs_mut(line).curr = Some(se);
        let on_rq = self.se(se).on_rq;
        self.reweigh_running(se);
        let protects =
            picked && on_rq && self.generation.fair.slice_protection == SliceProtection::UntilShortestRequest;
        let protected_until = protects.then(|| self.protection(line, se));
        let entity = self.se_mut(se);
        entity.deadline_at_pick = on_rq.then_some(entity.deadline);
        entity.protected_until = protected_until.unwrap_or(entity.protected_until);
    }

    /// A running task takes the weight that its groups leave it now, if it is still queued.
    pub(crate) fn reweigh_running(&mut self, se: SeId) {
        if self.se(se).on_rq {
            self.reweigh_on_line(se, self.part_of_weight(se), true);
        }
    }

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

    /// Open loop: a task that stands on its queues stands on its CPU's time line, too.
    pub(crate) fn lay_on_line(&mut self, se: SeId) {
        let line = self.line_of(self.se(se).cfs_rq);
        self.se_mut(se).line_load = self.part_of_weight(se);
        if self.cfs(line).curr != Some(se) {
            self.lay_on_timeline(line, se);
        }
    }
}

impl LockedRq<'_> {
    /// Charges whoever runs on a time line, at its own level (`update_curr_eevdf()`).
    pub(crate) fn charge_line(&mut self, line: CfsRqId) {
        match self.cfs(line).curr {
            Some(curr) if self.shared.competes_on_one_queue() => self.update_curr(self.se(curr).cfs_rq),
            _ => self.update_curr(line),
        }
    }

    /// Charges a queue for its running member: a group's only counts, a task moves on its CPU's time line.
    ///
    /// Kernel: `update_curr()`, kernel/sched/fair.c.
    #[inline(never)]
    pub(crate) fn charge_on_one_queue(&mut self, cfs_rq: CfsRqId, curr: SeId, now: u64) {
        let entity = self.se_mut(curr);
        let (delta, is_task) = (now - entity.exec_start, entity.task.is_some());
        entity.exec_start = now;
        entity.sum_exec_runtime += delta;
        if self.shared.bandwidth_used {
            self.account_cfs_rq_runtime(cfs_rq, delta);
        }
        if !is_task {
            return;
        }
        let (line, gained) = (self.shared.line_of(cfs_rq), self.shared.virtual_time_of(curr, delta) as i64);
        let entity = self.se_mut(curr);
        entity.vruntime = entity.vruntime.plus(gained);
        let (vruntime, request_used) = (entity.vruntime, !entity.vruntime.is_before(entity.deadline));
        if request_used {
            self.shared.take_new_request(line, curr);
        }
        if self.shared.trace.enabled {
            self.shared.report_runtime(curr, Ns(delta));
        }
        let has_others = self.shared.competitors_on(line) > 1;
        if has_others && (request_used || self.shared.loses_protection(line, curr, vruntime)) {
            self.shared.resched_curr_lazy(self.cfs(line).cpu, "update_curr");
            self.shared.clear_buddies(curr);
        }
    }

    /// Queues a task's entity at each level that is not queued yet, and places it on its CPU's time line. Returns whether the root
    /// queue counts it, which it does.
    ///
    /// Kernel: `enqueue_task_fair()`, `enqueue_hierarchy()`, kernel/sched/fair.c.
    pub(crate) fn enqueue_on_one_queue(&mut self, se: SeId, flags: EnqueueFlags, change: Change) -> bool {
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

    fn enqueue_at_all_levels(&mut self, se: SeId, mut flags: EnqueueFlags, mut change: Change) {
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
    pub(crate) fn dequeue_from_one_queue(&mut self, se: SeId, flags: DequeueFlags) -> Dequeued {
        let line = self.shared.line_of(self.se(se).cfs_rq);
        self.shared.forget_buddy_on_line(se);
        self.charge_line(line);
        self.shared.update_entity_lag(line, se);
        if !flags.delayed && self.shared.delays_dequeue(line, se, flags) {
            self.update_load_avg(se, LoadUpdate::AGE);
            self.set_delayed(se);
            return Dequeued::Delayed;
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
        Dequeued::Counted
    }

    fn dequeue_at_levels(&mut self, se: SeId, mut flags: DequeueFlags) {
        let sleeps_on = self.se(se).sched_delayed && !flags.delayed;
        let idle = i32::from(self.shared.is_idle_policy(se));
        let mut change = Change { tasks: -1, delayed: -i32::from(sleeps_on), idle: -idle };
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
