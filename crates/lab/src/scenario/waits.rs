//! How long tasks of a name waited after each wakeup, as a list, and in which burst of wakeups.
//!
//! Must not know: which scenario wants it.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Event, EventKind, Ns, Pid};

/// Wakeups of one waker that are no further apart belong to one burst, and bursts that begin no further apart coincide.
const APART: Ns = Ns::from_ms(1);

/// A wakeup, and how long the woken task waited.
#[derive(Clone, Copy, Debug)]
struct Wait {
    task: Pid,
    waker: Pid,
    woken: Ns,
    lasted: Ns,
}

/// The waits of tasks that other tasks wake. Who is ever woken by an interrupt, as one that sleeps on a timer is, is left
/// out: in schbench those are the message threads, which it does not measure.
#[derive(Clone, Debug)]
pub(super) struct TaskWaits {
    comm: &'static str,
    from: Ns,
    woken: BTreeMap<Pid, (Pid, Ns)>,
    waits: Vec<Wait>,
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
                self.woken.insert(wakeup.pid, (event.context.pid, event.time));
            }
            EventKind::SchedSwitch(switch) => {
                let task = switch.next_pid;
                let woken = self.woken.remove(&task).filter(|&(_, woken)| woken >= self.from);
                self.waits.extend(woken.map(|(waker, woken)| Wait {
                    task,
                    waker,
                    woken,
                    lasted: event.time.since(woken),
                }));
            }
            _ => {}
        }
    }

    fn waits(&self) -> impl Iterator<Item = &Wait> {
        self.waits.iter().filter(|wait| !self.woken_by_interrupt.contains(&wait.task))
    }

    /// The waits, in the order in which they ended.
    pub fn all(&self) -> impl Iterator<Item = Ns> {
        self.waits().map(|wait| wait.lasted)
    }

    /// How many waits are longer than `bar`.
    pub fn above(&self, bar: Ns) -> Share {
        share_above(self.waits(), bar)
    }

    /// How many of those that begin in bursts that coincide with a burst of another waker are longer than `bar`.
    pub fn above_in_step(&self, bar: Ns) -> Share {
        let mut waits = self.waits().collect::<Vec<_>>();
        waits.sort_by_key(|wait| (wait.waker, wait.woken));
        let bursts = waits
            .chunk_by(|one, next| one.waker == next.waker && next.woken.since(one.woken) <= APART)
            .filter(|burst| burst.len() > 1)
            .collect::<Vec<_>>();
        let coincide = |one: &[&Wait], other: &[&Wait]| {
            let (early, late) = (one[0].woken.min(other[0].woken), one[0].woken.max(other[0].woken));
            one[0].waker != other[0].waker && late.since(early) <= APART
        };
        let in_step =
            bursts.iter().filter(|burst| bursts.iter().any(|other| coincide(burst, other))).copied();
        share_above(in_step.flatten().copied(), bar)
    }
}

fn share_above<'w>(waits: impl Iterator<Item = &'w Wait>, bar: Ns) -> Share {
    waits.fold(Share::default(), |share, wait| Share {
        some: share.some + u64::from(wait.lasted > bar),
        all: share.all + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(waker: i32, task: i32, woken_us: u64, lasted_us: u64) -> Wait {
        let [waker, task] = [waker, task].map(Pid);
        Wait { task, waker, woken: Ns::from_us(woken_us), lasted: Ns::from_us(lasted_us) }
    }

    #[test]
    fn only_bursts_of_two_wakers_at_once_are_in_step() {
        let mut waits = TaskWaits::new("worker", Ns::ZERO);
        waits.waits = vec![
            wait(1, 11, 100, 5),
            wait(2, 21, 105, 5),
            wait(1, 12, 110, 5),
            wait(2, 22, 115, 4000),
            // Later the second waker is alone, and once more, with one wakeup beside a burst.
            wait(2, 21, 9000, 5),
            wait(2, 22, 9010, 4000),
            wait(1, 11, 20_000, 5),
            wait(2, 21, 20_000, 5),
            wait(2, 22, 20_010, 4000),
        ];
        let bar = Ns::from_ms(2);
        assert_eq!(waits.above(bar), Share { some: 3, all: 9 });
        assert_eq!(waits.above_in_step(bar), Share { some: 1, all: 4 });
    }
}
