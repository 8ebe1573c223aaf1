//! `fairlab compare`: how kernels differ under one workload.

mod attribute;
mod causes;
mod export;
mod layouts;
mod schedstat;
mod table;

use fairlab_event::Shown;
use fairlab_lab::answer::CompareAnswer;
use fairlab_lab::hosts::read_host_sets;
use fairlab_lab::provenance::{Origin, Provenance};
use fairlab_lab::{
    CompareOptions, Comparison, Experiment, Made, RunFolder, RunResult, Runs, compare, compare_sides,
    live_sides, read_sides,
};
use serde_json::{Value, json};

use super::{experiment, workloads};
use crate::args::{CompareArgs, Format, Layout};
use crate::error::CliError;
use crate::export::{Exports, Kind, of_folders, of_runs};
use crate::progress::{ProgressLine, put_back_on_interrupt};
use crate::provenance::{self, this_release};
use crate::{output, tell};

pub fn execute(args: &CompareArgs) -> Result<(), CliError> {
    if workloads::helped(&args.experiment.setting.workload)? {
        return Ok(());
    }
    let metrics = experiment::metric_names(&args.metrics)?;
    let options = CompareOptions {
        margin: args.margin,
        metrics: metrics.iter().map(|metric| metric.name.clone()).collect(),
        shown: args.experiment.names.shown(),
    };
    if !args.folders.is_empty() {
        return compare_folders(args, &options);
    }
    if !args.counts.is_empty() {
        return compare_hosts(args, &options);
    }
    if !args.live.is_empty() {
        return compare_live(args, &options);
    }
    if !args.schedstat.is_empty() {
        return schedstat::execute(args);
    }
    if args.experiment.kernels.len() < 2 {
        return Err(CliError::bad(
            "a comparison needs two kernels",
            "give --kernel twice; the first is the baseline",
        ));
    }
    if args.attribute {
        return attribute::execute(args);
    }
    let experiment = experiment::from_args(&args.experiment, args.seed, args.runs, &metrics)?;
    let exports = Exports::create(&args.exports, &Kind::ALL)?;
    let kept = experiment::folder(&args.experiment, &experiment)?;
    let jobs = args.experiment.setting.jobs;
    let shape = Shape { format: args.experiment.setting.format, layout: args.layout };
    let options = Options { compare: options, explain: args.explain };
    make(&experiment, &options, jobs, kept, exports, shape)
}

/// What is compared.
#[derive(Default)]
struct Options {
    compare: CompareOptions,
    /// Why tasks wait differently is asked, too.
    explain: bool,
}

/// The comparison of an experiment, of which nothing is kept.
pub fn plain(
    experiment: &Experiment,
    jobs: Option<usize>,
    format: Format,
    exports: Exports,
) -> Result<(), CliError> {
    let shape = Shape { format, layout: Layout::default() };
    make(experiment, &Options::default(), jobs, (None, Vec::new()), exports, shape)
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
    exports: Exports,
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
    let made = match metrics.metrics.is_empty() {
        true => runs.make(jobs, &show, &stop)?,
        // What no run has is noticed before all of them are done.
        false => runs.make_if(jobs, &show, &stop, |first| compare(&names, first, metrics).map(drop))?,
    };
    drop(progress);
    let Made { results, partial } = made;
    let comparison = Comparison { partial, ..compare(&names, &results, metrics)? };
    let provenance = provenance::of_experiment(experiment);
    let mut answer = CompareAnswer::from(&comparison);
    if options.explain {
        answer.causes = causes::of_experiment(experiment, &names, &results, &stop)?;
    }
    let value = output::with_provenance(&provenance, json!(answer));
    experiment::keep(folder, partial, experiment, &results, &value)?;
    let workload = output::words(&experiment.workload);
    export::write(exports, &answer, &provenance, || of_runs(&workload, &names, &results))?;
    match shape.format {
        Format::Json => output::print_json(&value)?,
        Format::Text => {
            let text = outputs(experiment, &names, &results) + &to_text(&answer, shape.layout);
            shape.layout.page().answer(&provenance, &text)?;
        }
    }
    if partial.is_some() { Err(CliError::Interrupted) } else { Ok(()) }
}

/// Runs that are there already, each kernel's in a folder, or several kernels' in one.
fn compare_folders(args: &CompareArgs, options: &CompareOptions) -> Result<(), CliError> {
    let exports = Exports::create(&args.exports, &Kind::ALL)?;
    let (sides, notes) = read_sides(&args.folders)?;
    notes.iter().for_each(|note| tell!("{note}"));
    let names = sides.iter().map(|side| side.name.clone()).collect::<Vec<_>>();
    let parts = || of_folders(&args.folders, &names);
    show(args, &provenance::here().of_sides(&sides), &compare_sides(&sides, options)?.into(), exports, parts)
}

/// Sets of hosts, by what each counted.
fn compare_hosts(args: &CompareArgs, options: &CompareOptions) -> Result<(), CliError> {
    let exports = Exports::create(&args.exports, &Kind::ALL)?;
    let sides = read_host_sets(&args.counts, &args.labels)?;
    let answer = compare_sides(&sides, options)?.into();
    show(args, &provenance::here().of_sides(&sides), &answer, exports, || Value::Null)
}

/// Commands on this host.
fn compare_live(args: &CompareArgs, options: &CompareOptions) -> Result<(), CliError> {
    if args.live.len() < 2 {
        return Err(CliError::bad(
            "a comparison needs two commands",
            "give --live twice; the first is the baseline",
        ));
    }
    let exports = Exports::create(&args.exports, &Kind::ALL)?;
    let stop = put_back_on_interrupt()?;
    let progress = ProgressLine::new("compare");
    let (sides, made) = live_sides(&args.live, args.runs, &|done| progress.show(done), &stop)?;
    drop(progress);
    let partial = (made.done < made.total).then_some(made);
    let provenance = provenance::here().by(Origin::RunHere).kernel(this_release()).machine("host");
    let comparison = Comparison { partial, ..compare_sides(&sides, options)? };
    show(args, &provenance, &comparison.into(), exports, || Value::Null)?;
    if partial.is_some() { Err(CliError::Interrupted) } else { Ok(()) }
}

fn show(
    args: &CompareArgs,
    provenance: &Provenance,
    answer: &CompareAnswer,
    exports: Exports,
    parts: impl Fn() -> Value,
) -> Result<(), CliError> {
    export::write(exports, answer, provenance, parts)?;
    match args.experiment.setting.format {
        Format::Json => output::answer_json(provenance, json!(answer)),
        Format::Text => args.layout.page().answer(provenance, to_text(answer, args.layout).trim_start()),
    }
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
    text + &causes::to_text(&answer.causes, layout.page())
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
    answer
}
