//! What a scheduler counts of itself, as metrics: `/proc/schedstat`, searches for work, and what only a model counts.
//!
//! Must not know: who asks for it, what the counters are for.

use fairlab_analysis::balancing::is_of_balancing;
use fairlab_sim::{Engine, SchedulerCore};
use fairlab_verify::schedstat::metrics;

use crate::LabError;

/// Searches for work by CPUs that run out of it, as an engine counts them.
const OF_ENGINES: [&str; 3] = ["newidle_searches", "newidle_ns_mean", "newidle_ns_max"];

/// What only models count, beside `sis_…`.
const OF_MODELS: [&str; 1] = ["nohz_stats_updates"];

/// Whether a metric is a scheduler's own count.
pub fn is_counter(metric: &str) -> bool {
    OF_MODELS.contains(&metric) || OF_ENGINES.contains(&metric) || metrics::is_one(metric)
}

/// Whether a metric is measured only where it is asked for by its name.
pub fn is_asked_for(metric: &str) -> bool {
    is_counter(metric) || is_of_balancing(metric)
}

/// Whether only models have that metric.
fn is_modelled(metric: &str) -> bool {
    OF_MODELS.contains(&metric) || metrics::is_of_searches(metric) || is_of_balancing(metric)
}

/// Which kernels have a metric that runs lack, if it is one of these.
pub fn who_counts(metric: &str) -> Option<&'static str> {
    if is_modelled(metric) {
        return Some("only modelled kernels tell it, where it happened at all");
    }
    is_counter(metric).then_some(if OF_ENGINES.contains(&metric) {
        "modelled kernels and trees' own code tell it"
    } else {
        "kernels with CONFIG_SCHEDSTATS tell it"
    })
}

/// What an engine's scheduler has counted up to some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    schedstat: Option<String>,
    own: Vec<(&'static str, u64)>,
    searches: u64,
    searched_ns: u64,
    longest_ns: u64,
}

impl Reading {
    /// What was counted by now.
    pub fn of<C: SchedulerCore>(engine: &mut Engine<C>) -> Reading {
        let counters = engine.counters();
        Reading {
            schedstat: engine.schedstat(),
            own: engine.own_counters(),
            searches: counters.newidle,
            searched_ns: counters.newidle_time.0,
            longest_ns: counters.newidle_longest.0,
        }
    }

    /// The metrics of what was counted since `before`. The longest search is that of those which ended since the engine forgot it.
    ///
    /// # Errors
    /// The kernel's file cannot be read.
    pub fn since(&self, before: &Reading) -> Result<Vec<(String, f64)>, LabError> {
        let mut counted = match (&before.schedstat, &self.schedstat) {
            (Some(before), Some(after)) => metrics::between(before, after)?,
            _ => Vec::new(),
        };
        let own =
            self.own.iter().zip(&before.own).map(|((name, after), (_, before))| (*name, after - before));
        let searches = self.searches - before.searches;
        let counts = own.chain([("newidle_searches", searches)]);
        counted.extend(counts.map(|(name, count)| (name.to_string(), count as f64)));
        if searches > 0 {
            let mean = (self.searched_ns - before.searched_ns) as f64 / searches as f64;
            let times = [("newidle_ns_mean", mean), ("newidle_ns_max", self.longest_ns as f64)];
            counted.extend(times.map(|(name, time)| (name.to_string(), time)));
        }
        Ok(counted)
    }
}
