//! Events kept beyond the call that brings them, and the ways to get some.

use std::path::PathBuf;

use fairlab_event::{Event, EventKind, Sink, TextFields};
use fairlab_trace::{ImportStats, ReadOptions, ftrace_text, read_path};

/// An event whose text is its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The event with its texts emptied.
    pub event: Event<'static>,
    /// The name of a generic event.
    pub name: String,
    /// Marker, path or fields.
    pub text: String,
}

impl Kept {
    pub fn of(event: &Event<'_>) -> Kept {
        let (kind, name, text) = match event.kind {
            EventKind::Marker { text } => (EventKind::Marker { text: "" }, "", text),
            EventKind::Kprobe { name, fields } => {
                (EventKind::Kprobe { name: "", fields: TextFields::default() }, name, fields.text())
            }
            EventKind::Other { name, fields } => {
                (EventKind::Other { name: "", fields: TextFields::default() }, name, fields.text())
            }
            EventKind::SchedProcessExec { filename, pid, old_pid } => {
                (EventKind::SchedProcessExec { filename: "", pid, old_pid }, "", filename)
            }
            kind => {
                let plain = kind.without_text();
                (plain.unwrap_or_else(|| panic!("{} carries text", kind.name())), "", "")
            }
        };
        let event = Event { time: event.time, cpu: event.cpu, context: event.context, kind };
        Kept { event, name: name.to_string(), text: text.to_string() }
    }

    /// Hands the event to `sink` as it was.
    pub fn replay(&self, sink: &mut dyn Sink) {
        let (name, text) = (self.name.as_str(), self.text.as_str());
        let kind = match self.event.kind {
            EventKind::Marker { .. } => EventKind::Marker { text },
            EventKind::Kprobe { .. } => EventKind::Kprobe { name, fields: TextFields::new(text) },
            EventKind::Other { .. } => EventKind::Other { name, fields: TextFields::new(text) },
            EventKind::SchedProcessExec { pid, old_pid, .. } => {
                EventKind::SchedProcessExec { filename: text, pid, old_pid }
            }
            kind => kind,
        };
        sink.event(&Event { kind, ..self.event });
    }
}

/// Keeps all that it is given.
#[derive(Default)]
pub struct Keeper(pub Vec<Kept>);

impl Sink for Keeper {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push(Kept::of(event));
    }
}

/// Every event of `text`, which must be a trace.
pub fn read_text(text: &[u8]) -> (Vec<Kept>, ImportStats) {
    let mut keeper = Keeper::default();
    let stats = ftrace_text::read(text, &ReadOptions::default(), &mut keeper).expect("a trace");
    assert_eq!(stats.events, keeper.0.len() as u64);
    (keeper.0, stats)
}

/// A file of `testdata`.
pub fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// Every event of a recording in `testdata`, compressed or not.
/// What is to be told of a recording in `testdata`.
pub fn options_of(name: &str) -> ReadOptions {
    // A tick of its clock is 1 ns.
    let clock_hz = (name == "ftrace-7.2-probed.txt.zst").then_some(1_000_000_000);
    ReadOptions { clock_hz, ..ReadOptions::default() }
}

pub fn read_recording(name: &str) -> (Vec<Kept>, ImportStats) {
    let mut keeper = Keeper::default();
    let stats = read_path(&testdata(name), &options_of(name), &mut keeper)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    (keeper.0, stats)
}
