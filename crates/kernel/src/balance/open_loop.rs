//! What a verifier asks and sets: a pass over a queue that a real kernel chose, a push, and counts that it printed.
//!
//! Must not know: traces.

use fairlab_event::Cpu;

use crate::balance::attempt::{Attempt, BalanceDecision};
use crate::balance::detach::Pull;
use crate::balance::imbalance::{Imbalance, MigrationType};
use crate::balance::migrate::Pinned;
use crate::core::Scheduler;
use crate::cpumask::CpuMask;
use crate::generation::Feature;
use crate::schedstat::CpuIdleType;
use crate::task::TaskId;

/// A task of a queue as balancing finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundTask {
    /// Which one.
    pub task: TaskId,
    /// `load_avg`.
    pub load: u64,
    /// `util_avg`.
    pub util: u64,
    /// `util_est.enqueued` and `util_est.ewma`.
    pub estimates: [u32; 2],
    /// `exec_start`: the clock of its runqueue up to which it was charged, ns.
    pub exec_start: u64,
}

impl Scheduler {
    /// What a pass over the queue of `source` would take to move `imbalance` to `cpu`, whatever made it the busiest. Pure.
    pub fn decide_pull(
        &self,
        cpu: Cpu,
        level: usize,
        idle: CpuIdleType,
        source: Cpu,
        imbalance: Imbalance,
    ) -> Pull {
        let mut attempt = self.given_attempt(cpu, level, idle, imbalance);
        let mut queue = self.source_queue(source);
        self.detach_tasks(&mut attempt, &mut queue, &mut Pinned::default())
    }

    /// Whether `cpu`, after it has moved nothing from the queue of `source`, has its stopper push the running task. Pure.
    pub fn decide_push_after(
        &self,
        cpu: Cpu,
        level: usize,
        idle: CpuIdleType,
        source: Cpu,
        imbalance: Imbalance,
    ) -> bool {
        let attempt = self.given_attempt(cpu, level, idle, imbalance);
        let mut decision = BalanceDecision::new(&attempt);
        self.decide_push(&attempt, source, &mut decision);
        decision.push
    }

    fn given_attempt(&self, cpu: Cpu, level: usize, idle: CpuIdleType, imbalance: Imbalance) -> Attempt {
        Attempt {
            cpu,
            level,
            idle,
            dest: cpu,
            cpus: self.domain(cpu, level).span,
            migration: imbalance.migration,
            imbalance: imbalance.amount,
            pushes: false,
            takes_misfit: imbalance.migration == MigrationType::Misfit,
            lb_bias: self.has(Feature::LbBias),
        }
    }

    /// Which task the stopper of `source` would push to `dest`. Pure.
    pub fn decide_push_to(&self, source: Cpu, dest: Cpu) -> Option<TaskId> {
        self.pushed_task(source, dest)
    }

    /// A pass over the queue of `cpu` has come to `task`: those before it were looked at, and stand in front of the others
    /// from now on.
    pub fn pass_over_until(&mut self, cpu: Cpu, task: TaskId) {
        let mut list = self.rqs[cpu.index()].cfs_tasks;
        let left = list.oldest_first(&self.tasks).take_while(|&other| other != task).collect::<Vec<_>>();
        for task in left {
            list.remove(&mut self.tasks, task);
            list.push_newest(&mut self.tasks, task);
        }
        self.rqs[cpu.index()].cfs_tasks = list;
    }

    /// The stopper of `source` has been asked to push a task to that CPU, or is done.
    pub fn force_push(&mut self, source: Cpu, dest: Option<Cpu>) {
        self.balance.cpus[source.index()].push_cpu = dest;
    }

    /// How often balancing of a domain has failed in a row, as a real kernel counted.
    pub fn force_balance_failures(&mut self, cpu: Cpu, level: usize, failures: u32) {
        self.domain_state_mut(cpu, level).nr_balance_failed = failures;
    }

    /// The tasks of `cpu`'s queue in the order in which balancing passes over them, as a real kernel's try found them. Those
    /// that the core has elsewhere are left out.
    pub fn force_found_tasks(&mut self, cpu: Cpu, found: &[FoundTask]) {
        let mut list = self.rqs[cpu.index()].cfs_tasks;
        for given in found {
            if !list.oldest_first(&self.tasks).any(|task| task == given.task) {
                continue;
            }
            list.remove(&mut self.tasks, given.task);
            list.push_newest(&mut self.tasks, given.task);
            let se = self.tasks[given.task.index()].se;
            let entity = self.se_mut(se);
            entity.exec_start = given.exec_start;
            (entity.avg.load_avg, entity.avg.util_avg) = (given.load, given.util);
            let estimate = &mut entity.avg.util_est;
            [estimate.enqueued, estimate.ewma] = given.estimates;
        }
        self.rqs[cpu.index()].cfs_tasks = list;
    }

    /// Which groups of a domain affinity kept from being evened out, by their first CPUs.
    pub fn force_group_marks(&mut self, cpu: Cpu, level: usize, marked: &CpuMask) {
        let groups = self.domains.groups(self.domain_id(cpu, level)).collect::<Vec<_>>();
        for id in groups {
            let first = self.domains.group(id).span.lowest();
            self.domains.capacity_of_group_mut(id).imbalance = first.is_some_and(|cpu| marked.contains(cpu));
        }
    }

    /// So many wakeups are on their way to `cpu`.
    pub fn force_ttwu_pending(&mut self, cpu: Cpu, pending: u32) {
        self.rqs[cpu.index()].ttwu_pending = pending;
    }

    /// Load, waiting and utilization of a CPU as balancing sees them, and how many tasks are queued there.
    pub fn seen_by_balancing(&self, cpu: Cpu) -> (u64, u64, u64, u32) {
        let queue = self.cfs(self.rqs[cpu.index()].cfs);
        let waiting = queue.tracked.avg.runnable_avg;
        (self.balanced_load(cpu), waiting, self.cpu_util(cpu, false), self.nr_running(cpu))
    }
}
