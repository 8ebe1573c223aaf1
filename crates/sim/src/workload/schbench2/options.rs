//! The command line of schbench since 2023.
//!
//! Must not know: threads, time.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;

/// What a command line gives.
pub const USAGE: &str = "\
schbench2 [options] (also: schbench, where one of the options -L -n -F -M -W --split says which program is meant)
  -C, --calibrate           requests' times without their sleeps, and no locks
  -L, --no-locking          do not spin on a lock of the CPU while computing
  -m, --message-threads N   message threads (default 1)
  -M, --message-cpus CPUS   bind message threads to one of these each, or 'auto': the first ones
  -W, --worker-cpus CPUS    bind workers to these, or 'auto': all but the message threads'
  -t, --threads N           workers per message thread (default: CPUs / message threads)
  -r, --runtime S           seconds to run; 0 = for ever (default 30)
  -F, --cache_footprint KB  what a worker's matrices take (default 256)
  -n, --operations N        how often they are multiplied per request (default 5)
  -s, --sleep_usec US       how long a request sleeps before (default 100)
  -R, --rps N               requests per second of all message threads; 0 = as many as workers do (default)
  -w, --warmuptime S        zero the statistics once after so many seconds (default 0)
  -i, --intervaltime S      seconds between tables (default 10)
  -z, --zerotime S          zero the statistics every so many seconds (default: never)
      --split PERCENT       so much of the footprint is each worker's own, the rest is shared (default: all)
";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
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

/// Letters and names; whether a value follows.
const OPTIONS: [(&str, &str, bool); 18] = [
    ("-p", "--pipe", true),
    ("-m", "--message-threads", true),
    ("-M", "--message-cpus", true),
    ("-W", "--worker-cpus", true),
    ("-t", "--threads", true),
    ("-r", "--runtime", true),
    ("-R", "--rps", true),
    ("-A", "--auto-rps", true),
    ("-F", "--cache_footprint", true),
    ("-C", "--calibrate", false),
    ("-L", "--no-locking", false),
    ("-n", "--operations", true),
    ("-s", "--sleep_usec", true),
    ("-w", "--warmuptime", true),
    ("-i", "--intervaltime", true),
    ("-z", "--zerotime", true),
    ("-j", "--json", true),
    ("-J", "--jobname", true),
];

/// Options that the program of 2020 has not, and that therefore say which one is meant.
const ONLY_HERE: [&str; 9] = ["-L", "-n", "-F", "-M", "-W", "-A", "-j", "-J", "-S"];

impl Options {
    /// Whether a command line for `schbench` has an option that only this program has.
    pub fn says_so(args: &[String]) -> bool {
        let long = |arg: &str| {
            let name = arg.split('=').next().unwrap_or(arg);
            name == "--split"
                || OPTIONS.iter().any(|(letter, known, _)| *known == name && ONLY_HERE.contains(letter))
                || ["--calibrate", "--sleep_usec"].contains(&name)
        };
        args.iter().any(|arg| match arg.strip_prefix("--") {
            Some(_) => long(arg),
            None => ONLY_HERE.iter().any(|letter| arg.starts_with(letter)),
        })
    }

    /// Reads the arguments (without the program's name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
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
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if ["-h", "--help"].contains(&arg.as_str()) {
                return Err(USAGE.to_string());
            }
            let (key, joined) = key(arg)?;
            let value = match (takes_value(key), joined) {
                (false, None) => "",
                (false, Some(_)) => return Err(format!("schbench2: {key} takes no value: '{arg}'")),
                (true, Some(value)) => value,
                (true, None) => rest.next().ok_or_else(|| format!("schbench2: {key} needs a value"))?,
            };
            options.set(key, value)?;
        }
        // As in the program: nothing warms up in a short run.
        if options.runtime_s < 30 {
            options.warmup_s = 0;
        }
        if options.rps > 0 && options.rps < options.message_threads {
            return Err(format!(
                "schbench2: -R {} is less than one request for each of {} message threads",
                options.rps, options.message_threads
            ));
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = |least: u32, most: u32| {
            let number = value.parse::<u32>().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| {
                format!("schbench2: {key} '{value}': not a whole number from {least} to {most}")
            })
        };
        match key {
            "-C" => self.calibrate = true,
            "-L" => self.no_locking = true,
            "-m" => self.message_threads = number(1, 10_000)?,
            "-t" => self.threads = number(1, 100_000)?,
            "-r" => self.runtime_s = number(0, 1_000_000)?,
            "-F" => self.footprint_kb = number(1, 1_000_000)?,
            "-n" => self.operations = number(0, 1_000_000)?,
            "-s" => self.sleep_us = number(0, 1_000_000_000)?,
            "-R" => self.rps = number(0, 1_000_000_000)?,
            "-w" => self.warmup_s = number(0, 1_000_000)?,
            "-i" => self.interval_s = number(1, 1_000_000)?,
            "-z" => self.zero_s = number(0, 1_000_000)?,
            "--split" => self.split = Some(number(0, 100)?),
            "-M" | "-W" => {
                let cpus = match value {
                    "auto" => Cpus::Auto,
                    list => Cpus::These(
                        CpuMask::parse_list(list)
                            .map_err(|problem| format!("schbench2: {key} '{list}': {problem}; or 'auto'"))?,
                    ),
                };
                match (key, cpus) {
                    // One 'auto' is for both.
                    (_, Cpus::Auto) => (self.message_cpus, self.worker_cpus) = (Cpus::Auto, Cpus::Auto),
                    ("-M", these) => self.message_cpus = these,
                    (_, these) => self.worker_cpus = these,
                }
            }
            "-p" => return Err("schbench2: -p is that of the program of 2020: 'schbench -p'".to_string()),
            "-A" => {
                return Err(
                    "schbench2: -A reads /proc/stat, which is not modelled: give -R a rate".to_string()
                );
            }
            _ => {
                return Err(format!(
                    "schbench2: {key} writes JSON, which is not modelled: 'fairlab … --format json' has its numbers"
                ));
            }
        }
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

fn takes_value(key: &str) -> bool {
    key == "--split" || OPTIONS.iter().any(|(letter, _, takes)| *letter == key && *takes)
}

/// The letter of an option as it is given, and what stands right behind it: `-t4`, `--threads=4`.
fn key(arg: &str) -> Result<(&'static str, Option<&str>), String> {
    let unknown = || format!("schbench2: there is no option '{arg}'; --help lists them");
    if arg.starts_with("--") {
        let (name, value) = arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)));
        if name == "--split" {
            return Ok(("--split", value));
        }
        let known = OPTIONS.iter().find(|(_, known, _)| *known == name).ok_or_else(unknown)?;
        return Ok((known.0, value));
    }
    let known = OPTIONS.iter().find(|(letter, ..)| arg.starts_with(letter)).ok_or_else(unknown)?;
    let rest = &arg[2..];
    Ok((known.0, (!rest.is_empty()).then_some(rest)))
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
            assert!(Options::says_so(&args(line)), "{line}");
        }
        for line in
            ["", "-t 20 -r 0 -c 1000000 -s 1000 -i 30 -z 120", "-m 1 -t 30 -c 10000 -R 500", "-p 4096", "-a"]
        {
            assert!(!Options::says_so(&args(line)), "{line}");
        }
    }

    #[test]
    fn requests_are_as_long_as_their_matrices_ask_for() {
        let work = |line: &str| Options::parse(&args(line)).expect(line).work(Ns(3));
        assert_eq!(work("-F 256 -n 5"), Ns(3 * 5 * 104 * 104 * 104));
        assert_eq!(work("-F 256 -n 10"), Ns(2 * work("-n 5").0));
        assert_eq!(work("-n 10 --split 50"), Ns(3 * 10 * 73 * 73 * 73));
        assert_eq!(work("-n 0"), Ns(1));
    }

    #[test]
    fn bad_options_are_said_in_one_line() {
        for (line, problem) in [
            ("-x", "there is no option '-x'"),
            ("-L 4", "there is no option '4'"),
            ("-t", "-t needs a value"),
            ("-t 0", "-t '0': not a whole number from 1 to 100000"),
            ("--split 101", "--split '101': not a whole number from 0 to 100"),
            ("--calibrate=1", "-C takes no value"),
            ("-M x", "-M 'x': "),
            ("-A 80", "-A reads /proc/stat"),
            ("-j -", "writes JSON"),
            ("-p 1", "-p is that of the program of 2020"),
            ("-m 4 -R 3", "-R 3 is less than one request"),
        ] {
            let told = Options::parse(&args(line)).expect_err(line);
            assert!(
                told.starts_with("schbench2: ") && told.contains(problem) && !told.contains('\n'),
                "{told}"
            );
        }
    }
}
