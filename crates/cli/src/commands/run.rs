//! `fairlab run`: a workload on one kernel or several.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::selector::{TimeRange, TraceSelector};
use fairlab_event::Ns;
use fairlab_lab::answer::{PartialRuns, RunAnswer};
use fairlab_lab::names::{MetricName, ShownMetrics, metrics_of, no_metric};
use fairlab_lab::provenance::Origin;
use fairlab_lab::{Experiment, ExperimentRuns, Kernel, RunFolder, RunResult, RunSpec, run_watched, sides_of};
use fairlab_page::excerpt::ExcerptRecorder;
use serde_json::{Value, json};

use super::pages::{PageFolder, RUNS_DRAWN};
use super::{experiment, trace, workloads};
use crate::args::{AnswerFormat, RunArgs};
use crate::error::CliError;
use crate::export::of_sides;
use crate::numbers::{duration, metric};
use crate::progress::ProgressLine;
use crate::provenance;
use crate::{output, tell};

pub fn execute(args: &RunArgs) -> Result<(), CliError> {
    if workloads::helped(&args.experiment.setting.workload)? {
        return Ok(());
    }
    check_kept(args)?;
    let named = metrics_of(&[], &args.metrics)?;
    let experiment = experiment::from_args(&args.experiment, &[], (args.seed, args.seeds), &named)?;
    check_decisions(args, &experiment)?;
    let mut exports = args.export.create_with_folders()?;
    let (folder, kept) =
        RunFolder::open(args.experiment.out.as_deref(), args.experiment.resume, &experiment)?;
    let mut runs = ExperimentRuns::of(&experiment, kept);
    runs.set_probes(args.probes);
    runs.set_decisions(args.decisions);
    if let Some(folder) = &folder {
        runs.trace_into(folder)?;
    }
    if let Some(path) = &args.trace {
        runs.trace_to(path)?;
    }
    let stop = experiment::stop_for(experiment.any(Kernel::changes_host))?;
    experiment.lines(Kernel::lacks).iter().for_each(|line| output::tell(line));
    let progress = ProgressLine::new("run");
    let jobs = experiment::jobs(args.experiment.setting.jobs);
    let made = runs.make(jobs, &|done| progress.show(done), &stop)?;
    drop(progress);
    let partial = made.partial;
    let mut answer = RunAnswer::from(made);
    answer.notices.extend(experiment.time_notice());
    let whole = answer.runs.clone();
    let shown = args.experiment.names.shown();
    retain_shown(&mut answer.runs, &named, &shown)?;
    if let (Some(path), [run]) = (&args.trace, answer.runs.as_slice()) {
        trace::warn_of_losses(path, &run.trace_losses);
    }
    let provenance = provenance::here().of_experiment(&experiment);
    let value = output::with_provenance(&provenance, json!(answer));
    if let Some(PartialRuns { runs, wanted }) = answer.partial {
        tell!("stopped: {runs} of {wanted} runs are done; the answer is of these alone");
    }
    RunFolder::keep(folder, partial, &experiment, &whole, &value)?;
    let workload = experiment.workload().map(output::words).unwrap_or_default();
    let machine = experiment.machine().map_or("", |machine| &machine.name);
    let title = format!(
        "{} on {machine}",
        experiment.workload().map(|words| output::words(&short(words))).unwrap_or_default()
    );
    let parts = || {
        let sides = sides_of(&experiment.names(), &answer.runs);
        let mut parts = of_sides(Some(&workload), &sides, shown.of_some());
        parts["text"] = json!(to_text(&experiment, &answer));
        parts["excerpts"] =
            json!(excerpts(&experiment, &whole, &args.experiment.names.chosen.chosen(), &stop));
        parts
    };
    for folder in exports.take_folders().into_iter().filter(|_| partial.is_none()) {
        let pages = PageFolder::of(folder, &title, &stop);
        let mut parts = parts();
        parts["links"] = json!(timelines(&pages, &experiment, &whole)?);
        pages.finish(&value, &parts)?;
    }
    exports.write_with(&title, || (value.clone(), parts()))?;
    match args.experiment.setting.format {
        AnswerFormat::Json => output::print_json(&value)?,
        AnswerFormat::Text => output::answer(&provenance, &to_text(&experiment, &answer))?,
    }
    if partial.is_some() { Err(CliError::Interrupted) } else { Ok(()) }
}

/// Leaves the metrics that are shown.
fn retain_shown(runs: &mut [RunResult], named: &[MetricName], shown: &ShownMetrics) -> Result<(), CliError> {
    for run in runs {
        shown.check(run.metrics.iter().map(|(name, _)| name.as_str()))?;
        let workloads = run.workloads();
        let is_named = |name: &String| named.iter().any(|metric| metric.name == *name);
        if let Some(lacks) = named.iter().find(|metric| run.metric(&metric.name).is_none()) {
            let known = run.metrics.iter().map(|(name, _)| name.as_str());
            return Err(no_metric(&format!("runs of {}", run.kernel), &lacks.name, known).into());
        }
        run.metrics.retain(|(name, _)| is_named(name) || shown.shows(name, &workloads));
    }
    Ok(())
}

/// Whether what is added to a trace has one to go to.
fn check_kept(args: &RunArgs) -> Result<(), CliError> {
    let added = [("--probes", args.probes), ("--decisions", args.decisions)];
    if let Some((option, _)) = added.into_iter().find(|(_, is_given)| *is_given)
        && args.trace.is_none()
        && args.experiment.out.is_none()
    {
        let problem = format!("{option} adds to a trace, and none is kept");
        return Err(CliError::bad(problem, "give --trace or --out, too"));
    }
    Ok(())
}

/// Whether every kernel tells why it decides, where that is asked for.
fn check_decisions(args: &RunArgs, experiment: &Experiment) -> Result<(), CliError> {
    if args.decisions && experiment.any(|kernel| kernel.generation().is_none()) {
        return Err(CliError::bad(
            "--decisions takes modelled kernels: no other tells why it decides",
            "leave it out, or choose kernels like v6.6",
        ));
    }
    Ok(())
}

/// A run of more switches is not drawn in the answer's page: `view` draws it.
const SWITCHES_DRAWN: u64 = 100_000;

/// How many kernels' runs are drawn.
const KERNELS_DRAWN: usize = 4;

/// The longest wait of each kernel's first run, where that is a short one of the model. It is made once more for that: equal seeds give
/// equal runs.
fn excerpts(
    experiment: &Experiment,
    runs: &[RunResult],
    chosen: &TraceSelector,
    stop: &AtomicBool,
) -> Vec<Value> {
    let one = |(spec, run): (RunSpec, &RunResult)| {
        let spec = Some(&spec).filter(|_| run.switches <= SWITCHES_DRAWN)?;
        let time = if chosen.time.is_all() { from_settled(run) } else { chosen.time };
        let mut drawn = ExcerptRecorder::new(TraceSelector { whose: chosen.whose.clone(), time });
        run_watched(spec, stop, &mut drawn).ok()??;
        drawn.data(&format!("{}, seed {}", run.kernel, run.seed))
    };
    first_runs(experiment, runs).into_iter().take(KERNELS_DRAWN).filter_map(one).collect()
}

/// Each modelled kernel's first run, with what makes it once more.
fn first_runs<'r>(experiment: &Experiment, runs: &'r [RunResult]) -> Vec<(RunSpec, &'r RunResult)> {
    let specs = experiment.specs();
    let first = |kernel: &Kernel| {
        let run = runs.iter().find(|run| run.side() == kernel.name())?;
        let spec = specs.iter().find(|spec| spec.kernel.name() == run.kernel && spec.seed == run.seed)?;
        kernel.rules("a timeline").ok()?;
        Some((spec.clone(), run))
    };
    experiment.kernels().filter_map(first).collect()
}

/// The timelines of a folder of pages: each modelled kernel's first run.
fn timelines(
    pages: &PageFolder<'_>,
    experiment: &Experiment,
    runs: &[RunResult],
) -> Result<Vec<Value>, CliError> {
    let first = first_runs(experiment, runs);
    let numbered = first.iter().take(RUNS_DRAWN).enumerate();
    numbered.map(|(at, (spec, run))| pages.of_index((spec, run.settled_ns), at + 1)).collect()
}

/// A command line for a title: files by their names, not by where they lie.
fn short(words: &[String]) -> Vec<String> {
    let name = |word: &String| {
        Path::new(word)
            .file_name()
            .filter(|_| word.starts_with('/'))
            .map(|name| name.to_string_lossy().into_owned())
    };
    words.iter().map(|word| name(word).unwrap_or_else(|| word.clone())).collect()
}

/// The time that a run measures.
fn from_settled(run: &RunResult) -> TimeRange {
    TimeRange { from: run.settled_ns.map(Ns), to: None }
}

fn to_text(experiment: &Experiment, answer: &RunAnswer) -> String {
    let mut text = experiment::partial(answer.partial) + &experiment::describe(experiment, None);
    for run in &answer.runs {
        text += &format!("\n{} seed {}\n{}", run.kernel, run.seed, run.output);
        for (name, value) in &run.metrics {
            text += &format!("  {name:<28} {}\n", metric(name, *value));
        }
        if !run.has_seed() {
            let digest =
                if run.digest.is_empty() { String::new() } else { format!("digest {}: ", run.digest) };
            text += &format!(
                "  {digest}{}{}\n",
                duration(run.simulated_ns as f64),
                if run.origin() == Origin::RunHere { " on this host" } else { "" }
            );
            continue;
        }
        let before =
            run.settled_ns.zip(run.begin_ns).map_or(0, |(settled, begin)| settled.saturating_sub(begin));
        let speed = (run.simulated_ns + before) as f64 / run.wall_ns.max(1) as f64;
        let settled = if before > 0 {
            format!(" after {} of settling", duration(before as f64))
        } else {
            String::new()
        };
        let (simulated, wall) = (duration(run.simulated_ns as f64), duration(run.wall_ns as f64));
        text += &format!("  digest {}: {simulated}{settled} in {wall}, {speed:.0} x real time\n", run.digest);
    }
    for notice in &answer.notices {
        text += &format!("\nnote: {notice}\n");
    }
    text
}
