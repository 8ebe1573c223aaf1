//! Tables of events back to events: our own files, those of earlier versions, and what DuckDB, Polars and their like made of them.
//!
//! Must not know: what an event's fields are.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use fairlab_event::{Cpu, Ns, Sink, System};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};

use super::MAGIC;
use super::guard::guarded;
use crate::store::Store;
use crate::table::{self, EventRows, FORMER_NAMES, NotEvents};
use crate::{ImportError, ImportStats, Trouble};

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 1 << 13;

/// Bytes of one column in one group of rows, unpacked. Writers make groups of some 100,000 rows: a few MiB a column.
const COLUMN_BYTES_MAX: i64 = 1 << 28;

/// Reads the table that stands in a store: its description stands behind it.
pub(crate) fn read(store: Store, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    check_end(&store)?;
    let chunks = StoreChunks(Arc::new(store));
    let undescribed = || not_a_table("its description is damaged");
    let (mut reader, system) = guarded(|| open(chunks)).ok_or_else(undescribed)??;
    if !system.is_unknown() {
        sink.system(&system);
    }
    let mut rows = RowReader { sink, stats: ImportStats::default(), row: 0, last: BTreeMap::new() };
    loop {
        let damaged = || Some(Err("they are damaged".to_string()));
        let next = guarded(|| reader.next().map(|batch| batch.map_err(|error| error.to_string())));
        match next.unwrap_or_else(damaged) {
            None => return Ok(rows.stats),
            Some(Ok(batch)) => rows.take(&batch)?,
            Some(Err(error)) if rows.row == 0 => {
                return Err(not_a_table(format!("its first rows cannot be read: {error}")));
            }
            Some(Err(_)) => {
                // What comes behind the damage has lost its place.
                rows.stats.add(Trouble::CorruptRecord, 1, rows.row + 1);
                return Ok(rows.stats);
            }
        }
    }
}

fn not_a_table(fact: impl std::fmt::Display) -> ImportError {
    ImportError::NotATrace(format!("this Parquet file is no table of events: {fact}"))
}

/// Whether the file is whole: a description and its mark stand at the end.
fn check_end(store: &Store) -> Result<(), ImportError> {
    let length = store.length();
    let end = store.read_section(length.saturating_sub(MAGIC.len() as u64), MAGIC.len() as u64)?;
    if length < 3 * MAGIC.len() as u64 || end != MAGIC {
        return Err(ImportError::NotATrace(format!(
            "this Parquet file is cut off: its {length} bytes do not end in the mark PAR1"
        )));
    }
    Ok(())
}

fn open(chunks: StoreChunks) -> Result<(ParquetRecordBatchReader, System), ImportError> {
    let undescribed = |error: ParquetError| {
        ImportError::NotATrace(format!(
            "the description at the end of this Parquet file cannot be read: {error}"
        ))
    };
    // The types that a writer noted for itself are left out: one's texts are another's large texts, views or dictionaries.
    let plain = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let described = ArrowReaderMetadata::load(&chunks, plain()).map_err(undescribed)?;
    let known = table::fields();
    for name in ["event", "cpu"] {
        if described.schema().index_of(name).is_err() {
            return Err(not_a_table(format!("it has no column {name}")));
        }
    }
    let options = ArrowReaderOptions::new().with_schema(wanted(described.schema(), &known));
    let described =
        ArrowReaderMetadata::try_new(described.metadata().clone(), options).map_err(undescribed)?;
    let is_former = |name: &str| FORMER_NAMES.iter().any(|(_, former)| *former == name);
    let is_known =
        |name: &str| name == "time_ns" || is_former(name) || known.iter().any(|field| field.name() == name);
    let roots = described.schema().fields().iter().enumerate();
    let roots: Vec<usize> =
        roots.filter(|(_, field)| is_known(field.name())).map(|(index, _)| index).collect();
    check_sizes(described.metadata().row_groups(), is_known)?;
    let mask = ProjectionMask::roots(described.parquet_schema(), roots);
    let notes = described.metadata().file_metadata().key_value_metadata();
    let notes =
        notes.into_iter().flatten().filter_map(|note| Some((note.key.as_str(), note.value.as_deref()?)));
    let system = table::system(notes);
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, described)
        .with_batch_size(BATCH_ROWS)
        .with_projection(mask)
        .build()
        .map_err(not_a_table)?;
    Ok((reader, system))
}

/// Whether each column of each group of rows, which the library may unpack at once, is of a size that is read.
fn check_sizes(groups: &[RowGroupMetaData], is_read: impl Fn(&str) -> bool) -> Result<(), ImportError> {
    for (number, group) in groups.iter().enumerate() {
        let read = |column: &&ColumnChunkMetaData| {
            column.column_path().parts().first().is_some_and(|root| is_read(root))
        };
        for column in group.columns().iter().filter(read) {
            let bytes = column.uncompressed_size();
            if bytes > COLUMN_BYTES_MAX {
                return Err(not_a_table(format!(
                    "column {} of its group of rows {number} has {bytes} bytes unpacked, and up to {COLUMN_BYTES_MAX} are read; write smaller groups of rows",
                    column.column_path().string()
                )));
            }
        }
    }
    Ok(())
}

/// The file's columns, with texts as dictionaries: looking at each is spared, and one that many rows share is kept once.
fn wanted(file: &SchemaRef, known: &[Field]) -> SchemaRef {
    let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let field = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 if known.iter().any(|known| known.name() == field.name()) => {
            Arc::new(field.as_ref().clone().with_data_type(words.clone()))
        }
        _ => field.clone(),
    };
    Arc::new(Schema::new(file.fields().iter().map(field).collect::<Vec<_>>()))
}

/// Hands rows on as events.
struct RowReader<'s> {
    sink: &'s mut dyn Sink,
    stats: ImportStats,
    /// How many rows there were.
    row: u64,
    last: BTreeMap<Cpu, Ns>,
}

impl RowReader<'_> {
    fn take(&mut self, batch: &RecordBatch) -> Result<(), ImportError> {
        let rows = EventRows::new(batch).map_err(|NotEvents(fact)| not_a_table(format!("it {fact}")))?;
        for row in 0..rows.len() {
            self.row += 1;
            let read = rows.event(row, |event| {
                let last = self.last.entry(event.cpu).or_default();
                if event.time < *last {
                    self.stats.add(Trouble::TimeWentBack, 1, self.row);
                }
                *last = event.time;
                self.sink.event(event);
            });
            match read {
                Some(()) => self.stats.events += 1,
                None => {
                    let name = rows.name(row).unwrap_or_default();
                    self.stats.add(Trouble::MalformedEvent, 1, self.row);
                    let line = format!("a row {name} without all of its columns");
                    self.stats.cannot_read(name, self.row, line.as_bytes());
                }
            }
        }
        Ok(())
    }
}

/// A store as the library reads it.
#[derive(Clone)]
struct StoreChunks(Arc<Store>);

impl Length for StoreChunks {
    fn len(&self) -> u64 {
        self.0.length()
    }
}

impl ChunkReader for StoreChunks {
    type T = io::BufReader<StoreReader>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(io::BufReader::new(StoreReader { store: self.0.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let bytes = self.0.read_section(start, length as u64)?;
        if bytes.len() < length {
            let fact = format!("{length} bytes from byte {start} on are not all there");
            return Err(ParquetError::EOF(fact));
        }
        Ok(bytes.into())
    }
}

/// A store from some place on.
struct StoreReader {
    store: Arc<Store>,
    at: u64,
}

impl Read for StoreReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.store.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
