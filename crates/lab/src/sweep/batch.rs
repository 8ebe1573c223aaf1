//! Cells as specs that another process or machine can run, and their records, which come back.
//!
//! Must not know: how specs and records travel.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::who::Who;
use fairlab_event::{Ns, Origin};
use fairlab_sim::Machine;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::journal::record;
use super::plan::{Cell, Plan};
use crate::{Kernel, LabError, RunSpec, machines, run};

/// Some cells of a sweep, whole: to run them takes nothing else but files that a workload names.
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
    /// Kernels that are built from sources, with what their code is known by.
    #[serde(default)]
    built: Vec<Built>,
    cells: Vec<CellSpec>,
}

/// A kernel that is built from sources where cells of it run: its code has to be that of the host that gave them out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Built {
    kernel: String,
    machine: usize,
    /// A hash of sources, configuration and compiler.
    key: String,
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
    /// Makes a plan ready, so that all of its cells can be run elsewhere: kernels from sources are built here, too, so that their
    /// code is known.
    ///
    /// # Errors
    /// One cannot be built, or runs on this host alone.
    pub fn prepare(plan: &Plan, stop: &AtomicBool) -> Result<(), LabError> {
        for (kernel, machine) in plan.kernels() {
            match kernel.origin() {
                Origin::Modelled => {}
                Origin::Driven => kernel.prepare(machine, &|_, _| {}, stop)?,
                _ => {
                    let problem = format!("{} runs on this host alone", kernel.name());
                    return Err(LabError::new(problem, "sweep it without --on, or name other kernels"));
                }
            }
        }
        Ok(())
    }

    /// These cells of a plan.
    pub fn of(plan: &Plan, numbers: &[usize]) -> Batch {
        let mut used = BTreeMap::new();
        let mut cells = Vec::with_capacity(numbers.len());
        let (mut by_name, mut times) = (Vec::new(), (None, Ns::ZERO));
        let mut built = Vec::<Built>::new();
        for &number in numbers {
            let Cell { group, options, spec, .. } = plan.cell(number);
            let machine = plan.machine_of(number);
            used.entry(machine).or_insert_with(|| machines::to_toml(&spec.machine));
            by_name = spec.by_name.asked.iter().map(ToString::to_string).collect();
            times = (spec.warmup, spec.duration);
            let (kernel, workload, seed) = (spec.kernel.name().to_string(), spec.workload, spec.seed);
            let is_known = built.iter().any(|known| known.kernel == kernel && known.machine == machine);
            if let Some(key) = spec.kernel.key(&spec.machine).filter(|_| !is_known) {
                built.push(Built { kernel: kernel.clone(), machine, key });
            }
            cells.push(CellSpec { cell: number, group, kernel, machine, workload, options, seed });
        }
        Batch {
            fairlab: env!("CARGO_PKG_VERSION").to_string(),
            machines: used,
            by_name,
            warmup_ns: times.0.map(|warmup| warmup.0),
            duration_ns: times.1.0,
            options: plan.option_names().map(String::from).collect(),
            built,
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
        let kernels = self.kernels(stop)?;
        let mut records = Vec::with_capacity(self.cells.len());
        for spec in &self.cells {
            let cell = self.cell(spec, &kernels)?;
            let Some(result) = run(&cell.spec, stop)? else { return Ok(None) };
            records.push(record(&cell, &self.options, &result));
        }
        Ok(Some(records))
    }

    /// Kernels that are built from sources, built here.
    fn kernels(&self, stop: &AtomicBool) -> Result<BTreeMap<&str, Kernel>, LabError> {
        let mut kernels = BTreeMap::<&str, Kernel>::new();
        for Built { kernel: name, machine, key } in &self.built {
            let elsewhere = |error: LabError| {
                LabError::new(format!("on a host of the cluster: {}", error.problem), error.hint)
            };
            let kernel = match kernels.get(name.as_str()) {
                Some(kernel) => kernel.clone(),
                None => Kernel::parse(name).map_err(elsewhere)?,
            };
            let machine = self.machine(*machine)?;
            kernel.prepare(&machine, &|_, _| {}, stop).map_err(elsewhere)?;
            let own = kernel.key(&machine).unwrap_or_default();
            if own != *key {
                return Err(LabError::new(
                    format!("{name} is other code on a host of the cluster: {own} instead of {key}"),
                    "sources, configuration and compiler have to be equal on every host",
                ));
            }
            kernels.insert(name, kernel);
        }
        Ok(kernels)
    }

    fn machine(&self, number: usize) -> Result<Machine, LabError> {
        let machine = self.machines.get(&number);
        let lacking = || LabError::new(format!("the batch has no machine {number}"), "make the batch again");
        machines::parse(machine.ok_or_else(lacking)?)
    }

    fn cell(&self, spec: &CellSpec, kernels: &BTreeMap<&str, Kernel>) -> Result<Cell, LabError> {
        let asked = self.by_name.iter().map(|name| Who::parse(name)).collect::<Vec<_>>();
        let by_name = match asked.is_empty() {
            true => NamesWanted::default(),
            false => NamesWanted { asked, ..NamesWanted::all() },
        };
        let machine = self.machine(spec.machine)?;
        let kernel = match kernels.get(spec.kernel.as_str()) {
            Some(kernel) => kernel.clone(),
            None => Kernel::parse(&spec.kernel)?,
        };
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
