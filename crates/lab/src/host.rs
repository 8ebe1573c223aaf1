//! The kernel that runs here, `host`: workloads carried out for real, recorded, and described in the words of the model.
//!
//! Must not know: how a result reaches a user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlab_analysis::causes::WaitCauses;
use fairlab_analysis::counts::RunCounts;
use fairlab_event::{DigestSink, Pid};
use fairlab_files::shell::line_of;
use fairlab_live::rtapp::check_loops;
use fairlab_live::{LiveReport, switches_of_children};
use fairlab_trace::{ReadOptions, WriterLosses, read_path};
use fairlab_verify::schedstat::metrics::between;

use crate::compare::{TraceCounting, TraceCounts, count_tasks};
use crate::initial_lists::InitialLists;
use crate::names::places_of;
use crate::record::{self, RecordOptions};
use crate::run::add_work;
use crate::{LabError, RunResult, RunSpec, machines, workloads};
use fairlab_files::temporary::PrivateFolder;

/// The name of this kernel, and of this machine.
pub const NAME: &str = "host";

/// A buffer of this size a CPU holds a second of a busy one, KiB.
const BUFFER_KB: u32 = 16_384;

/// Time beyond its duration that a run gets to end by itself.
const GRACE: Duration = Duration::from_secs(10);

/// Workloads of the model that no user can start.
const NOT_LIVE: [&str; 1] = ["uperf"];

/// How runs on this host can be observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostObservation {
    /// Every event, through tracefs.
    Recorded,
    /// Without tracefs, for this reason: what a workload counts itself, and its context switches.
    Counted(String),
}

impl HostObservation {
    /// What this user can do on this host.
    pub fn of_this_host() -> HostObservation {
        match record::check() {
            Ok(()) => HostObservation::Recorded,
            Err(error) => HostObservation::Counted(error.to_string()),
        }
    }

    /// What results lack, in a sentence for people; none where nothing is lacking.
    pub fn lacks(&self) -> Option<String> {
        match self {
            HostObservation::Recorded => None,
            HostObservation::Counted(why) => Some(format!(
                "{why}; without that only switches and the workload's own numbers are known: no latencies, migrations, \
                 idleness, trace"
            )),
        }
    }
}

/// Checks what can be checked before anything runs.
///
/// # Errors
/// The workload's options are wrong, it cannot be started by a user, or there is no such command.
pub fn check(workload: &[String]) -> Result<(), LabError> {
    let Some(name) = workload.first() else { return workloads::build(workload).map(drop) };
    if NOT_LIVE.contains(&name.as_str()) {
        return Err(LabError::new(
            format!("{name} models kernel threads, which cannot be started"),
            "run it on a modelled kernel, or another workload on this host",
        ));
    }
    match workloads::find(name) {
        Ok(_) => workloads::build(workload).map(drop),
        Err(_) if in_path(name).is_some() => Ok(()),
        Err(error) => {
            Err(LabError::new(error.problem, format!("{}, or any command of this host", error.hint)))
        }
    }
}

/// The program of this name among those that can be called without a path, or the path itself.
fn in_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Path::new(name).is_file().then(|| PathBuf::from(name));
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Where the host's scheduler counts.
const SCHEDSTAT: &str = "/proc/schedstat";

/// Runs a spec on this host. Gives `None` when `stop` was set before the end.
///
/// # Errors
/// The workload fails, or the trace cannot be written.
pub(crate) fn run(spec: &RunSpec, stop: &AtomicBool) -> Result<Option<RunResult>, LabError> {
    let folder = TemporaryFolder::create()?;
    let command = Invocation::of(spec, &folder)?;
    let observation = HostObservation::of_this_host();
    let schedstat = || fs::read_to_string(SCHEDSTAT).unwrap_or_default();
    let (before, begin) = (schedstat(), Instant::now());
    let observed = match observation {
        HostObservation::Recorded => recorded(spec, &command, &folder, stop)?,
        HostObservation::Counted(_) => counted(spec, &command, &folder, stop)?,
    };
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let (wall_ns, schedstat) = (begin.elapsed().as_nanos() as u64, schedstat());
    let report = command.report(&folder)?;
    let mut metrics = observed.metrics;
    let seconds = report.elapsed.as_secs_f64();
    if let Some((_, count)) = report.progress.filter(|_| seconds > 0.0) {
        add_work(&mut metrics, &observed.counts, count, count as f64 / seconds);
    }
    metrics.extend(report.metrics);
    if spec.by_name.counters && !schedstat.is_empty() {
        // The host's whole: what else runs there counts, too.
        metrics.extend(between(&before, &schedstat)?);
    }
    Ok(Some(RunResult {
        side: None,
        kernel: NAME.to_string(),
        machine: NAME.to_string(),
        workload: line_of(&spec.workload),
        seed: spec.seed,
        digest: observed.digest,
        begin_ns: None,
        settled_ns: None,
        early_excess: None,
        simulated_ns: observed.counts.observed_ns,
        wall_ns,
        switches: observed.counts.switches,
        metrics,
        causes: observed.causes,
        counts: observed.counts,
        output: report.output,
        trace_losses: observed.losses.to_string(),
        schedstat,
        schedstat_searches: String::new(),
        beginning: InitialLists::default(),
    }))
}

/// What is known of a run beside what its workload says.
struct ObservedRun {
    metrics: Vec<(String, f64)>,
    counts: RunCounts,
    causes: Option<WaitCauses>,
    digest: String,
    losses: WriterLosses,
}

/// Which hardware this host's CPUs share, as a trace describes it; nothing where the host does not tell.
pub fn topology_lines() -> Vec<String> {
    let machine = machines::find(NAME);
    machine.map(|machine| fairlab_recording::lines_of(&machine.topology)).unwrap_or_default()
}

fn recorded(
    spec: &RunSpec,
    command: &Invocation,
    folder: &TemporaryFolder,
    stop: &AtomicBool,
) -> Result<ObservedRun, LabError> {
    let trace = spec.trace.clone().unwrap_or_else(|| folder.0.path().join("trace.dat"));
    let (begin, limit) = (Instant::now(), limit_of(spec));
    let options = RecordOptions {
        buffer_kb: BUFFER_KB,
        stdout: Some(folder.stdout()),
        limit: Some(limit),
        topology: topology_lines(),
        ..RecordOptions::new(&trace)
    };
    let recorded = record::record(&options, &command.words, stop)?;
    if recorded.dropped > 0 {
        let problem = format!("{} events were dropped for want of room", recorded.dropped);
        return Err(LabError::new(problem, "run something shorter or less busy"));
    }
    command.check_status(recorded.code(), (begin.elapsed() > limit).then_some(limit), stop)?;
    let pid = Pid(i32::try_from(recorded.pid).unwrap_or(0));
    let counting = TraceCounting {
        root: Some(pid),
        by_name: spec.by_name.clone(),
        places: Some(places_of(&spec.machine.topology)),
        causes: spec.causes,
        ..TraceCounting::default()
    };
    let TraceCounts { counts, causes, .. } = count_tasks(&trace, counting)?;
    let mut digest = DigestSink::default();
    read_path(&trace, &ReadOptions::default(), &mut digest)
        .map_err(|error| LabError::new(format!("{}: {error}", trace.display()), "record for longer"))?;
    let metrics = counts.all_metrics();
    Ok(ObservedRun { metrics, counts, causes, digest: digest.digest().to_string(), losses: recorded.losses })
}

fn counted(
    spec: &RunSpec,
    command: &Invocation,
    folder: &TemporaryFolder,
    stop: &AtomicBool,
) -> Result<ObservedRun, LabError> {
    if let Some(path) = &spec.trace {
        return Err(LabError::new(
            format!("{} cannot be written: this host cannot be recorded", path.display()),
            "'fairlab record' says why",
        ));
    }
    if spec.causes {
        return Err(LabError::new(
            "why tasks wait cannot be told: this host cannot be recorded",
            "'fairlab record' says why; compare without --explain",
        ));
    }
    let failed = |what: &str, error: std::io::Error| LabError::new(format!("{what}: {error}"), "try again");
    let output = fs::File::create(folder.stdout()).map_err(|error| failed("cannot keep output", error))?;
    let (before, begin, limit) = (switches_of_children(), Instant::now(), limit_of(spec));
    let mut child = Command::new(&command.words[0])
        .args(&command.words[1..])
        .stdout(Stdio::from(output))
        .spawn()
        .map_err(|error| failed(&format!("cannot start '{}'", command.words[0]), error))?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| failed("cannot wait", error))? {
            break status;
        }
        if begin.elapsed() > limit {
            child.kill().map_err(|error| failed("cannot end it", error))?;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let took = begin.elapsed();
    command.check_status(status.code().unwrap_or(1), (took > limit).then_some(limit), stop)?;
    let observed_ns = took.as_nanos() as u64;
    let mut counts = RunCounts { runs: 1, observed_ns, ..RunCounts::default() };
    let mut metrics = Vec::new();
    if let Some(((voluntary, involuntary), (voluntary_before, involuntary_before))) =
        switches_of_children().zip(before)
    {
        counts.involuntary_switches = involuntary - involuntary_before;
        counts.switches = voluntary - voluntary_before + counts.involuntary_switches;
        let per_s = |count: u64| count as f64 * 1e9 / observed_ns.max(1) as f64;
        metrics.push(("involuntary_switches_per_s".to_string(), per_s(counts.involuntary_switches)));
        metrics.push(("switches_per_s".to_string(), per_s(counts.switches)));
    }
    Ok(ObservedRun { metrics, counts, causes: None, digest: String::new(), losses: WriterLosses::default() })
}

/// How long a run may take.
fn limit_of(spec: &RunSpec) -> Duration {
    Duration::from_nanos(spec.duration.0) + GRACE
}

/// The program that wins over ours where it is installed, and our option that it has not.
const RT_APP: &str = "rt-app";
const WORKGEN: &str = "--workgen";

/// The command that carries a workload out.
struct Invocation {
    words: Vec<String>,
    /// It writes a report of its own; of others the output is all there is.
    reports: bool,
}

impl Invocation {
    fn of(spec: &RunSpec, folder: &TemporaryFolder) -> Result<Invocation, LabError> {
        let name = spec.workload.first().map_or("", String::as_str);
        // The real program wins where it is installed: the file is its language.
        let program =
            in_path(name).filter(|_| name == RT_APP && !spec.workload.iter().any(|word| word == WORKGEN));
        if let Some((program, file)) = program.as_ref().zip(spec.workload.last()) {
            check_loops(program, Path::new(file))?;
        }
        if program.is_some() || workloads::find(name).is_err() {
            return Ok(Invocation { words: spec.workload.clone(), reports: false });
        }
        let text = |path: &Path| path.to_string_lossy().into_owned();
        // This program's own command `live` carries workloads out.
        let program = std::env::current_exe().map_err(|error| {
            LabError::new(format!("cannot find this program: {error}"), "call it by its path")
        })?;
        let mut words = vec![text(&program), "live".to_string()];
        words.extend(["--seed".to_string(), spec.seed.to_string()]);
        words.extend(["--duration".to_string(), format!("{}ns", spec.duration.0)]);
        words.extend(["--report".to_string(), text(&folder.report()), "--".to_string()]);
        words.extend(spec.workload.iter().cloned());
        Ok(Invocation { words, reports: true })
    }

    /// A run that was stopped may end as it likes. Others end by themselves, in the time that they have.
    fn check_status(&self, code: i32, overran: Option<Duration>, stop: &AtomicBool) -> Result<(), LabError> {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let words = self.words.join(" ");
        let problem = match (code, overran.map(|limit| [limit, GRACE].map(|time| time.as_secs()))) {
            (0, _) => return Ok(()),
            (_, Some([limit, grace])) => {
                format!(
                    "'{words}' was killed: it still ran after {limit} s, its --duration and {grace} s more"
                )
            }
            _ => format!("'{words}' ended with status {code}"),
        };
        Err(LabError::new(problem, "run something that succeeds within its --duration"))
    }

    fn report(&self, folder: &TemporaryFolder) -> Result<LiveReport, LabError> {
        let unreadable = |problem| LabError::new(problem, "check the free space of the temporary folder");
        if !self.reports {
            let output = fs::read(folder.stdout());
            let output = output.map_err(|error| unreadable(format!("no output: {error}")))?;
            let output = String::from_utf8_lossy(&output).into_owned();
            return Ok(LiveReport { output, ..LiveReport::default() });
        }
        let text = fs::read_to_string(folder.report());
        let text = text.map_err(|error| unreadable(format!("the workload left no report: {error}")))?;
        let report = serde_json::from_str(&text).ok().and_then(|value| LiveReport::from_json(&value));
        report.ok_or_else(|| unreadable("the workload's report cannot be read".to_string()))
    }
}

/// A folder of our own, gone when this is.
struct TemporaryFolder(PrivateFolder);

impl TemporaryFolder {
    fn create() -> Result<TemporaryFolder, LabError> {
        PrivateFolder::create().map(TemporaryFolder).map_err(|error| {
            LabError::new(format!("cannot make a folder for a run: {error}"), "check the temporary folder")
        })
    }

    fn stdout(&self) -> PathBuf {
        self.0.path().join("stdout")
    }

    fn report(&self) -> PathBuf {
        self.0.path().join("report.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_killed_at_its_limit_is_told_from_what_fails() {
        let command = Invocation { words: vec!["rt-app".to_string(), "x.json".to_string()], reports: false };
        let problem = |code, overran: Option<u64>, is_stopped| {
            let checked =
                command.check_status(code, overran.map(Duration::from_secs), &AtomicBool::new(is_stopped));
            checked.map_err(|error| error.problem)
        };
        let killed = "'rt-app x.json' was killed: it still ran after 70 s, its --duration and 10 s more";
        assert_eq!(problem(137, Some(70), false), Err(killed.to_string()));
        assert_eq!(problem(137, None, false), Err("'rt-app x.json' ended with status 137".to_string()));
        assert_eq!([problem(0, Some(70), false), problem(137, Some(70), true)], [Ok(()), Ok(())]);
    }
}
