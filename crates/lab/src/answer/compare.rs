//! `fairlab/compare/1`: every metric of every kernel against the first; also as CSV, and by the rules of others.
//!
//! Must not know: how runs are judged.

use fairlab_analysis::statistics::{
    BetterDirection, IntervalMethod, MetricVerdict, RunModes, mean, rivals, standard_deviation,
};
use fairlab_event::escaped;
use serde::Serialize;

use super::causes::CausesAnswer;
use super::gate::GateAnswer;
use super::{JsonWord, PartialRuns, by_name};
use crate::{Comparison, ComparisonRow, LookEnd, LookedAt, Pairing};

/// How kernels differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/compare/1")]
pub struct CompareAnswer {
    /// The baseline's name.
    pub baseline: String,
    /// The margin that *equivalent* refers to.
    pub margin: f64,
    /// The metric that the workload is run for.
    pub headline: String,
    /// How far the runs were, if they were stopped.
    pub partial: Option<PartialRuns>,
    /// Where runs were made until the answer was sure: when they were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<LooksAnswer>,
    /// One a kernel and metric, kernel by kernel.
    pub metrics: Vec<MetricAnswer>,
    /// What the reader should know.
    pub notices: Vec<String>,
    /// Why tasks wait differently, one a kernel, where that was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CausesAnswer>,
    /// What the rules of a gate say, where some were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateAnswer>,
}

/// When runs were looked at while more were made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LooksAnswer {
    /// The runs of each side at each look that was taken.
    pub runs: Vec<usize>,
    /// The most runs that a side could get.
    pub runs_max: usize,
    /// Why no more were made: `sure`; `too_far`, many more than those would be needed; or `open`, none were left.
    #[serde(serialize_with = "by_name")]
    pub end: LookEnd,
}

impl From<&LookedAt> for LooksAnswer {
    fn from(looked: &LookedAt) -> LooksAnswer {
        let all = looked.plan.runs();
        LooksAnswer {
            runs: all.iter().copied().filter(|&runs| runs <= looked.runs).collect(),
            runs_max: all.last().copied().unwrap_or_default(),
            end: looked.end,
        }
    }
}

impl JsonWord for LookEnd {
    fn word(&self) -> &'static str {
        self.name()
    }
}

/// One metric of one kernel beside the baseline's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricAnswer {
    /// The metric.
    pub name: String,
    /// The kernel that is compared.
    pub kernel: String,
    /// Its metric over the baseline's.
    pub ratio: Option<f64>,
    /// The lower end of the ratio's interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// What that comes to.
    #[serde(serialize_with = "by_name")]
    pub verdict: MetricVerdict,
    /// The runs on each side that would probably decide, beyond those there are.
    pub more_runs: Option<MoreRunsAnswer>,
    /// How often chance alone makes a difference like this.
    pub p: Option<f64>,
    /// `p`, adjusted for the number of metrics.
    pub q: Option<f64>,
    /// The test behind it.
    pub method: Option<&'static str>,
    /// How runs belong together.
    #[serde(serialize_with = "by_name")]
    pub pairing: Pairing,
    /// The kernel's runs.
    pub pairs: usize,
    /// The baseline's mean.
    pub baseline_mean: f64,
    /// The kernel's mean.
    pub mean: f64,
    /// The baseline's standard deviation.
    pub baseline_deviation: Option<f64>,
    /// The kernel's standard deviation.
    pub deviation: Option<f64>,
    /// The baseline's value in each run.
    pub baseline_values: Vec<f64>,
    /// The kernel's value in each run.
    pub values: Vec<f64>,
    /// The two modes of the baseline's runs, the lower one first.
    pub baseline_modes: Option<[ModeAnswer; 2]>,
    /// The two modes of the kernel's runs.
    pub modes: Option<[ModeAnswer; 2]>,
}

/// More runs than anybody makes.
pub(super) const TOO_MANY: &str = "more than 10000";

/// How many more runs would probably decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum MoreRunsAnswer {
    /// About so many on each side.
    About(usize),
    /// More than anybody makes, in words.
    TooMany(&'static str),
}

/// Runs of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModeAnswer {
    /// How many.
    pub runs: usize,
    /// Their mean.
    pub mean: f64,
}

impl From<&Comparison> for CompareAnswer {
    fn from(comparison: &Comparison) -> CompareAnswer {
        CompareAnswer {
            baseline: comparison.baseline.clone(),
            margin: comparison.margin,
            headline: comparison.headline.clone(),
            partial: comparison.partial.map(PartialRuns::from),
            looks: None,
            metrics: comparison.rows.iter().map(MetricAnswer::from).collect(),
            notices: comparison.notices.clone(),
            causes: Vec::new(),
            gate: None,
        }
    }
}

impl From<Comparison> for CompareAnswer {
    fn from(comparison: Comparison) -> CompareAnswer {
        CompareAnswer::from(&comparison)
    }
}

impl From<&ComparisonRow> for MetricAnswer {
    fn from(row: &ComparisonRow) -> MetricAnswer {
        MetricAnswer {
            name: row.name.clone(),
            kernel: row.kernel.clone(),
            ratio: row.estimate.ratio,
            low: row.estimate.low,
            high: row.estimate.high,
            verdict: row.verdict,
            more_runs: row.more.map(MoreRunsAnswer::from),
            p: row.estimate.p,
            q: row.q,
            method: row.estimate.method.map(IntervalMethod::name),
            pairing: row.pairing,
            pairs: row.values.len(),
            baseline_mean: mean(&row.baseline),
            mean: mean(&row.values),
            baseline_deviation: standard_deviation(&row.baseline),
            deviation: standard_deviation(&row.values),
            baseline_values: row.baseline.clone(),
            values: row.values.clone(),
            baseline_modes: row.baseline_modes.map(modes),
            modes: row.modes.map(modes),
        }
    }
}

impl MetricAnswer {
    /// Which way is better.
    pub fn better(&self) -> BetterDirection {
        BetterDirection::of_metric(&self.name)
    }

    /// Whether nothing can be concluded, for a side's runs never differ.
    pub fn is_one_course(&self) -> bool {
        self.verdict == MetricVerdict::OneCourse
    }

    /// Whether mmtests' rule and ours say different things: `Some(what theirs says)` if so.
    pub fn mmtests_differs(&self) -> Option<bool> {
        let theirs = rivals::mmtests_marks(&self.baseline_values, &self.values, self.better());
        (theirs != self.verdict.is_difference()).then_some(theirs)
    }

    /// Whether LKP's rule and ours say different things: `Some(what theirs says)` if so.
    pub fn lkp_differs(&self) -> Option<bool> {
        let theirs = rivals::lkp_shows(&self.baseline_values, &self.values)?;
        (theirs != self.verdict.is_difference()).then_some(theirs)
    }
}

impl JsonWord for MetricVerdict {
    fn word(&self) -> &'static str {
        self.name()
    }
}

impl JsonWord for Pairing {
    fn word(&self) -> &'static str {
        self.name()
    }
}

fn modes(modes: RunModes) -> [ModeAnswer; 2] {
    [modes.low, modes.high].map(|mode| ModeAnswer { runs: mode.runs, mean: mode.mean })
}

impl CompareAnswer {
    /// The rows kernel by kernel.
    pub fn by_kernel(&self) -> impl Iterator<Item = &[MetricAnswer]> {
        self.metrics.chunk_by(|one, other| one.kernel == other.kernel)
    }

    /// One line a kernel and metric, under a line of names.
    pub fn to_csv(&self) -> String {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut text =
            "metric,baseline,kernel,baseline_mean,mean,runs,ratio,low,high,p,q,verdict,more_runs,partial\n"
                .to_string();
        for row in &self.metrics {
            let more = match row.more_runs {
                Some(MoreRunsAnswer::About(more)) => more.to_string(),
                Some(MoreRunsAnswer::TooMany(_)) | None => String::new(),
            };
            let cells = [
                escaped::csv(&row.name),
                escaped::csv(&self.baseline),
                escaped::csv(&row.kernel),
                row.baseline_mean.to_string(),
                row.mean.to_string(),
                row.pairs.to_string(),
                number(row.ratio),
                number(row.low),
                number(row.high),
                number(row.p),
                number(row.q),
                row.verdict.name().to_string(),
                more,
                self.partial.is_some().to_string(),
            ];
            text += &format!("{}\n", cells.join(","));
        }
        text
    }
}
