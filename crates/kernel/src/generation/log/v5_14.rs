//! Commits that v5.14 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("e5e678e4fea2", git("2021-05-12"), "newidle-pending", "sched,fair: Skip newidle_balance if a wakeup is pending", &[
        Balance(PendingWakeup::EndsBeforeAndBetween.effect()),
    ]),
    commit("8d4c97c105ca", git("2021-05-12"), "energy-counted-domains", "sched/fair: Only compute base_energy_pd if necessary", &[
        Select(EnergyCandidates::OfCountedDomains.effect()),
    ]),
    commit("619e090c8e40", git("2021-05-12"), "energy-not-negative", "sched/fair: Fix negative energy delta in find_energy_efficient_cpu()", &[
        Select(EnergyGain::SixteenthOfMore.effect()),
    ]),
    commit("21f56ffe4482", git("2021-05-12"), "pick-task", "sched: Introduce sched_class::pick_task()", &[Fair(BuddyClearing::AtSetNext.effect())]),
    commit("97886d9dcd86", memory("2021-05-12"), "core-scheduling", "sched: Migration changes for core scheduling", &[
        OutOfSight("core scheduling: tasks have no cookies"),
    ]),
    commit("83c5e9d573e1", git("2021-06-17"), "group-load-early-return", "sched/fair: Return early from update_tg_cfs_load() if delta == 0", &[
        Pelt(GroupLoadUnchanged::StopAfterSum.effect()),
    ]),
    commit("8f1b971b4750", git("2021-06-17"), "governor-headroom", "sched/cpufreq: Consider reduced CPU capacity in energy calculation", &[
        Frequency(Headroom::OnUtilization.effect()),
    ]),
    commit("94aafc3ee31d", git("2021-06-17"), "aged-idle-time", "sched/fair: Age the average idle time", &[Select(ScanIdleTime::SinceWakeup.effect())]),
    commit("fecfcbc288e9", git("2021-06-22"), "class-change-runtime", "sched/rt: Fix RT utilization tracking during policy change", &[
        Pelt(ClassChange::CountsAfter.effect()),
    ]),
    commit("f4183717b370", git("2021-06-24"), "burst", "sched/fair: Introduce the burstable CFS controller", &[Bandwidth(Refill::Accumulates.effect())]),
    commit("c744dc4ab58d", git("2021-06-24"), "asym-classes", "sched/topology: Rework CPU capacity asymmetry detection", &[
        Domain(AsymDetection::EachDomain.effect()),
    ]),
    commit("1c35b07e6d39", git("2021-06-28"), "removed-synced", "sched/fair: Ensure _sum and _avg values stay consistent", &[
        Pelt(PeltEffect::RemovedLoadSync(SumSync::FromAverage)),
        Pelt(PeltEffect::RemovedUtilSync(SumSync::FromAverage)),
        Pelt(PeltEffect::RemovedRunnableSync(SumSync::FromAverage)),
    ]),
    commit("ceb6ba45dc80", git("2021-07-02"), "dequeue-load-synced", "sched/fair: Sync load_sum with load_avg after dequeue", &[
        Pelt(PeltEffect::DetachLoadSync(SumSync::FromAverage)),
    ]),
    commit("72d0ad7cb5ba", git("2021-07-02"), "refresh-signed", "sched/fair: Fix CFS bandwidth hrtimer expiry type", &[Bandwidth(RefreshSoon::Signed.effect())]),
];
