//! Commits that v5.19 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("64eaf50731ac", git("2022-04-22"), "throttled-pelt-clock", "sched/fair: Fix cfs_rq_clock_pelt() for throttled cfs_rq", &[
        Pelt(ThrottleClock::Pelt.effect()),
    ]),
];
