//! The answer of a survey, for programs (`fairlab/fidelity-oracle/1`).
//!
//! Must not know: how runs are made.

use fairlab_lab::oracle::Run;
use fairlab_verify::oracle::Check;
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
    pub kernel: &'static str,
    /// The kernel that leads.
    pub against: &'static str,
    /// What the leader's sources call themselves.
    pub release: String,
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
    pub differences: Vec<DifferenceAnswer>,
    /// What went wrong in runs that have no answer, a line each.
    pub failed: Vec<String>,
}

/// The first difference of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DifferenceAnswer {
    /// The command line that makes the run again.
    pub command: String,
    /// When, ns of virtual time.
    pub time_ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// In which call.
    pub call: String,
    /// What was compared.
    pub check: &'static str,
    /// Of what.
    pub subject: String,
    /// What the tree holds or does.
    pub leads: String,
    /// What the model holds or does.
    pub model: String,
}

/// What was compared of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckAnswer {
    /// Its name.
    pub check: &'static str,
    /// How often it was compared.
    pub judged: u64,
    /// How often both were alike.
    pub agree: u64,
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
    let findings = one.findings();
    let check = |check: Check| {
        let judged = findings.checks.get(&check).copied().unwrap_or_default();
        CheckAnswer { check: check.name(), judged: judged.all, agree: judged.agree }
    };
    ReleaseAnswer {
        kernel: one.kernel,
        against: one.against,
        release: one.release.clone(),
        rows: one.rows.iter().map(row).collect(),
        checks: Check::ALL.map(check).into(),
    }
}

fn row(row: &Row) -> RowAnswer {
    RowAnswer {
        machine: row.machine,
        runs: row.runs,
        alike: row.alike(),
        compared: row.findings.total(),
        differences: row.differ.iter().filter_map(difference).collect(),
        failed: row.failed.clone(),
    }
}

fn difference(run: &Run) -> Option<DifferenceAnswer> {
    let first = run.findings.first.as_ref()?;
    Some(DifferenceAnswer {
        command: run.command.clone(),
        time_ns: first.time_ns,
        cpu: first.cpu,
        call: first.call.clone(),
        check: first.check.name(),
        subject: first.subject.clone(),
        leads: first.leader.clone(),
        model: first.follower.clone(),
    })
}
