//! Records to events.
//!
//! Must not know: how records are stored, in what order the CPUs take turns.

use fairlab_event::{Context, Event, EventKind, Flags, Pid, Sink};

use super::clock::Clock;
use super::merge::Receiver;
use super::stream::{Next, Stream};
use super::tasks::{Task, Tasks};
use crate::tracepoint::{Common, DecodeError, Tracepoints};
use crate::{ImportStats, Trouble};

/// What is needed to make events of records.
#[derive(Debug)]
pub(crate) struct Knowledge {
    /// How records are read.
    pub(crate) tracepoints: Tracepoints,
    /// How stamps become times.
    pub(crate) clock: Clock,
    /// Names and thread groups.
    pub(crate) tasks: Tasks,
    /// How many flag columns events have; all of them when not said.
    pub(crate) flag_columns: Option<usize>,
}

/// As many flag columns as a record can tell.
const ALL_COLUMNS: usize = 5;

/// Turns records into events and hands them on.
pub(crate) struct Delivery<'a> {
    knowledge: Knowledge,
    sink: &'a mut dyn Sink,
    stats: &'a mut ImportStats,
    /// The task that each CPU's last record was from.
    latest: Vec<(Pid, Task)>,
    /// The instance that a tracepoint is taken from, by id; there when there are several.
    instance_of: Option<Vec<Option<usize>>>,
    /// Text of the event at hand.
    scratch: String,
}

impl<'a> Delivery<'a> {
    /// A delivery from so many CPUs' buffers, all of one instance unless `several_instances`.
    pub(crate) fn new(
        mut knowledge: Knowledge,
        buffers: usize,
        several_instances: bool,
        sink: &'a mut dyn Sink,
        stats: &'a mut ImportStats,
    ) -> Delivery<'a> {
        let unknown = Pid::UNKNOWN;
        let latest = vec![(unknown, knowledge.tasks.get(unknown)); buffers];
        let instance_of = several_instances.then(|| vec![None; usize::from(u16::MAX) + 1]);
        let all = |columns: &usize| *columns >= ALL_COLUMNS;
        knowledge.flag_columns = knowledge.flag_columns.filter(|columns| !all(columns));
        Delivery { knowledge, sink, stats, latest, instance_of, scratch: String::new() }
    }

    #[inline]
    fn record(&mut self, index: usize, stream: &Stream<'_>) -> Result<(), Trouble> {
        let Knowledge { tracepoints, clock, tasks, flag_columns } = &mut self.knowledge;
        let record = stream.record();
        if let Some(instance_of) = &mut self.instance_of {
            let id = tracepoints.id(record).ok_or(Trouble::MalformedEvent)?;
            if *instance_of[usize::from(id)].get_or_insert(stream.instance) != stream.instance {
                return Err(Trouble::RecordedTwice);
            }
        }
        let (sink, latest) = (&mut *self.sink, &mut self.latest);
        let (cpu, (time, _)) = (stream.cpu, stream.time());
        let time = clock.ns(time);
        let handed_on = tracepoints.hand_on(record, &mut self.scratch, |common, kind| {
            let Common { pid, mut flags } = common;
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
        handed_on.map_err(|error| match error {
            DecodeError::UnknownFormat => Trouble::UnknownEventFormat,
            DecodeError::Malformed => Trouble::MalformedEvent,
        })
    }

    #[cold]
    fn lost(&mut self, stream: &Stream<'_>, count: Option<u64>) {
        let (time, _) = stream.time();
        let time = self.knowledge.clock.ns(time);
        self.sink.event(&Event::new(time, stream.cpu, EventKind::Lost { count }));
        self.stats.events += 1;
        self.stats.add(Trouble::LostEvents, count.unwrap_or(1), stream.position());
    }
}

/// Takes what `kind` says of a task's name into account, as perf's own records say it of the event at hand too.
#[cold]
fn learn(tasks: &mut Tasks, latest: &mut [(Pid, Task)], kind: &EventKind<'_>) {
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

impl Receiver for Delivery<'_> {
    #[inline]
    fn take(&mut self, index: usize, stream: &Stream<'_>) {
        match stream.next() {
            Next::Record => {
                if let Err(trouble) = self.record(index, stream) {
                    self.stats.add(trouble, 1, stream.position());
                }
            }
            Next::Lost(count) => self.lost(stream, count),
            Next::End => {}
        }
    }

    fn stats(&mut self) -> &mut ImportStats {
        self.stats
    }
}
