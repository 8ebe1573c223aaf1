//! CPUs that one thread of a host runs in turn: whose turn it is, and what waits for it.
//!
//! A CPU does nothing outside its turn. Its work stands still, and it sees interrupts, timers and its tick when its turn
//! comes. An idle CPU gives its turn away at once. [`crate::machine::vcpu_rounds`] has the length of turns.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::TaskId;

use super::Engine;
use super::cpu::CpuPhase;
use super::occurrence::Occurrence;
use crate::machine::Chance;
use crate::machine::vcpu_rounds::{VcpuRounds, period};
use crate::scheduler_core::SchedulerCore;

/// Whose turn it is.
pub(super) struct VcpuTurns<M> {
    /// `None` while all idle.
    on: Option<Cpu>,
    /// Which turn that is: an end that was arranged for an earlier one is void.
    number: u64,
    rounds: VcpuRounds,
    waiting: Vec<StandingCpu<M>>,
}

/// A CPU that stands still.
pub(super) struct StandingCpu<M> {
    /// What its phase has left.
    pub left: Ns,
    /// What has become due.
    pub missed: Vec<Occurrence<M>>,
}

impl<M> Default for StandingCpu<M> {
    fn default() -> StandingCpu<M> {
        StandingCpu { left: Ns::ZERO, missed: Vec::new() }
    }
}

impl<M> VcpuTurns<M> {
    /// No CPU has begun. The timer that bounds turns expires at some instant, which is the seed's.
    pub fn new(nr_cpus: usize, chance: &Chance, seed: u64) -> VcpuTurns<M> {
        let waiting = (0..nr_cpus).map(|_| StandingCpu::default()).collect();
        let phase = chance.phase(seed, "turns", period(nr_cpus));
        VcpuTurns { on: None, number: 0, rounds: VcpuRounds::new(nr_cpus, phase), waiting }
    }
}

impl<C: SchedulerCore> Engine<C> {
    /// Whether `occurrence` must wait, on a machine whose CPUs take turns, or was the end of one.
    pub(super) fn waits_for_turn(&mut self, occurrence: Occurrence<C::Message>) -> bool {
        let cpu = occurrence.cpu();
        let state = &self.cpus[cpu.index()];
        let unseen = state.phase == CpuPhase::Idle && state.tick_stopped;
        let Some(turns) = &mut self.turns else { return false };
        let is_timer = match occurrence {
            Occurrence::TurnEnds { number, .. } => {
                if number == turns.number {
                    self.end_turn();
                }
                return true;
            }
            // Nobody sees it.
            Occurrence::Tick { .. } if unseen => return false,
            Occurrence::Tick { .. } | Occurrence::ClockEvent { .. } => true,
            Occurrence::Interrupt { interrupt, .. } => interrupt.is_timer(),
            Occurrence::PhaseEnds { .. } | Occurrence::WokenLeft { .. } => false,
            Occurrence::LimitChanges { .. } | Occurrence::HostTurns { .. } => {
                unreachable!("CPUs that take turns are as fast as their thread, and are not stolen")
            }
        };
        if turns.on == Some(cpu) && !is_timer {
            return false;
        }
        turns.waiting[cpu.index()].missed.push(occurrence);
        // A timer that expires ends the turn of whoever has it.
        if is_timer || turns.on.is_none() {
            self.give_turn_away();
        }
        true
    }

    /// The turn ends with this instant, when all that is due at it has been noted.
    pub(super) fn give_turn_away(&mut self) {
        let Some(turns) = &mut self.turns else { return };
        turns.number += 1;
        let cpu = turns.on.unwrap_or(Cpu(0));
        self.queue.arrange_turn_end(cpu, self.now, turns.number);
    }

    /// A waker on `cpu` finds that it has to wait for another CPU, which goes on only when its turn comes: it looks again in
    /// its own next turn. Returns whether that is how CPUs wait here.
    pub(super) fn waits_until_next_turn(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> bool {
        let Some(turns) = &mut self.turns else { return false };
        let again = Occurrence::WokenLeft { cpu, task, sync };
        turns.waiting[cpu.index()].missed.push(again);
        self.give_turn_away();
        true
    }

    /// Whether `cpu` waits for its turn, or is away.
    pub(super) fn stands_still(&self, cpu: Cpu) -> bool {
        self.turns.as_ref().is_some_and(|turns| turns.on != Some(cpu))
            || self.stolen.as_ref().is_some_and(|stolen| stolen.has(cpu))
    }

    /// What waits for `cpu`, if it stands still.
    pub(super) fn standing(&mut self, cpu: Cpu) -> Option<&mut StandingCpu<C::Message>> {
        match &mut self.turns {
            Some(turns) if turns.on == Some(cpu) => None,
            Some(turns) => Some(&mut turns.waiting[cpu.index()]),
            None => self.stolen.as_mut()?.standing(cpu),
        }
    }

    /// `cpu` no longer stands still: it goes on with what it was at, and sees what it has missed.
    pub(super) fn go_on_after(&mut self, cpu: Cpu, standing: StandingCpu<C::Message>) {
        let (polls, StandingCpu { left, missed }) = (self.polls(cpu), standing);
        let state = &mut self.cpus[cpu.index()];
        if state.phase != CpuPhase::Idle {
            // The clock went on for one that waits for a certain time.
            state.until = if polls { state.until.max(self.now) } else { self.now + left };
            self.queue.arrange_phase_end(cpu, state.until);
        }
        self.look_again(cpu);
        for occurrence in missed {
            self.carry_on(occurrence);
        }
    }

    /// The CPU whose turn it is stands still from now on, and the next one goes on.
    fn end_turn(&mut self) {
        let Some(turns) = &mut self.turns else { return };
        if let Some(cpu) = turns.on.take() {
            turns.waiting[cpu.index()].left = self.cpus[cpu.index()].until.since(self.now);
            self.queue.cancel_phase_end(cpu);
        }
        let cpus = &self.cpus;
        let goes_on = |cpu: Cpu, waiting: &[StandingCpu<C::Message>]| {
            cpus[cpu.index()].phase != CpuPhase::Idle || !waiting[cpu.index()].missed.is_empty()
        };
        let VcpuTurns { rounds, waiting, .. } = &mut **turns;
        let timer = self.queue.next_expiry();
        if let Some((cpu, turn)) = rounds.next(self.now, timer, |cpu| goes_on(cpu, waiting)) {
            self.begin_turn(cpu, turn);
        }
    }

    fn begin_turn(&mut self, cpu: Cpu, turn: Ns) {
        let Some(turns) = &mut self.turns else { return };
        turns.on = Some(cpu);
        turns.number += 1;
        self.queue.arrange_turn_end(cpu, self.now + turn, turns.number);
        let standing = std::mem::take(&mut turns.waiting[cpu.index()]);
        self.go_on_after(cpu, standing);
        if self.cpus[cpu.index()].phase == CpuPhase::Idle {
            self.give_turn_away();
        }
    }

    /// Whether `cpu` stands still; if so, what it computes takes no longer than `least` then.
    pub(super) fn is_shortened(&mut self, cpu: Cpu, least: Ns) -> bool {
        let now = self.now;
        let Some(standing) = self.standing(cpu) else { return false };
        standing.left = standing.left.min(least);
        let until = now + standing.left;
        self.cpus[cpu.index()].until = self.cpus[cpu.index()].until.min(until);
        true
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{Event, EventKind, sink_fn};

    use super::*;
    use crate::machine::Machine;
    use crate::workload::spinners::Spinners;

    /// Two CPUs that compute, in turn, HZ 1000, until `end`.
    fn run(seed: u64, end: Ns, mut see: impl FnMut(&Event<'_>)) -> Engine {
        let machine = Machine { in_turn: true, ..crate::engine::tests::machine(2) };
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, seed);
        engine.set_tracing(true);
        let args = ["-n", "0,0", "-r", "1"].map(str::to_string);
        engine.start(Box::new(Spinners::parse(&args).expect("a workload")));
        engine.run_until(end, &mut sink_fn(|event: &Event<'_>| see(event)));
        engine
    }

    #[test]
    fn ticks_that_are_due_at_once_are_seen_one_after_the_other() {
        let mut seen = Vec::new();
        run(3, Ns::from_ms(140), |event| {
            let millisecond = event.time.0 / 1_000_000;
            if millisecond > 120 && matches!(event.kind, EventKind::SchedStatRuntime { .. }) {
                seen.push((millisecond, event.cpu, event.time.0 % 1_000_000));
            }
        });
        let pairs: Vec<_> =
            seen.chunk_by(|one, other| one.0 == other.0).filter(|pair| pair.len() == 2).collect();
        assert!(pairs.len() > 15, "{seen:?}");
        for pair in pairs {
            assert_ne!(pair[0].1, pair[1].1, "{pair:?}");
            // Each in its next turn: before the timer that bounds turns has expired twice.
            assert!(pair[0].2 < pair[1].2 && pair[1].2 <= 20_000, "{pair:?}");
        }
    }

    #[test]
    fn an_interrupt_is_seen_when_its_cpu_has_its_turn() {
        let mut engine = run(1, Ns::from_ms(120), |_| ());
        let on = engine.turns.as_ref().and_then(|turns| turns.on).expect("both compute");
        let other = Cpu(1 - on.0);
        let resched =
            |cpu| Occurrence::Interrupt { cpu, interrupt: crate::engine::occurrence::Interrupt::Resched };
        assert!(!engine.waits_for_turn(resched(on)), "at once");
        assert!(engine.waits_for_turn(resched(other)), "it stands still");
        let missed = |engine: &Engine| {
            let turns = engine.turns.as_ref().expect("they take turns");
            (turns.on, turns.waiting[other.index()].missed.len())
        };
        assert_eq!(missed(&engine), (Some(on), 1), "the turn goes on");
        engine.run_until(Ns::from_ms(120) + Ns(20_000), &mut ());
        assert_eq!(missed(&engine).1, 0);
    }

    #[test]
    fn a_timer_that_expires_ends_a_turn() {
        let mut engine = run(1, Ns::from_ms(120), |_| ());
        let on = engine.turns.as_ref().and_then(|turns| turns.on).expect("both compute");
        assert!(engine.waits_for_turn(Occurrence::Tick { cpu: on }), "it is seen in the next turn");
        let number = engine.turns.as_ref().map(|turns| turns.number);
        let (time, next) = engine.queue.pop_until(Ns::MAX).expect("something is to come");
        assert_eq!(
            (time, Some(next)),
            (engine.now(), number.map(|number| Occurrence::TurnEnds { cpu: on, number }))
        );
    }
}
