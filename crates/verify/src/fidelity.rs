//! How well the model agrees with a whole collection of recordings: each against the generation of its own kernel.
//!
//! Nothing is skipped in silence. Three cases are named and counted: a recording whose kernel is not modelled, a recording
//! that cannot be read, and a folder without a recording.
//!
//! Must not know: how a decision is judged, and how the answer is shown.

mod figures;
pub mod page;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub use figures::{Counts, Fall, Figure, Figures};

use crate::{Agreement, Recording, VerifyOptions, holds_trace, told_kernel, verify};
use fairlab_event::Origin;
use fairlab_files::{LabError, Progress, workers};

/// How deep below the given folder recordings are looked for.
const DEPTH_MAX: usize = 8;

/// What came of a collection.
#[derive(Clone, Debug, Default)]
pub struct Fidelity {
    /// One entry a folder, in order of their names.
    pub entries: Vec<Entry>,
}

/// One folder below the one that was given.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its path below that folder; the last part of its own path where it is that folder.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of one folder.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A recording, walked by the rules of its own kernel; what of that kernel the model leaves out.
    Judged(Box<Agreement>, Vec<String>),
    /// A recording of a kernel that is not modelled, or that nothing names.
    UnknownKernel(LabError),
    /// It should hold a recording, and that could not be read.
    Unreadable(LabError),
    /// It holds no recording.
    NoRecording,
}

impl Fidelity {
    /// The counts of every recording that was judged.
    pub fn figures(&self) -> Figures {
        let judged = self.entries.iter().filter_map(|entry| match &entry.outcome {
            Outcome::Judged(agreement, _) => Some((entry.name.as_str(), &**agreement)),
            _ => None,
        });
        Figures::of(judged)
    }

    /// How the recordings that were judged came about; `None`: nothing tells of one.
    pub fn origins(&self) -> impl Iterator<Item = Option<Origin>> {
        self.entries.iter().filter_map(|entry| match &entry.outcome {
            Outcome::Judged(agreement, _) => Some(agreement.origin),
            _ => None,
        })
    }

    /// Recordings that could not be read.
    pub fn unreadable(&self) -> impl Iterator<Item = (&str, &LabError)> {
        self.entries.iter().filter_map(|entry| match &entry.outcome {
            Outcome::Unreadable(error) => Some((entry.name.as_str(), error)),
            _ => None,
        })
    }

    /// Recordings of kernels that are not modelled.
    pub fn unknown(&self) -> impl Iterator<Item = (&str, &LabError)> {
        self.entries.iter().filter_map(|entry| match &entry.outcome {
            Outcome::UnknownKernel(error) => Some((entry.name.as_str(), error)),
            _ => None,
        })
    }

    /// Folders that hold no recording.
    pub fn without_recording(&self) -> impl Iterator<Item = &str> {
        self.entries
            .iter()
            .filter(|entry| matches!(entry.outcome, Outcome::NoRecording))
            .map(|entry| entry.name.as_str())
    }

    /// What the walks that were done had to say beside their counts, by recording.
    pub fn notes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().flat_map(|entry| {
            let notes = match &entry.outcome {
                Outcome::Judged(agreement, left_out) => agreement.notes.iter().chain(left_out).collect(),
                _ => Vec::new(),
            };
            notes.into_iter().map(|note| (entry.name.as_str(), note.as_str()))
        })
    }
}

/// Walks every recording at or below `folder`, `jobs` at a time; `on_progress` is called after each, from any thread.
/// Up to `misses` misses of each are kept. The result does not depend on `jobs`.
///
/// # Errors
/// The folder cannot be read, or there is no recording in it.
pub fn measure(
    folder: &Path,
    jobs: usize,
    misses: usize,
    on_progress: &(dyn Fn(Progress) + Sync),
) -> Result<Fidelity, LabError> {
    let mut found = Vec::new();
    find(folder, 0, &mut BTreeSet::new(), &mut found).map_err(|error| {
        LabError::new(
            format!("{}: {error}", folder.display()),
            "give a folder that holds recordings' folders",
        )
    })?;
    if !found.iter().any(|place| place.recording) {
        let problem = format!("{} holds no recording", folder.display());
        return Err(LabError::new(
            problem,
            "give a folder that holds recordings' folders, each with its trace",
        ));
    }
    let name = |place: &Folder| name_below(folder, &place.path);
    let outcomes = judge_all(&found, jobs, misses, on_progress)?;
    let entries = found.iter().zip(outcomes).map(|(place, outcome)| Entry { name: name(place), outcome });
    Ok(Fidelity { entries: entries.collect() })
}

/// A folder that holds files.
#[derive(Clone, Debug)]
struct Folder {
    path: PathBuf,
    /// Whether it is or should be a recording's.
    recording: bool,
}

/// Collects the folders that hold files, in order of their names. What stands inside a recording's folder is part of it. `seen` has
/// the folders that were entered, by device and inode: whatever links lead there, each is entered once.
fn find(
    folder: &Path,
    depth: usize,
    seen: &mut BTreeSet<(u64, u64)>,
    found: &mut Vec<Folder>,
) -> std::io::Result<()> {
    let about = fs::metadata(folder)?;
    if !seen.insert((about.dev(), about.ino())) {
        return Ok(());
    }
    let described = folder.join("meta.json").is_file() || folder.join("sched_debug-start.txt").is_file();
    if described || holds_trace(folder) {
        found.push(Folder { path: folder.to_path_buf(), recording: true });
        return Ok(());
    }
    let mut below = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if path.is_dir() && depth < DEPTH_MAX {
            // A folder itself comes before links to it, and gives it its name.
            below.push((entry.file_type()?.is_symlink(), path));
        }
    }
    below.sort();
    if below.is_empty() {
        found.push(Folder { path: folder.to_path_buf(), recording: false });
    }
    below.iter().try_for_each(|(_, path)| find(path, depth + 1, seen, found))
}

fn name_below(folder: &Path, path: &Path) -> String {
    let below = path.strip_prefix(folder).unwrap_or(path);
    let below =
        if below.as_os_str().is_empty() { Path::new(path.file_name().unwrap_or_default()) } else { below };
    below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn judge_all(
    places: &[Folder],
    jobs: usize,
    misses: usize,
    on_progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Outcome>, LabError> {
    let never = AtomicBool::new(false);
    let outcomes = workers::for_each(places, jobs, on_progress, &never, |place| {
        Ok(Some(if place.recording { judge(&place.path, misses) } else { Outcome::NoRecording }))
    })?;
    Ok(outcomes.into_iter().flatten().collect())
}

fn judge(path: &Path, misses: usize) -> Outcome {
    let options = VerifyOptions { misses, ..VerifyOptions::default() };
    let mut recording = match Recording::open(path) {
        Ok(recording) => recording,
        Err(error) => return Outcome::Unreadable(error),
    };
    let known = match told_kernel(&mut recording, path, &options) {
        Ok(known) => known,
        Err(error) => return Outcome::UnknownKernel(error),
    };
    match verify(path, &known.generation, &options) {
        Ok(agreement) => Outcome::Judged(Box::new(agreement), known.left_out),
        Err(error) => Outcome::Unreadable(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_below_the_folder() {
        assert_eq!(name_below(Path::new("/a/b"), Path::new("/a/b/c/d")), "c/d");
        assert_eq!(name_below(Path::new("/a/b"), Path::new("/a/b")), "b");
    }

    #[test]
    fn whatever_links_lead_there_a_recording_is_found_once() {
        use std::os::unix::fs::symlink;
        let place = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let at = |name: &str| place.path().join(name);
        for recording in ["a/one", "b/two"] {
            fs::create_dir_all(at(recording)).expect("a folder");
            fs::write(at(recording).join("meta.json"), "{}").expect("a file");
        }
        for (link, to) in
            [("again", "b/two"), ("a/up", ".."), ("b/loop", "."), ("outer", "a"), ("dangling", "none")]
        {
            symlink(to, at(link)).expect("a link");
        }
        let mut found = Vec::new();
        find(place.path(), 0, &mut BTreeSet::new(), &mut found).expect("looked through");
        let names = found.iter().map(|found| name_below(place.path(), &found.path)).collect::<Vec<_>>();
        assert_eq!(names, ["a/one", "b/two"]);
        assert!(found.iter().all(|found| found.recording));
    }

    #[test]
    fn a_folder_without_recordings_is_refused_in_one_line() {
        let folder = std::env::temp_dir().join(format!("fairlab-fidelity-{}", std::process::id()));
        fs::create_dir_all(folder.join("empty")).expect("a folder");
        let refused = measure(&folder, 1, 0, &|_| ()).expect_err("nothing there").to_string();
        fs::remove_dir_all(&folder).expect("removed");
        assert!(refused.contains("holds no recording") && !refused.contains('\n'), "{refused}");
        let refused = measure(&folder, 1, 0, &|_| ()).expect_err("not there").to_string();
        assert!(refused.contains("No such file") && !refused.contains('\n'), "{refused}");
    }
}
