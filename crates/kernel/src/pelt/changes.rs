//! What each upstream commit changed in load tracking, oldest first, as data for the change log to fold.
//!
//! Must not know: what the rules do.

use super::rules::{
    AttachLoadSum, AttachPoint, ClassChange, DelayedTasks, DetachPoint, GroupDivider, GroupLoadUnchanged,
    GroupRunnableSum, IdleSync, InitialRunnable, InitialUtilWeight, Invariance, LostIdleCheck, MigrationLag,
    PeltEffect, QueueDecay, RunnableBoost, RunnableKind, SumSync, TgContribution, TgTold, ThrottleClock,
    UtilEstCapacity, UtilEstDequeue, UtilEstFlag, UtilEstForm, UtilEstMargin, UtilEstRise, UtilEstWaiting,
};
use crate::generation::{Change, Effect, change};

/// Every change since v4.18 that load tracking, utilization estimates and what a group is told depend on.
#[rustfmt::skip]
pub(crate) const PELT_CHANGES: &[Change] = &[
    change("92a801e5d5b7", "util-est-flag-masked", (5, 0), "sched/fair: Mask UTIL_AVG_UNCHANGED usages", &[
        UtilEstFlag::LowBit.effect(),
    ]),
    change("c40f7d74c741", "leaf-list-kept", (5, 0), "sched/fair: Fix infinite loop in update_blocked_averages() by reverting a9e7f6544b9c", &[
        QueueDecay::Never.effect(),
    ]),
    change("23127296889f", "pelt-clock", (5, 1), "sched/fair: Update scale invariance of PELT", &[
        Invariance::PeltClock.effect(),
    ]),
    change("10a35e6812aa", "util-est-capacity", (5, 1), "sched/pelt: Skip updating util_est when utilization is higher than CPU's capacity", &[
        UtilEstCapacity::Within.effect(),
    ]),
    change("039ae8bcf7a5", "leaf-list-trimmed", (5, 1), "sched/fair: Fix O(nr_cgroups) in the load balancing path", &[
        QueueDecay::Sums.effect(),
    ]),
    change("9f68395333ad", "runnable-avg", (5, 7), "sched/pelt: Add a new runnable average signal", &[
        RunnableKind::TaskCount.effect(),
    ]),
    change("95d685935a2e", "group-divider", (5, 8), "sched/pelt: Sync util/runnable_sum with PELT window when propagating", &[
        GroupDivider::WithinPeriod.effect(),
    ]),
    change("68f7b5cc835d", "initial-runnable", (5, 8), "sched/cfs: change initial value of runnable_avg", &[
        InitialRunnable::Util.effect(),
    ]),
    change("8c1f560c1ea3", "util-est-dequeued-first", (5, 12), "sched/fair: Avoid stale CPU util_est value for schedutil in task dequeue", &[
        UtilEstDequeue::Around.effect(),
    ]),
    change("b89997aa88f0", "util-est-large-step", (5, 13), "sched/pelt: Fix task util_est update filtering", &[
        UtilEstMargin::KeepLargeStep.effect(),
    ]),
    change("7c7ad626d9a0", "group-load-synced", (5, 13), "sched/fair: Keep load_avg and load_sum synced", &[
        Effect::Pelt(PeltEffect::GroupLoad(SumSync::FromAverage)),
    ]),
    change("fcf6631f3736", "detach-synced", (5, 13), "sched/pelt: Ensure that *_sum is always synced with *_avg", &[
        Effect::Pelt(PeltEffect::DetachUtil(SumSync::FromAverage)),
        Effect::Pelt(PeltEffect::DetachRunnable(SumSync::FromAverage)),
    ]),
    change("68d7a190682a", "util-est-high-flag", (5, 13), "sched/fair: Fix util_est UTIL_AVG_UNCHANGED handling", &[
        UtilEstFlag::HighBit.effect(),
    ]),
    change("fdaba61ef8a2", "leaf-list-children", (5, 13), "sched/fair: Ensure that the CFS parent is added after unthrottling", &[
        QueueDecay::NoChild.effect(),
    ]),
    change("83c5e9d573e1", "group-load-early-return", (5, 14), "sched/fair: Return early from update_tg_cfs_load() if delta == 0", &[
        GroupLoadUnchanged::StopAfterSum.effect(),
    ]),
    change("fecfcbc288e9", "class-change-runtime", (5, 14), "sched/rt: Fix RT utilization tracking during policy change", &[
        ClassChange::CountsAfter.effect(),
    ]),
    change("1c35b07e6d39", "removed-synced", (5, 14), "sched/fair: Ensure _sum and _avg values stay consistent", &[
        Effect::Pelt(PeltEffect::RemovedLoad(SumSync::FromAverage)),
        Effect::Pelt(PeltEffect::RemovedUtil(SumSync::FromAverage)),
        Effect::Pelt(PeltEffect::RemovedRunnable(SumSync::FromAverage)),
    ]),
    change("ceb6ba45dc80", "dequeue-load-synced", (5, 14), "sched/fair: Sync load_sum with load_avg after dequeue", &[
        Effect::Pelt(PeltEffect::DetachLoad(SumSync::FromAverage)),
    ]),
    change("98b0d890220d", "removed-util-floor", (5, 17), "sched/pelt: Relax the sync of util_sum with util_avg", &[
        Effect::Pelt(PeltEffect::RemovedUtil(SumSync::FlooredNarrow)),
    ]),
    change("7ceb77103001", "util-floor", (5, 17), "sched/pelt: Continue to relax the sync of util_sum with util_avg", &[
        Effect::Pelt(PeltEffect::DetachUtil(SumSync::FlooredNarrow)),
        Effect::Pelt(PeltEffect::GroupUtil(SumSync::FlooredNarrow)),
    ]),
    change("95246d1ec80b", "runnable-floor", (5, 17), "sched/pelt: Relax the sync of runnable_sum with runnable_avg", &[
        Effect::Pelt(PeltEffect::RemovedRunnable(SumSync::FlooredNarrow)),
        Effect::Pelt(PeltEffect::DetachRunnable(SumSync::FlooredNarrow)),
        Effect::Pelt(PeltEffect::GroupRunnable(SumSync::FlooredNarrow)),
        GroupRunnableSum::Narrow.effect(),
    ]),
    change("2d02fa8cc21a", "load-floor", (5, 17), "sched/pelt: Relax the sync of load_sum with load_avg", &[
        Effect::Pelt(PeltEffect::RemovedLoad(SumSync::FlooredNarrow)),
        Effect::Pelt(PeltEffect::DetachLoad(SumSync::FlooredNarrow)),
        Effect::Pelt(PeltEffect::GroupLoad(SumSync::FlooredNarrow)),
        GroupLoadUnchanged::StopBeforeSum.effect(),
    ]),
    change("40f5aa4c5eae", "attach-at-least-one", (5, 18), "sched/pelt: Fix attach_entity_load_avg() corner case", &[
        AttachLoadSum::AtLeastOne.effect(),
    ]),
    change("64eaf50731ac", "throttled-pelt-clock", (5, 19), "sched/fair: Fix cfs_rq_clock_pelt() for throttled cfs_rq", &[
        ThrottleClock::Pelt.effect(),
    ]),
    change("e2f3e35f1f5a", "migration-lag", (6, 0), "sched/fair: Decay task PELT values during wakeup migration", &[
        MigrationLag::Estimated.effect(),
        IdleSync::WhenIdling.effect(),
    ]),
    change("e1f078f50478", "detach-at-dequeue", (6, 1), "sched/fair: Combine detach into dequeue when migrating task", &[
        DetachPoint::Dequeue.effect(),
    ]),
    change("d6531ab6e501", "attach-at-enqueue", (6, 1), "sched/fair: Move task sched_avg attach to enqueue_task_fair()", &[
        AttachPoint::FirstEnqueue.effect(),
    ]),
    change("7d0583cf9ec7", "runnable-boost", (6, 5), "sched/fair, cpufreq: Introduce 'runnable boosting'", &[
        RunnableBoost::Estimate.effect(),
    ]),
    change("c2e164ac33f7", "no-util-est-boost", (6, 6), "sched/fair: remove util_est boosting", &[
        RunnableBoost::Util.effect(),
    ]),
    change("1528c661c24b", "tg-load-ratelimit", (6, 7), "sched/fair: Ratelimit update to tg->load_avg", &[
        TgContribution::OncePerMillisecond.effect(),
    ]),
    change("50181c0cff31", "util-est-waiting", (6, 8), "sched/pelt: Avoid underestimation of task utilization", &[
        UtilEstWaiting::Skipped.effect(),
    ]),
    change("7736ae5572eb", "util-est-rise", (6, 8), "sched/fair: Remove SCHED_FEAT(UTIL_EST_FASTUP, true)", &[
        UtilEstRise::AtOnce.effect(),
    ]),
    change("11137d384996", "util-est-ewma", (6, 8), "sched/fair: Simplify util_est", &[
        UtilEstForm::EwmaOnly.effect(),
    ]),
    change("72bffbf57c52", "initial-util-weight", (6, 10), "sched/fair: Fix initial util_avg calculation", &[
        InitialUtilWeight::ScaledDown.effect(),
    ]),
    change("76f2f783294d", "delayed-not-runnable", (6, 13), "sched/eevdf: More PELT vs DELAYED_DEQUEUE", &[
        DelayedTasks::NotRunnable.effect(),
    ]),
    change("f2d650618bc7", "util-est-any-capacity", (6, 16), "sched/fair: Allow decaying util_est when util_avg > CPU capa", &[
        UtilEstCapacity::Any.effect(),
    ]),
    change("17e3e88ed0b6", "lost-idle", (6, 18), "sched/fair: Fix pelt lost idle time detection", &[
        LostIdleCheck::EveryIdling.effect(),
    ]),
    change("ca125231dd29", "stalled-contribution", (6, 19), "sched/fair: Fix unfairness caused by stalled tg_load_avg_contrib when the last task migrates out", &[
        QueueDecay::NoContribution.effect(),
    ]),
    change("089d84203ad4", "sched-avg-fold", (7, 0), "sched/fair: Fold the sched_avg update", &[
        Effect::Pelt(PeltEffect::AttachLoad(SumSync::Floored)),
        Effect::Pelt(PeltEffect::DetachLoad(SumSync::Floored)),
        Effect::Pelt(PeltEffect::DetachUtil(SumSync::Floored)),
        Effect::Pelt(PeltEffect::DetachRunnable(SumSync::Floored)),
        Effect::Pelt(PeltEffect::RemovedLoad(SumSync::Floored)),
        Effect::Pelt(PeltEffect::RemovedUtil(SumSync::Floored)),
        Effect::Pelt(PeltEffect::RemovedRunnable(SumSync::Floored)),
        Effect::Pelt(PeltEffect::GroupLoad(SumSync::Floored)),
        Effect::Pelt(PeltEffect::GroupUtil(SumSync::Floored)),
        Effect::Pelt(PeltEffect::GroupRunnable(SumSync::Floored)),
    ]),
    change("29922fdfc2a4", "boost-with-task", (7, 2), "sched/fair: Fix cpu_util runnable_avg arithmetic", &[
        RunnableBoost::WithTask.effect(),
    ]),
    change("4f166adb5cb0", "group-runnable-wide", (7, 3), "sched/fair: Fix overflow in update_tg_cfs_runnable()", &[
        GroupRunnableSum::Wide.effect(),
    ]),
    change("5c0b58bd1c9f", "told-runnable", (7, 3), "sched/fair: Add cgroup_mode: concur", &[
        TgTold::LoadAndRunnable.effect(),
    ]),
];
