//! What can happen next, and the queue that orders it.

mod near;
mod ticks;
mod tournament;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{GroupTimer, TaskId};

use near::Near;
use ticks::Ticks;
use tournament::Tournament;

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
/// Time in the upper 64 bits, then 44 of the number of arrangement and 20 of a place: one comparison, without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

impl Key {
    const NEVER: Key = Key(u128::MAX);
    const PLACE_BITS: u32 = 20;
    const NUMBER_BITS: u32 = 64 - Key::PLACE_BITS;

    fn new(time: Ns, number: u64, place: usize) -> Key {
        Key(u128::from(time.0) << 64 | u128::from(number << Key::PLACE_BITS | place as u64))
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
/// What comes soon, most of all the ends of kernel work, is in a short list. Of what comes later, each CPU has at most one end
/// of a phase and one end of a slice, with places of their own; CPUs tick all together; all others are in a heap. Of one time,
/// what comes soon was arranged last.
#[derive(Debug)]
pub(super) struct Queue {
    near: Near,
    nr_cpus: usize,
    /// Places of near ones are CPUs' for ends of phases, then CPUs' for ends of slices, then others'; whether each end is there.
    ends_soon: Vec<bool>,
    phase_ends: Tournament,
    hrticks: Tournament,
    ticks: Ticks,
    heap: BinaryHeap<Reverse<Key>>,
    /// What is neither an end nor a tick, by place behind the CPUs, and free places.
    others: Vec<Occurrence>,
    free: Vec<usize>,
    /// Nothing that is not near comes before.
    rest: Ns,
    arranged: u64,
    /// The time of what was taken last: nothing is arranged before.
    now: Ns,
}

/// Where the first of all that is not near is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Nothing,
    PhaseEnds,
    Hrticks,
    Ticks,
    Heap,
}

impl Queue {
    /// What comes within this time comes soon: longer than nearly all kernel work, shorter than nearly all of user mode.
    const SOON: Ns = Ns(8_000);

    pub fn new(nr_cpus: usize) -> Queue {
        Queue {
            near: Near::default(),
            nr_cpus,
            ends_soon: vec![false; 2 * nr_cpus],
            phase_ends: Tournament::new(nr_cpus),
            hrticks: Tournament::new(nr_cpus),
            ticks: Ticks::new(nr_cpus),
            heap: BinaryHeap::new(),
            others: Vec::new(),
            free: Vec::new(),
            rest: Ns::MAX,
            arranged: 0,
            now: Ns::ZERO,
        }
    }

    /// The place of the first of the others.
    fn first_other(&self) -> usize {
        self.ends_soon.len()
    }

    fn comes_soon(&self, time: Ns) -> bool {
        time.0 < self.now.0 + Queue::SOON.0
    }

    /// The key of something that does not come soon.
    fn key(&mut self, time: Ns, place: usize) -> Key {
        self.rest = self.rest.min(time);
        self.arranged += 1;
        assert!(self.arranged >> Key::NUMBER_BITS == 0, "more arrangements than a key can tell apart");
        Key::new(time, self.arranged, place)
    }

    /// What is arranged at places among the near ones and in the heap: when, and what.
    fn pending(&self) -> impl Iterator<Item = (Ns, Occurrence)> {
        let far = self.heap.iter().map(|Reverse(key)| (key.time(), key.place()));
        self.near.iter().chain(far).map(|(time, place)| (time, self.at(place)))
    }

    fn at(&self, place: usize) -> Occurrence {
        match place.checked_sub(self.first_other()) {
            Some(other) => self.others[other],
            None if place < self.nr_cpus => Occurrence::PhaseEnds { cpu: Cpu(place as u32) },
            None => Occurrence::Hrtick { cpu: Cpu((place - self.nr_cpus) as u32) },
        }
    }

    /// When the next timer of any CPU expires; never, if there is none.
    pub fn next_expiry(&mut self) -> Ns {
        let is_hrtick = |occurrence| matches!(occurrence, Occurrence::Hrtick { .. });
        let timers = self.pending().filter(|&(_, occurrence)| occurrence.is_timer() || is_hrtick(occurrence));
        let timer = timers.map(|(time, _)| time).min().unwrap_or(Ns::MAX);
        self.ticks.instant().min(timer).min(self.hrticks.first().time())
    }

    /// When the next timer of `cpu` expires, if any is armed there.
    pub fn next_timer(&self, cpu: Cpu) -> Option<Ns> {
        let is_timer = |occurrence: Occurrence| occurrence.is_timer() && occurrence.cpu() == cpu;
        self.pending().filter(|&(_, occurrence)| is_timer(occurrence)).map(|(time, _)| time).min()
    }

    /// Arranges the end of `cpu`'s phase, instead of what was arranged for it before.
    pub fn arrange_phase_end(&mut self, cpu: Cpu, time: Ns) {
        self.cancel_phase_end(cpu);
        if !self.arrange_soon(cpu.index(), time) {
            let key = self.key(time, cpu.index());
            self.phase_ends.set(key);
        }
    }

    /// `cpu`'s phase does not end by itself.
    pub fn cancel_phase_end(&mut self, cpu: Cpu) {
        self.phase_ends.cancel(cpu.index());
        self.cancel_soon(cpu.index());
    }

    /// Arranges the end of `cpu`'s slice, instead of what was arranged for it before; `None`: it does not end by itself.
    pub fn arrange_hrtick(&mut self, cpu: Cpu, time: Option<Ns>) {
        self.hrticks.cancel(cpu.index());
        self.cancel_soon(self.nr_cpus + cpu.index());
        let Some(time) = time else { return };
        if !self.arrange_soon(self.nr_cpus + cpu.index(), time) {
            let key = self.key(time, cpu.index());
            self.hrticks.set(key);
        }
    }

    /// Puts an end among the near ones if it is one.
    #[inline]
    fn arrange_soon(&mut self, place: usize, time: Ns) -> bool {
        let soon = self.comes_soon(time);
        if soon {
            self.ends_soon[place] = true;
            self.near.insert(time, place);
        }
        soon
    }

    #[inline]
    fn cancel_soon(&mut self, place: usize) {
        if std::mem::take(&mut self.ends_soon[place]) {
            self.near.remove(place);
        }
    }

    /// Arranges `cpu`'s next tick: the next instant at which CPUs tick, which is the same for all.
    pub fn arrange_tick(&mut self, cpu: Cpu, time: Ns) {
        self.ticks.arrange(cpu, time);
        self.rest = self.rest.min(time);
    }

    /// Arranges an interrupt.
    pub fn arrange_interrupt(&mut self, cpu: Cpu, time: Ns, interrupt: Interrupt) {
        self.arrange(time, Occurrence::Interrupt { cpu, interrupt });
    }

    /// Arranges that a waker on `cpu` goes on.
    pub fn arrange_wakeup(&mut self, cpu: Cpu, time: Ns, task: TaskId, sync: bool) {
        self.arrange(time, Occurrence::WokenLeft { cpu, task, sync });
    }

    /// Arranges the end of a turn of `cpu`.
    pub fn arrange_turn_end(&mut self, cpu: Cpu, time: Ns, number: u64) {
        self.arrange(time, Occurrence::TurnEnds { cpu, number });
    }

    fn arrange(&mut self, time: Ns, other: Occurrence) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.others.push(other);
            self.others.len() - 1
        });
        self.others[place] = other;
        let place = self.first_other() + place;
        assert!(place >> Key::PLACE_BITS == 0, "more is pending than a key can tell apart");
        if self.comes_soon(time) {
            self.near.insert(time, place);
        } else {
            let key = self.key(time, place);
            self.heap.push(Reverse(key));
        }
    }

    /// Takes the next occurrence, if it is not after `end`.
    #[inline]
    pub fn pop_until(&mut self, end: Ns) -> Option<(Ns, Occurrence)> {
        match self.near.first() {
            time if time < self.rest && time <= end => Some(self.take_near(time)),
            _ => self.pop_rest(end),
        }
    }

    /// Takes the first of those that are near, which comes at `time`.
    #[inline]
    fn take_near(&mut self, time: Ns) -> (Ns, Occurrence) {
        self.now = time;
        let place = self.near.take();
        let Some(ends_soon) = self.ends_soon.get_mut(place) else { return (time, self.take_other(place)) };
        *ends_soon = false;
        (time, self.at(place))
    }

    fn take_other(&mut self, place: usize) -> Occurrence {
        let place = place - self.first_other();
        self.free.push(place);
        self.others[place]
    }

    /// Takes the next occurrence, if it is not after `end`: most of the time one that is not near.
    #[inline(never)]
    fn pop_rest(&mut self, end: Ns) -> Option<(Ns, Occurrence)> {
        let near = self.near.first();
        let (time, source) = self.first_of_rest();
        if near < time && near <= end {
            return Some(self.take_near(near));
        }
        if time > end || source == Source::Nothing {
            return None;
        }
        self.now = time;
        let occurrence = match source {
            Source::Nothing => unreachable!("there is something"),
            Source::Ticks => return Some((time, Occurrence::Tick { cpu: self.ticks.take() })),
            Source::PhaseEnds => Occurrence::PhaseEnds { cpu: Cpu(self.phase_ends.take() as u32) },
            Source::Hrticks => Occurrence::Hrtick { cpu: Cpu(self.hrticks.take() as u32) },
            Source::Heap => {
                let Reverse(key) = self.heap.pop().expect("its first was looked at");
                self.take_other(key.place())
            }
        };
        // What comes soon is told apart from the rest without asking again.
        self.first_of_rest();
        Some((time, occurrence))
    }

    /// When the first of all that is not near comes, and where it is.
    fn first_of_rest(&mut self) -> (Ns, Source) {
        let tick = self.ticks.instant();
        if tick == self.now {
            return (tick, Source::Ticks);
        }
        let (mut first, mut source) = (self.phase_ends.first(), Source::PhaseEnds);
        if let Some(&Reverse(key)) = self.heap.peek()
            && key < first
        {
            (first, source) = (key, Source::Heap);
        }
        let hrtick = self.hrticks.first();
        if hrtick < first {
            (first, source) = (hrtick, Source::Hrticks);
        }
        self.rest = tick.min(first.time());
        match self.rest {
            Ns::MAX => (Ns::MAX, Source::Nothing),
            time if time == tick => (time, Source::Ticks),
            time => (time, source),
        }
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

    /// Ends, interrupts, ends of slices and ticks, soon, late and at the limit between, many at the same time: what is taken is
    /// what a list of all would give.
    #[test]
    fn all_come_in_order() {
        const CPUS: u64 = 70;
        let soon = Queue::SOON.0;
        let mut stream = crate::rng::Stream::new(7, "order");
        let mut queue = Queue::new(CPUS as usize);
        let mut pending: Vec<(u64, u64, Occurrence)> = Vec::new();
        let (mut now, mut crowd) = (0, 0);
        for number in 1..60_000u64 {
            let ahead =
                [stream.below(3), stream.below(900), soon - 1 + stream.below(3), soon * stream.below(99)];
            let time = now + ahead[stream.below(4) as usize];
            let cpu = Cpu(stream.below(CPUS) as u32);
            let replace =
                |pending: &mut Vec<_>, occurrence| pending.retain(|&(_, _, other)| other != occurrence);
            match stream.below(8) {
                0..4 => {
                    let end = Occurrence::PhaseEnds { cpu };
                    replace(&mut pending, end);
                    queue.arrange_phase_end(cpu, Ns(time));
                    pending.push((time, number, end));
                }
                4 => {
                    replace(&mut pending, Occurrence::PhaseEnds { cpu });
                    queue.cancel_phase_end(cpu);
                }
                5 => {
                    let end = Occurrence::Hrtick { cpu };
                    replace(&mut pending, end);
                    let until = (number % 3 > 0).then_some(time);
                    queue.arrange_hrtick(cpu, until.map(Ns));
                    pending.extend(until.map(|time| (time, number, end)));
                }
                6 => {
                    let tick = Occurrence::Tick { cpu };
                    let instant = (now / 50_000 + 1) * 50_000;
                    if pending.iter().all(|&(_, _, other)| other != tick) {
                        queue.arrange_tick(cpu, Ns(instant));
                        // Before all else of that instant, by CPU.
                        pending.push((instant, 0, tick));
                    }
                }
                _ => {
                    let interrupt = Interrupt::Timer { thread: number as u32 };
                    queue.arrange_interrupt(cpu, Ns(time), interrupt);
                    pending.push((time, number, Occurrence::Interrupt { cpu, interrupt }));
                }
            }
            crowd = crowd.max(queue.near.iter().count());
            let expires =
                |&&(_, _, what): &&(u64, u64, Occurrence)| !matches!(what, Occurrence::PhaseEnds { .. });
            let expiry = pending.iter().filter(expires).map(|&(time, _, _)| Ns(time)).min();
            assert_eq!(queue.next_expiry(), expiry.unwrap_or(Ns::MAX), "{number}");
            // Now and then nearly all is taken.
            let takes = if number % 1_000 > 900 { 2 } else { stream.below(2) };
            for _ in 0..takes {
                let end = now + stream.below(20_000);
                let next = (0..pending.len())
                    .min_by_key(|&index| (pending[index].0, pending[index].1, pending[index].2.cpu().0));
                let due =
                    next.filter(|&index| pending[index].0 <= end).map(|index| pending.swap_remove(index));
                let expected = due.map(|(time, _, occurrence)| (Ns(time), occurrence));
                assert_eq!(queue.pop_until(Ns(end)), expected, "{number}");
                now = due.map_or(now, |(time, _, _)| time);
            }
        }
        assert!(now > 10_000_000 && crowd > 32, "{now} ns, and {crowd} at once make the list grow");
        assert!(queue.others.len() < 1_000, "places are used again: {}", queue.others.len());
    }
}
