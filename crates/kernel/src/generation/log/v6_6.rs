//! Commits that v6.6 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("fee1759e4f04", git("2023-07-13"), "smt-groups", "sched/fair: Determine active load balance for SMT sched groups", &[
        Balance(SmtGroups::Relieved.effect()),
    ]),
    commit("7ff1693236f5", git("2023-07-13"), "core-spreading", "sched/fair: Implement prefer sibling imbalance calculation between asymmetric groups", &[
        Balance(CoreSpreading::ByCores.effect()),
    ]),
    commit("b1bfeab9b002", git("2023-07-13"), "idle-core", "sched/fair: Consider the idle state of the whole core for load balance", &[
        Balance(Balancer::IdleCoreOrOthers.effect()),
    ]),
    commit("ed74cc4995d3", git("2023-07-13"), "show-group-flags", "sched/debug: Dump domains' sched group flags", &[
        Domain(FilesShown::WithGroupFlags.effect()),
    ]),
    commit("79462e8c879a", memory("2023-07"), "throttled-empty-time", "sched: don't account throttle time for empty groups", &[
        OutOfSight("cpu.stat"),
    ]),
    commit("677ea015f231", memory("2023-07"), "throttled-self-time", "sched: add throttled time stat for throttled children", &[
        OutOfSight("cpu.stat"),
    ]),
    commit("ab83f455f04d", memory("2023-07"), "wake-on-this-cpu", "sched: add WF_CURRENT_CPU and externise ttwu", &[
        OutOfSight("wakeups that ask for the waker's CPU (seccomp notifications)"),
    ]),
    commit("7ee7642c9141", git("2023-07-13"), "asymmetric-stable", "sched/fair: Stabilize asym cpu capacity system idle cpu selection", &[
        NotModelled(&[DifferentCpus], "where a search begins for a task that fits no CPU"),
    ]),
    commit("af4cf40470c2", git("2023-07-19"), "avg-vruntime", "sched/fair: Add cfs_rq::avg_vruntime", &[
        Groundwork("an average is kept that nothing reads yet"),
    ]),
    commit("e0c2ff903c32", git("2023-07-19"), "remove-start-debit", "sched/fair: Remove sched_feat(START_DEBIT)", &[
        RemoveFeature(Feature::StartDebit),
        Fair(Placement::AverageWithCredit.effect()),
    ]),
    commit("86bfbb7ce4f6", git("2023-07-19"), "lag-placement", "sched/fair: Add lag based placement", &[
        AddFeature(Feature::PlaceLag, true),
        AddFeature(Feature::FairSleepers, false),
        Fair(Placement::LagOnWakeup.effect()),
        Fair(Reweight::ScaleLagOffQueue.effect()),
    ]),
    commit("99d4d26551b5", git("2023-07-19"), "augmented-tree", "rbtree: Add rb_add_augmented_cached() helper", &[
        Groundwork("a function for trees"),
    ]),
    commit("147f3efaa241", git("2023-07-19"), "eevdf", "sched/fair: Implement an EEVDF-like scheduling policy", &[
        AddFeature(Feature::Eevdf, true),
        AddFeature(Feature::PlaceDeadlineInitial, true),
        Fair(Pick::EarliestEligibleDeadline.effect()),
        Fair(TickPreemption::Deadline.effect()),
        Fair(WakeupPreemption::PickDecides.effect()),
        Fair(Yield::PushDeadline.effect()),
        Fair(LagInflation::OneUnit.effect()),
        Fair(LagLimit::TwoRequests.effect()),
        Fair(Reweight::ScaleDeadline.effect()),
    ]),
    commit("76cae9dbe185", git("2023-07-19"), "commit-to-lag", "sched/fair: Commit to lag based placement", &[
        RemoveFeature(Feature::FairSleepers),
        RemoveFeature(Feature::GentleFairSleepers),
    ]),
    commit("e8f331bcc270", git("2023-07-19"), "lag-across-queues", "sched/smp: Use lag to simplify cross-runqueue placement", &[
        Fair(Placement::Lag.effect()),
    ]),
    commit("5e963f2bd465", git("2023-07-19"), "commit-to-eevdf", "sched/fair: Commit to EEVDF", &[
        RemoveFeature(Feature::Eevdf),
        RemoveFeature(Feature::LastBuddy),
        RemoveFeature(Feature::AltPeriod),
        RemoveFeature(Feature::BaseSlice),
        RemoveTunable(Tunable::Latency),
        RemoveTunable(Tunable::IdleMinGranularity),
        RemoveTunable(Tunable::WakeupGranularity),
    ]),
    commit("e4ec3318a17f", git("2023-07-19"), "base-slice", "sched/debug: Rename sysctl_sched_min_granularity to sysctl_sched_base_slice", &[
        RemoveTunable(Tunable::MinGranularity),
        AddTunable(Tunable::BaseSlice, 750_000),
        Groundwork("the tunable gets another name"),
    ]),
    commit("d07f09a1f99c", git("2023-07-19"), "placement-flags", "sched/fair: Propagate enqueue flags into place_entity()", &[
        Groundwork("an argument that nothing reads yet"),
    ]),
    commit("c2e164ac33f7", git("2023-07-26"), "no-util-est-boost", "sched/fair: remove util_est boosting", &[Pelt(RunnableBoost::Util.effect())]),
    commit("4efcc8bc7e08", git("2023-07-26"), "group-flags-aligned", "sched/topology: Align group flags when removing degenerate domain", &[
        Domain(GroupFlags::OfPresentChild.effect()),
    ]),
    commit("88c56cfeaec4", memory("2023-08"), "nohz-full-bandwidth", "sched/fair: Block nohz tick_stop when cfs bandwidth in use", &[
        OutOfSight("NOHZ_FULL"),
        AddFeature(Feature::HzBw, true),
    ]),
    commit("c98c18270be1", git("2023-08-02"), "hierarchical-quota", "sched, cgroup: Restore meaning to hierarchical_quota", &[
        OutOfSight("checks of quotas against those of ancestors"),
    ]),
    commit("63304558ba5d", git("2023-08-17"), "run-to-parity", "sched/eevdf: Curb wakeup-preemption", &[AddFeature(Feature::RunToParity, true)]),
    commit("f8858d96061f", git("2023-09-02"), "idle-core-fast", "sched/fair: Optimize should_we_balance() for large SMT systems", &[
        Groundwork("the same CPU is found with fewer looks"),
    ]),
    commit("450e749707bc", git("2023-09-13"), "smt4", "sched/fair: Fix SMT4 group_smt_balance handling", &[Balance(SmtGroups::RelievedByIdle.effect())]),
    commit("2f2fc17bab00", memory("2023-09"), "slice-at-placement", "sched/eevdf: Also update slice on placement", &[
        NotModelled(&[Apart("147f3efaa241")], "between 147f3efaa241 and this a placed entity had the request of its last deadline"),
    ]),
    commit("650cad561cce", git("2023-10-03"), "floor-average", "sched/eevdf: Fix avg_vruntime()", &[Fair(AverageRounding::Down.effect())]),
    commit("8dafa9d0eb1a", memory("2023-10"), "heap-after-reweight", "sched/eevdf: Fix min_deadline heap integrity", &[
        NotModelled(&[Apart("147f3efaa241")], "between 147f3efaa241 and this a search could miss deadlines that a reweight had moved"),
    ]),
    commit("b01db23d5923", memory("2023-10"), "whole-search", "sched/eevdf: Fix pick_eevdf()", &[
        NotModelled(&[Apart("147f3efaa241")], "between 147f3efaa241 and this a search could miss the earliest deadline"),
    ]),
    commit("d2929762cc3f", memory("2023-10"), "heap-of-waiting", "sched/eevdf: Fix heap corruption more", &[
        NotModelled(&[Apart("8dafa9d0eb1a")], "between 8dafa9d0eb1a and this a search could go astray after the running entity's reweight"),
    ]),
];
