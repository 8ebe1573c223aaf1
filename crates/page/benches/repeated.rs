//! A long trace for benchmarks: the events of `testdata/perf-hackbench.data` again and again, each time later.

#[path = "../../trace/benches/recorded.rs"]
mod recorded;

use fairlab_event::{Event, Ns, Sink};
use fairlab_page::timeline::{TimelineRecorder, TraceDescription};
use fairlab_page::{PageKind, html};
use serde_json::json;

use recorded::recorded;

/// How much of a page may be numbers of the trace.
const BLOB_BYTES_MAX: usize = 17 << 20;

/// The events of a trace of at least `count`.
pub struct Repeated {
    events: Vec<Event<'static>>,
    turns: u64,
}

impl Repeated {
    pub fn new(count: usize) -> Repeated {
        let events = recorded();
        let turns = count.div_ceil(events.len()) as u64;
        Repeated { events, turns }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.events.len() as u64 * self.turns
    }

    /// The page of the trace, and what of it is left out.
    pub fn page(&self) -> (String, Option<String>) {
        let span = self.events.last().map_or(0, |last| last.time.0) - self.events[0].time.0 + 1_000;
        let mut recorder = TimelineRecorder::default();
        for turn in 0..self.turns {
            for event in &self.events {
                recorder.event(&Event { time: Ns(event.time.0 + turn * span), ..*event });
            }
        }
        let drawn = recorder.finish().expect("there are switches");
        let about = TraceDescription {
            label: "perf-hackbench.data, repeated".to_string(),
            provenance: json!({ "origin": ["recorded"], "command": "a long trace" }),
            ..TraceDescription::default()
        };
        let (trace, kept) = drawn.data(&about, BLOB_BYTES_MAX);
        let data = json!({ "traces": [trace], "align": [0], "aligned": null });
        (html(PageKind::Timeline, "A long trace", &data), kept.text())
    }
}
