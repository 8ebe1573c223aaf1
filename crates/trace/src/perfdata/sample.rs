//! Where the fields of a sample lie. Nothing in the record says it: it follows from `perf_event_attr`.
//!
//! Layout facts: `perf_event_open(2)`, include/uapi/linux/perf_event.h.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use fairlab_event::IdHasher;

use crate::endian::Endian;

/// `PERF_SAMPLE_*`, the bits up to RAW and those of the trailer.
pub(super) mod bit {
    pub(super) const IP: u64 = 1 << 0;
    pub(in crate::perfdata) const TID: u64 = 1 << 1;
    pub(in crate::perfdata) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(in crate::perfdata) const CPU: u64 = 1 << 7;
    pub(in crate::perfdata) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(in crate::perfdata) const RAW: u64 = 1 << 10;
    pub(in crate::perfdata) const IDENTIFIER: u64 = 1 << 16;
}

/// `PERF_FORMAT_*`.
mod read_format {
    pub(super) const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    pub(super) const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

/// `PERF_TYPE_TRACEPOINT`.
const TYPE_TRACEPOINT: u32 = 2;

/// What of a `perf_event_attr` decides how its records are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PerfEventAttr {
    /// Whether its samples carry tracepoint records.
    pub(super) tracepoint: bool,
    /// `sample_type`.
    sample_type: u64,
    /// `read_format`.
    read_format: u64,
    /// `sample_id_all`: records that are no samples end in a trailer.
    sample_id_all: bool,
    /// `context_switch`: switches are records of their own.
    context_switch: bool,
}

impl PerfEventAttr {
    /// The oldest `perf_event_attr`, `PERF_ATTR_SIZE_VER0`; later ones only add at the end.
    pub(super) const SIZE_MIN: usize = 64;

    /// Reads the first fields; `None` when there are fewer bytes than the oldest kernel wrote.
    pub(super) fn parse(bytes: &[u8], endian: Endian) -> Option<PerfEventAttr> {
        // Bits 18 and 26 of the flags. They are bit fields, which big-endian machines fill from the other end of each byte.
        let [flags, later] = [*bytes.get(42)?, *bytes.get(43)?];
        let third = if endian == Endian::Little { 1 << 2 } else { 1 << 5 };
        Some(PerfEventAttr {
            tracepoint: endian.u32(bytes, 0)? == TYPE_TRACEPOINT,
            sample_type: endian.u64(bytes, 24)?,
            read_format: endian.u64(bytes, 32)?,
            sample_id_all: flags & third != 0,
            context_switch: later & third != 0,
        })
    }

    /// How many bytes the attr itself has, of those that begin with it.
    pub(super) fn own_size(bytes: &[u8], endian: Endian) -> usize {
        // The oldest kernels left it 0.
        endian
            .u32(bytes, 4)
            .map_or(PerfEventAttr::SIZE_MIN, |size| (size as usize).max(PerfEventAttr::SIZE_MIN))
    }

    /// Whether its samples carry a time stamp.
    pub(super) fn has_time(&self) -> bool {
        self.sample_type & bit::TIME != 0
    }

    /// Whether there are records of switches that say when and of whom (`--switch-events`).
    pub(super) fn has_switches(&self) -> bool {
        let said = bit::TID | bit::TIME;
        self.context_switch && self.sample_id_all && self.sample_type & said == said
    }

    /// Whether its samples carry a tracepoint's record.
    pub(super) fn has_raw(&self) -> bool {
        self.sample_type & bit::RAW != 0
    }
}

/// Where the fields of one kind of sample lie, in bytes from the end of the record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleLayout {
    /// Whether the raw part is a tracepoint's record.
    pub(super) tracepoint: bool,
    id: Option<usize>,
    tid: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
    /// The end of the fields of fixed width; READ, CALLCHAIN and RAW follow.
    fixed_end: usize,
    sample_type: u64,
    read_format: u64,
}

/// Who was running where, as samples and trailers tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleTask {
    /// Process id; −1 when not recorded.
    pub(super) pid: i32,
    /// Thread id; −1 when not recorded.
    pub(super) tid: i32,
    /// CPU; 0 when not recorded.
    pub(super) cpu: u32,
}

const WORD: usize = 8;

impl SampleLayout {
    fn new(attr: &PerfEventAttr) -> SampleLayout {
        let mut at = 0;
        let mut place = |bit: u64| {
            let here = at;
            (attr.sample_type & bit != 0).then(|| {
                at += WORD;
                here
            })
        };
        let identifier = place(bit::IDENTIFIER);
        place(bit::IP);
        let tid = place(bit::TID);
        let time = place(bit::TIME);
        place(bit::ADDR);
        let id = place(bit::ID);
        place(bit::STREAM_ID);
        let cpu = place(bit::CPU);
        place(bit::PERIOD);
        SampleLayout {
            tracepoint: attr.tracepoint,
            id: identifier.or(id),
            tid,
            time,
            cpu,
            fixed_end: at,
            sample_type: attr.sample_type,
            read_format: attr.read_format,
        }
    }

    /// Who and where; `None` when the sample is too short.
    #[inline]
    pub(super) fn origin(&self, body: &[u8], endian: Endian) -> Option<SampleTask> {
        let (pid, tid) = match self.tid {
            Some(at) => (endian.u32(body, at)? as i32, endian.u32(body, at + 4)? as i32),
            None => (-1, -1),
        };
        let cpu = match self.cpu {
            Some(at) => endian.u32(body, at)?,
            None => 0,
        };
        Some(SampleTask { pid, tid, cpu })
    }

    /// The tracepoint's record; `None` when there is none or the sample is too short.
    #[inline]
    pub(super) fn raw<'b>(&self, body: &'b [u8], endian: Endian) -> Option<&'b [u8]> {
        if self.sample_type & bit::RAW == 0 {
            return None;
        }
        let mut at = self.fixed_end;
        if self.sample_type & bit::READ != 0 {
            at = at.checked_add(self.read_size(body, at, endian)?)?;
        }
        if self.sample_type & bit::CALLCHAIN != 0 {
            let count = usize::try_from(endian.u64(body, at)?).ok()?;
            at = at.checked_add(count.checked_add(1)?.checked_mul(WORD)?)?;
        }
        let size = endian.u32(body, at)? as usize;
        body.get(at + size_of::<u32>()..)?.get(..size)
    }

    /// Bytes of the READ part at `at`.
    fn read_size(&self, body: &[u8], at: usize, endian: Endian) -> Option<usize> {
        let has = |bit: u64| usize::from(self.read_format & bit != 0);
        let times = has(read_format::TOTAL_TIME_ENABLED) + has(read_format::TOTAL_TIME_RUNNING);
        let value = 1 + has(read_format::ID) + has(read_format::LOST);
        if self.read_format & read_format::GROUP == 0 {
            return Some((times + value) * WORD);
        }
        let count = usize::try_from(endian.u64(body, at)?).ok()?;
        count.checked_mul(value)?.checked_add(1 + times)?.checked_mul(WORD)
    }
}

/// Where the fields of the trailer lie that `sample_id_all` adds to other records, in bytes from the record's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TrailerLayout {
    tid: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
}

impl TrailerLayout {
    fn new(attr: &PerfEventAttr) -> TrailerLayout {
        let mut back = 0;
        let mut place = |bit: u64| {
            (attr.sample_type & bit != 0).then(|| {
                back += WORD;
                back
            })
        };
        place(bit::IDENTIFIER);
        let cpu = place(bit::CPU);
        place(bit::STREAM_ID);
        place(bit::ID);
        let time = place(bit::TIME);
        let tid = place(bit::TID);
        TrailerLayout { tid, time, cpu }
    }
}

/// The layouts of a file: of each sample by its id, and of the trailers.
#[derive(Clone, Debug)]
pub(super) struct Layouts {
    endian: Endian,
    /// Different ones only.
    samples: Vec<SampleLayout>,
    /// The layout's place in `samples`, by event id.
    by_id: HashMap<u64, u16, BuildHasherDefault<IdHasher>>,
    /// The same for ids that lie together, as a kernel gives them: from the first of them on, `NO_LAYOUT` where none is.
    first_id: u64,
    near: Vec<u16>,
    /// Where the id lies, when all layouts agree.
    id_at: Option<usize>,
    /// Where the time lies, when all layouts agree.
    time_at: Option<usize>,
    trailer: Option<TrailerLayout>,
}

/// More layouts in one file are garbage; perf writes one or two.
const LAYOUTS_MAX: usize = 1024;
/// Ids farther from the first are looked up: a kernel gives one to each event on each CPU, one after another.
const NEAR_MAX: usize = 1 << 14;
const NO_LAYOUT: u16 = u16::MAX;

impl Layouts {
    /// The layouts of `attrs`, each with the ids of its events. `None` when there is no attr at all.
    pub(super) fn new(attrs: &[(PerfEventAttr, Vec<u64>)], endian: Endian) -> Option<Layouts> {
        let (first, _) = attrs.first()?;
        let trailer = first.sample_id_all.then(|| TrailerLayout::new(first));
        let mut layouts = Layouts {
            endian,
            samples: Vec::new(),
            by_id: HashMap::default(),
            first_id: 0,
            near: Vec::new(),
            id_at: None,
            time_at: None,
            trailer,
        };
        for (attr, ids) in attrs {
            let layout = SampleLayout::new(attr);
            let index =
                layouts.samples.iter().position(|known| *known == layout).unwrap_or(layouts.samples.len());
            if index == LAYOUTS_MAX {
                continue;
            }
            if index == layouts.samples.len() {
                layouts.samples.push(layout);
            }
            layouts.by_id.extend(ids.iter().map(|&id| (id, index as u16)));
        }
        layouts.place_near(attrs);
        let common = |place: fn(&SampleLayout) -> Option<usize>| {
            let first = place(layouts.samples.first()?)?;
            layouts.samples.iter().all(|layout| place(layout) == Some(first)).then_some(first)
        };
        layouts.id_at = common(|layout| layout.id);
        layouts.time_at = common(|layout| layout.time);
        Some(layouts)
    }

    /// The layout of a sample; `None` when its id is not the file's.
    #[inline]
    pub(super) fn sample(&self, body: &[u8]) -> Option<&SampleLayout> {
        if let [layout] = self.samples.as_slice() {
            return Some(layout);
        }
        let id = self.endian.u64(body, self.id_at?)?;
        let near = usize::try_from(id.wrapping_sub(self.first_id)).ok().and_then(|at| self.near.get(at));
        match near {
            Some(&index) => self.samples.get(usize::from(index)),
            None => self.samples.get(usize::from(*self.by_id.get(&id)?)),
        }
    }

    /// Fills the table of ids that lie together.
    fn place_near(&mut self, attrs: &[(PerfEventAttr, Vec<u64>)]) {
        let ids = || attrs.iter().flat_map(|(_, ids)| ids.iter().copied());
        self.first_id = ids().min().unwrap_or(0);
        for id in ids() {
            let (at, index) = (id - self.first_id, self.by_id.get(&id));
            if let (Ok(at @ ..NEAR_MAX), Some(&index)) = (usize::try_from(at), index) {
                if self.near.len() <= at {
                    self.near.resize(at + 1, NO_LAYOUT);
                }
                self.near[at] = index;
            }
        }
    }

    /// The time of a sample.
    #[inline(always)]
    pub(super) fn sample_time(&self, body: &[u8]) -> Option<u64> {
        let at = match self.time_at {
            Some(at) => at,
            None => self.sample(body)?.time?,
        };
        self.endian.u64(body, at)
    }

    /// The time of a record that is no sample.
    pub(super) fn trailer_time(&self, body: &[u8]) -> Option<u64> {
        let back = self.trailer?.time?;
        self.endian.u64(body, body.len().checked_sub(back)?)
    }

    /// Whether records that are no samples say on which CPU they came about.
    pub(super) fn tells_cpus(&self) -> bool {
        self.trailer.is_some_and(|trailer| trailer.cpu.is_some())
    }

    /// Who and where of a record that is no sample; all unknown without a trailer.
    pub(super) fn trailer_origin(&self, body: &[u8]) -> SampleTask {
        let word = |back: Option<usize>, skip: usize| {
            let at = body.len().checked_sub(back?)?;
            self.endian.u32(body, at + skip)
        };
        let id = |skip| self.trailer.and_then(|trailer| word(trailer.tid, skip)).map_or(-1, |id| id as i32);
        let cpu = self.trailer.and_then(|trailer| word(trailer.cpu, 0)).unwrap_or(0);
        SampleTask { pid: id(0), tid: id(4), cpu }
    }
}

/// `PID_MAX_LIMIT`: no kernel gives higher ids, so garbage cannot fill memory with names.
pub(super) const TID_MAX: i32 = 1 << 22;

#[cfg(test)]
mod tests {
    use super::*;

    const PERF_SCHED: u64 =
        bit::IP | bit::TID | bit::TIME | bit::CPU | bit::PERIOD | bit::RAW | bit::IDENTIFIER;

    fn attr(sample_type: u64, read_format: u64) -> PerfEventAttr {
        PerfEventAttr {
            tracepoint: true,
            sample_type,
            read_format,
            sample_id_all: true,
            context_switch: false,
        }
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn an_attr_is_read_in_both_byte_orders() {
        let mut bytes = [0; PerfEventAttr::SIZE_MIN];
        bytes[..4].copy_from_slice(&2_u32.to_le_bytes());
        bytes[24..32].copy_from_slice(&PERF_SCHED.to_le_bytes());
        bytes[40..48].copy_from_slice(&(1_u64 << 18).to_le_bytes());
        assert_eq!(PerfEventAttr::parse(&bytes, Endian::Little), Some(attr(PERF_SCHED, 0)));
        assert_eq!(PerfEventAttr::parse(&bytes[..40], Endian::Little), None);
        bytes[..4].copy_from_slice(&2_u32.to_be_bytes());
        bytes[24..32].copy_from_slice(&PERF_SCHED.to_be_bytes());
        bytes[40..48].copy_from_slice(&(1_u64 << (63 - 18)).to_be_bytes());
        assert_eq!(PerfEventAttr::parse(&bytes, Endian::Big), Some(attr(PERF_SCHED, 0)));
    }

    #[test]
    fn fields_lie_where_the_bits_say() {
        let layout = SampleLayout::new(&attr(PERF_SCHED, 0));
        assert_eq!((layout.id, layout.tid, layout.time, layout.cpu), (Some(0), Some(16), Some(24), Some(32)));
        let mut body = words(&[77, 0, 5 << 32 | 4, 1000, 3, 1]);
        body.extend([2, 0, 0, 0, b'h', b'i', 0, 0]);
        assert_eq!(layout.origin(&body, Endian::Little), Some(SampleTask { pid: 4, tid: 5, cpu: 3 }));
        assert_eq!(layout.raw(&body, Endian::Little), Some(&b"hi"[..]));
        assert_eq!(layout.raw(&body[..50], Endian::Little), None);
        assert_eq!(layout.origin(&body[..34], Endian::Little), None);
    }

    #[test]
    fn the_raw_part_is_found_behind_parts_of_any_length() {
        let everything = bit::READ | bit::CALLCHAIN | bit::RAW;
        let group =
            read_format::GROUP | read_format::ID | read_format::TOTAL_TIME_ENABLED | read_format::LOST;
        let layout = SampleLayout::new(&attr(everything, group));
        let mut body = words(&[2, 9, 1, 1, 1, 2, 2, 2, 3, 0xa, 0xb, 0xc]);
        body.extend([1, 0, 0, 0, b'x', 0, 0, 0]);
        assert_eq!(layout.raw(&body, Endian::Little), Some(&b"x"[..]));
        let single = SampleLayout::new(&attr(everything, read_format::ID | read_format::TOTAL_TIME_RUNNING));
        let mut body = words(&[1, 9, 7, 0]);
        body.extend([1, 0, 0, 0, b'y', 0, 0, 0]);
        assert_eq!(single.raw(&body, Endian::Little), Some(&b"y"[..]));
        for count in [u64::MAX, u64::MAX / 8, 1 << 60, 4] {
            assert_eq!(layout.raw(&words(&[count, 0, 0, 0]), Endian::Little), None);
            assert_eq!(single.raw(&words(&[1, 9, 7, count]), Endian::Little), None);
        }
    }

    #[test]
    fn samples_are_told_apart_by_id_and_trailers_read_from_the_end() {
        let without_period = PERF_SCHED & !bit::PERIOD;
        let attrs = [(attr(PERF_SCHED, 0), vec![10, 11]), (attr(without_period, 0), vec![12])];
        let layouts = Layouts::new(&attrs, Endian::Little).expect("layouts");
        let body = |id| words(&[id, 0, 0, 1000, 0, 1, 0]);
        let far =
            Layouts::new(&[attrs[0].clone(), (attrs[1].0, vec![15, 1 << 20, u64::MAX])], Endian::Little);
        let far = far.expect("layouts");
        for (id, end) in [
            (9, None),
            (10, Some(48)),
            (12, None),
            (15, Some(40)),
            (16, None),
            (1 << 20, Some(40)),
            (u64::MAX, Some(40)),
            (0, None),
        ] {
            assert_eq!(far.sample(&body(id)).map(|layout| layout.fixed_end), end, "{id}");
        }
        assert_eq!(layouts.sample(&body(11)).map(|layout| layout.fixed_end), Some(48));
        assert_eq!(layouts.sample(&body(12)).map(|layout| layout.fixed_end), Some(40));
        assert_eq!(layouts.sample(&body(13)), None);
        assert_eq!(layouts.sample_time(&body(13)), Some(1000));
        let trailer = words(&[0xdead, 6 << 32 | 5, 2000, 1, 10]);
        assert_eq!(layouts.trailer_time(&trailer), Some(2000));
        assert_eq!(layouts.trailer_origin(&trailer), SampleTask { pid: 5, tid: 6, cpu: 1 });
        assert_eq!(layouts.trailer_time(&trailer[..8]), None);
        assert_eq!(layouts.trailer_origin(&[]), SampleTask { pid: -1, tid: -1, cpu: 0 });
        assert!(Layouts::new(&[], Endian::Little).is_none());
    }
}
