//! `fairlab try`: what a patch does.

mod brief;
mod paragraph;

use std::sync::atomic::Ordering;

use fairlab_analysis::statistics::MetricVerdict;
use fairlab_change::patch::{
    MACHINES, PatchMetricAnswer, PatchSideAnswer, PatchSides, TryAnswer, TrySpec, WORKLOADS, try_patch,
};
use fairlab_event::Ns;
use fairlab_lab::Caller;
use fairlab_lab::answer::{DifferenceAnswer, FirstAnswer};
use fairlab_lab::names::metrics_of;
use fairlab_lab::provenance::{Origin, Provenance};
use serde_json::json;

use super::experiment;
use crate::args::{PageStyle, TryArgs};
use crate::error::CliError;
use crate::export::directions;
use crate::numbers::{chosen_percent, metric, significant};
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;

/// Said where no case shows a difference.
const NOTHING_SEEN: &str =
    "The patch changes nothing that these workloads see: all runs are equal, event by event.";

/// Fewer runs tell nothing of how they scatter.
const RUNS_MIN: u64 = 4;

pub fn execute(args: &TryArgs) -> Result<(), CliError> {
    let runs = args.runs.unwrap_or(args.runs_max);
    if runs < RUNS_MIN {
        let problem = format!("{runs} runs do not tell how runs scatter");
        return Err(CliError::bad(problem, format!("give --runs {RUNS_MIN} or more")));
    }
    let spec = TrySpec {
        sides: PatchSides::parse(&args.on, &args.patches)?,
        workloads: workloads(args)?,
        machines: if args.machines.is_empty() {
            MACHINES.map(String::from).to_vec()
        } else {
            args.machines.clone()
        },
        metrics: metrics_of(&[], &args.metrics)?.into_iter().map(|metric| metric.name).collect(),
        runs,
        until_sure: args.runs.is_none(),
        first_seed: args.seed,
        duration: args.duration,
        margin: args.margin,
    };
    let exports = args.export.create()?;
    let stop = stop_on_interrupt()?;
    let progress = ProgressLine::of_steps("try");
    let store = experiment::store(args.kept);
    let caller = Caller {
        jobs: experiment::jobs(args.jobs),
        on_progress: &|done| progress.show(done),
        tell: &|step| progress.tell(step),
        on_look: &|_| (),
        store: store.as_ref(),
        stop: &stop,
    };
    let found = try_patch(&spec, &caller);
    drop(progress);
    if found.is_err() && stop.load(Ordering::Relaxed) {
        return Err(CliError::Interrupted);
    }
    let answer = found?;
    let provenance = of(&answer, args).of_store(store.as_ref());
    let title = format!("What {} does to {}", args.patches.join(", "), args.on);
    let text = || to_text(&answer, args.layout);
    let printed = || if args.explain { text() } else { brief::to_text(&answer, args.layout) };
    let shape = (args.format, args.layout);
    let parts = || json!({ "text": text(), "directions": directions(answer.rows.iter().map(|row| row.metric.as_str())) });
    exports.answer_with(&title, (&provenance, &|| json!(answer)), shape, (&parts, &printed))?;
    if answer.partial { Err(CliError::Interrupted) } else { Ok(()) }
}

fn workloads(args: &TryArgs) -> Result<Vec<Vec<String>>, CliError> {
    let own = || WORKLOADS.iter().map(|(line, _)| line.to_string()).collect();
    let lines: Vec<String> = if args.workloads.is_empty() { own() } else { args.workloads.clone() };
    let words = |line: &String| {
        let words = shlex::split(line).ok_or_else(|| {
            CliError::bad(format!("--workload '{line}': a quote is not closed"), "close it, as for a shell")
        })?;
        match words.is_empty() {
            true => Err(CliError::bad("--workload is empty", "give one such as 'pipe -l 1000'")),
            false => Ok(words),
        }
    };
    lines.iter().map(words).collect()
}

fn of(answer: &TryAnswer, args: &TryArgs) -> Provenance {
    let kernels = answer.before.kernels.iter().chain(&answer.after.kernels);
    let all = kernels.fold(provenance::here().by(Origin::Driven), Provenance::kernel);
    let all = answer.machines.iter().fold(all, Provenance::machine);
    all.seeds((0..answer.runs).map(|offset| args.seed.wrapping_add(offset)))
}

/// The whole answer: all changes with the commands that repeat them, all that has not changed, and the first difference with the state
/// of both.
fn to_text(answer: &TryAnswer, page: PageStyle) -> String {
    let mut text = head(answer);
    let changed = rows_of(answer, MetricVerdict::is_difference);
    if changed.is_empty() {
        text += "nothing has changed for sure\n";
    } else {
        text += "Changed for sure:\n\n";
        text += &table(answer, &changed, page);
        text.push('\n');
        text += &commands(&changed);
    }
    text += &unchanged(answer);
    match (&answer.difference, answer.sees_something()) {
        (Some(difference), _) => text += &told(difference, page),
        (None, true) if !answer.partial => {
            text += "\nWithout chance and costs of kernel work no event differs.\n";
        }
        _ => {}
    }
    text
}

/// The first line where it was stopped.
fn partial(answer: &TryAnswer) -> String {
    let all = answer.workloads.len() * answer.machines.len();
    match answer.partial {
        true => format!("partial: stopped after {} of {all} cases\n", answer.cases_seen()),
        false => String::new(),
    }
}

/// What is compared with what.
fn sides(answer: &TryAnswer) -> String {
    let side = |side: &PatchSideAnswer| {
        let with =
            if side.patches.is_empty() { String::new() } else { format!(" with {}", side.patches.join(" ")) };
        match side.kernels.as_slice() {
            [] => format!("{}{with}: not built yet", side.source),
            kernels => format!("{} (Linux {}){with}: {}", side.source, side.release, kernels.join(" ")),
        }
    };
    let (before, after) = (side(&answer.before), side(&answer.after));
    let tree = match &answer.before.tree {
        Some(tree) if *tree != answer.before.source => format!("tree    {tree}\n"),
        _ => String::new(),
    };
    format!("before  {before}\nafter   {after}\n{tree}")
}

fn head(answer: &TryAnswer) -> String {
    let machines = answer.machines.join(", ");
    let mut text = partial(answer);
    text += &format!("{}{} of each on each of {machines}\n\n", sides(answer), answer.runs_told());
    for (at, case) in answer.workloads.iter().enumerate() {
        let purpose = case.purpose.map_or(String::new(), |purpose| format!(": {purpose}"));
        text += &format!("W{} {}{purpose}\n", at + 1, case.workload);
    }
    text + "\n"
}

fn rows_of(answer: &TryAnswer, is: impl Fn(MetricVerdict) -> bool) -> Vec<&PatchMetricAnswer> {
    answer.rows.iter().filter(|row| is(row.verdict)).collect()
}

/// A workload's short name in the answer.
fn short(answer: &TryAnswer, workload: &str) -> String {
    let at = answer.workloads.iter().position(|case| case.workload == workload);
    at.map_or(workload.to_string(), |at| format!("W{}", at + 1))
}

fn table(answer: &TryAnswer, rows: &[&PatchMetricAnswer], page: PageStyle) -> String {
    let row = |row: &&PatchMetricAnswer| {
        let number = |value: Option<f64>| value.map_or("-".to_string(), significant);
        vec![
            short(answer, &row.workload),
            row.machine.clone(),
            row.metric.clone(),
            number(row.ratio),
            format!("{} .. {}", number(row.low), number(row.high)),
            row.verdict.words().to_string(),
            metric(&row.metric, row.before),
            metric(&row.metric, row.after),
        ]
    };
    let header = ["", "machine", "metric", "ratio", "95 % interval", "verdict", "before", "after"];
    page.table(&header, 3, &rows.iter().map(row).collect::<Vec<_>>())
}

/// The commands that repeat these rows.
fn commands(rows: &[&PatchMetricAnswer]) -> String {
    rows.iter().map(|row| format!("  {}\n", row.command)).collect::<String>() + "\n"
}

/// What has not changed, and what is not known.
fn unchanged(answer: &TryAnswer) -> String {
    let mut text = String::new();
    let percent = chosen_percent(answer.margin);
    let list = |rows: &[&PatchMetricAnswer]| {
        let names = rows
            .iter()
            .map(|row| format!("{} on {} {}", short(answer, &row.workload), row.machine, row.metric));
        names.collect::<Vec<_>>().join(", ")
    };
    for (verdict, words) in [
        (MetricVerdict::Equivalent, format!("Equal within {percent} %")),
        (MetricVerdict::Undecided, "Undecided".to_string()),
        (MetricVerdict::OneCourse, "Alike in all runs of a side, of which nothing follows".to_string()),
    ] {
        let rows = rows_of(answer, |of| of == verdict);
        if !rows.is_empty() {
            text += &format!("{words}: {}\n", list(&rows));
        }
    }
    let alike =
        answer.alike.iter().map(|case| format!("{} on {}", short(answer, &case.workload), case.machine));
    let alike = alike.collect::<Vec<_>>();
    if !answer.sees_something() && !alike.is_empty() {
        text += &format!("{NOTHING_SEEN}\n");
    } else if !alike.is_empty() {
        text += &format!("Equal event by event: {}\n", alike.join(", "));
    }
    text
}

/// The first decision that differs, with what both hold; members that differ are marked.
fn told(difference: &DifferenceAnswer, page: PageStyle) -> String {
    let DifferenceAnswer { first: FirstAnswer { command, time_ns, cpu, leads, model, .. }, state, .. } =
        difference;
    let mut text = format!(
        "\nFirst decision that differs, without chance and costs: at {} s on CPU {cpu}\n  before: {leads}\n  after: {model}\n  {command}\n\nWhat is held just before, * where it differs:\n\n",
        Ns(*time_ns)
    );
    let rows = state.iter().map(|line| {
        let mark = if line.leads == line.model { "" } else { "*" };
        vec![mark.to_string(), line.member.clone(), line.leads.clone(), line.model.clone()]
    });
    text += &page.table(&["", "", "before", "after"], 2, &rows.collect::<Vec<_>>());
    text
}
