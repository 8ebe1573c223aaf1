//! A journal made into a table: Parquet with a row a cell, counts by group.
//!
//! Cells come in the order of their numbers, however many threads there were. Must not know: the table's readers.

use std::collections::BTreeSet;
use std::io::BufWriter;
use std::path::Path;

use fairlab_trace::parquet::TableWriter;
use fairlab_trace::table::{ColumnKind, TableCell};
use serde_json::Value;

use super::KIND;
use super::plan::SweepPlan;
use super::query::OPTION_COLUMN;
use crate::cells::{InOrder, cannot_write};
use crate::hosts::Labels;
use crate::kernel::origin_of;
use crate::merge::{COUNTS_FILE, MergeKey, MergedCounts, read_counts};
use crate::{LabError, OutputFile, write_whole};

const TABLE: &str = "cells.parquet";

/// Columns that every sweep has before its options and metrics.
const TEXTS: [&str; 4] = ["kernel", "machine", "workload", "digest"];
const COUNTS: [&str; 3] = ["cell", "seed", "simulated_ns"];

/// Writes `cells.parquet` and `counts.json` into the folder.
pub(super) fn write(plan: &SweepPlan, folder: &Path) -> Result<(), LabError> {
    let failed = |error: std::io::Error| cannot_write(folder, &error);
    let mut metrics = BTreeSet::new();
    let cells = InOrder::of(folder, &KIND, &mut |cell| {
        for name in cell["metrics"].as_object().into_iter().flat_map(|metrics| metrics.keys()) {
            if !metrics.contains(name) {
                metrics.insert(name.clone());
            }
        }
    })?;
    let columns = columns(plan, &metrics);
    let output = BufWriter::new(OutputFile::create(&folder.join(TABLE)).map_err(failed)?);
    let mut table = TableWriter::new(output, "cells", &without_dots(&columns)).map_err(failed)?;
    let mut merged = MergedCounts::default();
    cells.feed(&mut |cell| {
        table.add(&row(&columns, &cell)).map_err(failed)?;
        let text = |name: &str| cell[name].as_str().unwrap_or_default().to_string();
        let group = MergeKey {
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

fn columns(plan: &SweepPlan, metrics: &BTreeSet<String>) -> Vec<(String, ColumnKind)> {
    let fixed = TEXTS.map(|name| (name.to_string(), ColumnKind::Text));
    let counts = COUNTS.map(|name| (name.to_string(), ColumnKind::Count));
    let options = plan.option_names().map(|name| (format!("{OPTION_COLUMN}{name}"), ColumnKind::Text));
    let metrics = metrics.iter().map(|name| (name.clone(), ColumnKind::Number));
    fixed.into_iter().chain(counts).chain(options).chain(metrics).collect()
}

/// The names as they stand in the file: a dot in one is a path to Spark.
fn without_dots(columns: &[(String, ColumnKind)]) -> Vec<(String, ColumnKind)> {
    columns.iter().map(|(name, kind)| (name.replace('.', "_"), *kind)).collect()
}

fn row<'c>(columns: &[(String, ColumnKind)], cell: &'c Value) -> Vec<TableCell<'c>> {
    let value = |(name, kind): &(String, ColumnKind)| {
        let value = match (kind, name.strip_prefix(OPTION_COLUMN)) {
            (ColumnKind::Text, Some(option)) => cell["options"].get(option),
            (ColumnKind::Number, _) => cell["metrics"].get(name),
            _ => cell.get(name),
        };
        let cell = match kind {
            ColumnKind::Text => value.and_then(Value::as_str).map(TableCell::Text),
            ColumnKind::Count => value.and_then(Value::as_u64).map(TableCell::Count),
            ColumnKind::Number => value.and_then(Value::as_f64).map(TableCell::Number),
        };
        cell.unwrap_or(TableCell::Empty)
    };
    columns.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_in_names_of_metrics_are_no_paths() {
        let column = |name: &str| (name.to_string(), ColumnKind::Number);
        let named = without_dots(&[column("wakeup_latency_ns_p99.5"), column("throughput")]);
        assert_eq!(named, [column("wakeup_latency_ns_p99_5"), column("throughput")]);
    }
}
