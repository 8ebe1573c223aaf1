//! One tracepoint's `format` file: where its fields lie in the binary record, and how the kernel prints them.
//!
//! Must not know: which tracepoints exist.

/// What a `format` file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventFormat {
    /// The subsystem (`sched`), or whatever group a dynamic probe was put in.
    pub(crate) system: String,
    /// The event's name (`sched_switch`).
    pub(crate) name: String,
    /// `common_type` of its records.
    pub(crate) id: u16,
    /// Every field, the common ones too, in order.
    pub(crate) fields: Vec<FormatField>,
    /// What follows `print fmt:`.
    pub(crate) print_format: String,
}

/// Where one field lies and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormatField {
    /// Its name.
    pub(crate) name: String,
    /// Bytes from the start of the record.
    pub(crate) offset: usize,
    /// Bytes; 0 for an array that runs to the end of the record.
    pub(crate) size: usize,
    /// Whether its integers have a sign.
    pub(crate) signed: bool,
    /// How its bytes are to be read.
    pub(crate) shape: FieldShape,
}

/// How the bytes of a field are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldShape {
    /// One integer.
    Integer,
    /// One address.
    Pointer,
    /// Text in place, up to its first NUL.
    Text,
    /// Integers of `element` bytes each, in place.
    Array {
        /// Bytes of one.
        element: usize,
    },
    /// Elsewhere in the record: the field holds offset and length.
    Dynamic {
        /// `__rel_loc`: the offset counts from the end of this field, not from the start of the record.
        relative: bool,
        /// Bytes of one element; 0 for text.
        element: usize,
    },
}

/// More fields than any tracepoint has; a longer list is garbage.
const FIELDS_MAX: usize = 4096;

impl EventFormat {
    /// Reads the text of a `format` file; `None` when it lacks a name, an id or any readable field.
    pub(crate) fn parse(system: &str, text: &str) -> Option<EventFormat> {
        let (head, print_format) = text.split_once("print fmt:").unwrap_or((text, ""));
        let mut format = EventFormat {
            system: system.to_string(),
            name: String::new(),
            id: 0,
            fields: Vec::new(),
            print_format: print_format.trim().to_string(),
        };
        let mut id = None;
        for line in head.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_string();
            } else if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            } else if line.starts_with("field:") && format.fields.len() < FIELDS_MAX {
                format.fields.extend(FormatField::parse(line));
            }
        }
        format.id = id?;
        (!format.name.is_empty() && !format.fields.is_empty()).then_some(format)
    }

    /// The field called `name`.
    pub(crate) fn field(&self, name: &str) -> Option<&FormatField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The fields of this tracepoint, without those that all tracepoints share.
    pub(crate) fn own_fields(&self) -> impl Iterator<Item = &FormatField> {
        self.fields.iter().filter(|field| !field.name.starts_with("common_"))
    }
}

impl FormatField {
    /// Reads `field:DECLARATION;  offset:N;  size:N;  signed:N;`.
    pub(crate) fn parse(line: &str) -> Option<FormatField> {
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next()?.strip_prefix("field:")?.trim();
        let (mut offset, mut size, mut signed) = (None, None, false);
        for part in parts {
            match part.split_once(':') {
                Some(("offset", number)) => offset = number.trim().parse::<u32>().ok(),
                Some(("size", number)) => size = number.trim().parse::<u32>().ok(),
                Some(("signed", number)) => signed = number.trim() == "1",
                _ => {}
            }
        }
        let (size, offset) = (size? as usize, offset? as usize);
        let (before, brackets) = match declaration.strip_suffix(']').and_then(|open| open.rsplit_once('[')) {
            Some((before, count)) => (before.trim_end(), Some(count)),
            None => (declaration, None),
        };
        let is_name = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
        let name_at = before.trim_end_matches(is_name).len();
        let (type_name, name) = before.split_at(name_at);
        let shape = FieldShape::of(type_name.trim(), brackets, size);
        (!name.is_empty()).then(|| FormatField { name: name.to_string(), offset, size, signed, shape })
    }
}

impl FieldShape {
    fn of(type_name: &str, brackets: Option<&str>, size: usize) -> FieldShape {
        if let Some(element) = type_name.strip_prefix("__data_loc") {
            return FieldShape::Dynamic { relative: false, element: dynamic_element(element) };
        }
        if let Some(element) = type_name.strip_prefix("__rel_loc") {
            return FieldShape::Dynamic { relative: true, element: dynamic_element(element) };
        }
        let Some(count) = brackets else {
            return if type_name.ends_with('*') { FieldShape::Pointer } else { FieldShape::Integer };
        };
        if type_name == "char" || type_name == "const char" {
            return FieldShape::Text;
        }
        match count.trim().parse::<usize>() {
            Ok(count) if count > 0 && matches!(size / count, 1 | 2 | 4 | 8) => {
                FieldShape::Array { element: size / count }
            }
            _ => FieldShape::Array { element: integer_size(type_name) },
        }
    }
}

/// Bytes of one element of a `__data_loc TYPE[]`; 0 for text.
fn dynamic_element(type_name: &str) -> usize {
    match type_name.trim().trim_end_matches("[]").trim() {
        "char" | "const char" => 0,
        other => integer_size(other),
    }
}

/// The size of an integer type by its name; 1, that is plain bytes, for anything unknown.
fn integer_size(type_name: &str) -> usize {
    match type_name.trim_start_matches("unsigned ").trim_start_matches("__") {
        "u16" | "s16" | "short" | "le16" | "be16" => 2,
        "u32" | "s32" | "int" | "unsigned" | "pid_t" | "le32" | "be32" => 4,
        "u64" | "s64" | "long" | "long long" | "size_t" | "le64" | "be64" => 8,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIGRATE: &str = "name: sched_migrate_task\nID: 371\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"comm=%s pid=%d\", __get_str(comm), REC->pid\n";

    fn shape(declaration: &str, size: usize) -> (String, FieldShape) {
        let field = FormatField::parse(&format!("field:{declaration};\toffset:8;\tsize:{size};\tsigned:0;"))
            .expect(declaration);
        (field.name, field.shape)
    }

    #[test]
    fn a_format_file_is_read() {
        let format = EventFormat::parse("sched", MIGRATE).expect("a format");
        assert_eq!((format.name.as_str(), format.id), ("sched_migrate_task", 371));
        assert_eq!(format.print_format, "\"comm=%s pid=%d\", __get_str(comm), REC->pid");
        assert_eq!(format.own_fields().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["comm", "pid"]);
        let pid = format.field("pid").expect("pid");
        assert_eq!((pid.offset, pid.size, pid.signed, pid.shape), (12, 4, true, FieldShape::Integer));
        assert!(format.field("absent").is_none());
    }

    #[test]
    fn declarations_tell_their_shape() {
        assert_eq!(shape("char comm[16]", 16), ("comm".to_string(), FieldShape::Text));
        assert_eq!(shape("char comm[TASK_COMM_LEN]", 16), ("comm".to_string(), FieldShape::Text));
        assert_eq!(shape("char buf[]", 0), ("buf".to_string(), FieldShape::Text));
        assert_eq!(
            shape("unsigned long args[6]", 48),
            ("args".to_string(), FieldShape::Array { element: 8 })
        );
        assert_eq!(shape("u32 values[COUNT]", 16), ("values".to_string(), FieldShape::Array { element: 4 }));
        assert_eq!(shape("const char * name", 8), ("name".to_string(), FieldShape::Pointer));
        assert_eq!(shape("void *ptr", 8), ("ptr".to_string(), FieldShape::Pointer));
        assert_eq!(shape("unsigned int flags", 4), ("flags".to_string(), FieldShape::Integer));
        let text = FieldShape::Dynamic { relative: false, element: 0 };
        assert_eq!(shape("__data_loc char[] comm", 4), ("comm".to_string(), text));
        let numbers = FieldShape::Dynamic { relative: true, element: 8 };
        assert_eq!(shape("__rel_loc unsigned long[] mask", 4), ("mask".to_string(), numbers));
    }

    #[test]
    fn garbage_is_no_format() {
        assert_eq!(EventFormat::parse("sched", ""), None);
        assert_eq!(EventFormat::parse("sched", "name: x\nID: 70000\nformat:\n"), None);
        assert_eq!(EventFormat::parse("sched", &MIGRATE.replace("ID:", "no:")), None);
        assert_eq!(EventFormat::parse("sched", &MIGRATE.replace("field:", "fiend:")), None);
        for line in [
            "field:",
            "field:int x",
            "field:int x;offset:-1;size:4;",
            "field:int x;offset:99999999999;size:4;",
            "field:[;offset:1;size:1;",
        ] {
            assert_eq!(FormatField::parse(line), None, "{line}");
        }
    }
}
