//! Reading the trace that a command is about, and saying what is wrong with it.
//!
//! Must not know: what is computed from the trace.

use std::cell::RefCell;
use std::fmt::Display;
use std::path::Path;

use clap::Args;
use fairlab_analysis::MissingEvents;
use fairlab_analysis::selector::NothingChosen;
use fairlab_event::{ShownPath, Sink, System};
use fairlab_lab::provenance::Provenance;
use fairlab_lab::read_trace;
use fairlab_recording::trace_of;
use fairlab_trace::answer::{ImportAnswer, TraceAnswer};
use fairlab_trace::{ImportStats, ReadOptions};
use serde_json::{Value, json};

use crate::args::{AnswerFormat, ReadingArgs};
use crate::error::CliError;
use crate::progress::ReadingLine;
use crate::provenance;
use crate::tell;

/// Which trace, and how the answer is printed.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// A trace: perf.data, trace.dat, ftrace text, Perfetto, Parquet, also compressed (.zst, .xz, .gz); or a folder: a
    /// recording's, or one of LTTng's (CTF); - is standard input.
    #[arg(value_name = "FILE")]
    pub file: std::path::PathBuf,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

impl TraceArgs {
    /// Feeds the trace to `sink`; what it tells of kernel and machine is in `system` before the first event.
    pub fn read(&self, sink: &mut dyn Sink, system: &RefCell<System>) -> Result<ImportStats, CliError> {
        read(&self.file, &self.reading.options(), sink, system)
    }

    /// Feeds the trace to `sink` for `command`, which answers when it has read all: a terminal shows how far it is. Also gives
    /// how the answer came about.
    pub fn read_whole(
        &self,
        command: &'static str,
        sink: &mut dyn Sink,
    ) -> Result<(ImportStats, Provenance), CliError> {
        read_whole(command, &self.file, &self.reading, sink, provenance::here())
    }
}

/// Feeds the trace in `file` to `sink` for `command`, which answers when it has read all: a terminal shows how far it is. Also gives
/// how the answer came about, which came about as `so_far` already.
pub fn read_whole(
    command: &'static str,
    file: &Path,
    reading: &ReadingArgs,
    sink: &mut dyn Sink,
    so_far: Provenance,
) -> Result<(ImportStats, Provenance), CliError> {
    let (options, system) = (reading.options(), RefCell::default());
    let _line = ReadingLine::new(command, &trace_of(file), &options.read);
    let stats = read(file, &options, sink, &system)?;
    let provenance = so_far.of_trace(&system.take()).cut_off(stats.is_cut_off());
    Ok((stats, provenance))
}

/// Feeds the trace in `file` to `sink`; what it tells of kernel and machine is in `system` before the first event.
pub fn read(
    file: &Path,
    options: &ReadOptions,
    sink: &mut dyn Sink,
    system: &RefCell<System>,
) -> Result<ImportStats, CliError> {
    Ok(read_trace::read(file, options, sink, system)?)
}

/// The error for a trace without the events that are needed.
pub fn lacking(file: &Path, missing: &MissingEvents) -> CliError {
    read_trace::lacking(file, missing).into()
}

/// The error for a trace in which nothing was chosen.
pub fn nothing(file: &Path, nothing: &NothingChosen) -> CliError {
    read_trace::nothing_of(file, nothing).into()
}

/// Says on standard error what the reader should know before trusting an answer.
pub fn warn(file: &Path, stats: &ImportStats, notices: &[String]) {
    for line in read_trace::warnings(file, stats, notices) {
        tell!("{line}");
    }
}

/// Says on standard error what a trace that was written does not carry.
pub fn warn_of_losses(file: &Path, losses: &impl Display) {
    for line in losses.to_string().lines() {
        tell!("{}: {line}", ShownPath(file));
    }
}

/// The account of the import, for programs.
pub fn import_json(stats: &ImportStats, notices: &[String]) -> Value {
    json!(ImportAnswer::of(stats, notices))
}

/// An answer with the account of the import behind it.
pub fn answer<A>(answer: A, stats: &ImportStats, notices: &[String]) -> TraceAnswer<A> {
    TraceAnswer { answer, import: ImportAnswer::of(stats, notices) }
}
