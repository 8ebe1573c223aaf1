//! `fairlab/watch/1`: what commits changed in the cases of a catalogue.
//!
//! Must not know: how it was found.

use fairlab_analysis::statistics::MetricVerdict;
use fairlab_lab::answer::by_name;
use fairlab_lab::answer::causes::PartingAnswer;
use serde::Serialize;

use crate::case::SkippedCase;
use crate::line::WatchedStep;

/// What commits changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/watch/1")]
pub struct WatchAnswer {
    /// The range of kernels, as it was asked for.
    pub range: String,
    /// The kernels, in the order of history, each with the commit that leads to it.
    pub kernels: Vec<WatchedKernelAnswer>,
    /// Runs that were made, those that were kept from before within.
    pub runs: usize,
    /// Questions of the family: a metric of a case at a step.
    pub questions: usize,
    /// Those that no run answered: a difference may be there that is too small, or too seldom, for the runs that were made.
    pub undecided: usize,
    /// Of the changes that are told, at most this share is none, in the long run.
    pub false_discovery_rate: f64,
    /// The cases.
    pub cases: Vec<WatchedCaseAnswer>,
    /// Changes for sure, confirmed or not, in the order of history.
    pub findings: Vec<FindingAnswer>,
    /// What was left out.
    pub skipped: Vec<SkippedCase>,
    /// Whether it was stopped before its end: then it holds what was sure by then, and nothing was confirmed.
    pub partial: bool,
}

/// A kernel of the range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WatchedKernelAnswer {
    /// Its name; `None`: it contradicts itself, or was not built.
    pub name: Option<String>,
    /// What leads to it; `None` of the first one.
    pub step: Option<WatchedStep>,
}

/// A case over history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WatchedCaseAnswer {
    /// Its name.
    pub name: String,
    /// What it looks at.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// The machine.
    pub machine: String,
    /// The workload.
    pub workload: String,
    /// The share below which a difference is of no interest.
    pub margin: f64,
    /// The metrics.
    pub metrics: Vec<String>,
    /// For each kernel the class of its runs: kernels of one class run equally, event by event.
    pub line: Vec<Option<usize>>,
    /// The classes.
    pub classes: Vec<ClassAnswer>,
}

/// Kernels that run equally.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassAnswer {
    /// The first of them.
    pub kernel: String,
    /// Runs that were measured of it.
    pub runs: usize,
    /// Each metric's mean, and its interval of 95 % where runs differ.
    pub metrics: Vec<MeanAnswer>,
}

/// A mean with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanAnswer {
    /// The mean.
    pub mean: f64,
    /// Half of the interval; `None`: all runs are equal, or there is one.
    pub half: Option<f64>,
}

/// A change at a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingAnswer {
    /// The case.
    pub case: String,
    /// The metric.
    pub metric: String,
    /// The positions in `kernels` before and after it.
    pub positions: [usize; 2],
    /// The commits that lead there; several where no kernel lies between them.
    pub steps: Vec<WatchedStep>,
    /// The kernels before and after it.
    pub kernels: [String; 2],
    /// What it comes to.
    #[serde(serialize_with = "by_name")]
    pub verdict: MetricVerdict,
    /// How it was found.
    pub found: FoundAnswer,
    /// The same in runs that took no part in finding it; `None`: it was stopped before.
    pub fresh: Option<FoundAnswer>,
    /// Whether these show a difference that way, too.
    pub confirmed: bool,
    /// The number of a later finding in this metric that takes at least half of it back.
    pub taken_back_by: Option<usize>,
    /// The first decision in which the two kernels part, without chance.
    pub parting: Option<PartingAnswer>,
    /// The command that repeats it.
    pub command: String,
}

/// Two kernels' runs compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FoundAnswer {
    /// Runs a side.
    pub runs: usize,
    /// The means before and after.
    pub means: [f64; 2],
    /// The second over the first.
    pub ratio: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// How often chance alone makes a difference like this.
    pub p: Option<f64>,
    /// `p`, adjusted for all questions; of fresh runs, `p` itself.
    pub q: Option<f64>,
}

impl WatchAnswer {
    /// The findings that are told: those that fresh runs confirm.
    pub fn confirmed(&self) -> impl Iterator<Item = &FindingAnswer> {
        self.findings.iter().filter(|finding| finding.confirmed)
    }
}

impl FindingAnswer {
    /// What identifies it from one time to the next.
    pub fn key(&self) -> (&str, &str, &str) {
        (self.steps.last().map_or("", |step| step.commit.as_str()), &self.case, &self.metric)
    }

    /// The logarithm of its size; infinite where something comes of nothing.
    pub(crate) fn log_ratio(&self) -> f64 {
        self.fresh.unwrap_or(self.found).ratio.map_or(f64::INFINITY, f64::ln)
    }
}
