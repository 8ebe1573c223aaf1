//! Counts of runs as small files, and many such files as one.
//!
//! A run or recording leaves a few kilobytes; merged files merge again. Must not know: how counts are made.

mod named;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fairlab_analysis::counts::{RunCounts, Throttles};
use fairlab_analysis::histogram::Histogram;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::LabError;
use crate::hosts::Labels;
use crate::provenance::Origin;

const SCHEMA: &str = "fairlab/counts/1";

/// How names of kernels begin that nothing tells.
pub(crate) const UNKNOWN: &str = "unknown";

/// How a file of counts is called, in a folder of a run or of many.
pub const COUNTS_FILE: &str = "counts.json";

/// What may be added up: runs of one workload on one kernel and machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MergeKey {
    /// How its runs came about; `None` where nothing tells.
    pub origin: Option<Origin>,
    /// The kernel's name.
    pub kernel: String,
    /// The machine's name.
    pub machine: String,
    /// The workload's command line.
    pub workload: String,
    /// What else distinguishes its hosts: `service` of `web`.
    pub labels: Labels,
}

/// Counts by group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedCounts {
    /// What was added up.
    pub groups: BTreeMap<MergeKey, RunCounts>,
    /// The seeds of a group's runs, as far as they have some.
    pub seeds: BTreeMap<MergeKey, BTreeSet<u64>>,
    /// How many files were read.
    pub files: usize,
    /// Which: the runs of a file count once.
    read: BTreeSet<PathBuf>,
}

/// Folders within folders are followed so deep.
const DEPTH_MAX: usize = 16;

impl MergedCounts {
    /// Adds the counts of a run, or of several, with the seeds that they have.
    pub fn add(&mut self, group: MergeKey, counts: &RunCounts, seeds: impl IntoIterator<Item = u64>) {
        let mut seeds = seeds.into_iter().peekable();
        if seeds.peek().is_some() {
            self.seeds.entry(group.clone()).or_default().extend(seeds);
        }
        self.groups.entry(group).or_default().merge(counts);
    }

    /// Adds what a file holds, or every file of counts in a folder, at any depth.
    ///
    /// # Errors
    /// There is no such file, it holds no counts, or a folder holds none.
    pub fn add_path(&mut self, path: &Path) -> Result<(), LabError> {
        if !path.is_dir() {
            return self.add_file(path);
        }
        let before = self.files;
        self.add_folder(path, DEPTH_MAX)?;
        if self.files == before {
            let problem = format!("{}: no {COUNTS_FILE} in it", path.display());
            return Err(LabError::new(
                problem,
                "give files or folders that 'fairlab run --out' or 'sweep' wrote",
            ));
        }
        Ok(())
    }

    fn add_folder(&mut self, folder: &Path, depth: usize) -> Result<(), LabError> {
        let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
        let mut paths = entries.flatten().map(|entry| entry.path()).collect::<Vec<PathBuf>>();
        paths.sort();
        for path in paths {
            if path.is_dir() && !path.is_symlink() && depth > 0 {
                self.add_folder(&path, depth - 1)?;
            } else if path.file_name().is_some_and(|name| name == COUNTS_FILE) {
                self.add_file(&path)?;
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<(), LabError> {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        if !self.read.insert(fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())) {
            let problem = format!("{} is there twice: its runs would count twice", path.display());
            return Err(LabError::new(problem, "name each file or folder once"));
        }
        let bad = |what: String| {
            LabError::new(
                format!("{}: {what}", path.display()),
                "give a file of counts, or a folder with some",
            )
        };
        let value = serde_json::from_str::<Value>(&text).map_err(|error| bad(error.to_string()))?;
        if value["schema"] != SCHEMA {
            return Err(bad("no counts of runs".to_string()));
        }
        let groups = value["groups"].as_array().ok_or_else(|| bad("no groups in it".to_string()))?;
        for (index, group) in groups.iter().enumerate() {
            let read = read_group(group);
            let (mut group, counts, seeds) =
                read.ok_or_else(|| bad(format!("group {} is damaged", index + 1)))?;
            // What is unknown of two files need not be one kernel.
            if group.kernel == UNKNOWN || group.kernel.is_empty() {
                group.kernel = format!("{UNKNOWN} ({})", path.display());
            }
            self.add(group, &counts, seeds);
        }
        self.files += 1;
        Ok(())
    }

    /// Whether a file says that it holds counts.
    pub(crate) fn holds_counts(path: &Path) -> bool {
        let value = fs::read_to_string(path).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        value.is_some_and(|value| value["schema"] == SCHEMA)
    }

    /// A group for each value of a label; groups without it stay among themselves.
    #[must_use]
    pub fn by_label(&self, name: &str) -> MergedCounts {
        let mut parts: BTreeMap<Option<&String>, MergedCounts> = BTreeMap::new();
        for (group, counts) in &self.groups {
            let part = parts.entry(group.labels.get(name)).or_default();
            part.add(group.clone(), counts, self.seeds.get(group).into_iter().flatten().copied());
        }
        let mut merged = MergedCounts { groups: BTreeMap::new(), seeds: BTreeMap::new(), ..self.clone() };
        for (value, part) in parts {
            let one = part.as_one();
            for (group, counts) in &one.groups {
                let labels = value.map(|value| (name.to_string(), value.clone())).into_iter().collect();
                let seeds = one.seeds.get(group).into_iter().flatten().copied();
                merged.add(MergeKey { labels, ..group.clone() }, counts, seeds);
            }
        }
        merged
    }

    /// Everything in one group, which keeps what all groups have in common.
    #[must_use]
    pub fn as_one(&self) -> MergedCounts {
        let common = |of: fn(&MergeKey) -> &String| {
            let mut names = self.groups.keys().map(of).collect::<Vec<_>>();
            names.dedup();
            if let [name] = names[..] { name.clone() } else { "any".to_string() }
        };
        let mut origins = self.groups.keys().map(|group| group.origin).collect::<Vec<_>>();
        origins.dedup();
        let group = MergeKey {
            labels: Labels::new(),
            origin: if let [origin] = origins[..] { origin } else { None },
            kernel: common(|group| &group.kernel),
            machine: common(|group| &group.machine),
            workload: common(|group| &group.workload),
        };
        let mut one = MergedCounts { groups: BTreeMap::new(), seeds: BTreeMap::new(), ..self.clone() };
        one.add(group, &self.all(), self.seeds.values().flatten().copied());
        one
    }

    /// All groups as one, whatever their kernels, machines and workloads.
    pub fn all(&self) -> RunCounts {
        let mut all = RunCounts::default();
        self.groups.values().for_each(|counts| all.merge(counts));
        all
    }

    /// The file's content.
    pub fn to_json(&self) -> Value {
        let groups = self.groups.iter().map(|(group, counts)| {
            let mut fields = Map::new();
            fields.insert("origin".to_string(), json!(group.origin.map(Origin::name)));
            for (name, text) in
                [("kernel", &group.kernel), ("machine", &group.machine), ("workload", &group.workload)]
            {
                fields.insert(name.to_string(), json!(text));
            }
            if !group.labels.is_empty() {
                fields.insert("labels".to_string(), json!(group.labels));
            }
            let seeds = self.seeds.get(group).into_iter().flatten().copied();
            fields.insert("seeds".to_string(), json!(in_rows(seeds)));
            fields.extend(counts_fields(counts));
            Value::Object(fields)
        });
        json!({ "schema": SCHEMA, "groups": groups.collect::<Vec<_>>() })
    }
}

/// The labels of each group in a file of counts, which is read for nothing else.
///
/// # Errors
/// It cannot be read, or holds no counts.
pub(crate) fn labels_of(path: &Path) -> Result<Vec<Labels>, LabError> {
    #[derive(Deserialize)]
    struct CountsHead {
        schema: String,
        groups: Vec<LabelledGroup>,
    }
    #[derive(Deserialize)]
    struct LabelledGroup {
        #[serde(default)]
        labels: Labels,
    }
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    match serde_json::from_str::<CountsHead>(&text) {
        Ok(head) if head.schema == SCHEMA => Ok(head.groups.into_iter().map(|group| group.labels).collect()),
        // What is wrong with it is said in one place.
        _ => {
            let mut merged = MergedCounts::default();
            merged.add_path(path)?;
            Ok(merged.groups.into_keys().map(|group| group.labels).collect())
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> LabError {
    LabError::new(format!("{}: {error}", path.display()), "check the path")
}

const COUNTERS: [&str; 8] = [
    "runs",
    "observed_ns",
    "cpu_ns",
    "idle_ns",
    "unconserved_ns",
    "switches",
    "involuntary_switches",
    "migrations",
];

/// The numbers of some runs.
pub(crate) fn counts_fields(counts: &RunCounts) -> Map<String, Value> {
    let values = [
        counts.runs,
        counts.observed_ns,
        counts.cpu_ns,
        counts.idle_ns,
        counts.unconserved_ns,
        counts.switches,
        counts.involuntary_switches,
        counts.migrations,
    ];
    let mut fields = Map::new();
    fields.extend(COUNTERS.iter().zip(values).map(|(name, value)| (name.to_string(), json!(value))));
    fields.insert("wakeup_latency_ns".to_string(), histogram_json(&counts.wakeup_latency));
    fields.insert("fork_wait_ns".to_string(), histogram_json(&counts.fork_wait));
    if let Some(throttles) = &counts.throttles {
        let throttles = json!({
            "nr_throttled": throttles.nr_throttled,
            "throttled_ns": throttles.throttled_ns,
            "throttled_wait_ns": histogram_json(&throttles.throttled_wait),
            "preemption_wait_ns": histogram_json(&throttles.preemption_wait),
        });
        fields.insert("throttles".to_string(), throttles);
    }
    if !counts.by_name.is_empty() {
        fields.insert("by_name".to_string(), named::to_json(&counts.by_name));
    }
    fields
}

fn histogram_json(histogram: &Histogram) -> Value {
    json!({
        "min": histogram.min(),
        "max": histogram.max(),
        // Sums of many runs' nanoseconds may pass 64 bits.
        "sum": histogram.sum().to_string(),
        "buckets": histogram.buckets().map(|(bucket, count)| json!([bucket, count])).collect::<Vec<_>>(),
    })
}

fn read_histogram(fields: &Value) -> Option<Histogram> {
    let end = |name: &str| fields.get(name)?.as_u64();
    let bucket = |pair: &Value| Some((usize::try_from(pair.get(0)?.as_u64()?).ok()?, pair.get(1)?.as_u64()?));
    let buckets = fields.get("buckets")?.as_array()?.iter().map(bucket).collect::<Option<Vec<_>>>()?;
    let sum = fields.get("sum")?.as_str()?.parse().ok()?;
    Histogram::from_parts(buckets, sum, end("min").zip(end("max")))
}

/// Older files have no first waits of new tasks: nothing is known of these.
fn read_fork_wait(fields: &Value) -> Option<Histogram> {
    fields.get("fork_wait_ns").map_or_else(|| Some(Histogram::default()), read_histogram)
}

fn read_throttles(fields: &Value) -> Option<Throttles> {
    Some(Throttles {
        nr_throttled: fields.get("nr_throttled")?.as_u64()?,
        throttled_ns: fields.get("throttled_ns")?.as_u64()?,
        throttled_wait: read_histogram(fields.get("throttled_wait_ns")?)?,
        preemption_wait: read_histogram(fields.get("preemption_wait_ns")?)?,
    })
}

/// Counts read back; `None` where something is missing or impossible.
pub(crate) fn read_counts(fields: &Value) -> Option<RunCounts> {
    let number = |name: &str| fields.get(name)?.as_u64();
    let throttles = match fields.get("throttles") {
        Some(throttles) => Some(read_throttles(throttles)?),
        None => None,
    };
    let by_name = match fields.get("by_name") {
        Some(by_name) => named::read(by_name)?,
        None => BTreeMap::new(),
    };
    Some(RunCounts {
        runs: number("runs")?,
        observed_ns: number("observed_ns")?,
        cpu_ns: number("cpu_ns")?,
        idle_ns: number("idle_ns")?,
        unconserved_ns: number("unconserved_ns")?,
        switches: number("switches")?,
        involuntary_switches: number("involuntary_switches")?,
        migrations: number("migrations")?,
        wakeup_latency: read_histogram(fields.get("wakeup_latency_ns")?)?,
        fork_wait: read_fork_wait(fields)?,
        throttles,
        by_name,
    })
}

/// Numbers in a row as `[first, last]`.
pub(crate) fn in_rows(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut rows: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match rows.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => rows.push((number, number)),
        }
    }
    rows
}

/// How many seeds a file names at most: as many as a sweep has cells.
const SEEDS_MAX: u64 = 10_000_000;

fn read_seeds(rows: &Value) -> Option<Vec<u64>> {
    let mut seeds = Vec::new();
    for row in rows.as_array().map_or(&[][..], Vec::as_slice) {
        let (first, last) = (row.get(0)?.as_u64()?, row.get(1)?.as_u64()?);
        let count = last.checked_sub(first)?;
        if count >= SEEDS_MAX - seeds.len() as u64 {
            return None;
        }
        seeds.extend(first..=last);
    }
    Some(seeds)
}

fn read_group(fields: &Value) -> Option<(MergeKey, RunCounts, Vec<u64>)> {
    let text = |name: &str| Some(fields.get(name)?.as_str()?.to_string());
    let origin = match fields.get("origin") {
        None | Some(Value::Null) => None,
        Some(name) => Some(Origin::parse(name.as_str()?)?),
    };
    let label = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_string()));
    let labels = fields.get("labels").and_then(Value::as_object).into_iter().flatten().map(label);
    let group = MergeKey {
        origin,
        kernel: text("kernel")?,
        machine: text("machine")?,
        workload: text("workload")?,
        labels: labels.collect::<Option<Labels>>()?,
    };
    Some((group, read_counts(fields)?, read_seeds(&fields["seeds"])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(seed: u64) -> RunCounts {
        let mut counts = RunCounts {
            runs: 1,
            observed_ns: 1_000_000,
            cpu_ns: 8_000_000,
            switches: seed,
            ..RunCounts::default()
        };
        (0..500).for_each(|step| counts.wakeup_latency.record((step * step * 31 + seed * 977) % 3_000_000));
        counts
    }

    fn group(kernel: &str) -> MergeKey {
        MergeKey {
            origin: Some(Origin::Modelled),
            kernel: kernel.to_string(),
            machine: "m".to_string(),
            workload: "w".to_string(),
            labels: Labels::new(),
        }
    }

    #[test]
    fn files_merge_and_merged_files_do() {
        let folder = std::env::temp_dir().join(format!("fairlab-merge-{}", std::process::id()));
        let mut expected = MergedCounts::default();
        for seed in 0..40 {
            let mut one = MergedCounts::default();
            one.add(group(if seed % 2 == 0 { "v6.5" } else { "v6.6" }), &counts(seed), [seed]);
            let place = folder.join(format!("hosts/{seed}"));
            fs::create_dir_all(&place).expect("a folder");
            fs::write(place.join(COUNTS_FILE), one.to_json().to_string()).expect("written");
            expected.add(group(if seed % 2 == 0 { "v6.5" } else { "v6.6" }), &counts(seed), [seed]);
        }
        let mut merged = MergedCounts::default();
        merged.add_path(&folder).expect("read");
        assert_eq!((merged.files, &merged.groups), (40, &expected.groups));
        let file = folder.join("all.json");
        fs::write(&file, merged.to_json().to_string()).expect("written");
        assert!(fs::metadata(&file).expect("a file").len() < 40_000, "a few kilobytes a group");
        let mut again = MergedCounts::default();
        again.add_path(&file).expect("read");
        assert_eq!((&again.groups, &again.seeds), (&expected.groups, &expected.seeds));
        assert_eq!(again.all().wakeup_latency.total(), 20_000);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn what_holds_no_counts_is_refused() {
        let path = std::env::temp_dir().join(format!("fairlab-counts-{}.json", std::process::id()));
        let refused = |text: &str| {
            fs::write(&path, text).expect("written");
            MergedCounts::default().add_path(&path).expect_err(text).to_string()
        };
        let mut good = MergedCounts::default();
        good.add(group("v6.6"), &counts(3), [3]);
        let good = good.to_json().to_string();
        for (text, fragment) in [
            ("", "EOF"),
            ("{}", "no counts of runs"),
            (r#"{"schema":"fairlab/counts/1"}"#, "no groups"),
            (&good.replace("modelled", "dreamt"), "group 1 is damaged"),
            (&good.replace("[[3,3]]", "[[3,99999999999]]"), "group 1 is damaged"),
            (&good.replace("\"switches\":3", "\"switches\":-3"), "group 1 is damaged"),
            (&good.replacen("\"sum\":\"", "\"sum\":\"9", 1), "group 1 is damaged"),
        ] {
            let problem = refused(text);
            assert!(problem.contains(fragment) && !problem.contains('\n'), "{problem}");
        }
        fs::remove_file(&path).expect("removed");
        assert!(MergedCounts::default().add_path(&path).is_err());
    }
}
