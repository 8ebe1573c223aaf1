//! Binary tracepoint records to typed events, by the descriptions that the recording kernel left in the trace.
//!
//! Nothing about a record is assumed. Names, offsets, widths and the letters of `prev_state` come from the kernel's own
//! `format` files, since they differ between kernels: `comm` is `char[16]` or `__data_loc char[]`, the common header has 8 or
//! 12 bytes. Each format becomes a [`RecordDecoder`] once, so that no name is looked up per record.
//!
//! Must not know: in which container the records and the formats came.

mod decoder;
pub(crate) mod description;
pub(crate) mod encoder;
mod expression;
pub(crate) mod flags;
pub(crate) mod format;
mod layout;
mod printk;
mod render;
pub(crate) mod state_table;
pub(crate) mod tracing_data;
mod value;

use fairlab_event::{EventKind, Flags, Pid};

use crate::endian::Endian;
use crate::{ImportStats, Trouble};
use decoder::RecordDecoder;
use format::EventFormat;
use printk::PrintkFormats;
use value::IntegerLocation;

/// Every tracepoint that a trace describes.
#[derive(Clone, Debug)]
pub(crate) struct Tracepoints {
    endian: Endian,
    /// Where every record has its tracepoint's id; the same in all formats of a kernel.
    common_type: Option<IntegerLocation>,
    /// Where every record has the task that reported it.
    common_pid: Option<IntegerLocation>,
    /// Whether all formats begin as those of nearly all kernels do, so that one word has all common fields.
    usual: bool,
    decoders: Vec<RecordDecoder>,
    /// By id: the place in `decoders`, or `NO_DECODER`.
    by_id: Vec<u16>,
    printk: PrintkFormats,
    /// Whether some format of a known event lacks what its type needs.
    incomplete: bool,
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
        Tracepoints {
            endian,
            common_type: None,
            common_pid: None,
            usual: endian == Endian::Little,
            decoders: Vec::new(),
            by_id: Vec::new(),
            printk: PrintkFormats::default(),
            incomplete: false,
        }
    }

    /// Adds the tracepoint that `text`, a `format` file of subsystem `system`, describes. False when it is garbage.
    pub(crate) fn add(&mut self, system: &str, text: &str) -> bool {
        let Some(format) = EventFormat::parse(system, text) else { return false };
        let index = match u16::try_from(self.decoders.len()) {
            Ok(index) if index != NO_DECODER => index,
            _ => return false,
        };
        if self.common_type.is_none() {
            self.common_type = format.field("common_type").and_then(IntegerLocation::of);
            self.common_pid = format.field("common_pid").and_then(IntegerLocation::of);
        }
        self.usual &= begins_as_usual(&format);
        let id = usize::from(format.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, NO_DECODER);
        }
        self.by_id[id] = index;
        let decoder = RecordDecoder::new(&format);
        self.incomplete |= decoder.is_incomplete();
        self.decoders.push(decoder);
        true
    }

    /// Adds the formats of `trace_printk` that `text`, tracefs's `printk_formats`, has.
    pub(crate) fn add_printk(&mut self, text: &str) {
        self.printk.add(text);
    }

    /// How many tracepoints are known.
    pub(crate) fn len(&self) -> usize {
        self.decoders.len()
    }

    /// Whether a tracepoint of this name is known.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.decoders.iter().any(|decoder| decoder.name() == name)
    }

    /// The id of `record`'s tracepoint.
    #[inline]
    pub(crate) fn id(&self, record: &[u8]) -> Option<u16> {
        Some(self.common_type?.read(record, self.endian)? as u16)
    }

    /// What `record` says, and the flag columns of its context. Text that has to be made is made in `scratch`.
    #[cfg(test)]
    pub(crate) fn decode<'a>(
        &'a self,
        record: &'a [u8],
        scratch: &'a mut String,
    ) -> Result<(EventKind<'a>, Flags), DecodeError> {
        self.hand_on(record, scratch, |common, kind| (kind, common.flags))
    }

    /// Hands what `record` says to `take`, from wherever it was decoded: that spares the copies that returning takes.
    #[inline(always)]
    pub(crate) fn hand_on<'a, T>(
        &'a self,
        record: &'a [u8],
        scratch: &'a mut String,
        take: impl FnOnce(CommonFields, EventKind<'a>) -> T,
    ) -> Result<T, DecodeError> {
        if self.usual
            && let Some(word) = self.endian.u64(record, 0)
        {
            let decoder = self.decoder(word as u16)?;
            let flags = flags::columns((word >> 16) as u8, (word >> 24) as u8);
            let common = CommonFields { pid: Pid((word >> 32) as i32), flags };
            return decoder
                .decode(record, self.endian, scratch, &self.printk, |kind| take(common, kind))
                .ok_or(DecodeError::Malformed);
        }
        let common_type = self.common_type.ok_or(DecodeError::UnknownFormat)?;
        let id = common_type.read(record, self.endian).ok_or(DecodeError::Malformed)?;
        let decoder = self.decoder(id as u16)?;
        let pid = self.common_pid.and_then(|field| field.read(record, self.endian));
        let pid = pid.map_or(Pid::UNKNOWN, |pid| Pid(pid as i32));
        let common = CommonFields { pid, flags: decoder.flags(record, self.endian) };
        decoder
            .decode(record, self.endian, scratch, &self.printk, |kind| take(common, kind))
            .ok_or(DecodeError::Malformed)
    }

    /// The trouble with `record`, whose handing on ended so. What lacks the fields of its type was handed on as text.
    #[inline]
    pub(crate) fn trouble_of(&self, ended: Result<(), DecodeError>, record: &[u8]) -> Result<(), Trouble> {
        match ended {
            Ok(()) if self.incomplete && self.of(record).is_some_and(RecordDecoder::is_incomplete) => {
                Err(Trouble::MalformedEvent)
            }
            Ok(()) => Ok(()),
            Err(DecodeError::UnknownFormat) => Err(Trouble::UnknownEventFormat),
            Err(DecodeError::Malformed) => Err(Trouble::MalformedEvent),
        }
    }

    /// Counts `record`, which stands at `position` and met `trouble`, where it may be one of the events that are needed.
    #[cold]
    pub(crate) fn account(&self, trouble: Trouble, record: &[u8], position: u64, stats: &mut ImportStats) {
        match trouble {
            Trouble::UnknownEventFormat => stats.cannot_tell(position),
            Trouble::MalformedEvent => match self.of(record) {
                Some(decoder) => stats.cannot_read(decoder.name(), position, b""),
                None => stats.cannot_tell(position),
            },
            _ => {}
        }
    }

    /// What reads `record`.
    fn of(&self, record: &[u8]) -> Option<&RecordDecoder> {
        self.decoder(self.id(record)?).ok()
    }

    #[inline]
    fn decoder(&self, id: u16) -> Result<&RecordDecoder, DecodeError> {
        let index = self.by_id.get(usize::from(id)).copied().unwrap_or(NO_DECODER);
        self.decoders.get(usize::from(index)).ok_or(DecodeError::UnknownFormat)
    }
}

/// What all records have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommonFields {
    /// The task that reported it.
    pub(crate) pid: Pid,
    /// The flag columns.
    pub(crate) flags: Flags,
}

/// Whether the common fields lie where nearly all kernels have them.
fn begins_as_usual(format: &EventFormat) -> bool {
    let place = |name| format.field(name).map(|field| (field.offset, field.size));
    place("common_type") == Some((0, 2))
        && place("common_flags") == Some((2, 1))
        && place("common_preempt_count") == Some((3, 1))
        && place("common_pid") == Some((4, 4))
}
