//! An image as a file: where its parts belong in memory, and its symbols.
//!
//! Every number is checked against the file's length, so that a file that is cut short or is no image is refused with a line.
//!
//! Must not know: what an image is for, how memory is mapped.

use std::ops::Range;

/// One part of the file that belongs in memory (`PT_LOAD`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSegment {
    /// Where it belongs.
    pub address: usize,
    /// How many bytes of memory it has; what the file does not give is zero.
    pub length: usize,
    /// The file's bytes for it.
    pub bytes: Range<usize>,
    /// Whether it may be written.
    pub write: bool,
    /// Whether it is code.
    pub execute: bool,
}

impl LoadSegment {
    /// The pages that it touches.
    pub fn pages(&self) -> Range<usize> {
        self.address & !(PAGE - 1)..(self.address + self.length).next_multiple_of(PAGE)
    }
}

/// A name of the image's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Where it begins.
    pub address: usize,
    /// Its bytes; 0 where the file does not say.
    pub size: usize,
    /// Its name.
    pub name: String,
}

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    /// The address of what the image shows.
    pub entry: usize,
    /// Its parts by rising address, without overlap.
    pub segments: Vec<LoadSegment>,
    /// Its functions by rising address.
    pub symbols: Vec<Symbol>,
    /// Data that it needs and nobody has, each at an address where no memory is.
    pub absent: Vec<Symbol>,
}

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Where images may lie: `-mcmodel=kernel` relocations hold below 2 GiB, and the first pages belong to nobody.
const ADDRESSES: Range<usize> = 0x1_0000..0x7fff_0000;

const CLASS_64_LITTLE_ENDIAN: &[u8] = b"\x7fELF\x02\x01";
const EXECUTABLE: u64 = 2;
const X86_64: u64 = 62;
const LOAD: u64 = 1;
const SYMBOL_TABLE: u64 = 2;
const FUNCTION: u8 = 2;
const ABSOLUTE: u64 = 0xfff1;

impl Elf {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not a static program for x86-64 at low addresses, or is cut short.
    pub fn parse(file: &[u8]) -> Result<Elf, String> {
        if !file.starts_with(CLASS_64_LITTLE_ENDIAN) {
            return Err("it does not begin as an ELF file of 64 bits does".to_string());
        }
        let read = ElfReader(file);
        if read.number(16, 2)? != EXECUTABLE || read.number(18, 2)? != X86_64 {
            return Err("it is no static program for x86-64".to_string());
        }
        let segments = segments(&read)?;
        let entry = read.place(24)?;
        if !segments
            .iter()
            .any(|segment| (segment.address..segment.address + segment.length).contains(&entry))
        {
            return Err(format!("its entry, {entry:#x}, lies in none of its segments"));
        }
        let (symbols, absent) = symbols(&read)?;
        Ok(Elf { entry, segments, symbols, absent })
    }

    /// All addresses from the first page to the last.
    pub fn span(&self) -> Range<usize> {
        let first = self.segments.first().map_or(0, |segment| segment.pages().start);
        let last = self.segments.last().map_or(0, |segment| segment.pages().end);
        first..last
    }

    /// Where code lies.
    pub fn text(&self) -> Range<usize> {
        let mut code = self.segments.iter().filter(|segment| segment.execute).map(LoadSegment::pages);
        let first = code.next().unwrap_or_default();
        code.fold(first, |all, pages| all.start..pages.end)
    }
}

/// Numbers at places of a file.
struct ElfReader<'f>(&'f [u8]);

impl ElfReader<'_> {
    fn bytes(&self, at: usize, count: usize) -> Result<&[u8], String> {
        let end = at.checked_add(count);
        let bytes = end.and_then(|end| self.0.get(at..end));
        bytes.ok_or_else(|| format!("it is cut short: {} bytes, but it speaks of byte {at}", self.0.len()))
    }

    /// `count` bytes, the lowest first.
    fn number(&self, at: usize, count: usize) -> Result<u64, String> {
        let bytes = self.bytes(at, count)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// 64 bits as a place in the file or in memory.
    fn place(&self, at: usize) -> Result<usize, String> {
        Ok(self.number(at, 8)? as usize)
    }

    /// Where each entry of a table begins, whose place, size of entries and their count stand at these places.
    fn table(&self, place: usize, size: usize, count: usize) -> Result<Vec<usize>, String> {
        let (first, size) = (self.place(place)?, self.number(size, 2)? as usize);
        let entries = (0..self.number(count, 2)? as usize).map(|number| number * size);
        entries
            .map(|entry| first.checked_add(entry).ok_or_else(|| "a table ends nowhere".to_string()))
            .collect()
    }

    /// The text from there to its NUL.
    fn text(&self, at: usize) -> Result<String, String> {
        let rest = self.0.get(at..).unwrap_or_default();
        let end = rest.iter().position(|&byte| byte == 0).ok_or("a name has no end")?;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    }
}

fn segments(read: &ElfReader<'_>) -> Result<Vec<LoadSegment>, String> {
    let mut segments = Vec::new();
    for at in read.table(32, 54, 56)? {
        if read.number(at, 4)? != LOAD || read.place(at + 40)? == 0 {
            continue;
        }
        let flags = read.number(at + 4, 4)?;
        let (offset, address) = (read.place(at + 8)?, read.place(at + 16)?);
        let (stored, length) = (read.place(at + 32)?, read.place(at + 40)?);
        read.bytes(offset, stored)?;
        let end = address.checked_add(length).filter(|&end| end <= ADDRESSES.end);
        if address < ADDRESSES.start || end.is_none() || stored > length {
            return Err(format!("a segment of {length} bytes at {address:#x} is out of place"));
        }
        let (write, execute) = (flags & 2 != 0, flags & 1 != 0);
        segments.push(LoadSegment { address, length, bytes: offset..offset + stored, write, execute });
    }
    segments.sort_by_key(|segment| segment.address);
    let overlap = segments.windows(2).any(|pair| pair[0].pages().end > pair[1].pages().start);
    match () {
        () if segments.is_empty() => Err("it has nothing to load".to_string()),
        () if overlap => Err("its segments overlap".to_string()),
        () => Ok(segments),
    }
}

/// Functions, and what lies below all that an image may have.
fn symbols(read: &ElfReader<'_>) -> Result<(Vec<Symbol>, Vec<Symbol>), String> {
    let sections = read.table(40, 58, 60)?;
    let (mut symbols, mut absent) = (Vec::new(), Vec::new());
    for &at in &sections {
        if read.number(at + 4, 4)? != SYMBOL_TABLE {
            continue;
        }
        let (first, length) = (read.place(at + 24)?, read.place(at + 32)?);
        read.bytes(first, length)?;
        let names = sections.get(read.number(at + 40, 4)? as usize).ok_or("its symbols have no names")?;
        let names = read.place(names + 24)?;
        for at in (first..first + length).step_by(24).filter(|at| at + 24 <= first + length) {
            let is_function = read.bytes(at + 4, 1)?[0] & 0xf == FUNCTION;
            let (address, size) = (read.place(at + 8)?, read.place(at + 16)?);
            let is_absent = read.number(at + 6, 2)? == ABSOLUTE && (PAGE..ADDRESSES.start).contains(&address);
            if (is_function || is_absent) && address > 0 {
                let name = names.checked_add(read.number(at, 4)? as usize).ok_or("a name is nowhere")?;
                let list = if is_absent { &mut absent } else { &mut symbols };
                list.push(Symbol { address, size, name: read.text(name)? });
            }
        }
    }
    for list in [&mut symbols, &mut absent] {
        list.sort_by(|one, other| (one.address, &one.name).cmp(&(other.address, &other.name)));
    }
    Ok((symbols, absent))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program that runs this is an ELF file, but not static at a low address.
    #[test]
    fn what_is_no_image_is_refused_with_a_line() {
        let own = std::fs::read(std::env::current_exe().expect("a program")).expect("readable");
        assert_eq!(Elf::parse(&own), Err("it is no static program for x86-64".to_string()));
        assert!(Elf::parse(b"#!/bin/sh").is_err_and(|problem| problem.contains("does not begin")));
        assert!(Elf::parse(&own[..20]).is_err());
    }

    fn put(file: &mut [u8], at: usize, count: usize, number: u64) {
        file[at..at + count].copy_from_slice(&number.to_le_bytes()[..count]);
    }

    /// A file with one segment and one function.
    fn image() -> Vec<u8> {
        let mut file = vec![0; 512];
        file[..6].copy_from_slice(CLASS_64_LITTLE_ENDIAN);
        put(&mut file, 16, 2, EXECUTABLE);
        put(&mut file, 18, 2, X86_64);
        put(&mut file, 24, 8, 0x10_0010);
        for (place, count, number) in [(32, 8, 64), (54, 2, 56), (56, 2, 1)] {
            put(&mut file, place, count, number);
        }
        for (place, count, number) in
            [(0, 4, LOAD), (4, 4, 5), (8, 8, 0), (16, 8, 0x10_0000), (32, 8, 128), (40, 8, 5000)]
        {
            put(&mut file, 64 + place, count, number);
        }
        for (place, count, number) in [(40, 8, 128), (58, 2, 64), (60, 2, 2)] {
            put(&mut file, place, count, number);
        }
        for (place, count, number) in [(4, 4, SYMBOL_TABLE), (24, 8, 256), (32, 8, 24), (40, 4, 1)] {
            put(&mut file, 128 + place, count, number);
        }
        put(&mut file, 192 + 24, 8, 300);
        for (place, count, number) in [(0, 4, 1), (4, 1, u64::from(FUNCTION)), (8, 8, 0x10_0020), (16, 8, 7)]
        {
            put(&mut file, 256 + place, count, number);
        }
        file[301..309].copy_from_slice(b"schedule");
        file
    }

    #[test]
    fn parts_and_symbols_are_read() {
        let elf = Elf::parse(&image()).expect("an image");
        let segment =
            LoadSegment { address: 0x10_0000, length: 5000, bytes: 0..128, write: false, execute: true };
        assert_eq!((elf.entry, &elf.segments[..]), (0x10_0010, &[segment][..]));
        assert_eq!((elf.span(), elf.text()), (0x10_0000..0x10_2000, 0x10_0000..0x10_2000));
        assert_eq!(elf.symbols, [Symbol { address: 0x10_0020, size: 7, name: "schedule".to_string() }]);
    }

    #[test]
    fn no_number_leads_beyond_the_file() {
        let whole = image();
        for length in 0..whole.len() {
            // A part of a file is read or refused, but never panics.
            let _ = Elf::parse(&whole[..length]);
        }
        for at in [24, 32, 40, 64 + 8, 64 + 16, 64 + 32, 64 + 40, 128 + 24, 128 + 32, 192 + 24] {
            for number in [u64::MAX, u64::MAX / 2, 1 << 40] {
                let mut file = image();
                put(&mut file, at, 8, number);
                assert!(Elf::parse(&file).is_err(), "{number:#x} at {at}");
            }
        }
        let mut file = image();
        put(&mut file, 24, 8, 0x10_2000);
        assert!(Elf::parse(&file).is_err_and(|problem| problem.contains("none of its segments")));
    }
}
