//! Cells: work in independent pieces, and whoever does them: threads of this process, or a crew on other machines.
//!
//! A cell's record is a function of what its batch says, so it does not matter who makes it. Records that are worth it go into a
//! journal, and what is interrupted goes on from there.
//!
//! Must not know: what a cell is, how batches travel.

mod batch;
mod crew;
mod journal;
mod runs;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::{LabError, Progress, workers};

pub use batch::CellBatch;
pub(crate) use batch::{BatchWork, BuiltKernels};
pub use crew::Crew;
pub use journal::{CellJournal, CellKind, read};
pub(crate) use journal::{InOrder, cannot_write, spec_of};
pub use runs::run_all_at;
pub(crate) use runs::{BatchCommon, RunCell, prepare_to_travel, read_run, run_fields};

/// So many cells are looked for at once among those that are kept.
const LOOKED_FOR_AT_ONCE: usize = 512;

/// Work that is a list of cells, numbered from 0.
pub trait CellList: Sync {
    /// What it is.
    fn kind(&self) -> &'static CellKind;

    /// All that decides the records: two lists with equal specifications have equal records.
    fn spec(&self) -> Value;

    /// How many cells there are.
    fn count(&self) -> usize;

    /// Cells of a lower round come first. Within a round they come by number.
    fn round(&self, number: usize) -> usize {
        let _ = number;
        0
    }

    /// The records of those of these cells that need no work: their runs were made before, and are kept. Each once.
    fn kept(&self, numbers: &[usize]) -> Vec<Value> {
        let _ = numbers;
        Vec::new()
    }

    /// Makes ready what batches name: kernels that are built from sources are built here, too, so that it is known which code they are.
    ///
    /// # Errors
    /// It cannot be made ready, or cells can be run on this host alone.
    fn prepare(&self, stop: &AtomicBool) -> Result<(), LabError>;

    /// Some cells, whole: who runs them needs nothing else but files that they name.
    ///
    /// # Errors
    /// What they name cannot be read.
    fn batch(&self, numbers: &[usize]) -> Result<CellBatch, LabError>;

    /// Runs a cell here and gives its record, which has its number as `cell`; `None`: it was stopped.
    ///
    /// # Errors
    /// It cannot be run.
    fn run(&self, number: usize, stop: &AtomicBool) -> Result<Option<Value>, LabError>;
}

/// Who runs cells.
pub enum CellWorkers<'c> {
    /// So many threads of this process.
    Threads(usize),
    /// Others.
    Crew(&'c mut dyn Crew),
}

/// How far a list of cells came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellsProgress {
    /// Cells in all.
    pub cells: usize,
    /// Cells that were done before.
    pub before: usize,
    /// Cells that are done now.
    pub done: usize,
    /// What was found wrong with the journal, and mended.
    pub note: Option<String>,
}

impl CellsProgress {
    /// Whether there is nothing left to do.
    pub fn is_complete(&self) -> bool {
        self.done == self.cells
    }
}

/// Runs the cells that the journal in `folder` lacks. What `stop` interrupts is kept, and the next call goes on. `on_progress` is told
/// how many cells are done, those of earlier calls among them.
///
/// # Errors
/// A cell fails, the crew is lost, or the folder is that of other cells or cannot be written to.
pub fn run_journalled(
    work: &dyn CellList,
    folder: &Path,
    place: CellWorkers<'_>,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<CellsProgress, LabError> {
    if matches!(place, CellWorkers::Crew(_)) {
        work.prepare(stop)?;
    }
    let (mut journal, note) = CellJournal::open(folder, work)?;
    let (before, total) = (journal.count(), work.count());
    for numbers in journal.todo(work).chunks(LOOKED_FOR_AT_ONCE).take_while(|_| !stop.load(Ordering::Relaxed))
    {
        let kept = work.kept(numbers);
        kept.iter().try_for_each(|record| journal.add(record))?;
        if !kept.is_empty() {
            on_progress(Progress { done: journal.count(), total });
        }
    }
    let (todo, done) = (journal.todo(work), journal.count());
    let after = |now: Progress| on_progress(Progress { done: done + now.done, total });
    run(work, &todo, place, &after, stop, &mut |record| journal.add(&record))?;
    Ok(CellsProgress { cells: total, before, done: journal.count(), note })
}

/// The records of all cells in order of their numbers, and how far it came: fewer records than cells where it was stopped. With a
/// folder they are kept in a journal there, and those that are in it are not made again.
///
/// # Errors
/// As of [`run_journalled`].
pub fn records(
    work: &dyn CellList,
    folder: Option<&Path>,
    place: CellWorkers<'_>,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<(Vec<Value>, CellsProgress), LabError> {
    let mut records = Vec::new();
    if let Some(folder) = folder {
        let outcome = run_journalled(work, folder, place, on_progress, stop)?;
        InOrder::of(folder, work.kind(), &mut |_| ())?.feed(&mut |record| {
            records.push(record);
            Ok(())
        })?;
        return Ok((records, outcome));
    }
    if matches!(place, CellWorkers::Crew(_)) {
        work.prepare(stop)?;
    }
    let todo = (0..work.count()).collect::<Vec<_>>();
    run(work, &todo, place, on_progress, stop, &mut |record| {
        records.push(record);
        Ok(())
    })?;
    records.sort_by_key(|record| record["cell"].as_u64());
    let outcome = CellsProgress { cells: todo.len(), before: 0, done: records.len(), note: None };
    Ok((records, outcome))
}

/// Runs these cells. `keep` gets each record once: from a crew in the order of `todo`, from threads as they end.
fn run(
    work: &dyn CellList,
    todo: &[usize],
    place: CellWorkers<'_>,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
    keep: &mut (dyn FnMut(Value) -> Result<(), LabError> + Send),
) -> Result<(), LabError> {
    let jobs = match place {
        CellWorkers::Threads(jobs) => jobs,
        CellWorkers::Crew(crew) => return crew::carry(work, todo, crew, on_progress, stop, keep),
    };
    let keep = Mutex::new(keep);
    workers::for_each(todo, jobs, on_progress, stop, |&number| {
        let Some(record) = work.run(number, stop)? else { return Ok(None) };
        (keep.lock().unwrap_or_else(PoisonError::into_inner))(record).map(Some)
    })?;
    Ok(())
}
