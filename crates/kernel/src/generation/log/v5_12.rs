//! Commits that v5.12 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("8c1f560c1ea3", git("2021-01-14"), "util-est-dequeued-first", "sched/fair: Avoid stale CPU util_est value for schedutil in task dequeue", &[
        Pelt(UtilEstDequeue::Around.effect()),
    ]),
    commit("fc488ffd4297", git("2021-01-14"), "skip-empty-queue", "sched/fair: Skip idle cfs_rq", &[Balance(EmptyQueue::PassedOver.effect())]),
    commit("8a41dfcda7a3", git("2021-01-14"), "all-pinned", "sched/fair: Don't set LBF_ALL_PINNED unnecessarily", &[
        Balance(AllPinned::UntilMovable.effect()),
    ]),
    commit("e9b9734b7465", git("2021-01-14"), "fewer-pushes", "sched/fair: Reduce cases for active balance", &[Balance(ActiveBalance::TasksOnly.effect())]),
    commit("0ae78eec8aa6", page("2021-01-27"), "misfit-unbound", "sched/eas: Don't update misfit status if the task is pinned", &[
        Balance(MisfitTask::Unbound.effect()),
    ]),
    commit("620a6dc40754", page("2021-01-27"), "numa-levels", "sched/topology: Make sched_init_numa() use a set for the deduplicating sort", &[
        Domain(NumaLevels::All.effect()),
    ]),
    commit("e6e0dc2d5497", page("2021-01-27"), "no-sis-avg-cpu", "sched/fair: Remove SIS_AVG_CPU", &[RemoveFeature(Feature::SisAvgCpu)]),
    commit("bae4ec13640b", page("2021-01-27"), "scan-cost-sis-prop", "sched/fair: Move avg_scan_cost calculations under SIS_PROP", &[
        Select(ScanCost::Proportional.effect()),
    ]),
    commit("6cd56ef1df39", git("2021-02-17"), "no-sibling-scan", "sched/fair: Remove select_idle_smt()", &[Select(SiblingScan::None.effect())]),
    commit("9fe1f127b913", git("2021-02-17"), "one-scan", "sched/fair: Merge select_idle_core/cpu()", &[
        Select(CoreScan::WithFallback.effect()),
        Select(CoreNote::Wakers.effect()),
    ]),
    commit("156ec6f42b8d", git("2021-02-17"), "hrtick-reprogrammed", "sched/features: Fix hrtick reprogramming", &[
        Groundwork("no slice ends by a timer by default before 9213aa4784cf"),
    ]),
    commit("e0ee463c93c4", git("2021-02-17"), "hrtick-by-class", "sched/features: Distinguish between NORMAL and DEADLINE hrtick", &[
        Groundwork("no slice ends by a timer by default before 9213aa4784cf"),
        AddFeature(Feature::HrtickDl, false),
    ]),
];
