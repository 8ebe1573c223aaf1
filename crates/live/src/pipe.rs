//! `perf bench sched pipe` for real: two tasks pass four bytes to and fro through two pipes.
//!
//! Facts as in the model (`fairlab_sim::workload::pipe`).
//!
//! Must not know: the engine, how a result reaches a user.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fairlab_sim::workload::pipe::PipeOptions;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};

use crate::clock::Clock;
use crate::processes::{RunningTasks, TasksEnded};
use crate::{LiveConditions, LiveReport};

/// What the two share: pipe `i` is read by task `i`.
struct PipeRun {
    loops: u32,
    pipes: [(OwnedFd, OwnedFd); 2],
    /// Round trips done, where tasks are threads.
    done: AtomicU32,
}

/// One of the two tasks.
pub(crate) struct PipeTask {
    bench: Arc<PipeRun>,
    me: usize,
    counts: bool,
}

impl PipeTask {
    /// Makes all round trips, and gives the exit status. Keeps to the rule of forked processes.
    pub(crate) fn work(self) -> i32 {
        i32::from(task(&self.bench, self.me, self.counts).is_err())
    }
}

/// Runs the benchmark with these arguments.
///
/// # Errors
/// One line that says what is wrong with the arguments (for `--help` the usage text), or what there is no room for.
pub(crate) fn run(
    args: &[String],
    conditions: &LiveConditions<'_>,
    print: &mut dyn FnMut(&str),
) -> Result<LiveReport, String> {
    let options = PipeOptions::parse(args)?;
    let failed = |error: Errno| format!("cannot make a pipe: {error}");
    let _ = rustix::thread::set_name(c"sched-pipe");
    let pipes = [rustix::pipe::pipe().map_err(failed)?, rustix::pipe::pipe().map_err(failed)?];
    let bench = Arc::new(PipeRun { loops: options.loops, pipes, done: AtomicU32::new(0) });
    let clock = Clock::start();
    let mut tasks = RunningTasks::new()?;
    for me in 0..2 {
        let end = PipeTask { bench: Arc::clone(&bench), me, counts: options.threaded };
        tasks.start("sched-pipe", options.threaded, end)?;
    }
    let ended = tasks.wait(&clock, conditions.duration, conditions.stop);
    let elapsed = clock.now();
    let done = match (ended, options.threaded) {
        (TasksEnded::All, _) => Some(options.loops),
        (TasksEnded::Stopped, true) => Some(bench.done.load(Ordering::Relaxed)),
        (TasksEnded::Stopped, false) => None,
    };
    let output = match done {
        Some(done) => options.output(done, elapsed),
        None => format!("(stopped after {:.3} s)\n", elapsed.as_secs_f64()),
    };
    print(&output);
    Ok(LiveReport {
        output,
        progress: done.map(|done| ("operations".to_string(), done.into())),
        metrics: done
            .map(|done| ("ns_per_op".to_string(), elapsed.0 as f64 / f64::from(done.max(1))))
            .into_iter()
            .collect(),
        elapsed,
    })
}

/// The first task writes first, the second reads first.
fn task(bench: &PipeRun, me: usize, counts: bool) -> Result<(), Errno> {
    let (from, to) = (&bench.pipes[me].0, &bench.pipes[1 - me].1);
    let mut word = [0; 4];
    for done in 1..=bench.loops {
        if me == 0 {
            pass(|| write(to, &[0; 4]))?;
        }
        pass(|| read(from, &mut word))?;
        if me == 1 {
            pass(|| write(to, &[0; 4]))?;
        } else if counts {
            bench.done.store(done, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Does it again when a signal came between.
fn pass(mut operation: impl FnMut() -> Result<usize, Errno>) -> Result<(), Errno> {
    loop {
        match operation() {
            Err(Errno::INTR) => {}
            Ok(0) => return Err(Errno::PIPE),
            other => return other.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn every_round_trip_is_made() {
        for kind in ["-l 500", "-l 500 -T"] {
            let args = kind.split(' ').map(str::to_string).collect::<Vec<_>>();
            let conditions =
                LiveConditions { seed: 1, duration: None, stop: &AtomicBool::new(false), marker: None };
            let report = run(&args, &conditions, &mut |_| ()).expect(kind);
            assert_eq!(report.progress, Some(("operations".to_string(), 500)));
            assert!(
                report.output.contains("# Executed 500 pipe operations between two "),
                "{}",
                report.output
            );
        }
    }
}
