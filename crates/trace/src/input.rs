//! Which format a byte stream is in, and reading it with the right importer.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use fairlab_event::Sink;

use crate::{ImportError, ImportStats, ftrace_text, perfdata};

/// What the user may tell a reader about a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// Ticks per second of the trace clock, for traces whose stamps are integers (`trace_clock` x86-tsc, counter).
    pub clock_hz: Option<u64>,
}

/// The formats that can be read, told apart by their first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines of text: tracefs, `trace-cmd report`, `perf script`.
    FtraceText,
    /// `perf record`'s file.
    PerfData,
}

/// Reads the trace in `path` (`-` is standard input), decompressing it when its first bytes say zstd, gzip or xz.
///
/// # Errors
/// The file cannot be opened or read, or holds no trace.
pub fn read_path(path: &Path, options: &ReadOptions, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    if path == Path::new("-") {
        return read(Box::new(io::stdin().lock()), options, sink);
    }
    read(Box::new(File::open(path)?), options, sink)
}

/// Reads a trace from `source`, decompressing it when its first bytes say zstd, gzip or xz.
///
/// # Errors
/// `source` fails, or holds no trace.
pub fn read(
    source: Box<dyn Read + '_>,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    let mut source = decompress(source)?;
    match detect(source.fill_buf()?) {
        Format::PerfData => perfdata::read(source, options, sink),
        Format::FtraceText => ftrace_text::read(source, options, sink),
    }
}

/// Large enough that system calls do not show in a profile, small against the memory that readers may use.
const BUFFER_BYTES: usize = 1 << 18;

fn decompress(source: Box<dyn Read + '_>) -> io::Result<Box<dyn BufRead + '_>> {
    let mut source = BufReader::with_capacity(BUFFER_BYTES, source);
    let start = source.fill_buf()?;
    if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, zstd::Decoder::with_buffer(source)?)));
    }
    if start.starts_with(&[0x1f, 0x8b]) {
        let decoder = flate2::bufread::MultiGzDecoder::new(source);
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder)));
    }
    if start.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
        let decoder = lzma_rust2::XzReader::new(source, true);
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder)));
    }
    Ok(Box::new(source))
}

fn detect(start: &[u8]) -> Format {
    if start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP") {
        Format::PerfData
    } else {
        Format::FtraceText
    }
}
