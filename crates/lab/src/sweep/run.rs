//! A sweep's cells on all cores, each into the journal when it is done.
//!
//! Must not know: what comes of the journal.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use super::journal::SweepJournal;
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

/// Runs what is left of a sweep on `jobs` threads. When all cells are done, the folder gets its table and sums; what `stop`
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
    let mut todo = (0..plan.cells()).filter(|&number| !journal.has(number)).collect::<Vec<_>>();
    // With each seed in turn every group: whenever it is stopped, all groups have about as many cells.
    todo.sort_by_key(|number| number % plan.seeds());
    let journal = Mutex::new(journal);
    let lock = || journal.lock().unwrap_or_else(PoisonError::into_inner);
    workers::for_each(&todo, jobs, on_progress, stop, |&number| {
        let cell = plan.cell(number);
        let Some(result) = run(&cell.spec, stop)? else { return Ok(None) };
        lock().add(&cell, &names, &result).map(Some)
    })?;
    let outcome = Outcome { cells: plan.cells(), before, done: lock().count(), note };
    if outcome.is_complete() {
        table::write(plan, folder)?;
    }
    Ok(outcome)
}
