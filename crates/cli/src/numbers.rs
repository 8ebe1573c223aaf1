//! Numbers as people read and write them.

use fairlab_analysis::task_selector::plain;
use fairlab_event::Cpu;
pub use fairlab_files::quantities::{parse_duration, parse_share, parse_warmup};

/// Reads a share that is to be reached: `99%` or `0.99`, above 0, up to 1.
pub fn parse_floor(text: &str) -> Result<f64, String> {
    match text.trim() {
        "100%" | "1" => Ok(1.0),
        other => parse_share(other),
    }
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

/// From this ratio on a change is told in times, not in percent.
const IN_TIMES: f64 = 2.0;

/// How something compares with `other`, as people say it: `91 % lower (62 to 98 %) than v6.5's`, `3.20 times (2.50 to 4.10) v6.5's`.
pub fn change(ratio: f64, ends: Option<(f64, f64)>, other: &str) -> String {
    if ratio >= IN_TIMES {
        let ends = ends
            .map_or(String::new(), |(low, high)| format!(" ({} to {})", significant(low), significant(high)));
        return format!("{} times{ends} {other}'s", significant(ratio));
    }
    let way = |ratio: f64| if ratio < 1.0 { "lower" } else { "higher" };
    let percent = |ratio: f64| significant(((ratio - 1.0) * 100.0).abs());
    let ends = ends.map_or(String::new(), |(low, high)| match (low < 1.0) == (high < 1.0) {
        true if low < 1.0 => format!(" ({} to {} %)", percent(high), percent(low)),
        true => format!(" ({} to {} %)", percent(low), percent(high)),
        false => format!(" ({} % lower to {} % higher)", percent(low), percent(high)),
    });
    match percent(ratio).as_str() {
        "0" => format!("as {other}'s{ends}"),
        size => format!("{size} % {}{ends} than {other}'s", way(ratio)),
    }
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

/// A share that somebody chose, in percent and as short as it was chosen.
pub fn chosen_percent(share: f64) -> String {
    let digits = format!("{:.2}", share * 100.0);
    digits.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_share_is_as_short_as_it_was_chosen() {
        assert_eq!([0.05, 0.07, 0.005, 1.0].map(chosen_percent), ["5", "7", "0.5", "100"]);
    }

    #[test]
    fn changes_are_told_as_people_say_them() {
        let told = |ratio, low, high| change(ratio, Some((low, high)), "v6.5");
        assert_eq!(told(0.086, 0.019, 0.378), "91.4 % lower (62.2 to 98.1 %) than v6.5's");
        assert_eq!(told(1.25, 1.1, 1.5), "25.0 % higher (10.0 to 50.0 %) than v6.5's");
        assert_eq!(told(0.9, 0.5, 1.2), "10.0 % lower (50.0 % lower to 20.0 % higher) than v6.5's");
        assert_eq!(told(8.3, 2.19, 31.4), "8.30 times (2.19 to 31.4) v6.5's");
        assert_eq!(told(1.0, 1.0, 1.0), "as v6.5's (0 to 0 %)");
        assert_eq!(change(0.5, None, "v6.5"), "50.0 % lower than v6.5's");
    }

    #[test]
    fn cpus_are_read_as_perf_reads_them() {
        let cpus = |text| parse_cpus(text).map(|list| list.0.iter().map(|cpu| cpu.0).collect::<Vec<_>>());
        assert_eq!(cpus("0,2-5"), Ok(vec![0, 2, 3, 4, 5]));
        for text in ["", "a", "5-2", "1,,2", "0-99999", "-1"] {
            assert!(cpus(text).is_err(), "{text}");
        }
        let sets = |text| parse_cpu_sets(text).map(|sets| sets.0.iter().map(Vec::len).collect::<Vec<_>>());
        assert_eq!(sets("0-3+8,4-7"), Ok(vec![5, 4]));
        assert!(sets("0-3,3-5").is_err() && sets("0-3,").is_err());
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
