//! The folder of a sweep: what it is, and a journal with a line for each cell that is done.
//!
//! Must not know: what the numbers mean.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::plan::{Cell, Plan};
use crate::merge::counts_fields;
use crate::{LabError, RunResult};

const SPEC: &str = "spec.json";
const JOURNAL: &str = "cells.jsonl";

/// A journal that is written to.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    file: File,
    done: Vec<u64>,
    count: usize,
}

/// Cells that are done, a bit each.
fn is_done(done: &[u64], cell: usize) -> bool {
    done.get(cell / 64).is_some_and(|bits| bits >> (cell % 64) & 1 == 1)
}

impl Journal {
    /// Opens the folder of `plan`'s sweep, or makes it. What an interruption left half-written is cut off.
    ///
    /// # Errors
    /// The folder is that of another sweep, or cannot be written to.
    pub(super) fn open(folder: &Path, plan: &Plan) -> Result<Journal, LabError> {
        let failed = |error: io::Error| cannot_write(folder, &error);
        let spec = plan.to_json();
        let spec_path = folder.join(SPEC);
        if spec_path.is_file() {
            let known = fs::read_to_string(&spec_path).map_err(failed)?;
            if serde_json::from_str::<Value>(&known).ok().as_ref() != Some(&spec) {
                let problem = format!("{} is the folder of another sweep", folder.display());
                return Err(LabError::new(problem, "name another one with --out, or remove it"));
            }
        } else if folder.is_dir() && fs::read_dir(folder).map_err(failed)?.next().is_some() {
            let problem = format!("{} is there, and is no sweep's folder", folder.display());
            return Err(LabError::new(problem, "name a new one with --out"));
        } else {
            fs::create_dir_all(folder).map_err(failed)?;
            write_whole(&spec_path, &format!("{spec:#}\n")).map_err(failed)?;
        }
        let path = folder.join(JOURNAL);
        let (done, count, whole) = known_cells(&path, plan).map_err(failed)?;
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        file.set_len(whole).map_err(failed)?;
        Ok(Journal { folder: folder.to_path_buf(), file, done, count })
    }

    /// How many cells are done.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether a cell is done.
    pub(super) fn has(&self, cell: usize) -> bool {
        is_done(&self.done, cell)
    }

    /// Adds a cell that is done. It is in the file when this returns.
    ///
    /// # Errors
    /// The file cannot be written to.
    pub(super) fn add(&mut self, cell: &Cell, names: &[String], run: &RunResult) -> Result<(), LabError> {
        let line = format!("{}\n", line(cell, names, run));
        self.file.write_all(line.as_bytes()).map_err(|error| cannot_write(&self.folder, &error))?;
        self.done[cell.number / 64] |= 1 << (cell.number % 64);
        self.count += 1;
        Ok(())
    }
}

/// Which cells a journal has, how many, and how many bytes of it are whole lines.
fn known_cells(path: &Path, plan: &Plan) -> io::Result<(Vec<u64>, usize, u64)> {
    let mut done = vec![0_u64; plan.cells().div_ceil(64)];
    let (mut count, mut whole) = (0, 0);
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((done, 0, 0)),
        file => file?,
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        let number = serde_json::from_slice::<Value>(&line).ok().filter(|_| line.ends_with(b"\n"));
        let number = number.and_then(|line| usize::try_from(line["cell"].as_u64()?).ok());
        let Some(number) = number.filter(|&number| number < plan.cells()) else { break };
        whole += length as u64;
        count += usize::from(!is_done(&done, number));
        done[number / 64] |= 1 << (number % 64);
    }
    Ok((done, count, whole))
}

fn line(cell: &Cell, names: &[String], run: &RunResult) -> Value {
    let options = names.iter().zip(&cell.options).map(|(name, value)| (name.clone(), json!(value)));
    let metrics = run.metrics.iter().map(|(name, value)| (name.clone(), json!(value)));
    json!({
        "cell": cell.number,
        "group": cell.group,
        "kernel": run.kernel,
        "machine": run.machine,
        "workload": run.workload,
        "options": options.collect::<serde_json::Map<_, _>>(),
        "seed": run.seed,
        "digest": run.digest,
        "simulated_ns": run.simulated_ns,
        "wall_ns": run.wall_ns,
        "metrics": metrics.collect::<serde_json::Map<_, _>>(),
        "counts": counts_fields(&run.counts),
    })
}

/// Feeds every cell of a sweep's folder to `each`, in the order in which they were done.
///
/// # Errors
/// There is no journal there, or a line of it is damaged, or `each` fails.
pub(super) fn read(
    folder: &Path,
    each: &mut dyn FnMut(Value) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let path = folder.join(JOURNAL);
    let failed = |error: &dyn std::fmt::Display| {
        LabError::new(format!("{}: {error}", path.display()), "give the folder of a sweep")
    };
    let file = File::open(&path).map_err(|error| failed(&error))?;
    for line in BufReader::new(file).lines() {
        let line = line.map_err(|error| failed(&error))?;
        match serde_json::from_str(&line) {
            Ok(cell) => each(cell)?,
            // The last line of a sweep that is under way.
            Err(error) if error.is_eof() => break,
            Err(error) => return Err(failed(&error)),
        }
    }
    Ok(())
}

/// A file beside, renamed when it is whole.
pub(super) fn write_whole(path: &Path, content: &str) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&beside, content)?;
    fs::rename(&beside, path)
}

pub(super) fn cannot_write(folder: &Path, error: &io::Error) -> LabError {
    LabError::new(format!("cannot write {}: {error}", folder.display()), "check the place that --out names")
}
