//! The machine on which something was recorded, as far as the recording tells of it.
//!
//! Must not know: what was recorded.

use fairlab_kernel::Topology;
use fairlab_sim::Machine;
use fairlab_sim::machine::{Chance, KernelCosts, Sharing, TrueSpeeds};

use crate::emulated;

/// A machine of these CPUs that ticks so often. `emulated`: the kernel's name, where QEMU carried out its CPUs on one thread; others have
/// the usual costs.
///
/// Departs: clocks stand still. How long tasks ran was recorded at whatever speed there was.
pub fn recorded(topology: Topology, hz: u64, emulated: Option<&str>) -> Machine {
    let whose = if emulated.is_some() { "costs of an emulator" } else { "usual costs" };
    Machine {
        name: "recorded".to_string(),
        description: format!("{} CPUs as recorded, {whose}", topology.nr_cpus()),
        topology,
        hz,
        high_res_timers: true,
        nohz_idle: true,
        costs: emulated.map_or_else(KernelCosts::default, emulated::costs),
        chance: if emulated.is_some() { emulated::chance() } else { Chance::USUAL },
        in_turn: emulated.is_some(),
        frequency_domains: Vec::new(),
        energy_model: Vec::new(),
        speeds: TrueSpeeds::default(),
        sharing: Sharing::NONE,
        idle_states: Vec::new(),
    }
}
