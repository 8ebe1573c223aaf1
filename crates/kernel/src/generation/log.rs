//! The change log: upstream commits in the order of history, and the generation that the log starts from.

use super::behaviour::{
    Behaviours, BuddyClearing, ForkPlacement, GroupRequest, Pick, Placement, Reweight, TickPreemption,
    VirtualZero, WakeupPreemption, Yield,
};
use super::change::{Change, Effect, Release};
use super::{Feature, Features, Tunable, Tunables};

/// The release that the log starts from.
pub(super) const BASE: Release = Release(6, 5);

/// Features of the base release (kernel/sched/features.h at v6.5).
pub(super) fn base_features() -> Features {
    const ON: &[Feature] = &[
        Feature::GentleFairSleepers,
        Feature::StartDebit,
        Feature::LastBuddy,
        Feature::CacheHotBuddy,
        Feature::WakeupPreemption,
        Feature::TtwuQueue,
        Feature::SisUtil,
        Feature::WaIdle,
        Feature::WaWeight,
        Feature::WaBias,
        Feature::UtilEst,
        Feature::UtilEstFastup,
        Feature::AltPeriod,
        Feature::BaseSlice,
    ];
    const OFF: &[Feature] = &[Feature::NextBuddy, Feature::Hrtick, Feature::SisProp];
    let features = ON.iter().fold(Features::default(), |features, &feature| features.with(feature, true));
    OFF.iter().fold(features, |features, &feature| features.with(feature, false))
}

/// Tunables of the base release, normalised (kernel/sched/fair.c at v6.5).
pub(super) fn base_tunables() -> Tunables {
    let mut tunables = Tunables::default();
    for (tunable, normalised_ns) in [
        (Tunable::Latency, 6_000_000),
        (Tunable::MinGranularity, 750_000),
        (Tunable::IdleMinGranularity, 750_000),
        (Tunable::WakeupGranularity, 1_000_000),
        (Tunable::MigrationCost, 500_000),
    ] {
        tunables.define(tunable, normalised_ns);
    }
    tunables
}

/// Behaviours of the base release.
pub(super) const BASE_BEHAVIOURS: Behaviours = Behaviours {
    placement: Placement::MinVruntime,
    pick: Pick::Leftmost,
    tick_preemption: TickPreemption::IdealSliceWithinLatency,
    wakeup_preemption: WakeupPreemption::Granularity,
    yielding: Yield::SkipBuddy,
    buddy_clearing: BuddyClearing::AtSetNext,
    reweight: Reweight::KeepVruntime,
    virtual_zero: VirtualZero::LeastVruntime,
    fork_placement: ForkPlacement::OnParentsQueue,
    group_request: GroupRequest::BaseSlice,
};

const V6_6: Option<Release> = Some(Release(6, 6));

/// Every known change after the base, oldest first.
pub const LOG: &[Change] = &[
    Change {
        commit: "af4cf40470c2",
        name: "avg-vruntime",
        release: V6_6,
        subject: "sched/fair: Add cfs_rq::avg_vruntime",
        effects: &[Effect::Groundwork],
    },
    Change {
        commit: "e0c2ff903c32",
        name: "remove-start-debit",
        release: V6_6,
        subject: "sched/fair: Remove sched_feat(START_DEBIT)",
        effects: &[Effect::RemoveFeature(Feature::StartDebit)],
    },
    Change {
        commit: "86bfbb7ce4f6",
        name: "lag-placement",
        release: V6_6,
        subject: "sched/fair: Add lag based placement",
        effects: &[
            Effect::AddFeature(Feature::PlaceLag, true),
            Effect::AddFeature(Feature::FairSleepers, false),
            Effect::Placement(Placement::LagOnWakeup),
        ],
    },
    Change {
        commit: "147f3efaa241",
        name: "eevdf",
        release: V6_6,
        subject: "sched/fair: Implement an EEVDF-like scheduling policy",
        effects: &[
            Effect::AddFeature(Feature::Eevdf, true),
            Effect::AddFeature(Feature::PlaceDeadlineInitial, true),
            Effect::Pick(Pick::EarliestEligibleDeadline),
            Effect::TickPreemption(TickPreemption::Deadline),
            Effect::WakeupPreemption(WakeupPreemption::PickDecides),
            Effect::Yield(Yield::PushDeadline),
        ],
    },
    Change {
        commit: "76cae9dbe185",
        name: "commit-to-lag",
        release: V6_6,
        subject: "sched/fair: Commit to lag based placement",
        effects: &[
            Effect::RemoveFeature(Feature::FairSleepers),
            Effect::RemoveFeature(Feature::GentleFairSleepers),
        ],
    },
    Change {
        commit: "e8f331bcc270",
        name: "lag-across-queues",
        release: V6_6,
        subject: "sched/smp: Use lag to simplify cross-runqueue placement",
        effects: &[Effect::Placement(Placement::Lag)],
    },
    Change {
        commit: "5e963f2bd465",
        name: "commit-to-eevdf",
        release: V6_6,
        subject: "sched/fair: Commit to EEVDF",
        effects: &[
            Effect::RemoveFeature(Feature::Eevdf),
            Effect::RemoveFeature(Feature::LastBuddy),
            Effect::RemoveFeature(Feature::AltPeriod),
            Effect::RemoveFeature(Feature::BaseSlice),
            Effect::RemoveTunable(Tunable::Latency),
            Effect::RemoveTunable(Tunable::IdleMinGranularity),
            Effect::RemoveTunable(Tunable::WakeupGranularity),
        ],
    },
    Change {
        commit: "e4ec3318a17f",
        name: "base-slice",
        release: V6_6,
        subject: "sched/debug: Rename sysctl_sched_min_granularity to sysctl_sched_base_slice",
        effects: &[
            Effect::RemoveTunable(Tunable::MinGranularity),
            Effect::AddTunable(Tunable::BaseSlice, 750_000),
        ],
    },
    Change {
        commit: "63304558ba5d",
        name: "run-to-parity",
        release: V6_6,
        subject: "sched/eevdf: Curb wakeup-preemption",
        effects: &[Effect::AddFeature(Feature::RunToParity, true)],
    },
    Change {
        commit: "b1bfeab9b002",
        name: "balance-idle-core",
        release: V6_6,
        subject: "sched/fair: Consider the idle state of the whole core for load balance",
        effects: &[Effect::NotModelled("periodic load balancing")],
    },
];
