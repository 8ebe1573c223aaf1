//! Commits that v5.9 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("3ea2f097b17e", git("2020-06-15"), "next-kick", "sched/fair: Fix NOHZ next idle balance", &[Balance(NextKick::NextTick.effect())]),
    commit("87e867b4269f", git("2020-06-15"), "divider-name", "sched/pelt: Cleanup PELT divider", &[
        Groundwork("one function instead of copies of one expression"),
    ]),
    commit("3edecfef0285", git("2020-07-22"), "idlest-tie", "sched/fair: update_pick_idlest() Select group with lowest group_util when idle_cpus are equal", &[
        Select(IdlestTie::LeastUtilized.effect()),
    ]),
];
