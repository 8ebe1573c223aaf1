//! `fairlab compare`: how kernels differ under one workload.

mod attribute;
mod causes;
mod export;
mod gate;
mod layouts;
mod schedstat;
mod table;

use std::path::Path;

use fairlab_change::causes::causes_of;
use fairlab_event::Shown;
use fairlab_lab::answer::CompareAnswer;
use fairlab_lab::hosts::read_host_sets;
use fairlab_lab::provenance::{Origin, Provenance};
use fairlab_lab::{
    CompareOptions, Comparison, Counting, Experiment, Made, Progress, RunFolder, RunResult, Runs, Side,
    compare, compare_sides, live_sides, read_sides,
};
use serde_json::{Value, json};

use super::{experiment, workloads};
use crate::args::{CompareArgs, Format, Layout};
use crate::error::CliError;
use crate::export::{Exports, Kind, of_folders, of_runs, of_sides};
use crate::progress::{ProgressLine, put_back_on_interrupt};
use crate::provenance::{self, this_release};
use crate::{output, tell};
use gate::Gate;

pub fn execute(args: &CompareArgs) -> Result<(), CliError> {
    if workloads::helped(&args.experiment.setting.workload)? {
        return Ok(());
    }
    let chosen = &args.experiment.names.chosen;
    let metrics = experiment::metric_names_of(&chosen.whose(), &args.metrics)?;
    let options = CompareOptions {
        margin: args.margin,
        metrics: metrics.iter().map(|metric| metric.name.clone()).collect(),
        shown: args.experiment.names.shown(),
    };
    let gate = Gate::of(&args.gate, &chosen.whose())?;
    if !args.folders.is_empty() {
        return compare_folders(args, &options, gate);
    }
    if let Some(other) = without_time(args).filter(|_| chosen.time.is_some()) {
        return Err(CliError::bad(
            format!("--time does not go with {other}: its numbers are sums"),
            "leave it out",
        ));
    }
    if let Some(option) = chosen.given().filter(|_| !args.schedstat.is_empty()) {
        let problem = format!("{option} does not go with --schedstat: CPUs count, not tasks");
        return Err(CliError::bad(problem, "leave it out"));
    }
    if !args.counts.is_empty() {
        return compare_hosts(args, &options, gate);
    }
    if !args.live.is_empty() {
        return compare_live(args, &options, gate);
    }
    if !args.schedstat.is_empty() {
        return schedstat::execute(args);
    }
    if args.experiment.kernels.len() < 2 {
        let words = &args.experiment.setting.workload;
        let are_files = words.len() > 1 && words.iter().all(|word| Path::new(word).exists());
        return Err(CliError::bad(
            "a comparison needs two kernels",
            match are_files {
                true => "give --kernel twice; recordings are compared by --folder OLD --folder NEW",
                false => "give --kernel twice; the first is the baseline",
            },
        ));
    }
    if args.attribute {
        return attribute::execute(args);
    }
    let measured = metrics.iter().chain(gate.rules.metrics()).cloned().collect::<Vec<_>>();
    let experiment = experiment::from_args(&args.experiment, args.seed, args.runs, &measured)?;
    let exports = Exports::create(&args.exports, &Kind::ALL)?;
    let kept = experiment::folder(&args.experiment, &experiment)?;
    let jobs = args.experiment.setting.jobs;
    let shape = Shape { format: args.experiment.setting.format, layout: args.layout };
    let options = Options { compare: options, explain: args.explain };
    make(&experiment, &options, jobs, kept, (exports, gate), shape)
}

/// The option that compares sums, in which no time is.
fn without_time(args: &CompareArgs) -> Option<&'static str> {
    let given = [
        ("--counts", !args.counts.is_empty()),
        ("--live", !args.live.is_empty()),
        ("--schedstat", !args.schedstat.is_empty()),
    ];
    given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
}

/// What is compared.
#[derive(Default)]
struct Options {
    compare: CompareOptions,
    /// Why tasks wait differently is asked, too.
    explain: bool,
}

/// The comparison of an experiment that keeps no files.
pub fn plain(
    experiment: &Experiment,
    jobs: Option<usize>,
    format: Format,
    exports: Exports,
) -> Result<(), CliError> {
    let shape = Shape { format, layout: Layout::default() };
    make(experiment, &Options::default(), jobs, (None, Vec::new()), (exports, Gate::default()), shape)
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug)]
struct Shape {
    format: Format,
    layout: Layout,
}

/// Makes the runs that are not kept already, compares all, and answers.
fn make(
    experiment: &Experiment,
    options: &Options,
    jobs: Option<usize>,
    (folder, kept): (Option<RunFolder>, Vec<RunResult>),
    (exports, gate): (Exports, Gate),
    shape: Shape,
) -> Result<(), CliError> {
    let stop = experiment::stop_for(experiment)?;
    experiment::tell_lacks(experiment);
    let progress = ProgressLine::new("compare");
    let jobs = experiment::jobs(jobs);
    let names = experiment.names();
    let mut runs = Runs::of(experiment, kept);
    runs.set_causes(options.explain);
    let show = |done| progress.show(done);
    let metrics = &options.compare;
    let made = match metrics.metrics.is_empty() && !gate.rules.are_given() {
        true => runs.make(jobs, &show, &stop)?,
        // What no run has is noticed before all of them are done.
        false => runs.make_if(jobs, &show, &stop, |first| {
            compare(&names, first, metrics)?;
            gate.rules.accept(&|options| compare(&names, first, options))
        })?,
    };
    drop(progress);
    let Made { results, partial } = made;
    let mut comparison = Comparison { partial, ..compare(&names, &results, metrics)? };
    comparison.notices.extend(experiment.time_notice());
    let provenance = provenance::of_experiment(experiment);
    let mut answer = CompareAnswer::from(&comparison);
    if options.explain {
        answer.causes = causes_of(experiment, &results, &stop)?;
    }
    answer.gate = gate.rules.judge(&names, &|options| compare(&names, &results, options))?;
    let value = output::with_provenance(&provenance, json!(answer));
    RunFolder::keep(folder, partial, experiment, &results, &value)?;
    let workload = output::words(&experiment.workload);
    let parts = || of_runs(&workload, &names, &results, metrics.shown.of_some());
    export::write(exports, &answer, &provenance, parts)?;
    gate.report(&answer, &provenance, shape.format)?;
    match shape.format {
        Format::Json => output::print_json(&value)?,
        Format::Text => {
            let text = outputs(experiment, &names, &results) + &to_text(&answer, shape.layout);
            shape.layout.page().answer(&provenance, &text)?;
        }
    }
    gate::outcome(answer.gate.as_ref(), answer.partial)
}

/// Runs that are there already, each kernel's in a folder, or several kernels' in one.
fn compare_folders(args: &CompareArgs, options: &CompareOptions, gate: Gate) -> Result<(), CliError> {
    let exports = Exports::create(&args.exports, &Kind::ALL)?;
    let counting = counting(args, &gate)?;
    let (sides, notes) = read_sides(&args.folders, &counting, &args.labels)?;
    notes.iter().for_each(|note| tell!("{note}"));
    let provenance = provenance::here().of_sides(&sides);
    // Files of counts hold all of a folder's hosts.
    let parts = |sides: &[Side]| match of_sides(sides, options.shown.of_some()) {
        Value::Null if args.labels.is_empty() => of_folders(&args.folders, sides, options.shown.of_some()),
        parts => parts,
    };
    compare_all(args, &provenance, &sides, options, (exports, gate), None, parts)
}

/// What of recordings is counted.
fn counting(args: &CompareArgs, gate: &Gate) -> Result<Counting, CliError> {
    let names = &args.experiment.names;
    let metrics = experiment::metric_names_of(&names.chosen.whose(), &args.metrics)?;
    let measured = metrics.iter().chain(gate.rules.metrics()).cloned().collect::<Vec<_>>();
    let by_name = names.shown().wanted(&measured);
    Ok(Counting { by_name, time: names.chosen.stretch(), ..Counting::default() })
}

/// Sets of hosts, by what each counted.
fn compare_hosts(args: &CompareArgs, options: &CompareOptions, gate: Gate) -> Result<(), CliError> {
    let exports = Exports::create(&args.exports, &Kind::ALL)?;
    let measured = options
        .metrics
        .iter()
        .cloned()
        .chain(gate.rules.metrics().map(|metric| metric.name.clone()))
        .collect::<Vec<_>>();
    let keeps = |name: &str| options.shown.shows(name, &[]) || measured.iter().any(|metric| metric == name);
    let sides = read_host_sets(&args.counts, &args.labels, &keeps)?;
    let provenance = provenance::here().of_sides(&sides);
    let parts = |sides: &[Side]| of_sides(sides, options.shown.of_some());
    compare_all(args, &provenance, &sides, options, (exports, gate), None, parts)
}

/// Commands on this host.
fn compare_live(args: &CompareArgs, options: &CompareOptions, gate: Gate) -> Result<(), CliError> {
    if args.live.len() < 2 {
        return Err(CliError::bad(
            "a comparison needs two commands",
            "give --live twice; the first is the baseline",
        ));
    }
    let counting = counting(args, &gate)?;
    let exports = Exports::create(&args.exports, &Kind::ALL)?;
    let stop = put_back_on_interrupt()?;
    let progress = ProgressLine::new("compare");
    let (sides, made) = live_sides(&args.live, args.runs, &counting, &|done| progress.show(done), &stop)?;
    drop(progress);
    let partial = (made.done < made.total).then_some(made);
    let provenance = provenance::here().by(Origin::RunHere).kernel(this_release()).machine("host");
    let parts = |sides: &[Side]| of_sides(sides, options.shown.of_some());
    compare_all(args, &provenance, &sides, options, (exports, gate), partial, parts)
}

/// Compares sides that are there, and answers.
fn compare_all(
    args: &CompareArgs,
    provenance: &Provenance,
    sides: &[Side],
    options: &CompareOptions,
    (exports, gate): (Exports, Gate),
    partial: Option<Progress>,
    parts: impl Fn(&[Side]) -> Value,
) -> Result<(), CliError> {
    let comparison = Comparison { partial, ..compare_sides(sides, options)? };
    let mut answer = CompareAnswer::from(comparison);
    let names = sides.iter().map(|side| side.name.clone()).collect::<Vec<_>>();
    answer.gate = gate.rules.judge(&names, &|options| compare_sides(sides, options))?;
    export::write(exports, &answer, provenance, || parts(sides))?;
    let format = args.experiment.setting.format;
    gate.report(&answer, provenance, format)?;
    match format {
        Format::Json => output::answer_json(provenance, json!(answer))?,
        Format::Text => args.layout.page().answer(provenance, to_text(&answer, args.layout).trim_start())?,
    }
    gate::outcome(answer.gate.as_ref(), answer.partial)
}

/// What the programs themselves print, once a kernel.
fn outputs(experiment: &Experiment, kernels: &[String], results: &[RunResult]) -> String {
    let mut text = experiment::describe(experiment);
    for kernel in kernels {
        if let Some(run) = results.iter().find(|run| run.kernel == *kernel) {
            text += &format!("\n{} seed {}\n{}", run.kernel, run.seed, run.output);
        }
    }
    text
}

fn to_text(answer: &CompareAnswer, layout: Layout) -> String {
    let answer = &with_names_shown(answer.clone());
    let text = match layout {
        Layout::Fairlab | Layout::Mail => table::to_text(answer, layout.page()),
        Layout::Mmtests => layouts::mmtests(answer) + &table::partial(answer),
        Layout::Lkp => layouts::lkp(answer) + &table::partial(answer),
    };
    let gate = answer.gate.as_ref().map(gate::to_text).unwrap_or_default();
    text + &causes::to_text(&answer.causes, layout.page()) + &gate
}

/// Names of sides and metrics may come from folders and commands: on one line, with nothing that a terminal would obey.
fn with_names_shown(mut answer: CompareAnswer) -> CompareAnswer {
    let show = |name: &mut String| *name = Shown(name).to_string();
    show(&mut answer.baseline);
    answer.notices.iter_mut().for_each(show);
    for row in &mut answer.metrics {
        show(&mut row.name);
        show(&mut row.kernel);
    }
    for rule in answer.gate.iter_mut().flat_map(|gate| &mut gate.rules) {
        show(&mut rule.rule);
        show(&mut rule.kernel);
    }
    answer
}
