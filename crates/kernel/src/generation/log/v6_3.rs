//! Commits that v6.3 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("8ad075c2eb1f", git("2022-12-27"), "async-unthrottle", "sched: Async unthrottling for cfs bandwidth", &[Bandwidth(Unthrottling::ByItsCpu.effect())]),
    commit("79ba1e607d68", git("2023-01-15"), "limit-slice", "sched/fair: Limit sched slice duration", &[
        Fair(TickPreemption::IdealSliceWithinLatency.effect()),
    ]),
    commit("829c1651e9c4", memory("2023-02"), "long-sleepers", "sched/fair: sanitize vruntime of entity being placed", &[
        Fair(LongSleepers::MinuteOrMoved.effect()),
    ]),
    commit("e5ed0550c04c", git("2023-02-11"), "misfit-under-energy", "sched/fair: unlink misfit task from cpu overutilized", &[
        Groundwork("without clamps a CPU whose task is too large for it is overutilized"),
    ]),
    commit("a53ce18cacb4", memory("2023-03"), "long-sleepers-moved", "sched/fair: Sanitize vruntime of entity being migrated", &[
        Fair(LongSleepers::Nobody.effect()),
    ]),
    commit("91dcf1e8068e", git("2023-04-12"), "imbalance-overflow", "sched/fair: Fix imbalance overflow", &[Balance(LocalAverage::BelowDomain.effect())]),
];
