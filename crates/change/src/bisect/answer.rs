//! What a bisection found.
//!
//! Must not know: what people read.

use fairlab_analysis::statistics::{mean, mean_interval};
use fairlab_kernel::generation::MainlineRelease;

use fairlab_lab::ComparisonRow;

use crate::WayStep;

/// Of the intervals of means.
const CONFIDENCE: f64 = 0.95;

/// What a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelState {
    /// As the good one.
    Good,
    /// As the bad one.
    Bad,
    /// All runs that were granted did not tell.
    Undecided,
    /// Its runs never differ: one course of events, which decides nothing.
    OneCourse,
}

impl KernelState {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            KernelState::Good => "good",
            KernelState::Bad => "bad",
            KernelState::Undecided => "undecided",
            KernelState::OneCourse => "one_course",
        }
    }

    /// The words for people.
    pub const fn words(self) -> &'static str {
        match self {
            KernelState::OneCourse => "one course of events",
            other => other.name(),
        }
    }
}

/// What a search comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchFinding {
    /// One commit makes most of the difference, for sure.
    Found,
    /// There is a difference, and no single commit makes most of it.
    Several,
    /// There is nothing to find between the two kernels.
    Nothing,
    /// The runs that were granted do not tell.
    Undecided,
    /// Runs never differ: one course of events, which decides nothing.
    OneCourse,
    /// Only what is not modelled lies between the two kernels.
    NotModelled,
}

impl SearchFinding {
    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            SearchFinding::Found => "found",
            SearchFinding::Several => "several",
            SearchFinding::Nothing => "nothing",
            SearchFinding::Undecided => "undecided",
            SearchFinding::OneCourse => "one_course",
            SearchFinding::NotModelled => "not_modelled",
        }
    }
}

/// A kernel that was judged.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedKernel {
    /// Its name.
    pub kernel: String,
    /// What it is.
    pub state: KernelState,
    /// The runs that it took.
    pub runs: usize,
    /// The metric's mean over them.
    pub mean: f64,
    /// The 95 % interval of that mean; `None`: the runs do not tell how they scatter.
    pub interval: Option<(f64, f64)>,
    /// How many steps of the way lead to it; `None`: it is on a line that a merge joined.
    pub position: Option<usize>,
    /// The step that leads to it; none leads to the first.
    pub step: Option<WayStep>,
}

/// The ends of a mean's interval; `None`: the values do not tell how they scatter.
pub(crate) fn mean_ends(values: &[f64]) -> Option<(f64, f64)> {
    let (mean, either_way) = mean_interval(values, CONFIDENCE)?;
    Some((mean - either_way, mean + either_way))
}

impl JudgedKernel {
    /// A kernel by its runs' values, wherever it stands.
    pub(super) fn of(kernel: &str, state: KernelState, values: &[f64]) -> JudgedKernel {
        JudgedKernel {
            kernel: kernel.to_string(),
            state,
            runs: values.len(),
            mean: mean(values),
            interval: mean_ends(values),
            position: None,
            step: None,
        }
    }
}

/// A commit that could not be judged, for there is no kernel of it that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct SkippedCommit {
    /// The step that leads to it.
    pub step: WayStep,
    /// Why there is none: the compiler's first error, or how a run ended.
    pub why: String,
}

/// A place on the way where good turns to bad, or bad to good.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// What lies between the last kernel before and the first one after; one, unless kernels between could not be judged.
    pub steps: Vec<WayStep>,
    /// The kernel before.
    pub before: String,
    /// The kernel after.
    pub after: String,
    /// What the kernel after is.
    pub becomes: KernelState,
    /// The metric before and after.
    pub effect: ComparisonRow,
    /// How much of the whole difference between good and bad this is, 0 to 1 or beyond.
    pub share: Option<f64>,
    /// The last release without the change.
    pub last_without: Option<MainlineRelease>,
    /// The first one with it.
    pub first_with: Option<MainlineRelease>,
    /// A command that shows the effect.
    pub command: String,
    /// Kernels between were judged, and could not be told apart from those before and after.
    pub undecided_between: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisection {
    /// Where the walk began.
    pub from: String,
    /// Where it ended.
    pub to: String,
    /// The metric that was looked at.
    pub metric: String,
    /// What the search comes to.
    pub finding: SearchFinding,
    /// The bad kernel beside the good one, as a comparison has it.
    pub ends: Option<ComparisonRow>,
    /// The command of that comparison.
    pub ends_command: Option<String>,
    /// How many changes of the model lie between, or commits that touch the scheduler.
    pub changes: usize,
    /// Commits that were left out, in the order in which they were come by.
    pub skipped: Vec<SkippedCommit>,
    /// Every kernel that was judged, in the order of judgements.
    pub steps: Vec<JudgedKernel>,
    /// Where it crosses, in the order of the walk.
    pub crossings: Vec<Crossing>,
    /// How often an answer like this is wrong, at most; only where a commit was found.
    pub error: Option<f64>,
    /// All runs that were made.
    pub runs: usize,
    /// What the reader should know.
    pub notices: Vec<String>,
    /// Whether the user stopped it.
    pub stopped: bool,
}

impl Bisection {
    /// Where good turns to bad, if one place makes the difference.
    pub fn first_bad(&self) -> Option<&Crossing> {
        self.the_one().filter(|crossing| crossing.becomes == KernelState::Bad)
    }

    /// Where bad turns to good, if one place makes the difference.
    pub fn first_good(&self) -> Option<&Crossing> {
        self.the_one().filter(|crossing| crossing.becomes == KernelState::Good)
    }

    fn the_one(&self) -> Option<&Crossing> {
        self.crossings.first().filter(|_| self.finding == SearchFinding::Found)
    }
}
