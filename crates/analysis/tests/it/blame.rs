//! The sums of blame are those of latency, to the nanosecond, on every recording in testdata.

use std::path::{Path, PathBuf};

use fairlab_analysis::blame::report::BlameReport;
use fairlab_analysis::blame::{Blame, BlameOptions};
use fairlab_analysis::causes::CauseDecision;
use fairlab_analysis::latency::{Latency, LatencyOptions, LatencyTable};
use fairlab_analysis::selector::TraceSelector;
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
