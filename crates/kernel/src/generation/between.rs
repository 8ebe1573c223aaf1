//! What lies between two generations, step by step, and the kernels on the way.
//!
//! Must not know: what anybody looks for there.

use fairlab_event::spelling::NameError;

use super::name::{base_changes, build_changes, release_changes};
use super::tunable::{Tunable, TunableScaling};
use super::{BUILDS, Feature, Generation, LOG, LoggedCommit, PreemptionModel};

/// One thing in which two generations differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationStep {
    /// A change of the log, by its place there, comes in or goes out.
    Change {
        /// Its place in [`LOG`].
        index: usize,
        /// Whether it comes in.
        added: bool,
    },
    /// A feature is switched; `None` means as the release has it.
    Feature(Feature, Option<bool>),
    /// It is built with another preemption model; `None` means as the release is.
    Preemption(Option<PreemptionModel>),
    /// Sessions get groups of their own, or no longer.
    Autogroup(bool),
    /// A tunable is set, in ns; `None` means as the release has it.
    Tunable(Tunable, Option<u64>),
    /// Tunables scale differently.
    Scaling(TunableScaling),
}

impl GenerationStep {
    /// The change of the log, if it is one.
    pub fn change(&self) -> Option<&'static LoggedCommit> {
        match self {
            GenerationStep::Change { index, .. } => LOG.get(*index),
            _ => None,
        }
    }

    /// Whether it can alter a decision of the model.
    pub fn is_modelled(&self) -> bool {
        self.change().is_none_or(LoggedCommit::is_modelled)
    }

    /// Its commit, or what is switched, with a sign: as names of kernels have it.
    pub fn id(&self) -> String {
        match self {
            GenerationStep::Change { added, .. } => {
                let id = self.change().map_or("", LoggedCommit::id);
                if *added { id.to_string() } else { format!("-{id}") }
            }
            GenerationStep::Feature(feature, Some(false)) => format!("NO_{}", feature.name()),
            GenerationStep::Feature(feature, Some(true)) => feature.name().to_string(),
            GenerationStep::Feature(feature, None) => format!("{} by default", feature.name()),
            GenerationStep::Preemption(Some(model)) => model.name().to_string(),
            GenerationStep::Preemption(None) => "preemption model by default".to_string(),
            GenerationStep::Autogroup(on) => if *on { "AUTOGROUP" } else { "NO_AUTOGROUP" }.to_string(),
            GenerationStep::Tunable(tunable, Some(value)) => format!("{}={value}", tunable.name()),
            GenerationStep::Tunable(tunable, None) => format!("{} by default", tunable.name()),
            GenerationStep::Scaling(scaling) => format!("tunable_scaling={}", *scaling as u64),
        }
    }

    /// What it does, in a line: a change's subject.
    pub fn subject(&self) -> String {
        match (self, self.change()) {
            (GenerationStep::Change { added: false, .. }, Some(change)) => {
                format!("Revert \"{}\"", change.subject)
            }
            (_, Some(change)) => change.subject.to_string(),
            (GenerationStep::Preemption(_), None) => "another preemption model".to_string(),
            (GenerationStep::Autogroup(_), None) => "sessions' own groups are switched".to_string(),
            (GenerationStep::Feature(..), None) => "a feature is switched".to_string(),
            _ => "a tunable is set".to_string(),
        }
    }
}

/// A kernel as it is asked for: changes, then what the user switched and set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Recipe {
    applied: Vec<bool>,
    features: Vec<(Feature, bool)>,
    model: Option<PreemptionModel>,
    autogroup: bool,
    tunables: Vec<(Tunable, u64)>,
    scaling: TunableScaling,
}

impl Generation {
    /// The steps from this generation to another: changes that go out, newest first; changes that come in, oldest first;
    /// switches and settings.
    pub fn steps_to(&self, other: &Generation) -> Vec<GenerationStep> {
        let (from, to) = (self.recipe(), other.recipe());
        let differ = |added: bool| {
            let places = from.applied.iter().zip(&to.applied).enumerate();
            places
                .filter(move |(_, (before, after))| before != after && **after == added)
                .map(move |(index, _)| GenerationStep::Change { index, added })
        };
        let mut steps = differ(false).collect::<Vec<_>>();
        steps.reverse();
        steps.extend(differ(true));
        for &feature in Feature::ALL {
            let of = |recipe: &Recipe| {
                recipe.features.iter().find(|(known, _)| *known == feature).map(|known| known.1)
            };
            if of(&from) != of(&to) {
                steps.push(GenerationStep::Feature(feature, of(&to)));
            }
        }
        if from.model != to.model {
            steps.push(GenerationStep::Preemption(to.model));
        }
        if from.autogroup != to.autogroup {
            steps.push(GenerationStep::Autogroup(to.autogroup));
        }
        for &tunable in Tunable::ALL {
            let of = |recipe: &Recipe| {
                recipe.tunables.iter().find(|(known, _)| *known == tunable).map(|known| known.1)
            };
            if of(&from) != of(&to) {
                steps.push(GenerationStep::Tunable(tunable, of(&to)));
            }
        }
        if from.scaling != to.scaling {
            steps.push(GenerationStep::Scaling(to.scaling));
        }
        steps
    }

    /// This generation after some of the steps to another one, under the shortest name that means it.
    ///
    /// # Errors
    /// The rules that come together contradict each other.
    pub fn after_steps(&self, steps: &[GenerationStep]) -> Result<Generation, NameError> {
        let mut recipe = self.recipe();
        for &step in steps {
            match step {
                GenerationStep::Change { index, added } => recipe.applied[index] = added,
                GenerationStep::Feature(feature, value) => {
                    recipe.features.retain(|(known, _)| *known != feature);
                    recipe.features.extend(value.map(|value| (feature, value)));
                }
                GenerationStep::Preemption(model) => recipe.model = model,
                GenerationStep::Autogroup(on) => recipe.autogroup = on,
                GenerationStep::Tunable(tunable, value) => {
                    recipe.tunables.retain(|(known, _)| *known != tunable);
                    recipe.tunables.extend(value.map(|value| (tunable, value)));
                }
                GenerationStep::Scaling(scaling) => recipe.scaling = scaling,
            }
        }
        recipe.name().parse()
    }

    /// Whether both decide alike in everything, whatever they are called.
    pub fn same_rules(&self, other: &Generation) -> bool {
        self.rules_alone() == other.rules_alone()
    }

    /// All that decides, without name and history: equal for kernels that decide alike in everything.
    #[must_use]
    pub fn rules_alone(&self) -> Generation {
        Generation {
            name: String::new(),
            applied: Vec::new(),
            features: self.features.that_decide(),
            ..self.clone()
        }
    }

    fn recipe(&self) -> Recipe {
        let plain = Generation::fold(String::new(), self.applied.clone());
        let switched = |&&feature: &&Feature| {
            plain.features.has(feature) && plain.features.enabled(feature) != self.features.enabled(feature)
        };
        let features = Feature::ALL.iter().filter(switched);
        let set =
            Tunable::ALL.iter().filter_map(|&tunable| Some((tunable, self.tunables.set_by_user(tunable)?)));
        Recipe {
            applied: self.applied.clone(),
            features: features.map(|&feature| (feature, self.features.enabled(feature))).collect(),
            model: self.model_built_with(&plain),
            autogroup: self.autogroup,
            tunables: set.collect(),
            scaling: self.tunables.scaling,
        }
    }
}

impl Recipe {
    /// The name with the fewest changes in it; of equals, that of a release.
    fn name(&self) -> String {
        let releases =
            Generation::releases().into_iter().map(|release| (release.to_string(), release_changes(release)));
        let builds = BUILDS.iter().map(|build| (build.name.to_string(), build_changes(build)));
        let trees = LOG.iter().filter_map(|change| {
            let name = change.id().to_string();
            let applied = base_changes(&name, &name).ok()?;
            Some((name, applied))
        });
        let distance =
            |applied: &[bool]| applied.iter().zip(&self.applied).filter(|(one, other)| one != other).count();
        let nearest = releases.chain(builds).chain(trees).min_by_key(|(_, applied)| distance(applied));
        let (mut name, applied) = nearest.unwrap_or_default();
        for (index, change) in LOG.iter().enumerate() {
            let holds = self.applied[index];
            if applied.get(index) != Some(&holds) {
                name += &format!("{}{}", if holds { '+' } else { '-' }, change.id());
            }
        }
        for (feature, enabled) in &self.features {
            name += &format!("+{}{}", if *enabled { "" } else { "NO_" }, feature.name());
        }
        if let Some(model) = self.model {
            name += &format!("+{}", model.name());
        }
        if self.autogroup {
            name += "+AUTOGROUP";
        }
        for (tunable, value) in &self.tunables {
            name += &format!(",{}={value}", tunable.name());
        }
        if self.scaling != TunableScaling::default() {
            name += &format!(",tunable_scaling={}", self.scaling as u64);
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Generation {
        name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    #[test]
    fn every_kernel_on_the_way_has_a_name_that_means_it() {
        for (from, to) in [
            ("v5.4", "v5.10"),
            ("v6.6", "v6.5"),
            ("debian-6.1", "v6.6+NO_PLACE_LAG,base_slice_ns=1500000"),
            ("v6.6,tunable_scaling=0", "v7.2"),
            ("v4.18", "v7.2"),
            ("v6.19+PREEMPT_NONE", "v7.0"),
            ("v7.0+PREEMPT_NONE", "v6.19+PREEMPT"),
            ("v6.6", "v6.6+PREEMPT_NONE"),
            ("v6.6+AUTOGROUP", "v6.12"),
            ("v6.5+AUTOGROUP", "v6.6+NO_PLACE_LAG+AUTOGROUP"),
        ] {
            let (one, other) = (parse(from), parse(to));
            let steps = one.steps_to(&other);
            for length in 0..=steps.len() {
                let Ok(between) = one.after_steps(&steps[..length]) else { continue };
                assert_eq!(parse(between.name()), between);
                assert_eq!(between.steps_to(&other), steps[length..], "{from} to {to} at {}", between.name());
            }
            let end = one.after_steps(&steps).expect("the end");
            assert!(end.same_rules(&other), "{from} to {to} ends at {}", end.name());
        }
    }

    #[test]
    fn names_are_short() {
        let (old, new) = (parse("v5.4"), parse("v5.10"));
        let steps = old.steps_to(&new);
        let name = |steps: &[GenerationStep]| old.after_steps(steps).expect("a kernel").name().to_string();
        let rework = steps.iter().position(|step| step.id() == "0b0695f2b34a").expect("on the way");
        assert_eq!(name(&steps[..=rework]), "0b0695f2b34a");
        assert_eq!(name(&steps[rework..=rework]), "v5.4+0b0695f2b34a");
        assert_eq!(name(&steps), "v5.10");
        assert_eq!(name(&[]), "v5.4");
        let back = new.steps_to(&old);
        assert_eq!(back.len(), steps.len());
        assert_eq!(back[0].id(), format!("-{}", steps[steps.len() - 1].id()), "undone newest first");
        assert!(back[0].subject().starts_with("Revert \""));
    }

    #[test]
    fn switches_and_settings_are_steps() {
        let steps = parse("v6.6").steps_to(&parse("v6.6+NO_PLACE_LAG,base_slice_ns=1500000"));
        assert_eq!(
            steps.iter().map(GenerationStep::id).collect::<Vec<_>>(),
            ["NO_PLACE_LAG", "base_slice_ns=1500000"]
        );
        let back = parse("v6.6+NO_PLACE_LAG").steps_to(&parse("v6.6"));
        assert_eq!(back, [GenerationStep::Feature(Feature::PlaceLag, None)]);
        assert_eq!(parse("v6.6").steps_to(&parse("v6.6")), []);
        assert!(parse("v6.5+avg-vruntime").same_rules(&parse("v6.5")), "bookkeeping changes no rule");
    }

    #[test]
    fn what_contradicts_itself_is_no_kernel() {
        let (old, new) = (parse("v6.5"), parse("v6.6"));
        let eevdf = old.steps_to(&new).into_iter().find(|step| step.id() == "147f3efaa241").expect("a step");
        assert!(old.after_steps(&[eevdf]).is_err());
    }
}
