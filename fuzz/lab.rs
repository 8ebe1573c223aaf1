//! What targets of the laboratory's files share: a run of a few milliseconds, and a folder of this process.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fairlab_event::{Cpu, Ns};
use fairlab_lab::{LabError, RunSpec, run};
use fairlab_sim::Machine;

/// A few milliseconds of a workload on v6.12, or the refusal in one line.
pub fn runs(machine: Machine, workload: Vec<String>) {
    let spec = RunSpec {
        kernel: "v6.12".parse().expect("a kernel"),
        machine,
        workload,
        seed: 1,
        first_cpu: Some(Cpu(0)),
        warmup: Some(Ns::ZERO),
        duration: Ns::from_ms(4),
        trace: None,
        probes: false,
    };
    if let Err(problem) = run(&spec, &AtomicBool::new(false)) {
        one_line(&problem);
    }
}

/// A refusal is one line.
pub fn one_line(problem: &LabError) {
    assert!(!problem.to_string().contains('\n'), "{problem}");
}

/// A file of these bytes, in a folder of this process.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fairlab-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(name);
    fs::write(&path, bytes).expect("a file");
    path
}
