//! CPUs that one thread carries out in turn: who is next, and for how long.
//!
//! Facts from QEMU 11 with `-icount` and `thread=single`: time is the instructions that were executed, whoever did. In a
//! round each CPU gets what is left until the next timer expires, divided by the number of all CPUs
//! (`icount_percpu_budget()`, accel/tcg/tcg-accel-ops-icount.c); one that is halted takes nothing. A timer that expires
//! and is set again asks all CPUs to leave their turn (`qemu_timer_notify_cb()`, `rr_kick_vcpu_thread()`), so that in the
//! round after it what is left is looked at anew before each CPU (`rr_cpu_thread_fn()`, accel/tcg/tcg-accel-ops-rr.c):
//! there the first gets more than the last. Rounds follow until nothing is left. A timer that expires often bounds turns.
//! After each of its expiries, and after a time in which all idled, the first CPU is the first.
//!
//! Two CPUs that compute share 5 : 3, and so do recorded tasks that had a CPU each: 62.5 % and 37.5 % of all work.
//!
//! Must not know: what the CPUs do.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;

/// How often the timer expires that bounds turns, as fairlab's guest sets it.
pub const fn period(nr_cpus: usize) -> Ns {
    if nr_cpus > 4 { Ns(50_000) } else { Ns(20_000) }
}

/// Who had a turn last, and how long the next one may be.
#[derive(Clone, Debug)]
pub struct Rounds {
    nr_cpus: usize,
    /// Of the timer that bounds turns.
    period: Ns,
    /// How long after a multiple of its period the timer expires.
    phase: Ns,
    last: usize,
    /// When the timer expires after the last turn.
    expires: Ns,
    /// CPUs that look anew at how long their turn may be.
    kicked: CpuMask,
    budget: Ns,
}

impl Rounds {
    /// Before the first turn. `phase`: how long after a multiple of its period the timer expires.
    pub fn new(nr_cpus: usize, phase: Ns) -> Rounds {
        let last = nr_cpus - 1;
        let (period, expires) = (period(nr_cpus), Ns::ZERO);
        Rounds { nr_cpus, period, phase, last, expires, kicked: CpuMask::EMPTY, budget: Ns(1) }
    }

    /// Whose turn is next, of those that go on, and how long it may be; `None` if nobody goes on.
    /// Another timer than the one that bounds turns is due at `timer`.
    pub fn next(&mut self, now: Ns, timer: Ns, goes_on: impl Fn(Cpu) -> bool) -> Option<(Cpu, Ns)> {
        let period = self.period.0;
        if now >= self.expires {
            self.kicked = CpuMask::first(self.nr_cpus);
            self.last = self.nr_cpus - 1;
            self.expires = Ns((now.0 + period - self.phase.0) / period * period + self.phase.0);
        }
        let limit = self.expires.min(timer).since(now).max(Ns(1));
        for _ in 0..self.nr_cpus {
            self.last = (self.last + 1) % self.nr_cpus;
            let cpu = Cpu(self.last as u32);
            if self.last == 0 || self.kicked.contains(cpu) {
                self.kicked.clear(cpu);
                self.budget = Ns((limit.0 / self.nr_cpus as u64).max(1));
            }
            if goes_on(cpu) {
                return Some((cpu, self.budget.min(limit)));
            }
        }
        self.last = self.nr_cpus - 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of the CPUs in `list` gets in a long time in which they compute, in thousandths.
    fn shares(list: &str, nr_cpus: usize) -> Vec<u64> {
        let busy = CpuMask::parse_list(list).expect("a list");
        let mut rounds = Rounds::new(nr_cpus, Ns(7));
        let (mut now, mut got) = (Ns(123), vec![0; nr_cpus]);
        while now < Ns::from_ms(20) {
            let (cpu, turn) = rounds.next(now, Ns::MAX, |cpu| busy.contains(cpu)).expect("somebody goes on");
            got[cpu.index()] += turn.0;
            now += turn;
        }
        let all = got.iter().sum::<u64>();
        got.into_iter().map(|got| (got * 1000 + all / 2) / all).collect()
    }

    #[test]
    fn the_first_of_those_that_compute_gets_most() {
        assert_eq!(shares("0-1", 2), [625, 375]);
        // The others take nothing of their turns.
        assert_eq!(shares("0", 4), [1000, 0, 0, 0]);
        assert_eq!(shares("1,3", 4), [0, 531, 0, 469]);
        assert_eq!(shares("0-3", 4), [329, 267, 220, 185]);
    }

    #[test]
    fn nobody_goes_on_when_all_idle() {
        let mut rounds = Rounds::new(4, Ns::ZERO);
        assert_eq!(rounds.next(Ns(5), Ns::MAX, |_| false), None);
        // What is left until the timer, in four.
        assert_eq!(rounds.next(Ns(10_000), Ns::MAX, |cpu| cpu == Cpu(2)), Some((Cpu(2), Ns(2_500))));
    }
}
