//! A stretch of time, as it is said and printed.
//!
//! Must not know: what lies in it.

use std::fmt;
use std::str::FromStr;

use fairlab_event::Ns;

/// From one time to another, both in it, on a trace's clock; an end that is left out is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// What is before has no part in it, ns.
    pub from: Option<Ns>,
    /// What is after has none, ns.
    pub to: Option<Ns>,
}

impl TimeRange {
    /// Whether all times lie in it.
    pub const fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Whether a time lies in it.
    pub fn has(&self, time: Ns) -> bool {
        self.from.is_none_or(|from| time >= from) && self.to.is_none_or(|to| time <= to)
    }

    /// How much of what lasted from `since` to `until` lies in it.
    pub fn part(&self, since: Ns, until: Ns) -> Ns {
        let since = self.from.map_or(since, |from| since.max(from));
        let until = self.to.map_or(until, |to| until.min(to));
        until.since(since)
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |time: Option<Ns>| time.map_or(String::new(), |time| ExactSeconds(time).to_string());
        write!(f, "{}..{}", end(self.from), end(self.to))
    }
}

/// A time in seconds, with as many digits as it takes: `12.5s`.
pub(super) struct ExactSeconds(pub(super) Ns);

impl fmt::Display for ExactSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0.0 / 1_000_000_000, self.0.0 % 1_000_000_000);
        match rest {
            0 => write!(f, "{whole}s"),
            _ => write!(f, "{whole}.{}s", format!("{rest:09}").trim_end_matches('0')),
        }
    }
}

impl FromStr for TimeRange {
    type Err = String;

    /// Reads `FROM..TO`, or `FROM,TO` as perf has it. A number is seconds; `s`, `ms`, `us`, `ns` may stand behind it.
    fn from_str(text: &str) -> Result<TimeRange, String> {
        let (from, to) = text.split_once("..").or_else(|| text.split_once(',')).unwrap_or((text, ""));
        let end = |word: &str| {
            match word.trim() {
            "" => Ok(None),
            word => time(word).map(Some).ok_or_else(|| {
                format!("'{word}' is no time: say seconds of the trace's clock (12.5), or a number with s, ms, us, ns")
            }),
        }
        };
        match (end(from)?, end(to)?) {
            (None, None) => Err("a stretch is FROM..TO, one of which may be left out: 10s..60s".to_string()),
            (Some(from), Some(to)) if to < from => Err("the stretch ends before it begins".to_string()),
            (from, to) => Ok(TimeRange { from, to }),
        }
    }
}

/// A number with at most nine digits behind the point, in seconds unless it says otherwise.
fn time(word: &str) -> Option<Ns> {
    let number = word.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let places = match &word[number.len()..] {
        "" | "s" => 9,
        "ms" => 6,
        "us" => 3,
        "ns" => 0,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let has_fraction = number.contains('.');
    let fits = fraction.len() <= places && has_fraction != fraction.is_empty();
    if whole.is_empty() || !fits || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let fraction = format!("{fraction:0<places$}");
    let rest = if fraction.is_empty() { 0 } else { fraction.parse::<u64>().ok()? };
    whole.parse::<u64>().ok()?.checked_mul(10_u64.pow(places as u32))?.checked_add(rest).map(Ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_read_in_seconds_or_by_unit() {
        let of = |text: &str| {
            text.parse().map(|TimeRange { from, to }| [from, to].map(|end| end.map(|end| end.0)))
        };
        assert_eq!(of("10s..60s"), Ok([Some(10_000_000_000), Some(60_000_000_000)]));
        assert_eq!(of("1.5..2"), Ok([Some(1_500_000_000), Some(2_000_000_000)]));
        assert_eq!(of("1.5,2"), of("1.5..2"));
        assert_eq!(of(",0.000000001"), Ok([None, Some(1)]));
        assert_eq!(of("..1500us"), Ok([None, Some(1_500_000)]));
        assert_eq!(of("0..0.5ms"), Ok([Some(0), Some(500_000)]));
        assert_eq!(of("17ns.."), Ok([Some(17), None]));
        assert_eq!((of("3"), of("3,")), (of("3.."), of("3..")));
        for text in [
            "",
            "..",
            ",",
            "2..1",
            "2,1",
            "x",
            ".5..",
            "1...2",
            "1m..2m",
            "1.0000000000",
            "1.5ns..",
            "-1..2",
            "99999999999999..",
            "1e3..",
            "1.s..",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn it_is_printed_as_it_is_read() {
        for text in ["10s..60.25s", "..0.000000001s", "3s.."] {
            assert_eq!(text.parse::<TimeRange>().map(|stretch| stretch.to_string()), Ok(text.to_string()));
        }
    }

    #[test]
    fn of_what_lasts_a_part_lies_in_it() {
        let stretch = TimeRange { from: Some(Ns(10)), to: Some(Ns(20)) };
        for (since, until, part) in
            [(0, 9, 0), (0, 12, 2), (12, 15, 3), (15, 30, 5), (0, 30, 10), (25, 30, 0)]
        {
            assert_eq!(stretch.part(Ns(since), Ns(until)), Ns(part), "{since} {until}");
        }
        assert!(stretch.has(Ns(10)) && stretch.has(Ns(20)) && !stretch.has(Ns(9)) && !stretch.has(Ns(21)));
    }
}
