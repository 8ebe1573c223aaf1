//! `fairlab run`: a workload on one kernel or several.

use std::sync::atomic::AtomicBool;

use fairlab_analysis::selector::{TimeRange, TraceSelector};
use fairlab_event::Ns;
use fairlab_lab::answer::{PartialRuns, RunAnswer};
use fairlab_lab::names::{metrics_of, no_metric};
use fairlab_lab::provenance::Origin;
use fairlab_lab::{Experiment, ExperimentRuns, Kernel, RunFolder, RunResult, run_watched, sides_of};
use fairlab_page::excerpt::ExcerptRecorder;
use serde_json::{Value, json};

use super::{experiment, trace, workloads};
use crate::args::{AnswerFormat, RunArgs};
use crate::error::CliError;
use crate::export::of_sides;
use crate::numbers::{duration, metric};
use crate::progress::ProgressLine;
use crate::provenance;
use crate::{output, tell};

/// What adds to a trace needs one.
fn check_added(args: &RunArgs) -> Result<(), CliError> {
    let added = [("--probes", args.probes), ("--decisions", args.decisions)];
    let is_kept = args.trace.is_some() || args.experiment.out.is_some();
    match added.into_iter().find(|(_, is_given)| *is_given && !is_kept) {
        None => Ok(()),
        Some((option, _)) => {
            let problem = format!("{option} adds to a trace, and none is kept");
            Err(CliError::bad(problem, "give --trace or --out, too"))
        }
    }
}

/// Only modelled kernels tell why they decide.
fn check_decisions(args: &RunArgs, experiment: &Experiment) -> Result<(), CliError> {
    if !args.decisions || !experiment.any(|kernel| kernel.generation().is_none()) {
        return Ok(());
    }
    Err(CliError::bad(
        "--decisions takes modelled kernels: no other tells why it decides",
        "leave it out, or choose kernels like v6.6",
    ))
}

pub fn execute(args: &RunArgs) -> Result<(), CliError> {
    if workloads::helped(&args.experiment.setting.workload)? {
        return Ok(());
    }
    check_added(args)?;
    let named = metrics_of(&[], &args.metrics)?;
    let experiment = experiment::from_args(&args.experiment, &[], (args.seed, args.seeds), &named)?;
    check_decisions(args, &experiment)?;
    let exports = args.export.create()?;
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
    for run in &mut answer.runs {
        shown.check(run.metrics.iter().map(|(name, _)| name.as_str()))?;
        let workloads = run.workloads();
        let is_named = |name: &String| named.iter().any(|metric| metric.name == *name);
        if let Some(lacks) = named.iter().find(|metric| run.metric(&metric.name).is_none()) {
            let known = run.metrics.iter().map(|(name, _)| name.as_str());
            return Err(no_metric(&format!("runs of {}", run.kernel), &lacks.name, known).into());
        }
        run.metrics.retain(|(name, _)| is_named(name) || shown.shows(name, &workloads));
    }
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
    let title = format!("{workload} on {machine}");
    let parts = || {
        let sides = sides_of(&experiment.names(), &answer.runs);
        let mut parts = of_sides(Some(&workload), &sides, shown.of_some());
        parts["text"] = json!(to_text(&experiment, &answer));
        parts["excerpts"] =
            json!(excerpts(&experiment, &whole, &args.experiment.names.chosen.chosen(), &stop));
        parts
    };
    exports.write_with(&title, || (value.clone(), parts()))?;
    match args.experiment.setting.format {
        AnswerFormat::Json => output::print_json(&value)?,
        AnswerFormat::Text => output::answer(&provenance, &to_text(&experiment, &answer))?,
    }
    if partial.is_some() { Err(CliError::Interrupted) } else { Ok(()) }
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
    let specs = experiment.specs();
    let one = |kernel: &Kernel| {
        let is_first = |run: &&RunResult| run.side() == kernel.name() && run.switches <= SWITCHES_DRAWN;
        let run = runs.iter().find(|run| run.side() == kernel.name()).filter(is_first)?;
        let spec = specs.iter().find(|spec| spec.kernel.name() == run.kernel && spec.seed == run.seed)?;
        kernel.rules("a timeline").ok()?;
        let time = if chosen.time.is_all() { from_settled(run) } else { chosen.time };
        let mut drawn = ExcerptRecorder::new(TraceSelector { whose: chosen.whose.clone(), time });
        run_watched(spec, stop, &mut drawn).ok()??;
        drawn.data(&format!("{}, seed {}", run.kernel, run.seed))
    };
    experiment.kernels().take(KERNELS_DRAWN).filter_map(one).collect()
}

/// The time that a run measures.
fn from_settled(run: &RunResult) -> TimeRange {
    TimeRange { from: run.settled_ns.map(Ns), to: None }
}

fn to_text(experiment: &Experiment, answer: &RunAnswer) -> String {
    let mut text = experiment::describe(experiment, None);
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
    if let Some(PartialRuns { runs, wanted }) = answer.partial {
        text += &format!(
            "\npartial: stopped after {runs} of {wanted} runs; into a folder (--out), --resume continues\n"
        );
    }
    text
}
