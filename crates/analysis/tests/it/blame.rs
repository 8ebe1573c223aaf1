//! The sums of blame are those of latency, to the nanosecond, on every recording in testdata.

use std::path::{Path, PathBuf};

use fairlab_analysis::blame::report::BlameReport;
use fairlab_analysis::blame::{Blame, BlameOptions};
use fairlab_analysis::causes::CauseDecision;
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::latency::{Latency, LatencyOptions, LatencyTable};
use fairlab_analysis::selector::TraceSelector;
use fairlab_analysis::summary::{SummaryOptions, TraceSummary};
use fairlab_analysis::task_selector::TaskSelector;
use fairlab_trace::{ReadOptions, read_path};

fn words(decision: CauseDecision, reason: &str) -> String {
    format!("{decision:?} {reason}")
}

fn both(path: &Path, chosen: &TraceSelector) -> (BlameReport, LatencyTable) {
    let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
    let mut latency = Latency::new(LatencyOptions::default()).of(chosen.clone());
    let mut blame = Blame::new(BlameOptions { chosen: chosen.clone(), by_thread: false, rule_words: words });
    read_path(path, &options, &mut (&mut latency, &mut blame)).unwrap_or_else(|error| panic!("{error}"));
    (blame.finish().expect("switches"), latency.finish().expect("switches"))
}

/// What the tables come to.
fn check_sums(report: &BlameReport, name: &str) {
    let all = report.wait_ns;
    assert_eq!(report.culprits.iter().map(|row| row.time_ns).sum::<u64>(), all, "{name}: culprits");
    assert_eq!(report.rules.iter().map(|row| row.time_ns).sum::<u64>(), all, "{name}: rules");
    assert_eq!(report.ends.iter().map(|row| row.time_ns).sum::<u64>(), all, "{name}: ends");
    assert_eq!(report.begun.iter().map(|row| row.wait_ns).sum::<u64>(), all, "{name}: begun");
    assert_eq!(report.waiters.iter().map(|row| row.wait_ns).sum::<u64>(), all, "{name}: waiters");
    assert_eq!(report.culprits.iter().map(|row| row.tail_ns).sum::<u64>(), report.tail.wait_ns, "{name}");
    assert!(report.tail.waits * 100 >= report.waits, "{name}");
}

fn agree(path: &Path, chosen: &TraceSelector) -> u64 {
    let name = path.display().to_string();
    let (report, table) = both(path, chosen);
    check_sums(&report, &name);
    let waited = table.rows.iter().map(|row| row.total_delay.0).sum::<u64>();
    assert_eq!(report.latency_wait_ns, waited, "{name}: {report:#?}");
    report.waits
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

const RECORDINGS: [&str; 9] = [
    "perf-hackbench.data",
    "perf-make.data",
    "perf-lost.data",
    "perf-pipe.data",
    "trace-cmd-3.1-hackbench.dat",
    "ftrace-6.6-vhost-starved.txt.zst",
    "ftrace-6.18-rtapp.txt.xz",
    "ftrace-5.10-forkstorm.txt.gz",
    "recordings/6.12-nice-2/trace.txt.zst",
];

/// The first lines of `explain` and the table of `summary` are these sums.
#[test]
fn explain_and_summary_tell_the_same_sums() {
    for name in RECORDINGS {
        let path = testdata(name);
        let chosen = TraceSelector::default();
        let (report, table) = both(&path, &chosen);
        let options = || BlameOptions { chosen: chosen.clone(), by_thread: false, rule_words: words };
        let explain = Explain::new(ExplainOptions { chosen: chosen.clone(), worst: 1 }).with_sums(words);
        let summary = TraceSummary::new(SummaryOptions::default()).with_culprits(words);
        let mut sinks = ((explain, summary), Blame::new(options()).of_each_waiter());
        let read = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
        read_path(&path, &read, &mut sinks).expect("a trace");
        let (explanation, summary) =
            (sinks.0.0.finish().expect("switches"), sinks.0.1.finish().expect("switches"));
        let each = sinks.1.finish_each_waiter().expect("switches");
        let waiting = explanation.waiting.as_ref().expect("asked for");
        assert_eq!(explanation.measured, report.waits, "{name}");
        assert_eq!(
            BlameReport { notices: Vec::new(), ..waiting.clone() },
            BlameReport { notices: Vec::new(), ..report }
        );
        // By name they come to all waits, and to those of latency.
        let waited = table.rows.iter().map(|row| row.total_delay.0).sum::<u64>();
        assert_eq!(each.iter().map(|one| one.latency_wait_ns).sum::<u64>(), waited, "{name}");
        assert_eq!(each.iter().map(|one| one.waits).sum::<u64>(), waiting.waits, "{name}");
        each.iter().for_each(|one| check_sums(one, name));
        assert_eq!(summary.waiting[..], each[..each.len().min(10)], "{name}");
        let told = summary.waiting.iter().map(|one| one.wait_ns).collect::<Vec<_>>();
        assert!(told.is_sorted_by(|one, other| one >= other), "{name}: {told:?}");
        // The sums of one name are those of that name alone; threads of the kernel are not chosen by what they have in common.
        let heads = ["kworker", "ksoftirqd", "migration", "rcu", "cpuhp"];
        let is_of_kernel = |name: &str| heads.iter().any(|head| name.starts_with(head));
        let Some(greatest) = each.iter().find(|one| !is_of_kernel(&one.whose[0])) else { continue };
        let whose = vec![TaskSelector::parse(&greatest.whose[0])];
        let (alone, _) = both(&path, &TraceSelector { whose, ..TraceSelector::default() });
        assert_eq!((alone.wait_ns, &alone.culprits), (greatest.wait_ns, &greatest.culprits), "{name}");
    }
}

#[test]
fn sums_stand_before_stories_where_they_are_asked_for() {
    let path = testdata("ftrace-6.6-vhost-starved.txt.zst");
    let whose = vec![TaskSelector::parse("kworker/2")];
    let chosen = TraceSelector { whose, ..TraceSelector::default() };
    let told = |with_sums: bool| {
        let plain = Explain::new(ExplainOptions { chosen: chosen.clone(), worst: 1 });
        let mut explain = if with_sums { plain.with_sums(words) } else { plain };
        read_path(&path, &ReadOptions::default(), &mut explain).expect("a trace");
        explain.finish().expect("switches").to_string()
    };
    let (with, without) = (told(true), told(false));
    assert!(with.starts_with("kworker/2 waited 157.17 ms in 2 waits, 100 %"), "{with}");
    assert!(with.contains("\nBehind whom, all waits summed\n"), "{with}");
    assert!(without.starts_with("2 waits measured; the longest:"), "{without}");
    assert!(with.ends_with(&without), "{with}");
}

#[test]
fn all_waits_come_to_those_of_latency() {
    let waits = RECORDINGS.iter().map(|name| agree(&testdata(name), &TraceSelector::default()));
    assert!(waits.sum::<u64>() > 10_000);
}

#[test]
fn waits_of_some_tasks_in_some_time_do_too() {
    let path = testdata("ftrace-6.6-vhost-starved.txt.zst");
    let whose = vec![TaskSelector::parse("kworker/2")];
    let time = "1.6..1.7".parse().expect("a time");
    assert_eq!(agree(&path, &TraceSelector { whose: whose.clone(), ..TraceSelector::default() }), 2);
    assert_eq!(agree(&path, &TraceSelector { whose, time }), 1);
    let hackbench =
        TraceSelector { whose: vec![TaskSelector::parse("hackbench")], ..TraceSelector::default() };
    assert!(agree(&testdata("perf-hackbench.data"), &hackbench) > 1000);
}

/// Real kernels tell no reasons. Their probes show which decision let the other run, for nearly all waiting behind fair tasks.
#[test]
fn probes_of_real_kernels_show_rules() {
    for (name, least) in [
        ("6.12-nice-2-probed", 0.5),
        ("6.12-hackbench-4-probed", 0.5),
        ("6.1-sleepers-4smt-probed", 0.5),
        ("7.2-nice-2-probed", 0.5),
    ] {
        let path = testdata(&format!("recordings/{name}/trace.txt.zst"));
        let chosen = TraceSelector::default();
        let (report, _) = both(&path, &chosen);
        check_sums(&report, name);
        let is_told = |decision: Option<CauseDecision>| {
            decision.is_some_and(|one| !matches!(one, CauseDecision::Unknown | CauseDecision::Pending))
        };
        let behind =
            report.rules.iter().filter(|row| row.decision.is_some()).map(|row| row.time_ns).sum::<u64>();
        let told =
            report.rules.iter().filter(|row| is_told(row.decision)).map(|row| row.time_ns).sum::<u64>();
        assert!(told as f64 > least * behind as f64, "{name}: {told} of {behind}: {:#?}", report.rules);
    }
    // Without probes nothing is told.
    let (report, _) = both(&testdata("recordings/6.12-nice-2/trace.txt.zst"), &TraceSelector::default());
    assert!(
        report.rules.iter().all(|row| row.decisions == 0 || row.decision == Some(CauseDecision::Pending))
    );
}
