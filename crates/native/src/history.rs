//! What a repository tells of its kernel's commits: those between two of them that touch the scheduler.
//!
//! Must not know: how a commit is built, what is looked for among them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairlab_files::LabError;

use crate::build::{git, succeed};

/// Files whose change may alter what the scheduler decides.
const SCHEDULER: [&str; 6] = [
    "kernel/sched",
    "include/linux/sched.h",
    "include/linux/sched",
    "include/uapi/linux/sched.h",
    "include/uapi/linux/sched",
    "init/init_task.c",
];

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its hash, whole.
    pub hash: String,
    /// Its author's date, as 2020-02-13.
    pub date: String,
    /// Its subject.
    pub subject: String,
}

/// Commits on the way from `from` to `to` that touch the scheduler, oldest first, merges left out.
///
/// # Errors
/// The folder is no repository, or has no such commits.
pub fn commits_between(
    folder: &Path,
    from: &str,
    to: &str,
    stop: &AtomicBool,
) -> Result<Vec<Commit>, LabError> {
    let ends = [from, to].map(|revision| resolved(folder, revision, stop));
    let [from_hash, to_hash] = ends;
    let (from_hash, to_hash) = (from_hash?, to_hash?);
    let mut command = git(folder);
    command.args(["merge-base", "--is-ancestor", &from_hash, &to_hash]);
    if succeed(&mut command, "compare two commits", stop).is_err() {
        return Err(LabError::new(
            format!("{}: {from} is no ancestor of {to}", folder.display()),
            "name two commits of one line of history, the older one first",
        ));
    }
    let mut command = git(folder);
    command.args([
        "log",
        "--reverse",
        "--topo-order",
        "--no-merges",
        "--date=short",
        "--format=%H%x1f%ad%x1f%s",
    ]);
    command.arg(format!("{from_hash}..{to_hash}")).arg("--").args(SCHEDULER);
    let said = succeed(&mut command, "list commits", stop)?;
    Ok(said.text().lines().filter_map(parsed).collect())
}

/// Whether the first commit is an ancestor of the second.
///
/// # Errors
/// The folder is no repository, or has no such commits.
pub fn is_older(folder: &Path, one: &str, other: &str, stop: &AtomicBool) -> Result<bool, LabError> {
    let (one, other) = (resolved(folder, one, stop)?, resolved(folder, other, stop)?);
    let mut command = git(folder);
    command.args(["merge-base", "--is-ancestor", &one, &other]);
    Ok(succeed(&mut command, "compare two commits", stop).is_ok())
}

fn resolved(folder: &Path, revision: &str, stop: &AtomicBool) -> Result<String, LabError> {
    let mut command = git(folder);
    command
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
        .arg(format!("{revision}^{{commit}}"));
    let said = succeed(&mut command, "resolve a commit", stop);
    let said = said.map_err(|_| {
        LabError::new(
            format!("{}: git knows no commit '{revision}'", folder.display()),
            "see 'git log' or 'git tag' there",
        )
    })?;
    Ok(said.text().trim().to_string())
}

fn parsed(line: &str) -> Option<Commit> {
    let mut parts = line.splitn(3, '\u{1f}').map(str::to_string);
    Some(Commit { hash: parts.next()?, date: parts.next()?, subject: parts.next()? })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// A repository with a commit for each file that is named.
    fn repository(files: &[&str]) -> fairlab_files::temporary::PrivateFolder {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            let who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
            command.arg("-C").arg(folder.path()).args(who).args(arguments);
            assert!(command.output().expect("git").status.success(), "{arguments:?}");
        };
        git(&["init", "-q", "-b", "main"]);
        for (number, file) in files.iter().enumerate() {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, number.to_string()).expect("written");
            git(&["add", "-A"]);
            git(&["commit", "-q", "-m", &format!("change {number} of {file}")]);
            git(&["tag", &format!("t{number}")]);
        }
        folder
    }

    #[test]
    fn commits_of_the_scheduler_are_listed_in_order() {
        let files = [
            "README",
            "kernel/sched/fair.c",
            "mm/memory.c",
            "include/linux/sched.h",
            "kernel/sched/fair.c",
            "mm/x.c",
        ];
        let repository = repository(&files);
        let go_on = AtomicBool::new(false);
        let commits = commits_between(repository.path(), "t0", "t5", &go_on).expect("commits");
        let subjects = commits.iter().map(|commit| commit.subject.as_str()).collect::<Vec<_>>();
        assert_eq!(
            subjects,
            [
                "change 1 of kernel/sched/fair.c",
                "change 3 of include/linux/sched.h",
                "change 4 of kernel/sched/fair.c"
            ]
        );
        assert!(
            commits.iter().all(|commit| commit.hash.len() == 40 && commit.date.len() == 10),
            "{commits:?}"
        );
        assert_eq!(commits_between(repository.path(), "t4", "t5", &go_on), Ok(Vec::new()));
        assert_eq!(is_older(repository.path(), "t1", "t4", &go_on), Ok(true));
        assert_eq!(is_older(repository.path(), "t4", "t1", &go_on), Ok(false));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let repository = repository(&["kernel/sched/fair.c", "kernel/sched/core.c"]);
        let go_on = AtomicBool::new(false);
        let told = |from: &str, to: &str| {
            commits_between(repository.path(), from, to, &go_on).expect_err("refused").problem
        };
        assert!(told("t0", "nothing").contains("git knows no commit 'nothing'"));
        assert!(told("t1", "t0").contains("t1 is no ancestor of t0"));
    }
}
