//! What an open-loop driver knows of the kernel's state at a selection, and sets the core's state right by.
//!
//! Must not know: traces.

use fairlab_event::{Cpu, Ns};

use crate::cpumask::CpuMask;
use crate::decision::CpuDecision;
use crate::ids::TaskId;
use crate::open_loop::{bring_load, bring_usage};
use crate::scheduler::Scheduler;
use crate::select::given_cpu::{GivenCpu, GivenLoad};
use crate::trace::KernelContext;

/// What the kernel's state was.
impl Scheduler {
    /// Stands on `cpu` in a context, at the time of its own runqueue.
    pub fn stand_in_context(&mut self, cpu: Cpu, mode: KernelContext) {
        let clock = self.rqs[cpu.index()].clock;
        self.set_here(cpu, mode, clock);
    }

    /// The CPUs that a task may use, without moving it.
    pub fn force_allowed(&mut self, task: TaskId, allowed: CpuMask) {
        if !allowed.and(self.shared.topology.online()).is_empty() {
            self.shared.tasks[task.index()].allowed = allowed;
        }
    }

    /// Whether a task is a kthread bound to a CPU.
    pub fn force_per_cpu_kthread(&mut self, task: TaskId, is_bound: bool) {
        self.shared.tasks[task.index()].per_cpu_kthread = is_bound;
    }

    /// The same, as it was told.
    pub fn preferred_node(&self, task: TaskId) -> Option<u32> {
        self.shared.tasks[task.index()].preferred_node
    }

    /// How often a task has woken another than last time.
    pub fn force_wakee_flips(&mut self, task: TaskId, flips: u32) {
        self.shared.tasks[task.index()].wakee_flips = flips;
    }

    /// The same, as the core counts.
    pub fn wakee_flips(&self, task: TaskId) -> u32 {
        self.shared.tasks[task.index()].wakee_flips
    }

    /// Counts that a task wakes another at this time, whatever the runqueue's clock says: the kernel goes by jiffies.
    pub fn record_wakee_at(&mut self, now: Ns, waker: TaskId, wakee: TaskId) {
        self.record_wakee_in(self.shared.jiffies_at(now), waker, wakee);
    }

    /// The CPU that a task used before the last one.
    pub fn force_recent_used_cpu(&mut self, task: TaskId, cpu: Cpu) {
        self.shared.tasks[task.index()].recent_used_cpu = cpu;
    }

    /// That CPU, as the core has it.
    pub fn recent_used_cpu(&self, task: TaskId) -> Cpu {
        self.shared.tasks[task.index()].recent_used_cpu
    }

    /// A task's averages.
    pub fn force_task_load(&mut self, task: TaskId, given: GivenLoad) {
        let se = self.shared.tasks[task.index()].se;
        let [of_load, of_runnable] = self.weights_in_sums(se);
        let avg = &mut self.se_mut(se).avg;
        bring_load(avg, given.load, of_load);
        bring_usage(avg, given.runnable, given.util, of_runnable);
    }

    /// The load of a CPU's root queue.
    pub fn force_cpu_load(&mut self, cpu: Cpu, load_avg: u64) {
        let root = self.rqs[cpu.index()].cfs;
        bring_load(&mut self.cfs_mut(root).tracked.avg, load_avg, 1);
    }

    /// Runnability and utilization of a CPU's root queue.
    pub fn force_cpu_util(&mut self, cpu: Cpu, runnable_avg: u64, util_avg: u64) {
        let root = self.rqs[cpu.index()].cfs;
        bring_usage(&mut self.cfs_mut(root).tracked.avg, runnable_avg, util_avg, 1);
    }

    /// What is expected of a CPU's root queue's utilization (`util_est.enqueued`).
    pub fn force_cpu_estimate(&mut self, cpu: Cpu, enqueued: u32) {
        let root = self.rqs[cpu.index()].cfs;
        self.cfs_mut(root).tracked.avg.util_est.enqueued = enqueued;
    }

    /// A task's load alone.
    pub fn force_own_load(&mut self, task: TaskId, load: u64) {
        let se = self.shared.tasks[task.index()].se;
        self.bring_entity_load(se, load);
    }

    /// How long a CPU idles on average, ns.
    pub fn force_avg_idle(&mut self, cpu: Cpu, avg_idle: u64) {
        self.rqs[cpu.index()].idle_time.avg_idle = avg_idle;
    }

    /// What a search by `cpu` takes on average, ns.
    pub fn avg_scan_cost(&self, cpu: Cpu) -> u64 {
        self.rqs[cpu.index()].idle_time.avg_scan_cost
    }

    /// What a search by `cpu` takes on average, and what is left by now of the idle time that searches may use, ns.
    pub fn force_scan_costs(&mut self, cpu: Cpu, cost: u64, left: u64) {
        let jiffy = self.shared.jiffies();
        let idle_time = &mut self.rqs[cpu.index()].idle_time;
        idle_time.avg_scan_cost = cost;
        (idle_time.wake_stamp, idle_time.wake_avg_idle) = (jiffy, left);
    }

    /// How many CPUs a search near `cpu` looks at.
    pub fn force_nr_idle_scan(&mut self, cpu: Cpu, nr_idle_scan: u32) {
        if let Some(shared) = self.domains.of_cpu(cpu).sd_llc_shared {
            self.domains.shared_mut(shared).nr_idle_scan = nr_idle_scan;
        }
    }

    /// The same.
    pub fn nr_idle_scan(&self, cpu: Cpu) -> Option<u32> {
        let shared = self.domains.of_cpu(cpu).sd_llc_shared?;
        Some(self.domains.shared(shared).nr_idle_scan)
    }

    /// Whether the cache of `cpu` may have a wholly idle core.
    pub fn force_idle_cores(&mut self, cpu: Cpu, has_idle_cores: bool) {
        if let Some(shared) = self.domains.of_cpu(cpu).sd_llc_shared {
            self.domains.shared_mut(shared).has_idle_cores = has_idle_cores;
        }
    }

    /// Whether that of `cpu` may have one, as the core has it.
    pub fn has_idle_cores(&self, cpu: Cpu) -> Option<bool> {
        let shared = self.domains.of_cpu(cpu).sd_llc_shared?;
        Some(self.domains.shared(shared).has_idle_cores)
    }

    /// From now on selections find this, by CPU, whatever the core's state; empty: the core's state, as it was.
    ///
    /// It stands in the core's own state until the next call: meanwhile nothing may go on there but questions.
    pub fn give_cpus(&mut self, given: &[GivenCpu]) {
        let own = std::mem::take(&mut self.own_cpus);
        self.force_cpus(&own);
        let found = |cpu| GivenCpu {
            idle: Some(self.shared.idle_cpus.contains(cpu)),
            nr_running: Some(self.rqs[cpu.index()].nr_running),
        };
        let known = given.len().min(self.rqs.len());
        self.own_cpus = (0..known as u32).map(|cpu| found(Cpu(cpu))).collect();
        self.force_cpus(&given[..known]);
    }

    fn force_cpus(&mut self, given: &[GivenCpu]) {
        for (cpu, given) in (0..).map(Cpu).zip(given) {
            self.shared.cfs_rqs.touch(cpu.index());
            match given.idle {
                Some(true) => self.shared.idle_cpus.set(cpu),
                Some(false) => self.shared.idle_cpus.clear(cpu),
                None => {}
            }
            let nr_running = &mut self.rqs[cpu.index()].nr_running;
            *nr_running = given.nr_running.unwrap_or(*nr_running);
        }
    }

    /// From now on selections count this of tasks' CPUs' load (`task_h_load()`); empty: what the core's state tells.
    pub fn give_loads(&mut self, given: Vec<(TaskId, u64)>) {
        self.shared.hooks.answer_loads(given);
    }

    /// The same; `None` where it is not idle.
    pub fn force_idle_stamp(&mut self, cpu: Cpu, since: Option<Ns>) {
        self.rqs[cpu.index()].idle_time.idle_stamp = since;
    }

    /// Remembers a selection that was made on `here`, as far as it does not depend on what was selected.
    pub fn note_selection(&mut self, here: Cpu, task: TaskId, decision: CpuDecision) {
        self.remember_selection(here, task, decision);
    }
}
