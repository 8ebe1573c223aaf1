//! Commits that v6.15 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[Change] = &[
    commit("f553741ac8c0", git("2025-02-14"), "idle-protection", "sched: Cancel the slice protection of the idle entity", &[
        Group(IdleProtection::Cancelled.effect()),
    ]),
    commit("2ae891b82695", git("2025-02-14"), "shorter-slice", "sched: Reduce the default slice to avoid tasks getting an extra tick", &[
        AddTunable(Tunable::BaseSlice, 700_000),
    ]),
];
