//! The workloads that can be named on the command line.

use fairlab_sim::workload::Workload;
use fairlab_sim::workload::schbench::{Schbench, usage as schbench_usage};

use crate::LabError;

/// A kind of workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadKind {
    /// Its name: the real program's.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Its options, as text for people.
    pub usage: fn() -> &'static str,
    build: Build,
}

/// From a program's own arguments to the workload, or one line that says what is wrong with them.
type Build = fn(&[String]) -> Result<Box<dyn Workload>, String>;

/// Every workload.
pub const WORKLOADS: &[WorkloadKind] = &[WorkloadKind {
    name: "schbench",
    about: "message threads wake workers that think; measures wakeup latency (the program of October 2020)",
    usage: schbench_usage,
    build: |args| Ok(Box::new(Schbench::parse(args)?)),
}];

/// Finds a workload by name.
///
/// # Errors
/// There is none of that name.
pub fn find(name: &str) -> Result<&'static WorkloadKind, LabError> {
    WORKLOADS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names = WORKLOADS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        LabError::new(format!("unknown workload '{name}'"), format!("known are {names}"))
    })
}

/// Builds the workload that a command line names: its name, then its own options.
///
/// # Errors
/// The name is unknown or an option is wrong.
pub fn build(command: &[String]) -> Result<Box<dyn Workload>, LabError> {
    let Some((name, args)) = command.split_first() else {
        return Err(LabError::new(
            "no workload is given",
            "name one, such as schbench, with its own options",
        ));
    };
    let kind = find(name)?;
    (kind.build)(args).map_err(|problem| {
        LabError::new(
            format!("{name}: {problem}"),
            format!("'fairlab workloads show {name}' lists its options"),
        )
    })
}
