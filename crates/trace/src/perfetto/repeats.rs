//! Events that two data sources of one trace gave: each is taken once.
//!
//! Every data source of a trace that asks for an event of the kernel's buffer gets it, in packets of its own
//! sequence. What they repeat has the same time on the same CPU. Events of one time come source by source.
//!
//! Must not know: what else events say, how they are found.

use std::collections::HashMap;

use fairlab_event::{Cpu, EventKind, Ns};

use super::cpu::CpuEvents;
use super::pending_event::{MissingPart, PendingEvent};

/// More events than a CPU has at one time; a file that is none must cost no more.
const EVENTS_MAX: usize = 64;

/// What was given at the latest time of each CPU that has several sources.
#[derive(Debug)]
pub(super) struct SourceRepeats {
    /// For each CPU's events by one source: which of `latest` is the CPU's.
    places: Vec<Option<usize>>,
    latest: Vec<LatestEvents>,
}

/// What was given at one time.
#[derive(Debug, Default)]
struct LatestEvents {
    time: Ns,
    given: Vec<GivenEvent>,
}

#[derive(Debug)]
struct GivenEvent {
    kind: EventKind<'static>,
    /// The event itself, where its kind is not read yet.
    bytes: Vec<u8>,
    /// How often it was given on.
    count: usize,
    /// The source that gave it last, and how often that did.
    source: usize,
    by_source: usize,
}

impl SourceRepeats {
    pub(super) fn of(cpus: &[CpuEvents]) -> SourceRepeats {
        let mut sources: HashMap<Cpu, usize> = HashMap::new();
        for events in cpus {
            *sources.entry(events.cpu).or_default() += 1;
        }
        let mut found: HashMap<Cpu, usize> = HashMap::new();
        let mut place = |cpu: Cpu| {
            let next = found.len();
            (sources.get(&cpu) > Some(&1)).then(|| *found.entry(cpu).or_insert(next))
        };
        let places = cpus.iter().map(|events| place(events.cpu)).collect();
        SourceRepeats { places, latest: found.iter().map(|_| LatestEvents::default()).collect() }
    }

    /// Whether another source has given this event, which the source at `index` gives.
    #[inline]
    pub(super) fn has(&mut self, index: usize, event: &PendingEvent, bytes: &[u8]) -> bool {
        let Some(place) = self.places.get(index).copied().flatten() else { return false };
        self.latest.get_mut(place).is_some_and(|latest| latest.has(index, event, bytes))
    }
}

impl LatestEvents {
    fn has(&mut self, source: usize, event: &PendingEvent, bytes: &[u8]) -> bool {
        let (time, kind) = (event.event.time, event.event.kind);
        if std::mem::replace(&mut self.time, time) != time {
            self.given.clear();
        }
        if matches!(kind, EventKind::Lost { .. }) && event.lacks != MissingPart::Everything {
            return false;
        }
        let same = self.given.iter_mut().find(|given| is_same(&given.kind, &kind) && given.bytes == bytes);
        let Some(given) = same else {
            if self.given.len() < EVENTS_MAX {
                self.given.push(GivenEvent { kind, bytes: bytes.to_vec(), count: 1, source, by_source: 1 });
            }
            return false;
        };
        if std::mem::replace(&mut given.source, source) != source {
            given.by_source = 0;
        }
        given.by_source += 1;
        let is_new = given.by_source > given.count;
        given.count = given.count.max(given.by_source);
        !is_new
    }
}

/// Whether two events of one time and CPU are one. Columns do not tell all of a switch, nor who wakes.
fn is_same(one: &EventKind<'_>, other: &EventKind<'_>) -> bool {
    match (one, other) {
        (EventKind::SchedSwitch(one), EventKind::SchedSwitch(other)) => one.next_pid == other.next_pid,
        (EventKind::SchedWaking(one), EventKind::SchedWaking(other)) => one.pid == other.pid,
        _ => one == other,
    }
}
