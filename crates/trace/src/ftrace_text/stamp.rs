//! Time stamps: `1555.069808`, `1555.069807574`, or a bare count of clock ticks.
//!
//! Must not know: where in a line a stamp stands.

use fairlab_event::Ns;

use super::cursor::LineCursor;

/// A time stamp as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrintedStamp {
    /// Seconds with a fraction (clocks of nanoseconds): exact in nanoseconds.
    Time(Ns),
    /// A bare integer (clocks x86-tsc, uptime, counter, and boot as trace-cmd prints it).
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
}
