//! `trace.dat`: what `trace-cmd record` and `trace-cmd extract` write, versions 6 and 7, and KernelShark opens.
//!
//! The kernel's ring buffer as it is, each CPU's pages in a place of their own, beside the kernel's own descriptions of
//! what is in them. All CPUs are read side by side, a piece at a time, so memory does not grow with the trace; what
//! comes through a pipe is copied to a temporary file first.
//!
//! Saved command lines become [`TaskName`](fairlab_event::EventKind::TaskName) events of time 0. Trace instances are
//! merged; a tracepoint that several of them recorded is taken from the one that has it first. Times are what
//! `trace-cmd report` makes of them. Not applied: the shift between a guest's clock and its host's, without which all
//! times are the guest's own.
//!
//! [`TraceDatWriter`] writes the format.

mod compression;
mod contents;
mod cursor;
mod linear;
mod options;
mod own;
mod pages;
mod sections;
mod writer;

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::rc::Rc;

use fairlab_event::{Cpu, Event, EventKind, Ns, Sink};

use crate::endian::Endian;
use crate::ringbuffer::clock::Clock;
use crate::ringbuffer::deliver::{Delivery, Knowledge};
use crate::ringbuffer::merge::merge;
use crate::ringbuffer::page::PageFormat;
use crate::ringbuffer::stored::{StoredPages, piece_bytes};
use crate::ringbuffer::stream::{Pages, Stream};
use crate::store::Store;
use crate::{ImportError, ImportStats, ReadOptions, Trouble};
use compression::Codec;
use contents::{Contents, Instance};
use cursor::{Cursor, Fault};
use pages::CompressedPages;

pub use writer::{Compression, TraceDatWriter, WriteOptions};

/// The first bytes.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Reads a trace.dat that comes through a pipe or out of a decompressor.
///
/// What is longer than a few megabytes is copied to an unnamed file in `$TMPDIR` or `/var/tmp`.
///
/// # Errors
/// `source` or the temporary file fails, or it is no trace.dat with records.
pub fn read(
    source: impl BufRead,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    read_store(&Store::spool(source)?, options, sink)
}

/// Reads a trace.dat in place.
///
/// # Errors
/// The file cannot be read, or is no trace.dat with records.
pub fn read_file(file: File, options: &ReadOptions, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    if !file.metadata()?.is_file() {
        return read(BufReader::new(file), options, sink);
    }
    read_store(&Store::file(file)?, options, sink)
}

fn read_store(store: &Store, options: &ReadOptions, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    let mut stats = ImportStats::default();
    let mut cursor = Cursor::new(store, Endian::Little, 0, u64::MAX);
    let (version, mut contents) = read_start(&mut cursor)?;
    let codec = match version.as_str() {
        "6" => {
            linear::read(store, &mut cursor, &mut contents)?;
            Codec::None
        }
        "7" => sections::read(store, &mut cursor, &mut contents)?,
        _ => {
            return Err(ImportError::Unsupported(format!(
                "this trace.dat is of version {version}, which is not supported; 6 and 7 are: \
                 make one of it with: trace-cmd convert --file-version 7"
            )));
        }
    };
    check(&contents, &mut stats)?;
    let mut streams = open_streams(store, cursor.endian(), &contents, codec, &mut stats);
    let instances = contents.instances.len();
    let (knowledge, named) = knowledge(contents, options, &mut stats);
    for event in named {
        sink.event(&event);
        stats.events += 1;
    }
    let mut delivery = Delivery::new(knowledge, streams.len(), instances > 1, sink, &mut stats);
    merge(&mut streams, &mut delivery)?;
    Ok(stats)
}

/// The version, and what all versions begin with.
fn read_start(cursor: &mut Cursor<'_>) -> Result<(String, Contents), ImportError> {
    let mut start = || -> Result<(String, Contents), Fault> {
        cursor.tag(MAGIC)?;
        let version = cursor.text()?;
        let endian = if cursor.take(1)? == [0] { Endian::Little } else { Endian::Big };
        cursor.set_endian(endian);
        let _long_bytes = cursor.take(1)?;
        let page_bytes = cursor.u32()?;
        Ok((version, Contents::new(endian, page_bytes as usize)))
    };
    start().map_err(|fault| match fault {
        Fault::Io(error) => ImportError::Io(error),
        Fault::Cut => {
            ImportError::NotATrace("no trace.dat: it ends or goes wrong within its first bytes".to_string())
        }
    })
}

/// Refuses what has no records, and counts what is wrong with the rest.
fn check(contents: &Contents, stats: &mut ImportStats) -> Result<(), ImportError> {
    if contents.text {
        return Err(ImportError::Unsupported(
            "this trace.dat holds text of a latency tracer, no events; show it with: trace-cmd report"
                .to_string(),
        ));
    }
    if contents.instances.is_empty() {
        return Err(ImportError::NotATrace(
            "this trace.dat holds no records; if trace-cmd was killed while it recorded, try: trace-cmd restore".to_string(),
        ));
    }
    if contents.tracepoints.len() == 0 {
        return Err(ImportError::NotATrace(
            "this trace.dat has no event descriptions, or none that can be read".to_string(),
        ));
    }
    if contents.damaged {
        stats.add(Trouble::CorruptRecord, 1, 0);
    }
    if contents.garbage_formats > 0 {
        stats.add(Trouble::UnknownEventFormat, contents.garbage_formats, 0);
    }
    if contents.dropped > 0 {
        stats.add(Trouble::LostEvents, contents.dropped, 0);
    }
    Ok(())
}

/// More CPUs' buffers in one file are garbage.
const STREAMS_MAX: usize = 1 << 14;

/// The records of each CPU and instance.
fn open_streams<'s>(
    store: &'s Store,
    endian: Endian,
    contents: &Contents,
    codec: Codec,
    stats: &mut ImportStats,
) -> Vec<Stream<'s>> {
    let codec = Rc::new(RefCell::new(codec));
    let buffers = || {
        contents
            .instances
            .iter()
            .enumerate()
            .flat_map(|(index, instance)| instance.cpus.iter().map(move |data| (index, instance, *data)))
    };
    let piece = piece_bytes(buffers().count());
    let first_clock = contents.instances.first().map_or("", |first| first.clock.as_str());
    // Buffers do not overlap: together they are no longer than the file, and so is the memory to read them.
    let mut left = store.length();
    let mut streams = Vec::new();
    for (index, instance, data) in buffers() {
        if instance.clock != first_clock {
            stats.add(Trouble::OtherClock, 1, data.offset);
            continue;
        }
        let size = data.size.min(store.length().saturating_sub(data.offset));
        if size < data.size {
            stats.add(Trouble::TruncatedFile, 1, store.length());
        }
        let page = page_format(contents, instance);
        let (Some(page), Some(rest)) = (page, left.checked_sub(size)) else {
            stats.add(Trouble::CorruptRecord, 1, data.offset);
            continue;
        };
        left = rest;
        if size > 0 && streams.len() < STREAMS_MAX {
            let pages: Box<dyn Pages> = if instance.compressed {
                let codec = Rc::clone(&codec);
                Box::new(CompressedPages::new(store, endian, codec, data.offset, page.size()))
            } else {
                let end = data.offset.saturating_add(size);
                Box::new(StoredPages::new(store, data.offset, end, page.size(), piece))
            };
            streams.push(Stream::new(data.cpu, index, endian, page, pages));
        }
    }
    streams
}

fn page_format(contents: &Contents, instance: &Instance) -> Option<PageFormat> {
    match instance.page_bytes {
        Some(bytes) if bytes != contents.page.size() => contents.page.with_size(bytes),
        _ => Some(contents.page),
    }
}

/// What makes events of records, and the names that are known in the beginning as events.
fn knowledge(
    contents: Contents,
    options: &ReadOptions,
    stats: &mut ImportStats,
) -> (Knowledge, Vec<Event<'static>>) {
    let Contents { tracepoints, clock, mut tasks, named, own, .. } = contents;
    let own_notes = own.is_some();
    let own = own.unwrap_or_default();
    for &(pid, comm) in &own.comms {
        tasks.set_comm(pid, comm);
    }
    for &(pid, tgid) in &own.tgids {
        tasks.set_tgid(pid, tgid);
    }
    let name = |(pid, tgid, comm)| Event::new(Ns::ZERO, Cpu(0), EventKind::TaskName { pid, tgid, comm });
    // Where Fairlab wrote the file, the saved names came from the events; names that were events are noted apart.
    let named: Vec<Event<'static>> = if own_notes {
        own.early
    } else {
        named.into_iter().map(|(pid, comm)| name((pid, tasks.get(pid).tgid, comm))).collect()
    };
    let clock = Clock::new(&clock, options, stats);
    (Knowledge { tracepoints, clock, tasks, flag_columns: own.flag_columns }, named)
}
