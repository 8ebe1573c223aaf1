//! Machines: topology, tick rate, and what kernel work costs there.

pub mod chance;
mod costs;
mod idle;
mod presets;
mod sharing;
pub(crate) mod speed;
pub mod vcpu_rounds;

pub use chance::Chance;
pub use costs::{KernelCost, KernelCosts};
pub use idle::IdleState;
pub use presets::{PRESETS, Preset};
pub use sharing::{NOMINAL_MEGABYTES_PER_S, Sharing, SharingCost};
pub use speed::{Boost, SpeedLimit, TrueSpeeds};

use fairlab_event::Ns;
use fairlab_kernel::Topology;
use fairlab_kernel::cpufreq::FrequencyDomain;
use fairlab_kernel::energy::PerfDomain;

/// A machine that can run a workload in virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// Its CPUs and what they share.
    pub topology: Topology,
    /// Ticks a second (`CONFIG_HZ`).
    pub hz: u64,
    /// Sleep timers expire when they are due (`CONFIG_HIGH_RES_TIMERS`, and a clock good enough for it); without, at the
    /// next tick.
    pub high_res_timers: bool,
    /// An idle CPU stops its tick (`CONFIG_NO_HZ_IDLE`, and a clock good enough for it): when the kernel's rule says so, or where
    /// idle states are told, if it expects to idle for a tick or longer. Without, every CPU ticks always.
    pub nohz_idle: bool,
    /// What kernel work costs.
    pub costs: KernelCosts,
    /// What sharing costs: caches, bandwidth, threads of a core, cache lines.
    pub sharing: Sharing,
    /// What differs from run to run.
    pub chance: Chance,
    /// One thread of a host carries out its CPUs in turn, and time is what it has carried out: CPUs that are busy share
    /// the speed of one, and stand still while others have their turn ([`turns`]). Time on the clock passes for all alike.
    pub in_turn: bool,
    /// How fast CPUs truly are, where that is not what their kernel is told (`topology`, `frequency_domains`).
    pub speeds: TrueSpeeds,
    /// CPUs that share a clock whose frequency schedutil chooses; all others run at full speed.
    pub frequency_domains: Vec<FrequencyDomain>,
    /// What CPUs draw at each of their frequencies, where wakeups go by that; of all CPUs or of none.
    pub energy_model: Vec<PerfDomain>,
    /// Idle states, for each CPU by rising depth; without any, leaving idle always takes `idle_exit_ns`.
    pub idle_states: Vec<IdleState>,
}

impl Machine {
    /// The preset called `name`.
    pub fn preset(name: &str) -> Option<Machine> {
        PRESETS.iter().find(|preset| preset.name == name).map(Preset::build)
    }

    /// The machine with nothing left to chance.
    #[must_use]
    pub fn exact(self) -> Machine {
        Machine { chance: Chance::NONE, ..self }
    }

    /// The tick's period.
    pub fn tick(&self) -> Ns {
        Ns(1_000_000_000 / self.hz)
    }
}
