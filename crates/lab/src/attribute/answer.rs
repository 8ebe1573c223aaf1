//! What each change makes of a difference, and the same as JSON.
//!
//! Must not know: what people read.

use fairlab_analysis::statistics::{Estimate, Verdict};
use fairlab_kernel::generation::Step;
use serde_json::{Value, json};

/// One change's part.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// The change.
    pub step: Step,
    /// The metric after it over that before it, in the order of history.
    pub in_turn: Estimate,
    /// Whether that is real among all that were looked at, and beyond the margin.
    pub matters: bool,
    /// Its part of the whole difference, on a logarithmic scale; `None` where there is no difference to share.
    pub share: Option<f64>,
    /// The baseline with it alone over the baseline; only where it matters and can be alone.
    pub alone: Option<Estimate>,
    /// The other kernel over the same without it; only where it matters and can be left out.
    pub last: Option<Estimate>,
}

/// What two changes do together beyond what each does alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// The one.
    pub one: Step,
    /// The other.
    pub other: Step,
    /// Both over the product of their effects alone.
    pub beyond: Estimate,
    /// Whether that is real among all pairs that were tried.
    pub is_real: bool,
}

/// Which changes make the difference, metric by metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributed {
    /// An answer a metric; none where it was stopped before the two kernels had been run.
    pub metrics: Vec<Attribution>,
    /// It was stopped before its end.
    pub stopped: bool,
    /// Changes in stretches that were not looked into by then.
    pub unsearched: usize,
    /// All runs that were made.
    pub runs: usize,
}

impl Attributed {
    /// The machine-readable answer, schema `fairlab/attribute/1`.
    pub fn to_json(&self) -> Value {
        json!({
            "schema": "fairlab/attribute/1",
            "partial": self.stopped,
            "unsearched": self.unsearched,
            "runs": self.runs,
            "metrics": self.metrics.iter().map(Attribution::to_json).collect::<Vec<_>>(),
        })
    }
}

/// Which changes make the difference in one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribution {
    /// The metric.
    pub metric: String,
    /// The kernel from which the way begins.
    pub baseline: String,
    /// The kernel at which it ends.
    pub other: String,
    /// The whole difference.
    pub whole: Estimate,
    /// What it comes to.
    pub verdict: Verdict,
    /// How many changes of the model lie between.
    pub changes: usize,
    /// Those that are felt at all, in the order of history.
    pub rows: Vec<Contribution>,
    /// Pairs that were tried.
    pub interactions: Vec<Interaction>,
    /// All runs that were made.
    pub runs: usize,
    /// Whether the baseline's runs are all the same, whatever their seed.
    pub seedless: bool,
}

impl Attribution {
    /// What the changes that do not matter make together, on a logarithmic scale; `None` where there is nothing to share.
    pub fn rest(&self) -> Option<f64> {
        self.rows.iter().filter(|row| !row.matters).map(|row| row.share).sum()
    }

    /// The machine-readable answer for one metric.
    pub fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "commit": row.step.id(),
                "subject": row.step.subject(),
                "matters": row.matters,
                "share": row.share,
                "in_turn": estimate(&row.in_turn),
                "alone": row.alone.as_ref().map(estimate),
                "last": row.last.as_ref().map(estimate),
            })
        });
        let pairs = self.interactions.iter().map(|pair| {
            json!({
                "commits": [pair.one.id(), pair.other.id()],
                "real": pair.is_real,
                "beyond": estimate(&pair.beyond),
            })
        });
        json!({
            "metric": self.metric,
            "baseline": self.baseline,
            "kernel": self.other,
            "verdict": self.verdict.name(),
            "whole": estimate(&self.whole),
            "changes": self.changes,
            "contributions": rows.collect::<Vec<_>>(),
            "rest": self.rest(),
            "interactions": pairs.collect::<Vec<_>>(),
            "runs": self.runs,
            "seedless": self.seedless,
        })
    }
}

fn estimate(estimate: &Estimate) -> Value {
    json!({
        "ratio": estimate.ratio,
        "low": estimate.low,
        "high": estimate.high,
        "p": estimate.p,
        "one_course": estimate.one_course,
    })
}
