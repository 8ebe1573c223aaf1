//! How fast a large `perf.data` becomes the latency table and the other answers, in how much memory, and how fast perf is.
//!
//! `cargo bench -p fairlab-analysis --bench latency_perfdata` makes a recording of four million events by repeating
//! the samples of `testdata/perf-hackbench.data` later and later, and reads it. `… -- FILE` reads FILE instead, such as
//! one that `fairlab run … --trace FILE` made. Printed is the best of the rounds: what disturbs a round only ever makes
//! it slower. The peer is perf 6.12 or later, where `scripts/with-peers` put it or on the path; older ones lose most
//! waits.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::latency::{Latency, LatencyOptions};
use fairlab_analysis::summary::{SummaryOptions, TraceSummary};
use fairlab_analysis::timehist::text::{TimehistColumns, TimehistLayout};
use fairlab_analysis::timehist::{Timehist, TimehistOptions, TimehistRow};
use fairlab_event::{Counter, Sink};
use fairlab_trace::{ReadOptions, perfdata};

const EVENTS_MIN: u64 = 4_000_000;
const ROUNDS: u32 = 5;

fn main() {
    let file = match std::env::args().skip(1).find(|argument| !argument.starts_with('-')) {
        Some(path) => PathBuf::from(path),
        None => generate().expect("a generated recording"),
    };
    let megabytes = file.metadata().expect("a file").len() as f64 / 1e6;
    println!("{} ({megabytes:.1} MB)", file.display());
    let perf = perf();
    if perf.is_none() {
        println!("perf: not measured: run this with scripts/with-peers");
    }
    let peer = |answer: &'static str| perf.as_deref().map(|perf| (perf, answer));
    measure("latency", &file, peer("latency"), || Latency::new(LatencyOptions::default()));
    println!("           peak memory {:.1} MiB", peak_mib().unwrap_or(f64::NAN));
    measure("read only", &file, None, Counter::default);
    measure("timehist", &file, peer("timehist"), list_nowhere);
    measure("summary", &file, None, || TraceSummary::new(SummaryOptions::default()));
    measure("explain", &file, None, || Explain::new(ExplainOptions::default()));
    println!("           peak memory {:.1} MiB", peak_mib().unwrap_or(f64::NAN));
}

/// A perf that knows all that is asked of it.
fn perf() -> Option<PathBuf> {
    let brought = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/bin/perf");
    let is_new = |perf: &PathBuf| {
        let Ok(output) = Command::new(perf).arg("--version").output() else { return false };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut numbers = text.split(|letter: char| !letter.is_ascii_digit()).filter(|word| !word.is_empty());
        let mut next = || numbers.next()?.parse::<u32>().ok();
        matches!((next(), next()), (Some(major), Some(minor)) if (major, minor) >= (6, 12))
    };
    [brought, PathBuf::from("perf")].into_iter().find(is_new)
}

/// Makes every line of the list and throws it away.
fn list_nowhere() -> impl Sink {
    let mut layout = TimehistLayout::new(TimehistColumns::default());
    let mut text = String::new();
    Timehist::new(TimehistOptions::default(), move |row: &TimehistRow| {
        text.clear();
        layout.row(row, &mut text);
        std::hint::black_box(&text);
    })
}

/// Reads the file in turns with the peer; prints the best of each.
#[expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn measure<S: Sink>(what: &str, path: &Path, peer: Option<(&Path, &str)>, sink: impl Fn() -> S) {
    let (mut ours, mut peers) = (Duration::MAX, Duration::MAX);
    let mut events = 0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut sink = sink();
        let file = File::open(path).expect("the file");
        let stats = perfdata::read_file(file, &ReadOptions::default(), &mut sink).expect("a perf.data");
        (ours, events) = (ours.min(start.elapsed()), stats.events);
        if let Some((perf, answer)) = peer {
            let start = Instant::now();
            let mut perf = Command::new(perf);
            perf.args(["sched", answer, "-i"]).arg(path).stdout(Stdio::null()).stderr(Stdio::null());
            assert!(perf.status().expect("perf").success(), "perf sched {answer} failed");
            peers = peers.min(start.elapsed());
        }
    }
    let rate = |time: Duration| events as f64 / time.as_secs_f64() / 1e6;
    print!("{what:10} {:6.2} M events/s", rate(ours));
    match peer {
        Some(_) => {
            let ratio = peers.as_secs_f64() / ours.as_secs_f64();
            println!(
                ", perf {:6.2} M events/s: ratio {ratio:.2} ({events} events, best of {ROUNDS})",
                rate(peers)
            );
        }
        None => println!(" ({events} events, best of {ROUNDS})"),
    }
}

/// The most memory that this process has had, from `/proc/self/status`.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? / 1024.0)
}

/// `PERF_RECORD_SAMPLE`, `PERF_RECORD_FINISHED_ROUND`.
const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;
/// Where the samples of this recording have their time: after header, IDENTIFIER, IP and TID.
const TIME_AT: usize = 32;
/// The fields of the file header that change: the size of the data.
const DATA_SIZE_AT: usize = 48;

/// Writes the large recording: same header, attrs and features, the data section again and again.
fn generate() -> io::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/perf-hackbench.data");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("latency_perfdata.data");
    let mut bytes = std::fs::read(source)?;
    let data_start = long(&bytes, 40) as usize;
    let data_end = data_start + long(&bytes, DATA_SIZE_AT) as usize;
    let repeated = repeated_records(&bytes[data_start..data_end]);
    let samples = times(&repeated).count() as u64;
    let (first, last) = (times(&repeated).min().unwrap_or(0), times(&repeated).max().unwrap_or(0));
    let copies = EVENTS_MIN.div_ceil(samples);
    let growth = (copies - 1) * repeated.len() as u64;
    put(&mut bytes, DATA_SIZE_AT, (data_end - data_start) as u64 + growth);
    let features = (0..256).filter(|bit| bytes[72 + bit / 8] & (1 << (bit % 8)) != 0).count();
    for entry in 0..features {
        let at = data_end + 16 * entry;
        let moved = long(&bytes, at) + growth;
        put(&mut bytes, at, moved);
    }
    let mut file = BufWriter::new(File::create(&path)?);
    file.write_all(&bytes[..data_end])?;
    for copy in 1..copies {
        file.write_all(&shifted(&repeated, copy * (last - first + 1_000_000)))?;
    }
    file.write_all(&bytes[data_end..])?;
    file.flush()?;
    Ok(path)
}

/// Each record's type and place.
fn records(data: &[u8]) -> impl Iterator<Item = (u32, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let header = data.get(at..at + 8)?;
        let kind = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let start = at;
        at += usize::from(u16::from_le_bytes([header[6], header[7]]));
        Some((kind, start..at))
    })
}

fn repeated_records(data: &[u8]) -> Vec<u8> {
    let kept = records(data).filter(|(kind, _)| matches!(*kind, SAMPLE | FINISHED_ROUND));
    kept.flat_map(|(_, place)| data[place].to_vec()).collect()
}

fn times(data: &[u8]) -> impl Iterator<Item = u64> {
    records(data).filter(|(kind, _)| *kind == SAMPLE).map(|(_, place)| long(data, place.start + TIME_AT))
}

fn shifted(data: &[u8], by: u64) -> Vec<u8> {
    let mut copy = data.to_vec();
    for (kind, place) in records(data) {
        if kind == SAMPLE {
            put(&mut copy, place.start + TIME_AT, long(data, place.start + TIME_AT) + by);
        }
    }
    copy
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
