//! Eight or sixteen bytes examined in one step: the place of a byte, the number of digits, their value.
//!
//! A branch per byte of a number or name is mispredicted once at its end, since lengths vary. A dozen such ends cost more
//! than the rest of the line. Words are little-endian: the first byte of the text is the lowest.
//!
//! Must not know: what the bytes mean.

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const LOW_BITS_16: u128 = LOW_BITS as u128 | (LOW_BITS as u128) << 64;
const HIGH_BITS_16: u128 = HIGH_BITS as u128 | (HIGH_BITS as u128) << 64;

/// The eight bytes of `bytes` from `at` on; NUL behind the end.
#[inline(always)]
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(word) = rest.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    let Some(last) = bytes.last_chunk() else { return slow_word(rest) };
    u64::from_le_bytes(*last).checked_shr(8 * (8 - rest.len() as u32)).unwrap_or(0)
}

/// The sixteen bytes of `bytes` from `at` on; NUL behind the end.
#[inline(always)]
pub(super) fn double_word(bytes: &[u8], at: usize) -> u128 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(word) = rest.first_chunk() {
        return u128::from_le_bytes(*word);
    }
    u128::from(word(bytes, at)) | u128::from(word(bytes, at + 8)) << 64
}

#[cold]
fn slow_word(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// A mask of the first `count` bytes of a word, at most all eight.
#[inline(always)]
pub(super) fn first_bytes(count: usize) -> u64 {
    1_u64.checked_shl(8 * count as u32).unwrap_or(0).wrapping_sub(1)
}

/// How many bytes at the start of `word` are `byte`.
#[inline(always)]
pub(super) fn run_of(word: u64, byte: u8) -> usize {
    (word ^ (LOW_BITS * u64::from(byte))).trailing_zeros() as usize / 8
}

/// How many bytes at the start of `word` are visible ASCII characters.
#[inline(always)]
pub(super) fn visible(word: u64) -> usize {
    // Adding 95 carries into the high bit from 33 on.
    let visible = ((word & !HIGH_BITS) + LOW_BITS * 95) & !word & HIGH_BITS;
    let run = (!visible & HIGH_BITS).trailing_zeros() as usize / 8;
    run.min(place_of(word, 0x7f))
}

/// Where `byte` stands in `word`, as a mask whose bit 8·n+7 is set for the n-th byte. Bits above the lowest set one
/// may be set wrongly.
#[inline(always)]
pub(super) fn places_of(word: u128, byte: u8) -> u128 {
    let differing = word ^ (LOW_BITS_16 * u128::from(byte));
    differing.wrapping_sub(LOW_BITS_16) & !differing & HIGH_BITS_16
}

/// Where `byte` stands first in `word`; 8 when it does not.
#[inline(always)]
pub(super) fn place_of(word: u64, byte: u8) -> usize {
    let differing = word ^ (LOW_BITS * u64::from(byte));
    (differing.wrapping_sub(LOW_BITS) & !differing & HIGH_BITS).trailing_zeros() as usize / 8
}

/// How many digits stand at the start of `word`, and their value.
#[inline(always)]
pub(super) fn digits(word: u64) -> (usize, u64) {
    let values = word ^ (LOW_BITS * 0x30);
    // A byte above 9 carries into its high bit when 118 is added; a byte that has its high bit is no digit either.
    let beyond = ((values & !HIGH_BITS) + LOW_BITS * 118) | values;
    let count = (beyond & HIGH_BITS).trailing_zeros() / 8;
    // The digits become the last of eight, zeroes before them; then neighbours are joined thrice.
    let eight = values.checked_shl(8 * (8 - count)).unwrap_or(0);
    let pairs = eight.wrapping_mul(10).wrapping_add(eight >> 8);
    const EVERY_FOURTH: u64 = 0x0000_00ff_0000_00ff;
    let upper = (pairs & EVERY_FOURTH).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & EVERY_FOURTH).wrapping_mul(1 + (10_000 << 32));
    (count as usize, upper.wrapping_add(lower) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_with_the_text() {
        let text: &[u8] = b"0123456789abcdefgh";
        for length in 0..=text.len() {
            for at in 0..=length + 2 {
                let rest = text[..length].get(at..).unwrap_or_default();
                let mut expected = [0; 16];
                let seen = rest.len().min(16);
                expected[..seen].copy_from_slice(&rest[..seen]);
                assert_eq!(double_word(&text[..length], at).to_le_bytes(), expected, "{length} {at}");
                assert_eq!(word(&text[..length], at).to_le_bytes(), expected[..8], "{length} {at}");
            }
        }
    }

    #[test]
    fn digits_are_counted_and_read() {
        for value in [0_u64, 5, 10, 99, 120, 15487, 99_999_999, 12_345_678, 1_000_000] {
            for (tail, what) in
                [(" [ns]abc", "blank"), ("/0000000", "/"), (":9999999", ":"), ("\u{0}", "NUL")]
            {
                let printed = value.to_string();
                let text = format!("{printed}{tail}");
                assert_eq!(digits(word(text.as_bytes(), 0)), (printed.len(), value), "{value} before {what}");
            }
        }
        assert_eq!(digits(word(b"x1234567", 0)).0, 0);
        assert_eq!(digits(word(b"12\xb34567", 0)), (2, 12));
        assert_eq!(digits(word(b"00000012", 0)), (8, 12));
        for byte in 0..=u8::MAX {
            assert_eq!(digits(u64::from(byte)).0, usize::from(byte.is_ascii_digit()), "{byte}");
        }
    }

    #[test]
    fn places_are_found() {
        let text = double_word(b"a pid=1 pid=7 ..", 0);
        let mut places = places_of(text, b' ');
        let mut found = Vec::new();
        while places != 0 {
            found.push(places.trailing_zeros() / 8);
            places &= places - 1;
        }
        assert_eq!(found, [1, 7, 13]);
        assert_eq!(place_of(word(b"dNh2. 12", 0), b' '), 5);
        assert_eq!(place_of(word(b"dNh2.xyz", 0), b' '), 8);
        assert_eq!(run_of(word(b"     [00", 0), b' '), 5);
        assert_eq!(run_of(word(b"[000]   ", 0), b' '), 0);
    }
}
