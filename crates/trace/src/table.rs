//! Events as Arrow tables: record batches that Python, DuckDB, Polars and the Parquet writer take as they are. [`RowBuilder`] makes
//! batches of any other rows.
//!
//! One row an event, in the order given. Columns that every event has stand first:
//!
//! | column | type | what |
//! |---|---|---|
//! | `time` | timestamp(ns), without zone | when, on the trace's own clock: it counts from the clock's zero (boot), shown as 1970 |
//! | `cpu` | int64 | the CPU that reported it |
//! | `event` | words | the tracepoint's name |
//! | `kind` | words | null for a tracepoint whose fields have columns; `probe`, `marker`, `lost`, `other` |
//! | `context_comm`, `context_pid`, `context_tgid`, `context_flags` | words, int32, int32, words | the task that reported it; null where unknown |
//!
//! Behind them stand the fields of the tracepoints under the kernel's names ([`Column`](fairlab_event::FieldColumn)), null where an
//! event has none: `comm`, `pid`, `prio`, `target_cpu`, `prev_comm` and so on. Durations end in `_ns`; `vruntime`, `deadline`,
//! `vlag` and their like are ns of virtual time. Numbers have a sign,
//! since differences do: ids are the kernel's `int`, all others have 64 bits, and wrap from 2⁶³ on. Last come `lost_events`, how many events are missing, and `text`, which has as printed
//! what has no column of its own. Words are dictionaries of UTF-8 by int32: of a batch, not of the table.
//!
//! What is known of kernel and machine stands in the schema's metadata: `release`, `node`, `architecture`, `cpus`, and under `fairlab`
//! a line a fact.
//!
//! Must not know: files, who takes the batches.

mod columns;
mod from_batch;
mod rows;
mod words;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use fairlab_event::{Event, Sink, System};

use crate::described;
use crate::losses::WriterLosses;

pub(crate) use columns::{EventColumns, UNIT, fields, unit};
pub(crate) use from_batch::{EventRows, FORMER_NAMES, NotEvents};
pub use rows::{ColumnKind, RowBuilder, TableCell};

/// The columns' names and types, by version. The first had numbers without a sign, and `filename` for `exec_filename`.
pub const SCHEMA: &str = "fairlab/events/2";

/// Rows of a batch: enough for whoever computes with columns, few enough for caches and memory.
pub const BATCH_ROWS: usize = 1 << 14;

/// The columns of every table of events, with what is known of kernel and machine as metadata.
pub fn schema(system: &System) -> SchemaRef {
    Arc::new(Schema::new_with_metadata(fields(), metadata(system).into_iter().collect::<HashMap<_, _>>()))
}

/// What is known of kernel and machine, as keys and values.
pub(crate) fn metadata(system: &System) -> Vec<(String, String)> {
    let cpus = system.cpus.map(|cpus| cpus.to_string()).unwrap_or_default();
    let all = [
        ("release", system.release.clone()),
        ("node", system.node.clone()),
        ("architecture", system.architecture.clone()),
        ("cpus", cpus),
        ("fairlab", described::lines(system).join("\n")),
        ("schema", SCHEMA.to_string()),
    ];
    let known = all.into_iter().filter(|(_, value)| !value.is_empty());
    known.map(|(key, value)| (key.to_string(), value)).collect()
}

/// What [`metadata`] said.
pub(crate) fn system<'m>(metadata: impl Iterator<Item = (&'m str, &'m str)>) -> System {
    let mut system = System::default();
    for (key, value) in metadata {
        match key {
            "release" => system.release = value.to_string(),
            "node" => system.node = value.to_string(),
            "architecture" => system.architecture = value.to_string(),
            "cpus" => system.cpus = value.parse().ok(),
            // A line of another version says nothing.
            "fairlab" => {
                for line in value.lines() {
                    let _ = described::take(&mut system, line);
                }
            }
            _ => {}
        }
    }
    system
}

/// Makes record batches of the events that it is given, and hands each on: memory does not grow with the trace.
///
/// Names and texts that are no UTF-8 have replacement characters in them, which [`losses`](EventBatches::losses) counts. Times
/// from 2⁶³ ns on (292 years) wrap to negative ones.
#[derive(Debug)]
pub struct EventBatches<F> {
    columns: EventColumns,
    schema: SchemaRef,
    rows_max: usize,
    losses: WriterLosses,
    take: F,
}

impl<F: FnMut(RecordBatch)> EventBatches<F> {
    /// Hands batches of [`BATCH_ROWS`] rows to `take`; the last, and those with long texts, have fewer.
    pub fn new(take: F) -> EventBatches<F> {
        EventBatches::with_rows(BATCH_ROWS, take)
    }

    /// Hands batches of `rows` rows to `take`.
    pub fn with_rows(rows: usize, take: F) -> EventBatches<F> {
        let schema = schema(&System::default());
        let rows_max = rows.clamp(1, 1 << 20);
        EventBatches {
            columns: EventColumns::default(),
            schema,
            rows_max,
            losses: WriterLosses::default(),
            take,
        }
    }

    /// Which events so far are not in the table exactly as they were given.
    pub fn losses(&self) -> &WriterLosses {
        &self.losses
    }

    /// The batches' columns and metadata; these are known with the first event.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Hands the last rows on; gives back what took them, and what was lost.
    pub fn finish(mut self) -> (F, WriterLosses) {
        self.hand_on();
        (self.take, self.losses)
    }

    fn hand_on(&mut self) {
        if self.columns.rows() > 0 {
            (self.take)(self.columns.take(&self.schema));
        }
    }
}

impl<F: FnMut(RecordBatch)> Sink for EventBatches<F> {
    fn event(&mut self, event: &Event<'_>) {
        self.losses.add(event.kind.name(), self.columns.add(event));
        if self.columns.is_full(self.rows_max) {
            self.hand_on();
        }
    }

    fn system(&mut self, system: &System) {
        self.hand_on();
        self.schema = schema(system);
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{Cpu, EventKind, Ns};

    use super::*;

    #[test]
    fn batches_are_whole_and_bounded() {
        let mut rows = Vec::new();
        let mut batches = EventBatches::with_rows(4, |batch: RecordBatch| {
            assert_eq!(batch.schema().metadata().get("release").map(String::as_str), Some("6.6"));
            rows.push(batch.num_rows());
        });
        batches.system(&System { release: "6.6".to_string(), ..System::default() });
        for at in 0..10 {
            batches.event(&Event::new(Ns(at), Cpu(0), EventKind::Marker { text: "x" }));
        }
        let long = "x".repeat(1 << 26);
        batches.event(&Event::new(Ns(10), Cpu(0), EventKind::Marker { text: &long }));
        drop(batches.finish());
        assert_eq!(rows, [4, 4, 3]);
    }

    #[test]
    fn what_is_known_of_the_machine_comes_back() {
        let system_told = System {
            release: "6.6".to_string(),
            node: "lab".to_string(),
            cpus: Some(4),
            seed: Some(3),
            topology: vec!["cpu0: threads 0".to_string()],
            ..System::default()
        };
        let schema = schema(&system_told);
        let back = system(schema.metadata().iter().map(|(key, value)| (key.as_str(), value.as_str())));
        assert_eq!(back, system_told);
    }
}
