//! What `/proc/schedstat` counts between two readings, as metrics: sums over all CPUs and domains.
//!
//! Must not know: whose readings they are, who asks for them.

use fairlab_files::LabError;
use fairlab_kernel::schedstat::SisCounters;
use fairlab_kernel::select::SisSummary;

use super::Schedstat;

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

/// Whether a metric is one of these.
pub fn is_one(metric: &str) -> bool {
    let of_domains = IDLE.iter().any(|kind| metric.starts_with(kind));
    of_domains || is_of_searches(metric) || OF_SCHEDSTAT.contains(&metric)
}

/// Whether it counts searches for idle CPUs, as no released kernel does.
pub fn is_of_searches(metric: &str) -> bool {
    metric.starts_with("sis_")
}

/// What two readings count between them.
///
/// # Errors
/// They are no readings of one kernel, one after the other.
pub fn between(before: &str, after: &str) -> Result<Vec<(String, f64)>, LabError> {
    let counted = Schedstat::read(before).and_then(|before| Schedstat::read(after)?.since(&before));
    let counted = counted.map_err(|problem| {
        LabError::new(format!("/proc/schedstat of the run: {problem}"), "leave out metrics that it counts")
    })?;
    let mut sums = Vec::<(String, u64)>::new();
    for (name, count) in counted.lines.into_values().flat_map(|line| line.counters) {
        let name = name.replace(' ', "_");
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += count,
            None if is_one(&name) => sums.push((name, count)),
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
        let metrics = between(BEFORE, &after).expect("readings");
        let of = |name: &str| metrics.iter().find(|(known, _)| known == name).map(|&(_, value)| value);
        for (name, expected) in [
            ("pcount", Some(4.0)),
            ("ttwu_count", Some(3.0)),
            ("sis_search", Some(10.0)),
            ("sis_domain_scanned", Some(44.0)),
            ("sis_looked_per_search", Some(10.0)),
            ("sis_found_share", Some(0.5)),
            ("array_exp", None),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
        assert!(metrics.iter().all(|(name, _)| is_one(name)), "{metrics:?}");
        let other = between(&after, BEFORE).expect_err("the other way round").problem;
        assert!(other.starts_with("/proc/schedstat of the run: "), "{other}");
    }
}
