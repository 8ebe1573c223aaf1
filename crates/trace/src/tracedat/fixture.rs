//! Small trace.dat files for tests, made by hand: every field can be set wrong.

use std::io::Write;

use fairlab_event::{Event, EventKind, Flags, Ns, Pid, TextFields};

use super::MAGIC;
use super::options::number;
use crate::ringbuffer::fill::{PageFill, RECORD_BYTES_MAX};
use crate::tracepoint::encoder::RecordEncoder;

/// A file in the making.
#[derive(Clone, Debug)]
pub(super) struct TraceDatFixture {
    pub(super) version: &'static str,
    /// `none`, `zlib` or `zstd`; version 7 only.
    pub(super) codec: &'static str,
    pub(super) header_page: String,
    pub(super) formats: Vec<(&'static str, String)>,
    pub(super) printk: &'static str,
    pub(super) cmdlines: &'static str,
    /// Number and content of options, in front of those that say where things are.
    pub(super) options: Vec<(u16, Vec<u8>)>,
    pub(super) instances: Vec<MadeInstance>,
}

/// A trace instance.
#[derive(Clone, Debug)]
pub(super) struct MadeInstance {
    pub(super) clock: &'static str,
    pub(super) page_bytes: u32,
    /// The pages of each CPU by its number.
    pub(super) cpus: Vec<(u32, Vec<u8>)>,
}

/// Records of `tick` events with these times and values, all reported by thread 7.
pub(super) fn ticks(times: &[(u64, u64)]) -> PageFill {
    let mut fill = PageFill::default();
    push_ticks(&mut fill, times);
    fill
}

pub(super) fn push_ticks(fill: &mut PageFill, times: &[(u64, u64)]) {
    let mut encoder = RecordEncoder::new(RECORD_BYTES_MAX);
    let mut record = Vec::new();
    for &(time, value) in times {
        encoder.encode(&tick(time, &format!("n={value}")), &mut record);
        fill.push(time, 0, &record);
    }
}

fn tick(time: u64, text: &str) -> Event<'_> {
    let kind = EventKind::Other { name: "tick", fields: TextFields::new(text) };
    let mut event = Event::new(Ns(time), fairlab_event::Cpu(0), kind);
    event.context.pid = Pid(7);
    event.context.flags = Flags::new(b"d..1.");
    event
}

impl Default for TraceDatFixture {
    /// Version 7, not compressed, one instance with nothing in it.
    fn default() -> TraceDatFixture {
        let mut encoder = RecordEncoder::new(RECORD_BYTES_MAX);
        encoder.encode(&tick(1, ""), &mut Vec::new());
        TraceDatFixture {
            version: "7",
            codec: "none",
            header_page: "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
                .to_string(),
            formats: encoder.formats(),
            printk: "",
            cmdlines: "7 worker\n",
            options: Vec::new(),
            instances: vec![MadeInstance { clock: "local", page_bytes: 4096, cpus: Vec::new() }],
        }
    }
}

impl TraceDatFixture {
    pub(super) fn of_version(version: &'static str) -> TraceDatFixture {
        TraceDatFixture { version, ..TraceDatFixture::default() }
    }

    /// Adds the pages of a CPU to the latest instance.
    pub(super) fn cpu(mut self, cpu: u32, fill: PageFill) -> TraceDatFixture {
        self.instances.last_mut().expect("an instance").cpus.push((cpu, fill.finish()));
        self
    }

    /// Adds an instance.
    pub(super) fn instance(mut self, clock: &'static str) -> TraceDatFixture {
        self.instances.push(MadeInstance { clock, page_bytes: 4096, cpus: Vec::new() });
        self
    }

    pub(super) fn option(mut self, number: u16, data: &[u8]) -> TraceDatFixture {
        self.options.push((number, data.to_vec()));
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = [MAGIC, self.version.as_bytes(), b"\0\0\x08", &4096_u32.to_le_bytes()].concat();
        if self.version == "6" {
            self.linear(&mut bytes);
        } else {
            self.sections(&mut bytes);
        }
        bytes
    }

    fn parts(&self) -> [(u16, Vec<u8>); 5] {
        let sized = |bytes: &[u8]| [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat();
        let page = sized(self.header_page.as_bytes());
        let header = [b"header_page\0", &page[..], b"header_event\0", &sized(b"type_len")].concat();
        let mut systems: Vec<&str> = self.formats.iter().map(|(system, _)| *system).collect();
        systems.dedup();
        let group = |name: &str| {
            let formats: Vec<&String> =
                self.formats.iter().filter(|(system, _)| *system == name).map(|(_, text)| text).collect();
            let mut group = (formats.len() as u32).to_le_bytes().to_vec();
            group.extend(formats.iter().flat_map(|text| sized(text.as_bytes())));
            group
        };
        systems.retain(|&system| system != "ftrace");
        let mut events = (systems.len() as u32).to_le_bytes().to_vec();
        for system in systems {
            events.extend([system.as_bytes(), b"\0", &group(system)].concat());
        }
        [
            (number::HEADER_INFO, header),
            (number::FTRACE_EVENTS, group("ftrace")),
            (number::EVENT_FORMATS, events),
            (
                number::PRINTK,
                [&(self.printk.len() as u32).to_le_bytes()[..], self.printk.as_bytes()].concat(),
            ),
            (number::CMDLINES, sized(self.cmdlines.as_bytes())),
        ]
    }

    fn linear(&self, bytes: &mut Vec<u8>) {
        let [header, ftrace, events, printk, cmdlines] = self.parts().map(|(_, part)| part);
        let symbols = b"\x03\0\0\0sym";
        for part in [&header, &ftrace, &events, &symbols.to_vec(), &printk, &cmdlines] {
            bytes.extend(part);
        }
        let cpus = self.instances.iter().flat_map(|instance| &instance.cpus);
        let cpus = cpus.map(|(cpu, _)| cpu + 1).max().unwrap_or(0);
        bytes.extend(cpus.to_le_bytes());
        bytes.extend(b"options  \0");
        for (number, data) in &self.options {
            put_option(bytes, *number, data);
        }
        // Those of further instances say where their tables are, which is known later.
        let places: Vec<usize> = (1..self.instances.len())
            .map(|_| {
                put_option(bytes, number::BUFFER, b"\0\0\0\0\0\0\0\0name\0");
                bytes.len() - 13
            })
            .collect();
        bytes.extend([0, 0]);
        for (index, instance) in self.instances.iter().enumerate() {
            if index > 0 {
                let table_at = (bytes.len() as u64).to_le_bytes();
                bytes[places[index - 1]..][..8].copy_from_slice(&table_at);
            }
            bytes.extend(b"flyrecord\0");
            let table_at = bytes.len();
            bytes.resize(table_at + 16 * cpus as usize, 0);
            if index == 0 && self.options.iter().any(|(number, _)| *number == number::TRACECLOCK) {
                let clock = format!("global [{}]\0", instance.clock);
                bytes.extend((clock.len() as u64).to_le_bytes());
                bytes.extend(clock.as_bytes());
            }
            for (cpu, pages) in &instance.cpus {
                bytes.resize(bytes.len().next_multiple_of(4096), 0);
                let entry = [(bytes.len() as u64).to_le_bytes(), (pages.len() as u64).to_le_bytes()].concat();
                bytes[table_at + 16 * *cpu as usize..][..16].copy_from_slice(&entry);
                bytes.extend(pages);
            }
        }
    }

    fn sections(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.codec.as_bytes(), b"\x001.0\0"].concat());
        let first_options_at = bytes.len();
        bytes.extend([0; 8]);
        let mut options = Vec::new();
        for (number, data) in &self.options {
            put_option(&mut options, *number, data);
        }
        for (number, part) in self.parts() {
            put_option(&mut options, number, &(bytes.len() as u64).to_le_bytes());
            let part = if self.codec == "none" { part } else { self.piece(&part) };
            self.put_section(bytes, number, part.len());
            bytes.extend(part);
        }
        // The first section of options goes before the records, the second behind them.
        let second_at = self.put_instances(&mut Vec::new(), bytes.len() + 16 + options.len() + 14).1;
        put_option(&mut options, number::DONE, &(second_at as u64).to_le_bytes());
        let options_at = (bytes.len() as u64).to_le_bytes();
        bytes[first_options_at..first_options_at + 8].copy_from_slice(&options_at);
        put_head(bytes, number::DONE, 0, options.len());
        bytes.extend(&options);
        let start = bytes.len();
        let mut records = Vec::new();
        let (mut options, end) = self.put_instances(&mut records, start);
        bytes.extend(records);
        assert_eq!((bytes.len(), end), (second_at, second_at));
        put_option(&mut options, number::DONE, &[0; 8]);
        put_head(bytes, number::DONE, 0, options.len());
        bytes.extend(options);
    }

    /// Puts the records of all instances, the first of which begins at `start` of the file; returns the options that
    /// say where they are, and where they end.
    fn put_instances(&self, records: &mut Vec<u8>, start: usize) -> (Vec<u8>, usize) {
        let mut options = Vec::new();
        for (index, instance) in self.instances.iter().enumerate() {
            let mut option = ((start + records.len()) as u64).to_le_bytes().to_vec();
            let name = if index == 0 { "" } else { "name" };
            option.extend([name.as_bytes(), b"\0", instance.clock.as_bytes(), b"\0"].concat());
            option.extend(instance.page_bytes.to_le_bytes());
            option.extend((instance.cpus.len() as u32).to_le_bytes());
            self.put_section(records, number::BUFFER, 0);
            for (cpu, pages) in &instance.cpus {
                let stored = if self.codec == "none" { pages.clone() } else { self.pieces(pages) };
                option.extend(cpu.to_le_bytes());
                option.extend(((start + records.len()) as u64).to_le_bytes());
                option.extend((stored.len() as u64).to_le_bytes());
                records.extend(stored);
            }
            put_option(&mut options, number::BUFFER, &option);
        }
        (options, start + records.len())
    }

    fn put_section(&self, bytes: &mut Vec<u8>, number: u16, size: usize) {
        put_head(bytes, number, u16::from(self.codec != "none"), size);
    }

    /// Pages in pieces of two.
    fn pieces(&self, pages: &[u8]) -> Vec<u8> {
        let pieces = pages.chunks(2 * 4096);
        let mut bytes = (pieces.len() as u32).to_le_bytes().to_vec();
        bytes.extend(pieces.flat_map(|piece| self.piece(piece)));
        bytes
    }

    fn piece(&self, content: &[u8]) -> Vec<u8> {
        let compressed = if self.codec == "zlib" {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(content).and_then(|()| encoder.finish()).expect("memory takes everything")
        } else {
            zstd::bulk::compress(content, 1).expect("memory takes everything")
        };
        let size = |length: usize| (length as u32).to_le_bytes();
        [&size(compressed.len())[..], &size(content.len()), &compressed].concat()
    }
}

fn put_option(bytes: &mut Vec<u8>, number: u16, data: &[u8]) {
    bytes.extend(number.to_le_bytes());
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend(data);
}

fn put_head(bytes: &mut Vec<u8>, number: u16, flags: u16, size: usize) {
    bytes.extend([number.to_le_bytes(), flags.to_le_bytes()].concat());
    bytes.extend([0; 4]);
    bytes.extend((size as u64).to_le_bytes());
}
