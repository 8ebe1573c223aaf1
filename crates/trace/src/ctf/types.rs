//! What a description tells: types of fields, streams, events, clocks.
//!
//! Must not know: how it is written, where the bytes are.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CtfByteOrder {
    Little,
    Big,
}

/// A whole number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CtfInteger {
    /// In bits, at most 64.
    pub(super) size: u32,
    pub(super) align: u32,
    pub(super) signed: bool,
    /// None: that of the trace.
    pub(super) order: Option<CtfByteOrder>,
    /// Whether it is a character of a text.
    pub(super) is_char: bool,
    /// The clock that it tells.
    pub(super) clock: Option<String>,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CtfType {
    Int(CtfInteger),
    /// Passed over.
    Float {
        size: u32,
        align: u32,
    },
    Enum {
        of: CtfInteger,
        labels: Vec<(String, i128, i128)>,
    },
    /// Up to a byte of zero.
    Text,
    Struct(Rc<CtfStruct>),
    /// Which of its fields is there the label of another field tells, whose name is the tag's last part.
    Variant {
        tag: String,
        options: Rc<CtfStruct>,
    },
    Array {
        length: u64,
        of: Rc<CtfType>,
    },
    /// As many as another field tells.
    Sequence {
        length: String,
        of: Rc<CtfType>,
    },
}

/// Fields one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CtfStruct {
    pub(super) fields: Vec<(String, CtfType)>,
    pub(super) align: u32,
}

impl CtfType {
    /// The alignment in bits.
    pub(super) fn align(&self) -> u32 {
        match self {
            CtfType::Int(int) | CtfType::Enum { of: int, .. } => int.align,
            CtfType::Float { align, .. } => *align,
            CtfType::Text => 8,
            CtfType::Struct(of) => of.align,
            CtfType::Variant { .. } => 1,
            CtfType::Array { of, .. } | CtfType::Sequence { of, .. } => of.align(),
        }
    }
}

/// A kind of stream.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamClass {
    pub(super) packet_context: Option<CtfType>,
    pub(super) event_header: Option<CtfType>,
    pub(super) event_context: Option<CtfType>,
    pub(super) events: HashMap<u64, Rc<EventClass>>,
}

/// A kind of event.
#[derive(Clone, Debug, Default)]
pub(super) struct EventClass {
    /// Without a subsystem.
    pub(super) name: String,
    pub(super) context: Option<CtfType>,
    pub(super) fields: Option<CtfType>,
}

/// The whole of a description.
#[derive(Clone, Debug)]
pub(super) struct CtfDescription {
    pub(super) order: CtfByteOrder,
    pub(super) packet_header: Option<CtfType>,
    pub(super) streams: BTreeMap<u64, StreamClass>,
    /// What stands under `env`: texts, and numbers as texts.
    pub(super) env: BTreeMap<String, String>,
    /// Ticks a second of each clock.
    pub(super) clocks: BTreeMap<String, u64>,
}
