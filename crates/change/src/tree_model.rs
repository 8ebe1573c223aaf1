//! The modelled kernel that a tree is held to: its release, the commits that it has beyond that, and how it is preempted.
//!
//! Must not know: what shows a commit in a tree, how the two are compared.

use fairlab_kernel::Generation;
use fairlab_kernel::generation::{LoggedCommit, MainlineRelease, PreemptionModel};
use fairlab_lab::LabError;
use fairlab_lab::source::SourceKernel;
use fairlab_native::build::shown_commits;

/// The build option that all kernels with `CONFIG_PREEMPT_DYNAMIC` have.
const PREEMPTIBLE: &str = "preemptible";

/// By which commits a tree and a model differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitDifference {
    /// Those that the tree has and the model lacks, in the log's order.
    pub more: Vec<&'static str>,
    /// Those later than the tree's release that the model has and the tree lacks.
    pub fewer: Vec<&'static str>,
}

impl CommitDifference {
    /// What a tree that is built shows beside some rules. Commits that would change none of them are left out.
    pub fn of(rules: &Generation, tree: &SourceKernel) -> CommitDifference {
        let shown = tree.source().and_then(|source| shown_commits(&source)).unwrap_or_default();
        let base = tree.manifest().and_then(|built| mainline(&built.release));
        CommitDifference { more: more(rules, &shown), fewer: fewer(rules, &shown, base) }
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.more.is_empty() && self.fewer.is_empty()
    }

    /// What a model's name becomes without the difference.
    pub fn ended(&self, name: &str) -> String {
        let added = self.more.iter().map(|commit| format!("+{commit}"));
        let removed = self.fewer.iter().map(|commit| format!("-{commit}"));
        with(name, &added.chain(removed).collect::<String>())
    }

    /// The sentence for people: `src:linux has 98b0d890220d (removed-util-floor), which v5.15 lacks`.
    pub fn told(&self, tree: &str, model: &str) -> String {
        let listed = |commits: &[&'static str]| {
            let one = |name: &&'static str| match commit(name) {
                Some(known) if known.id() != *name => format!("{} ({name})", known.id()),
                _ => (*name).to_string(),
            };
            commits.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let more = (!self.more.is_empty())
            .then(|| format!("{tree} has {}, which {model} lacks", listed(&self.more)));
        let fewer = (!self.fewer.is_empty())
            .then(|| format!("{tree} lacks {}, which {model} has", listed(&self.fewer)));
        more.into_iter().chain(fewer).collect::<Vec<_>>().join("; ")
    }
}

/// The mainline release that a release is made of: `6.6.9` of v6.6.
pub fn mainline(release: &str) -> Option<MainlineRelease> {
    let mut numbers = release.split(|char: char| !char.is_ascii_digit()).map(str::parse);
    Some(MainlineRelease(numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The modelled kernel of a tree that is built, and the commits in it beyond the tree's release.
///
/// # Errors
/// The model does not reach that release, or has no such preemption.
pub fn model_of(tree: &SourceKernel) -> Result<(Generation, Vec<&'static str>), LabError> {
    let release = tree.manifest().map(|built| built.release).unwrap_or_default();
    let base = mainline(&release).filter(|base| Generation::releases().contains(base));
    let unknown = || {
        LabError::new(
            format!("{} is Linux {release}, which the model does not reach", tree.name()),
            "leave that tree out; 'fairlab kernels list' shows the model's releases",
        )
    };
    let rules = parsed(&base.ok_or_else(unknown)?.to_string())?;
    let beyond = CommitDifference::of(&rules, tree);
    let rules = parsed(&beyond.ended(rules.name()))?;
    let rules = preempted_like(&rules, tree)?.unwrap_or(rules);
    Ok((rules, beyond.more))
}

/// The same rules, preempted as a tree that is built; `None`: they are.
///
/// # Errors
/// The name asks for another preemption model.
pub fn preempted_like(rules: &Generation, tree: &SourceKernel) -> Result<Option<Generation>, LabError> {
    let Some(preemption) = tree.manifest().map(|built| built.preemption) else { return Ok(None) };
    let (model, preemptible) = match preemption.as_str() {
        "none" => (PreemptionModel::None, false),
        "full" => (PreemptionModel::Full, false),
        "lazy" => (PreemptionModel::Lazy, false),
        other => (PreemptionModel::Voluntary, other == "dynamic"),
    };
    let mut items = String::new();
    if rules.core.preemption_model != model {
        items += &format!("+{}", model.name());
    }
    // Where all kernel work can be preempted the option changes nothing.
    let holds = rules.changes().any(|change| change.is_called(PREEMPTIBLE));
    if holds != preemptible && !model.preempts_kernel() {
        items += &format!("{}{PREEMPTIBLE}", if preemptible { '+' } else { '-' });
    }
    if items.is_empty() {
        return Ok(None);
    }
    let built = with(rules.name(), &items).parse::<Generation>();
    let refused = |_| {
        LabError::new(
            format!("{} is built with preemption '{preemption}', {} is not", tree.name(), rules.name()),
            "leave the model's preemption out of its name, and it has the tree's",
        )
    };
    built.map_err(refused).map(|built| (!built.same_rules(rules)).then_some(built))
}

fn more(rules: &Generation, shown: &[(&'static str, bool)]) -> Vec<&'static str> {
    let mut with_all = rules.clone();
    let mut found = Vec::new();
    for (commit, _) in shown.iter().filter(|(_, is_shown)| *is_shown) {
        if with_all.changes().any(|change| change.is_called(commit)) {
            continue;
        }
        let changed = with(with_all.name(), &format!("+{commit}")).parse::<Generation>();
        if let Some(changed) = changed.ok().filter(|changed| !changed.same_rules(&with_all)) {
            with_all = changed;
            found.push(*commit);
        }
    }
    // A later one may have taken the place of an earlier one's rule.
    let is_replaced = |commit: &&'static str| {
        let others = found.iter().filter(|other| *other != commit).map(|other| format!("+{other}"));
        let others = with(rules.name(), &others.collect::<String>()).parse::<Generation>();
        others.is_ok_and(|others| others.same_rules(&with_all))
    };
    found.iter().copied().filter(|commit| !is_replaced(commit)).collect()
}

fn fewer(
    rules: &Generation,
    shown: &[(&'static str, bool)],
    base: Option<MainlineRelease>,
) -> Vec<&'static str> {
    let is_held = |name: &str| {
        let later =
            |change: &LoggedCommit| base.is_some_and(|base| change.release.is_some_and(|first| first > base));
        rules.changes().any(|change| change.is_called(name) && later(change))
    };
    let absent = shown.iter().filter(|(name, is_shown)| !is_shown && is_held(name)).map(|(name, _)| *name);
    let mut rest = rules.clone();
    let mut found = Vec::new();
    for commit in absent {
        let without = with(rest.name(), &format!("-{commit}")).parse::<Generation>();
        if let Some(without) = without.ok().filter(|without| !without.same_rules(&rest)) {
            rest = without;
            found.push(commit);
        }
    }
    found
}

/// A kernel's name with more items: these stand before its settings.
fn with(name: &str, items: &str) -> String {
    let (rules, settings) = name.split_at(name.find(',').unwrap_or(name.len()));
    format!("{rules}{items}{settings}")
}

fn parsed(name: &str) -> Result<Generation, LabError> {
    name.parse::<Generation>().map_err(|error| LabError::new(error.problem, error.hint))
}

/// The commit of the log with this name.
fn commit(name: &str) -> Option<&'static LoggedCommit> {
    fairlab_kernel::generation::LOG.iter().find(|change| change.is_called(name))
}

#[cfg(test)]
mod tests {
    use fairlab_native::build::probed_commits;

    use super::*;

    fn rules(name: &str) -> Generation {
        parsed(name).expect(name)
    }

    #[test]
    fn words_tell_commits_that_the_model_has() {
        let mut places = Vec::new();
        for name in probed_commits() {
            let place = fairlab_kernel::generation::LOG.iter().position(|change| change.name == name);
            let change = place.map(|place| &fairlab_kernel::generation::LOG[place]);
            assert!(change.is_some_and(LoggedCommit::is_modelled), "{name}");
            places.extend(place);
        }
        assert!(places.is_sorted(), "the log's order");
    }

    #[test]
    fn what_a_tree_shows_beyond_its_release_is_proposed() {
        let all = |names: &[&'static str]| names.iter().map(|name| (*name, true)).collect::<Vec<_>>();
        for (kernel, shown, proposed) in [
            (
                "v5.15",
                &["kthread-in-task", "removed-util-floor"][..],
                &["kthread-in-task", "removed-util-floor"][..],
            ),
            ("v5.15+removed-util-floor", &["removed-util-floor"], &[]),
            ("v6.6", &["removed-util-floor", "newidle-next"], &["newidle-next"]),
            ("v6.6,base_slice_ns=3000000", &["newidle-next"], &["newidle-next"]),
            // A revert of what is not there, and a rule that a later one replaces.
            ("v5.15", &["look-no-further"], &[]),
            ("v6.12", &["lost-idle", "idle-sync-at-idle"], &["idle-sync-at-idle"]),
        ] {
            let more = more(&rules(kernel), &all(shown));
            assert_eq!(more, proposed, "{kernel}");
            let difference = CommitDifference { more, fewer: Vec::new() };
            let ended = difference.ended(kernel);
            assert!(Generation::asked_for(&ended).is_ok() || difference.is_none(), "{ended}");
        }
        let difference = CommitDifference { more: vec!["removed-util-floor"], fewer: vec!["newidle-next"] };
        assert_eq!(
            difference.ended("v5.15,base_slice_ns=1"),
            "v5.15+removed-util-floor-newidle-next,base_slice_ns=1"
        );
        assert_eq!(
            difference.told("src:linux", "v5.15"),
            "src:linux has 98b0d890220d (removed-util-floor), which v5.15 lacks; src:linux lacks 1c0482707c42 (newidle-next), which v5.15 has"
        );
    }

    #[test]
    fn what_a_tree_lacks_of_later_releases_is_told() {
        let absent = [("newidle-next", false), ("removed-util-floor", false)];
        let base = mainline("6.1.176-1");
        assert_eq!(base, Some(MainlineRelease(6, 1)));
        assert_eq!(
            fewer(&rules("debian-6.1"), &absent, base),
            ["newidle-next"],
            "that of v5.17 has other words since"
        );
        assert!(fewer(&rules("v6.1"), &absent, base).is_empty());
        assert!(fewer(&rules("debian-6.1"), &absent, None).is_empty());
    }
}
