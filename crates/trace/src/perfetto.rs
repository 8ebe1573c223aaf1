//! Perfetto: the protobuf trace that ui.perfetto.dev and trace_processor open.
//!
//! The reader takes the kernel's events in bundles (`FtraceEventBundle`), from Perfetto's own recorders, systing, wprof or
//! scxtop. It does not read tracks. The writer hands tracepoints over as the kernel's recorder does, in bundles per CPU. So
//! viewers show which task ran where, the states of each thread and its wakers. Further facts about tasks go into process
//! trees. There may also be tracks of counters and slices, which the caller computes.
//!
//! Facts: protos/perfetto/trace/perfetto_trace.proto. Must not know: what tracks are about.

mod compact;
mod cpu;
mod decode;
mod described_events;
mod event;
mod packet;
mod pending_event;
mod pieces;
mod proto;
mod reader;
mod repeats;
mod tasks;
mod wire;

use std::io::{self, Write};

use fairlab_event::{Event, EventKind, Ns, Pid, Sink, System};

use crate::described;
use crate::losses::{EventLosses, LossKind, WriterLosses};
use packet::TracePacket;
use proto::{ProtoMessage, ProtoPart};
use tasks::KnownTasks;

pub(crate) use reader::read;

/// Writes events as a Perfetto trace.
///
/// Packets go to `W` in pieces, so memory does not grow with the trace. Errors of `W` are kept and returned by
/// [`finish`](PerfettoWriter::finish).
///
/// What is not there, [`losses`](PerfettoWriter::losses) counts: how many events were lost; EXIT records, and parents in
/// FORK records; all flag columns but those of interrupts and rescheduling; `group_dead`; letters of kernels before v4.14
/// in states. Names and texts that are no UTF-8 have replacement characters.
///
/// States are encoded as Linux does from 4.14 on; where the release is not known, or older, the trace says that it was
/// recorded on 4.14, since viewers decode them by the release. Events that Perfetto has no type for are generic ones with their fields, or their text.
#[derive(Debug)]
pub struct PerfettoWriter<W: Write> {
    output: W,
    /// For each CPU.
    bundles: Vec<EventBundle>,
    tasks: KnownTasks,
    /// Packets of bundles that stand before a hole and are not written yet.
    closed: Vec<u8>,
    /// Packets of tracks that are not written yet.
    tracks: Vec<u8>,
    track_count: u64,
    /// Events and packets that are not written yet.
    pending_bytes: usize,
    /// The first time of what is not written yet.
    pending_since: Option<Ns>,
    started: bool,
    system: System,
    losses: WriterLosses,
    error: Option<io::Error>,
}

/// Events of one CPU that are not written yet.
#[derive(Debug, Default)]
struct EventBundle {
    events: Vec<u8>,
    lost: bool,
}

/// A row of its own in a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewerTrack(u64);

/// What is buffered before it is written.
const PENDING_BYTES_MAX: usize = 1 << 20;

/// `NR_CPUS` of no kernel is larger.
const CPUS_MAX: u32 = 8192;

impl<W: Write> PerfettoWriter<W> {
    /// A writer. Nothing need be buffered by `output`.
    pub fn new(output: W) -> PerfettoWriter<W> {
        PerfettoWriter {
            output,
            bundles: Vec::new(),
            tasks: KnownTasks::default(),
            closed: Vec::new(),
            tracks: Vec::new(),
            track_count: 0,
            pending_bytes: 0,
            pending_since: None,
            started: false,
            system: System::default(),
            losses: WriterLosses::default(),
            error: None,
        }
    }

    /// Which events so far are not there exactly as they were given.
    pub fn losses(&self) -> &WriterLosses {
        &self.losses
    }

    /// Writes what is left and gives the output back.
    ///
    /// # Errors
    /// The first error that `W` returned since the beginning.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.write_pending()?;
        self.output.flush()?;
        Ok(self.output)
    }

    /// A row that holds others, in the order of their ranks.
    pub fn group(&mut self, name: &str) -> ViewerTrack {
        const CHILDREN_BY_RANK: u64 = 3;
        self.track(|descriptor| descriptor.text(2, name).uint(11, CHILDREN_BY_RANK))
    }

    /// A row within `group` that shows a number over time.
    pub fn counter_track(&mut self, group: ViewerTrack, name: &str, rank: u64, unit: &str) -> ViewerTrack {
        let counter = ProtoMessage::new().text(6, unit);
        self.track(|descriptor| descriptor.text(2, name).uint(5, group.0).uint(12, rank).message(8, &counter))
    }

    /// A row within `group` that shows stretches of time.
    pub fn slice_track(&mut self, group: ViewerTrack, name: &str, rank: u64) -> ViewerTrack {
        self.track(|descriptor| descriptor.text(2, name).uint(5, group.0).uint(12, rank))
    }

    /// From `time` on the number of a counter track is `value`.
    pub fn counter(&mut self, track: ViewerTrack, time: Ns, value: i64) {
        self.put_event(track, time, COUNTER, |event| event.int(30, value));
    }

    /// A stretch of a slice track, with what is to be said of it: names and texts.
    pub fn slice(&mut self, track: ViewerTrack, from: Ns, to: Ns, name: &str, notes: &[(&str, String)]) {
        self.put_event(track, from, BEGIN, |begin| {
            begin.text(23, name);
            for (name, text) in notes {
                begin.part(4, |note| {
                    note.text(10, name);
                    note.text(6, text);
                });
            }
        });
        self.put_event(track, to, END, |_| {});
    }

    /// The row of a thread, which viewers show with its states; a process that is not known is taken to be the thread.
    pub fn thread_track(&mut self, pid: Pid, tgid: Pid, name: &str) -> ViewerTrack {
        let tgid = if tgid == Pid::UNKNOWN { pid } else { tgid };
        let thread = ProtoMessage::new().int(1, tgid.0.into()).int(2, pid.0.into()).text(5, name);
        self.track(|descriptor| descriptor.message(4, &thread))
    }

    /// A stretch on a thread's row, which an arrow of number `flow` comes to; with numbers to be said of it.
    pub fn wait(
        &mut self,
        track: ViewerTrack,
        from: Ns,
        to: Ns,
        name: &str,
        flow: Option<u64>,
        notes: &[(&str, u64)],
    ) {
        self.put_event(track, from, BEGIN, |begin| {
            begin.text(23, name);
            if let Some(flow) = flow {
                begin.fixed64(TERMINATING_FLOWS, flow);
            }
            for (name, number) in notes {
                begin.part(4, |note| {
                    note.text(10, name);
                    note.uint(3, *number);
                });
            }
        });
        self.put_event(track, to, END, |_| {});
    }

    /// A moment on a thread's row, from which an arrow of number `flow` goes out.
    pub fn wakes(&mut self, track: ViewerTrack, time: Ns, name: &str, flow: u64) {
        self.put_event(track, time, INSTANT, |event| {
            event.text(23, name);
            event.fixed64(FLOWS, flow);
        });
    }

    fn track(&mut self, describe: impl FnOnce(ProtoMessage) -> ProtoMessage) -> ViewerTrack {
        self.track_count += 1;
        let track = ViewerTrack(FIRST_TRACK + self.track_count);
        let descriptor = describe(ProtoMessage::new().uint(1, track.0));
        let packet = TracePacket::first_of_tracks(self.track_count == 1).message(60, &descriptor);
        self.put_track(|tracks| packet::put(tracks, &packet));
        track
    }

    /// An event of a track, with fields besides its kind.
    fn put_event(&mut self, track: ViewerTrack, time: Ns, kind: u64, put: impl FnOnce(&mut ProtoPart<'_>)) {
        let event = |event: &mut ProtoPart<'_>| {
            event.uint(9, kind);
            event.uint(11, track.0);
            put(event);
        };
        self.put_track(|tracks| packet::put_track_event(tracks, time, event));
    }

    fn put_track(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let before = self.tracks.len();
        put(&mut self.tracks);
        self.pending_bytes += self.tracks.len() - before;
        self.write_if_much();
    }

    fn put(&mut self, event: &Event<'_>) {
        self.tasks.context(&event.context);
        let name = event.kind.name();
        if event.kind.is_task_record() {
            self.losses.add(name, self.tasks.record(&event.kind));
            return;
        }
        if event.cpu.0 >= CPUS_MAX {
            self.losses.add(name, EventLosses::only(LossKind::LeftOut));
            return;
        }
        if self.bundles.len() <= event.cpu.index() {
            self.bundles.resize_with(event.cpu.index() + 1, EventBundle::default);
        }
        let bundle = &mut self.bundles[event.cpu.index()];
        self.pending_since.get_or_insert(event.time);
        if let EventKind::Lost { .. } = event.kind {
            // The hole is where a bundle begins.
            let lost = std::mem::replace(&mut bundle.lost, true);
            if !bundle.events.is_empty() {
                packet::put_bundle(&mut self.closed, event.cpu.0.into(), lost, &bundle.events);
                bundle.events.clear();
            }
            self.losses.add(name, EventLosses::only(LossKind::Fields));
            return;
        }
        let before = bundle.events.len();
        self.losses.add(name, event::put(&mut bundle.events, event));
        self.pending_bytes += bundle.events.len() - before;
        self.write_if_much();
    }

    fn write_if_much(&mut self) {
        if self.pending_bytes >= PENDING_BYTES_MAX && self.error.is_none() {
            self.error = self.write_pending().err();
        }
    }

    fn write_pending(&mut self) -> io::Result<()> {
        let since = self.pending_since.take().unwrap_or_default();
        let mut bytes = Vec::with_capacity(self.pending_bytes + self.pending_bytes / 8);
        if !std::mem::replace(&mut self.started, true) {
            packet::put(&mut bytes, &TracePacket::clocks(since));
            packet::put(&mut bytes, &TracePacket::system(&self.system));
        }
        if let Some(tree) = self.tasks.take_tree() {
            packet::put(&mut bytes, &TracePacket::tree(since, &tree));
        }
        bytes.append(&mut self.closed);
        for (cpu, bundle) in self.bundles.iter_mut().enumerate() {
            let lost = std::mem::take(&mut bundle.lost);
            if !bundle.events.is_empty() || lost {
                packet::put_bundle(&mut bytes, cpu as u64, lost, &bundle.events);
                bundle.events.clear();
            }
        }
        bytes.append(&mut self.tracks);
        self.pending_bytes = 0;
        self.output.write_all(&bytes)
    }
}

/// `TrackEvent::Type`.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// `TrackEvent::flow_ids` and `terminating_flow_ids`.
const FLOWS: u64 = 47;
const TERMINATING_FLOWS: u64 = 48;

/// Viewers know tracks by numbers, which other parts of a trace must not have.
const FIRST_TRACK: u64 = 0xfa12_1ab0_0000;

impl<W: Write> Sink for PerfettoWriter<W> {
    fn event(&mut self, event: &Event<'_>) {
        if self.error.is_none() {
            self.put(event);
        }
    }

    fn system(&mut self, system: &System) {
        self.system.clone_from(system);
        self.losses.leave_out(described::left_out(system));
    }
}
