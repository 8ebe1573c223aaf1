//! Commits that v4.19 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("523e979d3164", memory("2018-07-16"), "capacity-by-pelt", "sched/core: Use PELT for scale_rt_capacity()", &[
        Balance(LeftForFair::AveragesOfCore.effect()),
    ]),
    commit("287cdaac5700", memory("2018-08"), "capacity-of-threads", "sched/fair: Fix scale_rt_capacity() for SMT", &[
        Balance(LeftForFair::Averages.effect()),
    ]),
    commit("baa9be4ffb55", memory("2018-10-11"), "throttled-list-order", "sched/fair: Fix throttle_list starvation with low CFS quota", &[
        Bandwidth(ThrottledOrder::OldestFirst.effect()),
    ]),
];
