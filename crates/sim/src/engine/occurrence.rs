//! What can happen next, and the queue that orders it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{CpuMask, GroupTimer, TaskId};

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
    WokenLeft { cpu: Cpu, task: TaskId, sync: bool },
    /// The turn of that number ends, which is that of this CPU.
    TurnEnds { cpu: Cpu, number: u64 },
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
            | Occurrence::TurnEnds { cpu, .. } => cpu,
        }
    }
}

impl Occurrence {
    /// Whether a timer expires that is neither the tick nor the end of a slice.
    fn is_timer(self) -> bool {
        let Occurrence::Interrupt { interrupt, .. } = self else { return false };
        matches!(interrupt, Interrupt::Timer { .. } | Interrupt::GroupTimer(_))
    }
}

/// An interrupt other than the tick of a busy CPU.
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
    /// A governor asked here for a frequency that its thread has to set (`sugov_irq_work()`).
    Governor { number: usize },
    /// A thread's sleep timer expires here.
    Timer { thread: u32 },
    /// The tick of a CPU that idles.
    Tick,
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

/// Occurrences by time, and by arrangement where times are equal; ticks come first.
///
/// The most frequent ones do not wait in the heap. Each CPU has at most one end of a phase and one end of a slice, and a
/// place of its own for each; CPUs tick all together.
#[derive(Debug)]
pub(super) struct Queue {
    phase_ends: Tournament,
    hrticks: Tournament,
    ticks: Ticks,
    others: BinaryHeap<Arranged>,
    arranged: u64,
    /// The time of what was taken last: nothing is arranged before.
    now: Ns,
}

#[derive(Clone, Copy, Debug)]
struct Arranged {
    key: Key,
    occurrence: Occurrence,
}

impl Queue {
    pub fn new(nr_cpus: usize) -> Queue {
        Queue {
            phase_ends: Tournament::new(nr_cpus),
            hrticks: Tournament::new(nr_cpus),
            ticks: Ticks::default(),
            others: BinaryHeap::new(),
            arranged: 0,
            now: Ns::ZERO,
        }
    }

    fn key(&mut self, time: Ns) -> Key {
        self.arranged += 1;
        Key::new(time, self.arranged)
    }

    /// When the next timer of any CPU expires; never, if there is none.
    pub fn next_expiry(&mut self) -> Ns {
        let sleeps = self.others.iter().filter(|arranged| arranged.occurrence.is_timer());
        let sleep = sleeps.map(|arranged| arranged.key.time()).min();
        let tick = self.ticks.instant.into_iter().chain(sleep).min().unwrap_or(Ns::MAX);
        tick.min(self.hrticks.first().time())
    }

    /// When the next timer of `cpu` expires, if any is armed there.
    pub fn next_timer(&self, cpu: Cpu) -> Option<Ns> {
        let is_timer =
            |arranged: &&Arranged| arranged.occurrence.is_timer() && arranged.occurrence.cpu() == cpu;
        self.others.iter().filter(is_timer).map(|arranged| arranged.key.time()).min()
    }

    /// Arranges the end of `cpu`'s phase, instead of what was arranged for it before.
    pub fn arrange_phase_end(&mut self, cpu: Cpu, time: Ns) {
        let key = self.key(time);
        self.phase_ends.set(cpu.index(), key, self.now);
    }

    /// `cpu`'s phase does not end by itself.
    pub fn cancel_phase_end(&mut self, cpu: Cpu) {
        self.phase_ends.set(cpu.index(), Key::NEVER, self.now);
    }

    /// Arranges `cpu`'s next tick: the next instant at which CPUs tick, which is the same for all.
    pub fn arrange_tick(&mut self, cpu: Cpu, time: Ns) {
        self.ticks.arrange(cpu, time);
    }

    /// Arranges the end of `cpu`'s slice, instead of what was arranged for it before; `None`: it does not end by itself.
    pub fn arrange_hrtick(&mut self, cpu: Cpu, time: Option<Ns>) {
        let key = time.map_or(Key::NEVER, |time| self.key(time));
        self.hrticks.set(cpu.index(), key, self.now);
    }

    /// Arranges an interrupt.
    pub fn arrange_interrupt(&mut self, cpu: Cpu, time: Ns, interrupt: Interrupt) {
        let key = self.key(time);
        self.others.push(Arranged { key, occurrence: Occurrence::Interrupt { cpu, interrupt } });
    }

    /// Arranges that a waker on `cpu` goes on.
    pub fn arrange_wakeup(&mut self, cpu: Cpu, time: Ns, task: TaskId, sync: bool) {
        let key = self.key(time);
        self.others.push(Arranged { key, occurrence: Occurrence::WokenLeft { cpu, task, sync } });
    }

    /// Arranges the end of a turn of `cpu`.
    pub fn arrange_turn_end(&mut self, cpu: Cpu, time: Ns, number: u64) {
        let key = self.key(time);
        self.others.push(Arranged { key, occurrence: Occurrence::TurnEnds { cpu, number } });
    }

    /// Takes the next occurrence, if it is not after `end`.
    #[inline]
    pub fn pop_until(&mut self, end: Ns) -> Option<(Ns, Occurrence)> {
        let phase = self.phase_ends.first();
        let place = phase.min(self.hrticks.first());
        let other = self.others.peek().map_or(Key::NEVER, |other| other.key);
        let first = place.min(other);
        let tick = self.ticks.instant.filter(|&tick| tick <= first.time());
        let time = tick.unwrap_or(first.time());
        if time > end || (tick.is_none() && first == Key::NEVER) {
            return None;
        }
        self.now = time;
        if tick.is_some() {
            return self.ticks.take().map(|cpu| (time, Occurrence::Tick { cpu }));
        }
        let cpu = Cpu(place.place() as u32);
        if first == other {
            return self.others.pop().map(|Arranged { occurrence, .. }| (time, occurrence));
        }
        if first == phase {
            self.phase_ends.take(phase);
            return Some((time, Occurrence::PhaseEnds { cpu }));
        }
        self.hrticks.take(place);
        Some((time, Occurrence::Hrtick { cpu }))
    }
}

/// The instants at which CPUs tick, which are the same for all: those that tick at the next one, and those at the one
/// after it.
#[derive(Debug, Default)]
struct Ticks {
    /// `None` as long as no CPU ticks.
    instant: Option<Ns>,
    due: CpuMask,
    later_instant: Ns,
    later: CpuMask,
}

impl Ticks {
    fn arrange(&mut self, cpu: Cpu, time: Ns) {
        if *self.instant.get_or_insert(time) == time {
            self.due.set(cpu);
        } else {
            self.later_instant = time;
            self.later.set(cpu);
        }
    }

    /// The CPU that ticks first.
    fn take(&mut self) -> Option<Cpu> {
        let cpu = self.due.lowest()?;
        self.due.clear(cpu);
        if self.due.is_empty() {
            self.due = std::mem::take(&mut self.later);
            self.instant = (!self.due.is_empty()).then_some(self.later_instant);
        }
        Some(cpu)
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

/// Places that each hold a key, and the least key of all: a tree of groups of four, each of which puts its least into the
/// group above.
///
/// Groups hold short keys of 64 bits: time since a base, then the number of the arrangement since then, then the place.
/// They order as the keys do, but for times far from the base, which have no order among them.
#[derive(Debug)]
struct Tournament {
    /// The least of all.
    least: u64,
    /// The root comes first; the groups below slot `s` of group `g` are `4g + s + 1`. Those of the last level are the places.
    groups: Vec<[u64; 4]>,
    /// Where the places begin.
    begin: usize,
    /// What each place holds.
    keys: Vec<Key>,
    /// The base of short keys, which nothing comes before, and how many arrangements it has seen.
    base: Ns,
    arranged: u64,
    /// The place that was taken last; what it holds is over, unless it has been arranged anew since. Most of the time it
    /// has, and one way up the tree is saved.
    taken: Option<usize>,
}

impl Tournament {
    const PLACE_BITS: u32 = 10;
    const ARRANGED_BITS: u32 = 12;
    const TIME_SHIFT: u32 = Self::PLACE_BITS + Self::ARRANGED_BITS;
    /// Times this far from the base are all the same in short keys; 73 minutes.
    const FAR: u64 = u64::MAX >> Self::TIME_SHIFT;
    /// Later than all that is far.
    const NEVER: u64 = u64::MAX;

    fn new(places: usize) -> Tournament {
        assert!(places <= 1 << Self::PLACE_BITS, "more places than a short key can tell apart");
        let (mut begin, mut level) = (0, 1);
        while 4 * level < places {
            (begin, level) = (begin + level, 4 * level);
        }
        let (groups, keys) = (vec![[Self::NEVER; 4]; begin + level], vec![Key::NEVER; places]);
        Tournament { least: Self::NEVER, groups, begin, keys, base: Ns::ZERO, arranged: 0, taken: None }
    }

    /// Arranges `key` at a place, instead of what is there; `now`: nothing will be arranged before.
    fn set(&mut self, place: usize, key: Key, now: Ns) {
        self.taken = self.taken.filter(|&taken| taken != place);
        self.keys[place] = key;
        if key == Key::NEVER {
            return self.put(place, Self::NEVER);
        }
        let ahead = key.time().since(self.base).0;
        self.arranged += 1;
        let is_stale = ahead >= Self::FAR && now.since(self.base).0 > Self::FAR / 2;
        if self.arranged >> Self::ARRANGED_BITS != 0 || is_stale {
            return self.move_base(now);
        }
        self.put(place, Self::short(place, ahead, self.arranged));
    }

    #[inline]
    fn short(place: usize, ahead: u64, arranged: u64) -> u64 {
        match ahead < Self::FAR {
            true => ahead << Self::TIME_SHIFT | arranged << Self::PLACE_BITS | place as u64,
            false => Self::FAR << Self::TIME_SHIFT | place as u64,
        }
    }

    /// Makes all short keys anew, from `now` on and with new numbers.
    #[cold]
    fn move_base(&mut self, now: Ns) {
        let mut held: Vec<_> = (0..self.keys.len()).filter(|&place| self.keys[place] != Key::NEVER).collect();
        held.sort_unstable_by_key(|&place| self.keys[place]);
        self.base = now;
        self.arranged = held.len() as u64;
        for (number, place) in (1..).zip(held) {
            // What was taken lies before, and is never looked at again.
            let ahead = self.keys[place].time().0.saturating_sub(now.0);
            self.put(place, Self::short(place, ahead, number));
        }
    }

    #[inline]
    fn put(&mut self, place: usize, key: u64) {
        let (mut group, mut slot, mut least) = (self.begin + place / 4, place % 4, key);
        loop {
            let keys = &mut self.groups[group];
            // Where the least is the same as before, nothing changes further up.
            if std::mem::replace(&mut keys[slot], least) == least {
                return;
            }
            least = keys[0].min(keys[1]).min(keys[2].min(keys[3]));
            if group == 0 {
                self.least = least;
                return;
            }
            (group, slot) = ((group - 1) / 4, (group - 1) % 4);
        }
    }

    /// The least key with its place.
    #[inline(always)]
    fn first(&mut self) -> Key {
        if self.taken.is_some() {
            self.drop_taken();
        }
        match self.least {
            Self::NEVER => Key::NEVER,
            least if least >> Self::TIME_SHIFT == Self::FAR => self.first_of_far(),
            least => {
                let place = Self::place(least);
                self.keys[place].at(place)
            }
        }
    }

    #[inline(never)]
    fn drop_taken(&mut self) {
        if let Some(place) = self.taken.take() {
            self.keys[place] = Key::NEVER;
            self.put(place, Self::NEVER);
        }
    }

    #[cold]
    fn first_of_far(&self) -> Key {
        let placed = self.keys.iter().enumerate().filter(|(_, key)| **key != Key::NEVER);
        placed.map(|(place, key)| key.at(place)).min().unwrap_or(Key::NEVER)
    }

    /// The least, which [`first`](Self::first) has told, is over.
    fn take(&mut self, least: Key) {
        self.taken = Some(least.place());
    }

    fn place(short: u64) -> usize {
        short as usize & ((1 << Self::PLACE_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(queue: &mut Queue, end: Ns) -> Vec<(u64, Occurrence)> {
        std::iter::from_fn(|| queue.pop_until(end)).map(|(time, occurrence)| (time.0, occurrence)).collect()
    }

    #[test]
    fn ties_go_by_arrangement_after_ticks() {
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
    fn cpus_that_are_armed_while_others_tick_wait_for_the_next_instant() {
        let mut queue = Queue::new(4);
        queue.arrange_tick(Cpu(2), Ns(4));
        queue.arrange_tick(Cpu(1), Ns(4));
        assert_eq!(queue.pop_until(Ns(3)), None);
        assert_eq!(queue.pop_until(Ns(4)), Some((Ns(4), Occurrence::Tick { cpu: Cpu(1) })));
        queue.arrange_tick(Cpu(1), Ns(8));
        queue.arrange_tick(Cpu(3), Ns(8));
        assert_eq!(queue.pop_until(Ns(4)), Some((Ns(4), Occurrence::Tick { cpu: Cpu(2) })));
        queue.arrange_tick(Cpu(0), Ns(8));
        let order = [0, 1, 3].map(|cpu| (8, Occurrence::Tick { cpu: Cpu(cpu) }));
        assert_eq!(take_all(&mut queue, Ns::MAX), order);
        assert_eq!(queue.pop_until(Ns::MAX), None);
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

    /// Ends near and beyond what short keys tell apart, arranged and arranged anew many times, some at the same time.
    #[test]
    fn far_ends_come_in_order() {
        let far = Tournament::FAR;
        let mut stream = crate::rng::Stream::new(7, "far");
        let mut queue = Queue::new(9);
        let mut pending = [None; 9];
        let (mut now, mut moved) = (0, 0);
        for number in 0..40_000u64 {
            let ahead =
                [stream.below(3), stream.below(5_000), far - 1 + stream.below(3), 2 * far + stream.below(2)];
            let kind = if number % 500 == 0 { 2 + stream.below(2) } else { stream.below(2) };
            let (cpu, time) = (stream.below(9) as usize, now + ahead[kind as usize]);
            queue.arrange_phase_end(Cpu(cpu as u32), Ns(time));
            pending[cpu] = Some((time, number));
            let takes = if number % 5_000 > 4_900 { 2 } else { stream.below(2) };
            for _ in 0..takes {
                let held = pending.iter().enumerate().filter_map(|(cpu, end)| Some(((*end)?, cpu)));
                let Some(((time, _), cpu)) = held.min() else { break };
                let taken = queue.pop_until(Ns::MAX);
                assert_eq!(
                    taken,
                    Some((Ns(time), Occurrence::PhaseEnds { cpu: Cpu(cpu as u32) })),
                    "{number}"
                );
                moved += u64::from(time - now >= far);
                (now, pending[cpu]) = (time, None);
            }
        }
        assert!(moved > 5 && queue.phase_ends.base > Ns(far), "{moved} times as far as a base reaches");
    }
}
