//! Events to a perf.data.
//!
//! What describes the records stands in front of them and behind, and is known at the end only. So records go to a
//! temporary file first, and [`PerfDataWriter::finish`] puts the whole together.
//!
//! Must not know: how files are read; the tests know that both agree.

mod file;
mod names;

use std::io::{self, Write};

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Flags, Pid, Sink, System};

use super::deliver::kind;
use super::fairlab_notes::{CPUS_MAX, PerfDataNotes, mark};
use super::records::FINISHED_ROUND;
use super::window;
use crate::losses::{EventLosses, LossKind, WriterLosses};
use crate::store::Spool;
use crate::tracepoint::encoder::{EncodeResult, RecordEncoder, SWITCH_ID};
use crate::tracepoint::flags;
use names::WrittenNames;

/// Writes events as the kernel's perf buffers and `perf record` would have recorded them, in the order of time.
///
/// Errors of `W` and of the temporary file (in `$TMPDIR` or `/var/tmp`, for what is longer than a few megabytes) are
/// kept and returned by [`finish`](PerfDataWriter::finish), before which nothing is written to `W`.
///
/// What [`read`](super::read) gets back is what was written, with these exceptions, which
/// [`losses`](PerfDataWriter::losses) counts:
/// * events earlier than the one before come back in the order of time;
/// * a task that loses its name keeps it, and so does one whose name changes in an event that is out of order; the idle
///   task of a CPU is called as it was first;
/// * flag columns are those of the first event: five, fewer, or none; letters that no kernel of today has become dots;
/// * events about tasks and lost events have no flags;
/// * texts longer than 32 KiB are cut, and at a NUL; a marker loses line feeds at its end; names of kprobes and of
///   events without a type keep letters, digits and `_`;
/// * events on CPUs from 8192 on, and of more than 64536 different names, are dropped.
///
/// perf prints kprobes and events without a type as the text that they were given as, in subsystems `kprobes` and
/// `fairlab`. It is given the names of tasks that only tracepoints have.
#[derive(Debug)]
pub struct PerfDataWriter<W: Write> {
    output: W,
    encoder: RecordEncoder,
    /// The tracepoint's record at hand, and what is not in the temporary file yet.
    record: Vec<u8>,
    records: Vec<u8>,
    spool: Spool,
    names: WrittenNames,
    own: PerfDataNotes,
    /// How many bytes there are since the last end of a round.
    round_bytes: usize,
    /// The first sample's time.
    first_time: Option<u64>,
    latest: u64,
    /// One more than the highest CPU.
    cpus: u32,
    system: System,
    losses: WriterLosses,
    error: Option<io::Error>,
}

/// Longer records of tracepoints are cut; `perf_event_header::size` has 16 bits.
const RECORD_BYTES_MAX: usize = 1 << 15;
/// So much is written to the temporary file at a time.
const PIECE_BYTES: usize = 1 << 18;
/// perf keeps in memory what it reads up to the end of the next round.
const ROUND_BYTES: usize = 1 << 20;

impl<W: Write> PerfDataWriter<W> {
    /// A writer. Nothing need be buffered by `output`.
    pub fn new(output: W) -> PerfDataWriter<W> {
        PerfDataWriter {
            output,
            encoder: RecordEncoder::new(RECORD_BYTES_MAX),
            record: Vec::new(),
            records: Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4),
            spool: Spool::default(),
            names: WrittenNames::default(),
            own: PerfDataNotes::default(),
            round_bytes: 0,
            first_time: None,
            latest: 0,
            cpus: 0,
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
        self.spool.append(&self.records)?;
        let tables = file::PerfDataTables {
            ids: self.encoder.used_ids(),
            formats: self.encoder.formats(),
            times: (self.first_time.unwrap_or(0), self.latest),
            cpus: self.cpus,
            system: self.system,
            own: self.own.text(),
        };
        file::write(&tables, self.spool, &mut self.output)?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        let is_record = event.kind.is_task_record() || matches!(event.kind, EventKind::Lost { .. });
        let encoded =
            if is_record { EncodeResult::Exact } else { self.encoder.encode(event, &mut self.record) };
        if encoded == EncodeResult::None || event.cpu.0 >= CPUS_MAX {
            self.losses.add(event.kind.name(), EventLosses::only(LossKind::LeftOut));
            return Ok(());
        }
        let mut losses = EventLosses::default();
        losses.unless(encoded == EncodeResult::Exact, LossKind::Text);
        // The highest time means "none" to perf.
        let in_order = (self.latest..u64::MAX).contains(&event.time.0);
        losses.unless(in_order, LossKind::Order);
        self.latest = self.latest.max(event.time.0.min(u64::MAX - 1));
        self.cpus = self.cpus.max(event.cpu.0 + 1);
        let stamp = SampleStamp { time: event.time.0.min(u64::MAX - 1), cpu: event.cpu, in_order };
        if is_record {
            losses.unless(event.context.flags == Flags::NONE, LossKind::Flags);
            losses.unless(self.task_or_loss(event, stamp), LossKind::Context);
        } else {
            self.first_time.get_or_insert(self.latest);
            losses.unless(self.introduce(&event.context, stamp), LossKind::Context);
            losses.unless(self.keeps_flags(event.context.flags), LossKind::Flags);
            self.show_names(event, stamp);
            self.sample(&event.context, stamp);
        }
        self.losses.add(event.kind.name(), losses);
        self.end_round();
        if self.records.len() >= PIECE_BYTES {
            self.spool.append(&self.records)?;
            self.records.clear();
        }
        Ok(())
    }

    /// Records that perf takes from the kernel beside tracepoints; false when their context will be another.
    fn task_or_loss(&mut self, event: &Event<'_>, stamp: SampleStamp) -> bool {
        let Event { context, kind, .. } = event;
        let subject = match *kind {
            EventKind::TaskName { pid, .. } | EventKind::TaskStart { pid, .. } => Some(pid),
            _ => None,
        };
        // What a record says of its own reporter holds for it already.
        let introduced = subject == Some(context.pid) || self.introduce(context, stamp);
        let mut body = RecordBody::default();
        match *kind {
            EventKind::TaskName { pid, tgid, comm } => {
                self.names.named(pid, tgid, comm);
                body = self.comm(pid, tgid, comm);
            }
            EventKind::TaskStart { pid, tgid, parent_pid } => {
                let parent_process = self.names.process(parent_pid);
                self.names.started(pid, tgid, parent_pid);
                body = self.life(kind::FORK, [pid, tgid, parent_pid, parent_process], stamp);
            }
            EventKind::TaskExit { pid, tgid } => {
                let parent = self.names.get(pid).parent.unwrap_or(tgid);
                body = self.life(kind::EXIT, [pid, tgid, parent, self.names.process(parent)], stamp);
            }
            EventKind::Lost { count } => {
                body.u64(u64::from(SWITCH_ID)).u64(count.unwrap_or(0));
                body.kind = kind::LOST;
                body.misc = if count.is_none() { mark::LOST_UNCOUNTED } else { 0 };
            }
            _ => return false,
        }
        let known = context.pid != Pid::UNKNOWN || context.tgid != Pid::UNKNOWN;
        match subject {
            // perf refuses names that nobody reports.
            Some(pid) if !known => {
                body.misc |= mark::REPORTER_UNKNOWN;
                self.record_with_trailer(body, pid, self.names.process(pid), stamp);
            }
            Some(pid) if pid != context.pid && !context.pid.is_idle() && self.names.meets(context.pid) => {
                let name = Comm::from(format!(":{}", context.pid).as_str());
                self.made_up_name(mark::COMM_SHOWN, context.pid, name, stamp);
                self.record_with_trailer(body, context.pid, context.tgid, stamp);
            }
            _ => self.record_with_trailer(body, context.pid, context.tgid, stamp),
        }
        introduced && self.known_name(context.pid, stamp.cpu) == context.comm
    }

    /// COMM: `pid` of `tgid` is called `comm`.
    fn comm(&self, pid: Pid, tgid: Pid, comm: Comm) -> RecordBody {
        let (process, misc) = self.process(pid, tgid);
        let mut body = RecordBody { kind: kind::COMM, misc, ..RecordBody::default() };
        body.ids([process, pid]).name(comm);
        body
    }

    /// FORK or EXIT of a task; its ids, then its parent's.
    fn life(&self, kind: u32, ids: [Pid; 4], stamp: SampleStamp) -> RecordBody {
        let [pid, tgid, parent, parent_process] = ids;
        let (process, misc) = self.process(pid, tgid);
        let mut body = RecordBody { kind, misc, ..RecordBody::default() };
        body.ids([process, parent_process, pid, parent]).u64(stamp.time);
        body
    }

    /// The process that is written for perf, and the mark that goes with it.
    fn process(&self, pid: Pid, tgid: Pid) -> (Pid, u16) {
        match tgid {
            Pid::UNKNOWN if pid != Pid::UNKNOWN => (self.names.process(pid), mark::PROCESS_UNKNOWN),
            _ => (tgid, 0),
        }
    }

    /// A name that no recorder knew of. perf believes the first process that it is told of, and takes none for 0 in some
    /// commands.
    fn made_up_name(&mut self, mark: u16, pid: Pid, comm: Comm, stamp: SampleStamp) {
        let process = self.names.process(pid);
        let mut body = RecordBody { kind: kind::COMM, misc: mark, ..RecordBody::default() };
        body.ids([process, pid]).name(comm);
        self.record_with_trailer(body, pid, process, stamp);
    }

    /// The name that the reader will give to an event's context.
    fn known_name(&self, pid: Pid, cpu: Cpu) -> Comm {
        let name = self.names.get(pid).comm;
        if pid.is_idle() && name.is_empty() { self.own.idle(cpu.0).unwrap_or_default() } else { name }
    }

    /// Sees to it that the reader knows the name of an event's context; false when it will have another.
    fn introduce(&mut self, context: &Context, stamp: SampleStamp) -> bool {
        let Context { comm, pid, tgid, .. } = *context;
        if pid.is_idle() {
            if self.names.get(pid).comm.is_empty()
                && let Some(idle) = self.own.idle_mut(stamp.cpu.0)
            {
                idle.get_or_insert(comm);
            }
            return self.known_name(pid, stamp.cpu) == comm;
        }
        self.names.belongs(pid, tgid);
        if self.names.get(pid).comm == comm {
            return true;
        }
        if comm.is_empty() || !stamp.in_order || !WrittenNames::holds(pid) {
            return false;
        }
        self.names.rename(pid, comm);
        self.made_up_name(mark::COMM_OF_CONTEXT, pid, comm, stamp);
        true
    }

    /// Whether the reader will have the same flag columns.
    fn keeps_flags(&mut self, flags: Flags) -> bool {
        let (bits, preempt_count) = flags::common(flags);
        let shown = flags::columns(bits, preempt_count);
        let first = flags.as_bytes().len().min(shown.as_bytes().len());
        let columns = *self.own.flag_columns.get_or_insert(first);
        flags.as_bytes() == &shown.as_bytes()[..columns]
    }

    /// Tells perf the names that an event says tasks have. Of the task that reports it, the context knows better.
    fn show_names(&mut self, event: &Event<'_>, stamp: SampleStamp) {
        let context = &event.context;
        let mut show = |pid: Pid, comm: Comm| {
            if pid != context.pid || context.comm.is_empty() {
                self.show_name(pid, comm, stamp);
            }
        };
        match event.kind {
            EventKind::SchedSwitch(switch) => {
                show(switch.prev_pid, switch.prev_comm);
                show(switch.next_pid, switch.next_comm);
            }
            EventKind::SchedWaking(wakeup)
            | EventKind::SchedWakeup(wakeup)
            | EventKind::SchedWakeupNew(wakeup) => show(wakeup.pid, wakeup.comm),
            EventKind::SchedMigrateTask { comm, pid, .. }
            | EventKind::SchedProcessExit { comm, pid, .. }
            | EventKind::SchedStatRuntime { comm, pid, .. } => show(pid, comm),
            EventKind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
                show(pid, comm);
                show(child_pid, child_comm);
            }
            _ => {}
        }
        self.show_name(context.pid, context.comm, stamp);
    }

    fn show_name(&mut self, pid: Pid, comm: Comm, stamp: SampleStamp) {
        if stamp.in_order && self.names.is_news(pid, comm) {
            self.made_up_name(mark::COMM_SHOWN, pid, comm, stamp);
        }
    }

    /// A record of what the kernel reports beside samples; `sample_id_all` adds who, when and where.
    fn record_with_trailer(&mut self, mut body: RecordBody, reporter: Pid, process: Pid, stamp: SampleStamp) {
        body.bytes.resize(body.bytes.len().next_multiple_of(WORD), 0);
        body.ids([process, reporter]).u64(stamp.time).u64(stamp.cpu.0.into()).u64(SWITCH_ID.into());
        self.head(body.kind, body.misc, body.bytes.len());
        self.records.extend(&body.bytes);
    }

    /// A tracepoint's record as a sample.
    fn sample(&mut self, context: &Context, stamp: SampleStamp) {
        let (process, unknown) = self.process(context.pid, context.tgid);
        self.names.meets(context.pid);
        // As the kernel pads it: the size in front and the record are whole words together.
        let raw = (size_of::<u32>() + self.record.len()).next_multiple_of(WORD);
        self.record.resize(raw - size_of::<u32>(), 0);
        let id = self.record.first_chunk().map_or(0, |id| u16::from_le_bytes(*id));
        self.head(kind::SAMPLE, MISC_KERNEL | unknown, file::SAMPLE_WORDS * WORD + raw);
        let ids = u64::from(process.0 as u32) | u64::from(context.pid.0 as u32) << 32;
        let period = 1;
        for word in [id.into(), ids, stamp.time, stamp.cpu.0.into(), period] {
            self.records.extend(u64::to_le_bytes(word));
        }
        self.records.extend(((raw - size_of::<u32>()) as u32).to_le_bytes());
        self.records.extend(&self.record);
    }

    /// `perf_event_header` of a record with a body of `bytes`.
    fn head(&mut self, kind: u32, misc: u16, bytes: usize) {
        let size = window::RECORD_HEADER + bytes;
        debug_assert!(size.is_multiple_of(WORD) && size <= usize::from(u16::MAX), "{size}");
        self.records.extend(kind.to_le_bytes());
        self.records.extend(misc.to_le_bytes());
        self.records.extend((size as u16).to_le_bytes());
        self.round_bytes += size;
    }

    fn end_round(&mut self) {
        if self.round_bytes >= ROUND_BYTES {
            self.head(FINISHED_ROUND, 0, 0);
            self.round_bytes = 0;
        }
    }
}

const WORD: usize = 8;

/// `PERF_RECORD_MISC_KERNEL`: it was the kernel that ran.
const MISC_KERNEL: u16 = 1;

/// When and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SampleStamp {
    time: u64,
    cpu: Cpu,
    /// Whether no later event stands before it.
    in_order: bool,
}

/// A record that is no sample, in the making.
#[derive(Debug, Default)]
struct RecordBody {
    kind: u32,
    misc: u16,
    bytes: Vec<u8>,
}

impl RecordBody {
    fn ids<const COUNT: usize>(&mut self, ids: [Pid; COUNT]) -> &mut RecordBody {
        self.bytes.extend(ids.iter().flat_map(|id| id.0.to_le_bytes()));
        self
    }

    fn name(&mut self, comm: Comm) {
        self.bytes.extend(comm.as_bytes());
        self.bytes.push(0);
    }

    fn u64(&mut self, value: u64) -> &mut RecordBody {
        self.bytes.extend(value.to_le_bytes());
        self
    }
}

impl<W: Write> Sink for PerfDataWriter<W> {
    fn event(&mut self, event: &Event<'_>) {
        if self.error.is_none() {
            self.error = self.put(event).err();
        }
    }

    fn system(&mut self, system: &System) {
        self.system.clone_from(system);
        self.own.system.clone_from(system);
    }
}
