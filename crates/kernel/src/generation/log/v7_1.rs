//! Commits that v7.1 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("9fe89f022c05", git("2026-02-23"), "newidle-rate", "sched/fair: More complex proportional newidle balance", &[
        Balance(NewidleChance::BySuccessAndRate.effect()),
        AddFeature(Feature::NiRate, true),
    ]),
    commit("4823725d9d1d", git("2026-02-23"), "whole-average-weight", "sched/fair: Increase weight bits for avg_vruntime", &[
        Fair(AverageWeight::Whole.effect()),
        AddFeature(Feature::ParanoidAvg, false),
    ]),
    commit("101f3498b4bd", git("2026-02-23"), "no-place-anew", "sched/fair: Revert 6d71a9c61604", &[Fair(Reweight::ScaleAllAroundAverage.effect())]),
    commit("db4551e2ba34", git("2026-02-23"), "whole-weight", "sched/fair: Use full weight to __calc_delta()", &[Fair(Arithmetic::WholeWeight.effect())]),
    commit("d3d663faa1d4", git("2026-02-23"), "eas-overload", "sched/fair: Filter false overloaded_group case for EAS", &[
        Balance(EnergyOverload::WithOverutilizedCpu.effect()),
    ]),
    commit("fd54d81c2c0e", git("2026-02-23"), "sched-idle-beside-others", "sched/fair: Skip SCHED_IDLE rq for SCHED_IDLE task", &[
        Select(SchedIdleCpu::UnlessAlike.effect()),
    ]),
    commit("558c18d3fbb6", memory("2026-02"), "hrtick-duration", "sched/eevdf: Fix HRTICK duration", &[NotModelled(&[Switched(Feature::Hrtick)], HRTICK_BEFORE)]),
    commit("97015376642f", memory("2026-02"), "hrtick-update", "sched/fair: Simplify hrtick_update()", &[NotModelled(&[Switched(Feature::Hrtick)], HRTICK_BEFORE)]),
    commit("5d88e424ec1b", memory("2026-02"), "hrtick-hard", "sched/fair: Make hrtick resched hard", &[NotModelled(&[Switched(Feature::Hrtick)], HRTICK_BEFORE)]),
    commit("c8cdb9b51640", memory("2026-02"), "hrtick-tiny", "sched/hrtick: Avoid tiny hrtick rearms", &[NotModelled(&[Switched(Feature::Hrtick)], HRTICK_BEFORE)]),
    commit("926475806606", git("2026-02-23"), "clamp-overutilized", "sched/fair: Update overutilized detection", &[
        OutOfSight("clamped utilization: tasks and groups give no hints (uclamp)"),
    ]),
    commit("9213aa4784cf", git("2026-02-27"), "hrtick", "sched: Default enable HRTICK when deferred rearming is enabled", &[
        Core(Hrtick::UntilDeadline.effect()),
        SetFeature(Feature::Hrtick, true),
        SetFeature(Feature::HrtickDl, true),
    ]),
    commit("8e8e23dea43e", memory("2026-03"), "partition-weight", "sched/topology: Compute sd_weight considering cpuset partitions", &[
        OutOfSight("domains of partitions of cpusets"),
    ]),
    commit("059258b0d424", git("2026-04-03"), "delayed-lag", "sched/fair: Prevent negative lag increase during delayed dequeue", &[
        Fair(DelayedLag::NeverWorseUnlessAwake.effect()),
    ]),
    commit("78cde54ea5f0", memory("2026-04"), "short-beside-preferred", "sched/eevdf: Clear buddies for preempt_short", &[
        Preemption(ShortPreference::Ignored.effect()),
    ]),
    commit("556146ce5e94", memory("2026-04"), "heavy-arrival", "sched/fair: Avoid overflow in enqueue_entity()", &[
        Fair(HeavyArrival::GoesAlong.effect()),
    ]),
    commit("c5cd6fd75b6a", memory("2026-04"), "delayed-lag-awake", "sched/fair: Fix the negative lag increase fix", &[
        Fair(DelayedLag::NeverWorse.effect()),
    ]),
    commit("ac8e69e69363", git("2026-04-28"), "test-dequeues-delayed", "sched/fair: Fix wakeup_preempt_fair() vs delayed dequeue", &[
        Fair(DelayedInTest::Leaves.effect()),
    ]),
    commit("9f6d929ee2c6", git("<=2026-05-03"), "test-without-winner", "sched/fair: Fix wakeup_preempt_fair() for not waking up task", &[
        Groundwork("a test in which the last sleeper leaves its queue: here it ends if no task is left"),
    ]),
    commit("3da56dc063cd", git("<=2026-05-03"), "fork-deadline", "sched/fair: Clear rel_deadline when initializing forked entities", &[
        Fair(ForkDeadline::Own.effect()),
    ]),
    commit("b6eee96843e8", git("<=2026-05-03"), "eligible-wide", "sched/fair: Fix overflow in vruntime_eligible()", &[
        Groundwork("a product of more than 64 bits: here it always had room"),
    ]),
];
