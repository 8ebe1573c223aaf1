//! `fairlab sweep` and `fairlab query`: every combination, and questions to what came of it.

mod changes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairlab_event::ShownPath;
use fairlab_lab::names::{ShownMetrics, metrics_of};
use fairlab_lab::sweep::{
    PartialSweep, Query, QueryAnswer, SweepPlan, query, query_settings, settings_of, sweep,
};
use serde_json::{Value, json};

use self::changes::{KernelChange, kernel_changes};
use super::experiment;
use super::pages::{PageFolder, RUNS_DRAWN};
use crate::args::{PageStyle, QueryArgs, SweepArgs};
use crate::error::CliError;
use crate::numbers::metric;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;
use crate::{output, ray, tell};

pub fn execute(args: &SweepArgs) -> Result<(), CliError> {
    let plan = SweepPlan::read(&args.file)?;
    let plan = if args.exact { plan.exact() } else { plan };
    let plan = match args.warmup {
        Some(warmup) => plan.with_warmup(warmup),
        None => plan,
    };
    let names = metrics_of(&[], &args.metrics)?;
    let plan = plan.with_names(ShownMetrics::default().wanted(&names));
    let mut exports = args.export.create_with_folders()?;
    experiment::prepare(plan.kernels())?;
    let folder = args.out.clone().unwrap_or_else(|| beside(&args.file));
    let stop = stop_on_interrupt()?;
    let progress = ProgressLine::of("sweep", "cells");
    let mut carrier = ray::of(&args.on, &stop)?;
    let place = ray::place(carrier.as_mut(), experiment::jobs(args.jobs));
    let store = experiment::store(args.kept);
    let outcome = sweep(&plan, store.as_ref(), &folder, place, &|done| progress.show(done), &stop)?;
    drop((carrier, progress));
    if let Some(note) = &outcome.note {
        tell!("{note}");
    }
    let is_complete = outcome.is_complete();
    if !is_complete {
        let (done, cells) = (outcome.done, outcome.cells);
        tell!("{done} of {cells} cells are done and kept; run the command again to continue");
    }
    let by = ["kernel", "machine", "workload"].map(String::from).to_vec();
    let asked = Query { by, metrics: full(&args.metrics)?, ..Query::default() };
    let answer = query(&folder, &asked)?;
    let provenance = provenance::here().of_cells(&answer).of_store(store.as_ref());
    let name = args.file.file_name().map_or(args.file.as_path(), Path::new);
    let title = format!("Sweep of {}", ShownPath(name));
    let text = || partial(&answer) + &to_text(&answer, args.layout);
    let printed = || {
        let table =
            if is_complete { format!("; {}/cells.parquet", ShownPath(&folder)) } else { String::new() };
        let head = format!("{} cells, {} of them done before{table}\n\n", outcome.cells, outcome.before);
        partial(&answer) + &head + &to_text(&answer, args.layout)
    };
    let shape = (args.format, args.layout);
    let (settings, changes) = if exports.has_page() {
        let of = |by: &[&str]| {
            let by = by.iter().copied().map(String::from).collect();
            query_settings(&folder, &Query { by, ..asked.clone() })
        };
        let changes = kernel_changes(&of(&["seed"])?.rows, &first_kernel(&plan));
        (json!(of(&[])?), changes.iter().map(KernelChange::to_json).collect())
    } else {
        (Value::Null, Vec::new())
    };
    let parts = || json!({ "text": text(), "kind": "sweep", "settings": settings, "changes": changes });
    for folder in exports.take_folders().into_iter().filter(|_| is_complete) {
        let pages = PageFolder::of(folder, &title, &stop);
        let (runs, notice) = run_pages(&pages, &plan)?;
        let mut parts = parts();
        parts["pages"] = json!(runs);
        parts["notices"] = json!(notice);
        pages.finish(&output::with_provenance(&provenance, json!(answer)), &parts)?;
    }
    exports.answer_with(&title, (&provenance, &|| json!(answer)), shape, (&parts, &printed))?;
    if is_complete { Ok(()) } else { Err(CliError::Interrupted) }
}

/// The first kernel of the sweep's file, as the file has it: others are compared with it.
fn first_kernel(plan: &SweepPlan) -> String {
    let first = settings_of(plan).into_iter().next().map(|(_, columns)| columns).unwrap_or_default();
    first.into_iter().find(|(name, _)| name == "kernel").map(|(_, kernel)| kernel).unwrap_or_default()
}

/// Writes the page of each setting's first run, as many as a folder has; gives which page is whose, and what is left out.
fn run_pages(pages: &PageFolder<'_>, plan: &SweepPlan) -> Result<(Vec<Value>, Vec<String>), CliError> {
    let settings = settings_of(plan);
    let mut links = Vec::new();
    for (at, (number, setting)) in settings.iter().take(RUNS_DRAWN).enumerate() {
        let page = pages.run(&plan.cell(*number).spec, at + 1)?;
        let setting = setting.iter().cloned().collect::<BTreeMap<_, _>>();
        links.push(json!({ "group": setting, "page": page }));
    }
    let left = settings.len().saturating_sub(RUNS_DRAWN);
    let notice = (left > 0)
        .then(|| format!("the first {RUNS_DRAWN} of {} settings have pages of their runs", settings.len()));
    Ok((links, notice.into_iter().collect()))
}

/// Asks a sweep that is done or under way.
pub fn ask(args: &QueryArgs) -> Result<(), CliError> {
    let exports = args.export.create()?;
    let metrics = full(&args.metrics)?;
    let asked = Query { filters: args.filters.clone(), by: args.by.clone(), metrics };
    let answer = query(&args.folder, &asked)?;
    let provenance = provenance::here().of_cells(&answer);
    let title = format!("Sweep in {}", ShownPath(&args.folder));
    let text = || partial(&answer) + &to_text(&answer, args.layout);
    let printed =
        || format!("{}{} cells\n\n{}", partial(&answer), answer.cells, to_text(&answer, args.layout));
    let shape = (args.format, args.layout);
    exports.answer(&title, (&provenance, &|| json!(answer)), shape, [&text, &printed])
}

/// Metrics' whole names.
fn full(metrics: &[String]) -> Result<Vec<String>, CliError> {
    Ok(metrics_of(&[], metrics)?.into_iter().map(|metric| metric.name).collect())
}

/// What an answer about a sweep that is not done says of itself.
fn partial(answer: &QueryAnswer) -> String {
    let Some(PartialSweep { cells, wanted }) = answer.partial else { return String::new() };
    format!("partial: {cells} of the sweep's {wanted} cells are done\n")
}

/// The file's name without its end.
fn beside(file: &Path) -> PathBuf {
    file.with_extension(if file.extension().is_some() { "" } else { "sweep" })
}

fn to_text(answer: &QueryAnswer, page: PageStyle) -> String {
    let mut header = answer.by.iter().map(String::as_str).collect::<Vec<_>>();
    header.extend(["metric", "cells", "mean", "deviation", "median", "min", "max", ""]);
    let rows = answer.rows.iter().map(|row| {
        let value = |value: f64| metric(&row.metric, value);
        let known = |of: Option<f64>| of.map_or(String::new(), value);
        let mut cells = row.group.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
        cells.extend([
            row.metric.clone(),
            row.cells.to_string(),
            value(row.mean),
            known(row.deviation),
            value(row.median),
            known(row.min),
            known(row.max),
            match (row.one_course, row.two_modes) {
                (true, _) => "one course of events".to_string(),
                (false, true) => "two modes".to_string(),
                (false, false) => String::new(),
            },
        ]);
        cells
    });
    page.table(&header, answer.by.len() + 1, &rows.collect::<Vec<_>>())
}
