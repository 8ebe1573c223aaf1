//! schbench: message threads and their workers, as the program of 2020 runs them, and what it prints.
//!
//! Must not know: CPUs, schedulers, costs of system calls.
//!
//! Facts from masoncl/schbench at 99faedc (January 2020), 93483e4 and abe4f96 (October 2020). A worker computes for
//! `-c` µs, puts itself on its message thread's list, posts that thread's futex, and waits on its own. The message
//! thread takes the whole list, looks at the clock *once*, and wakes all of them, the last comer first; then it waits
//! for the next post, computes for 30 ms (abe4f96), and sleeps for `-s` µs and up to a quarter more. A worker's latency
//! is the time from that one look at the clock until it runs again: it contains the wakeups of those before it in the
//! batch. Workers that post while the message thread computes or sleeps are woken together, so with a long `-s` or
//! with its computation the workers of a message thread soon run in lockstep.
//!
//! Departs: what a thread does between two system calls takes no time, except for `-c`, for copying (`-p`) and where
//! nothing else would take any. The end of a thread wakes who joins it by a futex wakeup of its own.

mod conductor;
pub mod histogram;
#[cfg(test)]
mod ideal;
mod main_thread;
mod memory;
mod message;
pub mod options;
mod report;
mod worker;

use fairlab_event::Ns;

pub use conductor::{Conductor, MainThreadAction, WorkerFigures};
pub(super) use options::PROGRAM;
pub use options::{SchbenchOptions, SchbenchRevision};

use self::main_thread::MainThread;
use self::memory::{SchbenchRole, SchbenchState};
use crate::workload::warm_up::{CountAfterWarmUp, WarmUp};
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

/// All threads of the program are called this.
const COMM: &str = "schbench";

/// schbench, ready to run.
#[derive(Debug)]
pub struct Schbench {
    memory: SchbenchState,
    main: MainThread,
    settling: WarmUp,
    /// Loops that workers completed.
    loops: CountAfterWarmUp,
}

impl Schbench {
    /// schbench with these arguments (without the program's name); see [`SchbenchOptions::parse`].
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Schbench, String> {
        Ok(Schbench::new(SchbenchOptions::parse(args)?))
    }

    /// schbench with these options.
    pub fn new(options: SchbenchOptions) -> Schbench {
        Schbench {
            main: MainThread::new(&options),
            memory: SchbenchState::new(options),
            settling: WarmUp::default(),
            loops: CountAfterWarmUp::default(),
        }
    }

    /// The options that it was started with.
    pub const fn options(&self) -> &SchbenchOptions {
        &self.memory.options
    }

    /// How many latencies were recorded since the statistics were zeroed last.
    pub const fn samples(&self) -> u64 {
        self.memory.latencies.samples()
    }

    /// The `percent` percentile of those latencies as the program would print it, µs (the value of a bucket); 0 if
    /// there are none.
    pub fn percentile(&self, percent: f64) -> u32 {
        self.memory.latencies.percentile(percent)
    }

    /// The smallest and the largest of those latencies as the program would print them, µs; see
    /// [`histogram::Extremes::combine`] for when the smallest is not the smallest.
    pub fn extremes_us(&self) -> (u32, u32) {
        let extremes = self.memory.extremes();
        (extremes.min, extremes.max)
    }
}

impl Workload for Schbench {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new(COMM, "main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        let action = match self.memory.roles.get(thread.index()).copied() {
            Some(SchbenchRole::Main) => self.main.next(&mut self.memory, view.now),
            Some(SchbenchRole::Message(index)) => {
                message::next(&mut self.memory, index, view.now, view.random)
            }
            Some(SchbenchRole::Worker(index)) => worker::next(&mut self.memory, index, view.now),
            Some(SchbenchRole::Ended) | None => Action::Exit,
        };
        if thread == ThreadId::MAIN && self.main.has_created_all() {
            self.settling.begin(view.now);
        }
        self.loops.add(self.memory.loops - self.loops.all(), self.settling.is_over(view.now));
        action
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        match self.memory.roles.get(thread.index()) {
            Some(&SchbenchRole::Worker(index)) => worker::must_wait(&self.memory, index),
            Some(&SchbenchRole::Message(index)) => message::must_wait(&self.memory, index),
            Some(SchbenchRole::Main | SchbenchRole::Ended) | None => true,
        }
    }

    /// What was printed, and while the program still runs, its ending as if it had stopped now: the table of what was
    /// recorded until then, with the whole seconds until then as its run time.
    fn output(&self, now: Ns) -> String {
        self.main.output(&self.memory, now)
    }

    /// The program's own tables keep to its own warm-up.
    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    /// Loops that workers completed, the program's own warm-up included.
    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("requests", self.loops.count()))
    }

    /// The table's percentiles and maximum.
    fn metrics(&self) -> Vec<(String, f64)> {
        self.memory.metrics()
    }

    fn runtime(&self) -> Option<Ns> {
        let seconds = self.options().runtime_s;
        (seconds > 0).then(|| Ns::from_secs(seconds.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::ideal::{Ideal, IdealCosts};
    use super::*;

    const SEED0: &str = "-t 20 -r 0 -c 1000000 -s 1000 -i 30 -z 120";

    /// The default timer slack, and no cost but 10 µs a wakeup.
    const PLAIN: IdealCosts = IdealCosts { wakeup: Ns(10_000), timer_slack: Ns(50_000), roughness: Ns(0) };

    fn schbench(line: &str) -> Schbench {
        let args = line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        Schbench::parse(&args).unwrap_or_else(|message| panic!("{line}: {message}"))
    }

    fn machine(line: &str, costs: IdealCosts) -> Ideal<Schbench> {
        Ideal::new(schbench(line), 1, costs)
    }

    /// Runs until the program ends, within `seconds`.
    fn to_the_end(line: &str, costs: IdealCosts, seconds: u64) -> Ideal<Schbench> {
        let mut machine = machine(line, costs);
        assert!(machine.run(Ns::from_secs(seconds)), "{line}: still runs after {seconds} s");
        machine
    }

    /// Runs for `seconds` a program that does not end by then.
    fn for_seconds(line: &str, costs: IdealCosts, seconds: u64) -> Ideal<Schbench> {
        let mut machine = machine(line, costs);
        assert!(!machine.run(Ns::from_secs(seconds)), "{line}: ended");
        machine
    }

    fn printed(machine: &Ideal<Schbench>) -> String {
        machine.workload.output(machine.now)
    }

    fn loops(machine: &Ideal<Schbench>) -> u64 {
        machine.workload.progress().map_or(0, |(_, loops)| loops)
    }

    /// The counts of a table: (runtime s, total samples) of each header line.
    fn headers(output: &str) -> Vec<(u64, u64)> {
        let header = |line: &str| {
            let rest = line.strip_prefix("Latency percentiles (usec) runtime ")?;
            let (seconds, rest) = rest.split_once(" (s) (")?;
            Some((seconds.parse().ok()?, rest.strip_suffix(" total samples)")?.parse().ok()?))
        };
        output.lines().filter_map(header).collect()
    }

    #[test]
    fn main_creates_message_threads_and_each_creates_its_workers() {
        let machine = for_seconds("-m 2 -t 3", IdealCosts::default(), 1);
        assert_eq!(machine.created(), 1 + 2 + 6);
        let expected = [
            "main",
            "message-0",
            "message-1",
            "worker-0.0",
            "worker-0.1",
            "worker-0.2",
            "worker-1.0",
            "worker-1.1",
            "worker-1.2",
        ];
        assert_eq!(machine.streams().collect::<Vec<_>>(), expected);
        let mut schbench = schbench("-m 2 -t 3");
        let mut random = crate::rng::RandomStream::new(1, "main");
        let mut act = |thread| match schbench
            .next(ThreadId(thread), &mut View { now: Ns(5), cpu: fairlab_event::Cpu(0), random: &mut random })
        {
            Action::Spawn(spec) => spec.stream,
            other => format!("{other:?}"),
        };
        let order = [0, 1, 0, 0, 2, 1].map(&mut act);
        // Message thread 0 (thread 1) is at work while main still creates the other (thread 3).
        assert_eq!(order[..3], ["message-0", "worker-0.0", "message-1"]);
        assert_eq!(order[3], "Sleep(1.000000000)");
        assert_eq!(order[4], "SpinUntil(0.030001000)");
        assert_eq!(order[5], "worker-0.1");
        assert_eq!(act(99), "Exit", "a thread that nobody created");
    }

    #[test]
    fn the_load_balancer_reports_workers_run_in_lockstep_rounds_of_1031_ms() {
        let machine = for_seconds(SEED0, PLAIN, 1_000);
        let rounds_x40 = loops(&machine);
        let round_us = 1_000_000_000 * 40 / rounds_x40;
        assert!((1_031_000..1_032_000).contains(&round_us), "{round_us}");
        // All of a message thread's workers are woken in one batch: 10 µs apart, then nothing for a round.
        let mut wakes = machine.wakes.iter().filter(|(_, waker, _)| *waker == ThreadId(1)).skip(40);
        let batch = wakes.by_ref().take(20).map(|&(time, ..)| time).collect::<Vec<_>>();
        assert!(batch.windows(2).all(|pair| pair[1] - pair[0] == Ns::from_us(10)), "{batch:?}");
        assert!(wakes.next().is_some_and(|&(time, ..)| time - batch[19] > Ns::from_secs(1)));
    }

    #[test]
    fn the_load_balancer_reports_sample_counts_come_out() {
        let machine = for_seconds(SEED0, PLAIN, 1_445);
        let output = printed(&machine);
        let tables = headers(&output);
        assert!(
            output.starts_with("Latency percentiles (usec) runtime") || output.starts_with("warmup done")
        );
        assert_eq!(output.matches("warmup done, zeroing stats\n").count(), 1);
        let samples = |seconds| tables.iter().find(|&&(at, _)| at == seconds).map(|&(_, samples)| samples);
        // The report has 3280 = 82 rounds of 40 at 1290 s, zeroed 85 s before, and 4480 = 112 rounds after 115 s.
        let (short, long) = (samples(1_290).unwrap_or(0), samples(1_440).unwrap_or(0));
        assert!((81 * 40..=83 * 40).contains(&short), "{short}");
        assert!((111 * 40..=112 * 40).contains(&long), "{long}");
    }

    #[test]
    fn latencies_of_a_batch_are_one_wakeup_apart() {
        let machine = for_seconds(SEED0, PLAIN, 100);
        let schbench = &machine.workload;
        // Each batch has one worker each at 10, 20, … 200 µs.
        assert_eq!(schbench.samples() % 40, 0);
        assert_eq!(schbench.extremes_us(), (10, 200));
        for (percent, us) in [(5.0, 10), (50.0, 100), (75.0, 150), (90.0, 180), (95.0, 190), (99.0, 200)] {
            assert_eq!(schbench.percentile(percent), us, "{percent}");
        }
        let each = schbench.samples() / 20;
        assert!(schbench.output(Ns::ZERO).contains(&format!("\t75.0th: 150 ({} samples)\n", 5 * each)));
    }

    #[test]
    fn latencies_below_a_microsecond_are_not_recorded() {
        let machine = for_seconds(SEED0, IdealCosts { wakeup: Ns(0), ..PLAIN }, 100);
        assert!(loops(&machine) > 3_000);
        assert_eq!(machine.workload.samples(), 0);
        assert!(printed(&machine).ends_with("\tmin=0, max=0\n"));
    }

    #[test]
    fn the_last_worker_to_ask_is_the_first_to_be_woken() {
        // Workers of different delays, so that they ask in an order of their own: rough, then look at memory.
        let mut schbench = schbench("-m 1 -t 3 -c 1000 -s 1000");
        let mut random = crate::rng::RandomStream::new(1, "x");
        let mut act = |thread, us| {
            let view = &mut View { now: Ns::from_us(us), cpu: fairlab_event::Cpu(0), random: &mut random };
            format!("{:?}", schbench.next(ThreadId(thread), view))
        };
        act(0, 0);
        let created = (0..3).map(|_| act(1, 0)).filter(|action| action.starts_with("Spawn")).count();
        assert_eq!(created, 3);
        assert_eq!(act(1, 0), "Wait", "nobody on the list, nobody posted");
        for worker in [2, 3, 4] {
            assert_eq!(act(worker, 0), "SpinUntil(0.001001000)");
        }
        assert_eq!(act(3, 1_001), "Wake(ThreadId(1))", "the first to ask posts the message thread");
        assert_eq!(act(2, 1_001), "Wait", "it is posted already");
        assert_eq!(act(4, 1_001), "Wait");
        assert_eq!(act(3, 1_001), "Wait");
        assert_eq!(act(1, 1_001), "SpinUntil(0.031002000)");
        assert!(act(1, 31_002).starts_with("Sleep(0.001"));
        assert_eq!(
            [(); 3].map(|()| act(1, 32_100)),
            ["Wake(ThreadId(4))", "Wake(ThreadId(2))", "Wake(ThreadId(3))"]
        );
        assert_eq!(act(1, 32_130), "Wait");
    }

    #[test]
    fn a_post_before_the_wait_makes_the_message_thread_go_on_at_once() {
        let mut schbench = schbench("-m 1 -t 2 -c 1000 -s 1000 --revision 93483e4");
        let mut random = crate::rng::RandomStream::new(1, "x");
        let mut act = |thread, us| {
            let view = &mut View { now: Ns::from_us(us), cpu: fairlab_event::Cpu(0), random: &mut random };
            format!("{:?}", schbench.next(ThreadId(thread), view))
        };
        act(0, 0);
        for _ in 0..2 {
            act(1, 0);
        }
        act(2, 0);
        act(3, 0);
        assert_eq!(act(2, 1_001), "Wake(ThreadId(1))");
        assert_eq!(act(2, 1_002), "Wait");
        // It replies to the one on the list; the other asks while it does, which is a post that it must not miss.
        assert_eq!(act(1, 1_003), "Wake(ThreadId(2))");
        assert_eq!(act(3, 1_004), "Wake(ThreadId(1))", "which nobody waits for");
        assert_eq!(act(3, 1_004), "Wait");
        assert!(act(1, 1_005).starts_with("Sleep("), "posted since it began: no wait");
        assert_eq!(act(3, 1_006), "Wait", "a return for nothing: it waits again");
        assert_eq!(act(1, 2_300), "Wake(ThreadId(3))");
        assert_eq!(act(3, 2_310), "SpinUntil(0.003311000)");
    }

    #[test]
    fn the_statistics_are_zeroed_after_the_warm_up_and_then_at_each_interval() {
        let tables = |line: &str| headers(&printed(&for_seconds(line, PLAIN, 61)));
        let workers = "-t 20 -r 0 -c 1000000 -s 1000";
        // (when a table is printed, how long ago the statistics were zeroed), s; the last one is the ending.
        let expect = |options: &str, expected: &[(u64, u64)]| {
            let tables = tables(&format!("{workers} {options}"));
            let when = |pairs: &[(u64, u64)]| pairs.iter().map(|pair| pair.0).collect::<Vec<_>>();
            assert_eq!(when(&tables), when(expected), "{options}");
            for (&(at, samples), &(_, since)) in tables.iter().zip(expected) {
                let rounds = since * 1_000 / 1_031;
                assert!(
                    (rounds.saturating_sub(1)..=rounds + 1).contains(&(samples / 40)),
                    "{options}: {samples} at {at} s"
                );
            }
        };
        // A warm-up to 5 s, then zeroed at 25 and 45 s.
        expect("-z 20", &[(10, 5), (20, 15), (30, 5), (40, 15), (50, 5), (60, 15), (60, 16)]);
        expect("-w 0 -i 20", &[(20, 20), (40, 40), (60, 60), (60, 61)]);
        expect("-w 0 -z 35 -i 20", &[(20, 20), (40, 5), (60, 25), (60, 26)]);
        // No table at 15 s, where the warm-up ends; the next second prints it, and the others count from there.
        expect("-w 15 -i 15", &[(16, 1), (31, 16), (46, 31), (60, 46)]);
    }

    #[test]
    fn a_timer_without_slack_warms_up_a_second_later() {
        let output =
            |timer_slack| printed(&for_seconds("-t 2 -r 0 -i 6", IdealCosts { timer_slack, ..PLAIN }, 8));
        let first = |timer_slack| headers(&output(timer_slack)).first().map(|header| header.0);
        // More than 5 s must have passed, by a clock of whole µs; the table due at 6 s gives way, if it is then.
        assert_eq!([50_000, 200].map(|slack| first(Ns(slack))), [Some(6); 2]);
        assert_eq!([199, 0].map(|slack| first(Ns(slack))), [Some(7); 2]);
    }

    #[test]
    fn the_blocked_load_reports_run_has_its_number_of_samples() {
        let machine = to_the_end("-t 2 -m 2 -r 5", PLAIN, 6);
        let output = printed(&machine);
        let [(5, samples)] = headers(&output)[..] else { panic!("{output}") };
        // 212 and 214 in the report; here too the warm-up of 5 s never ends.
        assert!((208..=220).contains(&samples), "{samples}");
        assert!(!output.contains("warmup"));
        assert_eq!(output, printed(&machine), "the ending is printed once");
    }

    #[test]
    fn a_run_that_is_cut_short_ends_with_what_it_has() {
        let mut machine = machine("-t 2 -r 100 -w 0 -i 3", PLAIN);
        machine.run(Ns::from_ms(7_500));
        let (first, samples) = (printed(&machine), machine.workload.samples());
        assert_eq!(headers(&first), [(3, headers(&first)[0].1), (6, headers(&first)[1].1), (7, samples)]);
        machine.run(Ns::from_ms(9_500));
        let second = printed(&machine);
        let (printed, _) = first.split_at(first.rfind("Latency").unwrap_or(0));
        assert!(second.starts_with(printed), "what was printed stays");
        assert_eq!(headers(&second).len(), 4);
        assert!(
            schbench("")
                .output(Ns::ZERO)
                .starts_with("Latency percentiles (usec) runtime 0 (s) (0 total samples)\n")
        );
    }

    #[test]
    fn the_january_program_has_no_intervals() {
        let machine = to_the_end("-t 2 -r 12 --revision 99faedc", PLAIN, 14);
        let output = printed(&machine);
        assert!(output.starts_with("Latency percentiles (usec)\n\t50.0th: 10\n"), "{output}");
        assert_eq!(output.lines().count(), 9);
        // No 30 ms of the message thread's own: rounds of 30 + 30 … 37.5 ms.
        let rounds = loops(&machine) / 4;
        assert!((12_000 / 68..12_000 / 60).contains(&rounds), "{rounds}");
        to_the_end("-t 2 -r 0 --revision 99faedc", PLAIN, 1);
    }

    #[test]
    fn request_mode_serves_the_requests_that_it_gives_out() {
        let machine = to_the_end("-R 200 -m 2 -t 6 -c 1000 -r 10", PLAIN, 11);
        let output = printed(&machine);
        // 100 a second and message thread, 4 in a batch each 40 ms.
        let served = loops(&machine);
        assert!((1_980..=2_016).contains(&served), "{served}");
        assert_eq!(headers(&output), [(10, served)], "every request is a sample: {output}");
        let (min, max) = machine.workload.extremes_us();
        assert!((1..=12).contains(&min) && max < 60, "{min} {max}");
        assert!(output.ends_with('\n') && output.contains("\nrps: "), "{output}");
        assert!(output.contains("p95/cputime "), "{output}");
    }

    #[test]
    fn overload_in_request_mode_queues_requests() {
        let machine = to_the_end("-R 100 -m 1 -t 3 -c 50000 -r 4", PLAIN, 30);
        assert!(machine.workload.percentile(99.0) > 1_000_000, "{}", printed(&machine));
        assert!(
            (4_000 / 51 * 3 - 10..4_000 / 50 * 3 + 200).contains(&loops(&machine)),
            "{}",
            loops(&machine)
        );
    }

    #[test]
    fn pipe_mode_copies_and_prints_its_rate() {
        for line in ["-p 4096 -m 1 -t 2 -r 1", "-p 4096 -m 1 -t 2 -r 1 --revision 93483e4"] {
            let machine = to_the_end(line, PLAIN, 2);
            let output = printed(&machine);
            // Two wakeups of 10 µs in a row, four copies of 0.41 µs: some 20…40 µs a round of two loops.
            assert!((40_000..120_000).contains(&loops(&machine)), "{line}: {}", loops(&machine));
            assert!(output.contains("\navg worker transfer: "), "{output}");
            assert!(output.ends_with("MB/s\n"), "{output}");
            assert!(!output.contains("warmup"));
        }
        let cut = to_the_end("-p 2000000 -m 1 -t 1 -r 1", PLAIN, 2);
        assert!(printed(&cut).starts_with("pipe size too big, using 1048576\n"));
    }

    #[test]
    fn modes_that_poll_or_never_think_let_time_pass() {
        for line in
            ["-p 0 -m 1 -t 2", "-s 0 -c 0 -m 1 -t 2", "-s 100 -c 0 -m 1 -t 2", "-R 1000 -c 0 -m 1 -t 3"]
        {
            for revision in ["99faedc", "93483e4", "abe4f96"] {
                // Even where nothing else costs anything.
                let mut machine = machine(&format!("{line} --revision {revision}"), IdealCosts::default());
                assert!(!machine.run(Ns::from_ms(70)));
                assert!(loops(&machine) > 3, "{line} {revision}: {}", loops(&machine));
            }
        }
    }

    #[test]
    fn auto_mode_adds_workers_until_the_batch_takes_two_milliseconds() {
        // 200 µs a wakeup: 99 % of a batch are reached with its last worker, at 2 ms with the tenth.
        let costs = IdealCosts { wakeup: Ns::from_us(200), ..PLAIN };
        let machine = to_the_end("-a -m 1 -t 7 -r 2", costs, 20);
        let output = printed(&machine);
        let lines = output.lines().map(|line| line.split(" p99").next().unwrap_or("")).collect::<Vec<_>>();
        assert_eq!(
            lines[..4],
            [7, 8, 9, 10].map(|threads| format!("cputime 30000 threads {threads}")),
            "{output}"
        );
        assert_eq!(lines.len(), 4 + 9);
        assert_eq!(machine.created(), 1 + 8 + 9 + 10 + 11);
        assert!(machine.streams().any(|stream| stream == "round-3/worker-0.9"));
    }

    #[test]
    fn auto_mode_with_requests_goes_on_until_latencies_hurt() {
        let mut machine = machine("-a -R 1 -c 2000 -m 1 -t 3 -r 1", PLAIN);
        let ended = machine.run(Ns::from_secs(200));
        let output = printed(&machine);
        assert!(output.starts_with("autobench rps 900\nrps: "), "{output}");
        assert!(ended, "{output}");
        assert!(output.lines().count() > 5, "{output}");
        assert!(!output.contains("Latency"), "no table in this mode: {output}");
    }

    #[test]
    fn no_wakeup_is_lost_on_a_rough_machine() {
        let costs = IdealCosts { wakeup: Ns(3_000), timer_slack: Ns(50_000), roughness: Ns::from_us(300) };
        for seed in 0..40 {
            for line in [
                "-m 2 -t 3 -c 100 -s 100 -r 1",
                "-m 2 -t 3 -c 100 -s 100 -r 1 --revision 93483e4",
                "-m 3 -t 2 -p 64 -r 1 --revision 99faedc",
                "-m 1 -t 5 -p 64 -r 1",
                "-m 2 -t 5 -R 900 -c 300 -r 1",
            ] {
                let mut machine = Ideal::new(schbench(line), seed, costs);
                assert!(machine.run(Ns::from_secs(4)), "seed {seed}: {line} does not end");
                assert!(loops(&machine) > 100, "seed {seed}: {line}: {} loops", loops(&machine));
            }
        }
    }

    #[test]
    fn one_seed_is_one_run() {
        let costs = IdealCosts { roughness: Ns::from_us(20), ..PLAIN };
        let run = |seed| {
            let mut machine = Ideal::new(schbench("-m 2 -t 4 -r 3 -w 1"), seed, costs);
            machine.run(Ns::from_secs(4));
            (printed(&machine), machine.wakes)
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1).1, run(2).1);
    }
}
