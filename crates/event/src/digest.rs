//! The digest of an event stream: two runs are one if and only if their digests are equal.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::{Comm, Event, EventKind, FieldSink, Pid, Sink, TracepointField, TracepointValue};

/// 128 bits over every field of every event, in order. Not cryptographic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u128);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Digests the events it is given.
///
/// Fields are fed as little-endian integers of fixed width, so the digest is equal on any machine.
pub struct DigestSink {
    state: Box<Xxh3>,
    /// What is still to be hashed: many events at once take less time than one after the other.
    pending: Vec<u8>,
}

/// Bytes that are hashed at once.
const BLOCK: usize = 8 << 10;

impl Default for DigestSink {
    fn default() -> DigestSink {
        DigestSink { state: Box::new(Xxh3::new()), pending: Vec::with_capacity(BLOCK + 512) }
    }
}

impl fmt::Debug for DigestSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DigestSink({})", self.digest())
    }
}

impl DigestSink {
    /// The digest of all events so far.
    pub fn digest(&self) -> Digest {
        let mut state = self.state.clone();
        state.update(&self.pending);
        Digest(state.digest128())
    }
}

impl Sink for DigestSink {
    fn event(&mut self, event: &Event<'_>) {
        let record = &mut self.pending;
        number(record, event.time.0);
        number(record, u64::from(event.cpu.0));
        task(record, &event.context.comm, event.context.pid);
        number(record, event.context.tgid.0 as u64);
        text(record, event.context.flags.as_bytes());
        kind(record, &event.kind);
        if record.len() >= BLOCK {
            self.state.update(record);
            record.clear();
        }
    }
}

fn number(record: &mut Vec<u8>, value: u64) {
    record.extend_from_slice(&value.to_le_bytes());
}

fn text(record: &mut Vec<u8>, bytes: &[u8]) {
    number(record, bytes.len() as u64);
    record.extend_from_slice(bytes);
}

fn task(record: &mut Vec<u8>, comm: &Comm, pid: Pid) {
    record.extend_from_slice(comm.padded());
    number(record, pid.0 as u64);
}

/// Feeds the fields of a tracepoint.
struct DigestFields<'r>(&'r mut Vec<u8>);

impl<'t> FieldSink<'t> for DigestFields<'_> {
    #[inline(always)]
    fn field(&mut self, _: &'static TracepointField, value: TracepointValue<'t>) {
        let record = &mut *self.0;
        match value {
            TracepointValue::Comm(comm) => record.extend_from_slice(comm.padded()),
            TracepointValue::Pid(pid) => number(record, pid.0 as u64),
            TracepointValue::Prio(prio) => number(record, prio.0 as u64),
            TracepointValue::Cpu(cpu) => number(record, cpu.0.into()),
            TracepointValue::State(state) => number(record, state.bits().into()),
            TracepointValue::Nanoseconds(time) => number(record, time.0),
            TracepointValue::Unsigned(value) => number(record, value),
            TracepointValue::Signed(value) => number(record, value as u64),
            TracepointValue::Count(count) => number(record, count.into()),
            TracepointValue::Text(value) => text(record, value.as_bytes()),
            TracepointValue::Flag(flag) => number(record, flag.map_or(2, u64::from)),
            TracepointValue::NanosecondsUntil(value) => {
                number(record, value.is_some().into());
                number(record, value.unwrap_or(0));
            }
        }
    }
}

fn kind(record: &mut Vec<u8>, kind: &EventKind<'_>) {
    text(record, kind.name().as_bytes());
    match kind {
        EventKind::Kprobe { fields, .. } | EventKind::Other { fields, .. } => {
            text(record, fields.text().as_bytes());
        }
        EventKind::Marker { text: marker } => text(record, marker.as_bytes()),
        EventKind::Lost { count } => number(record, count.unwrap_or(u64::MAX)),
        _ => kind.give_fields(&mut DigestFields(record)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, Ns};

    fn digest(events: &[Event<'_>]) -> Digest {
        let mut sink = DigestSink::default();
        for event in events {
            sink.event(event);
        }
        sink.digest()
    }

    #[test]
    fn any_difference_changes_the_digest() {
        let mark = |time, cpu, text| Event::new(Ns(time), Cpu(cpu), EventKind::Marker { text });
        let base = digest(&[mark(1, 0, "a"), mark(2, 0, "b")]);
        assert_eq!(base, digest(&[mark(1, 0, "a"), mark(2, 0, "b")]));
        assert_ne!(base, digest(&[mark(2, 0, "b"), mark(1, 0, "a")]));
        assert_ne!(base, digest(&[mark(1, 0, "a"), mark(2, 1, "b")]));
        assert_ne!(base, digest(&[mark(1, 0, "ab"), mark(2, 0, "")]));
    }

    #[test]
    fn the_digest_is_the_same_on_every_machine() {
        let event = Event::new(Ns(1), Cpu(2), EventKind::Lost { count: Some(3) });
        assert_eq!(digest(&[event]).to_string(), digest(&[event]).to_string());
        assert_eq!(digest(&[]).to_string(), "99aa06d3014798d86001c324468d497f");
    }
}
