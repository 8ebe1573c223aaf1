//! `try_to_wake_up()` in virtual time.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::TaskId;
use fairlab_kernel::core::{Mode, WakeFlags, WakeKind, WakeStart};

use super::occurrence::Interrupt;
use super::{Engine, Wait};

impl Engine {
    /// A system call on `cpu` wakes a thread; `sync`: the caller is about to sleep (`WF_SYNC`). Returns what it costs
    /// beyond the call itself.
    pub(super) fn wake(&mut self, cpu: Cpu, thread: usize, sync: bool) -> Ns {
        match self.threads[thread].wait {
            Wait::Futex => self.wake_thread(cpu, thread, sync),
            Wait::GoingToSleep => {
                self.threads[thread].wait = Wait::WokenEarly;
                let start =
                    self.kernel.ttwu_begin(self.threads[thread].task, WakeFlags { sync, migrated: false });
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
        self.wake_thread(cpu, thread, false)
    }

    fn wake_thread(&mut self, cpu: Cpu, thread: usize, sync: bool) -> Ns {
        self.threads[thread].wait = Wait::No;
        self.try_to_wake_up(cpu, self.threads[thread].task, sync)
    }

    /// Wakes a task that sleeps, on `cpu`. Returns what that costs.
    pub(super) fn try_to_wake_up(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> Ns {
        if self.kernel.ttwu_begin(task, WakeFlags { sync, migrated: false }) == WakeStart::StillQueued {
            // It slept on its queue (delayed dequeue) and goes on there.
            return self.machine.costs.activate;
        }
        let prev = self.kernel.task(task).cpu();
        if self.kernel.curr(prev) != task {
            return self.select_and_queue(cpu, task, sync);
        }
        if let Some(decision) = self.kernel.queue_where_leaving(task) {
            self.kernel.apply_cpu(task, decision);
            self.kernel.ttwu_pending(prev);
            self.send(prev, Interrupt::WakeList { task, migrated: false });
            return Ns::ZERO;
        }
        self.wait_for_switch(cpu, task, sync)
    }

    /// The task has blocked, and its CPU still looks for other work before it switches: the waker waits for that (it
    /// spins on `p->on_cpu`). Returns for how long.
    fn wait_for_switch(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> Ns {
        if self.waits_until_next_turn(cpu, task, sync) {
            return Ns(1);
        }
        let prev = self.kernel.task(task).cpu();
        let switched = self.cpus[prev.index()].until.max(self.now) + Ns(1);
        self.queue.arrange_wakeup(cpu, switched, task, sync);
        self.work_in(cpu, switched.since(self.now))
    }

    /// A task that a waker on `cpu` waited for may have been switched out by now.
    pub(super) fn go_on_waking(&mut self, cpu: Cpu, task: TaskId, sync: bool) {
        let cost = if self.kernel.curr(self.kernel.task(task).cpu()) == task {
            self.wait_for_switch(cpu, task, sync)
        } else {
            self.kernel.set_here(cpu, Mode::Task, self.now);
            self.select_and_queue(cpu, task, sync)
        };
        self.interrupt_marked(Some(cpu));
        self.leave_interrupt(cpu, cost);
    }

    fn select_and_queue(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> Ns {
        let prev = self.kernel.task(task).cpu();
        self.kernel.probe_selection(task, WakeKind::Wakeup { sync });
        self.kernel.record_wakee(self.kernel.curr(cpu), task);
        let decision = self.kernel.select_task_rq(task, cpu, WakeKind::Wakeup { sync });
        self.kernel.probe_selected(task, decision.cpu);
        self.kernel.apply_cpu(task, decision);
        let migrated = decision.cpu != prev;
        let cost = Ns(u64::from(decision.scanned) * self.machine.costs.scan_cpu.0);
        self.kernel.account_search(cpu, decision, cost);
        if self.kernel.ttwu_queue_cond(task, decision.cpu, false) {
            self.kernel.ttwu_pending(decision.cpu);
            self.send(decision.cpu, Interrupt::WakeList { task, migrated });
            return cost;
        }
        self.kernel.ttwu_do_activate(task, WakeFlags { sync, migrated });
        cost + self.machine.costs.activate
    }
}
