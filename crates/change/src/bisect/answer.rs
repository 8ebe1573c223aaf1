//! What a bisection found.
//!
//! Must not know: what people read.

use fairlab_kernel::generation::Release;

use fairlab_lab::ComparisonRow;

use crate::WayStep;

/// What a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As the good one.
    Good,
    /// As the bad one.
    Bad,
    /// All runs that were granted did not tell.
    Undecided,
    /// Its runs never differ: one course of events, which decides nothing.
    OneCourse,
}

impl State {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            State::Good => "good",
            State::Bad => "bad",
            State::Undecided => "undecided",
            State::OneCourse => "one_course",
        }
    }

    /// The words for people.
    pub const fn words(self) -> &'static str {
        match self {
            State::OneCourse => "one course of events",
            other => other.name(),
        }
    }
}

/// What a search comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
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
}

impl Finding {
    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Finding::Found => "found",
            Finding::Several => "several",
            Finding::Nothing => "nothing",
            Finding::Undecided => "undecided",
            Finding::OneCourse => "one_course",
        }
    }
}

/// A kernel that was judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Its name.
    pub kernel: String,
    /// What it is.
    pub state: State,
    /// The runs that it took.
    pub runs: usize,
    /// The metric's mean over them.
    pub mean: f64,
}

/// A commit that could not be judged, for there is no kernel of it that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Skipped {
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
    pub becomes: State,
    /// The metric before and after.
    pub effect: ComparisonRow,
    /// How much of the whole difference between good and bad this is, 0 to 1 or beyond.
    pub share: Option<f64>,
    /// The last release without the change.
    pub last_without: Option<Release>,
    /// The first one with it.
    pub first_with: Option<Release>,
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
    pub finding: Finding,
    /// The bad kernel beside the good one, as a comparison has it.
    pub ends: Option<ComparisonRow>,
    /// The command of that comparison.
    pub ends_command: Option<String>,
    /// How many changes of the model lie between, or commits that touch the scheduler.
    pub changes: usize,
    /// Commits that were left out, in the order in which they were come by.
    pub skipped: Vec<Skipped>,
    /// Every kernel that was judged, in the order of judgements.
    pub steps: Vec<Judged>,
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
        self.the_one().filter(|crossing| crossing.becomes == State::Bad)
    }

    /// Where bad turns to good, if one place makes the difference.
    pub fn first_good(&self) -> Option<&Crossing> {
        self.the_one().filter(|crossing| crossing.becomes == State::Good)
    }

    fn the_one(&self) -> Option<&Crossing> {
        self.crossings.first().filter(|_| self.finding == Finding::Found)
    }
}
