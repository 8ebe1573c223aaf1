//! Commits that v6.18 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("2cd571245b43", git("2025-09-03"), "throttle-work-data", "sched/fair: Add related data structure for task based throttle", &[
        Groundwork("fields that nothing reads yet"),
    ]),
    commit("7fc2d1439247", git("2025-09-03"), "throttle-work", "sched/fair: Implement throttle task work and related helpers", &[
        Groundwork("functions that nothing calls yet"),
    ]),
    commit("e1fad12dcb66", git("2025-09-03"), "throttle-tasks", "sched/fair: Switch to task based throttle model", &[
        Bandwidth(Throttling::TasksAtUserReturn.effect()),
        Bandwidth(ThrottledListing::Joins.effect()),
    ]),
    commit("eb962f251fbb", memory("2025-09-03"), "throttle-time-of-tasks", "sched/fair: Task based throttle time accounting", &[
        OutOfSight("cpu.stat"),
    ]),
    commit("5b726e9bf954", git("2025-09-03"), "no-throttled-lb-pair", "sched/fair: Get rid of throttled_lb_pair()", &[
        Bandwidth(ThrottledMigration::Free.effect()),
    ]),
    commit("fe8d238e646e", git("2025-09-15"), "throttled-propagation", "sched/fair: Propagate load for throttled cfs_rq", &[
        Bandwidth(ThrottledPropagation::GoesOn.effect()),
    ]),
    commit("fcd394866e3d", git("2025-09-15"), "throttled-weight", "sched/fair: update_cfs_group() for throttled cfs_rqs", &[
        Bandwidth(ThrottledWeight::Follows.effect()),
    ]),
    commit("253b3f587241", git("2025-09-15"), "throttled-tasks-only", "sched/fair: Do not special case tasks in throttled hierarchy", &[
        Bandwidth(ThrottledPreemption::ByTask.effect()),
    ]),
    commit("0d4eaf8caf8c", git("2025-09-15"), "not-to-throttled", "sched/fair: Do not balance task to a throttled cfs_rq", &[
        Bandwidth(ThrottledMigration::NotThere.effect()),
    ]),
    commit("17e3e88ed0b6", git("2025-10-14"), "lost-idle", "sched/fair: Fix pelt lost idle time detection", &[Pelt(LostIdleCheck::EveryPick.effect())]),
    commit("0e4a169d1a2b", git("2025-10-22"), "join-stopped", "sched/fair: Start a cfs_rq on throttled hierarchy with PELT clock throttled", &[
        Bandwidth(JoinThrottled::ClockStopped.effect()),
    ]),
    commit("956dfda6a708", git("2025-11-06"), "initial-runtime", "sched/fair: Prevent cfs_rq from being unthrottled with zero runtime_remaining", &[
        Bandwidth(InitialRuntime::OneNanosecond.effect()),
    ]),
];
