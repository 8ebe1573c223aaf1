//! Events to a trace.dat.
//!
//! Each CPU's pages must lie side by side in the file, and what describes them in front, though it is known at the end
//! only. So full pages go to a temporary file first, and [`TraceDatWriter::finish`] puts the whole together.
//!
//! Must not know: how files are read; the tests know that both agree.

mod file;
mod tasks;

use std::io::{self, Write};

use fairlab_event::{Comm, Context, Event, EventKind, Flags, Pid, Sink, System};

use super::fairlab_notes::TraceDatNotes;
use crate::losses::{EventLosses, LossKind, WriterLosses};
use crate::ringbuffer::fill::{PAGE_BYTES, PageFill, RECORD_BYTES_MAX};
use crate::store::Spool;
use crate::tracepoint::encoder::{EncodeResult, RecordEncoder};
use crate::tracepoint::flags;
use file::{CpuPages, WrittenPages};
use tasks::WrittenTasks;

/// How a trace.dat is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceDatOptions {
    /// With what the records are compressed.
    pub compression: TraceDatCompression,
}

/// With what the records of a trace.dat are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceDatCompression {
    /// Nothing: version 6, which every trace-cmd and KernelShark opens.
    #[default]
    None,
    /// zstd: version 7, which trace-cmd from 3.0 on opens, about an eighth as long.
    Zstd,
}

/// Writes events as the kernel's ring buffer and trace-cmd would have recorded them.
///
/// Errors of `W` and of the temporary file (in `$TMPDIR` or `/var/tmp`, for what is longer than a few megabytes) are
/// kept and returned by [`finish`](TraceDatWriter::finish), before which nothing is written to `W`.
///
/// What [`read`](super::read) gets back is what was written, with these exceptions, which
/// [`losses`](TraceDatWriter::losses) counts:
/// * events earlier than the one before come back in the order of time;
/// * a context's name that changes without an [`EventKind::TaskName`] or [`EventKind::TaskStart`] stays as it was, and
///   so does a thread group that changes;
/// * flag columns are those of the first event: five, fewer, or none; letters that no kernel of today has become dots;
/// * [`EventKind::Lost`] has no context, and events about tasks have no flags;
/// * texts longer than a page are cut, and at a NUL; a marker loses line feeds at its end; names of kprobes and of
///   events without a type keep letters, digits and `_`;
/// * events on CPUs from 8192 on, and of more than 64536 different names, are dropped.
///
/// trace-cmd prints kprobes and events without a type as the text that they were given as, in subsystems `kprobes` and
/// `fairlab`; fields cannot be filtered on. It knows one name for each task. Events of different CPUs at the same
/// nanosecond come in the order of the CPUs there, while `read` gives back their order.
#[derive(Debug)]
pub struct TraceDatWriter<W: Write> {
    output: W,
    encoder: RecordEncoder,
    /// The record at hand.
    record: Vec<u8>,
    cpus: Vec<CpuBuffer>,
    pieces: WrittenPages,
    tasks: WrittenTasks,
    /// What was known of tasks before the first event.
    early: Vec<Event<'static>>,
    flag_columns: Option<usize>,
    latest: Option<Latest>,
    system: System,
    losses: WriterLosses,
    error: Option<io::Error>,
}

/// What is not in the temporary file yet of a CPU, and where in it the rest is.
#[derive(Debug, Default)]
struct CpuBuffer {
    fill: PageFill,
    stored: CpuPages,
}

/// The place of the latest event in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Latest {
    time: u64,
    rank: u32,
    cpu: u32,
}

/// `NR_CPUS` of no kernel is larger.
const CPUS_MAX: u32 = 8192;

/// More knowledge from before the first event is written as events: as much as all threads that a kernel can have.
const EARLY_MAX: usize = 1 << 22;

/// More pages with one event each would make a long file of a short trace.
const TORN_MAX: u32 = 1024;

/// Pages that are stored, and compressed, together; as many as trace-cmd does.
const PIECE_PAGES: usize = 10;

impl<W: Write> TraceDatWriter<W> {
    /// A writer with the default options. Nothing need be buffered by `output`.
    pub fn new(output: W) -> TraceDatWriter<W> {
        TraceDatWriter::with_options(output, TraceDatOptions::default())
    }

    /// A writer with options.
    pub fn with_options(output: W, options: TraceDatOptions) -> TraceDatWriter<W> {
        TraceDatWriter {
            output,
            encoder: RecordEncoder::new(RECORD_BYTES_MAX),
            record: Vec::new(),
            cpus: Vec::new(),
            pieces: WrittenPages::new(options.compression, Spool::default()),
            tasks: WrittenTasks::default(),
            early: Vec::new(),
            flag_columns: None,
            latest: None,
            system: System::default(),
            losses: WriterLosses::default(),
            error: None,
        }
    }

    /// Which events so far will not be read back exactly as they were given.
    pub fn losses(&self) -> &WriterLosses {
        &self.losses
    }

    /// Writes the file and gives the output back.
    ///
    /// # Errors
    /// The first error of the temporary file, or of `W`.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(error) = self.error {
            return Err(error);
        }
        for CpuBuffer { fill, stored } in &mut self.cpus {
            let rest = std::mem::take(fill).finish();
            for piece in rest.chunks(PIECE_PAGES * PAGE_BYTES) {
                self.pieces.store(piece, stored)?;
            }
        }
        let (cmdlines, comms) = self.tasks.names();
        let own = TraceDatNotes {
            flag_columns: self.flag_columns,
            tgids: self.tasks.tgids(),
            comms,
            early: self.early,
            system: self.system.clone(),
        };
        let mut cpus: Vec<CpuPages> = self.cpus.into_iter().map(|cpu| cpu.stored).collect();
        let count = self.system.cpus.unwrap_or(0).min(CPUS_MAX) as usize;
        cpus.resize(count.max(cpus.len()), CpuPages::default());
        let tables = file::TraceDatTables {
            formats: self.encoder.formats(),
            cmdlines,
            system: self.system,
            own: own.text(),
            cpus,
        };
        self.pieces.write_file(&tables, &mut self.output)?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        if self.is_known_before(event) {
            return Ok(());
        }
        let encoded = match event.kind {
            EventKind::Lost { .. } => EncodeResult::Exact,
            _ => self.encoder.encode(event, &mut self.record),
        };
        if encoded == EncodeResult::None || event.cpu.0 >= CPUS_MAX {
            self.losses.add(event.kind.name(), EventLosses::only(LossKind::LeftOut));
            return Ok(());
        }
        let mut losses = self.context(event);
        losses.unless(encoded == EncodeResult::Exact, LossKind::Text);
        let (rank, in_order) = self.rank(event.time.0, event.cpu.0);
        losses.unless(in_order, LossKind::Order);
        if self.cpus.len() <= event.cpu.index() {
            self.cpus.resize_with(event.cpu.index() + 1, CpuBuffer::default);
        }
        let CpuBuffer { fill, stored } = &mut self.cpus[event.cpu.index()];
        let in_place = match event.kind {
            EventKind::Lost { count } => fill.lost(event.time.0, rank, count),
            _ => fill.push(event.time.0, rank, &self.record),
        };
        losses.unless(in_place, LossKind::Order);
        if fill.torn() > TORN_MAX {
            return Err(io::Error::other(format!(
                "more than {TORN_MAX} events of CPU {} are out of order at times that only pages can tell; sort the trace first",
                event.cpu
            )));
        }
        self.losses.add(event.kind.name(), losses);
        match fill.take_full(PIECE_PAGES) {
            Some(pages) => self.pieces.store(&pages, stored),
            None => Ok(()),
        }
    }

    /// Takes what the recorder knew of tasks before the first event. Records of it would stand at time 0, long before
    /// all others.
    fn is_known_before(&mut self, event: &Event<'_>) -> bool {
        if self.latest.is_some() || self.early.len() >= EARLY_MAX || event.context.flags != Flags::NONE {
            return false;
        }
        let kind = match event.kind {
            EventKind::TaskName { pid, tgid, comm } => {
                self.tasks.known_before(pid, comm);
                EventKind::TaskName { pid, tgid, comm }
            }
            EventKind::TaskStart { pid, tgid, parent_pid } => {
                self.tasks.started_before(pid, parent_pid);
                EventKind::TaskStart { pid, tgid, parent_pid }
            }
            EventKind::TaskExit { pid, tgid } => EventKind::TaskExit { pid, tgid },
            _ => return false,
        };
        self.early.push(Event { time: event.time, cpu: event.cpu, context: event.context, kind });
        true
    }

    /// Takes the event's context into account; tells what of it will be read back as another.
    fn context(&mut self, event: &Event<'_>) -> EventLosses {
        let mut losses = EventLosses::default();
        let context = &event.context;
        let reporter = (context.pid, context.comm, context.tgid);
        let task_exact = match event.kind {
            EventKind::Lost { .. } => {
                losses.unless(*context == Context::default(), LossKind::Context);
                return losses;
            }
            EventKind::TaskName { pid, comm, .. } => self.rename(pid, comm, reporter),
            EventKind::TaskStart { pid, parent_pid, .. } => {
                if context.pid != pid {
                    self.tasks.reported(context.pid, context.comm, context.tgid);
                }
                let comm = self.tasks.comm(parent_pid);
                self.rename(pid, comm, reporter)
            }
            _ => self.tasks.reported(context.pid, context.comm, context.tgid),
        };
        losses.unless(task_exact, LossKind::Context);
        if event.kind.is_task_record() {
            losses.unless(context.flags == Flags::NONE, LossKind::Flags);
            return losses;
        }
        let (bits, preempt_count) = flags::common(context.flags);
        let shown = flags::columns(bits, preempt_count);
        let columns =
            *self.flag_columns.get_or_insert(context.flags.as_bytes().len().min(shown.as_bytes().len()));
        losses.unless(context.flags.as_bytes() == &shown.as_bytes()[..columns], LossKind::Flags);
        losses
    }

    /// From now on `pid` is called `comm`, also where it is itself who reports it.
    fn rename(&mut self, pid: Pid, comm: Comm, reporter: (Pid, Comm, Pid)) -> bool {
        let (reporting, reporting_comm, tgid) = reporter;
        if reporting != pid {
            let exact = self.tasks.reported(reporting, reporting_comm, tgid);
            self.tasks.renamed(pid, comm);
            return exact;
        }
        self.tasks.renamed(pid, comm);
        self.tasks.reported(reporting, reporting_comm, tgid)
    }

    /// The rank that puts an event behind the ones before, and whether that can be done.
    fn rank(&mut self, time: u64, cpu: u32) -> (u32, bool) {
        let rank = match self.latest {
            Some(latest) if time < latest.time => return (0, false),
            Some(latest) if time == latest.time => latest.rank.saturating_add(u32::from(cpu < latest.cpu)),
            _ => 0,
        };
        self.latest = Some(Latest { time, rank, cpu });
        (rank, true)
    }
}

impl<W: Write> Sink for TraceDatWriter<W> {
    fn event(&mut self, event: &Event<'_>) {
        if self.error.is_none() {
            self.error = self.put(event).err();
        }
    }

    fn system(&mut self, system: &System) {
        self.system.clone_from(system);
    }
}
