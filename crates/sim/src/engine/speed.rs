//! How fast CPUs are: work takes longer on a small CPU, at a low frequency, the kernel's own work too.
//!
//! Who chooses frequencies is the scheduler's; here what a CPU is in the middle of is stretched or shortened.

use fairlab_event::{Cpu, Ns};

use super::Engine;
use crate::machine::speed::{FULL_SPEED, scale};
use crate::scheduler_core::SchedulerCore;

impl<C: SchedulerCore> Engine<C> {
    /// How long `cpu` takes, as fast as it is now, for what takes `work` at full speed.
    #[inline]
    pub(super) fn time_for(&self, cpu: Cpu, work: Ns) -> Ns {
        scale(work, FULL_SPEED, self.cpus[cpu.index()].speed)
    }

    /// The same for kernel work that comes between.
    #[inline]
    pub(super) fn kernel_time_for(&self, cpu: Cpu, work: Ns) -> Ns {
        match self.effects {
            None => self.time_for(cpu, work),
            Some(_) => scale(work, FULL_SPEED, self.kernel_speed(cpu)),
        }
    }

    /// How much `cpu` does in `time`, as fast as it is now, as time at full speed.
    #[inline]
    pub(super) fn work_in(&self, cpu: Cpu, time: Ns) -> Ns {
        scale(time, self.cpus[cpu.index()].speed, FULL_SPEED)
    }

    /// Notes how fast every CPU is at the start.
    pub(super) fn note_speeds(&mut self) {
        for cpu in self.machine.topology.cpus() {
            self.cpus[cpu.index()].speed = self.present_speed(cpu);
        }
    }

    /// `cpu` is faster or slower from now on: what it is in the middle of ends earlier or later.
    pub(super) fn change_speed(&mut self, cpu: Cpu) {
        let speed = self.present_speed(cpu);
        let before = std::mem::replace(&mut self.cpus[cpu.index()].speed, speed);
        let state = &self.cpus[cpu.index()];
        if before == speed || !self.goes_by_speed(cpu) {
            return;
        }
        let left = scale(state.until.since(self.now), before, speed);
        let until = self.now + left;
        self.cpus[cpu.index()].until = until;
        self.queue.arrange_phase_end(cpu, until);
    }
}
