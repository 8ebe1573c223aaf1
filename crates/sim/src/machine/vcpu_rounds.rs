//! CPUs that one thread runs in turn: which is next, and for how long.
//!
//! Facts from QEMU 11 with `-icount` and `thread=single`. Time is the number of executed instructions, of all CPUs. In a
//! round each CPU gets what is left until the next timer expires, divided by the number of all CPUs
//! (`icount_percpu_budget()`, accel/tcg/tcg-accel-ops-icount.c). A halted CPU takes nothing. A timer that expires and is set
//! again asks all CPUs to leave their turn (`qemu_timer_notify_cb()`, `rr_kick_vcpu_thread()`). In the next round the rest is
//! then computed before each CPU (`rr_cpu_thread_fn()`, accel/tcg/tcg-accel-ops-rr.c), so the first CPU gets more than the
//! last. Rounds follow until nothing is left. A timer that expires often, and is set again 1 us later, bounds turns.
//!
//! A round begins with the first CPU, and a timer is seen at the end of a round. If the rest does not divide, the first CPU
//! gets the few remaining instructions, and the next CPU as many, before the timer is seen. The next round then begins with
//! the CPU after these.
//!
//! Measured in guests by threads that read the clock without a pause (`rdtsc`): two busy CPUs share 5 : 3. Of four CPUs the
//! third gets most, in turns of 4.9, 3.6, 2.7, 2.0, 2.0, 2.0 and four times 0.5 us, then 0.24, 0.18, 0.12, 0.09 us and less.
//!
//! Must not know: what the CPUs do.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;

/// How often the timer expires that bounds turns, as fairlab's guest sets it.
pub const fn period(nr_cpus: usize) -> Ns {
    if nr_cpus > 4 { Ns(50_000) } else { Ns(20_000) }
}

/// How long after the timer has expired it is set again.
const SET_AGAIN: Ns = Ns(1_000);

/// Who had a turn last, and how long the next one may be.
#[derive(Clone, Debug)]
pub struct VcpuRounds {
    nr_cpus: usize,
    /// Of the timer that bounds turns.
    period: Ns,
    /// How long after a multiple of its period the timer expires.
    phase: Ns,
    last: usize,
    /// When it next expires, or is set again.
    expires: Ns,
    /// It has expired, and is seen after this turn.
    unseen: bool,
    /// CPUs that look again at how long their turn may be.
    kicked: CpuMask,
    budget: Ns,
}

impl VcpuRounds {
    /// Before the first turn. `phase`: how long after a multiple of its period the timer expires.
    pub fn new(nr_cpus: usize, phase: Ns) -> VcpuRounds {
        let last = nr_cpus - 1;
        let (period, expires) = (period(nr_cpus), Ns::ZERO);
        let (kicked, budget) = (CpuMask::EMPTY, Ns(1));
        VcpuRounds { nr_cpus, period, phase, last, expires, unseen: false, kicked, budget }
    }

    /// Whose turn is next, of those that go on, and how long it may be; `None` if nobody goes on.
    /// Another timer than the one that bounds turns is due at `timer`.
    pub fn next(&mut self, now: Ns, timer: Ns, goes_on: impl Fn(Cpu) -> bool) -> Option<(Cpu, Ns)> {
        if now >= self.expires {
            let was_remainder = self.budget.0 < self.nr_cpus as u64 && !self.unseen;
            let next = (self.last + 1..self.nr_cpus).find(|&cpu| goes_on(Cpu(cpu as u32)));
            if let Some(next) = next.filter(|_| was_remainder) {
                (self.last, self.unseen) = (next, true);
                return Some((Cpu(next as u32), self.budget));
            }
            self.unseen = false;
            self.kicked = CpuMask::first(self.nr_cpus);
            self.expires = self.expires_after(now);
        }
        let limit = self.expires.min(timer).since(now).max(Ns(1));
        for _ in 0..self.nr_cpus {
            self.last = (self.last + 1) % self.nr_cpus;
            let cpu = Cpu(self.last as u32);
            if self.last == 0 || self.kicked.contains(cpu) {
                self.kicked.clear(cpu);
                let share = limit.0 / self.nr_cpus as u64;
                self.budget = if share == 0 { limit } else { Ns(share) };
            }
            if goes_on(cpu) {
                return Some((cpu, self.budget.min(limit)));
            }
        }
        self.last = self.nr_cpus - 1;
        None
    }

    /// When the timer expires or is set again after `now`.
    fn expires_after(&self, now: Ns) -> Ns {
        let period = self.period.0;
        let next = (now.0 + period - self.phase.0) / period * period + self.phase.0;
        let set_again = Ns(next + SET_AGAIN.0 - period.min(next));
        if now < set_again { set_again } else { Ns(next) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of the CPUs in `list` gets in a long time in which they compute, in thousandths.
    fn shares(list: &str, nr_cpus: usize) -> Vec<u64> {
        let busy = CpuMask::parse_list(list).expect("a list");
        let mut rounds = VcpuRounds::new(nr_cpus, Ns(7));
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
    fn who_is_first_gets_most_of_those_that_compute() {
        assert_eq!(shares("0-1", 2), [625, 375]);
        // The others take nothing of their turns.
        assert_eq!(shares("0", 4), [1000, 0, 0, 0]);
        assert_eq!(shares("1,3", 4), [0, 531, 0, 469]);
        // In a guest: 27, 19.5 and 53.5 %; 17.5, 13.5, 37.6 and 31.2 %; 6, 5.4, 18.1, 16.5, 15.2, 14, 12.9 and 12 %.
        assert_eq!(shares("0-2", 3), [272, 198, 531]);
        assert_eq!(shares("0-3", 4), [175, 139, 374, 313]);
        assert_eq!(shares("0-7", 8), [64, 57, 179, 164, 150, 138, 128, 119]);
    }

    #[test]
    fn turns_are_as_long_as_threads_in_a_guest_saw_them() {
        let (mut rounds, mut now) = (VcpuRounds::new(4, Ns(7)), Ns(123));
        let mut turns = Vec::new();
        while now < Ns::from_us(200) {
            let (cpu, turn) = rounds.next(now, Ns::MAX, |_| true).expect("somebody goes on");
            turns.push((cpu.0, turn.0));
            now += turn;
        }
        // A thread sees up to 20 ns less of its turn, and no turn of a few instructions.
        let long = turns.iter().filter(|(_, turn)| *turn > 20).copied().collect::<Vec<_>>();
        let begin = long.iter().rposition(|&turn| turn.1 > 4_000).expect("a first turn");
        let begin = long[..begin].iter().rposition(|&turn| turn.1 > 4_000).expect("one before it");
        let seen = [
            (2, 4_749),
            (3, 3_562),
            (0, 2_671),
            (1, 2_004),
            (2, 2_004),
            (3, 2_004),
            (0, 501),
            (1, 501),
            (2, 501),
            (3, 501),
            (0, 250),
            (1, 187),
            (2, 140),
            (3, 105),
            (0, 79),
            (1, 79),
            (2, 79),
            (3, 79),
            (2, 4_749),
        ];
        assert_eq!(long[begin..begin + seen.len()], seen);
    }

    #[test]
    fn nobody_goes_on_when_all_idle() {
        let mut rounds = VcpuRounds::new(4, Ns::ZERO);
        assert_eq!(rounds.next(Ns(5), Ns::MAX, |_| false), None);
        // What is left until the timer, in four.
        assert_eq!(rounds.next(Ns(10_000), Ns::MAX, |cpu| cpu == Cpu(2)), Some((Cpu(2), Ns(2_500))));
    }
}
