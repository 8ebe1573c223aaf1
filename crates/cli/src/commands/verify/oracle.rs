//! `fairlab verify --against`: the model beside another kernel, call by call.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use fairlab_change::first_divergence::KernelPair;
use fairlab_change::tree_model::{CommitDifference, preempted_like};
use fairlab_event::Ns;
use fairlab_files::shell::line_of;
use fairlab_lab::answer::{DifferenceAnswer, FirstAnswer, OracleAnswer};
use fairlab_lab::kernel::{KernelNeed, origin_of};
use fairlab_lab::oracle::OraclePair;
use fairlab_lab::provenance::Origin;
use fairlab_lab::{DEFAULT_MACHINE, Kernel, RunSetting, SettingWords, machines};
use fairlab_sim::Machine;
use serde_json::json;

use crate::args::{PageStyle, VerifyArgs};
use crate::commands::workloads;
use crate::error::CliError;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;
use crate::{output, tell};

pub fn execute(args: &VerifyArgs, against: &str) -> Result<(), CliError> {
    if !args.words.is_empty() && workloads::helped(&args.words)? {
        return Ok(());
    }
    let Some(kernel) = args.kernel.as_deref() else {
        return Err(CliError::bad(
            "a workload is compared on two kernels, and --against names one",
            "name the one that follows with --kernel; a recording is replayed on that of --against alone",
        ));
    };
    let both_built = [kernel, against].into_iter().all(|name| origin_of(name) == Origin::Driven);
    let need = if both_built { KernelNeed::Seeds } else { KernelNeed::ChangeLog };
    let model = Kernel::parse_for(kernel, need, "verify --kernel")?;
    let leads = Kernel::parse(against)?;
    let setting = match args.cases {
        Some(_) => None,
        None => Some(RunSetting::of(&SettingWords {
            machine: args.machine.as_deref().unwrap_or(DEFAULT_MACHINE),
            workload: &args.words,
            warmup: Some(Ns::ZERO),
            duration: args.duration,
            exact: false,
            first_seed: args.seed,
            by_name: None,
            time: Default::default(),
        })?),
    };
    let exports = args.export.create()?;
    let stop = stop_on_interrupt()?;
    let machine = setting
        .as_ref()
        .map_or_else(|| machines::find(DEFAULT_MACHINE), |setting| Ok(setting.machine.clone()))?;
    let model = built_alike(model, &leads, &machine, &stop)?;
    let wanted = args.cases.unwrap_or_else(|| args.seeds.unwrap_or(1));
    let followed = {
        let line = ProgressLine::new("verify");
        let show = |done| line.show(done);
        match (&setting, KernelPair::of(&leads, &model, &stop)) {
            (Some(setting), Some(twins)) => twins.follow(setting, wanted, &show)?,
            (None, Some(_)) => {
                return Err(CliError::bad(
                    "--cases follows a model",
                    "name a workload for two kernels built from sources",
                ));
            }
            (setting, None) => {
                let rules = model.rules("verify --kernel")?;
                let pair = OraclePair { rules, against: &leads, progress: &show, stop: &stop };
                match setting {
                    Some(setting) => pair.follow(setting, wanted)?,
                    None => pair.follow_cases(args.seed, wanted)?,
                }
            }
        }
    };
    let on = setting.as_ref().map(|setting| (setting.machine_name.as_str(), line_of(&setting.workload)));
    let names = (model.name(), leads.name());
    let answer = OracleAnswer::new(names, on, usize::try_from(wanted).unwrap_or(usize::MAX), &followed);
    let provenance = provenance::here();
    let provenance = match &setting {
        Some(setting) => provenance.of_search([&leads, &model], setting, answer.runs),
        None => provenance.by(leads.origin()).by(model.origin()).kernel(leads.name()).kernel(model.name()),
    };
    if followed.stopped {
        tell!("stopped: {} of {} runs are done; the answer is of these alone", answer.runs, answer.wanted);
    }
    let title = format!("{} beside {}", model.name(), leads.name());
    let text = || text(&answer);
    let shape = (args.format, PageStyle::Fairlab);
    exports.answer(&title, (&provenance, &|| json!(answer)), shape, [&text; 2])?;
    if followed.stopped { Err(CliError::Interrupted) } else { Ok(()) }
}

/// The model, preempted as the tree that leads is built, where its name says nothing of that. Tells commits in which both differ.
fn built_alike(
    model: Kernel,
    leads: &Kernel,
    machine: &Machine,
    stop: &AtomicBool,
) -> Result<Kernel, CliError> {
    let (Kernel::Modelled(rules), Kernel::Source(tree)) = (&model, leads) else { return Ok(model) };
    tree.prepare(machine, &|_, _| (), stop)?;
    let difference = CommitDifference::of(rules, tree);
    if !difference.is_none() {
        let told = difference.told(tree.name(), rules.name());
        tell!("{told}: --kernel {}", difference.ended(rules.name()));
    }
    match preempted_like(rules, tree) {
        Ok(None) => Ok(model),
        Ok(Some(built)) => {
            tell!("{} is followed as {}, for it is built so", tree.name(), built.name());
            Ok(built.into())
        }
        Err(error) => {
            tell!("{}; {}", error.problem, error.hint);
            Ok(model)
        }
    }
}

fn text(answer: &OracleAnswer) -> String {
    let OracleAnswer { kernel, against, runs, .. } = answer;
    let what = match (&answer.workload, &answer.machine) {
        (Some(workload), Some(machine)) => format!("{workload} on {machine}"),
        _ => "cases by chance".to_string(),
    };
    let runs = if *runs == 1 { "1 run".to_string() } else { format!("{runs} runs") };
    let mut text = format!("{kernel} follows {against}, call by call: {what}, {runs}\n\n");
    let compared = answer.checks.iter().filter(|check| check.judged > 0);
    let row = |(name, judged, agree): (&str, u64, u64)| {
        let share = format!("{:.4} %", agree as f64 * 100.0 / judged.max(1) as f64);
        vec![name.to_string(), judged.to_string(), agree.to_string(), share]
    };
    let rows = compared.map(|check| row((check.check, check.judged, check.agree))).collect::<Vec<_>>();
    text += &output::table(&["compared", "judged", "alike", "share"], &rows);
    match &answer.difference {
        None => text += "\nno difference\n",
        Some(difference) => text += &told(answer, difference),
    }
    text
}

/// The first difference with what both hold; lines that differ are marked.
fn told(answer: &OracleAnswer, difference: &DifferenceAnswer) -> String {
    let DifferenceAnswer { first, state, .. } = difference;
    let FirstAnswer { command, time_ns, cpu, call, check, subject, leads, model } = first;
    let time = Ns(*time_ns);
    let mut text = format!(
        "\nfirst difference: at {time} s, CPU {cpu}, in {call}: {check}\n  {subject}: {leads} in {}, {model} in {}\n  again: {command}\n\n",
        answer.against, answer.kernel
    );
    let rows = state.iter().map(|line| {
        let mark = if line.leads == line.model { "" } else { "*" };
        [mark.to_string(), line.member.clone(), line.leads.clone(), line.model.clone()].to_vec()
    });
    let rows = rows.collect::<Vec<_>>();
    let _ = write!(text, "{}", output::table(&["", "holds", &answer.against, &answer.kernel], &rows));
    text
}
