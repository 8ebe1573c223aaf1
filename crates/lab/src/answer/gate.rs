//! The answer of a gate: each rule with its verdict, and the verdict of all together.
//!
//! Must not know: how rules are read and judged.

use fairlab_analysis::statistics::MoreRuns;
use serde::Serialize;

use super::compare::{MoreRunsAnswer, TOO_MANY};
use super::{JsonWord, by_name};

/// What a rule says of a change, or all rules do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateVerdict {
    /// A change past the bound is excluded.
    Passed,
    /// Neither is sure.
    Undecided,
    /// The change is past the bound for sure.
    Regression,
}

impl GateVerdict {
    /// The word in every answer.
    pub const fn name(self) -> &'static str {
        match self {
            GateVerdict::Passed => "passed",
            GateVerdict::Undecided => "undecided",
            GateVerdict::Regression => "regression",
        }
    }
}

impl JsonWord for GateVerdict {
    fn word(&self) -> &'static str {
        self.name()
    }
}

/// All rules.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateAnswer {
    /// What they come to: a regression where one says so, undecided where one does.
    #[serde(serialize_with = "by_name")]
    pub outcome: GateVerdict,
    /// Each rule with each kernel.
    pub rules: Vec<RuleAnswer>,
}

/// One rule and one kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleAnswer {
    /// The rule as it was written.
    pub rule: String,
    /// The metric's whole name.
    pub metric: String,
    /// The kernel.
    pub kernel: String,
    /// What it says.
    #[serde(serialize_with = "by_name")]
    pub outcome: GateVerdict,
    /// The change: a share of the baseline, or an amount in the metric's own unit.
    pub change: Option<f64>,
    /// The lower end of its interval, which is as wide as it takes for all rules together to hold in 95 % of all cases.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The bound.
    pub bound: f64,
    /// Whether these are shares of the baseline.
    pub is_share: bool,
    /// Runs of the baseline and of the kernel.
    pub runs: [usize; 2],
    /// Where it is undecided: the runs on each side that would probably decide, beyond those there are.
    pub more_runs: Option<MoreRunsAnswer>,
    /// Where it is undecided and no runs of this kind would decide, why.
    pub why: Option<&'static str>,
}

impl From<MoreRuns> for MoreRunsAnswer {
    fn from(more: MoreRuns) -> MoreRunsAnswer {
        match more {
            MoreRuns::About(more) => MoreRunsAnswer::About(more),
            MoreRuns::TooMany => MoreRunsAnswer::TooMany(TOO_MANY),
        }
    }
}
