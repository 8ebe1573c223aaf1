//! Scenarios: published reports on the fair scheduler, each reproduced by one command.
//!
//! A scenario runs a report's workload on the report's machine and kernels, puts the published figures beside the
//! measured ones, says of each claim whether it holds, tells how it comes about from what happened in the runs, and
//! takes the guilty rule out to see the effect vanish (*ablation*).
//!
//! The published figures are data. None of them enters a run; where a machine's costs were fitted to a report, the
//! machine says so.
//!
//! Must not know: how a result reaches a user.

mod booted;
pub mod booted_table;
mod eevdf_vhost;
mod idle_cpumask;
mod kworkers;
mod lb_bias;
mod load_balance_rework;
mod nohz_blocked_load;
mod own;
mod passes;
mod picture;
mod render;
mod report;
mod schbench_table;
mod waits;
mod wasted_cores;

use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_files::workers;

use booted::Source;
pub use picture::{Bar, Picture};
pub use report::{Claim, Part, Published, Report};

use fairlab_lab::{LabError, Onlooker, Progress, RunResult, RunSpec, machines, run_watched};

/// A published report that can be reproduced.
#[derive(Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about, in a sentence.
    pub about: &'static str,
    /// The report: who published it, where and when.
    pub source: &'static str,
    /// The commit that is guilty or helpful, with its subject.
    pub commit: &'static str,
    /// The two kernels that differ by it, the older one first: what to try another workload on.
    pub pair: [&'static str; 2],
    /// The report's machine.
    pub machine: &'static str,
    /// The report's workload on a few CPUs, for kernels that are not modelled.
    pub small: Small,
    /// From when on its runs are measured, and why: a sentence.
    measured: &'static str,
    conduct: fn(&Bench<'_>, &mut Report) -> Result<Option<()>, LabError>,
    /// The part that puts real kernels beside the modelled ones, where there is one whose kernels can be booted.
    booted: Option<BesideReal>,
}

/// What puts real kernels of a source beside the modelled ones.
type BesideReal = fn(&Bench<'_>, &mut Report, Source) -> Result<Option<()>, LabError>;

/// A report's workload in a size that a booted kernel can carry.
#[derive(Clone, Copy, Debug)]
pub struct Small {
    /// Its command line.
    pub workload: &'static str,
    /// The machine of the kernels beside.
    pub machine: &'static str,
    /// When to stop it.
    pub duration: Ns,
}

/// Every scenario, in the order in which they are listed.
pub const SCENARIOS: &[Scenario] = &[
    load_balance_rework::SCENARIO,
    idle_cpumask::SCENARIO,
    lb_bias::SCENARIO,
    nohz_blocked_load::SCENARIO,
    eevdf_vhost::SCENARIO,
    wasted_cores::SCENARIO,
];

/// The scenario called `name`.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static Scenario, LabError> {
    SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
        let names = SCENARIOS.iter().map(|scenario| scenario.name).collect::<Vec<_>>().join(", ");
        LabError::new(format!("unknown scenario '{name}'"), format!("known are {names}, and all"))
    })
}

/// What a scenario works with.
pub struct Bench<'a> {
    /// Shorter and fewer runs.
    pub quick: bool,
    /// Nothing is left to chance.
    pub exact: bool,
    /// How long each run settles; without, a report's own runs as its protocol says, and another workload's as long as the
    /// machine takes.
    pub warmup: Option<Ns>,
    /// How many runs go on at once; results do not depend on it.
    pub jobs: usize,
    /// Called after each run of a batch, from any thread.
    pub on_progress: &'a (dyn Fn(Progress) + Sync),
    /// Set by whoever wants an early end.
    pub stop: &'a AtomicBool,
}

impl Scenario {
    /// Does all runs and judges the claims. Gives `None` when it was stopped before its end.
    ///
    /// # Errors
    /// A run fails.
    pub fn run(&self, bench: &Bench<'_>) -> Result<Option<Report>, LabError> {
        let mut report = Report::new(self, bench);
        Ok((self.conduct)(bench, &mut report)?.map(|()| report))
    }

    /// Boots the real kernels of this report and does only what puts the modelled ones beside them. Gives `None` when it was
    /// stopped before its end.
    ///
    /// # Errors
    /// It has none, one cannot be booted, or a run fails.
    pub fn run_booted(&self, bench: &Bench<'_>) -> Result<Option<Report>, LabError> {
        let Some(beside) = self.booted else {
            let with = SCENARIOS.iter().filter(|scenario| scenario.booted.is_some());
            let names = with.map(|scenario| scenario.name).collect::<Vec<_>>().join(" and ");
            return Err(LabError::new(
                format!("no real kernels stand beside those of '{}'", self.name),
                format!("name one of {names}, or boot one beside its two with --kernel qemu:ubuntu:RELEASE"),
            ));
        };
        let mut report = Report::new(self, bench);
        Ok(beside(bench, &mut report, Source::Booted)?.map(|()| report))
    }
}

/// One run of a scenario, in words.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The machine's name.
    pub machine: &'static str,
    /// The workload's command line.
    pub workload: String,
    /// For how long, in virtual time.
    pub duration: Ns,
    /// The seed.
    pub seed: u64,
    /// From when on it is measured.
    pub measured: Measured,
}

/// From when on a run is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    /// From the program's start: it leaves out its own warm-up, or the report tells of all of it.
    FromStart,
    /// From when the machine has settled, as every other run.
    Settled,
}

impl Plan {
    /// The plan with everything looked up.
    fn spec(&self) -> Result<RunSpec, LabError> {
        let spec = RunSpec::new(
            self.kernel.parse()?,
            machines::find(self.machine)?,
            self.workload.split_whitespace().map(String::from).collect(),
            self.seed,
            self.duration,
        );
        Ok(match self.measured {
            Measured::FromStart => RunSpec { warmup: Some(Ns::ZERO), ..spec },
            Measured::Settled => spec,
        })
    }
}

impl Bench<'_> {
    /// `whole`, or `quick` if that is wanted.
    pub(crate) fn choose<T>(&self, whole: T, quick: T) -> T {
        if self.quick { quick } else { whole }
    }

    /// The run that a plan means.
    pub(crate) fn spec(&self, plan: &Plan) -> Result<RunSpec, LabError> {
        Ok(self.as_told(plan.spec()?))
    }

    /// The run, with nothing left to chance if that is wanted, and with the time to settle that is.
    pub(crate) fn as_told(&self, spec: RunSpec) -> RunSpec {
        let spec = RunSpec { warmup: self.warmup.or(spec.warmup), ..spec };
        if self.exact { RunSpec { machine: spec.machine.exact(), ..spec } } else { spec }
    }

    /// Does every run of `plans` on all threads, each with an onlooker of its own. Results come in the order of the plans.
    pub(crate) fn watch<O: Onlooker + Send>(
        &self,
        plans: &[Plan],
        onlooker: impl Fn(&RunSpec) -> O + Sync,
    ) -> Result<Option<Vec<(RunResult, O)>>, LabError> {
        self.each(plans, |plan| {
            let spec = self.spec(plan)?;
            let mut onlooker = onlooker(&spec);
            let result = run_watched(&spec, self.stop, &mut onlooker)?;
            Ok(result.map(|result| (result, onlooker)))
        })
    }

    /// Does something for every item on all threads. Gives `None` when it was stopped.
    pub(crate) fn each<I: Sync, T: Send>(
        &self,
        items: &[I],
        work: impl Fn(&I) -> Result<Option<T>, LabError> + Sync,
    ) -> Result<Option<Vec<T>>, LabError> {
        let results = workers::for_each(items, self.jobs, self.on_progress, self.stop, work)?;
        Ok(results.into_iter().collect())
    }
}
