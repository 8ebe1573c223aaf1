//! A sweep's cells on all cores, each into the journal when it is done.
//!
//! Must not know: what comes of the journal.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use super::journal::{SweepJournal, record};
use super::plan::Plan;
use super::table;
use crate::{LabError, Progress, run, workers};

/// How far a sweep came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Cells in all.
    pub cells: usize,
    /// Cells that were done before.
    pub before: usize,
    /// Cells that are done now.
    pub done: usize,
    /// What was found wrong with the journal, and mended.
    pub note: Option<String>,
}

impl Outcome {
    /// Whether there is nothing left to do.
    pub fn is_complete(&self) -> bool {
        self.done == self.cells
    }
}

/// Runs the rest of a sweep on `jobs` threads. When all cells are done, the folder gets its table and sums; what `stop`
/// interrupts is kept, and the next call goes on.
///
/// # Errors
/// A run fails, or the folder is another sweep's or cannot be written to.
pub fn sweep(
    plan: &Plan,
    folder: &Path,
    jobs: usize,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let (journal, note) = SweepJournal::open(folder, plan)?;
    let before = journal.count();
    let names = plan.option_names().map(String::from).collect::<Vec<_>>();
    let todo = journal.todo(plan);
    let journal = Mutex::new(journal);
    let lock = || journal.lock().unwrap_or_else(PoisonError::into_inner);
    workers::for_each(&todo, jobs, on_progress, stop, |&number| {
        let cell = plan.cell(number);
        let Some(result) = run(&cell.spec, stop)? else { return Ok(None) };
        lock().add(&record(&cell, &names, &result)).map(Some)
    })?;
    let done = lock().count();
    closed(plan, folder, Outcome { cells: plan.cells(), before, done, note })
}

/// The outcome; where all cells are done, the folder has its table and sums when this returns.
///
/// # Errors
/// The folder cannot be read or written to.
pub fn closed(plan: &Plan, folder: &Path, outcome: Outcome) -> Result<Outcome, LabError> {
    if outcome.is_complete() {
        table::write(plan, folder)?;
    }
    Ok(outcome)
}
