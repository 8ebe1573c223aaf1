//! The container of `format` files that trace-cmd invented and perf took over: `TRACING_DATA` of a `perf.data`, the beginning
//! of a `trace.dat` up to version 6.
//!
//! Layout: `17 08 44 "tracing"`, version text, byte order, size of `long`, page size. Then `header_page` and `header_event`,
//! each with a 64-bit size. Then a count of ftrace's own formats, and the formats of each subsystem. At last three sized
//! blocks: symbols, formats of `trace_printk`, saved command lines. Only the formats of `trace_printk` are needed here.

use super::Tracepoints;
use crate::endian::Endian;

/// The first bytes.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Larger counts of formats or subsystems are garbage: kernels have a few thousand events.
const COUNT_MAX: u32 = 65_536;

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct TracingData {
    /// Every tracepoint described.
    pub(crate) tracepoints: Tracepoints,
    /// Where reading had to stop, in bytes from the start, when the data ends early or contradicts itself.
    pub(crate) stopped_at: Option<usize>,
    /// Formats that could not be read.
    pub(crate) garbage: u64,
}

/// Reads the formats in `bytes`; `None` when it is no such container at all.
pub(crate) fn read(bytes: &[u8]) -> Option<TracingData> {
    let mut cursor = TracingDataCursor { bytes, at: 0, endian: Endian::Little };
    cursor.tag(MAGIC)?;
    cursor.text()?;
    cursor.endian = if cursor.take(1)? == [0] { Endian::Little } else { Endian::Big };
    let mut data = TracingData { tracepoints: Tracepoints::new(cursor.endian), stopped_at: None, garbage: 0 };
    if read_formats(&mut cursor, &mut data).is_none() {
        data.stopped_at = Some(cursor.at);
    }
    Some(data)
}

fn read_formats(cursor: &mut TracingDataCursor<'_>, data: &mut TracingData) -> Option<()> {
    let _long_size = cursor.take(1)?;
    let _page_size = cursor.u32()?;
    cursor.tag(b"header_page\0")?;
    cursor.sized()?;
    cursor.tag(b"header_event\0")?;
    cursor.sized()?;
    read_group(cursor, "ftrace", data)?;
    for _ in 0..cursor.count()? {
        let system = String::from_utf8_lossy(cursor.text()?);
        read_group(cursor, &system, data)?;
    }
    // Recorders of old wrote less, and what is left out here is missed by few.
    if let Some(printk) = read_printk(cursor) {
        data.tracepoints.add_printk(&printk);
    }
    Some(())
}

fn read_printk(cursor: &mut TracingDataCursor<'_>) -> Option<String> {
    let symbols = cursor.u32()?;
    cursor.take(usize::try_from(symbols).ok()?)?;
    let size = cursor.u32()?;
    Some(String::from_utf8_lossy(cursor.take(usize::try_from(size).ok()?)?).into_owned())
}

fn read_group(cursor: &mut TracingDataCursor<'_>, system: &str, data: &mut TracingData) -> Option<()> {
    for _ in 0..cursor.count()? {
        let text = String::from_utf8_lossy(cursor.sized()?);
        if !data.tracepoints.add(system, &text) {
            data.garbage += 1;
        }
    }
    Some(())
}

struct TracingDataCursor<'b> {
    bytes: &'b [u8],
    at: usize,
    endian: Endian,
}

impl<'b> TracingDataCursor<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let taken = self.bytes.get(self.at..)?.get(..count)?;
        self.at += count;
        Some(taken)
    }

    fn tag(&mut self, tag: &[u8]) -> Option<()> {
        (self.take(tag.len())? == tag).then_some(())
    }

    fn u32(&mut self) -> Option<u32> {
        let endian = self.endian;
        endian.u32(self.take(4)?, 0)
    }

    fn count(&mut self) -> Option<u32> {
        self.u32().filter(|&count| count <= COUNT_MAX)
    }

    /// A block after its 64-bit size.
    fn sized(&mut self) -> Option<&'b [u8]> {
        let endian = self.endian;
        let size = endian.u64(self.take(8)?, 0)?;
        self.take(usize::try_from(size).ok()?)
    }

    /// A text and the NUL after it.
    fn text(&mut self) -> Option<&'b [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = memchr::memchr(0, rest)?;
        self.at += length + 1;
        rest.get(..length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: tick\nID: 7\nformat:\n\
        field:unsigned short common_type; offset:0; size:2; signed:0;\nfield:int n; offset:8; size:4; signed:1;\n";

    /// A container with one format of `system`.
    pub(crate) fn container(system: &str, format: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(b"0.6\0\x00\x08\x00\x10\x00\x00");
        for tag in ["header_page", "header_event"] {
            bytes.extend(tag.as_bytes());
            bytes.extend([&[0][..], &2_u64.to_le_bytes(), b"xy"].concat());
        }
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(system.as_bytes());
        bytes.push(0);
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend((format.len() as u64).to_le_bytes());
        bytes.extend(format.as_bytes());
        bytes
    }

    #[test]
    fn formats_are_found() {
        let data = read(&container("odd", FORMAT)).expect("a container");
        assert_eq!((data.tracepoints.len(), data.stopped_at, data.garbage), (1, None, 0));
        let mut scratch = String::new();
        let (kind, _) =
            data.tracepoints.decode(&[7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0], &mut scratch).expect("an event");
        assert_eq!(kind.name(), "tick");
    }

    #[test]
    fn damage_is_told_and_costs_only_what_follows() {
        let whole = container("odd", FORMAT);
        for cut in 0..whole.len() {
            match read(&whole[..cut]) {
                None => assert!(cut < MAGIC.len() + 5, "{cut}"),
                Some(data) => assert!(data.stopped_at.is_some() && data.tracepoints.len() == 0, "{cut}"),
            }
        }
        assert_eq!(read(&container("odd", "ID: 7")).expect("a container").garbage, 1);
        let mut huge = whole.clone();
        let count_at = MAGIC.len() + 10 + 2 * 10 + 12 + 13;
        huge[count_at..count_at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read(&huge).expect("a container").stopped_at.is_some());
    }
}
