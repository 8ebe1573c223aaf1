//! Enqueue, dequeue, and the running entity's way on and off the time line, at every level of the hierarchy.

use crate::rq::LockedRq;
use crate::shared::Shared;
use fairlab_event::Cpu;
use fairlab_event::probes::ProbePoint;

use crate::cfs_rq::{Change, Waiting};
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair::bandwidth::{ThrottlePoint, Throttling};
use crate::fair::load::LoadUpdate;
use crate::fair::rules::{DelayedLag, Placement, ProtectionStart, Request, SliceProtection, VirtualZero};
use crate::generation::Feature;
use crate::pelt::{DetachPoint, RunnableKind, UtilEstDequeue};
use crate::rq::{DequeueFlags, EnqueueFlags};
use crate::task::{Policy, Task, TaskId};
use crate::vruntime::Vruntime;

/// What became of an entity that was to leave its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dequeued {
    /// It sleeps there until its lag has burnt off.
    Delayed,
    /// It is gone, and so it is from the root queue's count.
    Counted,
    /// It is gone from below a throttled group, or was not on its queue: the root queue did not count it.
    Uncounted,
}

impl Shared {
    /// Counts tasks that came or went on a queue. Returns whether the way up goes on.
    #[inline]
    pub(crate) fn count_change(&mut self, cfs_rq: CfsRqId, change: &mut Change) -> bool {
        self.cfs_mut(cfs_rq).count(*change);
        self.change_goes_on(cfs_rq, change)
    }

    /// Whether what was counted on a queue is counted above it, and as what.
    #[inline]
    pub(crate) fn change_goes_on(&self, cfs_rq: CfsRqId, change: &mut Change) -> bool {
        if self.cuts_off(cfs_rq) {
            return false;
        }
        if self.counts_as_idle(cfs_rq) {
            change.idle = change.tasks;
        }
        true
    }

    /// Whether what is on a queue counts as `SCHED_IDLE` above it (`cfs_rq_is_idle()`).
    pub(crate) fn counts_as_idle(&self, cfs_rq: CfsRqId) -> bool {
        self.idle_policy_used && self.groups[self.cfs(cfs_rq).group.0 as usize].idle
    }

    /// Notes how far an entity is from its deadline, for where it is placed next.
    pub(crate) fn keep_distance_to_deadline(&mut self, se: SeId) {
        let entity = self.se_mut(se);
        entity.relative_deadline = Some(entity.deadline.minus(entity.vruntime));
    }

    /// Puts an entity on the time line. Kernel: `__enqueue_entity()`.
    pub(crate) fn insert_waiting(&mut self, cfs_rq: CfsRqId, se: SeId) {
        self.lay_on_timeline(cfs_rq, se);
        self.zero_follows_queueing(cfs_rq);
    }

    /// The same, and nothing else moves.
    pub(crate) fn lay_on_timeline(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let weight = self.weight_in_averages(self.competing_load(se));
        let (entity, queue) = self.entity_and_queue(se, cfs_rq);
        let (vruntime, deadline) = (entity.vruntime, entity.deadline);
        queue.insert_waiting(Waiting { vruntime, deadline, weight, se });
    }

    /// Takes an entity off the time line. Kernel: `__dequeue_entity()`.
    pub(crate) fn remove_waiting(&mut self, cfs_rq: CfsRqId, se: SeId) {
        self.cfs_mut(cfs_rq).remove_waiting(se);
        self.zero_follows_queueing(cfs_rq);
    }

    /// Kernel: `update_zero_vruntime()` of 79f3f9bedd14.
    #[inline(always)]
    fn zero_follows_queueing(&mut self, cfs_rq: CfsRqId) {
        if self.generation.fair.virtual_zero == VirtualZero::AverageAtQueueing {
            let average = self.average(cfs_rq);
            self.cfs_mut(cfs_rq).move_zero_to(average);
        }
    }

    /// The average of a queue; where that is also its virtual zero, the zero is moved there.
    ///
    /// Kernel: `avg_vruntime()`, kernel/sched/fair.c.
    pub(crate) fn average_vruntime(&mut self, cfs_rq: CfsRqId) -> Vruntime {
        let average = self.average(cfs_rq);
        if self.generation.fair.virtual_zero.moves_when_computed() {
            self.cfs_mut(cfs_rq).move_zero_to(average);
        }
        average
    }

    /// The average of a queue. Pure.
    pub(crate) fn average(&self, cfs_rq: CfsRqId) -> Vruntime {
        let rounding = self.generation.fair.average_rounding;
        self.cfs(cfs_rq).average_vruntime(self.running(cfs_rq), rounding)
    }

    /// The least request of what is queued here, ns; `None` when nothing is, or where groups have no requests of their own.
    ///
    /// Kernel: `cfs_rq_min_slice()` (aef6987d8954).
    fn least_request(&self, cfs_rq: CfsRqId) -> Option<u64> {
        if self.generation.fair.request != Request::OwnAndLeastBelow {
            return None;
        }
        self.least_of_requests(cfs_rq)
    }

    /// The same, whatever groups do with it.
    pub(crate) fn least_of_requests(&self, cfs_rq: CfsRqId) -> Option<u64> {
        match self.own_requests {
            true => self.requests(cfs_rq).min(),
            false => self.common_request(cfs_rq),
        }
    }

    /// The largest request of what is queued here, ns (`cfs_rq_max_slice()`).
    pub(crate) fn largest_request(&self, cfs_rq: CfsRqId) -> u64 {
        let largest = match self.own_requests {
            true => self.requests(cfs_rq).max(),
            false => self.common_request(cfs_rq),
        };
        largest.unwrap_or(0)
    }

    fn requests(&self, cfs_rq: CfsRqId) -> impl Iterator<Item = u64> {
        let waiting = self.cfs(cfs_rq).timeline.iter().map(|entry| self.se(entry.se).slice);
        waiting.chain(self.running_entity(cfs_rq).map(|curr| self.se(curr).slice))
    }

    /// The request of all that is queued here, ns, where nobody has one of its own.
    #[inline]
    fn common_request(&self, cfs_rq: CfsRqId) -> Option<u64> {
        let base = self.sysctl.base_slice;
        debug_assert!(self.requests(cfs_rq).all(|request| request == base), "nobody asked for another");
        let is_empty = self.cfs(cfs_rq).timeline.len() == 0 && self.running_entity(cfs_rq).is_none();
        (!is_empty).then_some(base)
    }

    /// A group that is about to be queued asks for what is asked for below it.
    fn keep_request_from_below(&mut self, se: SeId, request: Option<u64>) {
        if let Some(request) = request {
            let entity = self.se_mut(se);
            (entity.slice, entity.custom_slice) = (request, true);
        }
    }

    /// A group that is queued takes over another request from below.
    pub(crate) fn take_request_from_below(&mut self, se: SeId, request: Option<u64>) {
        if let Some(request) = request {
            self.se_mut(se).slice = request;
        }
    }

    /// Makes `cpu` the task's CPU (`__set_task_cpu()`); it must not be queued.
    pub(crate) fn move_entity_to(&mut self, task: TaskId, cpu: Cpu) {
        debug_assert!(!self.entity_of(task).on_rq, "a queued task does not change queues");
        self.tasks[task.index()].cpu = cpu;
        self.set_task_rq(task, cpu);
    }
}

impl LockedRq<'_> {
    /// Queues a task on its CPU: at each level up to the first group that is queued already. Returns whether the CPU's
    /// root queue counts it: no throttled group is in between.
    ///
    /// Kernel: `enqueue_task_fair()`, kernel/sched/fair.c.
    pub(crate) fn enqueue_task_fair(&mut self, task: TaskId, flags: EnqueueFlags) -> bool {
        if self.shared.enqueue_throttled_task(task) {
            return false;
        }
        let Task { se, in_iowait, policy, .. } = self.shared.tasks[task.index()];
        // A sleeper that was only taken off for a change of its parameters sleeps on.
        let sleeps_on = self.se(se).sched_delayed;
        if !sleeps_on {
            self.shared.util_est_enqueue(task);
        }
        if in_iowait {
            self.cpufreq_update_after_io();
        }
        let idle = i32::from(policy == Policy::Idle);
        self.shared.idle_policy_used |= idle != 0;
        let change = Change { tasks: 1, delayed: i32::from(sleeps_on), idle };
        let is_counted = match self.shared.competes_on_one_queue() {
            true => self.enqueue_on_one_queue(se, flags, change),
            false => self.enqueue_levels(se, flags, change),
        };
        self.rq.cfs_tasks.push_newest(&mut self.shared.tasks, task);
        if self.shared.ends_slices_by_timer() {
            self.hrtick_update();
        }
        is_counted
    }

    /// Queues an entity, and its groups up to the first that is queued already. Returns whether the root queue is reached.
    fn enqueue_levels(&mut self, se: SeId, mut flags: EnqueueFlags, mut change: Change) -> bool {
        let (mut level, mut request) = (Some(se), None);
        while let Some(se) = level.filter(|&se| !self.se(se).on_rq) {
            let SchedEntity { cfs_rq, parent, .. } = *self.se(se);
            self.shared.keep_request_from_below(se, request);
            self.enqueue_entity(cfs_rq, se, flags);
            // Groups are placed as if they woke, whatever brought the task.
            flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
            request = self.shared.least_request(cfs_rq);
            if !self.shared.count_change(cfs_rq, &mut change) {
                return false;
            }
            level = parent;
        }
        if let Some(se) = level.filter(|&se| self.se(se).sched_delayed) {
            self.requeue_delayed_entity(se);
        }
        self.follow_change(level, request, change)
    }

    /// Takes a task off its CPU's queue.
    ///
    /// Kernel: `dequeue_task_fair()`, kernel/sched/fair.c.
    pub(crate) fn dequeue_task_fair(&mut self, task: TaskId, flags: DequeueFlags) -> Dequeued {
        if self.dequeue_throttled_task(task, flags) {
            return Dequeued::Uncounted;
        }
        let se = self.shared.tasks[task.index()].se;
        let rule = self.shared.generation.pelt.util_est_dequeue;
        let is_counted = !self.se(se).sched_delayed;
        if is_counted && rule != UtilEstDequeue::After {
            self.shared.util_est_dequeue(task);
        }
        let gone = self.dequeue_entities(se, flags);
        if is_counted && rule == UtilEstDequeue::After {
            self.shared.util_est_dequeue(task);
        }
        if is_counted && flags.sleep {
            self.util_est_update(task);
        }
        if gone != Dequeued::Delayed {
            self.rq.cfs_tasks.remove(&mut self.shared.tasks, task);
        }
        gone
    }

    /// Takes an entity off its queue, and its groups up to the first that still has others.
    ///
    /// Kernel: `dequeue_entities()`, kernel/sched/fair.c.
    pub(crate) fn dequeue_entities(&mut self, se: SeId, flags: DequeueFlags) -> Dequeued {
        self.probe_dequeue(se);
        let dequeued = match self.shared.competes_on_one_queue() {
            true => self.dequeue_from_one_queue(se, flags),
            false => self.dequeue_levels(se, flags),
        };
        self.shared.probe_dequeued(se, dequeued == Dequeued::Delayed);
        dequeued
    }

    fn dequeue_levels(&mut self, se: SeId, mut flags: DequeueFlags) -> Dequeued {
        let (entity, sleeps) = (self.se(se), flags.sleep);
        let is_task = entity.task.is_some();
        let mut change = Change {
            tasks: -i32::from(is_task),
            delayed: -i32::from(is_task && entity.sched_delayed && !flags.delayed),
            idle: -i32::from(is_task && self.shared.is_idle_policy(se)),
        };
        let (mut level, mut request, mut leaving) = (Some(se), None, true);
        while let Some(se) = level.filter(|_| leaving) {
            let SchedEntity { cfs_rq, parent, task, .. } = *self.se(se);
            let gone = self.dequeue_entity(cfs_rq, se, flags);
            if !gone && task.is_some() {
                return Dequeued::Delayed;
            }
            leaving = gone && self.cfs(cfs_rq).nr_running == 0;
            if let Some(group) = parent.filter(|_| gone && !leaving && sleeps)
                && !self.shared.cuts_off(cfs_rq)
                && self.shared.may_be_preferred(cfs_rq)
            {
                // Stay in the group that the sleeper was in.
                self.shared.set_next_buddy(group);
            }
            flags = DequeueFlags { sleep: true, throttle: flags.throttle, ..DequeueFlags::default() };
            request = self.shared.least_request(cfs_rq);
            if !self.shared.count_change(cfs_rq, &mut change) {
                return Dequeued::Uncounted;
            }
            level = parent;
        }
        match self.follow_change(level, request, change) {
            true => Dequeued::Counted,
            false => Dequeued::Uncounted,
        }
    }

    /// Kernel: `enqueue_entity()`, kernel/sched/fair.c. The order of its steps decides what the placement sees: an
    /// entity that is still `curr` is placed before it is charged and before its group weight is updated; any other one
    /// after.
    pub(crate) fn enqueue_entity(&mut self, cfs_rq: CfsRqId, se: SeId, flags: EnqueueFlags) {
        self.probe_queueing(se);
        let is_curr = self.cfs(cfs_rq).member == Some(se);
        let competes_here = !self.shared.competes_on_one_queue();
        let rule = self.shared.generation.fair.placement;
        let comes_relative = rule != Placement::Lag && (!flags.wakeup || flags.migrated);
        if is_curr && competes_here {
            self.join(cfs_rq, se, flags, comes_relative);
        }
        self.update_curr(cfs_rq);
        if !is_curr && comes_relative {
            self.shared.make_absolute(cfs_rq, se);
        }
        self.update_load_avg(se, LoadUpdate { attach: true, ..LoadUpdate::TELL });
        if self.se(se).my_q.is_some() {
            self.shared.se_update_runnable(se);
            self.update_cfs_group(se);
        }
        self.shared.enqueue_runnable_load_avg(se);
        if !is_curr && rule == Placement::Lag && competes_here {
            self.place_entity(cfs_rq, se, flags);
        }
        let (entity, queue) = self.entity_and_queue(se, cfs_rq);
        queue.load.add(entity.load);
        queue.nr_running += 1;
        if queue.nr_running == 1 {
            self.list_add_leaf_cfs_rq(cfs_rq);
        }
        if rule != Placement::Lag && flags.wakeup {
            self.place_entity(cfs_rq, se, flags);
        }
        if flags.migrated {
            self.se_mut(se).exec_start = 0;
        }
        if flags.wakeup {
            self.sleep_ends(se);
        }
        if !is_curr {
            self.wait_starts(se);
            if competes_here {
                self.shared.insert_waiting(cfs_rq, se);
            }
        }
        self.se_mut(se).on_rq = true;
        if self.shared.bandwidth_used && self.cfs(cfs_rq).nr_running == 1 {
            self.check_enqueue_throttle(cfs_rq);
            if self.shared.generation.bandwidth.throttling == Throttling::TasksAtUserReturn {
                self.start_pelt_clock(cfs_rq);
            }
        }
    }

    /// Gives an entity that is still `curr` its place on the virtual time line that it joins again.
    fn join(&mut self, cfs_rq: CfsRqId, se: SeId, flags: EnqueueFlags, comes_relative: bool) {
        if self.shared.generation.fair.placement == Placement::Lag {
            self.place_entity(cfs_rq, se, flags);
        } else if comes_relative {
            self.shared.make_absolute(cfs_rq, se);
        }
    }

    /// Kernel: `dequeue_entity()`, kernel/sched/fair.c. Returns whether the entity is gone.
    pub(crate) fn dequeue_entity(&mut self, cfs_rq: CfsRqId, se: SeId, flags: DequeueFlags) -> bool {
        self.probe_unqueueing(se, flags);
        self.update_curr(cfs_rq);
        let competes_here = !self.shared.competes_on_one_queue();
        if self.cfs(cfs_rq).has_buddies() && competes_here {
            self.shared.clear_buddies_upwards(se);
        }
        if competes_here && !flags.delayed && self.shared.delays_dequeue(cfs_rq, se, flags) {
            self.update_load_avg(se, LoadUpdate::AGE);
            if self.shared.generation.fair.delayed_lag == DelayedLag::NeverWorse {
                self.shared.update_entity_lag(cfs_rq, se);
            }
            self.set_delayed(se);
            return false;
        }
        let detach = flags.migrating && self.shared.generation.pelt.detach_point == DetachPoint::Dequeue;
        self.update_load_avg(se, LoadUpdate { detach, ..LoadUpdate::TELL });
        match self.shared.generation.pelt.runnable {
            RunnableKind::TaskCount => self.shared.se_update_runnable(se),
            RunnableKind::LoadWeighted => self.shared.dequeue_runnable_load_avg(se),
        }
        let is_curr = self.cfs(cfs_rq).member == Some(se);
        match (is_curr, flags.migrating) {
            (true, _) => {}
            (false, true) => self.wait_is_interrupted(se),
            // So of a sleeper that leaves late, and of a waiting task that is taken off for a change.
            (false, false) => self.wait_ends(se),
        }
        if flags.sleep {
            self.sleep_starts(se);
        }
        let keeps_lag = match self.shared.generation.fair.placement {
            Placement::MinVruntime | Placement::AverageWithCredit => false,
            Placement::LagOnWakeup => flags.sleep,
            Placement::Lag => competes_here,
        };
        if keeps_lag {
            self.shared.update_entity_lag(cfs_rq, se);
        }
        if competes_here && self.has(Feature::PlaceRelDeadline) && !flags.sleep {
            self.shared.keep_distance_to_deadline(se);
        }
        if !is_curr && competes_here {
            self.shared.remove_waiting(cfs_rq, se);
        }
        let (entity, queue) = self.entity_and_queue(se, cfs_rq);
        entity.on_rq = false;
        queue.load.subtract(entity.load);
        queue.nr_running -= 1;
        let (runs_empty, is_group) = (queue.nr_running == 0, entity.my_q.is_some());
        if !flags.sleep && self.shared.vruntime_is_relative_off_queue() {
            self.shared.make_relative(cfs_rq, se);
        }
        if self.shared.bandwidth_used {
            self.shared.return_cfs_rq_runtime(cfs_rq);
        }
        if is_group {
            self.update_cfs_group(se);
        }
        if !flags.save {
            self.shared.update_min_vruntime(cfs_rq);
        }
        if flags.delayed && competes_here {
            self.finish_delayed_dequeue(se);
        }
        if runs_empty {
            self.queue_runs_empty(cfs_rq);
        }
        true
    }

    /// Notes the time throttled as others may read it; while throttled, time stands still for its averages from now on.
    fn queue_runs_empty(&mut self, cfs_rq: CfsRqId) {
        self.cfs_mut(cfs_rq).pelt_clock.enter_idle();
        let stops = self.shared.generation.bandwidth.throttling == Throttling::TasksAtUserReturn;
        if stops && self.shared.throttled_hierarchy(cfs_rq) {
            self.stop_pelt_clock(cfs_rq);
        }
    }

    /// The running task stays runnable but leaves the CPU, or has left the queue already.
    ///
    /// Kernel: `put_prev_entity()` at every level.
    pub(crate) fn put_prev_task_fair(&mut self, task: TaskId) {
        let mut level = Some(self.shared.tasks[task.index()].se);
        while let Some(se) = level {
            self.put_prev_entity(se);
            level = self.se(se).parent;
        }
        if self.shared.competes_on_one_queue() {
            self.shared.put_on_line(self.shared.tasks[task.index()].se);
        }
    }

    /// A task gets the CPU. `picked`: it did not have it before.
    ///
    /// Kernel: `set_next_entity()` at every level, from the root down.
    pub(crate) fn set_next_task_fair(&mut self, task: TaskId, picked: bool) {
        let se = self.shared.tasks[task.index()].se;
        if self.shared.competes_on_one_queue() {
            self.shared.take_off_line(se);
        }
        self.set_next_levels(se, picked);
        if self.shared.competes_on_one_queue() {
            self.shared.run_on_line(se, picked);
        }
        self.note_picked(task);
        if picked && self.shared.ends_slices_by_timer() {
            self.hrtick_start_fair(task);
        }
    }

    fn set_next_levels(&mut self, se: SeId, picked: bool) {
        if let Some(parent) = self.se(se).parent {
            self.set_next_levels(parent, picked);
        }
        self.set_next_entity(se, picked);
    }

    /// One fair task follows another on their CPU: groups that both are in run on, untouched.
    ///
    /// Kernel: `pick_next_task_fair()` (v7.2: `put_prev_task_fair()` and `set_next_task_fair()`), kernel/sched/fair.c.
    pub(crate) fn switch_fair(&mut self, prev: TaskId, next: TaskId) {
        let (prev, picked) = (self.shared.tasks[prev.index()].se, self.shared.tasks[next.index()].se);
        let root = self.rq.cfs;
        if self.cfs(root).member.is_none() {
            // All was put back already, when the pick found a group without runtime.
            return self.set_next_task_fair(next, true);
        }
        let on_one_queue = self.shared.competes_on_one_queue();
        let (last_put, last_set) = self.shared.meeting_levels(prev, picked);
        let mut level = Some(prev);
        while let Some(se) = level {
            self.put_prev_entity(se);
            level = self.se(se).parent.filter(|_| se != last_put);
        }
        if on_one_queue {
            self.shared.put_on_line(prev);
            self.shared.take_off_line(picked);
        }
        let mut level = Some(picked);
        while let Some(se) = level {
            self.set_next_entity(se, true);
            level = self.se(se).parent.filter(|_| se != last_set);
        }
        if on_one_queue {
            self.shared.run_on_line(picked, true);
        }
        self.note_picked(next);
        if self.shared.ends_slices_by_timer() {
            self.hrtick_start_fair(next);
        }
    }

    fn put_prev_entity(&mut self, se: SeId) {
        let cfs_rq = self.se(se).cfs_rq;
        self.shared.probe_put(se);
        if self.cfs(cfs_rq).member != Some(se) {
            return;
        }
        let competes_here = !self.shared.competes_on_one_queue();
        if self.se(se).on_rq {
            self.update_curr(cfs_rq);
        }
        if self.shared.generation.bandwidth.throttle_point == ThrottlePoint::PickAndPut {
            self.check_cfs_rq_runtime(cfs_rq);
        }
        if self.se(se).on_rq {
            self.wait_starts(se);
            if competes_here {
                self.shared.insert_waiting(cfs_rq, se);
            }
            self.update_load_avg(se, LoadUpdate::AGE);
        }
        let queue = self.cfs_mut(cfs_rq);
        queue.member = None;
        if competes_here {
            queue.curr = None;
        }
    }

    /// Moves a task that gets the CPU to the front of its CPU's list.
    pub(crate) fn note_picked(&mut self, task: TaskId) {
        if self.shared.tasks[task.index()].is_queued() {
            let list = &mut self.rq.cfs_tasks;
            list.remove(&mut self.shared.tasks, task);
            list.push_newest(&mut self.shared.tasks, task);
        }
    }

    fn set_next_entity(&mut self, se: SeId, picked: bool) {
        self.probe_entity(ProbePoint::SetNextEntity, "set_next_entity", se);
        let (cfs_rq, on_rq) = (self.se(se).cfs_rq, self.se(se).on_rq);
        let queue = self.cfs(cfs_rq);
        let clock = self.rq.clock.0;
        let competes_here = !self.shared.competes_on_one_queue();
        if queue.has_buddies() && competes_here {
            self.shared.clear_buddies_upwards(se);
        }
        if on_rq {
            self.wait_ends(se);
            if competes_here {
                self.shared.remove_waiting(cfs_rq, se);
            }
            self.update_load_avg(se, LoadUpdate::TELL);
        }
        let rules = &self.shared.generation.fair;
        let protects = competes_here
            && rules.slice_protection == SliceProtection::UntilShortestRequest
            && match rules.protection_start {
                ProtectionStart::SetNext => true,
                ProtectionStart::Pick => picked && on_rq,
            };
        let protected_until = protects.then(|| self.shared.protection(cfs_rq, se));
        let (entity, queue) = self.entity_and_queue(se, cfs_rq);
        entity.deadline_at_pick = on_rq.then_some(entity.deadline);
        entity.protected_until = protected_until.unwrap_or(entity.protected_until);
        entity.exec_start = clock;
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
        queue.member = Some(se);
        if competes_here {
            queue.curr = Some(se);
        }
    }

    /// Gives a task the weight of its policy and nice level; it is off its queue.
    ///
    /// Kernel: `set_load_weight()`, `reweight_task()`.
    pub(crate) fn reweight_task(&mut self, task: TaskId) {
        let se = self.shared.tasks[task.index()].se;
        debug_assert!(!self.se(se).on_rq, "a task is reweighted off its queue");
        self.reweight_entity(se, self.shared.tasks[task.index()].load_weight());
    }
}
