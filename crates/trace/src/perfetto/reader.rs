//! Perfetto traces to events: bundles of all CPUs in the order of time.
//!
//! One thread finds what comes next, the other takes it apart ([`relay`]).
//! Must not know: how bundles are found and taken apart.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::io;

use fairlab_event::{
    Comm, Context, Cpu, Event, EventKind, Flags, IdHasher, Ns, Pid, Prio, Sink, Switch, TaskState,
    Tracepoint, Wakeup,
};

use super::compact::{CompactSwitch, CompactWaking};
use super::cpu::{CpuEvents, Next, Stores};
use super::decode::{self, Scratch, Told};
use super::pieces::{Named, Pieces};
use crate::relay::{Outlet, relay};
use crate::store::Store;
use crate::tracepoint::flags;
use crate::tracepoint::state_table::StateTable;
use crate::{ImportError, ImportStats, Trouble};

/// Reads the trace that stands in a store: each CPU's events are in places of their own.
pub(crate) fn read(file: Store, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    let mut stats = ImportStats::default();
    let mut found = Pieces::walk(&file, &mut stats)?;
    check(&found)?;
    let stores = Stores { file, unpacked: found.take_unpacked() };
    if !found.system.is_unknown() {
        sink.system(&found.system);
    }
    let release = numbers_of(&found.system.release);
    let states = if release.is_some_and(|release| release < (4, 14)) {
        StateTable::before_4_14()
    } else {
        StateTable::in_use()
    };
    let offset = found.clock_offset.unwrap_or(0);
    let mut cpus: Vec<CpuEvents> =
        found.cpus.into_iter().map(|pieces| CpuEvents::new(pieces, offset)).collect();
    let most = cpus.iter().map(|cpu| cpu.cpu.index() + 1).max().unwrap_or(0);
    let mut reader = Reader {
        sink,
        stats,
        states,
        tasks: Tasks::of(found.names),
        running: vec![None; most.min(RUNNING_MAX)],
        scratch: Scratch::default(),
    };
    let mut late = ImportStats::default();
    let find = |outlet: &mut Outlet<'_, Head>| merge(&mut cpus, &stores, &mut late, outlet);
    let merged = relay(find, |head, bytes| reader.take(&head, bytes));
    let mut stats = reader.stats;
    stats.absorb(&late);
    merged?;
    Ok(stats)
}

/// What comes next, and where it is from.
struct Head {
    time: u64,
    cpu: Cpu,
    position: u64,
    next: Next,
}

/// Sends everything by time, then place in `cpus`.
fn merge(
    cpus: &mut [CpuEvents],
    stores: &Stores,
    stats: &mut ImportStats,
    outlet: &mut Outlet<'_, Head>,
) -> io::Result<()> {
    // Latest first. Few CPUs take turns at a time: where one goes back in is found faster than a heap is put in order.
    let mut waiting: Vec<(u64, usize)> = Vec::with_capacity(cpus.len());
    let wait = |waiting: &mut Vec<(u64, usize)>, next| {
        let place = waiting.partition_point(|&other| other > next);
        waiting.insert(place, next);
    };
    for (index, cpu) in cpus.iter_mut().enumerate() {
        if cpu.advance(stores, stats)? {
            wait(&mut waiting, (cpu.time, index));
        }
    }
    while let Some((_, index)) = waiting.pop() {
        let rival = waiting.last().copied();
        let Some(cpu) = cpus.get_mut(index) else { continue };
        loop {
            let (time, number, position) = (cpu.time, cpu.cpu, cpu.position());
            if let Some((next, bytes)) = cpu.take() {
                outlet.send(Head { time, cpu: number, position, next }, bytes);
            }
            if !cpu.advance(stores, stats)? {
                break;
            }
            let next = (cpu.time, index);
            if rival.is_some_and(|rival| rival < next) {
                wait(&mut waiting, next);
                break;
            }
        }
    }
    Ok(())
}

/// `NR_CPUS` of no kernel is larger.
const RUNNING_MAX: usize = 8192;

/// The two numbers that a release begins with.
fn numbers_of(release: &str) -> Option<(u32, u32)> {
    let (major, rest) = release.split_once('.')?;
    let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    Some((major.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

/// Refuses what holds no events of a scheduler, or those of two machines.
fn check(found: &Pieces) -> Result<(), ImportError> {
    if found.machines.len() > 1 {
        return Err(ImportError::SeveralSources(format!(
            "this trace of Perfetto holds events of {} machines, which are not merged",
            found.machines.len()
        )));
    }
    if !found.cpus.is_empty() {
        return Ok(());
    }
    Err(match found.broken_at {
        Some(at) if found.packets == 0 => ImportError::NotATrace(format!(
            "this looks like a trace of Perfetto, and at byte {at} there is no packet of one"
        )),
        _ => ImportError::Unsupported(format!(
            "this trace of Perfetto holds no events of the kernel's scheduler: {} packets, {} of them about tracks; record \
             the data source linux.ftrace with sched/sched_switch and sched/sched_waking",
            found.packets, found.of_tracks
        )),
    })
}

/// Some recorders leave out the name of the idle task.
#[inline]
fn idle_named(kind: EventKind<'_>, cpu: Cpu) -> EventKind<'_> {
    let EventKind::SchedSwitch(mut switch) = kind else { return kind };
    for (pid, comm) in [(switch.prev_pid, &mut switch.prev_comm), (switch.next_pid, &mut switch.next_comm)] {
        if pid.is_idle() && comm.is_empty() {
            *comm = Comm::swapper(cpu);
        }
    }
    EventKind::SchedSwitch(switch)
}

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug)]
struct Running {
    pid: Pid,
    comm: Comm,
    prio: Prio,
}

struct Reader<'s> {
    sink: &'s mut dyn Sink,
    stats: ImportStats,
    states: StateTable,
    tasks: Tasks,
    /// For each CPU, as far as switches tell.
    running: Vec<Option<Running>>,
    scratch: Scratch,
}

impl Reader<'_> {
    fn take(&mut self, head: &Head, bytes: &[u8]) {
        let (time, cpu, position) = (Ns(head.time), head.cpu, head.position);
        self.tasks.pass(time);
        match &head.next {
            Next::Event => self.event(time, cpu, bytes, position),
            Next::Switch(switch) => self.switch(time, cpu, switch, position),
            Next::Waking(waking) => self.waking(time, cpu, waking),
            Next::Lost => {
                if let Some(running) = self.running.get_mut(cpu.index()) {
                    *running = None;
                }
                self.hand_on(&Event::new(time, cpu, EventKind::Lost { count: None }));
            }
        }
    }

    #[inline]
    fn hand_on(&mut self, event: &Event<'_>) {
        self.stats.events += 1;
        self.sink.event(event);
    }

    fn event(&mut self, time: Ns, cpu: Cpu, bytes: &[u8], position: u64) {
        let Some(around) = decode::around(bytes) else {
            return self.stats.add(Trouble::CorruptRecord, 1, position);
        };
        let Some((field, own)) = around.own else {
            return self.stats.add(Trouble::SkippedRecord, 1, position);
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        match decode::own(field, own, &self.states, &mut scratch) {
            Told::Event(kind) => {
                let kind = idle_named(kind, cpu);
                let context = self.context(around.pid, cpu, around.flags, &kind);
                self.learn(cpu, &kind);
                self.hand_on(&Event { time, cpu, context, kind });
            }
            Told::Unknown => self.stats.add(Trouble::SkippedRecord, 1, position),
            Told::Unreadable(name) => {
                self.stats.add(Trouble::MalformedEvent, 1, position);
                self.stats.cannot_read(name, position, b"");
            }
        }
        self.scratch = scratch;
    }

    /// The task that reported an event: a switch is reported by the one that leaves.
    #[inline]
    fn context(&self, pid: Option<Pid>, cpu: Cpu, flags: Flags, kind: &EventKind<'_>) -> Context {
        let Some(pid) = pid else { return Context { flags, ..Context::default() } };
        let known = match kind {
            EventKind::SchedSwitch(switch) if switch.prev_pid == pid => Some(switch.prev_comm),
            _ => self.running(cpu).filter(|running| running.pid == pid).map(|running| running.comm),
        };
        let (comm, tgid) = self.tasks.of_task(pid);
        Context { comm: known.filter(|known| !known.is_empty()).unwrap_or(comm), pid, tgid, flags }
    }

    fn running(&self, cpu: Cpu) -> Option<Running> {
        self.running.get(cpu.index()).copied().flatten()
    }

    #[inline]
    fn learn(&mut self, cpu: Cpu, kind: &EventKind<'_>) {
        if let EventKind::SchedSwitch(switch) = kind {
            let next = Running { pid: switch.next_pid, comm: switch.next_comm, prio: switch.next_prio };
            if let Some(running) = self.running.get_mut(cpu.index()) {
                *running = Some(next);
            }
        }
    }

    /// Who leaves the switch before has told; where there was none, a CPU's first switch tells no more than who comes.
    fn switch(&mut self, time: Ns, cpu: Cpu, switch: &CompactSwitch, position: u64) {
        let next = Running { pid: switch.next_pid, comm: switch.next_comm, prio: switch.next_prio };
        let Some(slot) = self.running.get_mut(cpu.index()) else { return };
        let Some(prev) = slot.replace(next) else {
            return self.stats.add(Trouble::SkippedRecord, 1, position);
        };
        let Some(prev_state) = self.states.state(switch.prev_state) else {
            self.stats.add(Trouble::MalformedEvent, 1, position);
            return self.stats.cannot_read(Tracepoint::SchedSwitch.name(), position, b"");
        };
        let prev_state = if prev.pid.is_idle() { TaskState::RUNNABLE } else { prev_state };
        let kind = EventKind::SchedSwitch(Switch {
            prev_comm: prev.comm,
            prev_pid: prev.pid,
            prev_prio: prev.prio,
            prev_state,
            next_comm: next.comm,
            next_pid: next.pid,
            next_prio: next.prio,
        });
        let (_, tgid) = self.tasks.of_task(prev.pid);
        let context = Context { comm: prev.comm, pid: prev.pid, tgid, flags: Flags::NONE };
        self.hand_on(&Event { time, cpu, context, kind });
    }

    /// Who wakes is who runs.
    fn waking(&mut self, time: Ns, cpu: Cpu, waking: &CompactWaking) {
        let CompactWaking { pid, prio, comm, target_cpu, flags, .. } = *waking;
        let kind = EventKind::SchedWaking(Wakeup { comm, pid, prio, target_cpu });
        let flags = flags.map_or(Flags::NONE, |bits| flags::columns(bits, 0));
        let context = match self.running(cpu) {
            Some(waker) => {
                let (_, tgid) = self.tasks.of_task(waker.pid);
                Context { comm: waker.comm, pid: waker.pid, tgid, flags }
            }
            None => Context { flags, ..Context::default() },
        };
        self.hand_on(&Event { time, cpu, context, kind });
    }
}

/// Names and processes of threads as process trees tell them.
struct Tasks {
    known: HashMap<Pid, (Comm, Pid), BuildHasherDefault<IdHasher>>,
    /// The latest first.
    news: Vec<Named>,
}

impl Tasks {
    /// What is told first of a task was so before; what is told later is so from then on.
    fn of(mut names: Vec<Named>) -> Tasks {
        names.sort_by_key(|named| named.since);
        let mut tasks = Tasks { known: HashMap::default(), news: Vec::new() };
        for named in &names {
            let known = tasks.known.get(&named.tid);
            let is_new = known.is_none_or(|(comm, tgid)| {
                comm.is_empty() && !named.comm.is_empty() || *tgid == Pid::UNKNOWN && named.tgid != *tgid
            });
            if is_new {
                tasks.learn(named);
            }
        }
        names.reverse();
        tasks.news = names;
        tasks
    }

    fn learn(&mut self, named: &Named) {
        let known = self.known.entry(named.tid).or_insert((Comm::default(), Pid::UNKNOWN));
        if !named.comm.is_empty() {
            known.0 = named.comm;
        }
        if named.tgid != Pid::UNKNOWN {
            known.1 = named.tgid;
        }
    }

    /// Time passes.
    #[inline]
    fn pass(&mut self, now: Ns) {
        while self.news.last().is_some_and(|named| named.since <= now) {
            if let Some(named) = self.news.pop() {
                self.learn(&named);
            }
        }
    }

    #[inline]
    fn of_task(&self, pid: Pid) -> (Comm, Pid) {
        if pid.is_idle() {
            return (Comm::from("<idle>"), Pid::UNKNOWN);
        }
        self.known.get(&pid).copied().unwrap_or((Comm::default(), Pid::UNKNOWN))
    }
}
