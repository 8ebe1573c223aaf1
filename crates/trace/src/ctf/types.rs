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
    /// Seven bits a byte, the lowest first; the highest bit says that more follow.
    Leb128 {
        signed: bool,
        clock: Option<String>,
    },
    /// Up to a byte of zero.
    Text,
    Struct(Rc<CtfStruct>),
    /// Which of its fields is there the label of another field tells, whose name is the tag's last part.
    Variant {
        tag: String,
        options: Rc<CtfStruct>,
    },
    /// Which of its fields is there the number of another field tells.
    Choice {
        selector: String,
        options: Rc<CtfStruct>,
        /// Numbers of each option, from and to.
        ranges: Vec<Vec<(i128, i128)>>,
        /// No option need fit.
        is_optional: bool,
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
    /// Fields in all, those of structures within counted each time.
    leaves: u64,
    /// Structures within structures.
    depth: u32,
}

/// Structures within structures, deeper than any recorder writes.
const STRUCT_DEPTH_MAX: u32 = 64;
/// More than any event has: a description of doubling types would never end.
const LEAVES_MAX: u64 = 1 << 16;

impl CtfStruct {
    /// Fields, at a multiple of `align` bits and of what each field asks for.
    ///
    /// # Errors
    /// There are more of them than any event has, or they lie too deep.
    pub(super) fn new(fields: Vec<(String, CtfType)>, align: u32) -> Result<CtfStruct, String> {
        let leaves = fields.iter().fold(0_u64, |sum, (_, field)| sum.saturating_add(field.leaves()));
        let depth = fields.iter().map(|(_, field)| field.depth()).max().unwrap_or(0) + 1;
        if leaves > LEAVES_MAX || depth > STRUCT_DEPTH_MAX {
            return Err(format!(
                "a structure has more than {LEAVES_MAX} fields, or structures lie {STRUCT_DEPTH_MAX} deep"
            ));
        }
        let align = fields.iter().fold(align, |align, (_, field)| align.max(field.align()));
        Ok(CtfStruct { fields, align, leaves, depth })
    }
}

impl CtfType {
    fn within(&self) -> Option<&CtfStruct> {
        match self {
            CtfType::Struct(of)
            | CtfType::Variant { options: of, .. }
            | CtfType::Choice { options: of, .. } => Some(of),
            _ => None,
        }
    }

    fn leaves(&self) -> u64 {
        match self {
            CtfType::Array { of, .. } | CtfType::Sequence { of, .. } => of.leaves().max(1),
            _ => self.within().map_or(1, |of| of.leaves),
        }
    }

    fn depth(&self) -> u32 {
        match self {
            CtfType::Array { of, .. } | CtfType::Sequence { of, .. } => of.depth() + 1,
            _ => self.within().map_or(0, |of| of.depth),
        }
    }

    /// The alignment in bits.
    pub(super) fn align(&self) -> u32 {
        match self {
            CtfType::Int(int) | CtfType::Enum { of: int, .. } => int.align,
            CtfType::Float { align, .. } => *align,
            CtfType::Text | CtfType::Leb128 { .. } => 8,
            CtfType::Struct(of) => of.align,
            CtfType::Variant { .. } | CtfType::Choice { .. } => 1,
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
