//! Commits that v6.0 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("cb29a5c19d2d", git("2022-06-13"), "numa-halving", "sched/numa: Apply imbalance limitations consistently", &[
        Balance(Halving::AfterAllowance.effect()),
    ]),
    commit("026b98a93bbd", git("2022-06-13"), "numa-imbalance-channels", "sched/numa: Adjust imb_numa_nr to a better approximation of memory channels", &[
        Domain(NumaImbalance::EighthOrLlcs.effect()),
    ]),
    commit("f5b2eeb49991", git("2022-06-13"), "fork-numa-affinity", "sched/fair: Consider CPU affinity when allowing NUMA imbalance in find_idlest_group()", &[
        Select(ForkNuma::SmallDifference.effect()),
    ]),
    commit("51bf903b64bd", memory("2022-06-13"), "throttled-not-aged", "sched/fair: Optimize and simplify rq leaf_cfs_rq_list", &[
        Bandwidth(ThrottledListing::StaysOut.effect()),
    ]),
    commit("792b9f65a568", git("2022-06-13"), "newidle-bails", "sched: Allow newidle balancing to bail out of load_balance", &[
        Balance(PendingWakeup::EndsEverywhere.effect()),
    ]),
    commit("28156108fecb", git("2022-06-13"), "queue-empty-leaving", "sched: Fix the check of nr_running at queue wakelist", &[
        Select(WakeList::OrLeavingEmpty.effect()),
    ]),
    commit("f3dd3f674555", git("2022-06-13"), "queue-empty", "sched: Remove the limitation of WF_ON_CPU on wakelist if wakee cpu is idle", &[
        Select(WakeList::OrEmpty.effect()),
    ]),
    commit("70fb5ccf2ebb", git("2022-06-28"), "sis-util", "sched/fair: Introduce SIS_UTIL to search idle CPU based on sum of util_avg", &[
        AddFeature(Feature::SisUtil, true),
        SetFeature(Feature::SisProp, false),
    ]),
    commit("e2f3e35f1f5a", git("2022-06-28"), "migration-lag", "sched/fair: Decay task PELT values during wakeup migration", &[
        Pelt(MigrationLag::Estimated.effect()),
        Pelt(IdleSync::WhenIdling.effect()),
    ]),
    commit("3e8c6c9aac42", git("2022-06-28"), "energy-busy-time", "sched/fair: Remove task_util from effective utilization in feec()", &[
        Groundwork("where no time goes to interrupts, the sums are the same"),
    ]),
    commit("b812fc9768e0", git("2022-06-28"), "energy-any-gain", "sched/fair: Remove the energy margin in feec()", &[Select(EnergyGain::Any.effect())]),
    commit("c82a69629c53", git("2022-07-13"), "reduced-capacity", "sched/fair: fix case with reduced capacity CPU", &[
        Balance(ReducedCapacity::GroupType.effect()),
    ]),
    commit("751d4cbc4387", git("2022-08-04"), "queue-allowed", "sched/core: Do not requeue task on CPU excluded from cpus_mask", &[
        Select(WakeListAllowed::Asked.effect()),
    ]),
];
