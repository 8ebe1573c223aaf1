//! `kernel/sched/rt.c`: tasks of fixed priority.
//!
//! As far as fair tasks meet them: they go first, round-robin ones take turns, a woken one looks for a CPU that runs
//! something less urgent.

pub(crate) mod bandwidth;
mod queue;
pub(crate) mod rules;
mod time;

use fairlab_event::{Cpu, EventKind, Ns, Prio};

use crate::balance::LeftForFair;
use crate::decision::{
    CpuDecision, IdleCpuSearch, PreemptDecision, PreemptReason, SelectReason, TickDecision, TickReason,
};
use crate::ids::TaskId;
use crate::scheduler::Scheduler;
use crate::task::Policy;

pub(crate) use queue::{RtPeriod, RtRq};
#[cfg(test)]
pub(crate) use tests::SITUATIONS;
pub(crate) use time::RtTime;

/// How long a round-robin task runs before the next one of its priority does (`RR_TIMESLICE`).
const ROUND_ROBIN_SLICE: u64 = 100_000_000;

impl Scheduler {
    /// Kernel: `enqueue_task_rt()`, at the tail of its priority's list.
    pub(crate) fn enqueue_task_rt(&mut self, task: TaskId) {
        let cpu = self.shared.tasks[task.index()].cpu;
        self.shared.cpus[cpu.index()].rt.insert(&self.shared.tasks, task);
        self.start_rt_bandwidth();
    }

    /// Kernel: `dequeue_task_rt()`.
    pub(crate) fn dequeue_task_rt(&mut self, task: TaskId) {
        self.update_curr_rt(task);
        let cpu = self.shared.tasks[task.index()].cpu;
        self.shared.cpus[cpu.index()].rt.remove(task);
    }

    /// Charges a running real-time task.
    ///
    /// Kernel: `update_curr_rt()`, kernel/sched/rt.c.
    pub(crate) fn update_curr_rt(&mut self, task: TaskId) {
        let cpu = self.shared.tasks[task.index()].cpu;
        if self.curr(cpu) != task {
            return;
        }
        let now = self.rqs[cpu.index()].clock.0;
        let entity = &mut self.shared.entities[self.shared.tasks[task.index()].se.0 as usize];
        if now <= entity.exec_start {
            return;
        }
        let runtime = Ns(now - entity.exec_start);
        entity.exec_start = now;
        entity.sum_exec_runtime += runtime.0;
        // From v6.12 on the event is reported for every class.
        if self.shared.generation.features.has(crate::generation::Feature::DelayDequeue) {
            let task = &self.shared.tasks[task.index()];
            let (comm, pid) = (task.comm, task.pid);
            self.shared.report(EventKind::SchedStatRuntime { comm, pid, runtime, vruntime: None });
        }
        if self.shared.generation.balance.left_for_fair == LeftForFair::ShareOfTime {
            let scale = self.cpu_scale(cpu).frequency;
            self.rqs[cpu.index()].rt_time.charge(runtime.0 * scale, now);
        }
        if self.charge_rt_limit(cpu, runtime.0) {
            self.shared.resched_curr(cpu, "update_curr_rt");
        }
    }

    /// A real-time task gets the CPU (`set_next_task_rt()`).
    pub(crate) fn set_next_task_rt(&mut self, task: TaskId, picked: bool) {
        let cpu = self.shared.tasks[task.index()].cpu;
        if picked && !self.shared.tasks[self.curr(cpu).index()].policy.is_rt() {
            self.rq_lock(cpu).update_rt_rq_load_avg(false);
        }
        let clock = self.rqs[self.shared.tasks[task.index()].cpu.index()].clock.0;
        let entity = &mut self.shared.entities[self.shared.tasks[task.index()].se.0 as usize];
        entity.exec_start = clock;
    }

    /// The tick: a round-robin task that has used its slice goes behind the others of its priority.
    ///
    /// Kernel: `task_tick_rt()`, kernel/sched/rt.c.
    pub(crate) fn task_tick_rt(&mut self, task: TaskId) -> TickDecision {
        self.update_curr_rt(task);
        self.rq_lock(self.shared.tasks[task.index()].cpu).update_rt_rq_load_avg(true);
        let decide = |resched, reason| TickDecision { resched, reason };
        let Policy::RoundRobin(_) = self.shared.tasks[task.index()].policy else {
            return decide(false, TickReason::WithinSlice);
        };
        let entity = &mut self.shared.entities[self.shared.tasks[task.index()].se.0 as usize];
        if entity.sum_exec_runtime - entity.prev_sum_exec_runtime < ROUND_ROBIN_SLICE {
            return decide(false, TickReason::WithinSlice);
        }
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
        if !self.has_equal(task) {
            return decide(false, TickReason::Alone);
        }
        self.requeue_task_rt(task);
        self.shared.resched_curr(self.shared.tasks[task.index()].cpu, "task_tick_rt");
        decide(true, TickReason::SliceUsed)
    }

    /// To the tail of its priority's list (`requeue_task_rt()`); a yield does the same.
    pub(crate) fn requeue_task_rt(&mut self, task: TaskId) {
        let cpu = self.shared.tasks[task.index()].cpu;
        let queue = &mut self.shared.cpus[cpu.index()].rt;
        queue.remove(task);
        queue.insert(&self.shared.tasks, task);
    }

    /// Whether another queued real-time task of its CPU is more urgent than this one (`highest_prio.curr`).
    pub(crate) fn has_more_urgent(&self, task: TaskId) -> bool {
        let known = &self.shared.tasks[task.index()];
        let first = self.shared.cpus[known.cpu.index()].rt.queue.first();
        first.is_some_and(|first| self.shared.tasks[first.index()].prio() < known.prio())
    }

    /// Where a queued real-time task stands among its CPU's.
    pub(crate) fn place_among_rt(&self, task: TaskId) -> Option<usize> {
        let cpu = self.shared.tasks[task.index()].cpu;
        self.shared.cpus[cpu.index()].rt.queue.iter().position(|&queued| queued == task)
    }

    /// A task that was only taken off for a change of its parameters has not left its list (`place`); one that became less
    /// urgent goes before its new equals (`ENQUEUE_HEAD`).
    ///
    /// Kernel: `move_entity()`, `__enqueue_rt_entity()`, kernel/sched/rt.c.
    pub(crate) fn keep_place_among_rt(&mut self, task: TaskId, place: Option<usize>, old_prio: Prio) {
        let known = &self.shared.tasks[task.index()];
        let (prio, cpu) = (known.prio(), known.cpu);
        if !known.policy.is_rt() || (place.is_none() && prio <= old_prio) {
            return;
        }
        let tasks = &self.shared.tasks;
        let queue = &mut self.shared.cpus[cpu.index()].rt.queue;
        queue.retain(|&queued| queued != task);
        let head = || queue.partition_point(|other| tasks[other.index()].prio() < prio);
        let at = place.unwrap_or_else(head);
        queue.insert(at, task);
    }

    fn has_equal(&self, task: TaskId) -> bool {
        let (cpu, prio) = (self.shared.tasks[task.index()].cpu, self.shared.tasks[task.index()].prio());
        let queue = &self.shared.cpus[cpu.index()].rt.queue;
        queue.iter().any(|&other| other != task && self.shared.tasks[other.index()].prio() == prio)
    }

    /// Whether a woken real-time task takes the CPU from a running one: if it is more urgent.
    ///
    /// Kernel: `wakeup_preempt_rt()` (to v6.6 `check_preempt_curr_rt()`), kernel/sched/rt.c.
    /// Departs: of equals the running one stays, even if only it could run elsewhere.
    pub(crate) fn wakeup_preempt_rt(&self, curr: TaskId, task: TaskId) -> PreemptDecision {
        match self.shared.tasks[task.index()].prio() < self.shared.tasks[curr.index()].prio() {
            true => PreemptDecision { preempt: true, reason: PreemptReason::MoreUrgent },
            false => PreemptDecision { preempt: false, reason: PreemptReason::LessUrgent },
        }
    }

    /// Where a real-time task is queued: where it was, unless something as urgent runs there; then on the allowed CPU
    /// that runs the least urgent task, the one it was on and the waker's first among equals. Pure.
    ///
    /// Kernel: `select_task_rq_rt()`, `find_lowest_rq()`, kernel/sched/rt.c.
    /// Departs: no pushing and pulling of waiting tasks afterwards; nearness counts only by cache.
    pub(crate) fn select_task_rq_rt(&self, task: TaskId, here: Cpu) -> CpuDecision {
        let woken = &self.shared.tasks[task.index()];
        let decide = |cpu, reason| CpuDecision {
            cpu,
            reason,
            scanned: 1,
            no_idle_core_in: None,
            search: IdleCpuSearch::default(),
        };
        let running = &self.shared.tasks[self.curr(woken.cpu).index()];
        if woken.allowed.contains(woken.cpu) && running.prio() > woken.prio() {
            return decide(woken.cpu, SelectReason::LessUrgentThere);
        }
        let rank = |cpu: Cpu| {
            let near = self.shared.topology.share_cache(cpu, woken.cpu);
            (self.urgency(cpu), cpu == woken.cpu, cpu == here, near, std::cmp::Reverse(cpu))
        };
        let allowed = woken.allowed.and(self.shared.topology.online());
        let least = allowed.iter().max_by_key(|&cpu| rank(cpu)).expect("a task is allowed somewhere");
        decide(least, SelectReason::LeastUrgent)
    }

    /// How little urgent what a CPU runs is: idle least of all.
    fn urgency(&self, cpu: Cpu) -> i32 {
        if self.idle_cpu(cpu) {
            i32::MAX
        } else {
            self.shared.tasks[self.curr(cpu).index()].prio().0.min(100)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::ablation::AblationSituation;
    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::{MS, SchedulerTestbed};
    use fairlab_event::{Cpu, Prio};

    #[test]
    fn real_time_goes_before_fair_and_the_more_urgent_first() {
        let mut bed = SchedulerTestbed::new("v6.6", 1, 1);
        let fair = bed.spawn(-20, 0);
        let low = bed.spawn_with(0, 0, Policy::Fifo(10), CpuMask::ALL);
        assert_eq!(bed.schedule(0).task, low);
        let high = bed.spawn_with(0, 0, Policy::Fifo(50), CpuMask::ALL);
        assert!(bed.scheduler.need_resched(Cpu(0)));
        assert_eq!(bed.schedule(0).task, high);
        assert_eq!(bed.scheduler.task(high).prio(), Prio(49));
        bed.sleep(0);
        assert_eq!(bed.scheduler.curr(Cpu(0)), low);
        bed.sleep(0);
        assert_eq!(bed.scheduler.curr(Cpu(0)), fair);
        assert!(bed.wake(low, 0));
    }

    #[test]
    fn round_robin_takes_turns_of_100_ms_and_fifo_does_not() {
        for (policy, turn) in [(Policy::RoundRobin(5), Some(100)), (Policy::Fifo(5), None)] {
            let mut bed = SchedulerTestbed::new("v6.12", 1, 1);
            let (first, _) =
                (bed.spawn_with(0, 0, policy, CpuMask::ALL), bed.spawn_with(0, 0, policy, CpuMask::ALL));
            let ran = bed.run(0, 250);
            assert_eq!(ran.iter().position(|&task| task != first), turn, "{policy:?}");
        }
    }

    pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[
        super::bandwidth::tests::SHARE,
        ("class-change-runtime", used_after_turning),
        ("idle-sync-at-idle", used_of_a_small_cpu),
    ];

    /// How much of a CPU of half the capacity real-time tasks have used whose only one ran for 8 ms.
    fn used_of_a_small_cpu(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::small_and_big(kernel);
        bed.spawn_with(0, 0, Policy::Fifo(1), CpuMask::single(Cpu(0)));
        bed.pass(8 * MS);
        bed.sleep(0);
        bed.scheduler.shared.cpus[0].avg_rt.util_avg
    }

    /// From 17e3e88ed0b6 of v6.18 until 98c88dc8a1ac of v6.19 time at low speed counted as if at full speed.
    #[test]
    fn what_a_real_time_task_uses_of_a_small_cpu_is_counted_at_that_cpus_speed() {
        let used = ["v6.17", "v6.18", "v6.19"].map(used_of_a_small_cpu);
        assert!(used[0] == used[2] && used[1] > used[0] * 3 / 2, "{used:?}");
    }

    /// How much of a CPU real-time tasks have used whose only task turned to them a while ago, after 64 ms among the fair ones.
    fn used_after_turning(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 1, 1);
        let task = bed.spawn(0, 0);
        bed.run(0, 64);
        bed.at(0);
        bed.scheduler.set_scheduler(task, Policy::Fifo(1), 0, None);
        bed.run(0, 4);
        bed.scheduler.shared.cpus[0].avg_rt.util_avg
    }

    #[test]
    fn what_a_task_ran_before_it_turned_to_real_time_was_counted_to_v5_13() {
        let used = ["v5.13", "v5.14"].map(used_after_turning);
        assert!(used[0] > 700 && (60..100).contains(&used[1]), "{used:?}");
    }

    #[test]
    fn a_woken_one_avoids_a_cpu_with_something_as_urgent() {
        let mut bed = SchedulerTestbed::new("v6.6", 4, 1);
        let sleeper = bed.spawn_with(0, 1, Policy::Fifo(10), CpuMask::ALL);
        bed.sleep(1);
        assert_eq!(bed.select(sleeper, 0, false).cpu, Cpu(1));
        bed.spawn_with(0, 1, Policy::Fifo(20), CpuMask::ALL);
        bed.spawn(0, 0);
        assert_eq!(bed.select(sleeper, 0, false).cpu, Cpu(2), "idle, before the fair one's");
        bed.pass(MS);
        assert!(bed.scheduler.check_invariants().is_ok());
    }
}
