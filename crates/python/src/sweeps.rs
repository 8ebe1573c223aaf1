//! Sweeps: on threads of this process, or cell by cell for a caller that runs cells elsewhere.
//!
//! Must not know: what carries them.

use std::path::PathBuf;

use fairlab_lab::LabError;
use fairlab_lab::names::{MetricName, Shown};
use fairlab_lab::quantities::parse_warmup;
use fairlab_lab::sweep::{Batch, Outcome, Plan, Query, SweepJournal, closed, sweep};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::failed::Failed;
use crate::interruptible::{abandonable, interruptible};
use crate::request::{one_a_cpu, prepare, provenance};

/// A sweep and its folder.
#[pyclass(module = "fairlab._native")]
#[derive(Debug)]
pub struct Sweep {
    plan: Plan,
    folder: PathBuf,
    under_way: Option<UnderWay>,
}

/// A sweep whose cells are run elsewhere.
#[derive(Debug)]
struct UnderWay {
    journal: SweepJournal,
    before: usize,
    note: Option<String>,
    /// Cells that are left; those before `next` are given out.
    todo: Vec<usize>,
    next: usize,
}

/// Cells in all, done before, done now, and what was mended.
type Told = (usize, usize, usize, Option<String>);

fn told(outcome: Outcome) -> Told {
    (outcome.cells, outcome.before, outcome.done, outcome.note)
}

#[pymethods]
impl Sweep {
    /// Reads the sweep that a file or JSON asks for; everything that it names is checked.
    #[new]
    #[pyo3(signature = (file, json, folder, exact, warmup, metrics))]
    fn new(
        file: Option<PathBuf>,
        json: Option<String>,
        folder: PathBuf,
        exact: bool,
        warmup: Option<String>,
        metrics: Vec<String>,
    ) -> Result<Sweep, Failed> {
        let mut plan = match (&file, &json) {
            (Some(file), _) => Plan::read(file)?,
            (None, Some(json)) => Plan::of_json(json)?,
            (None, None) => return Err(LabError::new("no sweep is given", "give its file").into()),
        };
        if exact {
            plan = plan.exact();
        }
        if let Some(warmup) = &warmup {
            let failed = |problem| LabError::new(format!("warmup='{warmup}': {problem}"), "give a time");
            plan = plan.with_warmup(parse_warmup(warmup).map_err(failed)?);
        }
        let names = metrics.iter().map(|word| MetricName::parse(word)).collect::<Result<Vec<_>, _>>()?;
        let plan = plan.with_names(Shown::default().wanted(&names));
        Ok(Sweep { plan, folder, under_way: None })
    }

    /// How many cells there are.
    #[getter]
    fn cells(&self) -> usize {
        self.plan.cells()
    }

    /// Runs what is left on so many threads of this process.
    fn run(&self, py: Python<'_>, jobs: Option<usize>) -> Result<Told, Failed> {
        let (plan, folder) = (self.plan.clone(), self.folder.clone());
        interruptible(py, move |stop| {
            prepare(plan.kernels(), stop)?;
            sweep(&plan, &folder, jobs.unwrap_or_else(one_a_cpu), &|_| {}, stop)
        })
        .map(told)
    }

    /// Opens the folder for cells that are run elsewhere.
    fn open(&mut self, py: Python<'_>) -> Result<Told, Failed> {
        let plan = self.plan.clone();
        interruptible(py, move |stop| Batch::prepare(&plan, stop))?;
        let (journal, note) = SweepJournal::open(&self.folder, &self.plan)?;
        let (before, todo) = (journal.count(), journal.todo(&self.plan));
        self.under_way = Some(UnderWay { journal, before, note: note.clone(), todo, next: 0 });
        Ok((self.plan.cells(), before, before, note))
    }

    /// The next cells that are left, at most so many, as JSON for `run_cells`, and their numbers; None when all are given out.
    fn next_batch(&mut self, cells: usize) -> Result<Option<(String, Vec<usize>)>, Failed> {
        let plan = &self.plan;
        let Some(under_way) = &mut self.under_way else { return Err(not_open()) };
        let end = under_way.todo.len().min(under_way.next + cells.max(1));
        let numbers = under_way.todo[under_way.next..end].to_vec();
        under_way.next = end;
        if numbers.is_empty() {
            return Ok(None);
        }
        Ok(Some((json!(Batch::of(plan, &numbers)).to_string(), numbers)))
    }

    /// Adds the records of cells that are done; they are in the journal when this returns. Gives how many cells are done.
    fn add(&mut self, records: Vec<String>) -> Result<usize, Failed> {
        let Some(under_way) = &mut self.under_way else { return Err(not_open()) };
        for record in records {
            let value = serde_json::from_str::<Value>(&record).map_err(|error| {
                LabError::new(format!("a record of a cell is no JSON: {error}"), "run one version everywhere")
            })?;
            under_way.journal.add(&value)?;
        }
        Ok(under_way.journal.count())
    }

    /// Closes the folder. Where all cells are done, it has its table and sums then.
    fn close(&mut self, py: Python<'_>) -> Result<Told, Failed> {
        let Some(UnderWay { journal, before, note, .. }) = self.under_way.take() else {
            return Err(not_open());
        };
        let outcome = Outcome { cells: self.plan.cells(), before, done: journal.count(), note };
        drop(journal);
        let (plan, folder) = (self.plan.clone(), self.folder.clone());
        abandonable(py, move || closed(&plan, &folder, outcome)).map(told)
    }
}

fn not_open() -> Failed {
    LabError::new("the sweep's folder is not open", "open it first").into()
}

/// Runs the cells of a batch and gives their records, as the journal keeps them.
#[pyfunction]
pub fn run_cells(py: Python<'_>, batch: &str) -> Result<Vec<String>, Failed> {
    let batch = serde_json::from_str::<Batch>(batch).map_err(|error| {
        LabError::new(format!("no batch of cells: {error}"), "run one version everywhere")
    })?;
    interruptible(py, move |stop| {
        let records = batch.run(stop)?.unwrap_or_default();
        Ok(records.iter().map(Value::to_string).collect())
    })
}

/// Sums up a sweep's cells, done or under way.
#[pyfunction]
pub fn query(
    py: Python<'_>,
    folder: PathBuf,
    filters: Vec<(String, String)>,
    by: Vec<String>,
    metrics: Vec<String>,
    words: Vec<String>,
) -> Result<String, Failed> {
    abandonable(py, move || {
        let names = metrics.iter().map(|word| MetricName::parse(word)).collect::<Result<Vec<_>, _>>()?;
        let metrics = names.into_iter().map(|metric| metric.name).collect();
        let answer = fairlab_lab::sweep::query(&folder, &Query { filters, by, metrics })?;
        Ok(provenance(words).of_cells(&answer).within(json!(answer)).to_string())
    })
}
