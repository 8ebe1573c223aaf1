//! Progress of long work: on a terminal only, on standard error, and gone when the work is done.

use std::fs::Metadata;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fairlab_lab::Progress;
use fairlab_trace::BytesRead;

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

/// Shows how much of a trace has been read, where that takes longer than a moment.
#[derive(Debug)]
pub struct ReadingLine {
    watch: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl ReadingLine {
    /// A line about `what` as long as it lives; silent when standard error is no terminal, or `file` has no length.
    pub fn new(what: &'static str, file: &Path, read: &BytesRead) -> ReadingLine {
        let length = file.metadata().ok().filter(Metadata::is_file).map(|about| about.len());
        let length = length.filter(|_| io::stderr().is_terminal());
        let watch = length.map(|length| {
            let (done, read) = (Arc::new(AtomicBool::new(false)), read.clone());
            let seen = Arc::clone(&done);
            (done, std::thread::spawn(move || watch(what, length, &read, &seen)))
        });
        ReadingLine { watch }
    }
}

impl Drop for ReadingLine {
    fn drop(&mut self) {
        let Some((done, watch)) = self.watch.take() else { return };
        done.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        let _ = watch.join();
    }
}

fn watch(what: &str, length: u64, read: &BytesRead, done: &AtomicBool) {
    let started = Instant::now();
    let mut shown = false;
    loop {
        std::thread::park_timeout(BETWEEN_LINES);
        let elapsed = started.elapsed();
        if done.load(Ordering::Relaxed) {
            break;
        }
        if elapsed > SHOWN_AFTER {
            let _ =
                write!(io::stderr().lock(), "\r\x1b[K{what}: {}", read_so_far(read.get(), length, elapsed));
            shown = true;
        }
    }
    if shown {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}

/// How often a line about reading is written anew, and for how long there is none.
const BETWEEN_LINES: Duration = Duration::from_millis(250);
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// `34 % of 10.2 GB, about 40 s left`
fn read_so_far(read: u64, length: u64, elapsed: Duration) -> String {
    let part = (read as f64 / length.max(1) as f64).min(1.0);
    let size = match length {
        0..1_000_000_000 => format!("{} MB", length.div_ceil(1_000_000)),
        _ => format!("{:.1} GB", length as f64 / 1e9),
    };
    let left = elapsed.as_secs_f64() * (1.0 - part) / part;
    let left = if left.is_finite() { format!(", about {left:.0} s left") } else { String::new() };
    format!("{:.0} % of {size}{left}", 100.0 * part)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_is_read() {
        let after = |read, length| read_so_far(read, length, Duration::from_secs(10));
        assert_eq!(after(2_500_000_000, 10_000_000_000), "25 % of 10.0 GB, about 30 s left");
        assert_eq!(after(40_000_000, 40_000_000), "100 % of 40 MB, about 0 s left");
        assert_eq!(after(0, 40_000_000), "0 % of 40 MB");
        assert_eq!(after(50, 40), "100 % of 1 MB, about 0 s left", "what is read twice counts twice");
    }
}
