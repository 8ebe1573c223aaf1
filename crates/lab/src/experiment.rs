//! Many runs: every side with every seed. Those that do not disturb each other go on at once, on all cores.
//!
//! Must not know: how runs are made on kernels of each kind, and what is found in them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::selector::TimeRange;
use fairlab_analysis::statistics::LookPlan;
use fairlab_event::Ns;
use fairlab_files::shell::line_of;
use fairlab_sim::Machine;
use serde_json::Value;

use crate::run_store::LookedRun;
use crate::setting::duration;
use crate::{
    Kernel, LabError, Progress, RunFolder, RunResult, RunSetting, RunSpec, RunStore, SettingWords, run,
    workers,
};

/// Sides × seeds. Sides may differ in anything: kernel, machine, workload, times.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What is run; the first is the baseline.
    pub sides: Vec<ExperimentSide>,
    /// The seeds; each side runs with each.
    pub seeds: Vec<u64>,
    /// Which numbers by name each run measures.
    pub by_name: NamesWanted,
    /// What ends then is measured, on the clock of each run's trace.
    pub time: TimeRange,
    /// When runs are looked at while more are made; without, all are made.
    pub looks: Option<LookPlan>,
}

/// What is run with each seed.
#[derive(Clone, Debug)]
pub struct ExperimentSide {
    /// What answers and folders call it: the name that the user gave it, or its kernel's.
    pub name: String,
    /// The kernel, of any kind.
    pub kernel: Kernel,
    /// The machine.
    pub machine: Machine,
    /// What the machine is called on a command line: a file by its path.
    pub machine_name: String,
    /// The workload's name and its own options.
    pub workload: Vec<String>,
    /// How long each run settles; without, as long as the machine takes.
    pub warmup: Option<Ns>,
    /// When to stop each run, in its kernel's time from when it has settled.
    pub duration: Ns,
}

/// Runs a side where nothing else is said and they do not end by themselves.
pub const RUNS: u64 = 10;

/// The most runs a side where nothing else is said and they end once the answer is sure.
pub const RUNS_MAX: u64 = 30;

/// One thing of a side, in words.
type SideTold = fn(&ExperimentSide) -> String;

/// What the caller of long work brings.
#[derive(Clone, Copy)]
pub struct Caller<'c> {
    /// How many runs go on at once.
    pub jobs: usize,
    /// Is told how far the runs are.
    pub on_progress: &'c (dyn Fn(Progress) + Sync),
    /// Is told a line beside the answer.
    pub tell: &'c dyn Fn(&str),
    /// Is told how things stand at each look at the runs.
    pub on_look: &'c dyn Fn(&str),
    /// Where runs are kept, if they are.
    pub store: Option<&'c RunStore>,
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
        let setting = RunSetting::of_kernels(&kernels, asked)?;
        let Experiment { sides, .. } = Experiment::of_setting(kernels, &setting, Vec::new());
        Experiment::of_sides(sides, asked, seeds)
    }

    /// Kernels in one setting, each called by its name.
    pub fn of_setting(kernels: Vec<Kernel>, setting: &RunSetting, seeds: Vec<u64>) -> Experiment {
        let sides = kernels.into_iter().map(|kernel| {
            let name = kernel.name().to_string();
            ExperimentSide::of(name, kernel, setting.clone())
        });
        Experiment {
            sides: sides.collect(),
            seeds,
            by_name: setting.by_name.clone(),
            time: setting.time,
            looks: None,
        }
    }

    /// The experiment of sides that may differ in anything, with so many seeds.
    ///
    /// # Errors
    /// Two have one name, or there is no seed.
    pub fn of_sides(
        sides: Vec<ExperimentSide>,
        asked: &SettingWords<'_>,
        seeds: u64,
    ) -> Result<Experiment, LabError> {
        let is_twice = |&(place, side): &(usize, &ExperimentSide)| {
            sides[..place].iter().any(|one| one.name == side.name)
        };
        // Results belong to a side by its name.
        if let Some((_, twice)) = sides.iter().enumerate().find(is_twice) {
            let what = if twice.name == twice.kernel.name() { "kernel" } else { "side" };
            return Err(LabError::new(
                format!("{what} {} is given twice", twice.name),
                "name each once; --runs and --seeds make more runs of it",
            ));
        }
        if seeds == 0 {
            return Err(LabError::new(
                "an experiment needs at least one run",
                "give --runs or --seeds of 1 or more",
            ));
        }
        let seeds = (0..seeds).map(|offset| asked.first_seed.wrapping_add(offset)).collect();
        let by_name = asked.by_name.cloned().unwrap_or_default();
        Ok(Experiment { sides, seeds, by_name, time: asked.time, looks: None })
    }

    /// Runs until the answer is sure, of at most so many a side as there are seeds. Runs in real time are `RUNS` a side: they have no
    /// pairs, and the host's own changes come between looks.
    #[must_use]
    pub fn until_sure(mut self) -> Experiment {
        if self.any(|kernel| !kernel.has_virtual_time()) {
            self.seeds.truncate(RUNS as usize);
        } else {
            self.looks = Some(LookPlan::up_to(self.seeds.len()));
        }
        self
    }

    /// The sides' names.
    pub fn names(&self) -> Vec<String> {
        self.sides.iter().map(|side| side.name.clone()).collect()
    }

    /// The side of this name.
    pub fn side(&self, name: &str) -> Option<&ExperimentSide> {
        self.sides.iter().find(|side| side.name == name)
    }

    /// Their kernels, one a side.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.sides.iter().map(|side| &side.kernel)
    }

    /// The setting in which a side of it runs.
    pub fn setting_of(&self, side: &ExperimentSide) -> RunSetting {
        RunSetting {
            machine_name: side.machine_name.clone(),
            warmup: side.warmup,
            first_seed: self.seeds.first().copied().unwrap_or(1),
            by_name: self.by_name.clone(),
            time: self.time,
            ..RunSetting::new(side.machine.clone(), side.workload.clone(), side.duration)
        }
    }

    /// The machine of all sides, where they have one.
    pub fn machine(&self) -> Option<&Machine> {
        self.common(|one, other| one.machine == other.machine).map(|side| &side.machine)
    }

    /// The workload of all sides, where they have one.
    pub fn workload(&self) -> Option<&[String]> {
        self.common(|one, other| one.workload == other.workload).map(|side| &side.workload[..])
    }

    /// Whether sides differ in their kernels alone, and are called as these are.
    pub fn is_of_kernels(&self) -> bool {
        self.sides.iter().all(|side| side.name == side.kernel.name() && side.is_in_setting_of(&self.sides[0]))
    }

    /// In what sides differ, in a line: `sides differ in the workload: 4 threads 'schbench -t 4', 8 threads 'schbench -t 8'`. `None` where
    /// that is their kernels alone, which name them.
    pub fn difference(&self) -> Option<String> {
        if self.is_of_kernels() {
            return None;
        }
        let kinds: [(&str, SideTold); 4] = [
            ("the kernel", |side| side.kernel.name().to_string()),
            ("the machine", |side| side.machine_name.clone()),
            ("the workload", |side| format!("'{}'", line_of(&side.workload))),
            ("times", |side| {
                let warmup =
                    side.warmup.map_or(String::new(), |warmup| format!("{} after ", duration(warmup)));
                format!("{warmup}{}", duration(side.duration))
            }),
        ];
        let told = kinds.iter().filter_map(|(what, told)| {
            let all = self.sides.iter().map(told).collect::<Vec<_>>();
            let values = self.sides.iter().zip(&all).map(|(side, value)| format!("{}: {value}", side.name));
            all.iter()
                .any(|value| *value != all[0])
                .then(|| format!("{what} ({})", values.collect::<Vec<_>>().join("; ")))
        });
        Some(format!("sides differ in {}", told.collect::<Vec<_>>().join(", and in ")))
    }

    /// The first side, where all are `alike` to it.
    fn common(&self, alike: impl Fn(&ExperimentSide, &ExperimentSide) -> bool) -> Option<&ExperimentSide> {
        let first = self.sides.first()?;
        self.sides.iter().all(|side| alike(first, side)).then_some(first)
    }

    /// Whether this can be said of a kernel of it, at least.
    pub fn any(&self, is: impl Fn(&Kernel) -> bool) -> bool {
        self.kernels().any(is)
    }

    /// A line for people of each kind of kernel, where `line` has one.
    pub fn lines(&self, line: impl Fn(&Kernel) -> Option<String>) -> Vec<String> {
        let mut kinds = Vec::new();
        let first_of_kind = |kernel: &&Kernel| {
            let is_new = !kinds.contains(&kernel.origin());
            kinds.push(kernel.origin());
            is_new
        };
        self.kernels().filter(first_of_kind).filter_map(line).collect()
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

    /// The runs: with each seed in turn every side, so that all have as many runs whenever it is stopped.
    pub fn specs(&self) -> Vec<RunSpec> {
        let spec = |side: &ExperimentSide, seed: u64| RunSpec {
            by_name: self.by_name.clone(),
            time: self.time,
            ..side.spec(seed)
        };
        self.seeds.iter().flat_map(|&seed| self.sides.iter().map(move |side| spec(side, seed))).collect()
    }
}

impl ExperimentSide {
    /// A kernel in a setting.
    pub fn of(name: String, kernel: Kernel, setting: RunSetting) -> ExperimentSide {
        let RunSetting { machine, machine_name, workload, warmup, duration, .. } = setting;
        ExperimentSide { name, kernel, machine, machine_name, workload, warmup, duration }
    }

    /// Whether it differs from another in no more than its kernel.
    pub fn is_in_setting_of(&self, other: &ExperimentSide) -> bool {
        self.machine == other.machine
            && self.workload == other.workload
            && (self.warmup, self.duration) == (other.warmup, other.duration)
    }

    /// Its run with a seed.
    pub fn spec(&self, seed: u64) -> RunSpec {
        RunSpec {
            side: self.name.clone(),
            warmup: self.warmup,
            ..RunSpec::new(
                self.kernel.clone(),
                self.machine.clone(),
                self.workload.clone(),
                seed,
                self.duration,
            )
        }
    }
}

/// The runs of an experiment that are to be made, and those that are there already.
pub struct ExperimentRuns<'s> {
    /// The sides' names, in the order in which results come.
    names: Vec<String>,
    seeds: Vec<u64>,
    /// Where runs are kept.
    store: Option<&'s RunStore>,
    specs: Vec<RunSpec>,
    kept: Vec<RunResult>,
    /// How many the experiment has in all.
    wanted: usize,
}

/// What came of the runs of an experiment: side by side in the experiment's order.
#[derive(Clone, Debug)]
pub struct ExperimentResults {
    /// The runs.
    pub results: Vec<RunResult>,
    /// How far it was, if it was stopped before its end.
    pub partial: Option<Progress>,
}

impl<'s> ExperimentRuns<'s> {
    /// All runs of an experiment but those that are `kept`.
    pub fn of(experiment: &Experiment, kept: Vec<RunResult>) -> ExperimentRuns<'s> {
        let mut specs = experiment.specs();
        let wanted = specs.len();
        let is_kept =
            |spec: &RunSpec| kept.iter().any(|run| run.side() == spec.side && run.seed == spec.seed);
        specs.retain(|spec| !is_kept(spec));
        ExperimentRuns {
            names: experiment.names(),
            seeds: experiment.seeds.clone(),
            store: None,
            specs,
            kept,
            wanted,
        }
    }

    /// Runs that a store keeps are not made.
    #[must_use]
    pub fn with_store(self, store: Option<&'s RunStore>) -> ExperimentRuns<'s> {
        ExperimentRuns { store, ..self }
    }

    /// Traces hold what a modelled kernel with probes would print, too.
    pub fn set_probes(&mut self, probes: bool) {
        self.specs.iter_mut().for_each(|spec| spec.probes = probes);
    }

    /// Traces hold what a modelled kernel decides, too, with its reasons.
    pub fn set_decisions(&mut self, decisions: bool) {
        self.specs.iter_mut().for_each(|spec| spec.decisions = decisions);
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
            spec.trace = Some(folder.trace_path(&spec.side, spec.seed)?);
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
        let (results, stopped) = run_missing(&self.specs, self.store, jobs, on_progress, stop)?;
        Ok(self.made(results, stopped))
    }

    /// Makes the runs of ever more seeds: as many seeds in all as `counts` says, one number after the other. Ends early where `is_enough`
    /// says so of what is there by then.
    ///
    /// # Errors
    /// A run fails, or `is_enough` says why not to go on.
    pub fn make_until(
        mut self,
        counts: &[usize],
        jobs: usize,
        on_progress: &(dyn Fn(Progress) + Sync),
        stop: &AtomicBool,
        mut is_enough: impl FnMut(&[RunResult], usize) -> Result<bool, LabError>,
    ) -> Result<ExperimentResults, LabError> {
        let mut results = Vec::new();
        for &count in counts {
            let seeds = &self.seeds[..count.min(self.seeds.len())];
            let (now, later) = self.specs.into_iter().partition(|spec| seeds.contains(&spec.seed));
            self.specs = later;
            let (before, now): (usize, Vec<RunSpec>) = (results.len(), now);
            let total = before + now.len();
            let after = |now: Progress| on_progress(Progress { done: before + now.done, total });
            let (more, stopped) = run_missing(&now, self.store, jobs, &after, stop)?;
            results.extend(more);
            if stopped.0 {
                return Ok(self.made(results, stopped));
            }
            if is_enough(&self.in_order(results.clone()), count)? {
                break;
            }
        }
        Ok(self.made(results, ExperimentStopped(false)))
    }

    fn made(self, results: Vec<RunResult>, stopped: ExperimentStopped) -> ExperimentResults {
        let results = self.in_order(results);
        let partial = stopped.0.then_some(Progress { done: results.len(), total: self.wanted });
        ExperimentResults { results, partial }
    }

    /// The results in the order of the sides. Those that were there stand among them by their seeds.
    fn in_order(&self, mut results: Vec<RunResult>) -> Vec<RunResult> {
        let place = |run: &RunResult| self.names.iter().position(|name| name == run.side());
        match self.kept.is_empty() {
            true => results.sort_by_key(place),
            false => {
                results.extend(self.kept.iter().cloned());
                results.sort_by_key(|run| (place(run), run.seed));
            }
        }
        results
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
    run_missing(specs, None, jobs, on_progress, stop)
}

/// Does every run that a store lacks, as [`run_all`] does, and gives all.
///
/// # Errors
/// A run fails; the others are given up.
pub fn run_missing(
    specs: &[RunSpec],
    store: Option<&RunStore>,
    jobs: usize,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<(Vec<RunResult>, ExperimentStopped), LabError> {
    let total = specs.len();
    let looked = looked_for(specs, store);
    let kept = |looked: &LookedRun| looked.result.as_ref().map(|(run, _)| run.clone());
    let mut results = looked.iter().map(kept).collect::<Vec<_>>();
    let mut done = results.iter().flatten().count();
    if done > 0 {
        on_progress(Progress { done, total });
    }
    let make = |index: usize| {
        let made = run(&specs[index], stop)?;
        if let (Some(store), Some(result)) = (store, &made) {
            store.keep((&specs[index], ""), &looked[index], result, &Value::Null);
        }
        Ok(made)
    };
    for mut round in rounds(specs) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        round.retain(|&index| results[index].is_none());
        let at_once = |&index: &usize| specs[index].kernel.runs_several_at_once();
        let (together, alone): (Vec<_>, Vec<_>) = round.into_iter().partition(at_once);
        let after = |now: Progress| on_progress(Progress { done: done + now.done, total });
        let found = workers::for_each(&together, jobs, &after, stop, |&index| make(index))?;
        done += found.iter().flatten().count();
        for (index, result) in together.into_iter().zip(found) {
            results[index] = result;
        }
        for index in alone {
            on_progress(Progress { done, total });
            results[index] = make(index)?;
            done += usize::from(results[index].is_some());
        }
    }
    Ok((results.into_iter().flatten().collect(), ExperimentStopped(done < total)))
}

/// What a store says of each run.
pub(crate) fn looked_for(specs: &[RunSpec], store: Option<&RunStore>) -> Vec<LookedRun> {
    let asked = || specs.iter().map(|spec| (spec, "")).collect::<Vec<_>>();
    store.map_or_else(|| vec![LookedRun::default(); specs.len()], |store| store.look(&asked()))
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
        let side = |name: &&str| ExperimentSide {
            name: name.to_string(),
            kernel: name.parse().expect("a kernel"),
            machine: machines::find("vm4").expect("a preset"),
            machine_name: "vm4".to_string(),
            workload: ["hackbench", "-g", "1", "-l", "2"].map(str::to_string).to_vec(),
            warmup: Some(Ns::ZERO),
            duration: Ns::from_ms(20),
        };
        Experiment {
            sides: kernels.iter().map(side).collect(),
            seeds: seeds.to_vec(),
            by_name: NamesWanted::default(),
            time: TimeRange::default(),
            looks: None,
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
            ExperimentRuns::of(&experiment, Vec::new()).make_until(
                &[1, 3],
                1,
                &|_| (),
                &stop,
                |results, runs| {
                    if runs == 1 {
                        *shown = results.iter().map(|run| (run.kernel.clone(), run.seed)).collect();
                    }
                    accepted.then_some(false).ok_or_else(|| LabError::new("no", "no"))
                },
            )
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
    fn runs_end_where_they_are_enough() {
        let (experiment, stop) = (experiment(&["v6.6", "v6.5"], &[3, 4, 5]), AtomicBool::new(false));
        let made = |enough: usize| {
            let runs = ExperimentRuns::of(&experiment, Vec::new());
            runs.make_until(&[1, 2, 3], 1, &|_| (), &stop, |results, runs| {
                assert_eq!(results.len(), 2 * runs);
                Ok(runs == enough)
            })
        };
        assert_eq!(
            of(&made(2).expect("results").results),
            [("v6.6", 3), ("v6.6", 4), ("v6.5", 3), ("v6.5", 4)]
        );
        assert_eq!(made(9).expect("results").results.len(), 6);
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
