//! Runs, comparisons, searches.
//!
//! Must not know: how answers look.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fairlab_change::Trials;
use fairlab_change::bisect::{self as search, BisectAnswer, BisectSpec, runs_enough};
use fairlab_change::causes::causes_of;
use fairlab_change::gate::{Rule, Rules};
use fairlab_lab::answer::{CompareAnswer, RunAnswer};
use fairlab_lab::cells::Place;
use fairlab_lab::hosts::{parse_label, read_host_sets};
use fairlab_lab::kernel::Need;
use fairlab_lab::names::{MetricName, Shown, metrics_of, wanted_for};
use fairlab_lab::provenance::Origin;
use fairlab_lab::{
    CompareOptions, Comparison, Counting, Experiment, Kernel, LabError, Made, RunFolder, RunResult, Runs,
    Setting, Side, compare_sides, live_sides, read_sides,
};
use fairlab_recording::system_beside;
use fairlab_verify::schedstat::{self, read_schedstat};
use pyo3::prelude::*;
use serde_json::json;

use crate::crew::by_crew;
use crate::failed::Failed;
use crate::interruptible::{abandonable, interruptible};
use crate::request::{Names, Request, Setup, prepare, provenance, share};

/// What a call gives: the answer as JSON, what the programs themselves print, and what the user should be told beside it.
type Answer = (String, Vec<String>, Vec<String>);

/// Runs a workload on one kernel or several.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    request: Request,
    seeds: u64,
    trace: Option<PathBuf>,
    probes: bool,
) -> Result<Answer, Failed> {
    if probes && trace.is_none() && request.out.is_none() {
        let problem = "--probes adds to a trace, and none is kept";
        return Err(LabError::new(problem, "give --trace or --out, too").into());
    }
    interruptible(py, move |stop| {
        let setup = request.setup()?;
        let experiment = experiment(&request, &setup, &[], seeds, stop)?;
        let (folder, kept) = RunFolder::open(request.out.as_deref(), request.resume, &experiment)?;
        let mut runs = Runs::of(&experiment, kept);
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
    request: &Request,
    setup: &Setup,
    metrics: &[MetricName],
    seeds: u64,
    stop: &AtomicBool,
) -> Result<Experiment, LabError> {
    let by_name = setup.shown.wanted(metrics);
    let experiment = Experiment::of(&request.kernels, &setup.asked(Some(&by_name)), seeds)?;
    prepare(experiment.kernels.iter().map(|kernel| (kernel, &experiment.machine)), stop)?;
    Ok(experiment)
}

/// What is asked of a comparison.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wanted {
    metrics: Vec<String>,
    margin: String,
    /// Rules of a gate.
    fail_on: Vec<String>,
    explain: bool,
}

/// What the words mean.
#[derive(Debug)]
struct Question {
    metrics: Vec<MetricName>,
    options: CompareOptions,
    rules: Rules,
    explain: bool,
}

impl Wanted {
    /// Reads the words. Metrics and rules that name no task are about the chosen ones.
    fn read(&self, shown: &Shown) -> Result<Question, LabError> {
        let metrics = metrics_of(&shown.whose, &self.metrics)?;
        let rules = self.fail_on.iter().map(|rule| Rule::parse(rule)).collect::<Result<Vec<_>, _>>()?;
        Ok(Question {
            options: CompareOptions {
                margin: share("margin", &self.margin)?,
                metrics: metrics.iter().map(|metric| metric.name.clone()).collect(),
                shown: shown.clone(),
            },
            rules: Rules::of(&rules, &shown.whose),
            metrics,
            explain: self.explain,
        })
    }
}

impl Question {
    /// All metrics that it names.
    fn measured(&self) -> Vec<MetricName> {
        self.metrics.iter().chain(self.rules.metrics()).cloned().collect()
    }

    /// Its answer for runs that are made here.
    fn answer(
        &self,
        experiment: &Experiment,
        made: &Made,
        stop: &AtomicBool,
    ) -> Result<CompareAnswer, LabError> {
        let (names, results) = (experiment.names(), &made.results);
        let compared = |options: &CompareOptions| fairlab_lab::compare(&names, results, options);
        let mut comparison = Comparison { partial: made.partial, ..compared(&self.options)? };
        comparison.notices.extend(experiment.time_notice());
        let mut answer = CompareAnswer::from(&comparison);
        if self.explain {
            answer.causes = causes_of(experiment, results, stop)?;
        }
        answer.gate = self.rules.judge(&names, &compared)?;
        Ok(answer)
    }

    /// Its answer for runs that are there.
    fn answer_of(&self, sides: &[Side], words: Vec<String>, notes: Vec<String>) -> Result<Answer, LabError> {
        let compared = |options: &CompareOptions| compare_sides(sides, options);
        let mut answer = CompareAnswer::from(&compared(&self.options)?);
        let names = sides.iter().map(|side| side.name.clone()).collect::<Vec<_>>();
        answer.gate = self.rules.judge(&names, &compared)?;
        Ok((provenance(words).of_sides(sides).within(json!(answer)).to_string(), Vec::new(), notes))
    }
}

/// Runs a workload on two kernels or more and says how they differ.
#[pyfunction]
pub fn compare(py: Python<'_>, request: Request, runs: u64, wanted: Wanted) -> Result<Answer, Failed> {
    if request.kernels.len() < 2 {
        let hint = "give --kernel twice; the first is the baseline";
        return Err(LabError::new("a comparison needs two kernels", hint).into());
    }
    interruptible(py, move |stop| {
        let setup = request.setup()?;
        let question = wanted.read(&setup.shown)?;
        let experiment = experiment(&request, &setup, &question.measured(), runs, stop)?;
        let (folder, kept) = RunFolder::open(request.out.as_deref(), request.resume, &experiment)?;
        let names = experiment.names();
        // What no run has is noticed before all of them are done.
        let accept = |first: &[RunResult]| {
            let compared = |options: &CompareOptions| fairlab_lab::compare(&names, first, options);
            if !question.metrics.is_empty() {
                compared(&question.options)?;
            }
            question.rules.accept(&compared)
        };
        let mut runs = Runs::of(&experiment, kept);
        runs.set_causes(question.explain);
        let made = runs.make_if(setup.jobs, &|_| {}, stop, accept)?;
        let answer = question.answer(&experiment, &made, stop)?;
        let value = provenance(request.words).of_experiment(&experiment).within(json!(answer));
        RunFolder::keep(folder, made.partial, &experiment, &made.results, &value)?;
        let first_of = |name: &String| made.results.iter().find(|run| run.kernel == *name);
        let outputs = names.iter().filter_map(first_of).map(|run| run.output.clone()).collect();
        Ok((value.to_string(), outputs, experiment.lines(Kernel::lacks)))
    })
}

/// Compares runs that are there, each kernel's in a folder, or several kernels' in one.
#[pyfunction]
pub fn compare_folders(
    py: Python<'_>,
    folders: Vec<PathBuf>,
    names: Names,
    labels: Vec<String>,
    wanted: Wanted,
    words: Vec<String>,
) -> Result<Answer, Failed> {
    abandonable(py, move || {
        let shown = names.shown()?;
        let question = wanted.read(&shown)?;
        let by_name = shown.wanted(&question.measured());
        let counting = Counting { by_name, time: names.stretch()?, ..Counting::default() };
        let (sides, notes) = read_sides(&folders, &counting, &labels_of(&labels)?)?;
        question.answer_of(&sides, words, notes)
    })
}

/// Compares sets of hosts by what each counted.
#[pyfunction]
pub fn compare_hosts(
    py: Python<'_>,
    sets: Vec<PathBuf>,
    names: Names,
    labels: Vec<String>,
    wanted: Wanted,
    words: Vec<String>,
) -> Result<Answer, Failed> {
    abandonable(py, move || {
        let shown = names.shown()?;
        let question = wanted.read(&shown)?;
        let measured = question.measured();
        let keeps = |name: &str| shown.shows(name, &[]) || measured.iter().any(|metric| metric.name == name);
        let sides = read_host_sets(&sets, &labels_of(&labels)?, &keeps)?;
        question.answer_of(&sides, words, Vec::new())
    })
}

/// Runs shell commands on this host in turn, records the scheduler meanwhile, and compares them.
#[pyfunction]
pub fn compare_live(
    py: Python<'_>,
    commands: Vec<String>,
    runs: u64,
    names: Names,
    wanted: Wanted,
    words: Vec<String>,
) -> Result<Answer, Failed> {
    if commands.len() < 2 {
        let hint = "give --live twice; the first is the baseline";
        return Err(LabError::new("a comparison needs two commands", hint).into());
    }
    interruptible(py, move |stop| {
        let shown = names.shown()?;
        let question = wanted.read(&shown)?;
        let counting = Counting { by_name: shown.wanted(&question.measured()), ..Counting::default() };
        let (sides, made) = live_sides(&commands, runs, &counting, &|_| {}, stop)?;
        let compared = |options: &CompareOptions| compare_sides(&sides, options);
        let partial = (made.done < made.total).then_some(made);
        let mut answer = CompareAnswer::from(Comparison { partial, ..compared(&question.options)? });
        answer.gate = question.rules.judge(&commands, &compared)?;
        let provenance = provenance(words).by(Origin::RunHere).kernel(Kernel::Host.release()).machine("host");
        Ok((provenance.within(json!(answer)).to_string(), Vec::new(), Vec::new()))
    })
}

/// Compares what `/proc/schedstat` of two kernels counted.
#[pyfunction]
pub fn compare_schedstat(py: Python<'_>, paths: Vec<PathBuf>, words: Vec<String>) -> Result<String, Failed> {
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
    request: Request,
    metric: Option<String>,
    margin: &str,
    error: &str,
    runs: u64,
    crew: Option<Py<PyAny>>,
) -> Result<Answer, Failed> {
    let (margin, error) = (share("margin", margin)?, share("error", error)?);
    let runs_max = runs_enough(runs)?;
    by_crew(py, request.jobs, crew, None, move |place, _, stop| {
        let setup = request.setup()?;
        let [good, bad] = &request.kernels[..] else {
            return Err(LabError::new("a search needs two kernels", "give good and bad"));
        };
        let kernel = |name: &str| Kernel::parse_for(name, Need::History, search::NAME);
        let kernels = [kernel(good)?, kernel(bad)?];
        let question = search::Question::of_some(metric.as_deref(), &setup.shown.whose)?;
        let by_name = question.as_ref().map(|question| wanted_for(question.metric())).transpose()?;
        let setting = Setting::of_kernels(&kernels, &setup.asked(by_name.as_ref()))?;
        let headline = || fairlab_lab::workloads::headline_of(&setting.workload).to_string();
        let question = question.unwrap_or_else(|| search::Question::Metric(headline()));
        let [good, bad] = kernels;
        let spec = BisectSpec { good, bad, question, setting: setting.clone(), margin, error, runs_max };
        let trials = |jobs| Trials::new(&setting, jobs, &|_| {}, stop);
        let mut trials = match place {
            Place::Threads(jobs) => trials(jobs),
            Place::Crew(crew) => trials(1).by(crew),
        };
        let found = BisectAnswer::from(&search::bisect(&spec, &mut trials)?);
        let made = found.steps.iter().map(|step| step.runs).max().unwrap_or(0);
        let provenance = provenance(request.words).of_search([&spec.good, &spec.bad], &setting, made);
        Ok((provenance.within(json!(found)).to_string(), Vec::new(), Vec::new()))
    })
}
