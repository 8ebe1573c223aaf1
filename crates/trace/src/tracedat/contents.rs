//! What a trace.dat says beside its records, whatever the version that says it.
//!
//! Must not know: where in the file it stands.

use std::collections::BTreeMap;

use fairlab_event::{Comm, Cpu, Pid, System};

use super::cursor::{ByteCursor, ReadFault};
use super::fairlab_notes::TraceDatNotes;
use crate::clock::ClockFacts;
use crate::endian::Endian;
use crate::ringbuffer::page::PageFormat;
use crate::ringbuffer::shift::ClockCorrection;
use crate::ringbuffer::tasks::ThreadTable;
use crate::tracepoint::Tracepoints;

/// Everything but the records.
#[derive(Debug)]
pub(super) struct Contents {
    /// How records are read.
    pub(super) tracepoints: Tracepoints,
    /// Formats that could not be read.
    pub(super) garbage_formats: u64,
    /// Where things lie in a page.
    pub(super) page: PageFormat,
    /// Names and thread groups.
    pub(super) tasks: ThreadTable,
    /// The names, in the file's order.
    pub(super) named: Vec<(Pid, Comm)>,
    /// The clock that the kernel told, of one of the instances.
    pub(super) clock: ClockFacts,
    /// Of the instances whose statistics show it: whether their stamps are nanoseconds.
    pub(super) in_ns: BTreeMap<String, bool>,
    /// What makes the stamps of each CPU those of the host, where the trace is a guest's.
    pub(super) shifts: Vec<Option<ClockCorrection>>,
    /// Events that the recorder counted as dropped without saying where.
    pub(super) dropped: u64,
    /// What Fairlab's writer noted.
    pub(super) own: Option<TraceDatNotes>,
    /// The kernel and the machine.
    pub(super) system: System,
    /// Trace instances with records.
    pub(super) instances: Vec<TraceInstance>,
    /// Whether there is text of a latency tracer instead of records.
    pub(super) text: bool,
    /// Whether a part that is needed could not be read.
    pub(super) damaged: bool,
    /// Whether the end that says where the records are is missing.
    pub(super) cut: bool,
}

/// One trace instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TraceInstance {
    /// What it is called; empty for the first, which is always there.
    pub(super) name: String,
    /// Its clock's name; empty when not said.
    pub(super) clock: String,
    /// Bytes of its pages, where said.
    pub(super) page_bytes: Option<usize>,
    /// Whether its pages are compressed.
    pub(super) compressed: bool,
    /// The CPUs that recorded anything.
    pub(super) cpus: Vec<CpuData>,
}

impl TraceInstance {
    /// What it is called in words.
    pub(super) fn label(&self) -> &str {
        if self.name.is_empty() { "top" } else { &self.name }
    }
}

/// Where the pages of one CPU lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuData {
    pub(super) cpu: Cpu,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// Larger counts of formats or subsystems are garbage: kernels have a few thousand events.
const COUNT_MAX: u32 = 65_536;
/// The longest `format` file, far above what kernels have.
const FORMAT_BYTES_MAX: usize = 1 << 20;
/// Descriptions of pages have some hundred bytes.
const HEADER_BYTES_MAX: usize = 1 << 16;
/// Formats of `trace_printk`: kernels have some kilobytes, and more with modules for debugging.
const PRINTK_BYTES_MAX: usize = 16 << 20;
/// Tables of names: a line for each of all threads that a kernel can have.
const CMDLINES_BYTES_MAX: usize = 64 << 20;

impl Contents {
    /// Nothing yet, of a machine with this byte order and `long`s of `long_bytes`, whose pages have `page_bytes`.
    pub(super) fn new(endian: Endian, page_bytes: usize) -> Contents {
        let usual = PageFormat::of_64_bit(endian, 4096);
        Contents {
            tracepoints: Tracepoints::new(endian),
            garbage_formats: 0,
            page: usual.with_size(page_bytes).unwrap_or(usual),
            tasks: ThreadTable::default(),
            named: Vec::new(),
            clock: ClockFacts::default(),
            in_ns: BTreeMap::new(),
            shifts: Vec::new(),
            dropped: 0,
            own: None,
            system: System::default(),
            instances: Vec::new(),
            text: false,
            damaged: false,
            cut: false,
        }
    }

    /// The clock of an instance: what it is said to be, by the instance first, and what its statistics show.
    pub(super) fn clock_of<'c>(&'c self, instance: &'c TraceInstance) -> &'c str {
        ClockFacts::name_of(&[&instance.clock, &self.clock.name], self.in_ns.get(&instance.name).copied())
    }

    /// `events/header_page` and `events/header_event`, of which the second says the same in all kernels.
    pub(super) fn read_header_info(&mut self, cursor: &mut ByteCursor<'_>) -> Result<(), ReadFault> {
        cursor.tag(b"header_page\0")?;
        let size = cursor.u64()?;
        let header_page = cursor.block(size, HEADER_BYTES_MAX)?;
        match PageFormat::parse(cursor.endian(), &String::from_utf8_lossy(&header_page)) {
            Some(page) => self.page = page,
            None => self.damaged = true,
        }
        cursor.tag(b"header_event\0")?;
        let size = cursor.u64()?;
        cursor.skip(size)
    }

    /// The formats of ftrace's own events.
    pub(super) fn read_ftrace_formats(&mut self, cursor: &mut ByteCursor<'_>) -> Result<(), ReadFault> {
        self.read_group(cursor, "ftrace")
    }

    /// The formats of each subsystem.
    pub(super) fn read_event_formats(&mut self, cursor: &mut ByteCursor<'_>) -> Result<(), ReadFault> {
        for _ in 0..count(cursor)? {
            let system = cursor.text()?;
            self.read_group(cursor, &system)?;
        }
        Ok(())
    }

    fn read_group(&mut self, cursor: &mut ByteCursor<'_>, system: &str) -> Result<(), ReadFault> {
        for _ in 0..count(cursor)? {
            let size = cursor.u64()?;
            let length = usize::try_from(size).ok().filter(|&length| length <= FORMAT_BYTES_MAX);
            let text = cursor.take(length.ok_or(ReadFault::Cut)?)?;
            if !self.tracepoints.add(system, &String::from_utf8_lossy(text)) {
                self.garbage_formats += 1;
            }
        }
        Ok(())
    }

    /// `printk_formats`.
    pub(super) fn read_printk(&mut self, cursor: &mut ByteCursor<'_>) -> Result<(), ReadFault> {
        let size = cursor.u32()?;
        let text = cursor.block(size.into(), PRINTK_BYTES_MAX)?;
        self.tracepoints.add_printk(&String::from_utf8_lossy(&text));
        Ok(())
    }

    /// `saved_cmdlines`.
    pub(super) fn read_cmdlines(&mut self, cursor: &mut ByteCursor<'_>) -> Result<(), ReadFault> {
        let size = cursor.u64()?;
        let text = cursor.block(size, CMDLINES_BYTES_MAX)?;
        self.named = self.tasks.add_cmdlines(&text);
        Ok(())
    }
}

fn count(cursor: &mut ByteCursor<'_>) -> Result<u32, ReadFault> {
    let count = cursor.u32()?;
    if count <= COUNT_MAX { Ok(count) } else { Err(ReadFault::Cut) }
}
