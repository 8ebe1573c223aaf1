//! A sweep's cells, wherever they run, each into the journal when it is done.
//!
//! Must not know: what comes of the journal.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use super::batch::SweepBatch;
use super::plan::{SweepPlan, SweepPlanCell};
use super::table;
use crate::cells::{
    BatchWork, CellBatch, CellKind, CellList, CellWorkers, CellsProgress, prepare_to_travel, run_journalled,
};
use crate::merge::counts_fields;
use crate::{LabError, Progress, RunResult, RunStore, run};

/// Sweeps among lists of cells.
pub static KIND: CellKind = CellKind { schema: "fairlab/sweep-journal/3", name: "sweep" };

/// A sweep's cells, and where runs are kept.
pub(super) struct SweepCells<'s> {
    pub(super) plan: &'s SweepPlan,
    pub(super) store: Option<&'s RunStore>,
}

impl CellList for SweepCells<'_> {
    fn kind(&self) -> &'static CellKind {
        &KIND
    }

    fn spec(&self) -> Value {
        self.plan.to_json()
    }

    fn count(&self) -> usize {
        self.plan.cells()
    }

    /// With each seed in turn every group, so that all groups have about as many cells whenever it is stopped.
    fn round(&self, number: usize) -> usize {
        number % self.plan.seeds()
    }

    fn prepare(&self, stop: &AtomicBool) -> Result<(), LabError> {
        self.plan.kernels().try_for_each(|(kernel, machine)| prepare_to_travel(kernel, machine, stop))
    }

    fn batch(&self, numbers: &[usize]) -> Result<CellBatch, LabError> {
        Ok(CellBatch::of(BatchWork::Sweep(SweepBatch::of(self.plan, numbers))))
    }

    fn run(&self, number: usize, stop: &AtomicBool) -> Result<Option<Value>, LabError> {
        let cell = self.plan.cell(number);
        let looked = self.store.map(|store| (store, store.unlooked((&cell.spec, ""))));
        let Some(result) = run(&cell.spec, stop)? else { return Ok(None) };
        if let Some((store, looked)) = looked {
            store.keep((&cell.spec, ""), &looked, &result, &Value::Null);
        }
        Ok(Some(self.record(&cell, &result)))
    }

    fn kept(&self, numbers: &[usize]) -> Vec<Value> {
        let cells = numbers.iter().map(|&number| self.plan.cell(number)).collect::<Vec<_>>();
        let specs = cells.iter().map(|cell| (&cell.spec, "")).collect::<Vec<_>>();
        let looked = self.store.map_or_else(Vec::new, |store| store.look(&specs));
        let found = cells.iter().zip(looked);
        found.filter_map(|(cell, looked)| Some(self.record(cell, &looked.result?.0))).collect()
    }
}

impl SweepPlan {
    /// Its cells, for who runs them; those that a store keeps are not made.
    pub fn list<'s>(&'s self, store: Option<&'s RunStore>) -> impl CellList + 's {
        SweepCells { plan: self, store }
    }
}

impl SweepCells<'_> {
    fn record(&self, cell: &SweepPlanCell, result: &RunResult) -> Value {
        let names = self.plan.option_names().map(String::from).collect::<Vec<_>>();
        record((cell.number, cell.group), (&names, &cell.options), result)
    }
}

/// Runs what is left of a sweep, and not in a store. When all cells are done, the folder gets its table and sums; what `stop` interrupts is kept, and the
/// next call goes on.
///
/// # Errors
/// A run fails, the crew is lost, or the folder is another sweep's or cannot be written to.
pub fn sweep(
    plan: &SweepPlan,
    store: Option<&RunStore>,
    folder: &Path,
    place: CellWorkers<'_>,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<CellsProgress, LabError> {
    let outcome = run_journalled(&plan.list(store), folder, place, on_progress, stop)?;
    if outcome.is_complete() {
        table::write(plan, folder)?;
    }
    Ok(outcome)
}

/// What the journal keeps of a cell: its number, its group's, its options by name, and what is a function of what was run.
pub(super) fn record(
    (number, group): (usize, usize),
    (names, values): (&[String], &[String]),
    run: &RunResult,
) -> Value {
    let options = names.iter().zip(values).map(|(name, value)| (name.clone(), json!(value)));
    let metrics = run.metrics.iter().map(|(name, value)| (name.clone(), json!(value)));
    json!({
        "cell": number,
        "group": group,
        "kernel": run.kernel,
        "machine": run.machine,
        "workload": run.workload,
        "options": options.collect::<serde_json::Map<_, _>>(),
        "seed": run.seed,
        "digest": run.digest,
        "settled_ns": run.settled_ns,
        "simulated_ns": run.simulated_ns,
        "metrics": metrics.collect::<serde_json::Map<_, _>>(),
        "counts": counts_fields(&run.counts),
    })
}
