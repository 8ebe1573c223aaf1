//! Kernel work that is left for another task before it is done, by kernels that can be preempted there.
//!
//! What can be preempted is the work of a system call and that of a kworker. A wakeup, a switch and what follows an interrupt hold
//! locks, or have interrupts off: they are whole in every kernel, and a reschedule that they ask for comes at their end.
//!
//! Must not know: which kernels can be preempted; the scheduler says that of each CPU.

use fairlab_event::{Cpu, Ns, TaskState};

use super::cpu::{AfterKernelWork, CpuPhase};
use super::{ComputeSegment, Engine, PREEMPTED_AT_USER_RETURN, SystemCall};
use crate::scheduler_core::SchedulerCore;
use crate::workload::Offer;

impl<C: SchedulerCore> Engine<C> {
    /// Stops the kernel work of `cpu` and notes what is left of it. Returns whether it can be left.
    pub(super) fn pause_kernel_work(&mut self, cpu: Cpu) -> bool {
        let state = &self.cpus[cpu.index()];
        let left = self.work_in(cpu, state.until.since(self.now));
        match state.phase {
            CpuPhase::Kernel(AfterKernelWork::CarryOut) => {
                let Some(thread) = self.thread_on(cpu).map(|thread| &mut self.threads[thread]) else {
                    return false;
                };
                if matches!(thread.pending, Some(SystemCall::Wake { .. })) {
                    return false;
                }
                thread.segment = ComputeSegment::Kernel(left);
                true
            }
            CpuPhase::Kernel(AfterKernelWork::FinishBackgroundWork) => {
                self.pause_background_work(cpu, left);
                true
            }
            _ => false,
        }
    }

    /// The work of `thread`'s system call goes on.
    pub(super) fn resume_kernel_work(&mut self, cpu: Cpu, thread: usize, left: Ns) {
        self.threads[thread].segment = ComputeSegment::Done;
        self.enter_phase(
            cpu,
            CpuPhase::Kernel(AfterKernelWork::CarryOut),
            self.now + self.time_for(cpu, left),
        );
    }

    /// A system call of `work` begins that offers its CPU each time that `piece` of it is done.
    pub(super) fn begin_offering_work(&mut self, cpu: Cpu, thread: usize, work: Ns, piece: Ns, offer: Offer) {
        let first = piece.max(Ns(1)).min(work);
        let left = work.since(first);
        self.threads[thread].pending =
            Some(SystemCall::OfferingWork { left, piece: piece.max(Ns(1)), offer });
        self.enter_kernel(cpu, self.machine.costs.syscall + first, AfterKernelWork::CarryOut);
    }

    /// A piece of such work is done: if there is more, another task may run first (`cond_resched()`, `might_resched()`).
    pub(super) fn offer_cpu(&mut self, cpu: Cpu, thread: usize, left: Ns, piece: Ns, offer: Offer) {
        if left == Ns::ZERO {
            return self.work_is_done(cpu, thread);
        }
        let next = piece.min(left);
        self.threads[thread].pending =
            Some(SystemCall::OfferingWork { left: left.since(next), piece, offer });
        if self.core.takes_offer(cpu, offer) {
            self.threads[thread].segment = ComputeSegment::Kernel(next);
            self.schedule(cpu, TaskState::PREEMPTED);
        } else {
            self.enter_kernel(cpu, next, AfterKernelWork::CarryOut);
        }
    }

    /// The running task has done what it came for in the kernel, which took `cost`: it may be preempted before it goes back.
    pub(super) fn leave_system_call(&mut self, cpu: Cpu, cost: Ns) {
        let then = if self.core.preempts_kernel(cpu) {
            AfterKernelWork::Preempt
        } else {
            AfterKernelWork::ReturnToUser
        };
        self.enter_kernel(cpu, cost, then);
    }

    /// The running task is preempted in the kernel, if that is still wanted.
    pub(super) fn preempt(&mut self, cpu: Cpu) {
        self.send_held(cpu);
        if self.core.preempts_kernel(cpu) {
            self.schedule(cpu, TaskState::PREEMPTED);
        } else {
            self.enter_task(cpu);
        }
    }

    /// What the task that `cpu` has switched to leaves as, if another is to run first.
    pub(super) fn state_when_preempted(&self, cpu: Cpu) -> TaskState {
        let in_kernel = |thread: usize| matches!(self.threads[thread].segment, ComputeSegment::Kernel(_));
        match self.thread_on(cpu).is_some_and(in_kernel) {
            true => TaskState::PREEMPTED,
            false => PREEMPTED_AT_USER_RETURN,
        }
    }
}
