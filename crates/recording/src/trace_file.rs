//! A trace as a file: whole or not there, unless it goes through a pipe.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fairlab_event::{Event, Sink, System};
use fairlab_files::{LabError, OutputFile};
use fairlab_trace::{COMPRESSED, OutputFormat, TraceWriter, WriterLosses};

use crate::tracks::TraceTracks;

/// A trace under construction.
pub struct TraceFile {
    wanted: PathBuf,
    building: Option<PathBuf>,
    format: OutputFormat,
    writer: Option<TraceWriter<TraceOutput>>,
    /// What viewers are shown beside the events.
    tracks: TraceTracks,
}

enum TraceOutput {
    Plain(OutputFile),
    Zstd(Box<zstd::Encoder<'static, OutputFile>>),
}

/// zstd's fastest level that is not a compromise: a trace shrinks to about a tenth.
const ZSTD_LEVEL: i32 = 3;

impl TraceFile {
    /// Begins a trace that will be `path`, in `format` or in the one that the name's end tells.
    ///
    /// # Errors
    /// The name tells no format, or one that is not read when it is compressed; or the file cannot be made.
    pub fn create(path: &Path, format: Option<OutputFormat>) -> Result<TraceFile, LabError> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(format) = format.or_else(|| OutputFormat::of_path(path)) else {
            let problem = format!("{} is no name for a trace", path.display());
            let suffixes = OutputFormat::ALL.map(OutputFormat::suffix).join(", ");
            return Err(LabError::new(problem, format!("end it in one of {suffixes}; .zst may follow")));
        };
        let compressed = name.ends_with(COMPRESSED);
        if compressed && !format.may_be_compressed() {
            let problem = format!("{} files are not compressed as a whole", format.name());
            return Err(LabError::new(problem, format!("end the name in {}", format.suffix())));
        }
        let file = OutputFile::create(path).map_err(|error| failed(path, &error))?;
        let mut trace = TraceFile {
            wanted: path.to_path_buf(),
            building: file.building().map(Path::to_path_buf),
            format,
            writer: None,
            tracks: TraceTracks::default(),
        };
        let output = match compressed {
            false => TraceOutput::Plain(file),
            true => TraceOutput::Zstd(Box::new(
                zstd::Encoder::new(file, ZSTD_LEVEL).map_err(|error| failed(path, &error))?,
            )),
        };
        trace.writer = Some(TraceWriter::new(format, output));
        Ok(trace)
    }

    /// The format that is written.
    pub fn format(&self) -> OutputFormat {
        self.format
    }

    /// The file that stands for the trace until it is whole; `None` if there is none.
    pub fn building(&self) -> Option<&Path> {
        self.building.as_deref()
    }

    /// Gives the trace its name, and an account of what it does not carry.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish(mut self) -> Result<WriterLosses, LabError> {
        if let Some(TraceWriter::Perfetto(writer)) = &mut self.writer {
            self.tracks.finish(writer);
        }
        let losses = self.writer.as_ref().map(|writer| writer.losses().clone()).unwrap_or_default();
        let written = self.writer.take().map_or(Ok(()), |writer| match writer.finish()? {
            TraceOutput::Plain(file) => file.finish(),
            TraceOutput::Zstd(encoder) => encoder.finish()?.finish(),
        });
        written.map_err(|error| failed(&self.wanted, &error))?;
        Ok(losses)
    }
}

fn failed(path: &Path, error: &io::Error) -> LabError {
    LabError::new(
        format!("cannot write the trace {}: {error}", path.display()),
        "check the place and its free space",
    )
}

impl Sink for TraceFile {
    fn event(&mut self, event: &Event<'_>) {
        self.writer.event(event);
        if let Some(TraceWriter::Perfetto(writer)) = &mut self.writer {
            self.tracks.event(event, writer);
        }
    }

    fn system(&mut self, system: &System) {
        self.writer.system(system);
    }
}

impl Write for TraceOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            TraceOutput::Plain(file) => file.write(bytes),
            TraceOutput::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            TraceOutput::Plain(file) => file.flush(),
            TraceOutput::Zstd(encoder) => encoder.flush(),
        }
    }
}
