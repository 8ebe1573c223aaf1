//! Commits that v6.2 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("ad841e569f5c", git("2022-10-27"), "energy-roomier", "sched/fair: Check if prev_cpu has highest spare cap in feec()", &[
        Select(EnergyCandidates::RoomierThanPrev.effect()),
    ]),
    commit("d6962c4fe8f9", memory("2022-11"), "pending-until-queued", "sched: Clear ttwu_pending after enqueue_task()", &[
        NotModelled(&[Apart("126c2092e5c8")], "before, a CPU looked idle between an interrupt's arrival and the enqueue of what it brings"),
    ]),
    commit("48d5e9daa8b7", git("2022-10-27"), "clamp-margin", "sched/uclamp: Fix relationship between uclamp and migration margin", &[
        OutOfSight("clamped utilization: tasks and groups give no hints (uclamp)"),
    ]),
];
