//! `__schedule()` in virtual time: leave, look for work, switch, go on.

use fairlab_event::{Cpu, Ns, TaskState};
use fairlab_kernel::core::KernelContext;

use super::cpu::AfterKernelWork;
use super::{ComputeSegment, Engine};
use crate::scheduler_core::{ScheduleProgress, SchedulerCore};

impl<C: SchedulerCore> Engine<C> {
    /// The running task of `cpu` sleeps or is passed over, as `prev_state` says.
    pub(super) fn schedule(&mut self, cpu: Cpu, prev_state: TaskState) {
        self.core.set_here(cpu, KernelContext::Task, self.now);
        let progress = self.core.schedule(cpu, prev_state);
        self.goes_on(cpu, progress);
    }

    /// The CPU has been busy for a part of it.
    pub(super) fn schedule_again(&mut self, cpu: Cpu) {
        self.core.set_here(cpu, KernelContext::Task, self.now);
        let progress = self.core.schedule_again(cpu);
        self.goes_on(cpu, progress);
        if !matches!(progress, ScheduleProgress::Busy(_)) {
            self.enable_interrupts(cpu);
        }
    }

    #[inline]
    pub(super) fn goes_on(&mut self, cpu: Cpu, progress: ScheduleProgress) {
        self.make_requests();
        self.interrupt_marked(Some(cpu));
        let lines = self.lock_queue(cpu, cpu) + self.used_lines(cpu);
        match progress {
            ScheduleProgress::Busy(took) => {
                self.enter_kernel(cpu, took + lines, AfterKernelWork::ScheduleAgain);
            }
            ScheduleProgress::Switched { changed, took, searched } => {
                if let Some(time) = searched {
                    self.counters.count_search(time);
                }
                self.switched(cpu, changed, took + lines);
            }
        }
    }

    fn switched(&mut self, cpu: Cpu, changed: bool, took: Ns) {
        let cost = if changed { took + self.machine.costs.context_switch } else { took };
        self.counters.switches += u64::from(changed);
        if !self.core.runs_idle_task(cpu) {
            self.arm_tick(cpu);
        } else if changed {
            self.cpus[cpu.index()].begin_to_idle();
        }
        self.enter_kernel(cpu, cost, AfterKernelWork::EnterTask);
    }

    /// The switch is over.
    #[inline(always)]
    pub(super) fn enter_task(&mut self, cpu: Cpu) {
        if self.core.need_resched(cpu) {
            self.schedule(cpu, self.state_when_preempted(cpu));
        } else if self.core.runs_idle_task(cpu) {
            self.enter_idle_loop(cpu);
        } else if let Some(thread) = self.thread_on(cpu) {
            self.refill_caches(cpu, thread);
            match self.threads[thread].segment {
                ComputeSegment::Kernel(left) => self.resume_kernel_work(cpu, thread, left),
                _ => self.return_to_user(cpu),
            }
        } else if self.runs_kworker(cpu) {
            self.begin_background_work(cpu);
        } else {
            let took = self.core.begin_kthread_work(cpu);
            self.enter_kernel(cpu, took, AfterKernelWork::FinishKthreadWork);
        }
    }

    /// A kernel thread of the scheduler's own has worked: it has more to do, or goes back to sleep.
    pub(super) fn kthread_has_worked(&mut self, cpu: Cpu) {
        self.core.set_here(cpu, KernelContext::Task, self.now);
        let more = self.core.finish_kthread_work(cpu);
        self.make_requests();
        self.interrupt_marked(Some(cpu));
        match more {
            Some(took) => self.enter_kernel(cpu, took, AfterKernelWork::FinishKthreadWork),
            None => self.schedule(cpu, TaskState::INTERRUPTIBLE),
        }
    }
}
