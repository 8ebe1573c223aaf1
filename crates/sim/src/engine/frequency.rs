//! How fast CPUs are: work takes longer on a small CPU, at a low frequency, and where CPUs share the speed of one, the
//! kernel's own work too.
//!
//! Governors are the scheduler core's; here their requests are carried out, at once or after the time that the hardware
//! takes, and what a CPU is in the middle of is stretched or shortened.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;
use fairlab_kernel::core::Mode;
use fairlab_kernel::cpufreq::FrequencyRequest;

use super::Engine;
use super::cpu::Phase;
use crate::machine::turns;

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

    /// On a machine that carries out its CPUs in turn, one has begun or ceased to be busy: the others' turns change, and
    /// what they are in the middle of takes longer or shorter.
    pub(super) fn share_speed(&mut self) {
        let mut busy = CpuMask::EMPTY;
        for cpu in self.machine.topology.cpus() {
            if self.cpus[cpu.index()].phase != Phase::Idle {
                busy.set(cpu);
            }
        }
        self.sharers = busy.weight().max(1) as u64;
        let shares = turns::shares(&busy, self.cpus.len());
        for (cpu, share) in self.machine.topology.cpus().zip(shares) {
            self.cpus[cpu.index()].share = share;
            self.change_speed(cpu);
        }
    }

    /// Notes how fast every CPU is at the start.
    pub(super) fn note_speeds(&mut self) {
        for cpu in self.machine.topology.cpus() {
            self.cpus[cpu.index()].speed = self.speed_of(cpu);
        }
    }

    fn speed_of(&self, cpu: Cpu) -> u64 {
        let scale = self.kernel.cpu_scale(cpu);
        let alone = scale.capacity * scale.frequency;
        (alone * self.cpus[cpu.index()].share / turns::WHOLE).max(1)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::occurrence::{Interrupt, Occurrence};
    use crate::machine::Machine;

    #[test]
    fn an_interrupt_takes_as_many_turns_as_cpus_are_busy() {
        let mut machine = Machine { in_turn: true, ..crate::engine::tests::machine(4) };
        machine.costs.ipi = Ns(1_000);
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        for (busy, sharers) in [(0, 1), (1, 1), (2, 2), (4, 4)] {
            for (at, cpu) in engine.cpus.iter_mut().enumerate() {
                cpu.phase = if at < busy { Phase::User } else { Phase::Idle };
            }
            engine.share_speed();
            assert_eq!(engine.sharers, sharers, "{busy} busy");
        }
        engine.send(Cpu(3), Interrupt::Resched);
        let sent = std::iter::from_fn(|| engine.queue.pop_until(Ns(4_000)))
            .find(|(_, occurrence)| matches!(occurrence, Occurrence::Interrupt { .. }));
        assert_eq!(sent.map(|(time, _)| time), Some(Ns(4_000)));
    }
}
