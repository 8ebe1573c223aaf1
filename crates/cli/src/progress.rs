//! Progress of long work: on a terminal only, on standard error, and gone when the work is done.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use fairlab_lab::Progress;

use crate::error::CliError;

/// Shows how much is done and how long the rest may take.
#[derive(Debug)]
pub struct ProgressLine {
    what: &'static str,
    unit: &'static str,
    started: Instant,
    shown: bool,
    /// What was told last.
    told: Mutex<String>,
}

impl ProgressLine {
    /// A line about `what`, which is runs; silent when standard error is no terminal.
    pub fn new(what: &'static str) -> ProgressLine {
        ProgressLine::of(what, "runs")
    }

    /// A line about `what`, counted in `unit`.
    pub fn of(what: &'static str, unit: &'static str) -> ProgressLine {
        ProgressLine {
            what,
            unit,
            started: Instant::now(),
            shown: io::stderr().is_terminal(),
            told: Mutex::default(),
        }
    }

    /// Shows what is done now, and since when the whole goes on.
    pub fn tell(&self, now: &str) {
        if !self.shown {
            return;
        }
        let line = format!("{}: {} s, {now}", self.what, self.started.elapsed().as_secs());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != line {
            let mut err = io::stderr().lock();
            let _ = write!(err, "\r\x1b[K{line}");
            let _ = err.flush();
            *told = line;
        }
    }

    /// Shows that `progress` has been made.
    pub fn show(&self, progress: Progress) {
        if !self.shown {
            return;
        }
        let elapsed = self.started.elapsed().as_secs_f64();
        let left = match progress.done {
            0 => String::new(),
            done => format!(", about {:.0} s left", elapsed / done as f64 * (progress.total - done) as f64),
        };
        let mut err = io::stderr().lock();
        let _ =
            write!(err, "\r\x1b[K{}: {} of {} {}{left}", self.what, progress.done, progress.total, self.unit);
        let _ = err.flush();
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// A flag that Ctrl-C sets, and SIGTERM and SIGHUP. A second one changes nothing: what was set up on this host is put back
/// first, which takes some seconds at most.
pub fn put_back_on_interrupt() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).map_err(|error| cannot_catch(&error))?;
    Ok(stop)
}

/// A flag that the first Ctrl-C sets, or SIGTERM or SIGHUP; the second one ends the program at once.
pub fn stop_on_interrupt() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(|error| cannot_catch(&error))?;
    Ok(stop)
}

/// Has Ctrl-C end the program: there is nothing to put back or to keep.
pub fn end_on_interrupt() -> Result<(), CliError> {
    ctrlc::set_handler(|| std::process::exit(130)).map_err(|error| cannot_catch(&error))
}

/// Has Ctrl-C remove `path` and end the program.
pub fn remove_on_interrupt(path: PathBuf) -> Result<(), CliError> {
    ctrlc::set_handler(move || {
        // There may be nothing to remove yet, or any more.
        let _ = std::fs::remove_file(&path);
        std::process::exit(130);
    })
    .map_err(|error| cannot_catch(&error))
}

fn cannot_catch(error: &ctrlc::Error) -> CliError {
    CliError::bad(format!("cannot catch interrupts: {error}"), "try again")
}
