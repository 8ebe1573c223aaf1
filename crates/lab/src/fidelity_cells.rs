//! A collection of recordings against the models of their kernels, as cells: each recording can be walked on any machine that has it.
//!
//! Must not know: how a recording is judged, how the answer is shown.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_event::ShownPath;
use fairlab_verify::fidelity::{Fidelity, FidelityEntry, FolderJudgement, RecordingFolder, find, judge};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use xxhash_rust::xxh3::Xxh3;

use crate::cells::{BatchWork, CellBatch, CellKind, CellList, CellWorkers, records};
use crate::{LabError, Progress};

static KIND: CellKind = CellKind { schema: "fairlab/fidelity-journal/1", name: "collection" };

/// Read at once, bytes.
const CHUNK: usize = 1 << 20;

/// What an answer says of a recording that cannot be read: it is no part of what its content is known by.
const UNREADABLE: &str = "unreadable";

/// Recordings below a folder.
#[derive(Debug)]
struct Recordings {
    found: Vec<RecordingFolder>,
    /// What the content of each is known by, where that is asked for.
    keys: Vec<String>,
}

/// Some of them. They lie at one path on every machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordingBatch {
    cells: Vec<RecordingCell>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordingCell {
    cell: usize,
    path: PathBuf,
    /// A digest of its files.
    key: String,
}

/// Walks every recording at or below `folder`. With a folder `out` what came of each is kept there. `None`: it was stopped.
///
/// # Errors
/// The folder cannot be read, there is no recording in it, or as of [`run_journalled`](crate::cells::run_journalled).
pub fn measure(
    folder: &Path,
    out: Option<&Path>,
    place: CellWorkers<'_>,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<Option<Fidelity>, LabError> {
    // Whoever walks a recording has it by its whole path; what is told names it as the user does.
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let found = find(&whole, folder)?;
    let mut keys = Vec::new();
    if matches!(place, CellWorkers::Crew(_)) || out.is_some() {
        keys = found.iter().map(|found| key(&found.path)).collect();
    }
    let work = Recordings { found, keys };
    let (records, outcome) = records(&work, out, place, on_progress, stop)?;
    if !outcome.is_complete() || stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let entries = work.found.iter().zip(&records).map(|(found, record)| {
        let outcome = FolderJudgement::deserialize(&record["judgement"]).map_err(|error| {
            let problem = format!("cell {} is no judgement: {error}", record["cell"]);
            LabError::new(problem, "run the same version everywhere")
        });
        Ok(FidelityEntry { name: found.name.clone(), outcome: outcome?.with_path(&whole, folder) })
    });
    Ok(Some(Fidelity { entries: entries.collect::<Result<_, LabError>>()? }))
}

impl CellList for Recordings {
    fn kind(&self) -> &'static CellKind {
        &KIND
    }

    fn spec(&self) -> Value {
        let named = self.found.iter().zip(&self.keys).map(|(found, key)| json!([found.name, key]));
        json!({
            "schema": "fairlab/fidelity-spec/1",
            "fairlab": env!("CARGO_PKG_VERSION"),
            "recordings": named.collect::<Vec<_>>(),
        })
    }

    fn count(&self) -> usize {
        self.found.len()
    }

    fn prepare(&self, _: &AtomicBool) -> Result<(), LabError> {
        Ok(())
    }

    fn batch(&self, numbers: &[usize]) -> Result<CellBatch, LabError> {
        let cell = |&cell: &usize| {
            let (path, key) = (self.found[cell].path.clone(), self.keys[cell].clone());
            RecordingCell { cell, path, key }
        };
        Ok(CellBatch::of(BatchWork::Recordings(RecordingBatch { cells: numbers.iter().map(cell).collect() })))
    }

    fn run(&self, number: usize, _: &AtomicBool) -> Result<Option<Value>, LabError> {
        Ok(Some(record(number, &judge(&self.found[number].path))))
    }
}

impl RecordingBatch {
    /// Walks the recordings and gives what came of them; `None`: `stop` was set before the end.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
        let mut records = Vec::new();
        for RecordingCell { cell, path, key: wanted } in &self.cells {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let shown = ShownPath(path);
            let hint = "recordings have to lie at one path on every host";
            if !path.is_dir() {
                let problem = format!("on a host of the cluster: {shown} is no folder");
                return Err(LabError::new(problem, hint));
            }
            if key(path) != *wanted {
                let problem = format!("on a host of the cluster: {shown} holds other files");
                return Err(LabError::new(problem, hint));
            }
            records.push(record(*cell, &judge(path)));
        }
        Ok(Some(records))
    }
}

fn record(number: usize, judgement: &FolderJudgement) -> Value {
    json!({ "cell": number, "judgement": judgement })
}

/// What a recording is known by on any machine: a digest of its files' names and contents.
fn key(folder: &Path) -> String {
    let mut hash = Xxh3::new();
    match digest(folder, folder, &mut hash) {
        Ok(()) => format!("{:032x}", hash.digest128()),
        Err(_) => UNREADABLE.to_string(),
    }
}

fn digest(top: &Path, folder: &Path, hash: &mut Xxh3) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            digest(top, &path, hash)?;
            continue;
        }
        // A link to a folder leads out of the recording.
        let about = fs::metadata(&path)?;
        if !about.is_file() {
            continue;
        }
        hash.update(path.strip_prefix(top).unwrap_or(&path).as_os_str().as_encoded_bytes());
        hash.update(&[0]);
        hash.update(&about.len().to_le_bytes());
        let (mut file, mut chunk) = (File::open(&path)?, vec![0; CHUNK]);
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                length => hash.update(&chunk[..length]),
            }
        }
    }
    Ok(())
}
