//! Many runs: every kernel with every seed. Those that do not disturb each other go on at once, on all cores.
//!
//! Must not know: how runs are made on kernels of each kind, and what is found in them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::selector::TimeRange;
use fairlab_event::Ns;
use fairlab_sim::Machine;

use crate::{
    Kernel, LabError, Progress, RunFolder, RunResult, RunSetting, RunSpec, SettingWords, run, workers,
};

/// Kernels × seeds on one machine under one workload.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The kernels, of any kind; the first is the baseline.
    pub kernels: Vec<Kernel>,
    /// The machine.
    pub machine: Machine,
    /// The workload's name and its own options.
    pub workload: Vec<String>,
    /// The seeds; each kernel runs with each.
    pub seeds: Vec<u64>,
    /// How long each run settles; without, as long as the machine takes.
    pub warmup: Option<Ns>,
    /// When to stop each run, in its kernel's time from when it has settled.
    pub duration: Ns,
    /// Which numbers by name each run measures.
    pub by_name: NamesWanted,
    /// What ends then is measured, on the clock of each run's trace.
    pub time: TimeRange,
}

/// What the caller of long work brings.
#[derive(Clone, Copy)]
pub struct Caller<'c> {
    /// How many runs go on at once.
    pub jobs: usize,
    /// Is told how far the runs are.
    pub on_progress: &'c (dyn Fn(Progress) + Sync),
    /// Is told a line beside the answer.
    pub tell: &'c dyn Fn(&str),
    /// Ends it early.
    pub stop: &'c AtomicBool,
}

/// The experiment was stopped before its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExperimentStopped(pub bool);

impl Experiment {
    /// The experiment that kernels' names and a setting's words mean, with so many seeds. All is checked before anything runs.
    ///
    /// # Errors
    /// A name means nothing, or the kernels cannot run like that.
    pub fn of(kernels: &[String], asked: &SettingWords<'_>, seeds: u64) -> Result<Experiment, LabError> {
        if kernels.is_empty() {
            return Err(LabError::new("no kernel is given", "name one with --kernel, such as --kernel v6.6"));
        }
        let kernels = kernels.iter().map(|name| Kernel::parse(name)).collect::<Result<Vec<_>, _>>()?;
        let is_twice =
            |&(place, kernel): &(usize, &Kernel)| kernels[..place].iter().any(|k| k.name() == kernel.name());
        // Results belong to a kernel by its name.
        if let Some((_, twice)) = kernels.iter().enumerate().find(is_twice) {
            return Err(LabError::new(
                format!("kernel {} is given twice", twice.name()),
                "name each once; --runs and --seeds make more runs of it",
            ));
        }
        if seeds == 0 {
            return Err(LabError::new(
                "an experiment needs at least one run",
                "give --runs or --seeds of 1 or more",
            ));
        }
        let RunSetting { machine, workload, warmup, duration, first_seed, by_name, time, .. } =
            RunSetting::of_kernels(&kernels, asked)?;
        let seeds = (0..seeds).map(|offset| first_seed.wrapping_add(offset)).collect();
        Ok(Experiment { kernels, machine, workload, seeds, warmup, duration, by_name, time })
    }

    /// The kernels' names.
    pub fn names(&self) -> Vec<String> {
        self.kernels.iter().map(|kernel| kernel.name().to_string()).collect()
    }

    /// Whether this can be said of a kernel of it, at least.
    pub fn any(&self, is: impl Fn(&Kernel) -> bool) -> bool {
        self.kernels.iter().any(is)
    }

    /// A line for people of each kind of kernel, where `line` has one.
    pub fn lines(&self, line: impl Fn(&Kernel) -> Option<String>) -> Vec<String> {
        let mut kinds = Vec::new();
        let first_of_kind = |kernel: &&Kernel| {
            let is_new = !kinds.contains(&kernel.origin());
            kinds.push(kernel.origin());
            is_new
        };
        self.kernels.iter().filter(first_of_kind).filter_map(line).collect()
    }

    /// What an answer says of the time that was asked for.
    pub fn time_notice(&self) -> Option<String> {
        (!self.time.is_all()).then(|| {
            format!(
                "measured is what ends in {} of each run's clock; the programs' own numbers are of their whole course and left out",
                self.time
            )
        })
    }

    /// The runs: with each seed in turn every kernel, so that all kernels have as many runs whenever it is stopped.
    pub fn specs(&self) -> Vec<RunSpec> {
        let spec = |kernel: &Kernel, seed: u64| RunSpec {
            warmup: self.warmup,
            by_name: self.by_name.clone(),
            time: self.time,
            ..RunSpec::new(kernel.clone(), self.machine.clone(), self.workload.clone(), seed, self.duration)
        };
        self.seeds
            .iter()
            .flat_map(|&seed| self.kernels.iter().map(move |kernel| spec(kernel, seed)))
            .collect()
    }
}

/// The runs of an experiment that are to be made, and those that are there already.
#[derive(Debug)]
pub struct ExperimentRuns {
    /// The kernels' names, in the order in which results come.
    names: Vec<String>,
    specs: Vec<RunSpec>,
    kept: Vec<RunResult>,
    /// How many the experiment has in all.
    wanted: usize,
}

/// What came of the runs of an experiment: kernel by kernel in the experiment's order.
#[derive(Clone, Debug)]
pub struct ExperimentResults {
    /// The runs.
    pub results: Vec<RunResult>,
    /// How far it was, if it was stopped before its end.
    pub partial: Option<Progress>,
}

impl ExperimentRuns {
    /// All runs of an experiment but those that are `kept`.
    pub fn of(experiment: &Experiment, kept: Vec<RunResult>) -> ExperimentRuns {
        let mut specs = experiment.specs();
        let wanted = specs.len();
        let is_kept =
            |spec: &RunSpec| kept.iter().any(|run| run.kernel == spec.kernel.name() && run.seed == spec.seed);
        specs.retain(|spec| !is_kept(spec));
        ExperimentRuns { names: experiment.names(), specs, kept, wanted }
    }

    /// Traces hold what a modelled kernel with probes would print, too.
    pub fn set_probes(&mut self, probes: bool) {
        self.specs.iter_mut().for_each(|spec| spec.probes = probes);
    }

    /// All waits are added up by cause, too.
    pub fn set_causes(&mut self, causes: bool) {
        self.specs.iter_mut().for_each(|spec| spec.causes = causes);
    }

    /// Each run's trace goes into a folder.
    ///
    /// # Errors
    /// Its place there cannot be made.
    pub fn trace_into(&mut self, folder: &RunFolder) -> Result<(), LabError> {
        for spec in &mut self.specs {
            spec.trace = Some(folder.trace_path(spec.kernel.name(), spec.seed)?);
        }
        Ok(())
    }

    /// The trace of the only run goes into a file.
    ///
    /// # Errors
    /// There is another number of runs.
    pub fn trace_to(&mut self, path: &Path) -> Result<(), LabError> {
        let [spec] = self.specs.as_mut_slice() else {
            return Err(LabError::new(
                format!("--trace takes one run, and these are {}", self.specs.len()),
                "give one --kernel and one seed, or use --out, which keeps a trace of each",
            ));
        };
        spec.trace = Some(path.to_path_buf());
        Ok(())
    }

    /// Makes all runs, `jobs` at once where kernels allow it.
    ///
    /// # Errors
    /// A run fails; the others are given up.
    pub fn make(
        self,
        jobs: usize,
        on_progress: &(dyn Fn(Progress) + Sync),
        stop: &AtomicBool,
    ) -> Result<ExperimentResults, LabError> {
        let (results, stopped) = run_all(&self.specs, jobs, on_progress, stop)?;
        Ok(self.made(results, stopped))
    }

    /// Makes the first run of each kernel, shows them to `accept`, and goes on with the others unless that refuses.
    ///
    /// # Errors
    /// A run fails, or `accept` says why not to go on.
    pub fn make_if(
        self,
        jobs: usize,
        on_progress: &(dyn Fn(Progress) + Sync),
        stop: &AtomicBool,
        accept: impl FnOnce(&[RunResult]) -> Result<(), LabError>,
    ) -> Result<ExperimentResults, LabError> {
        let seed = self.specs.first().map(|spec| spec.seed);
        let (first, others): (Vec<_>, Vec<_>) =
            self.specs.iter().cloned().partition(|spec| Some(spec.seed) == seed);
        let total = self.specs.len();
        let after =
            |before: usize| move |now: Progress| on_progress(Progress { done: before + now.done, total });
        let (mut results, mut stopped) = run_all(&first, jobs, &after(0), stop)?;
        if !stopped.0 {
            accept(&results)?;
            let (more, stopped_then) = run_all(&others, jobs, &after(first.len()), stop)?;
            results.extend(more);
            stopped = stopped_then;
        }
        Ok(self.made(results, stopped))
    }

    /// The results in the order of the kernels. Those that were there stand among them by their seeds.
    fn made(self, mut results: Vec<RunResult>, stopped: ExperimentStopped) -> ExperimentResults {
        let place = |run: &RunResult| self.names.iter().position(|name| *name == run.kernel);
        match self.kept.is_empty() {
            true => results.sort_by_key(place),
            false => {
                results.extend(self.kept.iter().cloned());
                results.sort_by_key(|run| (place(run), run.seed));
            }
        }
        let partial = stopped.0.then_some(Progress { done: results.len(), total: self.wanted });
        ExperimentResults { results, partial }
    }
}

/// Does every run. Those that do not disturb each other go on at once, on `jobs` threads; the others one by one, while nothing
/// else runs. `on_progress` is called from any thread. When `stop` is set, what is finished by then is given. Results come in the
/// order of `specs`, whatever `jobs` is.
///
/// # Errors
/// A run fails; the others are given up.
pub fn run_all(
    specs: &[RunSpec],
    jobs: usize,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<(Vec<RunResult>, ExperimentStopped), LabError> {
    let total = specs.len();
    let mut results = specs.iter().map(|_| None).collect::<Vec<_>>();
    let mut done = 0;
    for round in rounds(specs) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let at_once = |&index: &usize| specs[index].kernel.runs_several_at_once();
        let (together, alone): (Vec<_>, Vec<_>) = round.into_iter().partition(at_once);
        let after = |now: Progress| on_progress(Progress { done: done + now.done, total });
        let found = workers::for_each(&together, jobs, &after, stop, |&index| run(&specs[index], stop))?;
        done += found.iter().flatten().count();
        for (index, result) in together.into_iter().zip(found) {
            results[index] = result;
        }
        for index in alone {
            on_progress(Progress { done, total });
            results[index] = run(&specs[index], stop)?;
            done += usize::from(results[index].is_some());
        }
    }
    Ok((results.into_iter().flatten().collect(), ExperimentStopped(done < total)))
}

/// What is done at once, by numbers of specs: all together where all may be. Otherwise one seed after the other, so that kernels
/// take turns.
fn rounds(specs: &[RunSpec]) -> Vec<Vec<usize>> {
    if specs.iter().all(|spec| spec.kernel.runs_several_at_once()) {
        return vec![(0..specs.len()).collect()];
    }
    let mut rounds: Vec<(u64, Vec<usize>)> = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        match rounds.iter_mut().find(|(seed, _)| *seed == spec.seed) {
            Some((_, round)) => round.push(index),
            None => rounds.push((spec.seed, vec![index])),
        }
    }
    rounds.into_iter().map(|(_, round)| round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines;

    fn experiment(kernels: &[&str], seeds: &[u64]) -> Experiment {
        Experiment {
            kernels: kernels.iter().map(|name| name.parse().expect("a kernel")).collect(),
            machine: machines::find("vm4").expect("a preset"),
            workload: ["hackbench", "-g", "1", "-l", "2"].map(str::to_string).to_vec(),
            seeds: seeds.to_vec(),
            warmup: None,
            duration: Ns::from_ms(20),
            by_name: NamesWanted::default(),
            time: TimeRange::default(),
        }
    }

    fn of(results: &[RunResult]) -> Vec<(&str, u64)> {
        results.iter().map(|run| (run.kernel.as_str(), run.seed)).collect()
    }

    #[test]
    fn the_first_run_of_each_kernel_is_shown_before_the_others_are_done() {
        let experiment = experiment(&["v6.6", "v6.5"], &[3, 4, 5]);
        let stop = AtomicBool::new(false);
        let runs = |accepted: bool, shown: &mut Vec<(String, u64)>| {
            ExperimentRuns::of(&experiment, Vec::new()).make_if(1, &|_| (), &stop, |results| {
                *shown = results.iter().map(|run| (run.kernel.clone(), run.seed)).collect();
                accepted.then_some(()).ok_or_else(|| LabError::new("no", "no"))
            })
        };
        let mut shown = Vec::new();
        let made = runs(true, &mut shown).expect("results");
        assert_eq!(shown, [("v6.6".to_string(), 3), ("v6.5".to_string(), 3)]);
        let whole = ExperimentRuns::of(&experiment, Vec::new()).make(1, &|_| (), &stop).expect("results");
        assert_eq!(of(&made.results), of(&whole.results), "in the same order");
        assert_eq!(of(&whole.results)[..3], [("v6.6", 3), ("v6.6", 4), ("v6.6", 5)]);
        assert!(runs(false, &mut shown).is_err());
    }

    #[test]
    fn runs_that_are_kept_are_not_made_and_stand_in_their_places() {
        let stop = AtomicBool::new(false);
        let before = ExperimentRuns::of(&experiment(&["v6.5"], &[4]), Vec::new()).make(1, &|_| (), &stop);
        let mut kept = before.expect("a run").results;
        kept[0].digest = "kept".to_string();
        let whole = ExperimentRuns::of(&experiment(&["v6.5", "v6.6"], &[3, 4, 5]), kept.clone());
        let made = whole.make(1, &|_| (), &stop).expect("results");
        let expected = [("v6.5", 3), ("v6.5", 4), ("v6.5", 5), ("v6.6", 3), ("v6.6", 4), ("v6.6", 5)];
        assert_eq!((of(&made.results), made.partial), (expected.to_vec(), None));
        assert_eq!(made.results[1].digest, "kept");
        let stopped = ExperimentRuns::of(&experiment(&["v6.5"], &[3, 4]), kept);
        let made = stopped.make(1, &|_| (), &AtomicBool::new(true)).expect("what was there");
        assert_eq!(made.partial, Some(Progress { done: 1, total: 2 }));
    }

    #[test]
    fn a_kernel_is_named_once() {
        let workload = ["hackbench".to_string()];
        let asked = SettingWords {
            machine: "vm4",
            workload: &workload,
            warmup: None,
            duration: None,
            exact: false,
            first_seed: 1,
            by_name: None,
            time: TimeRange::default(),
        };
        let of = |names: &[&str]| {
            Experiment::of(&names.iter().map(ToString::to_string).collect::<Vec<_>>(), &asked, 2)
        };
        assert_eq!(of(&["v6.5", "v6.6"]).expect("an experiment").seeds, [1, 2]);
        let refused = of(&["v6.5", "v6.6", "v6.5"]).expect_err("twice");
        assert_eq!(refused.problem, "kernel v6.5 is given twice");
    }

    #[test]
    fn kernels_that_run_alone_take_turns_with_the_others() {
        let specs = experiment(&["v6.5", "host"], &[1, 2]).specs();
        assert_eq!(rounds(&specs), [[0, 1], [2, 3]]);
        assert_eq!(rounds(&experiment(&["v6.5", "v6.6"], &[1, 2]).specs()), [[0, 1, 2, 3]]);
    }
}
