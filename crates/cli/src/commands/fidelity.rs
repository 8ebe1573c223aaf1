//! `fairlab fidelity`: how well the model agrees with a whole collection of recordings.

mod beside;
mod contrast;
mod oracle;

use std::fs;
use std::path::Path;

use fairlab_event::ShownPath;
use fairlab_lab::LabError;
use fairlab_lab::fidelity_cells::measure;
use fairlab_verify::fidelity::{DecisionCounts, Fidelity, FidelityFigures, page};

use super::experiment;
use crate::args::{AnswerFormat, FidelityArgs};
use crate::error::CliError;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;
use crate::{output, ray, tell};

pub fn execute(args: &FidelityArgs) -> Result<(), CliError> {
    if !args.oracle.is_empty() {
        return oracle::execute(args, &args.oracle);
    }
    let Some(folder) = &args.folder else { return beside::execute(args) };
    // What is asked to be written is checked before the long walk.
    let text = args.page.as_deref().map(|path| read_page(path, &args.part)).transpose()?;
    let stop = stop_on_interrupt()?;
    let progress = ProgressLine::of("fidelity", "recordings");
    let mut carrier = ray::of(&args.on, &stop)?;
    let place = ray::place(carrier.as_mut(), experiment::jobs(args.jobs));
    let fidelity = measure(folder, args.out.as_deref(), place, &|done| progress.show(done), &stop)?;
    drop((carrier, progress));
    let Some(fidelity) = fidelity else { return Err(stopped(args)) };
    let figures = fidelity.figures();
    if let (Some(path), Some(text)) = (&args.page, text) {
        let tables = if args.brief { page::brief(&figures) } else { page::markdown(&figures) };
        let content = format!("{}\n{tables}", closing(&fidelity));
        write(path, &page::replace(&text, &args.part, &content)?)?;
    }
    if let Some(path) = &args.figures {
        write(path, &figures.to_text())?;
    }
    let provenance = provenance::here().of_fidelity(&fidelity);
    match args.format {
        AnswerFormat::Text => output::answer(&provenance, &to_text(&fidelity, &figures, args))?,
        AnswerFormat::Json => output::answer_json(&provenance, fidelity.to_json())?,
    }
    let unreadable =
        fidelity.unreadable().map(|(name, error)| format!("{name}: {error}")).collect::<Vec<_>>();
    match &unreadable[..] {
        [] => Ok(()),
        [one] => {
            Err(CliError::bad(format!("one recording could not be read ({one})"), "the others are above"))
        }
        all => {
            for line in all {
                tell!("{line}");
            }
            Err(CliError::bad(format!("{} recordings could not be read", all.len()), "the others are above"))
        }
    }
}

/// What a stop comes to.
fn stopped(args: &FidelityArgs) -> CliError {
    if let Some(folder) = &args.out {
        tell!("what is done is kept in {}; run the command again to continue", ShownPath(folder));
    }
    CliError::Interrupted
}

fn read_page(path: &Path, part: &str) -> Result<String, CliError> {
    let text = fs::read_to_string(path).map_err(|error| {
        CliError::bad(format!("{}: {error}", ShownPath(path)), "name a page that is there")
    })?;
    page::replace(&text, part, "")
        .map_err(|error| LabError::new(format!("{}: {}", ShownPath(path), error.problem), error.hint))?;
    Ok(text)
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    fairlab_lab::write_whole(path, text).map_err(|error| {
        CliError::bad(format!("cannot write {}: {error}", ShownPath(path)), "name another place")
    })
}

fn to_text(fidelity: &Fidelity, figures: &FidelityFigures, args: &FidelityArgs) -> String {
    let mut text = String::new();
    if !args.sums && !args.brief {
        let rows = figures.rows.iter().map(|row| {
            let name = if row.case.is_empty() { row.recording.clone() } else { String::new() };
            cells(name, row.kernel.clone(), page::decision(row.kind, &row.case), row.counts, &row.case)
        });
        text += &output::table(&header("recording", "kernel"), &rows.collect::<Vec<_>>());
        text.push('\n');
    }
    text += &if args.brief {
        let header = page::brief_header();
        output::table(&header.iter().map(String::as_str).collect::<Vec<_>>(), &page::brief_lines(figures))
    } else {
        let rows = figures.sums().rows.into_iter().map(|row| {
            let probes = if row.probed { "yes" } else { "no" };
            cells(row.kernel, probes.to_string(), page::decision(row.kind, &row.case), row.counts, &row.case)
        });
        output::table(&header("kernel", "probes"), &rows.collect::<Vec<_>>())
    };
    text.push('\n');
    for (name, note) in fidelity.notes() {
        text += &format!("{name}: {note}\n");
    }
    for (name, error) in fidelity.unknown() {
        text += &format!("{name}: {error}\n");
    }
    for name in fidelity.without_recording() {
        text += &format!("{name}: holds no recording\n");
    }
    text + &closing(fidelity)
}

fn header<'a>(first: &'a str, second: &'a str) -> [&'a str; 8] {
    [first, second, "decision", "judged", "agree", "share", "missed", "not judged"]
}

fn cells(first: String, second: String, decision: String, counts: DecisionCounts, case: &str) -> Vec<String> {
    let mut cells = vec![
        first,
        second,
        decision,
        counts.judged.to_string(),
        counts.agree.to_string(),
        page::share(counts),
        counts.missed().to_string(),
    ];
    if case.is_empty() {
        cells.push(counts.not_judged.to_string());
    }
    cells
}

/// `14 recordings judged, 1 of a kernel that is not modelled, 0 unreadable, 2 folders without a recording`.
fn closing(fidelity: &Fidelity) -> String {
    let (unknown, unreadable) = (fidelity.unknown().count(), fidelity.unreadable().count());
    let without = fidelity.without_recording().count();
    let judged = fidelity.entries.len() - unknown - unreadable - without;
    format!(
        "{judged} recordings judged, {unknown} of kernels that are not modelled, {unreadable} that could not be read, \
         {without} folders without a recording\n"
    )
}
