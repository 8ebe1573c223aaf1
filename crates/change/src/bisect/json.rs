//! `fairlab/bisect/1`: which commit changed a metric, and how sure that is.
//!
//! Must not know: how the search goes.

use fairlab_analysis::statistics::{MetricVerdict, mean};
use fairlab_kernel::generation::{LoggedCommit, MainlineRelease};
use serde::{Serialize, Serializer};

use super::{Bisection, Crossing, KernelState, SearchFinding, SkippedCommit};
use crate::WayStep;
use fairlab_lab::ComparisonRow;
use fairlab_lab::answer::{JsonWord, by_name};

/// What a bisection found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/bisect/1")]
pub struct BisectAnswer {
    /// The metric that was looked at.
    pub metric: String,
    /// Where the walk began.
    pub from: String,
    /// Where it ended.
    pub to: String,
    /// What the search comes to.
    #[serde(rename = "verdict", serialize_with = "by_name")]
    pub finding: SearchFinding,
    /// Whether the user stopped it.
    #[serde(rename = "partial")]
    pub stopped: bool,
    /// The bad kernel beside the good one, as a comparison has it.
    pub ends: Option<EndsAnswer>,
    /// Where good turns to bad, if one place makes the difference.
    pub first_bad: Option<CrossingAnswer>,
    /// Where bad turns to good, if one place makes the difference.
    pub first_good: Option<CrossingAnswer>,
    /// Where it crosses, in the order of the walk.
    pub crossings: Vec<CrossingAnswer>,
    /// How many changes of the model lie between, or commits that touch the scheduler.
    pub changes: usize,
    /// Commits whose kernel does not build or run; they are passed over.
    pub skipped: Vec<SkippedAnswer>,
    /// How often an answer like this is wrong, at most; only where a commit was found.
    pub error: Option<f64>,
    /// All runs that were made.
    pub runs: usize,
    /// What the reader should know.
    pub notices: Vec<String>,
    /// Every kernel that was judged, in the order of judgements.
    pub steps: Vec<JudgedAnswer>,
}

/// The two ends as a comparison has them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndsAnswer {
    /// The kernel that is not the baseline.
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
    /// Pairs of runs.
    pub pairs: usize,
    /// The command of that comparison.
    pub command: Option<String>,
}

/// A kernel that was judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedAnswer {
    /// Its name.
    pub kernel: String,
    /// What it is.
    #[serde(serialize_with = "by_name")]
    pub state: KernelState,
    /// The runs that it took.
    pub runs: usize,
    /// The metric's mean over them.
    pub mean: f64,
    /// The lower end of the mean's 95 % interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// How many steps of the way lead to it; `None`: it is on a line that a merge joined.
    pub position: Option<usize>,
    /// The subject of the commit that leads to it.
    pub subject: Option<String>,
}

/// A place where good turns to bad, or bad to good.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrossingAnswer {
    /// The commit, or the last of those that could not be told apart.
    pub commit: Option<String>,
    /// Its subject.
    pub subject: Option<String>,
    /// Its date.
    pub date: Option<String>,
    /// What that is the date of.
    pub dated_by: Option<&'static str>,
    /// Later fixes that its own tree lacks, and the model's kernel holds.
    pub own_tree_lacks: Option<Vec<&'static str>>,
    /// The first release with it.
    #[serde(rename = "release", serialize_with = "release")]
    pub first_with: Option<MainlineRelease>,
    /// The last release without it.
    #[serde(serialize_with = "release")]
    pub last_without: Option<MainlineRelease>,
    /// All commits that it may be.
    pub candidates: Vec<CandidateCommit>,
    /// The kernel before.
    pub before: String,
    /// The kernel after.
    pub after: String,
    /// What the kernel after is.
    #[serde(serialize_with = "by_name")]
    pub becomes: KernelState,
    /// The metric after over the metric before.
    pub ratio: Option<f64>,
    /// The lower end of the ratio's interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// What that comes to.
    #[serde(serialize_with = "by_name")]
    pub verdict: MetricVerdict,
    /// How much of the whole difference between the two ends this is, 0 to 1 or beyond.
    pub share: Option<f64>,
    /// A command that shows the effect.
    pub command: String,
    /// The metric's mean before.
    pub mean_before: f64,
    /// The metric's mean after.
    pub mean_after: f64,
    /// The commits, with all that is known of them.
    #[serde(skip)]
    pub steps: Vec<WayStep>,
}

/// A commit that was passed over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SkippedAnswer {
    /// The commit.
    pub commit: String,
    /// Its subject.
    pub subject: String,
    /// The compiler's first error, or how a run ended.
    pub why: String,
}

/// A commit that a crossing may be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CandidateCommit {
    /// The commit.
    pub commit: String,
    /// Its subject.
    pub subject: String,
}

fn release<S: Serializer>(release: &Option<MainlineRelease>, serializer: S) -> Result<S::Ok, S::Error> {
    release.map(|release| release.to_string()).serialize(serializer)
}

impl JsonWord for SearchFinding {
    fn word(&self) -> &'static str {
        self.name()
    }
}

impl JsonWord for KernelState {
    fn word(&self) -> &'static str {
        self.name()
    }
}

impl From<&Bisection> for BisectAnswer {
    fn from(found: &Bisection) -> BisectAnswer {
        let steps = found.steps.iter().map(|step| JudgedAnswer {
            kernel: step.kernel.clone(),
            state: step.state,
            runs: step.runs,
            mean: step.mean,
            low: step.interval.unzip().0,
            high: step.interval.unzip().1,
            position: step.position,
            subject: step.step.as_ref().map(WayStep::subject),
        });
        BisectAnswer {
            metric: found.metric.clone(),
            from: found.from.clone(),
            to: found.to.clone(),
            finding: found.finding,
            stopped: found.stopped,
            ends: found.ends.as_ref().map(|ends| EndsAnswer::of(ends, found.ends_command.clone())),
            first_bad: found.first_bad().map(CrossingAnswer::from),
            first_good: found.first_good().map(CrossingAnswer::from),
            crossings: found.crossings.iter().map(CrossingAnswer::from).collect(),
            changes: found.changes,
            skipped: found.skipped.iter().map(SkippedAnswer::from).collect(),
            error: found.error,
            runs: found.runs,
            notices: found.notices.clone(),
            steps: steps.collect(),
        }
    }
}

impl EndsAnswer {
    fn of(ends: &ComparisonRow, command: Option<String>) -> EndsAnswer {
        EndsAnswer {
            kernel: ends.kernel.clone(),
            ratio: ends.estimate.ratio,
            low: ends.estimate.low,
            high: ends.estimate.high,
            verdict: ends.verdict,
            pairs: ends.values.len(),
            command,
        }
    }
}

impl From<&SkippedCommit> for SkippedAnswer {
    fn from(skipped: &SkippedCommit) -> SkippedAnswer {
        let SkippedCommit { step, why } = skipped;
        SkippedAnswer { commit: step.id(), subject: step.subject(), why: why.clone() }
    }
}

impl From<&Crossing> for CrossingAnswer {
    fn from(crossing: &Crossing) -> CrossingAnswer {
        let last = crossing.steps.last();
        let change = last.and_then(WayStep::change);
        let date = last.and_then(WayStep::date);
        let candidate = |step: &WayStep| CandidateCommit { commit: step.id(), subject: step.subject() };
        let effect = &crossing.effect;
        CrossingAnswer {
            commit: last.map(WayStep::id),
            subject: last.map(WayStep::subject),
            date: date.map(|(text, _)| text.to_string()),
            dated_by: date.map(|(_, by)| by),
            own_tree_lacks: change.map(|change| change.absent_fixes().map(LoggedCommit::id).collect()),
            first_with: crossing.first_with,
            last_without: crossing.last_without,
            candidates: crossing.steps.iter().map(candidate).collect(),
            before: crossing.before.clone(),
            after: crossing.after.clone(),
            becomes: crossing.becomes,
            ratio: effect.estimate.ratio,
            low: effect.estimate.low,
            high: effect.estimate.high,
            verdict: effect.verdict,
            share: crossing.share,
            command: crossing.command.clone(),
            mean_before: mean(&effect.baseline),
            mean_after: mean(&effect.values),
            steps: crossing.steps.clone(),
        }
    }
}
