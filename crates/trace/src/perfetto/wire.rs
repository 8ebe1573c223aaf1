//! Protobuf's wire format, as much as a reader needs.
//!
//! Must not know: which message has which fields.

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireValue<'b> {
    /// `int32`, `uint64`, `bool`, `enum`.
    Number(u64),
    /// Texts, messages, packed numbers.
    Bytes(&'b [u8]),
    /// `fixed64`, `double`.
    Fixed64(u64),
    /// `fixed32`, `float`.
    Fixed32(u32),
}

impl<'b> WireValue<'b> {
    /// The number, 0 for what is none.
    #[inline]
    pub(super) fn number(self) -> u64 {
        match self {
            WireValue::Number(number) | WireValue::Fixed64(number) => number,
            WireValue::Fixed32(number) => number.into(),
            WireValue::Bytes(_) => 0,
        }
    }

    /// The number as `int32`: negative ones take all 64 bits.
    #[inline]
    pub(super) fn int(self) -> i32 {
        self.number() as i32
    }

    /// The bytes, none for what has none.
    #[inline]
    pub(super) fn bytes(self) -> &'b [u8] {
        match self {
            WireValue::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
}

/// How the value of a field stands in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Varint,
    Fixed64,
    Bytes,
    Fixed32,
}

/// Number and form of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) field: u64,
    pub(super) wire: Wire,
}

impl Tag {
    /// What a tag says; groups, which no message of Perfetto has, are none.
    #[inline]
    pub(super) fn of(tag: u64) -> Option<Tag> {
        let wire = match tag & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Bytes,
            5 => Wire::Fixed32,
            _ => return None,
        };
        (tag >> 3 > 0).then_some(Tag { field: tag >> 3, wire })
    }
}

/// Takes a number of seven bits a byte off the front.
#[inline]
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(first.into());
    }
    long_varint(bytes)
}

fn long_varint(bytes: &mut &[u8]) -> Option<u64> {
    const BYTES_MAX: usize = 10;
    if let Some(word) = bytes.first_chunk()
        && let Some((value, length)) = in_word(u64::from_le_bytes(*word))
    {
        *bytes = &bytes[length..];
        return Some(value);
    }
    let mut value = 0;
    for (place, &byte) in bytes.iter().take(BYTES_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            *bytes = &bytes[place + 1..];
            return Some(value);
        }
    }
    None
}

/// The number that eight bytes begin with, and how many of them it takes; none where it does not end in them.
#[inline]
fn in_word(word: u64) -> Option<(u64, usize)> {
    const CONTINUED: u64 = 0x8080_8080_8080_8080;
    let ends = !word & CONTINUED;
    if ends == 0 {
        return None;
    }
    let length = ends.trailing_zeros() as usize / 8 + 1;
    // The bytes up to the first that ends a number, without their marks; then seven bits a byte, of two, four and eight bytes.
    let value = word & (ends ^ ends.wrapping_sub(1)) & !CONTINUED;
    let value = value & 0x007f_007f_007f_007f | (value & 0x7f00_7f00_7f00_7f00) >> 1;
    let value = value & 0x0000_3fff_0000_3fff | (value & 0x3fff_0000_3fff_0000) >> 2;
    let value = value & 0x0000_0000_0fff_ffff | (value & 0x0fff_ffff_0000_0000) >> 4;
    Some((value, length))
}

/// The fields of a message, one after the other; `None` at its end, or where its bytes are no message.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireFields<'b> {
    rest: &'b [u8],
    broken: bool,
}

/// Takes a number off the front that stands behind `tag`, a byte: that of the field which is expected next.
#[inline]
pub(super) fn expected_number(rest: &mut &[u8], tag: u8) -> Option<u64> {
    let [first, after @ ..] = rest else { return None };
    let mut after = after;
    let number = if *first == tag { varint(&mut after)? } else { return None };
    *rest = after;
    Some(number)
}

/// Takes fewer than 128 bytes off the front that stand behind `tag`.
#[inline]
pub(super) fn expected_bytes<'b>(rest: &mut &'b [u8], tag: u8) -> Option<&'b [u8]> {
    let [first, length @ ..0x80, after @ ..] = rest else { return None };
    let (bytes, after) = after.split_at_checked(usize::from(*length)).filter(|_| *first == tag)?;
    *rest = after;
    Some(bytes)
}

impl<'b> WireFields<'b> {
    #[inline]
    pub(super) fn of(message: &'b [u8]) -> WireFields<'b> {
        WireFields { rest: message, broken: false }
    }

    /// Whether the bytes were a message up to here.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        !self.broken
    }

    /// What has not been taken.
    #[inline]
    pub(super) fn rest(&self) -> &'b [u8] {
        self.rest
    }

    #[inline]
    fn take(&mut self) -> Option<(u64, WireValue<'b>)> {
        let tag = Tag::of(varint(&mut self.rest)?)?;
        let value = match tag.wire {
            Wire::Varint => WireValue::Number(varint(&mut self.rest)?),
            Wire::Bytes => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                WireValue::Bytes(bytes)
            }
            Wire::Fixed64 => {
                let (bytes, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                WireValue::Fixed64(u64::from_le_bytes(*bytes))
            }
            Wire::Fixed32 => {
                let (bytes, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                WireValue::Fixed32(u32::from_le_bytes(*bytes))
            }
        };
        Some((tag.field, value))
    }
}

impl<'b> Iterator for WireFields<'b> {
    type Item = (u64, WireValue<'b>);

    #[inline]
    fn next(&mut self) -> Option<(u64, WireValue<'b>)> {
        if self.rest.is_empty() {
            return None;
        }
        let taken = self.take();
        if taken.is_none() {
            (self.rest, self.broken) = (&[], true);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::ProtoMessage;
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let inner = ProtoMessage::new().int(1, -1).text(2, "ab");
        let outer = ProtoMessage::new().uint(58, u64::MAX).message(3, &inner);
        let fields: Vec<_> = WireFields::of(outer.bytes()).collect();
        assert_eq!(fields[0], (58, WireValue::Number(u64::MAX)));
        let inner: Vec<_> = WireFields::of(fields[1].1.bytes()).collect();
        assert_eq!((inner[0].1.int(), inner[1].1), (-1, WireValue::Bytes(b"ab")));
        let fixed = [0x09, 1, 0, 0, 0, 0, 0, 0, 0, 0x15, 2, 0, 0, 0];
        let fields: Vec<_> = WireFields::of(&fixed).collect();
        assert_eq!(fields, [(1, WireValue::Fixed64(1)), (2, WireValue::Fixed32(2))]);
    }

    #[test]
    fn numbers_of_every_length_are_read_wherever_they_end() {
        for bits in 0..64 {
            for value in [1 << bits, (1_u64 << bits) - 1, u64::MAX >> bits, 0x5555_5555_5555_5555 >> bits] {
                let message = ProtoMessage::new().uint(1, value);
                for behind in 0..10 {
                    let bytes = [&message.bytes()[1..], &[0xff; 10][..behind]].concat();
                    let mut rest = &bytes[..];
                    assert_eq!((varint(&mut rest), rest.len()), (Some(value), behind), "{value:#x}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_message_ends_there() {
        for bytes in
            [&[0x0a, 5, 1][..], &[0x08], &[0x08, 0x80], &[0x0b, 1], &[0x00, 1], &[0xff; 11], &[0x09, 1]]
        {
            let mut fields = WireFields::of(bytes);
            assert_eq!((fields.by_ref().count(), fields.is_whole()), (0, false), "{bytes:?}");
        }
        assert!(WireFields::of(&[]).is_whole());
    }
}
