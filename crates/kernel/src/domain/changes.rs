//! What upstream commits changed in how domains are built, oldest first, as data for the change log to fold.
//!
//! Must not know: what the rules do.

use super::rules::{
    AsymDetection, AsymSpreading, AsymWakeup, BusyFactor, Clusters, DomainEffect, FilesPlace, FilesShown,
    FlagsShown, GroupFlags, ImbalancePct, LoadBalanceFlag, NeedsGroups, NumaImbalance, NumaLevels,
    OverlapCapacity, OverlapFlag, OverlapGroups, PackageName, PackingLevels, ReclaimDistance,
    SchedstatLayout, SiblingPriority, SmtCapacity, SmtLevel,
};
use crate::generation::{Change, Effect, change};

/// Every change since v4.18 to how domains are built and shown.
#[rustfmt::skip]
pub const DOMAIN_CHANGES: &[Change] = &[
    change("05484e098448", "asym-detection", (4, 20), "sched/topology: Add SD_ASYM_CPUCAPACITY flag detection", &[
        Effect::Domain(DomainEffect::AsymDetection(AsymDetection::LowestLevel)),
    ]),
    change("9c63e84db29b", "asym-no-sibling", (4, 20), "sched/core: Disable SD_PREFER_SIBLING on asymmetric CPU capacity domains", &[
        Effect::Domain(DomainEffect::AsymSpreading(AsymSpreading::NotBelow)),
    ]),
    change("765d0af19f5f", "no-smt-gain", (5, 0), "sched/topology: Remove the ::smt_gain field from 'struct sched_domain'", &[
        Effect::Domain(DomainEffect::SmtCapacity(SmtCapacity::Full)),
    ]),
    change("a55c7454a8c8", "reclaim-distance", (5, 4), "sched/topology: Improve load balancing on AMD EPYC systems", &[
        Effect::Domain(DomainEffect::ReclaimDistance(ReclaimDistance::ByPlatform)),
    ]),
    change("4c58f57fa6e9", "overlap-capacity", (5, 6), "sched/fair: Fix sgc->{min,max}_capacity calculation for SD_OVERLAP", &[
        Effect::Domain(DomainEffect::OverlapCapacity(OverlapCapacity::EachCpu)),
    ]),
    change("a526d466798d", "asym-no-balance-wake", (5, 7), "sched/topology: Remove SD_BALANCE_WAKE on asymmetric capacity systems", &[
        Effect::Domain(DomainEffect::AsymWakeup(AsymWakeup::Ignores)),
    ]),
    change("36c5bdc43870", "no-load-balance-flag", (5, 8), "sched/topology: Kill SD_LOAD_BALANCE", &[
        Effect::Domain(DomainEffect::LoadBalanceFlag(LoadBalanceFlag::Gone)),
        Effect::Domain(DomainEffect::FlagsShown(FlagsShown::NumberFromNewidle)),
    ]),
    change("5b9f8ff7b320", "flag-names", (5, 10), "sched/debug: Output SD flag names rather than their values", &[
        Effect::Domain(DomainEffect::FlagsShown(FlagsShown::PackageNames)),
    ]),
    change("c200191d4c2c", "asym-upwards", (5, 10), "sched/topology: Propagate SD_ASYM_CPUCAPACITY upwards", &[
        Effect::Domain(DomainEffect::AsymDetection(AsymDetection::FromLowestLevel)),
    ]),
    change("6f349818621d", "needs-groups", (5, 10), "sched/topology: Use prebuilt SD flag degeneration mask", &[
        Effect::Domain(DomainEffect::NeedsGroups(NeedsGroups::AllButWakeAffine)),
    ]),
    change("2208cdaa56c9", "minimal-imbalance", (5, 10), "sched/fair: Reduce minimal imbalance threshold", &[
        Effect::Domain(DomainEffect::ImbalancePct(ImbalancePct::Sixth)),
    ]),
    change("6e7499135db7", "busy-factor", (5, 10), "sched/fair: Reduce busy load balance interval", &[
        Effect::Domain(DomainEffect::BusyFactor(BusyFactor::Sixteen)),
    ]),
    change("620a6dc40754", "numa-levels", (5, 12), "sched/topology: Make sched_init_numa() use a set for the deduplicating sort", &[
        Effect::Domain(DomainEffect::NumaLevels(NumaLevels::All)),
    ]),
    change("585b6d2723dc", "numa-groups", (5, 13), "sched/topology: fix the issue groups don't span domain->span for NUMA diameter > 2", &[
        Effect::Domain(DomainEffect::OverlapGroups(OverlapGroups::WithinSpan)),
    ]),
    change("3b87f136f8fc", "domains-in-debugfs", (5, 13), "sched,debug: Convert sysctl sched_domains to debugfs", &[
        Effect::Domain(DomainEffect::FilesPlace(FilesPlace::Debugfs)),
    ]),
    change("c744dc4ab58d", "asym-classes", (5, 14), "sched/topology: Rework CPU capacity asymmetry detection", &[
        Effect::Domain(DomainEffect::AsymDetection(AsymDetection::EachDomain)),
    ]),
    change("183b8ec38f1e", "sibling-priority", (5, 16), "x86/sched: Decrease further the priorities of SMT siblings", &[
        Effect::Domain(DomainEffect::SiblingPriority(SiblingPriority::DividedBySquare)),
    ]),
    change("16d364ba6ef2", "group-flags", (5, 16), "sched/topology: Introduce sched_group::flags", &[
        Effect::Domain(DomainEffect::GroupFlags(GroupFlags::OfBuiltChild)),
    ]),
    change("778c558f49a2", "cluster-level", (5, 16), "sched: Add cluster scheduler level in core and related Kconfig for ARM64", &[
        Effect::Domain(DomainEffect::Clusters(Clusters::Level)),
    ]),
    change("026b98a93bbd", "numa-imbalance-channels", (6, 0), "sched/numa: Adjust imb_numa_nr to a better approximation of memory channels", &[
        Effect::Domain(DomainEffect::NumaImbalance(NumaImbalance::EighthOrLlcs)),
    ]),
    change("995998ebdebd", "packing-cores-only", (6, 5), "x86/sched: Remove SD_ASYM_PACKING from the SMT domain flags", &[
        Effect::Domain(DomainEffect::PackingLevels(PackingLevels::Cores)),
    ]),
    change("046a5a95c3b0", "core-priority", (6, 5), "x86/sched/itmt: Give all SMT siblings of a core the same priority", &[
        Effect::Domain(DomainEffect::SiblingPriority(SiblingPriority::OfCore)),
    ]),
    change("044f0e27dec6", "packing-packages", (6, 5), "x86/sched: Add the SD_ASYM_PACKING flag to the die domain of hybrid processors", &[
        Effect::NotModelled("packing of tasks beyond one cache"),
    ]),
    change("bf2dc42d6beb", "group-smt-flag", (6, 5), "sched/topology: Propagate SMT flags when removing degenerate domain", &[
        Effect::Domain(DomainEffect::GroupFlags(GroupFlags::SmtKept)),
    ]),
    change("ed74cc4995d3", "show-group-flags", (6, 6), "sched/debug: Dump domains' sched group flags", &[
        Effect::Domain(DomainEffect::FilesShown(FilesShown::WithGroupFlags)),
    ]),
    change("4efcc8bc7e08", "group-flags-aligned", (6, 6), "sched/topology: Align group flags when removing degenerate domain", &[
        Effect::Domain(DomainEffect::GroupFlags(GroupFlags::OfPresentChild)),
    ]),
    change("f577cd57bfaa", "pkg-name", (6, 7), "sched/topology: Rename 'DIE' domain to 'PKG'", &[
        Effect::Domain(DomainEffect::PackageName(PackageName::Pkg)),
    ]),
    change("b95303e0aeaf", "cluster-flag", (6, 7), "sched: Add cpus_share_resources API", &[
        Effect::Domain(DomainEffect::Clusters(Clusters::Flagged)),
    ]),
    change("54de44274703", "share-llc-name", (6, 9), "sched/topology: Rename SD_SHARE_PKG_RESOURCES to SD_SHARE_LLC", &[
        Effect::Domain(DomainEffect::FlagsShown(FlagsShown::CacheNames)),
    ]),
    change("11b0bfa5d463", "schedstat-16", (6, 10), "sched/debug: Increase SCHEDSTAT_VERSION to 16", &[
        Effect::Domain(DomainEffect::SchedstatLayout(SchedstatLayout::Version16)),
    ]),
    change("287372fa39f5", "show-level", (6, 10), "sched/debug: Dump domains' level", &[
        Effect::Domain(DomainEffect::FilesShown(FilesShown::WithLevel)),
    ]),
    change("7c8cd569ff66", "schedstat-17", (6, 14), "docs: Update Schedstat version to 17", &[
        Effect::Domain(DomainEffect::SchedstatLayout(SchedstatLayout::Version17)),
    ]),
    change("1eec89a67141", "no-overlap-flag", (6, 17), "sched/topology: Remove sched_domain_topology_level::flags", &[
        Effect::Domain(DomainEffect::OverlapFlag(OverlapFlag::Gone)),
    ]),
    change("f79c9aa446d6", "smt-level-if-smt", (6, 17), "x86/smpboot: avoid SMT domain attach/destroy if SMT is not enabled", &[
        Effect::Domain(DomainEffect::SmtLevel(SmtLevel::IfThreads)),
    ]),
    change("f2c2ba7219e5", "asym-sibling-again", (7, 3), "sched/topology: Restore SD_PREFER_SIBLING in domains with asymmetric capacity", &[
        Effect::Domain(DomainEffect::AsymSpreading(AsymSpreading::LikeOthers)),
    ]),
];
