//! A recording's folder: the trace, and beside it what the recorder wrote about kernel, machine and tasks.
//!
//! Must not know: what the model decides.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fairlab_event::probes::ProbePoint;
use fairlab_event::{Ns, Origin, Pid, System, UntypedTracepoint};
use fairlab_files::LabError;
use fairlab_kernel::generation::KernelSettings;
use fairlab_kernel::{CfsLimit, CpuMask, Topology};
use fairlab_trace::is_trace_folder;
use serde_json::Value;

use crate::power::{self, PowerLists};
use crate::sched_debug::SchedDebug;
use crate::sched_info;

/// Names that the trace may have in a recording's folder.
const TRACE_NAMES: [&str; 5] = ["trace.txt.zst", "trace.txt.xz", "trace.txt.gz", "trace.txt", "trace.dat"];

/// How the kernel names autogroups where it prints groups' paths.
const AUTOGROUP: &str = "/autogroup-";

/// The largest file beside the trace that is read: these are lists of tasks and queues.
const BESIDE_BYTES_MAX: u64 = 64 << 20;

/// What a recording consists of.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The trace: a file, a copy of tracefs, or `-`.
    pub trace: PathBuf,
    /// The recorded kernel's release (`uname -r`), where it is known.
    pub release: Option<String>,
    /// How it came about, where anything tells.
    pub origin: Option<Origin>,
    /// The modelled kernel whose run it is.
    pub modelled: Option<String>,
    /// From what sources the kernel was built, where the recording says it.
    pub source: Option<String>,
    /// Commits of those sources that were undone.
    pub reverts: Vec<String>,
    /// Ticks per second.
    pub hz: Option<u64>,
    /// Whether the kernel is a preemptible one, by what `uname -v` says.
    pub preemptible: bool,
    /// The machine.
    pub topology: Option<Topology>,
    /// How the kernel was set.
    pub settings: KernelSettings,
    /// Clocks, and what the CPUs draw.
    pub power: PowerLists,
    /// The runqueues at the time of the snapshot.
    pub debug: Option<SchedDebug>,
    /// Threads at the time of the snapshot.
    pub tasks: Vec<TaskLine>,
    /// Control groups at the time of the snapshot.
    pub cgroups: Vec<CgroupLine>,
    /// Probes show as their caller what lies on the stack, on a machine that keeps it in a register.
    pub hides_callers: bool,
    /// Whether the trace shows each weight that the kernel gives a group's entity.
    pub shows_weights: bool,
    /// Which events were on, a line each (`event sched/sched_waking on`).
    pub events: String,
    /// Whether the trace shows each call of `sched_yield()`.
    pub shows_yields: bool,
    /// Probes show when a group with a quota is throttled.
    pub shows_throttling: bool,
    /// Whether tasks of the root's group are in groups by session, if they have one; and whether some had at the snapshot.
    pub autogroups_enabled: bool,
    pub(crate) has_sessions: bool,
}

/// One thread at the time of the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLine {
    /// Its thread id.
    pub tid: Pid,
    /// Its process id.
    pub pid: Pid,
    /// Its policy, as `sched_setscheduler()` numbers them.
    pub policy: u32,
    /// Its nice level.
    pub nice: i32,
    /// The CPUs that it may use.
    pub allowed: CpuMask,
    /// The path of its control group.
    pub cgroup: String,
    /// Whether it is a kernel thread.
    pub kthread: bool,
}

/// One cgroup at the time of the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupLine {
    /// Where it is, from the root of its hierarchy.
    pub path: String,
    /// Its inode, which probes and cgroup events print.
    pub inode: u64,
    /// `cpu.weight`; the root has none.
    pub weight: Option<u64>,
    /// `cpu.idle`.
    pub idle: bool,
    /// `cpu.max`, as far as it can be one.
    pub max: CfsLimit,
    /// It has a quota at any time.
    pub limited: bool,
    /// Periods of a quota that it has begun (`nr_periods` of `cpu.stat`).
    pub periods: u64,
    /// Nothing had run in it yet.
    pub unused: bool,
}

impl Recording {
    /// Takes over what the trace itself tells and nothing beside it does.
    pub fn take_system(&mut self, system: &System) {
        self.release = self.release.take().or_else(|| Some(system.release.clone()));
        self.origin = self.origin.or(Origin::parse(&system.origin));
        let is_modelled = system.origin == Origin::Modelled.name();
        let kernel = is_modelled.then(|| system.kernel.clone()).filter(|kernel| !kernel.is_empty());
        self.modelled = self.modelled.take().or(kernel);
        self.hz = self.hz.or(system.hz);
        self.topology = self.topology.take().or_else(|| topology_of(system));
        if self.cgroups.is_empty() {
            self.cgroups = cgroups(&system.groups.join("\n"));
        }
    }

    /// Whether the trace itself may tell what nothing beside it does.
    pub fn lacks_system(&self) -> bool {
        self.release.is_none() || self.topology.is_none() || self.hz.is_none()
    }

    /// Finds what belongs to `path`: a recording's folder, or the trace in it.
    ///
    /// # Errors
    /// There is no trace.
    pub fn open(path: &Path) -> Result<Recording, LabError> {
        let (folder, trace) = located(path)?;
        let beside = |name: &str| folder.as_ref().and_then(|folder| read_beside(folder, name));
        let meta = beside("meta.json").and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let meta = meta.unwrap_or_default();
        let info = beside("sched_info.txt").unwrap_or_default();
        if let Some(line) = sched_info::impossible_setting(&info) {
            return Err(LabError::new(
                format!(
                    "{}: sched_info.txt beside it says what no kernel can be set to: {line}",
                    trace.display()
                ),
                "mend that line, or take it out: the kernel's default then holds",
            ));
        }
        let release = meta.get("release").and_then(|release| release.as_str()).map(str::to_string);
        let release = release.or_else(|| release_of(&info));
        let in_register = release.as_deref().is_some_and(|release| release.ends_with("arm64"));
        let says = |word: &str| info.lines().any(|line| line.starts_with("uname:") && line.contains(word));
        let modelled = meta["kernel"].as_str().filter(|_| is_modelled(&info)).map(str::to_string);
        let provenance = &meta["provenance"];
        let texts = |list: &Value| {
            let list = list.as_array().map_or(&[][..], Vec::as_slice);
            list.iter().filter_map(|text| text.as_str().map(str::to_string)).collect()
        };
        let events = beside("events.txt").unwrap_or_default();
        let listed = beside("probes.txt").unwrap_or_default();
        let hides_callers = in_register && listed.contains("by=+0($stack)");
        let shows = |point: ProbePoint| listed.lines().any(|line| line.starts_with(&point.taken()));
        Ok(Recording {
            trace,
            origin: meta["origin"]
                .as_str()
                .map_or_else(|| Origin::parse(&origin_of(&meta, &info)), Origin::parse),
            release,
            modelled,
            source: provenance["source"].as_str().map(str::to_string),
            reverts: texts(&provenance["reverts"]),
            hz: meta.get("HZ").and_then(Value::as_u64),
            preemptible: says(" PREEMPT"),
            topology: sched_info::topology(&info),
            settings: sched_info::settings(&info),
            power: power::power(&info, &beside("frequencies-start.txt").unwrap_or_default()),
            debug: beside("sched_debug-start.txt").map(|text| SchedDebug::parse(&text)),
            tasks: beside("tasks-start.txt").map_or_else(Vec::new, |text| tasks(&text)),
            shows_weights: shows(ProbePoint::ReweightEntity),
            shows_yields: events
                .lines()
                .any(|line| line.trim_end() == format!("event {} on", UntypedTracepoint::SchedYield.path())),
            events,
            shows_throttling: shows(ProbePoint::Throttle) && shows(ProbePoint::Unthrottle),
            hides_callers,
            cgroups: beside("cgroups-start.txt").map_or_else(Vec::new, |text| cgroups(&text)),
            autogroups_enabled: false,
            has_sessions: false,
        }
        .with_sessions(&info)
        .with_end(&beside("cgroups-end.txt").map_or_else(Vec::new, |text| cgroups(&text))))
    }

    /// What the groups at the end tell of the time before: which were given a quota.
    fn with_end(mut self, end: &[CgroupLine]) -> Recording {
        for start in &mut self.cgroups {
            let Some(end) = end.iter().find(|end| end.path == start.path) else { continue };
            start.limited |= end.limited || end.periods != start.periods;
        }
        self
    }

    /// Whether the snapshot lists queues or tasks of autogroups, and these are on. Without a list of settings, that they are
    /// listed shows it.
    fn with_sessions(mut self, info: &str) -> Recording {
        let cpus = self.debug.iter().flat_map(|debug| &debug.cpus);
        let mut paths = cpus.flat_map(|cpu| {
            cpu.queues.iter().map(|queue| &queue.path).chain(cpu.tasks.iter().map(|task| &task.group))
        });
        let listed = paths.any(|path| path.starts_with(AUTOGROUP));
        let set = info.lines().any(|line| line.trim_end() == "/proc/sys/kernel/sched_autogroup_enabled: 1");
        self.has_sessions = listed && (set || self.settings == KernelSettings::default());
        self.autogroups_enabled = set || self.has_sessions;
        self
    }

    /// Whether tasks compete in groups, and nothing tells which: sessions' groups, or a snapshot shows some, and no list of them is there.
    pub fn hides_groups(&self) -> bool {
        let cpus = || self.debug.iter().flat_map(|debug| &debug.cpus);
        let of_queues = cpus().flat_map(|cpu| &cpu.queues).map(|queue| &queue.path);
        let mut all = of_queues.chain(cpus().flat_map(|cpu| &cpu.tasks).map(|task| &task.group));
        self.has_sessions
            || (self.cgroups.is_empty() && all.any(|path| path != "/" && !path.starts_with(AUTOGROUP)))
    }

    /// Whether nothing at all tells of groups.
    pub fn tells_no_groups(&self) -> bool {
        self.debug.is_none() && self.cgroups.is_empty()
    }

    /// What is missing that the walk can do without, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let missing = self.debug.is_none().then(|| {
            "no snapshot (sched_debug-start.txt) beside the trace: the state is learned from the trace alone"
                .to_string()
        });
        let unseen = self
            .has_sessions
            .then(|| "autogroups are on, and which task is in which is not followed: what hangs on groups is not judged".to_string());
        missing.into_iter().chain(unseen).collect()
    }

    /// The recorded tick's period.
    pub fn tick(&self) -> Option<Ns> {
        self.hz.filter(|&hz| hz > 0).map(|hz| Ns(1_000_000_000 / hz))
    }
}

/// A recording's folder, if it is one's, and its trace.
fn located(path: &Path) -> Result<(Option<PathBuf>, PathBuf), LabError> {
    let hint = "give a recording's folder, or the trace in it";
    if path.is_dir() {
        // Pages of a copy of tracefs are a trace themselves; what describes the recording may lie beside them.
        let own = || is_trace_folder(path).then(|| path.to_path_buf());
        let Some(trace) = trace_in(path).or_else(own) else {
            let names = TRACE_NAMES.join(", ");
            return Err(LabError::new(
                format!(
                    "{} holds no trace (none of {names}, and no copy of tracefs with per_cpu/cpuN/trace_pipe_raw)",
                    path.display()
                ),
                hint,
            ));
        };
        Ok((Some(path.to_path_buf()), trace))
    } else if path == Path::new("-") {
        Ok((None, path.to_path_buf()))
    } else if path.is_file() {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok((Some(folder.unwrap_or(Path::new(".")).to_path_buf()), path.to_path_buf()))
    } else {
        Err(LabError::new(format!("{}: no such file or folder", path.display()), hint))
    }
}

/// The trace that a path names: that of a recording's folder, or the path itself.
pub fn trace_of(path: &Path) -> PathBuf {
    trace_in(path).unwrap_or_else(|| path.to_path_buf())
}

/// The trace in a recording's folder.
fn trace_in(folder: &Path) -> Option<PathBuf> {
    TRACE_NAMES.iter().map(|name| folder.join(name)).find(|trace| trace.is_file())
}

/// Whether a folder is a recording's.
pub fn holds_trace(folder: &Path) -> bool {
    trace_in(folder).is_some()
}

/// A text file of the folder, also compressed; an unreadable file counts as missing.
fn read_beside(folder: &Path, name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(folder.join(name)) {
        file.take(BESIDE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    } else {
        let file = File::open(folder.join(format!("{name}.zst"))).ok()?;
        zstd::Decoder::new(file).ok()?.take(BESIDE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What meta.json and sched_info.txt beside a trace tell of its kernel, machine, clock and workload.
#[derive(Clone, Debug, Default)]
pub struct RecordingFacts {
    /// The kernel and the machine.
    pub system: System,
    /// Ticks per second of the trace's clock, where its stamps are numbers of them.
    pub clock_hz: Option<u64>,
    /// What ran, as it was called.
    pub workload: Option<String>,
    /// Where tasks may run that may not run everywhere.
    pub allowed: BTreeMap<Pid, CpuMask>,
}

/// An emulated clock ticks once in a nanosecond of the guest.
const EMULATED_HZ: u64 = 1_000_000_000;

/// What lies beside the trace of a recording; `None` for a trace that is not a recording's by its name.
pub fn told_beside(path: &Path) -> Option<RecordingFacts> {
    let is_recordings = |name: &OsStr| TRACE_NAMES.iter().any(|known| name == *known);
    if !path.is_dir() && !path.file_name().is_some_and(is_recordings) {
        return None;
    }
    let (folder, _) = located(path).ok()?;
    folder.map(|folder| told_in(&folder))
}

/// What the files of a run's or a recording's folder tell.
pub fn told_in(folder: &Path) -> RecordingFacts {
    let info = read_beside(folder, "sched_info.txt").unwrap_or_default();
    let meta = read_beside(folder, "meta.json").and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let meta = meta.unwrap_or_default();
    let topology = sched_info::topology(&info);
    let groups = read_beside(folder, "cgroups-start.txt").unwrap_or_default();
    let events = read_beside(folder, "events.txt").unwrap_or_default();
    let text = |name: &str| meta[name].as_str().filter(|text| !text.is_empty()).map(str::to_string);
    let word = |place: usize| word_of_uname(&info, place);
    let cpus = meta["vcpus"].as_u64().and_then(|cpus| u32::try_from(cpus).ok());
    let described = topology.as_ref().and_then(|topology| u32::try_from(topology.nr_cpus()).ok());
    // Recordings of the lab's emulated machines say how these kept time, and not how fast.
    let is_emulated = ["icount", "deterministic"].contains(&meta["mode"].as_str().unwrap_or_default());
    let clock_hz = meta["clock_hz"].as_u64().filter(|&hz| hz > 0);
    RecordingFacts {
        system: System {
            release: text("release").or_else(|| release_of(&info)).unwrap_or_default(),
            node: text("machine").or_else(|| word(1).filter(|name| name != "(none)")).unwrap_or_default(),
            architecture: text("architecture").or_else(|| architecture_of(&info)).unwrap_or_default(),
            cpus: cpus.or(described),
            kernel: text("kernel").filter(|_| is_modelled(&info)).unwrap_or_default(),
            origin: text("origin").unwrap_or_else(|| origin_of(&meta, &info)),
            seed: meta["seed"].as_u64(),
            hz: meta["HZ"].as_u64().filter(|&hz| hz > 0),
            topology: lines_of_machine(&info),
            groups: lines_of_groups(&groups),
            members: members_of_groups(&read_beside(folder, "tasks-start.txt").unwrap_or_default()),
            recorded: events_on(&events),
            ..System::default()
        },
        clock_hz: clock_hz.or(is_emulated.then_some(EMULATED_HZ)),
        workload: text("workload").or_else(|| words_of(&meta["workload"])),
        allowed: bound(&read_beside(folder, "tasks-start.txt").unwrap_or_default(), cpus.or(described)),
    }
}

/// A command line that is kept word by word.
fn words_of(value: &Value) -> Option<String> {
    let words = value.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
    Some(words.join(" ")).filter(|line| !line.is_empty())
}

/// The tasks of a list that may not run on all of so many CPUs.
fn bound(list: &str, cpus: Option<u32>) -> BTreeMap<Pid, CpuMask> {
    let Some(cpus) = cpus.and_then(|cpus| usize::try_from(cpus).ok()) else { return BTreeMap::new() };
    let all = CpuMask::first(cpus);
    let mask = |line: TaskLine| (line.tid, line.allowed.and(&all));
    tasks(list).into_iter().map(mask).filter(|(_, mask)| *mask != all && !mask.is_empty()).collect()
}

/// How a recording came about that does not say so in a word of its own: the model and QEMU leave their marks.
fn origin_of(meta: &Value, info: &str) -> String {
    let origin = match (is_modelled(info), meta.get("qemu").is_some()) {
        (true, _) => Origin::Modelled.name(),
        (_, true) => Origin::Booted.name(),
        _ => "",
    };
    origin.to_string()
}

fn is_modelled(info: &str) -> bool {
    info.lines().any(|line| line.starts_with("uname:") && line.contains(" modelled "))
}

/// What `sched_info.txt` says of CPUs and nodes.
pub fn lines_of_machine(info: &str) -> Vec<String> {
    info.lines().filter(|line| sched_info::is_of_machine(line)).map(str::to_string).collect()
}

/// What `cgroups-start.txt` lists.
pub fn lines_of_groups(list: &str) -> Vec<String> {
    list.lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect()
}

/// The tasks of a list that are in groups below the root, each with its group's path.
pub fn members_of_groups(list: &str) -> Vec<(Pid, String)> {
    tasks(list).into_iter().filter(|task| task.cgroup != "/").map(|task| (task.tid, task.cgroup)).collect()
}

/// What `events.txt` says that is recorded whenever it happens: `event sched/* on`.
pub fn events_on(events: &str) -> Vec<String> {
    let on = |line: &str| Some(line.trim_end().strip_prefix("event ")?.strip_suffix(" on")?.to_string());
    events.lines().filter_map(on).collect()
}

/// The machine that a trace, or what lies beside it, describes.
pub fn topology_of(system: &System) -> Option<Topology> {
    (!system.topology.is_empty()).then(|| sched_info::topology(&system.topology.join("\n")))?
}

/// `uname: Linux NAME RELEASE …`.
fn release_of(info: &str) -> Option<String> {
    word_of_uname(info, 2)
}

fn word_of_uname(info: &str, place: usize) -> Option<String> {
    let line = info.lines().find_map(|line| line.strip_prefix("uname: "))?;
    line.split_whitespace().nth(place).map(str::to_string)
}

/// The last word of `uname -a`, or the one before the system's name.
fn architecture_of(info: &str) -> Option<String> {
    let line = info.lines().find_map(|line| line.strip_prefix("uname: "))?;
    let words = line.split_whitespace().skip(3).filter(|word| *word != "GNU/Linux");
    words.last().filter(|word| !word.starts_with('#')).map(str::to_string)
}

/// Tab-separated: tid pid ppid state policy nice prio rtprio last_cpu allowed cgroup comm.
fn tasks(text: &str) -> Vec<TaskLine> {
    const KTHREADD: &str = "2";
    let line = |line: &str| {
        let columns = line.split('\t').collect::<Vec<_>>();
        let column = |index: usize| columns.get(index).copied();
        Some(TaskLine {
            tid: Pid(column(0)?.parse().ok()?),
            pid: Pid(column(1)?.parse().ok()?),
            policy: column(4)?.parse().ok()?,
            nice: column(5)?.parse().ok().filter(|nice| (-20..=19).contains(nice))?,
            allowed: CpuMask::parse_list(column(9)?).ok()?,
            cgroup: column(10)?.to_string(),
            kthread: column(2)? == KTHREADD || column(0)? == KTHREADD,
        })
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

/// Tab-separated: path inode cpu.weight cpu.max cpu.idle ….
fn cgroups(text: &str) -> Vec<CgroupLine> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(CgroupLine::parse).collect()
}

impl CgroupLine {
    /// A line of the list: path, inode, `cpu.weight`, `cpu.max`, `cpu.idle`, three that are not needed, `cpu.max.burst`, which may be
    /// missing.
    pub fn parse(line: &str) -> Option<CgroupLine> {
        let columns = line.split('\t').collect::<Vec<_>>();
        let column = |index: usize| columns.get(index).copied();
        Some(CgroupLine {
            path: column(0).filter(|path| path.starts_with('/'))?.to_string(),
            inode: column(1)?.parse().ok()?,
            weight: column(2).and_then(|weight| weight.parse().ok()),
            idle: column(4) == Some("1"),
            max: column(3).and_then(|limit| bandwidth_of(limit, column(8))).unwrap_or(CfsLimit::UNLIMITED),
            limited: column(3).is_some_and(|limit| limit.starts_with(|first: char| first.is_ascii_digit())),
            periods: column(7).and_then(periods_of).unwrap_or(0),
            unused: columns.iter().any(|column| column.starts_with("usage_usec 0 ")),
        })
    }
}

/// Quota and period in us, as `cpu.max` has them, and `cpu.max.burst`.
fn bandwidth_of(limit: &str, burst: Option<&str>) -> Option<CfsLimit> {
    let (quota, period) = limit.split_once(' ')?;
    let us = |text: &str| text.parse::<u64>().ok()?.checked_mul(1_000).map(Ns);
    let burst = burst.and_then(us).unwrap_or(Ns::ZERO);
    CfsLimit::new(us(quota)?, us(period)?, burst).ok()
}

/// `… nr_periods 3 …`
fn periods_of(statistics: &str) -> Option<u64> {
    let mut words = statistics.split(' ').skip_while(|word| *word != "nr_periods");
    words.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tasks_and_groups_are_read() {
        let text = "#tid\tpid\n7\t6\t2\tI\t3\t-20\t0\t0\t0\t0-1\t/a\tname with\ttab\nbroken\n";
        let tasks = tasks(text);
        assert_eq!(tasks.len(), 1);
        assert_eq!((tasks[0].tid, tasks[0].nice, tasks[0].policy), (Pid(7), -20, 3));
        assert!(tasks[0].kthread && tasks[0].cgroup == "/a");
        let listed =
            "#path\n/\t1\t-\t-\t-\t(rest)\n/c/x\t127\t100\tmax 100000\t1\t-\n/q\t9\t100\t6000 20000\t0\t-\n";
        let groups = cgroups(listed);
        assert_eq!((groups[1].inode, groups[1].weight, groups[1].idle), (127, Some(100), true));
        assert_eq!((groups[1].limited, groups[2].limited), (false, true));
        assert_eq!(groups[0].weight, None);
    }

    #[test]
    fn a_snapshot_tells_of_sessions_that_nothing_follows() {
        let dump = "cpu#0, 1 MHz\ncfs_rq[0]:/autogroup-3\n  .nr_running : 1\n";
        let set = sched_info::settings("/sys/kernel/debug/sched/features: NO_SIS_UTIL\n");
        let on = "/proc/sys/kernel/sched_autogroup_enabled: 1\n";
        for (dump, settings, info, expected) in [
            (dump, set.clone(), on, true),
            (dump, set.clone(), "", false),
            // Where no settings are listed, such groups' queues tell.
            (dump, KernelSettings::default(), "", true),
            ("cpu#0, 1 MHz\n", set, on, false),
        ] {
            let recording =
                Recording { debug: Some(SchedDebug::parse(dump)), settings, ..Recording::default() };
            let recording = recording.with_sessions(info);
            assert_eq!(
                (recording.has_sessions, recording.hides_groups()),
                (expected, expected),
                "{dump} {info}"
            );
            assert_eq!(recording.notes().iter().any(|note| note.starts_with("autogroups are on")), expected);
        }
    }

    #[test]
    fn the_groups_at_the_end_tell_of_quotas() {
        let listed = |limit: &str, periods: u32| {
            cgroups(&format!(
                "/a\t9\t100\t{limit}\t0\t-\tcpu\tusage_usec 5 nr_periods {periods} nr_throttled 0\n"
            ))
        };
        let after = |end: Vec<CgroupLine>| {
            let start = Recording { cgroups: listed("max 100000", 2), ..Recording::default() };
            start.with_end(&end).cgroups[0].limited
        };
        assert!(!after(listed("max 100000", 2)) && after(listed("6000 20000", 2)));
        assert!(after(listed("max 100000", 3)), "it had a quota meanwhile");
    }
}
