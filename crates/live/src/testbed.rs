//! Runs of workloads in tests.

use std::sync::atomic::AtomicBool;

use crate::{LiveConditions, LiveReport};

/// A workload's way to run: by its arguments, under conditions, printing.
type RunLive = fn(&[String], &LiveConditions<'_>, &mut dyn FnMut(&str)) -> Result<LiveReport, String>;

/// Runs a workload with the arguments of a line, stopped from the beginning or not. What it reports, and what it printed.
pub(crate) fn run(workload: RunLive, line: &str, stop: bool) -> (LiveReport, String) {
    let args = line.split(' ').map(str::to_string).collect::<Vec<_>>();
    let conditions = LiveConditions { seed: 1, duration: None, stop: &AtomicBool::new(stop), marker: None };
    let mut printed = String::new();
    let report = workload(&args, &conditions, &mut |text| printed += text).expect(line);
    (report, printed)
}
