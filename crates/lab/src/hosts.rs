//! Sets of hosts: what each host counted is one observation, however many events that were.
//!
//! A host has labels (`service=web`), from folders that are called so, or written into its counts. Must not know: how sets are
//! compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fairlab_analysis::counts::Counts;
use fairlab_event::ShownPath;

use crate::LabError;
use crate::compare::{Record, Side};
use crate::merge::{COUNTS_FILE, Group, Merged};
use crate::provenance::Origin;

/// Labels by their names.
pub type Labels = BTreeMap<String, String>;

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

/// What one host counted.
#[derive(Debug, Default)]
struct Host {
    counts: Counts,
    kernels: BTreeSet<String>,
    workloads: BTreeSet<String>,
    origins: BTreeSet<Option<Origin>>,
}

/// The sides of several sets of hosts, one a set. `wanted`: only hosts with these labels. Hosts pair where all sets have the very
/// hosts.
///
/// # Errors
/// A set cannot be read, or no host of it has these labels; there is one set only.
pub fn read_host_sets(sets: &[PathBuf], wanted: &[(String, String)]) -> Result<Vec<Side>, LabError> {
    if sets.len() < 2 {
        return Err(LabError::new(
            "a comparison needs two sets of hosts",
            "give --counts twice; the first is the baseline",
        ));
    }
    let read = sets.iter().map(|set| hosts_of(set, wanted)).collect::<Result<Vec<_>, _>>()?;
    let names = |hosts: &BTreeMap<String, Host>| hosts.keys().cloned().collect::<Vec<_>>();
    let are_paired = read.windows(2).all(|pair| names(&pair[0]) == names(&pair[1]));
    let sides = sets.iter().zip(read).map(|(set, hosts)| Side {
        name: ShownPath(set).to_string(),
        records: (0..)
            .zip(hosts.into_values())
            .map(|(number, host)| host.record(are_paired.then_some(number)))
            .collect(),
        workloads: Vec::new(),
    });
    Ok(sides.collect())
}

impl Host {
    fn add(&mut self, group: &Group, counts: &Counts) {
        self.counts.merge(counts);
        self.kernels.insert(group.kernel.clone());
        self.workloads.insert(group.workload.clone());
        self.origins.insert(group.origin);
    }

    /// One observation; hosts of one number are one host.
    fn record(self, number: Option<u64>) -> Record {
        let one = |names: &BTreeSet<String>| match names.iter().collect::<Vec<_>>()[..] {
            [name] => name.clone(),
            _ => String::new(),
        };
        let origins = self.origins.iter().collect::<Vec<_>>();
        Record {
            machine: "hosts".to_string(),
            workload: String::new(),
            cpus: None,
            origin: if let [origin] = origins[..] { *origin } else { None },
            kernel: one(&self.kernels),
            seed: number,
            metrics: self.counts.all_metrics(),
        }
    }
}

fn hosts_of(set: &Path, wanted: &[(String, String)]) -> Result<BTreeMap<String, Host>, LabError> {
    let mut files = Vec::new();
    match set.is_dir() {
        true => find_files(set, DEPTH_MAX, &mut files)?,
        false => files.push(set.to_path_buf()),
    }
    let (mut hosts, mut seen): (BTreeMap<String, Host>, BTreeSet<String>) = Default::default();
    for file in &files {
        let mut merged = Merged::default();
        merged.add_path(file)?;
        let (place, host) = place_of(set, file);
        for (group, counts) in &merged.groups {
            let labels = place.iter().chain(&group.labels).collect::<BTreeMap<_, _>>();
            seen.extend(labels.iter().map(|(name, value)| format!("{name}={value}")));
            let has =
                |(name, value): &(String, String)| labels.get(name).is_some_and(|known| *known == value);
            if wanted.iter().all(has) {
                let name = labels.get(&HOST.to_string()).map_or(host.as_str(), |host| host.as_str());
                hosts.entry(name.to_string()).or_default().add(group, counts);
            }
        }
    }
    if hosts.is_empty() {
        let asked =
            wanted.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
        let hint = match (files.is_empty(), seen.is_empty()) {
            (true, _) => "give folders of files that 'summary --counts' or 'run --out' wrote".to_string(),
            (false, true) => {
                "no host there has labels: call folders NAME=VALUE, or write them by 'summary --label'"
                    .to_string()
            }
            (false, false) => format!("there are {}", seen.into_iter().collect::<Vec<_>>().join(", ")),
        };
        return Err(LabError::new(format!("{}: no counts of hosts {asked}", ShownPath(set)), hint));
    }
    Ok(hosts)
}

/// The labels of the folders below a set that a file lies in, and what its host is called where no label says it: as the first other
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
            || path.extension().is_some_and(|end| end == "json") && Merged::holds_counts(&path)
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

    fn host(folder: &Path, place: &str, latency: u64, events: u64) {
        let mut counts = Counts { runs: 1, observed_ns: 1_000_000_000, cpu_ns: 1, ..Counts::default() };
        (0..events).for_each(|_| counts.wakeup_latency.record(latency));
        let group = Group {
            origin: None,
            kernel: "6.1".to_string(),
            machine: "8 CPUs".to_string(),
            workload: "recorded".to_string(),
            labels: Labels::new(),
        };
        let mut merged = Merged::default();
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
        let sides = read_host_sets(&sets, &web).expect("two sets");
        assert_eq!(sides.iter().map(|side| side.records.len()).collect::<Vec<_>>(), [3, 3]);
        let comparison = compare_sides(&sides, &CompareOptions::default()).expect("a comparison");
        let row = comparison.rows.iter().find(|row| row.name == "wakeup_latency_ns_p99").expect("a row");
        assert_eq!((row.baseline.as_slice(), row.pairing), (&[100.0, 110.0, 120.0][..], Pairing::Paired));
        assert!(row.estimate.ratio.is_some_and(|ratio| (ratio - 2.0).abs() < 0.01), "{row:?}");
        assert_eq!(read_host_sets(&sets, &[]).expect("two sets")[0].records.len(), 4);
        fs::remove_dir_all(folder.join("new/service=web/h3")).expect("removed");
        let sides = read_host_sets(&sets, &web).expect("two sets");
        assert!(sides[1].records.iter().all(|record| record.seed.is_none()), "other hosts do not pair");
        let none = read_host_sets(&sets, &[parse_label("service=mail").expect("a label")]).expect_err("none");
        assert!(
            none.to_string().contains("no counts of hosts service=mail; there are service=db, service=web"),
            "{none}"
        );
        assert!(
            read_host_sets(&sets[..1], &[]).is_err()
                && parse_label("web").is_err()
                && parse_label("=x").is_err()
        );
        fs::remove_dir_all(&folder).expect("removed");
    }
}
