//! `fairlab/public/1`: what comes of public reports, as programs read it.
//!
//! Must not know: how runs are made, what people read.

use fairlab_analysis::statistics::MetricVerdict as Compared;
use fairlab_lab::answer::by_name;
use serde::Serialize;

use super::judge::{ClaimVerdict, ReproductionOutcome, of_report};

/// What came of reports.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "schema", rename = "fairlab/public/1")]
pub struct PublicAnswer {
    /// Whether runs were fewer, and no commit was searched for.
    pub quick: bool,
    /// Whether the user stopped it: reports that were not begun are left out, and claims that were not judged.
    pub partial: bool,
    /// One a report, in the order of their names.
    pub reports: Vec<ReportAnswer>,
}

/// What came of a report.
#[derive(Clone, Debug, Serialize)]
pub struct ReportAnswer {
    /// The name of its file.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// Its author, place and date.
    pub source: String,
    /// The machine of the runs.
    pub machine: String,
    /// The workload's command line.
    pub workload: String,
    /// Where machine or workload are not the report's own.
    pub departs: Option<String>,
    /// What is known of a result that falls short.
    pub notes: Option<String>,
    /// Why nothing was run.
    pub cannot: Option<String>,
    /// What the claims come to.
    pub outcome: ReproductionOutcome,
    /// How far it was, if the user stopped it before its end.
    pub partial: Option<PartialReport>,
    /// What came of each claim that was judged.
    pub claims: Vec<ClaimAnswer>,
}

/// How far a report was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PartialReport {
    /// Claims that were judged.
    pub judged: usize,
    /// Claims that it has.
    pub wanted: usize,
}

/// What came of a claim.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimAnswer {
    /// What is claimed.
    pub claim: String,
    /// The metric.
    pub metric: String,
    /// The two kernels, or sides of the report.
    pub kernels: [String; 2],
    /// What was published.
    pub published: PublishedAnswer,
    /// The metric's mean on both kernels.
    pub means: [f64; 2],
    /// The second kernel's metric over the first's.
    pub ratio: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// What the comparison comes to.
    #[serde(serialize_with = "by_name")]
    pub compared: Compared,
    /// What is said where the runs of a kernel are of two kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Runs of each kernel.
    pub runs: usize,
    /// The commit that was published, and what a search named.
    pub commit: Option<CommitAnswer>,
    /// What lies between the two kernels, can matter here, and is not modelled.
    pub not_modelled: Option<String>,
    /// What was asked of the claim.
    pub verdict: ClaimVerdict,
    /// What it comes to.
    pub outcome: ReproductionOutcome,
    /// The command that shows it.
    pub command: String,
}

/// What was published of a metric.
#[derive(Clone, Debug, Serialize)]
pub struct PublishedAnswer {
    /// The figures of both kernels; of a published ratio, 1 and the ratio. `None`: only a direction was published.
    pub figures: Option<[f64; 2]>,
    /// Their unit; empty for a ratio.
    pub unit: String,
    /// The second over the first.
    pub ratio: Option<f64>,
    /// In which direction the metric goes: `rises`, `falls` or `stays the same`.
    pub direction: &'static str,
    /// The second over the first is at least this; at most, where it is below 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// They are from memory.
    pub remembered: bool,
}

/// A commit that was published as the cause.
#[derive(Clone, Debug, Serialize)]
pub struct CommitAnswer {
    /// Its id.
    pub published: String,
    /// What a search named instead or as well; `None`: no single commit, or nothing was searched.
    pub found: Option<String>,
    /// What the search came to; `None`: nothing was searched.
    pub finding: Option<&'static str>,
    /// Modelled commits between the two kernels: a search among a single one tells nothing.
    pub candidates: usize,
    /// The command of the search.
    pub command: String,
}

impl ReportAnswer {
    /// What a report's claims come to.
    pub(super) fn outcome_of(claims: &[ClaimAnswer]) -> ReproductionOutcome {
        of_report(claims.iter().map(|claim| claim.outcome))
    }
}

impl PublicAnswer {
    /// How many reports have an outcome.
    pub fn count(&self, outcome: ReproductionOutcome) -> usize {
        self.reports.iter().filter(|report| report.outcome == outcome).count()
    }
}
