//! `perf bench sched pipe`: two tasks pass a byte to and fro through two pipes.
//!
//! Facts from perf's bench/sched-pipe.c: each task writes to one pipe and reads from the other, a million times. A write into
//! an empty pipe wakes the reader with the hint that the writer is about to sleep (`WF_SYNC`).
//!
//! Must not know: CPUs, schedulers.

use fairlab_event::Ns;

use super::arguments::program;
use crate::workload::warm_up::WarmUp;
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

program! { PROGRAM: PipeOptions, None, "usage: pipe [OPTIONS]";
    "-l, --loop N" "round trips (1000000)" |all, value| value.set(&mut all.loops, 1..=u32::MAX);
    "-T, --threaded" "threads, not processes" |all, value| value.switch(&mut all.threaded, true);
    "--io-ns N" "what a byte through a pipe costs beside the system call, ns (300)" |all, value| {
        value.time(&mut all.io, 1..=1_000_000, Ns)
    };
    "--no-threaded" "" |all, value| value.switch(&mut all.threaded, false);
    "-n, --nonblocking" "" |_, value| value.refuse("(polls before it reads) is not modelled: both tasks block");
    "-G, --cgroups SEND,RECV" "" |_, value| value.refuse("(two control groups) is not modelled: 'cgroup' puts both into one");
    "-s, --write-size N" "" |_, value| value.refuse("(longer messages) is not modelled: what one costs is --io-ns");
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeOptions {
    /// Round trips.
    pub loops: u32,
    /// Threads, not processes.
    pub threaded: bool,
    /// What a byte through a pipe costs beside the system call.
    pub io: Ns,
}

impl PipeOptions {
    /// Reads the arguments (without the program's name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<PipeOptions, String> {
        let mut options = PipeOptions { loops: 1_000_000, threaded: false, io: Ns(300) };
        PROGRAM.read(args, &mut options)?;
        Ok(options)
    }

    /// What the program prints after so many round trips in this time.
    pub fn output(&self, done: u32, elapsed: Ns) -> String {
        let us_per_op = elapsed.0 as f64 / 1_000.0 / f64::from(done.max(1));
        format!(
            "# Running 'sched/pipe' benchmark:\n# Executed {done} pipe operations between two {}\n\n     \
             Total time: {:.3} [sec]\n\n {us_per_op:>14.6} usecs/op\n {:>14} ops/sec\n",
            if self.threaded { "threads" } else { "processes" },
            elapsed.as_secs_f64(),
            if us_per_op > 0.0 { (1_000_000.0 / us_per_op) as u64 } else { 0 },
        )
    }
}

/// What a task is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PipeStage {
    Write,
    Wake,
    Read,
    Done,
}

/// The benchmark, ready to run.
#[derive(Debug)]
pub struct PipeBench {
    options: PipeOptions,
    /// Round trips done, per task.
    done: [u64; 2],
    stage: [PipeStage; 2],
    /// Whether a byte waits for the task.
    filled: [bool; 2],
    waits: [bool; 2],
    ended: u32,
    spawned: u32,
    started: Option<Ns>,
    settling: WarmUp,
    /// How many round trips were done when it had settled.
    before: Option<u64>,
    finished: Option<Ns>,
    main_waits: bool,
}

impl PipeBench {
    /// The benchmark with these arguments.
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<PipeBench, String> {
        Ok(PipeBench {
            options: PipeOptions::parse(args)?,
            done: [0; 2],
            // The first task writes first, the second reads first.
            stage: [PipeStage::Write, PipeStage::Read],
            filled: [false; 2],
            waits: [false; 2],
            ended: 0,
            spawned: 0,
            started: None,
            settling: WarmUp::default(),
            before: None,
            finished: None,
            main_waits: false,
        })
    }

    fn main(&mut self, now: Ns) -> Action {
        if self.spawned < 2 {
            self.started = self.started.or(Some(now));
            self.spawned += 1;
            let spec = ThreadSpec::new("sched-pipe", format!("pipe {}", self.spawned));
            return Action::Spawn(ThreadSpec { process: !self.options.threaded, ..spec });
        }
        self.settling.begin(now);
        if self.ended == 2 {
            self.finished = Some(now);
            return Action::Exit;
        }
        self.main_waits = true;
        Action::Wait
    }

    fn task(&mut self, me: usize) -> Action {
        let other = 1 - me;
        match self.stage[me] {
            _ if self.waits[me] => Action::Wait,
            PipeStage::Write | PipeStage::Read if self.is_done(me) => self.end(me),
            PipeStage::Done => Action::Exit,
            PipeStage::Write => {
                self.filled[other] = true;
                self.stage[me] = if std::mem::take(&mut self.waits[other]) {
                    PipeStage::Wake
                } else {
                    self.after_write(me)
                };
                Action::SystemCall(self.options.io)
            }
            PipeStage::Wake => {
                self.stage[me] = self.after_write(me);
                Action::WakeSync(ThreadId(1 + other as u32))
            }
            PipeStage::Read if std::mem::take(&mut self.filled[me]) => {
                self.stage[me] = PipeStage::Write;
                // The second task's round ends with its write, the first one's with its read.
                self.done[me] += u64::from(me == 0);
                Action::SystemCall(self.options.io)
            }
            PipeStage::Read => {
                self.waits[me] = true;
                Action::Wait
            }
        }
    }

    /// Whether a task has done all round trips that count; the second is ahead of the first or even with it.
    fn is_done(&self, me: usize) -> bool {
        self.before.is_some_and(|before| self.done[me] == before + u64::from(self.options.loops))
    }

    /// Round trips that count.
    fn counted(&self) -> u64 {
        self.before.map_or(0, |before| self.done[0].saturating_sub(before))
    }

    fn after_write(&mut self, me: usize) -> PipeStage {
        self.done[me] += u64::from(me == 1);
        PipeStage::Read
    }

    /// Ends; the last one wakes the main task first.
    fn end(&mut self, me: usize) -> Action {
        if std::mem::replace(&mut self.stage[me], PipeStage::Done) == PipeStage::Done {
            return Action::Exit;
        }
        self.ended += 1;
        if self.ended < 2 {
            return Action::Exit;
        }
        self.main_waits = false;
        Action::Wake(ThreadId::MAIN)
    }

    /// Time since the tasks were created, or had settled, until the end or `now`.
    fn elapsed(&self, now: Ns) -> Ns {
        let settled = self.settling.end().filter(|_| self.settling.length() > Ns::ZERO);
        settled.or(self.started).map_or(Ns::ZERO, |started| self.finished.unwrap_or(now).since(started))
    }
}

impl Workload for PipeBench {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("sched-pipe", "pipe main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        if self.before.is_none() && self.settling.is_over(view.now) {
            self.before = Some(self.done[1]);
        }
        match thread.index().checked_sub(1) {
            None => self.main(view.now),
            Some(me) => self.task(me),
        }
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        match thread.index().checked_sub(1) {
            None => self.main_waits,
            Some(me) => self.waits[me],
        }
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, now: Ns) -> String {
        self.options.output(self.counted() as u32, self.elapsed(now))
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("operations", self.counted()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Machine};

    #[test]
    fn every_byte_goes_to_and_fro() {
        for kernel in ["v5.4", "v5.10", "v6.6", "v6.12"] {
            let machine = Machine::preset("laptop8").expect("a machine").exact();
            let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
            let args = ["-l", "2000"].map(String::from);
            let number = engine.start(Box::new(PipeBench::parse(&args).expect("options")));
            engine.run_until(Ns::from_secs(10), &mut ());
            assert!(engine.now() < Ns::from_secs(1), "{kernel}: it ends");
            let output = engine.workload(number).output(engine.now());
            assert!(
                output.contains("Executed 2000 pipe operations between two processes"),
                "{kernel}: {output}"
            );
        }
    }
}
