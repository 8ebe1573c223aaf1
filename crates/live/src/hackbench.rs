//! hackbench for real: groups of senders and receivers over socket pairs or pipes, as processes or threads.
//!
//! Facts as in the model (`fairlab_sim::workload::hackbench`). Departs from the real program: the main task learns of the
//! others' end by one pipe that they all hold, not by waiting for each.
//!
//! Must not know: the engine, how a result reaches a user.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fairlab_event::Ns;
use fairlab_kernel::Policy;
use fairlab_sim::workload::MESSAGE_BYTES;
use fairlab_sim::workload::hackbench::{HackbenchOptions, PIPE_BUFFER};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::pipe;

use crate::clock::Clock;
use crate::messages::{receive, send};
use crate::processes::{RunningTasks, TasksEnded, allow_files};
use crate::system::{ThreadScheduling, set_scheduling};
use crate::{LiveConditions, LiveReport};

/// What the tasks share.
struct HackbenchRun {
    options: HackbenchOptions,
    /// Per receiver, groups one after the other: the end that it reads, and the end that senders write.
    channels: Vec<(OwnedFd, OwnedFd)>,
    /// A byte for each task that is ready.
    ready: OwnedFd,
    /// A byte that nobody reads: the start.
    go: OwnedFd,
    /// Messages received, where tasks are threads.
    received: AtomicU64,
}

/// A sender or a receiver. A process of it keeps the memory until it ends by itself, so nothing is freed in it.
pub(crate) struct HackbenchTask {
    bench: Arc<HackbenchRun>,
    index: u32,
}

impl HackbenchTask {
    /// Sends or receives all that it has to, and gives the exit status. Keeps to the rule of forked processes.
    pub(crate) fn work(self) -> i32 {
        let done = match self.bench.options.bytes {
            ..=MESSAGE_BYTES => task::<{ MESSAGE_BYTES as usize }>(&self.bench, self.index),
            _ => task::<{ PIPE_BUFFER as usize }>(&self.bench, self.index),
        };
        i32::from(done.is_err())
    }
}

/// Runs hackbench with these arguments (without the program's name).
///
/// # Errors
/// One line that says what is wrong with the arguments (for `--help` the usage text), or what there is no room for.
pub(crate) fn run(
    args: &[String],
    conditions: &LiveConditions<'_>,
    print: &mut dyn FnMut(&str),
) -> Result<LiveReport, String> {
    let options = HackbenchOptions::parse(args)?;
    let count = options.tasks();
    let receivers = u64::from(options.groups) * u64::from(options.fds);
    allow_files(2 * receivers + 64)?;
    let failed = |error: Errno| format!("cannot make another pipe or socket: {error}");
    let _ = rustix::thread::set_name(c"hackbench");
    let mut output = options.heading();
    print(&output);
    let clock = Clock::start();
    let ((ready_from, ready), (go, start)) = (pipe().map_err(failed)?, pipe().map_err(failed)?);
    let channels =
        (0..receivers).map(|_| channel(options.pipe)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let bench = Arc::new(HackbenchRun { options, channels, ready, go, received: AtomicU64::new(0) });
    let mut tasks = RunningTasks::new()?;
    for index in 0..count {
        let member = HackbenchTask { bench: Arc::clone(&bench), index };
        tasks.start("hackbench", options.threads, member)?;
    }
    if options.fifo {
        let fifo = ThreadScheduling { policy: Policy::Fifo(1), nice: 0, request_ns: 0 };
        set_scheduling(fifo).map_err(|error| format!("cannot become SCHED_FIFO (-F): {error}"))?;
    }
    await_ready(&ready_from, count).map_err(|error| format!("a task did not get ready: {error}"))?;
    let begin = clock.now();
    write(&start, &[0]).map_err(|error| format!("cannot start the tasks: {error}"))?;
    let ended = tasks.wait(&clock, conditions.duration, conditions.stop);
    let took = clock.now().since(begin);
    let text = match ended {
        TasksEnded::All => format!("Time: {:.3}\n", took.as_secs_f64()),
        TasksEnded::Stopped => format!("(stopped after {:.3} s)\n", took.as_secs_f64()),
    };
    print(&text);
    output += &text;
    Ok(report(&bench, output, ended, took))
}

fn report(bench: &HackbenchRun, output: String, ended: TasksEnded, took: Ns) -> LiveReport {
    let options = &bench.options;
    let all = u64::from(options.groups)
        * u64::from(options.fds)
        * u64::from(options.fds)
        * u64::from(options.loops);
    let count = match (ended, options.threads) {
        (TasksEnded::All, _) => Some(all),
        (TasksEnded::Stopped, true) => Some(bench.received.load(Ordering::Relaxed)),
        // What killed processes had received nobody knows.
        (TasksEnded::Stopped, false) => None,
    };
    let time = (ended == TasksEnded::All).then_some(("time_ns".to_string(), took.0 as f64));
    LiveReport {
        output,
        progress: count.map(|count| ("messages".to_string(), count)),
        metrics: time.into_iter().collect(),
        elapsed: took,
    }
}

fn channel(as_pipe: bool) -> Result<(OwnedFd, OwnedFd), Errno> {
    if as_pipe {
        return pipe();
    }
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)
}

/// Until every task has said that it is ready.
fn await_ready(ready: &OwnedFd, count: u32) -> Result<(), Errno> {
    let (mut left, mut bytes) = (count as usize, [0; 256]);
    while left > 0 {
        let most = left.min(bytes.len());
        match read(ready, &mut bytes[..most]) {
            Ok(some) => left -= some,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A sender or a receiver, with a message of up to so many bytes on its stack: in each group the receivers come first.
fn task<const BYTES: usize>(bench: &HackbenchRun, index: u32) -> Result<(), Errno> {
    let HackbenchOptions { fds, loops, bytes, .. } = bench.options;
    let (group, in_group) = (index / (2 * fds), index % (2 * fds));
    write(&bench.ready, b"*")?;
    while let Err(error) = poll(&mut [PollFd::new(&bench.go, PollFlags::IN)], None) {
        if error != Errno::INTR {
            return Err(error);
        }
    }
    let mut message = [b'-'; BYTES];
    let message = &mut message[..bytes as usize];
    if in_group < fds {
        let (from, _) = &bench.channels[(group * fds + in_group) as usize];
        for _ in 0..u64::from(loops) * u64::from(fds) {
            if !receive(from, message)? {
                return Err(Errno::PIPE);
            }
            if bench.options.threads {
                bench.received.fetch_add(1, Ordering::Relaxed);
            }
        }
        return Ok(());
    }
    for _ in 0..loops {
        for receiver in 0..fds {
            let (_, to) = &bench.channels[(group * fds + receiver) as usize];
            send(to, message)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;

    fn hackbench(line: &str, stop: bool) -> (LiveReport, String) {
        testbed::run(run, line, stop)
    }

    #[test]
    fn every_message_arrives_whatever_carries_it() {
        for kind in ["-P", "-t", "-p", "-t -p"] {
            // More than a pipe or socket holds, so that senders block.
            let (report, printed) = hackbench(&format!("-g 2 -f 3 -l 700 {kind}"), false);
            assert_eq!(report.progress, Some(("messages".to_string(), 2 * 3 * 3 * 700)), "{kind}");
            assert!(printed.starts_with("Running in ") && printed.contains("(== 12 tasks)\n"), "{printed}");
            assert!(printed.lines().last().is_some_and(|last| last.starts_with("Time: ")), "{printed}");
        }
    }

    #[test]
    fn processes_that_are_stopped_are_gone() {
        let (report, printed) = hackbench("-g 1 -f 2 -l 4000000", true);
        assert!(printed.contains("(stopped after "), "{printed}");
        assert_eq!(report.progress, None);
    }
}
