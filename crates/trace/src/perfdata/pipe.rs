//! What a `perf.data` says about itself when it was written to a pipe (`perf record -o -`): the attrs and the event
//! formats are records among the others, before the first sample.
//!
//! Layout facts: tools/perf/Documentation/perf.data-file-format.txt.
//! Must not know: what samples say.

use fairlab_event::System;

use super::header::{
    FORMATS_BYTES_MAX, HeaderFacts, IDS_MAX, PIPE_HEADER_BYTES, has_tracepoints, missing_formats, usable,
};
use super::machine;
use super::records::bytes_behind;
use super::sample::PerfEventAttr;
use super::window::{FileWindow, NextRecord, RECORD_HEADER};
use crate::endian::Endian;
use crate::store::Store;
use crate::tracepoint::Tracepoints;
use crate::tracepoint::tracing_data::{self, TracingData};
use crate::{ImportError, ImportStats};

/// perf's own records that say something about the file, and those with which the recording itself begins.
mod kind {
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const ATTR: u32 = 64;
    pub(super) const TRACING_DATA: u32 = 66;
    pub(super) const FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
}

const SCAN_BYTES: usize = 1 << 16;
/// More attrs are garbage.
const ATTRS_MAX: usize = 1 << 14;

/// Reads on up to the first sample.
pub(super) fn read(
    store: &Store,
    endian: Endian,
    stats: &mut ImportStats,
) -> Result<HeaderFacts, ImportError> {
    let mut scan = FileWindow::new(PIPE_HEADER_BYTES, store.length(), SCAN_BYTES);
    let (mut attrs, mut ids_left) = (Vec::new(), IDS_MAX);
    let (mut formats, mut formats_at): (Option<TracingData>, u64) = (None, 0);
    let (mut compressed, mut system) = (false, System::default());
    while let NextRecord::Record(size) = scan.look(store, endian)? {
        let (record, position) = (scan.bytes(size), scan.position());
        match endian.u32(record, 0).unwrap_or(0) {
            kind::SAMPLE => break,
            kind::COMPRESSED | kind::COMPRESSED2 => {
                compressed = true;
                break;
            }
            kind::ATTR if attrs.len() < ATTRS_MAX => {
                attrs.extend(read_attr(record, endian, &mut ids_left));
            }
            kind::TRACING_DATA => {
                let at = position.saturating_add(size as u64);
                let bytes = store.read_section(at, bytes_behind(record, endian).min(FORMATS_BYTES_MAX))?;
                if formats.is_none() {
                    (formats, formats_at) = (tracing_data::read(&bytes), at);
                }
            }
            // Its number, then what in a file would be its section.
            kind::FEATURE => {
                let feature =
                    endian.u64(record, RECORD_HEADER).and_then(|feature| u32::try_from(feature).ok());
                let content = record.get(RECORD_HEADER + size_of::<u64>()..).unwrap_or_default();
                machine::take(&mut system, feature.unwrap_or(u32::MAX), content, endian);
            }
            _ => {}
        }
        let behind = bytes_behind(record, endian);
        scan.advance((size as u64).saturating_add(behind));
    }
    let tracepoints = if has_tracepoints(&attrs) || attrs.is_empty() {
        let formats = formats.ok_or_else(|| missing_formats("none come before the first event"))?;
        usable(formats, formats_at, stats)?
    } else {
        Tracepoints::new(endian)
    };
    Ok(HeaderFacts {
        attrs,
        tracepoints,
        data: PIPE_HEADER_BYTES..store.length(),
        compressed,
        own: None,
        system,
    })
}

/// An attr and the ids of its events, which fill the rest of the record.
fn read_attr(record: &[u8], endian: Endian, ids_left: &mut usize) -> Option<(PerfEventAttr, Vec<u64>)> {
    let body = record.get(RECORD_HEADER..)?;
    let attr = PerfEventAttr::parse(body, endian)?;
    let ids = body.get(PerfEventAttr::own_size(body, endian)..).unwrap_or_default();
    let ids: Vec<u64> = ids.chunks_exact(8).filter_map(|id| endian.u64(id, 0)).take(*ids_left).collect();
    *ids_left -= ids.len();
    Some((attr, ids))
}
