//! Commits that v6.16 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("f2d650618bc7", git("2025-04-08"), "util-est-any-capacity", "sched/fair: Allow decaying util_est when util_avg > CPU capa", &[
        Pelt(UtilEstCapacity::Any.effect()),
    ]),
    commit("c70fc32f4443", git("2025-04-16"), "reweight-without-self", "sched/fair: Adhere to place_entity() constraints", &[
        NotModelled(&[Apart("6d71a9c61604"), ChangedWeights], "an entity that counts itself while its weight changes, from 6d71a9c61604 on"),
    ]),
    commit("aa3ee4f0b754", git("2025-05-21"), "sync-beside-delayed", "sched/fair: Fixup wake_up_sync() vs DELAYED_DEQUEUE", &[
        Select(SyncAlone::Runnable.effect()),
    ]),
];
