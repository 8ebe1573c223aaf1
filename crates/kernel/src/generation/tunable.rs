//! Tunables in ns: normalised values and how they scale with the number of CPUs.

/// A tunable that a generation name may set (`v6.6,base_slice_ns=1500000`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tunable {
    /// `sched_latency_ns`: the period in which each of few tasks runs once.
    Latency,
    /// `sched_min_granularity_ns`: the least a task runs before the tick preempts it.
    MinGranularity,
    /// `sched_idle_min_granularity_ns`: the same for `SCHED_IDLE` beside others.
    IdleMinGranularity,
    /// `sched_wakeup_granularity_ns`: how far behind a woken task must be to preempt.
    WakeupGranularity,
    /// `base_slice_ns`: the request of an entity without a slice of its own.
    BaseSlice,
    /// `sched_cfs_bandwidth_slice_us`, in ns: how much runtime a queue takes from its group's pool at a time.
    BandwidthSlice,
    /// `sched_migration_cost_ns`: how long after running a task counts as cache-hot.
    MigrationCost,
    /// `fair_server/cpu*/runtime`: how long fair tasks run in each second beside real-time ones that never sleep; 0: not at all.
    FairServerRuntime,
}

impl Tunable {
    /// Every tunable.
    pub const ALL: &[Tunable] = &[
        Tunable::Latency,
        Tunable::MinGranularity,
        Tunable::IdleMinGranularity,
        Tunable::WakeupGranularity,
        Tunable::BaseSlice,
        Tunable::BandwidthSlice,
        Tunable::MigrationCost,
        Tunable::FairServerRuntime,
    ];

    /// Its file's name under `/sys/kernel/debug/sched`.
    pub const fn name(self) -> &'static str {
        match self {
            Tunable::Latency => "latency_ns",
            Tunable::MinGranularity => "min_granularity_ns",
            Tunable::IdleMinGranularity => "idle_min_granularity_ns",
            Tunable::WakeupGranularity => "wakeup_granularity_ns",
            Tunable::BaseSlice => "base_slice_ns",
            Tunable::BandwidthSlice => "cfs_bandwidth_slice_ns",
            Tunable::MigrationCost => "migration_cost_ns",
            Tunable::FairServerRuntime => "fair_server_runtime",
        }
    }

    /// Whether the kernel multiplies it by [`TunableScaling::factor`] (`update_sysctl()` has a fixed list).
    const fn is_scaled(self) -> bool {
        !matches!(
            self,
            Tunable::MigrationCost
                | Tunable::IdleMinGranularity
                | Tunable::BandwidthSlice
                | Tunable::FairServerRuntime
        )
    }

    /// The least and the largest value that the kernel takes, ns.
    pub const fn limits(self) -> (u64, u64) {
        match self {
            // At most its period; none at all turns it off.
            Tunable::FairServerRuntime => (0, 1_000_000_000),
            // min_sched_granularity_ns, max_sched_granularity_ns.
            _ => (100_000, 1_000_000_000),
        }
    }
}

/// How tunables grow with the number of CPUs (`sched_tunable_scaling`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunableScaling {
    /// Not at all.
    None,
    /// 1 + log2(CPUs), of at most 8 CPUs.
    #[default]
    Log,
    /// By the number of CPUs, at most 8.
    Linear,
}

impl TunableScaling {
    /// The factor for `nr_cpus` online CPUs (kernel: `get_update_sysctl_factor()`).
    pub const fn factor(self, nr_cpus: usize) -> u64 {
        let cpus = if nr_cpus < 8 { nr_cpus as u64 } else { 8 };
        match self {
            TunableScaling::None => 1,
            TunableScaling::Log => 1 + cpus.ilog2() as u64,
            TunableScaling::Linear => cpus,
        }
    }

    /// Its number in `/sys/kernel/debug/sched/tunable_scaling`.
    pub const fn from_number(number: u64) -> Option<TunableScaling> {
        match number {
            0 => Some(TunableScaling::None),
            1 => Some(TunableScaling::Log),
            2 => Some(TunableScaling::Linear),
            _ => None,
        }
    }
}

/// The tunables that a generation has, before they meet a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tunables {
    /// How they scale.
    pub scaling: TunableScaling,
    normalised: [Option<u64>; Tunable::ALL.len()],
    set_by_user: [Option<u64>; Tunable::ALL.len()],
}

impl Tunables {
    /// Gives the generation a tunable with its normalised default.
    pub(super) fn define(&mut self, tunable: Tunable, normalised_ns: u64) {
        self.normalised[tunable as usize] = Some(normalised_ns);
    }

    /// Takes a tunable out of the generation.
    pub(super) fn remove(&mut self, tunable: Tunable) {
        self.normalised[tunable as usize] = None;
    }

    /// Sets the effective value, as writing the tunable's file does: it is not scaled.
    pub(super) fn set(&mut self, tunable: Tunable, effective_ns: u64) {
        self.set_by_user[tunable as usize] = Some(effective_ns);
    }

    /// The effective value that was set, where one was.
    pub(super) fn set_by_user(&self, tunable: Tunable) -> Option<u64> {
        self.set_by_user[tunable as usize]
    }

    /// Its default before it is scaled, whatever has been written.
    pub fn normalised(&self, tunable: Tunable) -> Option<u64> {
        self.normalised[tunable as usize]
    }

    /// Whether the generation has it.
    pub fn has(&self, tunable: Tunable) -> bool {
        self.normalised[tunable as usize].is_some()
    }

    /// The value in force on a machine with `nr_cpus` CPUs; `None` when the generation has no such tunable.
    pub fn effective(&self, tunable: Tunable, nr_cpus: usize) -> Option<u64> {
        let normalised = self.normalised[tunable as usize]?;
        let factor = if tunable.is_scaled() { self.scaling.factor(nr_cpus) } else { 1 };
        Some(self.set_by_user[tunable as usize].unwrap_or(normalised * factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_is_logarithmic_and_stops_at_eight_cpus() {
        let factors = |scaling: TunableScaling| [1, 2, 3, 4, 7, 8, 40].map(|cpus| scaling.factor(cpus));
        assert_eq!(factors(TunableScaling::Log), [1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(factors(TunableScaling::Linear), [1, 2, 3, 4, 7, 8, 8]);
        assert_eq!(factors(TunableScaling::None), [1; 7]);
    }

    #[test]
    fn what_the_user_sets_is_not_scaled() {
        let mut tunables = Tunables::default();
        tunables.define(Tunable::BaseSlice, 750_000);
        tunables.define(Tunable::MigrationCost, 500_000);
        assert_eq!(tunables.effective(Tunable::BaseSlice, 40), Some(3_000_000));
        assert_eq!(tunables.effective(Tunable::MigrationCost, 40), Some(500_000));
        tunables.set(Tunable::BaseSlice, 1_500_000);
        assert_eq!(tunables.effective(Tunable::BaseSlice, 40), Some(1_500_000));
        assert_eq!(tunables.effective(Tunable::Latency, 40), None);
    }
}
