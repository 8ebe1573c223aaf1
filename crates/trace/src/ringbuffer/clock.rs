//! Raw time stamps to nanoseconds.
//!
//! Must not know: where the file says what its clock was.

use fairlab_event::Ns;

use crate::{ImportStats, ReadOptions, Trouble};

/// How the stamps of a trace become nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceClock {
    scale: ClockScale,
    /// Added at last, ns.
    offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockScale {
    /// Stamps are nanoseconds.
    One,
    /// Ticks of a known rate.
    Rate { hz: u64 },
    /// Ticks that the recorder measured: multiplied, then shifted to the right.
    Measured { mult: u32, shift: u32 },
}

/// What a file says about its clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockFacts {
    /// The clock's name in `trace_clock`; empty when not said, which is `local`.
    pub(crate) name: String,
    /// `TSC2NSEC`: multiplier and shift.
    pub(crate) measured: Option<(u32, u32)>,
    /// What is to be added, ns.
    pub(crate) offset: i64,
}

impl ClockFacts {
    /// The selected clock in the text of `trace_clock`: the one in brackets; a lone name as it is.
    pub(crate) fn selected(trace_clock: &str) -> &str {
        let inside = trace_clock.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        inside
            .map_or(trace_clock, |(name, _)| name)
            .trim_matches(|byte: char| byte.is_whitespace() || byte == '\0')
    }

    /// Whether the stamps are no nanoseconds. Kernel: `trace_clocks`, kernel/trace/trace.c, those without `in_ns`.
    fn counts_ticks(&self) -> bool {
        matches!(self.name.as_str(), "counter" | "uptime" | "x86-tsc" | "ppc-tb" | "tick" | "s390-tod")
    }
}

impl TraceClock {
    /// The clock that `facts` describe. A rate given in `options` is used where the file does not know it.
    pub(crate) fn new(facts: &ClockFacts, options: &ReadOptions, stats: &mut ImportStats) -> TraceClock {
        const SHIFT_MAX: u32 = 64;
        let scale = match (facts.measured, options.clock_hz) {
            (Some((mult @ 1.., shift @ ..SHIFT_MAX)), _) => ClockScale::Measured { mult, shift },
            // Where nothing names the clock, whoever gives its rate knows it.
            (_, Some(hz @ 1..)) if facts.counts_ticks() || facts.name.is_empty() => ClockScale::Rate { hz },
            _ => {
                if facts.counts_ticks() {
                    stats.add(Trouble::ClockRateGuessed, 1, 0);
                }
                ClockScale::One
            }
        };
        TraceClock { scale, offset: facts.offset }
    }

    /// The time that `stamp` means.
    #[inline]
    pub(crate) fn ns(&self, stamp: u64) -> Ns {
        let scaled = match self.scale {
            ClockScale::One => stamp,
            ClockScale::Rate { hz } => {
                u64::try_from(u128::from(stamp) * 1_000_000_000 / u128::from(hz)).unwrap_or(u64::MAX)
            }
            ClockScale::Measured { mult, shift } => {
                u64::try_from((u128::from(stamp) * u128::from(mult)) >> shift).unwrap_or(u64::MAX)
            }
        };
        Ns(scaled.saturating_add_signed(self.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(name: &str, measured: Option<(u32, u32)>, offset: i64, hz: Option<u64>) -> (TraceClock, u64) {
        let facts = ClockFacts { name: name.to_string(), measured, offset };
        let mut stats = ImportStats::default();
        let clock =
            TraceClock::new(&facts, &ReadOptions { clock_hz: hz, ..ReadOptions::default() }, &mut stats);
        (clock, stats.count(Trouble::ClockRateGuessed))
    }

    #[test]
    fn stamps_become_nanoseconds() {
        let ns = |(clock, guessed): (TraceClock, u64), stamp| (clock.ns(stamp).0, guessed);
        assert_eq!(ns(clock("local", None, 5, Some(1000)), 7), (12, 0));
        assert_eq!(ns(clock("", None, -9, None), 7), (0, 0));
        assert_eq!(ns(clock("", None, 0, Some(2_000_000_000)), 8), (4, 0));
        assert_eq!(ns(clock("x86-tsc", None, 0, None), 7), (7, 1));
        assert_eq!(ns(clock("x86-tsc", None, 1, Some(2_000_000_000)), 8), (5, 0));
        assert_eq!(ns(clock("x86-tsc", Some((3 << 20, 21)), 1, Some(7)), 8), (13, 0));
        assert_eq!(ns(clock("x86-tsc", Some((0, 21)), 0, None), 8), (8, 1));
        assert_eq!(ns(clock("x86-tsc", Some((1, u32::MAX)), 0, None), 8), (8, 1));
        assert_eq!(ns(clock("x86-tsc", Some((u32::MAX, 0)), 1, None), u64::MAX), (u64::MAX, 0));
        assert_eq!(ns(clock("counter", None, 0, Some(1)), u64::MAX), (u64::MAX, 0));
    }

    #[test]
    fn the_selected_clock_stands_in_brackets() {
        assert_eq!(ClockFacts::selected("local global [x86-tsc] mono\n"), "x86-tsc");
        assert_eq!(ClockFacts::selected("[local] global counter\n\0"), "local");
        assert_eq!(ClockFacts::selected("mono\n"), "mono");
        assert_eq!(ClockFacts::selected("[x"), "[x");
        assert_eq!(ClockFacts::selected(""), "");
    }
}
