//! What the rt-app that is installed here does otherwise than its latest.
//!
//! Must not know: how a run is started.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fairlab_files::LabError;
use fairlab_sim::workload::rtapp::RtApp;

/// Refuses a file that `program` never ends: rt-app 1.0 runs the `loop` of a task without phases for ever. Later programs end it, and
/// tell their version. What the program will refuse is left to it.
///
/// # Errors
/// It is such a file and such a program.
pub fn check_loops(program: &Path, file: &Path) -> Result<(), LabError> {
    let Some(task) = endless_loop(program, file) else { return Ok(()) };
    let (program, file) = (program.display(), file.display());
    Err(LabError::new(
        format!(
            "{program}, rt-app 1.0, never ends the 'loop' of a task without 'phases', as '{task}' in {file} is"
        ),
        "put the task's events into 'phases', or give 'global' a 'duration'",
    ))
}

/// The task of such a file, if `program` is such a one.
fn endless_loop(program: &Path, file: &Path) -> Option<String> {
    let app = RtApp::parse(&fs::read_to_string(file).ok()?).ok()?;
    let task = app.looped_without_phases().first()?.to_string();
    let said = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    is_of_1_0(&said.stdout).then_some(task)
}

/// Whether what a program said to --version is what rt-app 1.0 says to any option.
fn is_of_1_0(said: &[u8]) -> bool {
    said.starts_with(b"usage:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_version_is_rt_app_1_0() {
        assert!(is_of_1_0(b"usage:\nrt-app <taskset.json>\n"));
        assert!(!is_of_1_0(b"rt-app v1.0-110-g55cb0c0 (2026-01-01)\n") && !is_of_1_0(b""));
    }
}
