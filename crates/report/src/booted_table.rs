//! Whole runs side by side: one workload on a booted kernel, on its model, and on the code of Debian's sources of its
//! release.
//!
//! `verify` says how often the model decides as the kernel did. This table says whether runs that follow their own decisions
//! give equal numbers.
//!
//! Must not know: how a kernel is booted, how the answer is shown.

mod boots;
mod contrast;
mod standing;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::{env, fs};

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::statistics::mean;
use fairlab_boot::Hardware;
use fairlab_event::{Cpu, EscapedText, Ns, Sink};
use fairlab_kernel::Generation;
use fairlab_sim::Machine;

use fairlab_files::workers;
use fairlab_lab::booted::{KeptBoot, QemuKernel, QemuSpec, run_and_keep};
use fairlab_lab::machines::{emulated_hardware, emulated_machine};
use fairlab_lab::{Kernel, LabError, OutputFolder, Progress, RunResult, RunSpec, run};
use fairlab_verify::{VerifyOptions, verify};

use boots::{BootFile, BootMetrics};
pub use contrast::{
    ChangePrediction, Contrast, ContrastDirection, KernelChange, PredictionScore, contrasts, predicted,
};
pub use standing::{OWN_BAR, OwnCodeStanding, OwnCodeStandings, standings};

/// A booted kernel, its generation, and the kernel that is built from its sources.
const KERNELS: [ReleaseKernels; 4] = [
    ReleaseKernels { booted: "qemu:bullseye", modelled: "debian-5.10", own: "src:debian:5.10" },
    ReleaseKernels { booted: "qemu:bookworm", modelled: "debian-6.1", own: "src:debian:6.1" },
    ReleaseKernels { booted: "qemu:trixie", modelled: "debian-6.12", own: "src:debian:6.12" },
    ReleaseKernels { booted: "qemu:sid", modelled: "debian-7.2", own: "src:debian:7.2" },
];

/// The names of one release's kernels.
#[derive(Clone, Copy, Debug)]
struct ReleaseKernels {
    booted: &'static str,
    modelled: &'static str,
    own: &'static str,
}

/// What runs, and on which machine: so long that neither the start nor a single wait decides, and no longer, since a second
/// of a guest takes many of the host.
const WORKLOADS: [TableWorkload; 5] = [
    TableWorkload::new("hackbench", "hackbench -g 1 -f 4 -l 8000", "emulated:4"),
    TableWorkload::new("schbench", "schbench -m 1 -t 4 -r 5", "emulated:4"),
    // Unlike periods: tasks that always meet alike move as their first meetings decided, another time half as often.
    TableWorkload::new("periodic", "periodic -n 3 -c 2000 -p 10000 -d 370 -r 3", "emulated:2"),
    TableWorkload::new("weights", "spinners -n 0,0 -g 100,200,400 --run-us 3000 -s 1000 -r 8", "emulated:2"),
    TableWorkload::new("nice", "spinners -n -10,-5,0,0,5,10,19 --run-us 3000 -s 1000 -r 4", "emulated:2"),
];

/// A workload: its short name, its command line, its machine.
#[derive(Clone, Copy, Debug)]
struct TableWorkload {
    name: &'static str,
    command: &'static str,
    machine: &'static str,
}

impl TableWorkload {
    const fn new(name: &'static str, command: &'static str, machine: &'static str) -> TableWorkload {
        TableWorkload { name, command, machine }
    }

    fn words(self) -> Vec<String> {
        self.command.split(' ').map(str::to_string).collect()
    }
}

/// Boots of each kernel under each workload. One is not enough: between two that differ in when the workload starts, by some
/// ms, migrations differ by half.
pub const BOOTS: u64 = 3;

/// Seeds of the runs by the model and by the tree's own code, which cost little.
pub const SEEDS: u64 = 27;

/// Waits from here on are compared without regard to ticks, too, ns.
const LONG_WAIT_NS: f64 = 1e6;

/// So many events in all boots together differ by 15 % by chance as a rule (their number's square root).
const EVENTS_LEAST: f64 = 45.0;

/// When a run that has not ended is stopped.
const DURATION: Ns = Ns::from_secs(30);

/// How a difference is expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceMeasure {
    /// A share of what the booted kernel shows, or of a tick where that is longer: what is shorter than a tick is the
    /// emulated work of the kernel, which the scheduler does not decide.
    Wait,
    /// A share of the wait that the booted kernel shows, however short; judged of those from [`LONG_WAIT_NS`] on.
    LongWait,
    /// A share of what the booted kernel shows, or of [`EVENTS_LEAST`] in all runs where there are fewer: of those, chance alone
    /// takes or adds more than the bar. Of switches.
    Switches,
    /// As `Switches`, of migrations.
    Migrations,
    /// The difference of two shares of the whole.
    Share,
}

impl DifferenceMeasure {
    /// How a metric is judged; `None` for metrics that are not.
    fn of(metric: &str) -> Option<DifferenceMeasure> {
        match metric {
            "wakeup_latency_ns_p50" | "wakeup_latency_ns_p99" => Some(DifferenceMeasure::Wait),
            "switches_per_s" => Some(DifferenceMeasure::Switches),
            "migrations_per_s" => Some(DifferenceMeasure::Migrations),
            "idle_share" => Some(DifferenceMeasure::Share),
            _ if metric.ends_with("_share")
                && (metric.starts_with("nice") || metric.starts_with("group")) =>
            {
                Some(DifferenceMeasure::Share)
            }
            _ => None,
        }
    }

    /// How far the median of all errors may go.
    pub const fn bar(self) -> f64 {
        match self {
            DifferenceMeasure::Wait | DifferenceMeasure::LongWait => 0.25,
            DifferenceMeasure::Switches | DifferenceMeasure::Migrations => 0.15,
            DifferenceMeasure::Share => 0.02,
        }
    }

    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            DifferenceMeasure::Wait => "waits, in ticks",
            DifferenceMeasure::LongWait => "waits of a millisecond or more, as they are",
            DifferenceMeasure::Switches => "switches",
            DifferenceMeasure::Migrations => "migrations",
            DifferenceMeasure::Share => "shares",
        }
    }

    fn error(self, booted: f64, other: f64, run: TableScale) -> f64 {
        let difference = (other - booted).abs();
        match self {
            DifferenceMeasure::Wait => difference / booted.max(run.tick_ns),
            DifferenceMeasure::LongWait => long_wait_error(booted, other),
            DifferenceMeasure::Switches | DifferenceMeasure::Migrations => {
                difference / booted.max(EVENTS_LEAST / run.seconds)
            }
            DifferenceMeasure::Share => difference,
        }
    }
}

/// A difference as a share of the booted kernel's wait.
fn long_wait_error(booted: f64, other: f64) -> f64 {
    (other - booted).abs() / booted
}

/// What differences are measured against.
#[derive(Clone, Copy, Debug)]
struct TableScale {
    tick_ns: f64,
    /// How long the booted ones took together.
    seconds: f64,
}

/// One metric of one workload on the three.
#[derive(Clone, Debug)]
pub struct TableRow {
    /// The metric.
    pub metric: String,
    /// How it is judged.
    pub measure: DifferenceMeasure,
    /// On the booted kernel, a value each run.
    pub booted: RunValues,
    /// By the model.
    pub modelled: TableSide,
    /// By the tree's own code.
    pub own: TableSide,
}

/// A metric beside the booted kernel's.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSide {
    /// A value each run.
    pub runs: RunValues,
    /// How far their mean is off the booted kernel's.
    pub error: f64,
}

/// A metric of several runs, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct RunValues(Vec<f64>);

impl RunValues {
    /// The values that there are; `None` if no run has one.
    fn of(values: impl Iterator<Item = Option<f64>>) -> Option<RunValues> {
        let values: Vec<f64> = values.flatten().collect();
        (!values.is_empty()).then_some(RunValues(values))
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

/// One workload on one kernel: booted, modelled, and by its own code.
#[derive(Clone, Debug)]
pub struct KernelsBesideBoot {
    /// The modelled kernel.
    pub kernel: &'static str,
    /// The booted one's release.
    pub release: String,
    /// The release of the sources.
    pub own_release: String,
    /// The workload's short name.
    pub workload: &'static str,
    /// Its command line.
    pub command: &'static str,
    /// The metrics.
    pub rows: Vec<TableRow>,
    /// Decisions of the booted runs that were judged, and those that the model shares.
    pub verified: (u64, u64),
}

/// The errors of one measure, in the middle.
#[derive(Clone, Copy, Debug)]
pub struct MeasureSummary {
    /// What was measured.
    pub measure: DifferenceMeasure,
    /// Of how many.
    pub rows: usize,
    /// By the model.
    pub modelled: ErrorSpread,
    /// By the trees' own code.
    pub own: ErrorSpread,
}

/// Errors of many.
#[derive(Clone, Copy, Debug)]
pub struct ErrorSpread {
    /// The middle.
    pub median: f64,
    /// The greatest.
    pub greatest: f64,
}

/// What is put side by side, and how.
#[derive(Clone, Copy, Debug)]
pub struct TableRequest<'a> {
    /// Words; each must be in the name of one of the kernels, or of the workload.
    pub only: &'a str,
    /// How many workloads run at once.
    pub jobs: usize,
    /// The folder that keeps what booted kernels did. What it has is not booted, and what it lacks is put there.
    pub boots: Option<&'a Path>,
}

/// Runs each workload on the three kernels of each release, as far as they are wanted. Gives `None` when `stop` was set before
/// the end.
///
/// # Errors
/// A kernel cannot be booted or built, or a run fails.
pub fn side_by_side(
    wanted: &TableRequest<'_>,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<Option<Vec<KernelsBesideBoot>>, LabError> {
    let cases: Vec<_> = KERNELS
        .into_iter()
        .flat_map(|kernels| WORKLOADS.into_iter().map(move |workload| TableCase { kernels, workload }))
        .filter(|case| wanted.only.split_whitespace().all(|word| case.has(word)))
        .collect();
    if cases.is_empty() {
        let kernels = KERNELS.map(|kernels| kernels.booted).join(", ");
        let workloads = WORKLOADS.map(|workload| workload.name).join(", ");
        let known = format!("there are the kernels {kernels} and the workloads {workloads}");
        let only = EscapedText(wanted.only);
        return Err(LabError::new(format!("no kernel and no workload is called '{only}'"), known));
    }
    let found =
        workers::for_each(&cases, wanted.jobs, on_progress, stop, |case| case.run(wanted.boots, stop))?;
    Ok(found.into_iter().collect())
}

/// A workload on the kernels of one release.
#[derive(Clone, Copy, Debug)]
struct TableCase {
    kernels: ReleaseKernels,
    workload: TableWorkload,
}

impl TableCase {
    fn has(self, word: &str) -> bool {
        let ReleaseKernels { booted, modelled, own } = self.kernels;
        [booted, modelled, own, self.workload.name].iter().any(|name| name.contains(word))
    }

    fn run(self, kept: Option<&Path>, stop: &AtomicBool) -> Result<Option<KernelsBesideBoot>, LabError> {
        let TableCase { kernels, workload } = self;
        let hardware = emulated_hardware(workload.machine).ok_or_else(|| self.cannot_be_booted())??;
        let machine = emulated_machine(&hardware, kernels.modelled)?;
        let Some(boots) = self.boots(hardware, kept, stop)? else { return Ok(None) };
        let modelled = kernels.modelled.parse::<Generation>()?.into();
        let Some(modelled) = self.runs_of(&modelled, &machine, &boots, stop)? else { return Ok(None) };
        let own = Kernel::parse(kernels.own)?;
        let Some(runs) = self.runs_of(&own, &machine, &boots, stop)? else { return Ok(None) };
        let run = TableScale { tick_ns: machine.tick().0 as f64, seconds: boots.seconds() };
        Ok(Some(KernelsBesideBoot {
            kernel: kernels.modelled,
            verified: boots.verified(),
            own_release: own.release(),
            workload: workload.name,
            command: workload.command,
            rows: rows(&boots.boots, &modelled, &runs, run),
            release: boots.release,
        }))
    }

    fn cannot_be_booted(self) -> LabError {
        let TableCase { kernels, workload } = self;
        LabError::new(format!("{} on {} cannot be booted", kernels.booted, workload.machine), "report this")
    }

    /// What the booted kernel does: what is kept of it, or what it does now.
    fn boots(
        self,
        hardware: Hardware,
        kept: Option<&Path>,
        stop: &AtomicBool,
    ) -> Result<Option<BootFile>, LabError> {
        let TableCase { kernels, workload } = self;
        let none = BootFile::none(kernels.modelled, workload);
        if let Some(known) = kept.map(|folder| none.kept(folder)).transpose()?.flatten() {
            return Ok(Some(known));
        }
        let spec = QemuSpec {
            kernel: QemuKernel::parse(kernels.booted).ok_or_else(|| self.cannot_be_booted())??,
            machine: workload.machine.to_string(),
            hardware,
            workload: workload.words(),
            seed: 1,
            duration: DURATION,
            trace: None,
            by_name: NamesWanted::default(),
        };
        let (generation, mut boots) = (kernels.modelled.parse()?, none);
        for seed in 1..=BOOTS {
            let spec = QemuSpec { seed, ..spec.clone() };
            let Some(booted) = boot_and_verify(&spec, &generation, &mut (), stop)? else { return Ok(None) };
            boots.release.clone_from(&booted.kept.release);
            boots.boots.push(BootMetrics::of(seed, &booted));
        }
        kept.map(|folder| boots.keep(folder)).transpose()?;
        Ok(Some(boots))
    }

    /// Runs of a kernel that draws the machine's chance by seed. CPUs in turn are not equally fast, so that where a workload
    /// begins matters: as often here as there.
    fn runs_of(
        self,
        kernel: &Kernel,
        machine: &Machine,
        boots: &BootFile,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<RunResult>>, LabError> {
        let run = |(seed, first_cpu): (u64, Cpu)| {
            let words = self.workload.words();
            run(
                &RunSpec {
                    first_cpu: Some(first_cpu),
                    // A booted one is measured from its start.
                    warmup: Some(Ns::ZERO),
                    ..RunSpec::new(kernel.clone(), machine.clone(), words, seed, DURATION)
                },
                stop,
            )
        };
        (1..=SEEDS).zip(boots.first_cpus().cycle()).map(run).collect()
    }
}

/// A booted run.
pub struct BootedRun {
    /// What the run came to, its recording kept.
    pub kept: KeptBoot,
    /// As in [`KernelsBesideBoot`].
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
    let place = FreeFolder::new();
    let folder = OutputFolder::create(&place.0)?;
    let Some(kept) = run_and_keep(spec, &folder, onlooker, stop)? else { return Ok(None) };
    folder.finish()?;
    let options = VerifyOptions { misses: 0, clock_hz: Some(1_000_000_000), ..VerifyOptions::default() };
    let agreement = verify(&place.0, generation, &options)?;
    let kinds = agreement.kinds.iter();
    let verified = kinds.fold((0, 0), |sum, (_, kind)| (sum.0 + kind.all.judged, sum.1 + kind.all.agree));
    Ok(Some(BootedRun { kept, verified }))
}

fn rows(boots: &[BootMetrics], modelled: &[RunResult], own: &[RunResult], run: TableScale) -> Vec<TableRow> {
    let names = boots.first().map_or(&[][..], |first| &first.metrics);
    let row = |metric: &str| {
        let measure = DifferenceMeasure::of(metric)?;
        let booted = RunValues::of(boots.iter().map(|boot| boot.metric(metric)))?;
        let side = |runs: &[RunResult]| {
            let runs = RunValues::of(runs.iter().map(|run| run.metric(metric)))?;
            Some(TableSide { error: measure.error(booted.mean(), runs.mean(), run), runs })
        };
        let (modelled, own) = (side(modelled)?, side(own)?);
        Some(TableRow { metric: metric.to_string(), measure, booted, modelled, own })
    };
    names.iter().filter_map(|known| row(&known.metric)).collect()
}

/// The errors of all workloads on all kernels, by measure.
pub fn summaries(all: &[KernelsBesideBoot]) -> Vec<MeasureSummary> {
    let of = |measure: DifferenceMeasure| {
        let chosen = all.iter().flat_map(|beside| &beside.rows).filter(|row| row.is_of(measure));
        let chosen = chosen.collect::<Vec<_>>();
        let errors = |side: fn(&TableRow) -> &TableSide| {
            ErrorSpread::of(chosen.iter().map(|row| row.error(side(row), measure)))
        };
        let (modelled, own) = (errors(|row| &row.modelled)?, errors(|row| &row.own)?);
        Some(MeasureSummary { measure, rows: chosen.len(), modelled, own })
    };
    let measures = [
        DifferenceMeasure::Wait,
        DifferenceMeasure::LongWait,
        DifferenceMeasure::Switches,
        DifferenceMeasure::Migrations,
        DifferenceMeasure::Share,
    ];
    measures.into_iter().filter_map(of).collect()
}

impl TableRow {
    fn is_of(&self, measure: DifferenceMeasure) -> bool {
        match measure {
            DifferenceMeasure::LongWait => {
                self.measure == DifferenceMeasure::Wait && self.booted.mean() >= LONG_WAIT_NS
            }
            _ => self.measure == measure,
        }
    }

    fn error(&self, side: &TableSide, measure: DifferenceMeasure) -> f64 {
        match measure {
            DifferenceMeasure::LongWait => long_wait_error(self.booted.mean(), side.runs.mean()),
            _ => side.error,
        }
    }
}

impl ErrorSpread {
    fn of(errors: impl Iterator<Item = f64>) -> Option<ErrorSpread> {
        let mut errors = errors.collect::<Vec<_>>();
        errors.sort_by(f64::total_cmp);
        Some(ErrorSpread { median: *errors.get(errors.len() / 2)?, greatest: *errors.last()? })
    }
}

/// A folder's name that is free, and is removed with this.
struct FreeFolder(PathBuf);

impl FreeFolder {
    fn new() -> FreeFolder {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        FreeFolder(env::temp_dir().join(format!("fairlab-beside-{}-{number}", std::process::id())))
    }
}

impl Drop for FreeFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_compared_in_ticks_and_shares_as_they_are() {
        let run = TableScale { tick_ns: 4e6, seconds: 3.0 };
        let wait = DifferenceMeasure::of("wakeup_latency_ns_p99").expect("judged");
        assert!(wait.error(20_000.0, 5_000.0, run) < 0.01);
        assert!((wait.error(8e6, 4e6, run) - 0.5).abs() < 1e-9);
        assert!((DifferenceMeasure::LongWait.error(2e6, 1e6, run) - 0.5).abs() < 1e-9);
        assert!((DifferenceMeasure::Migrations.error(100.0, 120.0, run) - 0.2).abs() < 1e-9);
        // Three events and none, of the 45 that tell anything.
        assert!((DifferenceMeasure::Migrations.error(0.0, 1.0, run) - 3.0 / 45.0).abs() < 1e-9);
        assert!((DifferenceMeasure::Share.error(0.5, 0.49, run) - 0.01).abs() < 1e-9);
        assert_eq!(DifferenceMeasure::of("nice-5_share"), Some(DifferenceMeasure::Share));
        assert_eq!(DifferenceMeasure::of("unconserved_share"), None);
    }

    #[test]
    fn a_name_that_no_kernel_and_no_workload_has_is_refused() {
        let wanted = TableRequest { only: "plan9", jobs: 1, boots: None };
        let error = side_by_side(&wanted, &|_| {}, &AtomicBool::new(false)).expect_err("there is none");
        assert!(error.to_string().contains("no kernel and no workload is called 'plan9'"), "{error}");
    }

    #[test]
    fn every_kernel_and_workload_is_known() {
        for ReleaseKernels { booted, modelled, own } in KERNELS {
            assert!(QemuKernel::is_name(booted) && modelled.parse::<Generation>().is_ok(), "{booted}");
            let own = Kernel::parse(own).expect("Debian's sources");
            assert!(own.takes_presets() && own.generation().is_none());
        }
        for workload in WORKLOADS {
            assert!(fairlab_lab::workloads::build(&workload.words()).is_ok(), "{}", workload.name);
            let hardware = emulated_hardware(workload.machine);
            assert!(hardware.is_some_and(|hardware| hardware.is_ok()), "{}", workload.machine);
        }
    }
}
