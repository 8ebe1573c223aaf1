//! `fairlab convert`: a trace in another format, and what of it that format cannot carry.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use fairlab_event::{ShownPath, System};
use fairlab_lab::TraceFile;
use fairlab_trace::{ImportStats, Losses, ReadOptions};
use fairlab_verify::trace_of;
use serde_json::{Value, json};

use super::trace;
use crate::args::{ConvertArgs, Format};
use crate::error::CliError;
use crate::output;
use crate::progress::remove_on_interrupt;
use crate::provenance;

pub fn execute(args: &ConvertArgs) -> Result<(), CliError> {
    let place = |path: &Path| fs::canonicalize(path).ok();
    if place(&trace_of(&args.input)).is_some_and(|input| place(&args.output) == Some(input)) {
        return Err(CliError::bad(
            format!("{} would be written over itself", ShownPath(&args.output)),
            "name another file: a copy does not carry everything",
        ));
    }
    let mut file = TraceFile::create(&args.output, args.to)?;
    remove_on_interrupt(file.building())?;
    let options = ReadOptions {
        clock_hz: args.clock_hz,
        instance: args.instance.clone(),
        allow_unreadable: args.allow_unreadable,
        ..ReadOptions::default()
    };
    let system = RefCell::<System>::default();
    let stats = trace::read(&args.input, &options, &mut file, &system)?;
    let format = file.format().name();
    let losses = file.finish()?;
    trace::warn(&args.input, &stats, &[]);
    trace::warn_of_losses(&args.output, &losses);
    let provenance = provenance::here().of_trace(&system.borrow());
    match args.format {
        Format::Text => output::answer(
            &provenance,
            &format!(
                "{}: {} events as {format}, {} of them not exactly as they were\n",
                ShownPath(&args.output),
                stats.events,
                losses.events()
            ),
        ),
        Format::Json => output::answer_json(&provenance, to_json(format, &stats, &losses)),
    }
}

fn to_json(format: &str, stats: &ImportStats, losses: &Losses) -> Value {
    let lost = losses
        .counts()
        .map(|(loss, event, count)| json!({ "loss": loss.name(), "event": event, "count": count }));
    json!({
        "schema": "fairlab/convert/1",
        "format": format,
        "events": stats.events,
        "altered": losses.events(),
        "losses": lost.collect::<Vec<_>>(),
        "left_out": losses.of_system(),
        "import": trace::import_json(stats, &[]),
    })
}
