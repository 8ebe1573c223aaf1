//! Commits that v5.15 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("89aafd67f28c", git("2021-08-04"), "recent-is-prev", "sched/fair: Use prev instead of new target as recent_used_cpu", &[
        Select(RecentUsed::WhenSeen.effect()),
        Select(RecentAllowed::Previous.effect()),
    ]),
    commit("56498cfb045d", git("2021-08-04"), "scan-after-target", "sched/fair: Avoid a second scan of target in select_idle_cpu", &[
        Select(ScanStart::AfterTarget.effect()),
    ]),
    commit("7fcc17d0cb12", memory("2021-08"), "energy-precision", "PM: EM: Increase energy calculation precision", &[
        Select(EnergyCost::Microwatts.effect()),
    ]),
    commit("304000390f88", git("2021-08-20"), "cgroup-idle", "sched: Cgroup SCHED_IDLE support", &[
        Group(IdleGroups::Known.effect()),
        Group(IdlePreemption::TasksThenGroups.effect()),
    ]),
    commit("2630cde26711", git("2021-10-01"), "undecayed-branch", "sched/fair: Add ancestors of unthrottled undecayed cfs_rq", &[
        Bandwidth(UndecayedBranch::WithAncestors.effect()),
    ]),
];
