//! `fairlab/oracle/1`: how far the model decides as another kernel does, in that kernel's own state, and where it first differs.
//!
//! Must not know: how the two are driven.

use fairlab_verify::oracle::{Check, Difference};
use serde::Serialize;

use crate::oracle::{Followed, Run};

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

/// The first difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DifferenceAnswer {
    /// The seed of its run.
    pub seed: u64,
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
    /// What both hold on that CPU.
    pub state: Vec<StateAnswer>,
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
        followed: &Followed,
    ) -> OracleAnswer {
        let sum = followed.sum();
        let check = |check: Check| {
            let judged = sum.checks.get(&check).copied().unwrap_or_default();
            CheckAnswer { check: check.name(), judged: judged.all, agree: judged.agree }
        };
        let (machine, workload) = on.map(|(machine, workload)| (machine.to_string(), workload)).unzip();
        OracleAnswer {
            kernel: kernel.to_string(),
            against: against.to_string(),
            machine,
            workload,
            runs: followed.runs.len(),
            wanted,
            checks: Check::ALL.map(check).into(),
            difference: followed.differs().and_then(DifferenceAnswer::of),
        }
    }
}

impl DifferenceAnswer {
    /// The first difference of a run; `None`: there is none.
    pub fn of(run: &Run) -> Option<DifferenceAnswer> {
        Some(told(run, run.findings.first.as_ref()?))
    }
}

fn told(run: &Run, difference: &Difference) -> DifferenceAnswer {
    let state = difference.state.iter().cloned();
    DifferenceAnswer {
        seed: run.seed,
        command: run.command.clone(),
        time_ns: difference.time_ns,
        cpu: difference.cpu,
        call: difference.call.clone(),
        check: difference.check.name(),
        subject: difference.subject.clone(),
        leads: difference.leader.clone(),
        model: difference.follower.clone(),
        state: state.map(|(member, leads, model)| StateAnswer { member, leads, model }).collect(),
    }
}
