//! Records to events.
//!
//! Must not know: in what order the file has them, nor who finds them.

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Prio, Sink, Switch, SwitchScope};

use super::fairlab_notes::mark;
use super::header::Header;
use super::sample::SampleTask;
use super::switches::{RecordedSwitch, SwitchFollower};
use super::task_names::TaskNames;
use super::window::RECORD_HEADER;
use crate::endian::Endian;
use crate::{ImportStats, Trouble};

/// `PERF_RECORD_*` that say something about tasks or events.
pub(super) mod kind {
    pub(in crate::perfdata) const LOST: u32 = 2;
    pub(in crate::perfdata) const COMM: u32 = 3;
    pub(in crate::perfdata) const EXIT: u32 = 4;
    pub(in crate::perfdata) const FORK: u32 = 7;
    pub(in crate::perfdata) const SAMPLE: u32 = 9;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(in crate::perfdata) const SWITCH: u32 = 14;
    pub(in crate::perfdata) const SWITCH_CPU_WIDE: u32 = 15;
}

/// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: a filter dropped them, as it was told.
const MISC_FILTERED: u16 = 1 << 14;

/// Turns records into events and hands them on.
pub(super) struct PerfDelivery<'a> {
    header: &'a Header,
    sink: &'a mut dyn Sink,
    stats: &'a mut ImportStats,
    /// The name of each task, by thread id.
    names: TaskNames,
    /// Text of the event at hand.
    scratch: String,
    /// The time of the latest event.
    latest: u64,
    lost: LostCounts,
    switches: SwitchFollower,
}

/// What the two kinds of records say about lost events. They count the same losses: LOST says where in the stream
/// room was missing; LOST_SAMPLES, written at the end, how many it was for each event in all.
#[derive(Clone, Copy, Debug, Default)]
struct LostCounts {
    told: u64,
    in_all: u64,
}

impl<'a> PerfDelivery<'a> {
    pub(super) fn new(
        header: &'a Header,
        stats: &'a mut ImportStats,
        sink: &'a mut dyn Sink,
    ) -> PerfDelivery<'a> {
        // No record names the idle tasks, only notes do; perf calls them so.
        let mut names = TaskNames::new();
        if header.own.is_none() {
            names.set(0, Comm::new(b"swapper"));
        }
        let switches = SwitchFollower::new(header.switch_records, header.scope);
        PerfDelivery {
            header,
            sink,
            stats,
            names,
            scratch: String::new(),
            latest: 0,
            lost: LostCounts::default(),
            switches,
        }
    }

    /// Takes a record that comes next in the order of time; false when it is none that is put in order.
    #[inline]
    pub(super) fn ordered(&mut self, record: &[u8], position: u64) -> bool {
        let Some(time) = self.header.order_time(record) else { return false };
        if time < self.latest {
            self.stats.add(Trouble::OutOfOrder, 1, position);
        } else {
            self.latest = time;
        }
        self.deliver(record, time, position);
        true
    }

    /// Counts what went wrong in finding records.
    pub(super) fn trouble(&mut self, trouble: Trouble, position: u64) {
        self.stats.add(trouble, 1, position);
    }

    /// Takes a record that has no place in the order of time: perf's own, those about the time before the recording,
    /// and those that say nothing about tasks or events.
    #[cold]
    pub(super) fn unordered(&mut self, record: &[u8], position: u64) {
        if !self.header.delivers(kind_of(record, self.header.endian)) {
            self.stats.add(Trouble::SkippedRecord, 1, position);
        } else if self.header.time_of(record).is_some() {
            self.deliver(record, self.latest, position);
        } else {
            self.stats.add(Trouble::CorruptRecord, 1, position);
        }
    }

    #[inline]
    fn deliver(&mut self, record: &[u8], time: u64, position: u64) {
        let Some(body) = record.get(RECORD_HEADER..) else { return };
        let delivered = match kind_of(record, self.header.endian) {
            kind::SAMPLE => self.sample(body, self.marks(record), time),
            kind @ (kind::SWITCH | kind::SWITCH_CPU_WIDE) => self.switch(kind, record, time, position),
            other => self.task_or_loss(other, record, time, position),
        };
        if let Err(trouble) = delivered {
            self.stats.add(trouble, 1, position);
            self.unreadable(trouble, body, position);
        }
    }

    /// Counts a sample that gave no event, where it may be one of the scheduler's.
    #[cold]
    fn unreadable(&mut self, trouble: Trouble, body: &[u8], position: u64) {
        let Header { endian, layouts, tracepoints, .. } = self.header;
        let raw = layouts.sample(body).and_then(|layout| layout.raw(body, *endian));
        tracepoints.account(trouble, raw.unwrap_or_default(), position, self.stats);
    }

    /// What Fairlab's writer said of a record beside; nothing in files of others.
    #[inline]
    fn marks(&self, record: &[u8]) -> u16 {
        match self.header.own {
            Some(_) => self.header.endian.u16(record, 4).unwrap_or(0),
            None => 0,
        }
    }

    #[inline]
    fn sample(&mut self, body: &[u8], marks: u16, time: u64) -> Result<(), Trouble> {
        let Header { endian, layouts, tracepoints, .. } = self.header;
        let layout = layouts.sample(body).ok_or(Trouble::CorruptRecord)?;
        if !layout.tracepoint {
            return Err(Trouble::SkippedRecord);
        }
        let mut origin = layout.origin(body, *endian).ok_or(Trouble::CorruptRecord)?;
        if marks & mark::PROCESS_UNKNOWN != 0 {
            origin.pid = Pid::UNKNOWN.0;
        }
        let raw = layout.raw(body, *endian).ok_or(Trouble::CorruptRecord)?;
        let (sink, header, switches) = (&mut *self.sink, self.header, &mut self.switches);
        let comm = comm(&mut self.names, header, origin);
        let handed_on = tracepoints.hand_on(raw, &mut self.scratch, |common, kind| {
            let mut flags = common.flags;
            if let Some(columns) = header.own.as_ref().and_then(|own| own.flag_columns) {
                flags = Flags::new(flags.as_bytes().get(..columns).unwrap_or(flags.as_bytes()));
            }
            if let EventKind::SchedSwitch(switch) = &kind {
                switches.comes(origin.cpu, switch.next_pid.0);
            }
            let context = context(comm, origin, flags);
            sink.event(&Event { time: Ns(time), cpu: Cpu(origin.cpu), context, kind });
        });
        self.stats.events += u64::from(handed_on.is_ok());
        tracepoints.trouble_of(handed_on, raw)
    }

    /// A switch that has a record of its own.
    fn switch(&mut self, kind: u32, record: &[u8], time: u64, position: u64) -> Result<(), Trouble> {
        let body = record.get(RECORD_HEADER..).ok_or(Trouble::CorruptRecord)?;
        let origin = self.header.layouts.trailer_origin(body);
        let told = self.switches.take(kind, record, origin, self.header.endian)?;
        let Some(switch) = told else { return Ok(()) };
        let trouble = match self.header.scope {
            SwitchScope::Cpus => Trouble::SwitchesWithoutState,
            SwitchScope::Tasks => Trouble::OwnSwitches,
            SwitchScope::TasksWithoutCpus => Trouble::SwitchesWithoutCpu,
        };
        self.stats.add(trouble, 1, position);
        self.hand_on_switch(switch, origin, time);
        Ok(())
    }

    fn hand_on_switch(&mut self, switch: RecordedSwitch, origin: SampleTask, time: u64) {
        let RecordedSwitch { cpu, leaves, state, comes } = switch;
        let (prev_comm, next_comm) = (self.names.get(leaves), self.names.get(comes));
        let switch = Switch {
            prev_comm,
            prev_pid: Pid(leaves),
            prev_prio: Prio::DEFAULT,
            prev_state: state,
            next_comm,
            next_pid: Pid(comes),
            next_prio: Prio::DEFAULT,
        };
        let pid = if origin.tid == leaves { origin.pid } else { -1 };
        let left = SampleTask { tid: leaves, pid, cpu };
        let context = context(prev_comm, left, Flags::NONE);
        let kind = EventKind::SchedSwitch(switch);
        self.sink.event(&Event { time: Ns(time), cpu: Cpu(cpu), context, kind });
        self.stats.events += 1;
    }

    /// The other kinds of records that make events.
    fn task_or_loss(&mut self, kind: u32, record: &[u8], time: u64, position: u64) -> Result<(), Trouble> {
        let endian = self.header.endian;
        let body = record.get(RECORD_HEADER..).ok_or(Trouble::CorruptRecord)?;
        let mut origin = self.header.layouts.trailer_origin(body);
        let word = |at: usize| endian.u32(body, at).map(|id| id as i32).ok_or(Trouble::CorruptRecord);
        let long = |at: usize| endian.u64(body, at).ok_or(Trouble::CorruptRecord);
        let marks = self.marks(record);
        if marks & mark::REPORTER_UNKNOWN != 0 {
            (origin.pid, origin.tid) = (Pid::UNKNOWN.0, Pid::UNKNOWN.0);
        }
        let process = |at: usize| match marks & mark::PROCESS_UNKNOWN {
            0 => word(at),
            _ => Ok(Pid::UNKNOWN.0),
        };
        let mut last_switch = None;
        let kind = match kind {
            kind::COMM => {
                let (tgid, tid) = (process(0)?, word(4)?);
                let comm = Comm::new(body.get(8..).ok_or(Trouble::CorruptRecord)?);
                if marks & mark::COMM_SHOWN == 0 {
                    self.names.set(tid, comm);
                }
                if marks & (mark::COMM_SHOWN | mark::COMM_OF_CONTEXT) != 0 {
                    return Ok(());
                }
                EventKind::TaskName { pid: Pid(tid), tgid: Pid(tgid), comm }
            }
            kind::FORK => {
                let (tgid, tid, parent) = (process(0)?, word(8)?, word(12)?);
                let comm = self.names.get(parent);
                self.names.set(tid, comm);
                EventKind::TaskStart { pid: Pid(tid), tgid: Pid(tgid), parent_pid: Pid(parent) }
            }
            kind::EXIT => {
                let (tgid, tid) = (process(0)?, word(8)?);
                last_switch = self.switches.exits(tid, origin);
                EventKind::TaskExit { pid: Pid(tid), tgid: Pid(tgid) }
            }
            kind::LOST if marks & mark::LOST_UNCOUNTED != 0 => {
                self.stats.add(Trouble::LostEvents, 1, position);
                EventKind::Lost { count: None }
            }
            kind::LOST => {
                let count = long(8)?;
                self.lost.told = self.lost.told.saturating_add(count);
                self.stats.add(Trouble::LostEvents, count, position);
                EventKind::Lost { count: Some(count) }
            }
            kind::LOST_SAMPLES => {
                if endian.u16(record, 4).is_some_and(|misc| misc & MISC_FILTERED != 0) {
                    return Err(Trouble::SkippedRecord);
                }
                let Some(count) = self.lost.count_sample_losses(long(0)?) else {
                    return Err(Trouble::SkippedRecord);
                };
                self.stats.add(Trouble::LostEvents, count, position);
                EventKind::Lost { count: Some(count) }
            }
            _ => return Err(Trouble::SkippedRecord),
        };
        let comm = comm(&mut self.names, self.header, origin);
        let context = context(comm, origin, Flags::NONE);
        self.sink.event(&Event { time: Ns(time), cpu: Cpu(origin.cpu), context, kind });
        self.stats.events += 1;
        if let Some(switch) = last_switch {
            self.hand_on_switch(switch, origin, time);
        }
        Ok(())
    }
}

impl Header {
    /// Whether records of `kind` make events.
    #[inline]
    fn delivers(&self, kind: u32) -> bool {
        match kind {
            kind::SWITCH | kind::SWITCH_CPU_WIDE => self.switch_records.read(kind),
            _ => matches!(
                kind,
                kind::SAMPLE | kind::COMM | kind::EXIT | kind::FORK | kind::LOST | kind::LOST_SAMPLES
            ),
        }
    }

    /// The time by which a record is put in order; `None` when it is of a kind that is not ordered.
    #[inline]
    pub(super) fn order_time(&self, record: &[u8]) -> Option<u64> {
        let kind = kind_of(record, self.endian);
        let time = match kind == kind::SAMPLE {
            true => self.layouts.sample_time(record.get(RECORD_HEADER..)?),
            false => self.delivers(kind).then(|| self.time_of(record))?,
        };
        time.filter(|&time| time != 0 && time != u64::MAX)
    }

    /// The record's time; 0 is "before the recording".
    fn time_of(&self, record: &[u8]) -> Option<u64> {
        let body = record.get(RECORD_HEADER..)?;
        if kind_of(record, self.endian) == kind::SAMPLE {
            return self.layouts.sample_time(body);
        }
        // Without trailers nothing but samples can be put in order.
        Some(self.layouts.trailer_time(body).unwrap_or(0))
    }
}

impl LostCounts {
    /// Adds what LOST_SAMPLES says; returns how much of the sum LOST has not counted before.
    fn count_sample_losses(&mut self, count: u64) -> Option<u64> {
        self.in_all = self.in_all.saturating_add(count);
        let untold = self.in_all.checked_sub(self.told).filter(|&untold| untold > 0)?;
        self.told = self.in_all;
        Some(untold)
    }
}

#[inline]
fn kind_of(record: &[u8], endian: Endian) -> u32 {
    endian.u32(record, 0).unwrap_or(0)
}

/// What the task is called that reported a record.
#[inline]
fn comm(names: &mut TaskNames, header: &Header, origin: SampleTask) -> Comm {
    let comm = names.get(origin.tid);
    match &header.own {
        Some(own) if origin.tid == 0 && comm.is_empty() => own.idle(origin.cpu).unwrap_or_default(),
        _ => comm,
    }
}

#[inline]
fn context(comm: Comm, origin: SampleTask, flags: Flags) -> Context {
    Context { comm, pid: Pid(origin.tid), tgid: Pid(origin.pid), flags }
}
