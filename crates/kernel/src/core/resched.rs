//! `resched_curr()`: a CPU's running task is asked to make way.

use fairlab_event::Cpu;
use fairlab_event::probes::ProbePoint;

use crate::all_cpus::Shared;
use crate::fair::rules::Reschedule;

impl Shared {
    /// Marks `cpu`'s running task for rescheduling (`resched_curr()`); `by` is the kernel's function that asks.
    pub(crate) fn resched_curr(&mut self, cpu: Cpu, by: &'static str) {
        self.probe_resched(ProbePoint::Resched, cpu, by);
        let context = &mut self.cpus[cpu.index()];
        if !context.need_resched {
            context.need_resched = true;
            self.marked.push(cpu);
        }
    }

    /// The same for a fair task that makes way for another: no interrupt is sent for that where it is put off.
    ///
    /// Kernel: `resched_curr_lazy()`, kernel/sched/core.c (7c70cb94d29c).
    pub(crate) fn resched_curr_lazy(&mut self, cpu: Cpu, by: &'static str) {
        match self.generation.fair.reschedule {
            Reschedule::AtOnce => self.resched_curr(cpu, by),
            Reschedule::Lazily => {
                self.probe_resched(ProbePoint::ReschedLazy, cpu, by);
                self.cpus[cpu.index()].need_resched_lazy = true;
            }
        }
    }

    pub(crate) fn clear_need_resched(&mut self, cpu: Cpu) {
        let context = &mut self.cpus[cpu.index()];
        (context.need_resched, context.need_resched_lazy) = (false, false);
    }
}
