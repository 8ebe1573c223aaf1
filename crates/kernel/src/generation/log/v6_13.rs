//! Commits that v6.13 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("e31488c9df27", memory("2024-10-07"), "no-double-tick", "sched/fair: remove the DOUBLE_TICK feature", &[
        Groundwork("nothing asked for it any more"),
        RemoveFeature(Feature::DoubleTick),
    ]),
    commit("4423af84b297", git("2024-10-07"), "no-lag-no-product", "sched/fair: optimize the PLACE_LAG when se->vlag is zero", &[
        Groundwork("no lag is not inflated, for the same place"),
    ]),
    commit("7c70cb94d29c", git("2024-11-05"), "lazy-preemption", "sched: Add Lazy preemption model", &[
        Groundwork("a preemption model that no kernel has by default before 7dadeaa6e851"),
    ]),
    commit("ff47a0acfcce", git("2024-12-02"), "ilb-idle", "sched/fair: Check idle_cpu() before need_resched() to detect ilb CPU turning busy", &[
        Balance(IlbAbort::BusyAndNeedResched.effect()),
    ]),
    commit("76f2f783294d", git("2024-12-09"), "delayed-not-runnable", "sched/eevdf: More PELT vs DELAYED_DEQUEUE", &[
        Pelt(DelayedTasks::NotRunnable.effect()),
    ]),
    commit("493afbd187c4", git("2024-12-09"), "delayed-buddy", "sched/fair: Fix NEXT_BUDDY", &[
        NotModelled(&[Switched(Feature::NextBuddy)], "with NEXT_BUDDY, a preferred entity that sleeps on its queue"),
    ]),
    commit("6d71a9c61604", git("2025-01-09"), "place-anew", "sched/fair: Fix EEVDF entity placement bug causing scheduling lag", &[
        Fair(Reweight::PlaceAnew.effect()),
    ]),
    commit("66951e4860d3", git("2025-01-13"), "empty-group", "sched/fair: Fix update_cfs_group() vs DELAY_DEQUEUE", &[
        Fair(EmptyGroup::KeepsWeight.effect()),
    ]),
];
