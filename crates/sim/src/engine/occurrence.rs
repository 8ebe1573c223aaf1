//! What can happen next, and the queue that orders it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::TaskId;
use fairlab_kernel::cpufreq::FrequencyRequest;

/// Everything that the loop can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occurrence {
    /// A CPU's phase ends.
    PhaseEnds { cpu: Cpu },
    /// A CPU's periodic tick.
    Tick { cpu: Cpu },
    /// An interrupt reaches a CPU.
    Interrupt { cpu: Cpu, interrupt: Interrupt },
    /// A frequency is in force, for which a governor asked on this CPU.
    FrequencySet { cpu: Cpu, request: FrequencyRequest },
}

impl Occurrence {
    /// The CPU that it happens on.
    pub fn cpu(self) -> Cpu {
        match self {
            Occurrence::PhaseEnds { cpu }
            | Occurrence::Tick { cpu }
            | Occurrence::Interrupt { cpu, .. }
            | Occurrence::FrequencySet { cpu, .. } => cpu,
        }
    }
}

/// An interrupt other than the tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// Reschedule.
    Resched,
    /// A wakeup left to this CPU (`ttwu_queue_wakelist()`).
    WakeList { task: TaskId, migrated: bool },
    /// A thread's sleep timer expires here.
    Timer { thread: u32 },
}

/// When something happens: earliest first; of several at one time the one that was arranged first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: Ns,
    sequence: u64,
}

impl Key {
    const NEVER: Key = Key { time: Ns::MAX, sequence: u64::MAX };
}

/// Occurrences by time, and by arrangement where times are equal.
///
/// The end of a CPU's phase and its tick have a place of their own each, since each CPU has at most one of them and
/// they are by far the most frequent; everything else waits in a heap.
#[derive(Debug)]
pub(super) struct Queue {
    places: Tournament,
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
        Queue { places: Tournament::new(2 * nr_cpus), others: BinaryHeap::new(), arranged: 0 }
    }

    fn key(&mut self, time: Ns) -> Key {
        self.arranged += 1;
        Key { time, sequence: self.arranged }
    }

    /// Arranges the end of `cpu`'s phase, instead of what was arranged for it before.
    pub fn arrange_phase_end(&mut self, cpu: Cpu, time: Ns) {
        let key = self.key(time);
        self.places.set(2 * cpu.index(), key);
    }

    /// `cpu`'s phase does not end by itself.
    pub fn cancel_phase_end(&mut self, cpu: Cpu) {
        self.places.set(2 * cpu.index(), Key::NEVER);
    }

    /// Arranges `cpu`'s next tick.
    pub fn arrange_tick(&mut self, cpu: Cpu, time: Ns) {
        let key = self.key(time);
        self.places.set(2 * cpu.index() + 1, key);
    }

    /// Arranges an interrupt.
    pub fn arrange_interrupt(&mut self, cpu: Cpu, time: Ns, interrupt: Interrupt) {
        let key = self.key(time);
        self.others.push(Arranged { key, occurrence: Occurrence::Interrupt { cpu, interrupt } });
    }

    /// Arranges that a frequency asked for on `cpu` is in force.
    pub fn arrange_frequency(&mut self, cpu: Cpu, time: Ns, request: FrequencyRequest) {
        let key = self.key(time);
        self.others.push(Arranged { key, occurrence: Occurrence::FrequencySet { cpu, request } });
    }

    /// Takes the next occurrence, if it is not after `end`.
    pub fn pop_until(&mut self, end: Ns) -> Option<(Ns, Occurrence)> {
        let (place, key) = self.places.first();
        match self.others.peek() {
            Some(other) if other.key < key => {
                if other.key.time > end {
                    return None;
                }
                let Arranged { key, occurrence } = self.others.pop()?;
                Some((key.time, occurrence))
            }
            _ if key.time > end || key == Key::NEVER => None,
            _ => {
                self.places.set(place, Key::NEVER);
                let cpu = Cpu((place / 2) as u32);
                let is_tick = place % 2 == 1;
                Some((
                    key.time,
                    if is_tick { Occurrence::Tick { cpu } } else { Occurrence::PhaseEnds { cpu } },
                ))
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

/// Places that each hold a key, and the place with the least one: a tree in which each node knows the winner below it.
#[derive(Debug)]
struct Tournament {
    keys: Vec<Key>,
    /// Nodes from the root (1) down; `winners[node]` is the place that wins below `node`.
    winners: Vec<u32>,
}

impl Tournament {
    fn new(places: usize) -> Tournament {
        let size = places.next_power_of_two().max(2);
        let mut winners = vec![0; 2 * size];
        for (place, winner) in winners[size..].iter_mut().enumerate() {
            *winner = place as u32;
        }
        let mut tournament = Tournament { keys: vec![Key::NEVER; size], winners };
        for node in (1..size).rev() {
            tournament.play(node);
        }
        tournament
    }

    /// Notes the winner below `node`. Returns whether it is another than before.
    fn play(&mut self, node: usize) -> bool {
        let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
        let left_wins = self.keys[left as usize] <= self.keys[right as usize];
        let winner = if left_wins { left } else { right };
        std::mem::replace(&mut self.winners[node], winner) != winner
    }

    fn set(&mut self, place: usize, key: Key) {
        self.keys[place] = key;
        let mut node = (place + self.keys.len()) / 2;
        while node > 0 {
            let changed = self.play(node);
            // Where another place wins as before, nothing changes further up.
            if !changed && self.winners[node] as usize != place {
                return;
            }
            node /= 2;
        }
    }

    fn first(&self) -> (usize, Key) {
        let place = self.winners[1] as usize;
        (place, self.keys[place])
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
