//! What a `perf.data` says about itself: header, attrs, and the feature sections behind the data.
//!
//! Layout facts: tools/perf/Documentation/perf.data-file-format.txt.
//! Must not know: records.

use std::ops::{Range, RangeInclusive};

use fairlab_event::{SwitchScope, System};

use super::fairlab_notes::{self, PerfDataNotes};
use super::machine;
use super::pipe;
use super::sample::{Layouts, PerfEventAttr};
use super::switches::SwitchRecords;
use crate::endian::Endian;
use crate::store::Store;
use crate::tracepoint::Tracepoints;
use crate::tracepoint::tracing_data::{self, TracingData};
use crate::{ImportError, ImportStats, Trouble};

/// Bytes of the file header; in pipe mode there are 16.
const HEADER_BYTES: u64 = 104;
pub(super) const PIPE_HEADER_BYTES: u64 = 16;
/// Features that matter here, by bit.
const FEATURE_TRACING_DATA: u32 = 1;
const FEATURE_DIR_FORMAT: u32 = 24;
const FEATURE_COMPRESSED: u32 = 27;
/// Limits for what is kept in memory, far above what perf writes: attrs, ids in all, event formats.
const ATTRS_BYTES_MAX: u64 = 16 << 20;
pub(super) const IDS_MAX: usize = 1 << 21;
pub(super) const FORMATS_BYTES_MAX: u64 = 64 << 20;
const NOTES_BYTES_MAX: u64 = 1 << 24;

/// What is needed to read the records.
#[derive(Debug)]
pub(super) struct Header {
    /// Byte order of the recording machine.
    pub(super) endian: Endian,
    /// Where the records are, in the file as it is.
    pub(super) stretches: Vec<Range<u64>>,
    /// Where the fields of samples lie.
    pub(super) layouts: Layouts,
    /// How tracepoint records are read.
    pub(super) tracepoints: Tracepoints,
    /// Whether switches have records of their own, what these are read for, and whose they are.
    pub(super) has_switches: bool,
    pub(super) switch_records: SwitchRecords,
    pub(super) scope: SwitchScope,
    /// Whether records are compressed.
    pub(super) compressed: bool,
    /// What Fairlab's writer noted.
    pub(super) own: Option<PerfDataNotes>,
    /// The kernel and the machine.
    pub(super) system: System,
}

/// What a file says, wherever it says it.
#[derive(Debug)]
pub(super) struct HeaderFacts {
    /// Every attr with the ids of its events.
    pub(super) attrs: Vec<(PerfEventAttr, Vec<u64>)>,
    pub(super) tracepoints: Tracepoints,
    pub(super) data: Range<u64>,
    pub(super) compressed: bool,
    pub(super) own: Option<PerfDataNotes>,
    pub(super) system: System,
}

/// A part of the file.
#[derive(Clone, Copy, Debug)]
struct FileSection {
    offset: u64,
    size: u64,
}

impl FileSection {
    fn parse(bytes: &[u8], at: usize, endian: Endian) -> Option<FileSection> {
        Some(FileSection { offset: endian.u64(bytes, at)?, size: endian.u64(bytes, at + 8)? })
    }

    fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// Reads everything but the records.
///
/// Of a recording in several files, `store` is the first, which is `in_folder`.
pub(super) fn read(store: &Store, in_folder: bool, stats: &mut ImportStats) -> Result<Header, ImportError> {
    let bytes = store.read_section(0, HEADER_BYTES)?;
    let endian = byte_order(&bytes)?;
    let size = endian.u64(&bytes, 8).ok_or_else(cut_header)?;
    let facts = match size {
        PIPE_HEADER_BYTES => pipe::read(store, endian, stats)?,
        _ => read_sections(store, &bytes, endian, in_folder, stats)?,
    };
    let HeaderFacts { attrs, tracepoints, data, compressed, own, system } = facts;
    check_attrs(&attrs)?;
    let layouts = Layouts::new(&attrs, endian).ok_or_else(no_tracepoints)?;
    Ok(Header {
        endian,
        stretches: vec![data],
        layouts,
        has_switches: attrs.iter().any(|(attr, _)| attr.has_switches()),
        tracepoints,
        switch_records: SwitchRecords::default(),
        scope: SwitchScope::default(),
        compressed,
        own,
        system,
    })
}

/// Reads what the header at the beginning of a file leads to.
fn read_sections(
    store: &Store,
    bytes: &[u8],
    endian: Endian,
    in_folder: bool,
    stats: &mut ImportStats,
) -> Result<HeaderFacts, ImportError> {
    let attr_size = endian.u64(bytes, 16).ok_or_else(cut_header)?;
    let attrs = FileSection::parse(bytes, 24, endian).ok_or_else(cut_header)?;
    let data = FileSection::parse(bytes, 40, endian).ok_or_else(cut_header)?;
    let features = FeatureSections::parse(bytes, endian).ok_or_else(cut_header)?;
    check_supported(&features, data, store.length(), in_folder)?;
    let attrs = read_attrs(store, attrs, attr_size, endian)?;
    if check_attrs(&attrs).is_err() && holds_sched_stats(store, data, endian)? {
        return Err(ImportError::Unsupported(SCHED_STATS_FACT.to_string()));
    }
    check_attrs(&attrs)?;
    let read = if has_tracepoints(&attrs) {
        read_formats(store, &features, data, endian, stats)
    } else {
        Ok(Tracepoints::new(endian))
    };
    let tracepoints = match (read, data.size) {
        (_, 0) if !features.has(FEATURE_TRACING_DATA) => return Err(never_finished()),
        (Err(_), 0) => return Err(never_finished()),
        (read, _) => read?,
    };
    Ok(HeaderFacts {
        attrs,
        tracepoints,
        data: data.offset..data.end().min(store.length()),
        compressed: features.has(FEATURE_COMPRESSED),
        own: read_own(store, &features, data, endian)?,
        system: read_system(store, &features, data, endian)?,
    })
}

/// The notes of Fairlab's writer.
fn read_own(
    store: &Store,
    features: &FeatureSections,
    data: FileSection,
    endian: Endian,
) -> Result<Option<PerfDataNotes>, ImportError> {
    let notes = read_feature(store, features, fairlab_notes::FEATURE, NOTES_BYTES_MAX, data, endian)?;
    Ok(notes.and_then(|bytes| PerfDataNotes::parse(&bytes)))
}

/// The kernel and the machine.
fn read_system(
    store: &Store,
    features: &FeatureSections,
    data: FileSection,
    endian: Endian,
) -> Result<System, ImportError> {
    let mut system = System::default();
    for feature in machine::FEATURES {
        let bytes = read_feature(store, features, feature, machine::SECTION_BYTES_MAX, data, endian)?;
        machine::take(&mut system, feature, &bytes.unwrap_or_default(), endian);
    }
    Ok(system)
}

/// The first bytes of a feature's section, no more than `bytes_max`; `None` when the file does not have the feature.
fn read_feature(
    store: &Store,
    features: &FeatureSections,
    feature: u32,
    bytes_max: u64,
    data: FileSection,
    endian: Endian,
) -> Result<Option<Vec<u8>>, ImportError> {
    let Some(index) = features.index(feature) else { return Ok(None) };
    let entry = store.read_section(data.end().saturating_add(index * 16), 16)?;
    let Some(section) = FileSection::parse(&entry, 0, endian) else { return Ok(None) };
    Ok(Some(store.read_section(section.offset, section.size.min(bytes_max))?))
}

fn byte_order(bytes: &[u8]) -> Result<Endian, ImportError> {
    if bytes.starts_with(b"PERFILE2") {
        return Ok(Endian::Little);
    }
    if bytes.starts_with(b"2ELIFREP") {
        return Ok(Endian::Big);
    }
    Err(ImportError::NotATrace("no perf.data: it does not begin with PERFILE2".to_string()))
}

fn cut_header() -> ImportError {
    ImportError::NotATrace("this perf.data ends within its header".to_string())
}

/// Records without an end that is said: of a recording that was finished, none, and descriptions follow.
fn never_finished() -> ImportError {
    ImportError::NotATrace(
        "this perf.data was never finished: perf record was killed before it wrote the event descriptions; \
         stop it with SIGINT or SIGTERM"
            .to_string(),
    )
}

const SCHED_STATS_FACT: &str = "this is a file of perf sched stats, counters of /proc/schedstat and no events; compare two with: \
     fairlab compare --schedstat A --schedstat B";

/// Whether the first records are those of `perf sched stats record`: counters of CPUs and domains.
fn holds_sched_stats(store: &Store, data: FileSection, endian: Endian) -> Result<bool, ImportError> {
    const SCHEDSTAT: RangeInclusive<u32> = 85..=86;
    const LOOKED_AT: usize = 64;
    let mut at = data.offset;
    for _ in 0..LOOKED_AT {
        let head = store.read_section(at, 8)?;
        let (Some(kind), Some(size @ 8..)) = (endian.u32(&head, 0), endian.u16(&head, 6)) else { break };
        if at >= data.end() {
            break;
        }
        if SCHEDSTAT.contains(&kind) {
            return Ok(true);
        }
        at = at.saturating_add(size.into());
    }
    Ok(false)
}

fn no_tracepoints() -> ImportError {
    ImportError::Unsupported(
        "this perf.data holds no tracepoint events, nor switches (--switch-events); record some with: perf sched record"
            .to_string(),
    )
}

/// Feature bits and the place of their sections.
struct FeatureSections {
    bits: [u64; 4],
}

impl FeatureSections {
    fn parse(bytes: &[u8], endian: Endian) -> Option<FeatureSections> {
        let word = |index: usize| endian.u64(bytes, 72 + 8 * index);
        Some(FeatureSections { bits: [word(0)?, word(1)?, word(2)?, word(3)?] })
    }

    fn has(&self, bit: u32) -> bool {
        self.bits[bit as usize / 64] & (1 << (bit % 64)) != 0
    }

    /// The place of a section in the table behind the data: one entry for each bit set, in their order.
    fn index(&self, bit: u32) -> Option<u64> {
        let (word, below) = (bit as usize / 64, (1 << (bit % 64)) - 1);
        let before: u32 = self.bits[..word].iter().map(|bits| bits.count_ones()).sum();
        self.has(bit).then(|| u64::from(before + (self.bits[word] & below).count_ones()))
    }
}

fn check_supported(
    features: &FeatureSections,
    data: FileSection,
    length: u64,
    in_folder: bool,
) -> Result<(), ImportError> {
    if data.end() > length {
        return Err(ImportError::NotATrace(format!(
            "this perf.data is cut: its records end at byte {} and its event descriptions follow, the file ends at {length}",
            data.end()
        )));
    }
    if features.has(FEATURE_DIR_FORMAT) && !in_folder {
        return Err(ImportError::Unsupported(
            "this file is the first of those that perf record --threads made; give the folder that it is in"
                .to_string(),
        ));
    }
    Ok(())
}

/// Every attr with the ids of its events.
fn read_attrs(
    store: &Store,
    attrs: FileSection,
    entry_size: u64,
    endian: Endian,
) -> Result<Vec<(PerfEventAttr, Vec<u64>)>, ImportError> {
    const IDS_SECTION_BYTES: usize = 16;
    let garbage = |fact: String| ImportError::NotATrace(format!("this perf.data contradicts itself: {fact}"));
    let entry_size = usize::try_from(entry_size)
        .ok()
        .filter(|size| (PerfEventAttr::SIZE_MIN + IDS_SECTION_BYTES..=4096).contains(size))
        .ok_or_else(|| garbage(format!("an attr of {entry_size} bytes")))?;
    if attrs.size > ATTRS_BYTES_MAX {
        return Err(garbage(format!("{} bytes of attrs", attrs.size)));
    }
    let bytes = store.read_section(attrs.offset, attrs.size)?;
    let mut all = Vec::new();
    let mut ids_left = IDS_MAX;
    for entry in bytes.chunks_exact(entry_size) {
        let attr = PerfEventAttr::parse(entry, endian).ok_or_else(cut_header)?;
        // The section follows the attr, whose own size may be less than its room.
        let at = PerfEventAttr::own_size(entry, endian).min(entry_size - IDS_SECTION_BYTES);
        let section = FileSection::parse(entry, at, endian).ok_or_else(cut_header)?;
        let count = usize::try_from(section.size / 8).unwrap_or(usize::MAX).min(ids_left);
        let ids = store.read_section(section.offset, count as u64 * 8)?;
        let ids: Vec<u64> = ids.chunks_exact(8).filter_map(|id| endian.u64(id, 0)).collect();
        ids_left -= ids.len();
        all.push((attr, ids));
    }
    Ok(all)
}

/// Whether there are tracepoints in the file, or nothing but records of switches.
pub(super) fn has_tracepoints(attrs: &[(PerfEventAttr, Vec<u64>)]) -> bool {
    attrs.iter().any(|(attr, _)| attr.tracepoint)
}

fn check_attrs(attrs: &[(PerfEventAttr, Vec<u64>)]) -> Result<(), ImportError> {
    if !has_tracepoints(attrs) && attrs.iter().any(|(attr, _)| attr.has_switches()) {
        return Ok(());
    }
    let mut tracepoints = attrs.iter().map(|(attr, _)| attr).filter(|attr| attr.tracepoint).peekable();
    if tracepoints.peek().is_none() {
        return Err(no_tracepoints());
    }
    if !tracepoints.any(|attr| attr.has_raw() && attr.has_time()) {
        return Err(ImportError::Unsupported(
            "this perf.data has tracepoints without time or content; record with: perf record -R -T, or perf sched record"
                .to_string(),
        ));
    }
    Ok(())
}

/// The event formats, from the section of feature TRACING_DATA.
fn read_formats(
    store: &Store,
    features: &FeatureSections,
    data: FileSection,
    endian: Endian,
    stats: &mut ImportStats,
) -> Result<Tracepoints, ImportError> {
    let index = features
        .index(FEATURE_TRACING_DATA)
        .ok_or_else(|| missing_formats("perf record did not write any"))?;
    let table_at = data.end().saturating_add(index * 16);
    let entry = store.read_section(table_at, 16)?;
    let section = FileSection::parse(&entry, 0, endian)
        .ok_or_else(|| missing_formats("the file is cut before their place"))?;
    if section.end() > store.length() {
        stats.add(Trouble::TruncatedFile, 1, store.length());
    }
    let bytes = store.read_section(section.offset, section.size.min(FORMATS_BYTES_MAX))?;
    let found =
        tracing_data::read(&bytes).ok_or_else(|| missing_formats("they do not begin as they should"))?;
    usable(found, section.offset, stats)
}

/// The event formats that were found at `offset`, if there are any; counts what is wrong with the rest.
pub(super) fn usable(
    found: TracingData,
    offset: u64,
    stats: &mut ImportStats,
) -> Result<Tracepoints, ImportError> {
    if found.tracepoints.len() == 0 {
        return Err(missing_formats("none of them can be read"));
    }
    if let Some(at) = found.stopped_at {
        stats.add(Trouble::CorruptRecord, 1, offset.saturating_add(at as u64));
    }
    if found.garbage > 0 {
        stats.add(Trouble::UnknownEventFormat, found.garbage, offset);
    }
    Ok(found.tracepoints)
}

pub(super) fn missing_formats(why: &str) -> ImportError {
    ImportError::NotATrace(format!("this perf.data has no event descriptions: {why}"))
}
