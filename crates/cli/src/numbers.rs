//! Numbers as people read and write them.

use fairlab_event::Ns;

/// Reads a duration: a number with `ns`, `us`, `ms`, `s`, `m` or `h`.
pub fn parse_duration(text: &str) -> Result<Ns, String> {
    let digits =
        text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err("a duration is a number with a unit, such as 500ms, 30s or 2m".to_string()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let nanoseconds = || {
        let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
        let places = u32::try_from(fraction.len()).ok()?;
        let part =
            u128::from(fraction.parse::<u64>().ok()?) * u128::from(scale) / 10_u128.checked_pow(places)?;
        whole.checked_add(u64::try_from(part).ok()?)
    };
    match nanoseconds() {
        Some(0) => Err("a duration must be longer than nothing".to_string()),
        Some(duration) if duration <= MAX_DURATION.0 => Ok(Ns(duration)),
        _ => Err(format!("'{text}' is no duration of up to a year")),
    }
}

/// Keeps virtual time far from the end of its 64 bits.
const MAX_DURATION: Ns = Ns::from_secs(365 * 24 * 3600);

/// A duration with three or four significant digits in a unit that fits.
pub fn duration(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds.abs() {
        size if size < 999.5 => (nanoseconds, "ns"),
        size if size < 999.5e3 => (nanoseconds / 1e3, "us"),
        size if size < 999.5e6 => (nanoseconds / 1e6, "ms"),
        _ => (nanoseconds / 1e9, "s"),
    };
    format!("{} {unit}", significant(value))
}

/// A metric's value by its name's unit.
pub fn metric(name: &str, value: f64) -> String {
    if name.contains("_ns_") || name.ends_with("_ns") {
        duration(value)
    } else if name.contains("_us_") || name.ends_with("_us") {
        duration(value * 1e3)
    } else if name.ends_with("_share") {
        format!("{} %", significant(value * 100.0))
    } else if name.ends_with("_per_s") {
        format!("{} /s", significant(value))
    } else {
        significant(value)
    }
}

/// Three significant digits; more when there are more before the point.
pub fn significant(value: f64) -> String {
    // The bounds are where rounding carries into the next digit.
    match value.abs() {
        0.0 => "0".to_string(),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        size if size >= 0.001 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        assert_eq!(parse_duration("30s"), Ok(Ns::from_secs(30)));
        assert_eq!(parse_duration("1.5ms"), Ok(Ns(1_500_000)));
        assert_eq!(parse_duration("2m"), Ok(Ns::from_secs(120)));
        for text in ["", "30", "s", "-1s", "0s", "1.s", "9999999h", "1e9s", "3 s", "99999999999999999999s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_printed_in_a_unit_that_fits() {
        assert_eq!(metric("wakeup_latency_ns_p99", 12_240_000.0), "12.2 ms");
        assert_eq!(metric("wakeup_latency_ns_max", 999_700.0), "1.00 ms");
        assert_eq!(metric("idle_share", 0.025), "2.50 %");
        assert_eq!(metric("switches_per_s", 1234.0), "1234 /s");
        assert_eq!(metric("throughput", 38.79), "38.8");
    }
}
