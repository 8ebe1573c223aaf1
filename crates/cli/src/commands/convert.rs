//! `fairlab convert`: a trace in another format, and what of it that format cannot carry.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use fairlab_analysis::selector::SelectedSink;
use fairlab_event::{ShownPath, System};
use fairlab_recording::{TraceFile, trace_of};
use fairlab_trace::{ImportStats, Trouble, WriterLosses};
use serde_json::{Value, json};

use super::trace;
use crate::args::{AnswerFormat, ConvertArgs};
use crate::error::CliError;
use crate::output;
use crate::progress::removed_on_interrupt;
use crate::provenance;
use crate::tell;

/// What stands for standard input, and for standard output.
const STANDARD: &str = "-";
const STANDARD_OUTPUT: &str = "/dev/stdout";

/// Where the trace goes, and whether the answer has to make way for it.
fn output_of(args: &ConvertArgs) -> Result<(&Path, bool), CliError> {
    if args.output != Path::new(STANDARD) {
        return Ok((&args.output, false));
    }
    if args.to.is_none() {
        return Err(CliError::bad(
            "standard output has no name that tells a format",
            "say which: --to text, trace.dat, perf.data, perfetto or parquet",
        ));
    }
    Ok((Path::new(STANDARD_OUTPUT), true))
}

pub fn execute(args: &ConvertArgs) -> Result<(), CliError> {
    let (output, is_standard) = output_of(args)?;
    let place = |path: &Path| fs::canonicalize(path).ok();
    if !is_standard && place(&trace_of(&args.input)).is_some_and(|input| place(output) == Some(input)) {
        return Err(CliError::bad(
            format!("{} would be written over itself", ShownPath(&args.output)),
            "name another file: a copy does not carry everything",
        ));
    }
    let mut file = removed_on_interrupt(|| Ok(TraceFile::create(output, args.to)?), TraceFile::building)?;
    let options = args.reading.options();
    let system = RefCell::<System>::default();
    let mut kept = SelectedSink::new(args.chosen.chosen(), &mut file);
    let stats = trace::read(&args.input, &options, &mut kept, &system)?;
    let is_whole = args.chosen.given().is_none();
    let kept = kept.kept().map_err(|nothing| trace::nothing(&args.input, &nothing))?;
    let events = if is_whole { stats.events } else { kept };
    let format = file.format().name();
    let losses = file.finish()?;
    trace::warn(&args.input, &stats, &[]);
    trace::warn_of_losses(&args.output, &losses);
    let provenance = provenance::here().of_trace(&system.borrow());
    let left_out = stats.count(Trouble::OtherTracepoint);
    let loss = match losses.events() {
        0 if left_out > 0 => format!("complete but for {left_out} {}", Trouble::OtherTracepoint.describe()),
        0 => "complete".to_string(),
        altered => format!("{altered} of them lack something that this format cannot hold"),
    };
    let answer = format!("{}: {events} events as {format}, {loss}", ShownPath(&args.output));
    match args.format {
        _ if is_standard => {
            tell!("{answer}");
            Ok(())
        }
        AnswerFormat::Text => output::answer(&provenance, &format!("{answer}\n")),
        AnswerFormat::Json => output::answer_json(&provenance, to_json(format, events, &stats, &losses)),
    }
}

fn to_json(format: &str, events: u64, stats: &ImportStats, losses: &WriterLosses) -> Value {
    let lost = losses
        .counts()
        .map(|(loss, event, count)| json!({ "loss": loss.name(), "event": event, "count": count }));
    json!({
        "schema": "fairlab/convert/1",
        "format": format,
        "events": events,
        "altered": losses.events(),
        "losses": lost.collect::<Vec<_>>(),
        "left_out": losses.of_system(),
        "import": trace::import_json(stats, &[]),
    })
}
