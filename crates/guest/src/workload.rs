//! What can run in a guest without a file of its own: the workloads that the model has, carried out for real.
//!
//! Must not know: that it is recorded.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::{env, fs};

use fairlab_event::Ns;
use fairlab_live::{LiveConditions, carry_out};
use fairlab_sim::workload::catalogue::{self, WORKLOADS};

use crate::tracing::TRACING;

/// Variables that say under which conditions a workload runs.
pub const SEED: &str = "FAIRLAB_SEED";
/// In ns.
pub const DURATION: &str = "FAIRLAB_DURATION_NS";

/// Where a workload's report lies once it has ended.
pub const REPORT: &str = "/tmp/report.json";

/// Names under which the guest's program is one of the workloads.
pub fn programs() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|kind| kind.name)
}

/// Runs the workload of this name. Returns its exit status.
pub fn run(name: &str, arguments: &[String]) -> i32 {
    let command: Vec<String> = std::iter::once(name.to_string()).chain(arguments.iter().cloned()).collect();
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, duration) = (number(SEED).unwrap_or(1), number(DURATION).map(Ns));
    let marker = Path::new(TRACING).join("trace_marker");
    let conditions = LiveConditions { seed, duration, stop: &AtomicBool::new(false), marker: Some(&marker) };
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let build = |command: &[String]| catalogue::build(command, &read).map_err(|error| error.to_string());
    let mut print = |text: &str| {
        let mut out = io::stdout();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    };
    match carry_out(&command, &conditions, &build, &mut print) {
        Ok(report) => {
            let kept = fs::write(REPORT, report.to_json().to_string());
            i32::from(kept.is_err())
        }
        Err(problem) => {
            eprintln!("{problem}");
            2
        }
    }
}
