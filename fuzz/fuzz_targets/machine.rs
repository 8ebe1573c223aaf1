//! Any text as a machine file: a machine on which a short run ends, or a refusal in one line.

#![no_main]

#[path = "../lab.rs"]
#[allow(dead_code, reason = "each target uses a part of it")]
mod lab;

use fairlab_lab::machines;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match machines::parse(text) {
    Ok(machine) => lab::runs(machine, ["jobs", "pairs", "-n", "5", "-r", "50"].map(String::from).to_vec()),
    Err(problem) => lab::one_line(&problem),
});
