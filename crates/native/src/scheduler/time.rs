//! What kernel work takes: CPUs looked at, tasks moved and soft interrupts, each at the machine's own cost.
//!
//! The image counts them and moves its clock by each, so that the kernel measures its own searches (`avg_scan_cost`,
//! `max_newidle_lb_cost`) as it does on hardware. What the engine charges for a call as such, `wakeup_ns`, `tick_ns`,
//! `context_switch_ns`, is not counted here; `newidle_ns` and `activate_ns` are added when a call ends.

use std::sync::atomic::Ordering;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::TaskId;
use fairlab_kernel::core::KernelContext;

use super::NativeScheduler;
use crate::image::LoadedImage;

/// What the fastest CPU does; speeds are parts of this.
pub(super) const WHOLE: u64 = 1024;

/// What a look at one CPU is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CpuLook {
    /// Selecting where to wake a task: `scan_cpu_ns`.
    Select,
    /// Balancing: `balance_cpu_ns`.
    Balance,
}

/// What one call did beside what it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallWork {
    /// As CPU time at full speed.
    pub took: Ns,
    /// CPUs looked at.
    pub looked: u64,
}

impl NativeScheduler {
    /// Has the image do something on `cpu`, in the mode that was said, from now on or when the CPU is done with what came before.
    #[inline]
    pub(super) fn work<R>(
        &mut self,
        cpu: Cpu,
        look: CpuLook,
        act: impl FnOnce(&LoadedImage) -> R,
    ) -> (R, CallWork) {
        let cost = match look {
            CpuLook::Select => self.costs.scan_cpu,
            CpuLook::Balance => self.costs.balance_cpu,
        };
        let before = self.image.clock();
        let answer = self.run(cpu, [cost, self.costs.migrate, self.costs.softirq], act);
        let after = self.image.clock();
        self.busy_until[cpu.index()] = Ns(after.now);
        let looked = after.looked - before.looked;
        let took = looked * cost.0
            + (after.migrated - before.migrated) * self.costs.migrate.0
            + (after.softirqs - before.softirqs) * self.costs.softirq.0;
        (answer, CallWork { took: Ns(took), looked })
    }

    /// The same for what takes no time, or whose time is charged already.
    #[inline]
    pub(super) fn at_once<R>(&mut self, cpu: Cpu, act: impl FnOnce(&LoadedImage) -> R) -> R {
        self.run(cpu, [Ns::ZERO; 3], act)
    }

    #[inline]
    fn run<R>(&mut self, cpu: Cpu, costs: [Ns; 3], act: impl FnOnce(&LoadedImage) -> R) -> R {
        self.enter(cpu, costs);
        let answer = if self.mode == KernelContext::Task {
            let answer = act(&self.image);
            // Interrupts switch to nobody.
            self.curr[cpu.index()] = TaskId(self.image.curr(cpu.0 as i32) as u32);
            answer
        } else {
            self.image.irq_enter();
            let answer = act(&self.image);
            self.image.irq_exit();
            answer
        };
        if self.image.has_events() {
            self.keep_events();
        }
        answer
    }

    #[inline]
    fn enter(&mut self, cpu: Cpu, costs: [Ns; 3]) {
        let begin = self.now.max(self.busy_until[cpu.index()]);
        let full = self.top_speeds[cpu.index()] == WHOLE;
        let [look, migrate, softirq] = if full { costs } else { costs.map(|cost| self.time_for(cpu, cost)) };
        self.image.set_clock(begin, look, migrate, softirq);
        if self.entered != Some(cpu) {
            self.entered = Some(cpu);
            self.host.cpu.store(cpu.0, Ordering::Relaxed);
            self.image.enter(cpu.0 as i32);
        }
    }

    /// How long `cpu` takes, as fast as it is now, for what takes `work` at full speed.
    fn time_for(&self, cpu: Cpu, work: Ns) -> Ns {
        let top = self.top_speeds[cpu.index()];
        Ns((u128::from(work.0) * u128::from(WHOLE)).div_ceil(u128::from(top)) as u64)
    }
}
