//! The tree of a commit, kept from build to build: a step to another commit writes the files that differ, and no other.
//!
//! What is under way is written down first. So whatever ends a step in its middle, the next one knows which files are not to be
//! relied on. The repository's own index and work tree are not touched.
//!
//! Must not know: what is compiled, how a commit is named.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fairlab_files::LabError;

use super::cache::{TreeCopyState, Workspace};
use super::command::{run, run_with, said_well, succeed};
use super::selection::is_needed;
use super::source::git;

/// Two trees that differ in more files have little in common: the later one begins from nothing.
const FAR: usize = 4000;

/// A repository and a commit of it.
pub(super) struct RepositoryCommit<'c> {
    pub folder: &'c Path,
    pub hash: &'c str,
}

impl RepositoryCommit<'_> {
    /// Makes the tree of a place what the commit is. Gives the names of files that were written or removed.
    pub fn stand(&self, place: &Workspace, stop: &AtomicBool) -> Result<BTreeSet<String>, LabError> {
        let (copy, before) = (place.tree(), place.stands()?);
        let known =
            before.as_ref().and_then(|before| self.differing(before, stop).transpose()).transpose()?;
        let index = Index { repository: self.repository(stop)?, path: place.index(), copy: &copy, stop };
        let there = index.read(self.hash)?;
        let (from, names) = match (before, known.filter(|names| names.len() <= FAR)) {
            (Some(before), Some(names)) => (before.commit, names),
            _ => {
                place.remove();
                (String::new(), there.clone())
            }
        };
        fs::create_dir_all(&copy).map_err(|error| failed(&copy, &error))?;
        place.set_stand(&TreeCopyState { commit: from, unsure: names.clone() })?;
        for path in names.difference(&there).map(|name| copy.join(name)).filter(|path| path.exists()) {
            fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
        }
        index.write(names.intersection(&there))?;
        place.set_stand(&TreeCopyState { commit: self.hash.to_string(), unsure: BTreeSet::new() })?;
        Ok(names)
    }

    /// The files that differ from what stands there; `None` where git does not know what does.
    fn differing(
        &self,
        before: &TreeCopyState,
        stop: &AtomicBool,
    ) -> Result<Option<BTreeSet<String>>, LabError> {
        if before.commit.is_empty() {
            return Ok(None);
        }
        let mut command = git(self.folder);
        command.args(["diff-tree", "-r", "-z", "--name-only", "--no-renames", &before.commit, self.hash]);
        let said = run(&mut command, stop)?;
        let mut names = needed(&said.text());
        names.extend(before.unsure.iter().cloned());
        Ok(said.succeeded.then_some(names))
    }

    fn repository(&self, stop: &AtomicBool) -> Result<PathBuf, LabError> {
        let mut command = git(self.folder);
        let said = succeed(command.args(["rev-parse", "--absolute-git-dir"]), "find the repository", stop)?;
        Ok(PathBuf::from(said.text().trim_end_matches('\n')))
    }
}

/// An index of our own beside a repository's.
struct Index<'i> {
    repository: PathBuf,
    path: PathBuf,
    copy: &'i Path,
    stop: &'i AtomicBool,
}

impl Index<'_> {
    fn git(&self) -> Command {
        let mut command = Command::new("git");
        // Hooks are the user's own business.
        command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
        command.arg("--git-dir").arg(&self.repository).arg("--work-tree").arg(self.copy);
        command.env("GIT_INDEX_FILE", &self.path);
        command
    }

    /// Reads a commit; gives the names of its files that a build needs.
    fn read(&self, commit: &str) -> Result<BTreeSet<String>, LabError> {
        succeed(self.git().args(["read-tree", commit]), "read a commit", self.stop)?;
        let said = succeed(self.git().args(["ls-files", "-z"]), "list a commit", self.stop)?;
        Ok(needed(&said.text()))
    }

    /// Writes files, each as of now.
    fn write<'n>(&self, names: impl Iterator<Item = &'n String>) -> Result<(), LabError> {
        let list = names.fold(String::new(), |list, name| list + name + "\0");
        let mut command = self.git();
        command.current_dir(self.copy).args(["checkout-index", "--force", "--quiet", "-z", "--stdin"]);
        said_well(run_with(&mut command, list.as_bytes(), self.stop)?, "unpack a commit").map(|_| ())
    }
}

fn needed(listed: &str) -> BTreeSet<String> {
    listed.split('\0').filter(|name| is_needed(name)).map(str::to_string).collect()
}

fn failed(path: &Path, error: &io::Error) -> LabError {
    LabError::new(format!("cannot keep {}: {error}", path.display()), "check the place and its free space")
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::build::repository::TemporaryRepository;

    #[test]
    fn a_step_writes_what_differs_and_no_more() {
        let repository = TemporaryRepository::new();
        let one =
            repository.commit(&[("kernel/sched/fair.c", "1"), ("kernel/sched/rt.c", "1"), ("README", "1")]);
        let two =
            repository.commit(&[("kernel/sched/fair.c", "2"), ("kernel/sched/new.c", "2"), ("README", "2")]);
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let place = Workspace::at(folder.path(), "a place").expect("a place");
        let go_on = AtomicBool::new(false);
        let stand = |hash: &str| {
            let changed = RepositoryCommit { folder: repository.path(), hash }
                .stand(&place, &go_on)
                .expect("it stands");
            changed.into_iter().collect::<Vec<_>>()
        };
        let read = |name: &str| fs::read_to_string(place.tree().join(name)).unwrap_or_default();
        assert_eq!(stand(&one), ["kernel/sched/fair.c", "kernel/sched/rt.c"]);
        let time = || fs::metadata(place.tree().join("kernel/sched/rt.c")).and_then(|about| about.modified());
        let before = time().expect("a time");
        assert_eq!(stand(&two), ["kernel/sched/fair.c", "kernel/sched/new.c"]);
        assert_eq!((read("kernel/sched/fair.c"), read("kernel/sched/new.c")), ("2".into(), "2".into()));
        assert_eq!(time().expect("a time"), before, "it is the file that was there");
        // What somebody changed there, and said so, is made good.
        let unsure = BTreeSet::from(["kernel/sched/rt.c".to_string()]);
        place.set_stand(&TreeCopyState { commit: two.clone(), unsure }).expect("written");
        fs::write(place.tree().join("kernel/sched/rt.c"), "patched").expect("written");
        assert_eq!(stand(&two), ["kernel/sched/rt.c"]);
        assert_eq!(read("kernel/sched/rt.c"), "1");
        assert!(time().expect("a time") > before && time().expect("a time") <= SystemTime::now());
        assert_eq!(stand(&one), ["kernel/sched/fair.c", "kernel/sched/new.c"]);
        assert!(!place.tree().join("kernel/sched/new.c").exists() && read("kernel/sched/fair.c") == "1");
        // A commit that git does not know any more.
        place.set_stand(&TreeCopyState { commit: "0".repeat(40), unsure: BTreeSet::new() }).expect("written");
        assert_eq!(stand(&one).len(), 2);
        assert!(!repository.path().join("index").exists(), "the repository has the index that it had");
    }
}
