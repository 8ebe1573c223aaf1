//! Commits that v5.17 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("8b4e74ccb582", git("2021-12-04"), "kthread-in-task", "sched/fair: Fix detection of per-CPU kthreads waking a task", &[
        Select(KthreadStacking::TaskContext.effect()),
    ]),
    commit("98b0d890220d", git("2022-01-18"), "removed-util-floor", "sched/pelt: Relax the sync of util_sum with util_avg", &[
        Pelt(PeltEffect::RemovedUtilSync(SumSync::FlooredNarrow)),
    ]),
    commit("7ceb77103001", git("2022-01-18"), "util-floor", "sched/pelt: Continue to relax the sync of util_sum with util_avg", &[
        Pelt(PeltEffect::DetachUtilSync(SumSync::FlooredNarrow)),
        Pelt(PeltEffect::GroupUtilSync(SumSync::FlooredNarrow)),
    ]),
    commit("95246d1ec80b", git("2022-01-18"), "runnable-floor", "sched/pelt: Relax the sync of runnable_sum with runnable_avg", &[
        Pelt(PeltEffect::RemovedRunnableSync(SumSync::FlooredNarrow)),
        Pelt(PeltEffect::DetachRunnableSync(SumSync::FlooredNarrow)),
        Pelt(PeltEffect::GroupRunnableSync(SumSync::FlooredNarrow)),
        Pelt(GroupRunnableSum::Narrow.effect()),
    ]),
    commit("2d02fa8cc21a", git("2022-01-18"), "load-floor", "sched/pelt: Relax the sync of load_sum with load_avg", &[
        Pelt(PeltEffect::RemovedLoadSync(SumSync::FlooredNarrow)),
        Pelt(PeltEffect::DetachLoadSync(SumSync::FlooredNarrow)),
        Pelt(PeltEffect::GroupLoadSync(SumSync::FlooredNarrow)),
        Pelt(GroupLoadUnchanged::StopBeforeSum.effect()),
    ]),
    commit("b1e8206582f9", git("2022-02-19"), "fork-races", "sched: Fix yet more sched_fork() races", &[
        Groundwork("a new task is placed later in its fork, by the same rules"),
    ]),
];
