//! Who makes the runs: threads of this process, or a crew on other machines.
//!
//! Must not know: what runs are made for.

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicBool;

use fairlab_files::{LabError, Progress};
use fairlab_lab::cells::{CellWorkers, Crew, run_all_at};
use fairlab_lab::{ExperimentStopped, RunResult, RunSpec, RunStore};

/// Runs that are made at once are kept whole until their metrics are taken: at most so many, but for a crew.
const AT_ONCE: usize = 64;

/// A crew's CPUs end at about one time where each has so many of these runs.
const AT_ONCE_A_CPU: usize = 8;

/// How runs are made.
#[derive(Clone, Copy)]
pub(crate) struct RunMaker<'e> {
    pub jobs: usize,
    pub crew: Option<&'e WatchCrew>,
    pub store: Option<&'e RunStore>,
    pub on_progress: &'e (dyn Fn(Progress) + Sync),
    pub stop: &'e AtomicBool,
}

/// Others who make runs, and whether they are lost.
pub struct WatchCrew {
    crew: RefCell<Box<dyn Crew>>,
    cpus: usize,
    is_lost: Cell<bool>,
}

impl WatchCrew {
    /// A crew that makes the runs of a watch.
    pub fn new(crew: Box<dyn Crew>) -> WatchCrew {
        WatchCrew { cpus: crew.cpus(), crew: RefCell::new(crew), is_lost: Cell::new(false) }
    }

    /// Whether it failed where this process did not.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.get()
    }
}

impl RunMaker<'_> {
    /// How many runs are made at once.
    pub fn at_once(&self) -> usize {
        self.crew.map_or(AT_ONCE, |crew| AT_ONCE.max(crew.cpus * AT_ONCE_A_CPU))
    }

    /// Whether there is a crew, and it is lost.
    pub fn is_lost(&self) -> bool {
        self.crew.is_some_and(WatchCrew::is_lost)
    }

    /// Makes these runs, and tells whether it was stopped.
    ///
    /// # Errors
    /// A run fails, or the crew is lost.
    pub fn make(&self, specs: &[RunSpec]) -> Result<(Vec<RunResult>, ExperimentStopped), LabError> {
        let by = |place: CellWorkers<'_>| run_all_at(specs, self.store, place, self.on_progress, self.stop);
        let here = || by(CellWorkers::Threads(self.jobs));
        let Some(crew) = self.crew else { return here() };
        let made = by(CellWorkers::Crew(&mut **crew.crew.borrow_mut()));
        if made.is_err() {
            // What fails here too fails wherever it is run, and the next case may go to the crew again.
            here()?;
            crew.is_lost.set(true);
        }
        made
    }
}
