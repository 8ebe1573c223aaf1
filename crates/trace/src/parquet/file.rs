//! A Parquet file in the making: the library's writer, with this project's choice of encodings.
//!
//! Encoding and compressing take longer than making rows, so a thread of its own does it, batch by batch in the order given: the
//! bytes are those that one thread would write. Must not know: what rows are.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::table::{BATCH_ROWS, UNIT};

const CREATED_BY: &str = concat!("fairlab version ", env!("CARGO_PKG_VERSION"));

/// Rows of a group: enough for compression and for readers' threads, few enough for memory.
const GROUP_ROWS: usize = 1 << 17;

/// Batches on their way to the thread that encodes them.
const BATCHES: usize = 2;

/// Keys with values that stand at the end of a file.
type FileMetadata = Vec<(String, String)>;

/// A file in the making. Its thread ends when the file is finished, or dropped.
#[derive(Debug)]
pub(super) struct ParquetFile<W: Write> {
    output: W,
    orders: SyncSender<EncoderOrder>,
    encoded: Receiver<io::Result<Vec<u8>>>,
}

/// What the encoding thread is to do.
#[derive(Debug)]
enum EncoderOrder {
    Rows(RecordBatch),
    /// Nothing follows.
    End(FileMetadata),
}

/// The writer on its thread. It writes into memory, since an output need not go to another thread.
struct ParquetEncoder {
    writer: ArrowWriter<Vec<u8>>,
    encoded: Sender<io::Result<Vec<u8>>>,
}

impl ParquetEncoder {
    fn work(mut self, orders: &Receiver<EncoderOrder>) {
        for order in orders {
            let bytes = match order {
                EncoderOrder::Rows(batch) => self.rows(&batch),
                EncoderOrder::End(notes) => {
                    // Who has dropped the file asks for nothing any more.
                    let _ = self.encoded.send(end(self.writer, notes));
                    return;
                }
            };
            let is_over = bytes.is_err();
            if self.encoded.send(bytes).is_err() || is_over {
                return;
            }
        }
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<Vec<u8>> {
        self.writer.write(batch).map_err(io::Error::other)?;
        Ok(std::mem::take(self.writer.inner_mut()))
    }
}

fn end(mut writer: ArrowWriter<Vec<u8>>, notes: FileMetadata) -> io::Result<Vec<u8>> {
    for (key, value) in notes {
        writer.append_key_value_metadata(KeyValue::new(key, value));
    }
    writer.into_inner().map_err(io::Error::other)
}

impl<W: Write> ParquetFile<W> {
    /// A file of rows called `rows_are`.
    pub(super) fn new(output: W, rows_are: &str, schema: &SchemaRef) -> io::Result<ParquetFile<W>> {
        let options = ArrowWriterOptions::new()
            .with_properties(properties(schema)?)
            .with_schema_root(rows_are.to_string());
        let writer = ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options);
        let (orders, to_do) = sync_channel(BATCHES);
        let (done, encoded) = channel();
        let encoder = ParquetEncoder { writer: writer.map_err(io::Error::other)?, encoded: done };
        thread::Builder::new().name("parquet".to_string()).spawn(move || encoder.work(&to_do))?;
        Ok(ParquetFile { output, orders, encoded })
    }

    /// Adds rows, which stand in the output when their group is full.
    pub(super) fn write(&mut self, batch: RecordBatch) -> io::Result<()> {
        self.order(EncoderOrder::Rows(batch))?;
        while let Ok(bytes) = self.encoded.try_recv() {
            self.output.write_all(&bytes?)?;
        }
        Ok(())
    }

    /// Writes what is left, and `notes` as keys with values, and gives the output back.
    pub(super) fn finish(mut self, notes: FileMetadata) -> io::Result<W> {
        self.order(EncoderOrder::End(notes))?;
        for bytes in &self.encoded {
            self.output.write_all(&bytes?)?;
        }
        self.output.flush()?;
        Ok(self.output)
    }

    fn order(&mut self, order: EncoderOrder) -> io::Result<()> {
        if self.orders.send(order).is_ok() {
            return Ok(());
        }
        // The thread has ended early, and has said why unless it panicked.
        let failure = self.encoded.iter().find_map(Result::err);
        Err(failure.unwrap_or_else(|| io::Error::other("the thread that encodes the table has ended")))
    }
}

/// Times rise, so differences are written; durations and floats repeat too seldom for a dictionary. Texts have no least and
/// greatest: each group has nearly all of them, and comparing every one takes longer than encoding it.
fn properties(schema: &SchemaRef) -> io::Result<WriterProperties> {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(io::Error::other)?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(CREATED_BY.to_string())
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_write_batch_size(BATCH_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in schema.fields() {
        if matches!(field.data_type(), DataType::Dictionary(..) | DataType::Utf8) {
            let path = ColumnPath::from(field.name().as_str());
            properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
        let is_wide = match field.data_type() {
            DataType::Float64 | DataType::Timestamp(..) => true,
            DataType::Int64 => field.metadata().contains_key(UNIT),
            _ => false,
        };
        if is_wide {
            let path = ColumnPath::from(field.name().as_str());
            let rises = field.name().starts_with("time") && *field.data_type() != DataType::Float64;
            properties = of_wide(properties, path, rises);
        }
    }
    Ok(properties.build())
}

/// Level 3 takes twice the time for files that are a twentieth shorter.
const ZSTD_LEVEL: i32 = 1;

fn of_wide(properties: WriterPropertiesBuilder, path: ColumnPath, rises: bool) -> WriterPropertiesBuilder {
    let properties = properties.set_column_dictionary_enabled(path.clone(), false);
    if rises { properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED) } else { properties }
}
