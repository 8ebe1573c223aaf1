//! CFS bandwidth control: what `cpu.max` makes of a group.
//!
//! A group has a pool of run time, which is refilled each period. Its queues take slices from it. A queue that gets nothing
//! more is throttled, until a timer distributes the next period's runtime. Timers are the driver's: the scheduler says when
//! one is to expire ([`Scheduler::take_started_timers`]) and is told when it has ([`Scheduler::group_timer_expires`]).
//!
//! Kernel: the section "CFS bandwidth control machinery" of kernel/sched/fair.c, and the limits of `tg_set_cfs_bandwidth()`,
//! kernel/sched/core.c.
//!
//! Must not know: what drives the timers.

mod at_pick;
mod limbo;
pub(crate) mod listing;
mod pool;
pub(crate) mod rules;
#[cfg(test)]
pub(crate) mod tests;
mod throttle;
mod throttled;
mod timer;
mod unthrottle;
mod waiting;

use fairlab_event::{Cpu, Ns};

use crate::entity::CfsRqId;
use crate::group::GroupId;
use crate::task::TaskId;

pub use rules::{
    BandwidthEffect, BandwidthRules, JoinThrottled, LastRequest, PeriodStart, PickRestart, Refill,
    RefreshSoon, SlackRestart, SliceExpiry, ThrottlePoint, ThrottledAssign, ThrottledOrder,
    ThrottledPropagation, Throttling, Unthrottling, UpperLevels,
};

/// The shortest quota and period (`min_cfs_quota_period`), ns.
const LEAST_PERIOD: u64 = 1_000_000;
/// The longest period (`max_cfs_quota_period`), ns.
const LONGEST_PERIOD: u64 = 1_000_000_000;
/// The period that a group starts with (`default_cfs_period()`), ns.
const DEFAULT_PERIOD: u64 = 100_000_000;
/// What a queue that runs empty keeps of its runtime (`min_cfs_rq_runtime`), ns.
const KEPT_RUNTIME: i64 = 1_000_000;
/// Nearer to the end of a period than this, nothing is distributed before (`min_bandwidth_expiration`), ns.
const NEAR_REFRESH: u64 = 2_000_000;
/// How long returned runtime is gathered before it is distributed (`cfs_bandwidth_slack_period`), ns.
const SLACK_PERIOD: u64 = 5_000_000;

/// A group's limit: `cpu.max` and `cpu.max.burst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfsLimit {
    quota: Option<Ns>,
    period: Ns,
    burst: Ns,
}

impl CfsLimit {
    /// No limit (`cpu.max` is "max 100000").
    pub const UNLIMITED: CfsLimit = CfsLimit { quota: None, period: Ns(DEFAULT_PERIOD), burst: Ns::ZERO };

    /// `quota` of run time each `period`, and up to `burst` saved from earlier periods. Before v5.14 there is no burst.
    ///
    /// # Errors
    /// What the kernel would refuse: quota or period below 1 ms, a period above 1 s, a burst above the quota.
    pub fn new(quota: Ns, period: Ns, burst: Ns) -> Result<CfsLimit, String> {
        if !(LEAST_PERIOD..=LONGEST_PERIOD).contains(&period.0) {
            return Err(format!("a period of {} ns is outside 1 ms to 1 s", period.0));
        }
        if quota.0 < LEAST_PERIOD {
            return Err(format!("a quota of {} ns is less than 1 ms", quota.0));
        }
        if burst > quota {
            return Err(format!("a burst of {} ns is more than the quota of {} ns", burst.0, quota.0));
        }
        Ok(CfsLimit { quota: Some(quota), period, burst })
    }

    /// Run time a period; `None` without limit.
    pub fn quota(&self) -> Option<Ns> {
        self.quota
    }

    /// Run time that may be saved from earlier periods.
    pub fn burst(&self) -> Ns {
        self.burst
    }

    /// Length of a period.
    pub fn period(&self) -> Ns {
        self.period
    }
}

/// Which of a group's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupTimerKind {
    /// The end of a period.
    Period,
    /// Returned runtime is to be distributed before the period ends.
    Slack,
    /// The end of a period of real-time tasks' limit, of all CPUs.
    RealTime,
}

/// A timer that has been started: it is to expire at `expires` on `cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupTimer {
    /// Whose.
    pub group: GroupId,
    /// Which.
    pub kind: GroupTimerKind,
    /// When.
    pub expires: Ns,
    /// Where: the CPU that started it (`HRTIMER_MODE_ABS_PINNED`).
    pub cpu: Cpu,
}

/// A group's pool of runtime (`struct cfs_bandwidth`). Times and runtime in ns.
#[derive(Clone, Debug)]
pub(crate) struct CfsBandwidth {
    pub limit: CfsLimit,
    pub runtime: u64,
    /// Nothing was taken since the last refill.
    pub idle: bool,
    /// The period timer runs, and when it expires.
    pub period_active: bool,
    pub period_expires: u64,
    /// When the slack timer expires, if it runs.
    pub slack_expires: Option<u64>,
    pub slack_started: bool,
    /// Until when runtime from this pool is good, and how often that has changed (to v5.3).
    pub runtime_expires: u64,
    pub expires_seq: u32,
    /// Queues that wait for runtime, the next to be served first.
    pub throttled: Vec<CfsRqId>,
}

impl CfsBandwidth {
    pub fn new() -> CfsBandwidth {
        CfsBandwidth {
            limit: CfsLimit::UNLIMITED,
            runtime: 0,
            idle: false,
            period_active: false,
            period_expires: 0,
            slack_expires: None,
            slack_started: false,
            runtime_expires: 0,
            expires_seq: 0,
            throttled: Vec::new(),
        }
    }
}

/// A queue's part of its group's runtime (fields of `struct cfs_rq`).
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalRuntime {
    /// The group has a quota.
    pub enabled: bool,
    /// What is left of the slice, ns; a debt if negative.
    pub remaining: i64,
    /// Until when it is good, and which change of that it knows (to v5.3).
    pub expires: u64,
    pub expires_seq: u32,
    /// It waits for runtime.
    pub throttled: bool,
    /// Its CPU has been called to unthrottle it.
    pub unthrottle_queued: bool,
    /// How many of the groups from its own up to the root are throttled on this CPU.
    pub throttle_count: u32,
    /// Tasks that have left until the group comes back, the next to be queued last.
    pub limbo: Vec<TaskId>,
}
