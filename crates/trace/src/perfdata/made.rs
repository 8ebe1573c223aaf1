//! Small `perf.data` files made to order, for tests.

/// `sample_type` of `perf sched record`: IP, TID, TIME, CPU, PERIOD, RAW, IDENTIFIER.
pub(super) const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
/// Bytes of its trailer: TID, TIME, CPU, IDENTIFIER.
const ID: u64 = 77;

/// The parts of a file.
#[derive(Clone, Debug)]
pub(super) struct Made {
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

impl Default for Made {
    /// No record yet; knows `sched_waking` (id 300) with a common header of 12 bytes and a dynamic `comm`.
    fn default() -> Made {
        let own = [
            ("__data_loc char[] comm", 12, 4, 0),
            ("pid_t pid", 16, 4, 1),
            ("int prio", 20, 4, 1),
            ("int target_cpu", 24, 4, 1),
        ];
        let fields = [&COMMON[..], &[("unsigned char common_preempt_lazy_count", 8, 1, 0)], &own].concat();
        Made {
            attrs: vec![(2, SAMPLE_TYPE, vec![ID])],
            records: Vec::new(),
            formats: vec![("sched", format("sched_waking", 300, &fields, "\"x\""))],
            features: Vec::new(),
        }
    }
}

impl Made {
    /// Adds a record of any type.
    pub(super) fn record(mut self, kind: u32, misc: u16, body: &[u8]) -> Made {
        let size = (8 + body.len()).next_multiple_of(8);
        self.records.extend(kind.to_le_bytes());
        self.records.extend(misc.to_le_bytes());
        self.records.extend((size as u16).to_le_bytes());
        self.records.extend(body);
        self.records.resize(self.records.len().next_multiple_of(8), 0);
        self
    }

    /// Adds a sample of CPU `cpu` with a tracepoint's record.
    pub(super) fn sample(self, time: u64, cpu: u32, raw: &[u8]) -> Made {
        let mut body =
            [ID, 0xffff_ffff_8000_0000, 5 << 32 | 4, time, u64::from(cpu), 1].map(u64::to_le_bytes).concat();
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
        self.record(9, 0, &body)
    }

    /// Adds a `sched_waking` of task `pid` called `comm`.
    pub(super) fn waking(self, time: u64, pid: u32, comm: &str) -> Made {
        let mut raw = vec![44, 1, 1, 2, 5, 0, 0, 0, 0, 0, 0, 0];
        raw.extend([28, 0, comm.len() as u8 + 1, 0]);
        for value in [pid, 120, 1] {
            raw.extend(value.to_le_bytes());
        }
        raw.extend(comm.as_bytes());
        raw.push(0);
        self.sample(time, 1, &raw)
    }

    /// Adds a record with a trailer.
    pub(super) fn with_trailer(self, kind: u32, misc: u16, body: &[u8], time: u64) -> Made {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(8), 0);
        body.extend([6 << 32 | 4, time, 3, ID].map(u64::to_le_bytes).concat());
        self.record(kind, misc, &body)
    }

    /// Adds COMM.
    pub(super) fn comm(self, time: u64, tid: u32, comm: &str) -> Made {
        let mut body = [4, tid].map(u32::to_le_bytes).concat();
        body.extend(comm.as_bytes());
        body.push(0);
        self.with_trailer(3, 0, &body, time)
    }

    /// Adds FORK.
    pub(super) fn fork(self, time: u64, tid: u32, parent: u32) -> Made {
        let body = [tid, parent, tid, parent, 0, 0].map(u32::to_le_bytes).concat();
        self.with_trailer(7, 0, &body, time)
    }

    /// Adds FINISHED_ROUND.
    pub(super) fn round(self) -> Made {
        self.record(68, 0, &[])
    }

    /// The file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        const ATTR: usize = 64 + 16;
        let ids_at = 104;
        let ids: Vec<u8> =
            self.attrs.iter().flat_map(|(.., ids)| ids).flat_map(|id| id.to_le_bytes()).collect();
        let attrs_at = ids_at + ids.len();
        let data_at = attrs_at + ATTR * self.attrs.len();
        let mut bits = 1_u64 << 1;
        for bit in &self.features {
            bits |= 1 << bit;
        }
        let sections =
            [attrs_at, ATTR * self.attrs.len(), data_at, self.records.len(), 0, 0].map(|part| part as u64);
        let mut bytes = b"PERFILE2".to_vec();
        bytes.extend([104, ATTR as u64].map(u64::to_le_bytes).concat());
        bytes.extend(sections.map(u64::to_le_bytes).concat());
        bytes.extend([bits, 0, 0, 0].map(u64::to_le_bytes).concat());
        bytes.extend(&ids);
        let mut id_at = ids_at as u64;
        for (kind, sample_type, ids) in &self.attrs {
            let mut attr = [*kind, 64].map(u32::to_le_bytes).concat();
            attr.extend([0, 1, *sample_type, 0, 1 << 18, 0, 0].map(u64::to_le_bytes).concat());
            attr.extend([id_at, 8 * ids.len() as u64].map(u64::to_le_bytes).concat());
            id_at += 8 * ids.len() as u64;
            bytes.extend(attr);
        }
        bytes.extend(&self.records);
        let formats = self.tracing_data();
        let formats_at = bytes.len() + 16 * (1 + self.features.len());
        bytes.extend([formats_at, formats.len()].map(|part| (part as u64).to_le_bytes()).concat());
        bytes.resize(formats_at, 0);
        bytes.extend(formats);
        bytes
    }

    fn tracing_data(&self) -> Vec<u8> {
        let mut bytes = b"\x17\x08\x44tracing0.6\0\x00\x08\x00\x10\x00\x00".to_vec();
        bytes.extend(b"header_page\0\0\0\0\0\0\0\0\0header_event\0\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend((self.formats.len() as u32).to_le_bytes());
        for (system, text) in &self.formats {
            bytes.extend(system.as_bytes());
            bytes.extend([0, 1, 0, 0, 0]);
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }
}
