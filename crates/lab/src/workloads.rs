//! The workloads that can be named on the command line.

use std::path::Path;

use fairlab_event::spelling::meant;
use fairlab_sim::workload::Workload;
use fairlab_sim::workload::catalogue::{self, BuildError, WorkloadFiles};
pub use fairlab_sim::workload::catalogue::{WORKLOADS, WorkloadKind, spelled_out};
pub use fairlab_sim::workload::mix::beside;

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
    build_with(command, &HostFiles)
}

/// `build()`, with files as the caller gives them.
pub(crate) fn build_with(
    command: &[String],
    files: &dyn WorkloadFiles,
) -> Result<Box<dyn Workload>, LabError> {
    catalogue::build(command, files).map_err(|error| match of_perf(command) {
        Some(here) => LabError::new(error.to_string(), format!("it is here '{here}'")),
        None => told(&error),
    })
}

/// The words here for a benchmark of perf's: `perf bench sched messaging -g 4` is `hackbench -g 4`.
fn of_perf(command: &[String]) -> Option<String> {
    let words = command.iter().map(String::as_str).collect::<Vec<_>>();
    let (name, options) = match words.as_slice() {
        ["perf", "bench", "sched", "messaging", options @ ..] => ("hackbench", options),
        ["perf", "bench", "sched", "pipe", options @ ..] => ("pipe", options),
        _ => return None,
    };
    Some([&[name], options].concat().join(" "))
}

/// The metric that a workload is run for, by its command line as a shell takes it; of an unknown workload, wakeup latency.
pub fn headline(line: &str) -> &'static str {
    headline_of(&shlex::split(line).unwrap_or_default())
}

/// The metric that a workload is run for, by the words of its command line.
pub fn headline_of(command: &[String]) -> &'static str {
    catalogue::headline(command, &HostFiles).unwrap_or("wakeup_latency_ns_p99")
}

/// What may be meant by a name that no workload has.
fn instead(name: &str) -> String {
    let first = name.split_whitespace().next().unwrap_or_default();
    if first != name && catalogue::find(first).is_some() {
        return format!("its options are words of their own: {name}, without quotes around all of it");
    }
    let path = Path::new(name);
    match path.exists() {
        true if name.ends_with(".json") => format!("rt-app carries out such a file: rt-app {name}"),
        true => format!("replay does what a recording's tasks did: replay {name}"),
        false => {
            let names = WORKLOADS.iter().map(|kind| kind.name);
            match meant(first, names.clone()) {
                Some(name) => format!("{name} may be meant; 'fairlab workloads list' lists all"),
                None => format!("known are {}", names.collect::<Vec<_>>().join(", ")),
            }
        }
    }
}

/// What is wrong with an option in place of a workload, and what to do; `None` for another word.
pub(crate) fn no_option(name: &str) -> Option<(String, &'static str)> {
    let option = name.split('=').next().filter(|word| word.starts_with('-'))?;
    let hint = match option {
        "--runs" => "--seeds N makes N runs; '--help' behind the command lists its options",
        "--cpus" => "--topology or --machine says the CPUs; '--help' behind the command lists its options",
        _ => "'--help' behind the command lists its options; a workload's own stand behind its name",
    };
    Some((format!("this command has no option '{option}'"), hint))
}

fn told(error: &BuildError) -> LabError {
    // An option of another command comes to stand where the workload should.
    if let BuildError::Unknown(name) = error
        && let Some((problem, hint)) = no_option(name)
    {
        return LabError::new(problem, hint);
    }
    // What is wrong is a line; help has more.
    if let BuildError::Wrong { name, problem } = error
        && problem.contains('\n')
    {
        return LabError::new(
            format!("{name}: help is asked for among other words"),
            format!("'fairlab workloads show {name}' prints it"),
        );
    }
    let hint = match error {
        BuildError::Nothing => "name one, such as schbench, with its own options".to_string(),
        BuildError::Unknown(name) => instead(name),
        BuildError::Wrong { problem, .. } if problem.contains("(os error ") => "check the path".to_string(),
        BuildError::Wrong { name, .. } => format!("'fairlab workloads show {name}' lists its options"),
    };
    LabError::new(error.to_string(), hint)
}
