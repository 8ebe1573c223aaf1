//! What a viewer is shown beside the events of a trace: how deep each runqueue is, and the worst waits with their causes.
//!
//! Must not know: how tracks are written.

use std::io::Write;

use fairlab_analysis::QueueDepth;
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_event::{Event, Sink};
use fairlab_trace::perfetto::{PerfettoWriter, Track};

/// Computes tracks from the events that go by.
pub(crate) struct Tracks {
    depth: QueueDepth,
    /// The rows of the runqueues: all of them, and each CPU's.
    queues: Option<Track>,
    cpus: Vec<Option<Track>>,
    explain: Explain,
}

/// So many of the worst waits are shown.
const WORST: usize = 20;

impl Default for Tracks {
    fn default() -> Tracks {
        Tracks {
            depth: QueueDepth::default(),
            queues: None,
            cpus: Vec::new(),
            explain: Explain::new(ExplainOptions { task: None, worst: WORST }),
        }
    }
}

impl Tracks {
    /// Takes the next event.
    pub(crate) fn event<W: Write>(&mut self, event: &Event<'_>, writer: &mut PerfettoWriter<W>) {
        self.explain.event(event);
        let Tracks { depth, queues, cpus, .. } = self;
        for (cpu, depth) in depth.event(event) {
            let group = *queues.get_or_insert_with(|| writer.group("Tasks running or waiting"));
            if cpus.len() <= cpu.index() {
                cpus.resize(cpu.index() + 1, None);
            }
            let track = *cpus[cpu.index()].get_or_insert_with(|| {
                writer.counter_track(group, &format!("CPU {cpu} runqueue"), cpu.0.into(), "tasks")
            });
            writer.counter(track, event.time, depth.into());
        }
    }

    /// Writes what is known at the end.
    pub(crate) fn finish<W: Write>(&mut self, writer: &mut PerfettoWriter<W>) {
        let explain = std::mem::take(self).explain;
        // Without switches there are no waits.
        let Ok(explanation) = explain.finish() else { return };
        if explanation.stories.is_empty() {
            return;
        }
        let group = writer.group("Worst waits for a CPU");
        for (rank, story) in (1..).zip(&explanation.stories) {
            let length = story.length().as_ms_f64();
            let track = writer.slice_track(group, &format!("{rank}: {} {length:.3} ms", story.task), rank);
            let notes = [
                ("task", story.task.to_string()),
                ("ran on CPU", story.ran_on.to_string()),
                ("story", story.to_string()),
            ];
            writer.slice(track, story.start, story.end, &format!("{} waits", story.task), &notes);
        }
    }
}
