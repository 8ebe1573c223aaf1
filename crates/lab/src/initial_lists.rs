//! What a made run begins with, as the recorder of real kernels lists it: control groups and tasks.
//!
//! Must not know: what is done with the lists.

use std::fmt::Write;

use fairlab_event::probes::ProbePoint;
use fairlab_kernel::{CfsLimit, GroupId, Policy, Task};
use fairlab_sim::{Engine, SchedulerCore};

/// The lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitialLists {
    /// `cgroups-start.txt`: path, inode, weight, limit, idle, burst; the groups were made just now.
    pub cgroups: String,
    /// `tasks-start.txt`: every task that is there before the workload has made others.
    pub tasks: String,
    /// `probes.txt`: the probes that decide what else can be known; empty without probes.
    pub probes: String,
}

impl InitialLists {
    /// Those that are not empty, by the names of their files.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let files = [
            ("cgroups-start.txt", self.cgroups.as_str()),
            ("tasks-start.txt", self.tasks.as_str()),
            ("probes.txt", self.probes.as_str()),
        ];
        files.into_iter().filter(|(_, list)| !list.is_empty())
    }

    /// The lists of a machine on which the model has just started workload `number`.
    pub(crate) fn of(engine: &Engine, number: usize, probes: bool) -> InitialLists {
        let (cgroups, paths) = groups(engine, number);
        let mut tasks = String::from(
            "#tid\tpid\tppid\tstate\tpolicy\tnice\tprio\trtprio\tlast_cpu\tallowed\tcgroup\tcomm\n",
        );
        for task in engine.kernel().tasks().filter(|task| task.policy() != Policy::Swapper) {
            let path =
                paths.iter().find(|(group, _)| *group == task.group()).map_or("/", |(_, path)| path.as_str());
            tasks += &line_of(task, path);
        }
        let taken = || format!("{}reweight_entity\n", ProbePoint::ReweightEntity.taken());
        InitialLists { cgroups, tasks, probes: probes.then(taken).unwrap_or_default() }
    }
}

impl InitialLists {
    /// The groups alone, of a machine on which a scheduler whose tasks cannot be listed has just started workload `number`.
    pub(crate) fn of_groups<C: SchedulerCore>(
        engine: &Engine<C>,
        number: usize,
        _probes: bool,
    ) -> InitialLists {
        InitialLists { cgroups: groups(engine, number).0, ..InitialLists::default() }
    }
}

/// `cgroups-start.txt` of a machine on which workload `number` has just been started, and each group's path.
fn groups<C: SchedulerCore>(engine: &Engine<C>, number: usize) -> (String, Vec<(GroupId, String)>) {
    let specs = engine.workload(number).groups();
    let mut cgroups = String::from(
        "#path\tinode\tcpu.weight\tcpu.max\tcpu.idle\tthreads\tsubtree_control\tcpu.stat\tcpu.max.burst\n",
    );
    let _ = writeln!(cgroups, "/\t{}\t-\t-\t-\t-\tcpu\tusage_usec 0 ", GroupId::ROOT.inode());
    let mut paths = vec![(GroupId::ROOT, "/".to_string())];
    for (spec, &group) in specs.iter().zip(engine.groups(number)) {
        let above =
            spec.parent.and_then(|parent| paths.get(parent + 1)).map_or("", |(_, path)| path.as_str());
        let path = format!("{above}/{}", spec.folder(&specs));
        let (inode, idle) = (group.inode(), u8::from(spec.idle));
        let _ = writeln!(
            cgroups,
            "{path}\t{inode}\t{}\t{}\t{idle}\t-\tcpu\tusage_usec 0 \t{}",
            spec.weight,
            limit_of(&spec.max),
            spec.max.burst().0 / 1_000
        );
        paths.push((group, path));
    }
    (cgroups, paths)
}

/// Quota and period in us, as `cpu.max` prints them.
fn limit_of(max: &CfsLimit) -> String {
    let quota = max.quota().map_or_else(|| "max".to_string(), |quota| (quota.0 / 1_000).to_string());
    format!("{quota} {}", max.period().0 / 1_000)
}

fn line_of(task: &Task, path: &str) -> String {
    let (policy, rt_priority) = match task.policy() {
        Policy::Batch => (3, 0),
        Policy::Idle => (5, 0),
        Policy::Fifo(priority) => (1, priority),
        Policy::RoundRobin(priority) => (2, priority),
        Policy::Stop => (1, 99),
        Policy::Deadline => (6, 0),
        Policy::Normal | Policy::Swapper => (0, 0),
    };
    let parent = if task.is_per_cpu_kthread() { 2 } else { 1 };
    format!(
        "{}\t{}\t{parent}\tR\t{policy}\t{}\t{}\t{rt_priority}\t{}\t{}\t{path}\t{}\n",
        task.pid().0,
        task.tgid().0,
        task.nice(),
        task.prio().0,
        task.cpu(),
        task.allowed(),
        task.comm(),
    )
}
