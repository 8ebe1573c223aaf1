//! The fields of a tracepoint without a type of its own, as `name=value` text.

use std::fmt::Write;

use super::format::{EventFormat, FieldShape, FormatField};
use super::value::{TextLocation, dynamic, read_integer};
use crate::endian::Endian;

/// Longer arrays are cut and end in `...`.
const ELEMENTS_MAX: usize = 64;

/// What is needed to render one kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Renderer {
    /// Addresses that kernels print in brackets before a dynamic probe's values.
    place: Vec<FormatField>,
    fields: Vec<FormatField>,
}

impl Renderer {
    /// Prepares to render the events of `format`.
    pub(super) fn new(format: &EventFormat) -> Renderer {
        let (place, fields) =
            format.own_fields().cloned().partition(|field| field.name.starts_with("__probe_"));
        Renderer { place, fields }
    }

    /// Whether this is a dynamic probe: a kprobe has `__probe_ip`, a kretprobe `__probe_func` and `__probe_ret_ip`.
    pub(super) fn is_probe(&self) -> bool {
        !self.place.is_empty()
    }

    /// Replaces `text` by the fields of `record`; `None` when one lies outside the record.
    pub(super) fn render(&self, record: &[u8], endian: Endian, text: &mut String) -> Option<()> {
        text.clear();
        let address = |name: &str| {
            let field = self.place.iter().find(|field| field.name == name)?;
            read_integer(record, field.offset, u8::try_from(field.size).ok()?, false, endian)
        };
        match (address("__probe_ip"), address("__probe_ret_ip"), address("__probe_func")) {
            (Some(place), _, _) => write!(text, "({place:#x})").ok()?,
            (None, Some(place), Some(function)) => write!(text, "({place:#x} <- {function:#x})").ok()?,
            _ => {}
        }
        for field in &self.fields {
            let separator = if text.is_empty() { "" } else { " " };
            write!(text, "{separator}{}=", field.name).ok()?;
            render_value(field, record, endian, text)?;
        }
        Some(())
    }
}

fn render_value(field: &FormatField, record: &[u8], endian: Endian, text: &mut String) -> Option<()> {
    if let Some(place) = TextLocation::of(field) {
        text.push_str(&String::from_utf8_lossy(place.read(record, endian)?));
        return Some(());
    }
    match field.shape {
        FieldShape::Array { element } => {
            let bytes = record.get(field.offset..)?;
            let bytes = if field.size == 0 { bytes } else { bytes.get(..field.size)? };
            render_array(bytes, element, field.signed, endian, text)
        }
        FieldShape::Dynamic { relative, element } => render_array(
            dynamic(record, field.offset, relative, endian)?,
            element,
            field.signed,
            endian,
            text,
        ),
        FieldShape::Integer | FieldShape::Pointer | FieldShape::Text => match u8::try_from(field.size) {
            Ok(size @ (1 | 2 | 4 | 8)) => {
                let value = read_integer(record, field.offset, size, field.signed, endian)?;
                render_integer(value, field, text)
            }
            _ => render_array(record.get(field.offset..)?.get(..field.size)?, 1, false, endian, text),
        },
    }
}

fn render_integer(value: u64, field: &FormatField, text: &mut String) -> Option<()> {
    match (field.shape, field.signed) {
        (FieldShape::Pointer, _) => write!(text, "{value:#x}").ok(),
        (_, true) => write!(text, "{}", value as i64).ok(),
        (_, false) => write!(text, "{value}").ok(),
    }
}

fn render_array(bytes: &[u8], element: usize, signed: bool, endian: Endian, text: &mut String) -> Option<()> {
    let element = element.max(1);
    text.push('{');
    for (index, chunk) in bytes.chunks_exact(element).enumerate() {
        if index == ELEMENTS_MAX {
            text.push_str(",...");
            break;
        }
        let value = read_integer(chunk, 0, u8::try_from(element).ok()?, signed, endian)?;
        let separator = if index == 0 { "" } else { "," };
        if signed {
            write!(text, "{separator}{}", value as i64).ok()?;
        } else {
            write!(text, "{separator}{value}").ok()?;
        }
    }
    text.push('}');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(fields: &str, record: &[u8]) -> Option<String> {
        let format =
            EventFormat::parse("x", &format!("name: x\nID: 1\nformat:\n{fields}")).expect("a format");
        let mut text = "left over".to_string();
        Renderer::new(&format).render(record, Endian::Little, &mut text)?;
        Some(text)
    }

    #[test]
    fn every_shape_is_rendered() {
        let fields = "field:unsigned short common_type; offset:0; size:2; signed:0;\n\
            field:int delta; offset:2; size:4; signed:1;\n\
            field:void * key; offset:6; size:2; signed:0;\n\
            field:u16 pair[2]; offset:8; size:4; signed:0;\n\
            field:__data_loc char[] who; offset:12; size:4; signed:0;\n\
            field:__rel_loc s8[] deltas; offset:16; size:4; signed:1;\n\
            field:odd_t odd; offset:20; size:3; signed:0;\n\
            field:char tail[]; offset:23; size:0; signed:0;\n";
        let record =
            b"\x01\x00\xfe\xff\xff\xff\x34\x12\x01\x00\x02\x00\x17\0\x03\0\x02\0\x02\0\x05\x06\xffhey";
        assert_eq!(
            render(fields, record).as_deref(),
            Some("delta=-2 key=0x1234 pair={1,2} who=hey deltas={-1,104} odd={5,6,255} tail=hey")
        );
        assert_eq!(render(fields, &record[..20]), None);
    }

    #[test]
    fn probes_begin_with_their_place() {
        let kprobe = "field:unsigned long __probe_ip; offset:0; size:8; signed:0;\nfield:u64 cf; offset:8; size:8; signed:0;";
        let record = [0x10, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(render(kprobe, &record).as_deref(), Some("(0x10) cf=7"));
        let kretprobe = "field:unsigned long __probe_func; offset:0; size:8; signed:0;\n\
            field:unsigned long __probe_ret_ip; offset:8; size:8; signed:0;";
        assert_eq!(render(kretprobe, &record).as_deref(), Some("(0x7 <- 0x10)"));
    }

    #[test]
    fn long_arrays_are_cut() {
        let text = render("field:u8 all[]; offset:0; size:0; signed:0;", &[0; 1000]).expect("text");
        assert!(text.ends_with(",0,...}") && text.len() < 150, "{text}");
    }
}
