//! `fairlab scenario run public` and `fairlab scenario run FILE.toml`: reports that are files.

use std::path::Path;

use fairlab_lab::provenance::{Origin, Provenance};
use fairlab_lab::shell::quoted;
use fairlab_report::public::{
    self, ClaimAnswer, PublicAnswer, PublicReport, ReproductionEffort, ReproductionOutcome,
};
use serde_json::json;

use super::{check_pages, write_page};
use crate::args::{PageStyle, ScenarioRunArgs};
use crate::commands::experiment;
use crate::error::CliError;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;

/// The name of all of them.
const ALL: &str = "public";

/// Whether the command line means reports that are files.
pub fn is_meant(args: &ScenarioRunArgs) -> bool {
    args.name == ALL || args.name.ends_with(".toml") && !fairlab_report::is_scenario(Path::new(&args.name))
}

pub fn execute(args: &ScenarioRunArgs) -> Result<(), CliError> {
    refuse_options_of_scenarios(args)?;
    check_pages(args)?;
    let reports = match args.name == ALL {
        true => public::read_all(&args.reports)?,
        false => vec![public::read(Path::new(&args.name))?],
    };
    let reports = match args.warmup {
        Some(warmup) => reports.into_iter().map(|report| report.settling_for(warmup)).collect(),
        None => reports,
    };
    let exports = args.export.create()?;
    let stop = stop_on_interrupt()?;
    let mut answer = PublicAnswer { quick: args.quick, partial: false, reports: Vec::new() };
    let store = experiment::store(args.kept);
    for report in &reports {
        let progress = ProgressLine::new(&report.name);
        let show = |done| progress.show(done);
        let tell = |claim: &ClaimAnswer| progress.keep(&claim.headline());
        let jobs = experiment::jobs(args.jobs);
        let effort = ReproductionEffort {
            quick: args.quick,
            jobs,
            on_progress: &show,
            on_claim: &tell,
            store: store.as_ref(),
            stop: &stop,
        };
        let done = public::reproduce(report, &effort)?;
        answer.partial = done.partial.is_some();
        drop(progress);
        answer.reports.push(done);
        if answer.partial {
            break;
        }
    }
    let provenance = provenance_of(&reports).of_store(store.as_ref());
    write_pages(args, &answer)?;
    let text = || answer.to_text();
    let shape = (args.format, PageStyle::Fairlab);
    exports.answer("Published reports", (&provenance, &|| json!(answer)), shape, [&text; 2])?;
    let failed = |outcome| answer.count(outcome) > 0;
    match answer.partial {
        true => Err(CliError::Interrupted),
        false if failed(ReproductionOutcome::Contrary) || failed(ReproductionOutcome::NotShown) => {
            Err(CliError::No)
        }
        false => Ok(()),
    }
}

fn write_pages(args: &ScenarioRunArgs, answer: &PublicAnswer) -> Result<(), CliError> {
    if let (Some(pages), false) = (&args.pages, answer.partial) {
        let place = quoted(&pages.to_string_lossy());
        let quick = if args.quick { " --quick" } else { "" };
        let command = format!("fairlab scenario run {}{quick} --pages {place}", args.name);
        write_page(pages, "public.md", answer.to_markdown(&command))?;
    }
    Ok(())
}

fn provenance_of(reports: &[PublicReport]) -> Provenance {
    let kernels = reports.iter().flat_map(PublicReport::kernels);
    kernels.fold(provenance::here().by(Origin::Modelled), Provenance::kernel)
}

/// What belongs to the reports that are scenarios.
fn refuse_options_of_scenarios(args: &ScenarioRunArgs) -> Result<(), CliError> {
    let given = [
        (args.workload.is_some(), "--workload"),
        (!args.kernels.is_empty(), "--kernel"),
        (args.booted, "--booted"),
        (args.exact, "--exact"),
        (args.out.is_some(), "--out"),
    ];
    let Some((_, option)) = given.into_iter().find(|(given, _)| *given) else { return Ok(()) };
    let problem = format!("{option} is not for reports that are files");
    Err(CliError::bad(problem, "change the report's file instead"))
}
