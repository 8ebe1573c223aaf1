//! Cells on a Ray cluster. Ray's client is a Python library, so the Python package sends them; the journal is that of any
//! sweep.
//!
//! Must not know: how cells travel.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use fairlab_lab::sweep::Outcome;
use serde_json::Value;

use crate::args::SweepArgs;
use crate::error::CliError;

/// The package's version has to be this program's: it writes the same journal.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How often it is looked whether the carrier has ended, and whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// The carrier's exit status where it was stopped before the end, and where something is wrong.
const STOPPED: i32 = 130;
const BAD: i32 = 2;

/// Runs the rest of a sweep on the cluster that the arguments name.
pub fn carry(args: &SweepArgs, folder: &Path, stop: &AtomicBool) -> Result<Outcome, CliError> {
    check_package()?;
    let mut command = Command::new("python3");
    command.args(["-m", "fairlab.fleet"]).arg(&args.file).arg("--out").arg(folder).args(["--on", &args.on]);
    if args.exact {
        command.arg("--exact");
    }
    if let Some(warmup) = args.warmup {
        command.arg("--warmup").arg(format!("{}ns", warmup.0));
    }
    for metric in &args.metrics {
        command.args(["--metric", metric]);
    }
    // It ends when its input does: also where this program is killed. A terminal's Ctrl-C reaches this program alone.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    let child = command.spawn().map_err(|error| lacks_python(&error.to_string()))?;
    wait(child, stop)
}

fn wait(mut child: Child, stop: &AtomicBool) -> Result<Outcome, CliError> {
    let mut input = child.stdin.take();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            input = None;
        }
        sleep(LOOK);
    };
    drop(input);
    let mut told = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut told)?;
    }
    match status.code() {
        Some(0 | STOPPED) => outcome(&told),
        Some(BAD) => Err(refused(&told)),
        _ => Err(CliError::bad(format!("python3 -m fairlab.fleet ended with {status}"), GOES_ON)),
    }
}

const GOES_ON: &str = "what is done is kept; run the command again to continue";

/// What the carrier says is wrong, in our words.
fn refused(told: &str) -> CliError {
    let value = serde_json::from_str::<Value>(told.trim()).unwrap_or_default();
    let error = value["error"].as_str().unwrap_or("the carrier of cells failed and does not say why");
    let (problem, hint) = error.split_once("; ").unwrap_or((error, GOES_ON));
    CliError::bad(problem, hint)
}

/// What the carrier tells at its end, in a line of JSON.
fn outcome(told: &str) -> Result<Outcome, CliError> {
    let value = serde_json::from_str::<Value>(told.trim()).unwrap_or_default();
    let count = |name: &str| value[name].as_u64().and_then(|count| usize::try_from(count).ok());
    let (Some(cells), Some(before), Some(done)) = (count("cells"), count("before"), count("done")) else {
        return Err(CliError::bad("python3 -m fairlab.fleet does not tell how far it came", GOES_ON));
    };
    Ok(Outcome { cells, before, done, note: value["note"].as_str().map(str::to_string) })
}

fn check_package() -> Result<(), CliError> {
    let script = "import fairlab.fleet; print(fairlab.__version__)";
    let output = Command::new("python3").args(["-c", script]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| lacks_python(&error.to_string()))?;
    let found = String::from_utf8_lossy(&output.stdout).trim().to_string();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(lacks_python(errors.lines().last().unwrap_or("it fails")));
    }
    if found != VERSION {
        let problem = format!("python3 has the package fairlab {found}, and this program is {VERSION}");
        return Err(CliError::bad(problem, "install the package of this version"));
    }
    Ok(())
}

fn lacks_python(why: &str) -> CliError {
    CliError::bad(
        format!("a sweep on a cluster needs python3 with the package fairlab: {why}"),
        "'make python' builds it; put the python3 that has it first in PATH",
    )
}
