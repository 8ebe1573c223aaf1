//! What `/proc/schedstat` of two kernels counted, line by line.
//!
//! Domains that span equal CPUs are compared, whatever their numbers, and counters with equal names, wherever a version has
//! them. A line or counter that one side lacks is named once, and not compared.
//!
//! Must not know: whether a model or a real kernel counted.

mod file;
pub mod metrics;
mod perf;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fairlab_files::LabError;
use serde::Serialize;

use file::{KINDS, SUM};
pub use file::{Schedstat, SchedstatLine, SchedstatScope};

/// A kernel's counters, and when they were counted.
#[derive(Clone, Debug)]
pub struct SchedstatSample {
    /// The path that it was read from.
    pub name: String,
    /// Jiffies between the two readings that it is the difference of; `None` where it is one reading, since boot.
    pub jiffies: Option<u64>,
    stat: Schedstat,
}

/// One counter on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterRow {
    /// The CPU, or `None` for the sum over all that are compared.
    pub cpu: Option<u32>,
    /// The domain's number on the first side.
    #[serde(rename = "domain")]
    pub level: Option<u32>,
    /// The counter's name in the kernel's documentation.
    pub counter: String,
    /// What the two sides counted.
    pub counts: [u64; 2],
    /// The second side's count by the first's, for each jiffy where both sides say how many those were. `None` where the first
    /// counted nothing.
    pub ratio: Option<f64>,
}

/// What is known of one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SchedstatSideAnswer {
    /// The path that it was read from.
    pub name: String,
    /// The version of its format.
    pub version: u32,
    /// Jiffies between its two readings; `None` where it is one reading, since boot.
    pub jiffies: Option<u64>,
}

/// `fairlab/schedstat/1`: two files beside each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/schedstat/1")]
pub struct SchedstatComparison {
    /// The two sides.
    pub sides: [SchedstatSideAnswer; 2],
    /// Whether ratios are for each jiffy.
    pub by_jiffy: bool,
    /// What is compared: sums first, then CPUs in order.
    #[serde(rename = "counters")]
    pub rows: Vec<CounterRow>,
    /// What is not, and why; one line each.
    #[serde(rename = "not_compared")]
    pub left_out: Vec<String>,
}

/// Reads a file, a copy of `/proc/schedstat` or one of `perf sched stats record`; or a folder with `schedstat-before` and `schedstat-after` (a recording's), or with `schedstat.txt` (a run's).
///
/// # Errors
/// There is none, or it is no such file.
pub fn read_schedstat(path: &Path) -> Result<SchedstatSample, LabError> {
    let name = path.display().to_string();
    if !path.is_dir() {
        return read_file(name, path);
    }
    let [before, after, alone] =
        ["schedstat-before", "schedstat-after", "schedstat.txt"].map(|name| path.join(name));
    if before.is_file() && after.is_file() {
        let (before, after) = (read(&before)?, read(&after)?);
        let stat = after.since(&before).map_err(|problem| {
            LabError::new(
                format!("{name}: {problem}"),
                "the two files must be readings of one kernel, one after the other",
            )
        })?;
        let jiffies = Some(after.timestamp.saturating_sub(before.timestamp));
        return Ok(SchedstatSample { name, jiffies, stat });
    }
    if alone.is_file() {
        return Ok(SchedstatSample { name, jiffies: None, stat: read(&alone)? });
    }
    Err(LabError::new(
        format!("{name} holds no schedstat"),
        format!(
            "name a file, or a folder with schedstat-before and schedstat-after, or with schedstat.txt; {NOT_BUILT}"
        ),
    ))
}

/// One reading, or what lies between two of perf.
fn read_file(name: String, path: &Path) -> Result<SchedstatSample, LabError> {
    let bytes = std::fs::read(path)
        .map_err(|error| LabError::new(format!("cannot read {name}: {error}"), hint_of(path)))?;
    if !perf::is_it(&bytes) {
        return Ok(SchedstatSample { name, jiffies: None, stat: read(path)? });
    }
    let wrong = |problem: String| {
        LabError::new(
            format!("{name}: {problem}"),
            "name a file of perf sched stats record, or a copy of /proc/schedstat",
        )
    };
    let readings = perf::read(&bytes).map_err(wrong)?;
    match &readings[..] {
        [before, after] => {
            let stat = after.since(before).map_err(wrong)?;
            Ok(SchedstatSample {
                name,
                jiffies: Some(after.timestamp.saturating_sub(before.timestamp)),
                stat,
            })
        }
        [alone] => Ok(SchedstatSample { name, jiffies: None, stat: alone.clone() }),
        more => Err(wrong(format!("it has {} readings, and two are compared", more.len()))),
    }
}

/// Of kernels that count nothing.
const NOT_BUILT: &str = "a kernel that was built without CONFIG_SCHEDSTATS has none";

fn hint_of(path: &Path) -> &'static str {
    if path.starts_with("/proc") { NOT_BUILT } else { "check the path" }
}

fn read(path: &Path) -> Result<Schedstat, LabError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| LabError::new(format!("cannot read {shown}: {error}"), hint_of(path)))?;
    if text.is_empty() {
        return Err(LabError::new(format!("{shown} is empty"), NOT_BUILT));
    }
    Schedstat::read(&text).map_err(|problem| {
        LabError::new(format!("{shown} is no schedstat: {problem}"), "name a copy of /proc/schedstat")
    })
}

/// Puts two sides beside each other.
pub fn compare_schedstat(first: &SchedstatSample, second: &SchedstatSample) -> SchedstatComparison {
    let sides = [first, second];
    let mut left_out = Vec::new();
    let mut lines = sides.map(|side| side.stat.lines.clone());
    let summed = (first.stat.version == 17) != (second.stat.version == 17);
    if summed {
        lines.iter_mut().flat_map(BTreeMap::values_mut).for_each(sum_kinds);
        left_out.push("imbalances by kind: up to version 16 only their sum is counted".to_string());
    }
    for (own, other, name) in [(0, 1, &first.name), (1, 0, &second.name)] {
        let only = lines[own].keys().filter(|place| !lines[other].contains_key(place));
        left_out.extend(say_only(&only.collect::<Vec<_>>(), name));
    }
    let mut rows = Vec::new();
    let mut missing = BTreeSet::new();
    for (place, line) in &lines[0] {
        let Some(beside) = lines[1].get(place) else { continue };
        let (row, absent) = rows_of(place, line, beside);
        rows.extend(row);
        missing.extend(absent);
    }
    if !missing.is_empty() {
        let names = missing.into_iter().collect::<Vec<_>>().join(", ");
        left_out.push(format!("counters that only one of the two has: {names}"));
    }
    // On a CPU, from the lowest domain on.
    rows.sort_by_key(|row| (row.cpu, row.level));
    let mut rows = sums(&rows).into_iter().chain(rows).collect::<Vec<_>>();
    let jiffies = first.jiffies.zip(second.jiffies);
    rows.iter_mut().for_each(|row| row.ratio = ratio(row.counts, jiffies));
    let sides = sides.map(|side| SchedstatSideAnswer {
        name: side.name.clone(),
        version: side.stat.version,
        jiffies: side.jiffies,
    });
    SchedstatComparison { sides, by_jiffy: jiffies.is_some(), rows, left_out }
}

fn ratio([first, second]: [u64; 2], jiffies: Option<(u64, u64)>) -> Option<f64> {
    let time = match jiffies {
        Some((first, second)) if second > 0 => first as f64 / second as f64,
        _ => 1.0,
    };
    (first > 0).then(|| second as f64 / first as f64 * time)
}

/// The counters that two lines have in common, and the names of the others.
fn rows_of(
    place: &SchedstatScope,
    line: &SchedstatLine,
    beside: &SchedstatLine,
) -> (Vec<CounterRow>, Vec<String>) {
    let of = |line: &SchedstatLine, name: &str| {
        line.counters.iter().find(|(known, _)| known == name).map(|&(_, count)| count)
    };
    let (mut rows, mut absent) = (Vec::new(), Vec::new());
    for (name, count) in &line.counters {
        match of(beside, name) {
            Some(other) => rows.push(CounterRow {
                cpu: Some(place.cpu),
                level: line.level,
                counter: name.clone(),
                counts: [*count, other],
                ratio: None,
            }),
            None => absent.push(name.clone()),
        }
    }
    absent.extend(
        beside.counters.iter().filter(|(name, _)| of(line, name).is_none()).map(|(name, _)| name.clone()),
    );
    (rows, absent)
}

/// Makes of the imbalances of each kind what older versions show.
fn sum_kinds(line: &mut SchedstatLine) {
    let mut kept: Vec<(String, u64)> = Vec::new();
    for (name, count) in line.counters.drain(..) {
        let kind = name.split_once(' ').filter(|(_, counter)| KINDS.contains(counter));
        let Some((idle, _)) = kind else {
            kept.push((name, count));
            continue;
        };
        let sum = format!("{idle} {SUM}");
        match kept.last_mut().filter(|(last, _)| *last == sum) {
            Some((_, total)) => *total += count,
            None => kept.push((sum, count)),
        }
    }
    line.counters = kept;
}

/// One sentence about the lines that only one side has.
fn say_only(places: &[&SchedstatScope], name: &str) -> Option<String> {
    let say = |place: &&SchedstatScope| match &place.span {
        None => format!("cpu{}", place.cpu),
        Some(span) => format!("cpu{}'s domain of {span}", place.cpu),
    };
    let first = places.first().map(say)?;
    let more = if places.len() > 1 { format!(" and {} more", places.len() - 1) } else { String::new() };
    Some(format!("{first}{more}: only {name} has that"))
}

/// Sums over all CPUs, of CPUs and of each level.
fn sums(rows: &[CounterRow]) -> Vec<CounterRow> {
    let mut sums: Vec<CounterRow> = Vec::new();
    let mut known = BTreeMap::new();
    for row in rows {
        let index = *known.entry((row.level, &row.counter)).or_insert_with(|| {
            sums.push(CounterRow { cpu: None, counts: [0; 2], ..row.clone() });
            sums.len() - 1
        });
        sums[index].counts = [0, 1].map(|side| sums[index].counts[side].saturating_add(row.counts[side]));
    }
    sums.sort_by_key(|row| row.level);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(name: &str, text: &str, jiffies: Option<u64>) -> SchedstatSample {
        SchedstatSample { name: name.to_string(), jiffies, stat: Schedstat::read(text).expect("a file") }
    }

    fn text(version: u32, domains: &[&str]) -> String {
        let mut text = format!("version {version}\ntimestamp 1000\ncpu0 1 0 300 10 20 5 900 70 40\n");
        for (number, domain) in domains.iter().enumerate() {
            text += &format!("domain{number} {domain}\n");
        }
        text
    }

    /// 67 idle calls with imbalances of 5 together.
    const OLD: &str = "03 67 66 1 5 0 0 0 67 34 34 0 0 0 0 0 34 16 16 0 0 0 0 0 16 0 0 0 0 0 0 0 0 0 9 0 0";
    /// 134 idle calls with imbalances of 1, 2, 3 and 4.
    const NEW: &str = "SMT 3 34 34 0 0 0 0 0 0 0 0 34 134 66 1 1 2 3 4 0 0 0 67 16 16 0 0 0 0 0 0 0 0 16 0 0 0 0 0 \
                       0 0 0 0 9 0 0";

    #[test]
    fn counters_stand_beside_those_of_their_name() {
        let first = counted("old", &text(15, &[OLD]), Some(100));
        let second = counted("new", &text(17, &[NEW]), Some(50));
        let beside = compare_schedstat(&first, &second);
        let row = |cpu, counter: &str| {
            let found = beside.rows.iter().find(|row| row.cpu == cpu && row.counter == counter);
            found.unwrap_or_else(|| panic!("no {counter}"))
        };
        assert_eq!(row(Some(0), "idle lb_count").counts, [67, 134]);
        assert_eq!(row(None, "idle lb_count").level, Some(0));
        assert_eq!(row(None, "idle lb_count").ratio, Some(4.0), "in half the time");
        assert_eq!(row(Some(0), "idle lb_imbalance").counts, [5, 10], "all kinds together");
        assert_eq!(row(Some(0), "busy lb_count").counts, [34, 34]);
        assert_eq!(row(Some(0), "idle lb_gained").ratio, None);
        assert_eq!(beside.left_out, ["imbalances by kind: up to version 16 only their sum is counted"]);
    }

    #[test]
    fn one_versions_kinds_stay_apart() {
        let side = |name| counted(name, &text(17, &[NEW]), None);
        let beside = compare_schedstat(&side("a"), &side("b"));
        let row = beside.rows.iter().find(|row| row.counter == "idle lb_imbalance_task").expect("a kind");
        assert_eq!(row.counts, [3, 3]);
        assert!(beside.left_out.is_empty() && !beside.by_jiffy, "{:?}", beside.left_out);
    }

    #[test]
    fn domains_stand_beside_those_of_the_same_cpus() {
        let wide = OLD.replacen("03", "000000ff", 1);
        let first = counted("a", &text(15, &[OLD, &wide]), None);
        let second = counted("b", &text(16, &[&wide.replacen("000000ff", "ff", 1)]), None);
        let beside = compare_schedstat(&first, &second);
        let levels = beside.rows.iter().filter(|row| row.cpu.is_some()).map(|row| row.level);
        assert_eq!(levels.collect::<BTreeSet<_>>(), BTreeSet::from([None, Some(1)]));
        assert_eq!(beside.left_out, ["cpu0's domain of 3: only a has that"]);
        let searching = text(15, &[]).replace(" 70 40", " 70 40 1 2 3 4 5 6 7 8");
        let beside = compare_schedstat(&counted("c", &searching, None), &counted("d", &text(15, &[]), None));
        let [sentence] = &beside.left_out[..] else { panic!("{:?}", beside.left_out) };
        assert!(sentence.starts_with("counters that only one of the two has: sis_core_miss, "), "{sentence}");
    }
}
