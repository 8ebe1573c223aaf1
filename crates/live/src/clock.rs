//! Time as threads see it, and computation of a known length.
//!
//! Must not know: who computes what for.

use std::hint::black_box;
use std::time::Instant;

use fairlab_event::Ns;
use rustix::time::Timespec;

/// Time since a beginning, on the clock that nobody sets.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// The time since then.
    pub fn now(&self) -> Ns {
        Ns(self.0.elapsed().as_nanos() as u64)
    }

    /// The same in whole µs, as `gettimeofday` tells it.
    pub fn now_us(&self) -> u64 {
        self.now().0 / 1_000
    }

    /// Polls until it is later than `until`.
    pub fn spin_until(&self, until: Ns) {
        while self.now() < until {
            std::hint::spin_loop();
        }
    }
}

/// Sleeps for `time` on a timer, with the thread's timer slack; a signal ends it early.
pub(crate) fn sleep(time: Ns) {
    let request =
        Timespec { tv_sec: (time.0 / 1_000_000_000) as i64, tv_nsec: (time.0 % 1_000_000_000) as i64 };
    let _ = rustix::thread::nanosleep(&request);
}

/// How fast this CPU computes, so that work can be asked for by its length at full speed, as rt-app does.
#[derive(Clone, Copy, Debug)]
pub struct ComputePace {
    rounds_per_us: f64,
    calls_per_us: f64,
}

/// Rounds in a try.
const TRY_ROUNDS: u64 = 50_000;

/// System calls in a try.
const TRY_CALLS: u64 = 500;

/// How many tries are made; the fastest counts, for it was disturbed least.
const TRIES: u32 = 40;

impl ComputePace {
    /// Measures it: some milliseconds of computation.
    pub fn measure() -> ComputePace {
        let a_us = |count: u64, what: fn(u64)| {
            let one = |_| {
                let begin = Instant::now();
                what(count);
                begin.elapsed().as_nanos().max(1)
            };
            count as f64 * 1_000.0 / (0..TRIES).map(one).min().unwrap_or(1) as f64
        };
        ComputePace { rounds_per_us: a_us(TRY_ROUNDS, rounds), calls_per_us: a_us(TRY_CALLS, calls) }
    }

    /// Works for `work` at full speed in the kernel, in many short system calls.
    pub fn work_in_kernel(&self, work: Ns) {
        calls((work.0 as f64 * self.calls_per_us / 1_000.0) as u64);
    }

    /// Burns up to `most` at full speed, looking four times a µs whether it is over. Returns what is left of `most`; the largest stays.
    pub fn spin(&self, most: Ns, is_over: impl Fn() -> bool) -> Ns {
        const LOOK_NS: u64 = 250;
        let mut left = most;
        while left > Ns::ZERO && !is_over() {
            rounds((LOOK_NS as f64 * self.rounds_per_us / 1_000.0) as u64);
            left = if most == Ns::MAX { most } else { left.since(Ns(LOOK_NS)) };
        }
        left
    }

    /// Computes for `work` at full speed; longer on a slow CPU, and by as much as it is preempted. Stops early when
    /// `stops` says so, which it is asked about every 100 µs.
    pub fn work(&self, work: Ns, stops: impl Fn() -> bool) {
        let mut left_ns = work.0;
        while left_ns > 0 && !stops() {
            let piece_ns = left_ns.min(100_000);
            rounds((piece_ns as f64 * self.rounds_per_us / 1_000.0) as u64);
            left_ns -= piece_ns;
        }
    }
}

/// Computation that touches no memory: a chain of shifts, each of which needs the one before.
fn rounds(count: u64) {
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}

/// The shortest system calls that there are.
fn calls(count: u64) {
    for _ in 0..count {
        let _ = rustix::process::getppid();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_work_is_twice_the_rounds_and_a_stop_ends_it() {
        let pace = ComputePace { rounds_per_us: 1.0, calls_per_us: 1.0 };
        let asked = std::cell::Cell::new(0);
        pace.work(Ns::from_us(1_000), || {
            asked.set(asked.get() + 1);
            asked.get() > 4
        });
        assert_eq!(asked.get(), 5);
        pace.work(Ns::from_us(950), || {
            asked.set(asked.get() + 1);
            false
        });
        assert_eq!(asked.get(), 15, "ten pieces");
        let measured = ComputePace::measure();
        assert!(measured.rounds_per_us > 1.0 && measured.calls_per_us > 0.01, "{measured:?}");
    }
}
