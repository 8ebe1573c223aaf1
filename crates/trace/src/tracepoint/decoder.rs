//! The decoder of one tracepoint: prepared once from its format, run on every record.

use fairlab_event::{
    Comm, Cpu, EventKind, FieldForm, FieldSource, Flags, Ns, Pid, Prio, TaskState, TextFields, Tracepoint,
    TracepointField,
};

use super::flags;
use super::format::EventFormat;
use super::layout::{PROBE_SYSTEM, SCHED_SYSTEM, VERBATIM};
use super::printk::{self, PrintkFormats};
use super::render::Renderer;
use super::state_table::StateTable;
use super::value::{IntegerLocation, TextLocation};
use crate::endian::Endian;
use crate::unreadable::needed;

/// Turns the records of one tracepoint into events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordDecoder {
    name: String,
    common_flags: Option<IntegerLocation>,
    common_preempt_count: Option<IntegerLocation>,
    kind: DecoderKind,
    /// It is one of the scheduler's that answers need, and its format lacks what its type needs.
    incomplete: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum DecoderKind {
    /// A tracepoint that has a type, the place of each of its fields, and that of a text among them. `layout`: where these lie
    /// all in all.
    Typed {
        tracepoint: Tracepoint,
        places: Box<[FieldLocation]>,
        text: Option<TextLocation>,
        layout: u8,
    },
    Marker(TextLocation),
    Printk(Box<PrintkFields>),
    Kprobe(Renderer),
    Other(Renderer),
    VerbatimKprobe(TextLocation),
    VerbatimOther(TextLocation),
}

/// Where one field of a tracepoint lies.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FieldLocation {
    Integer(IntegerLocation),
    Text(TextLocation),
    /// A number that stands for letters.
    State(IntegerLocation, Box<StateTable>),
    /// This kernel does not report it.
    Absent,
}

/// `trace_printk` with arguments (`bprint`), or without (`bputs`).
#[derive(Clone, Debug, PartialEq, Eq)]
struct PrintkFields {
    /// The address of format or text.
    format: IntegerLocation,
    long_bytes: usize,
    /// Where the arguments begin.
    arguments: Option<usize>,
    /// For what the trace has no format of.
    otherwise: Renderer,
}

impl RecordDecoder {
    /// Prepares the decoder. An event whose format lacks what its type needs is rendered as text.
    pub(super) fn new(format: &EventFormat) -> RecordDecoder {
        let integer = |name| format.field(name).and_then(IntegerLocation::of);
        let kind = match format.system.as_str() {
            "ftrace" => DecoderKind::of_ftrace(format),
            system => Tracepoint::of_system(system, &format.name)
                .and_then(|known| DecoderKind::typed(known, format)),
        };
        let incomplete = kind.is_none() && format.system == SCHED_SYSTEM && needed(&format.name).is_some();
        RecordDecoder {
            incomplete,
            name: format.name.clone(),
            common_flags: integer("common_flags"),
            common_preempt_count: integer("common_preempt_count"),
            kind: kind
                .or_else(|| DecoderKind::verbatim(format))
                .unwrap_or_else(|| DecoderKind::rendered(format)),
        }
    }

    /// The event's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether its format lacks what the event's type needs, so that it is text only.
    #[inline]
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// The flag columns of a record.
    #[inline]
    pub(super) fn flags(&self, record: &[u8], endian: Endian) -> Flags {
        let read = |field: Option<IntegerLocation>| {
            field.and_then(|field| field.read(record, endian)).map(|value| value as u8)
        };
        match (read(self.common_flags), read(self.common_preempt_count)) {
            (Some(flags), Some(count)) => flags::columns(flags, count),
            _ => Flags::NONE,
        }
    }

    /// Hands what a record says to `take`; `None` when a field lies outside it or holds what its kernel does not
    /// explain. Text that has to be made is made in `scratch`.
    #[inline(always)]
    pub(super) fn decode<'a, T>(
        &'a self,
        record: &'a [u8],
        endian: Endian,
        scratch: &'a mut String,
        printk: &'a PrintkFormats,
        take: impl FnOnce(EventKind<'a>) -> T,
    ) -> Option<T> {
        match &self.kind {
            DecoderKind::Typed { tracepoint, places, layout: PACKED, .. } if endian == Endian::Little => {
                tracepoint.read(RecordFields::<PACKED>::new(record, endian, places, ""), take)
            }
            DecoderKind::Typed { tracepoint, places, layout: PACKED_BUT_NAMES, .. }
                if endian == Endian::Little =>
            {
                tracepoint.read(RecordFields::<PACKED_BUT_NAMES>::new(record, endian, places, ""), take)
            }
            _ => Some(take(self.decode_rare(record, endian, scratch, printk)?)),
        }
    }

    /// Events whose fields lie at odd places, that are text, or that cost a rendering anyway.
    #[inline(never)]
    fn decode_rare<'a>(
        &'a self,
        record: &'a [u8],
        endian: Endian,
        scratch: &'a mut String,
        printk: &'a PrintkFormats,
    ) -> Option<EventKind<'a>> {
        Some(match &self.kind {
            DecoderKind::Marker(text) => {
                EventKind::Marker { text: utf8(*text, record, endian, scratch)?.trim_end_matches('\n') }
            }
            DecoderKind::Printk(fields) => return self.printk(fields, (record, endian), scratch, printk),
            DecoderKind::Kprobe(renderer) => {
                renderer.render(record, endian, scratch)?;
                EventKind::Kprobe { name: &self.name, fields: TextFields::new(scratch) }
            }
            DecoderKind::Other(renderer) => {
                renderer.render(record, endian, scratch)?;
                EventKind::Other { name: &self.name, fields: TextFields::new(scratch) }
            }
            DecoderKind::VerbatimKprobe(text) => EventKind::Kprobe {
                name: &self.name,
                fields: TextFields::new(utf8(*text, record, endian, scratch)?),
            },
            DecoderKind::VerbatimOther(text) => EventKind::Other {
                name: &self.name,
                fields: TextFields::new(utf8(*text, record, endian, scratch)?),
            },
            DecoderKind::Typed { tracepoint, places, text, .. } => {
                let text = match text {
                    Some(text) => utf8(*text, record, endian, scratch)?,
                    None => "",
                };
                let fields = RecordFields::<SCATTERED>::new(record, endian, places, text);
                return tracepoint.read(fields, |kind| kind);
            }
        })
    }
}

impl RecordDecoder {
    fn printk<'a>(
        &'a self,
        fields: &PrintkFields,
        (record, endian): (&'a [u8], Endian),
        scratch: &'a mut String,
        printk: &'a PrintkFormats,
    ) -> Option<EventKind<'a>> {
        let Some(format) = printk.get(fields.format.read(record, endian)?) else {
            fields.otherwise.render(record, endian, scratch)?;
            return Some(EventKind::Other { name: &self.name, fields: TextFields::new(scratch) });
        };
        let Some(at) = fields.arguments else {
            return Some(EventKind::Marker { text: format.trim_end_matches('\n') });
        };
        let arguments = record.get(at..)?;
        printk::render(format, arguments, endian, fields.long_bytes, scratch)?;
        Some(EventKind::Marker { text: scratch.trim_end_matches('\n') })
    }
}

impl DecoderKind {
    /// The events that ftrace has of its own.
    fn of_ftrace(format: &EventFormat) -> Option<DecoderKind> {
        let printk = |address: &str, arguments: Option<&str>| {
            let field = format.field(address)?;
            let arguments = match arguments {
                Some(name) => Some(format.field(name)?.offset),
                None => None,
            };
            let (long_bytes, otherwise) = (field.size, Renderer::new(format));
            Some(DecoderKind::Printk(Box::new(PrintkFields {
                format: IntegerLocation::of(field)?,
                long_bytes,
                arguments,
                otherwise,
            })))
        };
        match format.name.as_str() {
            "print" => format.field("buf").and_then(TextLocation::of).map(DecoderKind::Marker),
            "bprint" => printk("fmt", Some("buf")),
            "bputs" => printk("str", None),
            _ => None,
        }
    }

    fn rendered(format: &EventFormat) -> DecoderKind {
        let renderer = Renderer::new(format);
        if renderer.is_probe() { DecoderKind::Kprobe(renderer) } else { DecoderKind::Other(renderer) }
    }

    /// An event that Fairlab carried as the text that it prints.
    fn verbatim(format: &EventFormat) -> Option<DecoderKind> {
        let mut fields = format.own_fields();
        let text = fields.next().filter(|field| field.name == VERBATIM).and_then(TextLocation::of)?;
        if fields.next().is_some() {
            return None;
        }
        Some(if format.system == PROBE_SYSTEM {
            DecoderKind::VerbatimKprobe(text)
        } else {
            DecoderKind::VerbatimOther(text)
        })
    }

    /// A tracepoint that has a type; `None` where the format lacks a field.
    fn typed(tracepoint: Tracepoint, format: &EventFormat) -> Option<DecoderKind> {
        let places = tracepoint.fields().iter().map(|field| FieldLocation::of(field, format));
        let mut texts = tracepoint.fields().iter().filter(|field| field.form == FieldForm::Text);
        let text = texts.next().and_then(|field| format.field(field.name)).and_then(TextLocation::of);
        let places: Box<[FieldLocation]> = places.collect::<Option<_>>()?;
        let is = |layout: &u8| {
            let mut end = COMMON_BYTES;
            let mut both = places.iter().zip(tracepoint.fields());
            both.all(|(place, field)| place.is_packed(field.form, *layout, &mut end))
        };
        let layout = [PACKED, PACKED_BUT_NAMES].into_iter().find(is).unwrap_or(SCATTERED);
        Some(DecoderKind::Typed { tracepoint, places, text, layout })
    }
}

/// Where the first field of its own lies in the records of nearly all kernels.
const COMMON_BYTES: usize = 8;

/// How the fields of a record lie: each behind the one before, as near as its size allows; so that names lie behind them all, and
/// a word says where; in some other way.
const PACKED: u8 = 0;
const PACKED_BUT_NAMES: u8 = 1;
const SCATTERED: u8 = 2;

impl FieldLocation {
    /// Whether it lies behind what ends at `end`, as near as its size allows, as [`RecordFields::packed`] has it.
    fn is_packed(&self, form: FieldForm, layout: u8, end: &mut usize) -> bool {
        let (size, alignment) = match form {
            FieldForm::Comm if layout == PACKED_BUT_NAMES => (4, 4),
            FieldForm::Comm => (Comm::LEN, 1),
            FieldForm::Pid | FieldForm::Prio | FieldForm::Cpu | FieldForm::Count => (4, 4),
            FieldForm::State | FieldForm::Nanoseconds | FieldForm::Unsigned | FieldForm::Signed => (8, 8),
            // It is the last, and read where it is.
            FieldForm::TargetCpu | FieldForm::FlagSince | FieldForm::NanosecondsUntil => return true,
            FieldForm::Text => return false,
        };
        let start = end.next_multiple_of(alignment);
        *end = start + size;
        match *self {
            FieldLocation::Integer(place) | FieldLocation::State(place, _) => place.is(start, size),
            FieldLocation::Text(place) => match layout {
                PACKED => place == TextLocation::Fixed { at: start, length: size },
                _ => place == TextLocation::Dynamic { at: start, relative: false },
            },
            FieldLocation::Absent => false,
        }
    }

    fn of(field: &TracepointField, format: &EventFormat) -> Option<FieldLocation> {
        let found = format.field(field.name);
        let integer = found.and_then(IntegerLocation::of);
        match field.form {
            FieldForm::Comm | FieldForm::Text => found.and_then(TextLocation::of).map(FieldLocation::Text),
            FieldForm::State => {
                let states = StateTable::parse(&format.print_format).unwrap_or_else(StateTable::in_use);
                integer.map(|at| FieldLocation::State(at, Box::new(states)))
            }
            form if form.is_optional() => Some(integer.map_or(FieldLocation::Absent, FieldLocation::Integer)),
            _ => integer.map(FieldLocation::Integer),
        }
    }
}

/// A record whose fields are read one after the other. Where they are packed, the place of each is known when this is compiled.
#[derive(Clone, Copy)]
struct RecordFields<'r, const LAYOUT: u8> {
    record: &'r [u8],
    endian: Endian,
    places: &'r [FieldLocation],
    /// The next field's number, and where it lies if it is packed.
    at: usize,
    end: usize,
    /// The text of the field that has one.
    text: &'r str,
}

impl<'r, const LAYOUT: u8> RecordFields<'r, LAYOUT> {
    #[inline(always)]
    fn new(record: &'r [u8], endian: Endian, places: &'r [FieldLocation], text: &'r str) -> Self {
        RecordFields { record, endian, places, at: 0, end: COMMON_BYTES, text }
    }

    #[inline(always)]
    fn next(&mut self) -> Option<&'r FieldLocation> {
        self.at += 1;
        self.places.get(self.at - 1)
    }

    /// The bytes of a packed field.
    #[inline(always)]
    fn packed<const SIZE: usize>(&mut self, alignment: usize) -> Option<[u8; SIZE]> {
        let start = self.end.next_multiple_of(alignment);
        self.end = start + SIZE;
        self.record.get(start..)?.first_chunk().copied()
    }

    #[inline(always)]
    fn word(&mut self) -> Option<u32> {
        if LAYOUT != SCATTERED {
            self.at += 1;
            return self.packed(4).map(u32::from_le_bytes);
        }
        self.integer().map(|value| value as u32)
    }

    #[inline(always)]
    fn long(&mut self) -> Option<u64> {
        if LAYOUT != SCATTERED {
            self.at += 1;
            return self.packed(8).map(u64::from_le_bytes);
        }
        self.integer()
    }

    #[inline(always)]
    fn integer(&mut self) -> Option<u64> {
        match self.next()? {
            FieldLocation::Integer(at) => at.read(self.record, self.endian),
            _ => None,
        }
    }

    /// The last field, if this kernel reports it.
    #[inline(always)]
    fn optional(&mut self) -> Option<Option<u64>> {
        match self.next()? {
            FieldLocation::Integer(at) => Some(Some(at.read(self.record, self.endian)?)),
            _ => Some(None),
        }
    }
}

impl<'r, const LAYOUT: u8> FieldSource<'r> for RecordFields<'r, LAYOUT> {
    const ENDS_NAMES: bool = true;

    #[inline(always)]
    fn ended_comm(&mut self, _: &'static TracepointField) -> Option<Comm> {
        match self.next() {
            _ if LAYOUT == PACKED => self.packed(1).map(Comm::from_padded),
            _ if LAYOUT == PACKED_BUT_NAMES => {
                let at = TextLocation::Dynamic { at: self.end.next_multiple_of(4), relative: false };
                self.end = self.end.next_multiple_of(4) + 4;
                at.comm(self.record, Endian::Little)
            }
            Some(FieldLocation::Text(at)) => at.comm(self.record, self.endian),
            _ => None,
        }
    }

    fn comm<T>(
        mut self,
        field: &'static TracepointField,
        _: &'static TracepointField,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)> {
        Some((self.ended_comm(field)?, rest(self)?))
    }

    #[inline(always)]
    fn pid(&mut self, _: &'static TracepointField) -> Option<Pid> {
        Some(Pid(self.word()? as i32))
    }

    #[inline(always)]
    fn prio(&mut self, _: &'static TracepointField) -> Option<Prio> {
        Some(Prio(self.word()? as i32))
    }

    #[inline(always)]
    fn cpu(&mut self, field: &'static TracepointField) -> Option<Cpu> {
        match field.form {
            // Older kernels report something before it.
            FieldForm::TargetCpu => self.integer().map(|value| Cpu(value as u32)),
            _ => self.word().map(Cpu),
        }
    }

    #[inline(always)]
    fn state(&mut self, _: &'static TracepointField) -> Option<TaskState> {
        match self.next()? {
            FieldLocation::State(_, states) if LAYOUT != SCATTERED => {
                states.state(self.packed(8).map(u64::from_le_bytes)?)
            }
            FieldLocation::State(at, states) => states.state(at.read(self.record, self.endian)?),
            _ => None,
        }
    }

    #[inline(always)]
    fn nanoseconds(&mut self, _: &'static TracepointField) -> Option<Ns> {
        self.long().map(Ns)
    }

    #[inline(always)]
    fn unsigned(&mut self, _: &'static TracepointField) -> Option<u64> {
        self.long()
    }

    #[inline(always)]
    fn signed(&mut self, _: &'static TracepointField) -> Option<i64> {
        self.long().map(u64::cast_signed)
    }

    #[inline(always)]
    fn count(&mut self, _: &'static TracepointField) -> Option<u32> {
        self.word()
    }

    #[inline(always)]
    fn text(&mut self, _: &'static TracepointField) -> Option<&'r str> {
        self.next()?;
        Some(self.text)
    }

    #[inline(always)]
    fn flag(&mut self, _: &'static TracepointField) -> Option<Option<bool>> {
        Some(self.optional()?.map(|value| value != 0))
    }

    #[inline(always)]
    fn nanoseconds_until(&mut self, _: &'static TracepointField) -> Option<Option<u64>> {
        self.optional()
    }

    #[inline(always)]
    fn end(&self, _: Tracepoint) -> Option<()> {
        Some(())
    }
}

/// A text as it stands, or with its undecodable bytes replaced.
fn utf8<'a>(at: TextLocation, record: &'a [u8], endian: Endian, scratch: &'a mut String) -> Option<&'a str> {
    let bytes = at.read(record, endian)?;
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(text);
    }
    scratch.clear();
    scratch.push_str(&String::from_utf8_lossy(bytes));
    Some(scratch)
}
