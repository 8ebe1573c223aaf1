//! Numbers as columns: each column's lowest bytes first, then its next ones, as many as its greatest number has; so that deflate finds
//! what is alike. Pieces are deflated apart and stand one behind the other, each on a boundary of base64.
//!
//! Must not know: what the numbers mean.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// Pieces one behind the other.
#[derive(Debug, Default)]
pub(super) struct PieceBlob(Vec<u8>);

/// Where a piece stands, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlobPiece {
    pub(super) at: usize,
    pub(super) length: usize,
}

impl PieceBlob {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds a piece that is deflated already.
    pub(super) fn put(&mut self, piece: &[u8]) -> BlobPiece {
        let at = self.0.len();
        self.0.extend_from_slice(piece);
        // Three bytes are four characters.
        self.0.resize(self.0.len().next_multiple_of(3), 0);
        BlobPiece { at, length: piece.len() }
    }
}

/// How hard deflate looks: beyond this it takes twice the time for a hundredth of the size.
const EFFORT: u32 = 4;

/// Deflates a piece.
pub(super) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::new(EFFORT));
    // Writing into memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// What was deflated.
pub(super) fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut inflated = Vec::new();
    let _ = DeflateDecoder::new(bytes).read_to_end(&mut inflated);
    inflated
}

/// Numbers on their way into a piece.
#[derive(Debug, Default)]
pub(super) struct PieceWriter(pub(super) Vec<u8>);

impl PieceWriter {
    /// A number by itself, seven bits a byte.
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A column whose length the reader knows.
    pub(super) fn column(&mut self, values: &[u64]) {
        let most = values.iter().copied().max().unwrap_or(0);
        let width = (u64::BITS - most.leading_zeros()).div_ceil(8);
        self.0.push(width as u8);
        for plane in 0..width {
            self.0.extend(values.iter().map(|value| (value >> (8 * plane)) as u8));
        }
    }

    /// The differences of numbers that do not fall; what falls counts as no difference.
    pub(super) fn rising(&mut self, values: impl Iterator<Item = u64>) {
        let mut before = 0;
        let deltas = values.map(|value| {
            let value = value.max(before);
            value - std::mem::replace(&mut before, value)
        });
        self.column(&deltas.collect::<Vec<_>>());
    }
}

/// Numbers on their way out of a piece.
#[derive(Debug)]
pub(super) struct PieceReader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> PieceReader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> PieceReader<'b> {
        PieceReader { bytes, at: 0 }
    }

    fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    pub(super) fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    pub(super) fn column(&mut self, length: usize) -> Vec<u64> {
        let width = self.byte();
        let mut values = vec![0u64; length];
        for plane in 0..u32::from(width) {
            for value in &mut values {
                *value |= u64::from(self.byte()).checked_shl(8 * plane).unwrap_or(0);
            }
        }
        values
    }
}

/// A number with a sign as one without: small ones stay small.
pub(super) const fn folded(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The number that was folded.
pub(super) const fn unfolded(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back() {
        let columns = [vec![], vec![0, 0], vec![1, 255, 256, 70_000], vec![u64::MAX, 3]];
        let mut writer = PieceWriter::default();
        for column in &columns {
            writer.number(column.len() as u64);
            writer.column(column);
        }
        let bytes = inflate(&deflate(&writer.0));
        let mut reader = PieceReader::new(&bytes);
        for column in &columns {
            let length = reader.number() as usize;
            assert_eq!(reader.column(length), *column);
        }
        for value in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(unfolded(folded(value)), value);
        }
    }
}
