//! A Python object as the crew that runs cells: it is given batches, and gives records.
//!
//! Must not know: what cells are, where they run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use fairlab_lab::cells::{CellWorkers, Crew};
use fairlab_lab::{LabError, Progress};
use pyo3::prelude::*;
use serde_json::Value;

use crate::failed::CallError;
use crate::interruptible::interruptible;
use crate::request::one_a_cpu;

/// How long it is waited for records before it is looked whether to stop, s.
const LOOK_S: f64 = 0.05;

/// What came of calls into Python: the first exception ends the work, and is what the caller gets.
type RaisedError = Mutex<Option<PyErr>>;

/// Does work whose cells are run on so many threads of this process, or by a crew: an object with `cpus()`, `submit(batch)`,
/// `ready(sent, seconds)`, `records(sent)` and `cancel(sent)`. `progress` is called with the cells that are done and all cells.
///
/// # Errors
/// The work's, or what Python raised.
pub fn by_crew<T: Send + 'static>(
    py: Python<'_>,
    jobs: Option<usize>,
    crew: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(CellWorkers<'_>, &(dyn Fn(Progress) + Sync), &AtomicBool) -> Result<T, LabError>
    + Send
    + 'static,
) -> Result<T, CallError> {
    if jobs == Some(0) {
        return Err(LabError::new("jobs=0: a whole number from 1 on", "leave it out for one a CPU").into());
    }
    let cpus = match &crew {
        Some(crew) => crew.call_method0(py, "cpus")?.extract(py)?,
        None => 0,
    };
    let outcome = interruptible(py, move |stop| {
        let raised = RaisedError::new(None);
        let on_progress = |now: Progress| {
            let told =
                progress.as_ref().map(|told| Python::attach(|py| told.call1(py, (now.done, now.total))));
            if let Some(Err(error)) = told {
                note(&raised, error);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let mut python = crew.map(|crew| PythonCrew { crew, cpus, out: VecDeque::new(), raised: &raised });
        let place = match &mut python {
            Some(python) => CellWorkers::Crew(python),
            None => CellWorkers::Threads(jobs.unwrap_or_else(one_a_cpu)),
        };
        let made = work(place, &on_progress, stop);
        drop(python);
        Ok((made, raised.into_inner().unwrap_or_else(PoisonError::into_inner)))
    })?;
    match outcome {
        (_, Some(error)) => Err(error.into()),
        (made, None) => Ok(made?),
    }
}

fn note(raised: &RaisedError, error: PyErr) -> LabError {
    let told = LabError::new(error.to_string(), "see the exception");
    raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    told
}

struct PythonCrew<'r> {
    crew: Py<PyAny>,
    cpus: usize,
    /// What batches are known by that are out.
    out: VecDeque<Py<PyAny>>,
    raised: &'r RaisedError,
}

impl PythonCrew<'_> {
    fn wait(&mut self, stop: &AtomicBool) -> PyResult<Option<Vec<String>>> {
        let Some(first) = self.out.front() else { return Ok(Some(Vec::new())) };
        while !stop.load(Ordering::Relaxed) {
            let records = Python::attach(|py| {
                let is_ready = self.crew.call_method1(py, "ready", (first, LOOK_S))?.extract::<bool>(py)?;
                let records = is_ready.then(|| self.crew.call_method1(py, "records", (first,))?.extract(py));
                records.transpose()
            })?;
            if records.is_some() {
                self.out.pop_front();
                return Ok(records);
            }
        }
        Ok(None)
    }
}

impl Crew for PythonCrew<'_> {
    fn cpus(&self) -> usize {
        self.cpus
    }

    fn send(&mut self, batch: String) -> Result<(), LabError> {
        let sent = Python::attach(|py| self.crew.call_method1(py, "submit", (batch,)));
        self.out.push_back(sent.map_err(|error| note(self.raised, error))?);
        Ok(())
    }

    fn records(&mut self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
        let records = self.wait(stop).map_err(|error| note(self.raised, error))?;
        let value = |record: &String| {
            serde_json::from_str(record).map_err(|error| {
                let problem = format!("a record of a cell is no JSON: {error}");
                LabError::new(problem, "run the same version everywhere")
            })
        };
        records.map(|records| records.iter().map(value).collect()).transpose()
    }

    fn cancel(&mut self) {
        Python::attach(|py| {
            for sent in self.out.drain(..) {
                if let Err(error) = self.crew.call_method1(py, "cancel", (sent,)) {
                    note(self.raised, error);
                }
            }
        });
    }
}
