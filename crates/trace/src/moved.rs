//! Moves the times of CPUs whose clocks stand apart, and puts the events in order again.
//!
//! Readers hand on events in the order of their stamps. Those of a CPU whose clock is ahead came too late then, so the events of the
//! others wait meanwhile: as many as there are within the difference of the clocks, and no more than fit in memory.
//!
//! Must not know: how it is found out by how much clocks stand apart, formats.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Sink, System, TextFields};

use crate::{ImportError, ImportStats, Trouble};

/// So many events wait at most; where there are more, order is lost, and that is told.
const HELD_MAX: usize = 1 << 18;

/// Reads a trace by `read` into `sink`, with `shifts` added to the times of each CPU's events, in ns by its number.
pub(crate) fn moved(
    sink: &mut dyn Sink,
    shifts: &[i64],
    read: impl FnOnce(&mut dyn Sink) -> Result<ImportStats, ImportError>,
) -> Result<ImportStats, ImportError> {
    if shifts.iter().all(|&shift| shift == 0) {
        return read(sink);
    }
    // CPUs beyond the table stay.
    let least = shifts.iter().copied().min().unwrap_or(0).min(0);
    let mut mover =
        EventMover { sink, shifts, least, held: BinaryHeap::new(), count: 0, late: 0, most: HELD_MAX };
    let mut stats = read(&mut mover)?;
    mover.hand_on(Ns::MAX);
    let moved = (0..).zip(shifts).filter(|&(_, &shift)| shift != 0);
    stats.shifted = moved.map(|(cpu, &shift)| (cpu, shift)).collect();
    if mover.late > 0 {
        stats.add(Trouble::OutOfOrder, mover.late, 0);
    }
    Ok(stats)
}

struct EventMover<'s> {
    sink: &'s mut dyn Sink,
    shifts: &'s [i64],
    /// The least that is added.
    least: i64,
    held: BinaryHeap<HeldEvent>,
    /// How many events there have been.
    count: u64,
    /// How many were handed on before it was known that none comes before them.
    late: u64,
    most: usize,
}

/// An event that waits for those before it.
struct HeldEvent {
    time: Ns,
    number: u64,
    event: Event<'static>,
    name: Box<str>,
    text: Box<str>,
}

impl HeldEvent {
    fn new(event: &Event<'_>, time: Ns, number: u64) -> HeldEvent {
        let none = TextFields::new("");
        let (kind, name, text) = match event.kind {
            EventKind::Marker { text } => (EventKind::Marker { text: "" }, "", text),
            EventKind::Kprobe { name, fields } => {
                (EventKind::Kprobe { name: "", fields: none }, name, fields.text())
            }
            EventKind::Other { name, fields } => {
                (EventKind::Other { name: "", fields: none }, name, fields.text())
            }
            EventKind::SchedProcessExec { filename, pid, old_pid } => {
                (EventKind::SchedProcessExec { filename: "", pid, old_pid }, "", filename)
            }
            // Nothing else has text.
            kind => (kind.without_text().unwrap_or(EventKind::Lost { count: None }), "", ""),
        };
        let event = Event { time, cpu: event.cpu, context: event.context, kind };
        HeldEvent { time, number, event, name: name.into(), text: text.into() }
    }

    fn hand_on(&self, sink: &mut dyn Sink) {
        let (name, text) = (&*self.name, &*self.text);
        let fields = TextFields::new(text);
        let kind = match self.event.kind {
            EventKind::Marker { .. } => EventKind::Marker { text },
            EventKind::Kprobe { .. } => EventKind::Kprobe { name, fields },
            EventKind::Other { .. } => EventKind::Other { name, fields },
            EventKind::SchedProcessExec { pid, old_pid, .. } => {
                EventKind::SchedProcessExec { filename: text, pid, old_pid }
            }
            kind => kind,
        };
        sink.event(&Event { kind, ..self.event });
    }
}

/// The earliest is the largest, as the heap gives it first; of one time the one that came first.
impl Ord for HeldEvent {
    fn cmp(&self, other: &HeldEvent) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl PartialOrd for HeldEvent {
    fn partial_cmp(&self, other: &HeldEvent) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeldEvent {
    fn eq(&self, other: &HeldEvent) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for HeldEvent {}

impl EventMover<'_> {
    /// Hands on all up to `time`.
    fn hand_on(&mut self, time: Ns) {
        while self.held.peek().is_some_and(|first| first.time <= time)
            && let Some(first) = self.held.pop()
        {
            first.hand_on(self.sink);
        }
    }
}

impl Sink for EventMover<'_> {
    fn event(&mut self, event: &Event<'_>) {
        // What a recorder noted without a time stands before all.
        if event.time == Ns::ZERO {
            return self.sink.event(event);
        }
        let shift = self.shifts.get(event.cpu.index()).copied().unwrap_or(0);
        let time = Ns(event.time.0.saturating_add_signed(shift));
        self.count += 1;
        self.held.push(HeldEvent::new(event, time, self.count));
        // No event that comes later is moved before this.
        self.hand_on(Ns(event.time.0.saturating_add_signed(self.least)));
        if self.held.len() > self.most
            && let Some(first) = self.held.pop()
        {
            self.late += 1;
            first.hand_on(self.sink);
        }
    }

    fn system(&mut self, system: &System) {
        self.sink.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.sink.allowed(pid, cpus);
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::sink_fn;

    use super::*;

    fn times(shifts: &[i64], events: &[(u64, u32)]) -> Vec<(u64, u32, String)> {
        let mut seen = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            let text = match event.kind {
                EventKind::Other { name, fields } => format!("{name} {}", fields.text()),
                EventKind::SchedProcessExec { filename, .. } => filename.to_string(),
                EventKind::Marker { text } => text.to_string(),
                kind => kind.name().to_string(),
            };
            seen.push((event.time.0, event.cpu.0, text));
        });
        moved(&mut sink, shifts, |sink| {
            for (at, &(time, cpu)) in events.iter().enumerate() {
                let (text, pid) = (at.to_string(), Pid(1));
                let kind = match at % 4 {
                    0 => EventKind::Other { name: "x", fields: TextFields::new(&text) },
                    1 => EventKind::SchedProcessExec { filename: &text, pid, old_pid: pid },
                    2 => EventKind::Marker { text: &text },
                    _ => EventKind::Lost { count: None },
                };
                sink.event(&Event::new(Ns(time), Cpu(cpu), kind));
            }
            Ok(ImportStats::default())
        })
        .expect("read");
        drop(sink);
        seen
    }

    #[test]
    fn events_are_moved_and_in_order_again_with_their_texts() {
        let events = [(0, 1), (10, 0), (20, 0), (25, 1), (26, 1), (30, 0), (31, 2)];
        let texts = |seen: Vec<(u64, u32, String)>| {
            seen.into_iter().map(|(time, cpu, text)| format!("{time} [{cpu}] {text}")).collect::<Vec<_>>()
        };
        assert_eq!(
            texts(times(&[0, -12], &events)),
            ["0 [1] x 0", "10 [0] 1", "13 [1] lost_events", "14 [1] x 4", "20 [0] 2", "30 [0] 5", "31 [2] 6"]
        );
        assert_eq!(
            texts(times(&[0, 5], &events)),
            ["0 [1] x 0", "10 [0] 1", "20 [0] 2", "30 [1] lost_events", "30 [0] 5", "31 [1] x 4", "31 [2] 6"]
        );
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut seen = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| seen.push(event.time.0));
        let held = BinaryHeap::new();
        let mut mover = EventMover {
            sink: &mut sink,
            shifts: &[0, -1000],
            least: -1000,
            held,
            count: 0,
            late: 0,
            most: 3,
        };
        let mut held_most = 0;
        for (time, cpu) in [(100, 0), (200, 0), (300, 0), (400, 0), (500, 0), (1150, 1)] {
            mover.event(&Event::new(Ns(time), Cpu(cpu), EventKind::Lost { count: None }));
            held_most = held_most.max(mover.held.len());
        }
        mover.hand_on(Ns::MAX);
        assert_eq!((held_most, mover.late), (3, 2));
        drop(sink);
        assert_eq!(seen, [100, 200, 150, 300, 400, 500]);
    }
}
