//! `try_to_wake_up()` in virtual time.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::TaskId;
use fairlab_kernel::core::KernelContext;

use super::cpu::CpuPhase;
use super::{Engine, ThreadSleep};
use crate::scheduler_core::{SchedulerCore, WakeupProgress};

impl<C: SchedulerCore> Engine<C> {
    /// A system call on `cpu` wakes a thread; `sync`: the caller is about to sleep (`WF_SYNC`). Returns what it costs
    /// beyond the call itself.
    pub(super) fn wake(&mut self, cpu: Cpu, thread: usize, sync: bool) -> Ns {
        match self.threads[thread].wait {
            ThreadSleep::Futex => self.wake_thread(cpu, thread, sync),
            ThreadSleep::GoingToSleep => {
                self.threads[thread].wait = ThreadSleep::WokenEarly;
                let wakeup = self.core.try_to_wake_up(cpu, self.threads[thread].task, sync);
                assert!(matches!(wakeup, WakeupProgress::Done(_)), "a thread on its way to sleep still runs");
                self.make_requests();
                Ns::ZERO
            }
            // Nobody waits on the futex.
            ThreadSleep::No
            | ThreadSleep::WokenEarly
            | ThreadSleep::Timer
            | ThreadSleep::Device
            | ThreadSleep::Dead => Ns::ZERO,
        }
    }

    /// The timer of a thread's sleep of this number expires on `cpu`. Returns what waking costs.
    pub(super) fn timer_expires(&mut self, cpu: Cpu, thread: usize, sleep: u32) -> Ns {
        let known = &self.threads[thread];
        let sleeps = known.sleeps == sleep && matches!(known.wait, ThreadSleep::Timer | ThreadSleep::Device);
        // Who was killed in its sleep has not waited for the timer.
        if sleeps { self.wake_thread(cpu, thread, false) } else { Ns::ZERO }
    }

    pub(super) fn wake_thread(&mut self, cpu: Cpu, thread: usize, sync: bool) -> Ns {
        self.threads[thread].wait = ThreadSleep::No;
        self.try_to_wake_up(cpu, self.threads[thread].task, sync)
    }

    /// Wakes a task that sleeps, on `cpu`. Returns what that costs.
    pub(super) fn try_to_wake_up(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> Ns {
        let wakeup = self.core.try_to_wake_up(cpu, task, sync);
        self.woke(cpu, task, sync, wakeup)
    }

    #[inline]
    fn woke(&mut self, cpu: Cpu, task: TaskId, sync: bool, wakeup: WakeupProgress) -> Ns {
        let far = match wakeup {
            WakeupProgress::Done(_) => self.wakeup_distance(cpu, task),
            WakeupProgress::OnCpu(_) => Ns::ZERO,
        };
        self.make_requests();
        match wakeup {
            WakeupProgress::Done(took) => took + far,
            WakeupProgress::OnCpu(sleeps_on) => self.wait_for_switch(cpu, task, sync, sleeps_on),
        }
    }

    /// The task has blocked, and its CPU still looks for other work before it switches: the waker waits for that (it
    /// spins on `p->on_cpu`). Returns for how long.
    fn wait_for_switch(&mut self, cpu: Cpu, task: TaskId, sync: bool, sleeps_on: Cpu) -> Ns {
        if self.waits_until_next_turn(cpu, task, sync) {
            return Ns(1);
        }
        let state = &self.cpus[sleeps_on.index()];
        let until = if state.phase == CpuPhase::Idle { self.now } else { state.until.max(self.now) };
        let switched = until + Ns(1);
        self.queue.arrange_wakeup(cpu, switched, task, sync);
        self.work_in(cpu, switched.since(self.now))
    }

    /// A task that a waker on `cpu` waited for may have been switched out by now.
    pub(super) fn go_on_waking(&mut self, cpu: Cpu, task: TaskId, sync: bool) {
        self.core.set_here(cpu, KernelContext::Task, self.now);
        let wakeup = self.core.try_to_wake_up_again(cpu, task, sync);
        let cost = self.woke(cpu, task, sync, wakeup);
        self.interrupt_marked(Some(cpu));
        self.leave_interrupt(cpu, cost);
    }
}
