//! What a CPU can do, and what of it is left for fair tasks.
//!
//! Must not know: groups, what is done with it.

use fairlab_event::Cpu;

use crate::balance::rules::BalanceLoad;
use crate::cfs_rq::CfsRq;
use crate::core::Scheduler;
use crate::generation::Feature;
use crate::pelt::{CpuUtil, RunnableKind};
use crate::select::fits_capacity;
use crate::task::TaskId;

impl Scheduler {
    /// A CPU's load of fair tasks, as balancing sees it, without bias.
    ///
    /// Kernel: `cpu_load()`; to v5.4 `weighted_cpuload()`, which counts only what is runnable (b0fb1eb4f04a).
    pub(crate) fn balanced_load(&self, cpu: Cpu) -> u64 {
        self.load_of_queue(self.cfs(self.rqs[cpu.index()].cfs))
    }

    pub(super) fn load_of_queue(&self, queue: &CfsRq) -> u64 {
        let avg = &queue.tracked.avg;
        // Where runnability is no load, there is only one load to go by.
        let has_both = self.generation.pelt.runnable == RunnableKind::LoadWeighted;
        match self.generation.balance.load {
            BalanceLoad::Runnable if has_both => avg.runnable_avg,
            BalanceLoad::Runnable | BalanceLoad::WithBlocked => avg.load_avg,
        }
    }

    /// How much of a CPU fair tasks use. `boost`: waiting for it counts, too (`cpu_util_cfs_boost()`).
    pub(crate) fn cpu_util(&self, cpu: Cpu, boost: bool) -> u64 {
        self.util_of_queue(cpu, self.cfs(self.rqs[cpu.index()].cfs), boost)
    }

    pub(super) fn util_of_queue(&self, cpu: Cpu, queue: &CfsRq, boost: bool) -> u64 {
        self.generation.pelt.cpu_util(CpuUtil {
            queue: &queue.tracked.avg,
            task: None,
            capacity: self.domains.cpu_capacity_orig(cpu),
            boost,
            util_est_enabled: self.has(Feature::UtilEst),
        })
    }

    /// The load of a CPU's running task if it is too large for the CPU, else 0.
    ///
    /// Kernel: `update_misfit_status()`, kernel/sched/fair.c. Departs: told anew each time, not at ticks and switches.
    pub(crate) fn misfit_task_load(&self, cpu: Cpu) -> u64 {
        let curr = self.curr(cpu);
        let is_fair = self.tasks[curr.index()].policy.is_fair();
        if is_fair && !self.task_fits_capacity(curr, cpu) { self.task_h_load(curr).max(1) } else { 0 }
    }

    /// Whether a task leaves a CPU a fifth of its capacity (`task_fits_capacity()`).
    pub(crate) fn task_fits_capacity(&self, task: TaskId, cpu: Cpu) -> bool {
        fits_capacity(self.task_util_est(task), self.capacity_of(cpu))
    }

    /// What a task is expected to use (`task_util_est()`).
    pub(crate) fn task_util_est(&self, task: TaskId) -> u64 {
        let avg = &self.entity_of(task).avg;
        if self.has(Feature::UtilEst) { self.generation.pelt.task_util_est(avg) } else { avg.util_avg }
    }
}
