//! The folder of cells: what they are, and a journal with a line for each that is done.
//!
//! Must not know: what the numbers mean.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fairlab_event::ShownPath;
use serde_json::{Value, json};

use super::CellList;
use crate::{LabError, Progress, temporary, write_whole};
use fairlab_files::journal::{self, Journal, LinePosition};

const SPEC: &str = "spec.json";
const JOURNAL: &str = "cells.jsonl";

/// A kind of lists of cells.
#[derive(Debug, PartialEq, Eq)]
pub struct CellKind {
    /// What a journal's head says it is.
    pub schema: &'static str,
    /// What such a list is called: a noun that takes `a`.
    pub name: &'static str,
}

/// A journal of cells that is written to.
#[derive(Debug)]
pub struct CellJournal {
    journal: Journal,
    /// What it is of.
    name: &'static str,
    /// Cells in all.
    cells: usize,
    /// Cells that are done, a bit each.
    done: Vec<u64>,
    count: usize,
}

impl CellJournal {
    /// Opens the folder of these cells, or makes it. What an interruption left half-written is cut off, and told by the second.
    ///
    /// # Errors
    /// The folder is that of other cells, its journal is damaged or somebody writes to it, or it cannot be written to.
    pub fn open(folder: &Path, work: &dyn CellList) -> Result<(CellJournal, Option<String>), LabError> {
        let failed = |error: io::Error| cannot_write(folder, &error);
        let (spec, cells, CellKind { schema, name }) = (work.spec(), work.count(), work.kind());
        let spec_path = folder.join(SPEC);
        if spec_path.is_file() {
            let known = fs::read_to_string(&spec_path).map_err(failed)?;
            if serde_json::from_str::<Value>(&known).ok().as_ref() != Some(&spec) {
                let problem = format!("{} is the folder of another {name}", ShownPath(folder));
                return Err(LabError::new(problem, "name another one with --out, or remove it"));
            }
        } else if folder.is_dir() && !holds_nothing(folder).map_err(failed)? {
            let problem = format!("{} is there, and is no {name}'s folder", ShownPath(folder));
            return Err(LabError::new(problem, "name a new one with --out"));
        } else {
            fs::create_dir_all(folder).map_err(failed)?;
            write_whole(&spec_path, format!("{spec:#}\n")).map_err(failed)?;
        }
        let (mut done, mut count) = (vec![0_u64; cells.div_ceil(64)], 0);
        let path = folder.join(JOURNAL);
        let head = json!({ "schema": schema, "cells": cells });
        let (journal, torn) = Journal::open(&path, &head, &mut |cell| {
            let number = number_of(&cell).filter(|&number| number < cells);
            let number = number.filter(|&number| !is_done(&done, number)).ok_or_else(|| {
                let (path, cell) = (ShownPath(&path), &cell["cell"]);
                let problem = format!("{path}: cell {cell} is not of this {name}, or there twice");
                LabError::new(problem, "name another folder with --out")
            })?;
            done[number / 64] |= 1 << (number % 64);
            count += 1;
            Ok(())
        })?;
        let note = torn.map(|torn| format!("{}: {torn}", ShownPath(&path)));
        Ok((CellJournal { journal, name, cells, done, count }, note))
    }

    /// How many cells are done.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The cells that are left, in their order.
    pub(super) fn todo(&self, work: &dyn CellList) -> Vec<usize> {
        let mut todo = (0..self.cells).filter(|&number| !is_done(&self.done, number)).collect::<Vec<_>>();
        todo.sort_by_key(|&number| work.round(number));
        todo
    }

    /// Adds the record of a cell that is done. It is in the file when this returns.
    ///
    /// # Errors
    /// It is the record of no cell that is left, or the file cannot be written to.
    pub fn add(&mut self, record: &Value) -> Result<(), LabError> {
        let number = number_of(record).filter(|&number| number < self.cells && !is_done(&self.done, number));
        let Some(number) = number else {
            let problem = format!("cell {} is not of this {}, or done already", record["cell"], self.name);
            return Err(LabError::new(problem, "run the same version everywhere"));
        };
        self.journal.add(record)?;
        self.done[number / 64] |= 1 << (number % 64);
        self.count += 1;
        Ok(())
    }
}

fn is_done(done: &[u64], cell: usize) -> bool {
    done.get(cell / 64).is_some_and(|bits| bits >> (cell % 64) & 1 == 1)
}

/// Whether there is nothing in a folder but what a killed process left under way.
fn holds_nothing(folder: &Path) -> io::Result<bool> {
    temporary::clean_beside(folder);
    Ok(fs::read_dir(folder)?.next().is_none())
}

fn number_of(cell: &Value) -> Option<usize> {
    usize::try_from(cell["cell"].as_u64()?).ok()
}

/// All that decides the records of a folder's cells.
///
/// # Errors
/// There is none, or it cannot be read.
pub(crate) fn spec_of(folder: &Path) -> Result<Value, LabError> {
    let path = folder.join(SPEC);
    let text = fs::read_to_string(&path).map_err(|error| error.to_string());
    text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string())).map_err(|why| {
        LabError::new(format!("{}: {why}", ShownPath(&path)), "give the folder that the command wrote")
    })
}

/// Feeds every cell of a folder to `each`, in the order in which they were done. The last line of a journal that is under way
/// may be half-written: it is left out. Gives how far it is.
///
/// # Errors
/// There is no journal there, a line of it is damaged, a cell is there twice, or `each` fails.
pub fn read(
    folder: &Path,
    kind: &CellKind,
    each: &mut dyn FnMut(Value) -> Result<(), LabError>,
) -> Result<Progress, LabError> {
    read_with_places(folder, kind, &mut |cell, _| each(cell))
}

/// A journal's cells in the order of their numbers. Held are their places alone.
#[derive(Debug)]
pub(crate) struct InOrder {
    path: PathBuf,
    places: BTreeMap<usize, LinePosition>,
}

impl InOrder {
    /// Finds the cells of a folder; `seen` gets each as it comes.
    ///
    /// # Errors
    /// As of [`read`].
    pub(crate) fn of(
        folder: &Path,
        kind: &CellKind,
        seen: &mut dyn FnMut(&Value),
    ) -> Result<InOrder, LabError> {
        let mut places = BTreeMap::new();
        read_with_places(folder, kind, &mut |cell, place| {
            places.extend(number_of(&cell).map(|number| (number, place)));
            seen(&cell);
            Ok(())
        })?;
        Ok(InOrder { path: folder.join(JOURNAL), places })
    }

    /// Feeds every cell to `each`.
    ///
    /// # Errors
    /// The journal cannot be read any more, or `each` fails.
    pub(crate) fn feed(&self, each: &mut dyn FnMut(Value) -> Result<(), LabError>) -> Result<(), LabError> {
        let file = journal::open_to_read(&self.path)?;
        self.places.values().try_for_each(|place| each(journal::record_at(&self.path, &file, *place)?))
    }
}

fn read_with_places(
    folder: &Path,
    kind: &CellKind,
    each: &mut dyn FnMut(Value, LinePosition) -> Result<(), LabError>,
) -> Result<Progress, LabError> {
    let CellKind { schema, name } = kind;
    let path = folder.join(JOURNAL);
    if !path.is_file() {
        let problem = format!("{} holds no journal of a {name} ({JOURNAL})", ShownPath(folder));
        return Err(LabError::new(problem, format!("give the folder of a {name}")));
    }
    let broken =
        |what: &str| LabError::new(format!("{}: {what}", ShownPath(&path)), format!("run the {name} again"));
    let (mut begun, mut total, mut seen) = (false, 0, BTreeSet::new());
    journal::read_with_places(&path, &mut |record, place| {
        if !begun {
            begun = true;
            let is_ours = record["schema"] == *schema;
            total = record["cells"].as_u64().and_then(|cells| usize::try_from(cells).ok()).unwrap_or(0);
            return if is_ours { Ok(()) } else { Err(broken(&format!("this is the journal of no {name}"))) };
        }
        let number = number_of(&record).ok_or_else(|| broken("a line has no cell's number"))?;
        if !seen.insert(number) {
            return Err(broken(&format!("cell {number} is there twice")));
        }
        each(record, place)
    })?;
    Ok(Progress { done: seen.len(), total })
}

pub(crate) fn cannot_write(folder: &Path, error: &io::Error) -> LabError {
    LabError::new(format!("cannot write {}: {error}", folder.display()), "check the place that --out names")
}
