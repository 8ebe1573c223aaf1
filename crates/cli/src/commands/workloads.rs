//! `fairlab workloads`: what workloads there are, and their options.

use fairlab_lab::workloads::{WORKLOADS, WorkloadKind, find};
use serde_json::json;

use crate::args::{AnswerFormat, WorkloadsCommand};
use crate::error::CliError;
use crate::output;
use crate::provenance::described;

/// Whether a workload's own help is asked for (`fairlab run schbench --help`, `-h`), which is then printed.
pub fn helped(words: &[String]) -> Result<bool, CliError> {
    let asks = words.iter().skip(1).any(|word| ["-h", "--help"].contains(&word.as_str()));
    let Some(name) = words.first().filter(|name| asks && find(name).is_ok()) else { return Ok(false) };
    let kind = find(name)?;
    output::print(&about(kind)).map(|()| true)
}

fn show(name: &str, format: AnswerFormat) -> Result<(), CliError> {
    let kind = find(name)?;
    if format == AnswerFormat::Json {
        return output::answer_json(
            &described(),
            json!({
                "schema": "fairlab/workload/1", "name": kind.name, "about": kind.about, "usage": kind.line.usage(),
            }),
        );
    }
    output::answer(&described(), &about(kind))
}

fn about(kind: &WorkloadKind) -> String {
    format!("{}: {}\n\n{}", kind.name, kind.about, kind.line.usage())
}

pub fn execute(command: WorkloadsCommand) -> Result<(), CliError> {
    match command {
        WorkloadsCommand::List(args) if args.format == AnswerFormat::Json => {
            let kinds = WORKLOADS.iter().map(|kind| json!({ "name": kind.name, "about": kind.about }));
            let kinds = kinds.collect::<Vec<_>>();
            output::answer_json(&described(), json!({ "schema": "fairlab/workloads/1", "workloads": kinds }))
        }
        WorkloadsCommand::List(_) => {
            let lines = WORKLOADS.iter().map(|kind| format!("{:<12} {}\n", kind.name, kind.about));
            output::answer(&described(), &lines.collect::<String>())
        }
        WorkloadsCommand::Show { name, format } => show(&name, format.format),
    }
}
