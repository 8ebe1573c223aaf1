//! What tasks are given while they live, in open loop: nice levels, policies, slices, and priorities that are lent.
//!
//! Must not know: who gives it, and how a recording shows it.

use fairlab_event::Ns;

use crate::fair::rules::Request;
use crate::scheduler::Scheduler;
use crate::task::{Policy, TaskId};
use crate::weight::LoadWeight;

impl Scheduler {
    /// Gives a task another nice level or policy: off its queue and on again, as the kernel does.
    pub fn force_nice(&mut self, task: TaskId, nice: i32, policy: Policy) {
        let cpu = self.task(task).cpu;
        self.stand_on(cpu);
        if policy.is_fair() && self.task(task).policy.is_fair() {
            self.off_and_on(task, true, |scheduler| {
                scheduler.shared.tasks[task.index()].nice = nice;
                scheduler.shared.tasks[task.index()].policy = policy;
                scheduler.task_rq_lock(task).reweight_task(task);
            });
        } else if !self.is_on_queue(task) {
            self.shared.tasks[task.index()].policy = policy;
            self.shared.tasks[task.index()].nice = nice;
            let se = self.task(task).se;
            let load = if policy.is_fair() { self.task(task).load_weight() } else { LoadWeight::of_nice(0) };
            self.se_mut(se).load = load;
        }
    }

    /// A task asks for `slice` at a time, ns, or for no other than the base slice.
    pub fn force_slice(&mut self, task: TaskId, slice: u64) {
        let base_slice = self.shared.sysctl.base_slice;
        if self.shared.generation.fair.request != Request::BaseSlice {
            let entity = &mut self.shared.entities[self.shared.tasks[task.index()].se.0 as usize];
            (entity.slice, entity.custom_slice) = (slice, slice != base_slice);
            self.shared.own_requests |= slice != base_slice;
            self.shared.request_changes(self.shared.tasks[task.index()].se);
        }
    }

    /// Whether tasks may ask for slices of their own.
    pub fn may_have_own_slices(&self) -> bool {
        self.shared.generation.fair.request != Request::BaseSlice
    }

    /// Gives a task another policy and nice level, of any class: off its queue and on again, as the kernel does.
    pub fn force_scheduler(&mut self, task: TaskId, policy: Policy, nice: i32) {
        self.stand_on(self.task(task).cpu);
        self.change_scheduler(task, policy, nice, None);
    }

    /// Lends a task the priority of one that waits for its lock, or takes it back: `policy` is that of the class in which it
    /// goes on. Its weight stays; within the fair class only its place may change, if `moves`.
    ///
    /// Kernel: `rt_mutex_setprio()`, kernel/sched/core.c.
    pub fn force_lent(&mut self, task: TaskId, policy: Policy, moves: bool) {
        let known = self.task(task);
        let (cpu, nice, stays_fair) = (known.cpu, known.nice, known.policy.is_fair() && policy.is_fair());
        self.stand_on(cpu);
        match stays_fair {
            true => self.while_off_queue(task, !moves, |_| ()),
            false => self.change_scheduler(task, policy, nice, None),
        }
    }

    /// Virtual time that a task's weight makes of `runtime` once it is at nice level `nice`.
    pub fn virtual_time_at(&self, task: TaskId, nice: i32, runtime: Ns) -> u64 {
        let known = self.task(task);
        match known.nice == nice || known.policy == Policy::Idle {
            true => self.virtual_time(task, runtime),
            false => self.shared.calc_delta_fair(LoadWeight::of_nice(nice), runtime.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{MS, SchedulerTestbed};

    /// A boost within the fair class changes no weight. With `DEQUEUE_MOVE`, the queue's minimum follows who is left on it,
    /// and a running task that comes back keeps its distance from that.
    #[test]
    fn a_lent_priority_keeps_the_weight_and_may_move_the_task() {
        for (moves, stays) in [(true, false), (false, true)] {
            let mut bed = SchedulerTestbed::new("v5.10", 8, 1);
            let (first, second) = (bed.spawn(5, 0), bed.spawn(0, 0));
            let runs = bed.schedule(0).task;
            let waits = if runs == first { second } else { first };
            let before = bed.entity(runs).vruntime;
            let ahead = bed.scheduler.task_entity(waits);
            bed.scheduler.force_vruntime(ahead, before.plus(5 * MS as i64));
            bed.scheduler.force_lent(runs, Policy::Normal, moves);
            assert_eq!(bed.entity(runs).vruntime == before, stays);
            for (task, nice) in [(first, 5), (second, 0)] {
                assert_eq!(bed.entity(task).load, LoadWeight::of_nice(nice));
            }
        }
    }

    #[test]
    fn a_task_that_is_lent_a_real_time_priority_leaves_the_fair_class_and_comes_back() {
        for kernel in ["v5.10", "v6.6", "v7.2"] {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let (holder, other) = (bed.spawn(5, 0), bed.spawn(0, 0));
            bed.scheduler.force_lent(holder, Policy::Fifo(4), true);
            assert_eq!(bed.schedule(0).task, holder, "{kernel}");
            bed.run(0, 20);
            assert_eq!(bed.scheduler.curr(fairlab_event::Cpu(0)), holder, "{kernel}");
            bed.scheduler.force_lent(holder, Policy::Normal, true);
            assert_eq!(bed.entity(holder).load, LoadWeight::of_nice(5), "{kernel}");
            assert!(bed.run(0, 40).contains(&other), "{kernel}: they share again");
        }
    }

    #[test]
    fn a_slice_is_ones_own_where_tasks_may_ask_for_one() {
        for (kernel, may) in [("v6.6", false), ("v6.12", true)] {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let task = bed.spawn(0, 0);
            bed.scheduler.force_slice(task, MS / 2);
            assert_eq!(bed.scheduler.own_request(task), may.then_some(Ns(MS / 2)), "{kernel}");
            let base = bed.scheduler.shared.sysctl.base_slice;
            bed.scheduler.force_slice(task, base);
            assert_eq!(bed.scheduler.own_request(task), None, "{kernel}");
        }
    }

    #[test]
    fn the_weight_of_another_nice_level_counts_but_for_idle_tasks() {
        let mut bed = SchedulerTestbed::new("v5.10", 8, 1);
        let task = bed.spawn(0, 0);
        let five = LoadWeight::of_nice(5).virtual_time(MS);
        assert_eq!(bed.scheduler.virtual_time_at(task, 5, Ns(MS)), five);
        bed.scheduler.force_nice(task, 0, Policy::Idle);
        let idle = bed.scheduler.virtual_time(task, Ns(MS));
        assert_eq!(bed.scheduler.virtual_time_at(task, 5, Ns(MS)), idle);
    }

    /// With the request, or before it with the protection: from v6.17 wherever that ends, in v6.12 of one that is no longer
    /// eligible and has had another deadline since it was picked.
    #[test]
    fn a_charge_that_ends_request_or_protection_makes_way() {
        let makes_way = |kernel: &str, new_deadline: bool, ms: u64| {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let (first, second) = (bed.spawn(0, 0), bed.spawn(0, 0));
            let runs = bed.schedule(0).task;
            let waits = if runs == first { second } else { first };
            let (curr, at) = (bed.scheduler.task(runs).se, bed.entity(runs).vruntime);
            bed.scheduler.force_vruntime(bed.scheduler.task_entity(waits), at);
            let entity = bed.scheduler.se_mut(curr);
            (entity.deadline, entity.protected_until) = (at.plus(3 * MS as i64), at.plus(MS as i64));
            entity.deadline_at_pick = Some(if new_deadline { at } else { entity.deadline });
            let (entity, shared) = (bed.entity(runs), &bed.scheduler.shared);
            let then = entity.vruntime.plus(bed.scheduler.virtual_time(runs, Ns(ms * MS)) as i64);
            !then.is_before(entity.deadline) || shared.loses_protection(entity.cfs_rq, curr, then)
        };
        for (kernel, new_deadline, from_ms) in
            [("v6.6", true, 3), ("v6.12", false, 3), ("v6.12", true, 1), ("v7.2", false, 1)]
        {
            let by_then = [0, 1, 2, 3].map(|ms| makes_way(kernel, new_deadline, ms));
            assert_eq!(
                by_then,
                [0, 1, 2, 3].map(|ms| ms >= from_ms),
                "{kernel}, another deadline: {new_deadline}"
            );
        }
    }
}
