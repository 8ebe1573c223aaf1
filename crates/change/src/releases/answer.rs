//! The answer of a survey, for programs (`fairlab/fidelity-oracle/1`).
//!
//! Must not know: how runs are made.

use fairlab_lab::answer::{CheckAnswer, FirstAnswer};
use serde::Serialize;

use super::{Extent, Followed, Row, workloads};

/// What came of all releases.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/fidelity-oracle/1")]
pub struct OracleTable {
    /// Seeds of each named workload on each machine.
    pub seeds: u64,
    /// Cases by chance under each release.
    pub cases: u64,
    /// The named workloads' command lines.
    pub workloads: Vec<String>,
    /// One entry a release.
    pub releases: Vec<ReleaseAnswer>,
}

/// What came of one release.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReleaseAnswer {
    /// The modelled kernel, which follows.
    pub kernel: String,
    /// The kernel that leads.
    pub against: String,
    /// What the leader's sources call themselves.
    pub release: String,
    /// Where they are from.
    pub sources: String,
    /// Commits that they show beyond their release, which the model has been given: names of the log.
    pub backports: Vec<&'static str>,
    /// By machine, last the cases by chance.
    pub rows: Vec<RowAnswer>,
    /// What was compared in all runs.
    pub checks: Vec<CheckAnswer>,
}

/// Runs on one machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowAnswer {
    /// The machine; none where cases were drawn by chance.
    pub machine: Option<&'static str>,
    /// Runs that were made.
    pub runs: usize,
    /// Of these, those in which nothing differs.
    pub alike: usize,
    /// Comparisons in all of them.
    pub compared: u64,
    /// The first difference of each run that has one.
    pub differences: Vec<FirstAnswer>,
    /// What went wrong in runs that have no answer, a line each.
    pub failed: Vec<String>,
}

impl OracleTable {
    /// The answer of a survey of this extent.
    pub fn new(extent: Extent, all: &[Followed]) -> OracleTable {
        OracleTable {
            seeds: extent.seeds,
            cases: extent.cases,
            workloads: workloads(),
            releases: all.iter().map(release).collect(),
        }
    }
}

fn release(one: &Followed) -> ReleaseAnswer {
    ReleaseAnswer {
        kernel: one.kernel.clone(),
        against: one.against.clone(),
        release: one.release.clone(),
        sources: one.sources.clone(),
        backports: one.backports.clone(),
        rows: one.rows.iter().map(row).collect(),
        checks: CheckAnswer::all(&one.findings()),
    }
}

fn row(row: &Row) -> RowAnswer {
    RowAnswer {
        machine: row.machine,
        runs: row.runs,
        alike: row.alike(),
        compared: row.findings.total(),
        differences: row.differ.iter().filter_map(FirstAnswer::of).collect(),
        failed: row.failed.clone(),
    }
}
