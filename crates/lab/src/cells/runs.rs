//! Cells that are runs: what those of a batch have in common, and runs that a search asks for.
//!
//! Must not know: why they are run.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::selector::TimeRange;
use fairlab_analysis::task_selector::TaskSelector;
use fairlab_event::{Ns, Origin};
use fairlab_sim::Machine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::batch::{BatchWork, BuiltKernels, CellBatch};
use super::{CellKind, CellList, CellWorkers, records};
use crate::experiment::looked_for;
use crate::initial_lists::InitialLists;
use crate::merge::{counts_fields, read_counts};
use crate::{
    ExperimentStopped, Kernel, LabError, Progress, RunResult, RunSpec, RunStore, machines, run, run_missing,
};

/// What runs of a batch have in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchCommon {
    /// Machines of these runs, as TOML, by the numbers that cells name.
    machines: BTreeMap<usize, String>,
    /// Whose metrics are measured by name.
    by_name: Vec<String>,
    warmup_ns: Option<u64>,
    duration_ns: u64,
    /// Whether the scheduler's own counters are metrics, and what balancing tells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    counters: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    balancing: bool,
    /// Whether it is measured on which kinds of CPUs, caches and nodes tasks run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    places: bool,
    /// Which time of each run is measured; without, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// Whether all waits are added up by cause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    causes: bool,
    #[serde(default)]
    built: BuiltKernels,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunCell {
    pub(crate) cell: usize,
    kernel: String,
    machine: usize,
    workload: Vec<String>,
    seed: u64,
}

impl BatchCommon {
    /// Adds a run to those that have this in common. Machines of equal numbers are equal.
    pub(crate) fn add(&mut self, cell: usize, spec: &RunSpec, machine: usize) -> RunCell {
        self.machines.entry(machine).or_insert_with(|| machines::to_toml(&spec.machine));
        if self.by_name.is_empty() {
            self.by_name = spec.by_name.asked.iter().map(ToString::to_string).collect();
        }
        (self.warmup_ns, self.duration_ns) = (spec.warmup.map(|warmup| warmup.0), spec.duration.0);
        self.time = (!spec.time.is_all()).then(|| spec.time.to_string());
        self.causes = spec.causes;
        (self.counters, self.balancing) = (spec.by_name.counters, spec.by_name.balancing);
        self.places = spec.by_name.places;
        self.built.note(&spec.kernel, machine, &spec.machine);
        let (kernel, workload, seed) = (spec.kernel.name().to_string(), spec.workload.clone(), spec.seed);
        RunCell { cell, kernel, machine, workload, seed }
    }

    /// Makes every run and gives what `record` makes of it; `None`: `stop` was set before the end.
    ///
    /// # Errors
    /// A run fails, or a file that a workload names is not there.
    pub(crate) fn run<'r>(
        &self,
        cells: impl Iterator<Item = &'r RunCell>,
        stop: &AtomicBool,
        record: &mut dyn FnMut(&RunCell, &RunResult) -> Value,
    ) -> Result<Option<Vec<Value>>, LabError> {
        let kernels = self.built.build(&|number| self.machine(number), stop)?;
        let mut records = Vec::new();
        for cell in cells {
            let Some(result) = run(&self.spec(cell, &kernels)?, stop)? else { return Ok(None) };
            records.push(record(cell, &result));
        }
        Ok(Some(records))
    }

    fn machine(&self, number: usize) -> Result<Machine, LabError> {
        let machine = self.machines.get(&number);
        let lacking = || LabError::new(format!("the batch has no machine {number}"), "make the batch again");
        machines::parse(machine.ok_or_else(lacking)?)
    }

    fn spec(&self, cell: &RunCell, kernels: &BTreeMap<&str, Kernel>) -> Result<RunSpec, LabError> {
        let asked = self.by_name.iter().map(|name| TaskSelector::parse(name)).collect::<Vec<_>>();
        let by_name = match asked.is_empty() {
            true => NamesWanted::default(),
            false => NamesWanted { asked, ..NamesWanted::all() },
        };
        let by_name = NamesWanted {
            counters: self.counters,
            balancing: self.balancing,
            places: self.places,
            ..by_name
        };
        let kernel = match kernels.get(cell.kernel.as_str()) {
            Some(kernel) => kernel.clone(),
            None => Kernel::parse(&cell.kernel)?,
        };
        let time = self.time.as_deref().map(str::parse::<TimeRange>).transpose();
        let time =
            time.map_err(|problem| LabError::new(format!("time: {problem}"), "make the batch again"))?;
        let (machine, workload) = (self.machine(cell.machine)?, cell.workload.clone());
        Ok(RunSpec {
            warmup: self.warmup_ns.map(Ns),
            by_name,
            time: time.unwrap_or_default(),
            causes: self.causes,
            ..RunSpec::new(kernel, machine, workload, cell.seed, Ns(self.duration_ns))
        })
    }
}

/// Makes a kernel ready, so that runs of it can be made elsewhere: it is built here, too, if it is built from sources.
///
/// # Errors
/// It cannot be built, or runs on this host alone.
pub(crate) fn prepare_to_travel(
    kernel: &Kernel,
    machine: &Machine,
    stop: &AtomicBool,
) -> Result<(), LabError> {
    match kernel.origin() {
        Origin::Modelled => Ok(()),
        Origin::Driven => kernel.prepare(machine, &|_, _| {}, stop),
        _ => Err(LabError::new(
            format!("{} runs on this host alone", kernel.name()),
            "leave out --on, or name other kernels",
        )),
    }
}

/// Runs that a search asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrialBatch {
    ground: BatchCommon,
    cells: Vec<RunCell>,
}

impl TrialBatch {
    /// Runs them and gives their results, whole.
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
        self.ground.run(self.cells.iter(), stop, &mut |cell, result| trial_record(cell.cell, result))
    }
}

/// A result as it travels.
fn trial_record(number: usize, result: &RunResult) -> Value {
    let mut fields = run_fields(result);
    fields.insert("cell".to_string(), json!(number));
    Value::Object(fields)
}

/// A result, whole: with what its JSON leaves out.
pub(crate) fn run_fields(run: &RunResult) -> Map<String, Value> {
    let mut fields = Map::new();
    let beginning = &run.beginning;
    for (name, text) in [
        ("output", &run.output),
        ("trace_losses", &run.trace_losses),
        ("schedstat", &run.schedstat),
        ("schedstat_searches", &run.schedstat_searches),
        ("cgroups", &beginning.cgroups),
        ("tasks", &beginning.tasks),
        ("probes", &beginning.probes),
    ] {
        fields.insert(name.to_string(), json!(text));
    }
    fields.insert("counts".to_string(), Value::Object(counts_fields(&run.counts)));
    fields.insert("run".to_string(), json!(run));
    fields
}

/// The result of such fields; `None` where one is missing or wrong.
pub(crate) fn read_run(fields: &Value) -> Option<RunResult> {
    let run = RunResult::deserialize(&fields["run"]).ok()?;
    let text = |name: &str| fields[name].as_str().map(str::to_string);
    let (cgroups, tasks, probes) = (text("cgroups")?, text("tasks")?, text("probes")?);
    Some(RunResult {
        counts: read_counts(&fields["counts"])?,
        output: text("output")?,
        trace_losses: text("trace_losses")?,
        schedstat: text("schedstat")?,
        schedstat_searches: text("schedstat_searches")?,
        beginning: InitialLists { cgroups, tasks, probes },
        ..run
    })
}

/// Runs of one time.
struct RunCells<'s>(&'s [RunSpec]);

static TRIALS: CellKind = CellKind { schema: "fairlab/trials-journal/1", name: "search" };

impl CellList for RunCells<'_> {
    fn kind(&self) -> &'static CellKind {
        &TRIALS
    }

    fn spec(&self) -> Value {
        json!(self.batch_of(&(0..self.0.len()).collect::<Vec<_>>()))
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn prepare(&self, stop: &AtomicBool) -> Result<(), LabError> {
        self.0.iter().try_for_each(|spec| prepare_to_travel(&spec.kernel, &spec.machine, stop))
    }

    fn batch(&self, numbers: &[usize]) -> Result<CellBatch, LabError> {
        Ok(CellBatch::of(BatchWork::Trials(self.batch_of(numbers))))
    }

    fn run(&self, number: usize, stop: &AtomicBool) -> Result<Option<Value>, LabError> {
        Ok(run(&self.0[number], stop)?.map(|result| trial_record(number, &result)))
    }
}

impl RunCells<'_> {
    /// What a run's machine is called: by the first run that has one equal to it.
    fn machine(&self, number: usize) -> usize {
        let machine = &self.0[number].machine;
        self.0.iter().position(|other| other.machine == *machine).unwrap_or(number)
    }

    fn batch_of(&self, numbers: &[usize]) -> TrialBatch {
        let mut ground = BatchCommon::default();
        let cells = numbers.iter().map(|&number| ground.add(number, &self.0[number], self.machine(number)));
        let cells = cells.collect();
        TrialBatch { ground, cells }
    }
}

/// Does every run, as [`run_missing`] does, wherever. Those for a crew have one time, and leave no trace. Those that a
/// store keeps are not made.
///
/// # Errors
/// A run fails, or the crew is lost.
pub fn run_all_at(
    specs: &[RunSpec],
    store: Option<&RunStore>,
    place: CellWorkers<'_>,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<(Vec<RunResult>, ExperimentStopped), LabError> {
    if let CellWorkers::Threads(jobs) = place {
        return run_missing(specs, store, jobs, on_progress, stop);
    }
    let mut looked = looked_for(specs, store);
    let missing = (0..specs.len()).filter(|&index| looked[index].result.is_none()).collect::<Vec<_>>();
    let (kept, total) = (specs.len() - missing.len(), specs.len());
    let after = |now: Progress| on_progress(Progress { done: kept + now.done, total });
    after(Progress { done: 0, total });
    let cells = missing.iter().map(|&index| specs[index].clone()).collect::<Vec<_>>();
    let (records, outcome) = records(&RunCells(&cells), None, place, &after, stop)?;
    for record in &records {
        let number = record["cell"].as_u64().and_then(|number| missing.get(usize::try_from(number).ok()?));
        let (Some(&index), Some(result)) = (number, read_run(record)) else {
            let problem = format!("cell {} is no run", record["cell"]);
            return Err(LabError::new(problem, "run the same version everywhere"));
        };
        if let Some(store) = store {
            store.keep((&specs[index], ""), &looked[index], &result, &Value::Null);
        }
        looked[index].result = Some((result, Value::Null));
    }
    let results = looked.into_iter().filter_map(|looked| Some(looked.result?.0)).collect();
    Ok((results, ExperimentStopped(!outcome.is_complete())))
}
