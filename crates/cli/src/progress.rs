//! Progress of long work, on standard error: on a terminal, where it is gone when the work is done; elsewhere a line every ten
//! seconds that stays, and one for each step of what has few.

use std::fs::Metadata;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fairlab_lab::Progress;
use fairlab_lab::record::ForwardedSignals as HandedOn;
use fairlab_trace::BytesRead;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::CliError;

/// Shows how much is done and how long the rest may take.
#[derive(Debug)]
pub struct ProgressLine {
    what: String,
    unit: &'static str,
    started: Instant,
    shown: bool,
    /// Whether each step has a line of its own that stays.
    lasting: bool,
    /// Where standard error is no terminal: when the last line that stays was printed, of those that come now and then.
    seldom: Option<Mutex<Instant>>,
    /// What was printed last.
    told: Mutex<String>,
    /// Of what has steps: what says again which one goes on.
    beat: Option<StepBeat>,
}

/// Whether lines that stay are wanted without a terminal: not with `FAIRLAB_PROGRESS=off`.
fn is_wanted() -> bool {
    std::env::var_os("FAIRLAB_PROGRESS").is_none_or(|word| word != "off")
}

/// How often work without a terminal says how far it is.
const BETWEEN_LASTING_LINES: Duration = Duration::from_secs(10);

impl ProgressLine {
    /// A line about `what`, which is runs.
    pub fn new(what: &str) -> ProgressLine {
        ProgressLine::of(what, "runs")
    }

    /// A line about `what`, which has steps of many seconds; where standard error is no terminal, each has a line that stays.
    pub fn of_steps(what: &str) -> ProgressLine {
        let mut line = ProgressLine::new(what);
        line.lasting = !line.shown;
        line.beat = (line.shown || is_wanted()).then(|| StepBeat::new(what, line.started, line.shown));
        line
    }

    /// A line about `what`, counted in `unit`.
    pub fn of(what: &str, unit: &'static str) -> ProgressLine {
        let (started, shown) = (Instant::now(), io::stderr().is_terminal());
        ProgressLine {
            what: what.to_string(),
            unit,
            started,
            shown,
            lasting: false,
            seldom: (!shown && is_wanted()).then(|| Mutex::new(started)),
            told: Mutex::default(),
            beat: None,
        }
    }

    /// Shows what is done now, and since when the whole goes on.
    pub fn tell(&self, now: &str) {
        let line = step_line(&self.what, self.started, now);
        self.note(now);
        if !self.shown {
            if self.lasting || self.is_due() {
                let _ = writeln!(io::stderr().lock(), "{line}");
            }
            return;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != line {
            let mut err = io::stderr().lock();
            let _ = write!(err, "\r\x1b[K{line}");
            let _ = err.flush();
            *told = line;
        }
    }

    /// Prints a line that stays above the progress; only on a terminal, where its reader waits.
    pub fn keep(&self, line: &str) {
        if self.shown {
            let _ = writeln!(io::stderr().lock(), "\r\x1b[K{line}");
        }
    }

    /// What goes on, for a beat.
    fn note(&self, step: &str) {
        if let Some(beat) = &self.beat {
            *beat.step.lock().unwrap_or_else(PoisonError::into_inner) = (step.to_string(), Instant::now());
        }
    }

    /// Whether a line that stays is due without a terminal.
    fn is_due(&self) -> bool {
        let Some(last) = &self.seldom else { return false };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.elapsed() >= BETWEEN_LASTING_LINES;
        if is_due {
            *last = Instant::now();
        }
        is_due
    }

    /// Shows that `progress` has been made.
    pub fn show(&self, progress: Progress) {
        let lasts = self.is_due();
        if !self.shown && !lasts {
            return;
        }
        self.note(&format!("{} of {} {}", progress.done, progress.total, self.unit));
        let elapsed = self.started.elapsed().as_secs_f64();
        let left = match progress.done {
            0 => String::new(),
            done => format!(", about {:.0} s left", elapsed / done as f64 * (progress.total - done) as f64),
        };
        let mut err = io::stderr().lock();
        let line = format!("{}: {} of {} {}{left}", self.what, progress.done, progress.total, self.unit);
        let _ = if lasts { writeln!(err, "{line}") } else { write!(err, "\r\x1b[K{line}") };
        let _ = err.flush();
    }
}

fn step_line(what: &str, started: Instant, step: &str) -> String {
    format!("{what}: {} s, {step}", started.elapsed().as_secs())
}

/// Says again which step goes on while nothing else is said: on a terminal each second, elsewhere every ten.
#[derive(Debug)]
struct StepBeat {
    /// The step, and when it was said last.
    step: Arc<Mutex<(String, Instant)>>,
    _ticking: Ticking,
}

impl StepBeat {
    fn new(what: &str, started: Instant, shown: bool) -> StepBeat {
        let step = Arc::new(Mutex::new((String::new(), started)));
        let (what, said) = (what.to_string(), Arc::clone(&step));
        let _ticking = Ticking::every(BETWEEN_BEATS, move || say_again(&what, started, shown, &said));
        StepBeat { step, _ticking }
    }
}

fn say_again(what: &str, started: Instant, shown: bool, said: &Mutex<(String, Instant)>) {
    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
    let between = if shown { BETWEEN_BEATS } else { BETWEEN_LASTING_LINES };
    if said.0.is_empty() || said.1.elapsed() < between {
        return;
    }
    let (line, mut err) = (step_line(what, started, &said.0), io::stderr().lock());
    let _ = if shown { write!(err, "\r\x1b[K{line}") } else { writeln!(err, "{line}") };
    let _ = err.flush();
    said.1 = Instant::now();
}

/// A thread that does something now and then as long as this lives.
#[derive(Debug)]
struct Ticking {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticking {
    fn every(between: Duration, mut tick: impl FnMut() + Send + 'static) -> Ticking {
        let done = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            loop {
                std::thread::park_timeout(between);
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                tick();
            }
        });
        Ticking { done, thread: Some(thread) }
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// How often a step may be said again.
const BETWEEN_BEATS: Duration = Duration::from_secs(1);

/// Shows how much of a trace has been read, where that takes longer than a moment.
#[derive(Debug)]
pub struct ReadingLine {
    ticking: Option<Ticking>,
    /// Whether a line stands on a terminal.
    shown: Arc<AtomicBool>,
}

impl ReadingLine {
    /// A line about `what` as long as it lives; silent when `file` has no length.
    pub fn new(what: &'static str, file: &Path, read: &BytesRead) -> ReadingLine {
        let length = file.metadata().ok().filter(Metadata::is_file).map(|about| about.len());
        let length = length.filter(|_| io::stderr().is_terminal() || is_wanted());
        let shown = Arc::new(AtomicBool::new(false));
        let ticking = length.map(|length| telling_of_reading(what, length, read.clone(), Arc::clone(&shown)));
        ReadingLine { ticking, shown }
    }
}

impl Drop for ReadingLine {
    fn drop(&mut self) {
        self.ticking = None;
        if self.shown.load(Ordering::Relaxed) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn telling_of_reading(what: &'static str, length: u64, read: BytesRead, shown: Arc<AtomicBool>) -> Ticking {
    let (started, is_terminal) = (Instant::now(), io::stderr().is_terminal());
    let (between, after) = match is_terminal {
        true => (BETWEEN_LINES, SHOWN_AFTER),
        false => (BETWEEN_LASTING_LINES, BETWEEN_LASTING_LINES / 2),
    };
    Ticking::every(between, move || {
        let elapsed = started.elapsed();
        if elapsed <= after {
            return;
        }
        let (line, mut err) = (read_so_far(read.get(), length, elapsed), io::stderr().lock());
        let _ = match is_terminal {
            true => write!(err, "\r\x1b[K{what}: {line}"),
            false => writeln!(err, "{what}: {line}"),
        };
        shown.store(is_terminal, Ordering::Relaxed);
    })
}

/// How often a line about reading is written again, and how long it takes until the first.
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
        self.beat = None;
        if self.shown {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// The signal that came last; 0 is none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The exit code of a command that a signal ended: 128 and its number, as a shell tells it.
pub fn code_of_signal() -> u8 {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => 130,
        signal => u8::try_from(128 + signal).unwrap_or(130),
    }
}

/// Does `handler` in a thread of its own for each SIGINT (Ctrl-C), SIGTERM and SIGHUP.
fn on_signals(mut handler: impl FnMut(i32) + Send + 'static) -> Result<(), CliError> {
    let caught =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !hangup_is_ignored());
    let failed = |error: io::Error| CliError::bad(format!("cannot catch interrupts: {error}"), "try again");
    let mut signals = Signals::new(caught).map_err(failed)?;
    let thread = std::thread::Builder::new().name("signals".to_string());
    let each = move || {
        for signal in signals.forever() {
            SIGNAL.store(signal, Ordering::Relaxed);
            handler(signal);
        }
    };
    thread.spawn(each).map(drop).map_err(failed)
}

/// Whether we were started by `nohup`: then a hangup is to change nothing.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}

fn end() -> ! {
    std::process::exit(code_of_signal().into())
}

/// A flag that Ctrl-C sets, and SIGTERM and SIGHUP. A second one changes nothing: what was set up on this host is put back
/// first, which takes some seconds at most.
pub fn put_back_on_interrupt() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    on_signals(move |_| flag.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

/// The flag of [`put_back_on_interrupt`]; each signal is handed on, too.
pub fn hand_on_and_put_back() -> Result<(Arc<AtomicBool>, HandedOn), CliError> {
    let (stop, signals) = (Arc::new(AtomicBool::new(false)), HandedOn::default());
    let (flag, to) = (Arc::clone(&stop), signals.clone());
    on_signals(move |signal| {
        to.add(signal);
        flag.store(true, Ordering::SeqCst);
    })?;
    Ok((stop, signals))
}

/// Programs send what means one signal as two: `timeout` (coreutils 9.1) to the program, and then to its whole process group.
const SENT_TWICE: Duration = Duration::from_secs(2);

/// A flag that the first Ctrl-C sets, or SIGTERM or SIGHUP; the second one ends the program at once. A SIGTERM just after the
/// first is the same one.
pub fn stop_on_interrupt() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let mut first: Option<(i32, Instant)> = None;
    on_signals(move |signal| match first {
        None => {
            first = Some((signal, Instant::now()));
            flag.store(true, Ordering::Relaxed);
        }
        Some((SIGTERM, at)) if signal == SIGTERM && at.elapsed() < SENT_TWICE => {}
        Some(_) => end(),
    })?;
    Ok(stop)
}

/// Has Ctrl-C end the program: there is nothing to put back or to keep.
pub fn end_on_interrupt() -> Result<(), CliError> {
    on_signals(|_| end())
}

/// What `create` makes; Ctrl-C removes the file that `building` tells of it, if there is one, and ends the program. Signals are caught
/// before there is a file: one that came in between would leave it.
pub fn removed_on_interrupt<F>(
    create: impl FnOnce() -> Result<F, CliError>,
    building: impl FnOnce(&F) -> Option<&Path>,
) -> Result<F, CliError> {
    let path = Arc::new(Mutex::new(None::<PathBuf>));
    let seen = Arc::clone(&path);
    // Held while the file is made.
    let mut kept = path.lock().unwrap_or_else(PoisonError::into_inner);
    on_signals(move |_| {
        if let Some(path) = made_soon(&seen) {
            // There may be nothing to remove any more.
            let _ = std::fs::remove_file(path);
        }
        end();
    })?;
    let file = create()?;
    *kept = building(&file).map(Path::to_path_buf);
    drop(kept);
    Ok(file)
}

/// The path, once it is told. A pipe that nobody reads from is never opened: nothing is waited for without an end.
fn made_soon(path: &Mutex<Option<PathBuf>>) -> Option<PathBuf> {
    for _ in 0..100 {
        match path.try_lock() {
            Ok(path) => return path.clone(),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    None
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
