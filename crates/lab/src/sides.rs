//! What is compared, by kind. A kind of sides is a variant of [`Sides`] and one function, which yields sets of runs, each with a name.
//!
//! All that comes after (statistics, gate, causes, files, pages) looks at these sets alone.
//!
//! Must not know: how sets are compared, how an answer looks.

use std::path::{Path, PathBuf};

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::counts::RunCounts;
use fairlab_analysis::selector::TimeRange;
use fairlab_analysis::statistics::{LookLevels, LookPlan};
use serde_json::{Value, json};

use crate::answer::CompareAnswer;
use crate::compare::{RunRecord, RunSide, TraceCounting, live_sides, read_sides};
use crate::hosts::read_host_sets;
use crate::names::{MetricName, ShownMetrics};
use crate::provenance::{Origin, Provenance};
use crate::{Caller, Experiment, ExperimentRuns, Kernel, LabError, Progress, RunFolder, RunResult, warm_up};

/// What is compared; the first side is the baseline.
#[derive(Clone, Debug)]
pub enum Sides {
    /// Kernels under one workload. Their runs are made, except those that a stopped folder holds already.
    Kernels {
        /// What is run.
        experiment: Box<Experiment>,
        /// A folder for everything.
        out: Option<PathBuf>,
        /// That folder is there, and is gone on with.
        resume: bool,
    },
    /// Runs that are there: each kernel's in a folder, or several kernels' in one; or recordings, each a file.
    Folders {
        /// The folders.
        folders: Vec<PathBuf>,
        /// Only hosts with these labels, where traces are of several.
        labels: Vec<(String, String)>,
    },
    /// Sets of hosts, by what each counted.
    Hosts {
        /// Folders or files of counts, one a set.
        sets: Vec<PathBuf>,
        /// Only hosts with these labels.
        labels: Vec<(String, String)>,
    },
    /// Shell commands on this host, which is recorded meanwhile.
    Commands {
        /// Each a line for `sh -c`.
        commands: Vec<String>,
        /// How many runs each gets.
        runs: u64,
    },
}

/// What is wanted of the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Metrics that are asked for by name.
    pub metrics: Vec<MetricName>,
    /// Which metrics by name are shown beside these.
    pub shown: ShownMetrics,
    /// What ends then is measured.
    pub time: TimeRange,
    /// All waits are added up by cause, too.
    pub causes: bool,
}

impl Wanted {
    /// What must be counted by name.
    pub fn by_name(&self) -> NamesWanted {
        self.shown.wanted(&self.metrics)
    }

    fn counting(&self) -> TraceCounting {
        let (by_name, time, causes) = (self.by_name(), self.time, self.causes);
        TraceCounting { by_name, time, causes, ..TraceCounting::default() }
    }
}

/// Sets of runs, the baseline's first, and how they came about.
#[derive(Debug)]
pub struct Sets<'s> {
    /// Each side's runs.
    pub sides: Vec<RunSide>,
    /// How they came about.
    pub provenance: Provenance,
    /// How far it was, if it was stopped before its end.
    pub partial: Option<Progress>,
    /// What the reader should know of the runs.
    pub notices: Vec<String>,
    /// What was run, where runs were made by kernel.
    pub experiment: Option<&'s Experiment>,
    /// At which look the runs ended, where they were looked at while more were made.
    pub looked: Option<LookedAt>,
    /// What the programs themselves print, once a kernel: of which run, and the text.
    pub printed: Vec<(String, String)>,
    folder: Option<(RunFolder, Vec<RunResult>)>,
}

/// A look at the runs that ended them.
#[derive(Clone, Debug, PartialEq)]
pub struct LookedAt {
    /// When runs were looked at.
    pub plan: LookPlan,
    /// How many runs each side had by then.
    pub runs: usize,
    /// Why no more were made.
    pub end: LookEnd,
}

impl LookedAt {
    /// How sure the answer must be.
    pub fn levels(&self) -> LookLevels {
        self.plan.levels(self.runs)
    }
}

/// What a look comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookEnd {
    /// What is looked for is sure.
    Sure,
    /// It would take many more runs than are allowed.
    TooFar,
    /// More runs are to be made; where there are none left, they end undecided.
    Open,
}

impl LookEnd {
    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            LookEnd::Sure => "sure",
            LookEnd::TooFar => "too_far",
            LookEnd::Open => "open",
        }
    }
}

/// Who looks at the runs while they are made.
pub trait RunsLooker {
    /// Whether something is asked for that a run may lack.
    fn asks(&self) -> bool;

    /// Looks at the first run of each side, where something is asked for.
    ///
    /// # Errors
    /// It lacks what is asked for: why not to go on.
    fn accept(&self, first: &[RunSide]) -> Result<(), LabError>;

    /// What the runs come to by now, at a look with these levels. `left`: how many more each side may get.
    ///
    /// # Errors
    /// They cannot be compared.
    fn look(&self, sides: &[RunSide], levels: &LookLevels, left: usize) -> Result<LookEnd, LabError>;
}

impl Sides {
    /// The sets of runs: made or read. `looker` sees the first run of each kernel before the others are made, and ends them.
    ///
    /// # Errors
    /// There are no two sides, a run fails, runs cannot be read, or `accept` refuses.
    pub fn sets(
        &self,
        wanted: &Wanted,
        provenance: Provenance,
        caller: &Caller<'_>,
        looker: &dyn RunsLooker,
    ) -> Result<Sets<'_>, LabError> {
        match self {
            Sides::Kernels { experiment, out, resume } => {
                let opened = RunFolder::open(out.as_deref(), *resume, experiment)?;
                kernel_sets(experiment, opened, wanted, caller, looker, provenance)
            }
            Sides::Folders { folders, labels } => {
                let (sides, notes) = read_sides(folders, &wanted.counting(), labels)?;
                notes.iter().for_each(|note| (caller.tell)(note));
                Ok(Sets::of(provenance.of_sides(&sides), sides))
            }
            Sides::Hosts { sets, labels } => {
                let is_asked = |name: &str| wanted.metrics.iter().any(|metric| metric.name == name);
                let keeps = |name: &str| wanted.shown.shows(name, &[]) || is_asked(name);
                let sides = read_host_sets(sets, labels, &keeps)?;
                Ok(Sets::of(provenance.of_sides(&sides), sides))
            }
            Sides::Commands { commands, runs } => {
                let (sides, partial) =
                    live_sides(commands, *runs, &wanted.counting(), caller.on_progress, caller.stop)?;
                let here = provenance.by(Origin::RunHere).kernel(Kernel::Host.release()).machine("host");
                Ok(Sets { partial, ..Sets::of(here, sides) })
            }
        }
    }

    /// What is run, where runs are made by kernel.
    pub fn experiment(&self) -> Option<&Experiment> {
        match self {
            Sides::Kernels { experiment, .. } => Some(experiment),
            _ => None,
        }
    }

    /// Whether runs are made: that takes time, and can be stopped before its end.
    pub const fn are_made(&self) -> bool {
        matches!(self, Sides::Kernels { .. } | Sides::Commands { .. })
    }

    /// Whether that changes this host, so that something has to be put back.
    pub fn change_host(&self) -> bool {
        match self {
            Sides::Kernels { experiment, .. } => experiment.any(Kernel::changes_host),
            Sides::Commands { .. } => true,
            Sides::Folders { .. } | Sides::Hosts { .. } => false,
        }
    }
}

impl<'s> Sets<'s> {
    fn of(provenance: Provenance, sides: Vec<RunSide>) -> Sets<'s> {
        Sets {
            sides,
            provenance,
            partial: None,
            notices: Vec::new(),
            experiment: None,
            looked: None,
            printed: Vec::new(),
            folder: None,
        }
    }

    /// The answer for programs, with how it came about; it goes into the folder of the runs, too, if one is wanted.
    ///
    /// # Errors
    /// That folder cannot be written.
    pub fn keep(&mut self, answer: &CompareAnswer) -> Result<Value, LabError> {
        let value = self.provenance.within(json!(answer));
        if let (Some((folder, results)), Some(experiment)) = (self.folder.take(), self.experiment) {
            RunFolder::keep(Some(folder), self.partial, experiment, &results, &value)?;
        }
        Ok(value)
    }
}

/// Sees to it that kernels can be compared: there are two, at least. `workload`: what the user takes for one.
///
/// # Errors
/// There are fewer.
pub fn check_two(kernels: &[String], workload: &[String]) -> Result<(), LabError> {
    if kernels.len() > 1 {
        return Ok(());
    }
    let problem = match are_recordings(workload) {
        true => "recordings are compared as they are, and a kernel is given",
        false => "a comparison needs two kernels",
    };
    Err(LabError::new(
        problem,
        "give --kernel twice; the first is the baseline; --side and --vary compare anything else",
    ))
}

/// Whether words that stand where a workload does are recordings, or folders of them.
pub fn are_recordings(words: &[String]) -> bool {
    words.len() > 1 && words.iter().all(|word| Path::new(word).exists() && !word.ends_with(".toml"))
}

/// Makes the runs that are not kept already.
fn kernel_sets<'s>(
    experiment: &'s Experiment,
    (folder, kept): (Option<RunFolder>, Vec<RunResult>),
    wanted: &Wanted,
    caller: &Caller<'_>,
    looker: &dyn RunsLooker,
    provenance: Provenance,
) -> Result<Sets<'s>, LabError> {
    experiment.lines(Kernel::lacks).iter().for_each(|line| (caller.tell)(line));
    let names = experiment.names();
    let mut runs = ExperimentRuns::of(experiment, kept).with_store(caller.store);
    runs.set_causes(wanted.causes);
    let all = experiment.seeds.len();
    let plan = experiment.looks.as_ref();
    // What no run has is noticed before all of them are done.
    let first = looker.asks().then_some(1);
    let counts =
        first.into_iter().chain(plan.map_or(vec![all], |plan| plan.runs().to_vec())).collect::<Vec<_>>();
    let mut end = LookEnd::Open;
    let look = |results: &[RunResult], count: usize| {
        let sides = sides_of(&names, results);
        if count == 1 && looker.asks() {
            looker.accept(&sides)?;
        }
        if let Some(plan) = plan.filter(|_| count > 1) {
            end = looker.look(&sides, &plan.levels(count), all - count)?;
        }
        Ok(end != LookEnd::Open)
    };
    let made = runs.make_until(&counts, caller.jobs, caller.on_progress, caller.stop, look)?;
    let results = made.results;
    let mut notices = warm_up::notices(&results);
    notices.extend(experiment.time_notice());
    let first_of = |name: &String| results.iter().find(|run| run.side() == name);
    let printed = names.iter().filter_map(first_of);
    let printed = printed.map(|run| (format!("{} seed {}", run.side(), run.seed), run.output.clone()));
    let of_side = |name: &String| results.iter().filter(|run| run.side() == name).count();
    let runs = names.iter().map(of_side).max().unwrap_or_default();
    Ok(Sets {
        printed: printed.collect(),
        partial: made.partial,
        notices,
        experiment: Some(experiment),
        looked: plan.map(|plan| LookedAt { plan: plan.clone(), runs, end }),
        folder: folder.map(|folder| (folder, results.clone())),
        ..Sets::of(
            provenance.of_first_runs(experiment, runs).of_store(caller.store),
            sides_of(&names, &results),
        )
    })
}

/// Runs of some kernels as sides, in the order of these names.
pub fn sides_of(kernels: &[String], results: &[RunResult]) -> Vec<RunSide> {
    let side = |kernel: &String| {
        let runs = || results.iter().filter(|run| run.side() == kernel);
        let mut counts = RunCounts::default();
        runs().for_each(|run| counts.merge(&run.counts));
        RunSide {
            name: kernel.clone(),
            records: runs().map(RunRecord::of_run).collect(),
            workloads: results.iter().flat_map(RunResult::workloads).collect(),
            counts: Some(counts),
        }
    };
    kernels.iter().map(side).collect()
}
