//! Whole runs side by side: the same workload on a booted kernel and on the modelled one of the same generation.
//!
//! A walk along a recording says how often the model decides as the kernel did; this says whether runs that follow their own
//! decisions come to the same numbers.
//!
//! Must not know: how a kernel is booted, how the answer is shown.

mod contrast;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::{env, fs};

use fairlab_analysis::statistics::mean;
use fairlab_event::{Ns, Sink};
use fairlab_kernel::Generation;

use fairlab_files::workers;
use fairlab_lab::booted::{Kept, QemuKernel, QemuSpec, run_and_keep};
use fairlab_lab::machines::{emulated_hardware, emulated_machine};
use fairlab_lab::{LabError, OutputFolder, Progress, RunResult, RunSpec, run};
use fairlab_verify::{VerifyOptions, verify};

pub use contrast::{Change, Contrast, Direction, Predicted, Seen, contrasts, predicted};

/// A booted kernel and its generation.
const KERNELS: [(&str, &str); 4] = [
    ("qemu:bullseye", "debian-5.10"),
    ("qemu:bookworm", "debian-6.1"),
    ("qemu:trixie", "debian-6.12"),
    ("qemu:sid", "debian-7.2"),
];

/// What runs, and on which machine: so long that neither the start nor a single wait decides, and no longer, since a second
/// of a guest takes many of the host.
const WORKLOADS: [(&str, &str, &str); 5] = [
    ("hackbench", "hackbench -g 1 -f 4 -l 8000", "emulated:4"),
    ("schbench", "schbench -m 1 -t 4 -r 5", "emulated:4"),
    // Unlike periods: tasks that always meet alike move as their first meetings decided, another time half as often.
    ("periodic", "periodic -n 3 -c 2000 -p 10000 -d 370 -r 3", "emulated:2"),
    ("weights", "spinners -n 0,0 -g 100,200,400 --run-us 3000 -s 1000 -r 8", "emulated:2"),
    ("nice", "spinners -n -10,-5,0,0,5,10,19 --run-us 3000 -s 1000 -r 4", "emulated:2"),
];

/// Boots of each kernel under each workload. One is not enough: between two that differ in when the workload starts, by some
/// ms, migrations differ by half.
pub const BOOTS: u64 = 3;

/// Seeds of the modelled runs, which cost little.
pub const SEEDS: u64 = 27;

/// Waits from here on are compared without regard to ticks, too, ns.
const LONG_WAIT_NS: f64 = 1e6;

/// So many events in all boots together differ by 15 % by chance as a rule (their number's square root).
const EVENTS_LEAST: f64 = 45.0;

/// When a run that has not ended is stopped.
const DURATION: Ns = Ns::from_secs(30);

/// In what a difference is expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A share of what the booted kernel shows, or of a tick where that is longer: what is shorter than a tick is the
    /// emulated work of the kernel, which the scheduler does not decide.
    Wait,
    /// A share of the wait that the booted kernel shows, however short; judged of those from [`LONG_WAIT_NS`] on.
    LongWait,
    /// A share of what the booted kernel shows, or of [`EVENTS_LEAST`] in all runs where there are fewer: of those, chance alone
    /// takes or adds more than the bar. Of switches.
    Switches,
    /// The same of migrations.
    Migrations,
    /// The difference of two shares of the whole.
    Share,
}

impl Measure {
    /// How a metric is judged; `None` for metrics that are not.
    fn of(metric: &str) -> Option<Measure> {
        match metric {
            "wakeup_latency_ns_p50" | "wakeup_latency_ns_p99" => Some(Measure::Wait),
            "switches_per_s" => Some(Measure::Switches),
            "migrations_per_s" => Some(Measure::Migrations),
            "idle_share" => Some(Measure::Share),
            _ if metric.ends_with("_share")
                && (metric.starts_with("nice") || metric.starts_with("group")) =>
            {
                Some(Measure::Share)
            }
            _ => None,
        }
    }

    /// How far the median of all errors may go.
    pub const fn bar(self) -> f64 {
        match self {
            Measure::Wait | Measure::LongWait => 0.25,
            Measure::Switches | Measure::Migrations => 0.15,
            Measure::Share => 0.02,
        }
    }

    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Wait => "waits, in ticks",
            Measure::LongWait => "waits of a millisecond or more, as they are",
            Measure::Switches => "switches",
            Measure::Migrations => "migrations",
            Measure::Share => "shares",
        }
    }

    fn error(self, booted: f64, modelled: f64, run: Run) -> f64 {
        let difference = (modelled - booted).abs();
        match self {
            Measure::Wait => difference / booted.max(run.tick_ns),
            Measure::LongWait => long_wait_error(booted, modelled),
            Measure::Switches | Measure::Migrations => difference / booted.max(EVENTS_LEAST / run.seconds),
            Measure::Share => difference,
        }
    }
}

/// A difference as a share of the booted kernel's wait.
fn long_wait_error(booted: f64, modelled: f64) -> f64 {
    (modelled - booted).abs() / booted
}

/// What differences are measured against.
#[derive(Clone, Copy, Debug)]
struct Run {
    tick_ns: f64,
    /// How long the booted ones took together.
    seconds: f64,
}

/// One metric of one workload on both.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The metric.
    pub metric: String,
    /// How it is judged.
    pub measure: Measure,
    /// On the booted kernel, a value each run.
    pub booted: Runs,
    /// On the modelled one.
    pub modelled: Runs,
    /// How far the mean of the modelled is off the mean of the booted.
    pub error: f64,
}

/// A metric of several runs, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs(Vec<f64>);

impl Runs {
    /// The values of a metric; `None` if no run has it.
    fn of(metric: &str, runs: &[RunResult]) -> Option<Runs> {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.metric(metric)).collect();
        (!values.is_empty()).then_some(Runs(values))
    }

    /// The value of each run.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The mean of all.
    pub fn mean(&self) -> f64 {
        mean(&self.0)
    }

    /// The least.
    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The greatest.
    pub fn greatest(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

/// One workload on one kernel, booted and modelled.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The modelled kernel.
    pub kernel: &'static str,
    /// The booted one's release.
    pub release: String,
    /// The workload's short name.
    pub workload: &'static str,
    /// Its command line.
    pub command: &'static str,
    /// The metrics.
    pub pairs: Vec<Pair>,
    /// Decisions of the booted runs that were judged, and those that the model shares.
    pub verified: (u64, u64),
}

/// The errors of one measure, in the middle.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// What was measured.
    pub measure: Measure,
    /// Of how many.
    pub pairs: usize,
    /// The middle of the errors.
    pub median: f64,
    /// The greatest.
    pub greatest: f64,
}

/// Runs each workload on both kernels of each pair where the name of one of the three holds `only`, `jobs` at a time. Gives
/// `None` when `stop` was set before the end.
///
/// # Errors
/// A kernel cannot be booted, or a run fails.
pub fn side_by_side(
    only: &str,
    jobs: usize,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<Option<Vec<Beside>>, LabError> {
    let cases: Vec<_> = KERNELS
        .into_iter()
        .flat_map(|kernels| WORKLOADS.into_iter().map(move |workload| (kernels, workload)))
        .filter(|((booted, modelled), (name, _, _))| {
            [booted, modelled, name].iter().any(|name| name.contains(only))
        })
        .collect();
    if cases.is_empty() {
        let kernels = KERNELS.map(|(booted, _)| booted).join(", ");
        let workloads = WORKLOADS.map(|(name, _, _)| name).join(", ");
        let known = format!("there are the kernels {kernels} and the workloads {workloads}");
        return Err(LabError::new(format!("no kernel and no workload is called '{only}'"), known));
    }
    let found = workers::for_each(&cases, jobs, on_progress, stop, |case| one(case.0, case.1, stop))?;
    Ok(found.into_iter().collect())
}

type Kernels = (&'static str, &'static str);
type Workload = (&'static str, &'static str, &'static str);

fn one(
    (booted, modelled): Kernels,
    (name, command, machine): Workload,
    stop: &AtomicBool,
) -> Result<Option<Beside>, LabError> {
    let unknown = || LabError::new(format!("{booted} on {machine} cannot be booted"), "report this");
    let hardware = emulated_hardware(machine).ok_or_else(unknown)??;
    let generation: Generation = modelled.parse()?;
    let spec = QemuSpec {
        kernel: QemuKernel::parse(booted).ok_or_else(unknown)??,
        machine: machine.to_string(),
        hardware: hardware.clone(),
        workload: command.split(' ').map(str::to_string).collect(),
        seed: 1,
        duration: DURATION,
        trace: None,
    };
    let (mut real, mut verified, mut release) = (Vec::new(), (0, 0), String::new());
    let mut first_cpus = Vec::new();
    for seed in 1..=BOOTS {
        let seeded = QemuSpec { seed, ..spec.clone() };
        let Some(booted) = boot_and_verify(&seeded, &generation, &mut (), stop)? else {
            return Ok(None);
        };
        first_cpus.push(booted.kept.first_cpu);
        real.push(booted.kept.result);
        release = booted.kept.release;
        verified = (verified.0 + booted.verified.0, verified.1 + booted.verified.1);
    }
    let machine = emulated_machine(&hardware, modelled)?;
    let tick_ns = machine.tick().0 as f64;
    let seconds = real.iter().map(|run| run.simulated_ns as f64 / 1e9).sum();
    let mut runs = Vec::new();
    // CPUs in turn are not equally fast, so that where a workload begins matters: as often here as there.
    for (seed, &first_cpu) in (1..=SEEDS).zip(first_cpus.iter().cycle()) {
        let spec = RunSpec {
            first_cpu: Some(first_cpu),
            // A booted one is measured from its start.
            warmup: Some(Ns::ZERO),
            ..RunSpec::new(generation.clone().into(), machine.clone(), spec.workload.clone(), seed, DURATION)
        };
        let Some(result) = run(&spec, stop)? else { return Ok(None) };
        runs.push(result);
    }
    let pairs = pairs(&real, &runs, Run { tick_ns, seconds });
    Ok(Some(Beside { kernel: modelled, release, workload: name, command, pairs, verified }))
}

/// A booted run.
pub struct BootedRun {
    /// What the run came to, its recording kept.
    pub kept: Kept,
    /// As in [`Beside`].
    pub verified: (u64, u64),
}

/// Boots, runs, and holds what the kernel decided against the rules of `generation`. `onlooker` sees what happened while the
/// workload ran, counted from its beginning. Gives `None` when `stop` was set before the end.
pub fn boot_and_verify(
    spec: &QemuSpec,
    generation: &Generation,
    onlooker: &mut dyn Sink,
    stop: &AtomicBool,
) -> Result<Option<BootedRun>, LabError> {
    let place = Place::new();
    let folder = OutputFolder::create(&place.0)?;
    let Some(kept) = run_and_keep(spec, &folder, onlooker, stop)? else { return Ok(None) };
    folder.finish()?;
    let options = VerifyOptions { misses: 0, clock_hz: Some(1_000_000_000), ..VerifyOptions::default() };
    let agreement = verify(&place.0, generation, &options)?;
    let kinds = agreement.kinds.iter();
    let verified = kinds.fold((0, 0), |sum, (_, kind)| (sum.0 + kind.all.judged, sum.1 + kind.all.agree));
    Ok(Some(BootedRun { kept, verified }))
}

fn pairs(real: &[RunResult], runs: &[RunResult], run: Run) -> Vec<Pair> {
    let names = real.first().map_or(&[][..], |first| &first.metrics);
    let pair = |(metric, _): &(String, f64)| {
        let measure = Measure::of(metric)?;
        let (booted, modelled) = (Runs::of(metric, real)?, Runs::of(metric, runs)?);
        let error = measure.error(booted.mean(), modelled.mean(), run);
        Some(Pair { metric: metric.clone(), measure, booted, modelled, error })
    };
    names.iter().filter_map(pair).collect()
}

/// The errors of all workloads on all kernels, by measure.
pub fn summaries(all: &[Beside]) -> Vec<Summary> {
    let error = |pair: &Pair, measure: Measure| match measure {
        Measure::LongWait if pair.measure == Measure::Wait && pair.booted.mean() >= LONG_WAIT_NS => {
            Some(long_wait_error(pair.booted.mean(), pair.modelled.mean()))
        }
        _ => (pair.measure == measure).then_some(pair.error),
    };
    let of = |measure: Measure| {
        let pairs = all.iter().flat_map(|beside| &beside.pairs);
        let mut errors: Vec<f64> = pairs.filter_map(|pair| error(pair, measure)).collect();
        errors.sort_by(f64::total_cmp);
        let greatest = *errors.last()?;
        Some(Summary { measure, pairs: errors.len(), median: errors[errors.len() / 2], greatest })
    };
    let measures = [Measure::Wait, Measure::LongWait, Measure::Switches, Measure::Migrations, Measure::Share];
    measures.into_iter().filter_map(of).collect()
}

/// A folder's name that is free, and is removed with this.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        Place(env::temp_dir().join(format!("fairlab-beside-{}-{number}", std::process::id())))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_compared_in_ticks_and_shares_as_they_are() {
        let run = Run { tick_ns: 4e6, seconds: 3.0 };
        let wait = Measure::of("wakeup_latency_ns_p99").expect("judged");
        assert!(wait.error(20_000.0, 5_000.0, run) < 0.01);
        assert!((wait.error(8e6, 4e6, run) - 0.5).abs() < 1e-9);
        assert!((Measure::LongWait.error(2e6, 1e6, run) - 0.5).abs() < 1e-9);
        assert!((Measure::Migrations.error(100.0, 120.0, run) - 0.2).abs() < 1e-9);
        // Three events and none, of the 45 that tell anything.
        assert!((Measure::Migrations.error(0.0, 1.0, run) - 3.0 / 45.0).abs() < 1e-9);
        assert!((Measure::Share.error(0.5, 0.49, run) - 0.01).abs() < 1e-9);
        assert_eq!(Measure::of("nice-5_share"), Some(Measure::Share));
        assert_eq!(Measure::of("unconserved_share"), None);
    }

    #[test]
    fn a_name_that_no_kernel_and_no_workload_has_is_refused() {
        let error = side_by_side("plan9", 1, &|_| {}, &AtomicBool::new(false)).expect_err("there is none");
        assert!(error.to_string().contains("no kernel and no workload is called 'plan9'"), "{error}");
    }

    #[test]
    fn every_kernel_and_workload_is_known() {
        for (booted, modelled) in KERNELS {
            assert!(QemuKernel::is_name(booted) && modelled.parse::<Generation>().is_ok(), "{booted}");
        }
        for (name, command, machine) in WORKLOADS {
            let words: Vec<String> = command.split(' ').map(str::to_string).collect();
            assert!(fairlab_lab::workloads::build(&words).is_ok(), "{name}");
            assert!(emulated_hardware(machine).is_some_and(|hardware| hardware.is_ok()), "{machine}");
        }
    }
}
