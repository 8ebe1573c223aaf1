//! Sweeps: on threads of this process, or by a crew.
//!
//! Must not know: what carries them.

use std::path::PathBuf;

use fairlab_files::quantities::parse_warmup;
use fairlab_lab::LabError;
use fairlab_lab::cells::{CellBatch, CellList};
use fairlab_lab::names::{MetricName, ShownMetrics};
use fairlab_lab::sweep::{Query, SweepPlan, sweep};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::crew::by_crew;
use crate::failed::CallError;
use crate::interruptible::{abandonable, interruptible};
use crate::request::{prepare, provenance};

/// A sweep and its folder.
#[pyclass(module = "fairlab._native", frozen)]
#[derive(Debug)]
pub struct Sweep {
    plan: SweepPlan,
    folder: PathBuf,
}

/// Cells in all, done before, done now, and what was mended.
type SweepProgress = (usize, usize, usize, Option<String>);

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
    ) -> Result<Sweep, CallError> {
        let mut plan = match (&file, &json) {
            (Some(file), _) => SweepPlan::read(file)?,
            (None, Some(json)) => SweepPlan::of_json(json)?,
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
        let plan = plan.with_names(ShownMetrics::default().wanted(&names));
        Ok(Sweep { plan, folder })
    }

    /// How many cells there are.
    #[getter]
    fn cells(&self) -> usize {
        self.plan.cells()
    }

    /// Runs what is left: on so many threads of this process, or by a crew. `progress` is called with cells that are done and all.
    fn run(
        &self,
        py: Python<'_>,
        jobs: Option<usize>,
        crew: Option<Py<PyAny>>,
        progress: Option<Py<PyAny>>,
    ) -> Result<SweepProgress, CallError> {
        let (plan, folder) = (self.plan.clone(), self.folder.clone());
        by_crew(py, jobs, crew, progress, move |place, on_progress, stop| {
            prepare(plan.kernels(), stop)?;
            let outcome = sweep(&plan, None, &folder, place, on_progress, stop)?;
            Ok((outcome.cells, outcome.before, outcome.done, outcome.note))
        })
    }

    /// The batch of these cells, as JSON for `run_cells`.
    fn batch(&self, numbers: Vec<usize>) -> Result<String, CallError> {
        if let Some(number) = numbers.iter().find(|&&number| number >= self.plan.cells()) {
            return Err(LabError::new(format!("there is no cell {number}"), "name cells of the sweep").into());
        }
        Ok(json!(self.plan.list(None).batch(&numbers)?).to_string())
    }
}

/// Runs the cells of a batch and gives their records, as the journal keeps them.
#[pyfunction]
pub fn run_cells(py: Python<'_>, batch: &str) -> Result<Vec<String>, CallError> {
    let batch = serde_json::from_str::<CellBatch>(batch).map_err(|error| {
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
) -> Result<String, CallError> {
    abandonable(py, move || {
        let names = metrics.iter().map(|word| MetricName::parse(word)).collect::<Result<Vec<_>, _>>()?;
        let metrics = names.into_iter().map(|metric| metric.name).collect();
        let answer = fairlab_lab::sweep::query(&folder, &Query { filters, by, metrics })?;
        Ok(provenance(words).of_cells(&answer).within(json!(answer)).to_string())
    })
}
