//! CPUs that one thread carries out in turn: what share of its time each gets.
//!
//! Facts from QEMU 11 with `-icount` and `thread=single`: time is the instructions that were executed, whoever did. In a
//! round each CPU gets what is left until the next timer expires, divided by the number of all CPUs
//! (`icount_percpu_budget()`, accel/tcg/tcg-accel-ops-icount.c); one that is halted takes nothing. A timer that expires
//! and is set again asks all CPUs to leave their turn (`qemu_timer_notify_cb()`, `rr_kick_vcpu_thread()`), so that in the
//! round after it what is left is looked at anew before each CPU (`rr_cpu_thread_fn()`, accel/tcg/tcg-accel-ops-rr.c):
//! there the first gets more than the last. Rounds follow until nothing is left. A timer that expires often bounds turns,
//! and makes these shares those of any longer time; its period does not matter to them.
//!
//! Two CPUs that compute share 5 : 3, and so do recorded tasks that had a CPU each: 62.5 % and 37.5 % of all work.
//!
//! Must not know: what the CPUs do.

use fairlab_kernel::CpuMask;

/// The whole time of the thread.
pub const WHOLE: u64 = 1 << 20;

/// What is left after so many rounds is dealt out evenly.
const ROUNDS: u32 = 40;

/// The shares of CPUs, of which those in `busy` compute, in parts of [`WHOLE`], one of the machine's `nr_cpus` after the
/// other; what an idle CPU would get if it were alone, it gets all.
pub fn shares(busy: &CpuMask, nr_cpus: usize) -> Vec<u64> {
    let mut shares = vec![0; nr_cpus];
    let mut left = WHOLE << 20;
    for cpu in busy.iter() {
        let turn = left / nr_cpus as u64;
        shares[cpu.index()] += turn;
        left -= turn;
    }
    for _ in 0..ROUNDS {
        let turn = left / nr_cpus as u64;
        for cpu in busy.iter() {
            shares[cpu.index()] += turn;
            left -= turn;
        }
    }
    let rest = left / busy.weight().max(1) as u64;
    let part = |(cpu, share): (usize, u64)| {
        let is_busy = busy.iter().any(|one| one.index() == cpu);
        if is_busy { ((share + rest) >> 20).max(1) } else { WHOLE }
    };
    shares.into_iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &str, nr_cpus: usize) -> Vec<u64> {
        let shares = shares(&CpuMask::parse_list(list).expect("a list"), nr_cpus);
        shares.into_iter().map(|share| (share * 1000 + WHOLE / 2) / WHOLE).collect()
    }

    #[test]
    fn the_first_of_those_that_compute_gets_most() {
        assert_eq!(of("0-1", 2), [625, 375]);
        // The others take nothing of their turns.
        assert_eq!(of("0", 4), [1000, 1000, 1000, 1000]);
        assert_eq!(of("1,3", 4), [1000, 531, 1000, 469]);
        assert_eq!(of("0-3", 4), [329, 267, 220, 185]);
    }

    #[test]
    fn nothing_is_lost() {
        for busy in 1..=8 {
            let busy = CpuMask::first(busy);
            let sum: u64 = busy.iter().map(|cpu| shares(&busy, 8)[cpu.index()]).sum();
            assert!(WHOLE - sum < 8, "{busy}: {sum}");
        }
    }
}
