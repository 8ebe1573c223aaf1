//! Finds the records of a file and says in which order they are to be read: that of time.
//!
//! Must not know: what records say of tasks and events.

use std::io;
use std::ops::Range;

use super::header::Header;
use super::order::{MergeStep, RunMerger, StepReceiver};
use super::window::{FileWindow, NextRecord, might_be_record};
use crate::Trouble;
use crate::endian::Endian;
use crate::relay::RecordOutlet;
use crate::store::Store;

/// What is sent on, beside the bytes of a record that has no place in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentHead {
    pub(super) what: SentItem,
    /// Where in the file it stands; of steps nowhere.
    pub(super) position: u64,
}

/// What is sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentItem {
    /// Which records come next.
    Step(MergeStep),
    /// The same in brief, a [`PackedRead`] each: where CPUs take turns, nearly each record is a step of its own.
    Steps,
    /// A record without a place in the order of time, when it was met.
    Unordered,
    /// No record, but trouble to be counted.
    Trouble(Trouble),
}

/// [`MergeStep::Read`] in four bytes: what passes from one core to another costs more than the work on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedRead {
    slot: u16,
    count: u16,
}

impl PackedRead {
    const BYTES: usize = 4;

    /// `None` when one of the numbers is too large.
    fn of(step: MergeStep) -> Option<PackedRead> {
        let MergeStep::Read { slot, count } = step else { return None };
        Some(PackedRead { slot: slot.try_into().ok()?, count: count.try_into().ok()? })
    }

    fn bytes(self) -> [u8; PackedRead::BYTES] {
        (u32::from(self.slot) << 16 | u32::from(self.count)).to_le_bytes()
    }

    fn step(bytes: [u8; PackedRead::BYTES]) -> MergeStep {
        let both = u32::from_le_bytes(bytes);
        MergeStep::Read { slot: (both >> 16) as usize, count: u64::from(both & 0xffff) }
    }
}

/// The steps that were sent in brief.
pub(super) fn steps(record: &[u8]) -> impl Iterator<Item = MergeStep> {
    record.as_chunks().0.iter().map(|&bytes| PackedRead::step(bytes))
}

/// How many steps are sent together.
const STEPS_BYTES: usize = PackedRead::BYTES << 10;

/// How much is read at a time to find the records.
const SCAN_BYTES: usize = 1 << 16;

/// perf's own record at the end of each turn over the CPUs' buffers.
pub(super) const FINISHED_ROUND: u32 = 68;
/// perf's own records with content behind their end, and where they say how much: event formats (pipe mode only) and
/// hardware trace.
const TRACING_DATA: u32 = 66;
const AUXTRACE: u32 = 71;
const BEHIND_AT: usize = 8;

/// Finds the records and says which come next.
pub(super) fn find(
    store: &Store,
    header: &Header,
    outlet: &mut RecordOutlet<'_, SentHead>,
) -> io::Result<()> {
    let mut order = RunMerger::new(header.endian);
    let mut finder = RecordSender { header, outlet, steps: Vec::with_capacity(STEPS_BYTES) };
    for stretch in &header.stretches {
        find_in(stretch.clone(), store, &mut order, &mut finder)?;
        order.close_run();
    }
    let ended = order.end(store, &mut finder);
    finder.send_steps();
    ended
}

fn find_in(
    stretch: Range<u64>,
    store: &Store,
    order: &mut RunMerger,
    finder: &mut RecordSender<'_, '_>,
) -> io::Result<()> {
    let header = finder.header;
    let endian = header.endian;
    let mut scan = FileWindow::new(stretch.start, stretch.end, SCAN_BYTES);
    loop {
        let position = scan.position();
        let size = match scan.look(store, endian)? {
            NextRecord::Record(size) => size,
            NextRecord::Garbage => {
                finder.trouble(Trouble::CorruptRecord, position);
                order.close_run();
                skip_garbage(&mut scan, store, header)?;
                continue;
            }
            NextRecord::Torn => {
                finder.trouble(Trouble::TruncatedFile, position);
                break;
            }
            NextRecord::End => break,
        };
        let record = scan.bytes(size);
        let mut round_ends = order.is_full();
        let mut behind = 0;
        if let Some(time) = header.order_time(record) {
            order.found(time, position, position + size as u64);
        } else {
            finder.send(SentItem::Unordered, position, record);
            round_ends |= endian.u32(record, 0) == Some(FINISHED_ROUND);
            behind = bytes_behind(record, endian);
            if behind > 0 {
                order.close_run();
            }
        }
        scan.advance((size as u64).saturating_add(behind));
        if round_ends {
            order.end_round(store, finder)?;
        }
    }
    Ok(())
}

/// How many bytes follow a record that belong to it and that its size does not count.
pub(super) fn bytes_behind(record: &[u8], endian: Endian) -> u64 {
    match endian.u32(record, 0) {
        Some(AUXTRACE) => endian.u64(record, BEHIND_AT).unwrap_or(0),
        Some(TRACING_DATA) => {
            endian.u32(record, BEHIND_AT).map_or(0, |size| u64::from(size).next_multiple_of(8))
        }
        _ => 0,
    }
}

/// Sends on what the order hands out.
struct RecordSender<'f, 'o> {
    header: &'f Header,
    outlet: &'f mut RecordOutlet<'o, SentHead>,
    /// Steps in brief that were not sent yet.
    steps: Vec<u8>,
}

impl RecordSender<'_, '_> {
    fn trouble(&mut self, trouble: Trouble, position: u64) {
        self.send(SentItem::Trouble(trouble), position, &[]);
    }

    fn send(&mut self, what: SentItem, position: u64, record: &[u8]) {
        self.send_steps();
        self.outlet.send(SentHead { what, position }, record);
    }

    fn send_steps(&mut self) {
        if !self.steps.is_empty() {
            self.outlet.send(SentHead { what: SentItem::Steps, position: 0 }, &self.steps);
            self.steps.clear();
        }
    }
}

impl StepReceiver for RecordSender<'_, '_> {
    #[inline]
    fn order_time(&self, record: &[u8]) -> Option<u64> {
        self.header.order_time(record)
    }

    #[inline]
    fn step(&mut self, step: MergeStep) {
        let Some(brief) = PackedRead::of(step) else { return self.send(SentItem::Step(step), 0, &[]) };
        self.steps.extend(brief.bytes());
        if self.steps.len() >= STEPS_BYTES {
            self.send_steps();
        }
    }
}

/// Goes on to where a record might begin; all records begin at multiples of eight.
fn skip_garbage(scan: &mut FileWindow, store: &Store, header: &Header) -> io::Result<()> {
    const STEP: usize = 8;
    loop {
        scan.advance(STEP as u64);
        let Some(bytes) = scan.peek(store, STEP)? else { return Ok(()) };
        if might_be_record(bytes, header.endian) {
            return Ok(());
        }
    }
}
