//! Commits that v5.4 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("f6cad8df6b30", page("2019-07-25"), "pinned-imbalance", "sched/fair: Fix imbalance due to CPU affinity", &[
        Balance(AffinityMark::ClearedUnlessAllPinned.effect()),
    ]),
    commit("43e9f7f231e4", page("2019-07-25"), "idle-count", "sched/fair: Start tracking SCHED_IDLE tasks count in cfs_rq", &[
        Groundwork("a count that nothing reads yet"),
    ]),
    commit("3c29e651e16d", page("2019-07-25"), "sched-idle-fallback", "sched/fair: Fall back to sched-idle CPU if idle CPU isn't found", &[
        Select(SchedIdleCpu::SecondChoice.effect()),
    ]),
    commit("de53fd7aedb1", git("2019-08-08"), "slices-never-expire", "sched/fair: Fix low cpu usage with high throttling by removing expiration of cpu-local slices", &[
        Bandwidth(SliceExpiry::Never.effect()),
    ]),
    commit("a55c7454a8c8", git("2019-09-03"), "reclaim-distance", "sched/topology: Improve load balancing on AMD EPYC systems", &[
        Domain(ReclaimDistance::ByPlatform.effect()),
    ]),
    commit("eb92692b2544", git("2019-09-13"), "energy-by-domain", "sched/fair: Speed-up energy-aware wake-ups", &[Select(EnergyAware::ByDomain.effect())]),
    commit("4892f51ad54d", git("2019-09-25"), "energy-any-cpu", "sched/fair: Avoid redundant EAS calculation", &[Select(EnergyCandidates::AnyCpu.effect())]),
    commit("4929a4e6faa0", memory("2019-10"), "period-doubles", "sched/fair: Scale bandwidth quota and period without losing quota/period ratio precision", &[
        NotModelled(&[Quotas], SCALED_PERIOD),
    ]),
];
