//! Which format a byte stream is in, and reading it with the right importer.
//!
//! Formats and compressions are recognized by their first bytes, never by names. A compressed stream that is cut off or
//! damaged is read as far as it goes.
//!
//! Must not know: what the formats hold.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fairlab_event::Sink;

use crate::store::Store;
use crate::{
    ImportError, ImportStats, Trouble, chrome_json, ctf, ftrace_text, moved, parquet, perf_trace, perfdata,
    perfetto, ringbuffer, shifted_states, tracedat, unreadable,
};

/// What the user may tell a reader about a trace.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Ticks per second of the trace clock, for traces whose clock counts no nanoseconds (`trace_clock` x86-tsc, uptime).
    pub clock_hz: Option<u64>,
    /// Read only this trace instance of a trace.dat, or the lines that a text says are of this file or instance: its name, or "top" for the one without; all of them if not given.
    pub instance: Option<String>,
    /// To find out how far the clocks of CPUs stand apart, and to shift times by that. It takes two readings: whoever can, does it,
    /// and gives `cpu_shifts`.
    pub align_cpus: bool,
    /// What is to be added to the times of each CPU's events, ns, by its number.
    pub cpu_shifts: Vec<i64>,
    /// Read on where too many of the scheduler's events cannot be read; the account tells which.
    pub allow_unreadable: bool,
    /// Counts how much of the file has been read.
    pub read: BytesRead,
}

/// How many bytes of a file have been read by now, as it stands on disk: for whoever watches. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    /// Bytes by now; what is read twice counts twice.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl ReadOptions {
    /// Refuses what only a trace.dat has, for a trace that is none.
    fn check_for(&self, format: Option<InputFormat>) -> Result<(), ImportError> {
        match &self.instance {
            // A text's lines may say whose they are.
            Some(name) if !matches!(format, Some(InputFormat::TraceDat | InputFormat::FtraceText)) => {
                Err(ImportError::NoSuchInstance(format!(
                    "there is no trace instance {name}: this is no trace.dat"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The formats that can be read, recognized by their first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// Lines of text: tracefs, `trace-cmd report`, `perf script`.
    FtraceText,
    /// `perf record`'s file.
    PerfData,
    /// trace-cmd's file.
    TraceDat,
    /// A table of events.
    Parquet,
    /// Perfetto's protobuf.
    Perfetto,
}

impl InputFormat {
    /// The format of content that begins with `start`, of which sixteen bytes are enough. What has no mark of its own
    /// may be text.
    ///
    /// # Errors
    /// The content is in a format that is known and cannot be read.
    pub fn detect(start: &[u8]) -> Result<InputFormat, ImportError> {
        for (mark, fact) in UNSUPPORTED {
            if start.starts_with(mark) {
                return Err(ImportError::Unsupported((*fact).to_string()));
            }
        }
        if ctf::is_part(start) {
            return Err(ImportError::Unsupported(ctf::PART_FACT.to_string()));
        }
        if is_perfetto(start) {
            return Ok(InputFormat::Perfetto);
        }
        if start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP") {
            return Ok(InputFormat::PerfData);
        }
        if start.starts_with(tracedat::MAGIC) {
            return Ok(InputFormat::TraceDat);
        }
        if start.starts_with(parquet::MAGIC) {
            return Ok(InputFormat::Parquet);
        }
        Ok(InputFormat::FtraceText)
    }
}

/// Whether content begins as Perfetto's does: with a packet, whose first bytes are no text.
fn is_perfetto(start: &[u8]) -> bool {
    let is_binary = |byte: &u8| *byte < b' ' && !b"\t\n\r\x1b".contains(byte);
    start.first() == Some(&b'\n') && start.iter().any(is_binary)
}

/// Whether a folder is itself a trace: a copy of tracefs with each CPU's pages, what `perf record --threads` makes, or one of LTTng's.
pub fn is_trace_folder(folder: &Path) -> bool {
    ctf::folder_of(folder).is_some() || perfdata::is_folder(folder) || ringbuffer::is_raw_folder(folder)
}

/// What stands behind atrace's mark: zlib's two bytes. Without -z it is text.
const PACKED_BY_ATRACE: &str =
    "this is a packed trace of atrace; run atrace without -z, or unpack it with systrace";

/// Formats that people have and that must be turned into another first.
const UNSUPPORTED: &[(&[u8], &str)] = &[
    (b"SQLite format 3\0", "this is an SQLite database, no trace that can be read"),
    (
        b"\x07tae",
        "this is a trace of blktrace, of block devices; record the scheduler's events with trace-cmd or perf",
    ),
    (
        b"eat\x07",
        "this is a trace of blktrace, of block devices; record the scheduler's events with trace-cmd or perf",
    ),
    (b"TRACE:\n\x78\x01", PACKED_BY_ATRACE),
    (b"TRACE:\n\x78\x5e", PACKED_BY_ATRACE),
    (b"TRACE:\n\x78\x9c", PACKED_BY_ATRACE),
    (b"TRACE:\n\x78\xda", PACKED_BY_ATRACE),
    (b"SIMPLEPERF", "this is a report of simpleperf; record the scheduler's events with perf or trace-cmd"),
    (b"\x7fELF", "this is a program, no trace"),
    (b"7z\xbc\xaf\x27\x1c", "this is a 7z archive; unpack it first"),
    (b"BZh", "this is compressed with bzip2; decompress it first, or use zstd, gzip or xz"),
    (b"\x04\"M\x18", "this is compressed with lz4; decompress it first, or use zstd, gzip or xz"),
    (b"PK\x03\x04", "this is a ZIP archive; unpack it first"),
    (b"\xff\xfe", "this is text in UTF-16; turn it into UTF-8 first: iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "this is text in UTF-16; turn it into UTF-8 first: iconv -f UTF-16 -t UTF-8"),
];

/// Reads the trace in `path` (`-` is standard input), decompressing it when its first bytes say zstd, gzip or xz. A folder
/// is read as what `perf record --threads` makes, or as a copy of tracefs with each CPU's raw pages.
///
/// # Errors
/// The file cannot be opened or read, holds no trace, or too many of the scheduler's events in it cannot be read.
pub fn read_path(
    path: &Path,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    unreadable::refused(sink, options.allow_unreadable, |sink| {
        shifted_states::mended(sink, |sink| {
            moved::moved(sink, &options.cpu_shifts, |sink| read_path_as_it_is(path, options, sink))
        })
    })
}

fn read_path_as_it_is(
    path: &Path,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    if path == Path::new("-") {
        return read_as_it_is(Box::new(io::stdin().lock()), options, sink);
    }
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        options.check_for(None)?;
        if perfdata::is_folder(path) {
            return perfdata::read_folder(path, options, sink);
        }
        if let Some(folder) = ctf::folder_of(path) {
            return ctf::read_folder(&folder, options, sink);
        }
        return ringbuffer::read_raw_folder(path, options, sink);
    }
    if metadata.is_file() {
        // Where it can be, what cannot be read from beginning to end is read in place.
        let start = first_bytes(&mut file)?;
        file.rewind()?;
        if InputCompression::of(&start).is_none() {
            let format = InputFormat::detect(&start)?;
            options.check_for(Some(format))?;
            match format {
                InputFormat::PerfData => return perfdata::read_file(file, options, sink),
                InputFormat::TraceDat => return tracedat::read_file(file, options, sink),
                InputFormat::Parquet => return parquet::read(Store::of(file, &options.read)?, sink),
                InputFormat::Perfetto => return perfetto::read(Store::of(file, &options.read)?, sink),
                InputFormat::FtraceText => {}
            }
        }
    }
    read_as_it_is(Box::new(CountedFile { file, read: &options.read }), options, sink)
}

/// Reads a trace from `source`, decompressing it when its first bytes say zstd, gzip or xz.
///
/// # Errors
/// `source` fails, holds no trace, or too many of the scheduler's events in it cannot be read.
pub fn read(
    source: Box<dyn Read + '_>,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    unreadable::refused(sink, options.allow_unreadable, |sink| {
        shifted_states::mended(sink, |sink| {
            moved::moved(sink, &options.cpu_shifts, |sink| read_as_it_is(source, options, sink))
        })
    })
}

fn read_as_it_is(
    mut source: Box<dyn Read + '_>,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    let start = first_bytes(&mut source)?;
    let compression = InputCompression::of(&start);
    let source = io::Cursor::new(start).chain(source);
    let Some(compression) = compression else {
        return read_plain(source, options, sink).map(|(stats, _)| stats);
    };
    let progress = DecompressionProgress::default();
    let decoder = Decompressor { decoder: compression.decoder(source)?, compression, progress: &progress };
    let read = read_plain(decoder, options, sink);
    let Some(trouble) = progress.end.get() else { return read.map(|(stats, _)| stats) };
    match read {
        Ok((mut stats, format)) => {
            let at = match format {
                InputFormat::FtraceText => progress.lines.get() + 1,
                InputFormat::PerfData
                | InputFormat::TraceDat
                | InputFormat::Parquet
                | InputFormat::Perfetto => progress.bytes.get(),
            };
            if stats.count(trouble) == 0 {
                stats.add(trouble, 1, at);
            }
            Ok(stats)
        }
        Err(ImportError::NotATrace(fact)) => {
            let what = if trouble == Trouble::TruncatedFile { "cut off" } else { "damaged" };
            let (name, bytes) = (compression.name(), progress.bytes.get());
            Err(ImportError::NotATrace(format!("{fact} (the {name} stream is {what} after {bytes} bytes)")))
        }
        Err(error) => Err(error),
    }
}

fn read_plain(
    mut source: impl Read,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<(ImportStats, InputFormat), ImportError> {
    let start = first_bytes(&mut source)?;
    let format = InputFormat::detect(&start)?;
    options.check_for(Some(format))?;
    let mut source = io::Cursor::new(start).chain(source);
    let mut first = Vec::new();
    if format == InputFormat::FtraceText {
        source.by_ref().take(FIRST_LINES).read_to_end(&mut first)?;
    }
    let (is_of_perf_trace, is_of_chrome) = (perf_trace::is_it(&first), chrome_json::is_it(&first));
    let source = io::Cursor::new(first).chain(source);
    let source = BufReader::with_capacity(BUFFER_BYTES, source);
    let stats = match format {
        InputFormat::PerfData => perfdata::read(source, options, sink),
        InputFormat::TraceDat => tracedat::read(source, options, sink),
        InputFormat::Parquet => parquet::read(Store::spool(source)?, sink),
        InputFormat::Perfetto => perfetto::read(Store::spool(source)?, sink),
        InputFormat::FtraceText if is_of_perf_trace => perf_trace::read(source, sink),
        InputFormat::FtraceText if is_of_chrome => read_chrome(source, options, sink),
        InputFormat::FtraceText => ftrace_text::read(source, options, sink),
    }?;
    Ok((stats, format))
}

/// Reads the kernel's trace in one of Chrome.
fn read_chrome(
    source: impl BufRead,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    match chrome_json::kernel_text(source)? {
        Some(text) => ftrace_text::read(text, options, sink),
        None => Err(ImportError::Unsupported(
            "this is a trace of Chrome in JSON without the kernel's events (the string systemTraceEvents)"
                .to_string(),
        )),
    }
}

/// Large enough that system calls do not show in a profile, small against the memory that readers may use.
const BUFFER_BYTES: usize = 1 << 18;

/// Some lines of a text, by which dialects of it are distinguished.
const FIRST_LINES: u64 = 4096;

/// As many as the longest mark has.
const FIRST_BYTES: u64 = 16;

/// Up to sixteen bytes, however few a pipe hands out at a time.
fn first_bytes(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(FIRST_BYTES as usize);
    source.by_ref().take(FIRST_BYTES).read_to_end(&mut start)?;
    Ok(start)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputCompression {
    Zstd,
    Gzip,
    Xz,
}

impl InputCompression {
    fn of(start: &[u8]) -> Option<InputCompression> {
        if start.starts_with(b"\x28\xb5\x2f\xfd") {
            return Some(InputCompression::Zstd);
        }
        if start.starts_with(b"\x1f\x8b") {
            return Some(InputCompression::Gzip);
        }
        start.starts_with(b"\xfd7zXZ\0").then_some(InputCompression::Xz)
    }

    const fn name(self) -> &'static str {
        match self {
            InputCompression::Zstd => "zstd",
            InputCompression::Gzip => "gzip",
            InputCompression::Xz => "xz",
        }
    }

    fn decoder<'s>(self, source: impl Read + 's) -> io::Result<Box<dyn Read + 's>> {
        let source = BufReader::with_capacity(BUFFER_BYTES, source);
        Ok(match self {
            InputCompression::Zstd => Box::new(zstd::Decoder::with_buffer(source)?),
            InputCompression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(source)),
            InputCompression::Xz => Box::new(lzma_rust2::XzReader::new(FullReads(source), true)),
        })
    }
}

/// Fills the buffer that it is given as long as there is anything to fill it with: the xz decoder takes a short read
/// behind a stream for damage.
struct FullReads<R>(R);

impl<R: Read> Read for FullReads<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What was read before the error is handed out; the error comes again with the next read.
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// A file that tells how much of it has been read.
struct CountedFile<'o> {
    file: File,
    read: &'o BytesRead,
}

impl Read for CountedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.add(count);
        Ok(count)
    }
}

/// How far decompression came, and why it ended early.
#[derive(Default)]
struct DecompressionProgress {
    bytes: Cell<u64>,
    lines: Cell<u64>,
    end: Cell<Option<Trouble>>,
}

/// Decompresses; damage after the first bytes ends the stream instead of failing it.
struct Decompressor<'s> {
    decoder: Box<dyn Read + 's>,
    compression: InputCompression,
    progress: &'s DecompressionProgress,
}

impl Read for Decompressor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.progress.end.get().is_some() {
            return Ok(0);
        }
        match self.decoder.read(buffer) {
            Ok(count) => {
                let lines = memchr::memchr_iter(b'\n', &buffer[..count]).count() as u64;
                self.progress.bytes.set(self.progress.bytes.get() + count as u64);
                self.progress.lines.set(self.progress.lines.get() + lines);
                Ok(count)
            }
            Err(error) => self.ended(error),
        }
    }
}

impl Decompressor<'_> {
    fn ended(&self, error: io::Error) -> io::Result<usize> {
        let of_system = error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted;
        if of_system {
            return Err(error);
        }
        let cut = error.kind() == io::ErrorKind::UnexpectedEof;
        if self.progress.bytes.get() == 0 {
            let what = if cut { "cut off" } else { "damaged" };
            let name = self.compression.name();
            let fact = format!("the {name} stream is {what} before anything could be decompressed ({error})");
            return Err(io::Error::new(error.kind(), fact));
        }
        self.progress.end.set(Some(if cut { Trouble::TruncatedFile } else { Trouble::CorruptRecord }));
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use fairlab_event::Counter;

    use super::*;
    use crate::Severity;

    const LINE: &str = "ls-9 [001] d..2. 1.0: sched_wakeup: comm=ls pid=9 prio=120 target_cpu=001\n";

    fn zstd(text: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory takes everything");
        // As the zstd program does.
        encoder.include_checksum(true).expect("an option");
        encoder.write_all(text).and_then(|()| encoder.finish()).expect("memory takes everything")
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).and_then(|()| encoder.finish()).expect("memory takes everything")
    }

    fn xz() -> Vec<u8> {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ftrace-6.18-rtapp.txt.xz");
        std::fs::read(path).expect("a recording")
    }

    /// Decompressed piece by piece: a stream as small as this one is a single piece.
    fn xz_twice() -> Vec<u8> {
        [xz(), xz()].concat()
    }

    /// Text that does not compress away, so that a cut stream holds some of it.
    fn text() -> String {
        let line = |at: u64| {
            let pid = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
            format!(
                "ls-{pid} [001] d..2. {at}.000000: sched_wakeup: comm=ls pid={pid} prio=120 target_cpu=001\n"
            )
        };
        (0..50_000).map(line).collect()
    }

    fn import(source: impl Read) -> Result<ImportStats, ImportError> {
        let mut counter = Counter::default();
        let stats = read(Box::new(source), &ReadOptions::default(), &mut counter)?;
        assert_eq!(stats.events, counter.events);
        Ok(stats)
    }

    /// Hands out one byte at a time, as a slow pipe may.
    struct Trickle<'b>(&'b [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(1);
            self.0.read(&mut buffer[..count])
        }
    }

    #[test]
    fn only_a_trace_dat_has_instances() {
        let options = ReadOptions { instance: Some("x".to_string()), ..ReadOptions::default() };
        let error = read(Box::new(LINE.as_bytes()), &options, &mut ()).expect_err("no such instance");
        assert!(matches!(error, ImportError::NoSuchInstance(_)), "{error}");
        let folder = std::env::temp_dir();
        assert!(matches!(read_path(&folder, &options, &mut ()), Err(ImportError::NoSuchInstance(_))));
    }

    #[test]
    fn every_compression_is_told_by_its_first_bytes() {
        let plain = LINE.repeat(100);
        for (name, bytes, events) in [
            ("plain", plain.as_bytes().to_vec(), 100),
            ("zstd", zstd(plain.as_bytes()), 100),
            ("gzip", gzip(plain.as_bytes()), 100),
            ("xz", xz(), 3000),
            ("two zstd frames", [zstd(plain.as_bytes()), zstd(plain.as_bytes())].concat(), 200),
            ("two gzip members", [gzip(plain.as_bytes()), gzip(plain.as_bytes())].concat(), 200),
        ] {
            let stats = import(&bytes[..]).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((stats.events, stats.worst()), (events, None), "{name}");
            let stats =
                import(Trickle(&bytes)).unwrap_or_else(|error| panic!("{name} as a trickle: {error}"));
            assert_eq!((stats.events, stats.worst()), (events, None), "{name} as a trickle");
        }
    }

    #[test]
    fn a_cut_stream_is_read_as_far_as_it_goes() {
        let text = text();
        for (name, whole, events) in [
            ("zstd", zstd(text.as_bytes()), 50_000),
            ("gzip", gzip(text.as_bytes()), 50_000),
            ("xz", xz_twice(), 6000),
        ] {
            let cut = &whole[..whole.len() * 3 / 4];
            let stats = import(cut).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!((events / 3..events).contains(&stats.events), "{name}: {}", stats.events);
            let troubles = stats.troubles();
            assert_eq!(
                (troubles.len(), troubles[0].trouble),
                (1, Trouble::TruncatedFile),
                "{name}: {troubles:?}"
            );
            assert!(troubles[0].first_at.abs_diff(stats.events) < 20, "{name}: {troubles:?}");
        }
    }

    #[test]
    fn a_damaged_stream_is_read_as_far_as_it_goes() {
        let (zstd, gzip) = (zstd(text().as_bytes()), gzip(text().as_bytes()));
        for (name, mut whole) in [("zstd", zstd), ("gzip", gzip), ("xz", xz_twice())] {
            let behind = whole.len() * 3 / 5;
            whole[behind..behind + 200].fill(0xa5);
            let stats = import(&whole[..]).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!((100..=50_000).contains(&stats.events), "{name}: {}", stats.events);
            let damage = stats.count(Trouble::CorruptRecord) + stats.count(Trouble::TruncatedFile);
            assert!(damage >= 1, "{name}: {:?}", stats.troubles());
        }
    }

    #[test]
    fn a_stream_cut_before_its_first_byte_is_an_error_in_one_line() {
        for (name, whole) in [("zstd", zstd(LINE.as_bytes())), ("gzip", gzip(LINE.as_bytes())), ("xz", xz())]
        {
            for length in 6..20 {
                let error = import(&whole[..length]).expect_err(name).to_string();
                let fact = format!("the {name} stream is cut off ");
                assert!(error.contains(&fact) && !error.contains('\n'), "{length}: {error}");
            }
        }
    }

    #[test]
    fn nothing_is_no_trace() {
        assert_eq!(import(io::empty()).expect_err("nothing").to_string(), "the input is empty");
        assert_eq!(import(&zstd(b"")[..]).expect_err("nothing").to_string(), "the input is empty");
    }

    #[test]
    fn errors_of_the_system_are_errors() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(5))
            }
        }
        let bytes = zstd(text().as_bytes());
        let source = bytes[..bytes.len() / 2].chain(Broken);
        assert!(matches!(import(source), Err(ImportError::Io(error)) if error.raw_os_error() == Some(5)));
        assert!(matches!(import(Broken), Err(ImportError::Io(_))));
        let missing = read_path(Path::new("/nonexistent/trace.txt"), &ReadOptions::default(), &mut ());
        assert!(matches!(missing, Err(ImportError::Io(error)) if error.kind() == io::ErrorKind::NotFound));
    }

    #[test]
    fn how_much_of_a_file_has_been_read_is_told() {
        let path = std::env::temp_dir().join(format!("fairlab-{}-bytes-read.txt.zst", std::process::id()));
        std::fs::write(&path, zstd(text().as_bytes())).expect("written");
        let options = ReadOptions::default();
        let watched = options.read.clone();
        read_path(&path, &options, &mut ()).expect("a trace");
        let length = std::fs::metadata(&path).expect("it is there").len();
        assert!((length..=length + FIRST_BYTES).contains(&watched.get()), "{} of {length}", watched.get());
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn text_behind_the_mark_of_atrace_is_read_and_so_is_text_in_a_trace_of_chrome() {
        let header = "# tracer: nop\n#\n";
        let of_rt =
            ["TRACE:\n", header, "#    | / _-----=> need-resched-lazy\n", &LINE.replace("d..2.", "dNLh412")];
        let quoted = [header, LINE].concat().replace('\n', "\\n");
        let chrome = format!("{{\"traceEvents\":[{{\"ph\":\"X\"}}],\n\"systemTraceEvents\": \"{quoted}\"}}");
        for (text, flags, worst) in [(of_rt.concat(), "dBh42", Some(Severity::Info)), (chrome, "d..2.", None)]
        {
            let mut found = Vec::new();
            let mut keep =
                fairlab_event::sink_fn(|event| found.push(event.context.flags.as_bytes().to_vec()));
            let stats = read(Box::new(text.as_bytes()), &ReadOptions::default(), &mut keep);
            drop(keep);
            let stats = stats.expect("a trace");
            assert_eq!((stats.events, stats.worst()), (1, worst));
            assert_eq!(found, [flags.as_bytes()]);
        }
    }

    #[test]
    fn other_formats_are_named() {
        let fact = |bytes: &[u8]| match import(bytes) {
            Err(ImportError::Unsupported(fact)) => fact,
            other => panic!("{other:?}"),
        };
        assert!(fact(b"\xff\xfeb\0a\0s\0").contains("UTF-16"));
        for (mark, expected) in UNSUPPORTED {
            assert_eq!(fact(mark), *expected);
        }
        assert_eq!(
            InputFormat::detect(b"\x0a\x8a\x01\x50\x01\x0a").expect("a format"),
            InputFormat::Perfetto
        );
        assert_eq!(InputFormat::detect(b"PAR1").expect("a format"), InputFormat::Parquet);
        assert_eq!(InputFormat::detect(b"\n\n  a-1 [000] 1.").expect("a format"), InputFormat::FtraceText);
        assert!(fact(b"{\"traceEvents\":[").contains("systemTraceEvents"));
        assert!(fact(b" [\n{\"ph\":").contains("JSON"));
        let text = InputFormat::detect(b"TRACE:\n# tracer: nop").expect("a format");
        assert_eq!(text, InputFormat::FtraceText, "atrace without -z");
        assert_eq!(InputFormat::detect(b"PERFILE2\x68").expect("a format"), InputFormat::PerfData);
        assert_eq!(InputFormat::detect(b"\x17\x08Dtracing7\0\0").expect("a format"), InputFormat::TraceDat);
        assert_eq!(InputFormat::detect(b"anything").expect("a format"), InputFormat::FtraceText);
    }
}
