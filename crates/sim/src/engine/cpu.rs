//! What a CPU is doing, and for how long.

use fairlab_event::{Cpu, Ns};

use super::occurrence::Interrupt;
use super::{ComputeSegment, Engine};
use crate::machine::chance::vary;
use crate::machine::speed::FULL_SPEED;
use crate::scheduler_core::SchedulerCore;

/// What a CPU is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CpuPhase {
    /// Waits for an interrupt.
    #[default]
    Idle,
    /// Is busy in the kernel, and then does this.
    Kernel(AfterKernelWork),
    /// Computes for its running thread.
    User,
}

/// What a CPU does when its kernel work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterKernelWork {
    /// The switch is over: the new task goes on, or the idle loop.
    EnterTask,
    /// The idle state is left: the interrupts that ended it are handled.
    HandleInterrupts,
    /// `schedule()` goes on.
    ScheduleAgain,
    /// Idle CPUs' load has been aged; a wakeup that comes meanwhile ends that.
    IdleLoop,
    /// A kernel thread of the scheduler's own has worked.
    FinishKthreadWork,
    /// A kworker's work is done, and it sleeps.
    FinishBackgroundWork,
    /// The system call's work is done for the running thread.
    CarryOut,
    /// The kernel work that the running task was at is left, or just over, and another task may run first.
    Preempt,
    /// Back to user mode.
    ReturnToUser,
}

/// One CPU.
#[derive(Clone, Debug)]
pub(super) struct EngineCpu<M> {
    pub phase: CpuPhase,
    /// When the phase ends; never for idle.
    pub until: Ns,
    /// Interrupts that wait for the CPU to leave its idle state, or to turn interrupts on again.
    pub pending: Vec<Interrupt<M>>,
    /// CPUs that it will interrupt when the work that it is at is done.
    pub to_interrupt: Vec<Cpu>,
    pub tick_armed: bool,
    /// While it idles: its tick is stopped.
    pub tick_stopped: bool,
    /// A tick has just found it idle (`tick_nohz_idle_got_tick()`).
    pub got_idle_tick: bool,
    /// Capacity times frequency, each a part of 1024.
    pub speed: u64,
}

impl<M> Default for EngineCpu<M> {
    fn default() -> EngineCpu<M> {
        EngineCpu {
            phase: CpuPhase::Idle,
            until: Ns::ZERO,
            pending: Vec::new(),
            to_interrupt: Vec::new(),
            tick_armed: false,
            tick_stopped: false,
            // Before the first task it has idled for long.
            got_idle_tick: true,
            speed: FULL_SPEED,
        }
    }
}

impl<M> EngineCpu<M> {
    /// The idle task has been switched to: its loop begins with the tick that the CPU had.
    pub fn begin_to_idle(&mut self) {
        (self.tick_stopped, self.got_idle_tick) = (false, false);
    }
}

impl<C: SchedulerCore> Engine<C> {
    /// Keeps `cpu` busy in the kernel for `cost`.
    #[inline]
    pub(super) fn enter_kernel(&mut self, cpu: Cpu, cost: Ns, then: AfterKernelWork) {
        self.end_traffic(cpu);
        let cost = if self.machine.chance.kernel_permille == 0 { cost } else { self.jittered(cost) };
        self.enter_phase(cpu, CpuPhase::Kernel(then), self.now + self.time_for(cpu, cost));
    }

    /// A cost as it happens to be this time.
    #[inline]
    fn jittered(&mut self, cost: Ns) -> Ns {
        vary(cost, self.machine.chance.kernel_permille, &mut self.jitter)
    }

    #[inline]
    pub(super) fn enter_phase(&mut self, cpu: Cpu, phase: CpuPhase, until: Ns) {
        let state = &mut self.cpus[cpu.index()];
        state.phase = phase;
        state.until = until;
        self.queue.arrange_phase_end(cpu, until);
    }

    /// `cpu` waits for an interrupt from now on.
    pub(super) fn enter_idle(&mut self, cpu: Cpu) {
        let state = &mut self.cpus[cpu.index()];
        state.phase = CpuPhase::Idle;
        state.until = Ns::MAX;
        self.queue.cancel_phase_end(cpu);
        self.note_busy(cpu, false);
        self.give_turn_away();
    }

    /// Takes `cost` from what `cpu` is doing: it will be done that much later.
    pub(super) fn delay_phase(&mut self, cpu: Cpu, cost: Ns) {
        if !self.polls(cpu) {
            // The end that is arranged already finds out when it comes.
            let cost = self.kernel_time_for(cpu, cost);
            self.cpus[cpu.index()].until += cost;
        }
    }

    /// Whether `cpu` computes until a certain time, however much that is.
    pub(super) fn polls(&self, cpu: Cpu) -> bool {
        let until = |thread: usize| {
            matches!(
                self.threads[thread].segment,
                ComputeSegment::Until(_) | ComputeSegment::Spin { left: Ns::MAX, .. }
            )
        };
        self.cpus[cpu.index()].phase == CpuPhase::User && self.thread_on(cpu).is_some_and(until)
    }

    #[inline(always)]
    pub(super) fn phase_ends(&mut self, cpu: Cpu) {
        let state = &self.cpus[cpu.index()];
        if state.until > self.now {
            return self.queue.arrange_phase_end(cpu, state.until);
        }
        match state.phase {
            CpuPhase::Idle => unreachable!("being idle has no end of its own"),
            CpuPhase::User => {
                if let Some(thread) = self.thread_on(cpu) {
                    if let ComputeSegment::Spin { word, .. } = self.threads[thread].segment {
                        self.looks_away(cpu, thread, word);
                    }
                    self.threads[thread].segment = ComputeSegment::Done;
                }
                self.return_to_user(cpu);
            }
            CpuPhase::Kernel(AfterKernelWork::EnterTask | AfterKernelWork::IdleLoop) => self.enter_task(cpu),
            CpuPhase::Kernel(AfterKernelWork::HandleInterrupts) => self.handle_pending(cpu),
            CpuPhase::Kernel(AfterKernelWork::ScheduleAgain) => self.schedule_again(cpu),
            CpuPhase::Kernel(AfterKernelWork::FinishKthreadWork) => self.kthread_has_worked(cpu),
            CpuPhase::Kernel(AfterKernelWork::FinishBackgroundWork) => self.background_work_is_done(cpu),
            CpuPhase::Kernel(AfterKernelWork::CarryOut) => self.carry_out(cpu),
            CpuPhase::Kernel(AfterKernelWork::Preempt) => self.preempt(cpu),
            CpuPhase::Kernel(AfterKernelWork::ReturnToUser) => {
                if !state.to_interrupt.is_empty() {
                    self.send_held(cpu);
                }
                self.return_to_user(cpu);
            }
        }
    }

    /// Stops the running thread's segment and notes what is left of it.
    pub(super) fn pause_segment(&mut self, cpu: Cpu) {
        let Some(thread) = self.thread_on(cpu) else { return };
        let until = self.cpus[cpu.index()].until;
        match self.threads[thread].segment {
            ComputeSegment::Work(_) => {
                self.threads[thread].segment = ComputeSegment::Work(self.work_in(cpu, until.since(self.now)));
            }
            ComputeSegment::Spin { word, .. } => self.pause_spinning(cpu, thread, word),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Chance, Machine};

    #[test]
    fn jitter_makes_costs_less_and_more_by_so_much() {
        let machine = Machine {
            chance: Chance { kernel_permille: 100, ..Chance::NONE },
            ..crate::engine::tests::machine(1)
        };
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        let costs = (0..5000).map(|_| engine.jittered(Ns(1000)).0).collect::<Vec<_>>();
        assert_eq!((costs.iter().min(), costs.iter().max()), (Some(&900), Some(&1100)));
        engine.enter_kernel(Cpu(0), Ns(1000), AfterKernelWork::IdleLoop);
        assert!((900..=1100).contains(&engine.cpus[0].until.0) && engine.cpus[0].until != Ns(1000));
    }
}
