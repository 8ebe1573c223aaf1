//! Commits that v7.3 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("fa02b2868420", git("<=2026-08-18"), "class-that-is-told", "sched/core: Fix inter-class wakeup_preempt()", &[
        NotModelled(&[OwnScheduling], "which class is told when a task comes to a higher one"),
    ]),
    commit("4f166adb5cb0", git("<=2026-08-18"), "group-runnable-wide", "sched/fair: Fix overflow in update_tg_cfs_runnable()", &[
        Pelt(GroupRunnableSum::Wide.effect()),
    ]),
    commit("4161cb2d867b", git("<=2026-08-18"), "cgroup-mode", "sched/fair: Add cgroup_mode switch", &[Groundwork("a switch that stands as before")]),
    commit("80ad6d3338eb", git("<=2026-08-18"), "cgroup-mode-up", "sched/fair: Add cgroup_mode: up", &[
        Groundwork("a way to share that is not the default"),
    ]),
    commit("90ac22ffef48", git("<=2026-08-18"), "cgroup-mode-max", "sched/fair: Add cgroup_mode: max", &[
        Groundwork("a way to share that is not the default"),
    ]),
    commit("5c0b58bd1c9f", git("<=2026-08-18"), "told-runnable", "sched/fair: Add cgroup_mode: concur", &[Pelt(TgTold::LoadAndRunnable.effect())]),
    commit("507f910a4e1f", git("<=2026-08-18"), "cgroup-mode-tasks", "sched/fair: Add cgroup_mode: tasks", &[
        Groundwork("a way to share that is not the default"),
    ]),
    commit("fb1050ac8e40", git("<=2026-08-18"), "concurrent-shares", "sched/fair: Change the default cgroup_mode to concur", &[
        Group(SharedShares::Concurrent.effect()),
    ]),
    commit("85570f10a4c6", git("<=2026-08-18"), "one-queue", "sched/eevdf: Move to a single runqueue", &[Group(Competition::OneQueue.effect())]),
    commit("3cd1f657fae5", git("<=2026-08-18"), "buddy-arguments", "sched/fair: Remove unused arguments from set_preempt_buddy()", &[
        Groundwork("arguments that nothing reads"),
    ]),
    commit("8f97b627ff1c", git("<=2026-08-18"), "short-buddy", "sched/fair: Set next buddy for preempt short", &[Preemption(ShortBuddy::Shortest.effect())]),
    commit("49f87b4d0be8", git("<=2026-08-18"), "protection-by-lag", "sched/eevdf: Take into account current's lag when updating slice protection", &[
        Preemption(ProtectionUpdate::AverageIfEarlier.effect()),
    ]),
    commit("7ad0ec7890b3", git("<=2026-08-18"), "test-while-pending", "sched/eevdf: Update slice protection even when resched is already set", &[
        Preemption(PendingTest::GoesOn.effect()),
    ]),
    commit("ba0d3bf5f97b", git("<=2026-08-18"), "short-eligible", "sched/eevdf: Cancel slice protection if short slice task is eligible", &[
        Preemption(ShortTest::PickedOrEligible.effect()),
    ]),
    commit("7cd2ef17de5e", git("<=2026-08-18"), "always-update-protection", "sched/eevdf: Always update slice protection", &[
        Preemption(FailedTest::Any.effect()),
    ]),
    commit("0d1e7a2bab35", git("<=2026-08-18"), "protect-while-eligible", "sched/eevdf: Speedup short slice task scheduling", &[
        Preemption(ShorterBeside::WhileEligible.effect()),
    ]),
    commit("cdd9e37ed46a", git("<=2026-08-18"), "push-queued-only", "sched/fair: Don't trigger active lb if src_rq->curr is not on_rq", &[
        Groundwork("here no CPU balances while another CPU is between a sleep and its switch"),
    ]),
    commit("f2267ad5777f", git("<=2026-08-18"), "push-interval-simpler", "sched/fair: Simplify balance_interval reset logic in sched_balance_rq()", &[
        Groundwork("what decided to push is asked once, and would have answered the same again"),
    ]),
    commit("296744614dd0", git("<=2026-08-18"), "balance-reflow", "sched/fair: Reflow sched_balance_rq()", &[
        Groundwork("the same steps in other nests"),
    ]),
    commit("04998aa54848", git("<=2026-08-18"), "delayed-short", "sched/eevdf: Delayed dequeue task can't preempt", &[Preemption(DelayedShort::Never.effect())]),
    commit("293f9611ae73", git("2026-08-07"), "ilb-idle-core", "sched/fair: Prefer fully idle cores for NOHZ balancing", &[
        Balance(IlbChoice::FirstOfIdleCore.effect()),
    ]),
    commit("180ff97c1869", git("<=2026-08-08"), "busy-siblings", "sched/fair: Do not skip CPUs of similar capacity with busy SMT siblings", &[
        NotModelled(&[DifferentCpus, Smt], "threads of CPUs of different capacities"),
    ]),
    commit("6060d61d13a1", git("<=2026-08-08"), "overloaded-asym", "sched/fair: Also gate overloaded status update for SD_ASYM_CPUCAPACITY", &[
        NotModelled(&[DifferentCpus], "when a machine of different CPUs counts as overloaded"),
    ]),
    commit("50b101f6e586", git("<=2026-08-08"), "capacity-before-type", "sched/fair: Check CPU capacity before comparing group types during load balance", &[
        NotModelled(&[DifferentCpus], "groups of CPUs of different capacities"),
    ]),
    commit("0fbd428d0788", git("<=2026-08-08"), "misfit-if-helped", "sched/fair: Skip misfit load accounting when the destination CPU cannot help", &[
        NotModelled(&[DifferentCpus], "tasks too large for CPUs of different capacities"),
    ]),
    commit("7fd540b1bcaf", git("<=2026-08-08"), "identical-capacity", "sched/fair: Allow load balancing between CPUs of identical capacity", &[
        NotModelled(&[DifferentCpus], "clusters of equal CPUs beside others"),
    ]),
    commit("f2c2ba7219e5", git("<=2026-08-18"), "asym-sibling-again", "sched/topology: Restore SD_PREFER_SIBLING in domains with asymmetric capacity", &[
        Domain(AsymSpreading::LikeOthers.effect()),
    ]),
    commit("68e37487810a", git("<=2026-08-30"), "flat-charge", "sched/fair: Fix flat hierarchy", &[
        NotModelled(&[Groups], "between 85570f10a4c6 and this nobody who ran in a group was charged by ticks, arrivals and departures"),
    ]),
    commit("51b0e68cfa0a", git("<=2026-09-23"), "tree-copies-slices", "sched/eevdf: Fix rb augmented with multi fields", &[
        Fair(TreeCopy::All.effect()),
    ]),
    commit("9a8bc9bb4c3f", git("<=2026-09-23"), "max-slice-of-leaf", "sched/eevdf: Fix augmented max_slice", &[
        Fair(TreeLeaf::Own.effect()),
    ]),
    commit("1719d035a6fa", git("<=2026-09-06"), "flat-charge-at-pick", "sched/fair: Use update_curr_eevdf() for the remaining root cfs_rq callers", &[
        NotModelled(&[Groups], "between 85570f10a4c6 and this nobody who ran in a group was charged by picks and yields"),
    ]),
    commit("c6dcd97c8be7", git("2026-09-02"), "idle-stamp-valid", "sched/core: Skip rq->avg_idle update without a valid idle stamp", &[
        Select(IdleEnds::AtSwitch.effect()),
    ]),
    commit("f8610c57f407", git("<=2026-09-06"), "flat-throttle", "sched/fair: Use cfs_rq->h_curr in throttle_cfs_rq()", &[
        NotModelled(&[Quotas], "between 85570f10a4c6 and this a running group that had used up its quota ran on to the next pick"),
    ]),
    commit("b038383526d8", git("<=2026-09-06"), "flat-distribution", "sched/fair: Use cfs_rq->h_curr in distribute_cfs_runtime()", &[
        Groundwork("a charge that 28ad5427682b makes as well"),
    ]),
    commit("f0d243a96f26", git("<=2026-09-27"), "cache-aware-misfit", "sched/fair: Avoid creating misfits during cache-aware balancing", &[
        Balance(GatheringFit::FittingCpu.effect()),
    ]),
    commit("0d6526f82c3c", git("<=2026-09-27"), "cache-aware-runnable", "sched/cache: Keep nr_pref_llc_running in the runnable domain, to fix LLC mis-scheduling bug", &[
        NotModelled(&[Caches], "told in the row of df0d98475954: sleepers on their queue do not count there"),
    ]),
    commit("d6013e2465d9", git("<=2026-09-27"), "cache-aware-push", "sched/cache: Honor migrate_llc_task semantics in active load balance, to fix LLC mis-scheduling bug", &[
        NotModelled(&[Caches], "told in the row of df0d98475954: a push for a process takes only who prefers that cache"),
    ]),
];
