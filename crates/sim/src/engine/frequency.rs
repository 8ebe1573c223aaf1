//! How fast CPUs are: work takes longer on a small CPU, at a low frequency, the kernel's own work too.
//!
//! Governors are the scheduler core's; here their requests are carried out, at once or after the time that the hardware
//! takes, and what a CPU is in the middle of is stretched or shortened.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::core::Mode;
use fairlab_kernel::cpufreq::FrequencyRequest;

use super::Engine;
use super::cpu::Phase;

/// The speed of a biggest CPU at its highest frequency: capacity times frequency, each a part of 1024.
pub(super) const FULL_SPEED: u64 = 1024 * 1024;

impl Engine {
    /// How long `cpu` takes, as fast as it is now, for what takes `work` at full speed.
    pub(super) fn time_for(&self, cpu: Cpu, work: Ns) -> Ns {
        scale(work, FULL_SPEED, self.cpus[cpu.index()].speed)
    }

    /// How much `cpu` does in `time`, as fast as it is now, as time at full speed.
    pub(super) fn work_in(&self, cpu: Cpu, time: Ns) -> Ns {
        scale(time, self.cpus[cpu.index()].speed, FULL_SPEED)
    }

    /// Notes how fast every CPU is at the start.
    pub(super) fn note_speeds(&mut self) {
        for cpu in self.machine.topology.cpus() {
            self.cpus[cpu.index()].speed = self.speed_of(cpu);
        }
    }

    fn speed_of(&self, cpu: Cpu) -> u64 {
        let scale = self.kernel.cpu_scale(cpu);
        (scale.capacity * scale.frequency).max(1)
    }

    /// Carries out what governors have asked for in what `cpu` just did, which is charged for their work.
    pub(super) fn serve_governors(&mut self, cpu: Cpu) {
        let mut requests = std::mem::take(&mut self.frequency_requests);
        let looked_at = self.kernel.take_frequency_requests(&mut requests);
        if looked_at > 0 && self.cpus[cpu.index()].phase != Phase::Idle {
            let cost = Ns(self.machine.costs.governor_cpu.0 * u64::from(looked_at));
            self.delay_phase(cpu, cost);
        }
        for request in requests.drain(..) {
            if self.kernel.switches_fast(request.policy) {
                self.set_frequency(request.policy, request.khz);
            } else {
                let switched = self.now + self.machine.costs.frequency_switch;
                self.queue.arrange_frequency(cpu, switched, request);
            }
        }
        self.frequency_requests = requests;
    }

    /// A frequency is in force that took its time to set; what has been asked for since then is next.
    pub(super) fn frequency_is_set(&mut self, cpu: Cpu, request: FrequencyRequest) {
        self.kernel.set_here(cpu, Mode::Hardirq, self.now);
        self.set_frequency(request.policy, request.khz);
    }

    /// The clock of a policy runs at another frequency from now on.
    fn set_frequency(&mut self, policy: usize, khz: u32) {
        self.kernel.set_frequency(policy, khz);
        for cpu in self.kernel.cpus_of_policy(policy).iter() {
            self.change_speed(cpu);
        }
    }

    fn change_speed(&mut self, cpu: Cpu) {
        let speed = self.speed_of(cpu);
        let before = std::mem::replace(&mut self.cpus[cpu.index()].speed, speed);
        let state = &self.cpus[cpu.index()];
        if before == speed || state.phase == Phase::Idle || self.polls(cpu) {
            return;
        }
        let left = scale(state.until.since(self.now), before, speed);
        let until = self.now + left;
        self.cpus[cpu.index()].until = until;
        self.queue.arrange_phase_end(cpu, until);
    }
}

/// `time` × `by` / `of`, rounded up.
fn scale(time: Ns, by: u64, of: u64) -> Ns {
    if by == of {
        return time;
    }
    Ns((u128::from(time.0) * u128::from(by)).div_ceil(u128::from(of)) as u64)
}
