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
    /// Kernel: `rq_clock_pelt()`, kernel/sched/pelt.h. Variants: `rq_clock_task()` to v5.0, `PeltClock` from v5.1
    /// (23127296889f).
    pub const fn now(&self, rules: &PeltRules, time: RqTime) -> u64 {
        match rules.invariance {
            Invariance::Contribution => time.clock_task,
            Invariance::PeltClock => self.clock_pelt.wrapping_sub(self.lost_idle_time),
        }
    }

    /// Lets `delta` ns of task time pass, after which it is `time`; `idle`: the idle task runs. At each clock update.
    ///
    /// Kernel: `update_rq_clock_pelt()`, kernel/sched/pelt.h.
    pub const fn update(&mut self, rules: &PeltRules, delta: u64, time: RqTime, idle: bool, scale: CpuScale) {
        if idle {
            return self.sync(rules, time);
        }
        let scaled = cap_scale(cap_scale(delta, scale.capacity), scale.frequency);
        self.clock_pelt = self.clock_pelt.wrapping_add(scaled);
    }

    /// The CPU turns idle (see `LostIdleCheck` for when). If it was full, the time by which the PELT clock is late is lost.
    ///
    /// `util_sum` is that of the root queue plus those of the real-time and deadline classes, wrapping.
    ///
    /// Kernel: `update_idle_rq_clock_pelt()`, kernel/sched/pelt.h. Variants: `NextUpdate` to v5.19, `WhenIdling` from v6.0
    /// (e2f3e35f1f5a).
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

    /// The time for averages of this queue, ns: `rq_now` ([`RqClock::now`]) less the time throttled, standing still while
    /// throttled.
    ///
    /// Kernel: `cfs_rq_clock_pelt()`, kernel/sched/pelt.h, to v5.0 `cfs_rq_clock_task()`.
    pub const fn now(&self, rq_now: u64) -> u64 {
        let now = match self.throttled_since {
            Some(since) => since,
            None => rq_now,
        };
        now.wrapping_sub(self.throttled_time)
    }

    /// Stops the clock, if it runs. From task-based throttling on (e1fad12dcb66) only when the queue has run empty.
    ///
    /// Kernel: `tg_throttle_down()`, kernel/sched/fair.c. Variants: `Task` to v5.18, `Pelt` from v5.19 (64eaf50731ac).
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn rules(major: u32, minor: u32) -> PeltRules {
        crate::pelt::rules_of(&format!("v{major}.{minor}"))
    }

    fn at(ms: u64) -> RqTime {
        RqTime { clock: ms * MS, clock_task: ms * MS }
    }

    #[test]
    fn a_slow_cpu_catches_up_when_it_idles() {
        let rules = rules(5, 10);
        let mut clock = RqClock::default();
        let half = CpuScale { frequency: 1024, capacity: 512 };
        clock.update(&rules, 10 * MS, at(10), false, half);
        assert_eq!(clock.now(&rules, at(10)), 5 * MS);
        clock.enter_idle(&rules, at(10), 20 << 20);
        assert_eq!(clock.now(&rules, at(10)), 5 * MS, "before v6.0 only at the next update");
        clock.update(&rules, MS, at(11), true, half);
        assert_eq!(clock.now(&rules, at(11)), 11 * MS);
        assert_eq!(clock.lost_idle_time, 0);
    }

    #[test]
    fn a_full_cpu_has_nothing_to_catch_up_on() {
        let rules = rules(6, 0);
        let mut clock = RqClock::default();
        let half = CpuScale { frequency: 512, capacity: 1024 };
        clock.update(&rules, 1000 * MS, at(1000), false, half);
        let full = (PELT_MIN_DIVIDER << 10) - LOAD_AVG_MAX;
        let mut nearly = clock;
        nearly.enter_idle(&rules, at(1000), full - 1);
        assert_eq!((nearly.lost_idle_time, nearly.now(&rules, at(1000))), (0, 1000 * MS));
        clock.enter_idle(&rules, at(1000), full);
        assert_eq!((clock.lost_idle_time, clock.now(&rules, at(1000))), (500 * MS, 500 * MS));
        assert_eq!((clock.clock_idle, clock.clock_pelt_idle), (1000 * MS, 500 * MS));
        clock.update(&rules, 7 * MS, at(1007), true, half);
        assert_eq!(clock.now(&rules, at(1007)), 507 * MS, "idle time counts in full from then on");
        assert_eq!((clock.clock_idle, clock.clock_pelt_idle), (1007 * MS, 507 * MS));
    }

    #[test]
    fn scaled_contributions_need_no_clock() {
        let mut clock = RqClock::default();
        clock.update(&PeltRules::BASE, 10 * MS, at(10), false, CpuScale { frequency: 1, capacity: 1 });
        assert_eq!(clock.now(&PeltRules::BASE, at(10)), 10 * MS);
    }

    #[test]
    fn a_throttled_queue_stands_still() {
        for rules in [rules(5, 10), rules(5, 19)] {
            let mut clock = CfsRqClock::new();
            clock.throttle(&rules, 10 * MS, at(10));
            clock.throttle(&rules, 12 * MS, at(12));
            assert_eq!(clock.now(20 * MS), 10 * MS);
            clock.enter_idle();
            assert_eq!(clock.throttled_when_idle, None);
            clock.unthrottle(&rules, 40 * MS, at(40));
            assert_eq!(clock.now(41 * MS), 11 * MS);
            clock.enter_idle();
            assert_eq!(clock.throttled_when_idle, Some(30 * MS));
        }
    }

    /// The defect that 64eaf50731ac repairs: on a slow CPU the two clocks do not agree.
    #[test]
    fn throttled_time_in_the_wrong_clock_jumps() {
        let mut clock = CfsRqClock::new();
        let old = rules(5, 18);
        clock.throttle(&old, 5 * MS, at(10));
        assert_eq!(clock.now(5 * MS), 10 * MS, "5 ms ahead");
        let mut clock = CfsRqClock::new();
        clock.throttle(&rules(5, 19), 5 * MS, at(10));
        assert_eq!(clock.now(5 * MS), 5 * MS);
    }
}
