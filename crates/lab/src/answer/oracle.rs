//! `fairlab/oracle/1`: how far the model decides as another kernel does, in that kernel's own state, and where it first differs.
//!
//! Must not know: how the two are driven.

use fairlab_verify::oracle::{OracleCheck, OracleFindings};
use serde::Serialize;

use crate::oracle::{OracleRun, OracleRuns};

/// What came of following a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/oracle/1")]
pub struct OracleAnswer {
    /// The modelled kernel, which follows.
    pub kernel: String,
    /// The kernel that leads.
    pub against: String,
    /// The machine's name; none where cases were drawn by chance.
    pub machine: Option<String>,
    /// The workload's command line, likewise.
    pub workload: Option<String>,
    /// How many runs were made, one a seed, and how many were wanted.
    pub runs: usize,
    /// How many were wanted.
    pub wanted: usize,
    /// What was compared, and how often both were alike.
    pub checks: Vec<CheckAnswer>,
    /// Where they first differ; nothing is compared after that.
    pub difference: Option<DifferenceAnswer>,
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

/// The first difference with what both hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DifferenceAnswer {
    /// The seed of its run.
    pub seed: u64,
    /// The place and the event.
    #[serde(flatten)]
    pub first: FirstAnswer,
    /// What both hold on that CPU.
    pub state: Vec<StateAnswer>,
}

/// Where two kernels first differ, and in which event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FirstAnswer {
    /// The command line that makes that run again.
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
    /// What the leading kernel holds or does.
    pub leads: String,
    /// What the model holds or does.
    pub model: String,
}

/// A member that both hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateAnswer {
    /// Of what, and its name.
    pub member: String,
    /// The leading kernel's value.
    pub leads: String,
    /// The model's.
    pub model: String,
}

impl OracleAnswer {
    /// The answer of runs; `on`: the machine and the workload of all of them.
    pub fn new(
        (kernel, against): (&str, &str),
        on: Option<(&str, String)>,
        wanted: usize,
        followed: &OracleRuns,
    ) -> OracleAnswer {
        let (machine, workload) = on.map(|(machine, workload)| (machine.to_string(), workload)).unzip();
        OracleAnswer {
            kernel: kernel.to_string(),
            against: against.to_string(),
            machine,
            workload,
            runs: followed.runs.len(),
            wanted,
            checks: CheckAnswer::all(&followed.sum()),
            difference: followed.differs().and_then(DifferenceAnswer::of),
        }
    }
}

impl CheckAnswer {
    /// Every kind, in order of report.
    pub fn all(findings: &OracleFindings) -> Vec<CheckAnswer> {
        let check = |check: OracleCheck| {
            let judged = findings.checks.get(&check).copied().unwrap_or_default();
            CheckAnswer { check: check.name(), judged: judged.all, agree: judged.agree }
        };
        OracleCheck::ALL.map(check).into()
    }
}

impl FirstAnswer {
    /// The first difference of a run; `None`: there is none.
    pub fn of(run: &OracleRun) -> Option<FirstAnswer> {
        let first = run.findings.first.as_ref()?;
        Some(FirstAnswer {
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
}

impl DifferenceAnswer {
    /// The first difference of a run; `None`: there is none.
    pub fn of(run: &OracleRun) -> Option<DifferenceAnswer> {
        let state = run.findings.first.as_ref()?.state.iter().cloned();
        Some(DifferenceAnswer {
            seed: run.seed,
            first: FirstAnswer::of(run)?,
            state: state.map(|(member, leads, model)| StateAnswer { member, leads, model }).collect(),
        })
    }
}
