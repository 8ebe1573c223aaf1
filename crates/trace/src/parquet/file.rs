//! A Parquet file in the making: the library's writer, with this project's choice of encodings.
//!
//! Must not know: what rows are.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

const CREATED_BY: &str = concat!("fairlab version ", env!("CARGO_PKG_VERSION"));

/// Rows of a group: enough for compression and for readers' threads, few enough for memory.
const GROUP_ROWS: usize = 1 << 17;

/// A file in the making. The library wants an output that it may send to another thread; ours takes the bytes from it.
#[derive(Debug)]
pub(super) struct File<W: Write> {
    output: W,
    writer: ArrowWriter<Vec<u8>>,
}

impl<W: Write> File<W> {
    /// A file of rows called `rows_are`.
    pub(super) fn new(output: W, rows_are: &str, schema: &SchemaRef) -> io::Result<File<W>> {
        let options = ArrowWriterOptions::new()
            .with_properties(properties(schema)?)
            .with_schema_root(rows_are.to_string());
        let writer = ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options);
        Ok(File { output, writer: writer.map_err(io::Error::other)? })
    }

    /// Adds rows, which stand in the output when their group is full.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.writer.write(batch).map_err(io::Error::other)?;
        self.output.write_all(self.writer.inner())?;
        self.writer.inner_mut().clear();
        Ok(())
    }

    /// Writes what is left, and `notes` as keys with values, and gives the output back.
    pub(super) fn finish(mut self, notes: Vec<(String, String)>) -> io::Result<W> {
        for (key, value) in notes {
            self.writer.append_key_value_metadata(KeyValue::new(key, value));
        }
        let rest = self.writer.into_inner().map_err(io::Error::other)?;
        self.output.write_all(&rest)?;
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Times rise, so differences are written; other numbers of 64 bits repeat too seldom for a dictionary.
fn properties(schema: &SchemaRef) -> io::Result<WriterProperties> {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(io::Error::other)?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(CREATED_BY.to_string())
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in schema.fields() {
        let is_wide = matches!(
            field.data_type(),
            DataType::UInt64 | DataType::Int64 | DataType::Float64 | DataType::Timestamp(..)
        );
        if is_wide {
            let path = ColumnPath::from(field.name().as_str());
            let rises = field.name().starts_with("time") && *field.data_type() != DataType::Float64;
            properties = of_wide(properties, path, rises);
        }
    }
    Ok(properties.build())
}

const ZSTD_LEVEL: i32 = 3;

fn of_wide(properties: WriterPropertiesBuilder, path: ColumnPath, rises: bool) -> WriterPropertiesBuilder {
    let properties = properties.set_column_dictionary_enabled(path.clone(), false);
    if rises { properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED) } else { properties }
}
