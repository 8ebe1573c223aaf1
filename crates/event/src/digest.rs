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
    pending: Box<Pending>,
}

/// Bytes that are hashed at once.
const BLOCK: usize = 8 << 10;

/// Bytes that the numbers and names of one event stay within.
const NUMBERS: usize = 1 << 10;

/// Texts of more bytes are hashed where they are.
const SHORT: usize = 64;

/// The bytes of some events.
struct Pending {
    bytes: [u8; BLOCK + NUMBERS],
    used: usize,
}

impl Pending {
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.bytes[self.used..self.used + N].copy_from_slice(bytes);
        self.used += N;
    }

    #[inline(always)]
    fn number(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    #[inline(always)]
    fn task(&mut self, comm: &Comm, pid: Pid) {
        self.put(comm.padded());
        self.number(pid.0 as u64);
    }

    fn hash_into(&mut self, state: &mut Xxh3) {
        state.update(&self.bytes[..self.used]);
        self.used = 0;
    }
}

impl Default for DigestSink {
    fn default() -> DigestSink {
        let pending = Pending { bytes: [0; BLOCK + NUMBERS], used: 0 };
        DigestSink { state: Box::new(Xxh3::new()), pending: Box::new(pending) }
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
        state.update(&self.pending.bytes[..self.pending.used]);
        Digest(state.digest128())
    }

    #[inline(always)]
    fn text(&mut self, text: &[u8]) {
        self.pending.number(text.len() as u64);
        if text.len() <= SHORT {
            let used = self.pending.used;
            self.pending.bytes[used..used + text.len()].copy_from_slice(text);
            self.pending.used = used + text.len();
        } else {
            self.long_text(text);
        }
    }

    #[cold]
    fn long_text(&mut self, text: &[u8]) {
        self.pending.hash_into(&mut self.state);
        self.state.update(text);
    }

    #[inline(always)]
    fn kind(&mut self, kind: &EventKind<'_>) {
        self.text(kind.name().as_bytes());
        match kind {
            EventKind::Kprobe { fields, .. } | EventKind::Other { fields, .. } => {
                self.text(fields.text().as_bytes());
            }
            EventKind::Marker { text } => self.text(text.as_bytes()),
            EventKind::Lost { count } => self.pending.number(count.unwrap_or(u64::MAX)),
            _ => kind.give_fields(self),
        }
    }
}

impl Sink for DigestSink {
    fn event(&mut self, event: &Event<'_>) {
        let pending = &mut *self.pending;
        pending.number(event.time.0);
        pending.number(u64::from(event.cpu.0));
        pending.task(&event.context.comm, event.context.pid);
        pending.number(event.context.tgid.0 as u64);
        self.text(event.context.flags.as_bytes());
        self.kind(&event.kind);
        if self.pending.used >= BLOCK {
            self.pending.hash_into(&mut self.state);
        }
    }
}

/// Feeds the fields of a tracepoint.
impl<'t> FieldSink<'t> for DigestSink {
    #[inline(always)]
    fn field(&mut self, _: &'static TracepointField, value: TracepointValue<'t>) {
        let pending = &mut *self.pending;
        match value {
            TracepointValue::Comm(comm) => pending.put(comm.padded()),
            TracepointValue::Pid(pid) => pending.number(pid.0 as u64),
            TracepointValue::Prio(prio) => pending.number(prio.0 as u64),
            TracepointValue::Cpu(cpu) => pending.number(cpu.0.into()),
            TracepointValue::State(state) => pending.number(state.bits().into()),
            TracepointValue::Nanoseconds(time) => pending.number(time.0),
            TracepointValue::Unsigned(value) => pending.number(value),
            TracepointValue::Signed(value) => pending.number(value as u64),
            TracepointValue::Count(count) => pending.number(count.into()),
            TracepointValue::Text(value) => self.text(value.as_bytes()),
            TracepointValue::Flag(flag) => pending.number(flag.map_or(2, u64::from)),
            TracepointValue::NanosecondsUntil(value) => {
                pending.number(value.is_some().into());
                pending.number(value.unwrap_or(0));
            }
        }
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
