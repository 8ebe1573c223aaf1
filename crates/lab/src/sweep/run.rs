//! A sweep's cells on all cores, each into the journal when it is done.
//!
//! Must not know: what comes of the journal.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::journal::Journal;
use super::plan::Plan;
use super::table;
use crate::{LabError, Progress, run};

/// How far a sweep came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Cells in all.
    pub cells: usize,
    /// Cells that were done before.
    pub before: usize,
    /// Cells that are done now.
    pub done: usize,
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
    let journal = Journal::open(folder, plan)?;
    let before = journal.count();
    let names = plan.option_names().map(String::from).collect::<Vec<_>>();
    let todo = plan.cells() - before;
    on_progress(Progress { done: 0, total: todo });
    let (next, journal) = (AtomicUsize::new(0), Mutex::new(journal));
    let lock = || journal.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || -> Result<(), LabError> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plan.cells() {
                return Ok(());
            }
            if lock().has(number) {
                continue;
            }
            let cell = plan.cell(number);
            let outcome = run(&cell.spec, stop).and_then(|result| match result {
                Some(result) => {
                    let mut journal = lock();
                    journal.add(&cell, &names, &result)?;
                    on_progress(Progress { done: journal.count() - before, total: todo });
                    Ok(true)
                }
                None => Ok(false),
            });
            stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
            if !outcome? {
                return Ok(());
            }
        }
    };
    thread::scope(|scope| {
        let threads = (0..jobs.clamp(1, todo.max(1))).map(|_| scope.spawn(work)).collect::<Vec<_>>();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let outcome = Outcome { cells: plan.cells(), before, done: lock().count() };
    if outcome.is_complete() {
        table::write(plan, folder)?;
    }
    Ok(outcome)
}
