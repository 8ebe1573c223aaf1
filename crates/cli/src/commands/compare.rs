//! `fairlab compare`: how kernels differ under one workload.

use fairlab_lab::{Comparison, ComparisonRow, RunFolder, compare, run_all};

use super::experiment;
use crate::args::{CompareArgs, Format};
use crate::error::CliError;
use crate::numbers::{metric, significant};
use crate::output;
use crate::progress::{ProgressLine, stop_on_interrupt};

pub fn execute(args: &CompareArgs) -> Result<(), CliError> {
    if args.experiment.kernels.len() < 2 {
        return Err(CliError::bad(
            "a comparison needs two kernels",
            "give --kernel twice; the first is the baseline",
        ));
    }
    let experiment = experiment::from_args(&args.experiment, args.seed, args.runs)?;
    let folder = args.experiment.out.as_deref().map(RunFolder::create).transpose()?;
    let stop = stop_on_interrupt()?;
    let progress = ProgressLine::new("compare");
    let jobs = experiment::jobs(&args.experiment);
    let (results, stopped) = run_all(&experiment.specs(), jobs, &|done| progress.show(done), &stop)?;
    drop(progress);
    let kernels = experiment.kernels.iter().map(|kernel| kernel.name().to_string()).collect::<Vec<_>>();
    let comparison = compare(&kernels, &results);
    if let Some(folder) = folder {
        folder.write(&experiment, &results, &comparison.to_json())?;
        folder.finish()?;
    }
    match args.experiment.format {
        Format::Json => output::print_json(&comparison.to_json())?,
        Format::Text => {
            let mut text = experiment::describe(&experiment);
            for kernel in &kernels {
                if let Some(run) = results.iter().find(|run| &run.kernel == kernel) {
                    text += &format!("\n{kernel} seed {}\n{}", run.seed, run.output);
                }
            }
            text += &to_text(&comparison);
            output::print(&text)?;
        }
    }
    if stopped.0 { Err(CliError::Interrupted) } else { Ok(()) }
}

fn to_text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for of_kernel in comparison.rows.chunk_by(|one, other| one.kernel == other.kernel) {
        let header =
            ["metric", &comparison.baseline, &of_kernel[0].kernel, "ratio", "95 % interval", "verdict"];
        let rows = of_kernel.iter().map(|row| {
            vec![
                row.name.clone(),
                metric(&row.name, row.baseline_mean),
                metric(&row.name, row.mean),
                row.ratio.ratio.map_or("-".to_string(), significant),
                interval(row),
                row.ratio.verdict.name().to_string(),
            ]
        });
        text += &format!("\n{}", output::table(&header, &rows.collect::<Vec<_>>()));
    }
    text.push('\n');
    for row in comparison.rows.iter().filter(|row| row.name == SUMMARY_METRIC) {
        text += &summary(row, &comparison.baseline);
    }
    text
}

/// The metric of the closing sentence.
const SUMMARY_METRIC: &str = "wakeup_latency_ns_p99";

fn interval(row: &ComparisonRow) -> String {
    match (row.ratio.low, row.ratio.high) {
        (Some(low), Some(high)) => format!("{} .. {}", significant(low), significant(high)),
        _ => format!("{} run decides nothing", row.pairs),
    }
}

/// One sentence: `v6.6 has 0.58 ± 0.03 of v6.5's p99 wakeup latency (better, 10 paired runs)`.
fn summary(row: &ComparisonRow, baseline: &str) -> String {
    let Some(ratio) = row.ratio.ratio else { return String::new() };
    let spread = match (row.ratio.low, row.ratio.high) {
        (Some(low), Some(high)) => format!(" ± {}", significant((high - low) / 2.0)),
        _ => String::new(),
    };
    let plural = if row.pairs == 1 { "" } else { "s" };
    format!(
        "{} has {}{spread} of {baseline}'s p99 wakeup latency ({}, {} paired run{plural})\n",
        row.kernel,
        significant(ratio),
        row.ratio.verdict.name(),
        row.pairs
    )
}
