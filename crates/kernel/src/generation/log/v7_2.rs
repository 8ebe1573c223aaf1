//! Commits that v7.2 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[Change] = &[
    commit("6d2051403d6c", git("2026-05"), "util-est-in-update", "sched/fair: Update util_est after updating util_avg during dequeue", &[
        Pelt(UtilEstSample::Aged.effect()),
    ]),
    commit("25a32e400a14", git("2026-05"), "asymmetric-cores", "sched/fair: Prefer fully-idle SMT cores in asym-capacity idle selection", &[
        Select(Asymmetric::FittingCores.effect()),
    ]),
    commit("61ea17a63719", git("2026-05"), "asymmetric-bound", "sched/fair: Add SIS_UTIL support to select_idle_capacity()", &[
        Select(Asymmetric::BoundedCores.effect()),
    ]),
    commit("f666241e6bd5", git("2026-06"), "throttle-when-charged", "sched/fair: Unify cfs_rq throttling via account_cfs_rq_runtime()", &[
        Bandwidth(ThrottlePoint::Accounting.effect()),
    ]),
    commit("29922fdfc2a4", git("2026-06-09"), "boost-with-task", "sched/fair: Fix cpu_util runnable_avg arithmetic", &[
        Pelt(RunnableBoost::WithTask.effect()),
    ]),
];
