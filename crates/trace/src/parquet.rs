//! Parquet: a table of events for DuckDB, Polars, pandas and their like; written only. [`TableWriter`] writes any other
//! table.
//!
//! One row an event, in the order given. Columns that every event has stand first: `time_ns`, `cpu`, `event`, and the task
//! that reported it (`context_comm`, `context_pid`, `context_tgid`, `context_flags`). The others are the fields of the
//! tracepoints under the kernel's names, null where an event has none: `comm`, `pid`, `prio`, `target_cpu`, `prev_comm` and
//! so on. Times and durations end in `_ns`. What has no column of its own stands as printed in `text`. What is known of kernel
//! and machine stands in the file's key-value metadata: `release`, `node`, `architecture`, `cpus`.
//!
//! Parquet is written here by hand, since plain and dictionary pages under zstd are all that is needed of it, a tenth of
//! what a library brings.

mod column;
mod file;
mod rows;
mod table;
mod thrift;

use std::io::{self, Write};

use fairlab_event::{Event, Sink, System};

use crate::losses::Losses;
use file::{Described, File};
use table::Table;

pub use rows::{Cell, ColumnKind, TableWriter};

/// Writes events as rows of a Parquet file.
///
/// Rows go to `W` in groups, so memory does not grow with the trace. Errors of `W` are kept and returned by
/// [`finish`](ParquetWriter::finish), without which no reader opens the file.
///
/// All of an event is there, with these exceptions, which [`losses`](ParquetWriter::losses) counts: names and texts that
/// are no UTF-8 have replacement characters in them.
#[derive(Debug)]
pub struct ParquetWriter<W: Write> {
    file: File<W>,
    table: Table,
    losses: Losses,
    error: Option<io::Error>,
}

/// Rows of a group: enough for compression and for readers' threads, few enough for memory.
const GROUP_ROWS: usize = 1 << 16;

impl<W: Write> ParquetWriter<W> {
    /// A writer. Nothing need be buffered by `output`.
    pub fn new(output: W) -> ParquetWriter<W> {
        let columns = table::columns().map(|column| Described {
            name: column.name.to_string(),
            kind: column.kind,
            required: column.required,
        });
        ParquetWriter {
            file: File::new(output, "events", columns.collect()),
            table: Table::default(),
            losses: Losses::default(),
            error: None,
        }
    }

    /// Which events so far are not there exactly as they were given.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Writes what is left and the description of the columns, and gives the output back.
    ///
    /// # Errors
    /// The first error that `W` returned since the beginning.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let rows = self.table.rows();
        self.file.write_group(rows, self.table.take())?;
        self.file.finish()
    }
}

impl<W: Write> Sink for ParquetWriter<W> {
    fn event(&mut self, event: &Event<'_>) {
        if self.error.is_some() {
            return;
        }
        self.losses.add(event.kind.name(), self.table.add(event));
        if self.table.rows() >= GROUP_ROWS {
            let rows = self.table.rows();
            self.error = self.file.write_group(rows, self.table.take()).err();
        }
    }

    fn system(&mut self, system: &System) {
        self.file.system(system);
    }
}
