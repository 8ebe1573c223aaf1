//! One event of a recording as verification needs it: owned, so that it can be looked ahead at.
//!
//! Must not know: what the model decides.

use fairlab_event::{
    Comm, Cpu, Event, EventKind, Flags, GenericValue, Ns, Pid, Prio, Switch, TextFields, UntypedTracepoint,
    Wakeup,
};

use super::probe::{At, Key, ProbeHit};
use fairlab_recording::CgroupLine;

/// One event.
#[derive(Clone, Debug)]
pub(super) struct EventRecord {
    /// Number of the event in its trace, from 1.
    pub number: u64,
    pub time: Ns,
    pub cpu: Cpu,
    /// The task that `cpu` was running.
    pub context: Pid,
    pub comm: Comm,
    pub flags: Flags,
    pub what: RecordKind,
}

/// What happened.
#[derive(Clone, Debug)]
pub(super) enum RecordKind {
    Switch(Switch),
    Waking(Wakeup),
    Wakeup(Wakeup),
    WakeupNew(Wakeup),
    Migrate {
        pid: Pid,
        prio: Prio,
        orig: Cpu,
        dest: Cpu,
    },
    Fork {
        parent: Pid,
        child: Pid,
        comm: Comm,
    },
    Exit(Pid),
    Runtime {
        pid: Pid,
        runtime: Ns,
        vruntime: Option<u64>,
    },
    /// `sched_stat_wait`: the task gets the CPU, or is taken off its queue to be put back.
    WaitEnds(Pid),
    /// `sched_stat_sleep`, `_blocked` or `_iowait`: the task has been placed on its queue.
    SleepEnds(Pid),
    /// The recorder's marks.
    Marker(Marker),
    /// The maker of a control group, or the program that changed it, says what it is now.
    Group(CgroupLine),
    /// `sched_yield()` begins, for the running task.
    YieldCall,
    /// `rt_mutex_setprio()`: a task is lent the priority of one that waits for its lock, or gives it back.
    Lend {
        pid: Pid,
        old: Prio,
        new: Prio,
    },
    /// A task is now in a cgroup.
    CgroupAttach {
        pid: Pid,
        cgroup: CgroupName,
    },
    Probe(ProbeHit),
    /// A probe that verification does not look at.
    OtherProbe,
    /// The high-resolution tick that ends a slice.
    Hrtick,
    /// A timer of a group with a quota, or another one.
    Timer {
        of_group: bool,
    },
    /// Nothing that verification looks at.
    Other,
}

/// What the recorder marks in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// The snapshot of the runqueues has been read.
    DebugRead,
    Other,
}

impl EventRecord {
    /// Keeps what is needed of an event.
    pub fn new(number: u64, event: &Event<'_>) -> EventRecord {
        EventRecord {
            number,
            time: event.time,
            cpu: event.cpu,
            context: event.context.pid,
            comm: event.context.comm,
            flags: event.context.flags,
            what: RecordKind::of(&event.kind),
        }
    }
}

/// What an event calls a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CgroupName {
    /// Its inode; to v5.4 a number that counts the cgroups of a hierarchy (743210386c03).
    pub id: u64,
    /// Its path from the root of the hierarchy; empty where the event does not tell.
    pub path: String,
}

/// A group that a remark tells of: `CGROUP`, then a line as the snapshot's list has it.
fn group_told(text: &str) -> Option<CgroupLine> {
    CgroupLine::parse(text.strip_prefix("CGROUP\t")?.trim_end())
}

/// A cgroup that a task is in from now on: `cgroup_attach_task`.
fn attach_told(fields: TextFields<'_>) -> Option<RecordKind> {
    let pid = Pid(fields.signed("pid").and_then(|pid| i32::try_from(pid).ok())?);
    let path = match fields.get("dst_path") {
        Some(GenericValue::Text(path)) => path.to_string(),
        _ => String::new(),
    };
    Some(RecordKind::CgroupAttach { pid, cgroup: CgroupName { id: fields.unsigned("dst_id")?, path } })
}

/// A priority that a task is lent: `sched_pi_setprio`.
fn lend_told(fields: TextFields<'_>) -> Option<RecordKind> {
    let number = |name| fields.signed(name).and_then(|number| i32::try_from(number).ok());
    let prio = |name| number(name).map(Prio);
    Some(RecordKind::Lend { pid: Pid(number("pid")?), old: prio("oldprio")?, new: prio("newprio")? })
}

impl RecordKind {
    fn of(kind: &EventKind<'_>) -> RecordKind {
        match *kind {
            EventKind::SchedSwitch(switch) => RecordKind::Switch(switch),
            EventKind::SchedWaking(wakeup) => RecordKind::Waking(wakeup),
            EventKind::SchedWakeup(wakeup) => RecordKind::Wakeup(wakeup),
            EventKind::SchedWakeupNew(wakeup) => RecordKind::WakeupNew(wakeup),
            EventKind::SchedMigrateTask { pid, prio, orig_cpu, dest_cpu, .. } => {
                RecordKind::Migrate { pid, prio, orig: orig_cpu, dest: dest_cpu }
            }
            EventKind::SchedProcessFork { pid, child_pid, child_comm, .. } => {
                RecordKind::Fork { parent: pid, child: child_pid, comm: child_comm }
            }
            EventKind::SchedProcessExit { pid, .. } => RecordKind::Exit(pid),
            EventKind::SchedStatRuntime { pid, runtime, vruntime, .. } => {
                RecordKind::Runtime { pid, runtime, vruntime }
            }
            EventKind::SchedStatWait(delay) => RecordKind::WaitEnds(delay.pid),
            EventKind::SchedStatSleep(delay)
            | EventKind::SchedStatBlocked(delay)
            | EventKind::SchedStatIowait(delay) => RecordKind::SleepEnds(delay.pid),
            EventKind::Marker { text } => {
                group_told(text).map_or_else(|| RecordKind::Marker(Marker::of(text)), RecordKind::Group)
            }
            // Part of a step, as a probe there would be; what it tells, probes tell, too.
            EventKind::SchedPlace(_) => RecordKind::OtherProbe,
            EventKind::Kprobe { name, fields } => {
                ProbeHit::read(name, fields).map_or(RecordKind::OtherProbe, RecordKind::Probe)
            }
            EventKind::Other { name, fields } => UntypedTracepoint::by_name(name)
                .map_or(RecordKind::Other, |event| RecordKind::of_untyped(event, fields)),
            _ => RecordKind::Other,
        }
    }

    /// Of an event that has no type.
    fn of_untyped(event: UntypedTracepoint, fields: TextFields<'_>) -> RecordKind {
        let function = || match fields.get("function") {
            Some(GenericValue::Text(function)) => function,
            _ => "",
        };
        let told = match event {
            UntypedTracepoint::SchedYield => Some(RecordKind::YieldCall),
            UntypedTracepoint::SchedPiSetprio => lend_told(fields),
            UntypedTracepoint::HrtimerExpire if function() == "hrtick" => Some(RecordKind::Hrtick),
            UntypedTracepoint::HrtimerExpire => {
                let of_group = matches!(function(), "sched_cfs_period_timer" | "sched_cfs_slack_timer");
                Some(RecordKind::Timer { of_group })
            }
            UntypedTracepoint::CgroupAttachTask => attach_told(fields),
            _ => None,
        };
        told.unwrap_or(RecordKind::Other)
    }

    /// Whether it is about what no machine of `nr_cpus` CPUs has: another CPU, or a task without a number that is woken,
    /// moved, created or ends. Such an event does not come to the walk, which relies on that.
    pub fn is_impossible(&self, nr_cpus: usize) -> bool {
        let absent = |cpu: Cpu| cpu.index() >= nr_cpus;
        match self {
            RecordKind::Waking(wakeup) | RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) => {
                wakeup.pid.0 <= 0 || absent(wakeup.target_cpu)
            }
            RecordKind::Migrate { pid, orig, dest, .. } => pid.0 <= 0 || absent(*orig) || absent(*dest),
            RecordKind::Switch(switch) => switch.prev_pid.0 < 0 || switch.next_pid.0 < 0,
            RecordKind::Fork { child, .. } => child.0 <= 0,
            RecordKind::Exit(pid) => pid.0 <= 0,
            RecordKind::Probe(probe) => probe.names_cpu_from(nr_cpus),
            _ => false,
        }
    }

    /// The address of the group's entity that a probe is about; what is picked may be a task's as well.
    pub fn group_entity(&self) -> Option<u64> {
        match self {
            RecordKind::Probe(probe) if probe.at == At::PickReturn => probe.unsigned(Key::Entity),
            RecordKind::Probe(probe) => probe.group_entity(),
            _ => None,
        }
    }

    /// The task that the event is about, where it is about one and not about its CPU.
    pub fn task(&self) -> Option<Pid> {
        match self {
            RecordKind::Waking(wakeup) | RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) => {
                Some(wakeup.pid)
            }
            RecordKind::Migrate { pid, .. }
            | RecordKind::Exit(pid)
            | RecordKind::Runtime { pid, .. }
            | RecordKind::WaitEnds(pid)
            | RecordKind::SleepEnds(pid) => Some(*pid),
            RecordKind::Fork { parent, .. } => Some(*parent),
            RecordKind::CgroupAttach { pid, .. } => Some(*pid),
            RecordKind::Probe(probe) => probe.task(),
            _ => None,
        }
    }
}

impl Marker {
    fn of(text: &str) -> Marker {
        match text.split_whitespace().next() {
            Some("SNAPSHOT-DEBUG-END") if text.ends_with("start") => Marker::DebugRead,
            _ => Marker::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_a_cgroup_by_number_and_path() {
        let attached = |fields: &str| {
            let fields = TextFields::new(fields);
            RecordKind::of(&EventKind::Other { name: "cgroup_attach_task", fields })
        };
        let fields = "dst_root=0 dst_id=3 dst_level=2 dst_path=/a/b pid=129 comm=spinner";
        let RecordKind::CgroupAttach { pid, cgroup } = attached(fields) else { panic!("{fields}") };
        assert_eq!((pid, cgroup), (Pid(129), CgroupName { id: 3, path: "/a/b".to_string() }));
        let RecordKind::CgroupAttach { cgroup, .. } = attached("dst_id=61 pid=1") else {
            panic!("without a path")
        };
        assert_eq!(cgroup, CgroupName { id: 61, path: String::new() });
        assert!(matches!(attached("dst_path=/a pid=1"), RecordKind::Other));
    }

    #[test]
    fn a_marker_tells_of_a_group() {
        let of = |text| RecordKind::of(&EventKind::Marker { text });
        let RecordKind::Group(line) = of("CGROUP\t/a b/c\t61\t200\t6000 20000\t0\n") else {
            panic!("a group")
        };
        assert_eq!((line.path.as_str(), line.inode, line.weight), ("/a b/c", 61, Some(200)));
        assert!(line.limited && !line.idle);
        for other in ["CGROUP\tno path\t61\t200", "CGROUP\t/a\tx\t200", "CGROUP /a 61 200", "CGROUPS"] {
            assert!(matches!(of(other), RecordKind::Marker(Marker::Other)), "{other}");
        }
    }
}
