//! Interrupts and the tick.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::core::KernelContext;

use super::Engine;
use super::cpu::{AfterKernelWork, CpuPhase};
use super::occurrence::Interrupt;
use crate::scheduler_core::{MessageEffect, SchedulerCore};

impl<C: SchedulerCore> Engine<C> {
    /// Sends reschedule interrupts to the CPUs that the core has marked, except `here`, which sees its own mark.
    #[inline]
    pub(super) fn interrupt_marked(&mut self, here: Option<Cpu>) {
        if self.core.has_marked() {
            self.interrupt_all_marked(here);
        }
    }

    fn interrupt_all_marked(&mut self, here: Option<Cpu>) {
        self.each_marked(here, |engine, cpu| engine.send(cpu, Interrupt::Resched));
    }

    /// A waker on `cpu` is queueing whom it woke: the interrupts go out when that is done (`resched_curr()` comes at the
    /// end of `ttwu_do_activate()`).
    pub(super) fn hold_marked(&mut self, cpu: Cpu) {
        if self.core.has_marked() {
            self.each_marked(Some(cpu), |engine, marked| {
                engine.cpus[cpu.index()].to_interrupt.push(marked);
            });
        }
    }

    /// Takes the core's marks, and does something with each that is not of `here`.
    fn each_marked(&mut self, here: Option<Cpu>, deal_with: impl Fn(&mut Engine<C>, Cpu)) {
        let mut marked = std::mem::take(&mut self.marked);
        self.core.take_marked(&mut marked);
        for cpu in marked.drain(..).filter(|&cpu| Some(cpu) != here) {
            deal_with(self, cpu);
        }
        self.marked = marked;
    }

    /// The waker on `cpu` is done with queueing.
    pub(super) fn send_held(&mut self, cpu: Cpu) {
        for held in std::mem::take(&mut self.cpus[cpu.index()].to_interrupt) {
            self.send(held, Interrupt::Resched);
        }
    }

    /// Sends an interrupt to another CPU.
    pub(super) fn send(&mut self, cpu: Cpu, interrupt: Interrupt<C::Message>) {
        self.queue.arrange_interrupt(
            cpu,
            self.now + self.machine.costs.ipi + self.ipi_distance(cpu),
            interrupt,
        );
    }

    pub(super) fn interrupt_arrives(&mut self, cpu: Cpu, interrupt: Interrupt<C::Message>) {
        match self.cpus[cpu.index()].phase {
            CpuPhase::Idle => {
                self.cpus[cpu.index()].pending.push(interrupt);
                self.note_busy(cpu, true);
                let late = self.way_to_sleep(cpu);
                match self.leave_idle_state(cpu) {
                    Some(exit) => {
                        self.enter_phase(
                            cpu,
                            CpuPhase::Kernel(AfterKernelWork::HandleInterrupts),
                            self.now + late + exit,
                        );
                    }
                    None => self.enter_kernel(
                        cpu,
                        late + self.machine.costs.idle_exit,
                        AfterKernelWork::HandleInterrupts,
                    ),
                }
            }
            CpuPhase::Kernel(_) if self.has_interrupts_off(cpu) => {
                self.cpus[cpu.index()].pending.push(interrupt);
            }
            CpuPhase::Kernel(_) | CpuPhase::User => {
                let cost = self.handle_interrupt(cpu, interrupt);
                self.leave_interrupt(cpu, cost);
            }
        }
    }

    /// Interrupts are off while a CPU wakes up, and while one that runs out of work looks around: what comes meanwhile, its
    /// tick too, finds the task that runs next.
    fn has_interrupts_off(&self, cpu: Cpu) -> bool {
        let phase = self.cpus[cpu.index()].phase;
        matches!(phase, CpuPhase::Kernel(AfterKernelWork::HandleInterrupts | AfterKernelWork::ScheduleAgain))
    }

    /// Does an interrupt's work on `cpu` and returns what it costs.
    fn handle_interrupt(&mut self, cpu: Cpu, interrupt: Interrupt<C::Message>) -> Ns {
        self.core.set_here(cpu, KernelContext::Hardirq, self.now);
        let costs = &self.machine.costs;
        let cost = match interrupt {
            Interrupt::Resched => costs.interrupt,
            Interrupt::Message(message) => costs.interrupt + self.receive(cpu, message),
            Interrupt::SchedulerTimer(message) => costs.interrupt + costs.timer + self.receive(cpu, message),
            Interrupt::Timer { thread, sleep } => {
                costs.interrupt + costs.timer + self.timer_expires(cpu, thread as usize, sleep)
            }
            Interrupt::Device => costs.interrupt + self.device_interrupts(cpu),
            Interrupt::Kworker => costs.interrupt + costs.timer + self.wake_kworker(cpu),
            Interrupt::Tick => self.tick_work(cpu),
            Interrupt::ClockEvent => self.clock_event_work(cpu),
        };
        self.interrupt_marked(Some(cpu));
        cost
    }

    /// A message of the scheduler has come to `cpu`. Returns what it costs beside the interrupt.
    #[inline]
    fn receive(&mut self, cpu: Cpu, message: C::Message) -> Ns {
        let MessageEffect { took, wakes } = self.core.receive(cpu, message);
        self.make_requests();
        let took = took + self.used_lines(cpu);
        took + wakes.map_or(Ns::ZERO, |task| self.try_to_wake_up(cpu, task, false))
    }

    /// The end of an interrupt: user mode is left for good if a reschedule is pending or the thread's group is
    /// throttled, kernel work if the kernel can be preempted there; otherwise both are only delayed.
    #[inline]
    pub(super) fn leave_interrupt(&mut self, cpu: Cpu, cost: Ns) {
        if self.cpus[cpu.index()].phase == CpuPhase::User && self.must_leave_user_mode(cpu) {
            self.pause_segment(cpu);
            self.enter_kernel(cpu, cost, AfterKernelWork::ReturnToUser);
        } else if self.cpus[cpu.index()].phase == CpuPhase::Kernel(AfterKernelWork::IdleLoop)
            && self.core.need_resched(cpu)
        {
            self.enter_kernel(cpu, cost, AfterKernelWork::EnterTask);
        } else if self.core.preempts_kernel(cpu) && self.pause_kernel_work(cpu) {
            self.enter_kernel(cpu, cost, AfterKernelWork::Preempt);
        } else {
            self.delay_phase(cpu, cost);
        }
    }

    /// An idle CPU is awake: what woke it is handled, and then it runs something or goes back to sleep.
    #[inline(always)]
    pub(super) fn handle_pending(&mut self, cpu: Cpu) {
        let mut cost = Ns::ZERO;
        let mut pending = std::mem::take(&mut self.cpus[cpu.index()].pending);
        self.idle_state_is_left(cpu, pending.contains(&Interrupt::Tick));
        // Without timers of their own, sleeps end in the tick's interrupt, before the scheduler's part of it.
        pending.sort_by_key(|&interrupt| interrupt == Interrupt::Tick);
        self.cpus[cpu.index()].got_idle_tick = pending.last() == Some(&Interrupt::Tick);
        for interrupt in pending.drain(..) {
            cost += self.handle_interrupt(cpu, interrupt);
        }
        self.cpus[cpu.index()].pending = pending;
        self.enter_kernel(cpu, cost, AfterKernelWork::EnterTask);
    }

    /// Interrupts are on again: those that came meanwhile are handled.
    pub(super) fn enable_interrupts(&mut self, cpu: Cpu) {
        if self.cpus[cpu.index()].pending.is_empty() {
            return;
        }
        for interrupt in std::mem::take(&mut self.cpus[cpu.index()].pending) {
            self.interrupt_arrives(cpu, interrupt);
        }
    }

    pub(super) fn tick(&mut self, cpu: Cpu) {
        let idles = self.cpus[cpu.index()].phase == CpuPhase::Idle;
        if idles && self.cpus[cpu.index()].tick_stopped {
            self.cpus[cpu.index()].tick_armed = false;
            return;
        }
        self.queue.arrange_tick(cpu, self.now + self.tick_period);
        if idles || self.has_interrupts_off(cpu) {
            return self.interrupt_arrives(cpu, Interrupt::Tick);
        }
        self.core.set_here(cpu, KernelContext::Hardirq, self.now);
        let cost = self.tick_work(cpu);
        self.interrupt_marked(Some(cpu));
        self.leave_interrupt(cpu, cost);
    }

    /// The scheduler's part of a tick. Returns what it costs.
    fn tick_work(&mut self, cpu: Cpu) -> Ns {
        let took = self.core.tick(cpu);
        self.make_requests();
        self.machine.costs.tick + took + self.lock_queue(cpu, cpu) + self.used_lines(cpu)
    }

    /// The timer of `cpu` that the scheduler arms has expired.
    pub(super) fn clock_event(&mut self, cpu: Cpu) {
        if self.cpus[cpu.index()].phase == CpuPhase::Idle {
            if self.core.clock_event_wakes(cpu) {
                self.interrupt_arrives(cpu, Interrupt::ClockEvent);
            }
            return;
        }
        self.core.set_here(cpu, KernelContext::Hardirq, self.now);
        let cost = self.clock_event_work(cpu);
        self.interrupt_marked(Some(cpu));
        self.leave_interrupt(cpu, cost);
    }

    /// The scheduler's part of it. Returns what it costs.
    fn clock_event_work(&mut self, cpu: Cpu) -> Ns {
        self.core.clock_event(cpu);
        self.make_requests();
        self.machine.costs.interrupt + self.machine.costs.timer
    }

    /// Lets `cpu`'s tick run from the next tick on. All CPUs tick at the same instants, as without `skew_tick`.
    pub(super) fn arm_tick(&mut self, cpu: Cpu) {
        if std::mem::replace(&mut self.cpus[cpu.index()].tick_armed, true) {
            return;
        }
        let period = self.tick_period.0;
        let next = Ns((self.now.0 / period + 1) * period);
        self.queue.arrange_tick(cpu, next);
    }
}
