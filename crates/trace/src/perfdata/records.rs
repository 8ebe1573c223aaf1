//! Finds the records of a file and sends them on in the order of time.
//!
//! Must not know: what records say of tasks and events.

use std::io;
use std::ops::Range;

use super::header::Header;
use super::order::{Order, Receiver};
use super::sample::Origin;
use super::window::{Found, Window, might_be_record};
use crate::Trouble;
use crate::endian::Endian;
use crate::relay::Outlet;
use crate::store::Store;

/// What is known of a record when it is sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) what: What,
    /// Where in the file it stands.
    pub(super) position: u64,
}

/// What is sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// What a tracepoint recorded, taken out of its sample: much less than the record, and found while that is at hand.
    Sample(Sample),
    /// Another record of this time.
    Ordered(u64),
    /// A record without a place in the order of time, when it was met.
    Unordered,
    /// No record, but trouble to be counted.
    Trouble(Trouble),
}

/// What a sample says beside what its tracepoint recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) time: u64,
    pub(super) origin: Origin,
    /// Those of Fairlab's writer.
    pub(super) marks: u16,
}

/// How much is read at a time to find the records.
const SCAN_BYTES: usize = 1 << 18;

/// perf's own record at the end of each turn over the CPUs' buffers.
pub(super) const FINISHED_ROUND: u32 = 68;
/// perf's own records with content behind their end, and where they say how much: event formats (pipe mode only) and
/// hardware trace.
const TRACING_DATA: u32 = 66;
const AUXTRACE: u32 = 71;
const BEHIND_AT: usize = 8;

/// Finds the records and sends them on.
pub(super) fn find(store: &Store, header: &Header, outlet: &mut Outlet<'_, Head>) -> io::Result<()> {
    let mut order = Order::new(header.endian);
    let mut finder = Finder { header, outlet };
    for stretch in &header.stretches {
        find_in(stretch.clone(), store, &mut order, &mut finder)?;
        order.close_run();
    }
    order.end(store, &mut finder)
}

fn find_in(
    stretch: Range<u64>,
    store: &Store,
    order: &mut Order,
    finder: &mut Finder<'_, '_>,
) -> io::Result<()> {
    let header = finder.header;
    let endian = header.endian;
    let mut scan = Window::new(stretch.start, stretch.end, SCAN_BYTES);
    loop {
        let position = scan.position();
        let size = match scan.look(store, endian)? {
            Found::Record(size) => size,
            Found::Garbage => {
                finder.trouble(Trouble::CorruptRecord, position);
                order.close_run();
                skip_garbage(&mut scan, store, header)?;
                continue;
            }
            Found::Torn => {
                finder.trouble(Trouble::TruncatedFile, position);
                break;
            }
            Found::End => break,
        };
        let record = scan.bytes(size);
        let mut round_ends = order.is_full();
        let mut behind = 0;
        if let Some(time) = header.order_time(record) {
            order.found(time, position, position + size as u64);
        } else {
            finder.outlet.send(Head { what: What::Unordered, position }, record);
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
struct Finder<'f, 'o> {
    header: &'f Header,
    outlet: &'f mut Outlet<'o, Head>,
}

impl Finder<'_, '_> {
    fn trouble(&mut self, trouble: Trouble, position: u64) {
        self.outlet.send(Head { what: What::Trouble(trouble), position }, &[]);
    }
}

impl Receiver for Finder<'_, '_> {
    #[inline]
    fn order_time(&self, record: &[u8]) -> Option<u64> {
        self.header.order_time(record)
    }

    #[inline]
    fn ordered(&mut self, record: &[u8], time: u64, position: u64) {
        match self.header.sample(record, time) {
            Some((sample, raw)) => self.outlet.send(Head { what: What::Sample(sample), position }, raw),
            None => self.outlet.send(Head { what: What::Ordered(time), position }, record),
        }
    }
}

/// Goes on to where a record might begin; all records begin at multiples of eight.
fn skip_garbage(scan: &mut Window, store: &Store, header: &Header) -> io::Result<()> {
    const STEP: usize = 8;
    loop {
        scan.advance(STEP as u64);
        let Some(bytes) = scan.peek(store, STEP)? else { return Ok(()) };
        if might_be_record(bytes, header.endian) {
            return Ok(());
        }
    }
}
