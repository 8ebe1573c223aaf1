//! `fairlab compare --attribute`: which changes make the difference.

use fairlab_analysis::statistics::MetricVerdict;
use fairlab_change::SearchTrials;
use fairlab_change::attribute::{
    self, AttributeAnswer, AttributeSpec, Attribution, Contribution, MetricEffect, attribute,
};
use fairlab_change::left_out::mind_left_out;
use fairlab_lab::answer::CompareAnswer;
use fairlab_lab::kernel::KernelNeed;
use fairlab_lab::names::{ShownMetrics, metrics_of};
use fairlab_lab::{
    CompareOptions, Experiment, Kernel, RUNS, RunResult, RunSetting, SettingWords, compare, sides_of,
    workloads,
};
use serde_json::{Value, json};

use super::causes;
use crate::args::{AnswerFormat, CompareArgs, PageStyle, TableLayout};
use crate::commands::experiment;
use crate::error::CliError;
use crate::export::{ExportFiles, ExportKind, of_sides};
use crate::numbers::significant;
use crate::output;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;

/// Fewer runs tell nothing of how they scatter.
const RUNS_MIN: u64 = 3;

pub fn execute(args: &CompareArgs) -> Result<(), CliError> {
    let [baseline, other] = args.experiment.kernels.as_slice() else {
        let count = args.experiment.kernels.len();
        let problem = format!("--attribute takes two kernels, and these are {count}");
        return Err(CliError::bad(problem, "give --kernel twice"));
    };
    if matches!(args.layout, TableLayout::Mmtests | TableLayout::Lkp) {
        let problem = "--attribute has no table of mmtests' or LKP's";
        return Err(CliError::bad(problem, "give --layout mail, or none"));
    }
    let runs = args.runs.unwrap_or(RUNS);
    if runs < RUNS_MIN {
        let problem = format!("{runs} runs do not tell how runs scatter");
        return Err(CliError::bad(problem, format!("give --runs {RUNS_MIN} or more")));
    }
    let kernels =
        [baseline, other].map(|name| Kernel::parse_for(name, KernelNeed::ChangeLog, attribute::NAME));
    let [baseline, other] = kernels;
    let kernels = [baseline?, other?];
    let chosen = &args.experiment.names.chosen;
    let names = metrics_of(&chosen.whose(), &args.metrics)?;
    let by_name = ShownMetrics::default().wanted(&names);
    let asked = SettingWords {
        by_name: Some(&by_name),
        ..experiment::asked(&args.experiment.setting, args.seed, chosen.stretch())
    };
    let setting = RunSetting::of_kernels(&kernels, &asked)?;
    let [baseline, other] = kernels;
    let headline = || workloads::headline_of(&setting.workload).to_string();
    let metrics = if names.is_empty() {
        vec![headline()]
    } else {
        names.into_iter().map(|metric| metric.name).collect()
    };
    let spec = AttributeSpec {
        baseline,
        other,
        metrics,
        runs: usize::try_from(runs).unwrap_or(usize::MAX),
        margin: args.margin,
    };
    let exports = ExportFiles::create(&args.exports, &ExportKind::ANY)?;
    let stop = stop_on_interrupt()?;
    let progress = ProgressLine::new("attribute, this step");
    let show = |done| progress.show(done);
    let jobs = experiment::jobs(args.experiment.setting.jobs);
    let store = experiment::store(args.kept);
    let mut trials =
        SearchTrials::new(&setting, jobs, &show, &stop).with_store(store.as_ref()).by_cause(args.explain);
    let found = attribute(&spec, &mut trials)?;
    let ends = [&spec.baseline, &spec.other].into_iter().flat_map(|kernel| trials.runs(kernel));
    let ends = ends.cloned().collect::<Vec<_>>();
    drop(progress);
    let provenance = provenance::here().of_search([&spec.baseline, &spec.other], &setting, spec.runs);
    let provenance = provenance.of_store(store.as_ref());
    let title = format!("What makes {} differ from {}", spec.other.name(), spec.baseline.name());
    let parts = || parts_of(&spec, &ends, &setting);
    exports.write_with(&title, || (output::with_provenance(&provenance, json!(found)), parts()))?;
    match args.experiment.setting.format {
        AnswerFormat::Json => output::answer_json(&provenance, json!(found))?,
        AnswerFormat::Text => {
            let setting = format!("{} on {}\n", output::words(&setting.workload), setting.machine.name);
            let page = args.layout.page();
            let answers = found.metrics.iter().map(|answer| to_text(answer, page)).collect::<String>();
            let notes = found.notices.iter().map(|notice| format!("note: {notice}\n")).collect::<String>();
            page.answer(&provenance, &(partial(&found) + &setting + &answers + &notes))?;
        }
    }
    if found.stopped { Err(CliError::Interrupted) } else { Ok(()) }
}

/// What the page has besides: how the two kernels differ in all metrics, how times are distributed.
fn parts_of(spec: &AttributeSpec, runs: &[RunResult], setting: &RunSetting) -> Value {
    let kernels = [spec.baseline.clone(), spec.other.clone()];
    let names = [&spec.baseline, &spec.other].map(|kernel| kernel.name().to_string());
    let workload = output::words(&setting.workload);
    let mut parts = of_sides(Some(&workload), &sides_of(&names, runs), &[]);
    let options = CompareOptions { margin: spec.margin, ..CompareOptions::default() };
    // Before both kernels have runs there is nothing to compare.
    if let Ok(mut comparison) = compare(&names, runs, &options) {
        mind_left_out(&mut comparison, &Experiment::of_setting(kernels.to_vec(), setting, Vec::new()).sides);
        parts["comparison"] = json!(CompareAnswer::from(&comparison));
    }
    parts
}

/// What an attribution that was stopped says of itself.
fn partial(found: &AttributeAnswer) -> String {
    match (found.stopped, found.metrics.is_empty()) {
        (false, _) => String::new(),
        (true, true) => {
            format!("partial: stopped before the two kernels were compared; {} runs\n", found.runs)
        }
        (true, false) => format!(
            "partial: stopped after {} runs; {} changes were not looked into\n",
            found.runs, found.unsearched
        ),
    }
}

fn to_text(answer: &Attribution, page: PageStyle) -> String {
    let mut text = format!(
        "\n{}: {} has {} of {}; {} changes lie between, {} of them make a difference\n",
        answer.metric,
        answer.other,
        ratio(Some(&answer.whole)),
        answer.baseline,
        answer.changes,
        answer.rows.len()
    );
    if answer.verdict == MetricVerdict::OneCourse {
        return text + "one course of events: runs never differ, and nothing can be attributed\n";
    }
    if answer.verdict == MetricVerdict::NotModelled {
        return text + "the two kernels differ only in what is not modelled: nothing can be attributed\n";
    }
    let that_matter = answer.rows.iter().filter(|row| row.matters).collect::<Vec<_>>();
    if that_matter.is_empty() {
        return text + "no change makes a difference beyond the margin\n";
    }
    text += &format!("\n{}", table(&that_matter, page));
    let reasons = that_matter.iter().filter_map(|row| {
        let causes = row.causes.as_ref()?;
        let indented =
            causes::sentences_of(causes).lines().map(|line| format!("  {line}\n")).collect::<String>();
        Some(format!("\n{}: with it\n{indented}", row.commit))
    });
    text += &reasons.collect::<String>();
    if let Some(rest) = answer.rest {
        let others = answer.rows.iter().filter(|row| !row.matters).count();
        text += &format!("{others} others together: {:.0} %\n", rest * 100.0);
    }
    for pair in answer.interactions.iter().filter(|pair| pair.is_real) {
        let [one, other] = &pair.commits;
        text += &format!("{one} and {other} together: {} of what they do alone\n", ratio(Some(&pair.beyond)));
    }
    if answer.interactions.iter().all(|pair| !pair.is_real) && !answer.interactions.is_empty() {
        text += "no two of them interact\n";
    }
    if answer.seedless {
        text += "note: one course of events: runs do not depend on their seed here, and one more decides nothing\n";
    }
    text + &legend(answer)
}

/// The changes that matter. Subjects stand last, or below, where their length does no harm.
fn table(rows: &[&Contribution], page: PageStyle) -> String {
    let cells = rows.iter().map(|row| cells(row)).collect::<Vec<_>>();
    let table = page.table(&["change", "in turn", "share", "alone", "last"], 1, &cells);
    let subjects = rows.iter().map(|row| row.subject.as_str());
    if page == PageStyle::Mail {
        let lines = rows.iter().zip(subjects).map(|(row, subject)| format!("{}: {subject}\n", row.commit));
        return format!("{table}\n{}", lines.collect::<String>());
    }
    let with_subject =
        |(line, subject): (&str, &str)| format!("{}\n", format!("{line}  {subject}").trim_end());
    table.lines().zip(std::iter::once("").chain(subjects)).map(with_subject).collect()
}

fn legend(answer: &Attribution) -> String {
    format!(
        "in turn: after it over before it, in the order of history; alone: {} with it; last: {} over itself without it; {} runs\n",
        answer.baseline, answer.other, answer.runs
    )
}

fn cells(row: &Contribution) -> Vec<String> {
    vec![
        row.commit.clone(),
        ratio(Some(&row.in_turn)),
        row.share.map_or("-".to_string(), |share| format!("{:.0} %", share * 100.0)),
        ratio(row.alone.as_ref()),
        ratio(row.last.as_ref()),
    ]
}

fn ratio(effect: Option<&MetricEffect>) -> String {
    let Some(effect) = effect else { return "-".to_string() };
    let Some(ratio) = effect.ratio else { return "-".to_string() };
    match (effect.low, effect.high) {
        (Some(low), Some(high)) => {
            format!("{} ({} to {})", significant(ratio), significant(low), significant(high))
        }
        _ => significant(ratio),
    }
}
