//! Commits that v5.18 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("2cfb7a1b031b", git("2022-02-11"), "fork-numa-node", "sched/fair: Improve consistency of allowed NUMA balance calculations", &[
        Balance(NumaAllowance::QuarterOfTarget.effect()),
        Select(ForkNuma::QuarterOfNode.effect()),
    ]),
    commit("e496132ebedd", git("2022-02-11"), "numa-imbalance", "sched/fair: Adjust the allowed NUMA imbalance when SD_NUMA spans multiple LLCs", &[
        Domain(NumaImbalance::QuarterOrLlcs.effect()),
        Balance(NumaAllowance::PerCache.effect()),
        Select(ForkNuma::ImbNumaNr.effect()),
    ]),
    commit("40f5aa4c5eae", git("2022-04-19"), "attach-at-least-one", "sched/pelt: Fix attach_entity_load_avg() corner case", &[
        Pelt(AttachLoadSum::AtLeastOne.effect()),
    ]),
];
