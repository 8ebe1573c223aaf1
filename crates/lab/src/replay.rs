//! A recording as a workload: what its tasks did, read once.
//!
//! Must not know: what a workload does with it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use fairlab_analysis::behaviour::{Behaviour, BehaviourStep, Behaviours};
use fairlab_event::{Ns, Pid};
use fairlab_kernel::{CpuMask, MAX_CPUS, Policy};
use fairlab_sim::workload::catalogue::WorkloadFiles;
use fairlab_sim::workload::cgroup::GroupSpec;
use fairlab_sim::workload::replay::{Script, ScriptStep as Act, ScriptTask, TaskOrigin};
use fairlab_trace::{ReadOptions, Severity};

use fairlab_recording::{CgroupLine, Recording, TaskLine, read_recorded};

/// Files of this host. What a recording's tasks did is kept: each run of a comparison asks for it.
pub(crate) struct HostFiles;

static SCRIPTS: Mutex<BTreeMap<String, Arc<Script>>> = Mutex::new(BTreeMap::new());

impl WorkloadFiles for HostFiles {
    fn text(&self, path: &str) -> Result<String, String> {
        fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
    }

    fn script(&self, path: &str) -> Result<Arc<Script>, String> {
        // Nothing is left half done where a thread has panicked.
        let mut known = SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(script) = known.get(path) {
            return Ok(Arc::clone(script));
        }
        let script = Arc::new(script_of(path)?);
        known.insert(path.to_string(), Arc::clone(&script));
        Ok(script)
    }
}

const DAY: Ns = Ns::from_secs(24 * 60 * 60);

/// The longest recording that is replayed: no trace of every switch is longer.
const LENGTH_MAX: Ns = Ns(30 * DAY.0);

/// What the tasks of a recording did, with what lists beside it tell of them; a script's text is taken as it is.
pub(crate) fn script_of(path: &str) -> Result<Script, String> {
    if begins_as_script(path) {
        return Script::parse(&HostFiles.text(path)?).map_err(|problem| format!("{path}: {problem}"));
    }
    let recording = Recording::open(path.as_ref()).map_err(|error| error.problem)?;
    let mut behaviours = Behaviours::default();
    let stats = read_recorded(path.as_ref(), &ReadOptions::default(), &mut behaviours)
        .map_err(|error| format!("{path}: {error}"))?;
    let recorded = behaviours.finish().map_err(|missing| format!("{path}: {missing}"))?;
    if recorded.length > LENGTH_MAX {
        return Err(format!(
            "{path}: its events lie {} days apart, more than in any recording: their times cannot be right",
            recorded.length.0 / DAY.0
        ));
    }
    let numbers = recorded.tasks.iter().flat_map(|task| [task.cpu, task.pinned]).flatten();
    if let Some(cpu) = numbers.max().filter(|cpu| cpu.index() >= MAX_CPUS) {
        return Err(format!("{path}: it has a CPU {cpu}; machines here have at most {MAX_CPUS} CPUs"));
    }
    let balance = recorded.balance().map_err(|problem| format!("{path}: {problem}"))?;
    let troubles = stats.troubles().iter().filter(|count| count.trouble.severity() > Severity::Info);
    let unreadable = stats.unreadable().iter().map(ToString::to_string);
    let notices =
        troubles.map(ToString::to_string).chain(unreadable).chain(recorded.notices).chain([balance]);
    let notices = notices.chain(surroundings(&recording)).collect();
    let lists = RecordedLists::of(&recording);
    let tasks = recorded.tasks.into_iter().map(|behaviour| lists.task(behaviour)).collect();
    Ok(Script { length: recorded.length, notices, groups: lists.groups, tasks })
}

/// Where a recording's tasks ran: a replay elsewhere, or without their groups, is another load.
fn surroundings(recording: &Recording) -> impl Iterator<Item = String> {
    let cpus = recording.topology.as_ref().map(|topology| format!("recorded on {} CPUs", topology.nr_cpus()));
    let groups = recording.cgroups.is_empty().then(|| {
        "nothing lists control groups beside the trace: weights and quotas are not replayed".to_string()
    });
    cpus.into_iter().chain(groups)
}

/// Whether a file holds a script; standard input, which is read but once, holds a recording.
fn begins_as_script(path: &str) -> bool {
    let mut begin = [0; 32];
    let read = File::open(path).and_then(|mut file| file.read(&mut begin));
    read.is_ok_and(|read| Script::is_script(&begin[..read]))
}

/// What the recorder listed of tasks and groups at the beginning.
struct RecordedLists<'r> {
    tasks: BTreeMap<Pid, &'r TaskLine>,
    /// Every CPU that any task may use.
    all: CpuMask,
    groups: Vec<GroupSpec>,
    by_path: BTreeMap<&'r str, usize>,
}

impl<'r> RecordedLists<'r> {
    fn of(recording: &'r Recording) -> RecordedLists<'r> {
        let all = recording.tasks.iter().fold(CpuMask::EMPTY, |all, task| all.or(&task.allowed));
        let tasks = recording.tasks.iter().map(|task| (task.tid, task)).collect();
        let mut lists = RecordedLists { tasks, all, groups: Vec::new(), by_path: BTreeMap::new() };
        // A group's path is longer than that of the one it is below.
        let mut lines = recording.cgroups.iter().filter(|line| line.path != "/").collect::<Vec<_>>();
        lines.sort_by_key(|line| (line.path.len(), &line.path));
        for CgroupLine { path, weight, idle, max, .. } in lines {
            let parent = path.rsplit_once('/').and_then(|(parent, _)| lists.by_path.get(parent).copied());
            lists.by_path.insert(path, lists.groups.len());
            let (weight, max) = (weight.unwrap_or(100), *max);
            lists.groups.push(GroupSpec {
                parent,
                weight,
                max,
                idle: *idle,
                ..GroupSpec::new(path.as_str())
            });
        }
        lists
    }

    /// A task, by its behaviour and by what is listed of it.
    fn task(&self, behaviour: Behaviour) -> ScriptTask {
        let Behaviour { pid, comm, prio, cpu, pinned, forked, deeds } = behaviour;
        let listed = self.tasks.get(&pid).filter(|_| !forked);
        let by_name = pinned.map(CpuMask::single);
        let kernel = listed.map_or(by_name.is_some(), |listed| listed.kthread);
        ScriptTask {
            comm,
            prio,
            cpu,
            policy: listed.map_or(Policy::Normal, |listed| policy(listed.policy)),
            // Who may run on every CPU may do so on a larger machine, too.
            allowed: listed
                .map_or(by_name, |listed| Some(listed.allowed).filter(|allowed| *allowed != self.all)),
            origin: match (forked, kernel) {
                (true, _) => TaskOrigin::Forked,
                (false, true) => TaskOrigin::Kernel,
                (false, false) => TaskOrigin::User,
            },
            group: listed.and_then(|listed| self.by_path.get(listed.cgroup.as_str()).copied()),
            deeds: deeds.into_iter().map(act).collect(),
        }
    }
}

/// A policy by its number in the kernel's interface; the priority comes from what the trace shows.
fn policy(number: u32) -> Policy {
    match number {
        1 => Policy::Fifo(1),
        2 => Policy::RoundRobin(1),
        3 => Policy::Batch,
        5 => Policy::Idle,
        _ => Policy::Normal,
    }
}

fn act(deed: BehaviourStep) -> Act {
    match deed {
        BehaviourStep::Run(work) => Act::Run(work),
        BehaviourStep::Wake(whom) => Act::Wake(whom as usize),
        BehaviourStep::Block => Act::Block,
        BehaviourStep::SleepUntil { time, uninterruptible } => Act::SleepUntil { time, uninterruptible },
        BehaviourStep::SleepFor { length, time, uninterruptible } => {
            Act::SleepFor { length, time, uninterruptible }
        }
        BehaviourStep::Fork(child) => Act::Fork(child as usize),
        BehaviourStep::Prio(prio) => Act::Prio(prio),
    }
}
