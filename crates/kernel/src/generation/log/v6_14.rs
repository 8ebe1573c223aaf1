//! Commits that v6.14 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("108ad0999085", git("2024-12-02"), "steal-excess", "sched: Don't try to catch up excess steal time.", &[
        OutOfSight("time that a hypervisor takes"),
    ]),
    commit("c2a295bffeaf", git("2024-12-09"), "h-nr-runnable-counted", "sched/fair: Add new cfs_rq.h_nr_runnable", &[
        Groundwork("a difference is counted by itself"),
    ]),
    commit("1a49104496d3", git("2024-12-09"), "h-nr-runnable", "sched/fair: Use the new cfs_rq.h_nr_runnable", &[Balance(DelayedCount::Runnable.effect())]),
    commit("61b82dfb6b7e", git("2024-12-09"), "delayed-stay", "sched/fair: Do not try to migrate delayed dequeue task", &[
        Balance(DelayedMoves::ForLoadOnly.effect()),
    ]),
    commit("2a77e4be12cb", git("2024-12-09"), "pick-buddy", "sched/fair: Untangle NEXT_BUDDY and pick_next_task()", &[
        AddFeature(Feature::PickBuddy, true),
    ]),
    commit("af98d8a36a96", memory("2024-12"), "hotplug-quota", "sched/fair: Fix CPU bandwidth limit bypass during CPU hotplug", &[
        OutOfSight("CPU hotplug"),
    ]),
    commit("7c8cd569ff66", git("2024-12-20"), "schedstat-17", "docs: Update Schedstat version to 17", &[Domain(SchedstatLayout::Version17.effect())]),
    commit("873199d27bb2", git("2025-01-13"), "eligible-first", "sched/core: Prioritize migrating eligible tasks in sched_balance_rq()", &[
        Balance(Ineligible::AfterFailure.effect()),
    ]),
    commit("3229adbe7875", git("2025-01-13"), "overloaded-at-root", "sched/fair: Do not compute overloaded status unnecessarily during lb", &[
        Groundwork("what only the root domain reads is computed only there"),
    ]),
    commit("3429dd57f0de", memory("2025-01"), "delayed-group-counted-once", "sched/fair: Fix inaccurate h_nr_runnable accounting with delayed dequeue", &[
        NotModelled(&[Groups], "in v6.13 a delayed group was taken off what counts as runnable beside its tasks"),
    ]),
    commit("76f970ce51c8", git("2025-03-15"), "any-autogroup", "Revert \"sched/core: Reduce cost of sched_move_task when config autogroup\"", &[
        Group(ExitMove::Always.effect()),
    ]),
];
