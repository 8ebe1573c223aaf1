//! The events of one CPU in the order of time, out of its bundles.
//!
//! Must not know: what other CPUs do.

use std::io;

use fairlab_event::Cpu;

use super::compact::{CompactBundle, CompactSwitch, CompactWaking};
use super::pieces::{BundlePiece, CpuPieces, EVENT};
use super::wire::{Tag, Wire, WireFields, varint};
use crate::store::Store;
use crate::{ImportStats, Trouble};

/// Where the bytes are: of the file, and of what was compressed in it.
#[derive(Debug)]
pub(super) struct BundleStores {
    pub(super) file: Store,
    pub(super) unpacked: Store,
}

impl BundleStores {
    fn of(&self, unpacked: bool) -> &Store {
        if unpacked { &self.unpacked } else { &self.file }
    }
}

/// What happened next on a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) enum CpuItem {
    /// Events before are missing.
    Lost,
    /// An `FtraceEvent`, whose bytes go with it.
    Event,
    Switch(CompactSwitch),
    Waking(CompactWaking),
}

/// Which of them it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CpuItemKind {
    Lost,
    Event,
    Switch,
    Waking,
}

/// One CPU's events.
#[derive(Debug)]
pub(super) struct CpuEvents {
    pub(super) cpu: Cpu,
    pieces: std::vec::IntoIter<BundlePiece>,
    events: BundleWindow,
    unpacked: bool,
    compact: Option<CompactBundle>,
    lost: bool,
    offset: i64,
    clock_offset: i64,
    event: Option<u64>,
    switch: Option<CompactSwitch>,
    waking: Option<CompactWaking>,
    head: CpuItemKind,
    /// When the next happened.
    pub(super) time: u64,
    latest: u64,
}

impl CpuEvents {
    pub(super) fn new(pieces: CpuPieces, clock_offset: i64) -> CpuEvents {
        CpuEvents {
            cpu: pieces.cpu,
            pieces: pieces.pieces.into_iter(),
            events: BundleWindow::default(),
            unpacked: false,
            compact: None,
            lost: false,
            offset: 0,
            clock_offset,
            event: None,
            switch: None,
            waking: None,
            head: CpuItemKind::Lost,
            time: 0,
            latest: 0,
        }
    }

    /// Goes on to the next; whether there is one.
    pub(super) fn advance(&mut self, stores: &BundleStores, stats: &mut ImportStats) -> io::Result<bool> {
        loop {
            let store = stores.of(self.unpacked);
            if self.event.is_none() {
                self.event = self.events.advance(store, stats)?;
            }
            if let Some(compact) = &mut self.compact {
                if self.switch.is_none() {
                    self.switch = compact.switch(store)?;
                }
                if self.waking.is_none() {
                    self.waking = compact.waking(store)?;
                }
            }
            if let Some((time, head)) = self.earliest() {
                self.head = if std::mem::take(&mut self.lost) { CpuItemKind::Lost } else { head };
                self.time = time.wrapping_add_signed(self.offset);
                if self.time < self.latest {
                    stats.add(Trouble::TimeWentBack, 1, self.events.at);
                }
                self.latest = self.time;
                return Ok(true);
            }
            if self.compact.take().is_some_and(|compact| compact.is_broken) {
                stats.add(Trouble::CorruptRecord, 1, self.events.end);
            }
            let Some(piece) = self.pieces.next() else { return Ok(false) };
            self.begin(piece, stores)?;
        }
    }

    /// What is first of what is known of the bundle; of one time a waking, then an event.
    #[inline]
    fn earliest(&self) -> Option<(u64, CpuItemKind)> {
        if self.compact.is_none() {
            return self.event.map(|time| (time, CpuItemKind::Event));
        }
        let heads = [
            (self.waking.map(|waking| waking.time), CpuItemKind::Waking),
            (self.event, CpuItemKind::Event),
            (self.switch.map(|switch| switch.time), CpuItemKind::Switch),
        ];
        let known = heads.into_iter().filter_map(|(time, head)| Some((time?, head)));
        known.min_by_key(|&(time, _)| time)
    }

    fn begin(&mut self, piece: BundlePiece, stores: &BundleStores) -> io::Result<()> {
        self.unpacked = piece.events.unpacked;
        self.events.begin(piece.events.start, piece.events.end);
        self.lost |= piece.lost;
        self.offset = if piece.other_clock { self.clock_offset } else { 0 };
        self.compact = match piece.compact {
            Some(range) => Some(CompactBundle::of(stores.of(range.unpacked), range)?),
            None => None,
        };
        Ok(())
    }

    /// Takes the next, and its bytes if it is an event.
    pub(super) fn take(&mut self) -> Option<(CpuItem, &[u8])> {
        let next = match self.head {
            CpuItemKind::Lost => CpuItem::Lost,
            CpuItemKind::Event => {
                self.event = None;
                return Some((CpuItem::Event, self.events.event()));
            }
            CpuItemKind::Switch => CpuItem::Switch(self.switch.take()?),
            CpuItemKind::Waking => CpuItem::Waking(self.waking.take()?),
        };
        Some((next, &[]))
    }

    /// Where in its store the latest event stands.
    pub(super) fn position(&self) -> u64 {
        self.events.event_at()
    }
}

/// A bundle's events, read piece by piece.
#[derive(Debug, Default)]
struct BundleWindow {
    buffer: Vec<u8>,
    /// Where in the store the buffer begins.
    start: u64,
    /// Where the next field of the bundle begins.
    at: u64,
    end: u64,
    /// The latest event within the buffer.
    event: (usize, usize),
}

/// So much is read at a time.
const WINDOW_BYTES: u64 = 1 << 15;
/// A larger event is none that a recorder writes.
const EVENT_BYTES_MAX: u64 = 1 << 20;

impl BundleWindow {
    fn begin(&mut self, start: u64, end: u64) {
        (self.buffer, self.start, self.at, self.end) = (std::mem::take(&mut self.buffer), start, start, end);
        self.buffer.clear();
        self.event = (0, 0);
    }

    #[inline]
    fn event(&self) -> &[u8] {
        self.buffer.get(self.event.0..self.event.1).unwrap_or_default()
    }

    fn event_at(&self) -> u64 {
        self.start + self.event.0 as u64
    }

    /// Has `length` bytes from `at` on in the buffer, or as many as there are.
    #[inline]
    fn need(&mut self, store: &Store, length: u64) -> io::Result<()> {
        let length = length.min(self.end - self.at);
        if self.at + length > self.start + self.buffer.len() as u64 {
            let count = length.max(WINDOW_BYTES).min(self.end - self.at);
            self.buffer.resize(count as usize, 0);
            let filled = store.read_at(&mut self.buffer, self.at)?;
            self.buffer.truncate(filled);
            self.start = self.at;
        }
        Ok(())
    }

    /// Goes on to the next event; gives its time.
    fn advance(&mut self, store: &Store, stats: &mut ImportStats) -> io::Result<Option<u64>> {
        const HEAD_BYTES: u64 = 20;
        while self.at < self.end {
            self.need(store, HEAD_BYTES)?;
            let offset = (self.at - self.start) as usize;
            let head = self.buffer.get(offset..).unwrap_or_default();
            let mut rest = head;
            let Some((tag, size)) = head_of(&mut rest) else {
                stats.add(Trouble::CorruptRecord, 1, self.at);
                self.at = self.end;
                break;
            };
            let value = self.at + (head.len() - rest.len()) as u64;
            if tag.field != EVENT || tag.wire != Wire::Bytes || size > EVENT_BYTES_MAX {
                self.at = value.saturating_add(size).min(self.end);
                continue;
            }
            self.at = value;
            self.need(store, size)?;
            let from = (value - self.start) as usize;
            let to = (from + size as usize).min(self.buffer.len());
            (self.event, self.at) = ((from, to), value + size);
            match time_of(self.event()) {
                Some(time) => return Ok(Some(time)),
                None => stats.add(Trouble::CorruptRecord, 1, value),
            }
        }
        Ok(None)
    }
}

/// The time of an event, which stands first, but need not.
#[inline]
fn time_of(event: &[u8]) -> Option<u64> {
    const TIME: u64 = 1;
    const TAG: u8 = (TIME << 3) as u8;
    if let [TAG, rest @ ..] = event {
        return varint(&mut { rest });
    }
    WireFields::of(event).find(|&(field, _)| field == TIME).map(|(_, time)| time.number())
}

/// Tag of a field and how many bytes its value takes behind what was taken of `rest`.
#[inline]
fn head_of(rest: &mut &[u8]) -> Option<(Tag, u64)> {
    let tag = Tag::of(varint(rest)?)?;
    let size = match tag.wire {
        Wire::Varint => {
            varint(rest)?;
            0
        }
        Wire::Fixed64 => 8,
        Wire::Fixed32 => 4,
        Wire::Bytes => varint(rest)?,
    };
    Some((tag, size))
}
