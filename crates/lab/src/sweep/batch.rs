//! Cells as specs that another process or machine can run, and their records, which come back.
//!
//! Must not know: how specs and records travel.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::who::Who;
use fairlab_event::{Ns, Origin};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::journal::record;
use super::plan::{Cell, Plan};
use crate::{Kernel, LabError, RunSpec, machines, run};

/// Some cells of a sweep, whole: who runs them needs nothing else but files that a workload names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The version of the program that made it: another one may give other results.
    fairlab: String,
    /// Machines of these cells, as TOML, by their numbers in the plan.
    machines: BTreeMap<usize, String>,
    /// Whose metrics are measured by name.
    by_name: Vec<String>,
    warmup_ns: Option<u64>,
    duration_ns: u64,
    /// Names of options.
    options: Vec<String>,
    cells: Vec<CellSpec>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CellSpec {
    cell: usize,
    group: usize,
    kernel: String,
    machine: usize,
    workload: Vec<String>,
    options: Vec<String>,
    seed: u64,
}

impl Batch {
    /// Sees to it that all cells of a plan can be run elsewhere.
    ///
    /// # Errors
    /// One runs a kernel that is built on this host and is not where the cell goes.
    pub fn check(plan: &Plan) -> Result<(), LabError> {
        match plan.kernels().find(|(kernel, _)| kernel.origin() != Origin::Modelled) {
            None => Ok(()),
            Some((kernel, _)) => Err(LabError::new(
                format!("{} was built on this host, and other hosts have it not", kernel.name()),
                "sweep it without --on, or name modelled kernels",
            )),
        }
    }

    /// These cells of a plan.
    pub fn of(plan: &Plan, numbers: &[usize]) -> Batch {
        let mut used = BTreeMap::new();
        let mut cells = Vec::with_capacity(numbers.len());
        let (mut by_name, mut times) = (Vec::new(), (None, Ns::ZERO));
        for &number in numbers {
            let Cell { group, options, spec, .. } = plan.cell(number);
            let machine = plan.machine_of(number);
            used.entry(machine).or_insert_with(|| machines::to_toml(&spec.machine));
            by_name = spec.by_name.asked.iter().map(ToString::to_string).collect();
            times = (spec.warmup, spec.duration);
            let (kernel, workload, seed) = (spec.kernel.name().to_string(), spec.workload, spec.seed);
            cells.push(CellSpec { cell: number, group, kernel, machine, workload, options, seed });
        }
        Batch {
            fairlab: env!("CARGO_PKG_VERSION").to_string(),
            machines: used,
            by_name,
            warmup_ns: times.0.map(|warmup| warmup.0),
            duration_ns: times.1.0,
            options: plan.option_names().map(String::from).collect(),
            cells,
        }
    }

    /// Runs the cells and gives their records, as the journal keeps them; `None`: `stop` was set before the end.
    ///
    /// # Errors
    /// It was made by another version, a run fails, or a file that a workload names is not there.
    pub fn run(&self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
        let own = env!("CARGO_PKG_VERSION");
        if self.fairlab != own {
            let problem = format!("cells of fairlab {} cannot be run by fairlab {own}", self.fairlab);
            return Err(LabError::new(problem, "install one version everywhere"));
        }
        let mut records = Vec::with_capacity(self.cells.len());
        for spec in &self.cells {
            let cell = self.cell(spec)?;
            let Some(result) = run(&cell.spec, stop)? else { return Ok(None) };
            records.push(record(&cell, &self.options, &result));
        }
        Ok(Some(records))
    }

    fn cell(&self, spec: &CellSpec) -> Result<Cell, LabError> {
        let machine = self.machines.get(&spec.machine).ok_or_else(|| {
            LabError::new(format!("cell {} has no machine", spec.cell), "make the batch again")
        })?;
        let asked = self.by_name.iter().map(|name| Who::parse(name)).collect::<Vec<_>>();
        let by_name = match asked.is_empty() {
            true => NamesWanted::default(),
            false => NamesWanted { asked, ..NamesWanted::all() },
        };
        let (kernel, machine) = (Kernel::parse(&spec.kernel)?, machines::parse(machine)?);
        let plain = RunSpec::new(kernel, machine, spec.workload.clone(), spec.seed, Ns(self.duration_ns));
        Ok(Cell {
            number: spec.cell,
            group: spec.group,
            options: spec.options.clone(),
            spec: RunSpec { warmup: self.warmup_ns.map(Ns), by_name, ..plain },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            let plan = Plan::parse(SWEEP).expect("a plan");
            let plan = if exact { plan.exact() } else { plan.with_warmup(Ns::from_ms(5)) };
            let numbers = [15, 0, 9];
            let text = json!(Batch::of(&plan, &numbers)).to_string();
            let batch = serde_json::from_str::<Batch>(&text).expect("a batch");
            let never = AtomicBool::new(false);
            let records = batch.run(&never).expect("runs").expect("all");
            let names = plan.option_names().map(String::from).collect::<Vec<_>>();
            for (number, found) in numbers.into_iter().zip(records) {
                let cell = plan.cell(number);
                let result = run(&cell.spec, &never).expect("a run").expect("whole");
                assert_eq!(found.to_string(), record(&cell, &names, &result).to_string(), "cell {number}");
            }
        }
    }

    #[test]
    fn cells_of_another_version_are_refused() {
        let plan = Plan::parse(SWEEP).expect("a plan");
        let mut batch = Batch::of(&plan, &[0]);
        batch.fairlab = "0.0.1".to_string();
        let error = batch.run(&AtomicBool::new(false)).expect_err("refused");
        assert!(error.problem.starts_with("cells of fairlab 0.0.1"), "{error}");
    }
}
