//! What a frequency costs: the states of CPUs that share a clock.
//!
//! Must not know: who is placed by it.

use crate::cpufreq::rules::Headroom;
use crate::cpumask::CpuMask;
use crate::select::rules::{EnergyCost, InefficientStates};

/// A performance state: what one CPU draws while it runs at this frequency (`struct em_perf_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfState {
    /// The frequency, kHz.
    pub khz: u32,
    /// The power, uW.
    pub microwatts: u64,
}

impl PerfState {
    /// A state whose power is given in mW.
    pub fn of_milliwatts(khz: u32, milliwatts: u32) -> PerfState {
        PerfState { khz, microwatts: u64::from(milliwatts) * 1000 }
    }

    /// The power, mW, rounded down.
    pub fn milliwatts(&self) -> u64 {
        self.microwatts / 1000
    }
}

/// CPUs whose performance is scaled together (`struct em_perf_domain`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfDomain {
    /// The CPUs, all of one capacity.
    pub cpus: CpuMask,
    /// Their states, by rising frequency.
    pub states: Vec<PerfState>,
}

/// A domain with what its states cost.
#[derive(Clone, Debug)]
pub(crate) struct CostedDomain {
    pub cpus: CpuMask,
    /// Of each CPU.
    pub(crate) capacity: u64,
    pub(crate) max_khz: u64,
    pub(crate) states: Vec<CostedState>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CostedState {
    pub(crate) khz: u64,
    /// What a CPU can do in this state.
    pub(crate) performance: u64,
    /// Energy for each unit of utilization; in what measure depends on the rule.
    pub(crate) cost: u64,
}

/// The domains of a machine in the order of the kernel's list: the last that was found comes first.
#[derive(Clone, Debug)]
pub(crate) struct EnergyModel {
    pub domains: Vec<CostedDomain>,
}

impl EnergyCost {
    /// What running at `state` costs for each unit of utilization.
    ///
    /// Kernel: `em_create_pd()`, from v6.9 `em_compute_costs()`, kernel/power/energy_model.c.
    pub(crate) fn of_state(self, state: PerfState, performance: u64, max_khz: u64) -> u64 {
        let (khz, microwatts) = (u64::from(state.khz).max(1), state.microwatts);
        match self {
            EnergyCost::Milliwatts => max_khz * state.milliwatts() / khz,
            EnergyCost::Microwatts => max_khz * microwatts / khz,
            EnergyCost::PerPerformance => microwatts * 10 / performance.max(1),
        }
    }
}

/// Leaves the states that cost less for each unit of work than every faster one.
///
/// Kernel: `em_create_perf_table()`, from v6.9 `em_compute_costs()`, which mark the others, and `em_pd_get_efficient_state()`, which
/// passes over them.
pub(crate) fn skip_inefficient(states: &mut Vec<CostedState>) {
    let mut least = u64::MAX;
    let mut efficient = states
        .iter()
        .rev()
        .copied()
        .filter(|state| {
            let costs_less = state.cost < least;
            least = least.min(state.cost);
            costs_less
        })
        .collect::<Vec<_>>();
    efficient.reverse();
    *states = efficient;
}

impl CostedDomain {
    pub(crate) fn new(
        domain: &PerfDomain,
        capacity: u64,
        rule: EnergyCost,
        inefficient: InefficientStates,
    ) -> CostedDomain {
        let max_khz = domain.states.last().map_or(1, |state| u64::from(state.khz)).max(1);
        let states = domain.states.iter().map(|&state| {
            let performance = capacity * u64::from(state.khz) / max_khz;
            let cost = rule.of_state(state, performance, max_khz);
            CostedState { khz: state.khz.into(), performance, cost }
        });
        let mut states = states.collect::<Vec<_>>();
        if inefficient == InefficientStates::Skipped {
            skip_inefficient(&mut states);
        }
        CostedDomain { cpus: domain.cpus, capacity, max_khz, states }
    }

    /// What the domain takes if its busiest CPU is used to `max_util` and all together to `sum_util`.
    ///
    /// Kernel: `em_pd_energy()`, from v5.8 `em_cpu_energy()`, include/linux/energy_model.h. Variants: in mW to v5.14, in
    /// uW from v5.15 (7fcc17d0cb12), without a division from v6.9 (1b600da51073); headroom as the
    /// governor's.
    /// Departs: heat takes nothing.
    pub fn energy(&self, rule: EnergyCost, headroom: Headroom, max_util: u64, sum_util: u64) -> u64 {
        let last = self.states.len() - 1;
        let state = match rule {
            EnergyCost::Milliwatts | EnergyCost::Microwatts => {
                let khz = headroom.map(max_util, self.max_khz, self.capacity);
                self.states.iter().find(|state| state.khz >= khz)
            }
            EnergyCost::PerPerformance => {
                let wanted = (max_util + (max_util >> 2)).min(self.capacity);
                self.states.iter().find(|state| state.performance >= wanted)
            }
        };
        let cost = state.unwrap_or(&self.states[last]).cost;
        match rule {
            EnergyCost::Milliwatts | EnergyCost::Microwatts => cost * sum_util / self.capacity,
            EnergyCost::PerPerformance => cost * sum_util,
        }
    }
}
