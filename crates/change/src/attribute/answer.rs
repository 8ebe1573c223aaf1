//! `fairlab/attribute/1`: what each change makes of a difference.
//!
//! Must not know: what people read.

use fairlab_analysis::statistics::{Estimate, MetricVerdict};
use fairlab_kernel::generation::GenerationStep;
use serde::Serialize;

use fairlab_lab::answer::by_name;
use fairlab_lab::answer::causes::CausesAnswer;

/// Which changes make the difference, metric by metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/attribute/1")]
pub struct AttributeAnswer {
    /// It was stopped before its end.
    #[serde(rename = "partial")]
    pub stopped: bool,
    /// Changes in stretches that were not looked into by then.
    pub unsearched: usize,
    /// All runs that were made.
    pub runs: usize,
    /// What the reader should know.
    pub notices: Vec<String>,
    /// An answer a metric; none where it was stopped before the two kernels had been run.
    pub metrics: Vec<Attribution>,
}

/// Which changes make the difference in one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attribution {
    /// The metric.
    pub metric: String,
    /// The kernel from which the way begins.
    pub baseline: String,
    /// The kernel at which it ends.
    #[serde(rename = "kernel")]
    pub other: String,
    /// What the whole difference comes to.
    #[serde(serialize_with = "by_name")]
    pub verdict: MetricVerdict,
    /// The whole difference.
    pub whole: MetricEffect,
    /// How many changes of the model lie between.
    pub changes: usize,
    /// Those that make a difference, in the order of history.
    #[serde(rename = "contributions")]
    pub rows: Vec<Contribution>,
    /// The joint effect of the changes that do not matter, on a logarithmic scale; `None` where there is nothing to share.
    pub rest: Option<f64>,
    /// Pairs that were tried.
    pub interactions: Vec<Interaction>,
    /// All runs that were made.
    pub runs: usize,
    /// Whether the baseline's runs are equal for all seeds.
    pub seedless: bool,
}

/// One change's part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contribution {
    /// The change.
    pub commit: String,
    /// Its subject.
    pub subject: String,
    /// Whether its effect is real among all that were looked at, and beyond the margin.
    pub matters: bool,
    /// Its part of the whole difference, on a logarithmic scale; `None` where there is no difference to share.
    pub share: Option<f64>,
    /// The metric after it over that before it, in the order of history.
    pub in_turn: MetricEffect,
    /// The baseline with it alone over the baseline; only where it matters and can be alone.
    pub alone: Option<MetricEffect>,
    /// The other kernel over itself without this change; only where the change matters and can be left out.
    pub last: Option<MetricEffect>,
    /// Why tasks wait differently with it, in the order of history; only where it matters and that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causes: Option<CausesAnswer>,
}

/// What two changes do together beyond what each does alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interaction {
    /// The two changes.
    pub commits: [String; 2],
    /// Whether it is real among all pairs that were tried.
    #[serde(rename = "real")]
    pub is_real: bool,
    /// Both over the product of their effects alone.
    pub beyond: MetricEffect,
}

/// A metric of one kernel over that of another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MetricEffect {
    /// The ratio; `None` to zero.
    pub ratio: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// How often chance alone makes a difference like this.
    pub p: Option<f64>,
    /// A side's runs are one course of events.
    pub one_course: bool,
}

impl From<Estimate> for MetricEffect {
    fn from(Estimate { ratio, low, high, p, one_course, .. }: Estimate) -> MetricEffect {
        MetricEffect { ratio, low, high, p, one_course }
    }
}

impl Contribution {
    /// A step on the way with its effect in turn, before it is known whether that matters.
    pub(super) fn of(step: GenerationStep, in_turn: MetricEffect) -> Contribution {
        let (commit, subject) = (step.id(), step.subject());
        Contribution {
            commit,
            subject,
            matters: false,
            share: None,
            in_turn,
            alone: None,
            last: None,
            causes: None,
        }
    }
}
