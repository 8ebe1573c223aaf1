//! schbench's command line, as three revisions of the program read it.
//!
//! Must not know: threads, time, what the options do.

use std::ops::RangeInclusive;

use crate::workload::arguments::{Value, program};

/// The revisions of the program that differ in what they do. Ordered: each has what the one before it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchbenchRevision {
    /// 99faedc (January 2020): one table at the end, without counts; the printed minimum is always 0.
    FinalTable,
    /// 93483e4 (22 October 2020): warm-up, zeroing, a table at each interval, `-r 0` for ever.
    Intervals,
    /// abe4f96 (23 October 2020): message threads compute, too; no tables while it runs in `-R` mode.
    MessageSpin,
}

impl SchbenchRevision {
    const ALL: [SchbenchRevision; 3] =
        [SchbenchRevision::FinalTable, SchbenchRevision::Intervals, SchbenchRevision::MessageSpin];

    /// The commit id that stands for it.
    pub const fn id(self) -> &'static str {
        match self {
            SchbenchRevision::FinalTable => "99faedc",
            SchbenchRevision::Intervals => "93483e4",
            SchbenchRevision::MessageSpin => "abe4f96",
        }
    }
}

/// What the command line asks for, after the program's own rules were applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchbenchOptions {
    /// Which revision of the program it is.
    pub revision: SchbenchRevision,
    /// `-m`: message threads, at least 1.
    pub message_threads: u32,
    /// `-t`: workers per message thread, at least 1.
    pub worker_threads: u32,
    /// `-r`: seconds; 0 = for ever (at once in 99faedc).
    pub runtime_s: u32,
    /// `-s`: µs a message thread sleeps before it replies.
    pub sleep_us: u32,
    /// µs a message thread computes before it replies: 30000 in abe4f96, or 0 with `-p`. `-C` is read and dropped:
    /// the program assigns the variable to itself where it should take the option's value.
    pub message_cpu_us: u32,
    /// `-c`: µs a worker computes per request.
    pub cpu_us: u32,
    /// `-i`: seconds between tables.
    pub interval_s: u32,
    /// `-w`: seconds after which the statistics are zeroed once; 0 = never.
    pub warmup_s: u32,
    /// `-z`: seconds between zeroings; 0 = never.
    pub zero_s: u32,
    /// `-a`: grow the load, run after run, until latencies hurt.
    pub auto: bool,
    /// `-p`: bytes of a simulated pipe transfer, up to [`PIPE_BYTES_MAX`]; 0 = no pipe mode.
    pub pipe_bytes: u32,
    /// Whether `-p` asked for more than that and was cut, which the program says on its first line.
    pub pipe_was_cut: bool,
    /// `-R`: requests per second of all message threads; 0 = not in that mode.
    pub requests_per_s: u32,
}

/// The size of the program's page per worker, bytes.
pub const PIPE_BYTES_MAX: u32 = 1 << 20;

/// Linux cannot have more threads than this on a 64-bit machine (`PID_MAX_LIMIT`, include/linux/threads.h).
const THREADS_MAX: u64 = 4 << 20;

/// The program multiplies seconds by 1000000 in 32 bits, which overflows beyond this.
const SECONDS: RangeInclusive<u32> = 0..=2147;
const MICROSECONDS: RangeInclusive<u32> = 0..=1_000_000_000;
const ANY: RangeInclusive<u32> = 0..=i32::MAX as u32;

program! { PROGRAM: Given, None, "schbench [options]: message threads hand work to worker threads; how late do workers wake up?";
    "-m, --message-threads N" "message threads (default 2)" |all, value| value.set(&mut all.options.message_threads, 1..=THREADS_MAX as u32);
    "-t, --threads N" "workers per message thread (default 16)" |all, value| value.set(&mut all.options.worker_threads, 1..=THREADS_MAX as u32);
    "-r, --runtime S" "seconds to run; 0 = for ever (default 30)" |all, value| value.set(&mut all.options.runtime_s, SECONDS);
    "-s, --sleeptime US" "microseconds a message thread sleeps before it replies (default 30000)"
        |all, value| value.set(all.sleep.insert(0), MICROSECONDS);
    "-C US" "read and dropped, as in the real program: a message thread always computes\nfor 30000 microseconds before it replies, or 0 with -p"
        |all, value| all.since(SchbenchRevision::MessageSpin, value).set(&mut 0, MICROSECONDS);
    "-c, --cputime US" "microseconds a worker computes per request (default 30000)" |all, value| value.set(all.cpu.insert(0), MICROSECONDS);
    "-a, --auto" "add workers (with -R: requests) run after run until latencies hurt" |all, value| value.switch(&mut all.options.auto, true);
    "-p, --pipe BYTES" "copy this much per message, like a pipe; sets -s, -c, -w to 0" |all, value| {
        let bytes = value.number(ANY)?;
        all.options.pipe_was_cut |= bytes > PIPE_BYTES_MAX;
        all.pipe = Some(bytes.min(PIPE_BYTES_MAX));
        Ok(())
    };
    "-R, --rps N" "requests-per-second mode" |all, value| value.set(&mut all.options.requests_per_s, ANY);
    "-w, --warmuptime S" "zero the statistics once after this many seconds (default 5; 0 with -a or -p)"
        |all, value| all.since(SchbenchRevision::Intervals, value).set(all.warmup.insert(0), SECONDS);
    "-i, --intervaltime S" "seconds between tables (default 10)"
        |all, value| all.since(SchbenchRevision::Intervals, value).set(&mut all.options.interval_s, SECONDS);
    "-z, --zerotime S" "zero the statistics every so many seconds (default: never)"
        |all, value| all.since(SchbenchRevision::Intervals, value).set(&mut all.options.zero_s, SECONDS);
    "--message_cputime US" "another name of --sleeptime, as in the real program"
        |all, value| all.since(SchbenchRevision::MessageSpin, value).set(all.sleep.insert(0), MICROSECONDS);
    "--revision ID" "which schbench: 99faedc (January 2020), 93483e4 or abe4f96 (October 2020, default)" |all, value| {
        let revision = SchbenchRevision::ALL.into_iter().find(|revision| revision.id() == value.text);
        all.options.revision = revision
            .ok_or_else(|| format!("--revision '{}' is not one of 99faedc, 93483e4, abe4f96", value.text))?;
        Ok(())
    };
}

/// What is given, in any order: `-p` and `-a` change defaults, and what is asked for in so many words wins over that.
pub(in crate::workload) struct Given {
    options: SchbenchOptions,
    sleep: Option<u32>,
    cpu: Option<u32>,
    warmup: Option<u32>,
    pipe: Option<u32>,
    /// Options that not every revision has, with the first that does.
    newer: Vec<(SchbenchRevision, String)>,
}

impl Given {
    /// An option that came with a revision.
    fn since<'v>(&mut self, revision: SchbenchRevision, value: Value<'v>) -> Value<'v> {
        self.newer.push((revision, value.option.to_string()));
        value
    }
}

impl SchbenchOptions {
    /// Reads the arguments (without the program's name) as `getopt_long` would: `-t20`, `-t 20`, `-at 20`,
    /// `--threads 20`, `--threads=20`, `--thr 20`, in any order; the last of two wins.
    ///
    /// Departs: numbers must be numbers (`atoi` takes `20x` for 20 and `x` for 0), and what crashes the real program
    /// (no threads, a sleep of 1…3 µs, `-R` with one worker) is refused.
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<SchbenchOptions, String> {
        let options = SchbenchOptions::defaults(SchbenchRevision::MessageSpin);
        let mut given =
            Given { options, sleep: None, cpu: None, warmup: None, pipe: None, newer: Vec::new() };
        PROGRAM.read(args, &mut given)?;
        let Given { mut options, sleep, cpu, warmup, pipe, newer } = given;
        if let Some((since, name)) = newer.into_iter().find(|(since, _)| *since > options.revision) {
            return Err(format!(
                "revision {} has no option {name}; {} has",
                options.revision.id(),
                since.id()
            ));
        }
        let unasked = SchbenchOptions::defaults(options.revision);
        let or_zero = |zero: bool, value: u32| if zero { 0 } else { value };
        options.pipe_bytes = pipe.unwrap_or(0);
        options.message_cpu_us = or_zero(pipe.is_some(), unasked.message_cpu_us);
        options.sleep_us = sleep.unwrap_or(or_zero(pipe.is_some(), unasked.sleep_us));
        options.cpu_us = cpu.unwrap_or(or_zero(pipe.is_some(), unasked.cpu_us));
        options.warmup_s = warmup.unwrap_or(or_zero(pipe.is_some() || options.auto, unasked.warmup_s));
        options.check()?;
        Ok(options)
    }

    fn defaults(revision: SchbenchRevision) -> SchbenchOptions {
        let since = |first: SchbenchRevision, value: u32| if revision >= first { value } else { 0 };
        SchbenchOptions {
            revision,
            message_threads: 2,
            worker_threads: 16,
            runtime_s: 30,
            sleep_us: 30_000,
            message_cpu_us: since(SchbenchRevision::MessageSpin, 30_000),
            cpu_us: 30_000,
            interval_s: 10,
            warmup_s: since(SchbenchRevision::Intervals, 5),
            zero_s: 0,
            auto: false,
            pipe_bytes: 0,
            pipe_was_cut: false,
            requests_per_s: 0,
        }
    }

    fn check(&self) -> Result<(), String> {
        let (messages, workers) = (u64::from(self.message_threads), u64::from(self.worker_threads));
        let threads = messages * (workers + 1) + 1;
        let computes_rate = self.auto && self.requests_per_s == 1;
        let rate_mode = computes_rate || self.requests_per_s >= self.message_threads;
        if threads > THREADS_MAX {
            return Err(format!("{threads} threads: Linux allows {THREADS_MAX}"));
        }
        if (1..4).contains(&self.sleep_us) && self.pipe_bytes == 0 && !rate_mode {
            return Err(format!(
                "-s {}: the jitter is a quarter of it, which must be at least 1: give 0, or 4 or more",
                self.sleep_us
            ));
        }
        if rate_mode && workers < 2 {
            return Err("-R wakes two workers of three: give -t 2 or more".to_string());
        }
        if computes_rate && self.cpu_us == 0 {
            return Err("-a -R 1 computes the rate from -c, which must not be 0".to_string());
        }
        if self.revision == SchbenchRevision::FinalTable && self.auto && self.runtime_s == 0 {
            return Err("revision 99faedc ends at once with -r 0, so -a would never end".to_string());
        }
        Ok(())
    }

    /// Requests per second of all message threads to begin with: `-a -R 1` means three quarters of what the workers
    /// could do if each request took a quarter longer than its computation.
    pub(super) fn initial_requests_per_s(&self) -> u32 {
        if !(self.auto && self.requests_per_s == 1) {
            return self.requests_per_s;
        }
        let per_worker = 1_000_000 / u64::from(self.cpu_us + self.cpu_us / 4).max(1);
        let all = per_worker * u64::from(self.worker_threads) * u64::from(self.message_threads);
        u32::try_from(all * 75 / 100).unwrap_or(u32::MAX).min(i32::MAX as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::arguments::CommandLine;

    fn parse(line: &str) -> Result<SchbenchOptions, String> {
        SchbenchOptions::parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    fn good(line: &str) -> SchbenchOptions {
        parse(line).unwrap_or_else(|message| panic!("{line}: {message}"))
    }

    fn bad(line: &str) -> String {
        let message = parse(line).expect_err(line);
        assert_eq!(message.lines().count(), 1, "one line: {message}");
        message
    }

    #[test]
    fn defaults_are_the_programs() {
        let options = good("");
        assert_eq!(options, SchbenchOptions::defaults(SchbenchRevision::MessageSpin));
        assert_eq!((options.message_threads, options.worker_threads, options.runtime_s), (2, 16, 30));
        assert_eq!((options.sleep_us, options.message_cpu_us, options.cpu_us), (30_000, 30_000, 30_000));
        assert_eq!((options.interval_s, options.warmup_s, options.zero_s), (10, 5, 0));
        assert_eq!((options.auto, options.pipe_bytes, options.requests_per_s), (false, 0, 0));
    }

    #[test]
    fn the_reports_command_lines_are_read() {
        let seed0 = good("-t 20 -r 0 -c 1000000 -s 1000 -i 30 -z 120");
        assert_eq!((seed0.message_threads, seed0.worker_threads, seed0.runtime_s), (2, 20, 0));
        assert_eq!((seed0.cpu_us, seed0.sleep_us, seed0.message_cpu_us), (1_000_000, 1_000, 30_000));
        assert_eq!((seed0.interval_s, seed0.warmup_s, seed0.zero_s), (30, 5, 120));
        let seed3 = good("-t 2 -m 2 -r 5");
        assert_eq!((seed3.worker_threads, seed3.runtime_s), (2, 5));
    }

    #[test]
    fn every_spelling_of_getopt_long_is_read() {
        let expected = good("-a -t 20 -r 9");
        for line in [
            "-at20 -r9",
            "-at 20 -r 9",
            "--auto --threads 20 --runtime 9",
            "--threads=20 --auto --runtime=9",
            "--thr 20 --au --run 9",
            "-t 3 -t 20 -a -r 8 -r 9 --",
        ] {
            assert_eq!(good(line), expected, "{line}");
        }
        let all = good(
            "--message-threads 3 --sleeptime 40 --cputime 50 --warmuptime 6 --intervaltime 7 --zerotime 8 --rps 90 --pipe 10",
        );
        assert_eq!((all.message_threads, all.sleep_us, all.cpu_us), (3, 40, 50));
        assert_eq!((all.warmup_s, all.interval_s, all.zero_s), (6, 7, 8));
        assert_eq!((all.requests_per_s, all.pipe_bytes), (90, 10));
    }

    #[test]
    fn the_message_threads_cpu_time_cannot_be_set() {
        assert_eq!(good("-C 5").message_cpu_us, 30_000);
        assert_eq!(good("-C 5 -p 64").message_cpu_us, 0);
        assert_eq!(good("-p 64 -C 5").message_cpu_us, 0);
        let long = good("--message_cputime 500");
        assert_eq!((long.message_cpu_us, long.sleep_us), (30_000, 500), "the long option sets the sleep");
        assert_eq!(good("--revision 93483e4").message_cpu_us, 0);
    }

    #[test]
    fn pipe_and_auto_change_defaults_but_not_wishes() {
        let pipe = good("-p 64");
        assert_eq!((pipe.sleep_us, pipe.cpu_us, pipe.warmup_s, pipe.message_cpu_us), (0, 0, 0, 0));
        let wished = good("-s 100 -c 200 -w 3 -p 64");
        assert_eq!((wished.sleep_us, wished.cpu_us, wished.warmup_s), (100, 200, 3));
        assert_eq!(good("-a").warmup_s, 0);
        assert_eq!(good("-w 4 -a").warmup_s, 4);
        let cut = good("-p 1048577");
        assert_eq!((cut.pipe_bytes, cut.pipe_was_cut), (1_048_576, true));
        assert!(!good("-p 1048576").pipe_was_cut);
    }

    #[test]
    fn bad_command_lines_get_one_clear_line() {
        for (line, part) in [
            ("-x", "unknown option '-x'"),
            ("-ax", "unknown option '-x'"),
            ("--frobnicate", "unknown option '--frobnicate'"),
            ("-t", "-t needs a value"),
            ("--threads", "--threads needs a value"),
            ("--threads=", "--threads '' is not a whole number from 1 to 4194304"),
            ("-t 0", "-t '0' is not a whole number from 1"),
            ("-m 0", "-m '0' is not a whole number from 1"),
            ("-t x", "-t 'x' is not a whole number"),
            ("-t 3x", "-t '3x' is not a whole number"),
            ("-r -5", "-r '-5' is not a whole number from 0 to 2147"),
            ("-r 2148", "-r '2148' is not a whole number from 0 to 2147"),
            ("-c 99999999999999999999", "not a whole number"),
            ("-C x", "-C 'x' is not a whole number"),
            ("--auto=1", "--auto takes no value"),
            ("--r 5", "ambiguous: --runtime, --rps, --revision"),
            ("--message 5", "ambiguous: --message-threads, --message_cputime"),
            ("5", "'5' is one word too many"),
            ("-t 4 -- 5", "'5' is one word too many"),
            ("-", "'-' is one word too many"),
            ("-s 3", "-s 3"),
            ("-R 100 -t 1", "-R wakes two workers of three"),
            ("-a -R 1 -c 0", "must not be 0"),
            ("-m 4000000 -t 2", "12000001 threads"),
            ("--revision 1234567", "not one of 99faedc, 93483e4, abe4f96"),
            ("--revision 93483e4 -C 5", "revision 93483e4 has no option -C; abe4f96 has"),
            ("--revision 93483e4 --message_cputime 5", "has no option --message_cputime"),
            ("--revision 99faedc -i 5", "revision 99faedc has no option -i; 93483e4 has"),
            ("-w 5 --revision 99faedc", "has no option -w"),
            ("--revision 99faedc -z 5", "has no option -z"),
            ("--revision 99faedc -a -r 0", "would never end"),
        ] {
            assert!(bad(line).contains(part), "{line}: {}", bad(line));
        }
    }

    #[test]
    fn what_only_looks_like_a_crash_is_allowed() {
        good("-s 0");
        good("-s 4");
        good("-p 64 -s 2");
        good("-R 100 -s 2");
        // Two message threads get half a request per second each, which is 0: not that mode at all.
        assert_eq!(good("-R 1 -t 1").requests_per_s, 1);
    }

    #[test]
    fn the_automatic_rate_is_three_quarters_of_what_the_workers_can_do() {
        assert_eq!(good("-a -R 1 -m 2 -t 4").initial_requests_per_s(), 26 * 8 * 75 / 100);
        assert_eq!(good("-a -R 2 -m 2 -t 4").initial_requests_per_s(), 2);
    }

    #[test]
    fn help_is_the_usage_wherever_it_is_asked_for() {
        assert_eq!(parse("-t 3 --help"), Err(PROGRAM.usage()));
        assert_eq!(parse("-at 3 -h"), Err(PROGRAM.usage()));
    }
}
