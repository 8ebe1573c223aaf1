//! A comparison and a bisection that are asked the same question agree, and neighbouring sizes of a workload do not name
//! different commits.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::statistics::{MARGIN, MetricVerdict};
use fairlab_change::SearchTrials;
use fairlab_change::bisect::{BisectAnswer, BisectQuestion, BisectSpec, Bisection, SearchFinding, bisect};
use fairlab_event::Ns;
use fairlab_lab::names::wanted_for;
use fairlab_lab::{CompareOptions, Experiment, RunSetting, compare, machines, run_all};

const JOBS: usize = 2;

fn setting(workload: &str, duration: Ns) -> RunSetting {
    RunSetting {
        warmup: Some(Ns::ZERO),
        ..RunSetting::new(
            machines::find("laptop8").expect("a machine"),
            workload.split(' ').map(String::from).collect(),
            duration,
        )
    }
}

fn search(setting: &RunSetting, (good, bad): (&str, &str), metric: &str, runs_max: usize) -> Bisection {
    let spec = BisectSpec {
        good: good.parse().expect("a kernel"),
        bad: bad.parse().expect("a kernel"),
        question: BisectQuestion::parse(metric).expect("a metric"),
        setting: setting.clone(),
        margin: MARGIN,
        error: 0.01,
        runs_max,
    };
    let stop = AtomicBool::new(false);
    bisect(&spec, &mut SearchTrials::new(setting, JOBS, &|_| {}, &stop)).expect("an answer")
}

/// What `compare --metric` says with so many runs.
fn verdict(setting: &RunSetting, (good, bad): (&str, &str), metric: &str, runs: usize) -> MetricVerdict {
    let experiment = Experiment::of_setting(
        [good, bad].map(|name| name.parse().expect("a kernel")).to_vec(),
        setting,
        (1..=runs as u64).collect(),
    );
    let stop = AtomicBool::new(false);
    let (results, _) = run_all(&experiment.specs(), JOBS, &|_| {}, &stop).expect("runs");
    let names = experiment.names();
    let options = CompareOptions { metrics: vec![metric.to_string()], ..CompareOptions::default() };
    let comparison = compare(&names, &results, &options).expect("a comparison");
    comparison.rows[0].verdict
}

/// Workloads, kernels and metrics of every kind: with a difference and without, better and worse, with a better side and
/// without one.
#[test]
fn a_comparison_and_a_bisection_agree() {
    let ms = Ns::from_ms;
    let mut seen = BTreeSet::new();
    for (workload, duration, ends, metric) in [
        ("hackbench -g 1 -l 20", ms(500), ("v6.5", "v6.12"), "throughput"),
        ("hackbench -g 1 -l 20", ms(500), ("v6.12", "v6.5"), "throughput"),
        ("hackbench -g 1 -l 20", ms(500), ("v6.5", "v6.6"), "switches_per_s"),
        ("pipe -l 300", ms(500), ("v6.5", "v6.6"), "throughput"),
        ("pipe -l 300", ms(500), ("v5.4", "v5.5"), "wakeup_latency_ns_p99"),
        (
            "schbench -m 2 -t 12 -c 20000 -s 1000",
            ms(300),
            ("v6.6", "v6.6,base_slice_ns=20000000"),
            "wakeup_latency_ns_p99",
        ),
        (
            "schbench -m 2 -t 12 -c 20000 -s 1000",
            ms(300),
            ("v6.6,base_slice_ns=20000000", "v6.6"),
            "wakeup_latency_ns_p99",
        ),
        ("spinners -n 0,0,5 -r 1", ms(300), ("v6.5", "v6.12"), "throughput"),
    ] {
        let setting = setting(workload, duration);
        let found = search(&setting, ends, metric, 20);
        let row = found.ends.as_ref().expect("the ends are compared");
        let said = verdict(&setting, ends, metric, row.values.len());
        assert_eq!(row.verdict, said, "{workload} {ends:?} {metric}");
        let agrees = match found.finding {
            SearchFinding::Nothing => matches!(said, MetricVerdict::Equivalent | MetricVerdict::Better),
            SearchFinding::Found | SearchFinding::Several => {
                matches!(said, MetricVerdict::Worse | MetricVerdict::Changed)
            }
            SearchFinding::OneCourse => said == MetricVerdict::OneCourse,
            SearchFinding::NotModelled => said == MetricVerdict::NotModelled,
            SearchFinding::Undecided => said != MetricVerdict::Equivalent && said != MetricVerdict::OneCourse,
        };
        assert!(agrees, "{workload} {ends:?} {metric}: {:?} {said:?}", found.finding);
        assert_eq!(
            found.error.is_some(),
            found.finding == SearchFinding::Found,
            "{workload} {ends:?} {metric}"
        );
        assert_eq!(found.first_bad().or(found.first_good()).is_some(), found.finding == SearchFinding::Found);
        seen.insert(said.name());
    }
    assert!(seen.len() >= 3, "the questions are of several kinds: {seen:?}");
}

/// What one task gains among others no number of the machine shows as clearly: the metric of that task names the commit.
#[test]
fn the_metric_of_a_task_names_the_commit_that_helps_it() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workloads/short-slices.json");
    let metric =
        BisectQuestion::parse("cyclictest wakeup_latency p99").expect("a metric").metric().to_string();
    let by_name = wanted_for(&metric).expect("a name");
    let workload = ["rt-app", file].map(String::from).to_vec();
    let setting = RunSetting { workload, by_name, ..setting("", Ns::from_secs(2)) };
    let found = search(&setting, ("v6.12", "v6.12-85e511df3cec"), &metric, 20);
    let named = found.first_bad().or(found.first_good()).map(|crossing| format!("{crossing:?}"));
    assert_eq!(found.finding, SearchFinding::Found);
    assert!(named.as_ref().is_some_and(|named| named.contains("85e511df3cec")), "{named:?}");
}

/// Nothing left to chance, and a workload that draws nothing: one course of events, and no commit, whatever the numbers are.
#[test]
fn one_course_of_events_names_no_commit() {
    let exact = |workload: &str| {
        let setting = setting(workload, Ns::from_ms(500));
        RunSetting { machine: setting.machine.exact(), ..setting }
    };
    for size in [18, 19, 20] {
        let setting = exact(&format!("hackbench -g 1 -l {size}"));
        for metric in ["throughput", "wakeup_latency_ns_p99", "wakeup_latency_ns_p99 > 1"] {
            let found = search(&setting, ("v6.5", "v6.12"), metric, 10);
            assert_eq!((found.finding, found.error), (SearchFinding::OneCourse, None), "{size} {metric}");
            assert!(found.first_bad().is_none() && found.crossings.is_empty());
            assert_eq!(serde_json::json!(BisectAnswer::from(&found))["verdict"], "one_course");
        }
    }
}

/// Neighbouring sizes of a workload meet the same changes: a search that names a commit for one of them names no other for
/// another. It may be undecided, or find several commits or nothing.
#[test]
fn neighbours_name_one_commit() {
    let hackbench = [98, 99, 100, 101, 102].map(|size| format!("hackbench -g 1 -l {size}"));
    let schbench = [6, 7, 8, 9, 10].map(|threads| format!("schbench -m 1 -t {threads} -c 10000 -s 500"));
    let pipe = [280, 290, 300, 310, 320].map(|loops| format!("pipe -l {loops}"));
    for (sizes, ends, metric) in [
        (&hackbench, ("v6.5", "v6.12"), "throughput"),
        (&schbench, ("v6.5", "v6.6"), "wakeup_latency_ns_p99"),
        (&pipe, ("v6.5", "v6.12"), "throughput"),
    ] {
        let mut named = BTreeSet::new();
        for workload in sizes {
            let found = search(&setting(workload, Ns::from_ms(200)), ends, metric, 20);
            let places = found.first_bad().into_iter().chain(found.first_good());
            named.extend(places.flat_map(|place| place.steps.last()).map(fairlab_change::WayStep::id));
            eprintln!("{workload} {metric}: {:?} {named:?}, {} runs", found.finding, found.runs);
        }
        assert!(named.len() <= 1, "{sizes:?} {metric}: {named:?}");
    }
}
