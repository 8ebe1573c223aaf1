//! What can happen next, and the queue that orders it.

mod ticks;
mod wheel;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::TaskId;

use ticks::Ticks;
use wheel::Wheel;

/// Everything that the loop can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occurrence<M> {
    /// A CPU's phase ends.
    PhaseEnds { cpu: Cpu },
    /// A CPU's periodic tick.
    Tick { cpu: Cpu },
    /// The timer of a CPU that the scheduler arms.
    ClockEvent { cpu: Cpu },
    /// An interrupt reaches a CPU.
    Interrupt { cpu: Cpu, interrupt: Interrupt<M> },
    /// A waker on a CPU looks whether the task that it wakes has been switched out where it slept.
    WokenLeft { cpu: Cpu, task: TaskId, sync: bool },
    /// The turn of that number ends, which is that of this CPU.
    TurnEnds { cpu: Cpu, number: u64 },
    /// A limit of CPUs' speed changes, of which this is the first.
    LimitChanges { cpu: Cpu, number: usize },
    /// A host takes a CPU away, or gives it back.
    HostTurns { cpu: Cpu },
}

impl<M> Occurrence<M> {
    /// The CPU that it happens on.
    pub fn cpu(self) -> Cpu {
        match self {
            Occurrence::PhaseEnds { cpu }
            | Occurrence::Tick { cpu }
            | Occurrence::ClockEvent { cpu }
            | Occurrence::Interrupt { cpu, .. }
            | Occurrence::WokenLeft { cpu, .. }
            | Occurrence::TurnEnds { cpu, .. }
            | Occurrence::LimitChanges { cpu, .. }
            | Occurrence::HostTurns { cpu } => cpu,
        }
    }
}

impl<M> Occurrence<M> {
    /// Whether a timer expires that is neither the tick nor a clock event.
    fn is_timer(&self) -> bool {
        matches!(self, Occurrence::Interrupt { interrupt, .. } if interrupt.is_timer())
    }
}

/// An interrupt other than the tick of a busy CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt<M> {
    /// Reschedule.
    Resched,
    /// Another CPU, or this one, sends what the scheduler understands.
    Message(M),
    /// A timer of the scheduler's expires here.
    SchedulerTimer(M),
    /// A thread's sleep timer expires here.
    Timer { thread: u32, sleep: u32 },
    /// A device has something to say.
    Device,
    /// The timer of delayed work expires: the CPU's kworker has something to do.
    Kworker,
    /// The tick of a CPU that idles.
    Tick,
    /// The timer that the scheduler arms, of a CPU that idles.
    ClockEvent,
}

impl<M> Interrupt<M> {
    /// Whether a timer expires that is neither the tick nor the CPU's clock event.
    pub fn is_timer(&self) -> bool {
        matches!(self, Interrupt::Timer { .. } | Interrupt::SchedulerTimer(_) | Interrupt::Kworker)
    }
}

/// Occurrences by time, and by arrangement where times are equal; ticks come first.
///
/// Each CPU has at most one end of a phase and one clock event; CPUs tick all together.
#[derive(Debug)]
pub(super) struct OccurrenceQueue<M> {
    /// Places are CPUs' for ends of phases, then CPUs' for clock events, then others'.
    wheel: Wheel,
    /// The end of a phase that was arranged last of all, if it is not in the wheel yet: most of the time it comes next.
    latest: Option<(Ns, usize)>,
    nr_cpus: usize,
    ticks: Ticks,
    /// What is neither an end nor a tick, by place behind the CPUs, and free places.
    others: Vec<Occurrence<M>>,
    free: Vec<usize>,
    /// Per CPU which of them are timers.
    timers: Vec<Vec<usize>>,
}

impl<M: Copy> OccurrenceQueue<M> {
    pub fn new(nr_cpus: usize) -> OccurrenceQueue<M> {
        let (wheel, ticks) = (Wheel::new(2 * nr_cpus), Ticks::new(nr_cpus));
        let timers = vec![Vec::new(); nr_cpus];
        OccurrenceQueue { wheel, latest: None, nr_cpus, ticks, others: Vec::new(), free: Vec::new(), timers }
    }

    /// The place of the first of the others.
    fn first_other(&self) -> usize {
        2 * self.nr_cpus
    }

    fn clock_event_of(&self, cpu: Cpu) -> usize {
        self.nr_cpus + cpu.index()
    }

    /// What came at a place that is free from now on.
    #[inline]
    fn take(&mut self, place: usize) -> Occurrence<M> {
        match place.checked_sub(self.first_other()) {
            Some(other) => {
                self.free.push(other);
                let occurrence = self.others[other];
                if occurrence.is_timer() {
                    self.timers[occurrence.cpu().index()].retain(|&timer| timer != other);
                }
                occurrence
            }
            None if place < self.nr_cpus => Occurrence::PhaseEnds { cpu: Cpu(place as u32) },
            None => Occurrence::ClockEvent { cpu: Cpu((place - self.nr_cpus) as u32) },
        }
    }

    /// When the next timer of any CPU expires; never, if there is none.
    pub fn next_expiry(&self) -> Ns {
        let clock_events = (self.nr_cpus..self.first_other()).filter_map(|place| self.wheel.time_at(place));
        let timers = (0..self.nr_cpus as u32).filter_map(|cpu| self.next_timer(Cpu(cpu)));
        clock_events.chain(timers).min().unwrap_or(Ns::MAX).min(self.ticks.instant())
    }

    /// When the next timer of `cpu` expires that is neither the tick nor its clock event, if any is armed there.
    pub fn next_timer(&self, cpu: Cpu) -> Option<Ns> {
        let timers = self.timers[cpu.index()].iter();
        timers.filter_map(|other| self.wheel.time_at(self.first_other() + other)).min()
    }

    /// Arranges the end of `cpu`'s phase, instead of what was arranged for it before.
    #[inline]
    pub fn arrange_phase_end(&mut self, cpu: Cpu, time: Ns) {
        self.put_latest();
        self.latest = Some((time, cpu.index()));
    }

    /// `cpu`'s phase does not end by itself.
    pub fn cancel_phase_end(&mut self, cpu: Cpu) {
        self.put_latest();
        self.wheel.remove(cpu.index());
    }

    /// Arranges `cpu`'s clock event, instead of what was arranged for it before; `None`: there is none.
    pub fn arrange_clock_event(&mut self, cpu: Cpu, time: Option<Ns>) {
        self.put_latest();
        match time {
            Some(time) => self.wheel.put(self.clock_event_of(cpu), time),
            None => self.wheel.remove(self.clock_event_of(cpu)),
        }
    }

    /// What is arranged next comes after it, if both come at one time.
    #[inline]
    fn put_latest(&mut self) {
        if let Some((time, place)) = self.latest.take() {
            self.wheel.put(place, time);
        }
    }

    /// Arranges `cpu`'s next tick: the next instant at which CPUs tick, which is the same for all.
    pub fn arrange_tick(&mut self, cpu: Cpu, time: Ns) {
        self.ticks.arrange(cpu, time);
    }

    /// Arranges an interrupt.
    pub fn arrange_interrupt(&mut self, cpu: Cpu, time: Ns, interrupt: Interrupt<M>) {
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

    /// Arranges that a host takes `cpu` away, or gives it back.
    pub fn arrange_host(&mut self, cpu: Cpu, time: Ns) {
        self.arrange(time, Occurrence::HostTurns { cpu });
    }

    /// Arranges that a limit of CPUs' speed changes.
    pub fn arrange_limit(&mut self, cpu: Cpu, time: Ns, number: usize) {
        self.arrange(time, Occurrence::LimitChanges { cpu, number });
    }

    fn arrange(&mut self, time: Ns, other: Occurrence<M>) {
        self.put_latest();
        let place = self.free.pop().unwrap_or_else(|| {
            self.others.push(other);
            self.wheel.add_place();
            self.others.len() - 1
        });
        self.others[place] = other;
        if other.is_timer() {
            self.timers[other.cpu().index()].push(place);
        }
        self.wheel.put(self.first_other() + place, time);
    }

    /// Takes the next occurrence, if it is not after `end`.
    #[inline(always)]
    pub fn pop_until(&mut self, end: Ns) -> Option<(Ns, Occurrence<M>)> {
        let tick = self.ticks.instant();
        let is_due = |time: Ns| time < tick && time <= end;
        if let Some((time, place)) = self.latest.take() {
            let (first, _) = self.wheel.first_until(time.min(tick).min(end));
            if time < first && is_due(time) {
                self.wheel.remove(place);
                return Some((time, Occurrence::PhaseEnds { cpu: Cpu(place as u32) }));
            }
            self.wheel.put(place, time);
        }
        let (time, place) = self.wheel.first_until(tick.min(end));
        if is_due(time) {
            self.wheel.remove(place);
            return Some((time, self.take(place)));
        }
        let ticks = tick <= end && tick != Ns::MAX;
        ticks.then(|| (tick, Occurrence::Tick { cpu: self.ticks.take() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(queue: &mut OccurrenceQueue<()>, end: Ns) -> Vec<(u64, Occurrence<()>)> {
        std::iter::from_fn(|| queue.pop_until(end)).map(|(time, occurrence)| (time.0, occurrence)).collect()
    }

    #[test]
    fn ties_go_by_arrangement_after_ticks() {
        let mut queue = OccurrenceQueue::<()>::new(5);
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
        let mut queue = OccurrenceQueue::<()>::new(4);
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
        let mut queue = OccurrenceQueue::<()>::new(3);
        queue.arrange_phase_end(Cpu(1), Ns(5));
        queue.arrange_phase_end(Cpu(1), Ns(9));
        queue.arrange_phase_end(Cpu(2), Ns(7));
        queue.cancel_phase_end(Cpu(2));
        assert_eq!(take_all(&mut queue, Ns::MAX), [(9, Occurrence::PhaseEnds { cpu: Cpu(1) })]);
    }

    /// Ends, interrupts, clock events and ticks, soon and late, many at the same time: what is taken is
    /// what a list of all would give.
    #[test]
    fn all_come_in_order() {
        const CPUS: u64 = 70;
        let mut stream = crate::rng::RandomStream::new(7, "order");
        let mut queue = OccurrenceQueue::<()>::new(CPUS as usize);
        let mut pending: Vec<(u64, u64, Occurrence<()>)> = Vec::new();
        let mut now = 0;
        for number in 1..60_000u64 {
            let ahead = [3, 900, 9_000, 400_000, 30_000_000][stream.below(5) as usize];
            let time = now + stream.below(ahead);
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
                    let end = Occurrence::ClockEvent { cpu };
                    replace(&mut pending, end);
                    let until = (number % 3 > 0).then_some(time);
                    queue.arrange_clock_event(cpu, until.map(Ns));
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
                    let interrupt = Interrupt::Timer { thread: number as u32, sleep: 0 };
                    queue.arrange_interrupt(cpu, Ns(time), interrupt);
                    pending.push((time, number, Occurrence::Interrupt { cpu, interrupt }));
                }
            }
            let expires =
                |&&(_, _, what): &&(u64, u64, Occurrence<()>)| !matches!(what, Occurrence::PhaseEnds { .. });
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
        assert!(now > 20_000_000, "{now} ns");
        assert!(queue.others.len() < 1_000, "places are used again: {}", queue.others.len());
    }
}
