//! Records to events.
//!
//! Must not know: how records are stored, in what order the CPUs take turns, nor who finds out.

use std::io;

use fairlab_event::{Context, Cpu, Event, EventKind, Flags, Pid, Sink};

use super::merge::{CpuReceiver, merge};
use super::stream::{CpuStream, StreamItem};
use super::tasks::{ThreadEntry, ThreadTable};
use crate::clock::TraceClock;
use crate::relay::{RecordOutlet, relay};
use crate::tracepoint::{CommonFields, Tracepoints};
use crate::{ImportStats, Trouble};

/// What is needed to make events of records.
#[derive(Debug)]
pub(crate) struct DecodingTables {
    /// How records are read.
    pub(crate) tracepoints: Tracepoints,
    /// How stamps become times.
    pub(crate) clock: TraceClock,
    /// Names and thread groups.
    pub(crate) tasks: ThreadTable,
    /// How many flag columns events have; all of them when not said.
    pub(crate) flag_columns: Option<usize>,
}

/// As many flag columns as a record can tell.
const ALL_COLUMNS: usize = 5;

/// Turns records into events and hands them on.
pub(crate) struct RingBufferDelivery<'a> {
    knowledge: DecodingTables,
    sink: &'a mut dyn Sink,
    stats: &'a mut ImportStats,
    /// The CPU of each buffer, and the instance that it is of.
    buffers: Vec<(Cpu, usize)>,
    /// The task that each buffer's last record was from.
    latest: Vec<(Pid, ThreadEntry)>,
    /// The instance that a tracepoint is taken from, by id; there when there are several.
    instance_of: Option<Vec<Option<usize>>>,
    /// Text of the event at hand.
    scratch: String,
}

/// Makes events of all records in `streams` and hands them on in order of time.
pub(crate) fn deliver(
    mut streams: Vec<CpuStream<'_>>,
    knowledge: DecodingTables,
    sink: &mut dyn Sink,
    stats: &mut ImportStats,
) -> io::Result<()> {
    let buffers = streams.iter().map(|stream| (stream.cpu, stream.instance)).collect();
    let mut found = ImportStats::default();
    let mut delivery = RingBufferDelivery::new(knowledge, buffers, sink, stats);
    let find = |outlet: &mut RecordOutlet<'_, RecordHead>| {
        merge(&mut streams, &mut RecordFinder { outlet, stats: &mut found })
    };
    relay(find, |head, record| delivery.take(*head, record))?;
    stats.absorb(&found);
    Ok(())
}

/// What is known of a record when it is sent on.
#[derive(Clone, Copy, Debug)]
struct RecordHead {
    /// Whose it is.
    buffer: u32,
    /// Whether it is a record, or tells of losses.
    next: StreamItem,
    time: u64,
    /// Where in the file it stands.
    position: u64,
}

/// Sends on what the merge hands out.
struct RecordFinder<'f, 'o> {
    outlet: &'f mut RecordOutlet<'o, RecordHead>,
    stats: &'f mut ImportStats,
}

impl CpuReceiver for RecordFinder<'_, '_> {
    #[inline]
    fn take(&mut self, index: usize, stream: &CpuStream<'_>) {
        let (time, _) = stream.time();
        let head =
            RecordHead { buffer: index as u32, next: stream.next(), time, position: stream.position() };
        let record = if head.next == StreamItem::Record { stream.record() } else { &[] };
        self.outlet.send(head, record);
    }

    fn stats(&mut self) -> &mut ImportStats {
        self.stats
    }
}

impl<'a> RingBufferDelivery<'a> {
    fn new(
        mut knowledge: DecodingTables,
        buffers: Vec<(Cpu, usize)>,
        sink: &'a mut dyn Sink,
        stats: &'a mut ImportStats,
    ) -> RingBufferDelivery<'a> {
        let unknown = Pid::UNKNOWN;
        let latest = vec![(unknown, knowledge.tasks.get(unknown)); buffers.len()];
        let first = buffers.first().map(|&(_, instance)| instance);
        let several_instances = buffers.iter().any(|&(_, instance)| Some(instance) != first);
        let instance_of = several_instances.then(|| vec![None; usize::from(u16::MAX) + 1]);
        let all = |columns: &usize| *columns >= ALL_COLUMNS;
        knowledge.flag_columns = knowledge.flag_columns.filter(|columns| !all(columns));
        RingBufferDelivery { knowledge, sink, stats, buffers, latest, instance_of, scratch: String::new() }
    }

    #[inline]
    fn take(&mut self, head: RecordHead, record: &[u8]) {
        let index = head.buffer as usize;
        let Some(&(cpu, instance)) = self.buffers.get(index) else { return };
        match head.next {
            StreamItem::Record => {
                if let Err(trouble) = self.record(index, (cpu, instance), head.time, record) {
                    self.stats.add(trouble, 1, head.position);
                    self.knowledge.tracepoints.account(trouble, record, head.position, self.stats);
                }
            }
            StreamItem::Lost(count) => self.lost(cpu, head, count),
            StreamItem::End => {}
        }
    }

    #[inline]
    fn record(
        &mut self,
        index: usize,
        (cpu, instance): (Cpu, usize),
        time: u64,
        record: &[u8],
    ) -> Result<(), Trouble> {
        let DecodingTables { tracepoints, clock, tasks, flag_columns } = &mut self.knowledge;
        if let Some(instance_of) = &mut self.instance_of {
            let id = tracepoints.id(record).ok_or(Trouble::MalformedEvent)?;
            if *instance_of[usize::from(id)].get_or_insert(instance) != instance {
                return Err(Trouble::RecordedTwice);
            }
        }
        let (sink, latest) = (&mut *self.sink, &mut self.latest);
        let time = clock.ns(time);
        let handed_on = tracepoints.hand_on(record, &mut self.scratch, |common, kind| {
            let CommonFields { pid, mut flags } = common;
            if kind.is_task_record() {
                learn(tasks, latest, &kind);
                flags = Flags::NONE;
            } else if let Some(columns) = *flag_columns {
                flags = first_columns(flags, columns);
            }
            let task = match latest.get_mut(index) {
                Some((known, task)) if *known == pid => *task,
                Some(latest) => {
                    *latest = (pid, tasks.get(pid));
                    latest.1
                }
                None => tasks.get(pid),
            };
            let context = Context { comm: task.comm, pid, tgid: task.tgid, flags };
            sink.event(&Event { time, cpu, context, kind });
        });
        self.stats.events += u64::from(handed_on.is_ok());
        tracepoints.trouble_of(handed_on, record)
    }

    #[cold]
    fn lost(&mut self, cpu: Cpu, head: RecordHead, count: Option<u64>) {
        let time = self.knowledge.clock.ns(head.time);
        self.sink.event(&Event::new(time, cpu, EventKind::Lost { count }));
        self.stats.events += 1;
        self.stats.add(Trouble::LostEvents, count.unwrap_or(1), head.position);
    }
}

/// Takes what `kind` says of a task's name into account, as perf's own records say it of the event at hand too.
#[cold]
fn learn(tasks: &mut ThreadTable, latest: &mut [(Pid, ThreadEntry)], kind: &EventKind<'_>) {
    match *kind {
        EventKind::TaskName { pid, comm, .. } => tasks.set_comm(pid, comm),
        EventKind::TaskStart { pid, parent_pid, .. } => tasks.set_comm(pid, tasks.get(parent_pid).comm),
        _ => {}
    }
    for (pid, task) in latest {
        *task = tasks.get(*pid);
    }
}

#[cold]
fn first_columns(flags: Flags, columns: usize) -> Flags {
    Flags::new(flags.as_bytes().get(..columns).unwrap_or(flags.as_bytes()))
}
