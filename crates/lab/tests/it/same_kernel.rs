//! How often a comparison of a kernel with itself finds a difference, under the chance that machines have by default.
//! `BLESS=1 cargo test -p fairlab-lab --test it same_kernel` makes thousands of runs and writes the table that
//! docs/statistics.md shows; without, a part of them is made and held to what chance allows.
//!
//! Runs of the two sides have seeds of their own. The same seeds would give the same runs, and no difference ever.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::statistics::{
    BetterDirection, FALSE_DISCOVERY_RATE, MARGIN, adjusted, judge, paired, unpaired,
};
use fairlab_event::Ns;
use fairlab_lab::{Experiment, RunResult, RunSetting, machines, run_all};

/// Runs on each side of a comparison, as `compare` makes unless it is told otherwise.
const RUNS: usize = 10;

/// Workloads, how long they run, and the metrics that are looked at one by one.
const WORKLOADS: [(&str, u64, [&str; 3]); 4] = [
    ("hackbench -g 1 -l 5", 100, ["throughput", "wakeup_latency_ns_p99", "switches_per_work"]),
    ("schbench -m 2 -t 8 -c 3000 -s 1000", 300, ["wakeup_latency_ns_p50", "idle_share", "switches_per_work"]),
    ("schbench -m 1 -t 10 -c 2000 -s 500", 60, ["wakeup_latency_ns_p99", "switches_per_s", "idle_share"]),
    ("tbench -c 4", 50, ["throughput", "idle_share", "migrations_per_work"]),
];

/// How often each rule finds a difference that is not there, in comparisons.
#[derive(Clone, Copy, Debug, Default)]
struct Alarms {
    comparisons: usize,
    /// One metric by itself, in pairs, at 5 %.
    paired: usize,
    /// The same of two samples.
    unpaired: usize,
    /// *better*, *worse* or *changed* with the margin.
    verdicts: usize,
}

/// Runs of one kernel with seeds of their own.
fn pool(workload: &str, duration: Ns, runs: usize) -> Vec<RunResult> {
    let experiment = Experiment::of_setting(
        vec!["v6.12".parse().expect("a kernel")],
        &RunSetting {
            warmup: Some(Ns::ZERO),
            ..RunSetting::new(
                machines::find("laptop8").expect("a machine"),
                workload.split(' ').map(String::from).collect(),
                duration,
            )
        },
        (1..=runs as u64).collect(),
    );
    run_all(&experiment.specs(), 2, &|_| {}, &AtomicBool::new(false)).expect("runs").0
}

/// Each comparison takes the next runs of the pool, none of them twice.
fn alarms(pool: &[RunResult], metric: &str) -> Alarms {
    let mut alarms = Alarms::default();
    for runs in pool.chunks_exact(2 * RUNS) {
        let values = runs.iter().filter_map(|run| run.metric(metric)).collect::<Vec<_>>();
        assert_eq!(values.len(), runs.len(), "{metric} is measured in every run");
        let (base, other) = values.split_at(RUNS);
        let pairs = paired(base, other);
        let is_real = |p: Option<f64>| p.is_some_and(|p| p <= 0.05);
        let verdict = judge(&pairs, BetterDirection::of_metric(metric), MARGIN, is_real(pairs.p));
        alarms.comparisons += 1;
        alarms.paired += usize::from(is_real(pairs.p));
        alarms.unpaired += usize::from(is_real(unpaired(base, other).p));
        alarms.verdicts += usize::from(verdict.is_difference());
    }
    alarms
}

/// In how many comparisons of all metrics at least one gets a verdict, after correction for their number.
fn families(pool: &[RunResult]) -> usize {
    let family = |runs: &[RunResult]| {
        let (base, other) = runs.split_at(RUNS);
        let names = base[0].metrics.iter().map(|(name, _)| name.as_str());
        let names = names.filter(|name| runs.iter().all(|run| run.metric(name).is_some()));
        let estimate = |name: &str| {
            let values =
                |side: &[RunResult]| side.iter().filter_map(|run| run.metric(name)).collect::<Vec<_>>();
            (BetterDirection::of_metric(name), paired(&values(base), &values(other)))
        };
        let estimates = names.map(estimate).collect::<Vec<_>>();
        let adjusted = adjusted(&estimates.iter().map(|(_, estimate)| estimate.p).collect::<Vec<_>>());
        estimates.iter().zip(adjusted).any(|((better, estimate), q)| {
            let is_real = q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
            judge(estimate, *better, MARGIN, is_real).is_difference()
        })
    };
    pool.chunks_exact(2 * RUNS).filter(|runs| family(runs)).count()
}

/// Comparisons of each workload in the page, and in the test that is made always.
const BLESSED: usize = 260;
const SAMPLED: usize = 8;

#[test]
fn a_kernel_is_found_to_differ_from_itself_in_one_case_of_twenty() {
    let bless = std::env::var_os("BLESS").is_some();
    let comparisons = if bless { BLESSED } else { SAMPLED };
    let mut page = "| workload, metric | comparisons | in pairs, 5 % | two samples, 5 % | verdict, margin 1 % |\n|---|---|---|---|---|\n".to_string();
    let (mut all, mut family, mut of) = (Alarms::default(), 0, 0);
    for (workload, duration, metrics) in WORKLOADS {
        let pool = pool(workload, Ns::from_ms(duration), comparisons * 2 * RUNS);
        let mut digests = pool.iter().map(|run| run.digest.as_str()).collect::<Vec<_>>();
        digests.sort_unstable();
        digests.dedup();
        assert!(digests.len() * 100 >= pool.len() * 99, "{workload}: chance makes runs of their own");
        for metric in metrics {
            let found = alarms(&pool, metric);
            line(&mut page, &format!("{workload}, {metric}"), found);
            all.comparisons += found.comparisons;
            all.paired += found.paired;
            all.unpaired += found.unpaired;
            all.verdicts += found.verdicts;
        }
        family += families(&pool);
        of += comparisons;
    }
    line(&mut page, "all", all);
    let _ = writeln!(
        page,
        "\nAll metrics of a comparison together, at a false discovery rate of 5 %: at least one verdict in {:.1} % of {of} comparisons.",
        100.0 * family as f64 / of as f64
    );
    eprintln!("{page}");
    // Three metrics of the same runs depend on each other: as many comparisons count as there are without that.
    let deviation = (0.05 * 0.95 / of as f64).sqrt();
    let share = all.paired as f64 / all.comparisons as f64;
    let granted = if bless { 0.01 } else { 4.0 * deviation };
    assert!((share - 0.05).abs() <= granted, "{share} of {} comparisons", all.comparisons);
    assert!(family as f64 / of as f64 <= 0.05 + granted.max(3.0 * deviation), "{family} of {of} families");
    if bless {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../analysis/tests/it/calibration/same_kernel.md");
        std::fs::write(path, page).expect("written");
    }
}

fn line(page: &mut String, name: &str, alarms: Alarms) {
    let percent = |count: usize| format!("{:.1} %", 100.0 * count as f64 / alarms.comparisons.max(1) as f64);
    let (pairs, samples, verdicts) =
        (percent(alarms.paired), percent(alarms.unpaired), percent(alarms.verdicts));
    let _ = writeln!(page, "| {name} | {} | {pairs} | {samples} | {verdicts} |", alarms.comparisons);
}
