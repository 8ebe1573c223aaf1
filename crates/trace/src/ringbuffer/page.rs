//! One page: a time stamp, the length of what follows, and records whose times count on from the stamp.
//!
//! A record begins with a word of 5 bits `type_len` and 27 bits `time_delta`. `type_len` 1…28 is the length of the data
//! in words; 0 says that the length follows; 29 is padding, 30 a longer delta, 31 an absolute time.
//!
//! Must not know: other pages, what records mean.

use std::ops::Range;

use crate::endian::Endian;
use crate::tracepoint::format::FormatField;

/// Where things lie in a page, as the kernel's `events/header_page` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageFormat {
    endian: Endian,
    commit_at: usize,
    /// Bytes of a `long` of that kernel: 4 or 8.
    commit_size: usize,
    data_at: usize,
    size: usize,
}

/// Bits of `commit` that are the length.
const LENGTH_MASK: u64 = (1 << 27) - 1;
/// Events were missed before this page …
pub(super) const MISSED: u64 = 1 << 31;
/// … and how many stands behind its data.
pub(super) const MISSED_COUNTED: u64 = 1 << 30;

/// `type_len` of what is no data.
pub(super) const PADDING: u32 = 29;
pub(super) const TIME_EXTEND: u32 = 30;
pub(super) const TIME_STAMP: u32 = 31;
/// Bits of `time_delta` and of `type_len`.
pub(super) const DELTA_BITS: u32 = 27;
pub(super) const TYPE_BITS: u32 = 5;
/// Absolute times have 59 bits; the others are those of the time before.
pub(super) const ABSOLUTE_BITS: u32 = 59;

/// Pages of other sizes are garbage: the smallest page of any machine, the largest sub-buffer that a kernel gives.
const SIZE_MIN: usize = 1 << 10;
const SIZE_MAX: usize = 1 << 22;

impl PageFormat {
    /// The format of a 64-bit kernel with pages of `size` bytes.
    pub(crate) const fn of_64_bit(endian: Endian, size: usize) -> PageFormat {
        PageFormat { endian, commit_at: 8, commit_size: 8, data_at: 16, size }
    }

    /// Reads `events/header_page`; `None` when it is garbage.
    pub(crate) fn parse(endian: Endian, header_page: &str) -> Option<PageFormat> {
        let field = |name: &str| {
            header_page
                .lines()
                .filter_map(|line| FormatField::parse(line.trim()))
                .find(|field| field.name == name)
        };
        let (time, commit, data) = (field("timestamp")?, field("commit")?, field("data")?);
        if (time.offset, time.size) != (0, 8) || !matches!(commit.size, 4 | 8) {
            return None;
        }
        let format = PageFormat {
            endian,
            commit_at: commit.offset,
            commit_size: commit.size,
            data_at: data.offset,
            size: 0,
        };
        format.with_size(data.offset.checked_add(data.size)?)
    }

    /// The same with pages of `size` bytes; `None` when no page can be that size.
    pub(crate) fn with_size(self, size: usize) -> Option<PageFormat> {
        let fits = self.commit_at.checked_add(self.commit_size)? <= size && self.data_at < size;
        let usual = (SIZE_MIN..=SIZE_MAX).contains(&size);
        (fits && usual).then_some(PageFormat { size, ..self })
    }

    /// Bytes of a page.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    fn long(&self, page: &[u8], at: usize) -> Option<u64> {
        match self.commit_size {
            4 => self.endian.u32(page, at).map(u64::from),
            _ => self.endian.u64(page, at),
        }
    }
}

/// What a page says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHead {
    /// The time of the first record.
    pub(crate) time: u64,
    /// Whether events were missed before it, and how many if it is known.
    pub(crate) missed: Option<Option<u64>>,
    /// Whether the page is cut: its data goes on behind the bytes that there are.
    pub(crate) cut: bool,
    end: usize,
    empty: bool,
}

/// The bytes are no page: it says that it is longer than pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CorruptPage;

/// A place within a page, and the time there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageCursor {
    at: usize,
    end: usize,
    /// The time of the last record.
    pub(crate) time: u64,
    /// How many time extends of zero length the last record has before it, counted from the last change of time. The
    /// kernel writes none on purpose; Fairlab's writer tells with them which of two events of different CPUs and the
    /// same time came first.
    pub(crate) rank: u32,
}

impl PageHead {
    /// Reads the head of `page`, of which the last one of a file may be cut.
    pub(crate) fn read(format: &PageFormat, page: &[u8]) -> Result<PageHead, CorruptPage> {
        let time = format.endian.u64(page, 0).ok_or(CorruptPage)?;
        let commit = format.long(page, format.commit_at).ok_or(CorruptPage)?;
        let end = format.data_at + (commit & LENGTH_MASK) as usize;
        // The upper half of a `long` of 64 bits is empty, or full where the kernel added the flags as a negative `int`.
        let upper = commit >> u32::BITS;
        if end > format.size || (upper != 0 && (upper != u64::from(u32::MAX) || commit & MISSED == 0)) {
            return Err(CorruptPage);
        }
        let missed = (commit & MISSED != 0).then(|| match commit & MISSED_COUNTED {
            0 => None,
            _ if end + format.commit_size > format.size => None,
            _ => format.long(page, end),
        });
        Ok(PageHead {
            time,
            missed,
            cut: end > page.len(),
            end: end.min(page.len()),
            empty: end == format.data_at,
        })
    }

    /// Whether it says nothing at all: a page that was never used.
    pub(crate) fn is_empty(&self) -> bool {
        self.empty && self.missed.is_none()
    }
}

impl PageCursor {
    /// Goes to the beginning of `page`, behind time extends of zero length. The rank goes on when the page's time is
    /// that of the record before.
    pub(crate) fn open(&mut self, format: &PageFormat, head: &PageHead, page: &[u8]) {
        if head.time != self.time {
            self.rank = 0;
        }
        *self = PageCursor { at: format.data_at, end: head.end, time: head.time, rank: self.rank };
        let nothing = |at| {
            let extend = match format.endian {
                Endian::Little => TIME_EXTEND,
                Endian::Big => TIME_EXTEND << DELTA_BITS,
            };
            let word = |at| format.endian.u32(page, at);
            (word(at), word(at + size_of::<u32>())) == (Some(extend), Some(0))
        };
        const EXTEND_BYTES: usize = 2 * size_of::<u32>();
        while self.at + EXTEND_BYTES <= self.end && nothing(self.at) {
            self.rank = self.rank.saturating_add(1);
            self.at += EXTEND_BYTES;
        }
    }

    /// Goes to the end of the page.
    pub(crate) fn close(&mut self) {
        self.at = self.end;
    }

    /// The place of the next record's data in `page`; `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self, endian: Endian, page: &[u8]) -> Result<Option<Range<usize>>, CorruptPage> {
        while self.at < self.end {
            let word = endian.u32(page, self.at).ok_or(CorruptPage)?;
            let (type_len, delta) = match endian {
                Endian::Little => (word & ((1 << TYPE_BITS) - 1), u64::from(word >> TYPE_BITS)),
                Endian::Big => (word >> DELTA_BITS, u64::from(word & ((1 << DELTA_BITS) - 1))),
            };
            let body = self.at + size_of::<u32>();
            let data = match type_len {
                1..PADDING => body..body + type_len as usize * size_of::<u32>(),
                0 => {
                    let length = endian.u32(page, body).ok_or(CorruptPage)? as usize;
                    let start = body + size_of::<u32>();
                    // The length counts its own word.
                    let length = length.checked_sub(size_of::<u32>()).ok_or(CorruptPage)?;
                    start..start.checked_add(length.next_multiple_of(size_of::<u32>())).ok_or(CorruptPage)?
                }
                _ => {
                    self.pass(type_len, delta, endian, page, body)?;
                    continue;
                }
            };
            if data.end > self.end {
                return Err(CorruptPage);
            }
            if delta != 0 {
                self.time = self.time.wrapping_add(delta);
                self.rank = 0;
            }
            self.at = data.end;
            return Ok(Some(data));
        }
        Ok(None)
    }

    /// Passes what is no data.
    #[cold]
    fn pass(
        &mut self,
        type_len: u32,
        delta: u64,
        endian: Endian,
        page: &[u8],
        body: usize,
    ) -> Result<(), CorruptPage> {
        if type_len == PADDING && delta == 0 {
            self.at = self.end;
            return Ok(());
        }
        let word = endian.u32(page, body).ok_or(CorruptPage)?;
        let time = match type_len {
            PADDING => self.time.wrapping_add(delta),
            TIME_EXTEND => self.time.wrapping_add((u64::from(word) << DELTA_BITS) | delta),
            _ => absolute((u64::from(word) << DELTA_BITS) | delta, self.time),
        };
        self.rank = match time == self.time {
            true if type_len == TIME_EXTEND => self.rank.saturating_add(1),
            true => self.rank,
            false => 0,
        };
        self.time = time;
        self.at = match type_len {
            // An event that the kernel discarded; its length counts the word that holds it.
            PADDING => body + (word as usize).max(size_of::<u32>()),
            _ => body + size_of::<u32>(),
        };
        if self.at > self.end { Err(CorruptPage) } else { Ok(()) }
    }
}

/// The whole time of which `low` are the lower bits, not long after `before`.
fn absolute(low: u64, before: u64) -> u64 {
    debug_assert!(low >> ABSOLUTE_BITS == 0 && TIME_STAMP > TIME_EXTEND);
    let high = before >> ABSOLUTE_BITS << ABSOLUTE_BITS;
    let time = high | low;
    // As the kernel does: where no upper bit is set, the time may go back.
    if high != 0 && time < before { time.wrapping_add(1 << ABSOLUTE_BITS) } else { time }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    const FORMAT: PageFormat = PageFormat::of_64_bit(Endian::Little, 4096);

    fn page(endian: Endian, time: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let commit = flags | (words.len() * 4) as u64;
        let long = |value: u64| match endian {
            Endian::Little => value.to_le_bytes(),
            Endian::Big => value.to_be_bytes(),
        };
        let word = |value: u32| match endian {
            Endian::Little => value.to_le_bytes(),
            Endian::Big => value.to_be_bytes(),
        };
        let mut page: Vec<u8> = [long(time), long(commit)].concat();
        page.extend(words.iter().flat_map(|&value| word(value)));
        page.resize(4096, 0xee);
        page
    }

    /// Times, ranks and first words of the records, and whether the page ended well.
    fn walk(endian: Endian, page: &[u8]) -> (Vec<(u64, u32, u32)>, bool) {
        let format = PageFormat::of_64_bit(endian, 4096);
        let head = PageHead::read(&format, page).expect("a page");
        let mut cursor = PageCursor::default();
        cursor.open(&format, &head, page);
        let mut found = Vec::new();
        loop {
            match cursor.next(endian, page) {
                Ok(Some(data)) => {
                    let word = endian.u32(page, data.start).expect("data");
                    found.push((cursor.time, cursor.rank, word));
                }
                Ok(None) => return (found, true),
                Err(CorruptPage) => return (found, false),
            }
        }
    }

    const fn word(type_len: u32, delta: u32) -> u32 {
        type_len | delta << TYPE_BITS
    }

    #[test]
    fn the_kernels_description_is_read() {
        assert_eq!(PageFormat::parse(Endian::Little, HEADER_PAGE), Some(FORMAT));
        let of_32_bit = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\n\
            \tfield: local_t commit;\toffset:8;\tsize:4;\n\tfield: char data;\toffset:12;\tsize:65524;\n";
        let format = PageFormat::parse(Endian::Big, of_32_bit).expect("a format");
        assert_eq!((format.size, format.data_at, format.commit_size), (65_536, 12, 4));
        for (from, to) in [
            ("size:4080", "size:9999999"),
            ("size:4080", "size:-1"),
            ("offset:16", "offset:4294967295"),
            ("timestamp", "when"),
            ("commit;\toffset:8;\tsize:8", "commit;\toffset:8;\tsize:2"),
            ("commit;\toffset:8", "commit;\toffset:4294967290"),
        ] {
            assert_eq!(PageFormat::parse(Endian::Little, &HEADER_PAGE.replace(from, to)), None, "{to}");
        }
    }

    #[test]
    fn every_type_of_record_is_read_in_both_byte_orders() {
        let words = [
            word(1, 5),
            0xa1,
            word(TIME_EXTEND, 3),
            2,
            word(2, 1),
            0xa2,
            0,
            word(PADDING, 1),
            12,
            0,
            0,
            word(0, 2),
            10,
            0xa3,
            0,
            word(TIME_STAMP, 7),
            (1000 << 10) | 1,
            word(28, 0),
            0xa4,
        ];
        let mut words = words.to_vec();
        words.extend([0; 27]);
        words.extend([word(PADDING, 0), word(1, 1), 0xbad]);
        let extended = 1005 + (2 << 27) + 3 + 1;
        let expected = vec![
            (1005, 0, 0xa1),
            (extended, 0, 0xa2),
            (extended + 1 + 2, 0, 0xa3),
            ((((1000 << 10) | 1) << 27) | 7, 0, 0xa4),
        ];
        assert_eq!(walk(Endian::Little, &page(Endian::Little, 1000, 0, &words)), (expected.clone(), true));
        let headers = [0, 2, 4, 7, 11, 15, 17, 46, 47];
        for at in headers {
            words[at] = words[at] << DELTA_BITS | words[at] >> TYPE_BITS;
        }
        assert_eq!(walk(Endian::Big, &page(Endian::Big, 1000, 0, &words)), (expected, true));
    }

    #[test]
    fn time_extends_of_zero_length_rank_events_of_one_time() {
        let extend = [word(TIME_EXTEND, 0), 0];
        let record = |delta, value| [word(1, delta), value];
        let words: Vec<u32> = [
            record(0, 1),
            extend,
            record(0, 2),
            extend,
            extend,
            record(0, 3),
            record(1, 4),
            extend,
            record(0, 5),
        ]
        .concat();
        let page = page(Endian::Little, 9, 0, &words);
        assert_eq!(walk(Endian::Little, &page).0, [(9, 0, 1), (9, 1, 2), (9, 3, 3), (10, 0, 4), (10, 1, 5)]);
    }

    #[test]
    fn absolute_times_keep_the_upper_bits() {
        assert_eq!(absolute(7, 5), 7);
        assert_eq!(absolute(7, 9), 7);
        let high = 3 << ABSOLUTE_BITS;
        assert_eq!(absolute(7, high | 5), high | 7);
        assert_eq!(absolute(7, high | 9), (4 << ABSOLUTE_BITS) | 7);
    }

    #[test]
    fn missed_events_are_told() {
        let missed = |flags: u64, count: u64, fill: usize| {
            let mut page = page(Endian::Little, 1, flags, &vec![word(PADDING, 0); fill]);
            if let Some(room) = page.get_mut(16 + fill * 4..16 + fill * 4 + 8) {
                room.copy_from_slice(&count.to_le_bytes());
            }
            PageHead::read(&FORMAT, &page).expect("a page").missed
        };
        assert_eq!(missed(0, 77, 1), None);
        assert_eq!(missed(MISSED, 77, 1), Some(None));
        assert_eq!(missed(MISSED | MISSED_COUNTED, 77, 1), Some(Some(77)));
        assert_eq!(missed(MISSED | MISSED_COUNTED, 77, 1019), Some(None));
        // As v6.18 has it.
        assert_eq!(missed(0xffff_ffff_c000_0000, 11_578, 4), Some(Some(11_578)));
    }

    #[test]
    fn pages_that_contradict_themselves_are_told() {
        let cursor_ends_well = |words: &[u32]| walk(Endian::Little, &page(Endian::Little, 1, 0, words)).1;
        assert!(!cursor_ends_well(&[word(2, 0), 1]));
        assert!(!cursor_ends_well(&[word(0, 0), 3]));
        assert!(!cursor_ends_well(&[word(0, 0), 4097]));
        assert!(!cursor_ends_well(&[word(0, 0), u32::MAX]));
        assert!(!cursor_ends_well(&[word(PADDING, 1), u32::MAX]));
        assert!(!cursor_ends_well(&[word(PADDING, 1), 100]));
        assert!(!cursor_ends_well(&[word(TIME_EXTEND, 1)]));
        assert!(cursor_ends_well(&[word(PADDING, 1), 0, word(1, 0), 0]));
        let mut long = page(Endian::Little, 1, 0, &[]);
        long[8..10].copy_from_slice(&4081_u16.to_le_bytes());
        assert_eq!(PageHead::read(&FORMAT, &long), Err(CorruptPage));
        for upper in [1, u32::MAX] {
            let mut wide = page(Endian::Little, 1, 0, &[]);
            wide[12..16].copy_from_slice(&upper.to_le_bytes());
            assert_eq!(PageHead::read(&FORMAT, &wide), Err(CorruptPage));
        }
        assert_eq!(PageHead::read(&FORMAT, &long[..15]), Err(CorruptPage));
        let whole = page(Endian::Little, 1, 0, &[word(1, 0), 7, word(1, 0), 8]);
        assert!(!PageHead::read(&FORMAT, &whole).expect("a page").cut);
        assert!(PageHead::read(&FORMAT, &whole[..30]).expect("a page").cut);
        for length in 16..whole.len().min(40) {
            let (found, well) = walk(Endian::Little, &whole[..length]);
            assert!(found.len() <= 2 && (well || length < 32), "{length}");
        }
    }
}
