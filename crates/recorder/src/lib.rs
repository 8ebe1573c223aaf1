//! Recording this host's scheduler while a command runs: tracefs's own buffers, read page by page.
//!
//! Must not know: how a reader of traces reads pages, how a result reaches a user.

mod family;
mod groups;
mod pages;
mod tracefs;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlab_event::{Event, EventKind, Sink, System, Tracepoint, sink_fn};
use fairlab_recording::TraceFile;
use fairlab_trace::{ImportStats, OutputFormat, ReadOptions, WriterLosses, read_path};
use rustix::process::Signal;

use fairlab_files::{LabError, temporary};
use family::CommandTree;
pub use family::ForwardedSignals;
use pages::BufferCopy;
use tracefs::{InstanceProbe, TracefsInstance, copy};

/// What is recorded unless something else is asked for, as `SYSTEM:EVENT`: the scheduler's tracepoints. What a kernel lacks
/// of it is left out.
pub fn events() -> Vec<String> {
    Tracepoint::mainline().map(|known| format!("{}:{}", known.system(), known.name())).collect()
}

/// What shows placement: the entity as `place_entity()` finds it, and as the pick sets it running.
const PLACE_PROBES: &[InstanceProbe] = &[
    (
        "place_entity",
        "place_entity",
        "se=$arg2 vruntime=se->vruntime:u64 deadline=se->deadline:u64 vlag=se->vlag:s64 flags=$arg3",
    ),
    (
        "set_next_entity",
        "set_next_entity",
        "se=$arg2 vruntime=se->vruntime:u64 deadline=se->deadline:u64 vlag=se->vlag:s64",
    ),
];

/// What and how to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The trace's file.
    pub output: PathBuf,
    /// Its format, whatever the name.
    pub format: Option<OutputFormat>,
    /// Events as `SYSTEM:EVENT`; those of [`events`] where none are named.
    pub events: Vec<String>,
    /// The buffer of each CPU, KiB.
    pub buffer_kb: u32,
    /// Probes that show where entities are placed.
    pub place: bool,
    /// Where the command's standard output goes, if not to ours.
    pub stdout: Option<PathBuf>,
    /// How long the command may take before it is ended.
    pub limit: Option<Duration>,
    /// Signals that the command is to get.
    pub signals: ForwardedSignals,
    /// Which hardware the CPUs share, as lines of a trace's description of its machine.
    pub topology: Vec<String>,
}

impl RecordOptions {
    /// A trace of the usual events into `output`.
    pub fn new(output: impl Into<PathBuf>) -> RecordOptions {
        RecordOptions {
            output: output.into(),
            format: None,
            events: Vec::new(),
            buffer_kb: BUFFER_KB,
            place: false,
            stdout: None,
            limit: None,
            signals: ForwardedSignals::default(),
            topology: Vec::new(),
        }
    }
}

/// The switch of schedstats, 0 by default; only kernels that were built with them have it.
const SCHEDSTATS: &str = "/proc/sys/kernel/sched_schedstats";

/// A buffer of this size a CPU holds half a second of a busy one, KiB.
const BUFFER_KB: u32 = 8192;

/// What came of it.
#[derive(Debug)]
pub struct RecordOutcome {
    /// How the command ended.
    pub status: ExitStatus,
    /// The command's process.
    pub pid: u32,
    /// How many processes the command left behind, which were ended.
    pub left_behind: usize,
    /// Events asked for that this kernel does not have.
    pub missing: Vec<String>,
    /// Whether the kernel counts how long tasks wait and sleep, and says so in events; `None` where it was built without that.
    pub schedstats: Option<bool>,
    /// Events that buffers had no room for.
    pub dropped: u64,
    /// Events of probes, by name.
    pub probes: BTreeMap<String, u64>,
    /// What was read back.
    pub import: ImportStats,
    /// What the file does not carry.
    pub losses: WriterLosses,
}

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Between two looks at whether the command has ended.
const LOOK: Duration = Duration::from_millis(2);

/// Whether this host can be recorded by this user.
///
/// # Errors
/// Why it cannot.
pub fn check() -> Result<(), LabError> {
    TracefsInstance::create().map(drop)
}

/// Runs `command` and records the scheduler meanwhile. When `stop` is set the command is ended with all that it started, and what was
/// recorded is kept. Every setting is as before when this returns, and no process of the command's is left.
///
/// # Errors
/// Tracefs cannot be used, an event that was asked for is not there, the command cannot be started, the trace not written.
pub fn record(
    options: &RecordOptions,
    command: &[String],
    stop: &AtomicBool,
) -> Result<RecordOutcome, LabError> {
    let mut trace = TraceFile::create(&options.output, options.format)?;
    let copied = CopyFolder::create(trace.building())?;
    let mut instance = TracefsInstance::create()?;
    let missing = prepare(&mut instance, options)?;
    let page_bytes = page_bytes(&instance)?;
    let cpus = instance.cpus().map_err(|error| failed(&instance, &error))?;
    let mut buffers = Vec::new();
    for cpu in &cpus {
        let name = format!("per_cpu/cpu{cpu}/trace_pipe_raw");
        let pages = BufferCopy::open(&instance.folder().join(&name), &copied.0.join(&name), page_bytes);
        buffers.push(pages.map_err(|error| failed(&instance, &error))?);
    }
    let CommandOutcome { pid, status, left_behind } = run(&instance, &mut buffers, options, command, stop)?;
    drop(buffers);
    let dropped = cpus.iter().map(|&cpu| instance.dropped(cpu)).sum();
    copied.describe(&instance, options).map_err(|error| failed(&instance, &error))?;
    drop(instance);
    trace.system(&this_system(cpus.len(), &options.topology));
    let mut probes = BTreeMap::new();
    let count = sink_fn(|event: &Event<'_>| {
        if let EventKind::Kprobe { name, .. } = event.kind {
            *probes.entry(name.to_string()).or_insert(0) += 1;
        }
    });
    let import =
        read_path(&copied.0, &ReadOptions::default(), &mut (&mut trace, count)).map_err(|error| {
            LabError::new(format!("what was recorded cannot be read: {error}"), "record for longer")
        })?;
    let schedstats = schedstats(Path::new(SCHEDSTATS));
    Ok(RecordOutcome {
        status,
        pid,
        left_behind,
        missing,
        schedstats,
        dropped,
        probes,
        import,
        losses: trace.finish()?,
    })
}

/// What the switch says of `sched_stat_wait` and its like: tracepoints are there without it, and are never hit.
fn schedstats(switch: &Path) -> Option<bool> {
    fs::read_to_string(switch).ok().map(|state| state.trim() != "0")
}

/// Buffers, clock, events. Returns the events that are not there.
fn prepare(instance: &mut TracefsInstance, options: &RecordOptions) -> Result<Vec<String>, LabError> {
    instance.set("buffer_size_kb", &options.buffer_kb.to_string())?;
    instance.set("trace_clock", "mono")?;
    // Older kernels cannot keep process numbers.
    let _ = instance.set("options/record-tgid", "1");
    let by_name = !options.events.is_empty();
    let names = events();
    let mut missing = Vec::new();
    for event in if by_name { &options.events } else { &names } {
        if instance.enable(event)? {
            continue;
        }
        if by_name || *event == names[0] {
            return Err(LabError::new(
                format!("this kernel has no event {event}"),
                "name events as SYSTEM:EVENT; available_events in tracefs lists them",
            ));
        }
        missing.push(event.clone());
    }
    if options.place {
        missing.extend(instance.probe(PLACE_PROBES).into_iter().map(|name| format!("probe {name}")));
    }
    Ok(missing)
}

/// How a command ran.
struct CommandOutcome {
    pid: u32,
    status: ExitStatus,
    left_behind: usize,
}

/// Lets the command run while buffers are copied.
fn run(
    instance: &TracefsInstance,
    buffers: &mut [BufferCopy],
    options: &RecordOptions,
    command: &[String],
    stop: &AtomicBool,
) -> Result<CommandOutcome, LabError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(LabError::new("no command is given", "name it behind --: fairlab record -- sleep 1"));
    };
    let mut command = prepared(program, arguments, options)?;
    instance.set("tracing_on", "1")?;
    if stop.load(Ordering::Relaxed) {
        return Err(LabError::new(format!("stopped before '{program}' began"), "record again"));
    }
    let marker = instance.folder().join("trace_marker");
    let mut family = CommandTree::start(&mut command, &marker).map_err(|error| {
        LabError::new(format!("cannot start '{program}': {error}"), "check its name and the path to it")
    })?;
    let ended = AtomicBool::new(false);
    let (status, left_behind, off, copied) = thread::scope(|scope| {
        let copying = scope.spawn(|| pages::copy_until(buffers, &ended));
        let status = wait(&mut family, stop, options);
        let left_behind = family.end_rest();
        let off = instance.set("tracing_on", "0");
        ended.store(true, Ordering::Release);
        let copied = copying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (status, left_behind, off, copied)
    });
    off?;
    copied.map_err(|error| {
        LabError::new(format!("cannot keep what was recorded: {error}"), "check the free space")
    })?;
    let status = status
        .map_err(|error| LabError::new(format!("cannot wait for '{program}': {error}"), "try again"))?;
    Ok(CommandOutcome { pid: family.id(), status, left_behind })
}

/// The command, with its output where it goes.
fn prepared(program: &str, arguments: &[String], options: &RecordOptions) -> Result<Command, LabError> {
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(path) = &options.stdout {
        let file = fs::File::create(path).map_err(|error| {
            LabError::new(format!("cannot write {}: {error}", path.display()), "check the place")
        })?;
        command.stdout(file);
    }
    Ok(command)
}

/// Waits for the command. It gets the signals that we get. Where we stop for another reason, it is asked to end, and has time to.
fn wait(family: &mut CommandTree, stop: &AtomicBool, options: &RecordOptions) -> io::Result<ExitStatus> {
    let begin = Instant::now();
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = family.try_wait()? {
            return Ok(status);
        }
        if family.hand_on(&options.signals) {
            asked.get_or_insert_with(Instant::now);
        }
        if stop.load(Ordering::Relaxed) && asked.is_none() {
            family.signal(Signal::TERM);
            asked = Some(Instant::now());
        }
        let has_had_time = asked.is_some_and(|asked| asked.elapsed() > GRACE);
        if has_had_time || options.limit.is_some_and(|limit| begin.elapsed() > limit) {
            family.signal(Signal::KILL);
        }
        thread::sleep(LOOK);
    }
}

/// A folder beside the output, laid out as tracefs is; gone when this is.
struct CopyFolder(PathBuf);

impl CopyFolder {
    /// Beside the file that the trace goes into; where it goes through a pipe, in the place for large temporary files.
    fn create(output: Option<&Path>) -> Result<CopyFolder, LabError> {
        let large = || fairlab_trace::place_of_large_files().join("pages");
        let folder = temporary::beside(&output.map_or_else(large, Path::to_path_buf));
        DirBuilder::new().mode(0o700).create(&folder).map_err(|error| {
            LabError::new(
                format!("cannot make {}: {error}", folder.display()),
                "check the place and its free space",
            )
        })?;
        Ok(CopyFolder(folder))
    }

    /// Copies what a reader needs to know of the pages.
    fn describe(&self, instance: &TracefsInstance, options: &RecordOptions) -> io::Result<()> {
        let (from, top) = (instance.folder(), instance.top());
        copy(&top.join("events/header_page"), &self.0.join("events/header_page"))?;
        for file in ["trace_clock", "saved_cmdlines", "saved_tgids", "events/ftrace/print/format"] {
            copy(&from.join(file), &self.0.join(file))?;
        }
        for file in ["saved_cmdlines", "saved_tgids", "printk_formats"] {
            let own = self.0.join(file);
            if fs::metadata(&own).map_or(true, |own| own.len() == 0) {
                copy(&top.join(file), &own)?;
            }
        }
        let probed = PLACE_PROBES.iter().map(|probe| format!("{}:{}", instance.probe_system(), probe.0));
        for event in events().into_iter().chain(options.events.iter().cloned()).chain(probed) {
            let file = format!("events/{}/format", event.replace(':', "/"));
            copy(&top.join(&file), &self.0.join(&file))?;
        }
        Ok(())
    }
}

impl Drop for CopyFolder {
    fn drop(&mut self) {
        temporary::remove(&self.0);
    }
}

/// A page's size, from its description: where the data begin, and how many bytes they are.
fn page_bytes(instance: &TracefsInstance) -> Result<usize, LabError> {
    let path = instance.top().join("events/header_page");
    let bytes = tracefs::read(&path).map_err(|error| failed(instance, &error))?;
    let text = String::from_utf8_lossy(&bytes);
    let data = text.lines().find(|line| line.contains(" data;")).unwrap_or_default();
    let number = |name: &str| -> Option<usize> {
        data.split(';').find_map(|field| field.trim().strip_prefix(name)?.parse().ok())
    };
    number("offset:").zip(number("size:")).map(|(offset, size)| offset + size).ok_or_else(|| {
        LabError::new(format!("{} does not describe pages", path.display()), "report this with that file")
    })
}

fn this_system(cpus: usize, topology: &[String]) -> System {
    let of = |file: &str| {
        fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap_or_default().trim().to_string()
    };
    System {
        release: of("osrelease"),
        node: of("hostname"),
        architecture: of("arch"),
        cpus: u32::try_from(cpus).ok(),
        topology: topology.to_vec(),
        groups: groups::of_this_host(),
        ..System::default()
    }
}

fn failed(instance: &TracefsInstance, error: &io::Error) -> LabError {
    LabError::new(format!("{}: {error}", instance.folder().display()), "see whether this user may read it")
}

impl RecordOutcome {
    /// The exit status that the command would have given its caller.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
}

/// Tests that record come one after the other, so that each can say what it left behind.
#[cfg(test)]
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Whether this user may make instances here: looked for once, since tests run beside each other.
#[cfg(test)]
fn may_record() -> bool {
    static MAY: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *MAY.get_or_init(|| {
        let Ok(tracefs) = tracefs::Tracefs::find() else { return false };
        let probe = tracefs.top().join(format!("instances/test-{}", std::process::id()));
        fs::create_dir(&probe).is_ok() && fs::remove_dir(&probe).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::PoisonError;

    use super::*;
    use fairlab_event::{Event, EventKind};

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.contains(&format!("fairlab_{}", std::process::id()))).collect()
    }

    /// An empty folder of this name.
    fn empty_folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("fairlab-record-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        folder
    }

    #[test]
    fn a_command_is_recorded() {
        assert!(may_record(), "this test takes root and tracefs");
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = empty_folder("sleep");
        let options = RecordOptions { place: true, ..RecordOptions::new(folder.join("sleep.dat")) };
        let command = ["sleep", "0.05"].map(String::from);
        let recorded = record(&options, &command, &AtomicBool::new(false)).expect("a recording");
        assert_eq!((recorded.code(), recorded.dropped), (0, 0));
        let mut slept = 0;
        let mut sink = sink_fn(|event: &Event<'_>| {
            let EventKind::SchedSwitch(switch) = event.kind else { return };
            slept += u32::from(switch.prev_comm.to_str() == "sleep" && !switch.prev_state.is_runnable());
        });
        read_path(&options.output, &ReadOptions::default(), &mut sink).expect("a trace");
        drop(sink);
        assert!(slept > 0, "sleep never slept");
        let tracefs = tracefs::Tracefs::find().expect("tracefs");
        assert_eq!(names_in(&tracefs.top().join("instances")), Vec::<String>::new());
        assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 1);
        fs::remove_dir_all(folder).expect("the folder");
    }

    #[test]
    fn a_kernel_has_schedstats_on_or_off_or_not_at_all() {
        let folder = empty_folder("schedstats");
        let switch = folder.join("sched_schedstats");
        assert_eq!(schedstats(&switch), None);
        for (state, expected) in [("0\n", false), ("1\n", true)] {
            fs::write(&switch, state).expect("a file");
            assert_eq!(schedstats(&switch), Some(expected));
        }
        fs::remove_dir_all(&folder).expect("taken down");
        // Events and their switch come together.
        let Ok(tracefs) = tracefs::Tracefs::find() else { return };
        let has_events = tracefs.top().join("events/sched/sched_stat_wait").is_dir();
        assert_eq!(schedstats(Path::new(SCHEDSTATS)).is_some(), has_events);
    }

    #[test]
    fn mistakes_leave_nothing_behind() {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = empty_folder("mistakes");
        let options = |output: &str, events: &[&str]| RecordOptions {
            events: events.iter().map(|event| (*event).to_string()).collect(),
            ..RecordOptions::new(folder.join(output))
        };
        let stop = AtomicBool::new(false);
        let error = record(&options("trace.doc", &[]), &["true".to_string()], &stop).expect_err("no format");
        assert!(error.problem.contains("is no name for a trace"), "{error}");
        let unknown = record(&options("a.dat", &["sched:sched_dance"]), &["true".to_string()], &stop);
        let error = unknown.expect_err("no such event");
        assert!(error.problem.contains("sched_dance"), "{error}");
        let error =
            record(&options("a.dat", &[]), &["/no/such/program".to_string()], &stop).expect_err("no program");
        assert!(error.problem.contains("/no/such/program"), "{error}");
        assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 0);
        fs::remove_dir_all(folder).expect("the folder");
    }
}
