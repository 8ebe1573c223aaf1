//! What targets of the laboratory's files share: a run of a few milliseconds, and a folder of this process.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fairlab_event::{Cpu, Ns};
use fairlab_lab::{Kernel, LabError, RunSpec, run};
use fairlab_sim::Machine;

/// A few milliseconds of a workload on v6.12, or the refusal in one line.
pub fn runs(machine: Machine, workload: Vec<String>) {
    let kernel = Kernel::parse("v6.12").expect("a kernel");
    let spec = RunSpec {
        first_cpu: Some(Cpu(0)),
        warmup: Some(Ns::ZERO),
        ..RunSpec::new(kernel, machine, workload, 1, Ns::from_ms(4))
    };
    if let Err(problem) = run(&spec, &AtomicBool::new(false)) {
        one_line(&problem);
    }
}

/// A refusal is one line, and not of a fault of ours: such runs look through the scheduler's state.
pub fn one_line(problem: &LabError) {
    assert!(!problem.is_fault(), "{problem}");
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
