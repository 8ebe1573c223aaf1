//! The workloads that can be named on the command line.

use fairlab_sim::workload::Workload;
use fairlab_sim::workload::catalogue::{self, BuildError};
pub use fairlab_sim::workload::catalogue::{WORKLOADS, WorkloadKind};

use crate::LabError;
use crate::replay::HostFiles;

/// Finds a workload by name.
///
/// # Errors
/// There is none of that name.
pub fn find(name: &str) -> Result<&'static WorkloadKind, LabError> {
    catalogue::find(name).ok_or_else(|| told(&BuildError::Unknown(name.to_string())))
}

/// Builds the workload that a command line names: its name, then its own options.
///
/// # Errors
/// The name is unknown or an option is wrong.
pub fn build(command: &[String]) -> Result<Box<dyn Workload>, LabError> {
    catalogue::build(command, &HostFiles).map_err(|error| told(&error))
}

fn told(error: &BuildError) -> LabError {
    let hint = match error {
        BuildError::Nothing => "name one, such as schbench, with its own options".to_string(),
        BuildError::Unknown(_) => {
            let names = WORKLOADS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
            format!("known are {names}")
        }
        BuildError::Wrong { name, .. } => format!("'fairlab workloads show {name}' lists its options"),
    };
    LabError::new(error.to_string(), hint)
}
