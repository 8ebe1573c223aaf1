//! The counters of a name: a task's name, a control group, or a workload of a mix.
//!
//! docs/metrics.md defines every metric. Must not know: how it was counted.

use std::collections::BTreeMap;

use super::Percentiles;
use crate::histogram::Histogram;
use crate::task_selector::{NameKind, TaskSelector};

/// For how long two of some tasks ran in one domain (core, cache, node).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackedTime {
    /// While another domain was empty, ns.
    pub stacked_ns: u64,
    /// While it is unknown whether another one was, ns.
    pub unknown_ns: u64,
}

/// Where some tasks ran; of a level that the machine has one domain of, nothing is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamePlacement {
    /// For how long two or more of them ran, ns.
    pub several_ns: u64,
    /// Two on one core.
    pub core: Option<StackedTime>,
    /// Two on one last-level cache.
    pub llc: Option<StackedTime>,
    /// Two on one node.
    pub node: Option<StackedTime>,
}

/// How far tasks were moved; `None`: the machine has no such distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveCounts {
    /// Between threads of a core.
    pub smt: Option<u64>,
    /// Between cores of a last-level cache.
    pub llc: Option<u64>,
    /// Between caches of a node.
    pub node: Option<u64>,
    /// Between nodes.
    pub other_node: Option<u64>,
}

/// How unequally CPU time was shared among tasks that are to get equal shares, summed up over runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfairness {
    /// The sum of (max − min) / mean of their run times, in millionths.
    pub sum_ppm: u64,
    /// Over how many runs.
    pub runs: u64,
}

/// What the quotas of a group, or of groups above it, did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupThrottled {
    /// For how long it was throttled, each CPU by itself, ns.
    pub throttled_ns: u64,
    /// For how long on any CPU, ns; `None`: not counted.
    pub some_cpu_ns: Option<u64>,
    /// The run time that its own quota allowed in the time watched, ns; `None`: it has none.
    pub quota_ns: Option<u64>,
}

/// Counters and histograms of some tasks, in one run or in many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameCounts {
    /// How many tasks there were, those of several runs added up.
    pub tasks: u64,
    /// For how long they ran, ns.
    pub run_ns: u64,
    /// For how long they were runnable and did not run, ns.
    pub wait_ns: u64,
    /// Switches away from them while they stayed runnable.
    pub involuntary_switches: u64,
    /// Migrations.
    pub migrations: u64,
    /// Migrations by distance; `None`: the topology is unknown.
    pub moves: Option<MoveCounts>,
    /// From waking to running, ns.
    pub wakeup_latency: Histogram,
    /// From the first queueing of new tasks to their running, ns.
    pub fork_wait: Histogram,
    /// From leaving a CPU runnable to running again, ns.
    pub preemption_wait: Histogram,
    /// For how long waits were for a quota, those that were at all, ns.
    pub throttled_wait: Histogram,
    /// How long they ran from one switch to the next, ns, where that is wanted.
    pub run_stretches: Histogram,
    /// Where they ran; `None`: the topology is unknown.
    pub placement: Option<NamePlacement>,
    /// For how long they ran on each kind of CPU, cache and node, ns, where that is wanted and there are several.
    pub ran_on: BTreeMap<String, u64>,
    /// Among equals that always wanted to run, where there are any.
    pub unfairness: Option<Unfairness>,
    /// Of a group whose throttling is known.
    pub throttled: Option<GroupThrottled>,
}

fn add(mine: &mut Option<u64>, theirs: Option<u64>) {
    if let Some(theirs) = theirs {
        *mine = Some(mine.unwrap_or(0).saturating_add(theirs));
    }
}

fn add_stacked(mine: &mut Option<StackedTime>, theirs: Option<StackedTime>) {
    if let Some(theirs) = theirs {
        let mine = mine.get_or_insert_default();
        mine.stacked_ns = mine.stacked_ns.saturating_add(theirs.stacked_ns);
        mine.unknown_ns = mine.unknown_ns.saturating_add(theirs.unknown_ns);
    }
}

impl NameCounts {
    /// Adds another's.
    pub fn merge(&mut self, other: &NameCounts) {
        for (mine, theirs) in [
            (&mut self.tasks, other.tasks),
            (&mut self.run_ns, other.run_ns),
            (&mut self.wait_ns, other.wait_ns),
            (&mut self.involuntary_switches, other.involuntary_switches),
            (&mut self.migrations, other.migrations),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        if let Some(theirs) = other.moves {
            let mine = self.moves.get_or_insert_default();
            add(&mut mine.smt, theirs.smt);
            add(&mut mine.llc, theirs.llc);
            add(&mut mine.node, theirs.node);
            add(&mut mine.other_node, theirs.other_node);
        }
        self.wakeup_latency.merge(&other.wakeup_latency);
        self.fork_wait.merge(&other.fork_wait);
        self.preemption_wait.merge(&other.preemption_wait);
        self.throttled_wait.merge(&other.throttled_wait);
        self.run_stretches.merge(&other.run_stretches);
        if let Some(theirs) = other.placement {
            let mine = self.placement.get_or_insert_default();
            mine.several_ns = mine.several_ns.saturating_add(theirs.several_ns);
            add_stacked(&mut mine.core, theirs.core);
            add_stacked(&mut mine.llc, theirs.llc);
            add_stacked(&mut mine.node, theirs.node);
        }
        if let Some(theirs) = other.unfairness {
            let mine = self.unfairness.get_or_insert_default();
            mine.sum_ppm = mine.sum_ppm.saturating_add(theirs.sum_ppm);
            mine.runs = mine.runs.saturating_add(theirs.runs);
        }
        if let Some(theirs) = other.throttled {
            let mine = self.throttled.get_or_insert_default();
            mine.throttled_ns = mine.throttled_ns.saturating_add(theirs.throttled_ns);
            add(&mut mine.some_cpu_ns, theirs.some_cpu_ns);
            add(&mut mine.quota_ns, theirs.quota_ns);
        }
        for (place, time) in &other.ran_on {
            let mine = self.ran_on.entry(place.clone()).or_default();
            *mine = mine.saturating_add(*time);
        }
    }

    /// Every metric of these tasks, watched for `observed_ns`. What nothing was measured for is left out.
    pub fn metrics(&self, observed_ns: u64) -> Vec<(String, f64)> {
        let mut metrics = Vec::new();
        let seconds = observed_ns as f64 / 1e9;
        for (name, waits, percentiles) in [
            ("wakeup_latency", &self.wakeup_latency, &Percentiles::WAKEUPS[..]),
            ("fork_wait", &self.fork_wait, &Percentiles::WAKEUPS[..]),
            ("preemption_wait", &self.preemption_wait, &Percentiles::WAITS[..]),
            ("throttled_wait", &self.throttled_wait, &Percentiles::WAITS[..]),
        ] {
            for (percentile, per_mille) in percentiles {
                let value = waits.percentile(*per_mille);
                metrics.extend(value.map(|value| (format!("{name}_ns_{percentile}"), value as f64)));
            }
            metrics.extend(waits.max().map(|value| (format!("{name}_ns_max"), value as f64)));
            metrics.extend(waits.mean().map(|value| (format!("{name}_ns_mean"), value)));
            if seconds > 0.0 && waits.total() > 0 {
                metrics.push((format!("{name}_ns_per_s"), waits.sum() as f64 / seconds));
            }
        }
        if self.run_ns > 0 {
            let taken = self.run_ns as f64 + self.wait_ns as f64;
            metrics.push(("slowdown".to_string(), taken / self.run_ns as f64));
            let share = |(place, time): (&String, &u64)| {
                (format!("run_{place}_share"), *time as f64 / self.run_ns as f64)
            };
            metrics.extend(self.ran_on.iter().map(share));
        }
        if let Some(unfairness) = self.unfairness.filter(|unfairness| unfairness.runs > 0) {
            let value = unfairness.sum_ppm as f64 / 1e6 / unfairness.runs as f64;
            metrics.push(("unfairness".to_string(), value));
        }
        if seconds > 0.0 {
            self.rates(seconds, &mut metrics);
            metrics.extend(self.shares(observed_ns));
            metrics.extend(self.quota_shares(observed_ns));
        }
        metrics
    }

    fn rates(&self, seconds: f64, metrics: &mut Vec<(String, f64)>) {
        let moves = self.moves.unwrap_or_default();
        let rates = [
            ("run_ns", Some(self.run_ns)),
            ("wakeups", Some(self.wakeup_latency.total())),
            ("involuntary_switches", Some(self.involuntary_switches)),
            ("migrations", Some(self.migrations)),
            ("migrations_smt", moves.smt),
            ("migrations_llc", moves.llc),
            ("migrations_node", moves.node),
            ("migrations_other_node", moves.other_node),
            ("throttled_ns", self.throttled.map(|throttled| throttled.throttled_ns)),
        ];
        let known = rates.into_iter().filter_map(|(name, count)| Some((name, count?)));
        metrics.extend(known.map(|(name, count)| (format!("{name}_per_s"), count as f64 / seconds)));
    }

    /// The share of the quota that was used, and of the time watched in which it was used up.
    fn quota_shares(&self, observed_ns: u64) -> impl Iterator<Item = (String, f64)> {
        let quota = self.throttled.unwrap_or_default();
        let of = |name: &str, time: u64, whole: Option<u64>| {
            let whole = whole.filter(|&whole| whole > 0)?;
            Some((name.to_string(), time as f64 / whole as f64))
        };
        let throttled = quota.some_cpu_ns.and_then(|time| of("throttled_share", time, Some(observed_ns)));
        throttled.into_iter().chain(of("quota_used_share", self.run_ns, quota.quota_ns))
    }

    /// Shares of the time watched, without the time in which a level is unknown.
    fn shares(&self, observed_ns: u64) -> impl Iterator<Item = (String, f64)> {
        let placement = self.placement.unwrap_or_default();
        let levels = [("core", placement.core), ("llc", placement.llc), ("node", placement.node)];
        levels.into_iter().filter_map(move |(name, level)| {
            let StackedTime { stacked_ns, unknown_ns } = level?;
            let known = observed_ns.saturating_sub(unknown_ns);
            (known > 0).then(|| (format!("stacked_{name}_share"), stacked_ns as f64 / known as f64))
        })
    }
}

/// How metrics by name are called, or how their names begin: those end with `_`.
pub const BY_NAME: [&str; 16] = [
    "wakeup_latency_ns_",
    "fork_wait_ns_",
    "preemption_wait_ns_",
    "throttled_wait_ns_",
    "slowdown",
    "unfairness",
    "run_ns_per_s",
    "wakeups_per_s",
    "involuntary_switches_per_s",
    "migrations_per_s",
    "migrations_",
    "throttled_ns_per_s",
    "throttled_share",
    "quota_used_share",
    "stacked_",
    "run_",
];

/// Whether a metric is a share of run time on one kind of CPU, cache or node: these are measured only where one is asked for.
pub fn is_of_places(metric: &str) -> bool {
    metric.starts_with("run_") && metric.ends_with("_share")
}

/// Whether a metric is one of those that are counted by name, rather than a workload's own.
pub fn is_by_name(metric: &str) -> bool {
    BY_NAME.iter().any(|name| metric == *name || name.ends_with('_') && metric.starts_with(name))
}

/// What some tasks are called in an answer, among all that are there: a workload that has a task's name of other tasks is marked.
pub(super) fn shown(
    who: &TaskSelector,
    counts: &NameCounts,
    task_of_that_name: Option<&NameCounts>,
) -> Option<String> {
    let TaskSelector::Workload(name) = who else { return Some(who.to_string()) };
    match task_of_that_name {
        // Both are the same tasks: one of them is told.
        Some(task) if task.tasks == counts.tasks && task.run_ns == counts.run_ns => None,
        Some(_) => Some(TaskSelector::marked(name)),
        None => Some(name.clone()),
    }
}

/// The kinds of names in the order in which they are listed.
pub const KINDS: [NameKind; 3] = [NameKind::Workload, NameKind::Group, NameKind::Task];
