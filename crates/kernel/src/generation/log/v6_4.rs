//! Commits that v6.4 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("eff6c8ce8d4d", git("2023-03-22"), "same-autogroup", "sched/core: Reduce cost of sched_move_task when config autogroup", &[
        Group(ExitMove::IfGroupChanges.effect()),
    ]),
    commit("41abdba93747", git("2023-03-22"), "interleaved-periods", "sched: Interleave cfs bandwidth timers for improved single thread performance at low utilization", &[
        Bandwidth(PeriodStart::Interleaved.effect()),
    ]),
];
