//! Runs as a comparison sees them, from the model, from a folder that `run --out` wrote, or from recorded traces.
//!
//! Must not know: how they are compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fairlab_analysis::begins_a_trace;
use fairlab_analysis::by_name::{MachinePlaces, NamesWanted};
use fairlab_analysis::causes::{Causes, WaitCauses};
use fairlab_analysis::counts::RunCounts;
use fairlab_analysis::metrics::Metrics;
use fairlab_analysis::selector::TimeRange;
use fairlab_event::{Event, EventKind, Ns, Pid, ShownPath, Sink, System};
use fairlab_recording::{holds_trace, read_recorded, told_beside};
use fairlab_trace::ReadOptions;
use serde_json::Value;

use super::Pairing;
use crate::hosts::{self, Labels};
use crate::kernel::origin_of;
use crate::merge::{self, MergeKey, MergedCounts};
use crate::names::places_of;
use crate::provenance::Origin;
use crate::{LabError, RunResult, partial_runs};

/// One run's numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRecord {
    /// Where it ran; for a recorded trace, its number of CPUs.
    pub machine: String,
    /// What ran; empty where a trace does not tell.
    pub workload: String,
    /// How many CPUs that machine has, where a trace tells.
    pub cpus: Option<u32>,
    /// How it came about; `None` where nothing tells.
    pub origin: Option<Origin>,
    /// The kernel's name or release; empty where nothing tells.
    pub kernel: String,
    /// What its side is called, where that is not called as its kernel is: such sides may differ in anything.
    pub side: Option<String>,
    /// The seed of a run of the model.
    pub seed: Option<u64>,
    /// Every metric by name.
    pub metrics: Vec<(String, f64)>,
    /// All its waits by cause, where that was asked for.
    pub causes: Option<WaitCauses>,
    /// The digest of its events, of a run that was made for this answer.
    pub digest: Option<String>,
}

/// The runs of one kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSide {
    /// What it is called in the answer.
    pub name: String,
    /// Its runs.
    pub records: Vec<RunRecord>,
    /// The names of workloads of a mix among the names of its metrics, as far as they are known.
    pub workloads: Vec<String>,
    /// What its runs counted, all together; `None` where they were summed up before.
    pub counts: Option<RunCounts>,
}

impl RunRecord {
    /// A run; only one that its seed decides has one.
    pub fn of_run(run: &RunResult) -> RunRecord {
        RunRecord {
            machine: run.machine.clone(),
            workload: run.workload.clone(),
            cpus: None,
            origin: Some(run.origin()),
            kernel: run.kernel.clone(),
            side: run.side.clone(),
            seed: run.has_seed().then_some(run.seed),
            metrics: run.metrics.clone(),
            causes: run.causes.clone(),
            digest: Some(run.digest.clone()),
        }
    }

    /// Whether both ran on one machine, or may have: of one that has no name, the number of CPUs tells.
    fn is_on_machine_of(&self, other: &RunRecord) -> bool {
        let unnamed =
            |record: &RunRecord| record.cpus.is_some_and(|cpus| record.machine == unnamed_machine(cpus));
        self.machine == other.machine
            || (unnamed(self) || unnamed(other)) && self.cpus.is_some() && self.cpus == other.cpus
    }

    /// The metric called `name`, if it was measured.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| known == name).map(|&(_, value)| value)
    }

    fn of_json(run: &Value) -> Option<RunRecord> {
        let text = |name: &str| Some(run.get(name)?.as_str()?.to_string());
        let metrics = run.get("metrics")?.as_object()?.iter();
        let kernel = text("kernel")?;
        let origin = origin_of(&kernel);
        Some(RunRecord {
            origin: Some(origin),
            kernel,
            side: text("side"),
            machine: text("machine")?,
            workload: text("workload")?,
            seed: run.get("seed").and_then(Value::as_u64).filter(|_| origin.has_seeds()),
            metrics: metrics.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect(),
            ..RunRecord::default()
        })
    }
}

impl RunSide {
    /// Every metric that some run has, in the order in which they come.
    pub fn metric_names(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let all = self.records.iter().flat_map(|record| &record.metrics);
        all.filter(|(name, _)| seen.insert(name)).map(|(name, _)| name.clone()).collect()
    }

    /// The runs of both that are compared: pairs of the same seed, where every run has one and seeds meet; otherwise all.
    pub fn beside<'r>(&'r self, other: &'r RunSide) -> (Pairing, Vec<&'r RunRecord>, Vec<&'r RunRecord>) {
        match self.pairs_with(other) {
            Some(pairs) => {
                let (base, new) = pairs.into_iter().unzip();
                (Pairing::Paired, base, new)
            }
            None => (Pairing::Unpaired, self.records.iter().collect(), other.records.iter().collect()),
        }
    }

    fn pairs_with<'r>(&'r self, other: &'r RunSide) -> Option<Vec<(&'r RunRecord, &'r RunRecord)>> {
        if self.records.iter().chain(&other.records).any(|record| record.seed.is_none()) {
            return None;
        }
        let partner = |record: &RunRecord| other.records.iter().find(|other| other.seed == record.seed);
        let pairs =
            self.records.iter().filter_map(|record| Some((record, partner(record)?))).collect::<Vec<_>>();
        (!pairs.is_empty()).then_some(pairs)
    }
}

/// Sides differ in their kernel, and in nothing else, unless they were made to.
pub(super) fn check_alike(sides: &[RunSide]) -> Result<(), LabError> {
    let all = || sides.iter().flat_map(|side| side.records.iter().map(move |record| (&side.name, record)));
    if all().any(|(_, record)| record.side.is_some()) {
        return Ok(());
    }
    let Some((first_name, first)) = all().next() else { return Ok(()) };
    for (name, record) in all() {
        if !first.is_on_machine_of(record) {
            return Err(LabError::new(
                format!("{first_name} ran on {}, {name} on {}", first.machine, record.machine),
                "compare runs of one machine",
            ));
        }
        if record.workload != first.workload {
            return Err(LabError::new(
                format!("{first_name} ran '{}', {name} '{}'", first.workload, record.workload),
                "compare runs of one workload",
            ));
        }
    }
    Ok(())
}

/// What a machine is called that has no name.
fn unnamed_machine(cpus: u32) -> String {
    format!("{cpus} CPUs")
}

/// Folders within folders are followed so deep.
const DEPTH_MAX: usize = 8;

/// What a folder holds: runs that were summed up, and traces.
type FolderContents = (Vec<RunRecord>, Vec<(PathBuf, TraceCounts)>);

/// What a folder holds: runs that `run --out` wrote; traces and recordings, each of them a run; or folders with such in them.
fn find(folder: &Path, counting: &TraceCounting) -> Result<FolderContents, LabError> {
    let mut found = FolderContents::default();
    add_folder(folder, DEPTH_MAX, counting, &mut found)?;
    if found.0.is_empty() && found.1.is_empty() {
        return Err(LabError::new(
            format!("{}: no traces in it", folder.display()),
            "give a folder that 'fairlab run --out' wrote, one of traces, or one of such folders",
        ));
    }
    Ok(found)
}

/// A run belongs to the side of its kernel.
fn by_kernel(runs: Vec<RunRecord>, traces: Vec<(PathBuf, TraceCounts)>) -> Vec<RunSide> {
    let mut sides = Vec::new();
    for record in runs {
        add_record(&mut sides, record);
    }
    // Of runs that were summed up the times are not known, and the others' must not stand for all.
    let summed = sides.len();
    for (_, counted) in traces {
        let counts = counted.counts.clone();
        let place = add_record(&mut sides, RunRecord::from(counted));
        if place >= summed {
            sides[place].counts.get_or_insert_default().merge(&counts);
        }
    }
    sides
}

/// The sides of several folders, each side with a name of its own. Beside them a line for people for each folder that was stopped
/// before its end.
///
/// # Errors
/// A folder cannot be read, or there is one side only.
pub fn read_sides(
    folders: &[PathBuf],
    counting: &TraceCounting,
    labels: &[(String, String)],
) -> Result<(Vec<RunSide>, Vec<String>), LabError> {
    let (mut runs, mut traces) = (Vec::new(), Vec::new());
    for folder in folders {
        let found = find(folder, counting)?;
        runs.push(found.0);
        traces.push(found.1);
    }
    if folders.len() > 1
        && runs.iter().all(Vec::is_empty)
        && let Some(sides) = hosts::sides_of_traces(folders, &traces, labels)?
    {
        let hosts = sides.iter().map(|side| side.records.len().to_string()).collect::<Vec<_>>();
        return Ok((sides, vec![format!("a host is one observation: {} hosts", hosts.join(" and "))]));
    }
    let (mut told, mut notes): (Vec<(ShownPath<'_>, RunSide)>, _) = (Vec::new(), Vec::new());
    for (folder, (runs, traces)) in folders.iter().zip(runs.into_iter().zip(traces)) {
        let shown = ShownPath(folder);
        notes.extend(partial_runs(folder).map(|(runs, wanted)| {
            format!("{shown}: stopped before its end: {runs} of {wanted} runs are compared")
        }));
        told.extend(named(by_kernel(runs, traces), folder).into_iter().map(|side| (shown, side)));
    }
    let mut sides = with_own_names(told);
    match sides.len() {
        0 | 1 => Err(LabError::new(
            "a comparison needs the runs of two kernels",
            "give --folder twice; the first is the baseline",
        )),
        _ => {
            if labels.is_empty() {
                add_counts(folders, &mut sides);
            }
            Ok((sides, notes))
        }
    }
}

/// The sides, those that share a name each with its folder behind it.
fn with_own_names(told: Vec<(ShownPath<'_>, RunSide)>) -> Vec<RunSide> {
    let names = told.iter().map(|(_, side)| side.name.clone()).collect::<Vec<_>>();
    let own = |(shown, side): (ShownPath<'_>, RunSide)| {
        let is_shared = names.iter().filter(|name| **name == side.name).count() > 1;
        let name = if is_shared { format!("{} ({shown})", side.name) } else { side.name };
        RunSide { name, ..side }
    };
    told.into_iter().map(own).collect()
}

/// What runs counted that were summed up before, from the files of counts beside them: where each folder is a side that has some.
fn add_counts(folders: &[PathBuf], sides: &mut [RunSide]) {
    if folders.len() != sides.len() || sides.iter().all(|side| side.counts.is_some()) {
        return;
    }
    let read = |folder: &PathBuf| {
        let mut merged = MergedCounts::default();
        merged.add_path(folder).ok().map(|()| merged.all())
    };
    if let Some(read) = folders.iter().map(read).collect::<Option<Vec<_>>>() {
        sides.iter_mut().zip(read).for_each(|(side, counts)| side.counts = Some(counts));
    }
}

/// A kernel's runs are called after it if they were made by Fairlab; recordings after their folder, with the release where
/// there are several.
fn named(sides: Vec<RunSide>, folder: &Path) -> Vec<RunSide> {
    let count = sides.len();
    let name = |side: RunSide| {
        let is_made =
            side.records.iter().all(|record| record.origin.is_some_and(|origin| origin != Origin::Recorded));
        let name = match (is_made && !side.name.is_empty(), count) {
            (true, _) => side.name.clone(),
            (false, 1) => folder.display().to_string(),
            (false, _) if side.name.is_empty() => format!("{}: {}", folder.display(), merge::UNKNOWN),
            (false, _) => format!("{}: {}", folder.display(), side.name),
        };
        RunSide { name, ..side }
    };
    sides.into_iter().map(name).collect()
}

fn add_folder(
    folder: &Path,
    depth: usize,
    counting: &TraceCounting,
    found: &mut FolderContents,
) -> Result<(), LabError> {
    let written = folder.join("runs.json");
    if written.is_file() {
        if !counting.time.is_all() {
            let problem = format!("{}: its runs are summed up, and no time is in the sums", folder.display());
            return Err(LabError::new(problem, "give --time to the runs themselves, or folders of traces"));
        }
        found.0.extend(read_runs(&written)?);
        return Ok(());
    }
    // A recording's folder is one run, whatever other files of it lie there.
    if holds_trace(folder) && told_beside(folder).is_some_and(|told| !told.system.is_unknown()) {
        found.1.push((folder.to_path_buf(), count_tasks(folder, counting.clone())?));
        return Ok(());
    }
    let unreadable = |error: std::io::Error| {
        LabError::new(format!("{}: {error}", folder.display()), "give a folder of runs that can be read")
    };
    if folder.is_file() {
        found.1.push((folder.to_path_buf(), count_tasks(folder, counting.clone())?));
        return Ok(());
    }
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = entries.flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    paths.sort();
    for path in paths {
        if is_trace(&path) {
            let counted = count_tasks(&path, counting.clone())?;
            found.1.push((path, counted));
        } else if path.is_dir() && !path.is_symlink() && depth > 0 {
            add_folder(&path, depth - 1, counting, found)?;
        }
    }
    Ok(())
}

/// Adds a run to its side; gives the side's place.
fn add_record(sides: &mut Vec<RunSide>, record: RunRecord) -> usize {
    let name = record.side.as_ref().unwrap_or(&record.kernel);
    let place = sides.iter().position(|side| side.name == *name).unwrap_or_else(|| {
        sides.push(RunSide { name: name.clone(), ..RunSide::default() });
        sides.len() - 1
    });
    sides[place].records.push(record);
    place
}

fn read_runs(path: &Path) -> Result<Vec<RunRecord>, LabError> {
    let failed = |problem: String| {
        LabError::new(
            format!("{}: {problem}", path.display()),
            "give a folder that 'fairlab run --out' wrote",
        )
    };
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let answer = serde_json::from_str::<Value>(&text).map_err(|error| failed(error.to_string()))?;
    let runs = answer.get("runs").and_then(Value::as_array).filter(|runs| !runs.is_empty());
    let runs = runs.ok_or_else(|| failed("no runs in it".to_string()))?;
    let record = |(index, run): (usize, &Value)| {
        RunRecord::of_json(run).ok_or_else(|| failed(format!("run {} is none", index + 1)))
    };
    runs.iter().enumerate().map(record).collect()
}

fn is_trace(path: &Path) -> bool {
    const SUFFIXES: [&str; 3] = [".txt", ".dat", ".data"];
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = [".zst", ".xz", ".gz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    path.is_file() && SUFFIXES.iter().any(|suffix| plain.ends_with(suffix))
}

/// How far a trace reaches, and whose it is.
#[derive(Debug, Default)]
struct TraceExtent {
    start: Option<Ns>,
    end: Ns,
    cpus: usize,
    system: System,
    /// A process and its descendants so far.
    family: BTreeSet<Pid>,
}

impl Sink for TraceExtent {
    fn event(&mut self, event: &Event<'_>) {
        // Names of tasks have no time of their own.
        if event.kind.is_task_record() || self.start.is_none() && !begins_a_trace(event) {
            return;
        }
        self.start.get_or_insert(event.time);
        self.end = self.end.max(event.time);
        self.cpus = self.cpus.max(event.cpu.index() + 1);
        if let EventKind::SchedProcessFork { pid, child_pid, .. } = event.kind
            && self.family.contains(&pid)
        {
            self.family.insert(child_pid);
        }
    }

    fn system(&mut self, system: &System) {
        self.system = system.clone();
    }
}

/// The kernel of a trace that nothing tells it of: a name of its own, by which counts of two such traces are never added up.
fn unknown_kernel(path: &Path, extent: &TraceExtent) -> String {
    let host = if extent.system.node.is_empty() { String::new() } else { format!("{}:", extent.system.node) };
    let span = extent.start.unwrap_or_default().0;
    format!("{} ({host}{}, from {span} ns to {} ns)", merge::UNKNOWN, path.display(), extent.end.0)
}

/// What happened in a trace, as counts, and whose it is.
#[derive(Clone, Debug)]
pub struct TraceCounts {
    /// Kernel, machine and workload, and how it came about.
    pub group: MergeKey,
    /// What happened.
    pub counts: RunCounts,
    /// All waits by cause, where they were asked for.
    pub causes: Option<WaitCauses>,
    /// The seed of a run of the model.
    pub seed: Option<u64>,
    /// How many CPUs there are.
    pub cpus: u32,
    /// The kernel's name or release; empty where nothing tells.
    pub kernel: String,
    /// The recorded host; empty where nothing tells it, and for records of no host.
    pub host: String,
    /// What it says of kernel and machine.
    pub system: System,
}

/// What happened in a trace, as counts: read once for how far it reaches, once for what happened.
///
/// # Errors
/// It cannot be read twice, or holds no events.
pub fn count_trace(path: &Path) -> Result<TraceCounts, LabError> {
    count_tasks(path, TraceCounting::default())
}

/// What of a trace is counted.
#[derive(Clone, Debug, Default)]
pub struct TraceCounting {
    /// Of latencies, switches and migrations only those of this process and all that descend from it.
    pub root: Option<Pid>,
    /// Numbers by name.
    pub by_name: NamesWanted,
    /// What CPUs share, where the trace does not tell.
    pub places: Option<MachinePlaces>,
    /// What ends then, on the trace's clock.
    pub time: TimeRange,
    /// All waits by cause, too.
    pub causes: bool,
}

/// What happened in a trace, as counts, as far as it is to be counted.
///
/// # Errors
/// It cannot be read twice, or holds no events, or none in the time that is asked for.
pub fn count_tasks(path: &Path, counting: TraceCounting) -> Result<TraceCounts, LabError> {
    let TraceCounting { root, by_name, places, time, causes } = counting;
    let hint = "give a trace in a file";
    let read = |sink: &mut dyn Sink| {
        read_recorded(path, &ReadOptions::default(), sink)
            .map_err(|error| LabError::new(format!("{}: {error}", path.display()), error.hint()))
    };
    let mut extent = TraceExtent { family: root.into_iter().collect(), ..TraceExtent::default() };
    read(&mut extent)?;
    let empty = || LabError::new(format!("{}: no events in it", path.display()), hint);
    let start = extent.start.ok_or_else(empty)?;
    if time.part(start, extent.end) == Ns::ZERO && !time.is_all() {
        let [from, to] = [start, extent.end].map(Ns::as_secs_f64);
        let problem = format!("{}: nothing of it lies in {time}", path.display());
        return Err(LabError::new(problem, format!("the trace goes from {from} s to {to} s")));
    }
    let known = extent.system.cpus.map_or(0, |cpus| cpus as usize);
    let cpus = extent.cpus.max(known);
    let told = || fairlab_recording::topology_of(&extent.system).as_ref().map(places_of);
    let places = places.or_else(told);
    let mut metrics = Metrics::new(cpus, start).recorded().by_name(by_name, places).within(time);
    if root.is_some() {
        metrics = metrics.of_tasks(std::mem::take(&mut extent.family));
    }
    let mut sinks = (metrics, causes.then(Causes::new));
    read(&mut sinks)?;
    let (metrics, causes) = sinks;
    let counts = metrics.into_counts(extent.end);
    let causes = causes.map(|causes| causes.finish(Ns::ZERO));
    Ok(TraceCounts { causes, ..counted(path, &extent, u32::try_from(cpus).unwrap_or(u32::MAX), counts) })
}

/// Whose the counts are: of what Fairlab made itself, kernel and machine have their names.
fn counted(path: &Path, extent: &TraceExtent, cpus: u32, counts: RunCounts) -> TraceCounts {
    let system = &extent.system;
    let origin = Origin::parse(&system.origin);
    let has_seeds = origin.is_some_and(Origin::has_seeds);
    let names = [&system.kernel, &system.release];
    let kernel = names.into_iter().find(|name| !name.is_empty()).cloned().unwrap_or_default();
    let has_name = has_seeds && !system.node.is_empty();
    let group = MergeKey {
        origin,
        kernel: if kernel.is_empty() { unknown_kernel(path, extent) } else { kernel.clone() },
        machine: if has_name { system.node.clone() } else { unnamed_machine(cpus) },
        workload: told_beside(path).and_then(|told| told.workload).unwrap_or_else(|| "recorded".to_string()),
        labels: Labels::new(),
    };
    let host = if has_seeds { String::new() } else { system.node.clone() };
    let seed = system.seed.filter(|_| has_seeds);
    TraceCounts { group, counts, causes: None, seed, cpus, kernel, host, system: system.clone() }
}

impl From<TraceCounts> for RunRecord {
    fn from(counted: TraceCounts) -> RunRecord {
        let TraceCounts { group, counts, causes, seed, cpus, kernel, .. } = counted;
        RunRecord {
            causes,
            machine: group.machine,
            workload: group.workload,
            cpus: Some(cpus),
            origin: group.origin,
            kernel,
            seed,
            metrics: counts.all_metrics(),
            ..RunRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_side(folder: &Path, counting: &TraceCounting) -> Result<Vec<RunSide>, LabError> {
        let (runs, traces) = find(folder, counting)?;
        Ok(named(by_kernel(runs, traces), folder))
    }

    fn testdata(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
    }

    #[test]
    fn a_folder_of_traces_is_a_side() {
        let folder = std::env::temp_dir().join(format!("fairlab-side-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for name in ["one.data", "two.data"] {
            fs::copy(testdata("perf-hackbench.data"), folder.join(name)).expect("copied");
        }
        fs::write(folder.join("notes.md"), "not a trace").expect("written");
        let sides = read_side(&folder, &TraceCounting::default()).expect("a side");
        fs::remove_dir_all(&folder).expect("removed");
        let [side] = &sides[..] else { panic!("{sides:?}") };
        assert_eq!((side.records.len(), side.records[0] == side.records[1]), (2, true));
        assert!(side.records[0].metric("wakeup_latency_ns_max").is_some_and(|max| max > 0.0));
        assert!(
            read_side(&folder, &TraceCounting::default())
                .expect_err("gone")
                .to_string()
                .contains("fairlab-side")
        );
        // Folders in a folder are looked into: recordings of several kernels are as many sides.
        let all = testdata("recordings");
        let some = std::env::temp_dir().join(format!("fairlab-sides-{}", std::process::id()));
        for name in ["6.1-yield-2", "6.12-nice-2"] {
            fs::create_dir_all(some.join(name)).expect("a folder");
            for file in ["meta.json", "sched_info.txt", "trace.txt.zst"] {
                fs::copy(all.join(name).join(file), some.join(name).join(file)).expect("copied");
            }
        }
        let sides = read_side(&some, &TraceCounting::default()).expect("two sides");
        fs::remove_dir_all(&some).expect("removed");
        let origins = sides.iter().map(|side| side.records[0].origin).collect::<Vec<_>>();
        assert_eq!(origins, [Some(Origin::Booted); 2]);
        assert!(sides[0].name.starts_with("6.1.0-") && sides[1].name.starts_with("6.12."), "{sides:?}");
        assert!(
            read_side(&testdata("rt-app"), &TraceCounting::default())
                .expect_err("no traces")
                .problem
                .contains("no traces in it")
        );
    }
}
