//! Commits that v6.15 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("f553741ac8c0", git("2025-02-14"), "idle-protection", "sched: Cancel the slice protection of the idle entity", &[
        Group(IdleProtection::Cancelled.effect()),
    ]),
    commit("2ae891b82695", git("2025-02-14"), "shorter-slice", "sched: Reduce the default slice to avoid tasks getting an extra tick", &[
        AddTunable(Tunable::BaseSlice, 700_000),
    ]),
    commit("563bc2161b94", git("2025-02-14"), "least-slice-propagated", "sched/eevdf: Force propagating min_slice of cfs_rq when {en,de}queue tasks", &[
        NotModelled(&[Apart("aef6987d8954"), Groups, OwnScheduling], "least slices that were not handed up: here they are from aef6987d8954 on"),
    ]),
    commit("bbce3de72be5", git("2025-04-26"), "endless-slice", "sched/eevdf: Fix se->slice being set to U64_MAX and resulting crash", &[
        NotModelled(&[Apart("aef6987d8954"), Groups], "an endless slice of an empty group, and a crash"),
    ]),
];
