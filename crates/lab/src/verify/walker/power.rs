//! Clocks that are scaled along the walk, as the trace shows them, and wakeups by energy.
//!
//! Must not know: how frequencies and CPUs are chosen.

use fairlab_event::Cpu;

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
}
