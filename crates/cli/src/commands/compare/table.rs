//! A comparison in our own words: ratio, interval, verdict, and what would decide.

use fairlab_analysis::statistics::{Modes, MoreRuns, Verdict, mean};
use fairlab_event::shown;
use fairlab_lab::{Comparison, ComparisonRow, Pairing, Progress};

use crate::args::Page;
use crate::numbers::{metric, significant};

pub fn to_text(comparison: &Comparison, page: Page) -> String {
    let mut text = String::new();
    for of_kernel in comparison.rows.chunk_by(|one, other| one.kernel == other.kernel) {
        let header = header(comparison, &of_kernel[0]);
        let header = header.iter().map(String::as_str).collect::<Vec<_>>();
        text += &format!("\n{}", page.table(&header, 1, &of_kernel.iter().map(cells).collect::<Vec<_>>()));
    }
    text.push('\n');
    for row in &comparison.rows {
        text += &lottery(row, &comparison.baseline);
    }
    for notice in &comparison.notices {
        text += &format!("note: {notice}\n");
    }
    text += &partial(comparison);
    for row in summed_up(comparison) {
        text += &summary(row, &comparison.baseline);
    }
    text
}

/// What a comparison that was stopped says of itself.
pub fn partial(comparison: &Comparison) -> String {
    let Some(Progress { done, total }) = comparison.partial else { return String::new() };
    format!("partial: stopped after {done} of {total} runs; into a folder (--out), --resume goes on\n")
}

/// The rows of the closing sentences: of the metric that the workload is run for; of the only one there is otherwise.
fn summed_up(comparison: &Comparison) -> impl Iterator<Item = &ComparisonRow> {
    let has = |name: &str| comparison.rows.iter().any(|row| row.name == name);
    let first = comparison.rows.first().map(|row| row.name.as_str());
    let only = first.filter(|first| comparison.rows.iter().all(|row| row.name == *first));
    let name = if has(&comparison.headline) { Some(comparison.headline.as_str()) } else { only };
    comparison.rows.iter().filter(move |row| Some(row.name.as_str()) == name)
}

/// The same as a table of Markdown.
pub fn to_markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for of_kernel in comparison.rows.chunk_by(|one, other| one.kernel == other.kernel) {
        let header = header(comparison, &of_kernel[0]);
        let header = header.map(|name| shown::markdown(&name));
        text += &format!("| {} |\n|---|{}\n", header.join(" | "), "---:|".repeat(header.len() - 1));
        for row in of_kernel {
            let cells = cells(row).iter().map(|cell| shown::markdown(cell)).collect::<Vec<_>>();
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text.push('\n');
    }
    let partial = partial(comparison);
    for notice in std::iter::once(partial.trim_end()).chain(comparison.notices.iter().map(String::as_str)) {
        if !notice.is_empty() {
            text += &format!("* {}\n", shown::markdown(notice));
        }
    }
    text
}

fn header(comparison: &Comparison, row: &ComparisonRow) -> [String; 6] {
    ["metric", &comparison.baseline, &row.kernel, "ratio", "95 % interval", "verdict"].map(str::to_string)
}

fn cells(row: &ComparisonRow) -> Vec<String> {
    vec![
        row.name.clone(),
        metric(&row.name, mean(&row.baseline)),
        metric(&row.name, mean(&row.values)),
        row.estimate.ratio.map_or("-".to_string(), significant),
        interval(row),
        verdict(row),
    ]
}

fn interval(row: &ComparisonRow) -> String {
    match (row.estimate.low, row.estimate.high) {
        (Some(low), Some(high)) => format!("{} .. {}", significant(low), significant(high)),
        _ if row.is_one_course() => "-".to_string(),
        _ if row.estimate.ratio.is_none() => "no ratio to 0".to_string(),
        _ => format!("{} run decides nothing", row.baseline.len().min(row.values.len())),
    }
}

/// The verdict, and where there is none yet, what it would take.
pub fn verdict(row: &ComparisonRow) -> String {
    match (row.verdict, row.more) {
        (Verdict::Undecided, Some(MoreRuns::About(more))) => format!("undecided, +{more} runs"),
        (Verdict::Undecided, Some(MoreRuns::TooMany)) => "undecided, > 10000 runs".to_string(),
        (verdict, _) => verdict.words().to_string(),
    }
}

fn lottery(row: &ComparisonRow, baseline: &str) -> String {
    let line = |kernel: &str, Modes { low, high }: &Modes| {
        let (least, most) = (metric(&row.name, low.mean), metric(&row.name, high.mean));
        let (few, others) = (low.runs, high.runs);
        format!(
            "note: {} of {kernel} has two modes: {few} runs about {least}, {others} about {most}\n",
            row.name
        )
    };
    let base = row.baseline_modes.as_ref().map(|modes| line(baseline, modes)).unwrap_or_default();
    base + &row.modes.as_ref().map(|modes| line(&row.kernel, modes)).unwrap_or_default()
}

/// One sentence: `v6.6 has 0.58 (0.55 to 0.61) of v6.5's p99 wakeup latency: better, 10 paired runs`.
fn summary(row: &ComparisonRow, baseline: &str) -> String {
    let Some(ratio) = row.estimate.ratio else { return String::new() };
    let spread = match (row.estimate.low, row.estimate.high) {
        (Some(low), Some(high)) => format!(" ({} to {})", significant(low), significant(high)),
        _ => String::new(),
    };
    let (base, new) = (row.baseline.len(), row.values.len());
    let runs = match row.pairing {
        Pairing::Paired if new == 1 => "1 paired run".to_string(),
        Pairing::Paired => format!("{new} paired runs"),
        Pairing::Unpaired => format!("{base} and {new} runs"),
    };
    let (ratio, metric) = (significant(ratio), spoken(&row.name));
    let kernel = &row.kernel;
    if row.is_one_course() {
        return format!(
            "{kernel} has {ratio} of {baseline}'s {metric} in one course of events, which decides nothing: {runs}\n"
        );
    }
    format!("{kernel} has {ratio}{spread} of {baseline}'s {metric}: {}, {runs}\n", verdict(row))
}

/// A metric's name in a sentence.
fn spoken(name: &str) -> String {
    match name.strip_prefix("wakeup_latency_ns_") {
        Some(part) => format!("{part} wakeup latency"),
        None => name.to_string(),
    }
}
