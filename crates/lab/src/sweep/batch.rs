//! Cells of a sweep as text that another process or machine can run, and their records, which come back.
//!
//! Must not know: how specs and records travel.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::{SweepPlan, SweepPlanCell};
use super::run::record;
use crate::LabError;
use crate::cells::{BatchCommon, RunCell};

/// Some cells of a sweep, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SweepBatch {
    ground: BatchCommon,
    /// Names of options.
    options: Vec<String>,
    cells: Vec<SweepCell>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SweepCell {
    #[serde(flatten)]
    run: RunCell,
    group: usize,
    options: Vec<String>,
}

impl SweepBatch {
    /// These cells of a plan.
    pub(super) fn of(plan: &SweepPlan, numbers: &[usize]) -> SweepBatch {
        let mut ground = BatchCommon::default();
        let cells = numbers.iter().map(|&number| {
            let SweepPlanCell { group, options, spec, .. } = plan.cell(number);
            SweepCell { run: ground.add(number, &spec, plan.machine_of(number)), group, options }
        });
        let cells = cells.collect();
        SweepBatch { ground, options: plan.option_names().map(String::from).collect(), cells }
    }

    /// Runs the cells and gives their records, as the journal keeps them; `None`: `stop` was set before the end.
    ///
    /// # Errors
    /// A run fails, or a file that a workload names is not there.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
        let mut cells = self.cells.iter();
        self.ground.run(self.cells.iter().map(|cell| &cell.run), stop, &mut |run, result| {
            let of = cells.next().map(|cell| (cell.group, &cell.options[..])).unwrap_or_default();
            record((run.cell, of.0), (&self.options, of.1), result)
        })
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::Ns;
    use serde_json::json;

    use super::super::run::SweepCells;
    use super::*;
    use crate::cells::{CellBatch, CellList};
    use crate::run;

    const SWEEP: &str = r#"
kernels = ["v6.5", "v6.6,base_slice_ns={slice}"]
machines = ["laptop8", "vm4"]
workloads = ["hackbench -g 1 -l 20"]
seeds = 2
duration_ms = 50
options = { slice = [1000000, 3000000] }
"#;

    /// What travels as text gives what the cell itself gives.
    #[test]
    fn records_are_those_of_the_cells_themselves() {
        for exact in [false, true] {
            let plan = SweepPlan::parse(SWEEP).expect("a plan");
            let plan = if exact { plan.exact() } else { plan.with_warmup(Ns::from_ms(5)) };
            let numbers = [15, 0, 9];
            let text =
                json!(SweepCells { plan: &plan, store: None }.batch(&numbers).expect("a batch")).to_string();
            let batch = serde_json::from_str::<CellBatch>(&text).expect("a batch");
            let never = AtomicBool::new(false);
            let records = batch.run(&never).expect("runs").expect("all");
            let names = plan.option_names().map(String::from).collect::<Vec<_>>();
            for (number, found) in numbers.into_iter().zip(records) {
                let cell = plan.cell(number);
                let result = run(&cell.spec, &never).expect("a run").expect("whole");
                let own = record((number, cell.group), (&names, &cell.options), &result);
                assert_eq!(found.to_string(), own.to_string(), "cell {number}");
            }
        }
    }

    #[test]
    fn cells_of_another_version_are_refused() {
        let plan = SweepPlan::parse(SWEEP).expect("a plan");
        let mut batch = json!(SweepCells { plan: &plan, store: None }.batch(&[0]).expect("a batch"));
        batch["fairlab"] = json!("0.0.1");
        let batch = serde_json::from_value::<CellBatch>(batch).expect("a batch");
        let error = batch.run(&AtomicBool::new(false)).expect_err("refused");
        assert!(error.problem.starts_with("cells of fairlab 0.0.1"), "{error}");
    }
}
