//! A journal made into a table: Parquet with a row a cell, counts by group.
//!
//! Cells come in the order of their numbers, however many threads there were. Must not know: who reads the table.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufWriter;
use std::path::Path;

use fairlab_trace::parquet::TableWriter;
use fairlab_trace::table::{Cell, ColumnKind};
use serde_json::Value;

use super::journal::{self, cannot_write};
use super::plan::Plan;
use crate::hosts::Labels;
use crate::kernel::origin_of;
use crate::merge::{COUNTS_FILE, Group, Merged, read_counts};
use crate::{LabError, OutputFile, write_whole};

const TABLE: &str = "cells.parquet";

/// Columns that every sweep has before its options and metrics.
const TEXTS: [&str; 4] = ["kernel", "machine", "workload", "digest"];
const COUNTS: [&str; 3] = ["cell", "seed", "simulated_ns"];

/// Writes `cells.parquet` and `counts.json` into the folder.
pub(super) fn write(plan: &Plan, folder: &Path) -> Result<(), LabError> {
    let failed = |error: std::io::Error| cannot_write(folder, &error);
    let metrics = metric_names(folder)?;
    let columns = columns(plan, &metrics);
    let output = BufWriter::new(OutputFile::create(&folder.join(TABLE)).map_err(failed)?);
    let mut table = TableWriter::new(output, "cells", &columns).map_err(failed)?;
    let mut merged = Merged::default();
    in_order(folder, &mut |cell| {
        table.add(&row(&columns, &cell)).map_err(failed)?;
        let text = |name: &str| cell[name].as_str().unwrap_or_default().to_string();
        let group = Group {
            origin: Some(origin_of(&text("kernel"))),
            kernel: text("kernel"),
            machine: text("machine"),
            workload: text("workload"),
            labels: Labels::new(),
        };
        if let Some(counts) = read_counts(&cell["counts"]) {
            merged.add(group, &counts, cell["seed"].as_u64());
        }
        Ok(())
    })?;
    let output = table.finish().map_err(failed)?;
    output.into_inner().map_err(|error| failed(error.into_error()))?.finish().map_err(failed)?;
    write_whole(&folder.join(COUNTS_FILE), format!("{}\n", merged.to_json())).map_err(failed)
}

fn metric_names(folder: &Path) -> Result<BTreeSet<String>, LabError> {
    let mut names = BTreeSet::new();
    journal::read(folder, &mut |cell| {
        for name in cell["metrics"].as_object().into_iter().flat_map(|metrics| metrics.keys()) {
            if !names.contains(name) {
                names.insert(name.clone());
            }
        }
        Ok(())
    })?;
    Ok(names)
}

fn columns(plan: &Plan, metrics: &BTreeSet<String>) -> Vec<(String, ColumnKind)> {
    let fixed = TEXTS.map(|name| (name.to_string(), ColumnKind::Text));
    let counts = COUNTS.map(|name| (name.to_string(), ColumnKind::Count));
    let options = plan.option_names().map(|name| (format!("option_{name}"), ColumnKind::Text));
    let metrics = metrics.iter().map(|name| (name.clone(), ColumnKind::Number));
    fixed.into_iter().chain(counts).chain(options).chain(metrics).collect()
}

fn row<'c>(columns: &[(String, ColumnKind)], cell: &'c Value) -> Vec<Cell<'c>> {
    let value = |(name, kind): &(String, ColumnKind)| {
        let value = match (kind, name.strip_prefix("option_")) {
            (ColumnKind::Text, Some(option)) => cell["options"].get(option),
            (ColumnKind::Number, _) => cell["metrics"].get(name),
            _ => cell.get(name),
        };
        let cell = match kind {
            ColumnKind::Text => value.and_then(Value::as_str).map(Cell::Text),
            ColumnKind::Count => value.and_then(Value::as_u64).map(Cell::Count),
            ColumnKind::Number => value.and_then(Value::as_f64).map(Cell::Number),
        };
        cell.unwrap_or(Cell::Empty)
    };
    columns.iter().map(value).collect()
}

/// Feeds every cell to `each` in the order of numbers. Kept meanwhile are those that were done before one that comes
/// earlier: about as many as threads ran at once.
fn in_order(folder: &Path, each: &mut dyn FnMut(Value) -> Result<(), LabError>) -> Result<(), LabError> {
    let mut waiting: BTreeMap<u64, Value> = BTreeMap::new();
    let mut next = 0;
    journal::read(folder, &mut |cell| {
        waiting.insert(cell["cell"].as_u64().unwrap_or(0), cell);
        while let Some(cell) = waiting.remove(&next) {
            each(cell)?;
            next += 1;
        }
        Ok(())
    })
    .map(drop)
}
