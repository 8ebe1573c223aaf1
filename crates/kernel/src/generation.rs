//! Kernel generations as data: features, tunables and rules, folded from a dated log of changes.
//!
//! Must not know: what the policy code does with them.

mod between;
mod builds;
mod change;
mod date;
mod feature;
mod left_out;
mod log;
mod matters_with;
mod name;
mod preemption;
pub(crate) mod rules;
mod settings;
mod tunable;

pub use crate::core::rules::PreemptionModel;
pub use crate::fair::rules::Placement;
pub use between::GenerationStep;
pub use builds::{BUILDS, DistributionBuild};
pub use change::{ChangeEffect, LoggedCommit, MainlineRelease};
pub use date::{Date, DatedBy};
pub use feature::{Feature, FeatureSet, FeatureSupport};
pub use left_out::LeftOutBetween;
pub use log::LOG;
pub use matters_with::MattersWith;
pub use settings::KernelSettings;
pub use tunable::{Tunable, TunableScaling, Tunables};

use crate::balance::rules::BalanceRules;
use crate::core::rules::CoreRules;
use crate::cpufreq::rules::FrequencyRules;
use crate::domain::DomainRules;
use crate::fair::PreemptionRules;
use crate::fair::bandwidth::{BandwidthRules, PickRestart, ThrottlePoint, Throttling};
use crate::fair::rules::{
    Arithmetic, AverageWeight, DelayedLag, FairEffect, FairRules, Pick, Reweight, TickPreemption,
    WakeupPreemption,
};
use crate::fair_server::rules::ServerRules;
use crate::group::{Competition, GroupRules};
use crate::pelt::PeltRules;
use crate::rt::rules::RtRules;
use crate::select::SelectRules;

/// The rules of one kernel: a release, a state between releases, or a mixture that never was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    name: String,
    /// What `features.h` has.
    pub features: FeatureSet,
    /// What `debug/sched` has, normalised.
    pub tunables: Tunables,
    /// The rules of the fair class.
    pub fair: FairRules,
    /// The rules of frequencies.
    pub frequency: FrequencyRules,
    /// The rules of what all classes share.
    pub core: CoreRules,
    /// The rules of the real-time class.
    pub rt: RtRules,
    /// The rules of the fair server.
    pub server: ServerRules,
    /// The rules of load tracking.
    pub pelt: PeltRules,
    /// The rules of scheduling domains.
    pub domain: DomainRules,
    /// The rules of wakeups and CPU selection.
    pub select: SelectRules,
    /// The rules for groups and their tasks.
    pub groups: GroupRules,
    /// The rules of tests for preemption.
    pub preemption: PreemptionRules,
    /// The rules of bandwidth control.
    pub bandwidth: BandwidthRules,
    /// The rules of balancing.
    pub balance: BalanceRules,
    /// Sessions have groups of their own (`kernel.sched_autogroup_enabled`).
    pub autogroup: bool,
    /// For each change of [`LOG`], whether it is in.
    applied: Vec<bool>,
}

impl Generation {
    /// The name it was asked for by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The changes that it holds, oldest first.
    pub fn changes(&self) -> impl Iterator<Item = &'static LoggedCommit> {
        LOG.iter().zip(&self.applied).filter(|&(_, &applied)| applied).map(|(change, _)| change)
    }

    /// The releases that the log reaches, oldest first.
    pub fn releases() -> Vec<MainlineRelease> {
        log::RELEASES.iter().map(|(release, _)| *release).collect()
    }

    /// The first `length` changes of the log applied to its base: the state of the tree after that commit. With none it is the
    /// first release without those of its commits that the log has.
    pub fn prefix(length: usize) -> Generation {
        let applied = (0..LOG.len()).map(|index| index < length).collect();
        let name = match length.checked_sub(1) {
            None => {
                let (first, commits) = log::RELEASES[0];
                commits.iter().fold(first.to_string(), |name, change| format!("{name}-{}", change.id()))
            }
            Some(last) => LOG[last].id().to_string(),
        };
        Generation::fold(name, applied)
    }

    /// Applies the chosen changes to the base, in the order of history.
    fn fold(name: String, applied: Vec<bool>) -> Generation {
        let mut generation = Generation {
            name,
            features: log::base_features(),
            tunables: log::base_tunables(),
            fair: FairRules::BASE,
            frequency: FrequencyRules::BASE,
            core: CoreRules::BASE,
            rt: RtRules::BASE,
            server: ServerRules::BASE,
            pelt: PeltRules::BASE,
            domain: DomainRules::BASE,
            select: SelectRules::BASE,
            groups: GroupRules::BASE,
            preemption: PreemptionRules::BASE,
            bandwidth: BandwidthRules::BASE,
            balance: BalanceRules::BASE,
            autogroup: false,
            applied,
        };
        let chosen = LOG.iter().zip(generation.applied.clone()).filter(|(_, applied)| *applied);
        for (change, _) in chosen {
            change.effects.iter().for_each(|effect| generation.apply(*effect));
        }
        generation
    }

    /// Rules of bandwidth control that need others.
    fn bandwidth_contradiction(&self) -> Option<String> {
        let rules = self.bandwidth;
        let tasks_leave = rules.throttling == Throttling::TasksAtUserReturn;
        if rules.throttle_point == ThrottlePoint::Accounting && !tasks_leave {
            return Some("throttling when charged needs throttling by tasks (e1fad12dcb66), which this mixture leaves out".to_string());
        }
        if tasks_leave && rules.pick_restart == PickRestart::PutsFirst {
            return Some("throttling by tasks needs a look at every queue at a pick (8e2e13ac6122), which this mixture leaves out".to_string());
        }
        None
    }

    /// One queue for all of a CPU is described in terms of the rules that it was written for.
    fn one_queue_contradiction(&self) -> Option<String> {
        let rules = self.fair;
        let fits = rules.pick == Pick::EarliestEligibleInDeadlineOrder
            && rules.placement == Placement::Lag
            && rules.reweight == Reweight::ScaleAllAroundAverage
            && rules.delayed_lag == DelayedLag::NeverWorse
            && rules.arithmetic == Arithmetic::WholeWeight
            && rules.average_weight == AverageWeight::Whole
            && self.bandwidth.throttle_point == ThrottlePoint::Accounting;
        (self.groups.competition == Competition::OneQueue && !fits).then(|| {
            "one queue for all groups (85570f10a4c6) needs the rules of v7.2, some of which this mixture leaves out"
                .to_string()
        })
    }

    /// Does what a commit does.
    fn apply(&mut self, effect: ChangeEffect) {
        match effect {
            ChangeEffect::AddFeature(feature, enabled) => {
                self.features = self.features.with(feature, enabled);
            }
            ChangeEffect::SetFeature(feature, enabled) => self.features.set(feature, enabled),
            ChangeEffect::RemoveFeature(feature) => self.features.remove(feature),
            ChangeEffect::AddTunable(tunable, normalised) => self.tunables.define(tunable, normalised),
            ChangeEffect::RemoveTunable(tunable) => self.tunables.remove(tunable),
            ChangeEffect::Fair(effect) => effect.apply(&mut self.fair),
            ChangeEffect::Frequency(effect) => effect.apply(&mut self.frequency),
            ChangeEffect::Core(effect) => effect.apply(&mut self.core),
            ChangeEffect::Rt(effect) => effect.apply(&mut self.rt),
            ChangeEffect::Server(effect) => effect.apply(&mut self.server),
            ChangeEffect::Balance(effect) => effect.apply(&mut self.balance),
            ChangeEffect::Domain(effect) => effect.apply(&mut self.domain),
            ChangeEffect::Select(effect) => effect.apply(&mut self.select),
            ChangeEffect::Group(effect) => effect.apply(&mut self.groups),
            ChangeEffect::Preemption(effect) => effect.apply(&mut self.preemption),
            ChangeEffect::Bandwidth(effect) => effect.apply(&mut self.bandwidth),
            ChangeEffect::Pelt(effect) => effect.apply(&mut self.pelt),
            ChangeEffect::Groundwork(_) | ChangeEffect::OutOfSight(_) | ChangeEffect::NotModelled(..) => {}
        }
    }

    /// The change whose rule for changes of weight the last such rule takes the place of, unless that is v6.6's.
    fn replaced_reweight(&self) -> Option<&'static str> {
        let rule = |change: &'static LoggedCommit| {
            change.effects.iter().find_map(|effect| match effect {
                ChangeEffect::Fair(FairEffect::Reweight(rule)) => Some((change.id(), *rule)),
                _ => None,
            })
        };
        let before = self.changes().filter_map(rule).collect::<Vec<_>>().into_iter().rev().nth(1);
        before.filter(|(_, rule)| *rule != Reweight::ScaleDeadline).map(|(id, _)| id)
    }

    /// Why the rules contradict each other, if they do: a rule without the tunable or feature that it is made of.
    fn contradiction(&self) -> Option<String> {
        let needs = |rule: &str, tunables: &[Tunable]| {
            let missing = tunables.iter().find(|&&tunable| !self.tunables.has(tunable))?;
            Some(format!(
                "{rule} needs the tunable {}, which this mixture of changes does not have",
                missing.name()
            ))
        };
        let rules = self.fair;
        let has_lag = matches!(rules.placement, Placement::LagOnWakeup | Placement::Lag);
        if rules.pick.has_deadlines() && !has_lag {
            return Some(
                "EEVDF's pick needs lag placement (86bfbb7ce4f6), which this mixture leaves out".to_string(),
            );
        }
        if rules.reweight == Reweight::ScaleDeadlineAlways
            && let Some(other) = self.replaced_reweight()
        {
            return Some(format!(
                "scale-deadline-off-rq is another reweight_entity() of v6.6, which {other} has replaced"
            ));
        }
        let placement = match rules.placement {
            Placement::MinVruntime | Placement::AverageWithCredit => {
                needs("placement with a sleeper credit", &[Tunable::Latency, Tunable::MinGranularity])
            }
            Placement::LagOnWakeup if self.features.enabled(Feature::FairSleepers) => {
                needs("the sleeper credit", &[Tunable::Latency])
            }
            Placement::LagOnWakeup | Placement::Lag => None,
        };
        let tick = match rules.tick_preemption {
            TickPreemption::Deadline => None,
            _ => needs("preemption by ideal slices", &[Tunable::Latency, Tunable::MinGranularity]),
        };
        let wakeup = match rules.wakeup_preemption {
            WakeupPreemption::Granularity => {
                needs("preemption by granularity", &[Tunable::WakeupGranularity])
            }
            WakeupPreemption::PickDecides => None,
        };
        let slice = match (rules.pick.has_deadlines(), self.tunables.has(Tunable::BaseSlice)) {
            (true, false) => needs("EEVDF's request size", &[Tunable::MinGranularity]),
            _ => None,
        };
        placement
            .or(tick)
            .or(wakeup)
            .or(slice)
            .or(self.bandwidth_contradiction())
            .or(self.one_queue_contradiction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_of_the_log_is_a_kernel() {
        let merged = LOG.iter().filter(|change| change.release.is_some()).count();
        for length in 0..=merged {
            let generation = Generation::prefix(length);
            assert_eq!(generation.contradiction(), None, "after {}", generation.name());
            assert_eq!(generation.changes().count(), length);
        }
    }

    #[test]
    fn every_modelled_change_alters_a_rule_where_it_stands() {
        let merged = LOG.iter().enumerate().filter(|(_, change)| change.release.is_some());
        for (index, change) in merged.filter(|(_, change)| change.is_modelled()) {
            let [before, after] = [index, index + 1].map(Generation::prefix);
            assert!(!before.same_rules(&after), "{}", change.name);
        }
    }

    #[test]
    fn the_log_is_dated_and_its_names_are_unique() {
        for (index, change) in LOG.iter().enumerate() {
            let is_id =
                change.commit.len() == 12 && change.commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_id || change.commit.is_empty(), "{}", change.name);
            assert!(!change.effects.is_empty() && !change.subject.is_empty(), "{}", change.name);
            assert_eq!(
                change.release.is_some(),
                change.date.is_some(),
                "{} is dated, as every merged commit",
                change.name
            );
            let is_known = |release: &MainlineRelease| Generation::releases().contains(release);
            assert!(change.release.as_ref().is_none_or(is_known), "{}", change.commit);
            for earlier in &LOG[..index] {
                assert!(earlier.id() != change.id() && earlier.name != change.name, "{}", change.name);
                assert!(change.release.is_none() || earlier.release <= change.release, "{}", change.commit);
            }
        }
    }
}
