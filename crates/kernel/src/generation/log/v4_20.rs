//! Commits that v4.20 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("fdf5f315d5cf", memory("2018-09-10"), "no-lb-bias", "sched/fair: Disable LB_BIAS by default", &[SetFeature(Feature::LbBias, false)]),
    commit("05484e098448", memory("2018-09-10"), "asym-detection", "sched/topology: Add SD_ASYM_CPUCAPACITY flag detection", &[
        Domain(AsymDetection::LowestLevel.effect()),
    ]),
    commit("3b1baa6496e6", page("2018-09-10"), "misfit", "sched/fair: Add 'group_misfit_task' load-balance type", &[Balance(Misfit::GroupType.effect())]),
    commit("4ad3831a9d4a", memory("2018-09-10"), "spare-bigger-cpus", "sched/fair: Don't move tasks to lower capacity CPUs unless necessary", &[
        Balance(BiggerCpus::SparedByQueue.effect()),
    ]),
    commit("9c63e84db29b", memory("2018-09-10"), "asym-no-sibling", "sched/core: Disable SD_PREFER_SIBLING on asymmetric CPU capacity domains", &[
        Domain(AsymSpreading::NotBelow.effect()),
    ]),
    commit("cad68e552e77", page("2018-09-10"), "misfit-pull", "sched/fair: Consider misfit tasks when load-balancing", &[
        NotModelled(&[Apart("3b1baa6496e6")], "told in the row of 3b1baa6496e6, two patches before it: between them no CPU pulls a misfit task"),
    ]),
    commit("c469933e7721", memory("2018-11-12"), "exec-estimate", "sched/fair: Fix cpu_util_wake() for 'execl' type workloads", &[
        Select(OwnEstimate::TakenOff.effect()),
    ]),
];
