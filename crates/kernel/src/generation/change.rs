//! One upstream commit and what it changes, as data.

use std::fmt;

use super::behaviour::{
    Arithmetic, AverageRounding, BuddyClearing, DeadlineUse, DelayedInTest, DelayedLag, EmptyGroup,
    ForkPlacement, ForkPreemption, GovernorHook, Headroom, Hrtick, IoBoost, LagInflation, LagLimit,
    LatencyCount, LonePrioChange, NiceChange, Pick, Placement, ProtectionStart, Request, Reschedule,
    Reweight, ReweightProtection, RtLimit, SliceProtection, TestPick, TickPreemption, VirtualZero,
    WakeupPreemption, WokenBuddy, Yield,
};
use super::date::Date;
use super::log::LOG;
use super::{Feature, Generation, Tunable};
use crate::balance::BalanceEffect;
use crate::domain::DomainEffect;
use crate::fair::PreemptionEffect;
use crate::fair::bandwidth::BandwidthEffect;
use crate::group::GroupEffect;
use crate::pelt::PeltEffect;
use crate::select::SelectEffect;

/// A mainline release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(pub u32, pub u32);

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}", self.0, self.1)
    }
}

/// One commit of the change log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The upstream commit's id, abbreviated to twelve digits; empty where only the release is known.
    pub commit: &'static str,
    /// A short name for use in generation names.
    pub name: &'static str,
    /// The first release that holds it; `None` for a patch that was never merged.
    pub release: Option<Release>,
    /// When it was committed; `None` for a patch that was never merged.
    pub date: Option<Date>,
    /// The commit's subject line.
    pub subject: &'static str,
    /// What it changes, in order.
    pub effects: &'static [Effect],
    /// What it changes in load tracking.
    pub tracking: &'static [PeltEffect],
}

/// What a commit changes in a [`Generation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A feature appears, on or off by default.
    AddFeature(Feature, bool),
    /// A feature's default changes.
    SetFeature(Feature, bool),
    /// A feature and the code behind it go away.
    RemoveFeature(Feature),
    /// A tunable appears, with its normalised value in ns.
    AddTunable(Tunable, u64),
    /// A tunable goes away.
    RemoveTunable(Tunable),
    /// Another rule for placement.
    Placement(Placement),
    /// Another rule for the pick.
    Pick(Pick),
    /// Another rule for preemption by the tick.
    TickPreemption(TickPreemption),
    /// Another rule for preemption by wakeups.
    WakeupPreemption(WakeupPreemption),
    /// Another rule for `sched_yield`.
    Yield(Yield),
    /// Another rule for when buddies are cleared.
    BuddyClearing(BuddyClearing),
    /// Another rule for changes of weight.
    Reweight(Reweight),
    /// Another rule for what changes of weight leave of protections.
    ReweightProtection(ReweightProtection),
    /// Another arithmetic.
    Arithmetic(Arithmetic),
    /// Another protection of the running entity.
    SliceProtection(SliceProtection),
    /// Another beginning of that protection.
    ProtectionStart(ProtectionStart),
    /// Another way to ask the running task to make way.
    Reschedule(Reschedule),
    /// Another pick in tests for preemption.
    TestPick(TestPick),
    /// Another rule for whom wakeups make preferred.
    WokenBuddy(WokenBuddy),
    /// Another treatment of delayed sleepers by tests for preemption.
    DelayedInTest(DelayedInTest),
    /// Another weight for empty groups.
    EmptyGroup(EmptyGroup),
    /// Another treatment of delayed sleepers.
    DelayedLag(DelayedLag),
    /// Another rule for preemption by new tasks.
    ForkPreemption(ForkPreemption),
    /// Another rule for the inflation of lag.
    LagInflation(LagInflation),
    /// Another limit for lag.
    LagLimit(LagLimit),
    /// Another rounding of averages.
    AverageRounding(AverageRounding),
    /// Another virtual zero.
    VirtualZero(VirtualZero),
    /// Another place for new tasks.
    ForkPlacement(ForkPlacement),
    /// Another size of requests.
    Request(Request),
    /// Another use of the deadline class's time.
    DeadlineUse(DeadlineUse),
    /// Another place for headroom.
    Headroom(Headroom),
    /// Another boost after I/O to begin with.
    IoBoost(IoBoost),
    /// Another limit of real-time tasks.
    RtLimit(RtLimit),
    /// Another end of slices by a timer.
    Hrtick(Hrtick),
    /// Another answer to a new nice level.
    NiceChange(NiceChange),
    /// Another answer to a lone task's new priority.
    LonePrioChange(LonePrioChange),
    /// Another [`LatencyCount`].
    LatencyCount(LatencyCount),
    /// Another hook for governors.
    GovernorHook(GovernorHook),
    /// Another rule for balancing.
    Balance(BalanceEffect),
    /// Another rule for scheduling domains.
    Domain(DomainEffect),
    /// Another rule of wakeups and CPU selection.
    Select(SelectEffect),
    /// Another rule for groups and their tasks.
    Group(GroupEffect),
    /// Another rule of tests for preemption.
    Preemption(PreemptionEffect),
    /// Another rule of bandwidth control.
    Bandwidth(BandwidthEffect),
    /// The commit alters no decision, by what it is; the text says why.
    Groundwork(&'static str),
    /// The commit matters, and the model does not follow it; the text says what is left out.
    NotModelled(&'static str),
}

impl Effect {
    /// Changes `generation`.
    pub(super) fn apply(self, generation: &mut Generation) {
        let behaviours = &mut generation.behaviours;
        match self {
            Effect::AddFeature(feature, enabled) => {
                generation.features = generation.features.with(feature, enabled);
            }
            Effect::RemoveFeature(feature) => generation.features.remove(feature),
            Effect::AddTunable(tunable, normalised) => generation.tunables.define(tunable, normalised),
            Effect::RemoveTunable(tunable) => generation.tunables.remove(tunable),
            Effect::Placement(rule) => behaviours.placement = rule,
            Effect::Pick(rule) => behaviours.pick = rule,
            Effect::TickPreemption(rule) => behaviours.tick_preemption = rule,
            Effect::WakeupPreemption(rule) => behaviours.wakeup_preemption = rule,
            Effect::Yield(rule) => behaviours.yielding = rule,
            Effect::SetFeature(feature, enabled) => generation.features.set(feature, enabled),
            Effect::BuddyClearing(rule) => behaviours.buddy_clearing = rule,
            Effect::Reweight(rule) => behaviours.reweight = rule,
            Effect::ReweightProtection(rule) => behaviours.reweight_protection = rule,
            Effect::Arithmetic(rule) => behaviours.arithmetic = rule,
            Effect::SliceProtection(rule) => behaviours.slice_protection = rule,
            Effect::ProtectionStart(rule) => behaviours.protection_start = rule,
            Effect::Reschedule(rule) => behaviours.reschedule = rule,
            Effect::TestPick(rule) => behaviours.test_pick = rule,
            Effect::WokenBuddy(rule) => behaviours.woken_buddy = rule,
            Effect::DelayedInTest(rule) => behaviours.delayed_in_test = rule,
            Effect::EmptyGroup(rule) => behaviours.empty_group = rule,
            Effect::DelayedLag(rule) => behaviours.delayed_lag = rule,
            Effect::ForkPreemption(rule) => behaviours.fork_preemption = rule,
            Effect::LagInflation(rule) => behaviours.lag_inflation = rule,
            Effect::LagLimit(rule) => behaviours.lag_limit = rule,
            Effect::AverageRounding(rule) => behaviours.average_rounding = rule,
            Effect::VirtualZero(rule) => behaviours.virtual_zero = rule,
            Effect::ForkPlacement(rule) => behaviours.fork_placement = rule,
            Effect::Request(rule) => behaviours.request = rule,
            Effect::Headroom(rule) => behaviours.headroom = rule,
            Effect::DeadlineUse(rule) => behaviours.deadline_use = rule,
            Effect::IoBoost(rule) => behaviours.io_boost = rule,
            Effect::Hrtick(rule) => behaviours.hrtick = rule,
            Effect::RtLimit(rule) => behaviours.rt_limit = rule,
            Effect::NiceChange(rule) => behaviours.nice_change = rule,
            Effect::LonePrioChange(rule) => behaviours.lone_prio_change = rule,
            Effect::LatencyCount(rule) => behaviours.latency_count = rule,
            Effect::GovernorHook(rule) => behaviours.governor_hook = rule,
            Effect::Balance(effect) => effect.apply(&mut generation.balance),
            Effect::Domain(effect) => effect.apply(&mut generation.domain),
            Effect::Select(effect) => effect.apply(&mut generation.select),
            Effect::Group(effect) => effect.apply(&mut generation.groups),
            Effect::Preemption(effect) => effect.apply(&mut generation.preemption),
            Effect::Bandwidth(effect) => effect.apply(&mut generation.bandwidth),
            Effect::Groundwork(_) | Effect::NotModelled(_) => {}
        }
    }
}

impl Change {
    /// Whether any effect changes a decision of the model.
    pub fn is_modelled(&self) -> bool {
        let alters = |effect: &Effect| !matches!(effect, Effect::NotModelled(_));
        self.groundwork().is_none() && (!self.tracking.is_empty() || self.effects.iter().any(alters))
    }

    /// Why it alters no decision, if it is of that kind.
    pub fn groundwork(&self) -> Option<&'static str> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Groundwork(why) => Some(*why),
            _ => None,
        })
    }

    /// Commits of earlier releases that were made later: its own tree lacks them, and the line of the log has them before it.
    ///
    /// A fix goes into a release while the next one is already under way on another branch.
    pub fn absent_fixes(&self) -> impl Iterator<Item = &'static Change> {
        let (release, date) = (self.release, self.date);
        LOG.iter().filter(move |other| {
            let is_later = |date: Date| other.date.is_some_and(|later| date.is_before(later));
            other.release.is_some() && other.release < release && date.is_some_and(is_later)
        })
    }

    /// Its commit, or its short name where the commit is not known.
    pub fn id(&self) -> &'static str {
        if self.commit.is_empty() { self.name } else { self.commit }
    }

    /// Whether `name` means this change: its short name, or at least seven digits of its id.
    pub fn is_called(&self, name: &str) -> bool {
        let is_id =
            !self.commit.is_empty() && name.len() >= 7 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        name == self.name || (is_id && (self.commit.starts_with(name) || name.starts_with(self.commit)))
    }
}
