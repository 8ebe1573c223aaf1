//! How long tasks of a name waited after each wakeup, as a list.
//!
//! Must not know: which scenario wants it.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Event, EventKind, Ns, Pid, Sink};

/// The waits of tasks that only tasks wake. A task that an interrupt wakes once, as a timer does, is left out: in schbench these
/// are the message threads, which it does not measure.
#[derive(Clone, Debug)]
pub(super) struct TaskWaits {
    comm: &'static str,
    from: Ns,
    woken: BTreeMap<Pid, Ns>,
    waits: Vec<(Pid, Ns)>,
    woken_by_interrupt: BTreeSet<Pid>,
}

/// Some of so many waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub some: u64,
    pub all: u64,
}

impl Share {
    /// As a number up to 1; `None` of nothing.
    pub fn value(self) -> Option<f64> {
        (self.all > 0).then(|| self.some as f64 / self.all as f64)
    }

    /// The share in both.
    pub fn and(self, other: Share) -> Share {
        Share { some: self.some + other.some, all: self.all + other.all }
    }
}

impl Sink for TaskWaits {
    fn event(&mut self, event: &Event<'_>) {
        match event.kind {
            EventKind::SchedWaking(wakeup) if wakeup.comm.to_str() == self.comm => {
                if event.context.flags.in_hardirq() {
                    self.woken_by_interrupt.insert(wakeup.pid);
                }
                self.woken.insert(wakeup.pid, event.time);
            }
            EventKind::SchedSwitch(switch) => {
                let task = switch.next_pid;
                let woken = self.woken.remove(&task).filter(|&woken| woken >= self.from);
                self.waits.extend(woken.map(|woken| (task, event.time.since(woken))));
            }
            _ => {}
        }
    }
}

impl TaskWaits {
    /// Waits of tasks called `comm` that begin at `from` or later.
    pub fn new(comm: &'static str, from: Ns) -> TaskWaits {
        TaskWaits {
            comm,
            from,
            woken: BTreeMap::new(),
            waits: Vec::new(),
            woken_by_interrupt: BTreeSet::new(),
        }
    }

    /// The waits, in the order in which they ended.
    pub fn all(&self) -> impl Iterator<Item = Ns> {
        let counted = self.waits.iter().filter(|(task, _)| !self.woken_by_interrupt.contains(task));
        counted.map(|&(_, wait)| wait)
    }

    /// How many waits are longer than `bar`.
    pub fn above(&self, bar: Ns) -> Share {
        self.all().fold(Share::default(), |share, wait| Share {
            some: share.some + u64::from(wait > bar),
            all: share.all + 1,
        })
    }
}
