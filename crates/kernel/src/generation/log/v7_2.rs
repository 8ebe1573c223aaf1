//! Commits that v7.2 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
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
    commit("df0d98475954", memory("2026-05"), "cache-aware", "sched/cache: Introduce infrastructure for cache-aware load balancing", &[
        Balance(Gathering::PreferredCache.effect()),
    ]),
    commit("b3a2dfa8b42e", memory("2026-05"), "newidle-in-pick", "sched/fair: Add newidle balance to pick_task_fair()", &[
        Groundwork("a search for work, which picks make from 50653216e4ff on, made by another function"),
    ]),
    commit("bf6aa722198d", memory("2026-05"), "misfit-not-to-busy-core", "sched/fair: Reject misfit pulls onto busy SMT siblings on asym-capacity", &[
        NotModelled(&[DifferentCpus, Smt], "threads of CPUs of different capacities"),
    ]),
    commit("3b7be8e7fa69", memory("2026-05"), "report-clock", "sched/fair: Use rq_clock() in update_tg_load_avg() rate-limit", &[
        Pelt(TgClock::Queue.effect()),
    ]),
    commit("28ad5427682b", memory("2026-06"), "unthrottle-charges", "sched/fair: Call update_curr() before unthrottling the hierarchy", &[
        NotModelled(&[Apart("f666241e6bd5"), Quotas], "told in the row of f666241e6bd5, of the series"),
    ]),
    commit("dd29c017aed6", memory("2026-05-19"), "rt-push-locks", "sched/rt: Have RT_PUSH_IPI be default off for non PREEMPT_RT", &[
        Groundwork("here no CPU waits for the lock of another's runqueue: the same task comes either way"),
        SetFeature(Feature::RtPushIpi, false),
    ]),
    commit("29922fdfc2a4", git("2026-06-09"), "boost-with-task", "sched/fair: Fix cpu_util runnable_avg arithmetic", &[
        Pelt(RunnableBoost::WithTask.effect()),
    ]),
    commit("333238da9a19", git("<=2026-08-16"), "requeue-charges", "sched: Update time before requeueing delayed entities", &[
        Fair(RequeueCharge::First.effect()),
    ]),
];
