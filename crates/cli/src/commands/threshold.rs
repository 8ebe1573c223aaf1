//! `fairlab bisect --vary`: from which value of a parameter on a metric changes.

use fairlab_change::bisect::BisectQuestion;
use fairlab_change::threshold::{
    OrderedKey, ThresholdAnswer, ThresholdFinding, ThresholdRuns, ThresholdSpec, threshold,
};
use fairlab_lab::kernel::newest_release;
use fairlab_lab::names::wanted_for;
use fairlab_lab::{LabError, SettingWords};
use serde_json::json;

use super::experiment;
use crate::args::{BisectArgs, PageStyle};
use crate::error::CliError;
use crate::numbers::{chosen_percent, metric, significant};
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;

/// Searches, and prints what came of it.
pub fn execute(args: &BisectArgs, key: OrderedKey, runs_max: usize) -> Result<(), CliError> {
    let asked = experiment::asked(&args.setting, args.seed, args.chosen.stretch());
    let kernel = args.kernel.clone().unwrap_or_else(newest_release);
    let first = key.first().side(&kernel, &asked)?;
    let headline = fairlab_lab::workloads::headline_of(&first.workload);
    let metric = match BisectQuestion::of_some(args.metric.as_deref(), &args.chosen.whose())? {
        None => headline.to_string(),
        Some(BisectQuestion::Metric(metric)) => metric,
        Some(BisectQuestion::Claim(_)) => {
            let hint = "leave the bound out: values are told apart by those of both ends";
            return Err(LabError::new("--vary takes a metric, not a claim", hint).into());
        }
    };
    let by_name = wanted_for(&metric)?;
    let asked = SettingWords { by_name: Some(&by_name), ..asked };
    let spec = ThresholdSpec { key, kernel, asked, metric, margin: args.margin, error: args.error, runs_max };
    let exports = args.export.create()?;
    experiment::prepare([(&first.kernel, &first.machine)].into_iter())?;
    let stop = stop_on_interrupt()?;
    let progress = ProgressLine::new("bisect, this step");
    let show = |done| progress.show(done);
    let store = experiment::store(args.kept);
    let runs = ThresholdRuns {
        jobs: experiment::jobs(args.setting.jobs),
        on_progress: &show,
        store: store.as_ref(),
        stop: &stop,
    };
    let found = threshold(&spec, &runs)?;
    drop(progress);
    let seeds = (0..found.seeds as u64).map(|offset| args.seed.wrapping_add(offset));
    let provenance = provenance::here()
        .by(first.kernel.origin())
        .kernel(first.kernel.name())
        .machine(&first.machine.name)
        .seeds(seeds)
        .of_store(store.as_ref());
    let title = format!("From which {} on {} changes", found.key, found.metric);
    let text = || to_text(&found, args.layout);
    exports.answer(
        &title,
        (&provenance, &|| json!(found)),
        (args.setting.format, args.layout),
        [&text; 2],
    )?;
    match (found.stopped, found.finding) {
        (true, _) => Err(CliError::Interrupted),
        (false, ThresholdFinding::Found) => Ok(()),
        (false, ThresholdFinding::Nothing) => Err(CliError::No),
        (false, ThresholdFinding::Undecided | ThresholdFinding::OneCourse) => Err(CliError::Undecided),
    }
}

fn to_text(found: &ThresholdAnswer, page: PageStyle) -> String {
    let mut text = format!("{} values of {}: {}\n\n", found.values, found.key, found.metric);
    let rows = found.steps.iter().map(|step| {
        let mean = metric(&found.metric, step.mean);
        vec![step.value.clone(), step.state.words().to_string(), step.runs.to_string(), mean]
    });
    if !found.steps.is_empty() {
        text += &page.table(&[&found.key, "is", "runs", &found.metric], 1, &rows.collect::<Vec<_>>());
        text.push('\n');
    }
    if let (Some(last), Some(first)) = (&found.last_as_before, &found.first_as_after) {
        text += &format!("from {}={first} on: at {last} it is as at the first value", found.key);
        if let (Some(ratio), Some(low), Some(high)) = (found.ratio, found.low, found.high) {
            let (ratio, low, high) = (significant(ratio), significant(low), significant(high));
            text += &format!("; ratio {ratio} ({low} to {high}) from {last} to {first}");
        }
        text.push('\n');
    }
    text += &found.command.as_ref().map_or(String::new(), |command| format!("  {command}\n"));
    let runs = found.runs;
    if found.stopped {
        return format!("partial: stopped after {runs} runs\n{text}");
    }
    text + &match found.finding {
        ThresholdFinding::Found => {
            let wrong = found.error.map_or(String::new(), |error| {
                format!("; wrong in at most {} % of such searches", chosen_percent(error))
            });
            format!("{runs} runs{wrong}; a metric that goes back and forth changes at other values, too\n")
        }
        ThresholdFinding::Nothing => {
            format!("nothing to find, the first and the last value are equivalent; {runs} runs\n")
        }
        ThresholdFinding::Undecided => format!("undecided; {runs} runs\n"),
        ThresholdFinding::OneCourse => format!("one course of events: no verdict; {runs} runs\n"),
    }
}
