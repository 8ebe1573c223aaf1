//! What the scheduler asks of the hardware, carried out: interrupts, timers, other clocks.

use fairlab_event::{Cpu, Ns};

use super::Engine;
use super::cpu::CpuPhase;
use super::occurrence::Interrupt;
use crate::scheduler_core::{CoreRequest, SchedulerCore};

impl<C: SchedulerCore> Engine<C> {
    /// Carries out what was asked for since the last time.
    #[inline]
    pub(super) fn make_requests(&mut self) {
        if self.core.has_requests() {
            self.make_all_requests();
        }
    }

    #[inline(never)]
    fn make_all_requests(&mut self) {
        let mut requests = std::mem::take(&mut self.requests);
        self.core.take_requests(&mut requests);
        for request in requests.drain(..) {
            match request {
                CoreRequest::Interrupt { cpu, message } => self.send(cpu, Interrupt::Message(message)),
                CoreRequest::Timer { cpu, expires, message } => {
                    self.queue.arrange_interrupt(cpu, expires, Interrupt::SchedulerTimer(message));
                }
                CoreRequest::ClockEvent { cpu, expires } => self.queue.arrange_clock_event(cpu, expires),
                CoreRequest::Frequency { cpu } => self.change_speed(cpu),
            }
        }
        self.requests = requests;
    }

    /// What happened on `cpu` is over: carries out what the scheduler has put off until then, and charges the CPU for it.
    #[inline(never)]
    pub(super) fn end_work(&mut self, cpu: Cpu) {
        let took = self.core.end_of_work(cpu);
        if took > Ns::ZERO && self.cpus[cpu.index()].phase != CpuPhase::Idle {
            self.delay_phase(cpu, took);
        }
        self.make_requests();
    }
}
