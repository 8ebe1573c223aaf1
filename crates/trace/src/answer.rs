//! What every answer about a trace says of how the trace was read.
//!
//! Must not know: what is computed from a trace.

use serde::{Serialize, Serializer};

use crate::{ImportStats, TroubleCount, UnreadableTally};

/// The account of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportAnswer {
    /// Events that were read.
    pub events: u64,
    /// The trace instances that were read, where the trace has more than one.
    pub instances: Vec<String>,
    /// Kinds of events of which some could not be read.
    pub unreadable: Vec<UnreadableAnswer>,
    /// Trouble by its name.
    #[serde(serialize_with = "by_name")]
    pub troubles: Vec<TroubleCount>,
    /// What the answer lacks because the trace does, one clause each.
    pub notices: Vec<String>,
}

/// A kind of event of which some could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadableAnswer {
    /// The tracepoint's name.
    pub event: &'static str,
    /// How many could not be read.
    pub count: u64,
    /// How many were read.
    pub read: u64,
    /// Where the first stands: a line number (text), or a byte offset (binary).
    pub first_at: u64,
    /// The beginning of that line; empty where the trace is binary.
    pub first: String,
}

/// An answer about a trace, with the account of how that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceAnswer<A> {
    /// The answer, its schema first.
    #[serde(flatten)]
    pub answer: A,
    /// The account.
    pub import: ImportAnswer,
}

impl ImportAnswer {
    /// The account of an import; `notices`: what the answer lacks.
    pub fn of(stats: &ImportStats, notices: &[String]) -> ImportAnswer {
        let unreadable = stats.unreadable().iter().map(|kind| {
            let UnreadableTally { event, count, read, first_at, first } = kind;
            let (count, read, first_at) = (*count, *read, *first_at);
            UnreadableAnswer { event, count, read, first_at, first: first.clone() }
        });
        ImportAnswer {
            events: stats.events,
            instances: stats.instances.clone(),
            unreadable: unreadable.collect(),
            troubles: stats.troubles().to_vec(),
            notices: stats.shift_notes().chain(notices.iter().cloned()).collect(),
        }
    }
}

fn by_name<S: Serializer>(troubles: &[TroubleCount], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct UnreadableCount {
        count: u64,
        first_at: u64,
    }
    let met = troubles.iter().map(|&TroubleCount { trouble, count, first_at }| {
        (trouble.name(), UnreadableCount { count, first_at })
    });
    serializer.collect_map(met)
}
