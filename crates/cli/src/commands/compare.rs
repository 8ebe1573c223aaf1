//! `fairlab compare`: how kernels differ under one workload.

mod attribute;
mod causes;
mod export;
mod gate;
mod layouts;
mod schedstat;
mod table;

use std::path::PathBuf;
use std::sync::Arc;

use fairlab_change::compare::{CompareSpec, Compared, compare};
use fairlab_change::side_words::SideWords;
use fairlab_event::EscapedText;
use fairlab_lab::answer::CompareAnswer;
use fairlab_lab::sides::{are_recordings, check_two};
use fairlab_lab::{Caller, Experiment, RUNS, Sets, Sides};

use super::{experiment, workloads};
use crate::args::{AnswerFormat, CompareArgs, ExperimentArgs, KeptRunsArgs, TableLayout};
use crate::error::CliError;
use crate::export::{ExportFiles, ExportKind, of_sides};
use crate::progress::ProgressLine;
use crate::{output, provenance};
use gate::GateOutput;

pub fn execute(args: &CompareArgs) -> Result<(), CliError> {
    let ExperimentArgs { setting, names, .. } = &args.experiment;
    if workloads::helped(&setting.workload)? {
        return Ok(());
    }
    let asked = (names.shown(), names.chosen.stretch());
    let spec = CompareSpec::of(&args.metrics, args.margin, &args.gate.rules, asked, args.explain)?;
    let gate = GateOutput::of(&args.gate)?;
    check_chosen(args)?;
    if !args.schedstat.is_empty() {
        return schedstat::execute(args);
    }
    if args.attribute && args.sides.is_empty() {
        check_two(&args.experiment.kernels, &setting.workload)?;
        return attribute::execute(args);
    }
    let sides = sides_of(args, &spec)?;
    let exports = ExportFiles::create(&args.exports, &ExportKind::ALL)?;
    answer(
        &sides,
        &spec,
        (setting.jobs, args.kept),
        (exports, gate),
        AnswerShape { format: setting.format, layout: args.layout },
    )
}

/// Sees to it that tasks and time are asked for where numbers have them.
fn check_chosen(args: &CompareArgs) -> Result<(), CliError> {
    let chosen = &args.experiment.names.chosen;
    let sums = [
        ("--counts", !args.counts.is_empty()),
        ("--live", !args.live.is_empty()),
        ("--schedstat", !args.schedstat.is_empty()),
    ];
    let of_sums = sums.into_iter().find_map(|(name, is_given)| is_given.then_some(name));
    let problem = match (of_sums, chosen.given()) {
        (Some(other), _) if chosen.time.is_some() => {
            format!("--time does not go with {other}: its numbers are sums")
        }
        (Some("--schedstat"), Some(option)) => {
            format!("{option} does not go with --schedstat: CPUs count, not tasks")
        }
        _ => return Ok(()),
    };
    Err(CliError::bad(problem, "leave it out"))
}

/// What is compared. All is checked before anything runs.
fn sides_of(args: &CompareArgs, spec: &CompareSpec) -> Result<Sides, CliError> {
    if !args.folders.is_empty() {
        return Ok(Sides::Folders { folders: args.folders.clone(), labels: args.labels.clone() });
    }
    let asked = &args.experiment;
    let has_sides = !asked.kernels.is_empty() || !args.sides.is_empty() || args.vary.is_some();
    if !has_sides && are_recordings(&asked.setting.workload) {
        let folders = asked.setting.workload.iter().map(PathBuf::from).collect();
        return Ok(Sides::Folders { folders, labels: args.labels.clone() });
    }
    if !args.counts.is_empty() {
        return Ok(Sides::Hosts { sets: args.counts.clone(), labels: args.labels.clone() });
    }
    if !args.live.is_empty() {
        return Ok(Sides::Commands { commands: args.live.clone(), runs: args.runs.unwrap_or(RUNS) });
    }
    let mut sides = SideWords::asked(&args.sides, args.vary.as_deref())?;
    if args.attribute {
        sides = SideWords::taken_apart(sides)?;
    }
    if sides.is_empty() {
        check_two(&asked.kernels, &asked.setting.workload)?;
    }
    let seeds = (args.seed, args.runs.unwrap_or(args.runs_max));
    let experiment = experiment::from_args(asked, &sides, seeds, &spec.wanted.metrics)?;
    let experiment = if args.runs.is_none() { experiment.until_sure() } else { experiment };
    Ok(Sides::Kernels { experiment: experiment.into(), out: asked.out.clone(), resume: asked.resume })
}

/// The comparison of an experiment that keeps no files.
pub fn plain(
    experiment: Experiment,
    (jobs, kept): (Option<usize>, KeptRunsArgs),
    format: AnswerFormat,
    exports: ExportFiles,
) -> Result<(), CliError> {
    let sides = Sides::Kernels { experiment: experiment.into(), out: None, resume: false };
    let shape = AnswerShape { format, layout: TableLayout::default() };
    answer(&sides, &CompareSpec::default(), (jobs, kept), (exports, GateOutput::default()), shape)
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug)]
struct AnswerShape {
    format: AnswerFormat,
    layout: TableLayout,
}

/// Compares, and answers: into files, to CI, on the screen, as an exit status.
fn answer(
    sides: &Sides,
    spec: &CompareSpec,
    (jobs, kept): (Option<usize>, KeptRunsArgs),
    (exports, gate): (ExportFiles, GateOutput),
    AnswerShape { format, layout }: AnswerShape,
) -> Result<(), CliError> {
    let stop = if sides.are_made() { experiment::stop_for(sides.change_host())? } else { Arc::default() };
    let progress = ProgressLine::new("compare");
    let on_progress = |done| progress.show(done);
    let on_look = |told: &str| progress.keep(told);
    let store = sides.experiment().and_then(|_| experiment::store(kept));
    let caller = Caller {
        jobs: experiment::jobs(jobs),
        on_progress: &on_progress,
        tell: &output::tell,
        on_look: &on_look,
        store: store.as_ref(),
        stop: &stop,
    };
    let Compared { answer, mut sets } = compare(sides, spec, provenance::here(), &caller)?;
    drop(progress);
    let value = sets.keep(&answer)?;
    let workload = sets.experiment.and_then(Experiment::workload).map(output::words);
    let parts = || of_sides(workload.as_deref(), &sets.sides, spec.options.shown.of_some());
    export::write(exports, &answer, &sets.provenance, parts)?;
    gate.report(&answer, &sets.provenance, format)?;
    match format {
        AnswerFormat::Json => output::print_json(&value)?,
        AnswerFormat::Text => {
            let text = printed(&sets) + &to_text(&answer, layout);
            let text = experiment::partial(answer.partial) + text.trim_start();
            layout.page().answer(&sets.provenance, &text)?;
        }
    }
    gate::outcome(answer.gate.as_ref(), answer.partial)
}

/// What was run, and what the programs themselves print, once a kernel.
fn printed(sets: &Sets<'_>) -> String {
    let printed = sets.printed.iter().map(|(run, text)| format!("\n{run}\n{text}"));
    let described = |experiment| experiment::describe(experiment, sets.looked.as_ref());
    sets.experiment.map(described).into_iter().chain(printed).collect()
}

fn to_text(answer: &CompareAnswer, layout: TableLayout) -> String {
    let answer = &with_names_shown(answer.clone());
    let text = match layout {
        TableLayout::Fairlab | TableLayout::Mail => table::to_text(answer, layout.page()),
        TableLayout::Mmtests => layouts::mmtests(answer),
        TableLayout::Lkp => layouts::lkp(answer),
    };
    let gate = answer.gate.as_ref().map(gate::to_text).unwrap_or_default();
    text + &causes::to_text(&answer.causes, layout.page()) + &gate
}

/// Names of sides and metrics may come from folders and commands: on one line, with nothing that a terminal would obey.
fn with_names_shown(mut answer: CompareAnswer) -> CompareAnswer {
    let show = |name: &mut String| *name = EscapedText(name).to_string();
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
