//! A run's trace as a file: written beside and renamed, so that it is whole or not there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fairlab_event::{Event, Sink};
use fairlab_trace::ftrace_text::FtraceTextWriter;

use crate::LabError;

/// ftrace text under construction.
pub(crate) struct TraceFile {
    wanted: PathBuf,
    building: PathBuf,
    writer: Option<FtraceTextWriter<Output>>,
}

enum Output {
    Plain(File),
    Zstd(Box<zstd::Encoder<'static, File>>),
}

/// Suffixes that a trace's name may have, and whether they mean compression.
const SUFFIXES: [(&str, bool); 2] = [(".txt", false), (".txt.zst", true)];

/// zstd's fastest level that is not a compromise: a trace shrinks to about a tenth.
const ZSTD_LEVEL: i32 = 3;

impl TraceFile {
    /// Begins a trace that will be `path`.
    pub fn create(path: &Path) -> Result<TraceFile, LabError> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some((_, compressed)) = SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix)) else {
            let problem = format!("{} is no name for a trace", path.display());
            return Err(LabError::new(problem, "end it in .txt or .txt.zst"));
        };
        let building = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let file = File::create(&building).map_err(|error| failed(path, &error))?;
        let mut trace = TraceFile { wanted: path.to_path_buf(), building, writer: None };
        let output = match compressed {
            false => Output::Plain(file),
            true => Output::Zstd(Box::new(
                zstd::Encoder::new(file, ZSTD_LEVEL).map_err(|error| failed(path, &error))?,
            )),
        };
        trace.writer = Some(FtraceTextWriter::new(output));
        Ok(trace)
    }

    /// Gives the trace its name.
    pub fn finish(mut self) -> Result<(), LabError> {
        let written = self.writer.take().map_or(Ok(()), |writer| match writer.finish()? {
            Output::Plain(_) => Ok(()),
            Output::Zstd(encoder) => encoder.finish().map(drop),
        });
        written
            .and_then(|()| fs::rename(&self.building, &self.wanted))
            .map_err(|error| failed(&self.wanted, &error))
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
    }
}

/// A trace that was not finished leaves nothing behind.
impl Drop for TraceFile {
    fn drop(&mut self) {
        // Nothing to do about a failure here; after finish() there is nothing to remove.
        let _ = fs::remove_file(&self.building);
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Plain(file) => file.write(bytes),
            Output::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Plain(file) => file.flush(),
            Output::Zstd(encoder) => encoder.flush(),
        }
    }
}
