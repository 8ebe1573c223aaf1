//! Comparisons in the layouts of mmtests and LKP, with notes where the rule that belongs to a layout says otherwise than
//! the intervals do.
//!
//! Facts: mmtests' `Compare.pm` and `PrintGeneric.pm`, lkp-tests' `lib/compare.rb`.

use fairlab_analysis::statistics::{BetterDirection, mean, median, rivals, standard_deviation};
use fairlab_lab::answer::{CompareAnswer, MetricAnswer};

use super::table::verdict;
use crate::numbers::significant;

/// A statistic of mmtests' tables: its name, its value, and which way it is better.
type Statistic = (&'static str, fn(&[f64], BetterDirection) -> f64, Option<BetterDirection>);

const STATISTICS: [Statistic; 6] = [
    ("Min", |values, _| values.iter().copied().fold(f64::INFINITY, f64::min), None),
    ("mean", rivals::mmtests_mean, None),
    ("Median", |values, _| median(values), None),
    ("Stddev", |values, _| standard_deviation(values).unwrap_or(0.0), Some(BetterDirection::Lower)),
    ("CoeffVar", |values, _| coefficient(values), Some(BetterDirection::Lower)),
    ("Max", |values, _| values.iter().copied().fold(0.0, f64::max), None),
];

fn coefficient(values: &[f64]) -> f64 {
    let centre = mean(values);
    if centre == 0.0 { 0.0 } else { standard_deviation(values).unwrap_or(0.0) / centre * 100.0 }
}

/// Rows are statistics of metrics, columns kernels; positive is better; stars mark what mmtests calls significant.
pub fn mmtests(answer: &CompareAnswer) -> String {
    let kernels = answer.by_kernel().collect::<Vec<_>>();
    let Some(first) = kernels.first() else { return "no metric was measured on both sides\n".to_string() };
    let width = first.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let indent = 9 + width;
    let mut text = format!("\n{:indent$} {:>24}", "", answer.baseline);
    for of_kernel in &kernels {
        text += &format!(" {:>24}", of_kernel[0].kernel);
    }
    text.push('\n');
    for (name, value, fixed) in STATISTICS {
        for (index, base) in first.iter().enumerate() {
            let label = match name {
                "mean" if base.better() == BetterDirection::Higher => "Hmean",
                "mean" => "Amean",
                name => name,
            };
            let old = value(&base.baseline_values, base.better());
            text += &format!("{label:<8} {:<width$} {old:>14.2} ({:>7.2}%)", base.name, 0.0);
            for row in kernels.iter().filter_map(|of_kernel| of_kernel.get(index)) {
                let new = value(&row.values, row.better());
                let change = rivals::mmtests_change(old, new, fixed.unwrap_or(row.better()));
                let stars = rivals::mmtests_marks(&row.baseline_values, &row.values, row.better());
                let marked = name == "mean" && stars && !row.is_one_course();
                let (open, close) = if marked { ('*', '*') } else { ('(', ')') };
                text += &format!(" {new:>14.2} {open}{}{close}", percent(change));
            }
            text.push('\n');
        }
    }
    text + &notes(answer, "mmtests' stars", MetricAnswer::mmtests_differs)
}

fn percent(change: f64) -> String {
    if change.is_finite() { format!("{change:>7.2}%") } else { format!("{:>8}", "-") }
}

/// LKP's: value ± spread, change, value ± spread, metric.
pub fn lkp(answer: &CompareAnswer) -> String {
    let mut text = String::new();
    for of_kernel in answer.by_kernel() {
        text += &format!("\ncommit: \n  {}\n  {}\n\n", answer.baseline, of_kernel[0].kernel);
        let cut = |name: &str| name.chars().take(16).collect::<String>();
        text += &format!("{:>16} {:>27} \n", cut(&answer.baseline), cut(&of_kernel[0].kernel));
        text += "---------------- --------------------------- \n";
        text +=
            "         %stddev     %change         %stddev\n             \\          |                \\  \n";
        for row in of_kernel {
            let (old, new) = (mean(&row.baseline_values), mean(&row.values));
            let change = if row.name.ends_with("_share") {
                format!("{:+10.2} ", (new - old) * 100.0)
            } else if old == 0.0 {
                format!("{:>11}", "-")
            } else {
                format!("{:+10.1}%", (new - old) / old * 100.0)
            };
            text += &format!(
                "{}{change} {}  {}\n",
                lkp_value(&row.baseline_values),
                lkp_value(&row.values),
                row.name
            );
        }
    }
    text + &notes(answer, "LKP's rule", MetricAnswer::lkp_differs)
}

/// A mean with its spread where that is above 2 %.
fn lkp_value(values: &[f64]) -> String {
    let centre = mean(values);
    let digits = if centre.abs() >= 1e6 { format!("{centre:.3e}") } else { format!("{centre:.2}") };
    let spread = rivals::lkp_spread(values);
    let spread = if spread > 2.0 { format!("±{spread:3.0}%") } else { String::new() };
    format!("{digits:>10} {spread:<5}")
}

/// Where their rule and the intervals do not agree.
fn notes(answer: &CompareAnswer, rule: &str, differs: fn(&MetricAnswer) -> Option<bool>) -> String {
    let mut text = String::new();
    for row in &answer.metrics {
        let Some(theirs) = differs(row) else { continue };
        let says = if theirs { "a difference" } else { "none" };
        text += &format!(
            "  {} of {}: {rule} would say {says}; {} {}\n",
            row.name,
            row.kernel,
            interval(row),
            verdict(row)
        );
    }
    if text.is_empty() {
        return format!("\n{rule} and 95 % intervals agree on every metric.\n");
    }
    format!("\nWhere {rule} and 95 % intervals do not agree:\n{text}")
}

fn interval(row: &MetricAnswer) -> String {
    match (row.low, row.high) {
        (Some(low), Some(high)) => format!("ratio {} to {}:", significant(low), significant(high)),
        _ => "no interval:".to_string(),
    }
}
