//! Commits that v5.10 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("5b9f8ff7b320", git("2020-08-19"), "flag-names", "sched/debug: Output SD flag names rather than their values", &[
        Domain(FlagsShown::PackageNames.effect()),
    ]),
    commit("6f349818621d", git("2020-08-19"), "needs-groups", "sched/topology: Use prebuilt SD flag degeneration mask", &[
        Domain(NeedsGroups::AllButWakeAffine.effect()),
    ]),
    commit("c200191d4c2c", git("2020-08-19"), "asym-upwards", "sched/topology: Propagate SD_ASYM_CPUCAPACITY upwards", &[
        Domain(AsymDetection::FromLowestLevel.effect()),
    ]),
    commit("ec73240b1627", git("2020-08-26"), "smt-heat", "sched/fair: Ignore cache hotness for SMT migration", &[
        Balance(SmtHeat::ColdBetweenThreads.effect()),
    ]),
    commit("1724b95b9297", git("2020-08-26"), "reweight-in-place", "sched/fair: Simplify the work when reweighting entity", &[
        Groundwork("the number of entities is no longer lowered and raised again: nothing in between reads it"),
    ]),
    commit("2586af1ac187", git("2020-09-25"), "no-rt-share", "sched/rt: Disable RT_RUNTIME_SHARE by default", &[
        SetFeature(Feature::RtRuntimeShare, false),
    ]),
    commit("fe7491580d7c", git("2020-09-25"), "no-forced-report", "sched/fair: Remove the force parameter of update_tg_load_avg()", &[
        Groundwork("a parameter that was not set where averages are followed"),
    ]),
    commit("5a7f55590467", git("2020-09-25"), "load-doubling", "sched/fair: Relax constraint on task's load during load balance", &[
        Balance(LoadStep::DoublingWithFailures.effect()),
    ]),
    commit("2208cdaa56c9", git("2020-09-25"), "minimal-imbalance", "sched/fair: Reduce minimal imbalance threshold", &[Domain(ImbalancePct::Sixth.effect())]),
    commit("e4d32e4d5444", git("2020-09-25"), "less-a-tick", "sched/fair: Minimize concurrent LBs between domain level", &[
        Balance(BusyInterval::LessATick.effect()),
    ]),
    commit("6e7499135db7", git("2020-09-25"), "busy-factor", "sched/fair: Reduce busy load balance interval", &[Domain(BusyFactor::Sixteen.effect())]),
    commit("df3cb4ea1fb6", memory("2020-09"), "isolated-sibling", "sched/fair: Fix wrong cpu selecting from isolated domain", &[
        OutOfSight("isolated CPUs"),
    ]),
    commit("9abb897345ce", git("2020-10-03"), "buddies-in-order", "sched/fair: Tweak pick_next_entity()", &[
        Groundwork("the preferred entity comes before the last one, as it did"),
    ]),
    commit("16b0a7a1a0af", git("2020-11-10"), "spread-in-llc", "sched/fair: Ensure tasks spreading in LLC during LB", &[
        Balance(SpareCapacity::BeyondCache.effect()),
    ]),
    commit("b4c9c9f15649", git("2020-11-10"), "asymmetric-prev-first", "sched/fair: Prefer prev cpu in asymmetric wakeup path", &[
        Select(Asymmetric::FittingFirst.effect()),
    ]),
    commit("8e1ac4299a6e", git("2020-11-17"), "overutilized-arrival", "sched/fair: Fix overutilized update in enqueue_task_fair()", &[
        Balance(ArrivalUse::CountsAtTick.effect()),
    ]),
];
