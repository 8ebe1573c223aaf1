//! Commits that v5.16 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("8354eb9eb3dd", memory("2021-10"), "energy-inefficient", "PM: EM: Allow skipping inefficient states", &[
        Select(InefficientStates::Skipped.effect()),
    ]),
    commit("efd984c481ab", git("2021-10-05"), "next-kick-flag", "sched/fair: Add NOHZ balancer flag for nohz.next_balance updates", &[
        Groundwork("a flag that 7fd7a9e0caba is the first to set"),
    ]),
    commit("7fd7a9e0caba", git("2021-10-05"), "next-update", "sched/fair: Trigger nohz.next_balance updates when a CPU goes NOHZ-idle", &[
        Balance(NextUpdate::Kicked.effect()),
    ]),
    commit("a480addecc0d", git("2021-10-05"), "idle-entities", "sched: Account number of SCHED_IDLE entities on each cfs_rq", &[
        Groundwork("a count that 2cae3948edd4 is the first to read"),
    ]),
    commit("51ce83ed523b", git("2021-10-05"), "idle-slice", "sched: reduce sched slice for SCHED_IDLE entities", &[
        AddTunable(Tunable::IdleMinGranularity, 750_000),
    ]),
    commit("2cae3948edd4", git("2021-10-05"), "idle-credit", "sched: adjust sleeper credit for SCHED_IDLE entities", &[
        Group(IdleCredit::MinGranularity.effect()),
    ]),
    commit("183b8ec38f1e", git("2021-10-05"), "sibling-priority", "x86/sched: Decrease further the priorities of SMT siblings", &[
        Domain(SiblingPriority::DividedBySquare.effect()),
    ]),
    commit("16d364ba6ef2", git("2021-10-05"), "group-flags", "sched/topology: Introduce sched_group::flags", &[Domain(GroupFlags::OfBuiltChild.effect())]),
    commit("4006a72bdd93", git("2021-10-05"), "asym-smt", "sched/fair: Consider SMT in ASYM_PACKING load balance", &[Balance(Packing::BySiblings.effect())]),
    commit("4ef0c5c6b5ba", git("2021-10-14"), "fork-in-its-group", "kernel/sched: Fix sched_fork() access an invalid sched_task_group", &[
        Groundwork("a new task is placed later in its fork, by the same rules"),
    ]),
    commit("778c558f49a2", git("2021-10-15"), "cluster-level", "sched: Add cluster scheduler level in core and related Kconfig for ARM64", &[
        Domain(Clusters::Level.effect()),
    ]),
    commit("9e9af819db5d", git("2021-10-31"), "newidle-cost", "sched/fair: Account update_blocked_averages in newidle_balance cost", &[
        Balance(NewidleCost::SearchAndUpdate.effect()),
    ]),
    commit("9d783c8dd112", git("2021-10-31"), "newidle-lowest-cost", "sched/fair: Skip update_blocked_averages if we are defering load balance", &[
        Balance(NewidleGate::MigrationAndDomainCost.effect()),
    ]),
    commit("e60b56e46b38", git("2021-10-31"), "cost-decay", "sched/fair: Wait before decaying max_newidle_lb_cost", &[
        Balance(CostDecay::AfterQuietSecond.effect()),
    ]),
    commit("c5b0a7eefc70", git("2021-10-31"), "no-migration-cost", "sched/fair: Remove sysctl_sched_migration_cost condition", &[
        Balance(NewidleGate::DomainCost.effect()),
    ]),
];
