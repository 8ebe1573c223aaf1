//! The way from one kernel to another: positions, the kernels there, and kernels beside the way.
//!
//! Must not know: what is looked for on it.

mod log;
mod tree;

use std::sync::atomic::AtomicBool;

use fairlab_kernel::generation::{GenerationStep, LoggedCommit, MainlineRelease};
use fairlab_lab::{Kernel, LabError};
use fairlab_native::history::{CommitOrder, HistoryCommit};

pub use log::LogWay;
pub use tree::TreeWay;

/// The way: kernels by position, 0 is where it begins.
pub enum CommitPath {
    /// Through the model's log.
    Log(LogWay),
    /// Through the commits of a repository.
    Tree(Box<TreeWay>),
}

/// What leads from one position to the next.
#[derive(Clone, Debug, PartialEq)]
pub enum WayStep {
    /// A step of the model's log.
    Log(GenerationStep),
    /// A commit of a repository.
    Commit(HistoryCommit),
}

impl WayStep {
    /// The commit, as short as people write it, or what is switched.
    pub fn id(&self) -> String {
        match self {
            WayStep::Log(step) => step.id(),
            WayStep::Commit(commit) => commit.id().to_string(),
        }
    }

    /// The commit's subject.
    pub fn subject(&self) -> String {
        match self {
            WayStep::Log(step) => step.subject(),
            WayStep::Commit(commit) => commit.subject.clone(),
        }
    }

    /// What the model knows of it.
    pub fn change(&self) -> Option<&'static LoggedCommit> {
        match self {
            WayStep::Log(step) => step.change(),
            WayStep::Commit(_) => None,
        }
    }

    /// The first release with it, if that is known.
    pub fn release(&self) -> Option<MainlineRelease> {
        self.change()?.release
    }

    /// Its date, and what that is the date of.
    pub fn date(&self) -> Option<(&str, &'static str)> {
        match self {
            WayStep::Log(step) => step.change()?.date.map(|date| (date.text, date.by.name())),
            WayStep::Commit(commit) => Some((&commit.date, "author")),
        }
    }

    /// How many other lines a merge joins; 0: it is none.
    pub fn joins(&self) -> usize {
        match self {
            WayStep::Log(_) => 0,
            WayStep::Commit(commit) => commit.merged.len(),
        }
    }
}

/// The ends of a way that a search takes.
pub struct PathEnds {
    /// It, from the older end.
    pub way: CommitPath,
    /// Whether it begins at the first of the two kernels that were named.
    pub begins_at_first: bool,
}

impl CommitPath {
    /// The way between two kernels of one history, from the older one to the newer, for `what`, which searches it.
    ///
    /// # Errors
    /// The two have no history in common.
    pub fn between(
        one: &Kernel,
        other: &Kernel,
        what: &str,
        stop: &AtomicBool,
    ) -> Result<PathEnds, LabError> {
        let Some((one_tree, other_tree)) = tree::ends(one, other, what)? else {
            return log::between(one, other, what);
        };
        let begins_at_first = tree::order(&one_tree, &other_tree, stop)? != CommitOrder::Newer;
        let (from, to) = if begins_at_first { (one_tree, other_tree) } else { (other_tree, one_tree) };
        let way = CommitPath::Tree(Box::new(TreeWay::new(&from, &to, stop)?));
        Ok(PathEnds { way, begins_at_first })
    }

    /// The last position of the way itself.
    pub fn end(&self) -> usize {
        match self {
            CommitPath::Log(way) => way.end(),
            CommitPath::Tree(way) => way.end(),
        }
    }

    /// The kernel at a position; `None` where its rules contradict each other.
    pub fn kernel(&self, position: usize) -> Option<Kernel> {
        match self {
            CommitPath::Log(way) => way.kernel(position),
            CommitPath::Tree(way) => way.kernel(position),
        }
    }

    /// The step that leads to a position.
    pub fn step(&self, position: usize) -> Option<WayStep> {
        match self {
            CommitPath::Log(way) => way.step(position).map(WayStep::Log),
            CommitPath::Tree(way) => way.step(position).cloned().map(WayStep::Commit),
        }
    }

    /// The kernel that lacks nothing of the one at `high` but its own step; `low` is the position before it.
    pub(crate) fn just_before(&self, low: usize, high: usize) -> Option<Kernel> {
        match self {
            CommitPath::Log(way) => way.kernel(low),
            CommitPath::Tree(way) => way.just_before(low, high),
        }
    }

    /// How many of its steps are changes, merges not counted.
    pub(crate) fn changes(&self) -> usize {
        match self {
            CommitPath::Log(way) => way.end(),
            CommitPath::Tree(way) => way.changes(),
        }
    }

    /// Why there is no step on it.
    pub fn why_empty(&self) -> String {
        match self {
            CommitPath::Log(_) => "no change of the model lies between the two kernels".to_string(),
            CommitPath::Tree(way) => way.why_empty(),
        }
    }

    /// Whether a kernel on it may be impossible to build or to run, and is then left out.
    pub(crate) fn may_lack_kernels(&self) -> bool {
        matches!(self, CommitPath::Tree(_))
    }

    /// The other lines that the step to a position joins, each as positions beyond the end: the first is where the line began, the last
    /// is its tip. Lines without a step for the search are left out.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub(crate) fn joined(
        &mut self,
        position: usize,
        stop: &AtomicBool,
    ) -> Result<Vec<(usize, usize)>, LabError> {
        match self {
            CommitPath::Log(_) => Ok(Vec::new()),
            CommitPath::Tree(way) => way.joined(position, stop),
        }
    }
}
