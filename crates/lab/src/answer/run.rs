//! `fairlab/run/1`: what runs measured, one after the other.
//!
//! Must not know: how runs are made.

use serde::Serialize;

use super::PartialRuns;
use crate::warm_up::notices;
use crate::{ExperimentResults, RunResult};

/// What runs measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/run/1")]
pub struct RunAnswer {
    /// How far it was, if it was stopped before its end.
    pub partial: Option<PartialRuns>,
    /// The runs: kernel by kernel, then by seed.
    pub runs: Vec<RunResult>,
    /// What the reader should know.
    pub notices: Vec<String>,
}

impl From<ExperimentResults> for RunAnswer {
    fn from(made: ExperimentResults) -> RunAnswer {
        let notices = notices(&made.results);
        RunAnswer { partial: made.partial.map(PartialRuns::from), runs: made.results, notices }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Progress;

    #[test]
    fn the_schema_stands_first_and_what_was_not_reached_is_said() {
        let stopped =
            ExperimentResults { results: Vec::new(), partial: Some(Progress { done: 0, total: 3 }) };
        let text = json!(RunAnswer::from(stopped)).to_string();
        assert_eq!(
            text,
            r#"{"schema":"fairlab/run/1","partial":{"runs":0,"wanted":3},"runs":[],"notices":[]}"#
        );
    }
}
