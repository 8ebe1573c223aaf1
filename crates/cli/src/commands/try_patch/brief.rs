//! The answer of `fairlab try` on a screen: the verdict, the largest changes, the decision behind them, what to do next.
//!
//! Must not know: how the whole answer looks, how it was found.

use fairlab_analysis::statistics::MetricVerdict;
use fairlab_change::patch::{PatchMetricAnswer, TryAnswer};
use fairlab_event::Ns;
use fairlab_lab::answer::{DifferenceAnswer, FirstAnswer};

use super::{NOTHING_SEEN, paragraph, partial, rows_of, short, sides};
use crate::args::PageStyle;
use crate::numbers::{chosen_percent, metric, significant};

/// Changes that are shown: the largest ones.
const SHOWN: usize = 5;

/// The answer in about 25 lines.
pub fn to_text(answer: &TryAnswer, page: PageStyle) -> String {
    let changed = largest_first(answer);
    let shown = &changed[..changed.len().min(SHOWN)];
    let mut text = format!("{}{}\n\n{}", partial(answer), verdict(answer, &changed), sides(answer));
    if !shown.is_empty() {
        text += &format!("\nChanged for sure{}:\n", of_all(shown.len(), changed.len()));
        text += &table(answer, shown, page);
        text += &cases(answer, shown);
    }
    text += &rest(answer);
    if let Some(difference) = &answer.difference {
        text += &why(difference);
    }
    text += &next(answer, shown);
    text + &paragraph::of(answer, &changed)
}

/// Changes for sure, by the size of their factor; a change from or to nothing is the largest.
fn largest_first(answer: &TryAnswer) -> Vec<&PatchMetricAnswer> {
    let size = |row: &PatchMetricAnswer| row.ratio.map_or(f64::INFINITY, |ratio| ratio.ln().abs());
    let mut changed = rows_of(answer, MetricVerdict::is_difference);
    changed.sort_by(|one, other| size(other).total_cmp(&size(one)));
    changed
}

/// One sentence: how many metrics have changed, and the one that has most.
fn verdict(answer: &TryAnswer, changed: &[&PatchMetricAnswer]) -> String {
    let cases = match answer.cases_seen() {
        1 => "1 case".to_string(),
        cases => format!("{cases} cases"),
    };
    if answer.cases_seen() == 0 {
        return "No case has had its first look yet.".to_string();
    }
    let Some(largest) = changed.first() else {
        return match answer.sees_something() || answer.partial {
            true => {
                format!("Nothing has changed for sure in {cases}, of {} metrics.", answer.rows.len())
            }
            false => NOTHING_SEEN.to_string(),
        };
    };
    let count = |verdict: MetricVerdict| match changed.iter().filter(|row| row.verdict == verdict).count() {
        0 => None,
        count => Some(format!("{count} {}", verdict.words())),
    };
    let counts =
        [MetricVerdict::Worse, MetricVerdict::Better, MetricVerdict::Changed].into_iter().filter_map(count);
    let (before, after) = (metric(&largest.metric, largest.before), metric(&largest.metric, largest.after));
    format!(
        "Of {} metrics in {cases} of {} a side: {} for sure.\nMost of all, {} of {} on {}: {before} -> {after}.",
        answer.rows.len(),
        answer.runs_told(),
        counts.collect::<Vec<_>>().join(", "),
        largest.metric,
        short(answer, &largest.workload),
        largest.machine
    )
}

fn of_all(shown: usize, all: usize) -> String {
    if shown == all { String::new() } else { format!(", the {shown} largest of {all}") }
}

fn table(answer: &TryAnswer, rows: &[&PatchMetricAnswer], page: PageStyle) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_string(), significant);
    let row = |row: &&PatchMetricAnswer| {
        vec![
            short(answer, &row.workload),
            row.machine.clone(),
            row.metric.clone(),
            row.verdict.words().to_string(),
            number(row.ratio),
            format!("{} .. {}", number(row.low), number(row.high)),
        ]
    };
    let header = ["", "machine", "metric", "verdict", "ratio", "95 % interval"];
    page.table(&header, 3, &rows.iter().map(row).collect::<Vec<_>>())
}

/// The workloads of these rows, by their short names.
fn cases(answer: &TryAnswer, rows: &[&PatchMetricAnswer]) -> String {
    let named = answer.workloads.iter().enumerate();
    let shown = named.filter(|(_, case)| rows.iter().any(|row| row.workload == case.workload));
    shown.map(|(at, case)| format!("W{} {}\n", at + 1, case.workload)).collect()
}

/// How many metrics have not changed, or may have.
fn rest(answer: &TryAnswer) -> String {
    let percent = chosen_percent(answer.margin);
    let open = rows_of(answer, |of| of == MetricVerdict::Undecided);
    let counts = [
        (rows_of(answer, |of| of == MetricVerdict::Equivalent).len(), format!("equal within {percent} %")),
        (open.len(), paragraph::undecided(&open)),
        (
            rows_of(answer, |of| of == MetricVerdict::OneCourse).len(),
            "the same in every run of a side, so that chance is not known".to_string(),
        ),
    ];
    let metrics = counts.iter().filter(|(count, _)| *count > 0);
    let metrics = metrics.map(|(count, words)| format!("{count} {words}")).collect::<Vec<_>>();
    let mut text = String::new();
    if !metrics.is_empty() {
        text += &format!("\nOther metrics: {}\n", metrics.join("; "));
    }
    if answer.sees_something() && !answer.alike.is_empty() {
        text += &format!("Cases that are equal event by event: {}\n", answer.alike.len());
    }
    text
}

fn why(difference: &DifferenceAnswer) -> String {
    let FirstAnswer { time_ns, cpu, leads, model, .. } = &difference.first;
    format!(
        "\nFirst decision that differs (no chance, no costs): {} s, CPU {cpu}\n  before: {leads}\n  after: {model}\n",
        Ns(*time_ns)
    )
}

/// The commands that tell more.
fn next(answer: &TryAnswer, shown: &[&PatchMetricAnswer]) -> String {
    let mut text = String::new();
    if let Some(largest) = shown.first() {
        text += &format!("\nWhy tasks wait longer or shorter there:\n  {} --explain\n", largest.command);
    }
    if let Some(difference) = &answer.difference {
        text += &format!("\nWhat both kernels knew at that decision:\n  {}\n", difference.first.command);
    }
    match text.is_empty() {
        true => text,
        false => text + "\nEvery change with its command: the same 'fairlab try' with --explain.\n",
    }
}
