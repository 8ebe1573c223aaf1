//! Time stamps: `1555.069808`, `1555.069807574`, or a bare count of clock ticks; and the clock that turns ticks into
//! nanoseconds.
//!
//! Must not know: where in a line a stamp stands.

use fairlab_event::Ns;

use super::cursor::LineCursor;

/// A time stamp as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrintedStamp {
    /// Seconds with a fraction (clocks local, global, mono, boot): exact in nanoseconds.
    Time(Ns),
    /// A bare integer (clocks x86-tsc, counter).
    Ticks(u64),
}

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Reads a stamp; digits beyond the ninth are dropped. `None` when none is next or it does not fit.
#[inline(always)]
pub(super) fn stamp(cursor: &mut LineCursor<'_>) -> Option<PrintedStamp> {
    let whole = cursor.unsigned()?;
    if cursor.byte(b'.').is_none() {
        return Some(PrintedStamp::Ticks(whole));
    }
    let start = cursor.passed();
    let fraction = cursor.unsigned()?;
    let nanoseconds = match cursor.passed() - start {
        6 => fraction * 1_000,
        9 => fraction,
        digits @ 1..9 => fraction * 10_u64.pow(9 - digits as u32),
        digits @ 10..20 => fraction / 10_u64.pow(digits as u32 - 9),
        _ => return None,
    };
    Some(PrintedStamp::Time(Ns(whole.checked_mul(NS_PER_SECOND)?.checked_add(nanoseconds)?)))
}

/// How many nanoseconds `ticks` of a clock of `hz` ticks a second are, rounded down; the largest time when too many.
///
/// Seconds and the remainder are scaled apart, so that only clocks above 18 GHz need 128-bit arithmetic.
pub(super) fn ticks_to_ns(ticks: u64, hz: u64) -> Ns {
    debug_assert!(hz > 0, "a clock that stands still");
    let (seconds, remainder) = (ticks / hz, ticks % hz);
    let part = match remainder.checked_mul(NS_PER_SECOND) {
        Some(scaled) => scaled / hz,
        // The quotient is below NS_PER_SECOND since remainder < hz.
        None => (u128::from(remainder) * u128::from(NS_PER_SECOND) / u128::from(hz)) as u64,
    };
    Ns(seconds.saturating_mul(NS_PER_SECOND).saturating_add(part))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn read(text: &str) -> Option<PrintedStamp> {
        stamp(&mut LineCursor::new(text.as_bytes(), &Cell::new(0)))
    }

    #[test]
    fn stamps_are_exact_in_every_precision() {
        assert_eq!(read("1555.069808"), Some(PrintedStamp::Time(Ns(1_555_069_808_000))));
        assert_eq!(read("1555.069807574"), Some(PrintedStamp::Time(Ns(1_555_069_807_574))));
        assert_eq!(read("0.5"), Some(PrintedStamp::Time(Ns(500_000_000))));
        assert_eq!(read("0.0695"), Some(PrintedStamp::Time(Ns(69_500_000))));
        assert_eq!(read("1.000000000999"), Some(PrintedStamp::Time(Ns(1_000_000_000))));
        assert_eq!(read("4666290303"), Some(PrintedStamp::Ticks(4_666_290_303)));
        assert_eq!(read("18446744073.709551615"), Some(PrintedStamp::Time(Ns::MAX)));
    }

    #[test]
    fn what_does_not_fit_is_no_stamp() {
        for text in ["18446744073.709551616", "99999999999.0", "1.", ".5", "x", "", "1.00000000000000000001"]
        {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn ticks_become_nanoseconds_without_rounding_up() {
        assert_eq!(ticks_to_ns(4_666_290_303, 1_000_000_000), Ns(4_666_290_303));
        assert_eq!(ticks_to_ns(2_596_134_001, 2_596_134_000), Ns(1_000_000_000));
        assert_eq!(ticks_to_ns(2_596_134_003, 2_596_134_000), Ns(1_000_000_001));
        assert_eq!(ticks_to_ns(u64::MAX, 1), Ns::MAX);
        for (ticks, hz) in
            [(u64::MAX, u64::MAX), (u64::MAX - 7, 3_000_000_001), (u64::MAX, 20_000_000_000), (5, 7)]
        {
            let exact = u128::from(ticks) * 1_000_000_000 / u128::from(hz);
            assert_eq!(u128::from(ticks_to_ns(ticks, hz).0), exact, "{ticks} at {hz}");
        }
    }
}
