//! What each upstream commit changed in bandwidth control, oldest first, as data for the change log to fold.
//!
//! Must not know: what the rules do.

use super::rules::{
    BandwidthEffect, InitialRuntime, JoinThrottled, LastRequest, PeriodStart, PickRestart, Refill,
    RefreshSoon, SlackRestart, SliceExpiry, ThrottlePoint, ThrottledAssign, ThrottledMigration,
    ThrottledOrder, ThrottledPreemption, ThrottledPropagation, ThrottledWeight, Throttling, Unthrottling,
    UpperLevels,
};
use crate::generation::{Change, Effect, change};

/// The effect of one rule.
macro_rules! becomes {
    ($rule:ident::$variant:ident) => {
        Effect::Bandwidth(BandwidthEffect::$rule($rule::$variant))
    };
}

const SCALED_PERIOD: &str =
    "periods that a timer cannot keep up with: virtual time stands still in an interrupt";
const RACE: &str = "a race between CPUs: the model takes one step after the other";

/// Every change of bandwidth control since v4.18, oldest first.
#[rustfmt::skip]
pub const BANDWIDTH_CHANGES: &[Change] = &[
    change("baa9be4ffb55", "throttled-list-order", (4, 19), "sched/fair: Fix throttle_list starvation with low CFS quota", &[
        becomes!(ThrottledOrder::OldestFirst),
    ]),
    change("2e8e19226398", "period-loop-limit", (5, 1), "sched/fair: Limit sched_cfs_period_timer() loop to avoid hard lockup", &[
        Effect::NotModelled(SCALED_PERIOD),
    ]),
    change("66567fcbaeca", "slack-timer-stays", (5, 3), "sched/fair: Don't push cfs_bandwith slack timers forward", &[
        becomes!(SlackRestart::LeavesAlone),
    ]),
    change("5e2d2cc2588b", "no-runtime-while-throttled", (5, 3), "sched/fair: Don't assign runtime for throttled cfs_rq", &[
        becomes!(ThrottledAssign::Refused),
    ]),
    change("de53fd7aedb1", "slices-never-expire", (5, 4), "sched/fair: Fix low cpu usage with high throttling by removing expiration of cpu-local slices", &[
        becomes!(SliceExpiry::Never),
    ]),
    change("4929a4e6faa0", "period-doubles", (5, 4), "sched/fair: Scale bandwidth quota and period without losing quota/period ratio precision", &[
        Effect::NotModelled(SCALED_PERIOD),
    ]),
    change("26a8b12747c9", "distribution-takes-at-once", (5, 7), "sched/fair: Fix race between runtime distribution and assignment", &[
        Effect::NotModelled(RACE),
    ]),
    change("6212437f0f60", "throttled-runnable", (5, 7), "sched/fair: Fix runnable_avg for throttled cfs", &[
        becomes!(UpperLevels::Aged),
    ]),
    change("5a6d6a6ccb5f", "refill-before-scaling", (5, 8), "sched/fair: Refill bandwidth before scaling", &[
        Effect::NotModelled(SCALED_PERIOD),
    ]),
    change("ab93a4bc955b", "no-distribute-running", (5, 8), "sched/fair: Remove distribute_running from CFS bandwidth", &[
        Effect::NotModelled(RACE),
    ]),
    change("e98fa02c4f2e", "last-request", (5, 8), "sched/fair: Eliminate bandwidth race between throttling and distribution", &[
        becomes!(LastRequest::OneNanosecond),
    ]),
    change("39f23ce07b93", "unthrottle-tells", (5, 7), "sched/fair: Fix unthrottle_cfs_rq() for leaf_cfs_rq list", &[
        becomes!(UpperLevels::Told),
    ]),
    change("b6d37a764a5b", "throttle-reordered", (5, 11), "sched/fair: Reorder throttle_cfs_rq() path", &[
        Effect::Groundwork("steps of one operation change places"),
    ]),
    change("f4183717b370", "burst", (5, 14), "sched/fair: Introduce the burstable CFS controller", &[
        becomes!(Refill::Accumulates),
    ]),
    change("72d0ad7cb5ba", "refresh-signed", (5, 14), "sched/fair: Fix CFS bandwidth hrtimer expiry type", &[
        becomes!(RefreshSoon::Signed),
    ]),
    change("8ad075c2eb1f", "async-unthrottle", (6, 3), "sched: Async unthrottling for cfs bandwidth", &[
        becomes!(Unthrottling::ByItsCpu),
    ]),
    change("41abdba93747", "interleaved-periods", (6, 4), "sched: Interleave cfs bandwidth timers for improved single thread performance at low utilization", &[
        becomes!(PeriodStart::Interleaved),
    ]),
    change("677ea015f231", "throttled-self-time", (6, 6), "sched: add throttled time stat for throttled children", &[
        Effect::NotModelled("cpu.stat"),
    ]),
    change("79462e8c879a", "throttled-empty-time", (6, 6), "sched: don't account throttle time for empty groups", &[
        Effect::NotModelled("cpu.stat"),
    ]),
    change("88c56cfeaec4", "nohz-full-bandwidth", (6, 6), "sched/fair: Block nohz tick_stop when cfs bandwidth in use", &[
        Effect::NotModelled("NOHZ_FULL"),
    ]),
    change("2f8c62296b6f", "distribution-list", (6, 7), "sched/fair: Fix warning in bandwidth distribution", &[
        Effect::NotModelled(RACE),
    ]),
    change("8e2e13ac6122", "throttle-at-every-level", (6, 12), "sched/fair: Cleanup pick_task_fair() vs throttle", &[
        becomes!(PickRestart::KeepsRunning),
    ]),
    change("9b5ce1a37e90", "throttle-delayed", (6, 12), "sched: Fix sched_delayed vs cfs_bandwidth", &[
        Effect::NotModelled("before, throttling a group's entity that slept on its queue corrupted the queue"),
    ]),
    change("af98d8a36a96", "hotplug-quota", (6, 14), "sched/fair: Fix CPU bandwidth limit bypass during CPU hotplug", &[
        Effect::NotModelled("CPU hotplug"),
    ]),
    change("2cd571245b43", "throttle-work-data", (6, 18), "sched/fair: Add related data structure for task based throttle", &[
        Effect::Groundwork("fields that nothing reads yet"),
    ]),
    change("7fc2d1439247", "throttle-work", (6, 18), "sched/fair: Implement throttle task work and related helpers", &[
        Effect::Groundwork("functions that nothing calls yet"),
    ]),
    change("e1fad12dcb66", "throttle-tasks", (6, 18), "sched/fair: Switch to task based throttle model", &[
        becomes!(Throttling::TasksAtUserReturn),
    ]),
    change("eb962f251fbb", "throttle-time-of-tasks", (6, 18), "sched/fair: Task based throttle time accounting", &[
        Effect::NotModelled("cpu.stat"),
    ]),
    change("5b726e9bf954", "no-throttled-lb-pair", (6, 18), "sched/fair: Get rid of throttled_lb_pair()", &[
        becomes!(ThrottledMigration::Free),
    ]),
    change("fe8d238e646e", "throttled-propagation", (6, 18), "sched/fair: Propagate load for throttled cfs_rq", &[
        becomes!(ThrottledPropagation::GoesOn),
    ]),
    change("fcd394866e3d", "throttled-weight", (6, 18), "sched/fair: update_cfs_group() for throttled cfs_rqs", &[
        becomes!(ThrottledWeight::Follows),
    ]),
    change("253b3f587241", "throttled-tasks-only", (6, 18), "sched/fair: Do not special case tasks in throttled hierarchy", &[
        becomes!(ThrottledPreemption::ByTask),
    ]),
    change("0d4eaf8caf8c", "not-to-throttled", (6, 18), "sched/fair: Do not balance task to a throttled cfs_rq", &[
        becomes!(ThrottledMigration::NotThere),
    ]),
    change("0e4a169d1a2b", "join-stopped", (6, 18), "sched/fair: Start a cfs_rq on throttled hierarchy with PELT clock throttled", &[
        becomes!(JoinThrottled::ClockStopped),
    ]),
    change("956dfda6a708", "initial-runtime", (6, 18), "sched/fair: Prevent cfs_rq from being unthrottled with zero runtime_remaining", &[
        becomes!(InitialRuntime::OneNanosecond),
    ]),
    change("f666241e6bd5", "throttle-when-charged", (7, 2), "sched/fair: Unify cfs_rq throttling via account_cfs_rq_runtime()", &[
        becomes!(ThrottlePoint::Accounting),
    ]),
];
