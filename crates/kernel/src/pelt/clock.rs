//! The clocks that load tracking reads: a CPU's, which runs slower on slow CPUs, and a queue's, which stands still while its
//! group is throttled.
//!
//! Must not know: what time it is.

use super::average::CpuScale;
use super::rules::{IdleSync, Invariance, PeltRules, ThrottleClock};
use super::series::{CAPACITY_SHIFT, LOAD_AVG_MAX, PELT_MIN_DIVIDER, cap_scale};

/// A runqueue's clocks at one instant, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RqTime {
    /// `rq_clock()`: wall time.
    pub clock: u64,
    /// `rq_clock_task()`: without interrupts and stolen time.
    pub clock_task: u64,
}

/// The PELT clock of a CPU (fields of `struct rq`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RqClock {
    /// Scaled time, ns; the task clock whenever the CPU idles.
    pub clock_pelt: u64,
    /// Idle time that was never there, because the CPU was full, ns.
    pub lost_idle_time: u64,
    /// `rq_clock()` when the CPU was last seen to idle, ns (from `IdleSync::WhenIdling` on).
    pub clock_idle: u64,
    /// The PELT clock at the same time, ns.
    pub clock_pelt_idle: u64,
}

impl RqClock {
    /// The time for averages of this CPU, ns.
    ///
    /// Kernel: `rq_clock_pelt()`, kernel/sched/pelt.h (23127296889f); before it `rq_clock_task()`.
    pub const fn now(&self, rules: &PeltRules, time: RqTime) -> u64 {
        match rules.invariance {
            Invariance::Contribution => time.clock_task,
            Invariance::PeltClock => self.clock_pelt.wrapping_sub(self.lost_idle_time),
        }
    }

    /// Lets `delta` ns of task time pass, after which it is `time`.
    ///
    /// Kernel: `update_rq_clock_pelt()`, kernel/sched/pelt.h; called by each clock update. `idle`: the idle task runs.
    pub const fn update(
        &mut self,
        rules: &PeltRules,
        delta: u64,
        time: RqTime,
        idle: bool,
        scale: CpuScale,
    ) {
        if idle {
            return self.sync(rules, time);
        }
        let scaled = cap_scale(cap_scale(delta, scale.capacity), scale.frequency);
        self.clock_pelt = self.clock_pelt.wrapping_add(scaled);
    }

    /// The CPU turns idle. If it was full, the time by which the PELT clock is late is lost.
    ///
    /// Kernel: `update_idle_rq_clock_pelt()`, kernel/sched/pelt.h; see `LostIdleCheck` for when. `util_sum`: that of the
    /// root queue plus those of the real-time and deadline classes, wrapping.
    pub const fn enter_idle(&mut self, rules: &PeltRules, time: RqTime, util_sum: u32) {
        const FULL: u32 = (PELT_MIN_DIVIDER << CAPACITY_SHIFT) - LOAD_AVG_MAX;
        if util_sum >= FULL {
            let late = time.clock_task.wrapping_sub(self.clock_pelt);
            self.lost_idle_time = self.lost_idle_time.wrapping_add(late);
        }
        if matches!(rules.idle_sync, IdleSync::WhenIdling) {
            self.sync(rules, time);
        }
    }

    const fn sync(&mut self, rules: &PeltRules, time: RqTime) {
        self.clock_pelt = time.clock_task;
        if matches!(rules.idle_sync, IdleSync::WhenIdling) {
            self.clock_idle = time.clock;
            self.clock_pelt_idle = self.clock_pelt.wrapping_sub(self.lost_idle_time);
        }
    }
}

/// The part of a queue's clock that throttling makes (fields of `struct cfs_rq`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CfsRqClock {
    /// When throttling began, ns of the clock of [`ThrottleClock`]; `None` while the clock runs.
    pub throttled_since: Option<u64>,
    /// Time spent throttled, ns.
    pub throttled_time: u64,
    /// `throttled_time` when the queue last ran empty; `None` if it was throttled then (`throttled_pelt_idle`).
    pub throttled_when_idle: Option<u64>,
}

impl CfsRqClock {
    /// A queue that was never throttled.
    pub const fn new() -> CfsRqClock {
        CfsRqClock { throttled_since: None, throttled_time: 0, throttled_when_idle: Some(0) }
    }

    /// The time for averages of this queue, ns: `rq_now` less the time throttled, standing still while throttled.
    ///
    /// Kernel: `cfs_rq_clock_pelt()`, kernel/sched/pelt.h; before it `cfs_rq_clock_task()`. `rq_now`: [`RqClock::now`].
    pub const fn now(&self, rq_now: u64) -> u64 {
        let now = match self.throttled_since {
            Some(since) => since,
            None => rq_now,
        };
        now.wrapping_sub(self.throttled_time)
    }

    /// Stops the clock, if it runs.
    ///
    /// Kernel: `tg_throttle_down()`, kernel/sched/fair.c; from task-based throttling on (e1fad12dcb66) only when the
    /// queue has run empty.
    pub const fn throttle(&mut self, rules: &PeltRules, rq_now: u64, time: RqTime) {
        if self.throttled_since.is_none() {
            self.throttled_since = Some(throttle_clock(rules, rq_now, time));
        }
    }

    /// Lets the clock run again.
    ///
    /// Kernel: `tg_unthrottle_up()`, kernel/sched/fair.c.
    pub const fn unthrottle(&mut self, rules: &PeltRules, rq_now: u64, time: RqTime) {
        if let Some(since) = self.throttled_since {
            let throttled = throttle_clock(rules, rq_now, time).wrapping_sub(since);
            self.throttled_time = self.throttled_time.wrapping_add(throttled);
            self.throttled_since = None;
        }
    }

    /// The queue has run empty: notes the time throttled for those that read it from elsewhere.
    ///
    /// Kernel: `update_idle_cfs_rq_clock_pelt()`, kernel/sched/pelt.h (e2f3e35f1f5a).
    pub const fn enter_idle(&mut self) {
        self.throttled_when_idle = match self.throttled_since {
            Some(_) => None,
            None => Some(self.throttled_time),
        };
    }
}

const fn throttle_clock(rules: &PeltRules, rq_now: u64, time: RqTime) -> u64 {
    match rules.throttle_clock {
        ThrottleClock::Task => time.clock_task,
        ThrottleClock::Pelt => rq_now,
    }
}
