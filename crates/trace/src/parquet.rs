//! Parquet, by the library of Apache Arrow: a table of events for DuckDB, Polars, Spark and their like, and back.
//! [`TableWriter`] writes any other table.
//!
//! The columns are those of [`table`](crate::table), but for the time, which stands there twice: `time`, a timestamp in µs
//! without zone, and `time_ns`, exact. Spark reads no timestamps in ns. Files of earlier versions have `time_ns` only, and no `kind`.
//! What is known of kernel and machine stands in the file's key-value metadata.

mod file;
mod guard;
mod reader;

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use fairlab_event::{Event, Sink, System};

use crate::losses::WriterLosses;
use crate::table::{self, ColumnKind, EventColumns, RowBuilder, TableCell};
use file::ParquetFile;

pub(crate) use reader::read;

/// How every file begins and ends.
pub(crate) const MAGIC: &[u8] = b"PAR1";

/// Writes events as rows of a Parquet file.
///
/// Rows go to `W` in groups, so memory does not grow with the trace. Errors of `W` are kept and returned by
/// [`finish`](ParquetWriter::finish), without which no reader opens the file.
///
/// All of an event is there, with these exceptions, which [`losses`](ParquetWriter::losses) counts: names and texts that
/// are no UTF-8 have replacement characters in them.
#[derive(Debug)]
pub struct ParquetWriter<W: Write> {
    file: Option<ParquetFile<W>>,
    columns: EventColumns,
    schema: SchemaRef,
    file_schema: SchemaRef,
    system: System,
    losses: WriterLosses,
    error: Option<io::Error>,
}

impl<W: Write> ParquetWriter<W> {
    /// A writer. Nothing need be buffered by `output`.
    pub fn new(output: W) -> ParquetWriter<W> {
        let file_schema = file_schema();
        let (file, error) = match ParquetFile::new(output, "events", &file_schema) {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(error)),
        };
        ParquetWriter {
            file,
            columns: EventColumns::default(),
            schema: table::schema(&System::default()),
            file_schema,
            system: System::default(),
            losses: WriterLosses::default(),
            error,
        }
    }

    /// Which events so far are not there exactly as they were given.
    pub fn losses(&self) -> &WriterLosses {
        &self.losses
    }

    /// Writes what is left and the description of the columns, and gives the output back.
    ///
    /// # Errors
    /// The first error that `W` returned since the beginning.
    pub fn finish(mut self) -> io::Result<W> {
        self.hand_on();
        match (self.error, self.file) {
            (None, Some(file)) => file.finish(table::metadata(&self.system)),
            (error, _) => Err(error.unwrap_or_else(|| io::Error::other("the file was not begun"))),
        }
    }

    fn hand_on(&mut self) {
        if self.columns.rows() == 0 {
            return;
        }
        let batch = for_file(&self.columns.take(&self.schema), &self.file_schema);
        if let Some(file) = &mut self.file
            && self.error.is_none()
        {
            self.error = batch.and_then(|batch| file.write(batch)).err();
        }
    }
}

impl<W: Write> Sink for ParquetWriter<W> {
    fn event(&mut self, event: &Event<'_>) {
        self.losses.add(event.kind.name(), self.columns.add(event));
        if self.columns.is_full(table::BATCH_ROWS) {
            self.hand_on();
        }
    }

    fn system(&mut self, system: &System) {
        self.system = system.clone();
    }
}

/// The columns of a file of events.
fn file_schema() -> SchemaRef {
    let time = [
        Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("time_ns", DataType::Int64, false).with_metadata(table::unit("ns")),
    ];
    let rest = table::fields().into_iter().skip(1);
    Arc::new(Schema::new(time.into_iter().chain(rest).collect::<Vec<_>>()))
}

/// A batch of events with the times that a file has.
fn for_file(batch: &RecordBatch, schema: &SchemaRef) -> io::Result<RecordBatch> {
    let time = batch.column(0).as_primitive::<TimestampNanosecondType>();
    let us = time.unary::<_, TimestampMicrosecondType>(|ns| (ns.cast_unsigned() / 1000).cast_signed());
    let ns = Int64Array::new(time.values().clone(), None);
    let columns: [ArrayRef; 2] = [Arc::new(us), Arc::new(ns)];
    let columns = columns.into_iter().chain(batch.columns().iter().skip(1).cloned()).collect();
    RecordBatch::try_new(schema.clone(), columns).map_err(io::Error::other)
}

/// Writes rows into a Parquet file, in groups, so that memory does not grow with their number.
#[derive(Debug)]
pub struct TableWriter<W: Write> {
    file: ParquetFile<W>,
    rows: RowBuilder,
}

impl<W: Write> TableWriter<W> {
    /// A table whose rows are called `rows_are`, with columns of these names.
    ///
    /// # Errors
    /// Two columns have one name.
    pub fn new(output: W, rows_are: &str, columns: &[(String, ColumnKind)]) -> io::Result<TableWriter<W>> {
        let rows = RowBuilder::new(columns);
        Ok(TableWriter { file: ParquetFile::new(output, rows_are, rows.schema())?, rows })
    }

    /// Adds a row, a cell a column; a cell that does not fit its column stays empty.
    ///
    /// # Errors
    /// The output cannot be written to.
    pub fn add(&mut self, cells: &[TableCell<'_>]) -> io::Result<()> {
        self.rows.add(cells);
        if self.rows.len() < table::BATCH_ROWS { Ok(()) } else { self.file.write(self.rows.take()) }
    }

    /// Writes what is left and the description of the columns, and gives the output back.
    ///
    /// # Errors
    /// The output cannot be written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.file.write(self.rows.take())?;
        self.file.finish(Vec::new())
    }
}
