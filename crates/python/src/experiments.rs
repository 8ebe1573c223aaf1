//! Runs, comparisons, searches.
//!
//! Must not know: how answers look.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fairlab_change::SearchTrials;
use fairlab_change::bisect::{self as search, BisectAnswer, BisectSpec, runs_enough};
use fairlab_change::compare::CompareSpec;
use fairlab_change::gate::GateRule;
use fairlab_change::side_words::{SideWords, experiment_of};
use fairlab_lab::answer::RunAnswer;
use fairlab_lab::cells::CellWorkers;
use fairlab_lab::hosts::parse_label;
use fairlab_lab::kernel::KernelNeed;
use fairlab_lab::names::{MetricName, wanted_for};
use fairlab_lab::sides::check_two;
use fairlab_lab::{Caller, Experiment, ExperimentRuns, Kernel, LabError, RunFolder, RunSetting, Sides};
use fairlab_recording::system_beside;
use fairlab_verify::schedstat::{self, read_schedstat};
use pyo3::prelude::*;
use serde_json::json;

use crate::crew::by_crew;
use crate::failed::CallError;
use crate::interruptible::{abandonable, interruptible};
use crate::request::{RunRequest, RunSetup, TraceSelection, prepare, provenance, share};

/// What a call gives: the answer as JSON, what the programs themselves print, and notes for the user.
type ExperimentCall = (String, Vec<String>, Vec<String>);

/// Runs a workload on one kernel or several.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    request: RunRequest,
    seeds: u64,
    trace: Option<PathBuf>,
    probes: bool,
) -> Result<ExperimentCall, CallError> {
    if probes && trace.is_none() && request.out.is_none() {
        let problem = "--probes adds to a trace, and none is kept";
        return Err(LabError::new(problem, "give --trace or --out, too").into());
    }
    interruptible(py, move |stop| {
        let setup = request.setup()?;
        let experiment = experiment(&request, &setup, &[], seeds, stop)?;
        let (folder, kept) = RunFolder::open(request.out.as_deref(), request.resume, &experiment)?;
        let mut runs = ExperimentRuns::of(&experiment, kept);
        runs.set_probes(probes);
        if let Some(folder) = &folder {
            runs.trace_into(folder)?;
        }
        if let Some(path) = &trace {
            runs.trace_to(path)?;
        }
        let made = runs.make(setup.jobs, &|_| {}, stop)?;
        let partial = made.partial;
        let mut answer = RunAnswer::from(made);
        answer.notices.extend(experiment.time_notice());
        let whole = answer.runs.clone();
        let mut told = experiment.lines(Kernel::lacks);
        for run in &mut answer.runs {
            setup.shown.check(run.metrics.iter().map(|(name, _)| name.as_str()))?;
            let workloads = run.workloads();
            run.metrics.retain(|(name, _)| setup.shown.shows(name, &workloads));
            told.extend(run.trace_losses.lines().map(String::from));
        }
        let outputs = answer.runs.iter().map(|run| run.output.clone()).collect();
        let value = provenance(request.words).of_experiment(&experiment).within(json!(answer));
        RunFolder::keep(folder, partial, &experiment, &whole, &value)?;
        Ok((value.to_string(), outputs, told))
    })
}

/// The experiment of a request. All is checked before anything runs.
fn experiment(
    request: &RunRequest,
    setup: &RunSetup,
    metrics: &[MetricName],
    seeds: u64,
    stop: &AtomicBool,
) -> Result<Experiment, LabError> {
    let by_name = setup.shown.wanted(metrics);
    let asked = setup.asked(Some(&by_name));
    let sides = SideWords::asked(&request.sides, request.vary.as_deref())?;
    let experiment = experiment_of(&sides, &request.kernels, &asked, seeds)?;
    prepare(experiment.sides.iter().map(|side| (&side.kernel, &side.machine)), stop)?;
    Ok(experiment)
}

/// What is asked of a comparison.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct ComparisonRequest {
    metrics: Vec<String>,
    margin: String,
    /// Rules of a gate.
    fail_on: Vec<String>,
    explain: bool,
}

impl ComparisonRequest {
    /// Reads the words. Metrics and rules that name no task are about the chosen ones.
    fn read(&self, names: &TraceSelection) -> Result<CompareSpec, LabError> {
        let rules = self.fail_on.iter().map(|rule| GateRule::parse(rule)).collect::<Result<Vec<_>, _>>()?;
        let asked = (names.shown()?, names.stretch()?);
        CompareSpec::of(&self.metrics, share("margin", &self.margin)?, &rules, asked, self.explain)
    }
}

/// What is compared, in words. There is one of it in a call.
#[expect(clippy::large_enum_variant, reason = "it is read once and taken apart")]
#[derive(Debug, FromPyObject)]
pub enum Compared {
    Kernels {
        #[pyo3(item)]
        request: RunRequest,
        /// Without, runs end once the answer is sure.
        #[pyo3(item)]
        runs: Option<u64>,
        #[pyo3(item)]
        runs_max: u64,
    },
    Folders {
        #[pyo3(item)]
        folders: Vec<PathBuf>,
        #[pyo3(item)]
        labels: Vec<String>,
    },
    Hosts {
        #[pyo3(item)]
        sets: Vec<PathBuf>,
        #[pyo3(item)]
        labels: Vec<String>,
    },
    Commands {
        #[pyo3(item)]
        commands: Vec<String>,
        #[pyo3(item)]
        runs: u64,
    },
}

impl Compared {
    /// Reads the words, and how many runs go on at once. All is checked before anything runs.
    fn read(self, spec: &CompareSpec, stop: &AtomicBool) -> Result<(Sides, usize), LabError> {
        let sides = match self {
            Compared::Kernels { request, runs, runs_max } => {
                let setup = request.setup()?;
                if request.sides.is_empty() && request.vary.is_none() {
                    check_two(&request.kernels, &request.workload)?;
                }
                let seeds = runs.unwrap_or(runs_max);
                let experiment = experiment(&request, &setup, &spec.wanted.metrics, seeds, stop)?;
                let experiment = if runs.is_none() { experiment.until_sure() } else { experiment };
                let experiment = experiment.into();
                let RunRequest { out, resume, .. } = request;
                return Ok((Sides::Kernels { experiment, out, resume }, setup.jobs));
            }
            Compared::Folders { folders, labels } => Sides::Folders { folders, labels: labels_of(&labels)? },
            Compared::Hosts { sets, labels } => Sides::Hosts { sets, labels: labels_of(&labels)? },
            Compared::Commands { commands, runs } => Sides::Commands { commands, runs },
        };
        Ok((sides, 1))
    }
}

/// Compares sides of any kind; their runs are made or read.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    sides: Compared,
    names: TraceSelection,
    wanted: ComparisonRequest,
    words: Vec<String>,
) -> Result<ExperimentCall, CallError> {
    let are_read = matches!(sides, Compared::Folders { .. } | Compared::Hosts { .. });
    let work = move |stop: &AtomicBool| {
        let spec = wanted.read(&names)?;
        let (sides, jobs) = sides.read(&spec, stop)?;
        let told = RefCell::new(Vec::new());
        let tell = |line: &str| told.borrow_mut().push(line.to_string());
        let caller = Caller { jobs, on_progress: &|_| {}, tell: &tell, on_look: &|_| {}, store: None, stop };
        let compared = fairlab_change::compare::compare(&sides, &spec, provenance(words), &caller)?;
        let mut sets = compared.sets;
        let value = sets.keep(&compared.answer)?;
        let outputs = sets.printed.into_iter().map(|(_, text)| text).collect();
        Ok((value.to_string(), outputs, told.into_inner()))
    };
    match are_read {
        true => abandonable(py, move || work(&AtomicBool::new(false))),
        false => interruptible(py, work),
    }
}

/// Compares what `/proc/schedstat` of two kernels counted.
#[pyfunction]
pub fn compare_schedstat(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    words: Vec<String>,
) -> Result<String, CallError> {
    let [first, second] = &paths[..] else {
        let problem = format!("--schedstat takes two files or folders, and these are {}", paths.len());
        return Err(LabError::new(problem, "give --schedstat twice; the first is the baseline").into());
    };
    let paths = [first.clone(), second.clone()];
    abandonable(py, move || {
        let [first, second] = &paths;
        let beside = schedstat::compare_schedstat(&read_schedstat(first)?, &read_schedstat(second)?);
        let told = paths.iter().fold(provenance(words), |all, path| all.of_trace(&system_beside(path)));
        Ok(told.within(json!(beside)).to_string())
    })
}

fn labels_of(words: &[String]) -> Result<Vec<(String, String)>, LabError> {
    let label = |word: &String| {
        parse_label(word).map_err(|problem| LabError::new(format!("label='{word}': {problem}"), "write one"))
    };
    words.iter().map(label).collect()
}

/// Finds the commit that changed a metric between two kernels.
#[pyfunction]
pub fn bisect(
    py: Python<'_>,
    request: RunRequest,
    metric: Option<String>,
    margin: &str,
    error: &str,
    runs: u64,
    crew: Option<Py<PyAny>>,
) -> Result<ExperimentCall, CallError> {
    let (margin, error) = (share("margin", margin)?, share("error", error)?);
    let runs_max = runs_enough(runs)?;
    by_crew(py, request.jobs, crew, None, move |place, _, stop| {
        let setup = request.setup()?;
        let [good, bad] = &request.kernels[..] else {
            return Err(LabError::new("a search needs two kernels", "give good and bad"));
        };
        let kernel = |name: &str| Kernel::parse_for(name, KernelNeed::History, search::NAME);
        let kernels = [kernel(good)?, kernel(bad)?];
        let question = search::BisectQuestion::of_some(metric.as_deref(), &setup.shown.whose)?;
        let by_name = question.as_ref().map(|question| wanted_for(question.metric())).transpose()?;
        let setting = RunSetting::of_kernels(&kernels, &setup.asked(by_name.as_ref()))?;
        let headline = || fairlab_lab::workloads::headline_of(&setting.workload).to_string();
        let question = question.unwrap_or_else(|| search::BisectQuestion::Metric(headline()));
        let [good, bad] = kernels;
        let spec = BisectSpec { good, bad, question, setting: setting.clone(), margin, error, runs_max };
        let trials = |jobs| SearchTrials::new(&setting, jobs, &|_| {}, stop);
        let mut trials = match place {
            CellWorkers::Threads(jobs) => trials(jobs),
            CellWorkers::Crew(crew) => trials(1).by(crew),
        };
        let found = BisectAnswer::from(&search::bisect(&spec, &mut trials)?);
        let made = found.steps.iter().map(|step| step.runs).max().unwrap_or(0);
        let provenance = provenance(request.words).of_search([&spec.good, &spec.bad], &setting, made);
        Ok((provenance.within(json!(found)).to_string(), Vec::new(), Vec::new()))
    })
}
