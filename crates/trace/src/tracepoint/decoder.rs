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
    /// A tracepoint that has a type, the place of each of its fields, and that of a text among them.
    Typed(Tracepoint, Box<[FieldLocation]>, Option<TextLocation>),
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
            DecoderKind::Typed(tracepoint, places, path) => {
                let text = match path {
                    Some(path) => utf8(*path, record, endian, scratch)?,
                    None => "",
                };
                tracepoint.read(RecordFields { record, endian, places, at: 0, text }, take)
            }
            _ => Some(take(self.decode_rare(record, endian, scratch, printk)?)),
        }
    }

    /// Events that are text, or that cost a rendering anyway.
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
            DecoderKind::Typed(..) => return None,
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
        Some(DecoderKind::Typed(tracepoint, places.collect::<Option<_>>()?, text))
    }
}

impl FieldLocation {
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

/// A record whose fields are read one after the other.
#[derive(Clone, Copy)]
struct RecordFields<'r> {
    record: &'r [u8],
    endian: Endian,
    places: &'r [FieldLocation],
    /// The next field's place.
    at: usize,
    /// The text of the field that has one.
    text: &'r str,
}

impl<'r> RecordFields<'r> {
    #[inline(always)]
    fn next(&mut self) -> Option<&'r FieldLocation> {
        self.at += 1;
        self.places.get(self.at - 1)
    }

    #[inline(always)]
    fn integer(&mut self) -> Option<u64> {
        match self.next()? {
            FieldLocation::Integer(at) => at.read(self.record, self.endian),
            _ => None,
        }
    }

    #[inline(always)]
    fn optional(&mut self) -> Option<Option<u64>> {
        match self.next()? {
            FieldLocation::Integer(at) => Some(Some(at.read(self.record, self.endian)?)),
            _ => Some(None),
        }
    }
}

impl<'r> FieldSource<'r> for RecordFields<'r> {
    #[inline(always)]
    fn comm<T>(
        mut self,
        _: &'static TracepointField,
        _: &'static TracepointField,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)> {
        let FieldLocation::Text(at) = self.next()? else { return None };
        let comm = at.comm(self.record, self.endian)?;
        Some((comm, rest(self)?))
    }

    #[inline(always)]
    fn pid(&mut self, _: &'static TracepointField) -> Option<Pid> {
        Some(Pid(self.integer()? as i32))
    }

    #[inline(always)]
    fn prio(&mut self, _: &'static TracepointField) -> Option<Prio> {
        Some(Prio(self.integer()? as i32))
    }

    #[inline(always)]
    fn cpu(&mut self, _: &'static TracepointField) -> Option<Cpu> {
        Some(Cpu(self.integer()? as u32))
    }

    #[inline(always)]
    fn state(&mut self, _: &'static TracepointField) -> Option<TaskState> {
        match self.next()? {
            FieldLocation::State(at, states) => states.state(at.read(self.record, self.endian)?),
            _ => None,
        }
    }

    #[inline(always)]
    fn nanoseconds(&mut self, _: &'static TracepointField) -> Option<Ns> {
        self.integer().map(Ns)
    }

    #[inline(always)]
    fn unsigned(&mut self, _: &'static TracepointField) -> Option<u64> {
        self.integer()
    }

    #[inline(always)]
    fn signed(&mut self, _: &'static TracepointField) -> Option<i64> {
        self.integer().map(|value| value as i64)
    }

    #[inline(always)]
    fn count(&mut self, _: &'static TracepointField) -> Option<u32> {
        self.integer().map(|value| value as u32)
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
