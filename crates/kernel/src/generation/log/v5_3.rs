//! Commits that v5.3 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("5e83eafbfd3b", memory("2019-06-03"), "no-cpu-load", "sched/fair: Remove the rq->cpu_load[] update code", &[
        RemoveFeature(Feature::LbBias),
        Domain(FilesShown::Numbers.effect()),
    ]),
    commit("1c1b8a7b03ef", memory("2019-06-03"), "no-source-load", "sched/fair: Replace source_load() & target_load() with weighted_cpuload()", &[
        Groundwork("both had come to the same number since the history of loads was removed"),
    ]),
    commit("a3df067974c5", memory("2019-06-03"), "runnable-load-name", "sched/fair: Rename weighted_cpuload() to cpu_runnable_load()", &[
        Groundwork("a function gets another name"),
    ]),
    commit("66567fcbaeca", memory("2019-06-17"), "slack-timer-stays", "sched/fair: Don't push cfs_bandwith slack timers forward", &[
        Bandwidth(SlackRestart::LeavesAlone.effect()),
    ]),
    commit("69842cba9ace", memory("2019-06"), "clamped-utilization", "sched/uclamp: Add CPU's clamp buckets refcounting", &[
        OutOfSight("clamped utilization: tasks and groups give no hints (uclamp)"),
    ]),
    commit("af24bde8df20", page("2019-06-24"), "energy-real-time", "sched/uclamp: Add uclamp support to energy_compute()", &[
        Select(EnergyUtil::RealTimeDrives.effect()),
    ]),
    commit("5e2d2cc2588b", git("2019-09-03"), "no-runtime-while-throttled", "sched/fair: Don't assign runtime for throttled cfs_rq", &[
        Bandwidth(ThrottledAssign::Refused.effect()),
    ]),
];
