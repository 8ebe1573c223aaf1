//! Binary tracepoint records to typed events, by the descriptions that the recording kernel left in the trace.
//!
//! Nothing about a record is assumed: names, offsets, widths and the letters of `prev_state` come from the kernel's
//! own `format` files, for they differ between kernels (`comm` is `char[16]` or `__data_loc char[]`, the common header
//! 8 or 12 bytes). Each format is turned into a [`Decoder`] once, so that no name is looked up per record.
//!
//! Must not know: in which container the records and the formats came.

mod decoder;
pub(crate) mod encoder;
mod expression;
pub(crate) mod flags;
pub(crate) mod format;
mod layout;
mod render;
mod state_table;
pub(crate) mod tracing_data;
mod value;

use fairlab_event::{EventKind, Flags, Pid};

use crate::endian::Endian;
use decoder::Decoder;
use format::EventFormat;
use value::Integer;

/// Every tracepoint that a trace describes.
#[derive(Clone, Debug)]
pub(crate) struct Tracepoints {
    endian: Endian,
    /// Where every record has its tracepoint's id; the same in all formats of a kernel.
    common_type: Option<Integer>,
    /// Where every record has the task that reported it.
    common_pid: Option<Integer>,
    decoders: Vec<Decoder>,
    /// By id: the place in `decoders`, or `NO_DECODER`.
    by_id: Vec<u16>,
}

const NO_DECODER: u16 = u16::MAX;

/// Why a record gave no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// The trace has no format for its id.
    UnknownFormat,
    /// It is shorter than its format says, or holds what the format does not explain.
    Malformed,
}

impl Tracepoints {
    /// No tracepoint yet; records are read in byte order `endian`.
    pub(crate) fn new(endian: Endian) -> Tracepoints {
        Tracepoints { endian, common_type: None, common_pid: None, decoders: Vec::new(), by_id: Vec::new() }
    }

    /// Adds the tracepoint that `text`, a `format` file of subsystem `system`, describes. False when it is garbage.
    pub(crate) fn add(&mut self, system: &str, text: &str) -> bool {
        let Some(format) = EventFormat::parse(system, text) else { return false };
        let index = match u16::try_from(self.decoders.len()) {
            Ok(index) if index != NO_DECODER => index,
            _ => return false,
        };
        if self.common_type.is_none() {
            self.common_type = format.field("common_type").and_then(Integer::of);
            self.common_pid = format.field("common_pid").and_then(Integer::of);
        }
        let id = usize::from(format.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, NO_DECODER);
        }
        self.by_id[id] = index;
        self.decoders.push(Decoder::new(&format));
        true
    }

    /// How many tracepoints are known.
    pub(crate) fn len(&self) -> usize {
        self.decoders.len()
    }

    /// The task that reported `record`; `None` when it is too short, or no format says where it lies.
    #[inline]
    pub(crate) fn pid(&self, record: &[u8]) -> Option<Pid> {
        Some(Pid(self.common_pid?.read(record, self.endian)? as i32))
    }

    /// The id of `record`'s tracepoint.
    #[inline]
    pub(crate) fn id(&self, record: &[u8]) -> Option<u16> {
        Some(self.common_type?.read(record, self.endian)? as u16)
    }

    /// What `record` says, and the flag columns of its context. Text that has to be made is made in `scratch`.
    #[inline]
    pub(crate) fn decode<'a>(
        &'a self,
        record: &'a [u8],
        scratch: &'a mut String,
    ) -> Result<(EventKind<'a>, Flags), DecodeError> {
        let common_type = self.common_type.ok_or(DecodeError::UnknownFormat)?;
        let id = common_type.read(record, self.endian).ok_or(DecodeError::Malformed)? as usize;
        let index = self.by_id.get(id).copied().unwrap_or(NO_DECODER);
        let decoder = self.decoders.get(usize::from(index)).ok_or(DecodeError::UnknownFormat)?;
        let kind = decoder.decode(record, self.endian, scratch).ok_or(DecodeError::Malformed)?;
        Ok((kind, decoder.flags(record, self.endian)))
    }
}
