//! `fairlab/try/1`: what a patch does.
//!
//! Must not know: how it was found.

use std::collections::BTreeSet;

use fairlab_analysis::statistics::{MetricVerdict, mean};
use fairlab_files::shell::line_of;
use fairlab_lab::answer::{DifferenceAnswer, MoreRunsAnswer, by_name};
use fairlab_lab::{ComparisonRow, Kernel};
use fairlab_native::build::CachedKernel;
use serde::Serialize;

use super::{PatchSides, TrySpec, WORKLOADS};

/// What a patch does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/try/1")]
pub struct TryAnswer {
    /// The tree as it is, and with the patch.
    pub before: PatchSideAnswer,
    /// With the patch.
    pub after: PatchSideAnswer,
    /// The machines.
    pub machines: Vec<String>,
    /// The workloads.
    pub workloads: Vec<CaseAnswer>,
    /// Runs of each side in each case; the most of them where cases end once they are sure.
    pub runs: u64,
    /// Whether cases end once they are sure.
    pub until_sure: bool,
    /// The margin that *equivalent* refers to.
    pub margin: f64,
    /// Metrics of cases in which the two run differently.
    pub rows: Vec<PatchMetricAnswer>,
    /// Cases in which runs of both are equal, event by event.
    pub alike: Vec<AlikeAnswer>,
    /// The first decision that differs.
    pub difference: Option<DifferenceAnswer>,
    /// Whether it was stopped before its end.
    pub partial: bool,
}

/// A tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PatchSideAnswer {
    /// Where it comes from.
    pub source: String,
    /// The patches over it.
    pub patches: Vec<String>,
    /// Where its files lie, as they were before any patch.
    pub tree: Option<String>,
    /// What it calls itself.
    pub release: String,
    /// It as a kernel, one for each tick rate of the machines.
    pub kernels: Vec<String>,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseAnswer {
    /// Its command line.
    pub workload: String,
    /// What it is there for; none for a user's own.
    pub purpose: Option<&'static str>,
}

/// A metric of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PatchMetricAnswer {
    /// The machine.
    pub machine: String,
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// Runs of each side.
    pub runs: usize,
    /// Its mean without the patch.
    pub before: f64,
    /// Its mean with it.
    pub after: f64,
    /// The latter over the former.
    pub ratio: Option<f64>,
    /// The lower end of the ratio's interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// How often chance makes a difference like this, adjusted for all rows.
    pub q: Option<f64>,
    /// What that comes to.
    #[serde(serialize_with = "by_name")]
    pub verdict: MetricVerdict,
    /// The runs on each side that would probably decide, beyond those there are.
    pub more_runs: Option<MoreRunsAnswer>,
    /// The command that repeats it.
    pub command: String,
}

/// A case in which nothing differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AlikeAnswer {
    /// The machine.
    pub machine: String,
    /// The workload.
    pub workload: String,
}

impl TryAnswer {
    pub(super) fn of(spec: &TrySpec) -> TryAnswer {
        let side = |side: &super::PatchSide| PatchSideAnswer {
            source: side.source.to_string(),
            patches: side.patches.iter().map(|path| path.display().to_string()).collect(),
            ..PatchSideAnswer::default()
        };
        let case = |workload: &Vec<String>| {
            let workload = line_of(workload);
            let own = WORKLOADS.iter().find(|(words, _)| *words == workload);
            CaseAnswer { purpose: own.map(|(_, purpose)| *purpose), workload }
        };
        TryAnswer {
            before: side(&spec.sides.before),
            after: side(&spec.sides.after),
            machines: spec.machines.clone(),
            workloads: spec.workloads.iter().map(case).collect(),
            runs: spec.runs,
            until_sure: spec.until_sure,
            margin: spec.margin,
            rows: Vec::new(),
            alike: Vec::new(),
            difference: None,
            partial: false,
        }
    }

    pub(super) fn set_sides(&mut self, sides: &PatchSides, built: &[(CachedKernel, Kernel); 2]) {
        let sources = [&sides.before.source, &sides.after.source];
        let all = [&mut self.before, &mut self.after].into_iter().zip(sources).zip(built);
        for ((side, source), (built, kernel)) in all {
            side.tree = source.tree().map(|tree| tree.display().to_string());
            side.release = built.manifest.release.clone();
            let name = kernel.name().to_string();
            if !side.kernels.contains(&name) {
                side.kernels.push(name);
            }
        }
    }

    /// How many runs each side has in a case: `10 runs`, `up to 20 runs`.
    pub fn runs_told(&self) -> String {
        let up_to = if self.until_sure { "up to " } else { "" };
        format!("{up_to}{} runs", self.runs)
    }

    /// Of how many cases there is an answer: workloads on machines.
    pub fn cases_seen(&self) -> usize {
        if !self.partial {
            return self.workloads.len() * self.machines.len();
        }
        let rows = self.rows.iter().map(|row| (&row.machine, &row.workload));
        let alike = self.alike.iter().map(|case| (&case.machine, &case.workload));
        rows.chain(alike).collect::<BTreeSet<_>>().len()
    }

    /// Whether anything at all differs.
    pub fn sees_something(&self) -> bool {
        !self.rows.is_empty()
    }
}

impl PatchMetricAnswer {
    pub(super) fn of(
        machine: &str,
        workload: &[String],
        row: &ComparisonRow,
        command: String,
    ) -> PatchMetricAnswer {
        PatchMetricAnswer {
            machine: machine.to_string(),
            workload: line_of(workload),
            metric: row.name.clone(),
            runs: row.values.len(),
            before: mean(&row.baseline),
            after: mean(&row.values),
            ratio: row.estimate.ratio,
            low: row.estimate.low,
            high: row.estimate.high,
            q: row.q,
            verdict: row.verdict,
            more_runs: row.more.map(MoreRunsAnswer::from),
            command,
        }
    }
}

impl AlikeAnswer {
    pub(super) fn of(machine: &str, workload: &[String]) -> AlikeAnswer {
        AlikeAnswer { machine: machine.to_string(), workload: line_of(workload) }
    }
}
