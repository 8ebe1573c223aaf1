//! Which CPUs have nothing to do.

use fairlab_event::{Cpu, Ns, Untyped};

use crate::cpumask::CpuMask;
use crate::scheduler::Scheduler;

impl Scheduler {
    /// Whether `cpu` has nothing to do and nothing on the way (`idle_cpu()`).
    ///
    /// A CPU that is about to go idle but still balances (new-idle) does not count: its last task is still `curr`.
    #[inline]
    pub(crate) fn idle_cpu(&self, cpu: Cpu) -> bool {
        self.shared.idle_cpus.contains(cpu)
    }

    /// Whether all that `cpu` runs is `SCHED_IDLE` (`sched_idle_cpu()`).
    pub(crate) fn sched_idle_cpu(&self, cpu: Cpu) -> bool {
        self.shared.idle_policy_used && {
            let rq = &self.rqs[cpu.index()];
            rq.nr_running > 0 && rq.nr_running == self.cfs(rq.cfs).h_nr_idle
        }
    }

    /// `cpu` has gone into an idle state that takes so long to leave; `None`: it is in none, or nothing is known.
    ///
    /// Kernel: `idle_set_state()`, kernel/sched/sched.h.
    pub fn idle_set_state(&mut self, cpu: Cpu, exit_latency: Option<Ns>) {
        self.rqs[cpu.index()].exit_latency = exit_latency.map(|latency| latency.0);
    }

    /// Reports that `cpu`, which is the one that the scheduler is on, goes into its idle state of that number, or out of it.
    ///
    /// Kernel: `trace_cpu_idle()` in `cpuidle_enter_state()`, drivers/cpuidle/cpuidle.c; out is `PWR_EVENT_EXIT`.
    pub fn report_idle_state(&mut self, cpu: Cpu, state: Option<u32>) {
        self.shared.report_text(Untyped::CpuIdle.name(), || {
            format!("state={} cpu_id={}", state.unwrap_or(u32::MAX), cpu.0)
        });
    }

    /// The idle CPUs as a set, where a search cannot meet anything else that it would take.
    pub(crate) fn idle_cpus_only(&self) -> Option<&CpuMask> {
        (!self.shared.idle_policy_used).then_some(&self.shared.idle_cpus)
    }
}
