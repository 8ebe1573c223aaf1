//! A description as text, out of its packets if it comes in some.
//!
//! Must not know: what the text says.

use std::fs;
use std::path::Path;

use crate::ImportError;
use crate::endian::Endian;

/// What packets of a description begin with.
const MAGIC: u32 = 0x75d1_1d57;
/// Magic, UUID, checksum, size of content, size, compression, encryption, kind of checksum, version.
const HEADER_BYTES: usize = 37;
const CONTENT_AT: usize = 24;
const PACKET_AT: usize = 28;
/// A longer one is garbage: those of LTTng's kernels have less than a megabyte.
const BYTES_MAX: u64 = 1 << 26;

/// The description in `path`.
pub(super) fn read(path: &Path) -> Result<String, ImportError> {
    let length = fs::metadata(path)?.len();
    let not = |fact: String| ImportError::NotATrace(format!("{}: {fact}", path.display()));
    if length > BYTES_MAX {
        return Err(not(format!("a description of {length} bytes")));
    }
    let bytes = fs::read(path)?;
    let endian = match bytes.first_chunk() {
        Some(first) if u32::from_le_bytes(*first) == MAGIC => Endian::Little,
        Some(first) if u32::from_be_bytes(*first) == MAGIC => Endian::Big,
        _ => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
    };
    let mut text = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let packet = &bytes[at..];
        let size = |place| endian.u32(packet, place).map(|bits| bits as usize / 8);
        let (Some(content), Some(size)) = (size(CONTENT_AT), size(PACKET_AT)) else {
            return Err(not(format!("the description is cut off at byte {at}")));
        };
        let is_magic = endian.u32(packet, 0) == Some(MAGIC);
        match packet.get(HEADER_BYTES..content) {
            Some(part) if is_magic && size >= content => text.extend(part),
            _ => return Err(not(format!("no packet of a description stands at byte {at}"))),
        }
        at = at.saturating_add(size);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}
