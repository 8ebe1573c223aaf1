//! Interruptions of a busy thread, seen as gaps in the clock that it reads all the time.
//!
//! Must not know: what is made of the samples.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fairlab_event::Ns;
use rustix::thread::{MembarrierCommand, membarrier};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::{median, pin};
use crate::clock::{Clock, sleep};

/// The thread read the clock at `begin`, and then not for `length`.
#[derive(Clone, Copy, Debug)]
struct Gap {
    begin: Ns,
    length: Ns,
}

/// Longer than an interrupt: something else ran.
const INTERRUPT_MAX: Ns = Ns::from_us(100);

/// As many as are kept; the thread must not allocate while it looks.
const GAPS_MAX: usize = 1 << 16;

/// A thread that reads the clock all the time, and how long that takes as a rule.
struct ClockWatch<'c> {
    clock: &'c Clock,
    usual: Ns,
}

impl ClockWatch<'_> {
    fn new(clock: &Clock) -> ClockWatch<'_> {
        let mut usual = Vec::with_capacity(1000);
        let mut last = clock.now();
        while usual.len() < 1000 {
            let now = clock.now();
            usual.push(now.since(last).0 as f64);
            last = now;
        }
        ClockWatch { clock, usual: Ns(median(&usual) as u64) }
    }

    /// Looks until `over` says so, and gives what was much longer than usual, less the usual.
    fn look(&self, over: impl Fn(Ns) -> bool) -> Vec<Gap> {
        let least = Ns(self.usual.0 * 2 + 100);
        let mut gaps = Vec::with_capacity(GAPS_MAX);
        let mut last = self.clock.now();
        while !over(last) {
            let now = self.clock.now();
            if now.since(last) > least && gaps.len() < GAPS_MAX {
                gaps.push(Gap { begin: last, length: Ns(now.since(last).0 - self.usual.0) });
            }
            last = now;
        }
        gaps
    }
}

/// What ticks take, ns: interruptions that come a tick after another one.
pub(super) fn ticks(samples: usize, hz: u64) -> Vec<f64> {
    let clock = Clock::start();
    let period = 1_000_000_000 / hz.max(1);
    let until = Ns((samples as u64 + 2) * period);
    let gaps = ClockWatch::new(&clock).look(|now| now >= until);
    let is_tick = |gap: &&Gap| {
        let distance = |other: &Gap| gap.begin.0.abs_diff(other.begin.0).abs_diff(period);
        gap.length < INTERRUPT_MAX && gaps.iter().any(|other| distance(other) < period / 100)
    };
    gaps.iter().filter(is_tick).map(|gap| gap.length.0 as f64).collect()
}

/// What interruptions take that are no ticks, ns: those that come a tick neither before nor after another one.
pub(super) fn others(samples: usize, hz: u64) -> Vec<f64> {
    let clock = Clock::start();
    let period = 1_000_000_000 / hz.max(1);
    let until = Ns((samples as u64 + 2) * period);
    let gaps = ClockWatch::new(&clock).look(|now| now >= until);
    let is_other = |gap: &&Gap| {
        let distance = |other: &Gap| gap.begin.0.abs_diff(other.begin.0).abs_diff(period);
        gap.length < INTERRUPT_MAX && gaps.iter().all(|other| distance(other) >= period / 100)
    };
    gaps.iter().filter(is_other).map(|gap| gap.length.0 as f64).collect()
}

/// When a timer expires after it was set.
const EXPIRY: Ns = Ns::from_us(200);

/// How late the interrupt may be.
const LATE_MAX: Ns = Ns::from_us(100);

/// What an expiry takes, of a timer that wakes nobody, on the CPU that set it, ns.
///
/// # Errors
/// There are no timers.
pub(super) fn timers(samples: usize) -> Result<Vec<f64>, String> {
    let failed = |error| format!("cannot set a timer: {error}");
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty()).map_err(failed)?;
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let once = Itimerspec { it_interval: never, it_value: Timespec { tv_sec: 0, tv_nsec: EXPIRY.0 as i64 } };
    let clock = Clock::start();
    let watch = ClockWatch::new(&clock);
    let mut lengths = Vec::new();
    for _ in 0..samples {
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once).map_err(failed)?;
        let due = clock.now() + EXPIRY;
        let gaps = watch.look(|now| now >= due + LATE_MAX);
        // The timer was set a moment before that look at the clock.
        let around =
            |gap: &&Gap| gap.begin + gap.length + Ns::from_us(2) >= due && gap.length < INTERRUPT_MAX;
        lengths.extend(gaps.iter().find(around).map(|gap| gap.length.0 as f64));
    }
    Ok(lengths)
}

/// Interrupts from `here` of a busy thread on `there`, ns: when they arrive after they were asked for, and for how long
/// they keep it.
///
/// # Errors
/// A thread cannot be placed.
pub(super) fn interrupts(here: usize, there: usize, samples: usize) -> Result<(Vec<f64>, Vec<f64>), String> {
    let clock = Clock::start();
    let over = AtomicBool::new(false);
    if membarrier(MembarrierCommand::RegisterPrivateExpedited).is_err() {
        return Ok((Vec::new(), Vec::new()));
    }
    let (asked, gaps) = thread::scope(|scope| {
        let watcher = scope
            .spawn(|| pin(there).map(|()| ClockWatch::new(&clock).look(|_| over.load(Ordering::Relaxed))));
        let sender = scope.spawn(|| {
            let pinned = pin(here);
            sleep(Ns::from_ms(5));
            let one = |_| {
                sleep(Ns::from_us(300));
                let begin = clock.now();
                let _ = membarrier(MembarrierCommand::PrivateExpedited);
                (begin, clock.now())
            };
            let asked = (0..samples).map(one).collect::<Vec<_>>();
            over.store(true, Ordering::Relaxed);
            pinned.map(|()| asked)
        });
        (sender.join(), watcher.join())
    });
    let failed = |_| Err("a thread of the benchmark failed".to_string());
    let (asked, gaps) = (
        asked.unwrap_or_else(failed)?,
        gaps.unwrap_or_else(|_| Err("a thread of the benchmark failed".to_string()))?,
    );
    let (mut arrivals, mut lengths) = (Vec::new(), Vec::new());
    for (begin, end) in asked {
        let within = |gap: &&Gap| gap.begin >= begin && gap.begin <= end && gap.length < INTERRUPT_MAX;
        if let Some(gap) = gaps.iter().find(within) {
            arrivals.push(gap.begin.since(begin).0 as f64);
            lengths.push(gap.length.0 as f64);
        }
    }
    Ok((arrivals, lengths))
}
