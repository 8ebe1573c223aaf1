//! `fairlab fidelity --oracle`: models beside the code of real releases, call by call.

use std::fmt::Write;

use fairlab_change::releases::{Extent, NAMED_RUN, OracleTable, ReleaseAnswer, RowAnswer, survey};
use fairlab_event::Ns;
use fairlab_lab::answer::FirstAnswer;
use fairlab_lab::provenance::Origin;
use fairlab_verify::fidelity::page;
use serde_json::json;

use super::{read_page, stopped, write};
use crate::args::{AnswerFormat, FidelityArgs};
use crate::commands::experiment;
use crate::error::CliError;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;
use crate::{output, ray};

pub fn execute(args: &FidelityArgs, only: &[String]) -> Result<(), CliError> {
    let page = args.page.as_deref().map(|path| read_page(path, &args.part)).transpose()?;
    let stop = stop_on_interrupt()?;
    let extent =
        Extent { seeds: args.seeds, cases: args.cases, duration: args.duration.unwrap_or(NAMED_RUN) };
    let line = ProgressLine::new("fidelity");
    let mut carrier = ray::of(&args.on, &stop)?;
    let place = ray::place(carrier.as_mut(), experiment::jobs(args.jobs));
    let all = survey(only, extent, args.out.as_deref(), place, &|done| line.show(done), &stop)?;
    drop((carrier, line));
    let Some(all) = all else { return Err(stopped(args)) };
    let answer = OracleTable::new(extent, &all);
    if let (Some(path), Some(text)) = (&args.page, page) {
        write(path, &page::replace(&text, &args.part, &markdown(&answer))?)?;
    }
    let provenance = provenance::here().by(Origin::Modelled).by(Origin::Driven);
    let provenance = all.iter().fold(provenance, |sum, one| sum.kernel(&one.against).kernel(&one.kernel));
    match args.format {
        AnswerFormat::Text => output::answer(&provenance, &text(&answer)),
        AnswerFormat::Json => output::answer_json(&provenance, json!(answer)),
    }
}

const SOURCES_HEADER: [&str; 4] = ["kernel", "release", "sources", "beyond the release"];
const HEADER: [&str; 7] = ["kernel", "machine", "runs", "alike", "compared", "first differences", "failed"];
const CHECKS_HEADER: [&str; 4] = ["kernel", "compared", "judged", "alike"];

/// A release's name in a row. Which commits the model has been given stands in a table of its own.
fn called(one: &ReleaseAnswer) -> String {
    let base = if one.backports.is_empty() { None } else { one.kernel.split(['+', '-']).next() };
    format!("{} of {}", base.unwrap_or(&one.kernel), one.release)
}

fn source_rows(answer: &OracleTable) -> Vec<Vec<String>> {
    let row = |one: &ReleaseAnswer| {
        vec![one.kernel.clone(), one.release.clone(), one.sources.clone(), one.backports.join(", ")]
    };
    answer.releases.iter().map(row).collect()
}

fn cells(one: &ReleaseAnswer, row: &RowAnswer) -> Vec<String> {
    vec![
        called(one),
        row.machine.unwrap_or("by chance").to_string(),
        row.runs.to_string(),
        row.alike.to_string(),
        row.compared.to_string(),
        counted(&row.differences),
        row.failed.len().to_string(),
    ]
}

/// How many runs first differ in what: `average 3, pick 1`.
fn counted(differences: &[FirstAnswer]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for difference in differences {
        match counts.iter_mut().find(|(check, _)| *check == difference.check) {
            Some((_, count)) => *count += 1,
            None => counts.push((difference.check, 1)),
        }
    }
    counts.sort_by(|(one, ones), (other, others)| others.cmp(ones).then(one.cmp(other)));
    counts.iter().map(|(check, count)| format!("{check} {count}")).collect::<Vec<_>>().join(", ")
}

fn rows(answer: &OracleTable) -> Vec<Vec<String>> {
    let made = |one: &ReleaseAnswer| {
        one.rows.iter().filter(|row| row.runs > 0).map(|row| cells(one, row)).collect::<Vec<_>>()
    };
    answer.releases.iter().flat_map(made).collect()
}

fn check_rows(answer: &OracleTable) -> Vec<Vec<String>> {
    let of = |one: &ReleaseAnswer| {
        let compared = one.checks.iter().filter(|check| check.judged > 0);
        let row = compared.map(|check| {
            [called(one), check.check.to_string()]
                .into_iter()
                .chain([check.judged, check.agree].map(|n| n.to_string()))
                .collect()
        });
        row.collect::<Vec<Vec<_>>>()
    };
    answer.releases.iter().flat_map(of).collect()
}

fn text(answer: &OracleTable) -> String {
    let mut text = output::table(&SOURCES_HEADER, &source_rows(answer));
    let _ = write!(text, "\n{}", output::table(&HEADER, &rows(answer)));
    let _ = write!(text, "\n{}", output::table(&CHECKS_HEADER, &check_rows(answer)));
    for first in answer.releases.iter().flat_map(|one| &one.rows).flat_map(|row| &row.differences) {
        let FirstAnswer { time_ns, cpu, call, check, subject, leads, model, command } = first;
        let time = Ns(*time_ns);
        let _ = write!(
            text,
            "\n{check}: at {time} s, CPU {cpu}, in {call}: {subject}: {leads} in the tree, {model} in the model\n  again: {command}\n",
        );
    }
    for problem in answer.releases.iter().flat_map(|one| &one.rows).flat_map(|row| &row.failed) {
        let _ = write!(text, "\nfailed: {problem}\n");
    }
    text
}

fn markdown(answer: &OracleTable) -> String {
    let table = |header: &[&str], words: usize, rows: Vec<Vec<String>>| {
        let rule = (0..header.len()).map(|at| if at < words { "---|" } else { "---:|" }).collect::<String>();
        let lines = rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect::<String>();
        format!("\n| {} |\n|{rule}\n{lines}", header.join(" | "))
    };
    table(&SOURCES_HEADER, 4, source_rows(answer))
        + &table(&HEADER, 2, rows(answer))
        + &table(&CHECKS_HEADER, 2, check_rows(answer))
}
