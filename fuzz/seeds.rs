//! Makes the corpus that fuzzing begins with: small traces of every format, in the folders of the targets that read them.
//!
//! `cargo run --release --bin seeds`, in this folder. Recordings in `testdata/` are seeds too, but large ones.

use std::fs;
use std::io;
use std::path::Path;

use fairlab_trace::tracedat::{TraceDatCompression, TraceDatWriter, TraceDatOptions};
use fairlab_trace::{OutputFormat, ReadOptions, TraceWriter, read_path};

/// Text of which the other formats are made; each recording is cut to its first lines.
const TEXTS: [&str; 4] =
    ["ftrace-6.18-hackbench.txt.zst", "ftrace-7.2-probed.txt.zst", "eevdf-vhost.mail.txt", "ftrace-5.10-forkstorm.txt.gz"];
/// Binary recordings that are small.
const BINARIES: [(&str, &str); 5] = [
    ("perfdata", "perf-pipe-compressed.data"),
    ("perfdata", "perf-compressed.data"),
    ("perfdata", "perf-mixed.data"),
    ("perfdata", "perf-lost.data"),
    ("perfdata", "perf-make.data"),
];
/// Folders of both versions of CTF, and a stream of theirs.
const CTF: [&str; 2] = ["perf-6.12-v1.8", "perf-6.12-v2"];
const CTF_STREAM: &str = "perf_stream_0";
/// Version 6 ends in whole pages of this size.
const PAGE_BYTES: usize = 4096;
/// Events of a small trace.
const EVENTS: u64 = 40;

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let testdata = root.join("../testdata");
    let corpus = root.join("corpus");
    for name in ["any", "ctf", "ftrace_text", "pages", "parquet", "perfdata", "tracedat"] {
        fs::create_dir_all(corpus.join(name))?;
    }
    let put = |target: &str, name: &str, bytes: &[u8]| {
        fs::write(corpus.join(target).join(name), bytes)?;
        fs::write(corpus.join("any").join(name), bytes)
    };
    for (index, name) in TEXTS.iter().enumerate() {
        let source = testdata.join(name);
        for (target, format) in [
            ("ftrace_text", OutputFormat::FtraceText),
            ("parquet", OutputFormat::Parquet),
            ("perfdata", OutputFormat::PerfData),
            ("tracedat", OutputFormat::TraceDat),
        ] {
            let mut first = First { sink: TraceWriter::new(format, Vec::new()), left: EVENTS };
            read_path(&source, &ReadOptions::default(), &mut first).map_err(io::Error::other)?;
            let bytes = first.sink.finish()?;
            put(target, &format!("{target}-{index}"), &bytes)?;
            if format == OutputFormat::TraceDat {
                // The pages of the highest CPUs stand at the end.
                let pages = bytes.len().saturating_sub(4 * PAGE_BYTES);
                fs::write(corpus.join("pages").join(format!("pages-{index}")), &bytes[pages..])?;
            }
        }
        let options = TraceDatOptions { compression: TraceDatCompression::Zstd, ..TraceDatOptions::default() };
        let mut first = First { sink: TraceDatWriter::with_options(Vec::new(), options), left: EVENTS };
        read_path(&source, &ReadOptions::default(), &mut first).map_err(io::Error::other)?;
        put("tracedat", &format!("tracedat-zstd-{index}"), &first.sink.finish()?)?;
    }
    for version in CTF {
        let folder = testdata.join("ctf").join(version);
        let description = fs::read(folder.join("metadata"))?;
        let length = u16::try_from(description.len()).map_err(io::Error::other)?.to_le_bytes();
        let stream = fs::read(folder.join(CTF_STREAM))?;
        fs::write(corpus.join("ctf").join(version), [&length[..], &description, &stream].concat())?;
    }
    for (target, name) in BINARIES {
        put(target, name, &fs::read(testdata.join(name))?)?;
    }
    Ok(())
}

/// Passes on the first events.
struct First<S> {
    sink: S,
    left: u64,
}

impl<S: fairlab_event::Sink> fairlab_event::Sink for First<S> {
    fn event(&mut self, event: &fairlab_event::Event<'_>) {
        if self.left > 0 {
            self.left -= 1;
            self.sink.event(event);
        }
    }
}
