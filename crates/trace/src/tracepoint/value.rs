//! One field's place in a binary record, checked and ready to be read many times.

use fairlab_event::Comm;

use super::format::{FieldShape, FormatField};
use crate::endian::Endian;

/// Where an integer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntegerLocation {
    at: usize,
    size: u8,
    signed: bool,
}

impl IntegerLocation {
    /// `None` when the field is no integer of 1, 2, 4 or 8 bytes.
    pub(super) fn of(field: &FormatField) -> Option<IntegerLocation> {
        let plain = matches!(field.shape, FieldShape::Integer | FieldShape::Pointer);
        let size = u8::try_from(field.size).ok().filter(|size| plain && matches!(size, 1 | 2 | 4 | 8))?;
        Some(IntegerLocation { at: field.offset, size, signed: field.signed })
    }

    /// Whether it has `size` bytes from `at` on.
    pub(super) fn is(self, at: usize, size: usize) -> bool {
        self.at == at && usize::from(self.size) == size
    }

    /// The value, sign-extended when it has a sign; `None` when the record is too short.
    #[inline]
    pub(super) fn read(self, record: &[u8], endian: Endian) -> Option<u64> {
        read_integer(record, self.at, self.size, self.signed, endian)
    }
}

/// The integer of `size` bytes at `at`, sign-extended when `signed`.
#[inline]
pub(super) fn read_integer(record: &[u8], at: usize, size: u8, signed: bool, endian: Endian) -> Option<u64> {
    let value = match size {
        4 => u64::from(endian.u32(record, at)?),
        8 => return endian.u64(record, at),
        2 => u64::from(endian.u16(record, at)?),
        _ => u64::from(*record.get(at)?),
    };
    let unused = 64 - 8 * u32::from(size);
    Some(if signed { ((value << unused) as i64 >> unused) as u64 } else { value })
}

/// Where a text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextLocation {
    /// In place; `length` 0 means to the end of the record.
    Fixed {
        /// Where it begins.
        at: usize,
        /// Its room in bytes.
        length: usize,
    },
    /// Elsewhere: at `at` stand its offset (low half) and length (high half).
    Dynamic {
        /// Where offset and length stand.
        at: usize,
        /// Whether the offset counts from the end of that word.
        relative: bool,
    },
}

impl TextLocation {
    /// `None` when the field is no text.
    pub(super) fn of(field: &FormatField) -> Option<TextLocation> {
        match field.shape {
            FieldShape::Text => Some(TextLocation::Fixed { at: field.offset, length: field.size }),
            FieldShape::Dynamic { relative, element: 0 } => {
                Some(TextLocation::Dynamic { at: field.offset, relative })
            }
            _ => None,
        }
    }

    /// The text up to its first NUL; `None` when it lies outside the record.
    pub(super) fn read(self, record: &[u8], endian: Endian) -> Option<&[u8]> {
        let bytes = self.room(record, endian)?;
        Some(&bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())])
    }

    /// The text as a task name.
    #[inline(always)]
    pub(super) fn comm(self, record: &[u8], endian: Endian) -> Option<Comm> {
        let bytes = self.room(record, endian)?;
        Some(match bytes.first_chunk() {
            Some(padded) => Comm::from_padded(*padded),
            None => Comm::new(bytes),
        })
    }

    #[inline]
    fn room(self, record: &[u8], endian: Endian) -> Option<&[u8]> {
        match self {
            TextLocation::Fixed { at, length: 0 } => record.get(at..),
            TextLocation::Fixed { at, length } => record.get(at..)?.get(..length),
            TextLocation::Dynamic { at, relative } => dynamic(record, at, relative, endian),
        }
    }
}

/// The bytes that the `__data_loc` or `__rel_loc` word at `at` points to.
#[inline]
pub(super) fn dynamic(record: &[u8], at: usize, relative: bool, endian: Endian) -> Option<&[u8]> {
    let word = endian.u32(record, at)?;
    let base = if relative { at + size_of::<u32>() } else { 0 };
    record.get(base + (word & 0xffff) as usize..)?.get(..(word >> 16) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width_keep_their_sign() {
        let record = [0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let read = |at, size, signed| {
            read_integer(&record, at, size, signed, Endian::Little).map(|value| value as i64)
        };
        assert_eq!(read(1, 1, true), Some(-2));
        assert_eq!(read(1, 1, false), Some(254));
        assert_eq!(read(1, 2, true), Some(-2));
        assert_eq!(read(1, 4, true), Some(-2));
        assert_eq!(read(1, 4, false), Some(0xffff_fffe));
        assert_eq!(read(1, 8, true), Some(-2));
        assert_eq!(read(2, 8, true), None);
        assert_eq!(read(9, 1, true), None);
    }

    #[test]
    fn texts_are_found_in_place_and_elsewhere() {
        let record = b"\x08\0\x04\0\x02\0\x03\0..ab\0d";
        let fixed = TextLocation::Fixed { at: 10, length: 4 };
        assert_eq!(fixed.read(record, Endian::Little), Some(&b"ab"[..]));
        assert_eq!(TextLocation::Fixed { at: 10, length: 0 }.read(record, Endian::Little), Some(&b"ab"[..]));
        assert_eq!(TextLocation::Fixed { at: 10, length: 5 }.read(record, Endian::Little), None);
        let absolute = TextLocation::Dynamic { at: 0, relative: false };
        assert_eq!(absolute.read(record, Endian::Little), Some(&b"..ab"[..]));
        let relative = TextLocation::Dynamic { at: 4, relative: true };
        assert_eq!(relative.comm(record, Endian::Little), Some(Comm::from("ab")));
        assert_eq!(TextLocation::Dynamic { at: 8, relative: false }.read(record, Endian::Little), None);
        assert_eq!(TextLocation::Dynamic { at: 12, relative: false }.read(record, Endian::Little), None);
    }
}
