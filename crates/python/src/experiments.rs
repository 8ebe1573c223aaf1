//! Runs, comparisons, searches.
//!
//! Must not know: how answers look.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fairlab_change::Trials;
use fairlab_change::bisect::{self as search, BisectAnswer, BisectSpec, Question, runs_enough};
use fairlab_lab::answer::{CompareAnswer, RunAnswer};
use fairlab_lab::kernel::Need;
use fairlab_lab::names::{MetricName, Shown, wanted_for};
use fairlab_lab::{
    CompareOptions, Comparison, Counting, Experiment, Kernel, LabError, Made, Runs, Setting, compare_sides,
    read_sides,
};
use pyo3::prelude::*;
use serde_json::json;

use crate::failed::Failed;
use crate::interruptible::{abandonable, interruptible};
use crate::request::{Request, Setup, prepare, provenance, share};

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
    if probes && trace.is_none() {
        let problem = "--probes adds to a trace, and none is kept";
        return Err(LabError::new(problem, "give --trace or --out, too").into());
    }
    interruptible(py, move |stop| {
        let setup = request.setup()?;
        let experiment = experiment(&request, &setup, &[], seeds, stop)?;
        let mut runs = Runs::of(&experiment, Vec::new());
        runs.set_probes(probes);
        if let Some(path) = &trace {
            runs.trace_to(path)?;
        }
        let mut answer = RunAnswer::from(runs.make(setup.jobs, &|_| {}, stop)?);
        let mut told = experiment.lines(Kernel::lacks);
        for run in &mut answer.runs {
            setup.shown.check(run.metrics.iter().map(|(name, _)| name.as_str()))?;
            let workloads = run.workloads();
            run.metrics.retain(|(name, _)| setup.shown.shows(name, &workloads));
            told.extend(run.trace_losses.lines().map(String::from));
        }
        let outputs = answer.runs.iter().map(|run| run.output.clone()).collect();
        let provenance = provenance(request.words).of_experiment(&experiment);
        Ok((provenance.within(json!(answer)).to_string(), outputs, told))
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

/// Runs a workload on two kernels or more and says how they differ.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    request: Request,
    runs: u64,
    metrics: Vec<String>,
    margin: &str,
) -> Result<Answer, Failed> {
    let margin = share("margin", margin)?;
    if request.kernels.len() < 2 {
        let hint = "give --kernel twice; the first is the baseline";
        return Err(LabError::new("a comparison needs two kernels", hint).into());
    }
    interruptible(py, move |stop| {
        let setup = request.setup()?;
        let metrics = metrics.iter().map(|word| MetricName::parse(word)).collect::<Result<Vec<_>, _>>()?;
        let experiment = experiment(&request, &setup, &metrics, runs, stop)?;
        let options = CompareOptions {
            margin,
            metrics: metrics.into_iter().map(|metric| metric.name).collect(),
            shown: setup.shown.clone(),
        };
        let names = experiment.names();
        // What no run has is noticed before all of them are done.
        let accept = |first: &[_]| match options.metrics.is_empty() {
            true => Ok(()),
            false => fairlab_lab::compare(&names, first, &options).map(drop),
        };
        let made = Runs::of(&experiment, Vec::new()).make_if(setup.jobs, &|_| {}, stop, accept)?;
        let Made { results, partial } = made;
        let comparison = Comparison { partial, ..fairlab_lab::compare(&names, &results, &options)? };
        let first_of = |name: &String| results.iter().find(|run| run.kernel == *name);
        let outputs = names.iter().filter_map(first_of).map(|run| run.output.clone()).collect();
        let provenance = provenance(request.words).of_experiment(&experiment);
        let answer = json!(CompareAnswer::from(&comparison));
        Ok((provenance.within(answer).to_string(), outputs, experiment.lines(Kernel::lacks)))
    })
}

/// Compares runs that are there, each kernel's in a folder, or several kernels' in one.
#[pyfunction]
pub fn compare_folders(
    py: Python<'_>,
    folders: Vec<PathBuf>,
    metrics: Vec<String>,
    margin: &str,
    words: Vec<String>,
) -> Result<Answer, Failed> {
    let margin = share("margin", margin)?;
    abandonable(py, move || {
        let metrics = metrics.iter().map(|word| MetricName::parse(word)).collect::<Result<Vec<_>, _>>()?;
        let counting = Counting { by_name: Shown::default().wanted(&metrics), ..Counting::default() };
        let metrics = metrics.into_iter().map(|metric| metric.name).collect();
        let options = CompareOptions { margin, metrics, ..CompareOptions::default() };
        let (sides, notes) = read_sides(&folders, &counting, &[])?;
        let answer = json!(CompareAnswer::from(&compare_sides(&sides, &options)?));
        Ok((provenance(words).of_sides(&sides).within(answer).to_string(), Vec::new(), notes))
    })
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
) -> Result<Answer, Failed> {
    let (margin, error) = (share("margin", margin)?, share("error", error)?);
    let runs_max = runs_enough(runs)?;
    interruptible(py, move |stop| {
        let setup = request.setup()?;
        let [good, bad] = &request.kernels[..] else {
            return Err(LabError::new("a search needs two kernels", "give good and bad"));
        };
        let kernel = |name: &str| Kernel::parse_for(name, Need::History, search::NAME);
        let kernels = [kernel(good)?, kernel(bad)?];
        let question = metric.as_deref().map(Question::parse).transpose()?;
        let by_name = question.as_ref().map(|question| wanted_for(question.metric())).transpose()?;
        let setting = Setting::of_kernels(&kernels, &setup.asked(by_name.as_ref()))?;
        let headline = || fairlab_lab::workloads::headline_of(&setting.workload).to_string();
        let question = question.unwrap_or_else(|| Question::Metric(headline()));
        let [good, bad] = kernels;
        let spec = BisectSpec { good, bad, question, setting: setting.clone(), margin, error, runs_max };
        let mut trials = Trials::new(&setting, setup.jobs, &|_| {}, stop);
        let found = BisectAnswer::from(&search::bisect(&spec, &mut trials)?);
        let made = found.steps.iter().map(|step| step.runs).max().unwrap_or(0);
        let provenance = provenance(request.words).of_search([&spec.good, &spec.bad], &setting, made);
        Ok((provenance.within(json!(found)).to_string(), Vec::new(), Vec::new()))
    })
}
