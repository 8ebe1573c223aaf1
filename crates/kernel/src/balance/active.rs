//! Active balancing: a running task is pushed to another CPU by the stopper of its own.
//!
//! Must not know: how the stopper gets the CPU.

use fairlab_event::Cpu;

use crate::balance::attempt::Attempt;
use crate::balance::imbalance::MigrationType;
use crate::balance::migrate::Pinned;
use crate::balance::rules::ActiveBalance;
use crate::core::Scheduler;
use crate::schedstat::CpuIdleType;
use crate::task::TaskId;

impl Scheduler {
    /// Whether the machine itself is a reason to push a running task: a CPU that is too small or too little of it is left.
    ///
    /// Kernel: `voluntary_active_balance()`, later part of `need_active_balance()`, kernel/sched/fair.c.
    pub(super) fn voluntary_active_balance(&self, attempt: &Attempt, source: Cpu) -> bool {
        let idle = attempt.idle != CpuIdleType::NotIdle;
        let (there, here) = (self.capacity_of(source), self.capacity_of(attempt.dest));
        let gains = there * attempt.imbalance_pct(self) < here * 100;
        let alone = self.waiting_tasks(source) == 1;
        (idle && alone && self.has_reduced_capacity(attempt, source) && gains)
            || self.asym_active_balance(attempt, source)
            || attempt.migration == MigrationType::Misfit
            || attempt.takes_misfit
    }

    /// Whether tries have failed often enough to push a running task.
    ///
    /// Kernel: `imbalanced_active_balance()`, kernel/sched/fair.c; whatever was to be moved to v5.11, tasks only from v5.12
    /// (e9b9734b7465).
    pub(super) fn imbalanced_active_balance(&self, attempt: &Attempt, nr_balance_failed: u32) -> bool {
        let counts = match self.generation.balance.active {
            ActiveBalance::AnyType => true,
            ActiveBalance::TasksOnly => attempt.migration == MigrationType::Task,
        };
        counts && nr_balance_failed > self.cache_nice_tries(attempt) + 2
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
        let mut pinned = Pinned { other_dest: Some(dest), ..Pinned::default() };
        rq.cfs_tasks
            .oldest_first(&self.tasks)
            .find(|&task| self.can_migrate_task(&attempt, task, source, &mut pinned).is_moved())
    }

    fn pushing(&self, source: Cpu, dest: Cpu) -> Option<Attempt> {
        // The stopper itself is one of them.
        if self.nr_running(source) <= 1 || source == dest {
            return None;
        }
        let level = self.domains.domains_of(dest).iter().position(|sd| sd.span.contains(source))?;
        Some(Attempt {
            cpu: dest,
            level,
            idle: CpuIdleType::Idle,
            dest,
            cpus: self.domain(dest, level).span,
            migration: MigrationType::Load,
            imbalance: 0,
            pushes: true,
            takes_misfit: false,
            lb_bias: false,
        })
    }

    /// Carries out the push from `source`. Returns the task that was moved.
    pub fn apply_push(&mut self, source: Cpu) -> Option<TaskId> {
        self.probe_push(source);
        let pushed = self.decide_push_task(source);
        let tried = self.push_cpu(source).and_then(|dest| self.pushing(source, dest));
        self.balance.cpus[source.index()].push_cpu = None;
        if let Some(Attempt { cpu, level, .. }) = tried {
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
        self.update_rq_clock(source);
        self.detach_task(task, dest);
        self.update_rq_clock(dest);
        self.attach_task(task);
        Some(task)
    }
}
