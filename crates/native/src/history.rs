//! What a repository tells of its kernel's commits: lines of them that touch the scheduler, and what a merge brings in.
//!
//! History is no line. From one commit to a later one leads a line of parents: at each merge the first parent that has the earlier
//! commit behind it. A merge is one step on it, and its other parents have lines of their own. So each commit of a line holds
//! all that those before it hold, and a search may halve it.
//!
//! Must not know: how a commit is built, what is looked for among them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fairlab_files::LabError;

use crate::build::{git, run, run_with, said_well, succeed};

/// What decides what the scheduler does, as git takes names: its code, and the headers that are its own.
pub const SCHEDULER: [&str; 10] = [
    "kernel/sched",
    "include/linux/sched.h",
    "include/linux/sched",
    "include/linux/sched_clock.h",
    "include/linux/energy_model.h",
    "include/linux/psi_types.h",
    "include/trace/events/sched.h",
    "include/uapi/linux/sched.h",
    "include/uapi/linux/sched",
    "init/init_task.c",
];

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCommit {
    /// Its hash, whole.
    pub hash: String,
    /// Its author's date, as 2020-02-13.
    pub date: String,
    /// Its subject.
    pub subject: String,
    /// The parent from which the line comes to it.
    pub before: String,
    /// Its other parents: what they hold beyond that one came by this merge.
    pub merged: Vec<String>,
}

impl HistoryCommit {
    /// Its hash, as short as people write it.
    pub fn id(&self) -> &str {
        short(&self.hash)
    }
}

/// A hash, as short as people write it.
pub fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// A line of history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryLine {
    /// The commit before the first.
    pub base: String,
    /// Those that touch the scheduler, oldest first; the last is the line's end, whatever it touches.
    pub commits: Vec<HistoryCommit>,
    /// How many commits there are between, on all ways.
    pub all: usize,
    /// How many of those touch the scheduler, merges left out.
    pub touching: usize,
}

/// A repository of a kernel.
#[derive(Clone, Debug)]
pub struct KernelRepository {
    folder: PathBuf,
}

/// How two commits stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOrder {
    /// They are one.
    Equal,
    /// The first is an ancestor of the second.
    Older,
    /// The second is one of the first.
    Newer,
}

impl KernelRepository {
    /// That of a folder.
    pub fn of(folder: &Path) -> KernelRepository {
        KernelRepository { folder: folder.to_path_buf() }
    }

    /// The commit that a revision names.
    ///
    /// # Errors
    /// The folder is no repository, or has no such commit.
    pub fn resolved(&self, revision: &str, stop: &AtomicBool) -> Result<String, LabError> {
        let mut command = git(&self.folder);
        command.args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
        let said = run(command.arg(format!("{revision}^{{commit}}")), stop)?;
        if said.succeeded {
            return Ok(said.text().trim().to_string());
        }
        Err(LabError::new(
            format!("{}: git knows no commit '{revision}'", self.folder.display()),
            "see 'git log' or 'git tag' there",
        ))
    }

    /// Which of two commits is the older one.
    ///
    /// # Errors
    /// Neither is an ancestor of the other, or git does not know one.
    pub fn order(&self, one: &str, other: &str, stop: &AtomicBool) -> Result<CommitOrder, LabError> {
        let hashes = [self.resolved(one, stop)?, self.resolved(other, stop)?];
        if hashes[0] == hashes[1] {
            return Ok(CommitOrder::Equal);
        }
        let is_older = |older: &str, newer: &str| {
            run(git(&self.folder).args(["merge-base", "--is-ancestor", older, newer]), stop)
        };
        if is_older(&hashes[0], &hashes[1])?.succeeded {
            return Ok(CommitOrder::Older);
        }
        if is_older(&hashes[1], &hashes[0])?.succeeded {
            return Ok(CommitOrder::Newer);
        }
        let base = run(git(&self.folder).args(["merge-base", &hashes[0], &hashes[1]]), stop)?;
        let base = base.text();
        let hint = match base.trim() {
            "" => "name two commits of one history".to_string(),
            base => format!("both grew out of {}: search from there to the bad one", short(base)),
        };
        let folder = self.folder.display();
        Err(LabError::new(
            format!("{folder}: neither of {one} and {other} is an ancestor of the other"),
            hint,
        ))
    }

    /// The line from a commit to a later one.
    ///
    /// # Errors
    /// The first is no ancestor of the second, or git does not know one.
    pub fn line(&self, from: &str, to: &str, stop: &AtomicBool) -> Result<HistoryLine, LabError> {
        let (base, end) = (self.resolved(from, stop)?, self.resolved(to, stop)?);
        let parents = self.parents(&["--ancestry-path", &format!("{base}..{end}")], stop)?;
        let mut steps = Vec::new();
        let mut at = end.clone();
        while at != base {
            let own = parents.get(&at).map_or(&[][..], Vec::as_slice);
            let Some(before) = own.iter().find(|hash| **hash == base || parents.contains_key(*hash)) else {
                return Err(LabError::new(
                    format!("{}: {from} is no ancestor of {to}", self.folder.display()),
                    "name two commits of one line of history, the older one first",
                ));
            };
            steps.push((at, before.clone(), own.to_vec()));
            at = steps[steps.len() - 1].1.clone();
        }
        self.told(base.clone(), steps, &format!("{base}..{end}"), stop)
    }

    /// What a merge brings in by one of its other parents: the line of first parents down to what the line before it had already.
    ///
    /// # Errors
    /// Git does not know one of the commits.
    pub fn branch(&self, before: &str, tip: &str, stop: &AtomicBool) -> Result<HistoryLine, LabError> {
        let range = format!("{before}..{tip}");
        let parents = self.parents(&[&range], stop)?;
        let (mut steps, mut at) = (Vec::new(), tip.to_string());
        while let Some(own) = parents.get(&at) {
            let Some(first) = own.first() else { break };
            steps.push((at, first.clone(), own.clone()));
            at = first.clone();
        }
        self.told(at, steps, &range, stop)
    }

    fn parents(&self, which: &[&str], stop: &AtomicBool) -> Result<BTreeMap<String, Vec<String>>, LabError> {
        let said =
            succeed(git(&self.folder).args(["rev-list", "--parents"]).args(which), "list commits", stop)?;
        let parsed = |line: &str| {
            let mut hashes = line.split(' ').map(str::to_string);
            Some((hashes.next()?, hashes.collect()))
        };
        Ok(said.text().lines().filter_map(parsed).collect())
    }

    /// The line that these steps are, newest first: each a commit, the one before it, and all its parents.
    fn told(
        &self,
        base: String,
        steps: Vec<(String, String, Vec<String>)>,
        range: &str,
        stop: &AtomicBool,
    ) -> Result<HistoryLine, LabError> {
        let touching = self.touching(&steps, stop)?;
        let end = steps.first().map(|(hash, ..)| hash.clone());
        let kept = steps
            .into_iter()
            .rev()
            .filter(|(hash, ..)| touching.contains(hash) || Some(hash) == end.as_ref());
        let kept = kept.collect::<Vec<_>>();
        let texts = self.texts(kept.iter().map(|(hash, ..)| hash.as_str()), stop)?;
        let commits = kept.into_iter().map(|(hash, before, parents)| {
            let (date, subject) = texts.get(&hash).cloned().unwrap_or_default();
            let merged = parents.into_iter().filter(|parent| *parent != before).collect();
            HistoryCommit { hash, date, subject, before, merged }
        });
        let commits = if touching.is_empty() { Vec::new() } else { commits.collect() };
        let count = |more: &[&str]| {
            let mut command = git(&self.folder);
            let said = succeed(
                command.args(["rev-list", "--count", "--no-merges", range]).args(more),
                "count commits",
                stop,
            )?;
            Ok::<_, LabError>(said.text().trim().parse().unwrap_or(0))
        };
        let touching = count(&[&["--"], &SCHEDULER[..]].concat())?;
        Ok(HistoryLine { base, commits, all: count(&[])?, touching })
    }

    /// Which of these steps touch the scheduler.
    fn touching(
        &self,
        steps: &[(String, String, Vec<String>)],
        stop: &AtomicBool,
    ) -> Result<BTreeSet<String>, LabError> {
        let asked =
            steps.iter().fold(String::new(), |asked, (hash, before, _)| asked + hash + " " + before + "\n");
        let mut command = git(&self.folder);
        command.args(["diff-tree", "--stdin", "-r", "--name-only", "--no-renames", "--"]).args(SCHEDULER);
        let said = said_well(run_with(&mut command, asked.as_bytes(), stop)?, "compare commits")?;
        let known: BTreeSet<&str> = steps.iter().map(|(hash, ..)| hash.as_str()).collect();
        Ok(said.text().lines().filter(|line| known.contains(line)).map(str::to_string).collect())
    }

    /// Dates and subjects of commits.
    fn texts<'h>(
        &self,
        hashes: impl Iterator<Item = &'h str>,
        stop: &AtomicBool,
    ) -> Result<BTreeMap<String, (String, String)>, LabError> {
        let asked = hashes.fold(String::new(), |asked, hash| asked + hash + "\n");
        if asked.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut command = git(&self.folder);
        command.args(["log", "--no-walk=unsorted", "--no-show-signature", "--date=short"]);
        command.args(["--format=%H%x1f%ad%x1f%s", "--stdin"]);
        let said = said_well(run_with(&mut command, asked.as_bytes(), stop)?, "read commits")?;
        let parsed = |line: &str| {
            let mut parts = line.splitn(3, '\u{1f}').map(str::to_string);
            Some((parts.next()?, (parts.next()?, parts.next()?)))
        };
        Ok(said.text().lines().filter_map(parsed).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::repository::TemporaryRepository as Made;

    fn subjects(line: &HistoryLine) -> Vec<&str> {
        line.commits.iter().map(|commit| commit.subject.as_str()).collect()
    }

    /// A commit for each file that is named, with a tag each.
    fn repository(files: &[&str]) -> Made {
        let made = Made::new();
        for (number, file) in files.iter().enumerate() {
            made.commit(&[(file, &number.to_string())]);
            made.git(&["tag", &format!("t{number}")]);
        }
        made
    }

    #[test]
    fn a_line_has_what_touches_the_scheduler_and_its_end() {
        let files = [
            "README",
            "kernel/sched/fair.c",
            "mm/memory.c",
            "include/linux/sched.h",
            "kernel/sched/fair.c",
            "mm/x.c",
        ];
        let (made, go_on) = (repository(&files), AtomicBool::new(false));
        let repository = KernelRepository::of(made.path());
        let line = repository.line("t0", "t5", &go_on).expect("a line");
        let expected = ["kernel/sched/fair.c", "include/linux/sched.h", "kernel/sched/fair.c", "mm/x.c"];
        assert_eq!(subjects(&line), expected.map(|file| format!("change {file}")));
        assert_eq!((line.all, line.touching), (5, 3));
        assert_eq!(line.commits[1].before, made.git(&["rev-parse", "t2"]), "the parent, whatever it touches");
        assert!(line.commits.iter().all(|commit| commit.hash.len() == 40 && commit.date.len() == 10));
        assert!(repository.line("t4", "t5", &go_on).expect("a line").commits.is_empty());
        assert!(repository.line("t4", "t4", &go_on).expect("a line").commits.is_empty());
        let order = |one, other| repository.order(one, other, &go_on);
        assert_eq!((order("t1", "t4"), order("t4", "t1")), (Ok(CommitOrder::Older), Ok(CommitOrder::Newer)));
        assert_eq!(order("t4", "t4"), Ok(CommitOrder::Equal));
    }

    /// ```text
    /// t0 ── t1 ───────── merge ── t2
    ///   └─ one ── two ──┘
    /// ```
    #[test]
    fn a_merge_is_one_step_and_has_a_line_of_its_own() {
        let (made, go_on) = (repository(&["kernel/sched/fair.c"]), AtomicBool::new(false));
        made.git(&["checkout", "-q", "-b", "topic"]);
        let one = made.commit(&[("kernel/sched/rt.c", "1")]);
        let two = made.commit(&[("kernel/sched/rt.c", "2")]);
        made.git(&["checkout", "-q", "main"]);
        let beside = made.commit(&[("kernel/sched/core.c", "1")]);
        made.git(&["merge", "-q", "--no-ff", "-m", "a merge", "topic"]);
        let merge = made.git(&["rev-parse", "HEAD"]);
        made.commit(&[("kernel/sched/core.c", "2")]);
        let repository = KernelRepository::of(made.path());
        let line = repository.line("t0", "main", &go_on).expect("a line");
        assert_eq!(subjects(&line), ["change kernel/sched/core.c", "a merge", "change kernel/sched/core.c"]);
        let step = &line.commits[1];
        assert_eq!((&step.hash, &step.before, &step.merged), (&merge, &beside, &vec![two.clone()]));
        assert_eq!(line.touching, 4, "on all ways");
        let branch = repository.branch(&step.before, &step.merged[0], &go_on).expect("a line");
        assert_eq!(branch.base, made.git(&["rev-parse", "t0"]));
        assert_eq!(branch.commits.iter().map(|commit| &commit.hash).collect::<Vec<_>>(), [&one, &two]);
        // From within the branch the line follows it, and not the first parent.
        let inner = repository.line(&one, "main", &go_on).expect("a line");
        assert_eq!((&inner.commits[0].hash, &inner.commits[1].hash), (&two, &merge));
        assert_eq!((&inner.commits[1].before, &inner.commits[1].merged), (&two, &vec![beside.clone()]));
        let apart = repository.order(&two, &beside, &go_on).expect_err("neither is older");
        assert!(apart.hint.contains(short(&branch.base)), "{apart}");
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let (made, go_on) =
            (repository(&["kernel/sched/fair.c", "kernel/sched/core.c"]), AtomicBool::new(false));
        let repository = KernelRepository::of(made.path());
        let told = |from: &str, to: &str| repository.line(from, to, &go_on).expect_err("refused").problem;
        assert!(told("t0", "nothing").contains("git knows no commit 'nothing'"));
        assert!(told("t1", "t0").contains("t1 is no ancestor of t0"));
    }
}
