//! Idle states: which one a CPU that goes idle chooses, and how long it takes to leave it.
//!
//! The governor is menu in outline: it expects the CPU to idle until its next timer, or for as long as it did the last
//! times if those were alike, and takes the deepest state that pays off until then.
//!
//! Departs: without menu's correction of timers by experience, its aversion to deep states while I/O is under way, and
//! polling; a chosen state is kept until an interrupt comes.

use fairlab_event::{Cpu, Ns};

use super::Engine;
use super::cpu::Phase;
use crate::machine::IdleState;

/// How many idle times are remembered (`INTERVALS`).
const INTERVALS: usize = 8;

/// What is remembered of one CPU (`struct menu_device`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuIdle {
    since: Ns,
    /// The state that it is in, by its place in the machine's list.
    state: Option<usize>,
    /// How long it idled the last times, us.
    intervals: [u64; INTERVALS],
    next: usize,
}

impl CpuIdle {
    /// For how long the CPU has been idling lately, us; `None` if that differs too much.
    ///
    /// Kernel: `get_typical_interval()`, drivers/cpuidle/governors/menu.c.
    fn typical_interval(&self) -> Option<u64> {
        let mut limit = u64::MAX;
        loop {
            let kept = self.intervals.iter().copied().filter(|&us| us <= limit);
            let count = kept.clone().count() as u64;
            let average = kept.clone().sum::<u64>() / count.max(1);
            let variance = kept.clone().map(|us| us.abs_diff(average).pow(2)).sum::<u64>() / count.max(1);
            // The longest may be an exception; of a quarter of them that is not believed.
            if count * 4 <= INTERVALS as u64 * 3 {
                return None;
            }
            if variance <= 400 || average.pow(2) > 36 * variance {
                return Some(average);
            }
            limit = kept.max().unwrap_or(0).saturating_sub(1);
        }
    }
}

impl Engine {
    /// A CPU that has gone idle chooses a state.
    pub(super) fn enter_idle_state(&mut self, cpu: Cpu) {
        if self.idle.is_empty() {
            return;
        }
        let until_timer = self.queue.next_timer(cpu).map_or(u64::MAX, |timer| timer.since(self.now).0 / 1000);
        let idle = &self.idle[cpu.index()];
        let expected = until_timer.min(idle.typical_interval().unwrap_or(u64::MAX));
        let pays_off = |state: &IdleState| {
            state.cpus.contains(cpu)
                && state.residency.0 / 1000 <= expected
                && state.exit.0 / 1000 <= expected
        };
        let states = &self.machine.idle_states;
        let shallowest = states.iter().position(|state| state.cpus.contains(cpu));
        let chosen = states.iter().rposition(pays_off).or(shallowest);
        self.idle[cpu.index()] = CpuIdle { since: self.now, state: chosen, ..self.idle[cpu.index()] };
        self.kernel.idle_set_state(cpu, chosen.map(|state| self.machine.idle_states[state].exit));
    }

    /// An idle CPU is woken. Returns how long it takes to leave its state; `None` if the machine tells no states.
    pub(super) fn leave_idle_state(&mut self, cpu: Cpu) -> Option<Ns> {
        if self.idle.is_empty() {
            return None;
        }
        let exit = self.idle[cpu.index()].state.map(|state| self.exit_of(cpu, state));
        let (idle, now) = (&mut self.idle[cpu.index()], self.now);
        idle.intervals[idle.next] = now.since(idle.since).0 / 1000;
        idle.next = (idle.next + 1) % INTERVALS;
        idle.state = None;
        self.kernel.idle_set_state(cpu, None);
        exit
    }

    /// How long leaving `state` takes: one that CPUs must be in together counts only if they are.
    fn exit_of(&self, cpu: Cpu, state: usize) -> Ns {
        let of_state = &self.machine.idle_states[state];
        let asleep = |other: Cpu| {
            self.cpus[other.index()].phase == Phase::Idle && self.idle[other.index()].state == Some(state)
        };
        if !of_state.together || of_state.cpus.iter().all(asleep) {
            return of_state.exit;
        }
        let shallower = self.machine.idle_states[..state].iter().rfind(|other| other.cpus.contains(cpu));
        shallower.map_or(of_state.exit, |other| other.exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typical(intervals: [u64; INTERVALS]) -> Option<u64> {
        CpuIdle { intervals, ..CpuIdle::default() }.typical_interval()
    }

    #[test]
    fn what_was_alike_is_expected_again_whatever_the_exception() {
        assert_eq!(typical([500; 8]), Some(500));
        assert_eq!(typical([500, 510, 490, 505, 495, 500, 500, 9000]), Some(500));
        assert_eq!(typical([10, 4000, 200, 30_000, 900, 77, 12_000, 3]), None);
    }
}
