//! Integers out of bytes, in the byte order of the machine that wrote them.
//!
//! Every read is checked: past the end is `None`. Must not know: any file format.

/// Which end of an integer a machine writes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    /// x86, arm64, riscv, ppc64le.
    Little,
    /// s390.
    Big,
}

impl Endian {
    /// The two bytes at `at`.
    #[inline]
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let chunk = *bytes.get(at..)?.first_chunk()?;
        Some(if self == Endian::Little { u16::from_le_bytes(chunk) } else { u16::from_be_bytes(chunk) })
    }

    /// The four bytes at `at`.
    #[inline]
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let chunk = *bytes.get(at..)?.first_chunk()?;
        Some(if self == Endian::Little { u32::from_le_bytes(chunk) } else { u32::from_be_bytes(chunk) })
    }

    /// The eight bytes at `at`.
    #[inline]
    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let chunk = *bytes.get(at..)?.first_chunk()?;
        Some(if self == Endian::Little { u64::from_le_bytes(chunk) } else { u64::from_be_bytes(chunk) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_checked_and_ordered() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(Endian::Little.u16(&bytes, 0), Some(0x0201));
        assert_eq!(Endian::Big.u32(&bytes, 1), Some(0x0203_0405));
        assert_eq!(Endian::Little.u64(&bytes, 1), Some(0x0908_0706_0504_0302));
        assert_eq!(Endian::Big.u64(&bytes, 2), None);
        assert_eq!(Endian::Little.u16(&bytes, usize::MAX), None);
    }
}
