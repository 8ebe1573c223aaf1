//! What the rt-app that is installed here does otherwise than its latest.
//!
//! Must not know: how a run is started.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fairlab_sim::workload::rtapp::RtApp;

/// The task of a file whose `loop` without phases `program` never ends: rt-app 1.0 runs it for ever. Later programs end it, and tell
/// their version. None of a file that the program will refuse.
pub fn endless_loop(program: &Path, file: &Path) -> Option<String> {
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
