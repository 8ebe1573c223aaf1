//! Commits that v6.11 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("d32960528702", git("2024-07-04"), "idle-reweight", "sched/fair: set_load_weight() must also call reweight_task() for SCHED_IDLE tasks", &[
        Group(IdleReweight::WithLoad.effect()),
    ]),
];
