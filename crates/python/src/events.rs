//! A trace's events as a table.
//!
//! Must not know: what columns there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{ArrowError, SchemaRef};
use fairlab_analysis::selector::SelectedSink;
use fairlab_lab::LabError;
use fairlab_lab::read_trace::{nothing_of, warnings};
use fairlab_trace::answer::ImportAnswer;
use fairlab_trace::table::EventBatches;
use pyo3::prelude::*;
use serde_json::json;

use crate::failed::CallError;
use crate::interruptible::abandonable;
use crate::table::Table;
use crate::traces::TraceSource;

/// The events of a trace that are chosen, a row each, with all columns or these alone; how it was read, as JSON; notes for the user.
#[pyfunction]
#[pyo3(signature = (source, columns))]
pub fn read_trace(
    py: Python<'_>,
    source: TraceSource,
    columns: Option<Vec<String>>,
) -> Result<(Table, String, Vec<String>), CallError> {
    abandonable(py, move || {
        let mut kept = KeptBatches { columns, ..KeptBatches::default() };
        let mut failed = None;
        let mut events = EventBatches::new(|batch| {
            failed = failed.take().or_else(|| kept.add(&batch).err());
        });
        let mut chosen = SelectedSink::new(source.names.chosen()?, &mut events);
        let (stats, provenance) = source.read(&mut chosen)?;
        chosen.kept().map_err(|nothing| nothing_of(&source.file, &nothing))?;
        let schema = Arc::clone(events.schema());
        let losses = events.finish().1.to_string();
        if let Some(error) = failed {
            return Err(error);
        }
        let schema = kept.narrowed(&schema)?;
        let import = json!({ "import": ImportAnswer::of(&stats, &[]) });
        let mut told = warnings(&source.file, &stats, &[]);
        told.extend(losses.lines().map(String::from));
        Ok((Table::new(schema, kept.batches), provenance.within(import).to_string(), told))
    })
}

/// Batches so far, of the columns that are wanted.
#[derive(Default)]
struct KeptBatches {
    columns: Option<Vec<String>>,
    batches: Vec<RecordBatch>,
    /// Of each column one that holds nothing: most fields belong to few tracepoints, and so most columns of a batch are empty. They
    /// share this one's memory.
    empty: BTreeMap<usize, ArrayRef>,
}

impl KeptBatches {
    fn add(&mut self, batch: &RecordBatch) -> Result<(), LabError> {
        let rows = batch.num_rows();
        let indices = self.indices(&batch.schema())?;
        let mut arrays = Vec::with_capacity(indices.len());
        for &index in &indices {
            let array = batch.column(index);
            if array.null_count() < rows {
                arrays.push(Arc::clone(array));
                continue;
            }
            let empty = self.empty.entry(index).or_insert_with(|| new_null_array(array.data_type(), rows));
            if empty.len() < rows {
                *empty = new_null_array(array.data_type(), rows);
            }
            arrays.push(empty.slice(0, rows));
        }
        let schema = Arc::new(batch.schema().project(&indices).map_err(|error| failed(&error))?);
        self.batches.push(RecordBatch::try_new(schema, arrays).map_err(|error| failed(&error))?);
        Ok(())
    }

    /// The schema of the batches.
    fn narrowed(&self, schema: &SchemaRef) -> Result<SchemaRef, LabError> {
        let indices = self.indices(schema)?;
        Ok(Arc::new(schema.project(&indices).map_err(|error| failed(&error))?))
    }

    fn indices(&self, schema: &SchemaRef) -> Result<Vec<usize>, LabError> {
        let Some(columns) = &self.columns else { return Ok((0..schema.fields().len()).collect()) };
        let index = |name: &String| {
            schema.index_of(name).map_err(|_| {
                let known = schema.fields().iter().map(|field| field.name().as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                LabError::new(format!("events have no column '{name}'"), format!("they have {known}"))
            })
        };
        columns.iter().map(index).collect()
    }
}

fn failed(error: &ArrowError) -> LabError {
    LabError::new(error.to_string(), "read the trace again")
}
