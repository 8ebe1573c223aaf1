//! Enqueue, dequeue, and the running entity's way on and off the time line, at every level of the hierarchy.

use fairlab_event::probes::ProbePoint;

use crate::cfs_rq::QueueCountChange;
use crate::entity::{SchedEntity, SeId};
use crate::fair::bandwidth::ThrottlePoint;
use crate::fair::bandwidth::rules::ThrottledListing;
use crate::fair::load_update::LoadUpdate;
use crate::fair::rules::{ProtectionStart, SetNextOrder, SliceProtection};
use crate::pelt::{UtilEstDequeue, UtilEstSample};
use crate::rq::{DequeueFlags, DequeueOutcome, EnqueueFlags, LockedRq};
use crate::task::{Policy, Task, TaskId};

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
        let change = QueueCountChange { tasks: 1, delayed: i32::from(sleeps_on), idle };
        let had_tasks = self.has_fair_tasks();
        let is_counted = match self.shared.competes_on_one_queue() {
            true => self.enqueue_on_one_queue(se, flags, change),
            false => self.enqueue_levels(se, flags, change),
        };
        if self.shared.fair_servers.watch() && !had_tasks && self.has_fair_tasks() {
            self.fair_tasks_arrive(self.rq.nr_running == 0);
        }
        if self.shared.bandwidth_used
            && self.shared.generation.bandwidth.throttled_listing == ThrottledListing::Joins
        {
            self.list_arrival(self.se(se).cfs_rq);
        }
        self.account_llc_enqueue(task);
        self.rq.cfs_tasks.push_newest(&mut self.shared.tasks, task);
        if self.shared.ends_slices_by_timer() {
            self.hrtick_update();
        }
        is_counted
    }

    /// Queues an entity, and its groups up to the first that is queued already. Returns whether the root queue is reached.
    fn enqueue_levels(&mut self, se: SeId, mut flags: EnqueueFlags, mut change: QueueCountChange) -> bool {
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
    pub(crate) fn dequeue_task_fair(&mut self, task: TaskId, flags: DequeueFlags) -> DequeueOutcome {
        if self.dequeue_throttled_task(task, flags) {
            return DequeueOutcome::Uncounted;
        }
        let se = self.shared.tasks[task.index()].se;
        let rule = self.shared.generation.pelt.util_est_dequeue;
        let is_counted = !self.se(se).sched_delayed;
        if is_counted && rule != UtilEstDequeue::After {
            self.shared.util_est_dequeue(task);
        }
        let samples = is_counted && flags.sleep;
        let at_first = self.shared.generation.pelt.util_est_sample == UtilEstSample::AsLastAged;
        if samples && at_first {
            self.util_est_update(task);
        }
        let gone = self.dequeue_entities(se, flags);
        if is_counted && rule == UtilEstDequeue::After {
            self.shared.util_est_dequeue(task);
        }
        if samples && !at_first {
            self.util_est_update(task);
        }
        if gone != DequeueOutcome::Delayed {
            self.account_llc_dequeue(task);
            self.rq.cfs_tasks.remove(&mut self.shared.tasks, task);
        }
        gone
    }

    /// Takes an entity off its queue, and its groups up to the first that still has others.
    ///
    /// Kernel: `dequeue_entities()`, kernel/sched/fair.c.
    pub(crate) fn dequeue_entities(&mut self, se: SeId, flags: DequeueFlags) -> DequeueOutcome {
        self.probe_dequeue(se);
        let had_tasks = self.has_fair_tasks();
        let dequeued = match self.shared.competes_on_one_queue() {
            true => self.dequeue_from_one_queue(se, flags),
            false => self.dequeue_levels(se, flags),
        };
        if self.shared.fair_servers.watch() && had_tasks && !self.has_fair_tasks() {
            self.fair_tasks_are_gone();
        }
        self.shared.probe_dequeued(se, dequeued == DequeueOutcome::Delayed);
        dequeued
    }

    fn dequeue_levels(&mut self, se: SeId, mut flags: DequeueFlags) -> DequeueOutcome {
        let (entity, sleeps) = (self.se(se), flags.sleep);
        let is_task = entity.task.is_some();
        let mut change = QueueCountChange {
            tasks: -i32::from(is_task),
            delayed: -i32::from(is_task && entity.sched_delayed && !flags.delayed),
            idle: -i32::from(is_task && self.shared.is_idle_policy(se)),
        };
        let (mut level, mut request, mut leaving) = (Some(se), None, true);
        while let Some(se) = level.filter(|_| leaving) {
            let SchedEntity { cfs_rq, parent, task, .. } = *self.se(se);
            let gone = self.dequeue_entity(cfs_rq, se, flags);
            if !gone && task.is_some() {
                return DequeueOutcome::Delayed;
            }
            if !gone {
                // Among those whose request is the least is the group itself, which takes that over.
                self.shared.take_request_from_below(se, self.shared.least_request(cfs_rq));
            }
            leaving = gone && self.cfs(cfs_rq).nr_running == 0;
            if let Some(group) = parent.filter(|_| gone && !leaving && sleeps)
                && !self.shared.cuts_off(cfs_rq)
                && self.shared.may_be_preferred(cfs_rq)
            {
                // Stay in the group that the sleeper was in.
                self.shared.set_next_buddy(group);
            }
            let DequeueFlags { save, throttle, .. } = flags;
            flags = DequeueFlags { sleep: true, save, throttle, ..DequeueFlags::default() };
            request = self.shared.least_request(cfs_rq);
            if !self.shared.count_change(cfs_rq, &mut change) {
                return DequeueOutcome::Uncounted;
            }
            level = parent;
        }
        match self.follow_change(level, request, change) {
            true => DequeueOutcome::Counted,
            false => DequeueOutcome::Uncounted,
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
    /// Kernel: `set_next_task_fair()`, or `set_next_entity()` at every level in the loop of `pick_next_task_fair()`. Variants:
    /// `FromRoot` to v6.11, `FromTask` from v6.12 (3b3dd89b8bb0); one that stays runs on from the task up in all releases.
    pub(crate) fn set_next_task_fair(&mut self, task: TaskId, picked: bool) {
        let se = self.shared.tasks[task.index()].se;
        if self.shared.competes_on_one_queue() {
            self.shared.take_off_line(se);
        }
        match picked && self.shared.generation.fair.set_next_order == SetNextOrder::FromRoot {
            true => self.set_next_from_root(se),
            false => self.set_next_from_task(se, picked),
        }
        if self.shared.competes_on_one_queue() {
            self.shared.run_on_line(se, picked);
        }
        self.note_picked(task);
        if picked && self.shared.ends_slices_by_timer() {
            self.hrtick_start_fair(task);
        }
    }

    fn set_next_from_root(&mut self, se: SeId) {
        if let Some(parent) = self.se(se).parent {
            self.set_next_from_root(parent);
        }
        self.set_next_entity(se, true);
    }

    /// Each queue gets runtime that has none: also one above a throttled group, on which that does not stand.
    fn set_next_from_task(&mut self, se: SeId, picked: bool) {
        let accounts = self.shared.generation.bandwidth.throttle_point == ThrottlePoint::PickAndPut;
        let mut level = Some(se);
        while let Some(se) = level {
            self.set_next_entity(se, picked);
            if accounts {
                self.account_cfs_rq_runtime(self.se(se).cfs_rq, 0);
            }
            level = self.se(se).parent;
        }
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
        self.probe_entity(ProbePoint::SetNextEntity, "set_next_entity", self.se(se).cfs_rq, se);
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

#[cfg(test)]
pub(crate) mod tests {
    use fairlab_event::{Cpu, Ns};

    use crate::ablation::AblationSituation;
    use crate::group::GroupId;
    use crate::task::Policy;
    use crate::testbed::{MS, SchedulerTestbed};

    pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[("levels-from-task", not_passed_on)];

    /// How much utilization a group's entity has beyond its queue when a task of the group has been picked on an idle CPU, just
    /// after another one has left for another CPU.
    fn not_passed_on(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        let group = bed.scheduler.new_group(GroupId::ROOT, 1024);
        let (leaves, stays) = (bed.spawn_in(group, 0), bed.spawn_in(group, 0));
        while !bed.scheduler.runs_idle_task(Cpu(0)) {
            bed.pass(20 * MS);
            bed.sleep(0);
        }
        bed.wake(stays, 0);
        bed.scheduler.shared.remove_entity_load_avg(leaves);
        bed.schedule(0);
        let queue = bed.scheduler.shared.cfs_rq_of_group(group, Cpu(0));
        let entity = bed.scheduler.cfs(queue).entity.expect("a group's queue");
        bed.scheduler.se(entity).avg.util_avg - bed.scheduler.cfs(queue).tracked.avg.util_avg
    }

    /// To v6.11 the pick goes down, and the group's entity is looked at before its queue has heard of who left.
    #[test]
    fn a_picked_tasks_group_knows_who_left_its_queue_from_v6_12() {
        assert!(not_passed_on("v6.11") > 100 && not_passed_on("v5.10") > 100);
        assert_eq!(not_passed_on("v6.12"), 0);
    }

    /// A group that falls asleep on its queue is itself one of those that are asked for the least request there.
    #[test]
    fn a_sleeping_group_takes_over_the_least_request_beside_it() {
        for kernel in ["v6.15", "v7.2"] {
            let mut bed = SchedulerTestbed::new(kernel, 1, 1);
            let group = bed.scheduler.new_group(GroupId::ROOT, 1024);
            let (sleeper, waits) = (bed.spawn_in(group, 0), bed.spawn(0, 0));
            for (task, slice) in [(sleeper, 20), (waits, 2)] {
                bed.at(0);
                bed.scheduler.set_scheduler(task, Policy::Normal, 0, Some(Ns(slice * MS)));
            }
            let queue = bed.scheduler.shared.cfs_rq_of_group(group, Cpu(0));
            let entity = bed.scheduler.cfs(queue).entity.expect("a group's queue");
            assert_eq!(bed.scheduler.curr(Cpu(0)), sleeper, "{kernel}");
            bed.pass(8 * MS);
            bed.leave(0);
            let entity = bed.scheduler.se(entity);
            assert!(entity.sched_delayed, "{kernel}: it has run ahead");
            assert_eq!(entity.slice, 2 * MS, "{kernel}");
        }
    }
}
