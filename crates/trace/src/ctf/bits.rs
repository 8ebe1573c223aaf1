//! Numbers of any width out of a packet.
//!
//! Must not know: what the numbers are.

use super::types::CtfByteOrder;

/// A place in a packet, in bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitCursor<'p> {
    bytes: &'p [u8],
    pub(super) at: u64,
    pub(super) end: u64,
}

impl<'p> BitCursor<'p> {
    /// All of `bytes`, or the first `end` bits of them.
    pub(super) fn new(bytes: &'p [u8], end: u64) -> BitCursor<'p> {
        BitCursor { bytes, at: 0, end: end.min(bytes.len() as u64 * 8) }
    }

    /// Goes on to a multiple of `align` bits.
    #[inline]
    pub(super) fn align(&mut self, align: u32) {
        self.at = self.at.next_multiple_of(u64::from(align.max(1)));
    }

    /// Passes over `count` bits; `None` where there are fewer.
    #[inline]
    pub(super) fn skip(&mut self, count: u64) -> Option<()> {
        let to = self.at.checked_add(count).filter(|&to| to <= self.end)?;
        self.at = to;
        Some(())
    }

    /// A number of `size` bits, at most 64.
    #[inline]
    pub(super) fn number(&mut self, size: u32, order: CtfByteOrder) -> Option<u64> {
        let (at, place) = (self.at, (self.at / 8) as usize);
        self.skip(size.into())?;
        if at.is_multiple_of(8) && size.is_multiple_of(8) {
            let bytes = self.bytes.get(place..place + size as usize / 8)?;
            let add = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
            return Some(match order {
                CtfByteOrder::Little => bytes.iter().rev().fold(0, add),
                CtfByteOrder::Big => bytes.iter().fold(0, add),
            });
        }
        let bit = |bit: u64| -> Option<u64> {
            let byte = *self.bytes.get((bit / 8) as usize)?;
            let within = if order == CtfByteOrder::Little { bit % 8 } else { 7 - bit % 8 };
            Some(u64::from(byte >> within & 1))
        };
        let mut value = 0;
        for index in 0..u64::from(size) {
            let found = bit(at + index)?;
            match order {
                CtfByteOrder::Little => value |= found << index,
                CtfByteOrder::Big => value = value << 1 | found,
            }
        }
        Some(value)
    }

    /// A number of any length and how many bits were written of it; `None` where it is longer than 64.
    pub(super) fn leb128(&mut self, signed: bool) -> Option<(u64, u32)> {
        self.align(8);
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.number(8, CtfByteOrder::Little)?;
            let low = byte & 0x7f;
            value |= low.checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                let width = shift + 7;
                let is_negative = signed && low & 0x40 != 0 && width < 64;
                return Some((if is_negative { value | u64::MAX << width } else { value }, width));
            }
        }
        None
    }

    /// The bytes up to a zero, which is passed over.
    pub(super) fn text(&mut self) -> Option<&'p [u8]> {
        self.align(8);
        let rest = self.bytes.get((self.at / 8) as usize..(self.end / 8) as usize)?;
        let length = rest.iter().position(|&byte| byte == 0)?;
        self.skip((length as u64 + 1) * 8)?;
        rest.get(..length)
    }

    /// So many bytes.
    pub(super) fn bytes(&mut self, count: u64) -> Option<&'p [u8]> {
        let from = (self.at / 8) as usize;
        self.skip(count.checked_mul(8)?)?;
        self.bytes.get(from..from + count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_variable_length_end_where_a_byte_says_so() {
        let read = |bytes: &[u8], signed| {
            let mut bits = BitCursor::new(bytes, u64::MAX);
            (bits.leb128(signed).map(|(number, _)| number), bits.at / 8)
        };
        assert_eq!(read(&[0x7f, 9], false), (Some(127), 1));
        assert_eq!(read(&[0xe5, 0x8e, 0x26], false), (Some(624_485), 3));
        assert_eq!(read(&[0xc0, 0xbb, 0x78], true), (Some((-123_456_i64).cast_unsigned()), 3));
        assert_eq!(read(&[0x7f], true), (Some(u64::MAX), 1));
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read(&largest, false), (Some(u64::MAX), 10));
        assert_eq!(read(&[0x80, 0x80], false).0, None);
        assert_eq!(read(&[0x80; 20], false).0, None);
    }

    #[test]
    fn numbers_lie_at_any_bit_in_either_order() {
        let bytes = [0b1010_0101, 0x34, 0x12, b'a', 0];
        let mut little = BitCursor::new(&bytes, u64::MAX);
        assert_eq!(
            (little.number(5, CtfByteOrder::Little), little.number(3, CtfByteOrder::Little)),
            (Some(5), Some(5))
        );
        assert_eq!((little.number(16, CtfByteOrder::Little), little.text()), (Some(0x1234), Some(&b"a"[..])));
        assert_eq!((little.number(1, CtfByteOrder::Little), little.text()), (None, None));
        let mut big = BitCursor::new(&bytes, u64::MAX);
        assert_eq!(
            (big.number(5, CtfByteOrder::Big), big.number(3, CtfByteOrder::Big)),
            (Some(0b10100), Some(5))
        );
        assert_eq!(big.number(16, CtfByteOrder::Big), Some(0x3412));
        let mut odd = BitCursor::new(&bytes, 12);
        assert_eq!(
            (odd.skip(4), odd.number(8, CtfByteOrder::Little), odd.number(1, CtfByteOrder::Little)),
            (Some(()), Some(0x4a), None)
        );
    }
}
