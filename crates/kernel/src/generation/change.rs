//! One upstream commit and what it changes, as data.

use std::fmt;

use super::date::Date;
use super::feature::{Feature, FeatureSupport};
use super::matters_with::{MattersWith, conditions};
use super::tunable::Tunable;
use crate::balance::rules::BalanceEffect;
use crate::core::rules::CoreEffect;
use crate::cpufreq::rules::FrequencyEffect;
use crate::domain::DomainEffect;
use crate::fair::PreemptionEffect;
use crate::fair::bandwidth::BandwidthEffect;
use crate::fair::rules::FairEffect;
use crate::fair_server::rules::ServerEffect;
use crate::group::GroupEffect;
use crate::pelt::PeltEffect;
use crate::rt::rules::RtEffect;
use crate::select::SelectEffect;

/// A mainline release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MainlineRelease(pub u32, pub u32);

impl fmt::Display for MainlineRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}", self.0, self.1)
    }
}

/// One commit of the change log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedCommit {
    /// The upstream commit's id, abbreviated to twelve digits; empty where only the release is known.
    pub commit: &'static str,
    /// A short name for use in generation names.
    pub name: &'static str,
    /// The first release that holds it; `None` for a patch that was never merged.
    pub release: Option<MainlineRelease>,
    /// When it was committed; `None` for a patch that was never merged.
    pub date: Option<Date>,
    /// The commit's subject line.
    pub subject: &'static str,
    /// What it changes, in order.
    pub effects: &'static [ChangeEffect],
}

/// What a commit changes in a [`Generation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeEffect {
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
    /// Another rule of the fair class.
    Fair(FairEffect),
    /// Another rule of frequencies.
    Frequency(FrequencyEffect),
    /// Another rule of what all classes share.
    Core(CoreEffect),
    /// Another rule of the real-time class.
    Rt(RtEffect),
    /// Another rule of the fair server.
    Server(ServerEffect),
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
    /// Another rule of load tracking.
    Pelt(PeltEffect),
    /// The commit alters no decision, by what it is; the text says why.
    Groundwork(&'static str),
    /// The commit alters what no answer here shows, or what no workload here asks of a kernel; the text says what.
    OutOfSight(&'static str),
    /// The commit alters decisions, and the model does not follow it: with what it can matter (all of these; with none it can
    /// anywhere), and what is left out.
    NotModelled(&'static [MattersWith], &'static str),
}

impl ChangeEffect {
    /// Whether the model does not follow it.
    pub fn is_left_out(self) -> bool {
        matches!(self, ChangeEffect::OutOfSight(_) | ChangeEffect::NotModelled(..))
    }

    /// What it does, in a sentence for the log.
    pub fn describe(self) -> String {
        let state = |enabled| if enabled { "on" } else { "off" };
        match self {
            ChangeEffect::AddFeature(feature, enabled) => format!("feature {feature}, {}", state(enabled)),
            ChangeEffect::SetFeature(feature, enabled) => {
                format!("feature {feature}, now {}", state(enabled))
            }
            ChangeEffect::RemoveFeature(feature) => format!("no feature {feature} any more"),
            ChangeEffect::AddTunable(tunable, value) => {
                format!("tunable {} = {value} ns, normalised", tunable.name())
            }
            ChangeEffect::RemoveTunable(tunable) => format!("no tunable {} any more", tunable.name()),
            ChangeEffect::Fair(effect) => effect.describe(),
            ChangeEffect::Frequency(effect) => effect.describe(),
            ChangeEffect::Core(effect) => effect.describe(),
            ChangeEffect::Rt(effect) => effect.describe(),
            ChangeEffect::Server(effect) => effect.describe(),
            ChangeEffect::Balance(effect) => effect.describe(),
            ChangeEffect::Domain(effect) => effect.describe(),
            ChangeEffect::Select(effect) => effect.describe(),
            ChangeEffect::Group(effect) => effect.describe(),
            ChangeEffect::Preemption(effect) => effect.describe(),
            ChangeEffect::Bandwidth(effect) => effect.describe(),
            ChangeEffect::Pelt(effect) => effect.describe(),
            ChangeEffect::Groundwork(why) => format!("no decision changes: {why}"),
            ChangeEffect::OutOfSight(what) => format!("cannot be seen by any answer here: {what}"),
            ChangeEffect::NotModelled(with, what) => {
                format!("would change decisions{}, and is not modelled: {what}", conditions(with))
            }
        }
    }
}

impl LoggedCommit {
    /// Whether any effect changes a decision of the model.
    pub fn is_modelled(&self) -> bool {
        let alters = |effect: &ChangeEffect| match effect {
            ChangeEffect::AddFeature(feature, _)
            | ChangeEffect::SetFeature(feature, _)
            | ChangeEffect::RemoveFeature(feature) => feature.support() != FeatureSupport::NoDecision,
            _ => !effect.is_left_out(),
        };
        self.groundwork().is_none() && self.effects.iter().any(alters)
    }

    /// What of it the model does not follow, if anything.
    pub fn left_out(&self) -> Option<ChangeEffect> {
        self.effects.iter().copied().find(|effect| effect.is_left_out())
    }

    /// Why it alters no decision, if it is of that kind.
    pub fn groundwork(&self) -> Option<&'static str> {
        self.effects.iter().find_map(|effect| match effect {
            ChangeEffect::Groundwork(why) => Some(*why),
            _ => None,
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
