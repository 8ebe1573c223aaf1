//! Batches of cells on other machines. The batches that are out are bounded, and are waited for in the order of cells: what comes of
//! them is what one thread on one machine makes.
//!
//! Must not know: how batches travel.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::CellList;
use crate::{LabError, Progress};

/// So many cells a batch has at most: a lost machine costs their time.
const BATCH_MAX: usize = 32;

/// So many batches are out for each CPU: one under way, and one that waits for it to end.
const BATCHES_A_CPU: usize = 2;

/// Work is cut into so many batches a CPU at least, so that all CPUs end at about one time.
const BATCHES_A_CPU_MIN: usize = 4;

/// Whoever runs batches on other machines. A batch on a machine that is lost is run again elsewhere.
pub trait Crew: Send {
    /// How many batches run at once.
    fn cpus(&self) -> usize;

    /// Sends a batch, which is JSON.
    ///
    /// # Errors
    /// It cannot be reached.
    fn send(&mut self, batch: String) -> Result<(), LabError>;

    /// Waits for the records of the batch that was sent first; `None`: `stop` was set before.
    ///
    /// # Errors
    /// A cell fails, or the crew is lost.
    fn records(&mut self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError>;

    /// Ends the batches that are out: nobody wants their records any more.
    fn cancel(&mut self);
}

/// Gives these cells out and keeps what comes back, in their order.
pub(super) fn carry(
    work: &dyn CellList,
    todo: &[usize],
    crew: &mut dyn Crew,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
    keep: &mut dyn FnMut(Value) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let outcome = give_out(work, todo, crew, on_progress, stop, keep);
    if outcome.is_err() || stop.load(Ordering::Relaxed) {
        crew.cancel();
    }
    outcome
}

fn give_out(
    work: &dyn CellList,
    todo: &[usize],
    crew: &mut dyn Crew,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
    keep: &mut dyn FnMut(Value) -> Result<(), LabError>,
) -> Result<(), LabError> {
    if todo.is_empty() {
        return Ok(());
    }
    let cpus = crew.cpus().max(1);
    let size = (work.count() / (cpus * BATCHES_A_CPU_MIN)).clamp(1, BATCH_MAX);
    let (mut waiting, mut out, mut done) = (todo.chunks(size), 0, 0);
    loop {
        while out < cpus * BATCHES_A_CPU
            && let Some(numbers) = waiting.next()
        {
            crew.send(json!(work.batch(numbers)?).to_string())?;
            out += 1;
        }
        if out == 0 {
            return Ok(());
        }
        let Some(records) = crew.records(stop)? else { return Ok(()) };
        out -= 1;
        for record in records {
            keep(record)?;
            done += 1;
        }
        on_progress(Progress { done, total: todo.len() });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::fs;
    use std::path::Path;

    use fairlab_files::temporary::PrivateFolder;

    use super::*;
    use crate::cells::{CellBatch, CellWorkers};
    use crate::oracle::{Survey, SurveyCell};

    /// Runs batches here, when their records are asked for.
    #[derive(Default)]
    struct Here {
        out: VecDeque<String>,
        most_out: usize,
        /// Batches until it fails.
        left: usize,
    }

    impl Crew for Here {
        fn cpus(&self) -> usize {
            2
        }

        fn send(&mut self, batch: String) -> Result<(), LabError> {
            self.out.push_back(batch);
            self.most_out = self.most_out.max(self.out.len());
            Ok(())
        }

        fn records(&mut self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
            if self.left == 0 {
                return Err(LabError::new("the crew is lost", "go on"));
            }
            self.left -= 1;
            let text = self.out.pop_front().expect("a batch is out");
            serde_json::from_str::<CellBatch>(&text).expect("a batch").run(stop)
        }

        fn cancel(&mut self) {
            self.out.clear();
        }
    }

    fn survey() -> Survey {
        let named = |pair, workload: &str, seed| SurveyCell::Named {
            pair,
            machine: "layout:1x1x4x1".to_string(),
            workload: workload.split(' ').map(String::from).collect(),
            seed,
            duration_ns: 20_000_000,
        };
        let cells = (1..=8).map(|seed| named(seed as usize % 2, "hackbench -g 1 -l 5", seed));
        let cells =
            cells.chain([named(0, "replay /no/such/trace", 1), SurveyCell::Case { pair: 0, number: 3 }]);
        let stop = AtomicBool::new(false);
        Survey::new("layout:1x1x4x1", &[("v6.6", "v6.6"), ("v6.6", "v6.5")], cells.collect(), &stop)
            .expect("kernels")
    }

    fn made(folder: Option<&Path>, place: CellWorkers<'_>) -> Result<String, LabError> {
        let runs = survey().make(folder, place, &|_| (), &AtomicBool::new(false))?;
        Ok(format!("{:?}", runs.expect("all of them")))
    }

    /// A crew, whole or lost and replaced, and threads come to equal runs and equal journals.
    #[test]
    fn models_follow_elsewhere_as_they_do_here() {
        let expected = made(None, CellWorkers::Threads(2)).expect("runs");
        assert!(expected.contains("first: Some") && expected.contains("first: None"), "{expected}");
        let mut whole = Here { left: usize::MAX, ..Here::default() };
        assert_eq!(made(None, CellWorkers::Crew(&mut whole)).expect("runs"), expected);
        assert_eq!((whole.most_out, whole.out.len()), (4, 0), "two batches a CPU are out");
        let folder = PrivateFolder::create().expect("a folder");
        let [lost, one] = ["lost", "one"].map(|name| folder.path().join(name));
        let mut crew = Here { left: 3, ..Here::default() };
        let error = made(Some(&lost), CellWorkers::Crew(&mut crew)).expect_err("it is lost");
        assert_eq!((error.problem.as_str(), crew.out.len()), ("the crew is lost", 0));
        assert_eq!(made(Some(&lost), CellWorkers::Threads(1)).expect("runs"), expected);
        assert_eq!(made(Some(&one), CellWorkers::Threads(1)).expect("runs"), expected);
        let journal = |folder: &Path| fs::read_to_string(folder.join("cells.jsonl")).expect("a journal");
        assert_eq!(journal(&lost), journal(&one));
        let error = crate::sweep::query(&one, &crate::sweep::Query::default()).expect_err("another kind");
        assert!(error.problem.ends_with("this is the journal of no sweep"), "{error}");
    }
}
