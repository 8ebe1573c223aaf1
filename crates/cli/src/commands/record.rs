//! `fairlab record`: this host's scheduler while a command runs.

use std::sync::atomic::Ordering;

use fairlab_event::ShownPath;
use fairlab_lab::host;
use fairlab_lab::provenance::Origin;
use fairlab_lab::record::{RecordOptions, RecordOutcome, record};
use serde_json::json;

use super::trace;
use crate::args::{AnswerFormat, RecordArgs};
use crate::error::CliError;
use crate::progress::hand_on_and_put_back;
use crate::provenance::{self, this_release};
use crate::{output, tell};

pub fn execute(args: &RecordArgs) -> Result<(), CliError> {
    let (stop, signals) = hand_on_and_put_back()?;
    let options = RecordOptions {
        format: args.to,
        events: args.events.clone(),
        buffer_kb: args.buffer_kb,
        place: args.place,
        signals,
        topology: host::topology_lines(),
        ..RecordOptions::new(&args.output)
    };
    let recorded = match record(&options, &args.command, &stop) {
        Err(error) if stop.load(Ordering::Relaxed) => {
            tell!("{error}");
            return Err(CliError::Interrupted);
        }
        outcome => outcome?,
    };
    let path = ShownPath(&args.output);
    if !recorded.missing.is_empty() {
        tell!("{path}: this kernel has no {}", recorded.missing.join(", "));
    }
    if recorded.schedstats == Some(false) {
        tell!(
            "{path}: schedstats are off, so no event says how long a task waited or slept; \
             'sysctl kernel.sched_schedstats=1' switches them on"
        );
    }
    if recorded.dropped > 0 {
        let hint = "take a larger --buffer-kb";
        tell!("{path}: {} events were dropped for want of room; {hint}", recorded.dropped);
    }
    trace::warn(&args.output, &recorded.import, &[]);
    trace::warn_of_losses(&args.output, &recorded.losses);
    if recorded.left_behind > 0 {
        tell!("{path}: {} processes that the command left behind were ended", recorded.left_behind);
    }
    answer(args, &recorded)?;
    if stop.load(Ordering::Relaxed) { Err(CliError::Interrupted) } else { Ok(()) }
}

fn answer(args: &RecordArgs, recorded: &RecordOutcome) -> Result<(), CliError> {
    let (path, events) = (ShownPath(&args.output), recorded.import.events);
    let provenance = provenance::here().by(Origin::RunHere).kernel(this_release()).machine("host");
    match args.format {
        AnswerFormat::Text => {
            let probes = recorded.probes.iter().map(|(name, count)| format!(", {count} of {name}"));
            output::answer(
                &provenance,
                &format!(
                    "{path}: {events} events{}; {} ended with status {}\n",
                    probes.collect::<String>(),
                    args.command[0],
                    recorded.code()
                ),
            )
        }
        AnswerFormat::Json => output::answer_json(
            &provenance,
            json!({
                "schema": "fairlab/record/1",
                "output": args.output,
                "events": events,
                "dropped": recorded.dropped,
                "missing": recorded.missing,
                "schedstats": recorded.schedstats,
                "probes": recorded.probes,
                "status": recorded.code(),
                "left_behind": recorded.left_behind,
            }),
        ),
    }
}
