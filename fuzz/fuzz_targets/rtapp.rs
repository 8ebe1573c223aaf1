//! Any text as an rt-app file: threads that run for some milliseconds, or a refusal in one line.

#![no_main]

#[path = "../lab.rs"]
#[allow(dead_code, reason = "each target uses a part of it")]
mod lab;

use fairlab_sim::Machine;
use fairlab_sim::workload::rtapp::RtApp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match RtApp::parse(text) {
    Ok(_) => {
        let path = lab::file("app.json", text.as_bytes());
        let machine = Machine::preset("vm4").expect("a machine");
        lab::runs(machine, vec!["rt-app".to_string(), path.to_string_lossy().into_owned()]);
    }
    Err(problem) => assert!(!problem.contains('\n'), "{problem}"),
});
