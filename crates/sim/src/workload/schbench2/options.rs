//! The command line of schbench since 2023.
//!
//! Must not know: threads, time.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;

use crate::workload::arguments::{CommandLine, Value, program};
use crate::workload::schbench;

program! { PROGRAM: Schbench2Options, None, "\
schbench2 [options] (also: schbench, where one of the options -L -n -F -M -W --split says which program is meant)";
    "-C, --calibrate" "requests' times without their sleeps, and no locks" |all, value| value.switch(&mut all.calibrate, true);
    "-L, --no-locking" "do not spin on a lock of the CPU while computing" |all, value| value.switch(&mut all.no_locking, true);
    "-m, --message-threads N" "message threads (default 1)" |all, value| value.set(&mut all.message_threads, 1..=10_000);
    "-M, --message-cpus CPUS" "bind message threads to one of these each, or 'auto': the first ones" |all, value| {
        all.bind(value, |all, cpus| all.message_cpus = cpus)
    };
    "-W, --worker-cpus CPUS" "bind workers to these, or 'auto': all but the message threads'" |all, value| {
        all.bind(value, |all, cpus| all.worker_cpus = cpus)
    };
    "-t, --threads N" "workers per message thread (default: CPUs / message threads)" |all, value| value.set(&mut all.threads, 1..=100_000);
    "-r, --runtime S" "seconds to run; 0 = for ever (default 30)" |all, value| value.set(&mut all.runtime_s, 0..=1_000_000);
    "-F KB" "what a worker's matrices take (default 256)" |all, value| value.set(&mut all.footprint_kb, 1..=1_000_000);
    "-n, --operations N" "how often they are multiplied per request (default 5)" |all, value| value.set(&mut all.operations, 0..=1_000_000);
    "-s, --sleep_usec US" "how long a request sleeps before (default 100)" |all, value| value.set(&mut all.sleep_us, 0..=1_000_000_000);
    "-R, --rps N" "requests per second of all message threads; 0 = as many as workers do (default)"
        |all, value| value.set(&mut all.rps, 0..=1_000_000_000);
    "-w, --warmuptime S" "zero the statistics once after so many seconds (default 0)" |all, value| value.set(&mut all.warmup_s, 0..=1_000_000);
    "-i, --intervaltime S" "seconds between tables (default 10)" |all, value| value.set(&mut all.interval_s, 1..=1_000_000);
    "-z, --zerotime S" "zero the statistics every so many seconds (default: never)" |all, value| value.set(&mut all.zero_s, 0..=1_000_000);
    "--split PERCENT" "so much of the footprint is each worker's own, the rest is shared (default: all)"
        |all, value| value.set(all.split.insert(0), 0..=100);
    "--cache_footprint KB" "" |_, value| value.refuse("is read and dropped by the real program, where it means a letter -f that there is not: give -F");
    "-p, --pipe BYTES" "" |_, value| value.refuse("is that of the program of 2020: 'schbench -p'");
    "-A, --auto-rps PERCENT" "" |_, value| value.refuse("reads /proc/stat, which is not modelled: give -R a rate");
    "-j, --json FILE" "" |_, value| value.refuse("writes JSON, which is not modelled: 'fairlab … --format json' has its numbers");
    "-J, --jobname NAME" "" |_, value| value.refuse("names a job in JSON, which is not modelled: 'fairlab … --format json' has its numbers");
}

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schbench2Options {
    /// `-C`: no locks, and times of the arithmetic alone.
    pub calibrate: bool,
    /// `-L`.
    pub no_locking: bool,
    /// `-m`, at least 1.
    pub message_threads: u32,
    /// `-t`; 0: one a CPU.
    pub threads: u32,
    /// `-r`, seconds; 0: for ever.
    pub runtime_s: u32,
    /// `-F`, KB.
    pub footprint_kb: u32,
    /// `-n`.
    pub operations: u32,
    /// `-s`, us.
    pub sleep_us: u32,
    /// `-R`; 0: not in that mode.
    pub rps: u32,
    /// `-w`, seconds.
    pub warmup_s: u32,
    /// `-i`, seconds.
    pub interval_s: u32,
    /// `-z`, seconds; 0: never.
    pub zero_s: u32,
    /// `--split`.
    pub split: Option<u32>,
    message_cpus: Cpus,
    worker_cpus: Cpus,
}

/// CPUs that threads are bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cpus {
    Any,
    Auto,
    These(CpuMask),
}

impl Schbench2Options {
    /// Whether a command line for `schbench` has an option that only this program has.
    pub fn says_so(args: &[String]) -> bool {
        let is_only_here = |option: &str| PROGRAM.knows(option) && !schbench::PROGRAM.knows(option);
        args.iter().any(|arg| match arg.strip_prefix('-') {
            Some(long) if long.starts_with('-') => is_only_here(arg.split('=').next().unwrap_or(arg)),
            Some(letters) => letters.chars().next().is_some_and(|letter| is_only_here(&format!("-{letter}"))),
            None => false,
        })
    }

    /// Reads the arguments (without the program's name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Schbench2Options, String> {
        let mut options = Schbench2Options {
            calibrate: false,
            no_locking: false,
            message_threads: 1,
            threads: 0,
            runtime_s: 30,
            footprint_kb: 256,
            operations: 5,
            sleep_us: 100,
            rps: 0,
            warmup_s: 0,
            interval_s: 10,
            zero_s: 0,
            split: None,
            message_cpus: Cpus::Any,
            worker_cpus: Cpus::Any,
        };
        PROGRAM.read(args, &mut options)?;
        // As in the program: nothing warms up in a short run.
        if options.runtime_s < 30 {
            options.warmup_s = 0;
        }
        if options.rps > 0 && options.rps < options.message_threads {
            return Err(format!(
                "-R {} is less than one request for each of {} message threads",
                options.rps, options.message_threads
            ));
        }
        Ok(options)
    }

    /// Binds threads to CPUs. One 'auto' is for both kinds.
    fn bind(&mut self, value: Value<'_>, set: fn(&mut Schbench2Options, Cpus)) -> Result<(), String> {
        let Value { option, text } = value;
        if text == "auto" {
            (self.message_cpus, self.worker_cpus) = (Cpus::Auto, Cpus::Auto);
            return Ok(());
        }
        let cpus = CpuMask::parse_list(text);
        set(self, Cpus::These(cpus.map_err(|problem| format!("{option} '{text}': {problem}; or 'auto'"))?));
        Ok(())
    }

    /// Whether requests take the lock of their CPU.
    pub fn locks(&self) -> bool {
        !self.no_locking && !self.calibrate
    }

    /// What a request computes, if a multiplication takes `each`.
    pub fn work(&self, each: Ns) -> Ns {
        // Three matrices of longs.
        let size = |kb: u64| (kb * 1024 / 3 / 8).isqrt();
        let cubed = |kb: u64| size(kb).pow(3);
        let (all, operations) = (u64::from(self.footprint_kb), u64::from(self.operations));
        let multiplications = match self.split {
            None => operations * cubed(all),
            Some(percent) => {
                let percent = u64::from(percent);
                let own = operations * percent / 100;
                own * cubed(all * percent / 100) + (operations - own) * cubed(all * (100 - percent) / 100)
            }
        };
        Ns(multiplications.saturating_mul(each.0).max(1))
    }

    /// The CPU that a message thread is bound to.
    pub fn message_cpu(&self, number: usize, online: &CpuMask) -> Option<Cpu> {
        let from = match &self.message_cpus {
            Cpus::Any => return None,
            Cpus::Auto => *online,
            Cpus::These(cpus) => *cpus,
        };
        let count = from.weight();
        from.iter().nth(number % count.max(1))
    }

    /// The CPUs that workers are bound to.
    pub fn worker_cpus(&self, online: &CpuMask) -> CpuMask {
        match &self.worker_cpus {
            Cpus::Any => CpuMask::ALL,
            Cpus::These(cpus) => *cpus,
            Cpus::Auto => {
                let rest = online.iter().skip(self.message_threads as usize).collect::<CpuMask>();
                if rest.is_empty() { *online } else { rest }
            }
        }
    }

    /// Every CPU that it names.
    pub fn named_cpus(&self) -> CpuMask {
        let of = |cpus: &Cpus| if let Cpus::These(these) = cpus { *these } else { CpuMask::EMPTY };
        of(&self.message_cpus).or(&of(&self.worker_cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<String> {
        line.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn options_say_which_program_is_meant() {
        for line in ["-L -m 2", "-t 4 -n 10", "-F256", "--split=50", "--no-locking", "--calibrate", "-M 0-3"]
        {
            assert!(Schbench2Options::says_so(&args(line)), "{line}");
        }
        for line in
            ["", "-t 20 -r 0 -c 1000000 -s 1000 -i 30 -z 120", "-m 1 -t 30 -c 10000 -R 500", "-p 4096", "-a"]
        {
            assert!(!Schbench2Options::says_so(&args(line)), "{line}");
        }
    }

    #[test]
    fn requests_are_as_long_as_their_matrices_ask_for() {
        let work = |line: &str| Schbench2Options::parse(&args(line)).expect(line).work(Ns(3));
        assert_eq!(work("-F 256 -n 5"), Ns(3 * 5 * 104 * 104 * 104));
        assert_eq!(work("-F 256 -n 10"), Ns(2 * work("-n 5").0));
        assert_eq!(work("-n 10 --split 50"), Ns(3 * 10 * 73 * 73 * 73));
        assert_eq!(work("-n 0"), Ns(1));
    }

    #[test]
    fn bad_options_are_said_in_one_line() {
        for (line, problem) in [
            ("-x", "unknown option '-x'"),
            ("-L 4", "'4' is one word too many"),
            ("-t", "-t needs a value"),
            ("-t 0", "-t '0' is not a whole number from 1 to 100000"),
            ("--split 101", "--split '101' is not a whole number from 0 to 100"),
            ("--calibrate=1", "--calibrate takes no value"),
            ("-M x", "-M 'x': "),
            ("-A 80", "-A reads /proc/stat"),
            ("-j -", "writes JSON"),
            ("--cache_footprint 512", "give -F"),
            ("-p 1", "-p is that of the program of 2020"),
            ("-m 4 -R 3", "-R 3 is less than one request"),
        ] {
            let told = Schbench2Options::parse(&args(line)).expect_err(line);
            assert!(told.contains(problem) && !told.contains('\n'), "{told}");
        }
    }
}
