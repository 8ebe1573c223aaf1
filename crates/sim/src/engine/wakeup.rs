//! `try_to_wake_up()` in virtual time.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::core::{WakeKind, WakeStart};

use super::occurrence::Interrupt;
use super::{Engine, Wait};

impl Engine {
    /// `futex(FUTEX_WAKE)` on `cpu` for a thread. Returns what it costs beyond the call itself.
    pub(super) fn futex_wake(&mut self, cpu: Cpu, thread: usize) -> Ns {
        match self.threads[thread].wait {
            Wait::Futex => self.try_to_wake_up(cpu, thread),
            Wait::GoingToSleep => {
                self.threads[thread].wait = Wait::WokenEarly;
                let start = self.kernel.ttwu_begin(self.threads[thread].task);
                assert_eq!(start, WakeStart::StillQueued, "a thread on its way to sleep still runs");
                Ns::ZERO
            }
            // Nobody waits on the futex.
            Wait::No | Wait::WokenEarly | Wait::Timer | Wait::Dead => Ns::ZERO,
        }
    }

    /// A sleep timer expires on `cpu`. Returns what waking costs.
    pub(super) fn timer_expires(&mut self, cpu: Cpu, thread: usize) -> Ns {
        assert_eq!(self.threads[thread].wait, Wait::Timer, "a sleep timer ends with its sleep");
        self.try_to_wake_up(cpu, thread)
    }

    fn try_to_wake_up(&mut self, cpu: Cpu, thread: usize) -> Ns {
        let task = self.threads[thread].task;
        self.threads[thread].wait = Wait::No;
        if self.kernel.ttwu_begin(task) == WakeStart::StillQueued {
            // It slept on its queue (delayed dequeue) and goes on there.
            return Ns::ZERO;
        }
        self.kernel.record_wakee(self.kernel.curr(cpu), task);
        let prev = self.kernel.task(task).cpu();
        let decision = self.kernel.select_task_rq(task, cpu, WakeKind::Wakeup { sync: false });
        self.kernel.apply_cpu(task, decision);
        let migrated = decision.cpu != prev;
        if self.kernel.ttwu_queue_cond(task, decision.cpu) {
            self.kernel.ttwu_pending(decision.cpu);
            self.send(decision.cpu, Interrupt::WakeList { task, migrated });
        } else {
            self.kernel.ttwu_do_activate(task, migrated);
        }
        Ns(u64::from(decision.scanned) * self.machine.costs.scan_cpu.0)
    }
}
