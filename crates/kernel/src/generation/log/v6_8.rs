//! Commits that v6.8 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("2227a957e1d5", git("2023-11-15"), "deadline-tree", "sched/eevdf: Sort the rbtree by virtual deadline", &[
        Fair(Pick::EarliestEligibleInDeadlineOrder.effect()),
    ]),
    commit("ee4373dc902c", git("2023-11-15"), "first-looked-at-first", "sched/eevdf: O(1) fastpath for task selection", &[
        Groundwork("the first in order is looked at before the tree is searched, for the same answer"),
    ]),
    commit("50181c0cff31", git("2023-11-23"), "util-est-waiting", "sched/pelt: Avoid underestimation of task utilization", &[
        Pelt(UtilEstWaiting::Skipped.effect()),
    ]),
    commit("9c0b4bb7f630", git("2023-11-23"), "governor-effective", "sched/cpufreq: Rework schedutil governor performance estimation", &[
        Frequency(DeadlineUse::Counts.effect()),
        Frequency(HeadroomEnd::AtCapacity.effect()),
    ]),
    commit("5068d84054b7", git("2023-11-29"), "reweight-minimum", "sched/fair: Update min_vruntime for reweight_entity() correctly", &[
        Group(ReweightMinimum::Queued.effect()),
    ]),
    commit("7736ae5572eb", git("2023-12-23"), "util-est-rise", "sched/fair: Remove SCHED_FEAT(UTIL_EST_FASTUP, true)", &[
        Pelt(UtilEstRise::AtOnce.effect()),
        RemoveFeature(Feature::UtilEstFastup),
    ]),
    commit("11137d384996", git("2023-12-23"), "util-est-ewma", "sched/fair: Simplify util_est", &[Pelt(UtilEstForm::EwmaOnly.effect())]),
    commit("3af7524b1419", git("2023-12-23"), "util-doubling", "sched/fair: Use all little CPUs for CPU-bound workloads", &[
        Balance(UtilStep::DoublingWithFailures.effect()),
    ]),
    commit("b3edde44e5d4", git("2023-12-23"), "governor-reference", "cpufreq/schedutil: Use a fixed reference frequency", &[
        NotModelled(&[Frequencies], "clocks whose highest frequency is not that of their capacity"),
    ]),
    commit("e37617c8e53a", git("2024-01-16"), "governor-non-invariant", "sched/fair: Fix frequency selection for non-invariant case", &[
        Frequency(Reference::QuarterAboveCurrent.effect()),
    ]),
];
