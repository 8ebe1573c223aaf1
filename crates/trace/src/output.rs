//! Which format a trace is written in, and writing it with the right exporter.
//!
//! The format follows from the end of the file's name. Must not know: what the formats hold.

use std::io::{self, Write};
use std::path::Path;

use fairlab_event::{Event, Sink, System};

use crate::ftrace_text::FtraceTextWriter;
use crate::losses::WriterLosses;
use crate::parquet::ParquetWriter;
use crate::perfdata::PerfDataWriter;
use crate::perfetto::PerfettoWriter;
use crate::tracedat::TraceDatWriter;

/// The formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Lines as tracefs prints them.
    FtraceText,
    /// trace-cmd's file, which KernelShark opens too.
    TraceDat,
    /// `perf record`'s file, for `perf sched` and `perf script`.
    PerfData,
    /// Perfetto's protobuf, for ui.perfetto.dev and trace_processor.
    Perfetto,
    /// A table for DuckDB, Polars and their like.
    Parquet,
}

impl OutputFormat {
    /// All of them.
    pub const ALL: [OutputFormat; 5] = [
        OutputFormat::FtraceText,
        OutputFormat::TraceDat,
        OutputFormat::PerfData,
        OutputFormat::Perfetto,
        OutputFormat::Parquet,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            OutputFormat::FtraceText => "text",
            OutputFormat::TraceDat => "trace.dat",
            OutputFormat::PerfData => "perf.data",
            OutputFormat::Perfetto => "perfetto",
            OutputFormat::Parquet => "parquet",
        }
    }

    /// How names of its files end.
    pub const fn suffix(self) -> &'static str {
        match self {
            OutputFormat::FtraceText => ".txt",
            OutputFormat::TraceDat => ".dat",
            OutputFormat::PerfData => ".data",
            OutputFormat::Perfetto => ".pftrace",
            OutputFormat::Parquet => ".parquet",
        }
    }

    /// Whether its files are read when they are compressed as a whole.
    pub const fn may_be_compressed(self) -> bool {
        matches!(self, OutputFormat::FtraceText | OutputFormat::TraceDat | OutputFormat::PerfData)
    }

    /// The format called `name`.
    pub fn parse(name: &str) -> Option<OutputFormat> {
        OutputFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format that the end of a file's name tells, without `.zst`.
    pub fn of_path(path: &Path) -> Option<OutputFormat> {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_suffix(COMPRESSED).unwrap_or(name);
        OutputFormat::ALL.into_iter().find(|format| name.ends_with(format.suffix()))
    }
}

/// How names of compressed files end.
pub const COMPRESSED: &str = ".zst";

/// Writes events in any format.
///
/// Errors of `W` are kept and returned by [`finish`](TraceWriter::finish); what is still buffered is lost without it.
#[derive(Debug)]
pub enum TraceWriter<W: Write> {
    /// As text.
    FtraceText(FtraceTextWriter<W>),
    /// As trace.dat.
    TraceDat(Box<TraceDatWriter<W>>),
    /// As perf.data.
    PerfData(Box<PerfDataWriter<W>>),
    /// As Perfetto's protobuf.
    Perfetto(Box<PerfettoWriter<W>>),
    /// As Parquet.
    Parquet(Box<ParquetWriter<W>>),
}

impl<W: Write> TraceWriter<W> {
    /// A writer of `format` with the default options. Nothing need be buffered by `output`.
    pub fn new(format: OutputFormat, output: W) -> TraceWriter<W> {
        match format {
            OutputFormat::FtraceText => TraceWriter::FtraceText(FtraceTextWriter::new(output)),
            OutputFormat::TraceDat => TraceWriter::TraceDat(Box::new(TraceDatWriter::new(output))),
            OutputFormat::PerfData => TraceWriter::PerfData(Box::new(PerfDataWriter::new(output))),
            OutputFormat::Perfetto => TraceWriter::Perfetto(Box::new(PerfettoWriter::new(output))),
            OutputFormat::Parquet => TraceWriter::Parquet(Box::new(ParquetWriter::new(output))),
        }
    }

    /// Which events so far will not be read back exactly as they were given.
    pub fn losses(&self) -> &WriterLosses {
        match self {
            TraceWriter::FtraceText(writer) => writer.losses(),
            TraceWriter::TraceDat(writer) => writer.losses(),
            TraceWriter::PerfData(writer) => writer.losses(),
            TraceWriter::Perfetto(writer) => writer.losses(),
            TraceWriter::Parquet(writer) => writer.losses(),
        }
    }

    /// Writes what is left and gives the output back.
    ///
    /// # Errors
    /// The first error of the output, or of a temporary file.
    pub fn finish(self) -> io::Result<W> {
        match self {
            TraceWriter::FtraceText(writer) => writer.finish(),
            TraceWriter::TraceDat(writer) => writer.finish(),
            TraceWriter::PerfData(writer) => writer.finish(),
            TraceWriter::Perfetto(writer) => writer.finish(),
            TraceWriter::Parquet(writer) => writer.finish(),
        }
    }
}

impl<W: Write> Sink for TraceWriter<W> {
    fn event(&mut self, event: &Event<'_>) {
        match self {
            TraceWriter::FtraceText(writer) => writer.event(event),
            TraceWriter::TraceDat(writer) => writer.event(event),
            TraceWriter::PerfData(writer) => writer.event(event),
            TraceWriter::Perfetto(writer) => writer.event(event),
            TraceWriter::Parquet(writer) => writer.event(event),
        }
    }

    fn system(&mut self, system: &System) {
        match self {
            TraceWriter::FtraceText(writer) => writer.system(system),
            TraceWriter::TraceDat(writer) => writer.system(system),
            TraceWriter::PerfData(writer) => writer.system(system),
            TraceWriter::Perfetto(writer) => writer.system(system),
            TraceWriter::Parquet(writer) => writer.system(system),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let of = |name: &str| OutputFormat::of_path(Path::new(name)).map(OutputFormat::name);
        assert_eq!(of("a/b.txt"), Some("text"));
        assert_eq!(of("a.b.txt.zst"), Some("text"));
        assert_eq!(of("trace.dat"), Some("trace.dat"));
        assert_eq!(of("perf.data.zst"), Some("perf.data"));
        for unknown in ["perf.data.old", "txt", "x.docx", "a.txt/", ".zst", ""] {
            assert_eq!(of(unknown), if unknown == "a.txt/" { Some("text") } else { None }, "{unknown}");
        }
        for format in OutputFormat::ALL {
            assert_eq!(OutputFormat::parse(format.name()), Some(format));
            assert_eq!(of(&format!("x{}", format.suffix())), Some(format.name()));
        }
        assert_eq!(OutputFormat::parse("ctf"), None);
    }
}
