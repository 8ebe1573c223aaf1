//! The kernels that are watched, one after the other, and the commits between them.
//!
//! Must not know: what runs on them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use fairlab_change::WayStep;
use fairlab_change::commit_path::CommitPath;
use fairlab_change::tree_model::model_of;
use fairlab_files::LabError;
use fairlab_lab::kernel::KernelNeed;
use fairlab_lab::{Kernel, RunSetting};
use serde::Serialize;

/// What the line is walked for, in errors.
const NAME: &str = "watch";

/// What the names of kernels that are built from sources begin with.
const SOURCES: &str = "src:";

/// Kernels in the order of history; 0 is where it begins.
pub struct WatchedLine {
    /// What the user calls it.
    pub name: String,
    kernels: Vec<Option<Kernel>>,
    steps: Vec<Option<WatchedStep>>,
    /// What is added to the seeds of a kernel: where kernels are to differ in chance alone, each has a number of its own.
    shifts: Vec<u64>,
    why_empty: Option<String>,
}

/// What leads to a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WatchedStep {
    /// The commit, as short as people write it.
    pub commit: String,
    /// Its subject.
    pub subject: String,
    /// The first release with it, if that is known.
    pub release: Option<String>,
    /// Its date, if that is known.
    pub date: Option<String>,
}

impl WatchedStep {
    fn of(step: &WayStep) -> WatchedStep {
        WatchedStep {
            commit: step.id(),
            subject: step.subject(),
            release: step.release().map(|release| release.to_string()),
            date: step.date().map(|(date, _)| date.to_string()),
        }
    }
}

/// The names of a list of kernels: `v6.5,v6.6` has two. Commas part a kernel from its tunables, too: what is set belongs to the kernel
/// before it.
pub fn listed(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for piece in text.split(',') {
        match names.last_mut() {
            Some(kernel) if piece.contains('=') => *kernel += &format!(",{piece}"),
            _ => names.push(piece.to_string()),
        }
    }
    names
}

impl WatchedLine {
    /// Kernels in the order in which they are listed, of whatever kind: each is compared with the one before it.
    ///
    /// # Errors
    /// A name means no kernel, or one whose runs are no function of a seed.
    pub fn of_list(names: &[String]) -> Result<WatchedLine, LabError> {
        let kernels = names.iter().map(|name| Kernel::parse_for(name, KernelNeed::Seeds, NAME));
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        let step = |before: &Kernel, kernel: &Kernel| WatchedStep {
            commit: kernel.name().trim_start_matches(SOURCES).to_string(),
            subject: format!("{} after {}", kernel.name(), before.name()),
            release: None,
            date: None,
        };
        let steps = kernels.windows(2).map(|pair| Some(step(&pair[0], &pair[1])));
        let why_empty = (names.len() < 2).then(|| format!("nothing is listed behind {}", names.concat()));
        Ok(WatchedLine {
            name: names.join(","),
            shifts: vec![0; kernels.len()],
            steps: std::iter::once(None).chain(steps).collect(),
            kernels: kernels.into_iter().map(Some).collect(),
            why_empty,
        })
    }

    /// `v4.18..v7.3`: from commit to commit through the model's log; `src:DIR@A..B`: through the commits of a repository that touch the
    /// scheduler; `src:debian:6.1,src:debian:6.12,v6.12`: a list.
    ///
    /// # Errors
    /// It is no range, or its kernels are not of one history.
    pub fn parse(range: &str, stop: &AtomicBool) -> Result<WatchedLine, LabError> {
        let names = listed(range);
        if names.len() > 1 {
            return WatchedLine::of_list(&names);
        }
        let hint = "write FROM..TO, such as v6.6..v6.12 or src:DIR@v6.6..v6.12, or list kernels: v6.5,v6.6";
        let no_range = || LabError::new(format!("'{range}' is no range of kernels"), hint);
        let (from, to) = range
            .split_once("..")
            .filter(|(from, to)| !from.is_empty() && !to.is_empty())
            .ok_or_else(no_range)?;
        let to = match from.rsplit_once('@') {
            Some((tree, _)) if from.starts_with(SOURCES) => format!("{tree}@{to}"),
            _ => to.to_string(),
        };
        WatchedLine::between(&Kernel::parse(from)?, &Kernel::parse(&to)?, range, stop)
    }

    fn between(from: &Kernel, to: &Kernel, name: &str, stop: &AtomicBool) -> Result<WatchedLine, LabError> {
        let path = CommitPath::between(from, to, NAME, stop)?;
        if !path.begins_at_first {
            let problem = format!("{} is newer than {}", from.name(), to.name());
            return Err(LabError::new(problem, "give the older kernel first"));
        }
        let way = path.way;
        let kernels = (0..=way.end()).map(|position| way.kernel(position)).collect::<Vec<_>>();
        let steps =
            (0..=way.end()).map(|position| way.step(position).as_ref().map(WatchedStep::of)).collect();
        let why_empty = (way.end() == 0).then(|| way.why_empty());
        Ok(WatchedLine { name: name.to_string(), shifts: vec![0; kernels.len()], kernels, steps, why_empty })
    }

    /// One kernel under many names, each with chance of its own: nothing is to be found among them.
    pub fn of_one(kernel: &Kernel, names: usize) -> WatchedLine {
        let step = |number: usize| WatchedStep {
            commit: format!("name{number}"),
            subject: format!("{} by another name", kernel.name()),
            release: None,
            date: None,
        };
        WatchedLine {
            name: format!("{names} times {}", kernel.name()),
            kernels: vec![Some(kernel.clone()); names],
            steps: (0..names).map(|number| (number > 0).then(|| step(number))).collect(),
            shifts: (0..names as u64).map(|number| number * 1_000_000).collect(),
            why_empty: None,
        }
    }

    /// Why there is no commit on it; `None`: there is one.
    pub fn why_empty(&self) -> Option<&str> {
        self.why_empty.as_deref()
    }

    /// How many kernels there are, those that contradict themselves or cannot be built within.
    pub fn count(&self) -> usize {
        self.kernels.len()
    }

    /// A kernel, and what is added to its seeds; `None` where there is none.
    pub(crate) fn kernel(&self, position: usize) -> Option<(&Kernel, u64)> {
        Some((self.kernels.get(position)?.as_ref()?, self.shifts[position]))
    }

    /// The name of a kernel.
    pub(crate) fn name_of(&self, position: usize) -> Option<String> {
        self.kernel(position).map(|(kernel, _)| kernel.name().to_string())
    }

    /// What leads to a kernel.
    pub(crate) fn step(&self, position: usize) -> Option<&WatchedStep> {
        self.steps.get(position)?.as_ref()
    }

    /// The steps after one position, up to another: where kernels between them are missing, they go together.
    pub(crate) fn steps_between(&self, before: usize, after: usize) -> Vec<WatchedStep> {
        (before + 1..=after).filter_map(|position| self.step(position).cloned()).collect()
    }

    /// Puts the model of each tree in its place, and leaves the steps as they are: release and commits are what the tree's sources show.
    /// A kernel that is modelled stays. Gives why those are left out that are.
    pub fn modelled(
        &mut self,
        setting: &RunSetting,
        tell: &dyn Fn(&str),
        stop: &AtomicBool,
    ) -> BTreeMap<String, LabError> {
        let mut failed = self.prepare(setting, tell, stop);
        for place in &mut self.kernels {
            let Some(Kernel::Source(tree)) = place else { continue };
            let name = tree.name().to_string();
            *place = match model_of(tree) {
                Ok((rules, _)) => {
                    tell(&format!("{name} is {}", rules.name()));
                    Some(rules.into())
                }
                Err(error) => {
                    failed.insert(name, error);
                    None
                }
            };
        }
        failed
    }

    /// Builds what is built from sources, for a machine. What cannot be built is left out; gives why.
    pub(crate) fn prepare(
        &mut self,
        setting: &RunSetting,
        tell: &dyn Fn(&str),
        stop: &AtomicBool,
    ) -> BTreeMap<String, LabError> {
        let mut failed = BTreeMap::new();
        for place in &mut self.kernels {
            let Some(kernel) = place else { continue };
            let told = |step: &str, _| tell(&format!("build of {}, {step}", kernel.name()));
            if let Err(error) = kernel.prepare(&setting.machine, &told, stop) {
                failed.insert(kernel.name().to_string(), error);
                *place = None;
            }
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(range: &str) -> Result<WatchedLine, LabError> {
        WatchedLine::parse(range, &AtomicBool::new(false))
    }

    #[test]
    fn a_list_is_taken_as_it_stands() {
        let line = parsed("v6.12,v6.6,base_slice_ns=6000000,v6.6").expect("a list");
        let names = (0..line.count()).filter_map(|at| line.name_of(at)).collect::<Vec<_>>();
        assert_eq!(names, ["v6.12", "v6.6,base_slice_ns=6000000", "v6.6"]);
        assert_eq!((line.name.as_str(), line.why_empty()), ("v6.12,v6.6,base_slice_ns=6000000,v6.6", None));
        let subjects = line.steps_between(0, 2).into_iter().map(|step| step.subject).collect::<Vec<_>>();
        assert_eq!(
            subjects,
            ["v6.6,base_slice_ns=6000000 after v6.12", "v6.6 after v6.6,base_slice_ns=6000000"]
        );
        let ranged = parsed("v6.5,base_slice_ns=3000000..v6.6,base_slice_ns=3000000");
        assert!(ranged.is_ok_and(|line| line.count() > 3), "a range whose ends have tunables is no list");
        for (wrong, told) in
            [("v6.6,host", "host is a kernel as it is"), ("v6.6,", "''"), ("v6.6", "is no range")]
        {
            let error = parsed(wrong).err().map(|error| error.problem).unwrap_or_default();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }
}
