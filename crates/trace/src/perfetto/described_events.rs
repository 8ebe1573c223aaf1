//! Events that Perfetto has no message for: the trace itself describes them, by their fields of `FtraceEvent`.
//!
//! From v53 on recorders write these instead of `GenericFtraceEvent`: a field from 65536 on, whose message
//! `FtraceEventBundle::generic_event_descriptors` describes as a `DescriptorProto`.
//!
//! Must not know: how events of other fields are read.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use fairlab_event::{EventKind, IdHasher, Tracepoint, TracepointField};

use super::decode::{DecodedPart, NamedSource, NamedValues, ScratchText, print_field, untyped};
use super::wire::{WireFields, WireValue};

/// Fields of `FtraceEvent` from here on are described.
pub(super) const FIRST: u64 = 1 << 16;

/// More than any kernel has tracepoints.
const EVENTS_MAX: usize = 1 << 16;
/// More than any tracepoint has fields.
const FIELDS_MAX: usize = 1 << 8;
/// So many bytes of descriptions are kept; those of a kernel's tracepoints have a hundredth.
const BYTES_MAX: usize = 1 << 26;

/// What a trace describes.
#[derive(Debug, Default)]
pub(super) struct DescribedEvents {
    events: HashMap<u64, DescribedEvent, BuildHasherDefault<IdHasher>>,
    /// Bytes of their descriptions.
    bytes: usize,
}

#[derive(Debug)]
struct DescribedEvent {
    name: String,
    tracepoint: Option<Tracepoint>,
    /// Whether it is one of the kernel's probes.
    is_probe: bool,
    fields: Vec<DescribedField>,
}

#[derive(Debug)]
struct DescribedField {
    number: u64,
    name: String,
    is_unsigned: bool,
}

impl DescribedEvents {
    /// Learns from a `GenericEventDescriptor`. Each bundle that has such an event describes it; the first
    /// description holds.
    pub(super) fn learn(&mut self, bytes: &[u8]) {
        let (mut number, mut message, mut group) = (0, &b""[..], &b""[..]);
        for (field, value) in WireFields::of(bytes) {
            match field {
                1 => number = value.number(),
                2 => message = value.bytes(),
                3 => group = value.bytes(),
                _ => {}
            }
        }
        let is_new = number >= FIRST && !self.events.contains_key(&number);
        if is_new && self.events.len() < EVENTS_MAX && self.bytes < BYTES_MAX {
            self.bytes += bytes.len();
            self.events.insert(number, DescribedEvent::of(message, group));
        }
    }

    /// The event of `field` with the part `own`, if it carries no text but names of tasks.
    #[inline]
    pub(super) fn plain(&self, field: u64, own: &[u8]) -> Option<EventKind<'static>> {
        let event = self.events.get(&field)?;
        event.tracepoint?.read(event.source(own), EventKind::without_text)?
    }

    /// The event of `field` with the part `own`.
    pub(super) fn own<'b>(
        &'b self,
        field: u64,
        own: &'b [u8],
        scratch: &'b mut ScratchText,
    ) -> DecodedPart<'b> {
        let Some(event) = self.events.get(&field) else { return DecodedPart::Undescribed };
        let mut fields = WireFields::of(own);
        fields.by_ref().for_each(drop);
        if let Some(tracepoint) = event.tracepoint {
            let kind = fields.is_whole().then(|| tracepoint.read(event.source(own), |kind| kind)).flatten();
            return kind.map_or(DecodedPart::Unreadable(tracepoint.name()), DecodedPart::Event);
        }
        if !fields.is_whole() {
            return DecodedPart::Unreadable("");
        }
        untyped(event.is_probe, &event.name, event.print(own, scratch.cleared()))
    }
}

/// The kernel's default group of probes.
const PROBES: &[u8] = b"kprobes";

impl DescribedEvent {
    /// Takes a `DescriptorProto` apart.
    fn of(message: &[u8], group: &[u8]) -> DescribedEvent {
        let text = |value: WireValue<'_>| String::from_utf8_lossy(value.bytes()).into_owned();
        let (mut name, mut fields) = (String::new(), Vec::new());
        for (field, value) in WireFields::of(message) {
            match field {
                1 => name = text(value),
                2 if fields.len() < FIELDS_MAX => fields.push(DescribedField::of(value.bytes())),
                _ => {}
            }
        }
        let tracepoint = Tracepoint::by_name(name.as_bytes())
            .filter(|known| group.is_empty() || group == known.system().as_bytes());
        DescribedEvent { name, tracepoint, is_probe: group == PROBES, fields }
    }

    #[inline]
    fn source<'b>(&'b self, own: &'b [u8]) -> NamedSource<DescribedValues<'b>> {
        NamedSource(DescribedValues { fields: &self.fields, own })
    }

    /// The fields with their names, as other events without a type are printed.
    fn print<'s>(&self, own: &[u8], text: &'s mut String) -> &'s str {
        for field in &self.fields {
            for (_, value) in WireFields::of(own).filter(|&(number, _)| number == field.number) {
                print_field(text, &field.name, value, field.is_unsigned);
            }
        }
        text
    }
}

impl DescribedField {
    /// Takes a `FieldDescriptorProto` apart.
    fn of(bytes: &[u8]) -> DescribedField {
        /// `TYPE_UINT64`, `TYPE_FIXED64`, `TYPE_FIXED32`, `TYPE_BOOL`, `TYPE_UINT32`.
        const UNSIGNED: [u64; 5] = [4, 6, 7, 8, 13];
        let mut described = DescribedField { number: 0, name: String::new(), is_unsigned: false };
        for (field, value) in WireFields::of(bytes) {
            match field {
                1 => described.name = String::from_utf8_lossy(value.bytes()).into_owned(),
                3 => described.number = value.number(),
                5 => described.is_unsigned = UNSIGNED.contains(&value.number()),
                _ => {}
            }
        }
        described
    }
}

/// The values of an event, found by the names that its description has for their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct DescribedValues<'b> {
    fields: &'b [DescribedField],
    own: &'b [u8],
}

impl<'b> NamedValues<'b> for DescribedValues<'b> {
    #[inline]
    fn of(&mut self, field: &'static TracepointField) -> Option<WireValue<'b>> {
        let described = self.fields.iter().find(|described| described.name == field.name)?;
        let value = WireFields::of(self.own).find(|&(number, _)| number == described.number);
        // What is zero or empty need not be written.
        Some(value.map_or(WireValue::Number(0), |(_, value)| value))
    }
}
