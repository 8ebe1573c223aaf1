//! Programs that a build runs: to their end, or until the build is stopped, and then with all their descendants.
//!
//! Must not know: what is built.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fairlab_files::LabError;
use rustix::fs::{MemfdFlags, memfd_create};

/// Variables of whoever calls us that would lead a build elsewhere: make's own, and kbuild's.
const FOREIGN: [&str; 13] = [
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "MAKEOVERRIDES",
    "ARCH",
    "SUBARCH",
    "SRCARCH",
    "CROSS_COMPILE",
    "LLVM",
    "KCFLAGS",
    "KBUILD_OUTPUT",
    "KCONFIG_CONFIG",
    "O",
];

/// What a program said and how it ended.
pub(crate) struct ProgramOutput {
    pub succeeded: bool,
    pub out: Vec<u8>,
    pub errors: String,
}

impl ProgramOutput {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }
}

/// Runs a program in a group of its own. It reads nothing.
pub(crate) fn run(command: &mut Command, stop: &AtomicBool) -> Result<ProgramOutput, LabError> {
    run_fed(command, Stdio::null(), stop)
}

/// As [`run`]; it reads these bytes.
pub(crate) fn run_with(
    command: &mut Command,
    input: &[u8],
    stop: &AtomicBool,
) -> Result<ProgramOutput, LabError> {
    let file = memory_file(input).map_err(|error| {
        LabError::new(format!("there is no memory for what a program reads: {error}"), "free some")
    })?;
    run_fed(command, file.into(), stop)
}

fn memory_file(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("fairlab-input", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn run_fed(command: &mut Command, input: Stdio, stop: &AtomicBool) -> Result<ProgramOutput, LabError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| {
        LabError::new(format!("{name} cannot be run: {error}"), "see whether it is installed")
    };
    for variable in FOREIGN {
        command.env_remove(variable);
    }
    command.env("LC_ALL", "C").stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.process_group(0).spawn().map_err(failed)?;
    let said = wait(child, stop).map_err(failed)?;
    if stop.load(Ordering::Relaxed) {
        return Err(interrupted());
    }
    Ok(said)
}

/// As [`run`]; it must succeed.
pub(crate) fn succeed(
    command: &mut Command,
    what: &str,
    stop: &AtomicBool,
) -> Result<ProgramOutput, LabError> {
    said_well(run(command, stop)?, what)
}

/// What a program said that must succeed at `what`.
pub(crate) fn said_well(said: ProgramOutput, what: &str) -> Result<ProgramOutput, LabError> {
    if said.succeeded {
        return Ok(said);
    }
    let last =
        said.errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
    Err(LabError::new(format!("cannot {what}: {}", last.trim()), "see the message"))
}

pub(super) fn interrupted() -> LabError {
    LabError::new("the build was interrupted", "start it again: what is done stays")
}

fn wait(mut child: Child, stop: &AtomicBool) -> io::Result<ProgramOutput> {
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let whole = |pipe: Option<Box<dyn Read + Send>>| {
        let mut bytes = Vec::new();
        pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes)).map(|_| bytes)
    };
    thread::scope(|scope| {
        let out = scope.spawn(|| whole(out.map(|pipe| Box::new(pipe) as _)));
        let errors = scope.spawn(|| whole(errors.map(|pipe| Box::new(pipe) as _)));
        let mut killed = false;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if stop.load(Ordering::Relaxed) && !killed {
                killed = true;
                end_group(&child);
            }
            thread::sleep(Duration::from_millis(5));
        };
        let join = |thread: thread::ScopedJoinHandle<'_, io::Result<Vec<u8>>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let errors = String::from_utf8_lossy(&join(errors)?).into_owned();
        Ok(ProgramOutput { succeeded: status.success(), out: join(out)?, errors })
    })
}

/// Ends a program and all that it has started.
fn end_group(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // It may have ended by itself meanwhile.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_starts_ends_with_it() {
        let started = std::time::Instant::now();
        let stop = AtomicBool::new(true);
        // The inner program holds the pipe: without an end of its own the wait would last.
        let ended = run(Command::new("sh").args(["-c", "sleep 600 & sleep 600"]), &stop);
        assert_eq!(ended.map(|_| ()), Err(interrupted()));
        assert!(started.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_program_reads_what_it_is_given() {
        let long = "x".repeat(300_000);
        let said =
            run_with(&mut Command::new("cat"), long.as_bytes(), &AtomicBool::new(false)).expect("read");
        assert!(said.succeeded && said.text() == long);
    }

    #[test]
    fn failures_are_told_in_the_programs_words() {
        let go_on = AtomicBool::new(false);
        let mut command = Command::new("sh");
        let told = succeed(command.args(["-c", "echo first >&2; echo last >&2; exit 1"]), "do it", &go_on);
        assert_eq!(
            told.map(|_| String::new()).map_err(|error| error.problem),
            Err("cannot do it: last".into())
        );
        assert!(run(&mut Command::new("/no/such/program"), &go_on).is_err());
    }
}
