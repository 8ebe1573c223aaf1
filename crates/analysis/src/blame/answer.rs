//! `fairlab/blame/1`: the sums of one trace, or of two with what differs, for programs.
//!
//! Must not know: how traces were read, how answers reach a user.

use serde::Serialize;
use serde_json::Value;

use super::change::BlameChange;
use super::report::BlameReport;

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlameAnswer {
    schema: &'static str,
    /// The trace; or the one before and the one after.
    pub sides: Vec<BlameSide>,
    /// Of two, what differs.
    pub change: Option<BlameChange>,
}

/// One trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlameSide {
    /// Its name.
    pub trace: String,
    /// What was summed.
    pub waiting: BlameReport,
    /// The account of how it was read.
    pub import: Value,
}

impl BlameAnswer {
    /// Of one trace, or of two.
    pub fn of(sides: Vec<BlameSide>) -> BlameAnswer {
        let change = match &sides[..] {
            [before, after] => Some(BlameChange::between([&before.waiting, &after.waiting])),
            _ => None,
        };
        BlameAnswer { schema: "fairlab/blame/1", sides, change }
    }
}
