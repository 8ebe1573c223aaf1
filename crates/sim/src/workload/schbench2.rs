//! schbench as it is since 2023: workers do requests of a sleep and some matrix arithmetic, under a spinning lock of their
//! CPU.
//!
//! Facts: masoncl/schbench at 24e32b8 (2025), `schbench.c`. A worker asks its message thread for work and sleeps on a futex;
//! the message thread wakes all waiting workers. With `-R` the message thread makes requests itself, so many per second, at
//! the second's beginning, for its workers in turn. A request sleeps, takes the lock of its CPU, multiplies matrices, and
//! gives the lock back. If its thread is preempted or moved in between, the next thread on that CPU spins.
//!
//! Departs: a multiplication takes 3 ns, by the README's calibration (`-F 256 -n 5`: 16.9 ms for 5 × 104³). `-A`, which reads
//! /proc/stat, and JSON are refused. `-p` is that of the program of 2020. The line of scheduling delays, which the kernel
//! tells, is left out. `-W` binds a message thread's workers, and `-M` the message thread, from their beginning.
//!
//! Must not know: schedulers.

mod options;
mod report;

use std::collections::VecDeque;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;

use super::warm_up::WarmUp;
use crate::workload::schbench::histogram::{Extremes, SchbenchHistogram};
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};
pub(super) use options::PROGRAM;
pub use options::Schbench2Options;

/// How much of a message thread's requests a worker takes before the thread makes it no more.
const BATCH: usize = 128;

/// What a multiplication and an addition of the program take.
const MULTIPLY_ADD: Ns = Ns(3);

/// Latencies, counted.
#[derive(Clone, Debug, Default)]
struct LatencyStats {
    histogram: SchbenchHistogram,
    extremes: Extremes,
}

impl LatencyStats {
    /// Counts a time in whole us; as the program, what is none is not counted.
    fn add(&mut self, from: Ns, to: Ns) {
        let us = (to.0 / 1000).saturating_sub(from.0 / 1000);
        if us > 0 {
            self.add_number(us);
        }
    }

    fn add_number(&mut self, number: u64) {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.histogram.add(number);
        self.extremes.add(number);
    }
}

/// Who a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schbench2Role {
    Main,
    Message(usize),
    Worker(usize),
}

/// How far a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schbench2Stage {
    /// A message thread creates its workers.
    Create(u32),
    /// It begins a turn.
    Begin,
    /// A worker has its post, and waits for an answer.
    Asked,
    /// A worker begins a request.
    Request,
    /// It has slept.
    Slept,
    /// It spins for the lock of this CPU.
    Lock(Cpu),
    /// It has done its arithmetic.
    Worked,
    /// A message thread makes requests: so many are made in the second that began then.
    Second(u32, Ns),
    /// It ends.
    End,
}

/// A thread.
#[derive(Debug)]
struct Schbench2Thread {
    role: Schbench2Role,
    stage: Schbench2Stage,
    /// Its futex is posted.
    posted: bool,
    todo: VecDeque<Action>,
    /// When it was woken, by whoever did that.
    wake_time: Ns,
    work_start: Ns,
    /// The lock that it holds.
    holds: Option<usize>,
    /// Requests that wait for it, and those that it has taken.
    requests: usize,
    taken: usize,
    pending: usize,
    /// Workers that wait for this message thread's answer, the last one first.
    list: Vec<ThreadId>,
    workers: Vec<ThreadId>,
}

/// The program.
#[derive(Debug)]
pub struct Schbench2 {
    options: Schbench2Options,
    cpus: CpuMask,
    /// Workers of each message thread.
    nr_workers: u32,
    threads: Vec<Schbench2Thread>,
    /// By CPU: who holds its lock.
    locks: Vec<Option<ThreadId>>,
    /// By CPU: how many spin for it.
    spinners: Vec<u32>,
    settling: WarmUp,
    stopping: bool,
    wakeups: LatencyStats,
    requests: LatencyStats,
    rps: LatencyStats,
    loops: u64,
    /// Of the main thread: when it began to count, the last count and when, the last table, the last zeroing.
    started: Option<Ns>,
    counted: (u64, Ns),
    tables_at: Ns,
    zeroed_at: Ns,
    is_warm: bool,
    output: String,
}

impl Schbench2 {
    /// The program with these arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Schbench2, String> {
        let options = Schbench2Options::parse(args)?;
        let main = Schbench2::thread(Schbench2Role::Main, Schbench2Stage::Create(0));
        Ok(Schbench2 {
            nr_workers: options.threads,
            options,
            cpus: CpuMask::single(Cpu(0)),
            threads: vec![main],
            locks: Vec::new(),
            spinners: Vec::new(),
            settling: WarmUp::default(),
            stopping: false,
            wakeups: LatencyStats::default(),
            requests: LatencyStats::default(),
            rps: LatencyStats::default(),
            loops: 0,
            started: None,
            counted: (0, Ns::ZERO),
            tables_at: Ns::ZERO,
            zeroed_at: Ns::ZERO,
            is_warm: false,
            output: String::new(),
        })
    }

    fn thread(role: Schbench2Role, stage: Schbench2Stage) -> Schbench2Thread {
        Schbench2Thread {
            role,
            stage,
            posted: false,
            todo: VecDeque::new(),
            wake_time: Ns::ZERO,
            work_start: Ns::ZERO,
            holds: None,
            requests: 0,
            taken: 0,
            pending: 0,
            list: Vec::new(),
            workers: Vec::new(),
        }
    }

    fn spawn(&mut self, role: Schbench2Role, by: usize) -> Action {
        let id = ThreadId(self.threads.len() as u32);
        let (comm, stage, allowed) = match role {
            Schbench2Role::Message(number) => {
                let allowed = self.options.message_cpu(number, &self.cpus);
                ("schbench-msg", Schbench2Stage::Create(0), allowed.map_or(CpuMask::ALL, CpuMask::single))
            }
            _ => ("schbench-worker", Schbench2Stage::Begin, self.options.worker_cpus(&self.cpus)),
        };
        self.threads.push(Schbench2::thread(role, stage));
        if matches!(role, Schbench2Role::Worker(_)) {
            self.threads[by].workers.push(id);
        }
        Action::Spawn(ThreadSpec { allowed, ..ThreadSpec::new(comm, format!("{comm} {id:?}")) })
    }

    /// `fpost()`: posts a thread's futex. Returns the wakeup that this takes.
    fn post(&mut self, whom: ThreadId) -> Option<Action> {
        let was = std::mem::replace(&mut self.threads[whom.index()].posted, true);
        (!was).then_some(Action::Wake(whom))
    }

    /// `fwait()`: takes a post. Returns the sleep that this takes.
    fn wait(&mut self, me: usize) -> Option<Action> {
        (!std::mem::take(&mut self.threads[me].posted)).then_some(Action::Wait)
    }

    fn message(&mut self, me: usize, now: Ns) -> Option<Action> {
        match self.threads[me].stage {
            Schbench2Stage::Create(number) if number < self.nr_workers => {
                self.threads[me].stage = Schbench2Stage::Create(number + 1);
                Some(self.spawn(Schbench2Role::Worker(me), me))
            }
            Schbench2Stage::Create(_) if self.options.rps > 0 => {
                self.threads[me].stage = Schbench2Stage::Second(0, now);
                None
            }
            Schbench2Stage::Create(_) => {
                self.threads[me].stage = Schbench2Stage::Begin;
                None
            }
            Schbench2Stage::Second(made, since) => self.make_requests(me, made, since, now),
            Schbench2Stage::Begin => {
                self.threads[me].posted = false;
                self.threads[me].stage =
                    if self.stopping { Schbench2Stage::End } else { Schbench2Stage::Asked };
                for worker in std::mem::take(&mut self.threads[me].list).into_iter().rev() {
                    self.threads[worker.index()].wake_time = now;
                    let wakeup = self.post(worker);
                    self.threads[me].todo.extend(wakeup);
                }
                None
            }
            Schbench2Stage::Asked => {
                let wait = self.wait(me);
                if wait.is_none() {
                    self.threads[me].stage = Schbench2Stage::Begin;
                }
                wait
            }
            _ => {
                // Who waits still is let go, and all end.
                for worker in std::mem::take(&mut self.threads[me].workers) {
                    let wakeup = self.post(worker);
                    self.threads[me].todo.extend(wakeup);
                }
                self.threads[me].todo.push_back(Action::Exit);
                None
            }
        }
    }

    /// Requests of a second, all at its beginning, in turn for the workers.
    fn make_requests(&mut self, me: usize, made: u32, since: Ns, now: Ns) -> Option<Action> {
        let wanted = self.options.rps / self.options.message_threads;
        if self.stopping {
            self.threads[me].stage = Schbench2Stage::End;
            return None;
        }
        if made == wanted {
            let ends = since + Ns::from_secs(1);
            if now < ends {
                return Some(Action::Sleep(ends.since(now)));
            }
            self.threads[me].stage = Schbench2Stage::Second(0, now);
            return (wanted == 0).then_some(Action::Run(Ns::from_us(1)));
        }
        self.threads[me].stage = Schbench2Stage::Second(made + 1, since);
        self.threads[me].taken += 1;
        let place = (self.threads[me].taken - 1) % self.threads[me].workers.len().max(1);
        let worker = *self.threads[me].workers.get(place)?;
        let pending = &mut self.threads[worker.index()];
        if pending.pending > BATCH {
            return Some(Action::Sleep(Ns::from_us(100)));
        }
        pending.pending += 1;
        pending.requests += 1;
        pending.wake_time = now;
        self.post(worker)
    }

    /// `msg_and_wait()`: takes the requests that are there, or puts itself on its message thread's list and posts that.
    fn ask(&mut self, me: usize, message: usize, now: Ns) -> Option<Action> {
        let thread = &mut self.threads[me];
        (thread.posted, thread.wake_time, thread.stage) = (false, now, Schbench2Stage::Asked);
        if self.options.rps > 0 {
            thread.pending = 0;
            thread.taken = std::mem::take(&mut thread.requests);
            if thread.taken > 0 {
                thread.posted = true;
                thread.stage = Schbench2Stage::Request;
                return None;
            }
        } else {
            self.threads[message].list.push(ThreadId(me as u32));
        }
        self.post(ThreadId(message as u32))
    }

    /// It sleeps until it is posted, and counts how long that took to reach it.
    fn answered(&mut self, me: usize, now: Ns) -> Option<Action> {
        if !self.stopping
            && let Some(wait) = self.wait(me)
        {
            return Some(wait);
        }
        if self.counts(now) {
            self.wakeups.add(self.threads[me].wake_time, now);
        }
        let thread = &mut self.threads[me];
        (thread.stage, thread.taken) = match self.options.rps {
            0 => (Schbench2Stage::Request, 1),
            _ => (Schbench2Stage::Begin, 0),
        };
        None
    }

    fn worker(&mut self, me: usize, message: usize, view: &mut View<'_>) -> Option<Action> {
        let now = view.now;
        match self.threads[me].stage {
            Schbench2Stage::Begin if self.stopping => Some(Action::Exit),
            Schbench2Stage::Begin => self.ask(me, message, now),
            Schbench2Stage::Asked => self.answered(me, now),
            Schbench2Stage::Request => {
                let thread = &mut self.threads[me];
                (thread.work_start, thread.stage) = (now, Schbench2Stage::Slept);
                let sleep = Ns::from_us(self.options.sleep_us.into());
                (sleep > Ns::ZERO).then_some(Action::Sleep(sleep))
            }
            Schbench2Stage::Slept => {
                if self.options.calibrate {
                    self.threads[me].work_start = now;
                }
                if self.options.locks() {
                    return self.lock(me, view.cpu);
                }
                self.threads[me].stage = Schbench2Stage::Worked;
                Some(Action::Run(self.options.work(MULTIPLY_ADD)))
            }
            Schbench2Stage::Lock(cpu) => {
                let spinners = &mut self.spinners[cpu.index()];
                *spinners = spinners.saturating_sub(1);
                match self.locks[cpu.index()] == Some(ThreadId(me as u32)) {
                    true => self.locked(me, cpu, view.cpu),
                    false => self.lock(me, view.cpu),
                }
            }
            _ => self.worked(me, now),
        }
    }

    /// Takes the lock of the CPU on which it is, or spins for it.
    fn lock(&mut self, me: usize, cpu: Cpu) -> Option<Action> {
        let thread = ThreadId(me as u32);
        if *self.locks[cpu.index()].get_or_insert(thread) == thread {
            return self.locked(me, cpu, cpu);
        }
        self.spinners[cpu.index()] += 1;
        self.threads[me].stage = Schbench2Stage::Lock(cpu);
        Some(Action::SpinOn { word: cpu.0, most: Ns::MAX })
    }

    /// It has the lock of `cpu`: if it was moved meanwhile, it gives that back and tries again where it is.
    fn locked(&mut self, me: usize, cpu: Cpu, here: Cpu) -> Option<Action> {
        if here != cpu {
            self.threads[me].stage = Schbench2Stage::Slept;
            return self.unlock(cpu.index());
        }
        self.threads[me].holds = Some(cpu.index());
        self.threads[me].stage = Schbench2Stage::Worked;
        Some(Action::Run(self.options.work(MULTIPLY_ADD)))
    }

    fn unlock(&mut self, lock: usize) -> Option<Action> {
        self.locks[lock] = None;
        (self.spinners[lock] > 0).then_some(Action::Release { word: lock as u32, most: 1 })
    }

    /// The arithmetic is done.
    fn worked(&mut self, me: usize, now: Ns) -> Option<Action> {
        if let Some(lock) = self.threads[me].holds.take()
            && let Some(release) = self.unlock(lock)
        {
            return Some(release);
        }
        if self.counts(now) {
            self.loops += 1;
            self.requests.add(self.threads[me].work_start, now);
        }
        let thread = &mut self.threads[me];
        thread.taken = thread.taken.saturating_sub(1);
        thread.stage = if thread.taken > 0 { Schbench2Stage::Request } else { Schbench2Stage::Begin };
        None
    }

    fn counts(&self, now: Ns) -> bool {
        self.settling.is_over(now)
    }

    /// Creates the message threads, looks once a second, and stops all.
    fn main(&mut self, now: Ns) -> Option<Action> {
        let all = self.options.message_threads;
        if let Schbench2Stage::Create(number) = self.threads[0].stage {
            if number < all {
                self.threads[0].stage = Schbench2Stage::Create(number + 1);
                return Some(self.spawn(Schbench2Role::Message(number as usize), 0));
            }
            self.threads[0].stage = Schbench2Stage::Begin;
        }
        let begins = self.settling.begin(now);
        if now < begins {
            return Some(Action::Sleep(begins.since(now)));
        }
        if self.stopping {
            return Some(Action::Exit);
        }
        if self.look(now) {
            self.stopping = true;
            let messages = (1..self.threads.len())
                .filter(|&id| matches!(self.threads[id].role, Schbench2Role::Message(_)));
            for message in messages.collect::<Vec<_>>() {
                let wakeup = self.post(ThreadId(message as u32));
                self.threads[0].todo.extend(wakeup);
            }
            let released = (0..self.locks.len() as u32).map(|word| Action::Release { word, most: u32::MAX });
            self.threads[0].todo.extend(released);
            return None;
        }
        Some(Action::Sleep(Ns::from_secs(1)))
    }
}

impl Workload for Schbench2 {
    fn begin_on(&mut self, cpus: &CpuMask) {
        self.cpus = *cpus;
        if self.options.threads == 0 {
            self.nr_workers = (cpus.weight() as u32).div_ceil(self.options.message_threads).max(1);
            self.output = format!("setting worker threads to {}\n", self.nr_workers);
        }
        let locks = cpus.iter().map(|cpu| cpu.index() + 1).max().unwrap_or(1);
        (self.locks, self.spinners) = (vec![None; locks], vec![0; locks]);
    }

    fn named_cpus(&self) -> CpuMask {
        self.options.named_cpus()
    }

    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("schbench", "schbench main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        let me = thread.index();
        loop {
            if let Some(action) = self.threads[me].todo.pop_front() {
                return action;
            }
            let action = match self.threads[me].role {
                Schbench2Role::Main => self.main(view.now),
                Schbench2Role::Message(_) => self.message(me, view.now),
                Schbench2Role::Worker(message) => self.worker(me, message, view),
            };
            if let Some(action) = action {
                return action;
            }
        }
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        !self.stopping && !self.threads[thread.index()].posted
    }

    fn sees(&mut self, thread: ThreadId, word: u32) -> bool {
        let lock = &mut self.locks[word as usize];
        *lock.get_or_insert(thread) == thread
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, now: Ns) -> String {
        self.whole_output(now)
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("requests", self.loops))
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        self.numbers()
    }

    fn runtime(&self) -> Option<Ns> {
        (self.options.runtime_s > 0).then(|| Ns::from_secs(self.options.runtime_s.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Machine};

    fn run(machine: &str, line: &str, seconds: u64) -> Engine {
        let args = line.split_whitespace().map(String::from).collect::<Vec<_>>();
        let machine = Machine::preset(machine).expect("a machine").exact();
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, 1);
        engine.start(Box::new(Schbench2::parse(&args).expect(line)));
        engine.run_until(Ns::from_secs(seconds), &mut ());
        engine
    }

    fn number(engine: &Engine, name: &str) -> f64 {
        let numbers = engine.workload(0).metrics();
        numbers.iter().find(|(known, _)| known == name).map(|&(_, value)| value).expect(name)
    }

    #[test]
    fn all_cpus_are_busy_with_requests_of_the_calibrated_length() {
        let engine = run("vm4", "-F 256 -n 5 -r 10", 30);
        // 16.9 ms of arithmetic and 0.15 ms of sleep, on four CPUs.
        let rps = number(&engine, "schbench_average_rps");
        assert!((220.0..236.0).contains(&rps), "{rps}");
        let p50 = number(&engine, "schbench_request_us_p50");
        assert!((16_900.0..17_400.0).contains(&p50), "{p50}");
        let output = engine.workload(0).output(engine.now());
        assert!(
            output.starts_with(
                "setting worker threads to 4\nWakeup Latencies percentiles (usec) runtime 10 (s) ("
            ),
            "{output}"
        );
        for line in [
            "        * 99.0th: ",
            "RPS percentiles (requests) runtime 10 (s) (11 total samples)\n",
            "current rps: ",
            "average rps: ",
        ] {
            let line = line.replace("        ", "\t");
            assert!(output.contains(&line), "{line} in {output}");
        }
        assert!(engine.now() < Ns::from_secs(12), "it has ended: {}", engine.now());
    }

    #[test]
    fn whoever_is_preempted_with_the_lock_keeps_the_next_one_spinning() {
        // More workers than CPUs, whose slices end in the middle of their arithmetic.
        let p99 = |line: &str| {
            let engine = run("vm4", line, 20);
            (number(&engine, "schbench_request_us_p99"), number(&engine, "schbench_average_rps"))
        };
        let (locked, free) = (p99("-t 12 -n 5 -r 8"), p99("-L -t 12 -n 5 -r 8"));
        assert!(locked.1 < 0.97 * free.1, "{locked:?} {free:?}");
    }

    #[test]
    fn a_rate_is_kept_and_more_message_threads_share_it() {
        for line in ["-L -m 1 -t 8 -n 1 -F 64 -R 400 -r 8", "-L -m 2 -t 4 -n 1 -F 64 -R 400 -r 8"] {
            let engine = run("vm4", line, 20);
            let rps = number(&engine, "schbench_average_rps");
            assert!((385.0..415.0).contains(&rps), "{line}: {rps}");
        }
        let free = number(&run("vm4", "-L -t 4 -n 1 -F 64 -r 4", 20), "schbench_average_rps");
        assert!(free > 4_000.0, "{free}");
    }

    #[test]
    fn threads_stay_on_the_cpus_that_are_asked_for() {
        let engine = run("vm4", "-M auto -W auto -t 4 -n 1 -r 2", 10);
        // Three CPUs for four workers of 3.4 ms and 0.15 ms.
        let rps = number(&engine, "schbench_average_rps");
        assert!((800.0..900.0).contains(&rps), "{rps}");
    }
}
