//! Commits that v7.0 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("089d84203ad4", git("2025-12-14"), "sched-avg-fold", "sched/fair: Fold the sched_avg update", &[
        Pelt(PeltEffect::AttachLoadSync(SumSync::Floored)),
        Pelt(PeltEffect::DetachLoadSync(SumSync::Floored)),
        Pelt(PeltEffect::DetachUtilSync(SumSync::Floored)),
        Pelt(PeltEffect::DetachRunnableSync(SumSync::Floored)),
        Pelt(PeltEffect::RemovedLoadSync(SumSync::Floored)),
        Pelt(PeltEffect::RemovedUtilSync(SumSync::Floored)),
        Pelt(PeltEffect::RemovedRunnableSync(SumSync::Floored)),
        Pelt(PeltEffect::GroupLoadSync(SumSync::Floored)),
        Pelt(PeltEffect::GroupUtilSync(SumSync::Floored)),
        Pelt(PeltEffect::GroupRunnableSync(SumSync::Floored)),
    ]),
    commit("45e09225085f", git("2025-12-14"), "newidle-lock", "sched/fair: Avoid rq->lock bouncing in sched_balance_newidle()", &[
        Balance(NewidleClock::AsItStands.effect()),
    ]),
    commit("95a0155224a6", git("2025-12-14"), "hrtick-less-work", "sched/fair: Limit hrtick work", &[
        NotModelled(&[Switched(Feature::Hrtick)], HRTICK_BEFORE),
    ]),
    commit("80390ead2080", git("2025-12-15"), "own-protection-field", "sched/fair: Separate se->vlag from se->vprot", &[
        Fair(ReweightProtection::Stays.effect()),
    ]),
    commit("704069649b5b", git("2025-12-17"), "class-above-told", "sched/core: Rework sched_class::wakeup_preempt() and rq_modified_*()", &[
        NotModelled(&[OwnScheduling], "which class is told when a task comes to a higher one"),
    ]),
    commit("6ab7973f2540", git("2025-12-19"), "sched-avg-fold-fix", "sched/fair: Fix sched_avg fold", &[
        Groundwork("the fold of 089d84203ad4 is here as it was meant"),
    ]),
    commit("7dadeaa6e851", git("2026-01-08"), "lazy-by-default", "sched: Further restrict the preemption modes", &[
        Fair(Reschedule::Lazily.effect()),
        Core(PreemptionModel::Lazy.effect()),
        // Where there is lazy preemption there is no other kernel than a preemptible one.
        Balance(NewidlePull::OneTask.effect()),
    ]),
    commit("4b603f1551a7", git("2026-01-22"), "idle-ends-at-switch", "sched: Update rq->avg_idle when a task is moved to an idle CPU", &[
        Select(IdleEnds::AtSwitchStampedOrNot.effect()),
    ]),
    commit("e34881c84c25", git("2026-02-03"), "moved-waiting", "sched: Re-evaluate scheduling when migrating queued tasks out of throttled cgroups", &[
        Group(MovedWaiting::MayPreempt.effect()),
    ]),
    commit("b3d99f43c72b", git("2026-02-23"), "zero-tracking", "sched/fair: Fix zero_vruntime tracking", &[Fair(VirtualZero::AverageAtTick.effect())]),
    commit("bcd74b2ffdd0", git("2026-02-23"), "protect-at-pick", "sched/fair: Only set slice protection at pick time", &[
        Fair(ProtectionStart::Pick.effect()),
    ]),
    commit("ff38424030f9", git("2026-02-23"), "protection-scales", "sched/eevdf: Update se->vprot in reweight_entity()", &[
        Fair(ReweightProtection::Scales.effect()),
    ]),
    commit("6e3c0a4e1ad1", git("2026-02-23"), "lag-clamp", "sched/fair: Fix lag clamp", &[Fair(LagLimit::LargestRequest.effect())]),
    commit("f4c31b07b136", page("2026-03"), "idle-tick", "sched: idle: Consolidate the handling of two special cases", &[
        Balance(IdleTick::StopsAfterOne.effect()),
    ]),
    commit("1319ea57529e", git("2026-04-02"), "zero-tracking-fix", "sched/fair: Fix zero_vruntime tracking fix", &[Fair(VirtualZero::Average.effect())]),
    commit("e08d007f9d81", memory("2026-04"), "debug-average", "sched/debug: Fix avg_vruntime() usage", &[
        OutOfSight("/sys/kernel/debug/sched/debug"),
    ]),
];
