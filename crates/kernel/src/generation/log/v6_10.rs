//! Commits that v6.10 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("11b0bfa5d463", git("2024-03-12"), "schedstat-16", "sched/debug: Increase SCHEDSTAT_VERSION to 16", &[
        Domain(SchedstatLayout::Version16.effect()),
    ]),
    commit("22d5607400c6", git("2024-03-25"), "misfit-allowed", "sched/fair: Check if a task has a fitting CPU when updating misfit", &[
        Balance(MisfitTask::MayGrow.effect()),
    ]),
    commit("fa427e8e53d8", git("2024-03-25"), "misfit-kick", "sched/topology: Remove root_domain::max_cpu_capacity", &[
        Groundwork("no task is too large for the biggest CPU since 22d5607400c6"),
    ]),
    commit("58eeb2d79b54", git("2024-03-25"), "misfit-interval", "sched/fair: Don't double balance_interval for migrate_misfit", &[
        Balance(BackOff::NotNewidleNorMisfit.effect()),
        Balance(CountedFailures::NotMisfit.effect()),
    ]),
    commit("c829d6818b60", git("2024-03-26"), "newidle-continue", "sched/fair: Simplify the continue_balancing logic in sched_balance_newidle()", &[
        Groundwork("one variable instead of two"),
    ]),
    commit("287372fa39f5", git("2024-05-17"), "show-level", "sched/debug: Dump domains' level", &[Domain(FilesShown::WithLevel.effect())]),
    commit("72bffbf57c52", git("2024-05-17"), "initial-util-weight", "sched/fair: Fix initial util_avg calculation", &[
        Pelt(InitialUtilWeight::ScaledDown.effect()),
    ]),
    commit("a1fd0b9d751f", git("2024-05-17"), "newidle-relax-level", "sched/fair: Allow disabling sched_balance_newidle with sched_relax_domain_level", &[
        OutOfSight("the level up to which cpusets let CPUs balance (sched_relax_domain_level)"),
    ]),
    commit("2feab2492deb", git("2024-07-01"), "look-no-further", "Revert \"sched/fair: Make sure to try to detach at least one movable task\"", &[
        Balance(LookLimit::NrMigrate.effect()),
    ]),
];
