//! Numbers as people read and write them.

use fairlab_analysis::who::plain;
use fairlab_event::{Cpu, Ns};

/// Reads a time to settle: a duration of up to an hour, or 0.
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
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    let share = number.parse::<f64>().ok().map(|number| number / scale);
    share
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| "a share lies between 0 and 1: 1%, 0.01".to_string())
}

/// CPU numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(pub Vec<Cpu>);

/// Reads CPU numbers and ranges between commas: `0,2-5`.
pub fn parse_cpus(text: &str) -> Result<CpuList, String> {
    let number = |word: &str| word.parse::<u32>().ok().filter(|&cpu| cpu < CPUS_MAX);
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let range = match part.split_once('-') {
            Some((first, last)) => number(first).zip(number(last)),
            None => number(part).map(|cpu| (cpu, cpu)),
        };
        let Some((first, last)) = range.filter(|(first, last)| first <= last) else {
            return Err(format!("'{part}' is no CPU number or range; a list is numbers and ranges: 0,2-5"));
        };
        cpus.extend((first..=last).map(Cpu));
    }
    Ok(CpuList(cpus))
}

/// Sets of CPUs that have none in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSets(pub Vec<Vec<Cpu>>);

/// Reads sets of CPUs between commas, ranges of one set joined by `+`: `0-3+8-11,4-7+12-15`.
pub fn parse_cpu_sets(text: &str) -> Result<CpuSets, String> {
    let sets: Vec<Vec<Cpu>> = text
        .split(',')
        .map(|set| parse_cpus(&set.replace('+', ",")).map(|list| list.0))
        .collect::<Result<_, _>>()?;
    let mut all: Vec<Cpu> = sets.concat();
    let count = all.len();
    all.sort();
    all.dedup();
    if all.len() < count {
        return Err("a CPU stands in two sets".to_string());
    }
    Ok(CpuSets(sets))
}

/// No kernel has more CPUs.
const CPUS_MAX: u32 = 1 << 13;

/// A stretch of a trace; an end that was left out is open.
pub type Window = (Option<Ns>, Option<Ns>);

/// Reads `START,STOP` in seconds of the trace's clock.
pub fn parse_window(text: &str) -> Result<Window, String> {
    let end = |word: &str| match word {
        "" => Ok(None),
        _ => seconds(word).map(Some).ok_or_else(|| format!("'{word}' is no time in seconds")),
    };
    let (start, stop) = text.split_once(',').unwrap_or((text, ""));
    let (start, stop) = (end(start)?, end(stop)?);
    match (start, stop) {
        (Some(start), Some(stop)) if stop < start => Err("the stretch ends before it begins".to_string()),
        window => Ok(window),
    }
}

/// Seconds with up to nine digits behind the point.
fn seconds(word: &str) -> Option<Ns> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 9 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let nanoseconds = format!("{fraction:0<9}").parse::<u64>().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds).map(Ns)
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
    let name = plain(name);
    if name.contains("_ns_") || name.ends_with("_ns") {
        duration(value)
    } else if name.contains("_us_") || name.ends_with("_us") {
        duration(value * 1e3)
    } else if name.ends_with("_share") {
        format!("{} %", significant(value * 100.0))
    } else if name.ends_with("_per_work") {
        format!("{} each", significant(value))
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

    #[test]
    fn cpus_and_windows_are_read_as_perf_reads_them() {
        let cpus = |text| parse_cpus(text).map(|list| list.0.iter().map(|cpu| cpu.0).collect::<Vec<_>>());
        assert_eq!(cpus("0,2-5"), Ok(vec![0, 2, 3, 4, 5]));
        for text in ["", "a", "5-2", "1,,2", "0-99999", "-1"] {
            assert!(cpus(text).is_err(), "{text}");
        }
        let sets = |text| parse_cpu_sets(text).map(|sets| sets.0.iter().map(Vec::len).collect::<Vec<_>>());
        assert_eq!(sets("0-3+8,4-7"), Ok(vec![5, 4]));
        assert!(sets("0-3,3-5").is_err() && sets("0-3,").is_err());
        let time =
            |text| parse_window(text).map(|(start, stop)| [start, stop].map(|end| end.map(|end| end.0)));
        assert_eq!(time("1.5,2"), Ok([Some(1_500_000_000), Some(2_000_000_000)]));
        assert_eq!(time(",0.000000001"), Ok([None, Some(1)]));
        assert_eq!(time("3,"), Ok([Some(3_000_000_000), None]));
        assert_eq!(time("3"), time("3,"));
        for text in ["2,1", "x", "1.5s,", ".5,", "1.0000000000", "99999999999999,"] {
            assert!(time(text).is_err(), "{text}");
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
