//! Tasks of a benchmark, as threads or as processes, and the wait for their end.
//!
//! Must not know: what the tasks do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fairlab_event::Ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::pipe;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, kill_process, setrlimit, waitpid,
};
use rustix::time::Timespec;

use crate::clock::Clock;
use crate::forked::{self, ForkedTask};

/// Between two looks at whether to stop, s: a signal to the calling thread comes through at once, one to another does not.
const LOOK_S: i64 = 1;

/// Tasks that run.
#[derive(Debug)]
pub(crate) struct RunningTasks {
    processes: Vec<Pid>,
    /// Each task holds the other end: when the last one ends, it is closed.
    all_ended: OwnedFd,
    held: Option<Arc<OwnedFd>>,
}

/// How waiting for tasks ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TasksEnded {
    /// All have ended.
    All,
    /// There was no more time, or somebody said stop; tasks that are processes were killed.
    Stopped,
}

impl RunningTasks {
    /// No task yet.
    pub fn new() -> Result<RunningTasks, String> {
        let (all_ended, held) = pipe().map_err(|error| format!("cannot make a pipe: {error}"))?;
        Ok(RunningTasks { processes: Vec::new(), all_ended, held: Some(Arc::new(held)) })
    }

    /// Starts a task, as a thread or as a process.
    pub fn start(&mut self, comm: &str, as_thread: bool, task: impl ForkedTask) -> Result<(), String> {
        if as_thread {
            return self.start_thread(comm, move || task.run());
        }
        self.processes.push(forked::start(task).map_err(|error| failed(&error))?);
        Ok(())
    }

    /// Starts a thread.
    pub fn start_thread(
        &mut self,
        comm: &str,
        task: impl FnOnce() -> i32 + Send + 'static,
    ) -> Result<(), String> {
        let held = self.held.clone();
        let thread = thread::Builder::new().name(comm.to_string()).stack_size(128 << 10);
        let body = move || {
            task();
            drop(held);
        };
        thread.spawn(body).map(drop).map_err(|error| failed(&error))
    }

    /// Waits until all have ended, but not beyond `until` on the clock, and not when `stop` is set.
    pub fn wait(mut self, clock: &Clock, until: Option<Ns>, stop: &AtomicBool) -> TasksEnded {
        self.held = None;
        loop {
            let left = until.map(|until| until.since(clock.now()));
            if stop.load(Ordering::Relaxed) || left == Some(Ns::ZERO) {
                return TasksEnded::Stopped;
            }
            let look = Timespec { tv_sec: LOOK_S, tv_nsec: 0 };
            let timeout = left.map_or(look, |left| as_timespec(left).min(look));
            match poll(&mut [PollFd::new(&self.all_ended, PollFlags::IN)], Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return TasksEnded::All,
            }
        }
    }
}

/// Processes do not outlive it; threads end with the process that they are in.
impl Drop for RunningTasks {
    fn drop(&mut self) {
        for &process in &self.processes {
            let _ = kill_process(process, Signal::KILL);
            let _ = waitpid(Some(process), WaitOptions::empty());
        }
    }
}

fn failed(error: &std::io::Error) -> String {
    format!("cannot create another task: {error}")
}

fn as_timespec(time: Ns) -> Timespec {
    Timespec { tv_sec: (time.0 / 1_000_000_000) as i64, tv_nsec: (time.0 % 1_000_000_000) as i64 }
}

/// Lets this process have as many files open as it may.
///
/// # Errors
/// It needs more than that.
pub(crate) fn allow_files(needed: u64) -> Result<(), String> {
    let limits = getrlimit(Resource::Nofile);
    if limits.maximum.is_some_and(|maximum| maximum < needed) {
        return Err(format!(
            "it needs {needed} open files, and 'ulimit -Hn' allows {}",
            limits.maximum.unwrap_or(0)
        ));
    }
    let wanted = Rlimit { current: Some(needed.max(limits.current.unwrap_or(0))), maximum: limits.maximum };
    setrlimit(Resource::Nofile, wanted)
        .map_err(|error| format!("cannot raise the limit of open files: {error}"))
}
