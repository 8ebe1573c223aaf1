//! Runs of workloads in tests.

use std::sync::atomic::AtomicBool;

use crate::{Conditions, Report};

/// A workload's way to run: by its arguments, under conditions, printing.
type Run = fn(&[String], &Conditions<'_>, &mut dyn FnMut(&str)) -> Result<Report, String>;

/// Runs a workload with the arguments of a line, stopped from the beginning or not. What it reports, and what it printed.
pub(crate) fn run(workload: Run, line: &str, stop: bool) -> (Report, String) {
    let args = line.split(' ').map(str::to_string).collect::<Vec<_>>();
    let conditions = Conditions { seed: 1, duration: None, stop: &AtomicBool::new(stop), marker: None };
    let mut printed = String::new();
    let report = workload(&args, &conditions, &mut |text| printed += text).expect(line);
    (report, printed)
}
