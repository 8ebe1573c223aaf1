//! What can run in a guest without a file of its own: the workloads that the model has, carried out for real.
//!
//! Must not know: that it is recorded.

use std::fs;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use fairlab_live::{Conditions, carry_out};
use fairlab_sim::workload::catalogue::{self, WORKLOADS};

/// Names under which the guest's program is one of the workloads.
pub fn programs() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|kind| kind.name)
}

/// Runs the workload of this name. Returns its exit status.
pub fn run(name: &str, arguments: &[String]) -> i32 {
    let command: Vec<String> = std::iter::once(name.to_string()).chain(arguments.iter().cloned()).collect();
    let conditions = Conditions { seed: 1, duration: None, stop: &AtomicBool::new(false) };
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let build = |command: &[String]| catalogue::build(command, &read).map_err(|error| error.to_string());
    let mut print = |text: &str| {
        let mut out = io::stdout();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    };
    match carry_out(&command, &conditions, &build, &mut print) {
        Ok(_) => 0,
        Err(problem) => {
            eprintln!("{problem}");
            2
        }
    }
}
