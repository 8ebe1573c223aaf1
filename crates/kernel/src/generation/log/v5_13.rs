//! Commits that v5.13 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("0826530de3cb", git("2021-03-06"), "newidle-no-stats", "sched/fair: Remove update of blocked load from newidle_balance", &[
        Balance(NewidleStats::LeftAsTheyAre.effect()),
        Balance(NewidleUpdate::KicksOther.effect()),
    ]),
    commit("ab2dde5e98db", git("2021-03-06"), "ilb-result", "sched/fair: Remove unused return of _nohz_idle_balance", &[
        Groundwork("an unused result is no longer returned"),
    ]),
    commit("64f84f273592", git("2021-03-06"), "ilb-once-per-tick", "sched/fair: Remove unused parameter of update_nohz_stats", &[
        Balance(IlbUpdate::OncePerTick.effect()),
    ]),
    commit("7a82e5f52a35", git("2021-03-06"), "ilb-order", "sched/fair: Merge for each idle cpu loop of ILB", &[Balance(IlbOrder::FromNext.effect())]),
    commit("6553fc181791", git("2021-03-06"), "newidle-pulled-order", "sched/fair: Reorder newidle_balance pulled_task tests", &[
        Groundwork("left out are tests that cannot come out otherwise where nothing was searched"),
    ]),
    commit("c6f886546cb8", git("2021-03-06"), "newidle-in-idle-loop", "sched/fair: Trigger the update of blocked load on newly idle cpu", &[
        Balance(NewidleUpdate::InIdleLoop.effect()),
    ]),
    commit("39b6a429c304", git("2021-03-06"), "ilb-tick-noted-first", "sched/fair: Reduce the window for duplicated update", &[
        Groundwork("the tick of an update is noted before it and no longer after it: here no other CPU looks meanwhile"),
    ]),
    commit("0372e1cf70c2", git("2021-03-06"), "energy-task-apart", "sched/fair: Fix task utilization accountability in compute_energy()", &[
        Select(EnergyUtil::TaskApart.effect()),
    ]),
    commit("39a2a6eb5c9b", git("2021-03-06"), "load-shift", "sched/fair: Fix shift-out-of-bounds in load_balance()", &[
        Balance(LoadStep::DoublingWithinWord.effect()),
    ]),
    commit("b89997aa88f0", git("2021-03-06"), "util-est-large-step", "sched/pelt: Fix task util_est update filtering", &[
        Pelt(UtilEstMargin::KeepLargeStep.effect()),
    ]),
    commit("585b6d2723dc", git("2021-03-06"), "numa-groups", "sched/topology: fix the issue groups don't span domain->span for NUMA diameter > 2", &[
        Domain(OverlapGroups::WithinSpan.effect()),
    ]),
    commit("acb4decc1e90", git("2021-03-23"), "newidle-woken", "sched/fair: Reduce long-tail newly idle balance cost", &[
        Balance(PendingWakeup::EndsBetweenLevels.effect()),
    ]),
    commit("c8987ae5af79", git("2021-03-23"), "no-core-test-without-smt", "sched/fair: Optimize test_idle_cores() for !SMT", &[
        OutOfSight("what it costs to read a line that other CPUs write: the test found no idle core without SMT before"),
    ]),
    commit("c722f35b513f", git("2021-04-09"), "sibling-scan-of-prev", "sched/fair: Bring back select_idle_smt(), but differently", &[
        Select(SiblingScan::PrevFirst.effect()),
    ]),
    commit("9bcb959d05ee", git("2021-04-09"), "percpu-kthreads", "sched/fair: Ignore percpu threads for imbalance pulls", &[
        Balance(PercpuKthreads::PassedOver.effect()),
    ]),
    commit("23fb06d9602b", git("2021-04-09"), "push-failures", "sched/fair: Clean up active balance nr_balance_failed trickery", &[
        Balance(PushFailures::Kept.effect()),
        Balance(PushInterval::ResetIfNeeded.effect()),
    ]),
    commit("4aed8aa41524", git("2021-04-09"), "capacity-margin", "sched/fair: Introduce a CPU capacity comparison helper", &[
        Balance(CapacityMargin::Twentieth.effect()),
    ]),
    commit("8a99b6833c88", git("2021-04-16"), "tunables-in-debugfs", "sched: Move SCHED_DEBUG sysctl to debugfs", &[
        Fair(LatencyCount::Unwritten.effect()),
    ]),
    commit("3b87f136f8fc", git("2021-04-16"), "domains-in-debugfs", "sched,debug: Convert sysctl sched_domains to debugfs", &[
        Domain(FilesPlace::Debugfs.effect()),
    ]),
    commit("0c2de3f054a5", git("2021-04-16"), "alt-slice", "sched,fair: Alternative sched_slice()", &[
        AddFeature(Feature::AltPeriod, true),
        AddFeature(Feature::BaseSlice, true),
    ]),
    commit("c006fac556e4", memory("2021-04"), "latency-warning", "sched: Warn on long periods of pending need_resched", &[
        Groundwork("a warning"),
        AddFeature(Feature::LatencyWarn, false),
    ]),
    commit("0258bdfaff5b", memory("2021-05-06"), "attached-is-aged", "sched/fair: Fix unfairness caused by missing load decay", &[
        Bandwidth(AttachListing::QueuedOrAttached.effect()),
    ]),
    commit("02dbb7246c5b", git("2021-05-12"), "core-note-of-target", "sched/fair: Fix clearing of has_idle_cores flag in select_idle_cpu()", &[
        Select(CoreNote::Searched.effect()),
    ]),
    commit("7c7ad626d9a0", git("2021-05-31"), "group-load-synced", "sched/fair: Keep load_avg and load_sum synced", &[
        Pelt(PeltEffect::GroupLoadSync(SumSync::FromAverage)),
    ]),
    commit("02da26ad5ed6", git("2021-05-31"), "blocked-tells", "sched/fair: Make sure to update tg contrib for blocked load", &[
        Balance(BlockedTells::QueuesAndParents.effect()),
    ]),
    commit("fcf6631f3736", git("2021-06-03"), "detach-synced", "sched/pelt: Ensure that *_sum is always synced with *_avg", &[
        Pelt(PeltEffect::DetachUtilSync(SumSync::FromAverage)),
        Pelt(PeltEffect::DetachRunnableSync(SumSync::FromAverage)),
    ]),
    commit("68d7a190682a", git("2021-06-03"), "util-est-high-flag", "sched/fair: Fix util_est UTIL_AVG_UNCHANGED handling", &[
        Pelt(UtilEstFlag::HighBit.effect()),
    ]),
    commit("a7b359fc6a37", git("2021-06-14"), "undecayed-listed", "sched/fair: Correctly insert cfs_rq's to list on unthrottle", &[
        Bandwidth(Relisting::QueuedOrUndecayed.effect()),
    ]),
    commit("fdaba61ef8a2", git("2021-06-22"), "leaf-list-children", "sched/fair: Ensure that the CFS parent is added after unthrottling", &[
        Pelt(QueueDecay::NoChild.effect()),
    ]),
];
