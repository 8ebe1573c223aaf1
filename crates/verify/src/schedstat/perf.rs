//! What `perf sched stats record` keeps: two readings of `/proc/schedstat` as records of a perf.data.
//!
//! Facts: tools/lib/perf/include/perf/event.h and schedstat-v15.h to v17, from Linux 7.0, and files of perf 7.2 and 7.3. A record has
//! its line's counters in their order, and no mask of CPUs: a feature behind the records has those of domains. Without it,
//! domains are told apart by their numbers.
//!
//! Must not know: what the counters are compared with.

use std::collections::BTreeMap;

use super::file::{OF_A_CPU, Schedstat, SchedstatLine, SchedstatScope, domain_names, span_of};

const MAGIC: &[u8] = b"PERFILE2";
/// Where the header says where records are.
const DATA_AT: usize = 40;
const HEAD: usize = 8;
/// Where the header's bits of features are, and that of `HEADER_CPU_DOMAIN_INFO`.
const FEATURES_AT: usize = 72;
const DOMAINS: usize = 32;
/// `PERF_RECORD_SCHEDSTAT_CPU` and `PERF_RECORD_SCHEDSTAT_DOMAIN`.
const OF_CPU: u32 = 85;
const OF_DOMAIN: u32 = 86;
/// Behind a record's head: time, CPU, version, domain; then the counters.
const CPU_AT: usize = 16;
const VERSION_AT: usize = 20;
const DOMAIN_AT: usize = 22;
const COUNTERS_AT: usize = 24;
/// The first counters of a CPU have 32 bits, the last three 64.
const NARROW: usize = 6;

/// Whether a file may be one of these.
pub(super) fn is_it(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The readings in the order of the file: before and after, or one.
///
/// # Errors
/// There is none, or a record is not as its version has it; with its byte.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Schedstat>, String> {
    let word =
        |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes);
    let place =
        |at: usize| word(at).and_then(|place| usize::try_from(place).ok()).ok_or("it ends within its header");
    let (mut at, size) = (place(DATA_AT)?, place(DATA_AT + 8)?);
    let end = at.saturating_add(size).min(bytes.len());
    let spans = spans(bytes, end).unwrap_or_default();
    let mut readings: Vec<Schedstat> = Vec::new();
    // How often each place was read.
    let mut seen: BTreeMap<SchedstatScope, usize> = BTreeMap::new();
    while at < end {
        let record = &bytes[at..end];
        let length = record.get(6..8).map_or(0, |size| usize::from(u16::from_le_bytes([size[0], size[1]])));
        let Some(record) = record.get(..length).filter(|_| length >= HEAD) else {
            return Err(format!("no whole record stands at byte {at}"));
        };
        if let Some((stat, place, line)) =
            line_of(record, &spans).map_err(|fact| format!("byte {at}: {fact}"))?
        {
            let turn = seen.entry(place.clone()).or_default();
            if readings.len() <= *turn {
                readings.push(stat);
            }
            readings[*turn].lines.insert(place, line);
            *turn += 1;
        }
        at += length;
    }
    if readings.is_empty() { Err("it has no counters of /proc/schedstat".to_string()) } else { Ok(readings) }
}

/// The CPUs of each CPU's domains by their numbers, if the file tells them.
///
/// The feature has the version and the greatest number of domains. Then follow each CPU and how many domains it has. A domain
/// has its number, its name from version 17 on, and its CPUs as a mask and as a list.
fn spans(bytes: &[u8], end_of_records: usize) -> Option<BTreeMap<(u32, u32), String>> {
    let bit = |index: usize| Some(bytes.get(FEATURES_AT + index / 8)? >> (index % 8) & 1 != 0);
    let before = (0..DOMAINS).filter(|&index| bit(index) == Some(true)).count();
    bit(DOMAINS)?.then_some(())?;
    let place = |at: usize| -> Option<usize> {
        usize::try_from(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?)).ok()
    };
    let entry = end_of_records + 16 * before;
    let (start, size) = (place(entry)?, place(entry + 8)?);
    let mut rest = bytes.get(start..start.checked_add(size)?)?;
    let number = |rest: &mut &[u8]| {
        let (word, behind) = rest.split_first_chunk::<4>()?;
        *rest = behind;
        Some(u32::from_le_bytes(*word))
    };
    let text = |rest: &mut &[u8]| {
        let length = number(rest)? as usize;
        let (text, behind) = rest.split_at_checked(length)?;
        *rest = behind;
        let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Some(String::from_utf8_lossy(&text[..length]).into_owned())
    };
    let (version, _most) = (number(&mut rest)?, number(&mut rest)?);
    let mut spans = BTreeMap::new();
    while !rest.is_empty() {
        let (cpu, domains) = (number(&mut rest)?, number(&mut rest)?);
        for _ in 0..domains {
            let level = number(&mut rest)?;
            if version >= 17 {
                text(&mut rest)?;
            }
            spans.insert((cpu, level), span_of(&text(&mut rest)?)?);
            text(&mut rest)?;
        }
    }
    Some(spans)
}

/// The line that a record has, and a reading of its version and time without lines.
fn line_of(
    record: &[u8],
    spans: &BTreeMap<(u32, u32), String>,
) -> Result<Option<(Schedstat, SchedstatScope, SchedstatLine)>, String> {
    let short = || "the record is too short".to_string();
    let number = |at: usize, size: usize| -> Option<u64> {
        let bytes = record.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    };
    let kind = number(0, 4).ok_or_else(short)?;
    if kind != u64::from(OF_CPU) && kind != u64::from(OF_DOMAIN) {
        return Ok(None);
    }
    let of = |at, size| number(at, size).ok_or_else(short);
    let (time, version) = (of(HEAD, 8)?, of(VERSION_AT, 2)? as u32);
    if !(15..=17).contains(&version) {
        return Err(format!("version {version} is not known; known are 15 to 17"));
    }
    let cpu = of(CPU_AT, 4)? as u32;
    let is_domain = kind == u64::from(OF_DOMAIN);
    let names = if is_domain { domain_names(version) } else { OF_A_CPU.map(str::to_string).to_vec() };
    let mut at = COUNTERS_AT;
    let mut counters = Vec::with_capacity(names.len());
    for (index, name) in names.into_iter().enumerate() {
        let size = if is_domain || index < NARROW { 4 } else { 8 };
        counters.push((name, of(at, size)?));
        at += size;
    }
    let level = if is_domain { Some(of(DOMAIN_AT, 2)? as u32) } else { None };
    let span = |level: u32| spans.get(&(cpu, level)).cloned().unwrap_or_else(|| format!("number {level}"));
    let place = SchedstatScope { cpu, span: level.map(span) };
    let stat = Schedstat { version, timestamp: time, lines: BTreeMap::new() };
    Ok(Some((stat, place, SchedstatLine { level, counters })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, cpu: u32, domain: u16, time: u64, counters: &[u8]) -> Vec<u8> {
        let size = (COUNTERS_AT + counters.len()).next_multiple_of(8);
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend((size as u16).to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend(cpu.to_le_bytes());
        bytes.extend(16_u16.to_le_bytes());
        bytes.extend(domain.to_le_bytes());
        bytes.extend(counters);
        bytes.resize(size, 0);
        bytes
    }

    fn file(records: &[Vec<u8>]) -> Vec<u8> {
        let data = records.concat();
        let mut bytes = MAGIC.to_vec();
        bytes.resize(104, 0);
        bytes[DATA_AT..DATA_AT + 8].copy_from_slice(&104_u64.to_le_bytes());
        bytes[DATA_AT + 8..DATA_AT + 16].copy_from_slice(&(data.len() as u64).to_le_bytes());
        bytes.extend(data);
        bytes
    }

    /// Of a CPU: 1 to 6 and 7 to 9, each `more`.
    fn of_cpu(more: u32) -> Vec<u8> {
        let narrow = (1..=6).flat_map(|value: u32| (value + more).to_le_bytes());
        let wide = (7..=9).flat_map(|value: u64| (value + u64::from(more)).to_le_bytes());
        narrow.chain(wide).collect()
    }

    fn of_domain(more: u32) -> Vec<u8> {
        (0..36).flat_map(|value: u32| (value + more).to_le_bytes()).collect()
    }

    #[test]
    fn two_readings_are_told_apart() {
        let reading = |time, more| {
            [record(OF_CPU, 3, 0, time, &of_cpu(more)), record(OF_DOMAIN, 3, 1, time, &of_domain(more))]
                .concat()
        };
        let readings =
            read(&file(&[reading(100, 0), record(68, 0, 0, 0, &[]), reading(150, 5)])).expect("readings");
        let [before, after] = &readings[..] else { panic!("two readings") };
        let counted = after.since(before).expect("one kernel");
        assert_eq!((before.timestamp, after.timestamp, counted.lines.len()), (100, 150, 2));
        assert!(counted.lines.values().flat_map(|line| &line.counters).all(|(_, count)| *count == 5));
        let domain = SchedstatScope { cpu: 3, span: Some("number 1".to_string()) };
        assert_eq!(before.lines[&domain].counters[0], ("busy lb_count".to_string(), 0));
    }

    /// As perf 7.3 writes it, its strings with less padding.
    fn with_domains(mut file: Vec<u8>, version: u32, mask: &str) -> Vec<u8> {
        let text = |text: &str| {
            let padded = (text.len() + 1).next_multiple_of(4);
            let mut bytes = (padded as u32).to_le_bytes().to_vec();
            bytes.extend(text.as_bytes());
            bytes.resize(4 + padded, 0);
            bytes
        };
        let name = if version >= 17 { text("MC") } else { Vec::new() };
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let section = [words(&[version, 1, 3, 1, 1]), name, text(mask), text("0-3")].concat();
        file[FEATURES_AT..FEATURES_AT + 5].copy_from_slice(&[1 << 3, 0, 0, 0, 1]);
        let at = file.len() as u64 + 32;
        let places = [[0, 0], [at, section.len() as u64]].concat();
        file.extend(places.iter().flat_map(|place| place.to_le_bytes()));
        [file, section].concat()
    }

    #[test]
    fn domains_have_the_cpus_that_the_file_tells() {
        let records = [record(OF_CPU, 3, 0, 9, &of_cpu(0)), record(OF_DOMAIN, 3, 1, 9, &of_domain(0))];
        for (version, mask, span) in [(16, "00000000,0000000f", "f"), (17, "f", "f"), (16, "x", "number 1")] {
            let whole = with_domains(file(&records), version, mask);
            let of = |bytes: &[u8]| {
                let readings = read(bytes).expect("a reading");
                readings[0].lines.keys().filter_map(|scope| scope.span.clone()).collect::<Vec<_>>()
            };
            assert_eq!(of(&whole), [span], "{version} {mask}");
            for cut in file(&records).len()..whole.len() {
                assert_eq!(of(&whole[..cut]), ["number 1"], "{version} {mask} {cut}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_byte() {
        let good = file(&[record(OF_CPU, 0, 0, 1, &of_cpu(0))]);
        assert_eq!(read(&good[..30]).expect_err("cut"), "it ends within its header");
        assert_eq!(read(&good[..110]).expect_err("cut"), "no whole record stands at byte 104");
        assert_eq!(read(&file(&[])).expect_err("none"), "it has no counters of /proc/schedstat");
        let mut old = good.clone();
        old[104 + VERSION_AT] = 14;
        assert_eq!(read(&old).expect_err("old"), "byte 104: version 14 is not known; known are 15 to 17");
        assert_eq!(
            read(&file(&[record(OF_CPU, 0, 0, 1, &[])])).expect_err("short"),
            "byte 104: the record is too short"
        );
        for at in 0..good.len() {
            let mut damaged = good.clone();
            damaged[at] ^= 0xff;
            let _ = read(&damaged);
        }
    }
}
