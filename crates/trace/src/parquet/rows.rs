//! Any table as a Parquet file: columns that the caller names, rows as they come.
//!
//! Must not know: what the rows are.

use std::io::{self, Write};

use super::GROUP_ROWS;
use super::column::{Column, Kind};
use super::file::{Described, File};

/// What a column of a table holds; any of its cells may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// UTF-8.
    Text,
    /// Whole numbers from 0 on.
    Count,
    /// Floating point.
    Number,
}

/// One cell of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'t> {
    /// Nothing.
    Empty,
    /// For a column of texts.
    Text(&'t str),
    /// For a column of counts.
    Count(u64),
    /// For a column of numbers.
    Number(f64),
}

/// Writes rows into a Parquet file, in groups, so that memory does not grow with their number.
#[derive(Debug)]
pub struct TableWriter<W: Write> {
    file: File<W>,
    columns: Vec<Column>,
    rows: usize,
}

impl<W: Write> TableWriter<W> {
    /// A table whose rows are called `rows_are`, with columns of these names.
    pub fn new(output: W, rows_are: &'static str, columns: &[(String, ColumnKind)]) -> TableWriter<W> {
        let described = columns.iter().map(|(name, kind)| {
            let kind = match kind {
                ColumnKind::Text => Kind::Text,
                ColumnKind::Count => Kind::U64,
                ColumnKind::Number => Kind::F64,
            };
            Described { name: name.clone(), kind, required: false }
        });
        let described = described.collect::<Vec<_>>();
        let columns = described.iter().map(|column| Column::new(column.kind, false)).collect();
        TableWriter { file: File::new(output, rows_are, described), columns, rows: 0 }
    }

    /// Adds a row, a cell a column; a cell that does not fit its column stays empty.
    ///
    /// # Errors
    /// The output cannot be written to.
    pub fn add(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            match (*cell, column.kind()) {
                (Cell::Text(text), Kind::Text) => column.put_text(self.rows, text),
                (Cell::Count(count), Kind::U64) => column.put_number(self.rows, count),
                (Cell::Number(number), Kind::F64) => column.put_number(self.rows, number.to_bits()),
                _ => {}
            }
        }
        self.rows += 1;
        if self.rows < GROUP_ROWS { Ok(()) } else { self.write_group() }
    }

    /// Writes what is left and the description of the columns, and gives the output back.
    ///
    /// # Errors
    /// The output cannot be written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_group()?;
        self.file.finish()
    }

    fn write_group(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let pages = self.columns.iter_mut().map(|column| column.take_pages(rows)).collect();
        self.file.write_group(rows, pages)
    }
}
