//! Small `perf.data` files made to order, for tests: in a file or a pipe, compressed or not, of either byte order.

use std::io::Write;

/// `sample_type` of `perf sched record`: IP, TID, TIME, CPU, PERIOD, RAW, IDENTIFIER.
pub(super) const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
/// The type of an attr without samples (`PERF_TYPE_SOFTWARE`), which asks for records of switches here.
pub(super) const SWITCHES: u32 = 1;
/// Bytes of its trailer: TID, TIME, CPU, IDENTIFIER.
const ID: u64 = 77;

/// The parts of a file.
#[derive(Clone, Debug)]
pub(super) struct PerfDataFixture {
    /// Whether the recording machine wrote the high end of numbers first. Set before anything is added.
    pub(super) big: bool,
    /// Whether it was written to a pipe.
    pub(super) pipe: bool,
    /// Type, sample type, ids; `sample_id_all` is always set.
    pub(super) attrs: Vec<(u32, u64, Vec<u64>)>,
    /// The data section.
    pub(super) records: Vec<u8>,
    /// System and text.
    pub(super) formats: Vec<(&'static str, String)>,
    /// Feature bits besides TRACING_DATA, whose sections are empty.
    pub(super) features: Vec<u32>,
}

/// A `format` file; each field is declaration, offset, size, signed.
pub(super) fn format(name: &str, id: u16, fields: &[(&str, usize, usize, u8)], print_format: &str) -> String {
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    for (declaration, offset, size, signed) in fields {
        text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    text + "\nprint fmt: " + print_format + "\n"
}

/// The four fields that begin every record.
pub(super) const COMMON: [(&str, usize, usize, u8); 4] = [
    ("unsigned short common_type", 0, 2, 0),
    ("unsigned char common_flags", 2, 1, 0),
    ("unsigned char common_preempt_count", 3, 1, 0),
    ("int common_pid", 4, 4, 1),
];

impl Default for PerfDataFixture {
    /// No record yet; knows `sched_waking` (id 300) with a common header of 12 bytes and a dynamic `comm`.
    fn default() -> PerfDataFixture {
        let own = [
            ("__data_loc char[] comm", 12, 4, 0),
            ("pid_t pid", 16, 4, 1),
            ("int prio", 20, 4, 1),
            ("int target_cpu", 24, 4, 1),
        ];
        let fields = [&COMMON[..], &[("unsigned char common_preempt_lazy_count", 8, 1, 0)], &own].concat();
        PerfDataFixture {
            big: false,
            pipe: false,
            attrs: vec![(2, SAMPLE_TYPE, vec![ID])],
            records: Vec::new(),
            formats: vec![("sched", format("sched_waking", 300, &fields, "\"x\""))],
            features: Vec::new(),
        }
    }
}

impl PerfDataFixture {
    fn u16(&self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32s(&self, values: &[u32]) -> Vec<u8> {
        let bytes = |value: &u32| if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        values.iter().flat_map(bytes).collect()
    }

    fn u64s(&self, values: &[u64]) -> Vec<u8> {
        let bytes = |value: &u64| if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        values.iter().flat_map(bytes).collect()
    }

    /// A record of any type, as it is.
    fn bytes_of_record(&self, kind: u32, misc: u16, body: &[u8], size: usize) -> Vec<u8> {
        let mut bytes = self.u32s(&[kind]);
        bytes.extend(self.u16(misc));
        bytes.extend(self.u16(size as u16));
        bytes.extend(body);
        bytes.resize(size, 0);
        bytes
    }

    /// Adds a record of any type.
    pub(super) fn record(mut self, kind: u32, misc: u16, body: &[u8]) -> PerfDataFixture {
        let size = (8 + body.len()).next_multiple_of(8);
        self.records.extend(self.bytes_of_record(kind, misc, body, size));
        self
    }

    /// Adds a sample of CPU `cpu` with a tracepoint's record.
    pub(super) fn sample(self, time: u64, cpu: u32, raw: &[u8]) -> PerfDataFixture {
        let mut body = self.u64s(&[ID, 0xffff_ffff_8000_0000]);
        body.extend(self.u32s(&[4, 5]));
        body.extend(self.u64s(&[time]));
        body.extend(self.u32s(&[cpu, 0]));
        body.extend(self.u64s(&[1]));
        body.extend(self.u32s(&[raw.len() as u32]));
        body.extend(raw);
        self.record(9, 0, &body)
    }

    /// Adds a `sched_waking` of task `pid` called `comm`.
    pub(super) fn waking(self, time: u64, pid: u32, comm: &str) -> PerfDataFixture {
        let mut raw = self.u16(300).to_vec();
        raw.extend([1, 2]);
        raw.extend(self.u32s(&[5, 0, 28 | (comm.len() as u32 + 1) << 16, pid, 120, 1]));
        raw.extend(comm.as_bytes());
        raw.push(0);
        self.sample(time, 1, &raw)
    }

    /// Adds a record with a trailer.
    pub(super) fn with_trailer(self, kind: u32, misc: u16, body: &[u8], time: u64) -> PerfDataFixture {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(8), 0);
        body.extend(self.u32s(&[4, 6]));
        body.extend(self.u64s(&[time]));
        body.extend(self.u32s(&[3, 0]));
        body.extend(self.u64s(&[ID]));
        self.record(kind, misc, &body)
    }

    /// Adds COMM.
    pub(super) fn comm(self, time: u64, tid: u32, comm: &str) -> PerfDataFixture {
        let mut body = self.u32s(&[4, tid]);
        body.extend(comm.as_bytes());
        body.push(0);
        self.with_trailer(3, 0, &body, time)
    }

    /// Adds FORK.
    pub(super) fn fork(self, time: u64, tid: u32, parent: u32) -> PerfDataFixture {
        let body = self.u32s(&[tid, parent, tid, parent, 0, 0]);
        self.with_trailer(7, 0, &body, time)
    }

    /// Adds FINISHED_ROUND.
    pub(super) fn round(self) -> PerfDataFixture {
        self.record(68, 0, &[])
    }

    /// The same, what there is so far in compressed records: a stream in pieces of `piece` bytes, whose records are
    /// padded and say their size if `padded`.
    pub(super) fn compressed(mut self, piece: usize, padded: bool) -> PerfDataFixture {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory");
        let mut stream = Vec::new();
        for part in std::mem::take(&mut self.records).chunks(piece) {
            encoder.write_all(part).and_then(|()| encoder.flush()).expect("memory");
            let packed = std::mem::take(encoder.get_mut());
            let body = if padded { [self.u64s(&[packed.len() as u64]), packed].concat() } else { packed };
            let size = if padded { (8 + body.len()).next_multiple_of(8) } else { 8 + body.len() };
            stream.extend(self.bytes_of_record(if padded { 83 } else { 81 }, 0, &body, size));
        }
        self.records = stream;
        self.features.push(27);
        self
    }

    /// The file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        if self.pipe { self.bytes_of_pipe() } else { self.bytes_of_file() }
    }

    fn magic(&self) -> &'static [u8] {
        if self.big { b"2ELIFREP" } else { b"PERFILE2" }
    }

    /// An attr of `size` bytes.
    fn attr(&self, kind: u32, sample_type: u64, size: u32) -> Vec<u8> {
        let mut attr = self.u32s(&[kind, size]);
        let bit = |bit: u32| if self.big { 1 << (63 - bit) } else { 1 << bit };
        let flags = bit(18) | if kind == SWITCHES { bit(26) } else { 0 };
        attr.extend(self.u64s(&[0, 1, sample_type, 0, flags, 0, 0]));
        attr.resize(size as usize, 0);
        attr
    }

    fn bytes_of_pipe(&self) -> Vec<u8> {
        let mut bytes = [self.magic(), &self.u64s(&[16])].concat();
        for (kind, sample_type, ids) in &self.attrs {
            let body = [self.attr(*kind, *sample_type, 112), self.u64s(ids)].concat();
            bytes.extend(self.bytes_of_record(64, 0, &body, 8 + body.len()));
        }
        if !self.formats.is_empty() {
            let formats = self.tracing_data();
            bytes.extend(self.bytes_of_record(66, 0, &self.u32s(&[formats.len() as u32]), 12));
            bytes.extend(&formats);
            bytes.resize(bytes.len() + formats.len().next_multiple_of(8) - formats.len(), 0);
        }
        bytes.extend(&self.records);
        bytes
    }

    fn bytes_of_file(&self) -> Vec<u8> {
        const ATTR: usize = 64 + 16;
        let ids_at = 104;
        let ids: Vec<u8> = self.attrs.iter().flat_map(|(.., ids)| self.u64s(ids)).collect();
        let attrs_at = ids_at + ids.len();
        let data_at = attrs_at + ATTR * self.attrs.len();
        let mut bits = 1_u64 << 1;
        for bit in &self.features {
            bits |= 1 << bit;
        }
        let sections =
            [attrs_at, ATTR * self.attrs.len(), data_at, self.records.len(), 0, 0].map(|part| part as u64);
        let mut bytes = [self.magic(), &self.u64s(&[104, ATTR as u64]), &self.u64s(&sections)].concat();
        bytes.extend(self.u64s(&[bits, 0, 0, 0]));
        bytes.extend(&ids);
        let mut id_at = ids_at as u64;
        for (kind, sample_type, ids) in &self.attrs {
            bytes.extend(self.attr(*kind, *sample_type, 64));
            bytes.extend(self.u64s(&[id_at, 8 * ids.len() as u64]));
            id_at += 8 * ids.len() as u64;
        }
        bytes.extend(&self.records);
        let formats = self.tracing_data();
        let formats_at = bytes.len() + 16 * (1 + self.features.len());
        bytes.extend(self.u64s(&[formats_at as u64, formats.len() as u64]));
        bytes.resize(formats_at, 0);
        bytes.extend(formats);
        bytes
    }

    fn tracing_data(&self) -> Vec<u8> {
        let mut bytes = b"\x17\x08\x44tracing0.6\0".to_vec();
        bytes.extend([u8::from(self.big), 8]);
        bytes.extend(self.u32s(&[4096]));
        bytes.extend(b"header_page\0\0\0\0\0\0\0\0\0header_event\0\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend(self.u32s(&[self.formats.len() as u32]));
        for (system, text) in &self.formats {
            bytes.extend(system.as_bytes());
            bytes.push(0);
            bytes.extend(self.u32s(&[1]));
            bytes.extend(self.u64s(&[text.len() as u64]));
            bytes.extend(text.as_bytes());
        }
        bytes
    }
}
