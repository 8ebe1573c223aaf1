//! Under what kernels run: from a command line's words to a machine, a workload, times and a first seed.
//!
//! Must not know: which runs are made, and what for.

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::selector::TimeRange;
use fairlab_event::Ns;
use fairlab_files::shell::{line_of, quoted};
use fairlab_sim::Machine;

use crate::kernel::is_command;
use crate::{Kernel, LabError, machines, workloads};

/// The machine that runs have when the user names none; kernels that are not modelled have one of their own kind then.
pub const DEFAULT_MACHINE: &str = "laptop8";

/// How long a workload runs that does not end by itself, when the user does not say.
const DEFAULT_DURATION: Ns = Ns::from_secs(30);

/// How long a command may take, when the user does not say.
const COMMAND_DURATION: Ns = Ns::from_secs(600);

/// Time for a workload that ends by itself to do so.
pub(crate) const MARGIN: Ns = Ns::from_secs(60);

/// What a user says of runs, in words that are not checked yet.
#[derive(Clone, Copy, Debug)]
pub struct SettingWords<'a> {
    /// The machine's name; [`DEFAULT_MACHINE`] where the user names none.
    pub machine: &'a str,
    /// The workload's name and its own options.
    pub workload: &'a [String],
    /// How long each run settles.
    pub warmup: Option<Ns>,
    /// When to stop each run.
    pub duration: Option<Ns>,
    /// Nothing is left to chance.
    pub exact: bool,
    /// The first seed.
    pub first_seed: u64,
    /// Which numbers by name are measured; without, none.
    pub by_name: Option<&'a NamesWanted>,
    /// What ends then is measured, on the clock of the run's trace, which begins at 0.
    pub time: TimeRange,
}

/// What every run of a search has in common.
#[derive(Clone, Debug)]
pub struct RunSetting {
    /// The machine.
    pub machine: Machine,
    /// What the machine is called on a command line: a file by its path.
    pub machine_name: String,
    /// The workload's name and its own options.
    pub workload: Vec<String>,
    /// How long each run settles; without, as long as the machine takes.
    pub warmup: Option<Ns>,
    /// When to stop each run, in virtual time from when it has settled.
    pub duration: Ns,
    /// The first seed; further runs have those that follow.
    pub first_seed: u64,
    /// Which numbers by name each run measures.
    pub by_name: NamesWanted,
    /// What ends then is measured, on the clock of the run's trace; what is before a run has settled never is.
    pub time: TimeRange,
}

/// The default machine, no workload, the first seed.
impl Default for SettingWords<'_> {
    fn default() -> Self {
        SettingWords {
            machine: DEFAULT_MACHINE,
            workload: &[],
            warmup: None,
            duration: None,
            exact: false,
            first_seed: 1,
            by_name: None,
            time: TimeRange::default(),
        }
    }
}

impl RunSetting {
    /// A workload on a machine from seed 1 on, which settles as long as the machine takes.
    pub fn new(machine: Machine, workload: Vec<String>, duration: Ns) -> RunSetting {
        RunSetting {
            machine_name: machine.name.clone(),
            machine,
            workload,
            warmup: None,
            duration,
            first_seed: 1,
            by_name: NamesWanted::default(),
            time: TimeRange::default(),
        }
    }

    /// The setting of modelled kernels.
    ///
    /// # Errors
    /// There is no such machine or workload.
    pub fn of(asked: &SettingWords<'_>) -> Result<RunSetting, LabError> {
        let machine = machines::find(asked.machine)?;
        let duration = time_for(asked)?;
        Ok(RunSetting::on((asked.machine.to_string(), machine), duration, asked))
    }

    /// The setting in which all of `kernels` run, of whatever kind they are.
    ///
    /// # Errors
    /// There is no such machine or workload, or one of the kernels cannot run like that.
    pub fn of_kernels(kernels: &[Kernel], asked: &SettingWords<'_>) -> Result<RunSetting, LabError> {
        let bound = || kernels.iter().filter(|kernel| !kernel.takes_presets());
        // This host is the one machine that it is; of emulated ones there are many.
        let Some(first) = bound().min_by_key(|kernel| kernel.has_virtual_time()) else {
            return RunSetting::of(asked);
        };
        if !asked.time.is_all() && kernels.iter().any(|kernel| !kernel.has_virtual_time()) {
            return Err(LabError::new(
                "--time is for kernels in virtual time: real ones have a clock of their own",
                "keep their traces (run --trace FILE), and give --time to 'fairlab summary' and the like",
            ));
        }
        let machine = first.machine(asked.machine)?;
        first.check_workload(asked.workload)?;
        let all_run_commands = kernels.iter().all(Kernel::runs_commands);
        let duration = match all_run_commands && is_command(asked.workload) {
            true => asked.duration.unwrap_or(COMMAND_DURATION),
            false => time_for(asked)?,
        };
        if bound().any(|kernel| kernel.origin() != first.origin()) {
            return Err(LabError::new(
                "this host and booted kernels have different machines",
                "compare each with modelled kernels, or run them one by one",
            ));
        }
        let setting = RunSetting::on(machine, duration, asked);
        if kernels.iter().all(Kernel::settles) {
            return Ok(setting);
        }
        if setting.warmup.is_some_and(|warmup| warmup > Ns::ZERO) {
            return Err(LabError::new(
                "--warmup is for modelled kernels: real ones are measured from the start",
                "leave it out, or name modelled kernels only",
            ));
        }
        Ok(RunSetting { warmup: Some(Ns::ZERO), ..setting })
    }

    fn on((machine_name, machine): (String, Machine), duration: Ns, asked: &SettingWords<'_>) -> RunSetting {
        let machine = if asked.exact { machine.exact() } else { machine };
        RunSetting {
            machine_name,
            warmup: asked.warmup,
            first_seed: asked.first_seed,
            by_name: asked.by_name.cloned().unwrap_or_default(),
            time: asked.time,
            ..RunSetting::new(machine, asked.workload.to_vec(), duration)
        }
    }

    /// The command line of `fairlab compare` that repeats what was found between two kernels.
    pub fn compare_command(&self, before: &str, after: &str, runs: usize) -> String {
        self.compare_command_of(&format!("--kernel {} --kernel {}", quoted(before), quoted(after)), runs)
    }

    /// The same of sides in words, such as `--kernel v6.12 --vary threads=4,5`.
    pub fn compare_command_of(&self, sides: &str, runs: usize) -> String {
        let workload = line_of(&self.workload);
        let exact = if self.machine.chance.is_none() { " --exact" } else { "" };
        let time = if self.time.is_all() { String::new() } else { format!(" --time {}", self.time) };
        format!(
            "fairlab compare {workload} --machine {} {sides} --seed {} --runs {runs} --duration {}{}{exact}{time}",
            quoted(&self.machine_name),
            self.first_seed,
            duration(self.duration),
            self.warmup_words()
        )
    }

    /// How long runs settle, as words of a command; empty where nothing is said of it.
    pub fn warmup_words(&self) -> String {
        self.warmup.map_or(String::new(), |warmup| format!(" --warmup {}", duration(warmup)))
    }
}

/// How long each run of a workload lasts at most.
fn time_for(asked: &SettingWords<'_>) -> Result<Ns, LabError> {
    let workload = workloads::build(asked.workload)?;
    let by_itself = || workload.runtime().map(|runtime| runtime + MARGIN);
    let within = || asked.time.to.or(asked.time.from.map(|from| from + DEFAULT_DURATION));
    Ok(asked.duration.or_else(by_itself).or_else(within).unwrap_or(DEFAULT_DURATION))
}

/// A duration as the command line takes it, exact: in the greatest unit that leaves no rest, or in seconds or milliseconds with what is
/// left behind the point.
pub(crate) fn duration(time: Ns) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let whole = units.into_iter().find(|(unit, _)| time.0.is_multiple_of(*unit));
    let greatest = units.into_iter().find(|(unit, _)| time.0 >= *unit);
    let read_easily = whole.filter(|(unit, _)| time.0 / unit < SIX_DIGITS);
    let (unit, name) = read_easily.or(greatest).unwrap_or((1, "ns"));
    let digits = unit.ilog10() as usize;
    let rest = match time.0 % unit {
        0 => String::new(),
        rest => format!(".{rest:0digits$}"),
    };
    format!("{}{}{name}", time.0 / unit, rest.trim_end_matches('0'))
}

/// Numbers from here on are not easily read.
const SIX_DIGITS: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(String::from).collect()
    }

    fn asked(workload: &[String]) -> SettingWords<'_> {
        SettingWords {
            machine: DEFAULT_MACHINE,
            workload,
            warmup: None,
            duration: None,
            exact: false,
            first_seed: 1,
            by_name: None,
            time: TimeRange::default(),
        }
    }

    fn kernels(names: &[&str]) -> Vec<Kernel> {
        names.iter().map(|name| Kernel::parse(name).expect(name)).collect()
    }

    #[test]
    fn commands_can_be_pasted() {
        let setting = RunSetting {
            machine: machines::find("laptop8").expect("a machine"),
            machine_name: "laptop8".to_string(),
            workload: ["rt-app", "my file.json"].map(String::from).to_vec(),
            warmup: None,
            duration: Ns::from_ms(50),
            first_seed: 1,
            by_name: NamesWanted::default(),
            time: TimeRange::default(),
        };
        assert_eq!(
            setting.compare_command("v6.5", "v6.5+NO_X,a=1", 3),
            "fairlab compare rt-app 'my file.json' --machine laptop8 --kernel v6.5 --kernel v6.5+NO_X,a=1 --seed 1 --runs 3 --duration 50ms"
        );
    }

    #[test]
    fn durations_are_exact_and_short() {
        for (time, told) in [
            (68_054_466_272, "68.054466272s"),
            (68_054_466_000, "68.054466s"),
            (300_000_000, "300ms"),
            (1_500_000_000, "1500ms"),
            (1_234_567, "1.234567ms"),
            (200_000_000_000_000, "200000s"),
            (250_000, "250us"),
            (99_999, "99999ns"),
            (0, "0s"),
        ] {
            assert_eq!(duration(Ns(time)), told);
            assert!(time == 0 || fairlab_files::quantities::parse_duration(told) == Ok(Ns(time)), "{told}");
        }
    }

    #[test]
    fn modelled_kernels_go_where_those_beside_them_run() {
        let workload = words("schbench -r 2");
        for (names, machine, warmup) in [
            (&["v6.6"][..], "laptop8", None),
            (&["v6.6", "qemu:sid"], "emulated:1x4x1", Some(Ns::ZERO)),
            (&["host", "v6.6"], "host", Some(Ns::ZERO)),
        ] {
            let setting = RunSetting::of_kernels(&kernels(names), &asked(&workload)).expect("a setting");
            assert_eq!((setting.machine_name.as_str(), setting.warmup), (machine, warmup), "{names:?}");
            assert_eq!(setting.duration, Ns::from_secs(62), "{names:?}");
        }
    }

    #[test]
    fn a_command_is_for_kernels_that_all_run_commands() {
        let workload = words("true");
        let alone = RunSetting::of_kernels(&kernels(&["host"]), &asked(&workload)).expect("a setting");
        assert_eq!(alone.duration, COMMAND_DURATION);
        for names in [&["host", "v6.6"][..], &["qemu:sid", "v6.6"], &["v6.6"]] {
            let refused = RunSetting::of_kernels(&kernels(names), &asked(&workload)).expect_err("no command");
            assert_eq!(refused.problem, "unknown workload 'true'", "{names:?}");
        }
    }

    #[test]
    fn what_kernels_cannot_do_together_is_refused() {
        let workload = words("schbench");
        let of = |names: &[&str], asked: SettingWords<'_>| {
            RunSetting::of_kernels(&kernels(names), &asked).expect_err("refused").problem
        };
        let plain = asked(&workload);
        assert!(of(&["qemu:sid", "host"], plain).contains("have different machines"));
        let settled = SettingWords { warmup: Some(Ns::from_secs(1)), ..plain };
        assert!(of(&["v6.6", "host"], settled).contains("--warmup is for modelled kernels"));
        let elsewhere = SettingWords { machine: "vm40", ..plain };
        assert!(of(&["v6.6", "qemu:sid"], elsewhere).contains("not on vm40"));
    }
}
