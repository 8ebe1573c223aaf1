//! Runs on demand: a search asks for kernels and seeds, and each is run once.
//!
//! Must not know: what is looked for in the results.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use fairlab_lab::cells::{CellWorkers, Crew, run_all_at};
use fairlab_lab::{ExperimentStopped, Kernel, LabError, Progress, RunResult, RunSetting, RunSpec, RunStore};
use fairlab_native::build::LANES;

/// Why a search has no answer.
pub(crate) enum SearchHalt {
    /// The user stopped it.
    Stopped,
    /// A run failed, or lacks the metric.
    Failed(LabError),
}

impl From<LabError> for SearchHalt {
    fn from(error: LabError) -> SearchHalt {
        SearchHalt::Failed(error)
    }
}

/// CPUs that a build keeps busy: a scheduler is few files.
const CPUS_A_BUILD: usize = 3;

/// How many builds go on at once on this host.
fn at_once() -> usize {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    (cpus / CPUS_A_BUILD).clamp(1, LANES)
}

/// Runs so far. Kernels of equal rules share them.
pub struct SearchTrials<'e> {
    setting: &'e RunSetting,
    jobs: usize,
    /// Who makes the runs instead of threads of this process.
    crew: Option<&'e mut dyn Crew>,
    /// Where runs of earlier searches are kept.
    store: Option<&'e RunStore>,
    on_progress: &'e (dyn Fn(Progress) + Sync),
    /// Is called with what is built, before it is.
    on_build: Option<&'e (dyn Fn(&str) + Sync)>,
    stop: &'e AtomicBool,
    /// Whether all waits are added up by cause.
    causes: bool,
    /// Kernels that differ, each with its runs in the order of seeds.
    known: Vec<(Kernel, Vec<RunResult>)>,
}

impl<'e> SearchTrials<'e> {
    /// No runs yet.
    pub fn new(
        setting: &'e RunSetting,
        jobs: usize,
        on_progress: &'e (dyn Fn(Progress) + Sync),
        stop: &'e AtomicBool,
    ) -> SearchTrials<'e> {
        SearchTrials {
            setting,
            jobs,
            crew: None,
            store: None,
            on_progress,
            on_build: None,
            stop,
            causes: false,
            known: Vec::new(),
        }
    }

    /// Runs on demand that a crew makes.
    #[must_use]
    pub fn by(self, crew: &'e mut dyn Crew) -> SearchTrials<'e> {
        SearchTrials { crew: Some(crew), ..self }
    }

    /// Runs on demand, those that a store keeps not made again.
    #[must_use]
    pub fn with_store(self, store: Option<&'e RunStore>) -> SearchTrials<'e> {
        SearchTrials { store, ..self }
    }

    /// Runs on demand that tell what is built, before it is.
    #[must_use]
    pub fn telling(self, on_build: &'e (dyn Fn(&str) + Sync)) -> SearchTrials<'e> {
        SearchTrials { on_build: Some(on_build), ..self }
    }

    /// Runs on demand, with all waits added up by cause if asked.
    #[must_use]
    pub fn by_cause(self, causes: bool) -> SearchTrials<'e> {
        SearchTrials { causes, ..self }
    }

    /// What ends a search early.
    pub(crate) fn stop(&self) -> &'e AtomicBool {
        self.stop
    }

    /// Makes kernels ready to run: those that are built from sources are built, some at once where there are the CPUs for it. Gives
    /// what came of each.
    pub fn prepare(&self, kernels: &[Kernel]) -> Vec<Result<(), LabError>> {
        let next = AtomicUsize::new(0);
        let made = Mutex::new(vec![Ok(()); kernels.len()]);
        let (machine, on_build, stop) = (&self.setting.machine, self.on_build, self.stop);
        let build = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(kernel) = kernels.get(index) else { break };
                let told = |step: &str, _| {
                    if let Some(on_build) = on_build {
                        on_build(&format!("build of {}, {step}", kernel.name()));
                    }
                };
                let one = kernel.prepare(machine, &told, stop);
                made.lock().unwrap_or_else(PoisonError::into_inner)[index] = one;
            }
        };
        thread::scope(|scope| {
            for _ in 1..at_once().min(kernels.len()) {
                scope.spawn(build);
            }
            build();
        });
        made.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// What every run has in common.
    pub fn setting(&self) -> &RunSetting {
        self.setting
    }

    /// How many runs were made.
    pub fn made(&self) -> usize {
        self.known.iter().map(|(_, runs)| runs.len()).sum()
    }

    /// Sees to it that each of `kernels` has at least `runs` runs. Gives `ExperimentStopped(true)` when it was stopped.
    ///
    /// # Errors
    /// A run fails.
    pub fn ensure(&mut self, kernels: &[Kernel], runs: usize) -> Result<ExperimentStopped, LabError> {
        let mut places = Vec::new();
        let mut specs = Vec::new();
        for kernel in kernels {
            let place = self.place(kernel);
            if places.contains(&place) {
                continue;
            }
            places.push(place);
            let (kernel, done) = &self.known[place];
            let missing = done.len()..runs.max(done.len());
            specs.extend(missing.map(|number| {
                let spec = RunSpec::new(
                    kernel.clone(),
                    self.setting.machine.clone(),
                    self.setting.workload.clone(),
                    self.setting.first_seed.wrapping_add(number as u64),
                    self.setting.duration,
                );
                let by_name = self.setting.by_name.clone();
                let spec = RunSpec {
                    warmup: self.setting.warmup,
                    by_name,
                    time: self.setting.time,
                    causes: self.causes,
                    ..spec
                };
                (number, spec)
            }));
        }
        // Kernels take turns: whenever it is stopped, each has about as many runs.
        specs.sort_by_key(|(number, _)| *number);
        let specs = specs.into_iter().map(|(_, spec)| spec).collect::<Vec<_>>();
        if specs.is_empty() {
            return Ok(ExperimentStopped(false));
        }
        let place = match &mut self.crew {
            Some(crew) => CellWorkers::Crew(&mut **crew),
            None => CellWorkers::Threads(self.jobs),
        };
        let (results, stopped) = run_all_at(&specs, self.store, place, self.on_progress, self.stop)?;
        for result in results {
            let place = self.known.iter_mut().find(|(kernel, _)| kernel.name() == result.kernel);
            let Some((_, runs)) = place else { continue };
            // Where it was stopped, runs before this one may be missing.
            if result.seed == self.setting.first_seed.wrapping_add(runs.len() as u64) {
                runs.push(result);
            }
        }
        Ok(stopped)
    }

    /// The runs of a kernel, in the order of seeds.
    pub fn runs(&self, kernel: &Kernel) -> &[RunResult] {
        self.known.iter().find(|(known, _)| known.same_rules(kernel)).map_or(&[], |(_, runs)| runs)
    }

    /// Whether a kernel's runs are equal, event by event, for all seeds.
    pub fn are_seedless(&self, kernel: &Kernel) -> bool {
        let runs = self.runs(kernel);
        runs.len() > 1 && runs.windows(2).all(|pair| pair[0].digest == pair[1].digest)
    }

    fn place(&mut self, kernel: &Kernel) -> usize {
        let known = self.known.iter().position(|(known, _)| known.same_rules(kernel));
        known.unwrap_or_else(|| {
            self.known.push((kernel.clone(), Vec::new()));
            self.known.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::Ns;
    use fairlab_kernel::Generation;

    use super::*;
    use fairlab_lab::machines;

    #[test]
    fn each_is_run_once() {
        let setting = RunSetting {
            first_seed: 7,
            ..RunSetting::new(
                machines::find("laptop8").expect("a machine"),
                ["schbench", "-t", "2", "-c", "500"].map(String::from).to_vec(),
                Ns::from_ms(50),
            )
        };
        let stop = AtomicBool::new(false);
        let mut trials = SearchTrials::new(&setting, 2, &|_| {}, &stop);
        let kernels = ["v6.5", "v6.5+avg-vruntime", "v6.6"]
            .map(|name| Kernel::from(name.parse::<Generation>().expect("a kernel")));
        trials.ensure(&kernels, 2).expect("runs");
        assert_eq!(trials.made(), 4, "the first two decide alike");
        trials.ensure(&kernels[2..], 3).expect("runs");
        assert_eq!(trials.runs(&kernels[2]).iter().map(|run| run.seed).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(trials.runs(&kernels[1]).len(), 2);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(trials.ensure(&kernels, 4).expect("no error"), ExperimentStopped(true));
    }
}
