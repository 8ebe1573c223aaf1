//! Any text as a sweep file: a plan whose last cell runs, or a refusal in one line.

#![no_main]

#[path = "../lab.rs"]
#[allow(dead_code, reason = "each target uses a part of it")]
mod lab;

use fairlab_lab::sweep::SweepPlan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match SweepPlan::parse(text) {
    Ok(plan) => {
        let spec = plan.cell(plan.cells() - 1).spec;
        lab::runs(spec.machine, spec.workload);
    }
    Err(problem) => lab::one_line(&problem),
});
