//! Events on their way from a worker to the process that waits for it.
//!
//! Both ends are one program, so that the order of tracepoints is theirs; each field is written as it comes.
//!
//! Must not know: what events are for.

use fairlab_event::{
    Comm, Context, Cpu, Event, EventKind, FieldSink, FieldSource, Flags, Ns, Pid, Prio, Sink, TaskState,
    TextFields, Tracepoint, TracepointField, TracepointValue,
};

use crate::worker::Outbox;

/// Sends events; those that wait are sent when it is dropped.
pub struct EventWriter<'o> {
    outbox: &'o mut Outbox,
    bytes: Vec<u8>,
}

/// A message of events begins with this byte.
const EVENTS: u8 = 0;

/// Bytes of events that wait for each other.
const BATCH: usize = 1 << 16;

/// Stand where a tracepoint's number stands.
const KPROBE: u8 = 250;
const OTHER: u8 = 251;
const MARKER: u8 = 252;
const LOST: u8 = 253;
const ALLOWED: u8 = 254;

impl<'o> EventWriter<'o> {
    /// Sends by this outbox.
    pub fn new(outbox: &'o mut Outbox) -> EventWriter<'o> {
        EventWriter { outbox, bytes: vec![EVENTS] }
    }

    /// Sends another message, after the events before it. It begins with another byte than 0.
    pub fn send(&mut self, message: &[u8]) {
        self.flush();
        self.outbox.send(message);
    }

    /// Sends what waits.
    pub fn flush(&mut self) {
        if self.bytes.len() > 1 {
            self.outbox.send(&self.bytes);
            self.bytes.truncate(1);
        }
    }
}

impl Drop for EventWriter<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Sink for EventWriter<'_> {
    fn event(&mut self, event: &Event<'_>) {
        put_event(&mut self.bytes, event);
        if self.bytes.len() >= BATCH {
            self.flush();
        }
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.bytes.push(ALLOWED);
        self.bytes.extend(pid.0.to_le_bytes());
        self.bytes.extend((cpus.len() as u32).to_le_bytes());
        self.bytes.extend(cpus.iter().flat_map(|cpu| cpu.0.to_le_bytes()));
    }
}

/// Gives the events of a message to a sink. Returns whether it is a message of events.
pub fn read_events(message: &[u8], sink: &mut dyn Sink) -> bool {
    let Some((&EVENTS, events)) = message.split_first() else { return false };
    let mut from = WireReader { bytes: events };
    while from.one(sink).is_some() {}
    true
}

fn put_event(bytes: &mut Vec<u8>, event: &Event<'_>) {
    let place = event.kind.tracepoint().and_then(|tracepoint| {
        Tracepoint::ALL.iter().position(|&known| known == tracepoint).map(|place| place as u8)
    });
    bytes.push(place.unwrap_or(match event.kind {
        EventKind::Kprobe { .. } => KPROBE,
        EventKind::Other { .. } => OTHER,
        EventKind::Lost { .. } => LOST,
        _ => MARKER,
    }));
    let Context { comm, pid, tgid, flags } = event.context;
    bytes.extend(event.time.0.to_le_bytes());
    bytes.extend(event.cpu.0.to_le_bytes());
    bytes.extend(comm.padded());
    bytes.extend(pid.0.to_le_bytes());
    bytes.extend(tgid.0.to_le_bytes());
    put_short(bytes, flags.as_bytes());
    match event.kind {
        EventKind::Kprobe { name, fields } | EventKind::Other { name, fields } => {
            put_text(bytes, name);
            put_text(bytes, fields.text());
        }
        EventKind::Marker { text } => put_text(bytes, text),
        EventKind::Lost { count } => put_option(bytes, count),
        kind => kind.give_fields(&mut WireWriter(bytes)),
    }
}

/// At most 255 bytes.
fn put_short(bytes: &mut Vec<u8>, short: &[u8]) {
    bytes.push(short.len() as u8);
    bytes.extend(short);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn put_option(bytes: &mut Vec<u8>, number: Option<u64>) {
    bytes.push(number.is_some().into());
    bytes.extend(number.unwrap_or(0).to_le_bytes());
}

struct WireWriter<'b>(&'b mut Vec<u8>);

impl<'t> FieldSink<'t> for WireWriter<'_> {
    fn field(&mut self, _: &'static TracepointField, value: TracepointValue<'t>) {
        let bytes = &mut *self.0;
        match value {
            TracepointValue::Comm(comm) => bytes.extend(comm.padded()),
            TracepointValue::Pid(pid) => bytes.extend(pid.0.to_le_bytes()),
            TracepointValue::Prio(prio) => bytes.extend(prio.0.to_le_bytes()),
            TracepointValue::Cpu(cpu) => bytes.extend(cpu.0.to_le_bytes()),
            TracepointValue::State(state) => put_short(bytes, state.to_string().as_bytes()),
            TracepointValue::Nanoseconds(Ns(number)) | TracepointValue::Unsigned(number) => {
                bytes.extend(number.to_le_bytes());
            }
            TracepointValue::Signed(number) => bytes.extend(number.to_le_bytes()),
            TracepointValue::Count(number) => bytes.extend(number.to_le_bytes()),
            TracepointValue::Text(text) => put_text(bytes, text),
            TracepointValue::Flag(flag) => bytes.push(flag.map_or(2, u8::from)),
            TracepointValue::NanosecondsUntil(number) => put_option(bytes, number),
        }
    }
}

/// What is left to be read.
#[derive(Clone, Copy)]
struct WireReader<'t> {
    bytes: &'t [u8],
}

impl<'t> WireReader<'t> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*first)
    }

    fn slice(&mut self, length: usize) -> Option<&'t [u8]> {
        let (first, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(first)
    }

    fn short(&mut self) -> Option<&'t [u8]> {
        let [length] = self.array()?;
        self.slice(length.into())
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn string(&mut self) -> Option<&'t str> {
        let length = self.u32()? as usize;
        std::str::from_utf8(self.slice(length)?).ok()
    }

    fn name(&mut self) -> Option<Comm> {
        self.array().map(Comm::from_padded)
    }

    fn option(&mut self) -> Option<Option<u64>> {
        let [is_there] = self.array()?;
        let number = self.u64()?;
        Some((is_there == 1).then_some(number))
    }

    /// Gives the next event; `None`: there is none.
    fn one(&mut self, sink: &mut dyn Sink) -> Option<()> {
        let [kind] = self.array()?;
        if kind == ALLOWED {
            let (pid, count) = (Pid(self.i32()?), self.u32()?);
            let cpus = (0..count).map(|_| self.u32().map(Cpu)).collect::<Option<Vec<_>>>()?;
            sink.allowed(pid, &cpus);
            return Some(());
        }
        let (time, cpu) = (Ns(self.u64()?), Cpu(self.u32()?));
        let (comm, pid, tgid) = (self.name()?, Pid(self.i32()?), Pid(self.i32()?));
        let context = Context { comm, pid, tgid, flags: Flags::new(self.short()?) };
        let kind = match kind {
            KPROBE => EventKind::Kprobe { name: self.string()?, fields: TextFields::new(self.string()?) },
            OTHER => EventKind::Other { name: self.string()?, fields: TextFields::new(self.string()?) },
            MARKER => EventKind::Marker { text: self.string()? },
            LOST => EventKind::Lost { count: self.option()? },
            place => {
                let tracepoint = *Tracepoint::ALL.get(usize::from(place))?;
                let kind = tracepoint.read(*self, |kind| kind)?;
                // A source is read as a copy: what it has left is what the fields' bytes leave.
                let mut bytes = Vec::with_capacity(128);
                kind.give_fields(&mut WireWriter(&mut bytes));
                self.slice(bytes.len())?;
                kind
            }
        };
        sink.event(&Event { time, cpu, context, kind });
        Some(())
    }
}

impl<'t> FieldSource<'t> for WireReader<'t> {
    fn comm<T>(
        mut self,
        _: &'static TracepointField,
        _: &'static TracepointField,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)> {
        let comm = self.name()?;
        Some((comm, rest(self)?))
    }

    fn pid(&mut self, _: &'static TracepointField) -> Option<Pid> {
        self.i32().map(Pid)
    }

    fn prio(&mut self, _: &'static TracepointField) -> Option<Prio> {
        self.i32().map(Prio)
    }

    fn cpu(&mut self, _: &'static TracepointField) -> Option<Cpu> {
        self.u32().map(Cpu)
    }

    fn state(&mut self, _: &'static TracepointField) -> Option<TaskState> {
        TaskState::parse(self.short()?)
    }

    fn nanoseconds(&mut self, _: &'static TracepointField) -> Option<Ns> {
        self.u64().map(Ns)
    }

    fn unsigned(&mut self, _: &'static TracepointField) -> Option<u64> {
        self.u64()
    }

    fn signed(&mut self, _: &'static TracepointField) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn count(&mut self, _: &'static TracepointField) -> Option<u32> {
        self.u32()
    }

    fn text(&mut self, _: &'static TracepointField) -> Option<&'t str> {
        self.string()
    }

    fn flag(&mut self, _: &'static TracepointField) -> Option<Option<bool>> {
        let [flag] = self.array()?;
        Some((flag < 2).then_some(flag == 1))
    }

    fn nanoseconds_until(&mut self, _: &'static TracepointField) -> Option<Option<u64>> {
        self.option()
    }

    /// More events follow.
    fn end(&self, _: Tracepoint) -> Option<()> {
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{StatDelay, Switch, sink_fn};

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let (comm, pid, prio) = (Comm::from("a b"), Pid(7), Prio(120));
        let kinds = [
            EventKind::SchedSwitch(Switch {
                prev_comm: comm,
                prev_pid: pid,
                prev_prio: prio,
                prev_state: TaskState::PREEMPTED,
                next_comm: Comm::from("fifteen letters"),
                next_pid: Pid(0),
                next_prio: Prio(-1),
            }),
            EventKind::SchedStatWait(StatDelay { comm, pid, delay: Ns(u64::MAX) }),
            EventKind::SchedStatRuntime { comm, pid, runtime: Ns(3), vruntime: Some(5) },
            EventKind::SchedProcessExit { comm, pid, prio, group_dead: Some(true) },
            EventKind::SchedProcessExit { comm, pid, prio, group_dead: None },
            EventKind::Other { name: "a", fields: TextFields::new("b=1 c=2") },
            EventKind::Kprobe { name: "k", fields: TextFields::new("") },
            EventKind::Marker { text: "mark" },
            EventKind::Lost { count: None },
        ];
        let context = Context { comm, pid, tgid: Pid(3), flags: Flags::new(b"dNh2.") };
        let events = kinds.map(|kind| Event { time: Ns(1 << 40), cpu: Cpu(191), context, kind }).to_vec();
        let mut message = vec![EVENTS];
        events.iter().for_each(|event| put_event(&mut message, event));
        let (mut place, mut equal) = (0, true);
        let mut sink = sink_fn(|event: &Event<'_>| {
            equal &= *event == events[place];
            place += 1;
        });
        assert!(read_events(&message, &mut sink));
        drop(sink);
        assert!(equal && place == events.len(), "{place}");
        assert!(!read_events(b"another", &mut ()));
    }
}
