//! Answers, each as one type with a schema of its own (`fairlab/run/1`). Programs read the type as it stands; text for people
//! is a view of it, and what only people read is skipped in JSON.
//!
//! Must not know: how an answer is printed.

pub mod causes;
mod compare;
pub mod gate;
mod merge;
mod oracle;
mod run;

use serde::{Serialize, Serializer};

pub use compare::{CompareAnswer, LooksAnswer, MetricAnswer, ModeAnswer, MoreRunsAnswer};
pub use merge::{MergeAnswer, MergedGroup};
pub use oracle::{CheckAnswer, DifferenceAnswer, FirstAnswer, OracleAnswer, StateAnswer};
pub use run::RunAnswer;

use crate::Progress;

/// How far runs were when they were stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PartialRuns {
    /// Runs that were made.
    pub runs: usize,
    /// Runs that were wanted.
    pub wanted: usize,
}

impl From<Progress> for PartialRuns {
    fn from(progress: Progress) -> PartialRuns {
        PartialRuns { runs: progress.done, wanted: progress.total }
    }
}

/// A value for which JSON has a word.
pub trait JsonWord {
    /// The word.
    fn word(&self) -> &'static str;
}

/// A value by its word.
///
/// # Errors
/// The serializer's.
pub fn by_name<T: JsonWord, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value.word())
}
