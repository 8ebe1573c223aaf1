//! One file of a trace: packets one behind the other, each with events in order of time.
//!
//! Must not know: what events say.

use std::path::{Path, PathBuf};

use super::bits::BitCursor;
use super::decode::{CtfFields, CtfValue};
use super::types::{CtfDescription, CtfType, EventClass, StreamClass};
use crate::store::Store;
use crate::{BytesRead, ImportError, ImportStats, Trouble};

/// What a packet says of itself.
#[derive(Clone, Debug, Default)]
struct CtfPacket {
    bytes: Vec<u8>,
    /// Where its events begin and end, in bits.
    events: (u64, u64),
    stream: u64,
    /// Where it stands in the file.
    start: u64,
}

/// A file that is being read.
#[derive(Debug)]
pub(super) struct CtfStream<'d> {
    description: &'d CtfDescription,
    store: Store,
    path: PathBuf,
    at: u64,
    packet: CtfPacket,
    /// Where the event at hand begins and where the next one does, in bits.
    event: (u64, u64),
    class: Option<(&'d StreamClass, &'d EventClass)>,
    clock: CtfClock,
    pub(super) cpu: u32,
    discarded: Option<u64>,
    sequence: Option<u64>,
    /// Events before the one at hand are missing; how many, if the packet says it.
    pub(super) lost: Option<Option<u64>>,
}

/// The time so far, in ticks, of which events tell the low bits.
#[derive(Clone, Copy, Debug, Default)]
struct CtfClock {
    ticks: u64,
    frequency: u64,
}

impl CtfClock {
    fn pass(&mut self, value: u64, bits: u32) {
        if bits >= 64 {
            self.ticks = value;
            return;
        }
        let turn = 1_u64 << bits;
        let low = self.ticks & (turn - 1);
        let ticks = self.ticks - low + (value & (turn - 1));
        self.ticks = if ticks < self.ticks { ticks.wrapping_add(turn) } else { ticks };
    }

    fn ns(self) -> u64 {
        const NS: u64 = 1_000_000_000;
        match self.frequency {
            0 | NS => self.ticks,
            hz => u64::try_from(u128::from(self.ticks) * u128::from(NS) / u128::from(hz)).unwrap_or(u64::MAX),
        }
    }
}

/// Larger packets are garbage, and would fill memory.
const PACKET_BYTES_MAX: u64 = 1 << 30;
/// A packet's header and context have less.
const HEAD_BYTES: u64 = 1 << 16;

impl<'d> CtfStream<'d> {
    pub(super) fn open(
        description: &'d CtfDescription,
        path: &Path,
        read: &BytesRead,
    ) -> Result<CtfStream<'d>, ImportError> {
        Ok(CtfStream {
            description,
            store: Store::of(std::fs::File::open(path)?, read)?,
            path: path.to_path_buf(),
            at: 0,
            packet: CtfPacket::default(),
            event: (0, 0),
            class: None,
            clock: CtfClock::default(),
            cpu: 0,
            discarded: None,
            sequence: None,
            lost: None,
        })
    }

    /// The file's name.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// When the event at hand happened, in ns.
    pub(super) fn time(&self) -> u64 {
        self.clock.ns()
    }

    /// Where in the file the event at hand stands.
    pub(super) fn position(&self) -> u64 {
        self.packet.start + self.event.0 / 8
    }

    /// Goes on to the next event; whether there is one.
    pub(super) fn advance(&mut self, stats: &mut ImportStats) -> Result<bool, ImportError> {
        loop {
            self.event.0 = self.event.1;
            if self.event.0 < self.packet.events.1 {
                if self.head().is_some() {
                    return Ok(true);
                }
                stats.add(Trouble::CorruptRecord, 1, self.position());
                self.lost = self.lost.or(Some(None));
                self.packet.events.1 = 0;
            }
            if !self.next_packet(stats)? {
                return Ok(false);
            }
        }
    }

    /// Reads the event's head and passes over the rest; `None` where that is not as it is described.
    fn head(&mut self) -> Option<()> {
        let order = self.description.order;
        let class = self.description.streams.get(&self.packet.stream)?;
        let mut bits = BitCursor::new(&self.packet.bytes, self.packet.events.1);
        bits.at = self.event.0;
        let mut fields = CtfFields::default();
        if let Some(header) = &class.event_header {
            fields.read(header, &mut bits, order)?;
        }
        for found in &fields.found {
            if let (Some((size, _)), CtfValue::Number(value)) = (found.clock, found.held) {
                self.clock.pass(value, size);
            }
        }
        let id = fields.number("id").unwrap_or(0);
        let event: &EventClass = class.events.get(&id)?;
        let parts = [class.event_context.as_ref(), event.context.as_ref(), event.fields.as_ref()];
        for part in parts.into_iter().flatten() {
            fields.read(part, &mut bits, order)?;
        }
        // An event of no bits would never end.
        (bits.at > self.event.0).then_some(())?;
        self.event.1 = bits.at;
        self.class = Some((class, event));
        Some(())
    }

    /// Hands the event's name and all of its fields to `take`.
    pub(super) fn event<T>(&self, take: impl FnOnce(&str, &CtfFields<'_>) -> T) -> Option<T> {
        let (class, event) = self.class?;
        let order = self.description.order;
        let mut bits = BitCursor::new(&self.packet.bytes, self.packet.events.1);
        bits.at = self.event.0;
        let mut fields = CtfFields::default();
        let parts = [
            class.event_header.as_ref(),
            class.event_context.as_ref(),
            event.context.as_ref(),
            event.fields.as_ref(),
        ];
        for part in parts.into_iter().flatten() {
            fields.read(part, &mut bits, order)?;
        }
        Some(take(&event.name, &fields))
    }

    fn next_packet(&mut self, stats: &mut ImportStats) -> Result<bool, ImportError> {
        let (length, start) = (self.store.length(), self.at);
        if start >= length {
            return Ok(false);
        }
        let head = self.store.read_section(start, HEAD_BYTES)?;
        let Some(found) = self.packet_head(&head) else {
            stats.add(Trouble::CorruptRecord, 1, start);
            self.at = length;
            return Ok(false);
        };
        let left = (length - start).saturating_mul(8);
        let size = found.size.unwrap_or(left);
        let content = found.content.unwrap_or(size).min(size);
        if size == 0 || size > left || size / 8 > PACKET_BYTES_MAX || found.end > content {
            stats.add(Trouble::TruncatedFile, 1, start);
            self.at = length;
            return Ok(false);
        }
        self.at = start + size.div_ceil(8);
        let bytes = self.store.read_section(start, content.div_ceil(8))?;
        self.note_losses(&found, stats, start);
        self.packet = CtfPacket { bytes, events: (found.end, content), stream: found.stream, start };
        self.event = (found.end, found.end);
        self.cpu = found.cpu;
        if let Some(begin) = found.begin {
            self.clock.ticks = begin;
        }
        self.clock.frequency = found.frequency;
        Ok(true)
    }

    fn note_losses(&mut self, found: &PacketHead, stats: &mut ImportStats, start: u64) {
        let before = self.discarded.unwrap_or(0);
        let discarded = found.discarded.map_or(0, |now| now.wrapping_sub(before) & found.discarded_mask);
        let skipped = match (self.sequence, found.sequence) {
            (Some(before), Some(now)) => now.wrapping_sub(before) > 1,
            _ => false,
        };
        if discarded > 0 {
            stats.add(Trouble::LostEvents, discarded, start);
            self.lost = Some(Some(discarded));
        }
        if skipped {
            stats.add(Trouble::LostEvents, 1, start);
            self.lost = Some(None);
        }
        (self.discarded, self.sequence) = (found.discarded.or(self.discarded), found.sequence);
    }

    fn packet_head(&self, bytes: &[u8]) -> Option<PacketHead> {
        let order = self.description.order;
        let mut bits = BitCursor::new(bytes, u64::MAX);
        let mut fields = CtfFields::default();
        if let Some(header) = &self.description.packet_header {
            fields.read(header, &mut bits, order)?;
        }
        const MAGIC: u64 = 0xc1fc_1fc1;
        if fields.number("magic").is_some_and(|magic| magic != MAGIC) {
            return None;
        }
        let stream = fields.number("stream_id").unwrap_or(0);
        let class = self.description.streams.get(&stream)?;
        if let Some(context) = &class.packet_context {
            fields.read(context, &mut bits, order)?;
        }
        let clock = fields.found.iter().find_map(|found| found.clock).map(|(_, clock)| clock);
        let clock = clock.or_else(|| self.description.clocks.keys().next().map(String::as_str));
        let discarded_bits = match &class.packet_context {
            Some(CtfType::Struct(of)) => of.fields.iter().find_map(|(name, of)| match of {
                CtfType::Int(int) if name.ends_with("events_discarded") => Some(int.size),
                _ => None,
            }),
            _ => None,
        };
        Some(PacketHead {
            stream,
            size: fields.number("packet_size"),
            content: fields.number("content_size"),
            // Version 2 tells it by its role.
            begin: fields.number("timestamp_begin").or_else(|| fields.number("timestamp")),
            cpu: u32::try_from(fields.number("cpu_id").unwrap_or(0)).ok()?,
            discarded: fields.number("events_discarded"),
            discarded_mask: u64::MAX >> (64 - discarded_bits.unwrap_or(64)),
            sequence: fields.number("packet_seq_num"),
            frequency: clock.and_then(|clock| self.description.clocks.get(clock)).copied().unwrap_or(0),
            end: bits.at,
        })
    }
}

/// Header and context of a packet; sizes in bits.
struct PacketHead {
    stream: u64,
    size: Option<u64>,
    content: Option<u64>,
    begin: Option<u64>,
    cpu: u32,
    discarded: Option<u64>,
    discarded_mask: u64,
    sequence: Option<u64>,
    frequency: u64,
    end: u64,
}
