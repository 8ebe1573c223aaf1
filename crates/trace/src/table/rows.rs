//! Any table by rows, of columns that are known before the first row; an answer's, not events'.
//!
//! Must not know: what the rows are.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::words::DictionaryColumn;

/// What a column of a table holds; any of its cells may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// UTF-8 that repeats.
    Text,
    /// Whole numbers from 0 on, in 64 bits with a sign: from 2⁶³ on they wrap to negative ones.
    Count,
    /// Floating point.
    Number,
}

/// One cell of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TableCell<'t> {
    /// Nothing.
    Empty,
    /// For a column of texts.
    Text(&'t str),
    /// For a column of counts.
    Count(u64),
    /// For a column of numbers.
    Number(f64),
}

#[derive(Debug)]
enum CellBuilder {
    Text(Box<DictionaryColumn>),
    Count(Int64Builder),
    Number(Float64Builder),
}

/// Rows that are no batch yet.
#[derive(Debug)]
pub struct RowBuilder {
    schema: SchemaRef,
    builders: Vec<CellBuilder>,
    rows: usize,
}

impl RowBuilder {
    /// No rows yet, of columns of these names.
    pub fn new(columns: &[(String, ColumnKind)]) -> RowBuilder {
        let fields = columns.iter().map(|(name, kind)| Field::new(name, kind.data_type(), true));
        let builders = columns.iter().map(|(_, kind)| match kind {
            ColumnKind::Text => CellBuilder::Text(Box::default()),
            ColumnKind::Count => CellBuilder::Count(Int64Builder::new()),
            ColumnKind::Number => CellBuilder::Number(Float64Builder::new()),
        });
        RowBuilder {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            builders: builders.collect(),
            rows: 0,
        }
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds a row, a cell a column; a cell that does not fit its column stays empty, and so do those that are not given.
    pub fn add(&mut self, cells: &[TableCell<'_>]) {
        let cells = cells.iter().copied().chain(std::iter::repeat(TableCell::Empty));
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            match (builder, cell) {
                (CellBuilder::Text(builder), TableCell::Text(text)) => builder.append_value(text),
                (CellBuilder::Text(builder), _) => builder.append_nulls(1),
                (CellBuilder::Count(builder), TableCell::Count(count)) => {
                    builder.append_value(count.cast_signed());
                }
                (CellBuilder::Count(builder), _) => builder.append_null(),
                (CellBuilder::Number(builder), TableCell::Number(number)) => builder.append_value(number),
                (CellBuilder::Number(builder), _) => builder.append_null(),
            }
        }
        self.rows += 1;
    }

    /// The rows as a batch; none are left then.
    pub fn take(&mut self) -> RecordBatch {
        self.rows = 0;
        let arrays = self.builders.iter_mut().map(|builder| -> ArrayRef {
            match builder {
                CellBuilder::Text(builder) => Arc::new(builder.finish()),
                CellBuilder::Count(builder) => Arc::new(builder.finish()),
                CellBuilder::Number(builder) => Arc::new(builder.finish()),
            }
        });
        RecordBatch::try_new(self.schema.clone(), arrays.collect())
            .expect("columns are made by the schema's own list")
    }
}

impl ColumnKind {
    fn data_type(self) -> DataType {
        match self {
            ColumnKind::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            ColumnKind::Count => DataType::Int64,
            ColumnKind::Number => DataType::Float64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    #[test]
    fn cells_that_do_not_fit_stay_empty() {
        let columns = [("a", ColumnKind::Text), ("b", ColumnKind::Count), ("c", ColumnKind::Number)];
        let mut rows = RowBuilder::new(&columns.map(|(name, kind)| (name.to_string(), kind)));
        rows.add(&[TableCell::Text("x"), TableCell::Count(1), TableCell::Number(2.0)]);
        rows.add(&[TableCell::Count(1), TableCell::Text("x")]);
        let batch = rows.take();
        assert_eq!((batch.num_rows(), rows.is_empty()), (2, true));
        assert!(batch.columns().iter().all(|column| column.null_count() == 1));
    }
}
