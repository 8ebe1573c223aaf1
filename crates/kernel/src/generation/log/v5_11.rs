//! Commits that v5.11 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("45da7a2b0af8", git("2020-10-29"), "ilb-other", "sched/fair: Exclude the current CPU from find_new_ilb()", &[
        Groundwork("a CPU that kicks another is busy, and was never found idle"),
    ]),
    commit("d8fcb81f1acf", git("2020-10-29"), "affine-prev-idle", "sched/fair: Check for idle core in wake_affine", &[
        Select(AffineIdle::ThisOrPrev.effect()),
    ]),
    commit("b6d37a764a5b", git("2020-11-10"), "throttle-reordered", "sched/fair: Reorder throttle_cfs_rq() path", &[
        Groundwork("steps of one operation change places"),
    ]),
    commit("7d2b5dd0bcc4", git("2020-11-24"), "numa-quarter", "sched/numa: Allow a floating imbalance between NUMA nodes", &[
        Balance(NumaAllowance::QuarterOfSource.effect()),
    ]),
    commit("23e6082a522e", git("2020-11-24"), "fork-numa-quarter", "sched: Limit the amount of NUMA imbalance that can exist at fork time", &[
        Select(ForkNuma::QuarterOfDomain.effect()),
    ]),
    commit("13d5a5e9f9b8", git("2020-12-11"), "busy-core-passed", "sched/fair: Clear SMT siblings after determining the core is not idle", &[
        NotModelled(&[Smt], "what it costs to look at the other threads of a busy core"),
    ]),
];
