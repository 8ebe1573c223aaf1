//! Quantities as people write them: times with a unit, shares.
//!
//! Must not know: what they are quantities of.

use fairlab_event::Ns;

/// Keeps virtual time far from the end of its 64 bits.
const MAX_DURATION: Ns = Ns::from_secs(365 * 24 * 3600);

/// Reads a time to settle: a duration of up to an hour, or 0.
///
/// # Errors
/// It is none, in words.
pub fn parse_warmup(text: &str) -> Result<Ns, String> {
    const LONGEST: Ns = Ns::from_secs(3600);
    if text.trim_end_matches(|character: char| character.is_ascii_alphabetic()) == "0" {
        return Ok(Ns::ZERO);
    }
    match parse_duration(text)? {
        time if time <= LONGEST => Ok(time),
        _ => Err("no machine takes longer than an hour to settle".to_string()),
    }
}

/// Reads a duration: a number with `ns`, `us`, `ms`, `s`, `m` or `h`.
///
/// # Errors
/// It is none, or one of nothing or of more than a year, in words.
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

/// Reads a share: `1%` or `0.01`, above 0 and below 1.
///
/// # Errors
/// It is none, in words.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    let share = number.parse::<f64>().ok().map(|number| number / scale);
    share
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| "a share lies between 0 and 1: 1%, 0.01".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_settle_may_be_none() {
        assert_eq!((parse_warmup("0"), parse_warmup("0ms")), (Ok(Ns::ZERO), Ok(Ns::ZERO)));
        assert_eq!(parse_warmup("250ms"), Ok(Ns::from_ms(250)));
        assert!(parse_warmup("2h").is_err_and(|problem| problem.contains("an hour")));
        assert!(parse_warmup("5").is_err() && parse_warmup("soon").is_err());
    }

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
    fn shares_are_read_in_both_ways() {
        assert_eq!(
            (parse_share("5%"), parse_share("0.05"), parse_share("1 %")),
            (Ok(0.05), Ok(0.05), Ok(0.01))
        );
        for text in ["", "%", "0", "1", "100%", "-1%", "nan", "inf", "one"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }
}
