//! Clocks that are scaled along the walk, as the trace shows them, and wakeups by energy.
//!
//! Must not know: how frequencies and CPUs are chosen.

use fairlab_event::{Cpu, Ns};

use super::Walker;

impl Walker {
    /// Puts the machine's CPUs under its governors, at the frequencies of the snapshot, and tells what they draw.
    pub(super) fn take_power(&mut self) {
        let power = std::mem::take(&mut self.recording.power);
        if power.clocks.is_empty() {
            return;
        }
        self.sched.set_frequency_domains(power.clocks);
        for (policy, khz) in power.current.into_iter().enumerate() {
            self.sched.set_frequency(policy, khz);
        }
        self.overutilized_known = !self.sched.set_energy_model(&power.energy);
    }

    /// A CPU's clock has been set: its policy's.
    pub(super) fn on_frequency(&mut self, cpu: Cpu, khz: u32) {
        if let Some(policy) = self.sched.policy_of_cpu(cpu) {
            self.sched.set_frequency(policy, khz);
        }
    }

    /// A CPU goes into an idle state, or leaves it. How long leaving takes no event tells, but deeper ones take longer.
    pub(super) fn on_idle_state(&mut self, cpu: Cpu, state: Option<u32>) {
        self.cpus[cpu.index()].idle_state = state;
        if self.seen.idle_states {
            self.sched.idle_set_state(cpu, exit_latency(state));
        } else if state > Some(1) {
            self.seen.idle_states = true;
            for (cpu, info) in (0..).zip(&self.cpus) {
                self.sched.idle_set_state(Cpu(cpu), exit_latency(info.idle_state));
            }
        }
    }
}

/// What stands for the exit latency of a state.
fn exit_latency(state: Option<u32>) -> Option<Ns> {
    state.map(|depth| Ns(depth.into()))
}
