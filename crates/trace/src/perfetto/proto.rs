//! Protobuf's wire format, as much as a writer needs.
//!
//! Must not know: which message has which fields.

/// A message in the making. Fields may go in in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

impl Message {
    pub(super) fn new() -> Message {
        Message::default()
    }

    /// Goes on with what was written before.
    pub(super) fn of(bytes: Vec<u8>) -> Message {
        Message { bytes }
    }

    pub(super) fn uint(mut self, field: u64, value: u64) -> Message {
        put_varint(&mut self.bytes, field << 3 | VARINT);
        put_varint(&mut self.bytes, value);
        self
    }

    /// `int32` and `int64`: negative numbers take ten bytes.
    pub(super) fn int(self, field: u64, value: i64) -> Message {
        self.uint(field, value as u64)
    }

    pub(super) fn fixed64(mut self, field: u64, value: u64) -> Message {
        put_varint(&mut self.bytes, field << 3 | FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn text(self, field: u64, text: &str) -> Message {
        self.blob(field, text.as_bytes())
    }

    pub(super) fn message(self, field: u64, message: &Message) -> Message {
        self.blob(field, &message.bytes)
    }

    pub(super) fn blob(mut self, field: u64, bytes: &[u8]) -> Message {
        put_blob(&mut self.bytes, field, bytes);
        self
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A field with its length in front.
pub(super) fn put_blob(bytes: &mut Vec<u8>, field: u64, blob: &[u8]) {
    put_varint(bytes, field << 3 | LENGTH_DELIMITED);
    put_varint(bytes, blob.len() as u64);
    bytes.extend_from_slice(blob);
}

/// Seven bits a byte, the lowest first.
fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
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
    fn fields_are_tags_and_values() {
        let inner = Message::new().int(1, -1);
        assert_eq!(inner.bytes(), [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        let outer = Message::new().uint(58, 300).text(2, "ab").message(3, &Message::new().uint(1, 0));
        assert_eq!(outer.bytes(), [0xd0, 3, 0xac, 2, 0x12, 2, b'a', b'b', 0x1a, 2, 8, 0]);
        assert_eq!(Message::new().fixed64(1, 2).bytes(), [9, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Message::of(vec![8, 1]).uint(2, 3).bytes(), [8, 1, 16, 3]);
    }
}
