//! How fast ftrace text is read: events and bytes a second, on one core, with every field decoded.
//!
//! `cargo bench -p fairlab-trace --bench ftrace_text [-- FILE [REPEATS]]` repeats a recording in memory until it has
//! more than two million lines, its time stamps moved on with each repetition, and reads that several times over.
//! Printed is the best of the rounds: what disturbs a round only ever makes it slower.

use std::hint::black_box;
use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;

use fairlab_event::{Event, EventKind, Sink};
use fairlab_trace::{ReadOptions, Severity, ftrace_text};

const LINES: usize = 2_000_000;

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

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let default =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ftrace-6.18-hackbench.txt.zst");
    let path = arguments.first().map_or(default, PathBuf::from);
    let rounds: usize = arguments.get(1).map_or(5, |count| count.parse().expect("REPEATS is a number"));
    let text = repeated(&recording(&path));
    let mut best: Option<(f64, u64)> = None;
    for _ in 0..rounds {
        let mut look = Look::default();
        let start = Instant::now();
        let stats = ftrace_text::read(&text[..], &ReadOptions::default(), &mut look).expect("a trace");
        let seconds = start.elapsed().as_secs_f64();
        black_box(look.sum);
        assert!(stats.worst() < Some(Severity::DataLoss), "trouble: {:?}", stats.troubles());
        if best.is_none_or(|(fastest, _)| seconds < fastest) {
            best = Some((seconds, stats.events));
        }
    }
    let (seconds, events) = best.expect("at least one round");
    println!(
        "ftrace_text: {:.2} M events/s, {:.0} MB/s ({events} events, {:.1} bytes a line, {:.0} ns an event, best of {rounds})",
        events as f64 / seconds / 1e6,
        text.len() as f64 / seconds / 1e6,
        text.len() as f64 / events as f64,
        seconds * 1e9 / events as f64,
    );
}

fn recording(path: &PathBuf) -> String {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    let read = if path.extension().is_some_and(|suffix| suffix == "zst") {
        zstd::Decoder::new(file).and_then(|mut decoder| decoder.read_to_string(&mut text))
    } else {
        std::io::BufReader::new(file).read_to_string(&mut text)
    };
    read.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text
}

/// The recording again and again, each time with stamps a little later than the last.
fn repeated(recording: &str) -> Vec<u8> {
    let lines: Vec<(&str, &str, &str)> = recording.lines().filter_map(split_at_stamp).collect();
    let stamps: Vec<u64> =
        lines.iter().map(|line| line.1.replace('.', "").parse().expect("a stamp")).collect();
    let decimals = lines[0].1.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let span = stamps.last().expect("a trace line") + 1 - stamps[0];
    let mut text = Vec::with_capacity(recording.len() * (LINES / lines.len() + 2));
    text.extend_from_slice(b"# tracer: nop\n#\n");
    for turn in 0..(LINES / lines.len() + 1) as u64 {
        for (&(before, _, after), stamp) in lines.iter().zip(&stamps) {
            let mut stamp = format!("{:0width$}", stamp + turn * span, width = decimals + 1);
            if decimals > 0 {
                stamp.insert(stamp.len() - decimals, '.');
            }
            // Padded as tracefs does: seconds to 5 digits, integers to 12.
            let stamp = format!(" {stamp:>width$}", width = if decimals > 0 { decimals + 6 } else { 12 });
            for part in [before, &stamp, after, "\n"] {
                text.extend_from_slice(part.as_bytes());
            }
        }
    }
    text
}

/// What stands before the stamp, the stamp, what stands behind it.
fn split_at_stamp(line: &str) -> Option<(&str, &str, &str)> {
    let colon = line.find(": ").filter(|_| !line.starts_with('#'))?;
    let start = line[..colon].rfind(' ')? + 1;
    let stamp = &line[start..colon];
    let is_stamp = stamp.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_stamp.then(|| (line[..start].trim_end(), stamp, &line[colon..]))
}
