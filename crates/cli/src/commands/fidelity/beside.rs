//! `fairlab fidelity --booted`: whole runs of booted and of modelled kernels and of their own code, side by side.

use fairlab_event::ShownPath;
use fairlab_lab::provenance::{Origin, Provenance};
use fairlab_report::booted_table::{
    BOOTS, Contrast, DifferenceMeasure, ErrorSpread, KernelsBesideBoot, OWN_BAR, OwnCodeStanding,
    OwnCodeStandings, RunValues, SEEDS, TableRequest, TableRow, TableSide, contrasts, side_by_side,
    standings, summaries,
};
use fairlab_verify::fidelity::page;
use serde_json::{Value, json};

use super::{contrast, read_page, write};
use crate::args::{AnswerFormat, FidelityArgs};
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
    let wanted =
        TableRequest { only: args.booted.as_deref().unwrap_or_default(), jobs, boots: args.boots.as_deref() };
    if let Some(folder) = wanted.boots.filter(|folder| !folder.is_dir()) {
        let problem = format!("{} is no folder", ShownPath(folder));
        return Err(CliError::bad(problem, "name one for --boots that is there"));
    }
    let all = side_by_side(&wanted, &|done| progress.show(done), &stop)?;
    drop(progress);
    let Some(all) = all else { return Err(CliError::Interrupted) };
    let found = BootedRuns { standings: standings(&all), changes: contrasts(&all), all };
    if let (Some(path), Some(text)) = (&args.page, page) {
        write(path, &page::replace(&text, &args.part, &found.markdown())?)?;
    }
    match args.format {
        AnswerFormat::Text => output::answer(&found.provenance(), &found.text()),
        AnswerFormat::Json => output::answer_json(&found.provenance(), found.to_json()),
    }
}

/// All runs, and what is told of them.
struct BootedRuns {
    all: Vec<KernelsBesideBoot>,
    standings: OwnCodeStandings,
    changes: Vec<Contrast>,
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The cells of one metric: booted, modelled, by own code, how far both are off, and which is nearer.
fn cells(beside: &KernelsBesideBoot, row: &TableRow, standing: OwnCodeStanding) -> Vec<String> {
    let value = |value: f64| metric(&row.metric, value).trim().to_string();
    let ends = |runs: &RunValues| format!("{} to {}", value(runs.least()), value(runs.greatest()));
    let side = |side: &TableSide| [value(side.runs.mean()), ends(&side.runs), percent(side.error)];
    let [modelled, modelled_ends, modelled_error] = side(&row.modelled);
    let [own, own_ends, own_error] = side(&row.own);
    let missed = if row.keeps_bar(beside.workload) == Some(false) { ", missed" } else { "" };
    vec![
        row.metric.clone(),
        value(row.booted.mean()),
        ends(&row.booted),
        modelled,
        modelled_ends,
        modelled_error,
        own,
        own_ends,
        own_error + missed,
        standing.name().to_string(),
    ]
}

/// What stands over them.
fn header() -> Vec<String> {
    let (boots, seeds) = (format!("of {BOOTS} boots"), format!("of {SEEDS} seeds"));
    let words = [
        "kernel",
        "workload",
        "metric",
        "booted",
        &boots,
        "modelled",
        &seeds,
        "error",
        "own code",
        &seeds,
        "error",
        "own code is",
    ];
    words.map(str::to_string).to_vec()
}

impl BootedRuns {
    fn provenance(&self) -> Provenance {
        let by = [Origin::Booted, Origin::Modelled, Origin::Driven];
        let provenance = by.into_iter().fold(provenance::here(), Provenance::by).seeds(1..=SEEDS);
        self.all.iter().fold(provenance, |sum, beside| {
            sum.kernel(beside.kernel).kernel(&beside.release).kernel(&beside.own_release)
        })
    }

    /// Kernels and workloads, each with its rows and what is said of them.
    fn cases(
        &self,
    ) -> impl Iterator<Item = (&KernelsBesideBoot, impl Iterator<Item = (&TableRow, OwnCodeStanding)>)> {
        let standings = self.standings.rows.iter();
        self.all
            .iter()
            .zip(standings)
            .map(|(beside, found)| (beside, beside.rows.iter().zip(found.iter().copied())))
    }

    fn closing(&self) -> Vec<String> {
        let mut lines = self.sums();
        let standings = &self.standings;
        let [nearer, alike, further] =
            [OwnCodeStanding::Nearer, OwnCodeStanding::Alike, OwnCodeStanding::Further]
                .map(|standing| standings.count(standing));
        lines.push(format!(
            "own code beside the model: of {} rows nearer to the booted kernel in {nearer}, alike in {alike}, further in {further}",
            nearer + alike + further
        ));
        if standings.hackbench > 0 {
            lines.push(format!(
                "hackbench's waits, switches and migrations by own code: {} of {} within {}",
                standings.kept,
                standings.hackbench,
                percent(OWN_BAR)
            ));
        }
        lines.extend(contrast::closing(&self.changes));
        lines
    }

    fn sums(&self) -> Vec<String> {
        let lines = summaries(&self.all).into_iter().map(|summary| {
            let bar = summary.measure.bar();
            let errors = |errors: ErrorSpread| {
                let verdict = if errors.median <= bar { "within" } else { "beyond" };
                let (median, greatest) = (percent(errors.median), percent(errors.greatest));
                format!("{median}, {verdict} {}; greatest {greatest}", percent(bar))
            };
            format!(
                "{}: median error of {}: modelled {}; own code {}",
                summary.measure.name(),
                summary.rows,
                errors(summary.modelled),
                errors(summary.own)
            )
        });
        lines.collect()
    }

    fn text(&self) -> String {
        let mut table = Vec::new();
        for (beside, rows) in self.cases() {
            for (number, (row, standing)) in rows.enumerate() {
                let first = |text: &str| if number == 0 { text.to_string() } else { String::new() };
                let mut line = vec![first(beside.kernel), first(beside.workload)];
                line.extend(cells(beside, row, standing));
                table.push(line);
            }
        }
        let header = header();
        let mut text = output::table(&header.iter().map(String::as_str).collect::<Vec<_>>(), &table);
        text.push('\n');
        for beside in &self.all {
            let (judged, agree) = beside.verified;
            text += &format!(
                "{} {}: {agree} of {judged} decisions of {} are the model's; own code: {}\n",
                beside.kernel, beside.workload, beside.release, beside.own_release
            );
        }
        if !self.changes.is_empty() {
            let header = contrast::header();
            let rows = self.changes.iter().map(|change| contrast::cells(change).to_vec()).collect::<Vec<_>>();
            text += &format!("\n{}", output::table(&header.each_ref().map(String::as_str), &rows));
        }
        text + "\n" + &self.closing().join("\n") + "\n"
    }

    fn markdown(&self) -> String {
        let mut text = self.closing().iter().map(|line| format!("* {line}\n")).collect::<String>();
        text += &format!(
            "\n| {} |\n|---|---|---|---:|---|---:|---|---:|---:|---|---:|---|\n",
            header().join(" | ")
        );
        for (beside, rows) in self.cases() {
            for (row, standing) in rows {
                let cells = cells(beside, row, standing).join(" | ");
                text += &format!("| {} | {} | {cells} |\n", beside.kernel, beside.workload);
            }
        }
        text +=
            "\n| kernel | recorded | own code | workload | judged | agree |\n|---|---|---|---|---:|---:|\n";
        for beside in &self.all {
            let (judged, agree) = beside.verified;
            text += &format!(
                "| {} | {} | {} | `{}` | {judged} | {agree} |\n",
                beside.kernel, beside.release, beside.own_release, beside.command
            );
        }
        if !self.changes.is_empty() {
            text += &format!("\n{}", contrast::markdown(&self.changes));
        }
        text
    }

    fn to_json(&self) -> Value {
        let runs = self.cases().map(|(beside, rows)| {
            json!({
                "kernel": beside.kernel,
                "release": beside.release,
                "own_release": beside.own_release,
                "name": beside.workload,
                "workload": beside.command,
                "metrics": rows.map(|(row, standing)| row_json(beside, row, standing)).collect::<Vec<_>>(),
                "judged": beside.verified.0,
                "agree": beside.verified.1,
            })
        });
        let errors =
            |errors: ErrorSpread| json!({ "median_error": errors.median, "greatest_error": errors.greatest });
        let summary = summaries(&self.all).into_iter().map(|summary| {
            json!({
                "measure": summary.measure.name(),
                "rows": summary.rows,
                "modelled": errors(summary.modelled),
                "own": errors(summary.own),
                "bar": summary.measure.bar(),
            })
        });
        let count = |standing| self.standings.count(standing);
        json!({
            "schema": "fairlab/fidelity-booted/1",
            "runs": runs.collect::<Vec<_>>(),
            "summary": summary.collect::<Vec<_>>(),
            "own": {
                "nearer": count(OwnCodeStanding::Nearer),
                "alike": count(OwnCodeStanding::Alike),
                "further": count(OwnCodeStanding::Further),
                "hackbench": self.standings.hackbench,
                "hackbench_kept": self.standings.kept,
                "hackbench_bar": OWN_BAR,
            },
            "changes": contrast::to_json(&self.changes),
            "changes_summary": contrast::summary_json(&self.changes),
        })
    }
}

fn row_json(beside: &KernelsBesideBoot, row: &TableRow, standing: OwnCodeStanding) -> Value {
    let runs = |runs: &RunValues| json!({ "mean": runs.mean(), "low": runs.least(), "high": runs.greatest(), "runs": runs.values() });
    let side = |side: &TableSide| {
        let mut value = runs(&side.runs);
        value["error"] = json!(side.error);
        value
    };
    json!({
        "metric": row.metric,
        "measure": row.measure.name(),
        "booted": runs(&row.booted),
        "modelled": side(&row.modelled),
        "own": side(&row.own),
        "bar": DifferenceMeasure::bar(row.measure),
        "own_is": standing.name(),
        "keeps_bar": row.keeps_bar(beside.workload),
    })
}
