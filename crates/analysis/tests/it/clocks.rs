//! Real recordings whose CPUs' clocks are made to stand apart, and as they are.

use std::path::{Path, PathBuf};

use fairlab_analysis::clock_skew::ClockSkew;
use fairlab_event::{Event, Ns, sink_fn};
use fairlab_trace::{ReadOptions, read_path};

/// Recordings of two CPUs and more.
const RECORDINGS: [&str; 8] = [
    "trace-cmd-3.1-hackbench.dat",
    "perf-hackbench.data",
    "perf-make.data",
    "perf-mixed.data",
    "ftrace-6.6-vhost.txt.zst",
    "ftrace-5.10-forkstorm.txt.gz",
    "ftrace-7.2-probed.txt.zst",
    "ftrace-6.18-rtapp.txt.xz",
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn events(name: &str) -> Vec<Event<'static>> {
    let mut events = Vec::new();
    let mut sink = sink_fn(|event: &Event<'_>| {
        let Event { time, cpu, context, kind } = *event;
        events.extend(kind.without_text().map(|kind| Event { time, cpu, context, kind }));
    });
    let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
    read_path(&path(name), &options, &mut sink).expect("a trace");
    drop(sink);
    events
}

/// What is found when the clock of CPU 1 is ahead by so much.
fn found(events: &[Event<'static>], ahead: i64) -> ClockSkew {
    let mut events = events.to_vec();
    for event in events.iter_mut().filter(|event| event.cpu.0 == 1 && event.time > Ns::ZERO) {
        event.time = Ns(event.time.0.saturating_add_signed(ahead));
    }
    events.sort_by_key(|event| event.time);
    let mut skew = ClockSkew::default();
    events.iter().for_each(|event| skew.event(event));
    skew
}

#[test]
fn clocks_of_recordings_agree() {
    for name in RECORDINGS {
        let skew = found(&events(name), 0);
        assert_eq!(skew.apart(), [], "{name}");
        assert_eq!(skew.shifts(), [0; 0], "{name}");
    }
}

#[test]
fn a_clock_that_is_moved_is_found_and_put_back() {
    for name in ["trace-cmd-3.1-hackbench.dat", "perf-hackbench.data", "ftrace-6.18-rtapp.txt.xz"] {
        let events = events(name);
        for ahead in [5_000_000, -5_000_000, 400_000] {
            let shifts = found(&events, ahead).shifts();
            assert!(shifts.len() >= 2, "{name} {ahead}: {shifts:?}");
            let error = (shifts[1] - shifts[0] + ahead).unsigned_abs();
            // Where most wakeups go one way, it is off by what they take.
            assert!(error < 200_000, "{name} {ahead}: {shifts:?}");
        }
    }
}
