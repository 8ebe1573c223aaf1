//! What can happen next, and the queue that orders it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::cpufreq::FrequencyRequest;
use fairlab_kernel::{GroupTimer, TaskId};

/// Everything that the loop can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occurrence {
    /// A CPU's phase ends.
    PhaseEnds { cpu: Cpu },
    /// A CPU's periodic tick.
    Tick { cpu: Cpu },
    /// The timer that ends the running slice of a CPU.
    Hrtick { cpu: Cpu },
    /// An interrupt reaches a CPU.
    Interrupt { cpu: Cpu, interrupt: Interrupt },
    /// A waker on a CPU looks whether the task that it wakes has been switched out where it slept.
    WokenLeft { cpu: Cpu, thread: u32, sync: bool },
    /// A frequency is in force, for which a governor asked on this CPU.
    FrequencySet { cpu: Cpu, request: FrequencyRequest },
}

impl Occurrence {
    /// The CPU that it happens on.
    pub fn cpu(self) -> Cpu {
        match self {
            Occurrence::PhaseEnds { cpu }
            | Occurrence::Tick { cpu }
            | Occurrence::Hrtick { cpu }
            | Occurrence::Interrupt { cpu, .. }
            | Occurrence::WokenLeft { cpu, .. }
            | Occurrence::FrequencySet { cpu, .. } => cpu,
        }
    }
}

/// An interrupt other than the tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// Reschedule.
    Resched,
    /// A busy CPU asks this idle one to balance for idle ones.
    NohzKick,
    /// A wakeup left to this CPU (`ttwu_queue_wakelist()`).
    WakeList { task: TaskId, migrated: bool },
    /// A timer of a control group with a quota expires here.
    GroupTimer(GroupTimer),
    /// Groups that were throttled come back to this CPU.
    Unthrottle,
    /// A thread's sleep timer expires here.
    Timer { thread: u32 },
}

/// When something happens: earliest first; of several at one time the one that was arranged first.
///
/// Time in the upper 64 bits, then 48 of the number of arrangement and 16 of a place: one comparison, without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

impl Key {
    const NEVER: Key = Key(u128::MAX);
    const PLACE_BITS: u32 = 16;

    fn new(time: Ns, sequence: u64) -> Key {
        Key(u128::from(time.0) << 64 | u128::from(sequence) << Key::PLACE_BITS)
    }

    fn at(self, place: usize) -> Key {
        Key(self.0 | place as u128)
    }

    fn time(self) -> Ns {
        Ns((self.0 >> 64) as u64)
    }

    fn place(self) -> usize {
        self.0 as usize & ((1 << Key::PLACE_BITS) - 1)
    }
}

/// Places that each CPU has: the end of its phase, its tick, the end of its slice.
const PLACES: usize = 3;

/// Occurrences by time, and by arrangement where times are equal.
///
/// The end of a CPU's phase, its tick and the end of its slice have a place of their own each, since each CPU has at most
/// one of them and they are by far the most frequent; everything else waits in a heap.
#[derive(Debug)]
pub(super) struct Queue {
    places: Tournament,
    /// The place that was taken last; what it holds is over, unless it has been arranged anew since.
    taken: Option<usize>,
    others: BinaryHeap<Arranged>,
    arranged: u64,
}

#[derive(Clone, Copy, Debug)]
struct Arranged {
    key: Key,
    occurrence: Occurrence,
}

impl Queue {
    pub fn new(nr_cpus: usize) -> Queue {
        Queue {
            places: Tournament::new(PLACES * nr_cpus),
            taken: None,
            others: BinaryHeap::new(),
            arranged: 0,
        }
    }

    fn set(&mut self, place: usize, key: Key) {
        self.taken = self.taken.filter(|&taken| taken != place);
        self.places.set(place, key.at(place));
    }

    fn key(&mut self, time: Ns) -> Key {
        self.arranged += 1;
        Key::new(time, self.arranged)
    }

    /// Arranges the end of `cpu`'s phase, instead of what was arranged for it before.
    pub fn arrange_phase_end(&mut self, cpu: Cpu, time: Ns) {
        let key = self.key(time);
        self.set(PLACES * cpu.index(), key);
    }

    /// `cpu`'s phase does not end by itself.
    pub fn cancel_phase_end(&mut self, cpu: Cpu) {
        self.set(PLACES * cpu.index(), Key::NEVER);
    }

    /// Arranges `cpu`'s next tick.
    pub fn arrange_tick(&mut self, cpu: Cpu, time: Ns) {
        let key = self.key(time);
        self.set(PLACES * cpu.index() + 1, key);
    }

    /// Arranges the end of `cpu`'s slice, instead of what was arranged for it before; `None`: it does not end by itself.
    pub fn arrange_hrtick(&mut self, cpu: Cpu, time: Option<Ns>) {
        let key = time.map_or(Key::NEVER, |time| self.key(time));
        self.set(PLACES * cpu.index() + 2, key);
    }

    /// Arranges an interrupt.
    pub fn arrange_interrupt(&mut self, cpu: Cpu, time: Ns, interrupt: Interrupt) {
        let key = self.key(time);
        self.others.push(Arranged { key, occurrence: Occurrence::Interrupt { cpu, interrupt } });
    }

    /// Arranges that a waker on `cpu` goes on.
    pub fn arrange_wakeup(&mut self, cpu: Cpu, time: Ns, thread: u32, sync: bool) {
        let key = self.key(time);
        self.others.push(Arranged { key, occurrence: Occurrence::WokenLeft { cpu, thread, sync } });
    }

    /// Arranges that a frequency asked for on `cpu` is in force.
    pub fn arrange_frequency(&mut self, cpu: Cpu, time: Ns, request: FrequencyRequest) {
        let key = self.key(time);
        self.others.push(Arranged { key, occurrence: Occurrence::FrequencySet { cpu, request } });
    }

    /// Takes the next occurrence, if it is not after `end`.
    pub fn pop_until(&mut self, end: Ns) -> Option<(Ns, Occurrence)> {
        // Most of the time the place has been arranged anew, and one way up the tree is saved.
        if let Some(place) = self.taken.take() {
            self.places.set(place, Key::NEVER);
        }
        let key = self.places.first();
        match self.others.peek() {
            Some(other) if other.key < key => {
                if other.key.time() > end {
                    return None;
                }
                let Arranged { key, occurrence } = self.others.pop()?;
                Some((key.time(), occurrence))
            }
            _ if key.time() > end || key == Key::NEVER => None,
            _ => {
                let place = key.place();
                self.taken = Some(place);
                let cpu = Cpu((place / PLACES) as u32);
                let occurrence = match place % PLACES {
                    0 => Occurrence::PhaseEnds { cpu },
                    1 => Occurrence::Tick { cpu },
                    _ => Occurrence::Hrtick { cpu },
                };
                Some((key.time(), occurrence))
            }
        }
    }
}

impl PartialEq for Arranged {
    fn eq(&self, other: &Arranged) -> bool {
        self.key == other.key
    }
}

impl Eq for Arranged {}

impl PartialOrd for Arranged {
    fn partial_cmp(&self, other: &Arranged) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The heap gives the greatest first, so the earliest is the greatest.
impl Ord for Arranged {
    fn cmp(&self, other: &Arranged) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// Places that each hold a key, and the least key of all: a tree in which each node holds the lesser of the two below it.
#[derive(Debug)]
struct Tournament {
    /// Nodes from the root (1) down; the last half are the places.
    nodes: Vec<Key>,
}

impl Tournament {
    fn new(places: usize) -> Tournament {
        let size = places.next_power_of_two().max(2);
        assert!(size <= 1 << Key::PLACE_BITS, "more places than a key can tell apart");
        Tournament { nodes: vec![Key::NEVER; 2 * size] }
    }

    fn set(&mut self, place: usize, key: Key) {
        let mut node = self.nodes.len() / 2 + place;
        self.nodes[node] = key;
        while node > 1 {
            let least = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            // Where the least is the same as before, nothing changes further up.
            if std::mem::replace(&mut self.nodes[node], least) == least {
                return;
            }
        }
    }

    fn first(&self) -> Key {
        self.nodes[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(queue: &mut Queue, end: Ns) -> Vec<(u64, Occurrence)> {
        std::iter::from_fn(|| queue.pop_until(end)).map(|(time, occurrence)| (time.0, occurrence)).collect()
    }

    #[test]
    fn ties_go_by_arrangement_whatever_the_kind() {
        let mut queue = Queue::new(5);
        let interrupt = Interrupt::Resched;
        queue.arrange_tick(Cpu(0), Ns(5));
        queue.arrange_interrupt(Cpu(1), Ns(3), interrupt);
        queue.arrange_phase_end(Cpu(4), Ns(3));
        queue.arrange_interrupt(Cpu(2), Ns(3), interrupt);
        queue.arrange_tick(Cpu(3), Ns(9));
        let order = [
            (3, Occurrence::Interrupt { cpu: Cpu(1), interrupt }),
            (3, Occurrence::PhaseEnds { cpu: Cpu(4) }),
            (3, Occurrence::Interrupt { cpu: Cpu(2), interrupt }),
            (5, Occurrence::Tick { cpu: Cpu(0) }),
        ];
        assert_eq!(take_all(&mut queue, Ns(8)), order);
        assert_eq!(take_all(&mut queue, Ns::MAX), [(9, Occurrence::Tick { cpu: Cpu(3) })]);
    }

    #[test]
    fn a_phase_has_one_end() {
        let mut queue = Queue::new(3);
        queue.arrange_phase_end(Cpu(1), Ns(5));
        queue.arrange_phase_end(Cpu(1), Ns(9));
        queue.arrange_phase_end(Cpu(2), Ns(7));
        queue.cancel_phase_end(Cpu(2));
        assert_eq!(take_all(&mut queue, Ns::MAX), [(9, Occurrence::PhaseEnds { cpu: Cpu(1) })]);
    }

    #[test]
    fn the_tournament_agrees_with_sorting() {
        let mut stream = crate::rng::Stream::new(11, "tournament");
        let mut queue = Queue::new(37);
        let mut expected = Vec::new();
        for cpu in 0..37 {
            let time = stream.below(20);
            queue.arrange_phase_end(Cpu(cpu), Ns(time));
            expected.push((time, cpu));
        }
        expected.sort_by_key(|&(time, _)| time);
        let order = take_all(&mut queue, Ns::MAX).into_iter().map(|(time, occurrence)| match occurrence {
            Occurrence::PhaseEnds { cpu } => (time, cpu.0),
            other => panic!("{other:?}"),
        });
        assert_eq!(order.collect::<Vec<_>>(), expected);
    }
}
