//! Numbers as people read and write them.

use fairlab_analysis::who::plain;
use fairlab_event::{Cpu, Ns};
pub use fairlab_lab::quantities::{parse_duration, parse_share, parse_warmup};

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
