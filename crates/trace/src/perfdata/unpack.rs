//! Records out of `PERF_RECORD_COMPRESSED` and `PERF_RECORD_COMPRESSED2` (`perf record -z`).
//!
//! All compressed records of a file hold one zstd stream, of which each has the next piece; records that perf added
//! itself stand between them. A record may begin in one piece and end in the next.
//!
//! Must not know: what the unpacked records mean.

use std::io;
use std::ops::Range;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::header::Header;
use super::records::bytes_behind;
use super::window::{FileWindow, NextRecord, RECORD_HEADER};
use crate::endian::Endian;
use crate::store::{Spool, Store};
use crate::{ImportStats, Trouble};

const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;
const SCAN_BYTES: usize = 1 << 18;
/// How much is unpacked at a time.
const PIECE_BYTES: usize = 1 << 17;

/// The records of `store`, those that were compressed unpacked; `header` then tells of these.
pub(super) fn unpack(store: &Store, header: &mut Header, stats: &mut ImportStats) -> io::Result<Store> {
    let endian = header.endian;
    let mut unpacker = Unpacker::new(endian, store.length())?;
    let mut stretches = Vec::new();
    for stretch in &header.stretches {
        let start = unpacker.spool.length();
        unpack_stretch(store, stretch.clone(), &mut unpacker, stats)?;
        stretches.push(start..unpacker.spool.length());
    }
    (header.stretches, header.compressed) = (stretches, false);
    Ok(unpacker.spool.into_store())
}

fn unpack_stretch(
    store: &Store,
    stretch: Range<u64>,
    unpacker: &mut Unpacker,
    stats: &mut ImportStats,
) -> io::Result<()> {
    let endian = unpacker.endian;
    let mut scan = FileWindow::new(stretch.start, stretch.end, SCAN_BYTES);
    loop {
        let position = scan.position();
        let size = match scan.look(store, endian)? {
            NextRecord::Record(size) => size,
            // Where the next record begins cannot be found: compressed ones are of any length and look like anything.
            NextRecord::Garbage => {
                stats.add(Trouble::CorruptRecord, 1, position);
                break;
            }
            NextRecord::Torn => {
                stats.add(Trouble::TruncatedFile, 1, position);
                break;
            }
            NextRecord::End => break,
        };
        let record = scan.bytes(size);
        let behind = bytes_behind(record, endian);
        match compressed_part(record, endian) {
            Some(part) => {
                if let Some(trouble) = unpacker.unpack(part)? {
                    stats.add(trouble, 1, position);
                }
            }
            // What stands behind a record is of no use, and would have to be moved along.
            None if behind == 0 => unpacker.keep(record)?,
            None => stats.add(Trouble::SkippedRecord, 1, position),
        }
        scan.advance((size as u64).saturating_add(behind));
    }
    Ok(())
}

/// What is compressed in a record; `None` when it is a record of another kind.
fn compressed_part(record: &[u8], endian: Endian) -> Option<&[u8]> {
    let body = record.get(RECORD_HEADER..)?;
    match endian.u32(record, 0)? {
        COMPRESSED => Some(body),
        // Padded to a multiple of eight, hence with its size.
        COMPRESSED2 => {
            let rest = body.get(size_of::<u64>()..).unwrap_or_default();
            let size = endian.u64(body, 0).and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX);
            Some(rest.get(..size).unwrap_or(rest))
        }
        _ => None,
    }
}

/// Unpacks piece after piece.
struct Unpacker {
    endian: Endian,
    decoder: Decoder<'static>,
    /// Whether the stream is damaged: what follows of it cannot be unpacked, unless another begins.
    broken: bool,
    piece: Vec<u8>,
    spool: Spool,
    walk: RecordBoundary,
}

/// The first bytes of a zstd stream.
const MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";

impl Unpacker {
    fn new(endian: Endian, packed: u64) -> io::Result<Unpacker> {
        let piece = vec![0; PIECE_BYTES];
        let (spool, walk) = (Spool::of_packed(packed), RecordBoundary::default());
        Ok(Unpacker { endian, decoder: Decoder::new()?, broken: false, piece, spool, walk })
    }

    fn keep(&mut self, record: &[u8]) -> io::Result<()> {
        self.spool.append(record)?;
        Ok(())
    }

    /// Unpacks the next part of the stream; tells what is wrong with it.
    fn unpack(&mut self, part: &[u8]) -> io::Result<Option<Trouble>> {
        // No piece goes on like that: a block's head of these bytes would be longer than blocks are.
        if part.starts_with(MAGIC) {
            self.decoder.reinit()?;
            self.broken = false;
        }
        if self.broken {
            return Ok(Some(Trouble::CorruptRecord));
        }
        let mut input = InBuffer::around(part);
        loop {
            let mut output = OutBuffer::around(self.piece.as_mut_slice());
            let unpacked = self.decoder.run(&mut input, &mut output);
            let count = output.pos();
            let piece = self.piece.get(..count).unwrap_or_default();
            self.spool.append(piece)?;
            self.walk.pass(piece, self.endian);
            if unpacked.is_err() {
                self.broken = true;
                // The record of which the stream has only the beginning must not swallow the next.
                self.spool.truncate(self.spool.length().saturating_sub(self.walk.torn()))?;
                self.walk = RecordBoundary::default();
                return Ok(Some(Trouble::CorruptRecord));
            }
            // A piece that was not filled has all that there is.
            if input.pos() == part.len() && count < PIECE_BYTES {
                return Ok(None);
            }
        }
    }
}

/// Knows where the record begins that is not whole yet.
#[derive(Debug, Default)]
struct RecordBoundary {
    /// The header of the record at hand, as far as it is there.
    header: Vec<u8>,
    /// Bytes of the record at hand that were passed, and that are missing.
    passed: usize,
    missing: usize,
}

impl RecordBoundary {
    /// Goes on by these bytes.
    fn pass(&mut self, mut bytes: &[u8], endian: Endian) {
        while !bytes.is_empty() {
            if self.missing == 0 {
                let count = bytes.len().min(RECORD_HEADER - self.header.len());
                self.header.extend_from_slice(&bytes[..count]);
                bytes = &bytes[count..];
                self.passed = self.header.len();
                if self.passed == RECORD_HEADER {
                    // Smaller sizes are garbage.
                    let size = endian.u16(&self.header, 6).map_or(0, usize::from).max(RECORD_HEADER);
                    self.missing = size - RECORD_HEADER;
                    self.header.clear();
                }
            } else {
                let count = bytes.len().min(self.missing);
                bytes = &bytes[count..];
                (self.passed, self.missing) = (self.passed + count, self.missing - count);
            }
        }
    }

    /// How many bytes there are of a record that is not whole.
    fn torn(&self) -> u64 {
        if self.missing > 0 || !self.header.is_empty() { self.passed as u64 } else { 0 }
    }
}
