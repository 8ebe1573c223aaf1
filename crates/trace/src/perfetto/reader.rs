//! Perfetto traces to events: bundles of all CPUs in the order of time.
//!
//! One thread finds what comes next and takes it apart, the other adds what is known of tasks and hands it on ([`relay`]).
//! Must not know: how bundles are found and taken apart.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::io;

use fairlab_event::{
    Comm, Context, Cpu, Event, EventKind, IdHasher, Ns, Pid, Prio, Sink, TaskState, Tracepoint,
};

use super::cpu::{BundleStores, CpuEvents};
use super::decode::{self, DecodedPart, ScratchText, TraceCodes};
use super::pending_event::{MissingPart, PendingEvent, idle_named};
use super::pieces::{PerfettoIndex, ThreadName};
use super::repeats::SourceRepeats;
use crate::relay::{RecordOutlet, relay};
use crate::store::Store;
use crate::tracepoint::state_table::StateTable;
use crate::{ImportError, ImportStats, Trouble};

/// Reads the trace that stands in a store: each CPU's events are in places of their own.
pub(crate) fn read(file: Store, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    let mut stats = ImportStats::default();
    let mut found = PerfettoIndex::walk(&file, &mut stats)?;
    check(&found)?;
    let stores = BundleStores { file, unpacked: found.take_unpacked() };
    if !found.system.is_unknown() {
        sink.system(&found.system);
    }
    let states = StateTable::of_release(&found.states_of).unwrap_or_else(StateTable::untold);
    let described = std::mem::take(&mut found.described);
    let codes = TraceCodes { states: &states, described: &described };
    let offset = found.clock_offset.unwrap_or(0);
    let mut cpus: Vec<CpuEvents> =
        found.cpus.into_iter().map(|pieces| CpuEvents::new(pieces, offset)).collect();
    let most = cpus.iter().map(|cpu| cpu.cpu.index() + 1).max().unwrap_or(0);
    let mut reader = PerfettoReader {
        sink,
        stats,
        codes,
        tasks: ProcessTree::of(found.names),
        running: vec![None; most.min(RUNNING_MAX)],
        scratch: ScratchText::default(),
    };
    let mut late = ImportStats::default();
    let find =
        |outlet: &mut RecordOutlet<'_, PendingEvent>| merge(&mut cpus, &stores, codes, &mut late, outlet);
    let merged = relay(find, |found, bytes| reader.take(found, bytes));
    let mut stats = reader.stats;
    stats.absorb(&late);
    merged?;
    Ok(stats)
}

/// Sends everything by time, then place in `cpus`.
fn merge(
    cpus: &mut [CpuEvents],
    stores: &BundleStores,
    codes: TraceCodes<'_>,
    stats: &mut ImportStats,
    outlet: &mut RecordOutlet<'_, PendingEvent>,
) -> io::Result<()> {
    // Latest first. Few CPUs take turns at a time: where one goes back in is found faster than a heap is put in order.
    let mut waiting: Vec<(u64, usize)> = Vec::with_capacity(cpus.len());
    let mut repeats = SourceRepeats::of(cpus);
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
            if let Some((found, bytes)) = PendingEvent::next(cpu, codes) {
                if repeats.has(index, &found, bytes) {
                    stats.add(Trouble::RecordedTwice, 1, found.position);
                } else {
                    outlet.send(found, bytes);
                }
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

/// Refuses what holds no events of a scheduler, or those of two machines.
fn check(found: &PerfettoIndex) -> Result<(), ImportError> {
    if found.machines.len() > 1 {
        return Err(ImportError::SeveralSources(format!(
            "this trace of Perfetto holds events of {} machines, which are not merged",
            found.machines.len()
        )));
    }
    if found.untold_clock {
        return Err(ImportError::UntoldClock(
            "this trace of Perfetto has the times of a clock that Perfetto did not know, and nothing tells what they count; record \
             it with the clock that Perfetto chooses itself"
                .to_string(),
        ));
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

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug)]
struct RunningThread {
    pid: Pid,
    comm: Comm,
    prio: Prio,
}

struct PerfettoReader<'s> {
    sink: &'s mut dyn Sink,
    stats: ImportStats,
    codes: TraceCodes<'s>,
    tasks: ProcessTree,
    /// For each CPU, as far as switches tell.
    running: Vec<Option<RunningThread>>,
    scratch: ScratchText,
}

impl PerfettoReader<'_> {
    #[inline]
    fn take(&mut self, found: &mut PendingEvent, bytes: &[u8]) {
        let PendingEvent { event, position, lacks } = found;
        self.tasks.pass(event.time);
        match *lacks {
            MissingPart::Nothing => {}
            MissingPart::Name => self.name(event),
            MissingPart::Everything => return self.read(event.time, event.cpu, bytes, *position),
            MissingPart::Leaver { prev_state } => return self.switch(event, prev_state, *position),
            MissingPart::Runner => self.runner_reports(event),
        }
        self.doubt(event, *position);
        self.learn(event);
        self.hand_on(event);
    }

    /// Counts a state whose number kernels mean differently, where the trace does not tell its kernel.
    #[inline]
    fn doubt(&mut self, event: &Event<'_>, position: u64) {
        if self.codes.states.is_untold()
            && let EventKind::SchedSwitch(switch) = &event.kind
            && self.codes.states.is_doubtful(switch.prev_state)
        {
            self.stats.add(Trouble::NumberedState, 1, position);
        }
    }

    #[inline]
    fn hand_on(&mut self, event: &Event<'_>) {
        self.stats.events += 1;
        self.sink.event(event);
    }

    /// Reads an event that carries text, or that cannot be read.
    fn read(&mut self, time: Ns, cpu: Cpu, bytes: &[u8], position: u64) {
        let Some(around) = decode::around(bytes) else {
            return self.stats.add(Trouble::CorruptRecord, 1, position);
        };
        let Some((field, own)) = around.own else {
            return self.stats.add(Trouble::SkippedRecord, 1, position);
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        match decode::own(field, own, self.codes, &mut scratch) {
            DecodedPart::Event(kind) => {
                let pid = around.pid.unwrap_or(Pid::UNKNOWN);
                let context = Context { pid, flags: around.flags, ..Context::default() };
                let mut event = Event { time, cpu, context, kind: idle_named(kind, cpu) };
                if around.pid.is_some() {
                    self.name(&mut event);
                }
                self.doubt(&event, position);
                self.learn(&event);
                self.hand_on(&event);
            }
            DecodedPart::Unknown => self.stats.add(Trouble::OtherTracepoint, 1, position),
            DecodedPart::Undescribed => {
                self.stats.add(Trouble::UnknownEventFormat, 1, position);
                self.stats.cannot_tell(position);
            }
            DecodedPart::Unreadable(name) => {
                self.stats.add(Trouble::MalformedEvent, 1, position);
                self.stats.cannot_read(name, position, b"");
            }
        }
        self.scratch = scratch;
    }

    /// Name and process of the task that reported an event: a switch is reported by the one that leaves.
    #[inline]
    fn name(&self, event: &mut Event<'_>) {
        let pid = event.context.pid;
        let known = match &event.kind {
            EventKind::SchedSwitch(switch) if switch.prev_pid == pid => Some(switch.prev_comm),
            _ => self.running(event.cpu).filter(|running| running.pid == pid).map(|running| running.comm),
        };
        let (comm, tgid) = self.tasks.of_task(pid);
        event.context.comm = known.filter(|known| !known.is_empty()).unwrap_or(comm);
        event.context.tgid = tgid;
    }

    #[inline]
    fn running(&self, cpu: Cpu) -> Option<RunningThread> {
        self.running.get(cpu.index()).copied().flatten()
    }

    /// Who runs after an event.
    #[inline]
    fn learn(&mut self, event: &Event<'_>) {
        let now = match &event.kind {
            EventKind::SchedSwitch(switch) => {
                Some(RunningThread { pid: switch.next_pid, comm: switch.next_comm, prio: switch.next_prio })
            }
            EventKind::Lost { .. } => None,
            _ => return,
        };
        if let Some(running) = self.running.get_mut(event.cpu.index()) {
            *running = now;
        }
    }

    /// Who leaves the switch before has told; where there was none, a CPU's first switch tells no more than who comes.
    fn switch(&mut self, event: &mut Event<'_>, prev_state: u64, position: u64) {
        let prev = self.running(event.cpu);
        self.learn(event);
        let EventKind::SchedSwitch(switch) = &mut event.kind else { return };
        if event.cpu.index() >= self.running.len() {
            return;
        }
        let Some(prev) = prev else {
            return self.stats.add(Trouble::SkippedRecord, 1, position);
        };
        let Some(prev_state) = self.codes.states.state(prev_state) else {
            self.stats.add(Trouble::MalformedEvent, 1, position);
            return self.stats.cannot_read(Tracepoint::SchedSwitch.name(), position, b"");
        };
        (switch.prev_comm, switch.prev_pid, switch.prev_prio) = (prev.comm, prev.pid, prev.prio);
        switch.prev_state = if prev.pid.is_idle() { TaskState::RUNNABLE } else { prev_state };
        let (_, tgid) = self.tasks.of_task(prev.pid);
        (event.context.comm, event.context.pid, event.context.tgid) = (prev.comm, prev.pid, tgid);
        self.doubt(event, position);
        self.hand_on(event);
    }

    /// Who wakes is who runs.
    #[inline]
    fn runner_reports(&self, event: &mut Event<'_>) {
        if let Some(waker) = self.running(event.cpu) {
            let (_, tgid) = self.tasks.of_task(waker.pid);
            (event.context.comm, event.context.pid, event.context.tgid) = (waker.comm, waker.pid, tgid);
        }
    }
}

/// What the idle task is called that no switch has named.
const IDLE: Comm = Comm::from_padded(*b"<idle>\0\0\0\0\0\0\0\0\0\0");

/// Names and processes of threads as process trees tell them.
struct ProcessTree {
    known: HashMap<Pid, (Comm, Pid), BuildHasherDefault<IdHasher>>,
    /// The latest first.
    news: Vec<ThreadName>,
}

impl ProcessTree {
    /// What is told first of a task was so before; what is told later is so from then on.
    fn of(mut names: Vec<ThreadName>) -> ProcessTree {
        names.sort_by_key(|named| named.since);
        let mut tasks = ProcessTree { known: HashMap::default(), news: Vec::new() };
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

    fn learn(&mut self, named: &ThreadName) {
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
            return (IDLE, Pid::UNKNOWN);
        }
        self.known.get(&pid).copied().unwrap_or((Comm::default(), Pid::UNKNOWN))
    }
}
