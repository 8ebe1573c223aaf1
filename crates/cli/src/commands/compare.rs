//! `fairlab compare`: how kernels differ under one workload.

mod attribute;
mod export;
mod layouts;
mod schedstat;
mod table;

use fairlab_event::{Shown, ShownPath};
use fairlab_lab::answer::CompareAnswer;
use fairlab_lab::provenance::{Origin, Provenance};
use fairlab_lab::{
    CompareOptions, Comparison, Experiment, Made, RunResult, Runs, Side, compare, compare_sides, live_sides,
    partial_runs, read_side,
};
use serde_json::json;

use super::{experiment, workloads};
use crate::args::{CompareArgs, Format, Layout};
use crate::error::CliError;
use crate::progress::{ProgressLine, put_back_on_interrupt};
use crate::provenance::{self, this_release};
use crate::{output, tell};
use export::Exports;

pub fn execute(args: &CompareArgs) -> Result<(), CliError> {
    if workloads::helped(&args.experiment.setting.workload)? {
        return Ok(());
    }
    let options = CompareOptions { margin: args.margin, metrics: args.metrics.clone() };
    if !args.folders.is_empty() {
        return compare_folders(args, &options);
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
    let experiment = experiment::from_args(&args.experiment, args.seed, args.runs)?;
    let exports = Exports::create(&args.exports)?;
    let (folder, kept) = experiment::folder(&args.experiment, &experiment)?;
    let stop = experiment::stop_for(&experiment)?;
    experiment::tell_lacks(&experiment);
    let progress = ProgressLine::new("compare");
    let jobs = experiment::jobs(args.experiment.setting.jobs);
    let names = experiment.names();
    let runs = Runs::of(&experiment, kept);
    let show = |done| progress.show(done);
    let made = match args.metrics.is_empty() {
        true => runs.make(jobs, &show, &stop)?,
        // What no run has is noticed before all of them are done.
        false => runs.make_if(jobs, &show, &stop, |first| compare(&names, first, &options).map(drop))?,
    };
    drop(progress);
    let Made { results, partial } = made;
    let comparison = Comparison { partial, ..compare(&names, &results, &options)? };
    let provenance = provenance::of_experiment(&experiment);
    let answer = output::with_provenance(&provenance, json!(CompareAnswer::from(&comparison)));
    experiment::keep(folder, partial, &experiment, &results, &answer)?;
    exports.write(&comparison, &provenance)?;
    match args.experiment.setting.format {
        Format::Json => output::print_json(&answer)?,
        Format::Text => {
            args.layout.page().answer(
                &provenance,
                &(outputs(&experiment, &names, &results) + &to_text(&comparison, args.layout)),
            )?;
        }
    }
    if partial.is_some() { Err(CliError::Interrupted) } else { Ok(()) }
}

/// Runs that are there already, each kernel's in a folder, or several kernels' in one.
fn compare_folders(args: &CompareArgs, options: &CompareOptions) -> Result<(), CliError> {
    let exports = Exports::create(&args.exports)?;
    let mut sides: Vec<Side> = Vec::new();
    for folder in &args.folders {
        if let Some((runs, wanted)) = partial_runs(folder) {
            tell!("{}: stopped before its end: {runs} of {wanted} runs are compared", ShownPath(folder));
        }
        for side in read_side(folder)? {
            let twice = sides.iter().any(|other| other.name == side.name);
            let name = if twice { format!("{} ({})", side.name, ShownPath(folder)) } else { side.name };
            sides.push(Side { name, ..side });
        }
    }
    if sides.len() < 2 {
        return Err(CliError::bad(
            "a comparison needs the runs of two kernels",
            "give --folder twice; the first is the baseline",
        ));
    }
    answer(args, &provenance_of(&sides), &compare_sides(&sides, options)?, exports)
}

/// Runs that are there, each made in its way; those of which nothing tells how are called recorded.
fn provenance_of(sides: &[Side]) -> Provenance {
    sides.iter().flat_map(|side| side.records.iter().map(move |record| (side, record))).fold(
        provenance::here(),
        |all, (side, record)| {
            let kernel = if record.kernel.is_empty() { &side.name } else { &record.kernel };
            all.reading(record.origin).kernel(kernel).machine(&record.machine).seeds(record.seed)
        },
    )
}

/// Commands on this host.
fn compare_live(args: &CompareArgs, options: &CompareOptions) -> Result<(), CliError> {
    if args.live.len() < 2 {
        return Err(CliError::bad(
            "a comparison needs two commands",
            "give --live twice; the first is the baseline",
        ));
    }
    let exports = Exports::create(&args.exports)?;
    let stop = put_back_on_interrupt()?;
    let progress = ProgressLine::new("compare");
    let (sides, made) = live_sides(&args.live, args.runs, &|done| progress.show(done), &stop)?;
    drop(progress);
    let partial = (made.done < made.total).then_some(made);
    let provenance = provenance::here().by(Origin::RunHere).kernel(this_release()).machine("host");
    let comparison = Comparison { partial, ..compare_sides(&sides, options)? };
    answer(args, &provenance, &comparison, exports)?;
    if partial.is_some() { Err(CliError::Interrupted) } else { Ok(()) }
}

fn answer(
    args: &CompareArgs,
    provenance: &Provenance,
    comparison: &Comparison,
    exports: Exports,
) -> Result<(), CliError> {
    exports.write(comparison, provenance)?;
    match args.experiment.setting.format {
        Format::Json => output::answer_json(provenance, json!(CompareAnswer::from(comparison))),
        Format::Text => args.layout.page().answer(provenance, to_text(comparison, args.layout).trim_start()),
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

fn to_text(comparison: &Comparison, layout: Layout) -> String {
    let comparison = &with_names_shown(comparison.clone());
    match layout {
        Layout::Fairlab | Layout::Mail => table::to_text(comparison, layout.page()),
        Layout::Mmtests => layouts::mmtests(comparison) + &table::partial(comparison),
        Layout::Lkp => layouts::lkp(comparison) + &table::partial(comparison),
    }
}

/// Names of sides and metrics may come from folders and commands: on one line, with nothing that a terminal would obey.
fn with_names_shown(mut comparison: Comparison) -> Comparison {
    let show = |name: &mut String| *name = Shown(name).to_string();
    show(&mut comparison.baseline);
    comparison.notices.iter_mut().for_each(show);
    for row in &mut comparison.rows {
        show(&mut row.name);
        show(&mut row.kernel);
    }
    comparison
}
