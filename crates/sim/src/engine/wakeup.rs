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
        let task = self.threads[thread].task;
        let slept_on = self.kernel.task(task).cpu();
        if self.kernel.curr(slept_on) == task && !self.kernel.task(task).is_delayed() {
            // It has not been switched out yet: its CPU still looks for other work, for which this waits.
            let timer = Interrupt::Timer { thread: thread as u32 };
            let handled = self.machine.costs.interrupt + self.machine.costs.timer;
            let switched =
                self.cpus[slept_on.index()].until.max(self.now) + self.time_for(cpu, handled) + Ns(1);
            self.queue.arrange_interrupt(cpu, switched, timer);
            return Ns::ZERO;
        }
        self.try_to_wake_up(cpu, thread)
    }

    fn try_to_wake_up(&mut self, cpu: Cpu, thread: usize) -> Ns {
        let task = self.threads[thread].task;
        self.threads[thread].wait = Wait::No;
        if self.kernel.ttwu_begin(task) == WakeStart::StillQueued {
            // It slept on its queue (delayed dequeue) and goes on there.
            return Ns::ZERO;
        }
        let prev = self.kernel.task(task).cpu();
        let leaving = self.kernel.curr(prev) == task;
        if let Some(decision) = leaving.then(|| self.kernel.queue_where_leaving(task)).flatten() {
            // Departs: up to v5.7, and where the wake list does not allow it, the waker does not wait for the switch.
            self.kernel.apply_cpu(task, decision);
            self.kernel.ttwu_pending(prev);
            self.send(prev, Interrupt::WakeList { task, migrated: false });
            return Ns::ZERO;
        }
        self.kernel.record_wakee(self.kernel.curr(cpu), task);
        let decision = self.kernel.select_task_rq(task, cpu, WakeKind::Wakeup { sync: false });
        self.kernel.apply_cpu(task, decision);
        let migrated = decision.cpu != prev;
        let cost = Ns(u64::from(decision.scanned) * self.machine.costs.scan_cpu.0);
        self.kernel.account_search(cpu, decision, cost);
        if self.kernel.ttwu_queue_cond(task, decision.cpu, false) {
            self.kernel.ttwu_pending(decision.cpu);
            self.send(decision.cpu, Interrupt::WakeList { task, migrated });
        } else {
            self.kernel.ttwu_do_activate(task, migrated);
        }
        cost
    }
}
