//! Idle states: which one a CPU that goes idle chooses, and how long it takes to leave it.
//!
//! The governor is menu as of v6.1 under every kernel. It expects the CPU to idle for that part of the time until its next timer that it
//! idled on average before timers as far away, or as long as the last times if those were alike. It takes the deepest state that pays
//! off in that time.
//!
//! Departs: menu's aversion to deep states during I/O (gone from v6.13 on) and polling are left out. A chosen state is kept until an
//! interrupt comes.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::topology::Platform;

use super::Engine;
use super::cpu::CpuPhase;
use crate::machine::IdleState;
use crate::scheduler_core::SchedulerCore;

/// How far away the next timer counts as where there is none: half a year, of which no part can be told from any other that is long.
const NO_TIMER: Ns = Ns::from_secs(1 << 24);

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
    /// How long it has idled since that was last told to what follows, and whether a tick woke it.
    slept: Option<(Ns, bool)>,
    /// How far away its next timer was when it last went idle (`next_timer_ns`).
    until_timer: Ns,
    corrections: TimerCorrections,
}

/// Which part of the time until a timer CPUs have idled on average, by how far away that was (`correction_factor`, without I/O).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimerCorrections([u64; BUCKETS]);

/// From 10 us on, a bucket for each power of ten.
const BUCKETS: usize = 6;

/// A whole, as averages count it (`RESOLUTION`), and the weight of what was before (`DECAY`).
const RESOLUTION: u64 = 1024;
const DECAY: u64 = 8;

/// Who idles for longer is taken to have idled until the timer (`MAX_INTERESTING`).
const LONG: Ns = Ns(50_000_000);

impl Default for TimerCorrections {
    fn default() -> TimerCorrections {
        TimerCorrections([RESOLUTION * DECAY; BUCKETS])
    }
}

impl TimerCorrections {
    /// Kernel: `which_bucket()`.
    fn bucket(until_timer: Ns) -> usize {
        let bounds = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
        bounds.into_iter().take_while(|&bound| until_timer.0 >= bound).count()
    }

    /// For how long a CPU will idle whose timer is so far away, us.
    fn expected(&self, until_timer: Ns) -> u64 {
        let whole = u128::from(RESOLUTION * DECAY * 1000);
        let corrected = u128::from(until_timer.0) * u128::from(self.0[TimerCorrections::bucket(until_timer)]);
        ((corrected + whole / 2) / whole) as u64
    }

    /// A CPU whose timer was so far away has idled for so long.
    fn learn(&mut self, until_timer: Ns, idled: Ns) {
        let factor = &mut self.0[TimerCorrections::bucket(until_timer)];
        let part = match until_timer {
            Ns(0) => RESOLUTION,
            _ if idled >= LONG => RESOLUTION,
            Ns(timer) => (u128::from(RESOLUTION) * u128::from(idled.0) / u128::from(timer)) as u64,
        };
        *factor = (*factor - *factor / DECAY + part).max(1);
    }
}

impl CpuIdle {
    /// Learns from how long the CPU idled last.
    ///
    /// Kernel: `menu_update()`, drivers/cpuidle/governors/menu.c.
    fn learn(&mut self, tick: Ns) {
        let Some((slept, woken_by_tick)) = self.slept.take() else { return };
        // The tick went on, against what the timer alone says: the CPU could have idled for long.
        let idled = if woken_by_tick && self.until_timer > tick { Ns(LONG.0 / 10 * 9) } else { slept };
        let idled = idled.min(self.until_timer);
        self.corrections.learn(self.until_timer, idled);
        self.intervals[self.next] = idled.0 / 1000;
        self.next = (self.next + 1) % INTERVALS;
    }

    /// For how long the CPU has been idling lately, us; `None` if that differs too much.
    ///
    /// Kernel: `get_typical_interval()`, drivers/cpuidle/governors/menu.c.
    fn typical_interval(&self) -> Option<u64> {
        let mut limit = u64::MAX;
        loop {
            let (mut count, mut sum, mut squares, mut longest) = (0, 0, 0_u64, 0);
            for &us in self.intervals.iter().filter(|&&us| us <= limit) {
                (count, sum, longest) = (count + 1, sum + us, us.max(longest));
                squares = squares.wrapping_add(us.wrapping_mul(us));
            }
            // The longest may be an exception; of a quarter of them that is not believed.
            if count * 4 <= INTERVALS as u64 * 3 {
                return None;
            }
            let average = sum / count;
            // The sum of (us - average)^2, which fits, taken apart into what one pass finds.
            let deviation =
                (count * average).wrapping_sub(2 * sum).wrapping_mul(average).wrapping_add(squares);
            let variance = deviation / count;
            if variance <= 400 || average.pow(2) > 36 * variance {
                return Some(average);
            }
            limit = longest.saturating_sub(1);
        }
    }
}

impl<C: SchedulerCore> Engine<C> {
    /// For how long a CPU that goes idle is expected to stay so, us; `None` if the machine tells no states to choose from.
    ///
    /// Once its tick is stopped, nothing would wake a CPU that idles longer than it did the last times: then only its timer
    /// is believed.
    ///
    /// Kernel: `menu_select()`, drivers/cpuidle/governors/menu.c.
    pub(super) fn expected_idle_time(&mut self, cpu: Cpu) -> Option<u64> {
        let until_timer = self.queue.next_timer(cpu).map_or(NO_TIMER, |timer| timer.since(self.now));
        let tick = self.tick_period;
        let idle = self.idle.get_mut(cpu.index())?;
        idle.learn(tick);
        idle.until_timer = until_timer;
        let corrected = idle.corrections.expected(until_timer);
        let expected = corrected.min(idle.typical_interval().unwrap_or(u64::MAX));
        let is_asleep_for_good = self.cpus[cpu.index()].tick_stopped && expected < tick.0 / 1000;
        Some(if is_asleep_for_good { until_timer.0 / 1000 } else { expected })
    }

    /// A CPU that has gone idle, and is expected to stay so for a time, us, chooses a state.
    pub(super) fn enter_idle_state(&mut self, cpu: Cpu, expected: Option<u64>) {
        let Some(mut expected) = expected else { return };
        if !self.cpus[cpu.index()].tick_stopped {
            expected = expected.min((self.tick_period.0 - self.now.0 % self.tick_period.0) / 1000);
        }
        let pays_off = |state: &IdleState| {
            state.cpus.contains(cpu)
                && state.residency.0 / 1000 <= expected
                && state.exit.0 / 1000 <= expected
        };
        let chosen =
            self.machine.idle_states.iter().rposition(pays_off).or_else(|| self.shallowest_state(cpu));
        self.idle[cpu.index()] = CpuIdle { since: self.now, state: chosen, ..self.idle[cpu.index()] };
        self.core.idle_set_state(cpu, chosen.map(|state| self.machine.idle_states[state].exit));
        if let Some(state) = chosen {
            self.core.report_idle_state(cpu, Some(self.number_of(cpu, state)));
        }
    }

    /// The number that the driver gives the state: x86 has one before them, in which CPUs poll.
    fn number_of(&self, cpu: Cpu, state: usize) -> u32 {
        let states = self.machine.idle_states[..state].iter();
        let shallower = states.filter(|shallower| shallower.cpus.contains(cpu)).count() as u32;
        shallower + u32::from(self.machine.topology.platform() == Platform::X86)
    }

    /// An idle CPU is woken. Returns how long it takes to leave its state; `None` if the machine tells no states.
    pub(super) fn leave_idle_state(&mut self, cpu: Cpu) -> Option<Ns> {
        if self.idle.is_empty() {
            return None;
        }
        let slept = self.now.since(self.idle[cpu.index()].since);
        let exit = self.idle[cpu.index()].state.map(|state| self.in_effect(cpu, state).wakes_in(slept));
        let idle = &mut self.idle[cpu.index()];
        idle.slept = Some((slept, false));
        exit
    }

    /// It has left its state; a tick may have woken it.
    pub(super) fn idle_state_is_left(&mut self, cpu: Cpu, by_tick: bool) {
        let Some(idle) = self.idle.get_mut(cpu.index()) else { return };
        if let Some((_, woken_by_tick)) = &mut idle.slept {
            *woken_by_tick = by_tick;
        }
        if idle.state.take().is_some() {
            self.core.set_here(cpu, KernelContext::Task, self.now);
            self.core.idle_set_state(cpu, None);
            self.core.report_idle_state(cpu, None);
        }
    }

    /// What comes of asking for `state`; one that CPUs must be in together counts only while they all are, or in deeper ones.
    fn in_effect(&self, cpu: Cpu, state: usize) -> IdleState {
        let sleeps_as_deep = |other: Cpu, state: usize| {
            self.cpus[other.index()].phase == CpuPhase::Idle
                && self.idle[other.index()].state.is_some_and(|deepest| deepest >= state)
        };
        let takes_effect = |number: usize, state: &IdleState| {
            let counts = !state.together || state.cpus.iter().all(|other| sleeps_as_deep(other, number));
            state.cpus.contains(cpu) && counts
        };
        let states = self.machine.idle_states[..=self.state_of_core(cpu, state)].iter().enumerate();
        let in_effect = states.rev().find(|&(number, state)| takes_effect(number, state));
        in_effect.map_or(self.machine.idle_states[state], |(_, state)| *state)
    }

    /// The state that the core of `cpu` is in, which asked for `state`: no deeper than any of its threads asked for, and the
    /// shallowest while one of them is awake ("core C-states" in Intel's datasheets).
    fn state_of_core(&self, cpu: Cpu, state: usize) -> usize {
        let asked_for = |thread: Cpu| match self.idle[thread.index()].state {
            Some(state) if self.cpus[thread.index()].phase == CpuPhase::Idle => Some(state),
            _ => self.shallowest_state(thread),
        };
        let threads = self.machine.topology.smt_mask(cpu);
        threads.iter().filter(|&thread| thread != cpu).filter_map(asked_for).fold(state, usize::min)
    }

    fn shallowest_state(&self, cpu: Cpu) -> Option<usize> {
        self.machine.idle_states.iter().position(|state| state.cpus.contains(cpu))
    }
}

#[cfg(test)]
mod tests {
    use fairlab_kernel::topology::SmtNumbering;
    use fairlab_kernel::{CpuMask, Topology};

    use super::*;
    use crate::engine::cpu::EngineCpu;
    use crate::engine::occurrence::Interrupt;
    use crate::machine::Machine;

    fn typical(intervals: [u64; INTERVALS]) -> Option<u64> {
        CpuIdle { intervals, ..CpuIdle::default() }.typical_interval()
    }

    #[test]
    fn what_was_alike_is_expected_again_whatever_the_exception() {
        assert_eq!(typical([500; 8]), Some(500));
        assert_eq!(typical([500, 510, 490, 505, 495, 500, 500, 9000]), Some(500));
        assert_eq!(typical([10, 4000, 200, 30_000, 900, 77, 12_000, 3]), None);
    }

    #[test]
    fn a_quarter_of_the_times_is_no_exception_and_a_sixth_of_the_average_is_alike() {
        assert_eq!(typical([500, 500, 500, 500, 500, 500, 500, 9000]), Some(500));
        assert_eq!(typical([500, 500, 500, 500, 500, 500, 9000, 9000]), None);
        // Within 20 us, or within a sixth.
        assert_eq!(typical([20, 60, 20, 60, 20, 60, 20, 60]), Some(40));
        assert_eq!(typical([19, 61, 19, 61, 19, 61, 19, 61]), None);
        assert_eq!(typical([151, 211, 151, 211, 151, 211, 151, 211]), Some(181));
        assert_eq!(typical([150, 210, 150, 210, 150, 210, 150, 210]), None);
    }

    /// Two CPUs that expect nothing of the past; the last state counts only if both are in it.
    fn two_cpus() -> Engine {
        let state = |cpus: &str, exit_us, residency_us, together| IdleState {
            cpus: CpuMask::parse_list(cpus).expect("a list"),
            exit: Ns::from_us(exit_us),
            entry: Ns::ZERO,
            residency: Ns::from_us(residency_us),
            together,
        };
        let idle_states = vec![
            state("0", 5, 5, false),
            state("0-1", 10, 20, false),
            state("0", 200, 100, false),
            state("0-1", 50, 300, true),
        ];
        let machine = Machine { idle_states, ..crate::engine::tests::machine(2) };
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        for cpu in &mut engine.idle {
            cpu.intervals = [10, 4000, 200, 30_000, 900, 77, 12_000, 3];
        }
        engine.cpus.iter_mut().for_each(EngineCpu::begin_to_idle);
        engine
    }

    fn idle(engine: &mut Engine, cpu: u32) {
        let expected = engine.expected_idle_time(Cpu(cpu));
        engine.enter_idle_state(Cpu(cpu), expected);
    }

    #[test]
    fn the_deepest_state_that_pays_off_until_the_next_timer_is_chosen() {
        let chosen = |cpu: u32, timer_us| {
            let mut engine = two_cpus();
            let timer = Interrupt::Timer { thread: 0, sleep: 0 };
            engine.queue.arrange_interrupt(Cpu(cpu), Ns::from_us(timer_us), timer);
            // Neither another CPU's timer nor an interrupt that is no timer is expected.
            engine.queue.arrange_interrupt(Cpu(1 - cpu), Ns::from_us(1), timer);
            engine.queue.arrange_interrupt(Cpu(cpu), Ns::from_us(1), Interrupt::Resched);
            idle(&mut engine, cpu);
            engine.idle[cpu as usize].state
        };
        assert_eq!(
            [1, 19, 20, 100, 199, 200, 299, 300].map(|us| chosen(0, us)),
            [0, 0, 1, 1, 1, 2, 2, 3].map(Some)
        );
        assert_eq!([1, 20, 299, 300].map(|us| chosen(1, us)), [1, 1, 1, 3].map(Some));
        let mut engine = two_cpus();
        idle(&mut engine, 1);
        assert_eq!(engine.idle[1].state, Some(3), "no timer at all");
        engine.idle[1].intervals = [30; INTERVALS];
        idle(&mut engine, 1);
        assert_eq!(engine.idle[1].state, Some(1), "it has idled for 30 us each time");
    }

    #[test]
    fn a_state_of_all_cpus_counts_when_the_last_has_come_and_times_are_remembered() {
        let mut engine = two_cpus();
        idle(&mut engine, 1);
        assert_eq!(engine.in_effect(Cpu(1), 3).exit, Ns::from_us(10), "alone: as the state above");
        idle(&mut engine, 0);
        assert_eq!(engine.in_effect(Cpu(1), 3).exit, Ns::from_us(50));
        engine.cpus[0].phase = CpuPhase::User;
        assert_eq!(
            (engine.in_effect(Cpu(1), 3).exit, engine.in_effect(Cpu(0), 3).exit),
            (Ns::from_us(10), Ns::from_us(200))
        );
        assert_eq!(engine.in_effect(Cpu(0), 2).exit, Ns::from_us(200));
        for round in 1..=9 {
            engine.idle[1] = CpuIdle { since: engine.now, state: Some(1), ..engine.idle[1] };
            engine.now += Ns::from_us(1000 + round);
            assert_eq!(engine.leave_idle_state(Cpu(1)), Some(Ns::from_us(10)));
            engine.idle[1].until_timer = NO_TIMER;
            engine.idle[1].learn(Ns::from_ms(4));
        }
        assert_eq!(engine.idle[1].intervals, [1009, 1002, 1003, 1004, 1005, 1006, 1007, 1008]);
        engine.idle_state_is_left(Cpu(1), false);
        assert_eq!(engine.leave_idle_state(Cpu(1)), None, "it was in no state");
    }

    #[test]
    fn threads_leave_the_shallowest_state_that_their_core_was_asked_for() {
        let cpus = CpuMask::first(4);
        let state = |exit, together| IdleState {
            cpus,
            exit: Ns::from_us(exit),
            entry: Ns::ZERO,
            residency: Ns::from_us(exit),
            together,
        };
        let idle_states = vec![state(2, false), state(40, false), state(200, true), state(900, true)];
        let topology = Topology::regular(1, 1, 2, 2, SmtNumbering::Adjacent).expect("two cores");
        let machine = Machine { idle_states, topology, ..crate::engine::tests::machine(4) };
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        let mut exit_us = |states: [Option<usize>; 4]| {
            for (cpu, state) in states.into_iter().enumerate() {
                engine.cpus[cpu].phase = if state.is_some() { CpuPhase::Idle } else { CpuPhase::User };
                engine.idle[cpu].state = state;
            }
            engine.in_effect(Cpu(0), 3).exit.0 / 1000
        };
        assert_eq!(exit_us([Some(3), None, Some(3), Some(3)]), 2, "the other thread is awake");
        assert_eq!(exit_us([Some(3), Some(0), Some(3), Some(3)]), 2);
        assert_eq!(exit_us([Some(3), Some(1), Some(3), Some(3)]), 40);
        assert_eq!(exit_us([Some(3), Some(3), None, Some(3)]), 40, "another core is awake");
        assert_eq!(exit_us([Some(3), Some(3), Some(2), Some(3)]), 200);
        assert_eq!(exit_us([Some(3); 4]), 900);
    }

    /// As in the kernel's own arithmetic: an eighth of each new part, seven eighths of what was.
    #[test]
    fn timers_are_believed_as_far_as_cpus_have_idled_before_them() {
        let mut corrections = TimerCorrections::default();
        let far = Ns::from_ms(200);
        assert_eq!(corrections.expected(far), 200_000, "nothing is known yet");
        corrections.learn(far, Ns::from_ms(10));
        assert_eq!(corrections.0[5], 8192 - 1024 + 51);
        (0..80).for_each(|_| corrections.learn(far, Ns::from_us(20)));
        assert!(corrections.expected(far) < 250, "{corrections:?}");
        assert_eq!(corrections.expected(Ns::from_ms(20)), 20_000, "nearer timers are another matter");
        (0..80).for_each(|_| corrections.learn(far, LONG));
        assert!(corrections.expected(far) > 195_000, "{corrections:?}");
    }

    #[test]
    fn a_tick_that_wakes_a_cpu_counts_as_long_idleness() {
        let mut idle = CpuIdle { until_timer: Ns::from_ms(200), ..CpuIdle::default() };
        idle.slept = Some((Ns::from_us(300), true));
        idle.learn(Ns::from_ms(4));
        assert_eq!(idle.intervals[0], 45_000);
        idle.slept = Some((Ns::from_us(300), false));
        idle.learn(Ns::from_ms(4));
        idle.learn(Ns::from_ms(4));
        assert_eq!((idle.intervals[1], idle.next), (300, 2), "each once");
    }

    #[test]
    fn once_the_tick_is_stopped_only_the_timer_is_believed() {
        let mut engine = two_cpus();
        engine.idle[0].intervals = [30; INTERVALS];
        engine.queue.arrange_interrupt(Cpu(0), Ns::from_us(700), Interrupt::Timer { thread: 0, sleep: 0 });
        assert_eq!(engine.expected_idle_time(Cpu(0)), Some(30));
        engine.cpus[0].tick_stopped = true;
        assert_eq!(engine.expected_idle_time(Cpu(0)), Some(700));
    }
}
