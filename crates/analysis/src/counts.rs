//! The counters and histograms of a run: a few kilobytes that can be added to those of other runs and hosts.
//!
//! Must not know: how they were counted, how they are kept in files.

mod named;

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use crate::task_selector::TaskSelector;
pub use named::{BY_NAME, is_by_name, is_of_places};
pub use named::{GroupThrottled, MoveCounts, NameCounts, NamePlacement, StackedTime, Unfairness};

/// Percentiles that have names: how they are called, in thousandths.
struct Percentiles;

impl Percentiles {
    const WAKEUPS: [(&str, u64); 7] = [
        ("p50", 500),
        ("p75", 750),
        ("p90", 900),
        ("p95", 950),
        ("p99", 990),
        ("p99.5", 995),
        ("p99.9", 999),
    ];
    const WAITS: [(&str, u64); 3] = [("p50", 500), ("p99", 990), ("p99.9", 999)];
}

/// Metrics of waits that are reported: percentiles by name, in thousandths, and the name of the greatest.
type WaitNames = (&'static [(&'static str, u64)], &'static str);

/// [`WaitNames`] of all percentiles of a distribution.
macro_rules! wait_names {
    ($name:literal) => {
        (
            &[
                (concat!($name, "_p50"), 500),
                (concat!($name, "_p75"), 750),
                (concat!($name, "_p90"), 900),
                (concat!($name, "_p95"), 950),
                (concat!($name, "_p99"), 990),
                (concat!($name, "_p99.5"), 995),
                (concat!($name, "_p99.9"), 999),
            ],
            concat!($name, "_max"),
        )
    };
}

const WAKEUP_LATENCY: WaitNames = wait_names!("wakeup_latency_ns");
const FORK_WAIT: WaitNames = wait_names!("fork_wait_ns");

fn wait_metrics(waits: &Histogram, (percentiles, max): WaitNames, metrics: &mut Vec<(&'static str, f64)>) {
    for (name, per_mille) in percentiles {
        metrics.extend(waits.percentile(*per_mille).map(|value| (*name, value as f64)));
    }
    metrics.extend(waits.max().map(|value| (max, value as f64)));
}

/// What the quotas of groups did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throttles {
    /// How often a group was throttled on a CPU.
    pub nr_throttled: u64,
    /// For how long, each CPU by itself.
    pub throttled_ns: u64,
    /// For how long waits were for a quota, those that were at all, ns.
    pub throttled_wait: Histogram,
    /// From leaving a CPU runnable to running again, ns.
    pub preemption_wait: Histogram,
}

const THROTTLED: WaitNames = (
    &[("throttled_wait_ns_p50", 500), ("throttled_wait_ns_p99", 990), ("throttled_wait_ns_p99.9", 999)],
    "throttled_wait_ns_max",
);
const PREEMPTED: WaitNames =
    (&[("preemption_wait_ns_p50", 500), ("preemption_wait_ns_p99", 990)], "preemption_wait_ns_max");

impl Throttles {
    fn merge(&mut self, other: &Throttles) {
        self.nr_throttled = self.nr_throttled.saturating_add(other.nr_throttled);
        self.throttled_ns = self.throttled_ns.saturating_add(other.throttled_ns);
        self.throttled_wait.merge(&other.throttled_wait);
        self.preemption_wait.merge(&other.preemption_wait);
    }

    fn metrics(&self, seconds: f64, metrics: &mut Vec<(&'static str, f64)>) {
        metrics.push(("nr_throttled_per_s", self.nr_throttled as f64 / seconds));
        metrics.push(("throttled_ns_per_s", self.throttled_ns as f64 / seconds));
        wait_metrics(&self.throttled_wait, THROTTLED, metrics);
        wait_metrics(&self.preemption_wait, PREEMPTED, metrics);
    }
}

/// Counters and histograms of one run or of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// How many runs these are.
    pub runs: u64,
    /// For how long they were watched, together.
    pub observed_ns: u64,
    /// Time that all CPUs were watched.
    pub cpu_ns: u64,
    /// How long CPUs idled, of all CPUs.
    pub idle_ns: u64,
    /// How long some CPU idled while a task waited behind another one.
    pub unconserved_ns: u64,
    /// Context switches.
    pub switches: u64,
    /// Switches away from tasks that stayed runnable.
    pub involuntary_switches: u64,
    /// Migrations.
    pub migrations: u64,
    /// From waking to running, ns.
    pub wakeup_latency: Histogram,
    /// From the first queueing of new tasks to their running, ns.
    pub fork_wait: Histogram,
    /// What quotas did, where groups have any.
    pub throttles: Option<Throttles>,
    /// What some of the tasks come to, by name, as far as it was asked for.
    pub by_name: BTreeMap<TaskSelector, NameCounts>,
}

impl RunCounts {
    /// Adds another's.
    pub fn merge(&mut self, other: &RunCounts) {
        for (mine, theirs) in [
            (&mut self.runs, other.runs),
            (&mut self.observed_ns, other.observed_ns),
            (&mut self.cpu_ns, other.cpu_ns),
            (&mut self.idle_ns, other.idle_ns),
            (&mut self.unconserved_ns, other.unconserved_ns),
            (&mut self.switches, other.switches),
            (&mut self.involuntary_switches, other.involuntary_switches),
            (&mut self.migrations, other.migrations),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        self.wakeup_latency.merge(&other.wakeup_latency);
        self.fork_wait.merge(&other.fork_wait);
        if let Some(theirs) = &other.throttles {
            self.throttles.get_or_insert_default().merge(theirs);
        }
        for (who, theirs) in &other.by_name {
            self.by_name.entry(who.clone()).or_default().merge(theirs);
        }
    }

    /// Every metric by whose it is and its name, `WHO METRIC`: workloads and groups by name, then tasks.
    pub fn metrics_by_name(&self) -> Vec<(String, f64)> {
        let task = |name: &str| self.by_name.get(&TaskSelector::Task(name.to_string()));
        let mut metrics = Vec::new();
        for kind in named::KINDS {
            for (who, counts) in self.by_name.iter().filter(|(who, _)| who.kind() == kind) {
                let namesake = if let TaskSelector::Workload(name) = who { task(name) } else { None };
                let Some(shown) = named::shown(who, counts, namesake) else { continue };
                let own = counts.metrics(self.observed_ns);
                metrics.extend(own.into_iter().map(|(name, value)| (format!("{shown} {name}"), value)));
            }
        }
        metrics
    }

    /// Every metric that there is: the machine's, then those by name.
    pub fn all_metrics(&self) -> Vec<(String, f64)> {
        let own = self.metrics().into_iter().map(|(name, value)| (name.to_string(), value));
        own.chain(self.metrics_by_name()).collect()
    }

    /// Every metric by name. Rates are per second of the time watched, shares lie in 0…1; percentiles are within
    /// 1/128 of their size above the exact ones. What nothing was measured for is left out.
    pub fn metrics(&self) -> Vec<(&'static str, f64)> {
        let mut metrics = Vec::new();
        wait_metrics(&self.wakeup_latency, WAKEUP_LATENCY, &mut metrics);
        wait_metrics(&self.fork_wait, FORK_WAIT, &mut metrics);
        let seconds = self.observed_ns as f64 / 1e9;
        if seconds > 0.0 {
            metrics.extend([
                ("involuntary_switches_per_s", self.involuntary_switches as f64 / seconds),
                ("switches_per_s", self.switches as f64 / seconds),
                ("migrations_per_s", self.migrations as f64 / seconds),
            ]);
            // Where only some tasks' switches were recorded, nothing is known of CPUs.
            if self.cpu_ns > 0 {
                metrics.extend([
                    ("idle_share", self.idle_ns as f64 / self.cpu_ns as f64),
                    ("unconserved_share", self.unconserved_ns as f64 / self.observed_ns as f64),
                ]);
            }
            if let Some(throttles) = &self.throttles {
                throttles.metrics(seconds, &mut metrics);
            }
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentiles of many hosts' latencies, each host with a distribution of its own, beside the exact ones.
    #[test]
    fn merged_percentiles_are_within_the_stated_error() {
        let (mut all, mut merged) = (Vec::new(), RunCounts::default());
        for host in 0..200_u64 {
            let mut counts = RunCounts {
                runs: 1,
                observed_ns: 1_000,
                cpu_ns: 8_000,
                idle_ns: host,
                ..RunCounts::default()
            };
            for step in 0..100_u64 {
                let latency = 1_500 + (step * step * 7_919 + host * 104_729) % (20_000 + host * host * 300);
                counts.wakeup_latency.record(latency);
                all.push(latency);
            }
            merged.merge(&counts);
        }
        all.sort_unstable();
        assert_eq!((merged.runs, merged.observed_ns, merged.wakeup_latency.total()), (200, 200_000, 20_000));
        let metrics = merged.metrics();
        let metric = |name: &str| metrics.iter().find(|(known, _)| *known == name).expect("measured").1;
        for &(name, per_mille) in WAKEUP_LATENCY.0 {
            let exact = all[(all.len() * per_mille as usize).div_ceil(1000) - 1] as f64;
            let found = metric(name);
            assert!(
                found >= exact && found <= exact * (1.0 + 1.0 / 128.0),
                "{name}: {found}, exactly {exact}"
            );
        }
        assert_eq!(metric("wakeup_latency_ns_max"), all[all.len() - 1] as f64);
        assert!((metric("idle_share") - 19_900.0 / 1_600_000.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_gives_no_metrics() {
        assert_eq!(RunCounts::default().metrics(), []);
    }
}
