//! The table against what perf 6.12 printed for the same recordings.

use std::fs::File;
use std::path::{Path, PathBuf};

use fairlab_analysis::latency::{Latency, LatencyOptions, LatencyTable};
use fairlab_trace::{ReadOptions, perfdata};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn latency(recording: &str, options: LatencyOptions) -> LatencyTable {
    let mut latency = Latency::new(options);
    let file = File::open(testdata(recording)).expect("a recording");
    perfdata::read_file(file, &ReadOptions::default(), &mut latency).expect("a perf.data");
    latency.finish().expect("switches")
}

#[track_caller]
fn check(recording: &str, by_pid: bool, expected: &str) {
    let table = latency(recording, LatencyOptions { by_pid, ..LatencyOptions::default() });
    let expected = std::fs::read_to_string(testdata(expected)).expect("perf's answer");
    for (ours, perfs) in table.to_string().lines().zip(expected.lines()) {
        assert_eq!(ours, perfs);
    }
    assert_eq!(table.to_string(), expected);
}

#[test]
fn hackbench_by_name() {
    check("perf-hackbench.data", false, "perf-hackbench.perf-6.12-latency.txt");
}

#[test]
fn hackbench_by_pid() {
    check("perf-hackbench.data", true, "perf-hackbench.perf-6.12-latency-p.txt");
}

#[test]
fn make_by_name() {
    check("perf-make.data", false, "perf-make.perf-6.12-latency.txt");
}

#[test]
fn make_by_pid() {
    check("perf-make.data", true, "perf-make.perf-6.12-latency-p.txt");
}
