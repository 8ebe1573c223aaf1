//! Every modelled change of the log makes a difference: with it and without it something comes out differently.
//!
//! Random operations show most of them; random balancing or the domains of some machine show others. Each of the rest has a
//! situation. A commit that removes a switch or a tunable makes a difference to kernels in which it was set otherwise.

use crate::Generation;
use crate::fair::{accounting, bandwidth, load, preempt, queue, requests, slice};
use crate::generation::{ChangeEffect, LOG, LoggedCommit, Tunable};
use crate::{balance, cpufreq, pelt, rt, select};

/// What a kernel, by its name, comes to in a situation.
pub(crate) type AblationSituation = fn(&str) -> u64;

/// Where a change makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownBy {
    /// In one of [`situations`], or of load tracking's.
    Situation,
    /// By random operations on one machine: `random_operations.rs`.
    Operations,
    /// By random balancing: `balance/random.rs`.
    Balancing,
    /// By the domains of some machine: `domain/tests.rs`.
    Domains,
}

/// Where a modelled change must make a difference; `None` for one that alters nothing here.
pub(crate) fn place(change: &LoggedCommit) -> Option<ShownBy> {
    // Of load tracking and features, what only balancing goes by.
    const OF_BALANCING: [&str; 4] = ["no-lb-bias", "no-cpu-load", "leaf-list-kept", "leaf-list-trimmed"];
    let mut pinned = situations().map(|(name, _)| name).chain(pelt::SITUATIONS.iter().map(|(name, _)| name));
    let balances = |effect: &ChangeEffect| matches!(effect, ChangeEffect::Balance(_));
    let is_domain = |effect: &ChangeEffect| matches!(effect, ChangeEffect::Domain(_));
    if !change.is_modelled() {
        None
    } else if pinned.any(|name| *name == change.name) {
        Some(ShownBy::Situation)
    } else if OF_BALANCING.contains(&change.name) || change.effects.iter().any(balances) {
        Some(ShownBy::Balancing)
    } else if change.effects.iter().all(is_domain) {
        Some(ShownBy::Domains)
    } else {
        Some(ShownBy::Operations)
    }
}

/// The kernel before a change and others that the change makes one: those in which a switch stood the other way that it
/// takes away.
pub(crate) fn before(index: usize) -> Vec<Generation> {
    let plain = Generation::prefix(index);
    let switched = LOG[index].effects.iter().filter_map(|effect| match effect {
        ChangeEffect::RemoveFeature(feature) => {
            let other = if plain.features.enabled(*feature) { "NO_" } else { "" };
            format!("{}+{other}{feature}", plain.name()).parse().ok()
        }
        _ => None,
    });
    let switched = switched.collect::<Vec<_>>();
    [vec![plain], switched].concat()
}

/// The kernel with a feature the other way, if it has that.
pub(crate) fn switched(kernel: &str, switch: &str) -> String {
    let name = format!("{kernel}+{switch}");
    if name.parse::<Generation>().is_ok() { name } else { kernel.to_string() }
}

fn situations() -> impl Iterator<Item = &'static (&'static str, AblationSituation)> {
    select::SITUATIONS
        .iter()
        .chain(balance::SITUATIONS)
        .chain(bandwidth::tests::SITUATIONS)
        .chain(bandwidth::listing::tests::SITUATIONS)
        .chain(slice::tests::SITUATIONS)
        .chain(preempt::tests::SITUATIONS)
        .chain(accounting::tests::SITUATIONS)
        .chain(load::tests::SITUATIONS)
        .chain(queue::tests::SITUATIONS)
        .chain(requests::tests::SITUATIONS)
        .chain(rt::SITUATIONS)
        .chain(crate::fair_server::tests::SITUATIONS)
        .chain(crate::core::SITUATIONS)
        .chain(crate::core::OF_SWITCHES)
        .chain(cpufreq::tests::SITUATIONS)
}

#[test]
fn the_others_show_in_their_situations() {
    for (name, situation) in situations() {
        let index = LOG.iter().position(|change| change.name == *name).expect("a change of the log");
        let kernels = match LOG[index].release {
            Some(_) => [index, index + 1].map(|length| Generation::prefix(length).name().to_string()),
            // A later release may have made the same of it.
            None => ["v6.12".to_string(), format!("v6.12+{name}")],
        };
        let [before, after] = kernels.map(|kernel| situation(&kernel));
        assert_ne!(before, after, "{name}");
    }
}

#[test]
fn a_prefix_is_what_its_name_says() {
    let merged = LOG.iter().filter(|change| change.release.is_some()).count();
    for length in 0..=merged {
        let prefix = Generation::prefix(length);
        assert_eq!(prefix.name().parse(), Ok(prefix.clone()), "{}", prefix.name());
    }
}

#[test]
fn what_alters_no_decision_alters_no_rule() {
    for (index, change) in LOG.iter().enumerate().filter(|(_, change)| change.groundwork().is_some()) {
        let [before, after] = [index, index + 1].map(Generation::prefix);
        // A tunable may get another name.
        let value = |generation: &Generation, names: fn(&ChangeEffect) -> Option<Tunable>| {
            change.effects.iter().find_map(names).map(|tunable| generation.tunables.effective(tunable, 4))
        };
        let old = value(&before, |effect| match effect {
            ChangeEffect::RemoveTunable(tunable) => Some(*tunable),
            _ => None,
        });
        let new = value(&after, |effect| match effect {
            ChangeEffect::AddTunable(tunable, _) => Some(*tunable),
            _ => None,
        });
        assert!(old == new && (old.is_some() || before.same_rules(&after)), "{}", change.name);
    }
}
