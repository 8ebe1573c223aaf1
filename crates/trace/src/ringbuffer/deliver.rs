//! Records to events.
//!
//! Must not know: how records are stored, in what order the CPUs take turns.

use fairlab_event::{Comm, Context, Event, EventKind, Flags, Pid, Sink};

use super::clock::Clock;
use super::merge::Receiver;
use super::stream::{Next, Stream};
use super::tasks::{Task, Tasks};
use crate::tracepoint::{DecodeError, Tracepoints};
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
        knowledge: Knowledge,
        buffers: usize,
        several_instances: bool,
        sink: &'a mut dyn Sink,
        stats: &'a mut ImportStats,
    ) -> Delivery<'a> {
        let unknown = Pid::UNKNOWN;
        let latest = vec![(unknown, knowledge.tasks.get(unknown)); buffers];
        let instance_of = several_instances.then(|| vec![None; usize::from(u16::MAX) + 1]);
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
        let (kind, flags) = tracepoints.decode(record, &mut self.scratch).map_err(|error| match error {
            DecodeError::UnknownFormat => Trouble::UnknownEventFormat,
            DecodeError::Malformed => Trouble::MalformedEvent,
        })?;
        match kind {
            EventKind::TaskName { pid, comm, .. } => rename(tasks, &mut self.latest, pid, comm),
            EventKind::TaskStart { pid, parent_pid, .. } => {
                let comm = tasks.get(parent_pid).comm;
                rename(tasks, &mut self.latest, pid, comm);
            }
            _ => {}
        }
        let pid = tracepoints.pid(record).unwrap_or(Pid::UNKNOWN);
        let latest = &mut self.latest[index];
        if latest.0 != pid {
            *latest = (pid, tasks.get(pid));
        }
        let Task { comm, tgid } = latest.1;
        let flags = match *flag_columns {
            _ if kind.is_task_record() => Flags::NONE,
            Some(columns) => Flags::new(flags.as_bytes().get(..columns).unwrap_or(flags.as_bytes())),
            None => flags,
        };
        let (time, _) = stream.time();
        let context = Context { comm, pid, tgid, flags };
        self.sink.event(&Event { time: clock.ns(time), cpu: stream.cpu, context, kind });
        self.stats.events += 1;
        Ok(())
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

/// From now on `pid` is called `comm`, as perf's own records say it of the event at hand too.
#[cold]
fn rename(tasks: &mut Tasks, latest: &mut [(Pid, Task)], pid: Pid, comm: Comm) {
    tasks.set_comm(pid, comm);
    for (pid, task) in latest {
        *task = tasks.get(*pid);
    }
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
