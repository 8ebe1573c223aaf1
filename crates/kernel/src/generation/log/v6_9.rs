//! Commits that v6.9 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("1b600da51073", memory("2024-02"), "energy-per-performance", "PM: EM: Optimize em_cpu_energy() and remove division", &[
        Select(EnergyCost::PerPerformance.effect()),
    ]),
    commit("8aeaffef8c6e", memory("2024-02"), "sibling-in-domain", "sched/fair: Take the scheduling domain into account in select_idle_smt()", &[
        OutOfSight("isolated CPUs"),
    ]),
    commit("23d04d8c6b8e", memory("2024-02"), "core-in-domain", "sched/fair: Take the scheduling domain into account in select_idle_core()", &[
        OutOfSight("isolated CPUs"),
    ]),
    commit("7f1a7229718d", git("2024-02-28"), "misfit-tie", "sched/fair: Do strict inequality check for busiest misfit task group", &[
        Balance(MisfitTie::FirstOfEquals.effect()),
    ]),
    commit("54de44274703", git("2024-02-28"), "share-llc-name", "sched/topology: Rename SD_SHARE_PKG_RESOURCES to SD_SHARE_LLC", &[
        Domain(FlagsShown::CacheNames.effect()),
    ]),
    commit("11b1b8bc2b98", git("2024-04-22"), "reweight-charge", "sched/eevdf: Always update V if se->on_rq when reweighting", &[
        Group(ReweightCharge::Queued.effect()),
    ]),
    commit("afae8002b4fd", git("2024-04-22"), "reweight-around-average", "sched/eevdf: Fix miscalculation in reweight_entity() when se is not curr", &[
        Fair(Reweight::ScaleAroundAverage.effect()),
    ]),
    commit("1560d1f6eb6b", git("2024-04-22"), "reweight-lag-limit", "sched/eevdf: Prevent vlag from going out of bounds in reweight_eevdf()", &[
        Group(ReweightLag::Limited.effect()),
    ]),
];
