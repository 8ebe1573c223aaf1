//! Commits of v4.18 that can be taken out; what else v4.18 holds is what the log starts from.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("512ac999d275", page("2018-07"), "slices-expire", "sched/fair: Fix bandwidth timer clock drift condition", &[
        Bandwidth(SliceExpiry::WithPeriod.effect()),
    ]),
];
