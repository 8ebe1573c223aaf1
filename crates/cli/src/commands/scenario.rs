//! `fairlab scenario`: published reports, each reproduced by one command.

mod public;

use std::path::Path;

use fairlab_event::ShownPath;
use fairlab_lab::OutputFolder;
use fairlab_lab::provenance::{Origin, Provenance};
use fairlab_lab::shell::quoted;
use fairlab_report::{
    self as scenario, AboutAnswer, Scenario, ScenarioContext, ScenarioReport, ScenariosAnswer, Small,
    UserReplacement,
};
use serde_json::{Value, json};

use super::{compare, experiment};
use crate::args::{AnswerFormat, ScenarioCommand, ScenarioRunArgs};
use crate::error::CliError;
use crate::output;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance::{self, described};

pub fn execute(command: ScenarioCommand) -> Result<(), CliError> {
    match command {
        ScenarioCommand::List(format) => list(format.format),
        ScenarioCommand::Show { name, format } => show(&name, format.format),
        ScenarioCommand::Keys => {
            output::print(&format!("{}\n{}", scenario::public::KEYS, scenario::STORY_KEYS))
        }
        ScenarioCommand::Run(args) => run(&args),
    }
}

fn list(format: AnswerFormat) -> Result<(), CliError> {
    match format {
        AnswerFormat::Json => output::answer_json(&described(), json!(ScenariosAnswer::all())),
        AnswerFormat::Text => {
            let line = |scenario: &Scenario| format!("{:<22}{}\n", scenario.name, scenario.title);
            output::answer(&described(), &scenario::all().iter().map(line).collect::<String>())
        }
    }
}

fn show(name: &str, format: AnswerFormat) -> Result<(), CliError> {
    let scenario = scenario::find(name)?;
    if format == AnswerFormat::Json {
        return output::answer_json(&described(), json!(AboutAnswer { about: scenario.about() }));
    }
    let [one, other] = &scenario.pair;
    let Small { workload, machine, .. } = &scenario.small;
    let small = format!(
        "a kernel that runs, beside them, under '{workload}' on {machine}:\n         fairlab scenario run {name} --kernel qemu:bookworm\n"
    );
    output::answer(
        &described(),
        &format!(
            "{}: {}\nreport   {}\ncommit   {}\nrun      fairlab scenario run {} --quick\nanother workload on its kernels and machine:\n         \
         fairlab scenario run {} --workload 'WORKLOAD'\n         \
         fairlab compare WORKLOAD --kernel {one} --kernel {other} --machine {}\n{small}",
            scenario.name,
            scenario.title,
            scenario.source,
            scenario.commit,
            scenario.name,
            scenario.name,
            scenario.machine
        ),
    )
}

fn run(args: &ScenarioRunArgs) -> Result<(), CliError> {
    if public::is_meant(args) {
        return public::execute(args);
    }
    if let (false, false, Some(taken)) = (args.kernels.is_empty(), args.reported, pages_or_folder(args)) {
        let problem = format!("--kernel alone writes no {taken}");
        return Err(CliError::bad(
            problem,
            "add --reported, which makes the report's own run on these kernels",
        ));
    }
    if !args.kernels.is_empty() && !args.reported {
        let experiment = named(&args.name)?.beside(&args.kernels, &instead(args))?;
        return compare::plain(experiment, (args.jobs, args.kept), args.format, args.export.create()?);
    }
    let chosen = match args.name.as_str() {
        "all" => scenario::all().to_vec(),
        name => vec![named(name)?],
    };
    check_pages(args)?;
    let folder = args.out.as_deref().map(OutputFolder::create).transpose()?;
    let exports = args.export.create()?;
    let stop = stop_on_interrupt()?;
    let jobs = experiment::jobs(args.jobs);
    let store = experiment::store(args.kept);
    let (mut answers, mut texts, mut pictures, mut all_hold) = (Vec::new(), String::new(), Vec::new(), true);
    for scenario in chosen {
        let progress = ProgressLine::new(&scenario.name);
        let show = |done| progress.show(done);
        let bench = ScenarioContext {
            quick: args.quick,
            exact: args.exact,
            warmup: args.warmup,
            jobs,
            store: store.as_ref(),
            on_progress: &show,
            stop: &stop,
            longest: None,
        };
        let report = match scenario.setting(&instead(args))? {
            Some(setting) => scenario.run_own(&bench, &setting)?,
            None if args.reported => scenario.run_reported(&bench, &args.kernels)?,
            None if args.booted => scenario.run_booted(&bench)?,
            None => scenario.run(&bench)?,
        };
        let Some(report) = report else { return Err(CliError::Interrupted) };
        drop(progress);
        all_hold &= report.holds();
        let provenance = provenance_of(&report).of_store(store.as_ref());
        keep(args, folder.as_ref(), &report, &provenance)?;
        answers.push(output::with_provenance(&provenance, report.to_json()));
        let text = report.to_text();
        if args.format == AnswerFormat::Text {
            output::answer(&provenance, &text)?;
        }
        texts += &text;
        pictures.extend(report.pictures().into_iter().map(|(_, picture)| json!(picture)));
    }
    if let Some(folder) = folder {
        folder.finish()?;
    }
    let answer = one_or_all(args, answers);
    let parts = json!({ "text": texts, "pictures": pictures });
    exports.write_with(&format!("Scenario {}", args.name), || (answer.clone(), parts))?;
    if args.format == AnswerFormat::Json {
        output::print_json(&answer)?;
    }
    if all_hold { Ok(()) } else { Err(CliError::No) }
}

/// The scenario of a name or of a file.
fn named(name: &str) -> Result<Scenario, CliError> {
    Ok(match name.ends_with(".toml") {
        true => scenario::read(Path::new(name))?,
        false => scenario::find(name)?.clone(),
    })
}

/// The answer of the scenario that was asked for, or of all.
fn one_or_all(args: &ScenarioRunArgs, mut answers: Vec<Value>) -> Value {
    if answers.len() == 1 && args.name != "all" {
        return answers.pop().unwrap_or(Value::Null);
    }
    let all = json!({ "schema": "fairlab/scenarios/1", "scenarios": answers });
    output::with_provenance(&provenance::here().by(Origin::Modelled), all)
}

/// A folder for pages is there before anything runs.
fn check_pages(args: &ScenarioRunArgs) -> Result<(), CliError> {
    let absent = args.pages.as_deref().filter(|pages| !pages.is_dir());
    let refusal = |pages: &Path| {
        CliError::bad(format!("{} is no folder", ShownPath(pages)), "name one for --pages that is there")
    };
    absent.map_or(Ok(()), |pages| Err(refusal(pages)))
}

/// The runs of a report, whose kernels are modelled or booted.
fn provenance_of(report: &ScenarioReport) -> Provenance {
    report.runs.iter().fold(provenance::here(), |all, (_, run)| {
        all.by(run.origin()).kernel(&run.kernel).machine(&run.machine).seeds([run.seed])
    })
}

/// What is asked to be written beside the answer.
fn pages_or_folder(args: &ScenarioRunArgs) -> Option<&'static str> {
    let pages = args.pages.as_ref().map(|_| "page");
    pages.or_else(|| args.out.as_ref().map(|_| "folder"))
}

/// What stands in the place of the report's own runs.
fn instead(args: &ScenarioRunArgs) -> UserReplacement<'_> {
    UserReplacement {
        workload: args.workload.as_deref(),
        machine: args.machine.as_deref(),
        duration: args.duration,
        quick: args.quick,
    }
}

/// Writes what was asked for beside the printed answer.
fn keep(
    args: &ScenarioRunArgs,
    folder: Option<&OutputFolder>,
    report: &ScenarioReport,
    provenance: &Provenance,
) -> Result<(), CliError> {
    if let Some(folder) = folder {
        report.write(folder, &output::with_provenance(provenance, report.to_json()))?;
    }
    let Some(pages) = &args.pages else { return Ok(()) };
    let quick = if args.quick { " --quick" } else { "" };
    let place = quoted(&pages.to_string_lossy());
    let kernels =
        args.kernels.iter().map(|kernel| format!(" --kernel {}", quoted(kernel))).collect::<String>();
    let reported = if args.reported { " --reported" } else { "" };
    let command = format!("fairlab scenario run {}{quick}{reported}{kernels} --pages {place}", report.name);
    for (name, picture) in report.pictures() {
        write_page(pages, &format!("{name}.json"), format!("{:#}\n", json!(picture)))?;
    }
    write_page(pages, &format!("{}.md", report.page), report.to_markdown(&command))
}

fn write_page(pages: &Path, name: &str, text: String) -> Result<(), CliError> {
    let path = pages.join(name);
    fairlab_lab::write_whole(&path, text).map_err(|error| {
        CliError::bad(
            format!("cannot write {}: {error}", ShownPath(&path)),
            "name a folder for --pages that is there",
        )
    })
}
