//! How fast Perfetto traces and Parquet tables are read: events a second, and how long the files are.
//!
//! `cargo bench -p fairlab-trace --bench tables` writes the events of `testdata/perf-hackbench.data` again and again, each time
//! later, five million in all, into a temporary file of each format, and reads that. Printed is the best of the rounds.
//! `… -- FORMAT` reads one format, once, so that its peak of memory can be looked at. `perfetto-compact` is Perfetto with switches
//! and wakings in columns, as Android records them.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use fairlab_event::{Counter, Event, EventKind, Ns, Sink, sink_fn};
use fairlab_trace::{OutputFormat, ReadOptions, TraceWriter, place_of_large_files, read_path};

const EVENTS: u64 = 5_000_000;
const ROUNDS: usize = 3;

/// The recording's events that carry no text, again and again.
fn write(sink: &mut dyn Sink) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/perf-hackbench.data");
    let (mut written, mut later) = (0, 0);
    while written < EVENTS {
        let mut last = 0;
        let mut again = sink_fn(|event: &Event<'_>| {
            if !event.kind.is_task_record() {
                last = event.time.0;
                written += 1;
                sink.event(&Event { time: Ns(event.time.0 + later), ..*event });
            }
        });
        read_path(&path, &ReadOptions::default(), &mut again).expect("a recording");
        drop(again);
        later += last;
    }
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn put_blob(bytes: &mut Vec<u8>, field: u64, blob: &[u8]) {
    put_varint(bytes, field << 3 | 2);
    put_varint(bytes, blob.len() as u64);
    bytes.extend(blob);
}

/// Columns of a bundle in the making.
#[derive(Default)]
struct Compact {
    columns: Vec<Vec<u8>>,
    names: Vec<String>,
    events: usize,
    times: [u64; 2],
}

impl Compact {
    fn put(&mut self, first: usize, time: u64, values: &[u64], name: &str) {
        self.columns.resize(13, Vec::new());
        let kind = usize::from(first > 1);
        put_varint(&mut self.columns[first], time - self.times[kind]);
        self.times[kind] = time;
        for (column, value) in (first + 1..).filter(|&column| column != 5).zip(values) {
            put_varint(&mut self.columns[column], *value);
        }
        let known = self.names.iter().position(|known| known == name).unwrap_or(self.names.len());
        if known == self.names.len() {
            self.names.push(name.to_string());
        }
        put_varint(&mut self.columns[if kind == 0 { 6 } else { 11 }], known as u64);
        self.events += 1;
    }

    /// The packet of a bundle.
    fn packet(&mut self, cpu: u64) -> Vec<u8> {
        let Compact { columns, names, .. } = std::mem::take(self);
        let mut compact = Vec::new();
        names.iter().for_each(|name| put_blob(&mut compact, 5, name.as_bytes()));
        (0..)
            .zip(&columns)
            .filter(|(_, column)| !column.is_empty())
            .for_each(|(field, column)| put_blob(&mut compact, field, column));
        let (mut bundle, mut packet, mut whole) = (vec![8, cpu as u8], Vec::new(), Vec::new());
        put_blob(&mut bundle, 4, &compact);
        put_blob(&mut packet, 1, &bundle);
        put_blob(&mut whole, 1, &packet);
        whole
    }
}

fn write_compact(path: &Path) {
    const TOGETHER: usize = 500;
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    let mut cpus: Vec<Compact> = Vec::new();
    let mut sink = sink_fn(|event: &Event<'_>| {
        let cpu = event.cpu.index();
        cpus.resize_with(cpus.len().max(cpu + 1), Compact::default);
        let time = event.time.0;
        match event.kind {
            EventKind::SchedSwitch(switch) => {
                let values = [1, switch.next_pid.0 as u64, switch.next_prio.0 as u64];
                cpus[cpu].put(1, time, &values, &switch.next_comm.to_str());
            }
            EventKind::SchedWaking(waking) => {
                let values = [waking.pid.0 as u64, waking.target_cpu.0.into(), waking.prio.0 as u64];
                cpus[cpu].put(7, time, &values, &waking.comm.to_str());
            }
            _ => return,
        }
        if cpus[cpu].events >= TOGETHER {
            file.write_all(&cpus[cpu].packet(cpu as u64)).expect("room");
        }
    });
    write(&mut sink);
    drop(sink);
    for (cpu, mut compact) in (0..).zip(cpus) {
        file.write_all(&compact.packet(cpu)).expect("room");
    }
    file.flush().expect("room");
}

fn measure(name: &str, path: PathBuf, rounds: usize) {
    let length = fs::metadata(&path).expect("a file").len();
    let read = || {
        let mut counter = Counter::default();
        let start = Instant::now();
        read_path(&path, &ReadOptions::default(), &mut counter).expect("a trace");
        (start.elapsed().as_secs_f64(), counter.events)
    };
    let best = (0..rounds).map(|_| read()).min_by(|one, other| one.0.total_cmp(&other.0));
    let (seconds, events) = best.expect("at least one round");
    let each = length as f64 / events as f64;
    println!(
        "{name:<16} {:.2} M events/s, {events} events of {each:.1} bytes",
        events as f64 / seconds / 1e6
    );
    fs::remove_file(path).expect("removed");
}

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| argument != "--bench");
    let rounds = if wanted.is_some() { 1 } else { ROUNDS };
    for name in ["perfetto", "perfetto-compact", "parquet"] {
        if wanted.as_deref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let path = place_of_large_files().join(format!("fairlab-bench-{}-{name}", std::process::id()));
        match OutputFormat::parse(name) {
            Some(format) => {
                let mut writer = TraceWriter::new(format, File::create(&path).expect("a file"));
                write(&mut writer);
                writer.finish().expect("room");
            }
            None => write_compact(&path),
        }
        measure(name, path, rounds);
    }
}
