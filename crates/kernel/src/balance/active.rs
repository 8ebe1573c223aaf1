//! Active balancing: a running task is pushed to another CPU by the stopper of its own.
//!
//! Must not know: how the stopper gets the CPU.

use fairlab_event::Cpu;

use crate::balance::decided::LbEnv;
use crate::balance::imbalance::MigrationType;
use crate::balance::migrate::LbfFlags;
use crate::balance::rules::ActiveBalance;
use crate::core::WakeFlags;
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

impl Scheduler {
    /// Whether the machine itself is a reason to push a running task: a CPU that is too small or less preferred, or of which
    /// other classes leave too little.
    ///
    /// Kernel: `voluntary_active_balance()`, later part of `need_active_balance()`, kernel/sched/fair.c.
    pub(super) fn voluntary_active_balance(&self, attempt: &LbEnv, source: Cpu) -> bool {
        self.asym_active_balance(attempt, source)
            || self.has_more_left(attempt, source)
            || matches!(attempt.migration, MigrationType::Misfit | MigrationType::LlcTask)
            || attempt.takes_misfit
    }

    /// Whether an idle CPU has more left for the only fair task of one of which other classes use much.
    fn has_more_left(&self, attempt: &LbEnv, source: Cpu) -> bool {
        let sd = self.domain(attempt.cpu, attempt.level);
        attempt.idle != CpuIdleType::NotIdle
            && self.waiting_tasks(source) == 1
            && self.has_reduced_capacity(source, sd)
            && self.capacity_of(source) * u64::from(sd.imbalance_pct)
                < self.capacity_in(attempt, attempt.dest) * 100
    }

    /// Whether tries have failed often enough to push a running task.
    ///
    /// Kernel: `imbalanced_active_balance()`, kernel/sched/fair.c; whatever was to be moved to v5.11, tasks only from v5.12
    /// (e9b9734b7465).
    pub(super) fn imbalanced_active_balance(&self, attempt: &LbEnv, nr_balance_failed: u32) -> bool {
        let counts = match self.shared.generation.balance.active {
            ActiveBalance::AnyType => true,
            ActiveBalance::TasksOnly => attempt.migration == MigrationType::Task,
        };
        counts && nr_balance_failed > self.cache_nice_tries(attempt) + 2
    }

    /// Tells the stoppers, by CPU: then they are woken as soon as a push is begun, so that what is balanced next finds them queued.
    pub fn set_stoppers(&mut self, stoppers: Vec<TaskId>) {
        self.balance.stoppers = stoppers;
    }

    /// The stopper of `source`, if it sleeps, is woken to push a task. Where the wakeup is left to that CPU, the driver does it.
    ///
    /// Kernel: `stop_one_cpu_nowait()`, kernel/stop_machine.c.
    pub fn stop_one_cpu_nowait(&mut self, source: Cpu) {
        let Some(&stopper) = self.balance.stoppers.get(source.index()) else { return };
        if self.task(stopper).is_asleep() && !self.ttwu_queue_cond(stopper, source, false) {
            self.ttwu_begin(stopper, WakeFlags::default());
            self.ttwu_stat(stopper);
            self.ttwu_do_activate(stopper, WakeFlags::default());
        }
    }

    /// The CPU to which the stopper of `source` is to push a task.
    pub fn push_cpu(&self, source: Cpu) -> Option<Cpu> {
        self.balance.cpus[source.index()].push_cpu
    }

    /// Which task the stopper of `source`, which runs now, would push, and to which CPU.
    ///
    /// Kernel: `active_load_balance_cpu_stop()`, `detach_one_task()`, kernel/sched/fair.c.
    pub fn decide_push_task(&self, source: Cpu) -> Option<(TaskId, Cpu)> {
        let dest = self.push_cpu(source)?;
        Some((self.pushed_task(source, dest)?, dest))
    }

    /// The task that ran longest ago of those that may go (`detach_one_task()`).
    pub(super) fn pushed_task(&self, source: Cpu, dest: Cpu) -> Option<TaskId> {
        let attempt = self.pushing(source, dest)?;
        let rq = &self.rqs[source.index()];
        let mut pinned = LbfFlags { other_dest: Some(dest), ..LbfFlags::default() };
        rq.cfs_tasks
            .oldest_first(&self.shared.tasks)
            .find(|&task| self.can_migrate_task(&attempt, task, source, &mut pinned).is_moved())
    }

    fn pushing(&self, source: Cpu, dest: Cpu) -> Option<LbEnv> {
        // The stopper itself is one of them.
        if self.nr_running(source) <= 1 || source == dest {
            return None;
        }
        let level = self.domains.domains_of(dest).iter().position(|sd| sd.span.contains(source))?;
        let pushes_llc_task = self.balance.cpus[source.index()].pushes_llc_task;
        let attempt = self.attempt(dest, level, CpuIdleType::Idle);
        Some(LbEnv { pushes: true, pushes_llc_task, lb_bias: false, ..attempt })
    }

    /// Carries out the push from `source`. Returns the task that was moved.
    pub fn apply_push(&mut self, source: Cpu) -> Option<TaskId> {
        let pushed = self.decide_push_task(source);
        let tried = self.push_cpu(source).and_then(|dest| self.pushing(source, dest));
        self.balance.cpus[source.index()].push_cpu = None;
        if let Some(LbEnv { cpu, level, .. }) = tried {
            let sd = self.domain_mut(cpu, level);
            sd.counters.alb_count += 1;
            if pushed.is_some() {
                sd.counters.alb_pushed += 1;
                sd.counters.lb[CpuIdleType::Idle.index()].gained += 1;
                sd.balance.nr_balance_failed = 0;
            } else {
                sd.counters.alb_failed += 1;
            }
        }
        let (task, dest) = pushed?;
        self.rq_lock(source).update_rq_clock();
        self.detach_task(task, dest);
        self.rq_lock(dest).update_rq_clock();
        self.attach_task(task);
        Some(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::{MS, SchedulerTestbed};

    /// Whether the running task of CPU 1 should be pushed to CPU 0 after so many tries in vain.
    fn pushes(kernel: &str, migration: MigrationType, failed: u32) -> bool {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        bed.spawn(0, 1);
        bed.spawn(0, 1);
        let attempt =
            LbEnv { migration, pushes: false, ..bed.scheduler.pushing(Cpu(1), Cpu(0)).expect("two tasks") };
        bed.scheduler.voluntary_active_balance(&attempt, Cpu(1))
            || bed.scheduler.imbalanced_active_balance(&attempt, failed)
    }

    #[test]
    fn a_running_task_is_pushed_after_more_tries_in_vain_than_hot_tasks_stay_and_two() {
        use MigrationType::{Load, Task, Util};
        for kernel in ["v5.4", "v5.11", "v5.12"] {
            assert_eq!([3, 4].map(|failed| pushes(kernel, Task, failed)), [false, true], "{kernel}");
        }
        assert_eq!([Load, Util].map(|migration| pushes("v5.11", migration, 4)), [true, true]);
        assert_eq!(
            [Load, Util].map(|migration| pushes("v5.12", migration, 40)),
            [false, false],
            "tasks only"
        );
    }

    #[test]
    fn a_task_that_is_too_large_for_its_cpu_is_pushed_at_once() {
        assert!(pushes("v5.10", MigrationType::Misfit, 0));
        assert!(!pushes("v5.10", MigrationType::Load, 0));
        let mut bed = SchedulerTestbed::new("v5.4", 2, 1);
        bed.spawn(0, 1);
        bed.spawn(0, 1);
        let attempt =
            LbEnv { takes_misfit: true, ..bed.scheduler.pushing(Cpu(1), Cpu(0)).expect("two tasks") };
        assert!(bed.scheduler.voluntary_active_balance(&attempt, Cpu(1)), "by load, too");
    }

    /// Tasks on CPU 1: the one that ran longest ago is bound to it. The stopper pushes another to CPU 0.
    #[test]
    fn the_stopper_pushes_the_task_that_ran_longest_ago_of_those_that_may_go() {
        let mut bed = SchedulerTestbed::new("v6.6", 4, 1);
        let tasks = [CpuMask::single(Cpu(1)), CpuMask::ALL, CpuMask::ALL]
            .map(|allowed| bed.spawn_with(0, 1, Policy::Normal, allowed));
        let stopper = bed.spawn_with(0, 1, Policy::Stop, CpuMask::single(Cpu(1)));
        bed.pass(20 * MS);
        bed.schedule(1);
        assert_eq!(bed.scheduler.curr(Cpu(1)), stopper);
        bed.scheduler.balance.cpus[1].push_cpu = Some(Cpu(0));
        bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = 9;
        bed.at(1);
        assert_eq!(bed.scheduler.decide_push_task(Cpu(1)), Some((tasks[1], Cpu(0))));
        assert_eq!(bed.scheduler.apply_push(Cpu(1)), Some(tasks[1]));
        assert_eq!(bed.scheduler.task(tasks[1]).cpu(), Cpu(0));
        assert_eq!([0, 1].map(|cpu| bed.scheduler.nr_running(Cpu(cpu))), [1, 3]);
        assert_eq!(bed.scheduler.rqs[0].clock, bed.scheduler.rqs[1].clock, "both clocks stand at now");
        assert_eq!(bed.scheduler.check_invariants(), Ok(()));
        assert_eq!(bed.scheduler.push_cpu(Cpu(1)), None, "the next push may begin");
        let sd = bed.scheduler.domain(Cpu(0), 0);
        let counts = (sd.counters.alb_count, sd.counters.alb_pushed, sd.counters.alb_failed);
        assert_eq!((counts, sd.balance.nr_balance_failed), ((1, 1, 0), 0));
        assert_eq!(sd.counters.lb[CpuIdleType::Idle.index()].gained, 1, "as if an idle CPU had pulled it");
    }

    /// CPU 1 runs a task beside a bound one that waits; CPU 0 has failed to take one often enough.
    #[test]
    fn a_stopper_is_queued_as_soon_as_a_push_is_begun() {
        let queued = |knows_stoppers: bool| {
            let mut bed = SchedulerTestbed::new("v6.6", 2, 1);
            let stoppers = [0, 1].map(|cpu| {
                let stopper = bed.spawn_with(0, cpu, Policy::Stop, CpuMask::single(Cpu(cpu)));
                assert_eq!(bed.sleep(cpu), stopper);
                stopper
            });
            bed.spawn(0, 1);
            bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(1)));
            if knows_stoppers {
                bed.scheduler.set_stoppers(stoppers.to_vec());
            }
            bed.pass(100 * MS);
            bed.at(0);
            bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = 3;
            let decision = bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::Idle);
            assert!(decision.push, "{decision:?}");
            bed.scheduler.apply_balance(&decision);
            bed.scheduler.nr_running(Cpu(1))
        };
        assert_eq!([false, true].map(queued), [2, 3]);
    }

    #[test]
    fn a_push_that_finds_no_task_is_counted_and_forgotten() {
        let mut bed = SchedulerTestbed::new("v6.6", 4, 1);
        for _ in 0..2 {
            bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(1)));
        }
        bed.scheduler.balance.cpus[1].push_cpu = Some(Cpu(0));
        bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = 9;
        bed.at(1);
        assert_eq!(bed.scheduler.apply_push(Cpu(1)), None);
        assert_eq!(bed.scheduler.push_cpu(Cpu(1)), None);
        let sd = bed.scheduler.domain(Cpu(0), 0);
        let counts = (sd.counters.alb_count, sd.counters.alb_pushed, sd.counters.alb_failed);
        assert_eq!((counts, sd.balance.nr_balance_failed), ((1, 0, 1), 9));
    }

    #[test]
    fn nothing_is_pushed_if_only_the_stopper_is_left_or_to_the_same_cpu() {
        let pushed = |tasks, dest| {
            let mut bed = SchedulerTestbed::new("v6.6", 2, 1);
            for _ in 0..tasks {
                bed.spawn(0, 1);
            }
            bed.spawn_with(0, 1, Policy::Stop, CpuMask::single(Cpu(1)));
            bed.pass(20 * MS);
            bed.schedule(1);
            bed.scheduler.balance.cpus[1].push_cpu = Some(Cpu(dest));
            bed.at(1);
            let pushed = bed.scheduler.apply_push(Cpu(1)).is_some();
            assert_eq!(bed.scheduler.domain(Cpu(0), 0).counters.alb_count, u64::from(pushed));
            pushed
        };
        assert_eq!((pushed(0, 0), pushed(1, 0), pushed(1, 1)), (false, true, false));
    }
}
