//! Tunables in force on one machine (`kernel/sched/sysctl`, `debug.c`), scaled to its CPUs.
//!
//! Must not know: whom they are for.

use fairlab_event::Ns;

use crate::fair::rules::LatencyCount;
use crate::generation::{Generation, Tunable};

/// Tunables in force on this machine, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sysctl {
    pub latency: u64,
    pub min_granularity: u64,
    pub idle_min_granularity: u64,
    pub wakeup_granularity: u64,
    pub base_slice: u64,
    /// The same before it is scaled to the machine.
    pub normalised_slice: u64,
    /// How many tasks fit into one latency (`sched_nr_latency`).
    pub nr_latency: u64,
    /// How much runtime a queue takes from its group's pool at a time.
    pub bandwidth_slice: u64,
    /// One tick.
    pub tick: u64,
    /// How long a jiffy lasts, ns: a tick, unless the driver's kernel counts them otherwise.
    pub jiffy: u64,
    /// How long after a whole number of them on the driver's clock one begins, ns.
    pub jiffy_phase: u64,
    /// Jiffies when the driver's clock begins.
    pub first_jiffy: u64,
    /// Ticks in a second (`HZ`).
    pub hz: u64,
    /// How long after running a task counts as cache-hot.
    pub migration_cost: u64,
    /// What fair tasks have in each second beside real-time ones; 0: nothing.
    pub fair_server_runtime: u64,
}

/// How many tasks fit into one latency; `written` are latency and granularity in force. Scaling leaves the quotient as it is.
///
/// Kernel: `sched_nr_latency`, `sched_proc_update_handler()`; from v5.13 (8a99b6833c88) only `sched_update_scaling()` counts again.
fn nr_latency(generation: &Generation, written: [u64; 2]) -> u64 {
    let own =
        [Tunable::Latency, Tunable::MinGranularity].map(|tunable| generation.tunables.normalised(tunable));
    let [latency, granularity] = match generation.fair.latency_count {
        LatencyCount::Written => written,
        LatencyCount::Unwritten => own.map(Option::unwrap_or_default),
    };
    latency.div_ceil(granularity.max(1))
}

impl Sysctl {
    /// Those of a kernel on so many CPUs with such a tick.
    pub fn new(generation: &Generation, nr_cpus: usize, tick: Ns) -> Sysctl {
        let value = |tunable| generation.tunables.effective(tunable, nr_cpus);
        let (latency, min_granularity) =
            (value(Tunable::Latency).unwrap_or(0), value(Tunable::MinGranularity));
        // Until it had a tunable of its own, EEVDF's request was the minimal granularity.
        let base_slice = value(Tunable::BaseSlice).or(min_granularity).unwrap_or(0);
        let min_granularity = min_granularity.unwrap_or(0);
        Sysctl {
            latency,
            min_granularity,
            idle_min_granularity: value(Tunable::IdleMinGranularity).unwrap_or(0),
            wakeup_granularity: value(Tunable::WakeupGranularity).unwrap_or(0),
            base_slice,
            normalised_slice: generation.tunables.normalised(Tunable::BaseSlice).unwrap_or(base_slice),
            nr_latency: nr_latency(generation, [latency, min_granularity]),
            bandwidth_slice: value(Tunable::BandwidthSlice).unwrap_or(0),
            tick: tick.0,
            jiffy: tick.0,
            jiffy_phase: 0,
            first_jiffy: 0,
            hz: Ns::from_secs(1).0 / tick.0.max(1),
            migration_cost: value(Tunable::MigrationCost).unwrap_or(0),
            fair_server_runtime: value(Tunable::FairServerRuntime).unwrap_or(0),
        }
    }
}
