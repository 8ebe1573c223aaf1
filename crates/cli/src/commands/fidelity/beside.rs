//! `fairlab fidelity --booted`: whole runs of booted and of modelled kernels, side by side.

use fairlab_lab::provenance::Origin;
use fairlab_scenario::booted_table::{
    BOOTS, Beside, Contrast, Measure, Pair, Runs, SEEDS, contrasts, side_by_side, summaries,
};
use fairlab_verify::fidelity::page;
use serde_json::{Value, json};

use super::{contrast, read_page, write};
use crate::args::{FidelityArgs, Format};
use crate::error::CliError;
use crate::numbers::metric;
use crate::output;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;

pub fn execute(args: &FidelityArgs) -> Result<(), CliError> {
    let page = args.page.as_deref().map(|path| read_page(path, &args.part)).transpose()?;
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let stop = stop_on_interrupt()?;
    let progress = ProgressLine::new("fidelity");
    let only = args.booted.as_deref().unwrap_or_default();
    let all = side_by_side(only, jobs, &|done| progress.show(done), &stop)?;
    drop(progress);
    let Some(all) = all else { return Err(CliError::Interrupted) };
    let changes = contrasts(&all);
    if let (Some(path), Some(text)) = (&args.page, page) {
        write(path, &page::replace(&text, &args.part, &markdown(&all, &changes))?)?;
    }
    let provenance = provenance::here().by(Origin::Booted).by(Origin::Modelled).seeds(1..=SEEDS);
    let provenance =
        all.iter().fold(provenance, |sum, beside| sum.kernel(beside.kernel).kernel(&beside.release));
    match args.format {
        Format::Text => output::answer(&provenance, &text(&all, &changes)),
        Format::Json => output::answer_json(&provenance, to_json(&all, &changes)),
    }
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The cells of one metric: booted, modelled, how far apart.
fn cells(pair: &Pair) -> [String; 6] {
    let value = |value: f64| metric(&pair.metric, value).trim().to_string();
    let ends = |runs: &Runs| format!("{} to {}", value(runs.least()), value(runs.greatest()));
    [
        pair.metric.clone(),
        value(pair.booted.mean()),
        ends(&pair.booted),
        value(pair.modelled.mean()),
        ends(&pair.modelled),
        percent(pair.error),
    ]
}

fn closing(all: &[Beside]) -> Vec<String> {
    let lines = summaries(all).into_iter().map(|summary| {
        let verdict = if summary.median <= summary.measure.bar() { "within" } else { "beyond" };
        format!(
            "{}: median error {} of {}, {verdict} {}; greatest {}",
            summary.measure.name(),
            percent(summary.median),
            summary.pairs,
            percent(summary.measure.bar()),
            percent(summary.greatest)
        )
    });
    lines.collect()
}

fn text(all: &[Beside], changes: &[Contrast]) -> String {
    let mut rows = Vec::new();
    for beside in all {
        for (number, pair) in beside.pairs.iter().enumerate() {
            let first = |text: &str| if number == 0 { text.to_string() } else { String::new() };
            let mut row = vec![first(beside.kernel), first(beside.workload)];
            row.extend(cells(pair));
            rows.push(row);
        }
    }
    let (boots, seeds) = (format!("of {BOOTS} boots"), format!("of {SEEDS} seeds"));
    let header = ["kernel", "workload", "metric", "booted", &boots, "modelled", &seeds, "error"];
    let mut text = output::table(&header, &rows);
    text.push('\n');
    for beside in all {
        let (judged, agree) = beside.verified;
        text += &format!(
            "{} {}: {agree} of {judged} decisions of {} are the model's\n",
            beside.kernel, beside.workload, beside.release
        );
    }
    if !changes.is_empty() {
        let header = contrast::header();
        let rows = changes.iter().map(|change| contrast::cells(change).to_vec()).collect::<Vec<_>>();
        text += &format!("\n{}", output::table(&header.each_ref().map(String::as_str), &rows));
    }
    let lines = [closing(all), contrast::closing(changes)].concat();
    text + "\n" + &lines.join("\n") + "\n"
}

fn markdown(all: &[Beside], changes: &[Contrast]) -> String {
    let lines = [closing(all), contrast::closing(changes)].concat();
    let mut text = lines.iter().map(|line| format!("* {line}\n")).collect::<String>();
    text += &format!(
        "\n| kernel | workload | metric | booted | of {BOOTS} boots | modelled | of {SEEDS} seeds | error |\n\
         |---|---|---|---:|---|---:|---|---:|\n"
    );
    for beside in all {
        for pair in &beside.pairs {
            text += &format!("| {} | {} | {} |\n", beside.kernel, beside.workload, cells(pair).join(" | "));
        }
    }
    text += "\n| kernel | recorded | workload | judged | agree |\n|---|---|---|---:|---:|\n";
    for beside in all {
        let (judged, agree) = beside.verified;
        text += &format!(
            "| {} | {} | `{}` | {judged} | {agree} |\n",
            beside.kernel, beside.release, beside.command
        );
    }
    if !changes.is_empty() {
        text += &format!("\n{}", contrast::markdown(changes));
    }
    text
}

fn to_json(all: &[Beside], changes: &[Contrast]) -> Value {
    let pair = |pair: &Pair| {
        json!({
            "metric": pair.metric,
            "booted": pair.booted.mean(),
            "booted_low": pair.booted.least(),
            "booted_high": pair.booted.greatest(),
            "booted_runs": pair.booted.values(),
            "modelled": pair.modelled.mean(),
            "low": pair.modelled.least(),
            "high": pair.modelled.greatest(),
            "modelled_runs": pair.modelled.values(),
            "error": pair.error,
            "bar": Measure::bar(pair.measure),
        })
    };
    let beside = |beside: &Beside| {
        json!({
            "kernel": beside.kernel,
            "release": beside.release,
            "workload": beside.command,
            "metrics": beside.pairs.iter().map(pair).collect::<Vec<_>>(),
            "judged": beside.verified.0,
            "agree": beside.verified.1,
        })
    };
    let summary = summaries(all).into_iter().map(|summary| {
        json!({
            "measure": summary.measure.name(),
            "pairs": summary.pairs,
            "median_error": summary.median,
            "greatest_error": summary.greatest,
            "bar": summary.measure.bar(),
        })
    });
    json!({
        "schema": "fairlab/fidelity-booted/1",
        "runs": all.iter().map(beside).collect::<Vec<_>>(),
        "summary": summary.collect::<Vec<_>>(),
        "changes": contrast::to_json(changes),
        "changes_summary": contrast::summary_json(changes),
    })
}
