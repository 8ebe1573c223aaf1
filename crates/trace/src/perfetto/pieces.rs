//! A first walk over a trace: where each CPU's bundles of events stand, and what is known beside events.
//!
//! Bundles of one CPU follow each other; those of several CPUs stand in any order, and some recorders put all of a CPU into one
//! bundle. So the walk notes places, which the merge reads later. Packets that are compressed are unpacked into a temporary file,
//! up to a limit.
//!
//! Must not know: what events say.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use fairlab_event::{Comm, Cpu, Ns, Pid, System};

use super::described_events::DescribedEvents;
use super::wire::{Tag, Wire, WireFields, WireValue, varint};
use crate::relay::{RecordOutlet, relay};
use crate::store::{Spool, Store};
use crate::{ImportStats, Trouble};

/// `Trace::packet`.
const PACKET: u64 = 1;

/// Fields of `TracePacket` that are looked at.
mod field {
    pub(super) const FTRACE_EVENTS: u64 = 1;
    pub(super) const PROCESS_TREE: u64 = 2;
    pub(super) const TIMESTAMP: u64 = 8;
    pub(super) const SEQUENCE: u64 = 10;
    pub(super) const TRACK_EVENT: u64 = 11;
    pub(super) const FTRACE_STATS: u64 = 34;
    pub(super) const PREVIOUS_PACKET_DROPPED: u64 = 42;
    pub(super) const SYSTEM_INFO: u64 = 45;
    pub(super) const COMPRESSED_PACKETS: u64 = 50;
    pub(super) const TRACK_DESCRIPTOR: u64 = 60;
    pub(super) const MACHINE: u64 = 98;
    pub(super) const ZSTD_COMPRESSED_PACKETS: u64 = 133;
}

/// Fields of `FtraceEventBundle`.
const CPU: u64 = 1;
pub(super) const EVENT: u64 = 2;
const LOST: u64 = 3;
const COMPACT_SCHED: u64 = 4;
const CLOCK: u64 = 5;
/// `FtraceClock`: one that the recorder did not know, and the last that there is. All others count nanoseconds.
const CLOCK_UNKNOWN: u64 = 1;
const CLOCK_LAST: u64 = 4;
const FTRACE_TIMESTAMP: u64 = 6;
const BOOT_TIMESTAMP: u64 = 7;
const ERROR: u64 = 8;
const DESCRIPTION: u64 = 11;

/// From a place of a store to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoreRange {
    /// Whether it is in the store of what was compressed.
    pub(super) unpacked: bool,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// One bundle.
#[derive(Clone, Copy, Debug)]
pub(super) struct BundlePiece {
    pub(super) events: StoreRange,
    pub(super) compact: Option<StoreRange>,
    /// Events of this CPU before these are missing.
    pub(super) lost: bool,
    /// Whether times are of another clock than that of the trace.
    pub(super) other_clock: bool,
}

/// The bundles of one CPU by one writer, in the order of the file.
#[derive(Debug)]
pub(super) struct CpuPieces {
    pub(super) cpu: Cpu,
    pub(super) pieces: Vec<BundlePiece>,
    /// Packets that had been dropped when the last piece was written.
    dropped: u64,
}

/// A thread's name and process, as known from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadName {
    pub(super) since: Ns,
    pub(super) tid: Pid,
    pub(super) tgid: Pid,
    pub(super) comm: Comm,
}

/// What the walk found.
#[derive(Debug, Default)]
pub(super) struct PerfettoIndex {
    pub(super) cpus: Vec<CpuPieces>,
    by_key: BTreeMap<(u64, u64), usize>,
    pub(super) names: Vec<ThreadName>,
    pub(super) system: System,
    /// What bundles say of events that Perfetto has no message for.
    pub(super) described: DescribedEvents,
    /// By which release states are encoded: not the kernel's where this program wrote the trace.
    pub(super) states_of: String,
    /// To be added to times of another clock.
    pub(super) clock_offset: Option<i64>,
    /// Whether times are of a clock of which nothing tells what it counts.
    pub(super) untold_clock: bool,
    /// Packets in all, and how many are about tracks.
    pub(super) packets: u64,
    pub(super) of_tracks: u64,
    /// The machines that bundles are of; the recorder's own is 0.
    pub(super) machines: BTreeSet<u64>,
    /// Of each CPU, how many events its buffer lost: when recording began, and when it ended.
    overruns: BTreeMap<u64, (u64, u64)>,
    /// How often each writer's packets were dropped.
    dropped: BTreeMap<u64, u64>,
    unpacked: Spool,
    /// The packet at hand.
    whole: Vec<u8>,
    /// Where the first trouble stands, if the walk could not go on.
    pub(super) broken_at: Option<u64>,
}

/// Packets and bundles beyond this are walked field by field; below, they are read whole.
const WHOLE_MAX: u64 = 1 << 20;
/// What is read of a part beside events; process trees of machines with a million threads have less.
const BESIDE_MAX: u64 = 1 << 26;
/// What is read of the description of an event; those of the kernel's longest have less.
const DESCRIPTION_MAX: u64 = 1 << 16;
/// What is unpacked of one packet at most.
const UNPACKED_MAX: u64 = 1 << 28;
/// More CPUs than any kernel has, counted a writer.
const CPUS_MAX: usize = 1 << 14;
/// More threads than a kernel has at a time.
const NAMES_MAX: usize = 1 << 22;

impl PerfettoIndex {
    /// Walks over all packets of `store`.
    pub(super) fn walk(store: &Store, stats: &mut ImportStats) -> io::Result<PerfettoIndex> {
        let mut found =
            PerfettoIndex { unpacked: Spool::of_packed(store.length()), ..PerfettoIndex::default() };
        found.packets_of_file(store, stats)?;
        found.count_overruns(stats);
        Ok(found)
    }

    /// The store of what was compressed.
    pub(super) fn take_unpacked(&mut self) -> Store {
        std::mem::take(&mut self.unpacked).into_store()
    }

    /// Walks over the packets of a file while the next of it is being read.
    fn packets_of_file(&mut self, store: &Store, stats: &mut ImportStats) -> io::Result<()> {
        let mut taken = Ok(());
        let take = |run: &mut FileRun, bytes: &[u8]| {
            if taken.is_ok() {
                taken = self.run(store, *run, bytes, stats);
            }
        };
        relay(|outlet| runs(store, outlet), take)?;
        taken
    }

    fn run(&mut self, store: &Store, run: FileRun, bytes: &[u8], stats: &mut ImportStats) -> io::Result<()> {
        match run {
            FileRun::Whole { start } => {
                let mut slice = MessageWalk { rest: bytes, at: start };
                while let FieldStep::Field(tag, _, range) = slice.next() {
                    let place = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
                    self.field(store, tag, range, bytes.get(place(range.0)..place(range.1)), stats)?;
                }
                Ok(())
            }
            FileRun::Long(tag, range) => self.field(store, tag, range, None, stats),
            FileRun::Broken { at, is_cut } => {
                self.breaks(at, is_cut, stats);
                Ok(())
            }
        }
    }

    /// Takes a field of the file; `bytes` are its, where they have been read already.
    fn field(
        &mut self,
        store: &Store,
        tag: Tag,
        range: (u64, u64),
        bytes: Option<&[u8]>,
        stats: &mut ImportStats,
    ) -> io::Result<()> {
        if tag.field != PACKET || tag.wire != Wire::Bytes {
            return Ok(());
        }
        self.packets += 1;
        self.packet(store, range, bytes, None, stats)
    }

    /// From here on there are no packets.
    fn breaks(&mut self, at: u64, is_cut: bool, stats: &mut ImportStats) {
        stats.add(if is_cut { Trouble::TruncatedFile } else { Trouble::CorruptRecord }, 1, at);
        self.broken_at.get_or_insert(at);
    }

    /// Walks over packets that were compressed; `unpacked` is where in their store they stand.
    fn packets_of(&mut self, store: &Store, unpacked: u64, stats: &mut ImportStats) -> io::Result<()> {
        let mut walk = StoreWalk::new(store, 0, store.length());
        while walk.at < walk.end {
            let start = walk.at;
            let Some((tag, range)) = walk.field()? else {
                self.breaks(start, walk.is_cut, stats);
                return Ok(());
            };
            if tag.field == PACKET && tag.wire == Wire::Bytes {
                self.packets += 1;
                self.packet(store, range, walk.bytes(range)?, Some(unpacked), stats)?;
            }
        }
        Ok(())
    }

    /// Takes a packet; `bytes` are its, where they have been read already.
    fn packet(
        &mut self,
        store: &Store,
        (start, end): (u64, u64),
        bytes: Option<&[u8]>,
        unpacked: Option<u64>,
        stats: &mut ImportStats,
    ) -> io::Result<()> {
        if end - start > WHOLE_MAX {
            let mut walk = StoreWalk::new(store, start, end);
            let packet = PacketParts::of(|| walk.next(), stats)?;
            return self.take(store, &packet, None, unpacked, stats);
        }
        if let Some(bytes) = bytes {
            return self.whole_packet(store, start, bytes, unpacked, stats);
        }
        let mut whole = std::mem::take(&mut self.whole);
        whole.resize((end - start) as usize, 0);
        let filled = store.read_at(&mut whole, start)?;
        whole.truncate(filled);
        let taken = self.whole_packet(store, start, &whole, unpacked, stats);
        self.whole = whole;
        taken
    }

    /// Takes a packet that is in memory and stands at `start` in its store.
    fn whole_packet(
        &mut self,
        store: &Store,
        start: u64,
        whole: &[u8],
        unpacked: Option<u64>,
        stats: &mut ImportStats,
    ) -> io::Result<()> {
        let mut slice = MessageWalk { rest: whole, at: start };
        let packet = PacketParts::of(|| Ok(slice.next()), stats)?;
        self.take(store, &packet, Some((start, whole)), unpacked, stats)
    }

    /// Takes the parts of a packet; `whole` is the packet and where it stands, unless it is large.
    fn take(
        &mut self,
        store: &Store,
        packet: &PacketParts,
        whole: Option<(u64, &[u8])>,
        unpacked: Option<u64>,
        stats: &mut ImportStats,
    ) -> io::Result<()> {
        if packet.dropped {
            *self.dropped.entry(packet.sequence).or_default() += 1;
        }
        self.of_tracks += u64::from(packet.is_of_track);
        for &(field, range) in &packet.parts {
            let here = whole.and_then(|(at, bytes)| {
                let place = |end: u64| usize::try_from(end.checked_sub(at)?).ok();
                bytes.get(place(range.0)?..place(range.1)?)
            });
            match (field, here) {
                (field::FTRACE_EVENTS, Some(bytes)) => {
                    let mut slice = MessageWalk { rest: bytes, at: range.0 };
                    let next = || Ok(slice.next_but_events());
                    self.bundle(next, (store, range), packet, unpacked, stats)?;
                }
                (field::FTRACE_EVENTS, None) => {
                    let mut walk = StoreWalk::new(store, range.0, range.1);
                    self.bundle(|| walk.next(), (store, range), packet, unpacked, stats)?;
                }
                (field::COMPRESSED_PACKETS | field::ZSTD_COMPRESSED_PACKETS, _) if unpacked.is_none() => {
                    self.unpack(store, field, range, stats)?;
                }
                (_, Some(bytes)) => self.beside(field, bytes, Ns(packet.time)),
                (_, None) => {
                    let length = (range.1 - range.0).min(BESIDE_MAX);
                    let bytes = store.read_section(range.0, length)?;
                    self.beside(field, &bytes, Ns(packet.time));
                }
            }
        }
        Ok(())
    }

    /// What stands beside events.
    fn beside(&mut self, field: u64, bytes: &[u8], time: Ns) {
        match field {
            field::PROCESS_TREE => self.tree(bytes, time),
            field::TRACK_DESCRIPTOR => self.descriptor(bytes),
            field::SYSTEM_INFO => self.system_info(bytes),
            field::FTRACE_STATS => self.stats(bytes),
            _ => {}
        }
    }

    fn bundle(
        &mut self,
        mut next: impl FnMut() -> io::Result<FieldStep>,
        (store, (start, end)): (&Store, (u64, u64)),
        packet: &PacketParts,
        unpacked: Option<u64>,
        stats: &mut ImportStats,
    ) -> io::Result<()> {
        let base = unpacked.unwrap_or(0);
        let range =
            |start, end| StoreRange { unpacked: unpacked.is_some(), start: base + start, end: base + end };
        let mut piece =
            BundlePiece { events: range(start, end), compact: None, lost: false, other_clock: false };
        let (mut cpu, mut ftrace, mut boot) = (0, None, None);
        loop {
            let (tag, number, place) = match next()? {
                FieldStep::Field(tag, number, place) => (tag, number, place),
                FieldStep::End => break,
                FieldStep::Broken(at) => {
                    stats.add(Trouble::CorruptRecord, 1, at);
                    piece.events.end = base + at;
                    break;
                }
            };
            match (tag.field, tag.wire) {
                (CPU, Wire::Varint) => cpu = number,
                (LOST, Wire::Varint) => piece.lost |= number != 0,
                (COMPACT_SCHED, Wire::Bytes) => piece.compact = Some(range(place.0, place.1)),
                (CLOCK, Wire::Varint) => {
                    piece.other_clock = number != 0;
                    self.untold_clock |= number == CLOCK_UNKNOWN || number > CLOCK_LAST;
                }
                (FTRACE_TIMESTAMP, Wire::Varint) => ftrace = Some(number.cast_signed()),
                (BOOT_TIMESTAMP, Wire::Varint) => boot = Some(number.cast_signed()),
                (DESCRIPTION, Wire::Bytes) => {
                    let length = (place.1 - place.0).min(DESCRIPTION_MAX);
                    self.described.learn(&store.read_section(place.0, length)?);
                }
                (ERROR, Wire::Bytes) => stats.add(Trouble::CorruptRecord, 1, place.0),
                _ => {}
            }
        }
        if let (true, Some(ftrace), Some(boot), None) = (piece.other_clock, ftrace, boot, self.clock_offset) {
            self.clock_offset = Some(boot.wrapping_sub(ftrace));
        }
        self.machines.insert(packet.machine);
        self.add(packet.sequence, cpu, piece, stats, start);
        Ok(())
    }

    fn add(&mut self, sequence: u64, cpu: u64, mut piece: BundlePiece, stats: &mut ImportStats, at: u64) {
        let Ok(number) = u32::try_from(cpu) else { return stats.add(Trouble::CorruptRecord, 1, at) };
        let known = self.by_key.get(&(sequence, cpu)).copied();
        if known.is_none() && self.cpus.len() >= CPUS_MAX {
            return stats.add(Trouble::CorruptRecord, 1, at);
        }
        let index = known.unwrap_or_else(|| {
            self.by_key.insert((sequence, cpu), self.cpus.len());
            self.cpus.push(CpuPieces { cpu: Cpu(number), pieces: Vec::new(), dropped: 0 });
            self.cpus.len() - 1
        });
        let dropped = self.dropped.get(&sequence).copied().unwrap_or(0);
        let Some(pieces) = self.cpus.get_mut(index) else { return };
        // What was dropped before the first bundle is before the trace.
        piece.lost |= dropped != pieces.dropped && !pieces.pieces.is_empty();
        pieces.dropped = dropped;
        if piece.lost {
            stats.add(Trouble::LostEvents, 1, at);
        }
        pieces.pieces.push(piece);
    }

    fn unpack(
        &mut self,
        store: &Store,
        field: u64,
        (start, end): (u64, u64),
        stats: &mut ImportStats,
    ) -> io::Result<()> {
        let packed = store.read_section(start, (end - start).min(UNPACKED_MAX))?;
        let mut bytes = Vec::new();
        let read = match field {
            field::ZSTD_COMPRESSED_PACKETS => zstd::Decoder::with_buffer(&packed[..])
                .and_then(|decoder| decoder.take(UNPACKED_MAX).read_to_end(&mut bytes)),
            _ => flate2::read::ZlibDecoder::new(&packed[..]).take(UNPACKED_MAX).read_to_end(&mut bytes),
        };
        if read.is_err() || bytes.len() as u64 == UNPACKED_MAX {
            stats.add(Trouble::CorruptRecord, 1, start);
        }
        let at = self.unpacked.append(&bytes)?;
        self.packets_of(&Store::Memory(bytes), at, stats)
    }

    /// `ProcessTree`.
    fn tree(&mut self, bytes: &[u8], since: Ns) {
        const PROCESSES: u64 = 1;
        const THREADS: u64 = 2;
        for (field, value) in WireFields::of(bytes) {
            let mut named =
                ThreadName { since, tid: Pid::UNKNOWN, tgid: Pid::UNKNOWN, comm: Comm::default() };
            match field {
                THREADS => {
                    for (field, value) in WireFields::of(value.bytes()) {
                        match field {
                            1 => named.tid = Pid(value.int()),
                            2 => named.comm = Comm::new(value.bytes()),
                            3 => named.tgid = Pid(value.int()),
                            _ => {}
                        }
                    }
                }
                PROCESSES => {
                    let pid = WireFields::of(value.bytes()).find(|&(field, _)| field == 1);
                    let pid = Pid(pid.map_or(-1, |(_, pid)| pid.int()));
                    (named.tid, named.tgid) = (pid, pid);
                }
                _ => continue,
            }
            self.name(named);
        }
    }

    /// `TrackDescriptor::thread`.
    fn descriptor(&mut self, bytes: &[u8]) {
        const THREAD: u64 = 4;
        for (_, thread) in WireFields::of(bytes).filter(|&(field, _)| field == THREAD) {
            let mut named =
                ThreadName { since: Ns::ZERO, tid: Pid::UNKNOWN, tgid: Pid::UNKNOWN, comm: Comm::default() };
            for (field, value) in WireFields::of(thread.bytes()) {
                match field {
                    1 => named.tgid = Pid(value.int()),
                    2 => named.tid = Pid(value.int()),
                    5 => named.comm = Comm::new(value.bytes()),
                    _ => {}
                }
            }
            self.name(named);
        }
    }

    fn name(&mut self, named: ThreadName) {
        if named.tid.0 > 0 && self.names.len() < NAMES_MAX {
            self.names.push(named);
        }
    }

    fn system_info(&mut self, bytes: &[u8]) {
        let text = |value: WireValue<'_>| String::from_utf8_lossy(value.bytes()).into_owned();
        let (mut version, mut writer) = (String::new(), String::new());
        for (field, value) in WireFields::of(bytes) {
            match field {
                1 => {
                    for (field, value) in WireFields::of(value.bytes()) {
                        match field {
                            2 => version = text(value),
                            3 => self.system.release = text(value),
                            4 => self.system.architecture = text(value),
                            _ => {}
                        }
                    }
                }
                4 => writer = text(value),
                8 => self.system.cpus = u32::try_from(value.number()).ok().filter(|&cpus| cpus > 0),
                _ => {}
            }
        }
        self.states_of.clone_from(&self.system.release);
        if writer.starts_with("fairlab ")
            && let Some(release) = super::packet::release_of(&version)
        {
            self.system.release = release.to_string();
        }
    }

    /// `FtraceStats`: what buffers of the kernel lost, at the beginning and at the end.
    fn stats(&mut self, bytes: &[u8]) {
        const CPU_STATS: u64 = 2;
        let mut ends = false;
        for (field, value) in WireFields::of(bytes) {
            if field == 1 {
                // `Phase::END_OF_TRACE`.
                ends = value.number() == 2;
            }
        }
        for (_, cpu) in WireFields::of(bytes).filter(|&(field, _)| field == CPU_STATS) {
            let (mut number, mut lost) = (0, 0_u64);
            for (field, value) in WireFields::of(cpu.bytes()) {
                match field {
                    1 => number = value.number(),
                    // Overwritten, not committed, dropped.
                    3 | 4 | 8 => lost = lost.saturating_add(value.number()),
                    _ => {}
                }
            }
            if self.overruns.len() < CPUS_MAX || self.overruns.contains_key(&number) {
                let known = self.overruns.entry(number).or_insert((lost, lost));
                if ends {
                    known.1 = lost;
                }
            }
        }
    }

    /// How many events were lost, where only the kernel's own counts tell it.
    fn count_overruns(&self, stats: &mut ImportStats) {
        let lost: u64 = self.overruns.values().map(|(before, after)| after.saturating_sub(*before)).sum();
        let told = stats.count(Trouble::LostEvents);
        if lost > told {
            stats.add(Trouble::LostEvents, lost - told, 0);
        }
    }
}

/// What was read of a file.
#[derive(Clone, Copy, Debug)]
enum FileRun {
    /// Fields from `start` on, whose bytes go with it.
    Whole { start: u64 },
    /// One that is too long for that.
    Long(Tag, (u64, u64)),
    /// No field; whether the file ends within one.
    Broken { at: u64, is_cut: bool },
}

/// Reads a file to its end, or to where its bytes are no message.
fn runs(store: &Store, outlet: &mut RecordOutlet<'_, FileRun>) -> io::Result<()> {
    let (mut at, end) = (0, store.length());
    let mut buffer = Vec::new();
    while at < end {
        buffer.resize(usize::try_from(WALK_BYTES.min(end - at)).map_err(io::Error::other)?, 0);
        let filled = store.read_at(&mut buffer, at)?;
        buffer.truncate(filled);
        let mut whole = MessageWalk { rest: &buffer, at };
        while let FieldStep::Field(..) = whole.next() {}
        if whole.at > at {
            outlet.send(FileRun::Whole { start: at }, &buffer[..(whole.at - at) as usize]);
            at = whole.at;
            continue;
        }
        let mut walk = StoreWalk::new(store, at, end);
        let Some((tag, range)) = walk.field()? else {
            outlet.send(FileRun::Broken { at, is_cut: walk.is_cut }, &[]);
            return Ok(());
        };
        outlet.send(FileRun::Long(tag, range), &[]);
        at = range.1;
    }
    Ok(())
}

/// What a packet says of itself, and where its parts stand.
#[derive(Debug, Default)]
struct PacketParts {
    time: u64,
    sequence: u64,
    machine: u64,
    dropped: bool,
    is_of_track: bool,
    parts: Vec<(u64, (u64, u64))>,
}

impl PacketParts {
    /// What the fields say that `next` gives.
    #[inline]
    fn of(
        mut next: impl FnMut() -> io::Result<FieldStep>,
        stats: &mut ImportStats,
    ) -> io::Result<PacketParts> {
        let mut packet = PacketParts::default();
        loop {
            match next()? {
                FieldStep::Field(tag, number, place) => packet.note(tag.field, number, place),
                FieldStep::End => return Ok(packet),
                FieldStep::Broken(at) => {
                    stats.add(Trouble::CorruptRecord, 1, at);
                    return Ok(packet);
                }
            }
        }
    }

    #[inline]
    fn note(&mut self, field: u64, number: u64, range: (u64, u64)) {
        match field {
            field::TIMESTAMP => self.time = number,
            field::SEQUENCE => self.sequence = number,
            field::MACHINE => self.machine = number,
            field::PREVIOUS_PACKET_DROPPED => self.dropped = number != 0,
            field::TRACK_EVENT => self.is_of_track = true,
            field::FTRACE_EVENTS
            | field::PROCESS_TREE
            | field::SYSTEM_INFO
            | field::FTRACE_STATS
            | field::COMPRESSED_PACKETS
            | field::ZSTD_COMPRESSED_PACKETS
            | field::TRACK_DESCRIPTOR => self.parts.push((field, range)),
            _ => {}
        }
    }
}

/// What comes next in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldStep {
    /// A field: its number if it is one, and where its value stands.
    Field(Tag, u64, (u64, u64)),
    End,
    /// From here on the bytes are no message.
    Broken(u64),
}

/// Walks over the fields of a message in memory, which stands at `at` in its store.
#[derive(Debug)]
struct MessageWalk<'b> {
    rest: &'b [u8],
    at: u64,
}

impl MessageWalk<'_> {
    #[inline]
    fn next(&mut self) -> FieldStep {
        if self.rest.is_empty() {
            return FieldStep::End;
        }
        let (before, begin) = (self.rest.len(), self.at);
        match self.field() {
            Some((tag, number, size)) => {
                self.at += (before - self.rest.len()) as u64;
                FieldStep::Field(tag, number, (self.at - size, self.at))
            }
            None => {
                self.rest = &[];
                FieldStep::Broken(begin)
            }
        }
    }

    /// What comes next in a bundle, behind events of fewer than 128 bytes, which bundles are made of.
    #[inline]
    fn next_but_events(&mut self) -> FieldStep {
        const TAG: u8 = (EVENT << 3 | 2) as u8;
        while let &[TAG, length @ ..0x80, ref rest @ ..] = self.rest
            && let Some((_, rest)) = rest.split_at_checked(length.into())
        {
            self.at += 2 + u64::from(length);
            self.rest = rest;
        }
        self.next()
    }

    /// Tag, number, and how long the value is.
    #[inline]
    fn field(&mut self) -> Option<(Tag, u64, u64)> {
        let tag = Tag::of(varint(&mut self.rest)?)?;
        let mut number = 0;
        let size = match tag.wire {
            Wire::Varint => {
                number = varint(&mut self.rest)?;
                0
            }
            Wire::Fixed64 => 8,
            Wire::Fixed32 => 4,
            Wire::Bytes => usize::try_from(varint(&mut self.rest)?).ok()?,
        };
        self.rest = self.rest.split_at_checked(size)?.1;
        Some((tag, number, size as u64))
    }
}

/// Walks over the fields of a message in a store, whatever its length.
#[derive(Debug)]
pub(super) struct StoreWalk<'s> {
    store: &'s Store,
    buffer: Vec<u8>,
    /// Where the buffer begins.
    buffered: u64,
    pub(super) at: u64,
    pub(super) end: u64,
    /// The latest number.
    last: u64,
    /// Whether the last field goes beyond the end.
    is_cut: bool,
}

/// So much of a file is read at a time.
const WALK_BYTES: u64 = 1 << 18;
/// A tag and a length or number: ten bytes each.
const HEAD_BYTES: u64 = 20;

impl<'s> StoreWalk<'s> {
    pub(super) fn new(store: &'s Store, start: u64, end: u64) -> StoreWalk<'s> {
        StoreWalk { store, buffer: Vec::new(), buffered: start, at: start, end, last: 0, is_cut: false }
    }

    fn next(&mut self) -> io::Result<FieldStep> {
        let at = self.at;
        if at >= self.end {
            return Ok(FieldStep::End);
        }
        Ok(match self.field()? {
            Some((tag, place)) => FieldStep::Field(tag, self.last, place),
            None => {
                self.at = self.end;
                FieldStep::Broken(at)
            }
        })
    }

    /// What stands in a range behind what was walked over, unless it is long.
    fn bytes(&mut self, (start, end): (u64, u64)) -> io::Result<Option<&[u8]>> {
        if end - start > WALK_BYTES / 2 {
            return Ok(None);
        }
        if start < self.buffered || end > self.buffered + self.buffer.len() as u64 {
            self.fill(start)?;
        }
        let place = |at: u64| usize::try_from(at.checked_sub(self.buffered)?).ok();
        let bytes = |from, to| self.buffer.get(place(from)?..place(to)?);
        Ok(bytes(start, end))
    }

    /// Has the buffer begin at `start`.
    fn fill(&mut self, start: u64) -> io::Result<()> {
        let wanted = WALK_BYTES.min(self.end - start);
        self.buffer.resize(usize::try_from(wanted).map_err(io::Error::other)?, 0);
        let filled = self.store.read_at(&mut self.buffer, start)?;
        self.buffer.truncate(filled);
        self.buffered = start;
        Ok(())
    }

    /// The next field, and where its value stands; `None` where there is no whole one.
    pub(super) fn field(&mut self) -> io::Result<Option<(Tag, (u64, u64))>> {
        let wanted = HEAD_BYTES.min(self.end - self.at);
        let mut offset = self.at.wrapping_sub(self.buffered);
        if offset.saturating_add(wanted) > self.buffer.len() as u64 {
            self.fill(self.at)?;
            offset = 0;
        }
        let head = self.buffer.get(offset as usize..).unwrap_or_default();
        let head = &head[..head.len().min(wanted as usize)];
        let mut rest = head;
        let field = |rest: &mut &[u8]| {
            let tag = Tag::of(varint(rest)?)?;
            let number = match tag.wire {
                Wire::Varint | Wire::Bytes => varint(rest)?,
                Wire::Fixed64 => 8,
                Wire::Fixed32 => 4,
            };
            Some((tag, number))
        };
        let Some((tag, number)) = field(&mut rest) else {
            self.is_cut = wanted < HEAD_BYTES;
            return Ok(None);
        };
        let start = self.at + (head.len() - rest.len()) as u64;
        let size = if tag.wire == Wire::Varint { 0 } else { number };
        self.last = number;
        let end = start.saturating_add(size);
        if end > self.end {
            self.is_cut = true;
            return Ok(None);
        }
        self.at = end;
        Ok(Some((tag, (start, end))))
    }
}
