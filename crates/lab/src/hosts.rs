//! Sets of hosts: what each host counted is one observation, however many events that were.
//!
//! A host has labels (`service=web`), from folders that are called so, or written into its counts. Must not know: how sets are
//! compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fairlab_analysis::counts::RunCounts;
use fairlab_event::ShownPath;

use crate::LabError;
use crate::compare::{RunRecord, RunSide, TraceCounts};
use crate::merge::{self, COUNTS_FILE, MergeKey, MergedCounts};
use crate::provenance::Origin;

/// Labels by their names.
pub type Labels = BTreeMap<String, String>;

/// What stands for the machine where each observation is another host.
pub const MACHINE: &str = "hosts";

/// The label that names a host.
const HOST: &str = "host";

/// Folders within folders are followed so deep.
const DEPTH_MAX: usize = 16;

/// Reads `NAME=VALUE`.
///
/// # Errors
/// It is not of this form.
pub fn parse_label(text: &str) -> Result<(String, String), String> {
    let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    match text.split_once('=') {
        Some((name, value)) if is_name(name) && !value.is_empty() => {
            Ok((name.to_string(), value.to_string()))
        }
        _ => Err("a label is NAME=VALUE, such as service=web".to_string()),
    }
}

/// A set of hosts.
#[derive(Debug, Default)]
struct Hosts {
    /// Each one's numbers.
    records: BTreeMap<String, RunRecord>,
    /// What all of them counted.
    counts: RunCounts,
}

impl Hosts {
    fn add(&mut self, name: String, host: HostCounts, keeps: KeepsMetric<'_>) {
        self.counts.merge(&host.counts);
        self.records.insert(name, host.record(keeps));
    }
}

/// What one host counted.
#[derive(Debug, Default)]
struct HostCounts {
    counts: RunCounts,
    kernels: BTreeSet<String>,
    workloads: BTreeSet<String>,
    origins: BTreeSet<Option<Origin>>,
}

/// Which metrics of a host are kept; of the first host of each set all are, so that names can be guessed.
pub type KeepsMetric<'k> = &'k dyn Fn(&str) -> bool;

/// The sides of several sets of hosts, one a set. `wanted`: only hosts with these labels. Hosts pair where all sets have the very
/// hosts. In memory are one host's counts at a time.
///
/// # Errors
/// A set cannot be read, or no host of it has these labels; there is one set only.
pub fn read_host_sets(
    sets: &[PathBuf],
    wanted: &[(String, String)],
    keeps: KeepsMetric<'_>,
) -> Result<Vec<RunSide>, LabError> {
    if sets.len() < 2 {
        return Err(LabError::new(
            "a comparison needs two sets of hosts",
            "give --counts twice; the first is the baseline",
        ));
    }
    let read = sets.iter().map(|set| hosts_of(set, wanted, keeps)).collect::<Result<Vec<_>, _>>()?;
    Ok(sides_of(sets, read))
}

/// A side a set; hosts pair where all sets have the very hosts.
fn sides_of(sets: &[PathBuf], read: Vec<Hosts>) -> Vec<RunSide> {
    let names = |hosts: &Hosts| hosts.records.keys().cloned().collect::<Vec<_>>();
    let are_paired = read.windows(2).all(|pair| names(&pair[0]) == names(&pair[1]));
    let numbered = |hosts: BTreeMap<String, RunRecord>| {
        let seed = |number: u64| are_paired.then_some(number);
        (0..)
            .zip(hosts.into_values())
            .map(|(number, host)| RunRecord { seed: seed(number), ..host })
            .collect()
    };
    let side = |(set, hosts): (&PathBuf, Hosts)| RunSide {
        name: ShownPath(set).to_string(),
        records: numbered(hosts.records),
        counts: Some(hosts.counts),
        ..RunSide::default()
    };
    sets.iter().zip(read).map(side).collect()
}

impl HostCounts {
    fn add(&mut self, group: &MergeKey, counts: &RunCounts) {
        self.counts.merge(counts);
        self.kernels.insert(group.kernel.clone());
        self.workloads.insert(group.workload.clone());
        self.origins.insert(group.origin);
    }

    /// One observation.
    fn record(self, keeps: KeepsMetric<'_>) -> RunRecord {
        let one = |names: &BTreeSet<String>| match names.iter().collect::<Vec<_>>()[..] {
            [name] => name.clone(),
            _ => String::new(),
        };
        let origins = self.origins.iter().collect::<Vec<_>>();
        RunRecord {
            machine: MACHINE.to_string(),
            origin: if let [origin] = origins[..] { *origin } else { None },
            kernel: one(&self.kernels),
            metrics: self.counts.all_metrics().into_iter().filter(|(name, _)| keeps(name)).collect(),
            ..RunRecord::default()
        }
    }
}

/// The hosts of a set, each as one observation.
fn hosts_of(set: &Path, wanted: &[(String, String)], keeps: KeepsMetric<'_>) -> Result<Hosts, LabError> {
    let mut files = Vec::new();
    match set.is_dir() {
        true => find_files(set, DEPTH_MAX, &mut files)?,
        false => files.push(set.to_path_buf()),
    }
    // First which files hold what of whom, then host by host.
    let (mut places, mut seen): (BTreeMap<String, Vec<&PathBuf>>, BTreeSet<String>) = Default::default();
    for file in &files {
        for labels in merge::labels_of(file)? {
            let (name, labels) = named(set, file, &labels);
            seen.extend(labels.iter().map(|(name, value)| format!("{name}={value}")));
            let files = places.entry(name).or_default();
            if has_all(&labels, wanted) && files.last() != Some(&file) {
                files.push(file);
            }
        }
    }
    places.retain(|_, files| !files.is_empty());
    if places.is_empty() {
        return Err(no_hosts(set, wanted, files.is_empty(), seen));
    }
    let (mut hosts, mut latest): (Hosts, Option<(&PathBuf, MergedCounts)>) = Default::default();
    for (host, files) in places {
        let mut counted = HostCounts::default();
        for file in files {
            let known = latest.take().filter(|(known, _)| *known == file);
            let (_, merged) = match known {
                Some(known) => latest.insert(known),
                None => {
                    let mut merged = MergedCounts::default();
                    merged.add_path(file)?;
                    latest.insert((file, merged))
                }
            };
            for (group, counts) in &merged.groups {
                let (name, labels) = named(set, file, &group.labels);
                if name == host && has_all(&labels, wanted) {
                    counted.add(group, counts);
                }
            }
        }
        let keeps = if hosts.records.is_empty() { &|_: &str| true } else { keeps };
        hosts.add(host, counted, keeps);
    }
    Ok(hosts)
}

/// What the host is called that a file's counts are of, and all its labels.
fn named(set: &Path, file: &Path, own: &Labels) -> (String, Labels) {
    let (place, host) = place_of(set, file);
    let labels = place.into_iter().chain(own.clone()).collect::<Labels>();
    (labels.get(HOST).cloned().unwrap_or(host), labels)
}

fn has_all(labels: &Labels, wanted: &[(String, String)]) -> bool {
    wanted.iter().all(|(name, value)| labels.get(name) == Some(value))
}

fn no_hosts(set: &Path, wanted: &[(String, String)], is_empty: bool, seen: BTreeSet<String>) -> LabError {
    let asked = wanted.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
    let hint = match (is_empty, seen.is_empty()) {
        (true, _) => "give folders of files that 'summary --counts' or 'run --out' wrote".to_string(),
        (false, true) => {
            "no host there has labels: call folders NAME=VALUE, or write them by 'summary --label'"
                .to_string()
        }
        (false, false) => format!("there are {}", seen.into_iter().collect::<Vec<_>>().join(", ")),
    };
    LabError::new(format!("{}: no counts of hosts {asked}", ShownPath(set)).trim_end(), hint)
}

/// The file in a folder of traces that says whose they are: `"a.dat" = "web1"`, or `"a.dat" = { host = "web1", service = "web" }`.
const HOSTS_FILE: &str = "hosts.toml";

/// The sides of folders of traces of several hosts, one a folder. A host is one observation, however many traces it has. A file
/// `hosts.toml`, a folder `host=NAME`, or the recording itself says which host a trace is of. `None`: each folder is of one host,
/// or nothing tells the hosts; then each trace is a run.
///
/// # Errors
/// A file of hosts is wrong, or no host of a folder has the labels that are wanted.
pub fn sides_of_traces(
    sets: &[PathBuf],
    traces: &[Vec<(PathBuf, TraceCounts)>],
    wanted: &[(String, String)],
) -> Result<Option<Vec<RunSide>>, LabError> {
    let told = sets.iter().map(|set| read_hosts_file(set)).collect::<Result<Vec<_>, _>>()?;
    let labels = |place: usize, (path, counted): &(PathBuf, TraceCounts)| {
        let mut labels = place_of(&sets[place], path).0;
        if !counted.host.is_empty() {
            labels.entry(HOST.to_string()).or_insert_with(|| counted.host.clone());
        }
        let name = path.strip_prefix(&sets[place]).unwrap_or(path);
        labels.extend(told[place].get(name).cloned().unwrap_or_default());
        labels
    };
    let places = || sets.iter().enumerate().zip(traces);
    let is_said = places().any(|((place, set), traces)| {
        traces.iter().any(|(path, _)| place_of(set, path).0.contains_key(HOST)) || !told[place].is_empty()
    });
    let are_several = places().any(|((place, _), traces)| {
        let hosts = traces.iter().filter_map(|trace| labels(place, trace).get(HOST).cloned());
        hosts.collect::<BTreeSet<_>>().len() > 1
    });
    if !is_said && !are_several && wanted.is_empty() {
        return Ok(None);
    }
    let mut read = Vec::new();
    for ((place, set), traces) in places() {
        let (mut hosts, mut seen): (BTreeMap<String, HostCounts>, BTreeSet<String>) = Default::default();
        for trace in traces {
            let labels = labels(place, trace);
            seen.extend(labels.iter().map(|(name, value)| format!("{name}={value}")));
            if has_all(&labels, wanted) {
                let host = labels.get(HOST).cloned().unwrap_or_else(|| place_of(set, &trace.0).1);
                hosts.entry(host).or_default().add(&trace.1.group, &trace.1.counts);
            }
        }
        if hosts.is_empty() {
            return Err(no_hosts(set, wanted, traces.is_empty(), seen));
        }
        let mut all = Hosts::default();
        hosts.into_iter().for_each(|(name, host)| all.add(name, host, &|_| true));
        read.push(all);
    }
    Ok(Some(sides_of(sets, read)))
}

/// Labels of traces by the traces' paths in their folder.
fn read_hosts_file(set: &Path) -> Result<BTreeMap<PathBuf, Labels>, LabError> {
    let path = set.join(HOSTS_FILE);
    if !path.is_file() {
        return Ok(BTreeMap::new());
    }
    let bad = |problem: String| {
        let problem = problem.split_whitespace().collect::<Vec<_>>().join(" ");
        LabError::new(format!("{}: {problem}", ShownPath(&path)), "write lines such as \"a.dat\" = \"web1\"")
    };
    let text = fs::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
    let table = text.parse::<toml::Table>().map_err(|error| bad(error.to_string()))?;
    let mut told = BTreeMap::new();
    for (trace, value) in table {
        let word =
            |value: &toml::Value| value.as_str().filter(|word| !word.is_empty()).map(ToString::to_string);
        let labels = match &value {
            toml::Value::Table(labels) => labels
                .iter()
                .map(|(name, value)| Some((name.clone(), word(value)?)))
                .collect::<Option<Labels>>(),
            host => word(host).map(|host| Labels::from([(HOST.to_string(), host)])),
        };
        let labels =
            labels.ok_or_else(|| bad(format!("'{trace}' has no host's name, nor labels with words")))?;
        if !set.join(&trace).exists() {
            return Err(bad(format!("there is no trace '{trace}'")));
        }
        told.insert(PathBuf::from(trace), labels);
    }
    Ok(told)
}

/// The labels in the names of a file's folders below a set, and its host's name where no label says it: as the first other
/// folder, or as the file.
fn place_of(set: &Path, file: &Path) -> (Labels, String) {
    let below = file.strip_prefix(set).unwrap_or(Path::new(""));
    let folders =
        below.parent().into_iter().flat_map(Path::iter).map(|name| name.to_string_lossy().into_owned());
    let (mut labels, mut host) = (Labels::new(), None);
    for folder in folders {
        match parse_label(&folder) {
            Ok((name, value)) => drop(labels.insert(name, value)),
            Err(_) => host = host.or(Some(folder)),
        }
    }
    let stem = || file.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
    (labels, host.unwrap_or_else(stem))
}

/// Files of counts in a folder: those of that name, and others that end in .json and hold counts.
fn find_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), LabError> {
    let unreadable = |error: std::io::Error| {
        LabError::new(format!("{}: {error}", ShownPath(folder)), "give a folder of counts that can be read")
    };
    let mut paths =
        fs::read_dir(folder).map_err(unreadable)?.flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    paths.sort();
    for path in paths {
        if path.is_dir() && !path.is_symlink() && depth > 0 {
            find_files(&path, depth - 1, files)?;
        } else if path.file_name().is_some_and(|name| name == COUNTS_FILE)
            || path.extension().is_some_and(|end| end == "json") && MergedCounts::holds_counts(&path)
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompareOptions, Pairing, compare_sides};

    const ALL: KeepsMetric<'_> = &|_| true;

    fn host(folder: &Path, place: &str, latency: u64, events: u64) {
        let mut counts = RunCounts { runs: 1, observed_ns: 1_000_000_000, cpu_ns: 1, ..RunCounts::default() };
        (0..events).for_each(|_| counts.wakeup_latency.record(latency));
        let group = MergeKey {
            origin: None,
            kernel: "6.1".to_string(),
            machine: "8 CPUs".to_string(),
            workload: "recorded".to_string(),
            labels: Labels::new(),
        };
        let mut merged = MergedCounts::default();
        merged.add(group, &counts, []);
        let path = folder.join(place);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, merged.to_json().to_string()).expect("written");
    }

    /// A host with a thousand times as many events counts as much as each other one.
    #[test]
    fn a_host_is_one_observation() {
        let folder = std::env::temp_dir().join(format!("fairlab-hosts-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for (set, factor) in [("old", 1), ("new", 2)] {
            let events = if set == "old" { 10_000 } else { 10 };
            host(&folder, &format!("{set}/service=web/h1/counts.json"), 100 * factor, events);
            host(&folder, &format!("{set}/service=web/h2/counts.json"), 110 * factor, 10);
            host(&folder, &format!("{set}/service=web/h3/counts.json"), 120 * factor, 10);
            host(&folder, &format!("{set}/service=db/h4.json"), 5_000, 10);
        }
        fs::write(folder.join("old/notes.json"), "{}").expect("written");
        let sets = ["old", "new"].map(|set| folder.join(set));
        let web = [parse_label("service=web").expect("a label")];
        let sides = read_host_sets(&sets, &web, ALL).expect("two sets");
        assert_eq!(sides.iter().map(|side| side.records.len()).collect::<Vec<_>>(), [3, 3]);
        let comparison = compare_sides(&sides, &CompareOptions::default()).expect("a comparison");
        let row = comparison.rows.iter().find(|row| row.name == "wakeup_latency_ns_p99").expect("a row");
        assert_eq!((row.baseline.as_slice(), row.pairing), (&[100.0, 110.0, 120.0][..], Pairing::Paired));
        assert!(row.estimate.ratio.is_some_and(|ratio| (ratio - 2.0).abs() < 0.01), "{row:?}");
        assert_eq!(read_host_sets(&sets, &[], ALL).expect("two sets")[0].records.len(), 4);
        fs::remove_dir_all(folder.join("new/service=web/h3")).expect("removed");
        let sides = read_host_sets(&sets, &web, ALL).expect("two sets");
        assert!(sides[1].records.iter().all(|record| record.seed.is_none()), "other hosts do not pair");
        let none =
            read_host_sets(&sets, &[parse_label("service=mail").expect("a label")], ALL).expect_err("none");
        assert!(
            none.to_string().contains("no counts of hosts service=mail; there are service=db, service=web"),
            "{none}"
        );
        assert!(
            read_host_sets(&sets[..1], &[], ALL).is_err()
                && parse_label("web").is_err()
                && parse_label("=x").is_err()
        );
        fs::remove_dir_all(&folder).expect("removed");
    }
}
