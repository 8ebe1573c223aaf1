//! A way through the commits of a repository: a line, and the lines that its merges join.
//!
//! Must not know: what is looked for on it, how a commit is built.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fairlab_lab::{Kernel, LabError};
use fairlab_native::history::{CommitOrder, HistoryCommit, HistoryLine, KernelRepository, SCHEDULER, short};

/// An end: a kernel that is a commit.
pub(super) struct TreeEnd {
    kernel: Kernel,
    folder: PathBuf,
    revision: String,
}

/// Kernels by position. Those up to `end` are the way; the lines that merges join stand behind it.
pub struct TreeWay {
    repository: KernelRepository,
    places: Vec<TreePosition>,
    end: usize,
    line: HistoryLine,
    /// The two kernels between which it goes, as they were named.
    ends: [Kernel; 2],
}

struct TreePosition {
    hash: String,
    kernel: Kernel,
    /// None where a line begins.
    step: Option<HistoryCommit>,
}

/// Both as commits of one repository; `None` where neither is built from sources.
///
/// # Errors
/// One is, and is no commit of the other's repository with its settings.
pub(super) fn ends(one: &Kernel, other: &Kernel, what: &str) -> Result<Option<(TreeEnd, TreeEnd)>, LabError> {
    let end = |kernel: &Kernel| {
        let (folder, revision) = kernel.commit()?;
        let folder = folder.to_path_buf();
        Some(TreeEnd { kernel: kernel.clone(), folder, revision: revision.to_string() })
    };
    let is_built = |kernel: &Kernel| kernel.generation().is_none();
    if !is_built(one) && !is_built(other) {
        return Ok(None);
    }
    let hint = "name both as src:DIR@COMMIT of one repository, or both as modelled kernels";
    let (Some(one_end), Some(other_end)) = (end(one), end(other)) else {
        let (one, other) = (one.name(), other.name());
        let problem =
            format!("{what} goes from commit to commit, and {one} and {other} are not two of one history");
        return Err(LabError::new(problem, hint));
    };
    if canonical(&one_end.folder) != canonical(&other_end.folder) {
        let (one, other) = (one_end.folder.display(), other_end.folder.display());
        return Err(LabError::new(
            format!("{what} goes through one repository, and {one} and {other} are two"),
            hint,
        ));
    }
    if !one.is_set_like(other) {
        let problem = format!("{} and {} differ in settings, too", one.name(), other.name());
        return Err(LabError::new(
            problem,
            "give both ends the switches and tunables that all commits shall have",
        ));
    }
    Ok(Some((one_end, other_end)))
}

fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf())
}

/// Which of the two is the older one.
pub(super) fn order(one: &TreeEnd, other: &TreeEnd, stop: &AtomicBool) -> Result<CommitOrder, LabError> {
    KernelRepository::of(&one.folder).order(&one.revision, &other.revision, stop)
}

impl TreeWay {
    pub(super) fn new(from: &TreeEnd, to: &TreeEnd, stop: &AtomicBool) -> Result<TreeWay, LabError> {
        let repository = KernelRepository::of(&from.folder);
        let line = repository.line(&from.revision, &to.revision, stop)?;
        let ends = [from.kernel.clone(), to.kernel.clone()];
        let mut way = TreeWay { repository, places: Vec::new(), end: 0, line: line.clone(), ends };
        way.add(&line, &from.kernel, Some(&to.kernel))?;
        way.end = way.places.len() - 1;
        Ok(way)
    }

    /// Adds a line: its beginning, then its commits. The last one may have a name already.
    fn add(&mut self, line: &HistoryLine, base: &Kernel, last: Option<&Kernel>) -> Result<(), LabError> {
        self.places.push(TreePosition { hash: line.base.clone(), kernel: base.clone(), step: None });
        for (index, commit) in line.commits.iter().enumerate() {
            let named = last.filter(|_| index + 1 == line.commits.len()).cloned();
            let kernel = named.map_or_else(|| self.kernel_of(&commit.hash), Ok)?;
            self.places.push(TreePosition { hash: commit.hash.clone(), kernel, step: Some(commit.clone()) });
        }
        Ok(())
    }

    /// The kernel that a commit is: by the name that it has, if it is on the way.
    fn kernel_of(&self, hash: &str) -> Result<Kernel, LabError> {
        if let Some(place) = self.places.iter().find(|place| place.hash == hash) {
            return Ok(place.kernel.clone());
        }
        let kernel = self.ends[0].at(short(hash));
        kernel.ok_or_else(|| LabError::new(format!("{} is no commit", self.ends[0].name()), "report this"))
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    pub(super) fn kernel(&self, position: usize) -> Option<Kernel> {
        self.places.get(position).map(|place| place.kernel.clone())
    }

    pub(super) fn step(&self, position: usize) -> Option<&HistoryCommit> {
        self.places.get(position)?.step.as_ref()
    }

    /// Between neighbours on a line lie commits that do not touch the scheduler: the parent itself has them.
    pub(super) fn just_before(&self, low: usize, high: usize) -> Option<Kernel> {
        match self.step(high) {
            Some(commit) if low + 1 == high => self.kernel_of(&commit.before).ok(),
            _ => self.kernel(low),
        }
    }

    pub(super) fn changes(&self) -> usize {
        self.line.touching
    }

    pub(super) fn why_empty(&self) -> String {
        let [from, to] = [&self.ends[0], &self.ends[1]].map(Kernel::name);
        match self.line.all {
            0 => format!("{from} and {to} are one commit"),
            all => format!(
                "none of the {all} commits between {from} and {to} touches the scheduler: {}",
                SCHEDULER.join(" ")
            ),
        }
    }

    pub(super) fn joined(
        &mut self,
        position: usize,
        stop: &AtomicBool,
    ) -> Result<Vec<(usize, usize)>, LabError> {
        let Some(merge) = self.step(position).cloned() else { return Ok(Vec::new()) };
        let mut joined = Vec::new();
        for tip in &merge.merged {
            let line = self.repository.branch(&merge.before, tip, stop)?;
            if line.commits.is_empty() {
                continue;
            }
            let first = self.places.len();
            let base = self.kernel_of(&line.base)?;
            self.add(&line, &base, None)?;
            joined.push((first, self.places.len() - 1));
        }
        Ok(joined)
    }
}
