//! Scenarios: published reports on the fair scheduler, each reproduced by one command.
//!
//! A scenario runs a report's workload on the report's machine and kernels, and puts published and measured figures side by
//! side. It says of each claim whether it holds, and explains the effect by what happened in the runs. It also takes the
//! guilty rule out, to see the effect vanish (*ablation*).
//!
//! Each scenario has three parts:
//!
//! * runs, each with a name ([`RunKey`]);
//! * claims as data ([`Claim`]), which name metrics of runs and a bar;
//! * a story, whose numbers are figures of named runs.
//!
//! One judge decides all claims.
//!
//! Published figures are data, and decide nothing in a run. An unknown value that is fitted to one of them (a machine's costs,
//! the times of a workload) says so. So does a claim on that figure.
//!
//! Must not know: how a result reaches a user.

mod answer;
mod beside;
mod booted;
pub mod booted_table;
mod claim;
mod eevdf_vhost;
mod figures;
mod idle_cpumask;
mod kworkers;
mod lb_bias;
mod load_balance_rework;
mod nohz_blocked_load;
pub mod oracle_table;
mod own;
mod passes;
mod picture;
pub mod public;
mod render;
mod report;
mod reported;
mod runs;
mod schbench_table;
mod waits;
mod wasted_cores;

use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_event::spelling::meant;
use fairlab_lab::{LabError, Progress};

pub use answer::{
    About, AboutAnswer, RunOfScenario, ScenarioAnswer, ScenariosAnswer, SmallAnswer, StoryAnswer, TableAnswer,
};
pub use beside::Instead;
use booted::Source;
pub use claim::{Bar, Claim, Judged, Measure, Published, Told};
pub use figures::{Figure, RunKey};
pub use picture::{Picture, Row};
pub use report::{Part, Report};
use reported::Reported;
use runs::{Batch, Measured, Plan};

/// A published report that can be reproduced.
#[derive(Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about, in a sentence.
    pub about: &'static str,
    /// The report: its author, place and date.
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
    /// Makes the runs, notes their figures and tells the story. Gives `None` when it was stopped.
    conduct: fn(&Bench<'_>, &mut Report) -> Result<Option<()>, LabError>,
    /// The claims, in the order in which they are read.
    claims: fn() -> Vec<Claim>,
    /// The part that puts real kernels beside the modelled ones, where those kernels can be booted.
    booted: Option<BesideReal>,
    /// The report's run, where other kernels can make it as it stands.
    reported: Option<Reported>,
}

/// Real kernels of a source beside the modelled ones.
#[derive(Debug)]
struct BesideReal {
    /// As [`Scenario::conduct`].
    conduct: fn(&Bench<'_>, &mut Report, Source) -> Result<Option<()>, LabError>,
    /// The claims of this part alone.
    claims: fn() -> Vec<Claim>,
}

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
        let names = SCENARIOS.iter().map(|scenario| scenario.name).collect::<Vec<_>>();
        let hint = match meant(name, names.iter().copied()) {
            Some(known) => format!("{known} may be meant; 'fairlab scenario list' lists all"),
            None => format!("known are {}, and all", names.join(", ")),
        };
        LabError::new(format!("unknown scenario '{name}'"), hint)
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
    /// Set by the caller for an early end.
    pub stop: &'a AtomicBool,
    /// No run is longer, whatever the report asks for. It serves tests of whether all goes through.
    pub longest: Option<Ns>,
}

impl Scenario {
    /// Does all runs and judges the claims. Gives `None` when it was stopped before its end.
    ///
    /// # Errors
    /// A run fails.
    pub fn run(&self, bench: &Bench<'_>) -> Result<Option<Report>, LabError> {
        let mut report = Report::new(self, bench);
        let Some(()) = (self.conduct)(bench, &mut report)? else { return Ok(None) };
        report.judge((self.claims)())?;
        Ok(Some(report))
    }

    /// Boots the real kernels of this report and does only what puts the modelled ones beside them. Gives `None` when it was
    /// stopped before its end.
    ///
    /// # Errors
    /// It has none, one cannot be booted, or a run fails.
    pub fn run_booted(&self, bench: &Bench<'_>) -> Result<Option<Report>, LabError> {
        let Some(beside) = &self.booted else {
            let with = SCENARIOS.iter().filter(|scenario| scenario.booted.is_some());
            let names = with.map(|scenario| scenario.name).collect::<Vec<_>>().join(" and ");
            return Err(LabError::new(
                format!("no real kernels stand beside those of '{}'", self.name),
                format!("name one of {names}, or boot one beside its two with --kernel qemu:ubuntu:RELEASE"),
            ));
        };
        let mut report = Report::new(self, bench);
        let Some(()) = (beside.conduct)(bench, &mut report, Source::Booted)? else { return Ok(None) };
        report.judge((beside.claims)())?;
        Ok(Some(report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim or a sentence on a run that is not made, or on a figure that is not measured, ends a scenario with an error.
    #[test]
    fn every_scenario_measures_what_its_claims_name() {
        let stop = AtomicBool::new(false);
        let bench = Bench {
            quick: true,
            exact: false,
            warmup: Some(Ns::ZERO),
            jobs: 2,
            on_progress: &|_| {},
            stop: &stop,
            longest: Some(Ns::from_ms(5)),
        };
        for scenario in SCENARIOS {
            let mut report = Report::new(scenario, &bench);
            let told = match scenario.name {
                // Its bisection needs runs that are long enough for an answer.
                "load-balance-rework" => load_balance_rework::without_bisection(&bench, &mut report),
                _ => (scenario.conduct)(&bench, &mut report),
            };
            told.unwrap_or_else(|error| panic!("{}: {error}", scenario.name)).expect("not stopped");
            let claims = (scenario.claims)();
            report.judge(claims.clone()).unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
            assert!(claims.len() > 3 && report.claims.len() == claims.len(), "{}", scenario.name);
            for (claim, judged) in claims.iter().zip(&report.claims) {
                assert_eq!(claim.text, judged.text);
            }
        }
    }

    /// What puts real kernels beside the modelled ones is a part of the whole.
    #[test]
    fn claims_on_booted_kernels_are_among_the_scenarios_own() {
        for scenario in SCENARIOS {
            let claims = (scenario.claims)();
            let Some(beside) = &scenario.booted else { continue };
            let on_booted = (beside.claims)();
            assert!(!on_booted.is_empty() && on_booted.iter().all(|claim| claims.contains(claim)));
        }
    }
}
