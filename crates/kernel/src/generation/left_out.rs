//! What lies between two kernels and is not modelled.
//!
//! Must not know: machines, workloads.

use super::between::GenerationStep;
use super::change::{ChangeEffect, LoggedCommit};
use super::matters_with::MattersWith;
use super::{Generation, LOG};

/// What is not modelled and can matter between two kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOutBetween {
    /// The commits, those first that ask for most.
    pub commits: Vec<&'static LoggedCommit>,
    /// Both kernels have the same rules: nothing else lies between them.
    pub is_all: bool,
}

/// How many commits are named.
const NAMED: usize = 3;

impl Generation {
    /// What lies between this kernel and another one, is not modelled, and can matter where all of this `is_there`.
    pub fn left_out_to(&self, other: &Generation, is_there: &dyn Fn(MattersWith) -> bool) -> LeftOutBetween {
        let steps = self.steps_to(other);
        let is_between =
            |id: &str| steps.iter().any(|step| step.change().is_some_and(|change| change.id() == id));
        let applies = |step: &GenerationStep| {
            let GenerationStep::Change { index, added } = *step else { return None };
            let Some(ChangeEffect::NotModelled(with, _)) = LOG[index].left_out() else { return None };
            let lacking = if added { self } else { other };
            let holds = |with: &MattersWith| match *with {
                MattersWith::Switched(feature) => lacking.features.enabled(feature),
                MattersWith::Apart(id) => !is_between(id),
                with => is_there(with),
            };
            with.iter().all(holds).then_some((with.len(), &LOG[index]))
        };
        let mut found = steps.iter().filter_map(applies).collect::<Vec<_>>();
        found.sort_by_key(|(asks, _)| std::cmp::Reverse(*asks));
        let commits = found.into_iter().map(|(_, commit)| commit).collect::<Vec<_>>();
        LeftOutBetween { is_all: !commits.is_empty() && self.same_rules(other), commits }
    }
}

impl LeftOutBetween {
    /// A line for people, where there is anything to say: how many commits, which, and who can answer.
    pub fn line(&self, from: &str, to: &str) -> Option<String> {
        let count = self.commits.len();
        let commits = if count == 1 { "1 commit" } else { &format!("{count} commits") };
        let named = self.commits.iter().take(NAMED).map(|commit| match commit.left_out() {
            Some(ChangeEffect::NotModelled(_, what)) => format!("{} ({what})", commit.id()),
            _ => commit.id().to_string(),
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if count > NAMED { ", ..." } else { "" };
        let begins = match self.is_all {
            true => format!("{from} and {to} differ only in what is not modelled"),
            false => format!("between {from} and {to} lies also what is not modelled"),
        };
        (count > 0)
            .then(|| format!("{begins}: {commits} that can matter here: {named}{more}; src: can answer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Generation {
        name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The commits that can matter between two kernels where `there` is, and whether they are all that lies between.
    fn found(from: &str, to: &str, there: &[MattersWith]) -> (Vec<&'static str>, bool) {
        let left_out = parse(from).left_out_to(&parse(to), &|with| there.contains(&with));
        (left_out.commits.iter().map(|commit| commit.id()).collect(), left_out.is_all)
    }

    #[test]
    fn what_is_there_decides() {
        use MattersWith::{DifferentCpus, Frequencies, Groups, Nodes, OwnScheduling, Quotas, Smt};
        for (from, to, there, commits) in [
            ("v7.2", "v7.3", &[][..], &[][..]),
            ("v7.2", "v7.3", &[OwnScheduling], &["fa02b2868420"]),
            (
                "v7.2",
                "v7.3",
                &[Smt, DifferentCpus],
                &["180ff97c1869", "6060d61d13a1", "50b101f6e586", "0fbd428d0788", "7fd540b1bcaf"],
            ),
            ("v5.6", "v5.7", &[Nodes], &["6499b1b2dd1b"]),
            ("v6.7", "v6.8", &[Frequencies], &["b3edde44e5d4"]),
            ("v6.14", "v6.15", &[Groups], &["bbce3de72be5"]),
            ("v6.11", "v6.15", &[], &[]),
            ("v6.6", "v6.7", &[Quotas], &["2f8c62296b6f"]),
            ("v6.0", "v6.2", &[], &["d6962c4fe8f9"]),
            ("v5.7", "v6.2", &[], &[]),
            ("v6.5", "v6.6", &[], &[]),
            ("v6.16", "v6.17", &[], &[]),
            ("v7.0", "v7.1", &[], &[]),
            ("v6.12", "v6.13", &[], &[]),
            ("v6.12+NEXT_BUDDY", "v6.13+NEXT_BUDDY", &[], &["493afbd187c4"]),
        ] {
            let there = there.to_vec();
            assert_eq!(found(from, to, &there), (commits.to_vec(), false), "{from} to {to} with {there:?}");
        }
    }

    #[test]
    fn nothing_else_between_is_noticed() {
        let before = LOG.iter().take_while(|change| change.id() != "6499b1b2dd1b").last().expect("a commit");
        let nodes = [MattersWith::Nodes];
        assert_eq!(found(before.id(), "6499b1b2dd1b", &nodes), (vec!["6499b1b2dd1b"], true));
        assert_eq!(found(before.id(), "6499b1b2dd1b", &[]), (vec![], false));
        let line = |from: &str, to: &str| parse(from).left_out_to(&parse(to), &|_| true).line(from, to);
        assert_eq!(
            line(before.id(), "6499b1b2dd1b").expect("a line"),
            format!(
                "{} and 6499b1b2dd1b differ only in what is not modelled: 1 commit that can matter here: 6499b1b2dd1b (NUMA balancing of \
                 tasks and memory); src: can answer",
                before.id()
            )
        );
        assert_eq!(line("v6.5", "v6.5+avg-vruntime"), None);
        let many = line("v5.4", "v7.3").expect("a line");
        assert!(
            many.starts_with("between v5.4 and v7.3 lies also what is not modelled: ")
                && many.contains(", ..."),
            "{many}"
        );
    }

    /// Another commit that a condition names stands in the log.
    #[test]
    fn conditions_name_commits_of_the_log() {
        let mut named = 0;
        for change in LOG.iter() {
            let Some(ChangeEffect::NotModelled(with, _)) = change.left_out() else { continue };
            for with in with {
                if let MattersWith::Apart(id) = with {
                    assert!(LOG.iter().any(|other| other.id() == *id), "{}: {id}", change.id());
                    named += 1;
                }
            }
        }
        assert!(named > 15);
    }
}
