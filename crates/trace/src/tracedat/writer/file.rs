//! A trace.dat put together: what describes the records, then the records.
//!
//! Facts: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5). Must not know: events.

use std::io::{self, Write};

use fairlab_event::System;

use super::TraceDatCompression;
use crate::ringbuffer::fill::PAGE_BYTES;
use crate::store::{Spool, Store};
use crate::tracedat::MAGIC;
use crate::tracedat::options::number;
use crate::tracedat::uname;
use crate::tracepoint::description::TracingDescription;

/// Where the pieces of one CPU's pages lie in the temporary file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuPages {
    /// Begin and length of each.
    pieces: Vec<(u64, u32)>,
}

impl CpuPages {
    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|&(_, length)| u64::from(length)).sum()
    }
}

/// The pages of all CPUs, piece by piece, as they will stand in the file.
#[derive(Debug)]
pub(super) struct WrittenPages {
    compression: TraceDatCompression,
    spool: Spool,
}

/// What goes into the file beside the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TraceDatTables {
    /// Subsystem and text of each format, those of a subsystem side by side, ftrace's own first.
    pub(super) formats: Vec<(&'static str, String)>,
    /// The text of `saved_cmdlines`.
    pub(super) cmdlines: Vec<u8>,
    /// The kernel and the machine.
    pub(super) system: System,
    /// What Fairlab's reader needs beside.
    pub(super) own: String,
    /// Where the pages of each CPU are; some may have recorded nothing.
    pub(super) cpus: Vec<CpuPages>,
}

/// The level that trace-cmd uses.
const ZSTD_LEVEL: i32 = 3;

impl WrittenPages {
    pub(super) fn new(compression: TraceDatCompression, spool: Spool) -> WrittenPages {
        WrittenPages { compression, spool }
    }

    /// Keeps some pages of a CPU.
    pub(super) fn store(&mut self, pages: &[u8], cpu: &mut CpuPages) -> io::Result<()> {
        let size = |bytes: usize| u32::try_from(bytes).map_err(io::Error::other);
        let (start, length) = match self.compression {
            TraceDatCompression::None => (self.spool.append(pages)?, pages.len()),
            TraceDatCompression::Zstd => {
                let compressed = zstd::bulk::compress(pages, ZSTD_LEVEL)?;
                let head = [size(compressed.len())?.to_le_bytes(), size(pages.len())?.to_le_bytes()].concat();
                let start = self.spool.append(&head)?;
                self.spool.append(&compressed)?;
                (start, head.len() + compressed.len())
            }
        };
        cpu.pieces.push((start, size(length)?));
        Ok(())
    }

    /// Writes the file.
    pub(super) fn write_file(self, tables: &TraceDatTables, output: &mut impl Write) -> io::Result<()> {
        let store = self.spool.into_store();
        match self.compression {
            TraceDatCompression::None => write_linear(tables, &store, output),
            TraceDatCompression::Zstd => write_sections(tables, &store, output),
        }
    }
}

const CLOCK: &[u8] = b"local\0";
const VERSION: &str = concat!("fairlab ", env!("CARGO_PKG_VERSION"), "\0");

/// What both versions begin with.
fn start(version: &[u8]) -> Vec<u8> {
    let (little_endian, long_bytes) = (0, 8);
    let mut bytes = [MAGIC, version, &[0, little_endian, long_bytes]].concat();
    bytes.extend((PAGE_BYTES as u32).to_le_bytes());
    bytes
}

/// The parts that both versions have, in version 6's order: their numbers in version 7, and their content.
fn parts(tables: &TraceDatTables) -> [(u16, Vec<u8>); 6] {
    let TracingDescription { header, ftrace, events, symbols, printk, cmdlines } =
        TracingDescription::new(&tables.formats, &tables.cmdlines, PAGE_BYTES);
    [
        (number::HEADER_INFO, header),
        (number::FTRACE_EVENTS, ftrace),
        (number::EVENT_FORMATS, events),
        (number::KALLSYMS, symbols),
        (number::PRINTK, printk),
        (number::CMDLINES, cmdlines),
    ]
}

/// Number and length in front of an option's content.
const OPTION_HEAD: usize = 6;

fn put_option(bytes: &mut Vec<u8>, number: u16, data: &[u8]) {
    bytes.extend(number.to_le_bytes());
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend(data);
}

/// The options of both versions.
fn put_facts(bytes: &mut Vec<u8>, tables: &TraceDatTables) {
    if let Some(line) = uname::line(&tables.system) {
        put_option(bytes, number::UNAME, &[line.as_bytes(), b"\0"].concat());
    }
    put_option(bytes, number::VERSION, VERSION.as_bytes());
    put_option(bytes, number::FAIRLAB, tables.own.as_bytes());
}

/// Version 6.
fn write_linear(tables: &TraceDatTables, store: &Store, output: &mut impl Write) -> io::Result<()> {
    let mut bytes = start(b"6");
    for (_, part) in parts(tables) {
        bytes.extend(part);
    }
    bytes.extend((tables.cpus.len() as u32).to_le_bytes());
    bytes.extend(b"options  \0");
    put_facts(&mut bytes, tables);
    bytes.extend(number::DONE.to_le_bytes());
    bytes.extend(b"flyrecord\0");
    const TABLE_ENTRY: usize = 16;
    let mut end = align((bytes.len() + TABLE_ENTRY * tables.cpus.len()) as u64);
    let mut offsets = Vec::with_capacity(tables.cpus.len());
    for cpu in &tables.cpus {
        bytes.extend(end.to_le_bytes());
        bytes.extend(cpu.bytes().to_le_bytes());
        offsets.push(end);
        end = align(end + cpu.bytes());
    }
    let mut output = CountedOutput { output, count: 0 };
    output.put(&bytes)?;
    for (cpu, offset) in tables.cpus.iter().zip(offsets) {
        output.pad_to(offset)?;
        output.copy(store, cpu)?;
    }
    Ok(())
}

/// Version 7: the sections that describe, the options that say where all that is, and behind them the records, so that
/// a file that loses its end loses no more than that.
fn write_sections(tables: &TraceDatTables, store: &Store, output: &mut impl Write) -> io::Result<()> {
    let mut bytes = start(b"7");
    bytes.extend(b"zstd\0");
    bytes.extend(zstd::zstd_safe::version_string().as_bytes());
    bytes.push(0);
    let options_at = bytes.len();
    bytes.extend(0_u64.to_le_bytes());
    let mut options = Vec::new();
    for (number, part) in parts(tables) {
        put_option(&mut options, number, &(bytes.len() as u64).to_le_bytes());
        put_section_head(&mut bytes, number, 0, part.len() as u64);
        bytes.extend(part);
    }
    put_option(&mut options, number::CPUCOUNT, &(tables.cpus.len() as u32).to_le_bytes());
    put_facts(&mut options, tables);
    // The last two, whose length is known before their content.
    let (cpus, _) = place_cpus(tables, 0);
    let last = OPTION_HEAD + buffer_option(0, &cpus).len() + OPTION_HEAD + size_of::<u64>();
    let first_options = bytes.len() as u64;
    let records_at = first_options + SECTION_HEAD + (options.len() + last) as u64;
    let (cpus, end) = place_cpus(tables, records_at + SECTION_HEAD);
    put_option(&mut options, number::BUFFER, &buffer_option(records_at, &cpus));
    put_option(&mut options, number::DONE, &0_u64.to_le_bytes());
    bytes[options_at..options_at + size_of::<u64>()].copy_from_slice(&first_options.to_le_bytes());
    put_section_head(&mut bytes, number::DONE, 0, options.len() as u64);
    bytes.extend(options);
    debug_assert_eq!(bytes.len() as u64, records_at);
    put_section_head(&mut bytes, number::BUFFER, FLAG_COMPRESSED, end - records_at - SECTION_HEAD);
    let mut output = CountedOutput { output, count: 0 };
    output.put(&bytes)?;
    for &(cpu, offset, _) in &cpus {
        output.pad_to(offset)?;
        let pages = &tables.cpus[cpu];
        output.put(&(pages.pieces.len() as u32).to_le_bytes())?;
        output.copy(store, pages)?;
    }
    Ok(())
}

const SECTION_HEAD: u64 = 16;
const FLAG_COMPRESSED: u16 = 1;

fn put_section_head(bytes: &mut Vec<u8>, number: u16, flags: u16, size: u64) {
    bytes.extend(number.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    // No description.
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(size.to_le_bytes());
}

/// Index, place and length of each CPU that recorded anything, and where the last one ends.
fn place_cpus(tables: &TraceDatTables, start: u64) -> (Vec<(usize, u64, u64)>, u64) {
    let mut end = start;
    let mut cpus = Vec::new();
    for (index, cpu) in tables.cpus.iter().enumerate().filter(|(_, cpu)| !cpu.pieces.is_empty()) {
        let (offset, length) = (align(end), size_of::<u32>() as u64 + cpu.bytes());
        cpus.push((index, offset, length));
        end = offset + length;
    }
    (cpus, end)
}

fn buffer_option(records_at: u64, cpus: &[(usize, u64, u64)]) -> Vec<u8> {
    let mut option = records_at.to_le_bytes().to_vec();
    // The top instance has no name.
    option.push(0);
    option.extend(CLOCK);
    option.extend((PAGE_BYTES as u32).to_le_bytes());
    option.extend((cpus.len() as u32).to_le_bytes());
    for &(cpu, offset, length) in cpus {
        option.extend((cpu as u32).to_le_bytes());
        option.extend(offset.to_le_bytes());
        option.extend(length.to_le_bytes());
    }
    option
}

/// Records begin at multiples of the page, so that trace-cmd can map them.
fn align(offset: u64) -> u64 {
    offset.next_multiple_of(PAGE_BYTES as u64)
}

/// An output, and how much was put into it.
struct CountedOutput<'o, W> {
    output: &'o mut W,
    count: u64,
}

impl<W: Write> CountedOutput<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.count += bytes.len() as u64;
        self.output.write_all(bytes)
    }

    fn pad_to(&mut self, offset: u64) -> io::Result<()> {
        let missing = offset.saturating_sub(self.count);
        self.put(&vec![0; usize::try_from(missing).map_err(io::Error::other)?])
    }

    fn copy(&mut self, store: &Store, cpu: &CpuPages) -> io::Result<()> {
        let mut buffer = Vec::new();
        for &(start, length) in &cpu.pieces {
            buffer.resize(length as usize, 0);
            if store.read_at(&mut buffer, start)? != buffer.len() {
                return Err(io::Error::other("the temporary file has become shorter"));
            }
            self.put(&buffer)?;
        }
        Ok(())
    }
}
