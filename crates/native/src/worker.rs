//! A process for one run: an error in the kernel's code ends that process, not Fairlab.
//!
//! The worker sends messages while it works and a result at the end, each with its length. A report of an error comes through
//! a pipe of its own, since it may come in the middle of a message.
//!
//! Must not know: what messages say.

use std::io::{BufWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fairlab_files::LabError;
use libc::STDERR_FILENO;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use crate::child;
use crate::image::{ImageFile, LoadedImage};
use crate::limits;

/// What a worker's process sends on its way.
pub struct Outbox {
    to: BufWriter<PipeEnd>,
    /// Where a report of an error goes.
    report: RawFd,
}

/// One end of a pipe, to be written to.
struct PipeEnd(OwnedFd);

impl Write for PipeEnd {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(rustix::io::write(&self.0, bytes)?)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const MESSAGE: u8 = 0;
const RESULT: u8 = 1;
const REFUSAL: u8 = 2;

/// Bytes that a pipe is asked to hold, so that neither side waits for the other.
const ROOM: usize = 1 << 20;

/// The time between two looks at whether a run is to stop.
const LOOK: Duration = Duration::from_millis(50);

impl Outbox {
    /// Sends a message to the process that waits for this one.
    pub fn send(&mut self, message: &[u8]) {
        self.put(MESSAGE, message);
    }

    /// All that this process writes to: here, reports, and standard error.
    fn outlets(&self) -> [RawFd; 3] {
        [self.to.get_ref().0.as_raw_fd(), self.report, STDERR_FILENO]
    }

    /// A parent that does not listen any more has its reasons: it ends this process.
    fn put(&mut self, kind: u8, bytes: &[u8]) {
        let length = (bytes.len() as u32).to_le_bytes();
        let [first, second, third, fourth] = length;
        let _ = self.to.write_all(&[kind, first, second, third, fourth]);
        let _ = self.to.write_all(bytes);
    }
}

/// No two workers are created at once: one would hold the other's pipes open.
static CREATION: Mutex<()> = Mutex::new(());

/// Maps an image into a process of its own and does `work` there, with messages to `receive` here. Gives what `work` gave; `None` when
/// `stop` was set before it was over.
///
/// `work` is a copy of what it holds: what it changes is not seen here. It uses no standard stream. It can start no process, and open no
/// file or socket. [`in_recording_worker`] is for what writes a trace.
///
/// # Errors
/// What `work` refuses; or how the kernel's code went wrong: a BUG, a WARN, an access to no memory, a function that is not there, an
/// endless loop, more memory than a run may have, a system call that no run makes, with the kernel's own functions and virtual time.
pub fn in_worker(
    image: &ImageFile,
    stop: &AtomicBool,
    work: impl FnOnce(LoadedImage, &mut Outbox) -> Result<Vec<u8>, LabError>,
    receive: &mut dyn FnMut(&[u8]),
) -> Result<Option<Vec<u8>>, LabError> {
    in_recording_worker(image, false, stop, work, receive)
}

/// As [`in_worker`]; if it is `recorded`, `work` may also write files, by threads of its own.
///
/// # Errors
/// As there, but for the system calls.
pub fn in_recording_worker(
    image: &ImageFile,
    recorded: bool,
    stop: &AtomicBool,
    work: impl FnOnce(LoadedImage, &mut Outbox) -> Result<Vec<u8>, LabError>,
    receive: &mut dyn FnMut(&[u8]),
) -> Result<Option<Vec<u8>>, LabError> {
    let work = |image, outbox: &mut Outbox| {
        if !recorded {
            limits::seal(&outbox.outlets());
        }
        work(image, outbox)
    };
    let worker = WorkerProcess::start(image, work)?;
    let inbox = worker.listen(stop, receive);
    let report = worker.report();
    match (worker.end(), inbox) {
        (_, None) => Ok(None),
        (_, Some(Inbox { result: Some(result), .. })) if report.is_empty() => result.map(Some),
        (status, Some(_)) => Err(failure(image, &report, status)),
    }
}

/// How a run ended that has no result.
fn failure(image: &ImageFile, report: &str, status: Option<WaitStatus>) -> LabError {
    let mut lines = report.lines().map(str::to_string);
    let problem = lines.next().unwrap_or_else(|| {
        let signal = status.and_then(WaitStatus::terminating_signal);
        match signal {
            // Where the signal is blocked, no handler reports it.
            Some(signal) if signal == Signal::SYS.as_raw() => {
                "its code has asked the host for a system call that no run makes".to_string()
            }
            Some(signal) => format!("its process was ended by signal {signal}"),
            None => "its process has ended without a result".to_string(),
        }
    });
    let problem = format!("kernel {}: {problem}", image.path().display());
    LabError::new(problem, "the run ends here; the lines below are the kernel's").with_lines(lines.collect())
}

/// A process at work, and what comes from it.
struct WorkerProcess {
    pid: Pid,
    from: OwnedFd,
    report: OwnedFd,
}

/// What has come.
#[derive(Default)]
struct Inbox {
    bytes: Vec<u8>,
    result: Option<Result<Vec<u8>, LabError>>,
}

impl WorkerProcess {
    fn start(
        image: &ImageFile,
        work: impl FnOnce(LoadedImage, &mut Outbox) -> Result<Vec<u8>, LabError>,
    ) -> Result<WorkerProcess, LabError> {
        let cannot = |problem: std::io::Error| {
            LabError::new(format!("no process for a run can be created: {problem}"), "try again later")
        };
        let _one_by_one = CREATION.lock().unwrap_or_else(PoisonError::into_inner);
        let pipes = || Ok::<_, Errno>((pipe_with(PipeFlags::CLOEXEC)?, pipe_with(PipeFlags::CLOEXEC)?));
        let ((from, to), (report, report_to)) = pipes().map_err(|problem| cannot(problem.into()))?;
        // Where that much is not allowed, the pipe holds less.
        let _ = fcntl_setpipe_size(&to, ROOM);
        let reports = report_to.as_raw_fd();
        let pid = child::fork(reports, || {
            let mut outbox = Outbox { to: BufWriter::with_capacity(ROOM / 4, PipeEnd(to)), report: reports };
            carry_out(image, work, &mut outbox);
            let _ = outbox.to.flush();
        });
        drop(report_to);
        Ok(WorkerProcess { pid: pid.map_err(cannot)?, from, report })
    }

    /// Takes messages until there are no more; `None` when it is to stop.
    fn listen(&self, stop: &AtomicBool, receive: &mut dyn FnMut(&[u8])) -> Option<Inbox> {
        let mut inbox = Inbox::default();
        let mut buffer = vec![0; ROOM];
        loop {
            if stop.load(Ordering::Relaxed) {
                let _ = kill_process(self.pid, Signal::KILL);
                return None;
            }
            let mut ready = [PollFd::new(&self.from, PollFlags::IN)];
            let wait = Timespec::try_from(LOOK).ok();
            if !matches!(poll(&mut ready, wait.as_ref()), Ok(count) if count > 0) {
                continue;
            }
            match read(&self.from, &mut buffer) {
                Ok(0) => return Some(inbox),
                Ok(count) => inbox.take(&buffer[..count], receive),
                Err(Errno::INTR) => {}
                Err(_) => return Some(inbox),
            }
        }
    }

    /// What it said of how it went wrong; empty: nothing.
    fn report(&self) -> String {
        let (mut report, mut buffer) = (Vec::new(), [0; 8192]);
        while let Ok(count) = read(&self.report, &mut buffer) {
            if count == 0 {
                break;
            }
            report.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8_lossy(&report).into_owned()
    }

    fn end(&self) -> Option<WaitStatus> {
        waitpid(Some(self.pid), WaitOptions::empty()).ok().flatten().map(|(_, status)| status)
    }
}

impl Inbox {
    fn take(&mut self, bytes: &[u8], receive: &mut dyn FnMut(&[u8])) {
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(&[kind, first, second, third, fourth]) = self.bytes[at..].first_chunk::<5>() {
            let length = u32::from_le_bytes([first, second, third, fourth]) as usize;
            let Some(content) = self.bytes.get(at + 5..at + 5 + length) else { break };
            match kind {
                MESSAGE => receive(content),
                RESULT => self.result = Some(Ok(content.to_vec())),
                _ => self.result = Some(Err(refusal_of(content))),
            }
            at += 5 + length;
        }
        self.bytes.drain(..at);
    }
}

/// In the worker: does the work and sends what came of it.
fn carry_out(
    image: &ImageFile,
    work: impl FnOnce(LoadedImage, &mut Outbox) -> Result<Vec<u8>, LabError>,
    outbox: &mut Outbox,
) {
    // Standard error may be another thread's, which does not exist here.
    let place = std::sync::Arc::new(Mutex::new(String::new()));
    let told = std::sync::Arc::clone(&place);
    std::panic::set_hook(Box::new(move |panic| {
        *told.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    limits::limit_memory();
    let result =
        catch_unwind(AssertUnwindSafe(|| LoadedImage::map(image).and_then(|image| work(image, outbox))));
    let result = result.unwrap_or_else(|_| {
        let problem = place.lock().unwrap_or_else(PoisonError::into_inner).replace('\n', " ");
        Err(LabError::new(
            format!("a run of {} has failed: {problem}", image.path().display()),
            "report this",
        ))
    });
    match result {
        Ok(bytes) => outbox.put(RESULT, &bytes),
        Err(refused) => outbox.put(REFUSAL, &refusal(&refused)),
    }
}

/// Between the texts of a refusal: no text of ours holds it.
const SEPARATOR: char = '\u{1f}';

fn refusal(refused: &LabError) -> Vec<u8> {
    let mut texts = vec![refused.problem.clone(), refused.hint.clone()];
    texts.extend(refused.lines.iter().cloned());
    texts.join(&SEPARATOR.to_string()).into_bytes()
}

fn refusal_of(bytes: &[u8]) -> LabError {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut texts = text.split(SEPARATOR).map(str::to_string);
    let (problem, hint) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
    LabError::new(problem, hint).with_lines(texts.collect())
}
