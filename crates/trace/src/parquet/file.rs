//! A Parquet file put together: groups of rows, each a chunk of pages a column, and the description of it all at the end.
//!
//! Facts: parquet.thrift of Apache Parquet. Must not know: what rows are.

use std::io::{self, Write};

use fairlab_event::System;

use crate::described;

use super::column::{Encoding, Kind, Page};
use super::thrift::Struct;

const MAGIC: &[u8] = b"PAR1";
const CREATED_BY: &str = concat!("fairlab version ", env!("CARGO_PKG_VERSION"));

/// `CompressionCodec`.
const ZSTD: i32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// What a column is called and holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) required: bool,
}

/// A file in the making.
#[derive(Debug)]
pub(super) struct File<W: Write> {
    output: W,
    /// What a row is.
    rows_are: &'static str,
    columns: Vec<Described>,
    /// How much has been written.
    at: u64,
    rows: u64,
    groups: Vec<Struct>,
    /// Keys and values.
    notes: Vec<(&'static str, String)>,
}

/// A page's compressed and plain bytes in the file, with its head.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    compressed: u64,
    plain: u64,
}

impl<W: Write> File<W> {
    pub(super) fn new(output: W, rows_are: &'static str, columns: Vec<Described>) -> File<W> {
        File { output, rows_are, columns, at: 0, rows: 0, groups: Vec::new(), notes: Vec::new() }
    }

    /// Notes what is known of the kernel and the machine.
    pub(super) fn system(&mut self, system: &System) {
        let System { release, node, architecture, cpus, .. } = system.clone();
        let cpus = cpus.map(|cpus| cpus.to_string()).unwrap_or_default();
        let all = [("release", release), ("node", node), ("architecture", architecture), ("cpus", cpus)];
        self.notes = all.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let described = described::lines(system);
        if !described.is_empty() {
            self.notes.push(("fairlab", described.join("\n")));
        }
    }

    /// Writes `rows` rows, whose columns became `pages`.
    pub(super) fn write_group(&mut self, rows: usize, pages: Vec<(Option<Page>, Page)>) -> io::Result<()> {
        if self.at == 0 {
            self.put(MAGIC)?;
        }
        if rows == 0 {
            return Ok(());
        }
        let mut chunks = Vec::with_capacity(self.columns.len());
        let mut plain = 0;
        for (index, pages) in pages.into_iter().enumerate() {
            let (chunk, size) = self.write_chunk(index, pages, rows)?;
            chunks.push(chunk);
            plain += size.plain;
        }
        let group = Struct::new().structures(1, chunks).i64(2, plain as i64).i64(3, rows as i64);
        self.groups.push(group);
        self.rows += rows as u64;
        Ok(())
    }

    fn write_chunk(
        &mut self,
        index: usize,
        (dictionary, data): (Option<Page>, Page),
        rows: usize,
    ) -> io::Result<(Struct, Size)> {
        let start = self.at;
        let mut size = Size::default();
        let mut encodings = vec![Encoding::Plain as i32, Encoding::Rle as i32];
        if let Some(page) = &dictionary {
            encodings.push(Encoding::Dictionary as i32);
            self.write_page(page, true, &mut size)?;
        }
        let data_at = self.at;
        self.write_page(&data, false, &mut size)?;
        let column = &self.columns[index];
        let mut meta = Struct::new()
            .i32(1, physical(column.kind))
            .i32s(2, &encodings)
            .texts(3, &[column.name.as_str()])
            .i32(4, ZSTD)
            .i64(5, rows as i64)
            .i64(6, size.plain as i64)
            .i64(7, size.compressed as i64)
            .i64(9, data_at as i64);
        if dictionary.is_some() {
            meta = meta.i64(11, start as i64);
        }
        Ok((Struct::new().i64(2, start as i64).structure(3, meta), size))
    }

    fn write_page(&mut self, page: &Page, dictionary: bool, size: &mut Size) -> io::Result<()> {
        const DATA_PAGE: i32 = 0;
        const DICTIONARY_PAGE: i32 = 2;
        let compressed = zstd::bulk::compress(&page.bytes, ZSTD_LEVEL)?;
        let length = |bytes: &[u8]| i32::try_from(bytes.len()).map_err(io::Error::other);
        let values = i32::try_from(page.values).map_err(io::Error::other)?;
        let own = Struct::new().i32(1, values).i32(2, page.encoding as i32);
        let head = Struct::new()
            .i32(1, if dictionary { DICTIONARY_PAGE } else { DATA_PAGE })
            .i32(2, length(&page.bytes)?)
            .i32(3, length(&compressed)?);
        let head = match dictionary {
            true => head.structure(7, own),
            // Definition and repetition levels.
            false => head.structure(5, own.i32(3, Encoding::Rle as i32).i32(4, Encoding::Rle as i32)),
        };
        let head = head.finish();
        self.put(&head)?;
        self.put(&compressed)?;
        size.compressed += (head.len() + compressed.len()) as u64;
        size.plain += (head.len() + page.bytes.len()) as u64;
        Ok(())
    }

    /// Writes the description and gives the output back.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let root = Struct::new().text(4, self.rows_are).i32(5, self.columns.len() as i32);
        let columns = self.columns.iter().map(|column| {
            const REQUIRED: i32 = 0;
            const OPTIONAL: i32 = 1;
            let element = Struct::new()
                .i32(1, physical(column.kind))
                .i32(3, if column.required { REQUIRED } else { OPTIONAL })
                .text(4, &column.name);
            match converted(column.kind) {
                Some(converted) => element.i32(6, converted),
                None => element,
            }
        });
        let description = Struct::new()
            .i32(1, 1)
            .structures(2, std::iter::once(root).chain(columns).collect())
            .i64(3, self.rows as i64)
            .structures(4, std::mem::take(&mut self.groups));
        let notes = self.notes.iter().map(|(key, value)| Struct::new().text(1, key).text(2, value)).collect();
        let description = if self.notes.is_empty() { description } else { description.structures(5, notes) };
        let description = description.text(6, CREATED_BY).finish();
        self.put(&description)?;
        self.put(&(description.len() as u32).to_le_bytes())?;
        self.put(MAGIC)?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.output.write_all(bytes)
    }
}

/// `Type`.
fn physical(kind: Kind) -> i32 {
    match kind {
        Kind::Bool => 0,
        Kind::I32 | Kind::U32 => 1,
        Kind::I64 | Kind::U64 => 2,
        Kind::F64 => 5,
        Kind::Text => 6,
    }
}

/// `ConvertedType`, where it says more.
fn converted(kind: Kind) -> Option<i32> {
    match kind {
        Kind::Text => Some(0),
        Kind::U32 => Some(13),
        Kind::U64 => Some(14),
        Kind::Bool | Kind::I32 | Kind::I64 | Kind::F64 => None,
    }
}
