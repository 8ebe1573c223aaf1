//! What commands share that run something: from arguments to an experiment, and its head in words.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_analysis::selector::TimeRange;
use fairlab_change::side_words::{SideWords, experiment_of};
use fairlab_lab::answer::PartialRuns;
use fairlab_lab::names::MetricName;
use fairlab_lab::provenance::Origin;
use fairlab_lab::{Experiment, ExperimentSide, Kernel, LookedAt, RunStore, SettingWords};
use fairlab_sim::Machine;

use crate::args::{ExperimentArgs, KeptRunsArgs, SettingArgs};
use crate::error::CliError;
use crate::output;
use crate::progress::{ProgressLine, put_back_on_interrupt, stop_on_interrupt};

/// A setting's words.
pub fn asked(args: &SettingArgs, first_seed: u64, time: TimeRange) -> SettingWords<'_> {
    SettingWords {
        machine: &args.machine,
        workload: &args.workload,
        warmup: args.warmup,
        duration: args.duration,
        exact: args.exact,
        first_seed,
        by_name: None,
        time,
    }
}

/// The experiment of a command line: of its kernels, or of `sides`. All is checked before anything runs.
pub fn from_args(
    args: &ExperimentArgs,
    sides: &[SideWords],
    (seed, seeds): (u64, u64),
    metrics: &[MetricName],
) -> Result<Experiment, CliError> {
    let by_name = args.names.shown().wanted(metrics);
    let asked =
        SettingWords { by_name: Some(&by_name), ..asked(&args.setting, seed, args.names.chosen.stretch()) };
    let experiment = experiment_of(sides, &args.kernels, &asked, seeds)?;
    prepare(experiment.sides.iter().map(|side| (&side.kernel, &side.machine)))?;
    Ok(experiment)
}

/// Makes kernels ready for their machines, before anything runs: trees are built.
pub fn prepare<'k>(runs: impl Iterator<Item = (&'k Kernel, &'k Machine)>) -> Result<(), CliError> {
    let built = runs.filter(|(kernel, _)| kernel.origin() == Origin::Driven).collect::<Vec<_>>();
    if built.is_empty() {
        return Ok(());
    }
    let stop = stop_on_interrupt()?;
    let line = ProgressLine::of_steps("build");
    for (kernel, machine) in built {
        let step = |step: &str, _| line.tell(&format!("{}, {step}", kernel.name()));
        match kernel.prepare(machine, &step, &stop) {
            Err(_) if stop.load(Ordering::Relaxed) => return Err(CliError::Interrupted),
            made => made?,
        }
    }
    Ok(())
}

/// What an answer of runs that were stopped says first.
pub fn partial(made: Option<PartialRuns>) -> String {
    let Some(PartialRuns { runs, wanted }) = made else { return String::new() };
    format!("partial: stopped after {runs} of {wanted} runs; with --out, --resume goes on from there\n")
}

/// What stops runs early: where they change this host, everything is put back before the program ends.
pub fn stop_for(change_host: bool) -> Result<Arc<AtomicBool>, CliError> {
    if change_host { put_back_on_interrupt() } else { stop_on_interrupt() }
}

/// How many runs go on at once.
pub fn jobs(given: Option<usize>) -> usize {
    given.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Where runs of earlier commands are kept.
pub fn store(KeptRunsArgs { fresh }: KeptRunsArgs) -> Option<RunStore> {
    RunStore::of_user(fresh, output::tell)
}

/// `10 runs`; where they ended by themselves, of how many at most.
fn runs(experiment: &Experiment, looked: Option<&LookedAt>) -> String {
    let counted = |runs: usize| format!("{runs} run{}", if runs == 1 { "" } else { "s" });
    match looked {
        Some(looked) => format!("{} of at most {}", counted(looked.runs), experiment.seeds.len()),
        None => counted(experiment.seeds.len()),
    }
}

/// The experiment in a line, for the head of an answer.
pub fn describe(experiment: &Experiment, looked: Option<&LookedAt>) -> String {
    let runs = runs(experiment, looked);
    let is_real = |kernel: &Kernel| !kernel.has_virtual_time();
    let time = match (experiment.any(Kernel::has_virtual_time), experiment.any(is_real)) {
        (_, false) => "virtual time",
        (false, true) => "real time",
        (true, true) => "virtual time, on this host real time",
    };
    let longest = experiment.sides.iter().map(|side| side.duration).max().unwrap_or_default();
    let what = experiment.workload().map_or_else(|| "workloads by side".to_string(), output::words);
    let machine = experiment.machine().map_or("machines by side", |machine| &machine.name);
    let each = if experiment.is_of_kernels() { "kernel" } else { "side" };
    let mut text =
        format!("{what} on {machine}: {runs} a {each} of up to {} s {time}\n", longest.as_secs_f64());
    if let Some(difference) = experiment.difference() {
        text += &format!("{difference}\n");
    }
    let is_exact = |side: &ExperimentSide| side.machine.chance.is_none();
    if experiment.sides.iter().all(is_exact) && experiment.any(Kernel::draws_chance) {
        text += "exact: nothing is left to chance; seeds matter only to what the workload draws\n";
    }
    for line in experiment.lines(Kernel::meaning) {
        text += &format!("{line}\n");
    }
    text
}
