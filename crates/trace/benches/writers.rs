//! How fast each format is written: events a second on one core, and how long its files are.
//!
//! `cargo bench -p fairlab-trace --bench writers` keeps the events of `testdata/perf-hackbench.data` in memory and writes
//! them to nowhere again and again, each time later, two million in all. Printed is the best of the rounds: what disturbs
//! a round only ever makes it slower. `… -- FORMAT` writes one format, once, so that its peak of memory can be looked at.

mod recorded;

use std::io::{self, Write};
use std::time::Instant;

use fairlab_event::{Event, Ns, Sink};
use fairlab_trace::{OutputFormat, TraceWriter};

use recorded::recorded;

const EVENTS: usize = 2_000_000;
const ROUNDS: usize = 3;

/// Takes everything and counts it.
#[derive(Default)]
struct Nowhere {
    bytes: u64,
}

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Seconds, and bytes an event.
fn write(format: OutputFormat, events: &[Event<'static>]) -> (f64, f64) {
    let span = events.last().map_or(0, |last| last.time.0) - events[0].time.0 + 1;
    let turns = EVENTS.div_ceil(events.len());
    let start = Instant::now();
    let mut writer = TraceWriter::new(format, Nowhere::default());
    for turn in 0..turns as u64 {
        for event in events {
            writer.event(&Event { time: Ns(event.time.0 + turn * span), ..*event });
        }
    }
    let written = writer.finish().expect("a temporary file");
    (start.elapsed().as_secs_f64(), written.bytes as f64 / (turns * events.len()) as f64)
}

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| argument != "--bench");
    let events = recorded();
    for format in OutputFormat::ALL {
        if wanted.as_deref().is_some_and(|wanted| wanted != format.name()) {
            continue;
        }
        let rounds = if wanted.is_some() { 1 } else { ROUNDS };
        let best = (0..rounds).map(|_| write(format, &events)).min_by(|one, other| one.0.total_cmp(&other.0));
        let (seconds, bytes) = best.expect("at least one round");
        let million = EVENTS as f64 / seconds / 1e6;
        println!("{:<10} {million:.2} M events/s, {bytes:.1} bytes an event", format.name());
    }
}
