//! A perf.data put together: header, ids, attrs, the records, and the feature sections behind them.
//!
//! Layout facts: tools/perf/Documentation/perf.data-file-format.txt. Must not know: events.

use std::io::{self, Write};

use fairlab_event::System;

use super::WORD;
use crate::perfdata::fairlab_notes;
use crate::perfdata::machine::{self, text};
use crate::perfdata::sample::bit;
use crate::store::Spool;
use crate::tracepoint::description::TracingDescription;
use crate::tracepoint::encoder::SWITCH_ID;

/// What the file says beside the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PerfDataTables {
    /// The id of each tracepoint that there are samples of.
    pub(super) ids: Vec<u16>,
    /// Subsystem and text of each format, those of a subsystem side by side, ftrace's own first.
    pub(super) formats: Vec<(&'static str, String)>,
    /// The first and the latest time.
    pub(super) times: (u64, u64),
    /// One more than the highest CPU.
    pub(super) cpus: u32,
    /// The kernel and the machine.
    pub(super) system: System,
    /// What Fairlab's reader needs beside.
    pub(super) own: String,
}

/// What every sample holds before its tracepoint's record, a word each: identifier, ids, time, CPU, period.
pub(super) const SAMPLE_WORDS: usize = 5;
const SAMPLE_TYPE: u64 = bit::TID | bit::TIME | bit::CPU | bit::PERIOD | bit::RAW | bit::IDENTIFIER;

const HEADER_BYTES: u64 = 104;
/// `PERF_ATTR_SIZE_VER0`: nothing of later versions is needed, and every perf reads it.
const ATTR_BYTES: u64 = 64;
const SECTION_BYTES: u64 = 16;

/// Features by bit.
const TRACING_DATA: u32 = 1;
const VERSION: u32 = 5;
const SAMPLE_TIME: u32 = 21;

/// Page size in the description of ring-buffer pages, which perf does not use.
const PAGE_BYTES: usize = 4096;

/// Writes the file.
pub(super) fn write(tables: &PerfDataTables, records: Spool, output: &mut impl Write) -> io::Result<()> {
    let ids = attr_ids(&tables.ids);
    let entry_bytes = ATTR_BYTES + SECTION_BYTES;
    let attrs_at = HEADER_BYTES + (WORD * ids.len()) as u64;
    let attrs_bytes = entry_bytes * ids.len() as u64;
    let data_at = attrs_at + attrs_bytes;
    let store = records.into_store();
    let sections = features(tables);
    let mut head = b"PERFILE2".to_vec();
    put(&mut head, &[HEADER_BYTES, entry_bytes, attrs_at, attrs_bytes, data_at, store.length(), 0, 0]);
    let mut bits = [0_u64; 4];
    for &(feature, _) in &sections {
        bits[feature as usize / 64] |= 1 << (feature % 64);
    }
    put(&mut head, &bits);
    put(&mut head, &ids.iter().map(|&id| u64::from(id)).collect::<Vec<_>>());
    for (index, &id) in ids.iter().enumerate() {
        put_attr(&mut head, id);
        put(&mut head, &[HEADER_BYTES + (WORD * index) as u64, WORD as u64]);
    }
    output.write_all(&head)?;
    store.copy_to(output)?;
    let mut at = data_at + store.length() + SECTION_BYTES * sections.len() as u64;
    let (mut places, mut contents) = (Vec::new(), Vec::new());
    for (_, section) in &sections {
        put(&mut places, &[at, section.len() as u64]);
        contents.extend(section);
        at += section.len() as u64;
    }
    output.write_all(&places)?;
    output.write_all(&contents)
}

/// `sched_switch` first, which records that are no samples go by, and which there may be no samples of.
fn attr_ids(used: &[u16]) -> Vec<u16> {
    let others = used.iter().copied().filter(|&id| id != SWITCH_ID);
    std::iter::once(SWITCH_ID).chain(others).collect()
}

fn put(bytes: &mut Vec<u8>, words: &[u64]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// `perf_event_attr` of a tracepoint, as `perf sched record` asks for it.
fn put_attr(bytes: &mut Vec<u8>, id: u16) {
    const TYPE_TRACEPOINT: u64 = 2;
    const READ_FORMAT_ID: u64 = 4;
    const DISABLED: u64 = 1;
    const INHERIT: u64 = 1 << 1;
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    let period = 1;
    let flags = DISABLED | INHERIT | SAMPLE_ID_ALL;
    let start = bytes.len();
    put(bytes, &[TYPE_TRACEPOINT | ATTR_BYTES << 32, id.into(), period, SAMPLE_TYPE, READ_FORMAT_ID, flags]);
    bytes.resize(start + ATTR_BYTES as usize, 0);
}

/// The feature sections, by bit. What is not known of the recording machine is left out.
fn features(tables: &PerfDataTables) -> Vec<(u32, Vec<u8>)> {
    let mut times = Vec::new();
    put(&mut times, &[tables.times.0, tables.times.1]);
    let mut features = vec![
        (TRACING_DATA, tracing_data(tables)),
        (VERSION, text(concat!("fairlab ", env!("CARGO_PKG_VERSION")))),
        (SAMPLE_TIME, times),
        (fairlab_notes::FEATURE, tables.own.clone().into_bytes()),
    ];
    features.extend(machine::sections(&tables.system, tables.cpus));
    features.sort_by_key(|&(feature, _)| feature);
    features
}

/// The section that trace-cmd's file of old begins with.
fn tracing_data(tables: &PerfDataTables) -> Vec<u8> {
    let (little_endian, long_bytes) = (0, 8);
    let start = [b"\x17\x08\x44tracing0.6\0", &[little_endian, long_bytes][..]].concat();
    let page = (PAGE_BYTES as u32).to_le_bytes().to_vec();
    let TracingDescription { header, ftrace, events, symbols, printk, cmdlines } =
        TracingDescription::new(&tables.formats, &[], PAGE_BYTES);
    [start, page, header, ftrace, events, symbols, printk, cmdlines].concat()
}
