//! schbench's command line, as three revisions of the program read it.
//!
//! Must not know: threads, time, what the options do.

use std::ops::RangeInclusive;

use super::getopt::{Given, Key, split};

/// The revisions of the program that differ in what they do. Ordered: each has what the one before it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// 99faedc (January 2020): one table at the end, without counts; the printed minimum is always 0.
    FinalTable,
    /// 93483e4 (22 October 2020): warm-up, zeroing, a table at each interval, `-r 0` for ever.
    Intervals,
    /// abe4f96 (23 October 2020): message threads compute, too; no tables while it runs in `-R` mode.
    MessageSpin,
}

impl Revision {
    const ALL: [Revision; 3] = [Revision::FinalTable, Revision::Intervals, Revision::MessageSpin];

    /// The commit id that stands for it.
    pub const fn id(self) -> &'static str {
        match self {
            Revision::FinalTable => "99faedc",
            Revision::Intervals => "93483e4",
            Revision::MessageSpin => "abe4f96",
        }
    }
}

/// What the command line asks for, after the program's own rules were applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which revision of the program it is.
    pub revision: Revision,
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

const USAGE: &str = "\
schbench [options]: message threads hand work to worker threads; how late do workers wake up?
  -m, --message-threads N  message threads (default 2)
  -t, --threads N          workers per message thread (default 16)
  -r, --runtime S          seconds to run; 0 = for ever (default 30)
  -s, --sleeptime US       microseconds a message thread sleeps before it replies (default 30000)
  -C US                    read and dropped, as in the real program: a message thread always computes
                           for 30000 microseconds before it replies, or 0 with -p
  -c, --cputime US         microseconds a worker computes per request (default 30000)
  -a, --auto               add workers (with -R: requests) run after run until latencies hurt
  -p, --pipe BYTES         copy this much per message, like a pipe; sets -s, -c, -w to 0
  -R, --rps N              requests-per-second mode
  -w, --warmuptime S       zero the statistics once after this many seconds (default 5; 0 with -a or -p)
  -i, --intervaltime S     seconds between tables (default 10)
  -z, --zerotime S         zero the statistics every so many seconds (default: never)
      --message_cputime US another name of --sleeptime, as in the real program
      --revision ID        which schbench: 99faedc (January 2020), 93483e4 or abe4f96 (October 2020, default)
      --help               this text
";

/// What the options are, for a person.
pub const fn usage() -> &'static str {
    USAGE
}

impl Options {
    /// Reads the arguments (without the program's name) as `getopt_long` would: `-t20`, `-t 20`, `-at 20`,
    /// `--threads 20`, `--threads=20`, `--thr 20`, in any order; the last of two wins.
    ///
    /// Departs: numbers must be numbers (`atoi` takes `20x` for 20 and `x` for 0), and what crashes the real program
    /// (no threads, a sleep of 1…3 µs, `-R` with one worker) is refused.
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Options, String> {
        let given = split(args)?;
        let mut revision = Revision::MessageSpin;
        for option in &given {
            match option.key {
                Key::Help => return Err(usage().to_string()),
                Key::Revision => revision = parse_revision(option.value)?,
                _ => {}
            }
        }
        if let Some(option) = given.iter().find(|option| option.since() > revision) {
            let (has_not, has) = (revision.id(), option.since().id());
            return Err(format!("schbench: revision {has_not} has no option {}; {has} has", option.name));
        }
        let mut options = Options::defaults(revision);
        options.fill(&given)?;
        options.check()?;
        Ok(options)
    }

    fn defaults(revision: Revision) -> Options {
        let since = |first: Revision, value: u32| if revision >= first { value } else { 0 };
        Options {
            revision,
            message_threads: 2,
            worker_threads: 16,
            runtime_s: 30,
            sleep_us: 30_000,
            message_cpu_us: since(Revision::MessageSpin, 30_000),
            cpu_us: 30_000,
            interval_s: 10,
            warmup_s: since(Revision::Intervals, 5),
            zero_s: 0,
            auto: false,
            pipe_bytes: 0,
            pipe_was_cut: false,
            requests_per_s: 0,
        }
    }

    /// `-p` and `-a` change defaults; what is asked for in so many words wins over that, in any order.
    fn fill(&mut self, given: &[Given<'_>]) -> Result<(), String> {
        let (mut sleep, mut cpu, mut warmup) = (None, None, None);
        for option in given {
            match option.key {
                Key::Auto => {
                    self.auto = true;
                    self.warmup_s = 0;
                }
                Key::Pipe => {
                    let bytes = option.number(ANY)?;
                    self.pipe_was_cut |= bytes > PIPE_BYTES_MAX;
                    self.pipe_bytes = bytes.min(PIPE_BYTES_MAX);
                    (self.sleep_us, self.message_cpu_us, self.cpu_us, self.warmup_s) = (0, 0, 0, 0);
                }
                Key::MessageThreads => self.message_threads = option.number(1..=THREADS_MAX as u32)?,
                Key::Threads => self.worker_threads = option.number(1..=THREADS_MAX as u32)?,
                Key::Runtime => self.runtime_s = option.number(SECONDS)?,
                Key::Rps => self.requests_per_s = option.number(ANY)?,
                Key::Sleep => sleep = Some(option.number(MICROSECONDS)?),
                Key::MessageCpu => {
                    option.number(MICROSECONDS)?;
                }
                Key::Cpu => cpu = Some(option.number(MICROSECONDS)?),
                Key::Warmup => warmup = Some(option.number(SECONDS)?),
                Key::Interval => self.interval_s = option.number(SECONDS)?,
                Key::Zero => self.zero_s = option.number(SECONDS)?,
                Key::Revision | Key::Help => {}
            }
        }
        self.sleep_us = sleep.unwrap_or(self.sleep_us);
        self.cpu_us = cpu.unwrap_or(self.cpu_us);
        self.warmup_s = warmup.unwrap_or(self.warmup_s);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let (messages, workers) = (u64::from(self.message_threads), u64::from(self.worker_threads));
        let threads = messages * (workers + 1) + 1;
        let computes_rate = self.auto && self.requests_per_s == 1;
        let rate_mode = computes_rate || self.requests_per_s >= self.message_threads;
        if threads > THREADS_MAX {
            return Err(format!("schbench: {threads} threads: Linux allows {THREADS_MAX}"));
        }
        if (1..4).contains(&self.sleep_us) && self.pipe_bytes == 0 && !rate_mode {
            return Err(format!(
                "schbench: -s {}: the jitter is a quarter of it, which must be at least 1: give 0, or 4 or more",
                self.sleep_us
            ));
        }
        if rate_mode && workers < 2 {
            return Err("schbench: -R wakes two workers of three: give -t 2 or more".to_string());
        }
        if computes_rate && self.cpu_us == 0 {
            return Err("schbench: -a -R 1 computes the rate from -c, which must not be 0".to_string());
        }
        if self.revision == Revision::FinalTable && self.auto && self.runtime_s == 0 {
            return Err(
                "schbench: revision 99faedc ends at once with -r 0, so -a would never end".to_string()
            );
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

fn parse_revision(text: &str) -> Result<Revision, String> {
    Revision::ALL
        .into_iter()
        .find(|revision| revision.id() == text)
        .ok_or_else(|| format!("schbench: --revision {text:?}: not one of 99faedc, 93483e4, abe4f96"))
}

#[cfg(test)]
mod tests {
    use super::super::getopt::{LONG, SHORT};
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    fn good(line: &str) -> Options {
        parse(line).unwrap_or_else(|message| panic!("{line}: {message}"))
    }

    fn bad(line: &str) -> String {
        let message = parse(line).expect_err(line);
        assert_eq!(message.lines().count(), 1, "one line: {message}");
        assert!(message.starts_with("schbench: "), "{message}");
        message
    }

    #[test]
    fn defaults_are_the_programs() {
        let options = good("");
        assert_eq!(options, Options::defaults(Revision::MessageSpin));
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
            ("-x", "unknown option -x"),
            ("-ax", "unknown option -x"),
            ("--frobnicate", "unknown option --frobnicate"),
            ("-t", "option -t needs a value"),
            ("--threads", "option --threads needs a value"),
            ("--threads=", "--threads \"\": not a whole number from 1 to 4194304"),
            ("-t 0", "-t \"0\": not a whole number from 1"),
            ("-m 0", "-m \"0\": not a whole number from 1"),
            ("-t x", "-t \"x\": not a whole number"),
            ("-t 3x", "-t \"3x\": not a whole number"),
            ("-t +3", "-t \"+3\": not a whole number"),
            ("-r -5", "-r \"-5\": not a whole number from 0 to 2147"),
            ("-r 2148", "-r \"2148\": not a whole number from 0 to 2147"),
            ("-c 99999999999999999999", "not a whole number"),
            ("-C x", "-C \"x\": not a whole number"),
            ("--auto=1", "option --auto takes no value"),
            ("--r 5", "ambiguous: --runtime, --rps, --revision"),
            ("--message 5", "ambiguous: --message-threads, --message_cputime"),
            ("5", "extra argument \"5\""),
            ("-t 4 -- 5", "extra argument \"5\""),
            ("-", "extra argument \"-\""),
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
    fn help_is_the_usage_and_names_every_option() {
        assert_eq!(parse("-t 3 --help").as_ref().map_err(String::as_str), Err(usage()));
        for (letter, _) in SHORT {
            assert!(usage().contains(&format!("  -{letter}")), "-{letter}");
        }
        for (long, _) in LONG {
            assert!(usage().contains(&format!("--{long}")), "--{long}");
        }
    }
}
