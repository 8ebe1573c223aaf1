//! Names of generations: `v6.6`, `v6.5+86bfbb7ce4f6`, `v6.6-63304558ba5d`, `v6.6+NO_PLACE_LAG,base_slice_ns=1500000`.

use std::str::FromStr;

use super::{
    BUILDS, ChangeEffect, DistributionBuild, Feature, FeatureSupport, Generation, LOG, LoggedCommit,
    MainlineRelease, PreemptionModel, Tunable, TunableScaling,
};
use fairlab_event::spelling::{self, NameError};

use crate::core::rules::Hrtick;

pub(super) fn refuse<T>(problem: String, hint: impl Into<String>) -> Result<T, NameError> {
    Err(NameError { problem, hint: hint.into() })
}

impl FromStr for Generation {
    type Err = NameError;

    /// Reads a generation's name.
    ///
    /// Grammar: a release or a commit of the log (the tree's state after it), then any number of `+COMMIT`, `-COMMIT`,
    /// `+FEATURE`, `+NO_FEATURE`, `+PREEMPT_MODEL`, `+AUTOGROUP`, then any number of `,tunable=value` (ns, effective).
    fn from_str(name: &str) -> Result<Generation, NameError> {
        let (rules, settings) =
            name.split_once(',').map_or((name, None), |(rules, rest)| (rules, Some(rest)));
        let (base, modifiers) = split_modifiers(rules);
        let mut applied = base_changes(base, name)?;
        let (mut switches, mut model, mut autogroup) = (Vec::new(), None, false);
        for (index, &(sign, item)) in modifiers.iter().enumerate() {
            if modifiers[..index].iter().any(|&(_, earlier)| is_same(earlier, item)) {
                let is_model = PreemptionModel::named(item).is_some();
                let how = if is_model { "names a preemption model a second time" } else { "is named twice" };
                return refuse(format!("kernel '{name}': '{item}' {how}"), "name it once");
            }
            match find_change(item) {
                Some(index) => toggle(&mut applied, index, sign, name)?,
                None if PreemptionModel::named(item).is_some() => {
                    model = find_model(sign, item, name)?;
                }
                None if sign == '+' && is_autogroup(item) => autogroup = item == AUTOGROUP,
                None => switches.push(find_switch(sign, item, name)?),
            }
        }
        let mut generation = Generation::fold(name.to_string(), applied);
        if let Some(problem) = generation.contradiction() {
            return refuse(
                format!("kernel '{name}': {problem}"),
                "see 'fairlab kernels log' for what builds on what",
            );
        }
        if let Some(model) = model {
            generation.build_with(model)?;
        }
        generation.autogroup = autogroup;
        for (feature, enabled) in switches {
            switch(&mut generation, feature, enabled)?;
        }
        for setting in settings.into_iter().flat_map(|rest| rest.split(',')) {
            set(&mut generation, setting)?;
        }
        Ok(generation)
    }
}

impl Generation {
    /// The commit whose tree its name begins with, if it begins with one.
    pub fn base_commit(&self) -> Option<&'static LoggedCommit> {
        let (base, _) = split_modifiers(self.name.split(',').next().unwrap_or_default());
        find_change(base).map(|index| &LOG[index]).filter(|change| change.release.is_some())
    }

    /// Reads the name of a generation that somebody asks for: nothing may stand in it without effect.
    ///
    /// # Errors
    /// The name means no generation, or it puts in or takes out a change that alters no rule there: one that is not
    /// modelled, or one whose rule a later change sets again.
    pub fn asked_for(name: &str) -> Result<Generation, NameError> {
        let generation = name.parse::<Generation>()?;
        let (_, modifiers) = split_modifiers(name.split(',').next().unwrap_or(name));
        let changes = modifiers.iter().filter_map(|&(sign, item)| Some((sign, find_change(item)?)));
        for (sign, index) in changes {
            if generation.stays_alike_without(&[index]) {
                return generation.refuse_idle(sign, index);
            }
        }
        Ok(generation)
    }

    /// Switches a feature that it has.
    pub(super) fn set_feature(&mut self, feature: Feature, enabled: bool) {
        self.features.set(feature, enabled);
        if feature == Feature::Eevdf && !enabled {
            self.fair.pick_as_before_eevdf();
        }
    }

    /// Whether the rules are the same with these changes toggled.
    fn stays_alike_without(&self, toggled: &[usize]) -> bool {
        let plain = Generation::fold(String::new(), self.applied.clone());
        plain.same_rules(&Generation::fold(String::new(), self.toggled(toggled)))
    }

    fn toggled(&self, changes: &[usize]) -> Vec<bool> {
        self.applied.iter().enumerate().map(|(at, &applied)| applied != changes.contains(&at)).collect()
    }

    fn refuse_idle(&self, sign: char, index: usize) -> Result<Generation, NameError> {
        let (name, id) = (&self.name, LOG[index].id());
        if !LOG[index].is_modelled() {
            let effect = LOG[index].left_out().map_or_else(String::new, ChangeEffect::describe);
            let help = match LOG[index].left_out() {
                Some(ChangeEffect::NotModelled(..)) => "a tree's own code can answer: --kernel src:DIR",
                _ => "leave it out",
            };
            return refuse(format!("kernel '{name}': {id} {effect}"), help);
        }
        let hides = |&later: &usize| {
            let others = Generation::fold(String::new(), self.toggled(&[later]));
            self.applied[later] && !others.stays_alike_without(&[index])
        };
        let problem =
            format!("kernel '{name}': {id} alters nothing there, because later changes replace its rule");
        match (index + 1..LOG.len()).find(hides).map(|later| LOG[later].id()) {
            Some(later) if sign == '-' => {
                refuse(problem, format!("take out {later}, which builds on it, too: '{name}-{later}'"))
            }
            Some(later) => refuse(problem, format!("{later} does")),
            None => refuse(problem, "'fairlab kernels log' lists them"),
        }
    }
}

/// Whether two modifiers are about the same change or feature.
fn is_same(one: &str, other: &str) -> bool {
    match (find_change(one), find_change(other)) {
        (None, None) if is_autogroup(one) || is_autogroup(other) => is_autogroup(one) && is_autogroup(other),
        (None, None) if PreemptionModel::named(one).is_some() => PreemptionModel::named(other).is_some(),
        (None, None) => {
            find_feature(one).map(|(feature, _)| feature) == find_feature(other).map(|(feature, _)| feature)
        }
        (one, other) => one == other,
    }
}

/// The switch of sessions' own groups, which the kernel has among its sysctls.
const AUTOGROUP: &str = "AUTOGROUP";

fn is_autogroup(item: &str) -> bool {
    item.strip_prefix("NO_").unwrap_or(item) == AUTOGROUP
}

/// Splits `base+a-b` into the base and its signed modifiers.
fn split_modifiers(rules: &str) -> (&str, Vec<(char, &str)>) {
    let (base, mut rest) = take_item(rules);
    let mut modifiers = Vec::new();
    while let Some(sign) = rest.chars().next() {
        let (item, after) = take_item(&rest[1..]);
        modifiers.push((sign, item));
        rest = after;
    }
    (base, modifiers)
}

/// Splits off the first item: a change's whole short name where one stands, dashes included, or all up to the next sign.
fn take_item(text: &str) -> (&str, &str) {
    let ends = |length: usize| matches!(text.as_bytes().get(length), None | Some(b'+' | b'-'));
    let names = LOG.iter().map(|change| change.name).chain(BUILDS.iter().map(|build| build.name));
    let known = names.filter(|name| text.starts_with(name) && ends(name.len())).map(str::len).max();
    text.split_at(known.or_else(|| text.find(['+', '-'])).unwrap_or(text.len()))
}

fn find_change(name: &str) -> Option<usize> {
    LOG.iter().position(|change: &LoggedCommit| change.is_called(name))
}

pub(super) fn find_feature(name: &str) -> Option<(Feature, bool)> {
    let (name, enabled) = name.strip_prefix("NO_").map_or((name, true), |name| (name, false));
    Feature::ALL.iter().find(|feature| feature.name() == name).map(|&feature| (feature, enabled))
}

/// Which changes the base of a name holds: a build, a change's tree, or a release.
pub(super) fn base_changes(base: &str, name: &str) -> Result<Vec<bool>, NameError> {
    if let Some(build) = BUILDS.iter().find(|build| build.name == base) {
        return Ok(build_changes(build));
    }
    if let Some(index) = find_change(base) {
        // A patch that was never merged has no tree of its own: it stands on all that was.
        let holds =
            |(at, change): (usize, &LoggedCommit)| at == index || (at < index && change.release.is_some());
        return Ok(LOG.iter().enumerate().map(holds).collect());
    }
    let numbers = base.strip_prefix('v').and_then(|numbers| numbers.split_once('.'));
    let release =
        numbers.and_then(|(major, minor)| Some(MainlineRelease(major.parse().ok()?, minor.parse().ok()?)));
    let known = Generation::releases();
    let Some(release) = release.filter(|release| known.contains(release)) else {
        let (first, last) = (known[0], known[known.len() - 1]);
        let meant = match meant(base).filter(|release| known.contains(release)) {
            Some(release) => format!("{release} may be meant; "),
            None => {
                let names = BUILDS.iter().map(|build| build.name).chain(LOG.iter().map(|change| change.name));
                let word = name.split([',', '+']).next().unwrap_or_default();
                // Of another number than all have, none is meant.
                spelling::may_be_meant(word, names.filter(|name| !name.starts_with('v')))
            }
        };
        return refuse(
            format!("unknown kernel '{name}'"),
            format!(
                "{meant}known are {first} to {last}, Debian's, Ubuntu's and single commits: 'fairlab kernels list' prints all"
            ),
        );
    };
    Ok(release_changes(release))
}

/// The release in what `uname -r`, tags and packages call a kernel: `6.1.0-50-cloud-amd64`, `linux-6.6`.
fn meant(name: &str) -> Option<MainlineRelease> {
    let from = &name[name.find(|c: char| c.is_ascii_digit())?..];
    let mut numbers = from.split(|c: char| !c.is_ascii_digit());
    Some(MainlineRelease(numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn release_changes(release: MainlineRelease) -> Vec<bool> {
    LOG.iter().map(|change| change.release.is_some_and(|first| first <= release)).collect()
}

pub(super) fn build_changes(build: &DistributionBuild) -> Vec<bool> {
    let holds = |(change, held): (&LoggedCommit, bool)| {
        let named = |list: &[&str]| list.iter().any(|name| *name == change.name || *name == change.commit);
        (held || named(build.with)) && !named(build.without)
    };
    LOG.iter().zip(release_changes(build.base)).map(holds).collect()
}

fn toggle(applied: &mut [bool], index: usize, sign: char, name: &str) -> Result<(), NameError> {
    let add = sign == '+';
    if applied[index] == add {
        let (state, hint) = match add {
            true => ("is already there", "leave it out"),
            false => ("is not there", "only what a kernel holds can be reverted"),
        };
        return refuse(format!("kernel '{name}': change {} {state}", LOG[index].id()), hint);
    }
    applied[index] = add;
    Ok(())
}

fn find_model(sign: char, item: &str, name: &str) -> Result<Option<PreemptionModel>, NameError> {
    match sign {
        '+' => Ok(PreemptionModel::named(item)),
        _ => refuse(
            format!("kernel '{name}': '-{item}' is no way to choose a preemption model"),
            format!("write the one that is wanted: {}", PreemptionModel::names()),
        ),
    }
}

/// A misspelt item of `name` as it was written, and the change or feature that it may be. A change's name has dashes, and a misspelt
/// one was cut off at the first, so it is looked for up to the next `+`.
fn meant_by_item<'n>(sign: char, item: &'n str, name: &'n str) -> (&'n str, Option<String>) {
    let (prefix, word) = item.strip_prefix("NO_").map_or(("", item), |word| ("NO_", word));
    let models = PreemptionModel::NAMES.iter().map(|(name, _)| *name).filter(|_| prefix.is_empty());
    let switches = Feature::ALL.iter().map(|feature| feature.name()).chain(models).chain([AUTOGROUP]);
    if let Some(switch) = spelling::meant(word, switches) {
        return (item, Some(format!("{prefix}{switch}")));
    }
    let rules = name.split(',').next().unwrap_or_default();
    let rest = rules.find(&format!("{sign}{item}")).map_or(item, |start| &rules[start + 1..]);
    let whole = rest.split('+').next().unwrap_or_default();
    match spelling::meant(whole, LOG.iter().map(|change| change.name)) {
        Some(change) => (whole, Some(change.to_string())),
        None => (item, None),
    }
}

fn find_switch(sign: char, item: &str, name: &str) -> Result<(Feature, bool), NameError> {
    match find_feature(item) {
        Some(switch) if sign == '+' => Ok(switch),
        Some(_) => refuse(
            format!("kernel '{name}': '-{item}' is no way to switch a feature"),
            format!("write '+NO_{item}'"),
        ),
        None => {
            let (written, meant) = meant_by_item(sign, item, name);
            let lists = "'fairlab kernels log' lists changes, 'fairlab kernels show' features";
            let hint = match meant {
                Some(meant) => format!("{meant} may be meant; {lists}"),
                None => format!("{lists}; preemption models are {}", PreemptionModel::names()),
            };
            refuse(format!("kernel '{name}': '{written}' is neither a change nor a feature"), hint)
        }
    }
}

fn switch(generation: &mut Generation, feature: Feature, enabled: bool) -> Result<(), NameError> {
    let name = generation.name().to_string();
    if !generation.features.has(feature) {
        return refuse(
            format!("kernel '{name}' has no feature {feature}"),
            format!("'fairlab kernels show {name}' lists those it has"),
        );
    }
    if feature.support() != FeatureSupport::Modelled && generation.features.enabled(feature) != enabled {
        return refuse(format!("feature {feature} is known but not modelled"), "leave it at its default");
    }
    if feature == Feature::Hrtick && enabled && generation.core.hrtick == Hrtick::NotFollowed {
        return refuse(
            format!("feature {feature} of kernel '{name}' is known but not modelled"),
            "it is from v7.1 on (9213aa4784cf)",
        );
    }
    generation.set_feature(feature, enabled);
    Ok(())
}

fn set(generation: &mut Generation, setting: &str) -> Result<(), NameError> {
    let name = generation.name().to_string();
    let names = tunable_names(generation);
    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
    let is_known = key == "tunable_scaling" || names.contains(&key);
    let is_kernel = !setting.contains('=') && key.parse::<Generation>().is_ok();
    let hint = match (is_known, spelling::meant(key, names.iter().copied())) {
        _ if is_kernel => format!("{key} is a kernel of its own: give --kernel once for each"),
        (true, _) => format!("write ',{key}=NUMBER'"),
        (false, Some(meant)) => format!("{meant} may be meant; write ',{meant}=NS'"),
        (false, None) => format!("write ',TUNABLE=NS'; tunables are {}", names.join(", ")),
    };
    if !is_known {
        return refuse(format!("kernel '{name}' has no tunable '{key}'"), hint);
    }
    let Ok(value) = value.parse::<u64>() else {
        return refuse(format!("kernel '{name}': {key} takes a whole number of ns, not '{value}'"), hint);
    };
    if key == "tunable_scaling" {
        let Some(scaling) = TunableScaling::from_number(value) else {
            return refuse(
                format!("kernel '{name}': tunable_scaling is 0 (none), 1 (log) or 2 (linear)"),
                hint,
            );
        };
        generation.tunables.scaling = scaling;
        return Ok(());
    }
    let known = Tunable::ALL.iter().copied().find(|tunable| tunable.name() == key);
    let Some(tunable) = known.filter(|&tunable| generation.tunables.has(tunable)) else {
        return refuse(format!("kernel '{name}' has no tunable '{key}'"), hint);
    };
    let (least, most) = tunable.limits();
    if !(least..=most).contains(&value) {
        return refuse(format!("kernel '{name}': {key}={value} is outside {least} to {most} ns"), hint);
    }
    generation.tunables.set(tunable, value);
    Ok(())
}

fn tunable_names(generation: &Generation) -> Vec<&'static str> {
    let known = Tunable::ALL.iter().filter(|&&tunable| generation.tunables.has(tunable));
    known.map(|tunable| tunable.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::rules::{Pick, Placement};

    fn parse(name: &str) -> Generation {
        name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn problem(name: &str) -> String {
        name.parse::<Generation>().expect_err(name).to_string()
    }

    #[test]
    fn what_is_asked_for_has_an_effect() {
        let refusal = |name: &str| Generation::asked_for(name).expect_err(name).to_string();
        assert_eq!(
            refusal("v6.6-fee1759e4f04"),
            "kernel 'v6.6-fee1759e4f04': fee1759e4f04 alters nothing there, because later changes replace its rule; take out \
             450e749707bc, which builds on it, too: 'v6.6-fee1759e4f04-450e749707bc'"
        );
        assert_eq!(
            refusal("v6.6-ab83f455f04d"),
            "kernel 'v6.6-ab83f455f04d': ab83f455f04d cannot be seen by any answer here: wakeups that ask for the waker's CPU (seccomp \
             notifications); leave it out"
        );
        let matters = refusal("v6.6-7ee7642c9141");
        let said =
            "7ee7642c9141 would change decisions on CPUs of different capacities, and is not modelled: ";
        assert!(matters.contains(said), "{matters}");
        assert!(matters.ends_with("--kernel src:DIR"), "{matters}");
        for name in ["v6.6-fee1759e4f04-450e749707bc", "v6.5+86bfbb7ce4f6", "v6.6-63304558ba5d"] {
            assert!(Generation::asked_for(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn releases_are_folds_of_the_log() {
        assert_eq!(parse("v4.18-512ac999d275").changes().count(), 0);
        assert_eq!(parse("v5.10").fair, parse("v5.6").fair);
        assert!(
            parse("v6.5").features.enabled(Feature::AltPeriod)
                && !parse("v5.10").features.has(Feature::AltPeriod)
        );
        assert!(parse("debian-5.10").features.enabled(Feature::AltPeriod));
        let eevdf = parse("v6.6");
        assert_eq!(eevdf.fair.pick, Pick::EarliestEligibleDeadline);
        assert_eq!(eevdf.tunables.effective(Tunable::BaseSlice, 8), Some(3_000_000));
        assert!(eevdf.features.enabled(Feature::RunToParity) && !eevdf.features.has(Feature::LastBuddy));
    }

    #[test]
    fn a_commit_names_the_tree_after_it() {
        let bisected = parse("86bfbb7ce4f6");
        assert_eq!(bisected.fair.placement, Placement::LagOnWakeup);
        assert_eq!(bisected.fair.pick, Pick::Leftmost);
        assert_eq!(parse("lag-placement").fair, bisected.fair);
    }

    #[test]
    fn changes_and_features_are_added_and_taken_away() {
        assert!(!parse("v6.6-63304558ba5d").features.has(Feature::RunToParity));
        assert!(!parse("v6.6-run-to-parity").features.has(Feature::RunToParity));
        assert!(!parse("v6.5+remove-start-debit").features.has(Feature::StartDebit));
        assert!(!parse("v6.6+NO_PLACE_LAG").features.enabled(Feature::PlaceLag));
        let mixed = parse("v6.6-run-to-parity+NO_PLACE_LAG,base_slice_ns=1500000");
        assert_eq!(mixed.tunables.effective(Tunable::BaseSlice, 40), Some(1_500_000));
        assert!(!mixed.features.has(Feature::RunToParity) && !mixed.features.enabled(Feature::PlaceLag));
        assert_eq!(parse("v6.6,tunable_scaling=0").tunables.effective(Tunable::BaseSlice, 40), Some(750_000));
    }

    #[test]
    fn names_that_mean_nothing_are_refused_in_one_line() {
        for (name, fragment) in [
            ("v9.9", "unknown kernel 'v9.9'; known are v4.18 to v7.3, Debian's"),
            ("debain-6.1", "unknown kernel 'debain-6.1'; debian-6.1 may be meant"),
            ("v6.6-run-to-partiy", "'run-to-partiy' is neither a change nor a feature; run-to-parity may"),
            ("v6.6+NO_RUN_TO_PARTY", "neither a change nor a feature; NO_RUN_TO_PARITY may be meant"),
            ("v6.6,base_slice=3000000", "has no tunable 'base_slice'; base_slice_ns may be meant"),
            (
                "6.1.0-50-cloud-amd64",
                "unknown kernel '6.1.0-50-cloud-amd64'; v6.1 may be meant; known are v4.18",
            ),
            ("", "unknown kernel ''"),
            ("v6.5+nonsense", "'nonsense' is neither a change nor a feature"),
            ("v6.5-63304558ba5d", "change 63304558ba5d is not there"),
            ("v6.6+63304558ba5d", "is already there"),
            ("v6.6+LAST_BUDDY", "has no feature LAST_BUDDY"),
            ("v6.6-PLACE_LAG", "write '+NO_PLACE_LAG'"),
            ("v6.6+HRTICK", "not modelled"),
            ("v6.6,latency_ns=1000000", "no tunable 'latency_ns'"),
            ("v6.6,base_slice_ns=fast", "whole number of ns"),
            ("v6.6,base_slice_ns=1", "outside"),
            ("v6.6,base_slice_ns", "takes a whole number of ns, not ''"),
            ("v6.6+NO_PLACE_LAG+PLACE_LAG", "'PLACE_LAG' is named twice"),
            ("v6.6-run-to-parity+63304558ba5d", "'63304558ba5d' is named twice"),
            ("v6.6+", "'' is neither a change nor a feature"),
            ("v6.6,", "has no tunable ''"),
            ("v7.2-throttle-tasks", "throttling when charged needs throttling by tasks"),
            ("v6.18-8e2e13ac6122", "throttling by tasks needs a look at every queue"),
            ("v7.0+HRTICK", "feature HRTICK of kernel 'v7.0+HRTICK' is known but not modelled"),
            ("v6.6-PREEMPT_NONE", "write the one that is wanted: +PREEMPT_NONE, +PREEMPT_VOLUNTARY"),
            ("v6.6+PREEMPT_LAZY", "no PREEMPT_LAZY; it is from v6.13 on (7c70cb94d29c)"),
            ("v6.13+PREEMPT_LAZY+PREEMPT", "'PREEMPT' names a preemption model a second time"),
            ("v6.5+commit-to-eevdf", "needs the tunable"),
            ("v6.5+eevdf", "needs lag placement"),
            ("v7.2+scale-deadline-off-rq", "which 101f3498b4bd has replaced"),
            ("v5.4-0b0695f2b34a", "change 0b0695f2b34a is not there"),
        ] {
            let problem = problem(name);
            assert!(problem.contains(fragment), "{name}: {problem}");
            assert!(!problem.contains('\n'));
        }
    }
}
