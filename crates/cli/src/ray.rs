//! A Ray cluster as a crew. Ray's client is a Python library, so a process of the Python package carries batches there: a line of JSON
//! each, both ways, in order.
//!
//! Must not know: what cells are, how batches travel from there.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use fairlab_lab::LabError;
use fairlab_lab::cells::{CellWorkers, Crew};
use serde_json::Value;

use crate::error::CliError;

/// The package's version has to be this program's: it runs the same cells.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(20);

const GOES_ON: &str = "what is kept is kept; run the command again to continue";

/// Where cells run when nobody says.
const THREADS: &str = "threads";

/// What carries batches to a cluster. After a batch that failed it is another process that carries the next.
pub struct Carrier {
    on: String,
    process: Option<CarrierProcess>,
    /// How many batches run at once.
    cpus: usize,
}

/// The process that carries batches. It ends when its input does, also where this program is killed.
struct CarrierProcess {
    child: Child,
    input: Option<ChildStdin>,
    /// What it says, line by line.
    lines: Receiver<String>,
}

/// The carrier to the cluster that `--on` names, when it has reached that; none where threads are meant.
pub fn of(on: &str, stop: &AtomicBool) -> Result<Option<Carrier>, CliError> {
    if on == THREADS {
        return Ok(None);
    }
    check_package()?;
    let mut process = CarrierProcess::start(on)?;
    let Some(told) = process.told(stop)? else { return Err(CliError::Interrupted) };
    let cpus = told["cpus"].as_u64().and_then(|cpus| usize::try_from(cpus).ok());
    let untold = || CliError::bad("python3 -m fairlab.carrier does not tell its CPUs", GOES_ON);
    Ok(Some(Carrier { on: on.to_string(), process: Some(process), cpus: cpus.ok_or_else(untold)? }))
}

/// Where cells run: with the carrier, or else on so many threads.
pub fn place(carrier: Option<&mut Carrier>, jobs: usize) -> CellWorkers<'_> {
    match carrier {
        Some(carrier) => CellWorkers::Crew(carrier),
        None => CellWorkers::Threads(jobs),
    }
}

fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (send, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

impl CarrierProcess {
    fn start(on: &str) -> Result<CarrierProcess, LabError> {
        let mut command = Command::new("python3");
        command.args(["-m", "fairlab.carrier", "--on", on]);
        // A terminal's Ctrl-C reaches this program alone.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| lacks_python(&error.to_string()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let lines = output.map(lines_of).ok_or_else(|| lacks_python("its output cannot be read"))?;
        Ok(CarrierProcess { child, input, lines })
    }

    /// The next line; `None`: it was stopped.
    fn told(&mut self, stop: &AtomicBool) -> Result<Option<Value>, LabError> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return read(&line).map(Some),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    fn ended(&mut self) -> LabError {
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        LabError::new(format!("python3 -m fairlab.carrier ended with {status}"), GOES_ON)
    }
}

/// What a line says; where it says that something is wrong, that in our words.
fn read(line: &str) -> Result<Value, LabError> {
    let value = serde_json::from_str::<Value>(line).map_err(|error| {
        LabError::new(format!("python3 -m fairlab.carrier does not say JSON: {error}"), GOES_ON)
    })?;
    match value["error"].as_str() {
        Some(error) => {
            let (problem, hint) = error.split_once("; ").unwrap_or((error, GOES_ON));
            Err(LabError::new(problem, hint))
        }
        None => Ok(value),
    }
}

impl Crew for Carrier {
    fn cpus(&self) -> usize {
        self.cpus
    }

    fn send(&mut self, batch: String) -> Result<(), LabError> {
        let process = match &mut self.process {
            Some(process) => process,
            None => {
                let mut process = CarrierProcess::start(&self.on)?;
                // That it is there is all that it says at first.
                process.told(&AtomicBool::new(false))?;
                self.process.insert(process)
            }
        };
        let sent = match &mut process.input {
            Some(input) => writeln!(input, "{batch}").and_then(|()| input.flush()),
            None => return Err(process.ended()),
        };
        // Why it takes no more it may have said.
        sent.map_err(|_| match process.told(&AtomicBool::new(false)) {
            Err(error) => error,
            Ok(_) => process.ended(),
        })
    }

    fn records(&mut self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
        let Some(process) = &mut self.process else {
            return Err(LabError::new("no batch is out on the cluster", GOES_ON));
        };
        let Some(mut told) = process.told(stop)? else { return Ok(None) };
        match told["records"].take() {
            Value::Array(records) => Ok(Some(records)),
            _ => Err(LabError::new("python3 -m fairlab.carrier tells no records", GOES_ON)),
        }
    }

    fn cancel(&mut self) {
        self.process = None;
    }
}

impl Drop for CarrierProcess {
    fn drop(&mut self) {
        self.input = None;
        // It takes its leave of the cluster.
        let _ = self.child.wait();
    }
}

fn check_package() -> Result<(), CliError> {
    let script = "import fairlab.carrier; print(fairlab.__version__)";
    let output = Command::new("python3").args(["-c", script]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| lacks_python(&error.to_string()))?;
    let found = String::from_utf8_lossy(&output.stdout).trim().to_string();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(lacks_python(errors.lines().last().unwrap_or("it fails")).into());
    }
    if found != VERSION {
        let problem = format!("python3 has the package fairlab {found}, and this program is {VERSION}");
        return Err(CliError::bad(problem, "install the package of this version"));
    }
    Ok(())
}

fn lacks_python(why: &str) -> LabError {
    LabError::new(
        format!("work on a cluster needs python3 with the package fairlab: {why}"),
        "'make python' builds it; put the python3 that has it first in PATH",
    )
}
