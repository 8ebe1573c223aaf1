//! `fairlab fidelity --oracle`: models beside the code of real releases, call by call.

use std::fmt::Write;

use fairlab_event::Ns;
use fairlab_lab::oracle::Run;
use fairlab_lab::provenance::Origin;
use fairlab_scenario::oracle_table::{Extent, Followed, Row, survey, workloads};
use fairlab_verify::fidelity::page;
use fairlab_verify::oracle::{Check, Difference, Judged};
use serde::Serialize;
use serde_json::json;

use super::{read_page, write};
use crate::args::{FidelityArgs, Format};
use crate::error::CliError;
use crate::output;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;

/// What came of all releases.
#[derive(Serialize)]
#[serde(tag = "schema", rename = "fairlab/fidelity-oracle/1")]
struct OracleTable {
    seeds: u64,
    cases: u64,
    workloads: Vec<String>,
    releases: Vec<ReleaseAnswer>,
}

#[derive(Serialize)]
struct ReleaseAnswer {
    kernel: &'static str,
    against: &'static str,
    release: String,
    rows: Vec<RowAnswer>,
    checks: Vec<CheckAnswer>,
}

/// Runs on one machine; of cases by chance it is none.
#[derive(Serialize)]
struct RowAnswer {
    machine: Option<&'static str>,
    runs: usize,
    alike: usize,
    compared: u64,
    differences: Vec<DifferenceAnswer>,
}

#[derive(Serialize)]
struct DifferenceAnswer {
    command: String,
    time_ns: u64,
    cpu: u32,
    call: String,
    check: &'static str,
    subject: String,
    leads: String,
    model: String,
}

#[derive(Serialize)]
struct CheckAnswer {
    check: &'static str,
    judged: u64,
    agree: u64,
}

pub fn execute(args: &FidelityArgs, only: &str) -> Result<(), CliError> {
    let page = args.page.as_deref().map(|path| read_page(path, &args.part)).transpose()?;
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let stop = stop_on_interrupt()?;
    let extent = Extent { seeds: args.seeds, cases: args.cases };
    let line = ProgressLine::new("fidelity");
    let all = survey(only, extent, jobs, &|done| line.show(done), &stop)?;
    drop(line);
    let Some(all) = all else { return Err(CliError::Interrupted) };
    if let (Some(path), Some(text)) = (&args.page, page) {
        write(path, &page::replace(&text, &args.part, &markdown(&all))?)?;
    }
    let provenance = provenance::here().by(Origin::Modelled).by(Origin::Driven);
    let provenance = all.iter().fold(provenance, |sum, one| sum.kernel(one.against).kernel(one.kernel));
    match args.format {
        Format::Text => output::answer(&provenance, &text(&all)),
        Format::Json => output::answer_json(&provenance, json!(answer(extent, &all))),
    }
}

fn answer(extent: Extent, all: &[Followed]) -> OracleTable {
    let releases = all.iter().map(|one| ReleaseAnswer {
        kernel: one.kernel,
        against: one.against,
        release: one.release.clone(),
        rows: one.rows.iter().map(row_answer).collect(),
        checks: checks(one)
            .map(|(check, judged)| CheckAnswer { check, judged: judged.all, agree: judged.agree })
            .collect(),
    });
    OracleTable {
        seeds: extent.seeds,
        cases: extent.cases,
        workloads: workloads(),
        releases: releases.collect(),
    }
}

fn row_answer(row: &Row) -> RowAnswer {
    let told = firsts(row).map(|(run, first)| DifferenceAnswer {
        command: run.command.clone(),
        time_ns: first.time_ns,
        cpu: first.cpu,
        call: first.call.clone(),
        check: first.check.name(),
        subject: first.subject.clone(),
        leads: first.leader.clone(),
        model: first.follower.clone(),
    });
    RowAnswer {
        machine: row.machine,
        runs: row.runs,
        alike: row.alike(),
        compared: row.findings.total(),
        differences: told.collect(),
    }
}

/// The runs of a row that differ, each with its first difference.
fn firsts(row: &Row) -> impl Iterator<Item = (&Run, &Difference)> {
    row.differ.iter().filter_map(|run| Some((run, run.findings.first.as_ref()?)))
}

fn checks(one: &Followed) -> impl Iterator<Item = (&'static str, Judged)> {
    let findings = one.findings();
    Check::ALL
        .into_iter()
        .map(move |check| (check.name(), findings.checks.get(&check).copied().unwrap_or_default()))
}

/// The cells of a row: where, runs, alike, compared, first differences by what was compared.
fn cells(row: &Row) -> [String; 5] {
    let machine = row.machine.map_or("by chance".to_string(), str::to_string);
    let differences = row.differences().into_iter().map(|(check, count)| format!("{} {count}", check.name()));
    let differences = differences.collect::<Vec<_>>().join(", ");
    [machine, row.runs.to_string(), row.alike().to_string(), row.findings.total().to_string(), differences]
}

const HEADER: [&str; 6] = ["kernel", "machine", "runs", "alike", "compared", "first differences"];
const CHECKS_HEADER: [&str; 4] = ["kernel", "compared", "judged", "alike"];

fn rows(all: &[Followed]) -> Vec<Vec<String>> {
    let of = |one: &Followed| {
        let kernel = format!("{} of {}", one.kernel, one.release);
        one.rows
            .iter()
            .filter(|row| row.runs > 0)
            .map(move |row| [vec![kernel.clone()], cells(row).to_vec()].concat())
            .collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

fn check_rows(all: &[Followed]) -> Vec<Vec<String>> {
    let of = |one: &Followed| {
        let compared = checks(one).filter(|(_, judged)| judged.all > 0);
        let row = |(check, judged): (&str, Judged)| {
            vec![one.kernel.to_string(), check.to_string(), judged.all.to_string(), judged.agree.to_string()]
        };
        compared.map(row).collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

fn text(all: &[Followed]) -> String {
    let mut text = output::table(&HEADER, &rows(all));
    let _ = write!(text, "\n{}", output::table(&CHECKS_HEADER, &check_rows(all)));
    for (run, first) in all.iter().flat_map(|one| &one.rows).flat_map(firsts) {
        let Difference { time_ns, cpu, call, subject, leader, follower, .. } = first;
        let _ = write!(
            text,
            "\nat {} s, CPU {cpu}, in {call}: {subject}: {leader} in the tree, {follower} in the model\n  again: {}\n",
            Ns(*time_ns),
            run.command
        );
    }
    text
}

fn markdown(all: &[Followed]) -> String {
    let table = |header: &[&str], rows: Vec<Vec<String>>| {
        let rule = header
            .iter()
            .enumerate()
            .map(|(at, _)| if at < 2 { "---|" } else { "---:|" })
            .collect::<String>();
        let lines = rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect::<String>();
        format!("\n| {} |\n|{rule}\n{lines}", header.join(" | "))
    };
    table(&HEADER, rows(all)) + &table(&CHECKS_HEADER, check_rows(all))
}
