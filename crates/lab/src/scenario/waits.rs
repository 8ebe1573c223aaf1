//! How long tasks of a name waited after each wakeup, as a list.
//!
//! Must not know: which scenario wants it.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Event, EventKind, Ns, Pid};

/// The waits of tasks that other tasks wake. Who is ever woken by an interrupt, as one that sleeps on a timer is, is left
/// out: in schbench those are the message threads, which it does not measure.
#[derive(Clone, Debug)]
pub(super) struct TaskWaits {
    comm: &'static str,
    from: Ns,
    woken: BTreeMap<Pid, Ns>,
    waits: Vec<(Pid, Ns)>,
    woken_by_interrupt: BTreeSet<Pid>,
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

    /// Takes the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        match event.kind {
            EventKind::SchedWaking(wakeup) if wakeup.comm.to_str() == self.comm => {
                if event.context.flags.in_hardirq() {
                    self.woken_by_interrupt.insert(wakeup.pid);
                }
                self.woken.insert(wakeup.pid, event.time);
            }
            EventKind::SchedSwitch(switch) => {
                let woken = self.woken.remove(&switch.next_pid).filter(|&woken| woken >= self.from);
                self.waits.extend(woken.map(|woken| (switch.next_pid, event.time.since(woken))));
            }
            _ => {}
        }
    }

    /// Adds the waits of another run of the same workload.
    pub fn join(&mut self, other: &TaskWaits) {
        self.waits.extend(&other.waits);
        self.woken_by_interrupt.extend(&other.woken_by_interrupt);
    }

    /// The waits, in the order in which they ended.
    pub fn all(&self) -> impl Iterator<Item = Ns> {
        let woken_by_tasks = |pid: &Pid| !self.woken_by_interrupt.contains(pid);
        self.waits.iter().filter(move |(pid, _)| woken_by_tasks(pid)).map(|&(_, wait)| wait)
    }

    /// The share of waits longer than `bar`; `None` if there are no waits.
    pub fn share_above(&self, bar: Ns) -> Option<f64> {
        let (all, above) = (self.all().count(), self.all().filter(|&wait| wait > bar).count());
        (all > 0).then(|| above as f64 / all as f64)
    }

    /// The median of the waits longer than `bar`.
    pub fn median_above(&self, bar: Ns) -> Option<Ns> {
        let mut above = self.all().filter(|&wait| wait > bar).collect::<Vec<_>>();
        above.sort_unstable();
        above.get(above.len() / 2).copied()
    }
}
