//! Protobuf's wire format, as much as a writer needs.
//!
//! Must not know: which message has which fields.

/// A message in the making, of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProtoMessage {
    bytes: Vec<u8>,
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

impl ProtoMessage {
    pub(super) fn new() -> ProtoMessage {
        ProtoMessage::default()
    }

    pub(super) fn uint(self, field: u64, value: u64) -> ProtoMessage {
        self.with(|part| part.uint(field, value))
    }

    /// `int32` and `int64`: negative numbers take ten bytes.
    pub(super) fn int(self, field: u64, value: i64) -> ProtoMessage {
        self.uint(field, value.cast_unsigned())
    }

    pub(super) fn text(self, field: u64, text: &str) -> ProtoMessage {
        self.with(|part| part.text(field, text))
    }

    pub(super) fn message(self, field: u64, message: &ProtoMessage) -> ProtoMessage {
        self.with(|part| part.blob(field, &message.bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn with(mut self, put: impl FnOnce(&mut ProtoPart<'_>)) -> ProtoMessage {
        put(&mut ProtoPart::of(&mut self.bytes));
        self
    }
}

/// A message that is written where it belongs, behind what is there. Fields may go in in any order.
#[derive(Debug)]
pub(super) struct ProtoPart<'b> {
    bytes: &'b mut Vec<u8>,
}

impl<'b> ProtoPart<'b> {
    pub(super) fn of(bytes: &'b mut Vec<u8>) -> ProtoPart<'b> {
        ProtoPart { bytes }
    }

    #[inline]
    pub(super) fn uint(&mut self, field: u64, value: u64) {
        put_varint(self.bytes, field << 3 | VARINT);
        put_varint(self.bytes, value);
    }

    /// `int32` and `int64`: negative numbers take ten bytes.
    #[inline]
    pub(super) fn int(&mut self, field: u64, value: i64) {
        self.uint(field, value.cast_unsigned());
    }

    pub(super) fn fixed64(&mut self, field: u64, value: u64) {
        put_varint(self.bytes, field << 3 | FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    pub(super) fn text(&mut self, field: u64, text: &str) {
        self.blob(field, text.as_bytes());
    }

    #[inline]
    pub(super) fn blob(&mut self, field: u64, bytes: &[u8]) {
        put_varint(self.bytes, field << 3 | LENGTH_DELIMITED);
        put_varint(self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Fields that are bytes already.
    pub(super) fn fields(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A message within this one.
    #[inline]
    pub(super) fn part<T>(&mut self, field: u64, put: impl FnOnce(&mut ProtoPart<'_>) -> T) -> T {
        self.large_part(field, 0, put)
    }

    /// A message within this one, of about so many bytes: where that is right, nothing is moved for its length's sake.
    #[inline]
    pub(super) fn large_part<T>(
        &mut self,
        field: u64,
        about: usize,
        put: impl FnOnce(&mut ProtoPart<'_>) -> T,
    ) -> T {
        put_varint(self.bytes, field << 3 | LENGTH_DELIMITED);
        let start = self.bytes.len();
        let room = varint_length(about);
        self.bytes.resize(start + room, 0);
        let told = put(self);
        let length = self.bytes.len() - start - room;
        if varint_length(length) != room {
            let digits = std::iter::repeat_n(0, varint_length(length));
            self.bytes.splice(start..start + room, digits);
        }
        let mut rest = length;
        for byte in &mut self.bytes[start..start + varint_length(length)] {
            *byte = rest as u8 | 0x80;
            rest >>= 7;
        }
        self.bytes[start + varint_length(length) - 1] &= 0x7f;
        told
    }
}

/// How many bytes a number takes.
#[inline]
const fn varint_length(value: usize) -> usize {
    if value < 0x80 { 1 } else { (usize::BITS - value.leading_zeros()).div_ceil(7) as usize }
}

/// Seven bits a byte, the lowest first.
#[inline]
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
        let inner = ProtoMessage::new().int(1, -1);
        assert_eq!(inner.bytes(), [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        let outer =
            ProtoMessage::new().uint(58, 300).text(2, "ab").message(3, &ProtoMessage::new().uint(1, 0));
        assert_eq!(outer.bytes(), [0xd0, 3, 0xac, 2, 0x12, 2, b'a', b'b', 0x1a, 2, 8, 0]);
        let mut bytes = vec![8, 1];
        ProtoPart::of(&mut bytes).fixed64(1, 2);
        assert_eq!(bytes, [8, 1, 9, 2, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_message_in_its_place_is_the_message() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 40_000] {
            let text = "x".repeat(length);
            for about in [0, length, 2 * length] {
                let mut bytes = vec![1];
                ProtoPart::of(&mut bytes).large_part(20, about, |part| {
                    part.part(3, |part| part.text(2, &text));
                    part.int(1, -1);
                });
                let inner = ProtoMessage::new().message(3, &ProtoMessage::new().text(2, &text)).int(1, -1);
                assert_eq!(bytes[1..], *ProtoMessage::new().message(20, &inner).bytes(), "{length} {about}");
            }
        }
    }
}
