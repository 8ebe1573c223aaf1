//! How fast a trace.dat is read, every field of every event decoded, in how much memory, and how fast libtracecmd reads
//! the same file.
//!
//! `cargo bench -p fairlab-trace --bench tracedat` repeats a recording later and later until it has more than four
//! million events, writes these as version 6 and as compressed version 7, and reads both files in processes of their
//! own. `… -- FILE` reads FILE instead. Printed is the best of the rounds: what disturbs a round only ever makes it
//! slower. The peer is a loop in C over libtracecmd, built from `benches/tracedat/libtracecmd_loop.c` where its headers
//! are (`apt-get install gcc libtracecmd-dev libtracefs-dev`).

use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use fairlab_event::{Event, EventKind, Ns, Sink, sink_fn};
use fairlab_trace::tracedat::{self, TraceDatCompression, TraceDatOptions, TraceDatWriter};
use fairlab_trace::{ReadOptions, Severity, read_path};

const EVENTS_MIN: u64 = 4_000_000;
const ROUNDS: usize = 5;
/// The argument that makes a process read once and print what it took.
const READ_ONCE: &str = "--read-once";

/// Looks at something of every event, so that no decoding can be left out.
#[derive(Default)]
struct Look {
    sum: u64,
}

impl Sink for Look {
    fn event(&mut self, event: &Event<'_>) {
        self.sum = self.sum.wrapping_add(event.time.0) ^ u64::from(event.cpu.0);
        if let EventKind::SchedSwitch(switch) = &event.kind {
            self.sum ^= switch.next_pid.0 as u64;
        }
        black_box(event);
    }
}

/// One reading of a file.
#[derive(Clone, Copy, Debug)]
struct Reading {
    events: u64,
    seconds: f64,
    peak_mib: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.as_slice() {
        [option, file] if option == READ_ONCE => read_once(Path::new(file)),
        [] => {
            for compression in [TraceDatCompression::None, TraceDatCompression::Zstd] {
                compare(&generate(compression).expect("a generated recording"));
            }
        }
        files => files.iter().for_each(|file| compare(Path::new(file))),
    }
}

fn read_once(path: &Path) {
    let start = Instant::now();
    let mut look = Look::default();
    let file = File::open(path).expect("the file");
    let stats = tracedat::read_file(file, &ReadOptions::default(), &mut look).expect("a trace.dat");
    let seconds = start.elapsed().as_secs_f64();
    assert!(stats.worst() < Some(Severity::DataLoss), "trouble: {:?}", stats.troubles());
    black_box(look.sum);
    println!("{} {seconds} {}", stats.events, peak_mib().unwrap_or(f64::NAN));
}

/// The most memory that this process has had, from `/proc/self/status`.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? / 1024.0)
}

/// Reads the file with both, in turns.
fn compare(path: &Path) {
    let megabytes = path.metadata().expect("the file").len() as f64 / 1e6;
    println!("{} ({megabytes:.1} MB)", path.display());
    let peer = build_peer();
    if let Err(cure) = &peer {
        println!("  libtracecmd: not measured: {cure}");
    }
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let program = std::env::current_exe().expect("this program");
        ours.push(reading(Command::new(program).arg(READ_ONCE).arg(path)));
        if let Ok(program) = &peer {
            peers.push(reading(Command::new(program).arg(path)));
        }
    }
    let ours = best(&ours);
    report("fairlab", ours, megabytes);
    if !peers.is_empty() {
        let peer = best(&peers);
        report("libtracecmd", peer, megabytes);
        println!(
            "  ratio        {:.2}",
            peer.seconds / ours.seconds * ours.events as f64 / peer.events as f64
        );
    }
}

fn best(readings: &[Reading]) -> Reading {
    let fastest = readings.iter().copied().min_by(|one, other| one.seconds.total_cmp(&other.seconds));
    fastest.expect("at least one round")
}

fn report(who: &str, reading: Reading, megabytes: f64) {
    let Reading { events, seconds, peak_mib } = reading;
    println!(
        "  {who:12} {:6.2} M events/s, {:4.0} MB/s, {peak_mib:6.1} MiB at most ({events} events, best of {ROUNDS})",
        events as f64 / seconds / 1e6,
        megabytes / seconds,
    );
}

/// Runs a program that prints events, seconds and MiB.
fn reading(command: &mut Command) -> Reading {
    let output = command.output().expect("a program that runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [events, seconds, peak_mib] => Reading { events: events as u64, seconds, peak_mib },
        _ => panic!("{command:?} printed {text:?}"),
    }
}

/// Builds the peer; says what is missing otherwise.
fn build_peer() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/tracedat/libtracecmd_loop.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libtracecmd_loop");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-I/usr/include/traceevent", "-I/usr/include/tracefs", "-o"])
        .arg(&program)
        .arg(&source);
    compiler.args(["-ltracecmd", "-ltraceevent"]);
    match compiler.status() {
        Ok(status) if status.success() => Ok(program),
        _ => Err("apt-get install gcc libtracecmd-dev libtracefs-dev".to_string()),
    }
}

/// Writes a large recording: the small one again and again, each time later.
fn generate(compression: TraceDatCompression) -> io::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/trace-cmd-3.1-hackbench.dat");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tracedat-{compression:?}.dat"));
    let (mut count, mut first, mut last) = (0, Ns::MAX, Ns::ZERO);
    let mut span = sink_fn(|event: &Event<'_>| {
        if !event.kind.is_task_record() {
            (count, first, last) = (count + 1, first.min(event.time), event.time);
        }
    });
    let options = ReadOptions::default();
    read_path(&source, &options, &mut span).map_err(io::Error::other)?;
    drop(span);
    let output = BufWriter::new(File::create(&path)?);
    let mut writer = TraceDatWriter::with_options(output, TraceDatOptions { compression });
    for turn in 0..EVENTS_MIN.div_ceil(count) {
        let later = (last.0 - first.0 + 1000) * turn;
        let mut repeat = sink_fn(|event: &Event<'_>| {
            if !event.kind.is_task_record() {
                writer.event(&Event { time: Ns(event.time.0 + later), ..*event });
            }
        });
        read_path(&source, &options, &mut repeat).map_err(io::Error::other)?;
    }
    assert_eq!(writer.losses().events(), 0);
    writer.finish()?;
    Ok(path)
}
