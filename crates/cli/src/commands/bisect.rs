//! `fairlab bisect`: which commit changed a metric.

use fairlab_analysis::statistics::MetricVerdict;
use fairlab_change::bisect::{
    self, BisectAnswer, BisectQuestion, BisectSpec, CrossingAnswer, EndsAnswer, KernelState, SearchFinding,
    bisect, runs_enough,
};
use fairlab_change::threshold::OrderedKey;
use fairlab_change::{SearchTrials, WayStep};
use fairlab_lab::kernel::KernelNeed;
use fairlab_lab::names::wanted_for;
use fairlab_lab::{Kernel, RunSetting, SettingWords};
use serde_json::json;

use super::kernels::own_tree_note;
use super::{experiment, threshold, workloads};
use crate::args::{BisectArgs, PageStyle};
use crate::error::CliError;
use crate::numbers::{change, chosen_percent, metric, significant};
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;
use crate::{output, ray};

pub fn execute(args: &BisectArgs) -> Result<(), CliError> {
    if workloads::helped(&args.setting.workload)? {
        return Ok(());
    }
    let runs_max = runs_enough(args.runs)?;
    if let Some(vary) = &args.vary {
        return threshold::execute(args, OrderedKey::parse(vary)?, runs_max);
    }
    let kernels = [&args.good, &args.bad].map(|name| {
        Kernel::parse_for(name.as_deref().unwrap_or_default(), KernelNeed::History, bisect::NAME)
    });
    let [good, bad] = kernels;
    let kernels = [good?, bad?];
    let asked = experiment::asked(&args.setting, args.seed, args.chosen.stretch());
    let question = BisectQuestion::of_some(args.metric.as_deref(), &args.chosen.whose())?;
    let by_name = question.as_ref().map(|question| wanted_for(question.metric())).transpose()?;
    let setting = RunSetting::of_kernels(&kernels, &SettingWords { by_name: by_name.as_ref(), ..asked })?;
    let [good, bad] = kernels;
    let headline = fairlab_lab::workloads::headline_of(&setting.workload);
    let spec = BisectSpec {
        good,
        bad,
        question: question.unwrap_or_else(|| BisectQuestion::Metric(headline.to_string())),
        setting: setting.clone(),
        margin: args.margin,
        error: args.error,
        runs_max,
    };
    let exports = args.export.create()?;
    let stop = stop_on_interrupt()?;
    let progress = ProgressLine::new("bisect, this step");
    let show = |done| progress.show(done);
    let tell = |step: &str| progress.tell(step);
    let mut carrier = ray::of(&args.on, &stop)?;
    let store = experiment::store(args.kept);
    let mut trials = SearchTrials::new(&setting, experiment::jobs(args.setting.jobs), &show, &stop)
        .with_store(store.as_ref())
        .telling(&tell);
    if let Some(carrier) = &mut carrier {
        trials = trials.by(carrier);
    }
    let found = BisectAnswer::from(&bisect(&spec, &mut trials)?);
    drop(trials);
    drop((carrier, progress));
    let made = found.steps.iter().map(|step| step.runs).max().unwrap_or(0);
    let provenance = provenance::here().of_search([&spec.good, &spec.bad], &setting, made);
    let provenance = provenance.of_store(store.as_ref());
    let title = format!("What changed {} between {} and {}", found.metric, spec.good.name(), spec.bad.name());
    let text = || to_text(&spec.setting, &found, args.layout);
    let shape = (args.setting.format, args.layout);
    exports.answer(&title, (&provenance, &|| json!(found)), shape, [&text; 2])?;
    match (found.stopped, found.finding) {
        (true, _) => Err(CliError::Interrupted),
        (false, SearchFinding::Found) => Ok(()),
        (false, SearchFinding::Nothing | SearchFinding::Several) => Err(CliError::No),
        (false, SearchFinding::Undecided | SearchFinding::OneCourse | SearchFinding::NotModelled) => {
            Err(CliError::Undecided)
        }
    }
}

fn to_text(setting: &RunSetting, found: &BisectAnswer, page: PageStyle) -> String {
    let mut text = format!(
        "{} on {}: {} from {} to {}, {} changes between\n\n",
        output::words(&setting.workload),
        setting.machine.name,
        found.metric,
        found.from,
        found.to,
        found.changes
    );
    let rows = found.steps.iter().map(|step| {
        vec![
            step.kernel.clone(),
            step.state.words().to_string(),
            step.runs.to_string(),
            metric(&found.metric, step.mean),
        ]
    });
    if !found.steps.is_empty() {
        text += &page.table(&["kernel", "is", "runs", &found.metric], 1, &rows.collect::<Vec<_>>());
        text.push('\n');
    }
    for crossing in &found.crossings {
        text += &story(found, crossing);
    }
    text += &found.ends.as_ref().map(|ends| beside(ends, found)).unwrap_or_default();
    for skipped in &found.skipped {
        text += &format!("skipped: {} {}: {}\n", skipped.commit, skipped.subject, skipped.why);
    }
    for notice in &found.notices {
        text += &format!("note: {notice}\n");
    }
    if found.stopped {
        return format!("partial: stopped after {} runs\n{text}", found.runs);
    }
    text + &conclusion(found)
}

/// The two kernels as a comparison has them.
fn beside(ends: &EndsAnswer, found: &BisectAnswer) -> String {
    let good = if ends.kernel == found.to { &found.from } else { &found.to };
    let Some(ratio) = ends.ratio else { return String::new() };
    let (kernel, runs, metric) = (&ends.kernel, ends.pairs, &found.metric);
    let (told, verdict) = (change(ratio, ends.low.zip(ends.high), good), ends.verdict.words());
    let mut text = format!("{kernel}: {metric} {told}: {verdict}, {runs} paired runs\n");
    if let Some(command) = &ends.command {
        text += &format!("  {command}\n");
    }
    text
}

/// What the search comes to, in a line.
fn conclusion(found: &BisectAnswer) -> String {
    let runs = found.runs;
    match found.finding {
        SearchFinding::Found => {
            let error = found.error.map_or(String::new(), |error| {
                format!("; wrong in at most {} % of such searches", chosen_percent(error))
            });
            format!("{runs} runs{error}\n")
        }
        SearchFinding::Several => {
            format!("several commits: no single one makes most of the difference; {runs} runs\n")
        }
        SearchFinding::Nothing => {
            let equivalent =
                found.ends.as_ref().is_some_and(|ends| ends.verdict == MetricVerdict::Equivalent);
            let why = if equivalent { ", the two kernels are equivalent" } else { "" };
            format!("nothing to find{why}; {runs} runs\n")
        }
        SearchFinding::Undecided => format!("undecided; {runs} runs\n"),
        SearchFinding::OneCourse => format!("one course of events: no verdict; {runs} runs\n"),
        SearchFinding::NotModelled => {
            "the two kernels differ only in what is not modelled: no verdict\n".to_string()
        }
    }
}

fn story(found: &BisectAnswer, crossing: &CrossingAnswer) -> String {
    let becomes = match (found.finding, crossing.becomes) {
        (SearchFinding::Found, KernelState::Bad) => "first bad commit",
        (SearchFinding::Found, _) => "first good commit",
        // Not sure, or not the only one.
        _ => "perhaps a part of it",
    };
    let mut text = match crossing.candidates.as_slice() {
        [one] => format!("{becomes}: {} {}\n", one.commit, one.subject),
        several => {
            let lines = several.iter().map(|one| format!("  {} {}\n", one.commit, one.subject));
            format!(
                "{becomes}: one of {}, which could not be told apart:\n{}",
                several.len(),
                lines.collect::<String>()
            )
        }
    };
    if let (Some(date), Some("author")) = (&crossing.date, crossing.dated_by) {
        text += &format!("  author date {date}\n");
    }
    if let Some(first) = crossing.first_with {
        let last = crossing.last_without.map_or(String::new(), |last| format!(", not in {last}"));
        text += &format!("  in {first}{last}\n");
    }
    for change in crossing.steps.iter().filter_map(WayStep::change) {
        if let Some(note) = own_tree_note(change) {
            text += &format!("  {note}\n");
        }
    }
    let (before, after) = (crossing.mean_before, crossing.mean_after);
    text +=
        &format!("  {} {} -> {}", found.metric, metric(&found.metric, before), metric(&found.metric, after));
    if let (Some(ratio), Some(low), Some(high)) = (crossing.ratio, crossing.low, crossing.high) {
        let (ratio, low, high) = (significant(ratio), significant(low), significant(high));
        text += &format!(", ratio {ratio} ({low} to {high})");
    }
    if let Some(share) = crossing.share {
        text += &match share {
            // Other commits on the way take some of it back.
            share if share > 1.005 => {
                format!(", {share:.2} times the whole difference: other commits take some of it back")
            }
            share => format!(", {:.0} % of the whole difference", share * 100.0),
        };
    }
    text + &format!("\n  {}\n\n", crossing.command)
}
