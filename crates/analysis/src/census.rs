//! How many events of each kind a trace holds.

use std::collections::BTreeMap;

use fairlab_event::{Event, EventKind, Sink, System, Tracepoint};

/// Counts events by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    known: [u64; KNOWN],
    others: BTreeMap<String, u64>,
    unnamed: u64,
    /// What is known of the recording.
    system: System,
}

/// The kinds with a fixed name beside tracepoints; [`slot`] gives a kind's place behind those.
const BESIDE: [&str; 3] = [EventKind::MARKER, EventKind::LOST, UNNAMED];

/// How many kinds have a fixed name.
const KNOWN: usize = Tracepoint::COUNT + BESIDE.len();

fn known() -> impl Iterator<Item = &'static str> {
    Tracepoint::ALL.iter().map(|tracepoint| tracepoint.name()).chain(BESIDE)
}

/// What is counted when there are more names than a kernel has.
const UNNAMED: &str = "others";

/// Garbage may look like any number of names; kernels have a few thousand.
const OTHERS_MAX: usize = 4096;

#[inline]
const fn slot(kind: &EventKind<'_>) -> Option<usize> {
    match (kind.tracepoint(), kind) {
        (Some(tracepoint), _) => Some(tracepoint as usize),
        (None, EventKind::Marker { .. }) => Some(Tracepoint::COUNT),
        (None, EventKind::Lost { .. }) => Some(Tracepoint::COUNT + 1),
        (None, _) => None,
    }
}

impl Sink for Census {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        match slot(&event.kind) {
            Some(slot) => self.known[slot] += 1,
            // Text under a known name is an event that could not be read: nothing can be made of it.
            None if known().any(|known| known == event.kind.name()) => {
                self.count_other(&format!("{}, unreadable", event.kind.name()));
            }
            None => self.count_other(event.kind.name()),
        }
    }

    fn system(&mut self, system: &System) {
        self.system.clone_from(system);
    }
}

impl Census {
    fn count_other(&mut self, name: &str) {
        if let Some(count) = self.others.get_mut(name) {
            *count += 1;
        } else if self.others.len() < OTHERS_MAX {
            self.others.insert(name.to_string(), 1);
        } else {
            self.unnamed += 1;
        }
    }

    /// How many events are called `name`.
    pub fn count(&self, name: &str) -> u64 {
        let others = self.others.get(name).copied().unwrap_or(0);
        others + known().zip(self.known).find(|(known, _)| *known == name).map_or(0, |(_, count)| count)
    }

    /// Whether there is an event of `tracepoint`.
    pub fn has(&self, tracepoint: Tracepoint) -> bool {
        self.known.get(tracepoint as usize).is_some_and(|&count| count > 0)
    }

    /// Whether an event of the scheduler was recorded, by what is known beside the trace, whether or not it happened.
    pub fn is_recorded(&self, name: &str) -> bool {
        self.system.records(name)
    }

    /// How many events there are.
    pub fn total(&self) -> u64 {
        self.known.iter().sum::<u64>() + self.others.values().sum::<u64>() + self.unnamed
    }

    /// Every name that occurs with its count, the most frequent first.
    pub fn by_count(&self) -> Vec<(&str, u64)> {
        let known = known().zip(self.known).map(|(name, count)| -> (&str, u64) { (name, count) });
        let others = self.others.iter().map(|(name, count)| (name.as_str(), *count));
        let mut all: Vec<_> =
            known.chain(others).chain([(UNNAMED, self.unnamed)]).filter(|(_, count)| *count > 0).collect();
        all.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(right.0)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::{Cpu, Ns, Pid, TextFields};

    fn count(census: &mut Census, kind: EventKind<'_>) {
        census.event(&Event::new(Ns(1), Cpu(0), kind));
    }

    #[test]
    fn every_kind_is_counted_under_its_own_name() {
        let mut census = Census::default();
        let named = EventKind::TaskName { pid: Pid(1), tgid: Pid(1), comm: "a".into() };
        for kind in [
            EventKind::Marker { text: "x" },
            EventKind::Lost { count: None },
            named,
            EventKind::Other { name: "irq_handler_entry", fields: TextFields::new("") },
            EventKind::Other { name: "irq_handler_entry", fields: TextFields::new("") },
        ] {
            count(&mut census, kind);
            assert!(census.count(kind.name()) > 0, "{}", kind.name());
        }
        assert_eq!(census.by_count()[0], ("irq_handler_entry", 2));
        assert_eq!((census.total(), census.by_count().len(), census.count("absent")), (5, 4, 0));
    }

    #[test]
    fn an_event_that_could_not_be_read_does_not_count_as_its_kind() {
        let mut census = Census::default();
        count(&mut census, EventKind::Other { name: "sched_switch", fields: TextFields::new("?") });
        assert_eq!(
            (census.count("sched_switch"), census.by_count()[0]),
            (0, ("sched_switch, unreadable", 1))
        );
    }

    #[test]
    fn garbage_names_do_not_fill_memory() {
        let mut census = Census::default();
        for number in 0..2 * OTHERS_MAX {
            count(&mut census, EventKind::Other { name: &number.to_string(), fields: TextFields::new("") });
        }
        assert_eq!(census.total(), 2 * OTHERS_MAX as u64);
        assert_eq!(census.by_count()[0], (UNNAMED, OTHERS_MAX as u64));
    }
}
