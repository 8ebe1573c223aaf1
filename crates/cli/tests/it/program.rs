//! The program as tests start it: runs that a developer has kept are not looked at, and none are kept, so that tests make their runs.
//!
//! Must not know: what is asked.

use std::process::Command;

/// What names the file of kept runs; empty, there is none.
pub const KEPT_RUNS: &str = "FAIRLAB_RUNS";

/// The program, which keeps no runs.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairlab"));
    command.env(KEPT_RUNS, "");
    command
}
