//! What each upstream commit changed in load tracking, oldest first, as data for a change log to fold.
//!
//! Must not know: what else these commits changed, and what the rules do.

use super::rules::{
    AttachLoadSum, AttachPoint, ClassChange, DelayedTasks, DetachPoint, GroupDivider, GroupLoadUnchanged,
    GroupRunnableSum, IdleSync, InitialRunnable, InitialUtilWeight, Invariance, LostIdleCheck, MigrationLag,
    PeltRules, QueueDecay, RunnableBoost, RunnableKind, Signal, SumSync, SyncSite, TgContribution, TgTold,
    ThrottleClock, UtilEstCapacity, UtilEstDequeue, UtilEstFlag, UtilEstForm, UtilEstMargin, UtilEstRise,
    UtilEstWaiting,
};

/// One rule that a commit replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeltEffect {
    /// Another [`Invariance`].
    Invariance(Invariance),
    /// Another [`RunnableKind`].
    Runnable(RunnableKind),
    /// Another [`DelayedTasks`].
    DelayedTasks(DelayedTasks),
    /// Another [`IdleSync`].
    IdleSync(IdleSync),
    /// Another [`LostIdleCheck`].
    LostIdleCheck(LostIdleCheck),
    /// Another [`ClassChange`].
    ClassChange(ClassChange),
    /// Another [`ThrottleClock`].
    ThrottleClock(ThrottleClock),
    /// Another [`MigrationLag`].
    MigrationLag(MigrationLag),
    /// Another [`SumSync`] for one signal at one place.
    Sync(SyncSite, Signal, SumSync),
    /// Another [`GroupDivider`].
    GroupDivider(GroupDivider),
    /// Another [`GroupLoadUnchanged`].
    GroupLoadUnchanged(GroupLoadUnchanged),
    /// Another [`GroupRunnableSum`].
    GroupRunnableSum(GroupRunnableSum),
    /// Another [`AttachLoadSum`].
    AttachLoadSum(AttachLoadSum),
    /// Another [`DetachPoint`].
    DetachPoint(DetachPoint),
    /// Another [`AttachPoint`].
    AttachPoint(AttachPoint),
    /// Another [`InitialUtilWeight`].
    InitialUtilWeight(InitialUtilWeight),
    /// Another [`InitialRunnable`].
    InitialRunnable(InitialRunnable),
    /// Another [`TgContribution`].
    TgContribution(TgContribution),
    /// Another [`TgTold`].
    TgTold(TgTold),
    /// Another [`QueueDecay`].
    QueueDecay(QueueDecay),
    /// Another [`RunnableBoost`].
    RunnableBoost(RunnableBoost),
    /// Another [`UtilEstForm`].
    UtilEstForm(UtilEstForm),
    /// Another [`UtilEstFlag`].
    UtilEstFlag(UtilEstFlag),
    /// Another [`UtilEstMargin`].
    UtilEstMargin(UtilEstMargin),
    /// Another [`UtilEstCapacity`].
    UtilEstCapacity(UtilEstCapacity),
    /// Another [`UtilEstWaiting`].
    UtilEstWaiting(UtilEstWaiting),
    /// Another [`UtilEstRise`].
    UtilEstRise(UtilEstRise),
    /// Another [`UtilEstDequeue`].
    UtilEstDequeue(UtilEstDequeue),
}

impl PeltEffect {
    /// Replaces the rule in `rules`.
    pub const fn apply(self, rules: &mut PeltRules) {
        match self {
            PeltEffect::Invariance(rule) => rules.invariance = rule,
            PeltEffect::Runnable(rule) => rules.runnable = rule,
            PeltEffect::DelayedTasks(rule) => rules.delayed_tasks = rule,
            PeltEffect::IdleSync(rule) => rules.idle_sync = rule,
            PeltEffect::LostIdleCheck(rule) => rules.lost_idle_check = rule,
            PeltEffect::ClassChange(rule) => rules.class_change = rule,
            PeltEffect::ThrottleClock(rule) => rules.throttle_clock = rule,
            PeltEffect::MigrationLag(rule) => rules.migration_lag = rule,
            PeltEffect::Sync(site, signal, rule) => rules.set_sync(site, signal, rule),
            PeltEffect::GroupDivider(rule) => rules.group_divider = rule,
            PeltEffect::GroupLoadUnchanged(rule) => rules.group_load_unchanged = rule,
            PeltEffect::GroupRunnableSum(rule) => rules.group_runnable_sum = rule,
            PeltEffect::AttachLoadSum(rule) => rules.attach_load_sum = rule,
            PeltEffect::DetachPoint(rule) => rules.detach_point = rule,
            PeltEffect::AttachPoint(rule) => rules.attach_point = rule,
            PeltEffect::InitialUtilWeight(rule) => rules.initial_util_weight = rule,
            PeltEffect::InitialRunnable(rule) => rules.initial_runnable = rule,
            PeltEffect::TgContribution(rule) => rules.tg_contribution = rule,
            PeltEffect::TgTold(rule) => rules.tg_told = rule,
            PeltEffect::QueueDecay(rule) => rules.queue_decay = rule,
            PeltEffect::RunnableBoost(rule) => rules.runnable_boost = rule,
            PeltEffect::UtilEstForm(rule) => rules.util_est.form = rule,
            PeltEffect::UtilEstFlag(rule) => rules.util_est.flag = rule,
            PeltEffect::UtilEstMargin(rule) => rules.util_est.margin = rule,
            PeltEffect::UtilEstCapacity(rule) => rules.util_est.capacity = rule,
            PeltEffect::UtilEstWaiting(rule) => rules.util_est.waiting = rule,
            PeltEffect::UtilEstRise(rule) => rules.util_est.rise = rule,
            PeltEffect::UtilEstDequeue(rule) => rules.util_est.dequeue = rule,
        }
    }
}

impl PeltEffect {
    /// The new rule in one clause.
    pub const fn describe(self) -> &'static str {
        match self {
            PeltEffect::Invariance(rule) => rule.describe(),
            PeltEffect::Runnable(rule) => rule.describe(),
            PeltEffect::DelayedTasks(rule) => rule.describe(),
            PeltEffect::IdleSync(rule) => rule.describe(),
            PeltEffect::LostIdleCheck(rule) => rule.describe(),
            PeltEffect::ClassChange(rule) => rule.describe(),
            PeltEffect::ThrottleClock(rule) => rule.describe(),
            PeltEffect::MigrationLag(rule) => rule.describe(),
            PeltEffect::Sync(_, _, rule) => rule.describe(),
            PeltEffect::GroupDivider(rule) => rule.describe(),
            PeltEffect::GroupLoadUnchanged(rule) => rule.describe(),
            PeltEffect::GroupRunnableSum(rule) => rule.describe(),
            PeltEffect::AttachLoadSum(rule) => rule.describe(),
            PeltEffect::DetachPoint(rule) => rule.describe(),
            PeltEffect::AttachPoint(rule) => rule.describe(),
            PeltEffect::InitialUtilWeight(rule) => rule.describe(),
            PeltEffect::InitialRunnable(rule) => rule.describe(),
            PeltEffect::TgContribution(rule) => rule.describe(),
            PeltEffect::TgTold(rule) => rule.describe(),
            PeltEffect::QueueDecay(rule) => rule.describe(),
            PeltEffect::RunnableBoost(rule) => rule.describe(),
            PeltEffect::UtilEstForm(rule) => rule.describe(),
            PeltEffect::UtilEstFlag(rule) => rule.describe(),
            PeltEffect::UtilEstMargin(rule) => rule.describe(),
            PeltEffect::UtilEstCapacity(rule) => rule.describe(),
            PeltEffect::UtilEstWaiting(rule) => rule.describe(),
            PeltEffect::UtilEstRise(rule) => rule.describe(),
            PeltEffect::UtilEstDequeue(rule) => rule.describe(),
        }
    }
}

/// One upstream commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeltChange {
    /// Twelve digits of its id; empty where the release that first holds the change is known but not the commit.
    pub commit: &'static str,
    /// A short name.
    pub name: &'static str,
    /// The first release that holds it: major and minor.
    pub release: (u32, u32),
    /// Its subject line; in our words where the commit is not known.
    pub subject: &'static str,
    /// The rules that it replaces.
    pub effects: &'static [PeltEffect],
}

const fn change(
    commit: &'static str,
    name: &'static str,
    release: (u32, u32),
    subject: &'static str,
    effects: &'static [PeltEffect],
) -> PeltChange {
    PeltChange { commit, name, release, subject, effects }
}

/// The same rule for all signals at one place.
macro_rules! sync_all {
    ($site:ident, $rule:ident) => {
        &[
            PeltEffect::Sync(SyncSite::$site, Signal::Load, SumSync::$rule),
            PeltEffect::Sync(SyncSite::$site, Signal::Util, SumSync::$rule),
            PeltEffect::Sync(SyncSite::$site, Signal::Runnable, SumSync::$rule),
        ]
    };
}

/// The same rule for one signal wherever a queue loses it or a group passes it up.
macro_rules! sync_everywhere {
    ($signal:ident, $rule:ident $(, $more:expr)*) => {
        &[
            PeltEffect::Sync(SyncSite::Removed, Signal::$signal, SumSync::$rule),
            PeltEffect::Sync(SyncSite::Detach, Signal::$signal, SumSync::$rule),
            PeltEffect::Sync(SyncSite::Group, Signal::$signal, SumSync::$rule),
            $($more,)*
        ]
    };
}

/// Every change since v4.18 that load tracking, utilization estimates and what a group is told depend on.
#[rustfmt::skip]
pub const PELT_CHANGES: &[PeltChange] = &[
    change("92a801e5d5b7", "util-est-flag-masked", (5, 0), "sched/fair: Mask UTIL_AVG_UNCHANGED usages", &[
        PeltEffect::UtilEstFlag(UtilEstFlag::LowBit),
    ]),
    change("c40f7d74c741", "leaf-list-kept", (5, 0), "sched/fair: Fix infinite loop in update_blocked_averages() by reverting a9e7f6544b9c", &[
        PeltEffect::QueueDecay(QueueDecay::Never),
    ]),
    change("23127296889f", "pelt-clock", (5, 1), "sched/fair: Update scale invariance of PELT", &[
        PeltEffect::Invariance(Invariance::PeltClock),
    ]),
    change("10a35e6812aa", "util-est-capacity", (5, 1), "sched/pelt: Skip updating util_est when utilization is higher than CPU's capacity", &[
        PeltEffect::UtilEstCapacity(UtilEstCapacity::Within),
    ]),
    change("039ae8bcf7a5", "leaf-list-trimmed", (5, 1), "sched/fair: Fix O(nr_cgroups) in the load balancing path", &[
        PeltEffect::QueueDecay(QueueDecay::Sums),
    ]),
    change("9f68395333ad", "runnable-avg", (5, 7), "sched/pelt: Add a new runnable average signal", &[
        PeltEffect::Runnable(RunnableKind::TaskCount),
    ]),
    change("95d685935a2e", "group-divider", (5, 8), "sched/pelt: Sync util/runnable_sum with PELT window when propagating", &[
        PeltEffect::GroupDivider(GroupDivider::WithinPeriod),
    ]),
    change("68f7b5cc835d", "initial-runnable", (5, 8), "sched/cfs: change initial value of runnable_avg", &[
        PeltEffect::InitialRunnable(InitialRunnable::Util),
    ]),
    change("8c1f560c1ea3", "util-est-dequeued-first", (5, 12), "sched/fair: Avoid stale CPU util_est value for schedutil in task dequeue", &[
        PeltEffect::UtilEstDequeue(UtilEstDequeue::Around),
    ]),
    change("b89997aa88f0", "util-est-large-step", (5, 13), "sched/pelt: Fix task util_est update filtering", &[
        PeltEffect::UtilEstMargin(UtilEstMargin::KeepLargeStep),
    ]),
    change("7c7ad626d9a0", "group-load-synced", (5, 13), "sched/fair: Keep load_avg and load_sum synced", &[
        PeltEffect::Sync(SyncSite::Group, Signal::Load, SumSync::FromAverage),
    ]),
    change("fcf6631f3736", "detach-synced", (5, 13), "sched/pelt: Ensure that *_sum is always synced with *_avg", &[
        PeltEffect::Sync(SyncSite::Detach, Signal::Util, SumSync::FromAverage),
        PeltEffect::Sync(SyncSite::Detach, Signal::Runnable, SumSync::FromAverage),
    ]),
    change("68d7a190682a", "util-est-high-flag", (5, 13), "sched/fair: Fix util_est UTIL_AVG_UNCHANGED handling", &[
        PeltEffect::UtilEstFlag(UtilEstFlag::HighBit),
    ]),
    change("fdaba61ef8a2", "leaf-list-children", (5, 13), "sched/fair: Ensure that the CFS parent is added after unthrottling", &[
        PeltEffect::QueueDecay(QueueDecay::NoChild),
    ]),
    change("83c5e9d573e1", "group-load-early-return", (5, 14), "sched/fair: Return early from update_tg_cfs_load() if delta == 0", &[
        PeltEffect::GroupLoadUnchanged(GroupLoadUnchanged::StopAfterSum),
    ]),
    change("fecfcbc288e9", "class-change-runtime", (5, 14), "sched/rt: Fix RT utilization tracking during policy change", &[
        PeltEffect::ClassChange(ClassChange::CountsAfter),
    ]),
    change("1c35b07e6d39", "removed-synced", (5, 14), "sched/fair: Ensure _sum and _avg values stay consistent", sync_all!(Removed, FromAverage)),
    change("ceb6ba45dc80", "dequeue-load-synced", (5, 14), "sched/fair: Sync load_sum with load_avg after dequeue", &[
        PeltEffect::Sync(SyncSite::Detach, Signal::Load, SumSync::FromAverage),
    ]),
    change("98b0d890220d", "removed-util-floor", (5, 17), "sched/pelt: Relax the sync of util_sum with util_avg", &[
        PeltEffect::Sync(SyncSite::Removed, Signal::Util, SumSync::FlooredNarrow),
    ]),
    change("7ceb77103001", "util-floor", (5, 17), "sched/pelt: Continue to relax the sync of util_sum with util_avg", &[
        PeltEffect::Sync(SyncSite::Detach, Signal::Util, SumSync::FlooredNarrow),
        PeltEffect::Sync(SyncSite::Group, Signal::Util, SumSync::FlooredNarrow),
    ]),
    change("95246d1ec80b", "runnable-floor", (5, 17), "sched/pelt: Relax the sync of runnable_sum with runnable_avg",
        sync_everywhere!(Runnable, FlooredNarrow, PeltEffect::GroupRunnableSum(GroupRunnableSum::Narrow))),
    change("2d02fa8cc21a", "load-floor", (5, 17), "sched/pelt: Relax the sync of load_sum with load_avg",
        sync_everywhere!(Load, FlooredNarrow, PeltEffect::GroupLoadUnchanged(GroupLoadUnchanged::StopBeforeSum))),
    change("40f5aa4c5eae", "attach-at-least-one", (5, 18), "sched/pelt: Fix attach_entity_load_avg() corner case", &[
        PeltEffect::AttachLoadSum(AttachLoadSum::AtLeastOne),
    ]),
    change("64eaf50731ac", "throttled-pelt-clock", (5, 19), "sched/fair: Fix cfs_rq_clock_pelt() for throttled cfs_rq", &[
        PeltEffect::ThrottleClock(ThrottleClock::Pelt),
    ]),
    change("e2f3e35f1f5a", "migration-lag", (6, 0), "sched/fair: Decay task PELT values during wakeup migration", &[
        PeltEffect::MigrationLag(MigrationLag::Estimated),
        PeltEffect::IdleSync(IdleSync::WhenIdling),
    ]),
    change("e1f078f50478", "detach-at-dequeue", (6, 1), "sched/fair: Combine detach into dequeue when migrating task", &[
        PeltEffect::DetachPoint(DetachPoint::Dequeue),
    ]),
    change("d6531ab6e501", "attach-at-enqueue", (6, 1), "sched/fair: Move task sched_avg attach to enqueue_task_fair()", &[
        PeltEffect::AttachPoint(AttachPoint::FirstEnqueue),
    ]),
    change("7d0583cf9ec7", "runnable-boost", (6, 5), "sched/fair, cpufreq: Introduce 'runnable boosting'", &[
        PeltEffect::RunnableBoost(RunnableBoost::Estimate),
    ]),
    change("c2e164ac33f7", "no-util-est-boost", (6, 6), "sched/fair: remove util_est boosting", &[
        PeltEffect::RunnableBoost(RunnableBoost::Util),
    ]),
    change("1528c661c24b", "tg-load-ratelimit", (6, 7), "sched/fair: Ratelimit update to tg->load_avg", &[
        PeltEffect::TgContribution(TgContribution::OncePerMillisecond),
    ]),
    change("50181c0cff31", "util-est-waiting", (6, 8), "sched/pelt: Avoid underestimation of task utilization", &[
        PeltEffect::UtilEstWaiting(UtilEstWaiting::Skipped),
    ]),
    change("7736ae5572eb", "util-est-rise", (6, 8), "sched/fair: Remove SCHED_FEAT(UTIL_EST_FASTUP, true)", &[
        PeltEffect::UtilEstRise(UtilEstRise::AtOnce),
    ]),
    change("11137d384996", "util-est-ewma", (6, 8), "sched/fair: Simplify util_est", &[
        PeltEffect::UtilEstForm(UtilEstForm::EwmaOnly),
    ]),
    change("72bffbf57c52", "initial-util-weight", (6, 10), "sched/fair: Fix initial util_avg calculation", &[
        PeltEffect::InitialUtilWeight(InitialUtilWeight::ScaledDown),
    ]),
    change("76f2f783294d", "delayed-not-runnable", (6, 13), "sched/eevdf: More PELT vs DELAYED_DEQUEUE", &[
        PeltEffect::DelayedTasks(DelayedTasks::NotRunnable),
    ]),
    change("f2d650618bc7", "util-est-any-capacity", (6, 16), "sched/fair: Allow decaying util_est when util_avg > CPU capa", &[
        PeltEffect::UtilEstCapacity(UtilEstCapacity::Any),
    ]),
    change("17e3e88ed0b6", "lost-idle", (6, 18), "sched/fair: Fix pelt lost idle time detection", &[
        PeltEffect::LostIdleCheck(LostIdleCheck::EveryIdling),
    ]),
    change("ca125231dd29", "stalled-contribution", (6, 19), "sched/fair: Fix unfairness caused by stalled tg_load_avg_contrib when the last task migrates out", &[
        PeltEffect::QueueDecay(QueueDecay::NoContribution),
    ]),
    change("089d84203ad4", "sched-avg-fold", (7, 0), "sched/fair: Fold the sched_avg update", &[
        PeltEffect::Sync(SyncSite::Attach, Signal::Load, SumSync::Floored),
        PeltEffect::Sync(SyncSite::Detach, Signal::Load, SumSync::Floored),
        PeltEffect::Sync(SyncSite::Detach, Signal::Util, SumSync::Floored),
        PeltEffect::Sync(SyncSite::Detach, Signal::Runnable, SumSync::Floored),
        PeltEffect::Sync(SyncSite::Removed, Signal::Load, SumSync::Floored),
        PeltEffect::Sync(SyncSite::Removed, Signal::Util, SumSync::Floored),
        PeltEffect::Sync(SyncSite::Removed, Signal::Runnable, SumSync::Floored),
        PeltEffect::Sync(SyncSite::Group, Signal::Load, SumSync::Floored),
        PeltEffect::Sync(SyncSite::Group, Signal::Util, SumSync::Floored),
        PeltEffect::Sync(SyncSite::Group, Signal::Runnable, SumSync::Floored),
    ]),
    change("29922fdfc2a4", "boost-with-task", (7, 2), "sched/fair: Fix cpu_util runnable_avg arithmetic", &[
        PeltEffect::RunnableBoost(RunnableBoost::WithTask),
    ]),
    change("4f166adb5cb0", "group-runnable-wide", (7, 3), "sched/fair: Fix overflow in update_tg_cfs_runnable()", &[
        PeltEffect::GroupRunnableSum(GroupRunnableSum::Wide),
    ]),
    change("5c0b58bd1c9f", "told-runnable", (7, 3), "sched/fair: Add cgroup_mode: concur", &[
        PeltEffect::TgTold(TgTold::LoadAndRunnable),
    ]),
];

impl PeltRules {
    /// The rules of a release, with commits that were ported back to it, by id or name.
    ///
    /// Changes are applied in the order of [`PELT_CHANGES`].
    pub fn of_release(release: (u32, u32), back_ports: &[&str]) -> PeltRules {
        let mut rules = PeltRules::BASE;
        for change in PELT_CHANGES {
            let ported = back_ports.iter().any(|port| *port == change.commit || *port == change.name);
            if change.release <= release || ported {
                change.effects.iter().for_each(|effect| effect.apply(&mut rules));
            }
        }
        rules
    }

    /// Linux 5.10.223 as Debian 11 builds it: what of the above was ported back to v5.10.
    pub const DEBIAN_5_10: &'static [&'static str] = &[
        "8c1f560c1ea3",
        "b89997aa88f0",
        "7c7ad626d9a0",
        "fcf6631f3736",
        "68d7a190682a",
        "fecfcbc288e9",
        "1c35b07e6d39",
        "98b0d890220d",
        "40f5aa4c5eae",
        "64eaf50731ac",
    ];

    /// Linux 5.15.0-204 as Ubuntu 22.04 builds it.
    pub const UBUNTU_5_15: &'static [&'static str] =
        &["98b0d890220d", "40f5aa4c5eae", "64eaf50731ac", "1528c661c24b"];

    /// Linux 5.17.0-1035 as Ubuntu 22.04 builds it for new machines.
    pub const UBUNTU_5_17: &'static [&'static str] = &["40f5aa4c5eae", "64eaf50731ac"];

    /// Linux 6.1.192 as Debian 12 builds it.
    pub const DEBIAN_6_1: &'static [&'static str] = &["17e3e88ed0b6", "group-runnable-wide"];

    /// Linux 6.12.107 as Debian 13 builds it.
    pub const DEBIAN_6_12: &'static [&'static str] =
        &["76f2f783294d", "17e3e88ed0b6", "ca125231dd29", "boost-with-task"];

    /// Linux 6.5.13 as Ubuntu 23.10 builds it.
    pub const UBUNTU_6_5: &'static [&'static str] = &["c2e164ac33f7", "1528c661c24b"];

    /// Linux 7.2.13 as Debian unstable builds it.
    pub const DEBIAN_7_2: &'static [&'static str] = &["4f166adb5cb0"];

    /// Linux 6.8.12 as Ubuntu 24.04 builds it.
    pub const UBUNTU_6_8: &'static [&'static str] =
        &["17e3e88ed0b6", "ca125231dd29", "boost-with-task", "4f166adb5cb0"];

    /// Linux 7.0.14 as Ubuntu 26.04 builds it.
    pub const UBUNTU_7_0: &'static [&'static str] = &["boost-with-task", "4f166adb5cb0"];

    /// Linux 6.17.13 as Ubuntu 25.10 builds it.
    pub const UBUNTU_6_17: &'static [&'static str] = &["17e3e88ed0b6", "ca125231dd29"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::LOG;

    #[test]
    fn commits_are_in_the_order_of_the_log_and_unlike() {
        let of_log = LOG.iter().filter(|change| !change.tracking.is_empty()).map(|change| change.name);
        assert!(PELT_CHANGES.iter().map(|change| change.name).eq(of_log));
        for (index, change) in PELT_CHANGES.iter().enumerate() {
            assert!(change.commit.is_empty() || change.commit.len() == 12, "{}", change.name);
            for other in &PELT_CHANGES[..index] {
                assert!(other.name != change.name);
                assert!(other.commit.is_empty() || other.commit != change.commit, "{}", change.name);
            }
        }
    }

    #[test]
    fn every_commit_changes_a_rule_where_it_stands() {
        let mut rules = PeltRules::BASE;
        for change in PELT_CHANGES {
            let before = rules;
            change.effects.iter().for_each(|effect| effect.apply(&mut rules));
            assert_ne!(before, rules, "{}", change.name);
        }
    }

    #[test]
    fn releases_and_builds() {
        let plain = |major, minor| PeltRules::of_release((major, minor), &[]);
        assert_eq!(plain(4, 18), PeltRules::BASE);
        assert_eq!(plain(5, 0).invariance, Invariance::Contribution);
        assert_eq!(plain(5, 6).runnable, RunnableKind::LoadWeighted);
        assert_eq!(plain(5, 7).group_divider, GroupDivider::Maximum);
        let debian = PeltRules::of_release((5, 10), PeltRules::DEBIAN_5_10);
        assert_eq!(debian.removed.load, SumSync::FromAverage);
        assert_eq!(debian.removed.util, SumSync::FlooredNarrow);
        assert_eq!(debian.detach.load, SumSync::Difference, "dequeue_load_avg() was left as it was");
        assert_eq!(debian.detach.util, SumSync::FromAverage);
        assert_eq!(debian.group_load_unchanged, GroupLoadUnchanged::Continue);
        assert_eq!(debian.util_est.flag, UtilEstFlag::HighBit);
        assert_eq!(
            PeltRules::of_release((6, 12), PeltRules::DEBIAN_6_12).group_runnable_sum,
            GroupRunnableSum::Narrow
        );
    }
}
