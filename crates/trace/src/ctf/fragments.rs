//! A description of version 2: JSON fragments, each behind a record separator.
//!
//! Fields with a role take the names that version 1.8 gave them, so packets and events of both are read alike.
//!
//! Facts: the Common Trace Format's specification, CTF2-SPEC-2.0; RFC 7464. Must not know: files.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use serde_json::Value;

use super::types::{CtfByteOrder, CtfDescription, CtfInteger, CtfStruct, CtfType, EventClass, StreamClass};

/// What stands before each fragment.
pub(super) const RECORD_SEPARATOR: char = '\u{1e}';

/// Reads a description.
///
/// # Errors
/// What is wrong, and in which fragment.
pub(super) fn parse(text: &str) -> Result<CtfDescription, String> {
    let mut reader = FragmentReader::default();
    let mut number = 0;
    for fragment in text.split(RECORD_SEPARATOR).filter(|fragment| !fragment.trim().is_empty()) {
        number += 1;
        let wrong = |fact: String| format!("fragment {number}: {fact}");
        let fragment = serde_json::from_str(fragment).map_err(|error| wrong(error.to_string()))?;
        reader.fragment(&fragment, number).map_err(wrong)?;
    }
    Ok(CtfDescription {
        order: CtfByteOrder::Little,
        packet_header: reader.packet_header,
        streams: reader.streams,
        env: reader.env,
        clocks: reader.clocks,
    })
}

#[derive(Default)]
struct FragmentReader {
    packet_header: Option<CtfType>,
    streams: BTreeMap<u64, StreamClass>,
    env: BTreeMap<String, String>,
    clocks: BTreeMap<String, u64>,
    aliases: HashMap<String, CtfType>,
    /// The clock of the stream class at hand.
    clock: Option<String>,
}

/// What a field's role makes of its name, as version 1.8 names it.
const ROLES: [(&str, &str); 9] = [
    ("packet-magic-number", "magic"),
    ("data-stream-class-id", "stream_id"),
    ("packet-total-length", "packet_size"),
    ("packet-content-length", "content_size"),
    ("packet-end-default-clock-timestamp", "timestamp_end"),
    ("discarded-event-record-counter-snapshot", "events_discarded"),
    ("packet-sequence-number", "packet_seq_num"),
    ("event-record-class-id", "id"),
    (TIMESTAMP_ROLE, "timestamp"),
];
const TIMESTAMP_ROLE: &str = "default-clock-timestamp";

/// Kinds of fields within fields, deeper than any recorder writes.
const DEPTH_MAX: u32 = 64;

impl FragmentReader {
    fn fragment(&mut self, fragment: &Value, number: usize) -> Result<(), String> {
        let kind = text(fragment, "type")?;
        if fragment["extensions"].as_object().is_some_and(|extensions| !extensions.is_empty()) {
            return Err(format!("a {kind} with extensions, which change what its fields mean"));
        }
        match (number, kind) {
            (1, "preamble") if fragment["version"] == 2 => Ok(()),
            (1, _) => Err("no preamble of version 2".to_string()),
            (_, "trace-class") => self.trace(fragment),
            (_, "clock-class") => self.clock(fragment),
            (_, "data-stream-class") => self.stream(fragment),
            (_, "event-record-class") => self.event(fragment),
            (_, "field-class-alias") => {
                let of = self.class(&fragment["field-class"], 0)?;
                self.aliases.insert(text(fragment, "name")?.to_string(), of);
                Ok(())
            }
            (_, kind) => Err(format!("'{kind}' is no kind of fragment of version 2")),
        }
    }

    fn trace(&mut self, fragment: &Value) -> Result<(), String> {
        for (name, value) in fragment["environment"].as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            self.env.insert(name.clone(), value);
        }
        self.packet_header = self.member(fragment, "packet-header-field-class")?;
        Ok(())
    }

    fn clock(&mut self, fragment: &Value) -> Result<(), String> {
        let frequency = fragment["frequency"].as_u64().filter(|&frequency| frequency > 0);
        let frequency = frequency.ok_or("a clock without a frequency")?;
        // The first drafts had names alone.
        let id = text(fragment, "id").or_else(|_| text(fragment, "name"))?;
        self.clocks.insert(id.to_string(), frequency);
        Ok(())
    }

    fn stream(&mut self, fragment: &Value) -> Result<(), String> {
        self.clock = fragment["default-clock-class-id"].as_str().map(str::to_string);
        if let Some(clock) = &self.clock
            && !self.clocks.contains_key(clock)
        {
            return Err(format!("there is no clock '{clock}'"));
        }
        let class = StreamClass {
            packet_context: self.member(fragment, "packet-context-field-class")?,
            event_header: self.member(fragment, "event-record-header-field-class")?,
            event_context: self.member(fragment, "event-record-common-context-field-class")?,
            ..StreamClass::default()
        };
        self.streams.insert(fragment["id"].as_u64().unwrap_or(0), class);
        Ok(())
    }

    fn event(&mut self, fragment: &Value) -> Result<(), String> {
        let stream = fragment["data-stream-class-id"].as_u64().unwrap_or(0);
        let name = fragment["name"].as_str().unwrap_or_default();
        let class = EventClass {
            name: name.rsplit(':').next().unwrap_or(name).to_string(),
            context: self.member(fragment, "specific-context-field-class")?,
            fields: self.member(fragment, "payload-field-class")?,
        };
        let stream = self.streams.get_mut(&stream).ok_or(format!("there is no class of streams {stream}"))?;
        stream.events.insert(fragment["id"].as_u64().unwrap_or(0), Rc::new(class));
        Ok(())
    }

    fn member(&self, of: &Value, name: &str) -> Result<Option<CtfType>, String> {
        of.get(name).map(|class| self.class(class, 0)).transpose()
    }

    /// The type that a class of fields tells, or the name of one.
    fn class(&self, class: &Value, depth: u32) -> Result<CtfType, String> {
        if depth > DEPTH_MAX {
            return Err(format!("fields lie more than {DEPTH_MAX} deep"));
        }
        if let Some(name) = class.as_str() {
            return self.aliases.get(name).cloned().ok_or(format!("no class of fields is called '{name}'"));
        }
        match text(class, "type")? {
            "fixed-length-unsigned-integer"
            | "fixed-length-bit-array"
            | "fixed-length-bit-map"
            | "fixed-length-boolean" => self.fixed(class, false),
            "fixed-length-signed-integer" => self.fixed(class, true),
            "fixed-length-floating-point-number" => {
                let CtfInteger { size, align, .. } = integer(class, false, 128)?;
                Ok(CtfType::Float { size, align })
            }
            kind @ ("variable-length-unsigned-integer" | "variable-length-signed-integer") => {
                Ok(CtfType::Leb128 { signed: kind.contains("-signed"), clock: self.clock_of(class) })
            }
            "null-terminated-string" => encoded(class).map(|()| CtfType::Text),
            "static-length-string" => {
                encoded(class).and_then(|()| Ok(array(size(class, "length")?, byte(true))))
            }
            "dynamic-length-string" => encoded(class).and_then(|()| sequence(class, byte(true))),
            "static-length-blob" => Ok(array(size(class, "length")?, byte(false))),
            "dynamic-length-blob" => sequence(class, byte(false)),
            "static-length-array" => Ok(array(size(class, "length")?, self.element(class, depth)?)),
            "dynamic-length-array" => sequence(class, self.element(class, depth)?),
            "structure" => self.structure(class, depth),
            "optional" => self.optional(class, depth),
            "variant" => self.variant(class, depth),
            kind => Err(format!("'{kind}' is no class of fields of version 2")),
        }
    }

    fn fixed(&self, class: &Value, signed: bool) -> Result<CtfType, String> {
        let of = CtfInteger { clock: self.clock_of(class), ..integer(class, signed, 64)? };
        let mappings = class["mappings"].as_object().into_iter().flatten();
        let mut labels = Vec::new();
        for (label, ranges) in mappings {
            labels.extend(ranges_of(ranges)?.into_iter().map(|(low, high)| (label.clone(), low, high)));
        }
        Ok(if labels.is_empty() { CtfType::Int(of) } else { CtfType::Enum { of, labels } })
    }

    /// The clock whose time a field holds.
    fn clock_of(&self, class: &Value) -> Option<String> {
        self.clock.clone().filter(|_| roles(class).any(|role| role == TIMESTAMP_ROLE))
    }

    fn element(&self, class: &Value, depth: u32) -> Result<CtfType, String> {
        // Each begins at a multiple of what the array asks for.
        let of = self.class(&class["element-field-class"], depth + 1)?;
        let align = alignment(class, "minimum-alignment")?;
        if align <= of.align() {
            return Ok(of);
        }
        Ok(CtfType::Struct(Rc::new(CtfStruct::new(vec![(String::new(), of)], align)?)))
    }

    fn structure(&self, class: &Value, depth: u32) -> Result<CtfType, String> {
        let mut fields = Vec::new();
        for member in class["member-classes"].as_array().into_iter().flatten() {
            let of = &member["field-class"];
            fields.push((name(text(member, "name")?, of), self.class(of, depth + 1)?));
        }
        let fields = CtfStruct::new(fields, alignment(class, "minimum-alignment")?)?;
        Ok(CtfType::Struct(Rc::new(fields)))
    }

    /// What is there where another field is true, or has a number.
    fn optional(&self, class: &Value, depth: u32) -> Result<CtfType, String> {
        let of = self.class(&class["field-class"], depth + 1)?;
        let ranges = match class.get("selector-field-ranges") {
            Some(ranges) => ranges_of(ranges)?,
            None => vec![(1, i128::from(u64::MAX))],
        };
        Ok(CtfType::Choice {
            selector: location(class, "selector-field-location")?,
            options: Rc::new(CtfStruct::new(vec![(String::new(), of)], 1)?),
            ranges: vec![ranges],
            is_optional: true,
        })
    }

    fn variant(&self, class: &Value, depth: u32) -> Result<CtfType, String> {
        let (mut options, mut ranges) = (Vec::new(), Vec::new());
        for option in class["options"].as_array().into_iter().flatten() {
            let name = option["name"].as_str().unwrap_or_default();
            options.push((name.to_string(), self.class(&option["field-class"], depth + 1)?));
            ranges.push(ranges_of(&option["selector-field-ranges"])?);
        }
        Ok(CtfType::Choice {
            selector: location(class, "selector-field-location")?,
            options: Rc::new(CtfStruct::new(options, 1)?),
            ranges,
            is_optional: false,
        })
    }
}

fn text<'v>(of: &'v Value, name: &str) -> Result<&'v str, String> {
    of[name].as_str().ok_or_else(|| format!("a text '{name}' is missing"))
}

fn size(of: &Value, name: &str) -> Result<u64, String> {
    of[name].as_u64().ok_or_else(|| format!("a number '{name}' is missing"))
}

/// The name of version 1.8 for a field with a role, or its own.
fn name(own: &str, class: &Value) -> String {
    let by_role = roles(class).find_map(|role| ROLES.iter().find(|(known, _)| *known == role));
    by_role.map_or(own, |(_, name)| name).to_string()
}

fn roles(class: &Value) -> impl Iterator<Item = &str> {
    class["roles"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn alignment(class: &Value, name: &str) -> Result<u32, String> {
    let align = class.get(name).map_or(Some(1), Value::as_u64);
    let align = align.and_then(|align| u32::try_from(align).ok());
    align
        .filter(|align| align.is_power_of_two() && *align <= 1 << 16)
        .ok_or_else(|| format!("'{name}' is no power of two"))
}

fn integer(class: &Value, signed: bool, size_max: u64) -> Result<CtfInteger, String> {
    let bits = size(class, "length")?;
    let bits = u32::try_from(bits).ok().filter(|_| (1..=size_max).contains(&bits));
    let order = match text(class, "byte-order")? {
        "little-endian" => CtfByteOrder::Little,
        "big-endian" => CtfByteOrder::Big,
        order => return Err(format!("'{order}' is no order of bytes")),
    };
    let natural = if order == CtfByteOrder::Little { "first-to-last" } else { "last-to-first" };
    if class.get("bit-order").is_some_and(|order| order != natural) {
        return Err("bits of a number stand in another order than its bytes".to_string());
    }
    Ok(CtfInteger {
        size: bits.ok_or_else(|| format!("a number has 1 to {size_max} bits"))?,
        align: alignment(class, "alignment")?,
        signed,
        order: Some(order),
        is_char: false,
        clock: None,
    })
}

/// A byte, of a text or not.
fn byte(is_char: bool) -> CtfType {
    let order = Some(CtfByteOrder::Little);
    CtfType::Int(CtfInteger { size: 8, align: 8, signed: false, order, is_char, clock: None })
}

/// That a text's bytes are UTF-8.
fn encoded(class: &Value) -> Result<(), String> {
    match class["encoding"].as_str() {
        None | Some("utf-8") => Ok(()),
        Some(encoding) => Err(format!("a text in {encoding}, of which utf-8 is read")),
    }
}

fn array(length: u64, of: CtfType) -> CtfType {
    CtfType::Array { length, of: Rc::new(of) }
}

fn sequence(class: &Value, of: CtfType) -> Result<CtfType, String> {
    Ok(CtfType::Sequence { length: location(class, "length-field-location")?, of: Rc::new(of) })
}

/// The name of the field that a path leads to: the latest field of that name is meant.
fn location(class: &Value, name: &str) -> Result<String, String> {
    let path = class[name]["path"].as_array().ok_or_else(|| format!("a path '{name}' is missing"))?;
    let last = path.iter().rev().find_map(Value::as_str);
    last.map(str::to_string).ok_or_else(|| format!("a path '{name}' leads to no field"))
}

/// `[[1, 2], [5, 5]]`.
fn ranges_of(ranges: &Value) -> Result<Vec<(i128, i128)>, String> {
    let bound = |range: &Value, place: usize| {
        let bound = range.get(place)?;
        bound.as_i64().map(i128::from).or(bound.as_u64().map(i128::from))
    };
    let range = |range: &Value| Some((bound(range, 0)?, bound(range, 1)?));
    let ranges = ranges.as_array().map(|ranges| ranges.iter().map(range).collect::<Option<Vec<_>>>());
    ranges.flatten().ok_or_else(|| "ranges of numbers are missing".to_string())
}

#[cfg(test)]
mod tests;
