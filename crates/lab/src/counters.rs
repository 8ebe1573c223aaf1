//! What a scheduler counts of itself, as metrics: `/proc/schedstat`, searches for work, and what only a model counts.
//!
//! Must not know: who asks for it, what the counters are for.

use fairlab_analysis::balancing::is_of_balancing;
use fairlab_kernel::schedstat::SisCounters;
use fairlab_kernel::select::SisSummary;
use fairlab_sim::{Engine, SchedulerCore};

use crate::LabError;
use crate::verify::schedstat::Schedstat;

/// Counters of CPUs, and of domains whatever a CPU balances for. Others that the file has are 0 on every kernel since v3.
const OF_SCHEDSTAT: [&str; 13] = [
    "yld_count",
    "sched_count",
    "sched_goidle",
    "ttwu_count",
    "ttwu_local",
    "rq_cpu_time",
    "run_delay",
    "pcount",
    "alb_count",
    "alb_failed",
    "alb_pushed",
    "ttwu_wake_remote",
    "ttwu_move_affine",
];

/// What CPUs balance for.
const IDLE: [&str; 3] = ["busy_lb_", "idle_lb_", "newidle_lb_"];

/// Searches for work by CPUs that run out of it, as an engine counts them.
const OF_ENGINES: [&str; 3] = ["newidle_searches", "newidle_ns_mean", "newidle_ns_max"];

/// What only models count, beside `sis_…`.
const OF_MODELS: [&str; 1] = ["nohz_stats_updates"];

/// Whether a metric is a scheduler's own count.
pub fn is_counter(metric: &str) -> bool {
    OF_MODELS.contains(&metric)
        || metric.starts_with("sis_")
        || OF_SCHEDSTAT.contains(&metric)
        || OF_ENGINES.contains(&metric)
        || IDLE.iter().any(|kind| metric.starts_with(kind))
}

/// Whether a metric is measured only where it is asked for by its name.
pub fn is_asked_for(metric: &str) -> bool {
    is_counter(metric) || is_of_balancing(metric)
}

/// Whether only models have that metric.
fn is_modelled(metric: &str) -> bool {
    OF_MODELS.contains(&metric) || metric.starts_with("sis_") || is_of_balancing(metric)
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
        let mut metrics = match (&before.schedstat, &self.schedstat) {
            (Some(before), Some(after)) => of_schedstat(before, after)?,
            _ => Vec::new(),
        };
        let own = self.own.iter().zip(&before.own);
        metrics
            .extend(own.map(|((name, after), (_, before))| ((*name).to_string(), (after - before) as f64)));
        let searches = self.searches - before.searches;
        metrics.push((OF_ENGINES[0].to_string(), searches as f64));
        if searches > 0 {
            let mean = (self.searched_ns - before.searched_ns) as f64 / searches as f64;
            metrics.extend([(OF_ENGINES[1].to_string(), mean)]);
            metrics.extend([(OF_ENGINES[2].to_string(), self.longest_ns as f64)]);
        }
        Ok(metrics)
    }
}

/// What two readings of `/proc/schedstat` count between them, of all CPUs and levels together.
///
/// # Errors
/// They are no readings of one kernel, one after the other.
pub(crate) fn of_schedstat(before: &str, after: &str) -> Result<Vec<(String, f64)>, LabError> {
    let counted = Schedstat::read(before).and_then(|before| Schedstat::read(after)?.since(&before));
    let counted = counted.map_err(|problem| {
        LabError::new(format!("/proc/schedstat of the run: {problem}"), "leave out metrics that it counts")
    })?;
    let mut sums = Vec::<(String, u64)>::new();
    for (name, count) in counted.lines.into_values().flat_map(|line| line.counters) {
        let name = name.replace(' ', "_");
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += count,
            None if is_counter(&name) => sums.push((name, count)),
            None => {}
        }
    }
    let derived = searches_in(&sums);
    Ok(sums.into_iter().map(|(name, count)| (name, count as f64)).chain(derived).collect())
}

/// What mmtests derives from the counters of searches for idle CPUs, where there are any, and how many CPUs a search of a cache domain
/// looks at.
fn searches_in(sums: &[(String, u64)]) -> Vec<(String, f64)> {
    let of = |name: &str| sums.iter().find(|(known, _)| known == name).map_or(0, |&(_, count)| count);
    let counters = SisCounters {
        search: of("sis_search"),
        domain_search: of("sis_domain_search"),
        scanned: of("sis_scanned"),
        failed: of("sis_failed"),
        recent_hit: of("sis_recent_hit"),
        recent_miss: of("sis_recent_miss"),
        core_search: of("sis_core_search"),
        core_miss: of("sis_core_miss"),
    };
    if counters.search == 0 {
        return Vec::new();
    }
    let SisCounters { search, domain_search, failed, .. } = counters;
    let SisSummary { domain_scanned, core_hit, recent_attempts, .. } = counters.summary();
    let share = |some: u64, of: u64| (of > 0).then(|| some as f64 / of as f64);
    let derived = [
        ("sis_domain_scanned", Some(domain_scanned as f64)),
        ("sis_core_hit", Some(core_hit as f64)),
        ("sis_recent_attempts", Some(recent_attempts as f64)),
        ("sis_found_share", share(search - failed, search)),
        ("sis_looked_per_search", share(domain_scanned.saturating_sub(domain_search), domain_search)),
    ];
    derived.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "version 16\ntimestamp 1\n\
        cpu0 0 0 5 1 4 2 900 30 5 10 4 40 2 0 0 1 0\ncpu1 0 0 5 1 4 2 900 30 5 0 0 0 0 0 0 0 0\n";

    #[test]
    fn counters_are_sums_of_what_was_counted_between_two_readings() {
        let after =
            BEFORE.replace(" 5 10 4 40 2", " 9 20 8 90 7").replace("cpu1 0 0 5 1 4", "cpu1 0 0 5 1 7");
        let metrics = of_schedstat(BEFORE, &after).expect("readings");
        let of = |name: &str| metrics.iter().find(|(known, _)| known == name).map(|&(_, value)| value);
        for (name, expected) in [
            ("pcount", Some(4.0)),
            ("ttwu_count", Some(3.0)),
            ("sis_search", Some(10.0)),
            ("sis_domain_scanned", Some(44.0)),
            ("sis_looked_per_search", Some(10.0)),
            ("sis_found_share", Some(0.5)),
            ("array_exp", None),
            ("newidle_searches", None),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
        assert!(metrics.iter().all(|(name, _)| is_counter(name)), "{metrics:?}");
        let other = of_schedstat(&after, BEFORE).expect_err("the other way round").to_string();
        assert!(other.starts_with("/proc/schedstat of the run: "), "{other}");
    }

    #[test]
    fn who_lacks_a_counter_is_told_who_has_it() {
        for (metric, who) in [
            ("sis_scanned", Some("only modelled kernels tell it, where it happened at all")),
            ("ttwu_count", Some("kernels with CONFIG_SCHEDSTATS tell it")),
            ("newidle_ns_max", Some("modelled kernels and trees' own code tell it")),
            ("throughput", None),
        ] {
            assert_eq!(who_counts(metric), who, "{metric}");
        }
    }
}
