//! A comparison in our own words: ratio, interval, verdict, and what would decide.

use fairlab_analysis::statistics::{Modes, MoreRuns, Verdict, mean};
use fairlab_event::shown;
use fairlab_lab::{Comparison, ComparisonRow, Pairing};

use crate::numbers::{metric, significant};
use crate::output;

/// The metric of the closing sentence.
const SUMMARY_METRIC: &str = "wakeup_latency_ns_p99";

pub fn to_text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for of_kernel in comparison.rows.chunk_by(|one, other| one.kernel == other.kernel) {
        let header = header(comparison, &of_kernel[0]);
        let header = header.iter().map(String::as_str).collect::<Vec<_>>();
        text += &format!("\n{}", output::table(&header, &of_kernel.iter().map(cells).collect::<Vec<_>>()));
    }
    text.push('\n');
    for row in &comparison.rows {
        text += &lottery(row, &comparison.baseline);
    }
    for notice in &comparison.notices {
        text += &format!("note: {notice}\n");
    }
    for row in comparison.rows.iter().filter(|row| row.name == SUMMARY_METRIC) {
        text += &summary(row, &comparison.baseline);
    }
    text
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
    for notice in &comparison.notices {
        text += &format!("* {}\n", shown::markdown(notice));
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
        _ if row.estimate.ratio.is_none() => "no ratio to 0".to_string(),
        _ => format!("{} run decides nothing", row.baseline.len().min(row.values.len())),
    }
}

/// The verdict, and where there is none yet, what it would take.
pub fn verdict(row: &ComparisonRow) -> String {
    match (row.verdict, row.more) {
        (Verdict::Undecided, Some(MoreRuns::About(more))) => format!("undecided, +{more} runs"),
        (Verdict::Undecided, Some(MoreRuns::TooMany)) => "undecided, > 10000 runs".to_string(),
        (verdict, _) => verdict.name().to_string(),
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
    format!(
        "{} has {}{spread} of {baseline}'s p99 wakeup latency: {}, {runs}\n",
        row.kernel,
        significant(ratio),
        verdict(row)
    )
}
