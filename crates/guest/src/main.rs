//! The program: the first process of a booted kernel, or under another name one of the workloads.
//!
//! Must not know: what either of them does.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
    if std::process::id() == 1 {
        fairlab_guest::guest::run();
    }
    let arguments: Vec<String> = arguments.collect();
    u8::try_from(fairlab_guest::guest::program(&name, &arguments)).map_or(ExitCode::FAILURE, ExitCode::from)
}
