//! STREAM with OpenMP: threads that each walk through a part of large arrays, loop by loop, and wait for each other after
//! each.
//!
//! Facts from STREAM 5.10 (stream.c). All threads fill three arrays of 8-byte elements in parallel, so memory lies where a
//! thread first ran. Then Copy, Scale, Add and Triad run `ntimes` times. The best time of each counts, without the first one.
//! The loops move 16, 16, 24 and 24 bytes per element. The main thread is one of the team. At the end of a loop libgomp's
//! threads poll for a while before they sleep.
//!
//! Departs: results are not checked; how long a thread polls is [`POLLS`], not a number of rounds.
//!
//! Must not know: CPUs, schedulers, bandwidth.

use fairlab_event::Ns;

use super::arguments::program;
use crate::workload::warm_up::WarmUp;
use crate::workload::{Action, MemoryUse, ThreadId, ThreadSpec, View, Workload};

program! { PROGRAM: StreamOptions, None, "usage: stream [OPTIONS]";
    "-n, --threads N" "threads, the main one among them (4)" |all, value| value.set(&mut all.threads, 1..=10_000);
    "-s, --size N" "elements of 8 bytes an array; STREAM wants each array to be four times as large as all caches (10000000)"
        |all, value| value.set(&mut all.size, 1..=u32::MAX);
    "-i, --ntimes N" "how often each loop runs; the best of all but the first counts (10)" |all, value| value.set(&mut all.times, 2..=1_000_000);
}

/// How long a thread polls at the end of a loop before it sleeps: libgomp's 300,000 rounds take about this long.
const POLLS: Ns = Ns::from_ms(1);

/// How long it polls between two looks.
const LOOK: Ns = Ns::from_us(2);

/// Bytes of an element.
const ELEMENT: u64 = 8;

/// What filling an element moves: one word of each array.
const FILLED: u64 = 24;

/// The loops: name, and what each moves an element, bytes.
const LOOPS: [(&str, u64); 4] = [("Copy", 16), ("Scale", 16), ("Add", 24), ("Triad", 24)];

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Threads.
    pub threads: u32,
    /// Elements an array.
    pub size: u32,
    /// How often each loop runs.
    pub times: u32,
}

impl StreamOptions {
    /// Reads the arguments (without the program's name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<StreamOptions, String> {
        let mut options = StreamOptions { threads: 4, size: 10_000_000, times: 10 };
        PROGRAM.read(args, &mut options)?;
        if options.size < options.threads {
            let StreamOptions { threads, size, .. } = options;
            return Err(format!("arrays of {size} elements (-s) are too small for {threads} threads (-n)"));
        }
        Ok(options)
    }

    /// How many elements a thread has of each array.
    fn part(&self, thread: usize) -> u64 {
        let (size, threads) = (u64::from(self.size), u64::from(self.threads));
        size / threads + u64::from((thread as u64) < size % threads)
    }
}

/// One of the team.
#[derive(Clone, Debug, Default)]
struct TeamThread {
    /// Loops that it has begun.
    begun: u64,
    /// It is in the one that it began last.
    inside: bool,
    /// Since when it has waited for the others.
    waits_since: Option<Ns>,
    sleeps: bool,
    /// Whom it has to wake, since it came last.
    wakes: Vec<ThreadId>,
}

/// How long a loop took, the times that count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LoopTimes {
    count: u64,
    sum: Ns,
    least: Ns,
    most: Ns,
}

impl LoopTimes {
    fn add(&mut self, time: Ns) {
        self.least = if self.count == 0 { time } else { self.least.min(time) };
        self.most = self.most.max(time);
        self.sum += time;
        self.count += 1;
    }
}

/// The benchmark, ready to run.
#[derive(Debug)]
pub struct StreamBench {
    options: StreamOptions,
    team: Vec<TeamThread>,
    created: u32,
    /// Loops that may begin: the first one fills the arrays, then come the four in turn.
    open: u64,
    /// How many have come to the end of the last of these.
    arrived: u32,
    /// When it began.
    began: Ns,
    /// Rounds of the four loops that count, with the first one, which is only run.
    rounds: u32,
    /// The present round counts.
    counts: bool,
    times: [LoopTimes; 4],
    over: bool,
    settling: WarmUp,
}

impl StreamBench {
    /// The benchmark with these arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<StreamBench, String> {
        let options = StreamOptions::parse(args)?;
        Ok(StreamBench {
            options,
            team: vec![TeamThread::default(); options.threads as usize],
            created: 1,
            open: 1,
            arrived: 0,
            began: Ns::ZERO,
            rounds: 0,
            counts: false,
            times: [LoopTimes::default(); 4],
            over: false,
            settling: WarmUp::default(),
        })
    }

    fn thread(&self, number: usize) -> ThreadSpec {
        let kb = (self.options.part(number) * ELEMENT * 3).div_ceil(1024);
        let memory = MemoryUse { traffic_permille: 0, working_set_kb: Some(kb) };
        ThreadSpec { memory, ..ThreadSpec::new("stream", format!("stream {number}")) }
    }

    /// What the loop that is open moves of an element, bytes.
    fn moved(&self) -> u64 {
        match self.open.checked_sub(2) {
            None => FILLED,
            Some(since) => LOOPS[(since % 4) as usize].1,
        }
    }

    fn act(&mut self, me: usize, now: Ns) -> Action {
        if let Some(sleeper) = self.team[me].wakes.pop() {
            return Action::Wake(sleeper);
        }
        if std::mem::take(&mut self.team[me].inside) {
            self.arrive(me, now);
            return self.act(me, now);
        }
        if self.over {
            return Action::Exit;
        }
        let moved = self.options.part(me) * self.moved();
        let member = &mut self.team[me];
        if member.begun < self.open {
            *member = TeamThread { begun: self.open, inside: true, ..TeamThread::default() };
            return Action::Traffic(moved);
        }
        if now < *member.waits_since.get_or_insert(now) + POLLS {
            return Action::SpinUntil(now + LOOK);
        }
        member.sleeps = true;
        Action::Wait
    }

    /// Somebody has done its part. The last one lets all go on, and wakes those that sleep.
    fn arrive(&mut self, me: usize, now: Ns) {
        self.arrived += 1;
        if self.arrived < self.options.threads {
            return;
        }
        self.end_loop(now);
        let sleepers = self.team.iter_mut().enumerate();
        let sleepers = sleepers.filter_map(|(number, member)| {
            std::mem::take(&mut member.sleeps).then_some(ThreadId(number as u32))
        });
        self.team[me].wakes = sleepers.collect();
    }

    fn end_loop(&mut self, now: Ns) {
        let took = now.since(self.began);
        (self.arrived, self.began) = (0, now);
        if let Some(since) = self.open.checked_sub(2) {
            if self.counts && self.rounds > 1 {
                self.times[(since % 4) as usize].add(took);
            }
            self.over = self.counts && since % 4 == 3 && self.rounds >= self.options.times;
        } else {
            self.settling.begin(now);
        }
        self.open += 1;
        if (self.open - 2).is_multiple_of(4) {
            self.counts = self.settling.is_over(now);
            self.rounds += u32::from(self.counts);
        }
    }

    /// The best rate of a loop, MB/s; zero before it has run.
    fn rate(&self, number: usize) -> f64 {
        let bytes = LOOPS[number].1 * u64::from(self.options.size);
        match self.times[number].least {
            Ns::ZERO => 0.0,
            least => bytes as f64 / 1e6 / least.as_secs_f64(),
        }
    }
}

impl Workload for StreamBench {
    fn main_thread(&self) -> ThreadSpec {
        self.thread(0)
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        if thread == ThreadId::MAIN && self.created < self.options.threads {
            self.created += 1;
            return Action::Spawn(self.thread(self.created as usize - 1));
        }
        self.act(thread.index(), view.now)
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        !self.over && self.team.get(thread.index()).is_some_and(|member| member.begun == self.open)
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, _: Ns) -> String {
        let StreamOptions { threads, size, times } = self.options;
        let line = "-".repeat(61);
        let mib = f64::from(size) * ELEMENT as f64 / f64::from(1 << 20);
        let mut text = format!(
            "{line}\nSTREAM version $Revision: 5.10 $\n{line}\nThis system uses {ELEMENT} bytes per array element.\n{line}\n\
             Array size = {size} (elements), Offset = 0 (elements)\n\
             Memory per array = {mib:.1} MiB (= {:.1} GiB).\nTotal memory required = {:.1} MiB (= {:.1} GiB).\n\
             Each kernel will be executed {times} times.\n \
             The *best* time for each kernel (excluding the first iteration)\n will be used to compute the reported bandwidth.\n\
             {line}\nNumber of Threads requested = {threads}\nNumber of Threads counted = {threads}\n{line}\n\
             Function    Best Rate MB/s  Avg time     Min time     Max time\n",
            mib / 1024.0,
            3.0 * mib,
            3.0 * mib / 1024.0
        );
        for (number, (name, _)) in LOOPS.iter().enumerate() {
            let LoopTimes { count, sum, least, most } = self.times[number];
            let mean = sum.as_secs_f64() / count.max(1) as f64;
            text += &format!(
                "{:<11}{:12.1}  {mean:11.6}  {:11.6}  {:11.6}\n",
                format!("{name}:"),
                self.rate(number),
                least.as_secs_f64(),
                most.as_secs_f64()
            );
        }
        text + &line + "\n"
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        let elements = |(times, (_, bytes)): (&LoopTimes, (&str, u64))| times.count * bytes;
        let bytes = self.times.iter().zip(LOOPS).map(elements).sum::<u64>() * u64::from(self.options.size);
        Some(("megabytes", bytes / 1_000_000))
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let of = |(number, (name, _)): (usize, &(&str, u64))| {
            (format!("stream_{}_megabytes_per_s", name.to_lowercase()), self.rate(number))
        };
        let all = LOOPS.iter().enumerate().map(of);
        all.chain([("megabytes_per_s".to_string(), self.rate(3))]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Machine};

    /// What it printed, its rates in the order of its loops, and the megabytes that it moved.
    fn run(line: &str, settling: Ns) -> (String, Vec<f64>, u64) {
        let args = line.split(' ').map(str::to_string).collect::<Vec<_>>();
        let machine = Machine::preset("laptop8").expect("a machine").exact();
        let mut stream = StreamBench::parse(&args).expect("options");
        stream.settle(settling);
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, 1);
        let number = engine.start(Box::new(stream));
        engine.run_until(Ns::from_secs(20), &mut ());
        assert!(engine.now() < Ns::from_secs(20), "all threads have ended");
        let stream = engine.workload(number);
        let rates = stream.metrics().into_iter().map(|(_, rate)| rate).collect();
        (stream.output(engine.now()), rates, stream.progress().expect("it counts").1)
    }

    #[test]
    fn threads_move_what_their_cores_can_and_wait_for_each_other() {
        // 12 GB/s each where nobody knows better.
        for (threads, wanted) in [(1, 12_000.0), (3, 36_000.0), (4, 48_000.0)] {
            let (text, rates, _) = run(&format!("-n {threads} -s 1000000"), Ns::ZERO);
            assert!(rates.iter().all(|rate| (0.95..=1.001).contains(&(rate / wanted))), "{threads}: {text}");
        }
    }

    #[test]
    fn what_is_printed_is_laid_out_as_by_the_program() {
        let (text, ..) = run("-n 2 -s 1000000 -i 3", Ns::ZERO);
        assert!(
            text.contains("Memory per array = 7.6 MiB (= 0.0 GiB).\nTotal memory required = 22.9 MiB"),
            "{text}"
        );
        let lines = text.lines().filter(|line| line.starts_with("Triad:")).collect::<Vec<_>>();
        let numbers = lines[0].split_whitespace().skip(1).map(str::parse::<f64>).collect::<Vec<_>>();
        assert!(lines.len() == 1 && numbers.len() == 4 && numbers.iter().all(Result::is_ok), "{text}");
    }

    #[test]
    fn the_first_round_and_those_before_all_has_settled_do_not_count() {
        // Nine rounds of 80 bytes an element.
        assert_eq!(run("-n 2 -s 1000000", Ns::ZERO).2, 9 * 80);
        assert_eq!(run("-n 2 -s 1000000", Ns::from_ms(50)).2, 9 * 80);
        assert_eq!(run("-n 2 -s 1000000 -i 2", Ns::ZERO).2, 80);
    }

    #[test]
    fn who_sleeps_at_the_end_of_a_loop_is_woken() {
        // More threads than CPUs: who has not run keeps the others waiting longer than they poll.
        let (text, rates, _) = run("-n 20 -s 2000000 -i 3", Ns::ZERO);
        assert!(rates.iter().all(|&rate| rate > 0.0), "{text}");
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        for (line, problem) in [
            ("-n 0", "-n '0' is not a whole number from 1 to 10000"),
            ("-s 3", "arrays of 3 elements (-s) are too small for 4 threads (-n)"),
            ("-i 1", "-i '1' is not a whole number from 2 to 1000000"),
            ("-q", "unknown option '-q'"),
        ] {
            let args = line.split(' ').map(str::to_string).collect::<Vec<_>>();
            assert_eq!(StreamBench::parse(&args).map(|_| ()), Err(problem.to_string()));
        }
    }
}
