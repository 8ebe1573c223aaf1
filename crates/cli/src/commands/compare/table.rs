//! A comparison in our own words: ratio, interval, verdict, and what would decide.

use fairlab_analysis::statistics::{MetricVerdict, RunMode, RunModes};
use fairlab_event::escaped;
use fairlab_lab::Pairing;
use fairlab_lab::answer::{CompareAnswer, MetricAnswer, ModeAnswer, MoreRunsAnswer};

use crate::args::PageStyle;
use crate::commands::experiment::partial;
use crate::numbers::{change, metric, significant};

pub fn to_text(answer: &CompareAnswer, page: PageStyle) -> String {
    let mut text = String::new();
    let columns = columns(answer);
    for of_kernel in answer.by_kernel() {
        let header = header(answer, &of_kernel[0]);
        let header = header.iter().take(columns).map(String::as_str).collect::<Vec<_>>();
        let cells = of_kernel.iter().map(|row| cells(row).into_iter().take(columns).collect());
        text += &format!("\n{}", page.fitted(&header, 1, &cells.collect::<Vec<_>>()));
    }
    text.push('\n');
    text += &ratio_words(answer);
    if is_of_single_runs(answer) {
        text += "one recording or run each: no verdict; record or run each 5 times or more\n";
    }
    // Of a metric that is summed up, its sentence says so beside the verdict.
    let is_told =
        |row: &&MetricAnswer| row.ratio.is_some() && summed_up(answer).any(|told| told.name == row.name);
    for row in answer.metrics.iter().filter(|row| !is_told(row)) {
        for told in kinds(row, &answer.baseline) {
            text += &format!("note: {}: {told}\n", row.name);
        }
    }
    for notice in &answer.notices {
        text += &format!("note: {notice}\n");
    }
    if !is_of_single_runs(answer) {
        for row in summed_up(answer) {
            // What is sure comes first.
            let sure = if row.verdict.is_difference() { None } else { largest_sure(answer, &row.kernel) };
            sure.into_iter().chain([row]).for_each(|row| text += &summary(row, &answer.baseline));
        }
    }
    text
}

/// What the column of ratios is: the two means beside it do not give it. Of single runs they do.
fn ratio_words(answer: &CompareAnswer) -> String {
    if is_of_single_runs(answer) || answer.metrics.iter().all(|row| row.ratio.is_none()) {
        return String::new();
    }
    let are_paired = answer.metrics.iter().all(|row| row.pairing == Pairing::Paired);
    let from = if are_paired {
        "the geometric mean of the paired runs' ratios"
    } else {
        "the ratio of the geometric means of the runs"
    };
    let values = || answer.metrics.iter().flat_map(|row| row.baseline_values.iter().chain(&row.values));
    let zero = match values().any(|value| *value <= 0.0) {
        true => ", where a run has 0 that of the means",
        false => "",
    };
    format!(
        "ratio: {from}{zero}; the means beside it are arithmetic, so their ratio may differ\n{}",
        open_words(answer)
    )
}

/// Why a metric can be undecided whose interval does not hold 1.
fn open_words(answer: &CompareAnswer) -> String {
    let leaves_one_out =
        |row: &MetricAnswer| row.low.is_some_and(|low| low > 1.0) || row.high.is_some_and(|high| high < 1.0);
    let is_open = |row: &MetricAnswer| row.verdict == MetricVerdict::Undecided && leaves_one_out(row);
    match answer.metrics.iter().any(is_open) {
        true => format!(
            "undecided, although its interval leaves 1 out: an interval is of one metric, a verdict allows for all {} together\n",
            answer.metrics.len()
        ),
        false => String::new(),
    }
}

/// Whether each side has one run alone: no interval can be had, and nothing is decided.
fn is_of_single_runs(answer: &CompareAnswer) -> bool {
    !answer.metrics.is_empty()
        && answer.metrics.iter().all(|row| row.baseline_values.len() == 1 && row.values.len() == 1)
}

/// How many columns tell something: without intervals there is no verdict.
fn columns(answer: &CompareAnswer) -> usize {
    if is_of_single_runs(answer) { 4 } else { 6 }
}

/// The rows of the closing sentences: of the metric that the workload is run for; of the only one there is otherwise.
fn summed_up(answer: &CompareAnswer) -> impl Iterator<Item = &MetricAnswer> {
    let has = |name: &str| answer.metrics.iter().any(|row| row.name == name);
    let first = answer.metrics.first().map(|row| row.name.as_str());
    let only = first.filter(|first| answer.metrics.iter().all(|row| row.name == *first));
    let name = if has(&answer.headline) { Some(answer.headline.as_str()) } else { only };
    answer.metrics.iter().filter(move |row| Some(row.name.as_str()) == name)
}

/// A kernel's largest difference that is sure, of metrics that have a worse side.
fn largest_sure<'a>(answer: &'a CompareAnswer, kernel: &str) -> Option<&'a MetricAnswer> {
    let size = |row: &MetricAnswer| row.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    let is_sure = |row: &&MetricAnswer| matches!(row.verdict, MetricVerdict::Better | MetricVerdict::Worse);
    let its = answer.metrics.iter().filter(|row| row.kernel == kernel && row.ratio.is_some()).filter(is_sure);
    its.max_by(|one, other| size(one).total_cmp(&size(other)))
}

/// The comparison as a table of Markdown.
pub fn to_markdown(answer: &CompareAnswer) -> String {
    let mut text = String::new();
    let columns = columns(answer);
    for of_kernel in answer.by_kernel() {
        let header = header(answer, &of_kernel[0]);
        let header = header.iter().take(columns).map(|name| escaped::markdown(name)).collect::<Vec<_>>();
        text += &format!("| {} |\n|---|{}\n", header.join(" | "), "---:|".repeat(header.len() - 1));
        for row in of_kernel {
            let cells =
                cells(row).iter().take(columns).map(|cell| escaped::markdown(cell)).collect::<Vec<_>>();
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text.push('\n');
    }
    let partial = partial(answer.partial);
    for notice in std::iter::once(partial.trim_end()).chain(answer.notices.iter().map(String::as_str)) {
        if !notice.is_empty() {
            text += &format!("* {}\n", escaped::markdown(notice));
        }
    }
    text
}

fn header(answer: &CompareAnswer, row: &MetricAnswer) -> [String; 6] {
    ["metric", &answer.baseline, &row.kernel, "ratio", "95 % interval", "verdict"].map(str::to_string)
}

fn cells(row: &MetricAnswer) -> Vec<String> {
    vec![
        row.name.clone(),
        metric(&row.name, row.baseline_mean),
        metric(&row.name, row.mean),
        row.ratio.map_or("-".to_string(), significant),
        interval(row),
        verdict(row),
    ]
}

fn interval(row: &MetricAnswer) -> String {
    match (row.low, row.high) {
        (Some(low), Some(high)) => format!("{} .. {}", significant(low), significant(high)),
        _ if row.is_one_course() => "-".to_string(),
        _ if row.ratio.is_none() => "no ratio to 0".to_string(),
        _ => format!("{} run decides nothing", row.baseline_values.len().min(row.values.len())),
    }
}

/// The verdict, and where there is none yet, what it would take.
pub fn verdict(row: &MetricAnswer) -> String {
    match (row.verdict, row.more_runs) {
        (MetricVerdict::Undecided, Some(MoreRunsAnswer::About(more))) => format!("undecided, +{more} runs"),
        (MetricVerdict::Undecided, Some(MoreRunsAnswer::TooMany(_))) => "undecided, > 10000 runs".to_string(),
        (verdict, _) => verdict.words().to_string(),
    }
}

/// What is said where the runs of a side are of two kinds.
fn kinds(row: &MetricAnswer, baseline: &str) -> Vec<String> {
    let of = |kernel: &str, modes: &Option<[ModeAnswer; 2]>| {
        let [low, high] = modes.as_ref()?.each_ref().map(|mode| RunMode { runs: mode.runs, mean: mode.mean });
        Some(RunModes { low, high }.told(kernel, |value| metric(&row.name, value)))
    };
    let told = [of(baseline, &row.baseline_modes), of(&row.kernel, &row.modes)];
    told.into_iter().flatten().collect()
}

/// One sentence: `v6.6: p99 wakeup latency 42.0 % lower (39.0 to 45.0 %) than v6.5's: better, 10 paired runs`.
fn summary(row: &MetricAnswer, baseline: &str) -> String {
    let Some(ratio) = row.ratio else { return String::new() };
    let (base, new) = (row.baseline_values.len(), row.values.len());
    let runs = match row.pairing {
        Pairing::Paired if new == 1 => "1 paired run".to_string(),
        Pairing::Paired => format!("{new} paired runs"),
        Pairing::Unpaired => format!("{base} and {new} runs"),
    };
    let (kernel, metric) = (&row.kernel, spoken(&row.name));
    let told = format!("{kernel}: {metric} {}", change(ratio, row.low.zip(row.high), baseline));
    if row.is_one_course() {
        return format!("{told} in one course of events, so that chance is not known: {runs}\n");
    }
    let kinds = kinds(row, baseline).into_iter().map(|told| format!("; {told}")).collect::<String>();
    format!("{told}: {}, {runs}{kinds}\n", verdict_in_words(row))
}

/// The verdict in a sentence.
fn verdict_in_words(row: &MetricAnswer) -> String {
    match (row.verdict, row.more_runs) {
        (MetricVerdict::Undecided, Some(MoreRunsAnswer::About(more))) => {
            format!("undecided, about {more} more runs would decide")
        }
        _ => verdict(row),
    }
}

/// A metric's name in a sentence.
fn spoken(name: &str) -> String {
    let kinds = [("wakeup_latency_ns_", "wakeup latency"), ("fork_wait_ns_", "fork wait")];
    let of = |(begin, kind)| Some(format!("{} {kind}", name.strip_prefix::<&str>(begin)?));
    kinds.into_iter().find_map(of).unwrap_or_else(|| name.to_string())
}
