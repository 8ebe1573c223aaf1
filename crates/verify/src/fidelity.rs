//! How well the model agrees with a whole collection of recordings: each against the generation of its own kernel.
//!
//! Nothing is skipped in silence. Three cases are named and counted: a recording whose kernel is not modelled, a recording
//! that cannot be read, and a folder without a recording.
//!
//! Must not know: how a decision is judged, and how the answer is shown.

mod answer;
mod figures;
pub mod page;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub use figures::{DecisionCounts, FidelityFigure, FidelityFigures, FigureRegression};

use crate::{VerifyOptions, told_kernel, verify};
use fairlab_event::Origin;
use fairlab_files::{LabError, workers};
use fairlab_recording::{Recording, holds_trace};
use serde::{Deserialize, Serialize};

/// How deep below the given folder recordings are looked for.
const DEPTH_MAX: usize = 8;

/// What came of a collection.
#[derive(Clone, Debug, Default)]
pub struct Fidelity {
    /// One entry a folder, in order of their names.
    pub entries: Vec<FidelityEntry>,
}

/// One folder below the one that was given.
#[derive(Clone, Debug)]
pub struct FidelityEntry {
    /// Its path below that folder; the last part of its own path where it is that folder.
    pub name: String,
    /// What came of it.
    pub outcome: FolderJudgement,
}

/// What came of one folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderJudgement {
    /// A recording, walked by the rules of its own kernel.
    Judged(RecordingAgreement),
    /// A recording of a kernel that is not modelled, or that nothing names.
    UnknownKernel(LabError),
    /// It should hold a recording, and that could not be read.
    Unreadable(LabError),
    /// It holds no recording.
    NoRecording,
}

impl FolderJudgement {
    /// The judgement with paths below `whole` told as paths below `told`.
    #[must_use]
    pub fn with_path(self, whole: &Path, told: &Path) -> FolderJudgement {
        let (whole, told) = (whole.display().to_string(), told.display().to_string());
        let text = |text: String| text.replace(&whole, &told);
        let error = |error: LabError| LabError { problem: text(error.problem), ..error };
        match self {
            FolderJudgement::Judged(judged) => FolderJudgement::Judged(RecordingAgreement {
                notes: judged.notes.into_iter().map(text).collect(),
                ..judged
            }),
            FolderJudgement::UnknownKernel(problem) => FolderJudgement::UnknownKernel(error(problem)),
            FolderJudgement::Unreadable(problem) => FolderJudgement::Unreadable(error(problem)),
            FolderJudgement::NoRecording => FolderJudgement::NoRecording,
        }
    }
}

/// How well the model of its kernel agrees with a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingAgreement {
    /// The counts, without the recording's name.
    figures: Vec<FidelityFigure>,
    /// What is amiss with the recording, and what of its kernel the model leaves out: a sentence each.
    notes: Vec<String>,
    /// By what way it came about, where anything tells.
    origin: Option<String>,
}

impl Fidelity {
    /// The counts of every recording that was judged.
    pub fn figures(&self) -> FidelityFigures {
        let named = self.judged().flat_map(|(name, judged)| {
            judged
                .figures
                .iter()
                .map(|figure| FidelityFigure { recording: name.to_string(), ..figure.clone() })
        });
        FidelityFigures { rows: named.collect() }
    }

    fn judged(&self) -> impl Iterator<Item = (&str, &RecordingAgreement)> {
        self.entries.iter().filter_map(|entry| match &entry.outcome {
            FolderJudgement::Judged(judged) => Some((entry.name.as_str(), judged)),
            _ => None,
        })
    }

    /// How the recordings that were judged came about; `None`: nothing tells of one.
    pub fn origins(&self) -> impl Iterator<Item = Option<Origin>> {
        self.judged().map(|(_, judged)| judged.origin.as_deref().and_then(Origin::parse))
    }

    /// Recordings that could not be read.
    pub fn unreadable(&self) -> impl Iterator<Item = (&str, &LabError)> {
        self.entries.iter().filter_map(|entry| match &entry.outcome {
            FolderJudgement::Unreadable(error) => Some((entry.name.as_str(), error)),
            _ => None,
        })
    }

    /// Recordings of kernels that are not modelled.
    pub fn unknown(&self) -> impl Iterator<Item = (&str, &LabError)> {
        self.entries.iter().filter_map(|entry| match &entry.outcome {
            FolderJudgement::UnknownKernel(error) => Some((entry.name.as_str(), error)),
            _ => None,
        })
    }

    /// Folders that hold no recording.
    pub fn without_recording(&self) -> impl Iterator<Item = &str> {
        self.entries
            .iter()
            .filter(|entry| matches!(entry.outcome, FolderJudgement::NoRecording))
            .map(|entry| entry.name.as_str())
    }

    /// What the walks that were done had to say beside their counts, by recording.
    pub fn notes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.judged().flat_map(|(name, judged)| judged.notes.iter().map(move |note| (name, note.as_str())))
    }
}

/// Walks every recording at or below `folder`, `jobs` at a time. The result does not depend on `jobs`.
///
/// # Errors
/// The folder cannot be read, or there is no recording in it.
pub fn measure(folder: &Path, jobs: usize) -> Result<Fidelity, LabError> {
    let found = find(folder, folder)?;
    let never = AtomicBool::new(false);
    let outcomes = workers::for_each(&found, jobs, &|_| {}, &never, |place| Ok(Some(judge(&place.path))))?;
    let entries = found.into_iter().zip(outcomes.into_iter().flatten());
    Ok(Fidelity {
        entries: entries
            .map(|(RecordingFolder { name, .. }, outcome)| FidelityEntry { name, outcome })
            .collect(),
    })
}

/// The folders at or below `folder` that hold files, in order of their names. Errors name it as `told`.
///
/// # Errors
/// It cannot be read, or there is no recording in it.
pub fn find(folder: &Path, told: &Path) -> Result<Vec<RecordingFolder>, LabError> {
    let mut found = Vec::new();
    let hint = "give a folder that holds recordings' folders";
    look_through(folder, 0, &mut BTreeSet::new(), &mut found)
        .map_err(|error| LabError::new(format!("{}: {error}", told.display()), hint))?;
    if !found.iter().any(|place| place.recording) {
        let problem = format!("{} holds no recording", told.display());
        return Err(LabError::new(problem, format!("{hint}, each with its trace")));
    }
    let named =
        |place: ScannedFolder| RecordingFolder { name: name_below(folder, &place.path), path: place.path };
    Ok(found.into_iter().map(named).collect())
}

/// A folder that may hold a recording.
#[derive(Clone, Debug)]
pub struct RecordingFolder {
    /// Its path below the folder that was looked through; the last part of its own path where it is that folder.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
}

/// A folder that holds files.
#[derive(Clone, Debug)]
struct ScannedFolder {
    path: PathBuf,
    /// Whether it is or should be a recording's.
    recording: bool,
}

/// Collects the folders that hold files, in order of their names. What stands inside a recording's folder is part of it. `seen` has
/// the folders that were entered, by device and inode: whatever links lead there, each is entered once.
fn look_through(
    folder: &Path,
    depth: usize,
    seen: &mut BTreeSet<(u64, u64)>,
    found: &mut Vec<ScannedFolder>,
) -> std::io::Result<()> {
    let about = fs::metadata(folder)?;
    if !seen.insert((about.dev(), about.ino())) {
        return Ok(());
    }
    if is_recording(folder) {
        found.push(ScannedFolder { path: folder.to_path_buf(), recording: true });
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
        found.push(ScannedFolder { path: folder.to_path_buf(), recording: false });
    }
    below.iter().try_for_each(|(_, path)| look_through(path, depth + 1, seen, found))
}

fn name_below(folder: &Path, path: &Path) -> String {
    let below = path.strip_prefix(folder).unwrap_or(path);
    let below =
        if below.as_os_str().is_empty() { Path::new(path.file_name().unwrap_or_default()) } else { below };
    below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Whether a folder is or should be a recording's.
fn is_recording(folder: &Path) -> bool {
    let described = folder.join("meta.json").is_file() || folder.join("sched_debug-start.txt").is_file();
    described || holds_trace(folder)
}

/// Holds the recording in a folder against the model of its own kernel.
pub fn judge(path: &Path) -> FolderJudgement {
    if !is_recording(path) {
        return FolderJudgement::NoRecording;
    }
    let options = VerifyOptions::default();
    let mut recording = match Recording::open(path) {
        Ok(recording) => recording,
        Err(error) => return FolderJudgement::Unreadable(error),
    };
    let known = match told_kernel(&mut recording, path, &options) {
        Ok(known) => known,
        Err(error) => return FolderJudgement::UnknownKernel(error),
    };
    match verify(path, &known.generation, &options) {
        Ok(agreement) => FolderJudgement::Judged(RecordingAgreement {
            figures: FidelityFigures::of(&agreement).rows,
            notes: agreement.notes.iter().chain(&known.left_out).cloned().collect(),
            origin: agreement.origin.map(|origin| origin.name().to_string()),
        }),
        Err(error) => FolderJudgement::Unreadable(error),
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
        look_through(place.path(), 0, &mut BTreeSet::new(), &mut found).expect("looked through");
        let names = found.iter().map(|found| name_below(place.path(), &found.path)).collect::<Vec<_>>();
        assert_eq!(names, ["a/one", "b/two"]);
        assert!(found.iter().all(|found| found.recording));
    }

    #[test]
    fn a_folder_without_recordings_is_refused_in_one_line() {
        let folder = std::env::temp_dir().join(format!("fairlab-fidelity-{}", std::process::id()));
        fs::create_dir_all(folder.join("empty")).expect("a folder");
        let refused = measure(&folder, 1).expect_err("nothing there").to_string();
        fs::remove_dir_all(&folder).expect("removed");
        assert!(refused.contains("holds no recording") && !refused.contains('\n'), "{refused}");
        let refused = measure(&folder, 1).expect_err("not there").to_string();
        assert!(refused.contains("No such file") && !refused.contains('\n'), "{refused}");
    }
}
