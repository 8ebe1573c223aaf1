//! Commits that v6.7 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("1528c661c24b", git("2023-09-18"), "tg-load-ratelimit", "sched/fair: Ratelimit update to tg->load_avg", &[
        Pelt(TgContribution::OncePerMillisecond.effect()),
    ]),
    commit("2f8c62296b6f", memory("2023-09"), "distribution-list", "sched/fair: Fix warning in bandwidth distribution", &[NotModelled(&[Quotas], RACE)]),
    commit("6b00a4014765", git("2023-09-29"), "energy-full-cpus", "sched/fair: Set max_spare_cap_cpu even if max_spare_cap is 0 in feec()", &[
        Groundwork("without clamps a CPU that fits has room left"),
    ]),
    commit("5b77261c5510", git("2023-10-09"), "energy-any-complexity", "sched/topology: Remove the EM_MAX_COMPLEXITY limit", &[
        NotModelled(&[EnergyModel], "machines of so many performance domains that they did not go by energy"),
    ]),
    commit("f577cd57bfaa", git("2023-10-12"), "pkg-name", "sched/topology: Rename 'DIE' domain to 'PKG'", &[Domain(PackageName::Pkg.effect())]),
    commit("f0498d2a54e7", memory("2023-10"), "stopper-at-once", "sched: Fix stop_one_cpu_nowait() vs hotplug", &[
        Select(StopperWakeup::AtOnce.effect()),
    ]),
    commit("1c0482707c42", git("2023-10-20"), "newidle-next", "sched/fair: Update ->next_balance correctly during newidle balance", &[
        Balance(NewidleNext::Before.effect()),
    ]),
    commit("5ebde09d9170", git("2023-10-24"), "clock-stands-once", "sched/core: Fix RQCF_ACT_SKIP leak", &[
        Core(SkippedClock::AtItsBeginning.effect()),
    ]),
    commit("b95303e0aeaf", git("2023-10-24"), "cluster-flag", "sched: Add cpus_share_resources API", &[Domain(Clusters::Flagged.effect())]),
    commit("8881e1639f1f", git("2023-10-24"), "cluster-scan", "sched/fair: Scan cluster before scanning LLC in wake-up path", &[
        Select(Cluster::First.effect()),
    ]),
    commit("22165f61d0c4", git("2023-10-24"), "cluster-candidates", "sched/fair: Use candidate prev/recent_used CPU if scanning failed for cluster wakeup", &[
        Select(Cluster::FirstThenCandidates.effect()),
    ]),
    commit("984ffb6a4366", git("2023-10-24"), "no-sis-prop", "sched/fair: Remove SIS_PROP", &[RemoveFeature(Feature::SisProp)]),
    commit("eab03c23c2a1", git("2023-11-14"), "reweight-keeps-lag", "sched/eevdf: Fix vruntime adjustment on reweight", &[
        Fair(Reweight::ScaleAroundOthers.effect()),
        Group(ReweightMinimum::Waiting.effect()),
    ]),
    commit("6d7e4782bcf5", git("2023-11-14"), "idle-core-fix", "sched/fair: Fix the decision for load balance", &[Balance(Balancer::IdleCore.effect())]),
];
