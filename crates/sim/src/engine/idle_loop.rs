//! The idle loop: what others left to an idle CPU, and whether its tick stops.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::core::KernelContext;

use super::Engine;
use super::cpu::AfterKernelWork;
use crate::scheduler_core::SchedulerCore;

impl<C: SchedulerCore> Engine<C> {
    /// The idle loop begins: blocked load of idle CPUs is aged if that was left to it, then the tick stops.
    pub(super) fn enter_idle_loop(&mut self, cpu: Cpu) {
        self.core.set_here(cpu, KernelContext::Task, self.now);
        let took = self.core.idle_work(cpu) + self.used_lines(cpu);
        self.make_requests();
        if took > Ns::ZERO {
            return self.enter_kernel(cpu, took, AfterKernelWork::IdleLoop);
        }
        let expected = self.expected_idle_time(cpu);
        self.stop_or_keep_tick(cpu, expected);
        self.enter_idle(cpu);
        self.enter_idle_state(cpu, expected);
    }

    /// An idle CPU's tick stops, and it is balanced for by others; or it goes on ticking. Where idle states are known, it stops
    /// unless less than a tick's idleness is `expected`, us.
    pub(super) fn stop_or_keep_tick(&mut self, cpu: Cpu, expected: Option<u64>) {
        let state = &self.cpus[cpu.index()];
        let may_stop = || match expected {
            Some(expected) => expected >= self.tick_period.0 / 1000,
            None => self.core.idle_call_stops_tick(state.got_idle_tick),
        };
        if self.machine.nohz_idle && (state.tick_stopped || may_stop()) {
            self.cpus[cpu.index()].tick_stopped = true;
            self.core.tick_is_stopped(cpu);
            self.note_way_to_sleep(cpu);
        } else {
            self.arm_tick(cpu);
        }
    }
}
