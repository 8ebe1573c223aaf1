//! The digest of an event stream: two runs are the same run if and only if their digests are equal.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::{Comm, Event, EventKind, Pid, Sink, StatDelay, Wakeup};

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
/// Fields are fed as little-endian integers of fixed width, so the digest is the same on any machine.
pub struct DigestSink {
    state: Box<Xxh3>,
    record: Vec<u8>,
}

impl Default for DigestSink {
    fn default() -> DigestSink {
        DigestSink { state: Box::new(Xxh3::new()), record: Vec::with_capacity(256) }
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
        Digest(self.state.digest128())
    }
}

impl Sink for DigestSink {
    fn event(&mut self, event: &Event<'_>) {
        let record = &mut self.record;
        record.clear();
        number(record, event.time.0);
        number(record, u64::from(event.cpu.0));
        task(record, &event.context.comm, event.context.pid);
        number(record, event.context.tgid.0 as u64);
        text(record, event.context.flags.as_bytes());
        kind(record, &event.kind);
        self.state.update(record);
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

fn wakeup(record: &mut Vec<u8>, wakeup: &Wakeup) {
    task(record, &wakeup.comm, wakeup.pid);
    number(record, wakeup.prio.0 as u64);
    number(record, u64::from(wakeup.target_cpu.0));
}

fn delay(record: &mut Vec<u8>, delay: &StatDelay) {
    task(record, &delay.comm, delay.pid);
    number(record, delay.delay.0);
}

fn kind(record: &mut Vec<u8>, kind: &EventKind<'_>) {
    text(record, kind.name().as_bytes());
    match kind {
        EventKind::SchedSwitch(switch) => {
            task(record, &switch.prev_comm, switch.prev_pid);
            number(record, switch.prev_prio.0 as u64);
            number(record, u64::from(switch.prev_state.bits()));
            task(record, &switch.next_comm, switch.next_pid);
            number(record, switch.next_prio.0 as u64);
        }
        EventKind::SchedWaking(w) | EventKind::SchedWakeup(w) | EventKind::SchedWakeupNew(w) => {
            wakeup(record, w);
        }
        EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu } => {
            task(record, comm, *pid);
            for value in [prio.0 as u64, u64::from(orig_cpu.0), u64::from(dest_cpu.0)] {
                number(record, value);
            }
        }
        EventKind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
            task(record, comm, *pid);
            task(record, child_comm, *child_pid);
        }
        EventKind::SchedProcessExec { filename, pid, old_pid } => {
            text(record, filename.as_bytes());
            number(record, pid.0 as u64);
            number(record, old_pid.0 as u64);
        }
        EventKind::SchedProcessExit { comm, pid, prio, group_dead } => {
            task(record, comm, *pid);
            number(record, prio.0 as u64);
            number(record, group_dead.map_or(2, u64::from));
        }
        EventKind::SchedStatWait(d)
        | EventKind::SchedStatSleep(d)
        | EventKind::SchedStatBlocked(d)
        | EventKind::SchedStatIowait(d) => delay(record, d),
        EventKind::SchedStatRuntime { comm, pid, runtime, vruntime } => {
            task(record, comm, *pid);
            number(record, runtime.0);
            number(record, u64::from(vruntime.is_some()));
            number(record, vruntime.unwrap_or(0));
        }
        EventKind::SchedPlace(place) => {
            task(record, &place.comm, place.pid);
            for value in [place.sev, place.sed, place.sel as u64, place.avg, place.min] {
                number(record, value);
            }
            number(record, u64::from(place.cpu.0));
            number(record, u64::from(place.nr));
        }
        EventKind::Kprobe { fields, .. } | EventKind::Other { fields, .. } => {
            text(record, fields.text().as_bytes());
        }
        EventKind::Marker { text: marker } => text(record, marker.as_bytes()),
        EventKind::TaskName { pid, tgid, comm } => {
            task(record, comm, *pid);
            number(record, tgid.0 as u64);
        }
        EventKind::TaskStart { pid, tgid, parent_pid } => {
            for id in [pid, tgid, parent_pid] {
                number(record, id.0 as u64);
            }
        }
        EventKind::TaskExit { pid, tgid } => {
            for id in [pid, tgid] {
                number(record, id.0 as u64);
            }
        }
        EventKind::Lost { count } => number(record, count.unwrap_or(u64::MAX)),
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
