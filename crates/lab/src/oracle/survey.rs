//! Runs in which models follow other kernels, as cells: each can be made on any machine.
//!
//! Must not know: which runs are worth it, what is made of them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_files::shell::line_of;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{OraclePair, OracleRun};
use crate::cells::{
    BatchWork, BuiltKernels, CellBatch, CellKind, CellList, CellWorkers, prepare_to_travel, records,
};
use crate::kernel::KernelNeed;
use crate::{Kernel, LabError, Progress, RunSetting, SettingWords, machines};

static KIND: CellKind = CellKind { schema: "fairlab/oracle-journal/1", name: "survey" };

/// Who asks, in refusals.
const NAME: &str = "fidelity --oracle";

/// Runs of pairs of kernels.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The machine that kernels are built for.
    machine: String,
    /// Each with the model that follows and the kernel that leads, which is ready to run.
    pairs: Vec<(Kernel, Kernel)>,
    cells: Vec<SurveyCell>,
}

/// A run to be made, by words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SurveyCell {
    /// A workload by its command line.
    Named {
        /// The number of its pair.
        pair: usize,
        /// The machine's name.
        machine: String,
        /// The workload's words.
        workload: Vec<String>,
        /// The run's seed.
        seed: u64,
        /// When it ends, ns of virtual time.
        duration_ns: u64,
    },
    /// A case by chance.
    Case {
        /// The number of its pair.
        pair: usize,
        /// Its own.
        number: u64,
    },
}

/// Some of them, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OracleBatch {
    machine: String,
    /// The kernels' names.
    pairs: Vec<(String, String)>,
    built: BuiltKernels,
    cells: Vec<(usize, SurveyCell)>,
}

impl Survey {
    /// Runs of these pairs, by the names of follower and leader. Leaders are built for the machine: two runs would otherwise wait for
    /// one build.
    ///
    /// # Errors
    /// A kernel is not known, or cannot be built.
    pub fn new(
        machine: &str,
        pairs: &[(&str, &str)],
        cells: Vec<SurveyCell>,
        stop: &AtomicBool,
    ) -> Result<Survey, LabError> {
        let own = machines::find(machine)?;
        let built = |&(rules, against): &(&str, &str)| {
            let (rules, against) =
                (Kernel::parse_for(rules, KernelNeed::ChangeLog, NAME)?, Kernel::parse(against)?);
            against.prepare(&own, &|_, _| (), stop)?;
            Ok((rules, against))
        };
        let pairs = pairs.iter().map(built).collect::<Result<Vec<_>, LabError>>()?;
        Ok(Survey { machine: machine.to_string(), pairs, cells })
    }

    /// The kernel that leads a pair.
    pub fn leader(&self, pair: usize) -> Option<&Kernel> {
        self.pairs.get(pair).map(|(_, against)| against)
    }

    /// The runs in the order of cells, or what went wrong in one; `None`: it was stopped. With a folder they are kept there.
    ///
    /// # Errors
    /// As of [`run_journalled`](crate::cells::run_journalled).
    pub fn make(
        &self,
        folder: Option<&Path>,
        place: CellWorkers<'_>,
        on_progress: &(dyn Fn(Progress) + Sync),
        stop: &AtomicBool,
    ) -> Result<Option<Vec<Result<OracleRun, String>>>, LabError> {
        let (records, outcome) = records(self, folder, place, on_progress, stop)?;
        let runs = records.iter().map(run_of).collect::<Result<_, _>>()?;
        Ok(outcome.is_complete().then_some(runs))
    }

    fn batch_of(&self, numbers: &[usize]) -> Result<OracleBatch, LabError> {
        let machine = machines::find(&self.machine)?;
        let mut built = BuiltKernels::default();
        self.pairs.iter().for_each(|(_, against)| built.note(against, 0, &machine));
        let names =
            |(rules, against): &(Kernel, Kernel)| [rules, against].map(|kernel| kernel.name().to_string());
        Ok(OracleBatch {
            machine: self.machine.clone(),
            pairs: self.pairs.iter().map(|pair| names(pair).into()).collect(),
            built,
            cells: numbers.iter().map(|&number| (number, self.cells[number].clone())).collect(),
        })
    }
}

impl CellList for Survey {
    fn kind(&self) -> &'static CellKind {
        &KIND
    }

    fn spec(&self) -> Value {
        let pair = |(rules, against): &(Kernel, Kernel)| json!({ "kernel": rules.name(), "against": against.name(), "built": against.built() });
        json!({
            "schema": "fairlab/oracle-spec/1",
            "fairlab": env!("CARGO_PKG_VERSION"),
            "pairs": self.pairs.iter().map(pair).collect::<Vec<_>>(),
            "cells": self.cells,
        })
    }

    fn count(&self) -> usize {
        self.cells.len()
    }

    fn prepare(&self, stop: &AtomicBool) -> Result<(), LabError> {
        let machine = machines::find(&self.machine)?;
        self.pairs.iter().try_for_each(|(_, against)| prepare_to_travel(against, &machine, stop))
    }

    fn batch(&self, numbers: &[usize]) -> Result<CellBatch, LabError> {
        Ok(CellBatch::of(BatchWork::Oracle(self.batch_of(numbers)?)))
    }

    fn run(&self, number: usize, stop: &AtomicBool) -> Result<Option<Value>, LabError> {
        let cell = &self.cells[number];
        let (rules, against) = &self.pairs[cell.pair()];
        Ok(cell.run(rules, against, stop)?.map(|run| record(number, &run)))
    }
}

impl OracleBatch {
    /// Makes the runs and gives their records; `None`: `stop` was set before the end.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
        let built = self.built.build(&|_| machines::find(&self.machine), stop)?;
        let kernel = |name: &str| built.get(name).cloned().map_or_else(|| Kernel::parse(name), Ok);
        let mut records = Vec::new();
        for (number, cell) in &self.cells {
            let lacking = || LabError::new("the batch lacks a pair of kernels", "make the batch again");
            let (rules, against) = self.pairs.get(cell.pair()).ok_or_else(lacking)?;
            let Some(run) = cell.run(&kernel(rules)?, &kernel(against)?, stop)? else { return Ok(None) };
            records.push(record(*number, &run));
        }
        Ok(Some(records))
    }
}

impl SurveyCell {
    const fn pair(&self) -> usize {
        match self {
            SurveyCell::Named { pair, .. } | SurveyCell::Case { pair, .. } => *pair,
        }
    }

    /// The run, or what went wrong in it; `None`: it was stopped.
    fn run(
        &self,
        rules: &Kernel,
        against: &Kernel,
        stop: &AtomicBool,
    ) -> Result<Option<Result<OracleRun, String>>, LabError> {
        let pair = OraclePair { rules: rules.rules(NAME)?, against, progress: &|_| (), stop };
        let (what, followed) = match self {
            SurveyCell::Named { machine, workload, seed, duration_ns, .. } => {
                let words = workload.iter().map(String::as_str).collect::<Vec<_>>();
                let what = format!("{} on {machine}, seed {seed}", line_of(workload));
                let setting = setting(machine, &words, *seed, Ns(*duration_ns));
                (what, setting.and_then(|setting| pair.follow(&setting, 1)))
            }
            SurveyCell::Case { number, .. } => (format!("case {number}"), pair.follow_cases(*number, 1)),
        };
        match followed {
            Ok(mut followed) => Ok(followed.runs.pop().map(Ok)),
            Err(error) => Ok(Some(Err(format!("{what}: {}", error.problem)))),
        }
    }
}

/// A named workload's setting: all is measured from the start.
///
/// # Errors
/// There is no such machine or workload.
pub fn setting(machine: &str, words: &[&str], seed: u64, duration: Ns) -> Result<RunSetting, LabError> {
    let workload = words.iter().map(ToString::to_string).collect::<Vec<_>>();
    RunSetting::of(&SettingWords {
        machine,
        workload: &workload,
        warmup: Some(Ns::ZERO),
        duration: Some(duration),
        exact: false,
        first_seed: seed,
        by_name: None,
        time: Default::default(),
    })
}

fn record(number: usize, run: &Result<OracleRun, String>) -> Value {
    match run {
        Ok(run) => json!({ "cell": number, "run": run }),
        Err(problem) => json!({ "cell": number, "failed": problem }),
    }
}

fn run_of(record: &Value) -> Result<Result<OracleRun, String>, LabError> {
    if let Some(problem) = record["failed"].as_str() {
        return Ok(Err(problem.to_string()));
    }
    OracleRun::deserialize(&record["run"]).map(Ok).map_err(|error| {
        LabError::new(
            format!("cell {} is no run: {error}", record["cell"]),
            "run the same version everywhere",
        )
    })
}
