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
    /// `sched_stat_wait`: the task gets the CPU, after so long.
    WaitEnds(Pid, Ns),
    /// `sched_stat_sleep` or `_blocked`: the task has been placed on its queue.
    SleepEnds(Pid),
    /// `sched_stat_iowait`: the task has been placed on its queue, with `sched_stat_blocked` to come.
    IoWaitEnds(Pid),
    /// The recorder's marks.
    Marker(Marker),
    /// The maker of a control group, or the program that changed it, says what it is now.
    Group(CgroupLine),
    /// `sched_yield()` begins, for the running task.
    YieldCall,
    /// `sched_setattr()` begins, for a task, or for the running one: it may ask for a slice of its own.
    AttributesCall(Option<Pid>),
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
    /// The interrupt of a CPU's own timer: the tick's, or another one.
    TimerInterrupt,
    /// The interrupt with which another CPU has this one call a function, such as the one that queues what was left to it.
    CallInterrupt,
    /// A timer of a group with a quota, or another one.
    Timer {
        of_group: bool,
    },
    /// The soft interrupt in which a CPU balances, and ages what sleepers left on its queues.
    Balances,
    /// Code on this CPU interrupts another one, or the test for preemption of a task queued there does.
    Interrupts {
        cpu: Cpu,
        preempts: bool,
    },
    /// The clock of a CPU runs at another frequency, kHz.
    Frequency {
        cpu: Cpu,
        khz: u32,
    },
    /// A CPU goes into an idle state, or leaves it.
    IdleState {
        cpu: Cpu,
        state: Option<u32>,
    },
    /// Nothing that verification looks at.
    Other,
}

/// What the recorder marks in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    SnapshotBegins,
    DebugRead,
    SnapshotEnds,
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

/// Whether it is the soft interrupt of the scheduler (`SCHED_SOFTIRQ`): `vec=7 [action=SCHED]`.
fn is_sched_softirq(fields: TextFields<'_>) -> bool {
    match fields.get("vec") {
        Some(GenericValue::Unsigned(number)) => number == 7,
        Some(GenericValue::Text(text)) => text.split(' ').next() == Some("7"),
        _ => false,
    }
}

/// Whether an interrupt is sent from where a CPU is asked for a reschedule: which of these functions stand by themselves is up to
/// the compiler, and what they are called to the release.
fn asks_to_go(callsite: &str) -> bool {
    ["wakeup_preempt", "check_preempt_", "resched_curr"].iter().any(|function| callsite.starts_with(function))
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

/// A frequency that a clock has been set to: `cpu_frequency`.
fn frequency_told(fields: TextFields<'_>) -> Option<RecordKind> {
    let number = |name| fields.unsigned(name).and_then(|number| u32::try_from(number).ok());
    Some(RecordKind::Frequency { cpu: Cpu(number("cpu_id")?), khz: number("state")? })
}

/// The idle state that a CPU goes into, by its number, or leaves: `cpu_idle`.
fn idle_state_told(fields: TextFields<'_>) -> Option<RecordKind> {
    /// `PWR_EVENT_EXIT`.
    const EXIT: u32 = u32::MAX;
    let number = |name| fields.unsigned(name).and_then(|number| u32::try_from(number).ok());
    let state = number("state")?;
    Some(RecordKind::IdleState {
        cpu: Cpu(number("cpu_id")?),
        state: Some(state).filter(|&state| state != EXIT),
    })
}

/// An interrupt that is sent to a CPU: `ipi_send_cpu`.
fn interrupt_told(fields: TextFields<'_>) -> Option<RecordKind> {
    let cpu = fields.unsigned("cpu").and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu)?;
    let preempts = matches!(fields.get("callsite"), Some(GenericValue::Text(site)) if asks_to_go(site));
    Some(RecordKind::Interrupts { cpu, preempts })
}

/// The argument `pid` of a system call: a field, or text as the kernel prints it, hexadecimal with or without `0x`
/// (`(pid: 10f, uattr: 7ffe0, flags: 0)`).
fn pid_argument(fields: TextFields<'_>) -> Option<Pid> {
    let pid = fields.signed("pid").or_else(|| {
        let arguments = fields.text().strip_prefix('(')?.split([',', ')']);
        let pid = arguments.filter_map(|argument| argument.trim_start().strip_prefix("pid: ")).next()?;
        i64::from_str_radix(pid.strip_prefix("0x").unwrap_or(pid), 16).ok()
    });
    pid.and_then(|pid| i32::try_from(pid).ok()).map(Pid)
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
            EventKind::SchedStatWait(delay) => RecordKind::WaitEnds(delay.pid, delay.delay),
            EventKind::SchedStatIowait(delay) => RecordKind::IoWaitEnds(delay.pid),
            EventKind::SchedStatSleep(delay) | EventKind::SchedStatBlocked(delay) => {
                RecordKind::SleepEnds(delay.pid)
            }
            EventKind::Marker { text } => {
                group_told(text).map_or_else(|| RecordKind::Marker(Marker::of(text)), RecordKind::Group)
            }
            EventKind::Kprobe { name, fields } => {
                ProbeHit::read(name, fields).map_or(RecordKind::OtherProbe, RecordKind::Probe)
            }
            EventKind::Other { name, fields } => UntypedTracepoint::by_name(name)
                .map_or(RecordKind::Other, |event| RecordKind::of_untyped(event, fields)),
            EventKind::SchedPlace(place) => RecordKind::Probe(ProbeHit::of_place(&place)),
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
            UntypedTracepoint::SchedSetattr => {
                Some(RecordKind::AttributesCall(pid_argument(fields).filter(|pid| !pid.is_idle())))
            }
            UntypedTracepoint::SchedPiSetprio => lend_told(fields),
            UntypedTracepoint::HrtimerExpire if function() == "hrtick" => Some(RecordKind::Hrtick),
            UntypedTracepoint::HrtimerExpire => {
                let of_group = matches!(function(), "sched_cfs_period_timer" | "sched_cfs_slack_timer");
                Some(RecordKind::Timer { of_group })
            }
            UntypedTracepoint::LocalTimer => Some(RecordKind::TimerInterrupt),
            UntypedTracepoint::CallFunctionSingle => Some(RecordKind::CallInterrupt),
            UntypedTracepoint::SoftirqEntry => is_sched_softirq(fields).then_some(RecordKind::Balances),
            UntypedTracepoint::CpuFrequency => frequency_told(fields),
            UntypedTracepoint::CpuIdle => idle_state_told(fields),
            UntypedTracepoint::IpiSendCpu => interrupt_told(fields),
            UntypedTracepoint::CgroupAttachTask => attach_told(fields),
            UntypedTracepoint::SchedReweight => ProbeHit::read_reweight(fields).map(RecordKind::Probe),
            UntypedTracepoint::SchedDeadlinePassed => ProbeHit::read_deadline(fields).map(RecordKind::Probe),
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
            RecordKind::Interrupts { cpu, .. } | RecordKind::IdleState { cpu, .. } => absent(*cpu),
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
            | RecordKind::WaitEnds(pid, _)
            | RecordKind::SleepEnds(pid)
            | RecordKind::IoWaitEnds(pid) => Some(*pid),
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
            Some("SNAPSHOT-BEGIN") if text.ends_with("start") => Marker::SnapshotBegins,
            Some("SNAPSHOT-DEBUG-END") if text.ends_with("start") => Marker::DebugRead,
            Some("SNAPSHOT-END") if text.ends_with("start") => Marker::SnapshotEnds,
            _ => Marker::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedulers_soft_interrupt_is_told_by_its_number() {
        for (fields, expected) in
            [("vec=7 [action=SCHED]", true), ("vec=7", true), ("vec=1 [action=TIMER]", false)]
        {
            let fields = TextFields::new(fields);
            let what = RecordKind::of(&EventKind::Other { name: "softirq_entry", fields });
            assert_eq!(matches!(what, RecordKind::Balances), expected, "{fields}");
        }
    }

    /// Which function stands in the place of the test is the compiler's choice: three of Ubuntu's kernels have three.
    #[test]
    fn an_interrupt_tells_from_where_it_is_sent() {
        for (site, expected) in [
            ("wakeup_preempt+0x53/0xa0", true),
            ("resched_curr_lazy+0x15/0x40", true),
            ("check_preempt_curr+0x6d/0x90", true),
            ("ttwu_queue_wakelist+0x14f/0x240", false),
        ] {
            let text = format!("cpu=3 callsite={site} callback=0x0");
            let event = EventKind::Other { name: "ipi_send_cpu", fields: TextFields::new(&text) };
            assert!(
                matches!(RecordKind::of(&event), RecordKind::Interrupts { cpu: Cpu(3), preempts } if preempts == expected)
            );
        }
    }

    #[test]
    fn whose_attributes_are_set_is_read_as_the_kernel_prints_it() {
        for (fields, expected) in [
            ("(pid: 10f, uattr: 7ffe, flags: 0)", Some(Pid(0x10f))),
            ("(pid: 0x10f, uattr: 0x7ffe, flags: 0)", Some(Pid(0x10f))),
            ("__syscall_nr=314 pid=271 uattr=0x7ffe flags=0", Some(Pid(271))),
            ("(pid: 0, uattr: 7ffe, flags: 0)", None),
        ] {
            let fields = TextFields::new(fields);
            let what = RecordKind::of(&EventKind::Other { name: "sys_sched_setattr", fields });
            assert!(matches!(what, RecordKind::AttributesCall(pid) if pid == expected), "{fields}: {what:?}");
        }
    }

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
