//! Runs of a scenario: what each is, in words, and how all of them are made at once.
//!
//! Must not know: what is measured in them.

use fairlab_event::{Ns, Sink};
use fairlab_files::workers;
use fairlab_lab::names::{Shown, metrics_of};
use fairlab_lab::{LabError, RunResult, RunSpec, machines, run_watched};

use super::Bench;
use super::figures::{ByRun, RunKey};

/// Runs of one name: they differ in their seeds.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Their name.
    pub run: RunKey,
    /// The name of the kernel.
    pub kernel: &'static str,
    /// The machine's name.
    pub machine: &'static str,
    /// The workload's command line.
    pub workload: String,
    /// For how long, in virtual time.
    pub duration: Ns,
    /// From when on they are measured.
    pub measured: Measured,
}

/// From when on a run is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    /// From the program's start: it leaves out its own warm-up, or the report tells of all of it.
    FromStart,
    /// From when the machine has settled, as every other run.
    Settled,
}

/// A run, and what a sink of its own saw of it.
pub(crate) type Watched<O> = (RunResult, O);

/// Runs by name, a run a seed, in the order of the seeds.
pub(crate) type Batch<O> = ByRun<Vec<Watched<O>>>;

impl Plan {
    /// The run of a seed, with everything looked up.
    fn spec(&self, seed: u64) -> Result<RunSpec, LabError> {
        let spec = RunSpec::new(
            self.kernel.parse()?,
            machines::find(self.machine)?,
            self.workload.split_whitespace().map(String::from).collect(),
            seed,
            self.duration,
        );
        Ok(match self.measured {
            Measured::FromStart => RunSpec { warmup: Some(Ns::ZERO), ..spec },
            Measured::Settled => spec,
        })
    }
}

/// The mean of a metric over runs; `None` if one of them does not have it.
pub(crate) fn mean_of<O>(runs: &[Watched<O>], metric: &str) -> Option<f64> {
    let values = runs.iter().map(|(run, _)| run.metric(metric)).collect::<Option<Vec<_>>>()?;
    (!values.is_empty()).then(|| fairlab_analysis::statistics::mean(&values))
}

impl<O> Batch<O> {
    /// All runs, those of one name after those of the other.
    pub fn into_runs(self) -> impl Iterator<Item = RunResult> {
        self.into_values().flatten().map(|(run, _)| run)
    }
}

impl Bench<'_> {
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

    /// Does every run of `plans` with each of `seeds` on all threads, each with a sink of its own.
    pub(crate) fn watch<O: Sink + Send>(
        &self,
        plans: &[Plan],
        seeds: impl IntoIterator<Item = u64>,
        sink: impl Fn() -> O + Sync,
    ) -> Result<Option<Batch<O>>, LabError> {
        self.measure(plans, seeds, &[], sink)
    }

    /// The same; the runs have `metrics`, beside those that every run has.
    pub(crate) fn measure<O: Sink + Send>(
        &self,
        plans: &[Plan],
        seeds: impl IntoIterator<Item = u64>,
        metrics: &[&str],
        sink: impl Fn() -> O + Sync,
    ) -> Result<Option<Batch<O>>, LabError> {
        let seeds = seeds.into_iter().collect::<Vec<_>>();
        let words = metrics.iter().map(ToString::to_string).collect::<Vec<_>>();
        let by_name = Shown::default().wanted(&metrics_of(&[], &words)?);
        let spec = |plan, seed| Ok::<_, LabError>(RunSpec { by_name: by_name.clone(), ..self.spec(plan, seed)? });
        let each = plans
            .iter()
            .flat_map(|plan| seeds.iter().map(move |&seed| (plan, seed)))
            .map(|(plan, seed)| Ok((plan.run.clone(), spec(plan, seed)?)));
        self.watch_each(each.collect::<Result<Vec<_>, LabError>>()?, sink)
    }

    /// Does runs that have a name, those of one name one after the other, each with a sink of its own.
    pub(crate) fn watch_each<O: Sink + Send>(
        &self,
        specs: Vec<(RunKey, RunSpec)>,
        sink: impl Fn() -> O + Sync,
    ) -> Result<Option<Batch<O>>, LabError> {
        let results = self.each(&specs, |(_, spec)| {
            let mut sink = sink();
            let result = run_watched(spec, self.stop, &mut sink)?;
            Ok(result.map(|result| (result, sink)))
        })?;
        let Some(results) = results else { return Ok(None) };
        let mut all = Vec::<(RunKey, Vec<Watched<O>>)>::new();
        for ((run, _), watched) in specs.into_iter().zip(results) {
            match all.last_mut() {
                Some((last, runs)) if *last == run => runs.push(watched),
                _ => all.push((run, vec![watched])),
            }
        }
        Ok(Some(all.into_iter().collect()))
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
