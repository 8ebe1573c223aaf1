//! Thrift's compact protocol, as much as Parquet's descriptions need.
//!
//! Facts: thrift-compact-protocol.md of Apache Thrift. Must not know: what is described.

/// A structure in the making: fields go in by rising number.
#[derive(Debug)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

/// Types in field and list headers.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Struct {
    pub(super) fn new() -> Struct {
        Struct { bytes: Vec::new(), last: 0 }
    }

    pub(super) fn i32(mut self, field: u8, value: i32) -> Struct {
        self.head(field, I32);
        put_zigzag(&mut self.bytes, value.into());
        self
    }

    pub(super) fn i64(mut self, field: u8, value: i64) -> Struct {
        self.head(field, I64);
        put_zigzag(&mut self.bytes, value);
        self
    }

    pub(super) fn text(mut self, field: u8, text: &str) -> Struct {
        self.head(field, BINARY);
        put_binary(&mut self.bytes, text.as_bytes());
        self
    }

    pub(super) fn structure(mut self, field: u8, inner: Struct) -> Struct {
        self.head(field, STRUCT);
        self.bytes.extend(inner.finish());
        self
    }

    pub(super) fn structures(mut self, field: u8, inner: Vec<Struct>) -> Struct {
        self.list(field, STRUCT, inner.len());
        self.bytes.extend(inner.into_iter().flat_map(Struct::finish));
        self
    }

    pub(super) fn texts(mut self, field: u8, texts: &[&str]) -> Struct {
        self.list(field, BINARY, texts.len());
        for text in texts {
            put_binary(&mut self.bytes, text.as_bytes());
        }
        self
    }

    pub(super) fn i32s(mut self, field: u8, values: &[i32]) -> Struct {
        self.list(field, I32, values.len());
        for &value in values {
            put_zigzag(&mut self.bytes, value.into());
        }
        self
    }

    /// The bytes, with the mark of the end.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    /// Fields of Parquet are near each other: the short form, a step of at most 15, is enough.
    fn head(&mut self, field: u8, kind: u8) {
        debug_assert!(field > self.last && field - self.last < 16, "field {field} after {}", self.last);
        self.bytes.push((field - self.last) << 4 | kind);
        self.last = field;
    }

    fn list(&mut self, field: u8, kind: u8, count: usize) {
        self.head(field, LIST);
        match count {
            0..15 => self.bytes.push((count as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                put_varint(&mut self.bytes, count as u64);
            }
        }
    }
}

fn put_binary(bytes: &mut Vec<u8>, binary: &[u8]) {
    put_varint(bytes, binary.len() as u64);
    bytes.extend(binary);
}

fn put_zigzag(bytes: &mut Vec<u8>, value: i64) {
    put_varint(bytes, (value << 1 ^ value >> 63) as u64);
}

/// Seven bits a byte, the lowest first.
pub(super) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_steps_types_and_values() {
        let bytes = Struct::new().i32(1, -1).i64(4, 300).text(5, "ab").finish();
        assert_eq!(bytes, [0x15, 1, 0x36, 0xd8, 4, 0x18, 2, b'a', b'b', 0]);
        let bytes = Struct::new().i32s(2, &[1; 15]).texts(3, &["x"]).finish();
        assert_eq!(bytes[..4], [0x29, 0xf5, 15, 2]);
        assert_eq!(bytes[bytes.len() - 5..], [0x19, 0x18, 1, b'x', 0]);
        let inner = || Struct::new().i32(1, 0);
        let bytes = Struct::new().structure(1, inner()).structures(2, vec![inner()]).finish();
        assert_eq!(bytes, [0x1c, 0x15, 0, 0, 0x19, 0x1c, 0x15, 0, 0, 0]);
    }
}
