//! How many events of each kind a trace holds.

use std::collections::BTreeMap;

use fairlab_event::{Event, EventKind, Sink, System};

/// Counts events by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    known: [u64; KNOWN.len()],
    others: BTreeMap<String, u64>,
    unnamed: u64,
    /// What is known of the recording.
    system: System,
}

/// The kinds with a fixed name; [`slot`] gives a kind's place here.
const KNOWN: [&str; 20] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_stat_runtime",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "sched_stat_wait",
    "sched_stat_sleep",
    "sched_stat_blocked",
    "sched_stat_iowait",
    "sched_place",
    "tracing_mark_write",
    "task_name",
    "task_start",
    "task_exit",
    "lost_events",
    UNNAMED,
];

/// What is counted when there are more names than a kernel has.
const UNNAMED: &str = "others";

/// Garbage may look like any number of names; kernels have a few thousand.
const OTHERS_MAX: usize = 4096;

#[inline]
const fn slot(kind: &EventKind<'_>) -> Option<usize> {
    Some(match kind {
        EventKind::SchedSwitch(_) => 0,
        EventKind::SchedWaking(_) => 1,
        EventKind::SchedWakeup(_) => 2,
        EventKind::SchedWakeupNew(_) => 3,
        EventKind::SchedStatRuntime { .. } => 4,
        EventKind::SchedMigrateTask { .. } => 5,
        EventKind::SchedProcessFork { .. } => 6,
        EventKind::SchedProcessExec { .. } => 7,
        EventKind::SchedProcessExit { .. } => 8,
        EventKind::SchedStatWait(_) => 9,
        EventKind::SchedStatSleep(_) => 10,
        EventKind::SchedStatBlocked(_) => 11,
        EventKind::SchedStatIowait(_) => 12,
        EventKind::SchedPlace(_) => 13,
        EventKind::Marker { .. } => 14,
        EventKind::TaskName { .. } => 15,
        EventKind::TaskStart { .. } => 16,
        EventKind::TaskExit { .. } => 17,
        EventKind::Lost { .. } => 18,
        EventKind::Kprobe { .. } | EventKind::Other { .. } => return None,
    })
}

impl Sink for Census {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        match slot(&event.kind) {
            Some(slot) => self.known[slot] += 1,
            // Text under a known name is an event that could not be read: nothing can be made of it.
            None if KNOWN.contains(&event.kind.name()) => {
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
        others + KNOWN.iter().zip(self.known).find(|(known, _)| **known == name).map_or(0, |(_, count)| count)
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
        let known = KNOWN.iter().copied().zip(self.known);
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
    use fairlab_event::{Cpu, Fields, Ns, Pid};

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
            EventKind::Other { name: "irq_handler_entry", fields: Fields::new("") },
            EventKind::Other { name: "irq_handler_entry", fields: Fields::new("") },
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
        count(&mut census, EventKind::Other { name: "sched_switch", fields: Fields::new("?") });
        assert_eq!(
            (census.count("sched_switch"), census.by_count()[0]),
            (0, ("sched_switch, unreadable", 1))
        );
    }

    #[test]
    fn garbage_names_do_not_fill_memory() {
        let mut census = Census::default();
        for number in 0..2 * OTHERS_MAX {
            count(&mut census, EventKind::Other { name: &number.to_string(), fields: Fields::new("") });
        }
        assert_eq!(census.total(), 2 * OTHERS_MAX as u64);
        assert_eq!(census.by_count()[0], (UNNAMED, OTHERS_MAX as u64));
    }
}
