//! The change log: upstream commits of all rooms in the order of history, and the generation that the log starts from.

use std::sync::LazyLock;

use super::change::{Change, Effect, Release};
use super::history::HISTORY;
use super::left_out::LEFT_OUT_CHANGES;
use super::{Feature, Features, Tunable, Tunables};
use crate::balance::{BALANCE_CHANGES, BalanceEffect, NewidlePull};
use crate::core::rules::Hrtick;
use crate::cpufreq::rules::{DeadlineUse, GovernorHook, Headroom, IoBoost};
use crate::domain::{DOMAIN_CHANGES, DomainEffect, FilesShown};
use crate::fair::bandwidth::BANDWIDTH_CHANGES;
use crate::fair::rules::{
    Arithmetic, AverageRounding, BuddyClearing, DelayedInTest, DelayedLag, EmptyGroup, ForkPlacement,
    ForkPreemption, LagInflation, LagLimit, LatencyCount, LonePrioChange, NiceChange, Pick, Placement,
    ProtectionStart, Request, Reschedule, Reweight, ReweightProtection, SliceProtection, TestPick,
    TickPreemption, VirtualZero, WakeupPreemption, WokenBuddy, Yield,
};
use crate::fair::{
    DelayedShort, FailedTest, PendingTest, PreemptionEffect, ProtectionUpdate, ShortBuddy, ShortTest,
    ShorterBeside,
};
use crate::group::{GROUP_CHANGES, GroupEffect, ReweightMinimum};
use crate::pelt::PELT_CHANGES;
use crate::rt::rules::RtLimit;
use crate::select::SELECT_CHANGES;

/// The release that the log starts from.
pub(super) const BASE: Release = Release(4, 18);

/// Features of the base release (kernel/sched/features.h at v4.18).
pub(super) fn base_features() -> Features {
    const ON: &[Feature] = &[
        Feature::GentleFairSleepers,
        Feature::StartDebit,
        Feature::LastBuddy,
        Feature::CacheHotBuddy,
        Feature::WakeupPreemption,
        Feature::TtwuQueue,
        Feature::SisProp,
        Feature::WaIdle,
        Feature::WaWeight,
        Feature::WaBias,
        Feature::UtilEst,
        Feature::LbBias,
        Feature::RtRuntimeShare,
    ];
    const OFF: &[Feature] = &[Feature::NextBuddy, Feature::Hrtick, Feature::SisAvgCpu];
    let features = ON.iter().fold(Features::default(), |features, &feature| features.with(feature, true));
    OFF.iter().fold(features, |features, &feature| features.with(feature, false))
}

/// Tunables of the base release, normalised (kernel/sched/fair.c at v4.18).
pub(super) fn base_tunables() -> Tunables {
    let mut tunables = Tunables::default();
    for (tunable, normalised_ns) in [
        (Tunable::Latency, 6_000_000),
        (Tunable::MinGranularity, 750_000),
        (Tunable::WakeupGranularity, 1_000_000),
        (Tunable::BandwidthSlice, 5_000_000),
        (Tunable::MigrationCost, 500_000),
    ] {
        tunables.define(tunable, normalised_ns);
    }
    tunables
}

/// A kernel that somebody built: a release with back-ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a clause.
    pub about: &'static str,
    /// The release that it is based on.
    pub base: Release,
    /// Commits that it holds beyond its base, by id or name.
    pub with: &'static [&'static str],
    /// Commits of its base that it undoes.
    pub without: &'static [&'static str],
}

/// Builds that have a name of their own.
#[rustfmt::skip]
pub const BUILDS: &[Build] = &[
    Build {
        name: "debian-5.10", about: "Debian 11's kernel, 5.10.218 and later", base: Release(5, 10),
        with: &[
            "0c2de3f054a5", "7fcc17d0cb12", "28156108fecb", "72d0ad7cb5ba", "0ae78eec8aa6", "8b4e74ccb582", "39a2a6eb5c9b", "9bcb959d05ee",
            "829c1651e9c4", "a53ce18cacb4", "91dcf1e8068e", "8c1f560c1ea3", "b89997aa88f0", "7c7ad626d9a0", "fcf6631f3736", "68d7a190682a",
            "fecfcbc288e9", "1c35b07e6d39", "98b0d890220d", "40f5aa4c5eae", "64eaf50731ac",
        ], without: &[],
    },
    Build {
        name: "debian-6.1", about: "Debian 12's kernel, 6.1.180 and later", base: Release(6, 1),
        with: &[
            "preemptible", "ad841e569f5c", "ae2ad293d6be", "829c1651e9c4", "a53ce18cacb4", "91dcf1e8068e", "e5ed0550c04c", "1c0482707c42",
            "6b00a4014765", "3af7524b1419", "8aeaffef8c6e", "23d04d8c6b8e", "2feab2492deb", "d32960528702", "ff47a0acfcce", "33cf66d88306",
            "82d6e01a0699", "f4c31b07b136", "17e3e88ed0b6", "group-runnable-wide",
        ], without: &[],
    },
    Build {
        name: "debian-6.12", about: "Debian 13's kernel, 6.12.107 and later", base: Release(6, 12),
        with: &[
            "preemptible", "66951e4860d3", "2a77e4be12cb", "2ae891b82695", "76f970ce51c8", "79104becf42b", "79f3f9bedd14", "b3d99f43c72b",
            "1319ea57529e", "82d6e01a0699", "aa3ee4f0b754", "f553741ac8c0", "ff47a0acfcce", "33cf66d88306", "f4c31b07b136", "76f2f783294d",
            "17e3e88ed0b6", "ca125231dd29", "boost-with-task",
        ], without: &[],
    },
    Build {
        name: "debian-7.2", about: "Debian unstable's kernel, 7.2.13", base: Release(7, 2),
        with: &["c6dcd97c8be7", "4f166adb5cb0"], without: &[],
    },
    Build {
        name: "ubuntu-5.14", about: "Ubuntu's kernel for new machines of 2021, 5.14.0", base: Release(5, 14),
        with: &["2cfb7a1b031b", "8b4e74ccb582"], without: &[],
    },
    Build {
        name: "ubuntu-5.15", about: "Ubuntu 22.04's kernel, 5.15.0-204", base: Release(5, 15),
        with: &[
            "8b4e74ccb582", "2cfb7a1b031b", "28156108fecb", "f3dd3f674555", "70fb5ccf2ebb", "751d4cbc4387", "23d04d8c6b8e", "829c1651e9c4",
            "a53ce18cacb4", "d32960528702", "4006a72bdd93", "91dcf1e8068e", "3af7524b1419", "ff47a0acfcce", "82d6e01a0699", "f4c31b07b136",
            "98b0d890220d", "40f5aa4c5eae", "64eaf50731ac", "1528c661c24b",
        ], without: &[],
    },
    Build {
        name: "ubuntu-5.17", about: "Ubuntu's kernel for new machines of 2022, 5.17.0-1035", base: Release(5, 17),
        with: &["preemptible", "2cfb7a1b031b", "40f5aa4c5eae", "64eaf50731ac"], without: &[],
    },
    Build {
        name: "ubuntu-5.19", about: "Ubuntu 22.10's kernel, 5.19.0-50", base: Release(5, 19),
        with: &["preemptible", "28156108fecb", "f3dd3f674555", "70fb5ccf2ebb", "751d4cbc4387", "c82a69629c53"], without: &[],
    },
    Build {
        name: "ubuntu-6.1", about: "Ubuntu's kernel for new machines of 2023, 6.1.0-1036", base: Release(6, 1),
        with: &[
            "preemptible", "ad841e569f5c", "ae2ad293d6be", "829c1651e9c4", "a53ce18cacb4", "91dcf1e8068e", "e5ed0550c04c", "6b00a4014765",
        ], without: &[],
    },
    Build {
        name: "ubuntu-6.2", about: "Ubuntu 23.04's kernel, 6.2.0-39", base: Release(6, 2),
        with: &["preemptible", "ae2ad293d6be", "829c1651e9c4", "a53ce18cacb4", "91dcf1e8068e", "e5ed0550c04c"], without: &[],
    },
    Build {
        name: "ubuntu-6.5", about: "Ubuntu 23.10's kernel, 6.5.0-45", base: Release(6, 5),
        with: &["preemptible", "6b00a4014765", "c2e164ac33f7", "1528c661c24b"], without: &[],
    },
    Build {
        name: "ubuntu-6.8", about: "Ubuntu 24.04's kernel, 6.8.0-151", base: Release(6, 8),
        with: &[
            "preemptible", "2ae891b82695", "afae8002b4fd", "1560d1f6eb6b", "11b1b8bc2b98", "2a77e4be12cb", "faa42d29419d", "f553741ac8c0",
            "d32960528702", "76f970ce51c8", "79104becf42b", "79f3f9bedd14", "b3d99f43c72b", "1319ea57529e", "8aeaffef8c6e", "23d04d8c6b8e",
            "2feab2492deb", "ff47a0acfcce", "33cf66d88306", "82d6e01a0699", "f4c31b07b136", "17e3e88ed0b6", "ca125231dd29", "boost-with-task",
            "4f166adb5cb0",
        ], without: &[],
    },
    Build {
        name: "ubuntu-6.11", about: "Ubuntu 24.10's kernel, 6.11.0-29", base: Release(6, 11),
        with: &["preemptible", "faa42d29419d", "66951e4860d3", "76f970ce51c8", "f553741ac8c0", "ff47a0acfcce"], without: &[],
    },
    Build {
        name: "ubuntu-6.14", about: "Ubuntu 25.04's kernel, 6.14.0-37", base: Release(6, 14),
        with: &["preemptible", "2ae891b82695", "f553741ac8c0", "aa3ee4f0b754"], without: &[],
    },
    Build {
        name: "ubuntu-6.17", about: "Ubuntu 25.10's kernel, 6.17.0-42", base: Release(6, 17),
        with: &[
            "preemptible", "79104becf42b", "79f3f9bedd14", "d206fbad9328", "33cf66d88306", "17e3e88ed0b6", "ca125231dd29",
        ], without: &[],
    },
    Build {
        name: "ubuntu-7.0", about: "Ubuntu 26.04's kernel, 7.0.0-44", base: Release(7, 0),
        with: &["101f3498b4bd", "ac8e69e69363", "boost-with-task", "4f166adb5cb0"], without: &[],
    },
    Build {
        name: "v6.6.9", about: "the stable release of January 2024", base: Release(6, 6),
        with: &["eab03c23c2a1", "6d7e4782bcf5"], without: &[],
    },
];

/// One commit: id, short name, first release, subject, effects.
pub(crate) const fn change(
    commit: &'static str,
    name: &'static str,
    release: (u32, u32),
    subject: &'static str,
    effects: &'static [Effect],
) -> Change {
    Change { commit, name, release: Some(Release(release.0, release.1)), date: None, subject, effects }
}

/// Every known change after the base, in the order of [`HISTORY`].
pub static LOG: LazyLock<Vec<Change>> = LazyLock::new(|| {
    let mut log = PELT_CHANGES
        .iter()
        .copied()
        .chain(SELECT_CHANGES.iter().copied())
        .chain(POLICY_CHANGES.iter().copied())
        .chain(LEFT_OUT_CHANGES.iter().copied())
        .chain(GROUP_CHANGES.iter().copied())
        .chain(BANDWIDTH_CHANGES.iter().copied())
        .chain(DOMAIN_CHANGES.iter().copied())
        .chain(BALANCE_CHANGES.iter().copied())
        .collect::<Vec<_>>();
    // Stable; patches that were never merged have no place and stand behind all that were.
    let place = |change: &Change| HISTORY.iter().position(|place| place.id == change.id());
    log.sort_by_key(|change| place(change).unwrap_or(HISTORY.len()));
    for change in &mut log {
        change.date = place(change).map(|at| HISTORY[at].date);
    }
    log
});

const HRTICK_BEFORE: &str =
    "timers that end slices, as they are before 9213aa4784cf turns them on by default";

/// Changes of the policy.
#[rustfmt::skip]
const POLICY_CHANGES: &[Change] = &[
    change("fdf5f315d5cf", "no-lb-bias", (4, 20), "sched/fair: Disable LB_BIAS by default", &[
        Effect::SetFeature(Feature::LbBias, false),
    ]),
    change("9eca544b1491", "io-boost", (5, 2), "cpufreq: schedutil: Simplify iowait boosting", &[
        IoBoost::Eighth.effect(),
    ]),
    change("5e83eafbfd3b", "no-cpu-load", (5, 3), "sched/fair: Remove the rq->cpu_load[] update code", &[
        Effect::RemoveFeature(Feature::LbBias),
        Effect::Domain(DomainEffect::FilesShown(FilesShown::Numbers)),
    ]),
    change("bef69dd87828", "governor-hook", (5, 5), "sched/cpufreq: Move the cfs_rq_util_change() call to cpufreq_update_util()", &[
        GovernorHook::EntityUpdate.effect(),
    ]),
    change("b8c96361402a", "util-est-fastup", (5, 5), "sched/fair/util_est: Implement faster ramp-up EWMA on utilization increases", &[
        Effect::AddFeature(Feature::UtilEstFastup, true),
    ]),
    change("7c2e8bbd87db", "lone-prio-change", (5, 6), "sched: Spare resched IPI when prio changes on a single fair task", &[
        LonePrioChange::Ignored.effect(),
    ]),
    change("5443a0be6121", "nice-tested", (5, 6), "sched: Use fair:prio_changed() instead of ad-hoc implementation", &[
        NiceChange::Tested.effect(),
    ]),
    change("2586af1ac187", "no-rt-share", (5, 10), "sched/rt: Disable RT_RUNTIME_SHARE by default", &[
        Effect::SetFeature(Feature::RtRuntimeShare, false),
    ]),
    change("0c2de3f054a5", "alt-slice", (5, 13), "sched,fair: Alternative sched_slice()", &[
        Effect::AddFeature(Feature::AltPeriod, true),
        Effect::AddFeature(Feature::BaseSlice, true),
    ]),
    change("8a99b6833c88", "tunables-in-debugfs", (5, 13), "sched: Move SCHED_DEBUG sysctl to debugfs", &[
        LatencyCount::Unwritten.effect(),
    ]),
    change("8f1b971b4750", "governor-headroom", (5, 14), "sched/cpufreq: Consider reduced CPU capacity in energy calculation", &[
        Headroom::OnUtilization.effect(),
    ]),
    change("21f56ffe4482", "pick-task", (5, 14), "sched: Introduce sched_class::pick_task()", &[
        BuddyClearing::AtSetNext.effect(),
    ]),
    change("51ce83ed523b", "idle-slice", (5, 16), "sched: reduce sched slice for SCHED_IDLE entities", &[
        Effect::AddTunable(Tunable::IdleMinGranularity, 750_000),
    ]),
    change("79ba1e607d68", "limit-slice", (6, 3), "sched/fair: Limit sched slice duration", &[
        TickPreemption::IdealSliceWithinLatency.effect(),
    ]),
    change("af4cf40470c2", "avg-vruntime", (6, 6), "sched/fair: Add cfs_rq::avg_vruntime", &[
        Effect::Groundwork("an average is kept that nothing reads yet"),
    ]),
    change("e0c2ff903c32", "remove-start-debit", (6, 6), "sched/fair: Remove sched_feat(START_DEBIT)", &[
        Effect::RemoveFeature(Feature::StartDebit),
        Placement::AverageWithCredit.effect(),
    ]),
    change("86bfbb7ce4f6", "lag-placement", (6, 6), "sched/fair: Add lag based placement", &[
        Effect::AddFeature(Feature::PlaceLag, true),
        Effect::AddFeature(Feature::FairSleepers, false),
        Placement::LagOnWakeup.effect(),
        Reweight::ScaleLagOffQueue.effect(),
    ]),
    change("147f3efaa241", "eevdf", (6, 6), "sched/fair: Implement an EEVDF-like scheduling policy", &[
        Effect::AddFeature(Feature::Eevdf, true),
        Effect::AddFeature(Feature::PlaceDeadlineInitial, true),
        Pick::EarliestEligibleDeadline.effect(),
        TickPreemption::Deadline.effect(),
        WakeupPreemption::PickDecides.effect(),
        Yield::PushDeadline.effect(),
        LagInflation::OneUnit.effect(),
        LagLimit::TwoRequests.effect(),
        Reweight::ScaleDeadline.effect(),
    ]),
    change("76cae9dbe185", "commit-to-lag", (6, 6), "sched/fair: Commit to lag based placement", &[
        Effect::RemoveFeature(Feature::FairSleepers),
        Effect::RemoveFeature(Feature::GentleFairSleepers),
    ]),
    change("e8f331bcc270", "lag-across-queues", (6, 6), "sched/smp: Use lag to simplify cross-runqueue placement", &[
        Placement::Lag.effect(),
    ]),
    change("5e963f2bd465", "commit-to-eevdf", (6, 6), "sched/fair: Commit to EEVDF", &[
        Effect::RemoveFeature(Feature::Eevdf),
        Effect::RemoveFeature(Feature::LastBuddy),
        Effect::RemoveFeature(Feature::AltPeriod),
        Effect::RemoveFeature(Feature::BaseSlice),
        Effect::RemoveTunable(Tunable::Latency),
        Effect::RemoveTunable(Tunable::IdleMinGranularity),
        Effect::RemoveTunable(Tunable::WakeupGranularity),
    ]),
    change("e4ec3318a17f", "base-slice", (6, 6), "sched/debug: Rename sysctl_sched_min_granularity to sysctl_sched_base_slice", &[
        Effect::RemoveTunable(Tunable::MinGranularity),
        Effect::AddTunable(Tunable::BaseSlice, 750_000),
        Effect::Groundwork("the tunable gets another name"),
    ]),
    change("63304558ba5d", "run-to-parity", (6, 6), "sched/eevdf: Curb wakeup-preemption", &[
        Effect::AddFeature(Feature::RunToParity, true),
    ]),
    change("650cad561cce", "floor-average", (6, 6), "sched/eevdf: Fix avg_vruntime()", &[
        AverageRounding::Down.effect(),
    ]),
    change("eab03c23c2a1", "reweight-keeps-lag", (6, 7), "sched/eevdf: Fix vruntime adjustment on reweight", &[
        Reweight::ScaleAroundOthers.effect(),
        Effect::Group(GroupEffect::ReweightMinimum(ReweightMinimum::Waiting)),
    ]),
    change("9c0b4bb7f630", "governor-effective", (6, 8), "sched/cpufreq: Rework schedutil governor performance estimation", &[
        DeadlineUse::Counts.effect(),
    ]),
    change("2227a957e1d5", "deadline-tree", (6, 8), "sched/eevdf: Sort the rbtree by virtual deadline", &[
        Pick::EarliestEligibleInDeadlineOrder.effect(),
    ]),
    change("afae8002b4fd", "reweight-around-average", (6, 9), "sched/eevdf: Fix miscalculation in reweight_entity() when se is not curr", &[
        Reweight::ScaleAroundAverage.effect(),
    ]),
    change("557a6bfc662c", "fair-server", (6, 12), "sched/fair: Add trivial fair server", &[
        Effect::NotModelled("the deadline class, and so the server by which it gives fair tasks 50 ms of each second beside real-time hogs"),
    ]),
    change("5f6bd380c7bd", "no-rt-limit", (6, 12), "sched/rt: Remove default bandwidth control", &[
        RtLimit::None.effect(),
        Effect::RemoveFeature(Feature::RtRuntimeShare),
    ]),
    change("152e11f6df29", "delay-dequeue", (6, 12), "sched/fair: Implement delayed dequeue", &[
        Effect::AddFeature(Feature::DelayDequeue, true),
    ]),
    change("54a58a787791", "delay-zero", (6, 12), "sched/fair: Implement DELAY_ZERO", &[
        Effect::AddFeature(Feature::DelayZero, true),
    ]),
    change("82e9d0456e06", "relative-deadline", (6, 12), "sched/fair: Avoid re-setting virtual deadline on 'migrations'", &[
        Effect::AddFeature(Feature::PlaceRelDeadline, true),
    ]),
    change("85e511df3cec", "preempt-short", (6, 12), "sched/eevdf: Allow shorter slices to wakeup-preempt", &[
        Effect::AddFeature(Feature::PreemptShort, true),
    ]),
    change("857b158dc5e8", "own-slice", (6, 12), "sched/eevdf: Use sched_attr::sched_runtime to set request/slice suggestion", &[
        Request::OwnOfTasks.effect(),
    ]),
    change("aef6987d8954", "min-slice", (6, 12), "sched/eevdf: Propagate min_slice up the cgroup hierarchy", &[
        Request::OwnAndLeastBelow.effect(),
    ]),
    change("c40dd90ac045", "place-when-queued", (6, 12), "sched/fair: Initialize the vruntime of a new task when it is first enqueued", &[
        ForkPlacement::WhereQueued.effect(),
    ]),
    change("6d71a9c61604", "place-anew", (6, 13), "sched/fair: Fix EEVDF entity placement bug causing scheduling lag", &[
        Reweight::PlaceAnew.effect(),
    ]),
    change("66951e4860d3", "empty-group", (6, 13), "sched/fair: Fix update_cfs_group() vs DELAY_DEQUEUE", &[
        EmptyGroup::KeepsWeight.effect(),
    ]),
    change("7c70cb94d29c", "lazy-preemption", (6, 13), "sched: Add Lazy preemption model", &[
        Effect::Groundwork("a preemption model that no kernel has by default before 7dadeaa6e851"),
    ]),
    change("2a77e4be12cb", "pick-buddy", (6, 14), "sched/fair: Untangle NEXT_BUDDY and pick_next_task()", &[
        Effect::AddFeature(Feature::PickBuddy, true),
    ]),
    change("2ae891b82695", "shorter-slice", (6, 15), "sched: Reduce the default slice to avoid tasks getting an extra tick", &[
        Effect::AddTunable(Tunable::BaseSlice, 700_000),
    ]),
    change("3a0baa8e6c57", "protect-shortest", (6, 17), "sched/fair: Fix entity's lag with run to parity", &[
        SliceProtection::UntilShortestRequest.effect(),
    ]),
    change("79104becf42b", "forfeit-on-yield", (6, 19), "sched/fair: Forfeit vruntime on yield", &[
        Yield::ForfeitRequest.effect(),
    ]),
    change("79f3f9bedd14", "zero-vruntime", (6, 19), "sched/eevdf: Fix min_vruntime vs avg_vruntime", &[
        VirtualZero::AverageAtQueueing.effect(),
    ]),
    change("e837456fdca8", "fork-never-preempts", (6, 19), "sched/fair: Reimplement NEXT_BUDDY to align with EEVDF goals", &[
        ForkPreemption::OnlyShorter.effect(),
        TestPick::BuddyFirst.effect(),
        WokenBuddy::EarlierDeadline.effect(),
    ]),
    change("7dadeaa6e851", "lazy-by-default", (7, 0), "sched: Further restrict the preemption modes", &[
        Reschedule::Lazily.effect(),
        // Where there is lazy preemption there is no other kernel than a preemptible one.
        Effect::Balance(BalanceEffect::NewidlePull(NewidlePull::OneTask)),
    ]),
    change("80390ead2080", "own-protection-field", (7, 0), "sched/fair: Separate se->vlag from se->vprot", &[
        ReweightProtection::Stays.effect(),
    ]),
    change("b3d99f43c72b", "zero-tracking", (7, 0), "sched/fair: Fix zero_vruntime tracking", &[
        VirtualZero::AverageAtTick.effect(),
    ]),
    change("bcd74b2ffdd0", "protect-at-pick", (7, 0), "sched/fair: Only set slice protection at pick time", &[
        ProtectionStart::Pick.effect(),
    ]),
    change("ff38424030f9", "protection-scales", (7, 0), "sched/eevdf: Update se->vprot in reweight_entity()", &[
        ReweightProtection::Scales.effect(),
    ]),
    change("6e3c0a4e1ad1", "lag-clamp", (7, 0), "sched/fair: Fix lag clamp", &[
        LagLimit::LargestRequest.effect(),
    ]),
    change("1319ea57529e", "zero-tracking-fix", (7, 0), "sched/fair: Fix zero_vruntime tracking fix", &[
        VirtualZero::Average.effect(),
    ]),
    change("558c18d3fbb6", "hrtick-duration", (7, 1), "sched/eevdf: Fix HRTICK duration", &[
        Effect::NotModelled(HRTICK_BEFORE),
    ]),
    change("97015376642f", "hrtick-update", (7, 1), "sched/fair: Simplify hrtick_update()", &[
        Effect::NotModelled(HRTICK_BEFORE),
    ]),
    change("5d88e424ec1b", "hrtick-hard", (7, 1), "sched/fair: Make hrtick resched hard", &[
        Effect::NotModelled(HRTICK_BEFORE),
    ]),
    change("c8cdb9b51640", "hrtick-tiny", (7, 1), "sched/hrtick: Avoid tiny hrtick rearms", &[
        Effect::NotModelled(HRTICK_BEFORE),
    ]),
    change("9213aa4784cf", "hrtick", (7, 1), "sched: Default enable HRTICK when deferred rearming is enabled", &[
        Hrtick::UntilDeadline.effect(),
        Effect::SetFeature(Feature::Hrtick, true),
    ]),
    change("db4551e2ba34", "whole-weight", (7, 1), "sched/fair: Use full weight to __calc_delta()", &[
        Arithmetic::WholeWeight.effect(),
    ]),
    change("101f3498b4bd", "no-place-anew", (7, 1), "sched/fair: Revert 6d71a9c61604", &[
        Reweight::ScaleAllAroundAverage.effect(),
    ]),
    change("059258b0d424", "delayed-lag", (7, 1), "sched/fair: Prevent negative lag increase during delayed dequeue", &[
        DelayedLag::NeverWorse.effect(),
    ]),
    change("ac8e69e69363", "test-dequeues-delayed", (7, 1), "sched/fair: Fix wakeup_preempt_fair() vs delayed dequeue", &[
        DelayedInTest::Leaves.effect(),
    ]),
    change("8f97b627ff1c", "short-buddy", (7, 3), "sched/fair: Set next buddy for preempt short", &[
        Effect::Preemption(PreemptionEffect::ShortBuddy(ShortBuddy::Shortest)),
    ]),
    change("49f87b4d0be8", "protection-by-lag", (7, 3), "sched/eevdf: Take into account current's lag when updating slice protection", &[
        Effect::Preemption(PreemptionEffect::ProtectionUpdate(ProtectionUpdate::AverageIfEarlier)),
    ]),
    change("7ad0ec7890b3", "test-while-pending", (7, 3), "sched/eevdf: Update slice protection even when resched is already set", &[
        Effect::Preemption(PreemptionEffect::PendingTest(PendingTest::GoesOn)),
    ]),
    change("ba0d3bf5f97b", "short-eligible", (7, 3), "sched/eevdf: Cancel slice protection if short slice task is eligible", &[
        Effect::Preemption(PreemptionEffect::ShortTest(ShortTest::PickedOrEligible)),
    ]),
    change("7cd2ef17de5e", "always-update-protection", (7, 3), "sched/eevdf: Always update slice protection", &[
        Effect::Preemption(PreemptionEffect::FailedTest(FailedTest::Any)),
    ]),
    change("0d1e7a2bab35", "protect-while-eligible", (7, 3), "sched/eevdf: Speedup short slice task scheduling", &[
        Effect::Preemption(PreemptionEffect::ShorterBeside(ShorterBeside::WhileEligible)),
    ]),
    change("04998aa54848", "delayed-short", (7, 3), "sched/eevdf: Delayed dequeue task can't preempt", &[
        Effect::Preemption(PreemptionEffect::DelayedShort(DelayedShort::Never)),
    ]),
    Change {
        commit: "000000000001",
        name: "scale-deadline-off-rq",
        release: None,
        date: None,
        subject: "counterfactual: reweight_entity() scales the deadline of an entity off its queue, too",
        effects: &[Reweight::ScaleDeadlineAlways.effect()],
    },
];
