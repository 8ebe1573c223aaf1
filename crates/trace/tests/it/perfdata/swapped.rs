//! A recording as a machine of the other byte order would have written it, and what the real perf makes of that.
//!
//! It is the recording of this byte order, turned over number by number: header, attrs, ids, records, event formats'
//! frame, and every field of the tracepoints by its format.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use super::recordings::testdata;
use super::shapes::tracepoints;

/// A walk over bytes that turns numbers over.
struct Turner<'b> {
    bytes: &'b mut [u8],
    at: usize,
}

impl Turner<'_> {
    /// Turns over the number of `size` bytes that comes next; returns what it was.
    fn number(&mut self, size: usize) -> usize {
        let number = &mut self.bytes[self.at..self.at + size];
        self.at += size;
        let value = number.iter().rev().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
        number.reverse();
        value as usize
    }

    fn numbers(&mut self, sizes: &[usize]) {
        for &size in sizes {
            self.number(size);
        }
    }

    /// Passes a text and its NUL.
    fn text(&mut self) {
        self.at += self.bytes[self.at..].iter().position(|&byte| byte == 0).expect("an end") + 1;
    }

    fn sized(&mut self, size: usize) {
        self.at += self.number(size);
    }
}

/// Turns a container of event formats over; returns the places of each tracepoint's numbers, by id.
fn turn_formats(bytes: &mut [u8]) -> HashMap<usize, Vec<(usize, usize)>> {
    let mut fields = HashMap::new();
    let mut turner = Turner { bytes, at: 10 };
    turner.text();
    turner.bytes[turner.at] = 1;
    turner.at += 2;
    turner.number(4);
    for _ in ["header_page", "header_event"] {
        turner.text();
        turner.sized(8);
    }
    for _ in 0..turner.number(4) {
        turner.sized(8);
    }
    for _ in 0..turner.number(4) {
        turner.text();
        for _ in 0..turner.number(4) {
            let size = turner.number(8);
            let text = String::from_utf8_lossy(&turner.bytes[turner.at..turner.at + size]).into_owned();
            let id = text.lines().find_map(|line| line.strip_prefix("ID: ")).expect("an id");
            fields.insert(id.parse().expect("a number"), places(&text));
            turner.at += size;
        }
    }
    turner.sized(4);
    turner.sized(4);
    turner.sized(8);
    fields
}

/// Offset and size of each number that a format describes.
fn places(format: &str) -> Vec<(usize, usize)> {
    let field = |line: &str| {
        let declaration = line.trim().strip_prefix("field:")?.split(';').next()?.to_string();
        let value = |name: &str| line.split(name).nth(1)?.split(';').next()?.parse::<usize>().ok();
        let text = declaration.ends_with(']') || declaration.contains("char ") && value("size:")? > 2;
        let is_number = !text || declaration.starts_with("__data_loc");
        is_number.then_some((value("offset:")?, value("size:")?))
    };
    format.lines().filter_map(field).collect()
}

fn turn_attr(turner: &mut Turner<'_>, size: usize) {
    let start = turner.at;
    turner.numbers(&[4, 4, 8, 8, 8, 8]);
    // Bit fields fill each byte from its other end.
    for byte in &mut turner.bytes[turner.at..turner.at + 8] {
        *byte = byte.reverse_bits();
    }
    turner.at += 8;
    turner.numbers(&[4, 4, 8, 8, 8, 8, 4, 4, 8, 4, 2, 2, 4, 4, 8]);
    assert!(turner.at - start <= size);
    turner.at = start + size;
}

/// Turns a record over; false when it is of a kind that is left out.
fn turn_record(record: &mut [u8], fields: &HashMap<usize, Vec<(usize, usize)>>) -> bool {
    let size = record.len();
    let mut turner = Turner { bytes: record, at: 0 };
    let kind = turner.number(4);
    turner.numbers(&[2, 2]);
    match kind {
        // Identifier, instruction, pid, tid, time, CPU, period, size of the rest.
        9 => {
            turner.numbers(&[8, 8, 4, 4, 8, 4, 4, 8, 4]);
            let raw = turner.at;
            let id = usize::from(u16::from_le_bytes([turner.bytes[raw], turner.bytes[raw + 1]]));
            for &(offset, size) in &fields[&id] {
                turner.at = raw + offset;
                turner.number(size);
            }
            return true;
        }
        3 => turner.numbers(&[4, 4]),
        4 | 7 => turner.numbers(&[4, 4, 4, 4, 8]),
        68 => return true,
        _ => return false,
    }
    turner.at = size - 32;
    turner.numbers(&[4, 4, 8, 4, 4, 8]);
    true
}

/// The recording, turned over; of its features only the event formats are kept, with a host's name.
fn swapped(mut bytes: Vec<u8>) -> Vec<u8> {
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize;
    let (attr_size, attrs, data) = (long(16), long(24)..long(24) + long(32), long(40)..long(40) + long(48));
    let before = (long(72) & 1).count_ones() as usize;
    let formats =
        long(data.end + 16 * before)..long(data.end + 16 * before) + long(data.end + 16 * before + 8);
    let mut formats = bytes[formats].to_vec();
    let fields = turn_formats(&mut formats);
    let mut records = Vec::new();
    let mut at = data.start;
    while at < data.end {
        let size = usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
        let mut record = bytes[at..at + size].to_vec();
        if turn_record(&mut record, &fields) {
            records.extend(record);
        }
        at += size;
    }
    bytes.truncate(data.start);
    let features = (1_u64 << 1 | 1 << 3).to_le_bytes();
    bytes[72..80].copy_from_slice(&features);
    bytes[80..104].fill(0);
    bytes[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
    let mut turner = Turner { bytes: &mut bytes, at: 0 };
    turner.numbers(&[8; 13]);
    let mut ids = Vec::new();
    turner.at = attrs.start;
    while turner.at < attrs.end {
        turn_attr(&mut turner, attr_size - 16);
        ids.push((turner.number(8), turner.number(8)));
    }
    for (at, size) in ids {
        turner.at = at;
        turner.numbers(&vec![8; size / 8]);
    }
    bytes.extend(records);
    // perf takes a file without a name of its host for one of 32 bits.
    let host = [&8_u32.to_be_bytes()[..], b"machine\0"].concat();
    let mut at = bytes.len() + 2 * 16;
    for section in [&formats, &host] {
        bytes.extend([at, section.len()].map(|part| (part as u64).to_be_bytes()).concat());
        at += section.len();
    }
    [bytes, formats, host].concat()
}

/// What `perf script` prints of a file.
fn perf_script(path: &Path) -> String {
    let perf = Command::new("perf").args(["script", "--ns", "-i"]).arg(path).output();
    let perf = perf.expect("perf is missing; cure: apt-get install linux-perf");
    assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
    String::from_utf8_lossy(&perf.stdout).into_owned()
}

#[test]
fn a_recording_of_the_other_byte_order_says_the_same_to_us_and_to_the_real_perf() {
    let recording = testdata("perf-make.data");
    let bytes = swapped(std::fs::read(&recording).expect("a recording"));
    let path = std::env::temp_dir().join(format!("fairlab-perfdata-{}-swapped.data", std::process::id()));
    std::fs::write(&path, bytes).expect("a file for the test");
    let (found, of_perf) = (tracepoints(&path), perf_script(&path));
    let _ = std::fs::remove_file(path);
    assert_eq!(found, tracepoints(&recording));
    assert_eq!((found.len(), of_perf.lines().count()), (875, 875));
    for (turned, plain) in of_perf.lines().zip(perf_script(&recording).lines()) {
        assert_eq!(turned, plain);
    }
}
