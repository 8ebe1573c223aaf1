//! Which CPUs a search takes for idle.
//!
//! Must not know: which CPUs it looks at.

use fairlab_event::Cpu;

use crate::scheduler::Scheduler;
use crate::select::rules::SchedIdleCpu;
use crate::select::wakee::Wakee;
use crate::task::Policy;

impl Scheduler {
    /// Idle, or busy with `SCHED_IDLE` tasks only where that is as good.
    ///
    /// Kernel: `available_idle_cpu()`, `sched_idle_cpu()`, `choose_idle_cpu()`.
    pub(crate) fn looks_idle(&self, wakee: Wakee, cpu: Cpu) -> bool {
        self.idle_cpu(cpu) || self.sched_idle_chosen(wakee, cpu)
    }

    /// Busy with `SCHED_IDLE` tasks only, where that is as good as idle.
    pub(crate) fn sched_idle_chosen(&self, wakee: Wakee, cpu: Cpu) -> bool {
        let chosen = match self.shared.generation.select.sched_idle_cpu {
            SchedIdleCpu::Busy => false,
            SchedIdleCpu::SecondChoice | SchedIdleCpu::LikeIdle => true,
            SchedIdleCpu::UnlessAlike => self.shared.tasks[wakee.task.index()].policy != Policy::Idle,
        };
        chosen && self.sched_idle_cpu(cpu)
    }
}
