//! Commits that v5.0 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("765d0af19f5f", memory("2018-11-03"), "no-smt-gain", "sched/topology: Remove the ::smt_gain field from 'struct sched_domain'", &[
        Domain(SmtCapacity::Full.effect()),
    ]),
    commit("3f130a37c442", memory("2018-11-12"), "newidle-interval", "sched/fair: Don't increase sd->balance_interval on newidle balance", &[
        Balance(BackOff::NotNewidle.effect()),
    ]),
    commit("92a801e5d5b7", memory("2018-11-12"), "util-est-flag-masked", "sched/fair: Mask UTIL_AVG_UNCHANGED usages", &[
        Pelt(UtilEstFlag::LowBit.effect()),
    ]),
    commit("2802bf3cd936", memory("2018-12-11"), "overutilized", "sched/fair: Add over-utilization/tipping point indicator", &[
        Balance(EnergyBalance::Stay.effect()),
    ]),
    commit("732cd75b8c92", memory("2018-12-11"), "energy-aware-wakeup", "sched/fair: Select an energy-efficient CPU on task wake-up", &[
        Select(EnergyAware::WholeMachine.effect()),
    ]),
    commit("c40f7d74c741", memory("2018-12-30"), "leaf-list-kept", "sched/fair: Fix infinite loop in update_blocked_averages() by reverting a9e7f6544b9c", &[
        Pelt(QueueDecay::Never.effect()),
    ]),
];
