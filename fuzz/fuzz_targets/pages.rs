//! Any bytes as what two CPUs' `trace_pipe_raw` hold: an answer, never a panic, and the account says how many events were
//! handed on.

#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fairlab_event::{Counter, Cpu, Event, EventKind, Ns, Sink};
use fairlab_trace::tracedat::TraceDatWriter;
use fairlab_trace::{ReadOptions, read_path};
use libfuzzer_sys::fuzz_target;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

/// A copy of tracefs without pages.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("fairlab-fuzz-pages-{}", std::process::id()));
    put(&folder.join("events/header_page"), HEADER_PAGE.as_bytes());
    put(&folder.join("saved_cmdlines"), b"7 worker\n");
    for (name, system, format) in formats() {
        put(&folder.join(format!("events/{system}/{name}/format")), format.as_bytes());
    }
    folder
});

fn put(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, bytes).expect("a file");
}

/// The formats that Fairlab's own trace.dat has: the text from each `name:` to the end of its `print fmt:`.
fn formats() -> Vec<(String, &'static str, String)> {
    let mut writer = TraceDatWriter::new(Vec::new());
    writer.event(&Event::new(Ns(1), Cpu(0), EventKind::Marker { text: "x" }));
    let file = writer.finish().expect("memory takes everything");
    let text = String::from_utf8_lossy(&file);
    let mut formats = Vec::new();
    for piece in text.split("name: ").skip(1) {
        let (Some(name), Some(print)) = (piece.lines().next(), piece.find("print fmt:")) else { continue };
        let end = piece[print..].find('\n').map_or(piece.len(), |end| print + end + 1);
        let system = if name.starts_with("sched") { "sched" } else { "ftrace" };
        formats.push((name.to_string(), system, format!("name: {}", &piece[..end])));
    }
    assert!(formats.iter().any(|(name, ..)| name == "sched_switch"));
    formats
}

fuzz_target!(|bytes: &[u8]| {
    // Whole pages to each, but for a rest.
    let half = (bytes.len() / 2).next_multiple_of(4096).min(bytes.len());
    for (cpu, pages) in [(0, &bytes[..half]), (3, &bytes[half..])] {
        put(&FOLDER.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw")), pages);
    }
    let mut counter = Counter::default();
    if let Ok(stats) = read_path(&FOLDER, &ReadOptions::default(), &mut counter) {
        assert_eq!(stats.events, counter.events);
    }
});
