//! Runs of a report, and how all of them are made at once.
//!
//! Must not know: what is measured in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlab_analysis::balancing::is_of_balancing;
use fairlab_event::{Ns, Sink};
use fairlab_files::workers;
use fairlab_lab::machines::{emulated_hardware, emulated_machine};
use fairlab_lab::{AskedRun, LabError, RunResult, RunSpec, machines, run_missing, run_watched};
use serde_json::Value;

use super::ScenarioContext;
use super::expressions::Cell;
use super::file::Plan;
use fairlab_analysis::watched::{Counted, Counting, Watched};

impl Plan {
    /// The run of a seed, with everything looked up.
    fn spec(&self, seed: u64) -> Result<RunSpec, LabError> {
        let mut machine = match emulated_hardware(&self.machine).filter(|_| self.hz.is_some()) {
            Some(hardware) => emulated_machine(&hardware?, &self.kernel)?,
            None => machines::find(&self.machine)?,
        };
        machine.hz = self.hz.unwrap_or(machine.hz);
        let workload = self.workload.split_whitespace().map(String::from).collect();
        let spec = RunSpec::new(self.kernel.parse()?, machine, workload, seed, self.duration());
        Ok(RunSpec { warmup: self.warmup_ms.map(Ns::from_ms), by_name: self.wanted()?, ..spec })
    }
}

/// The runs of all sides of a pool, kernel by kernel.
fn pools_of(cells: &[Arc<Cell>]) -> Vec<Arc<Cell>> {
    let mut pools = Vec::<Cell>::new();
    for cell in cells {
        for pool in &cell.plan.pool {
            let known =
                pools.iter().position(|known| known.plan.side == *pool && known.plan.name == cell.plan.name);
            let place = known.unwrap_or_else(|| {
                let plan = cell.plan.of_pool(pool);
                pools.push(Cell {
                    plan,
                    runs: Vec::new(),
                    counted: Vec::new(),
                    verified: None,
                    pooled: true,
                });
                pools.len() - 1
            });
            pools[place].plan.runs += cell.plan.runs;
            pools[place].runs.extend(cell.runs.iter().cloned());
            pools[place].counted.extend(cell.counted.iter().cloned());
        }
    }
    pools.into_iter().map(Arc::new).collect()
}

/// What was counted, by name, as a store has kept it.
fn counts_of(kept: &Value) -> Option<BTreeMap<String, Counted>> {
    let of = |(name, counted): (&String, &Value)| Some((name.clone(), Counted::of_json(counted)?));
    kept.as_object()?.iter().map(of).collect()
}

/// The run of each seed, and what was counted in it.
type Of = (RunResult, BTreeMap<String, Counted>);

impl ScenarioContext<'_> {
    /// `whole`, or `quick` if that is wanted.
    pub(crate) fn choose<T>(&self, whole: T, quick: T) -> T {
        if self.quick { quick } else { whole }
    }

    /// The run of a plan with a seed.
    pub(crate) fn spec(&self, plan: &Plan, seed: u64) -> Result<RunSpec, LabError> {
        Ok(self.as_told(plan.spec(seed)?))
    }

    /// The run, with nothing left to chance if that is wanted, and with the times that are.
    pub(crate) fn as_told(&self, spec: RunSpec) -> RunSpec {
        let duration = self.longest.map_or(spec.duration, |longest| spec.duration.min(longest));
        let spec = RunSpec { warmup: self.warmup.or(spec.warmup), duration, ..spec };
        if self.exact { RunSpec { machine: spec.machine.exact(), ..spec } } else { spec }
    }

    /// One run, whose events `sink` gets. Gives `None` when it was stopped.
    pub(crate) fn look(&self, spec: &RunSpec, sink: &mut dyn Sink) -> Result<Option<RunResult>, LabError> {
        run_watched(spec, self.stop, sink)
    }

    /// Does every run of `plans` on all threads. Gives `None` when it was stopped.
    pub(crate) fn make(
        &self,
        plans: Vec<Plan>,
        watched: &BTreeMap<String, Watched>,
    ) -> Result<Option<Vec<Arc<Cell>>>, LabError> {
        let mut specs = Vec::new();
        for plan in plans.iter().filter(|plan| plan.recorded().is_none()) {
            for seed in 1..=plan.runs {
                specs.push((self.spec(plan, seed)?, plan.from()));
            }
        }
        let made = self.counted(&specs, watched)?;
        let Some(made) = made else { return Ok(None) };
        let mut made = made.into_iter();
        let cell = |plan: Plan| {
            let runs = if plan.recorded().is_some() { 0 } else { plan.runs as usize };
            let (runs, counted) = made.by_ref().take(runs).unzip();
            Arc::new(Cell { plan, runs, counted, verified: None, pooled: false })
        };
        let mut cells = plans.into_iter().map(cell).collect::<Vec<_>>();
        cells.extend(pools_of(&cells));
        Ok(Some(cells))
    }

    /// Makes runs, and counts in each what is watched from a time on. Gives `None` when it was stopped.
    fn counted(
        &self,
        specs: &[(RunSpec, Ns)],
        watched: &BTreeMap<String, Watched>,
    ) -> Result<Option<Vec<Of>>, LabError> {
        let words = specs.iter().map(|(_, from)| format!("{from:?} {watched:?}")).collect::<Vec<_>>();
        let asked = specs.iter().zip(&words).map(|((spec, _), words)| (spec, words.as_str()));
        let asked = asked.collect::<Vec<AskedRun<'_>>>();
        let looked = self.store.map_or_else(Vec::new, |store| store.look(&asked));
        let numbers = (0..specs.len()).collect::<Vec<_>>();
        self.each(&numbers, |&number| -> Result<Option<Of>, LabError> {
            let ((spec, from), looked) = (&specs[number], looked.get(number));
            if let Some((run, beside)) = looked.and_then(|looked| looked.result.as_ref())
                && let Some(counted) = counts_of(beside)
            {
                return Ok(Some((run.clone(), counted)));
            }
            let mut counting = Counting::new(watched, *from);
            let Some(mut run) = self.look(spec, &mut counting)? else { return Ok(None) };
            if *from > Ns::ZERO {
                run.metrics.retain(|(name, _)| !is_of_balancing(name));
                run.metrics.extend(counting.balancing.metrics());
            }
            let counted = counting.finish();
            if let (Some(store), Some(looked)) = (self.store, looked) {
                let beside = counted.iter().map(|(name, counted)| (name.clone(), counted.to_json()));
                store.keep(asked[number], looked, &run, &Value::Object(beside.collect()));
            }
            Ok(Some((run, counted)))
        })
    }

    /// Makes runs. Gives `None` when it was stopped.
    pub(crate) fn runs(&self, specs: &[RunSpec]) -> Result<Option<Vec<RunResult>>, LabError> {
        let (runs, stopped) = run_missing(specs, self.store, self.jobs, self.on_progress, self.stop)?;
        Ok((!stopped.0).then_some(runs))
    }

    /// Does something for every item on all threads. Gives `None` when it was stopped.
    pub(crate) fn each<I: Sync, T: Send>(
        &self,
        items: &[I],
        work: impl Fn(&I) -> Result<Option<T>, LabError> + Sync,
    ) -> Result<Option<Vec<T>>, LabError> {
        let results = workers::for_each(items, self.jobs, self.on_progress, self.stop, work)?;
        Ok(results.into_iter().collect())
    }
}
