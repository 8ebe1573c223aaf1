//! Records into pages, for one CPU.
//!
//! Must not know: what records mean, where full pages go.

use super::page::{ABSOLUTE_BITS, DELTA_BITS, MISSED, MISSED_COUNTED, TIME_EXTEND, TIME_STAMP, TYPE_BITS};

/// Bytes of a page, the same as most kernels'.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Time and length stand before the records.
const HEAD_BYTES: usize = 16;
const COMMIT_AT: usize = 8;
const COMMIT_BYTES: usize = 8;
/// The longest record that a page takes beside the number of missed events, the record's head and length, and a time
/// extend.
pub(crate) const RECORD_BYTES_MAX: usize = PAGE_BYTES - HEAD_BYTES - COUNT_BYTES - 2 * EXTEND_BYTES;
/// The longest data, in words, whose length fits into the record's head.
const SHORT_WORDS_MAX: usize = 28;
/// The longest time that a time extend bridges.
const EXTEND_MAX: u64 = (1 << (DELTA_BITS + u32::BITS)) - 1;

/// Bytes of a time extend.
const EXTEND_BYTES: usize = 2 * size_of::<u32>();
/// Bytes of the number of missed events, behind a page's data.
const COUNT_BYTES: usize = 8;

/// The pages of one CPU that are not taken yet, the last of which takes records.
#[derive(Debug, Default)]
pub(crate) struct PageFill {
    /// Whole pages, then what there is of the open one.
    bytes: Vec<u8>,
    /// Where the open page begins.
    page_at: usize,
    /// Whether there was any page yet.
    begun: bool,
    /// What the open page says about missed events, and their number.
    missed: u64,
    missed_count: u64,
    /// Whether the open page has nothing but time extends yet: these rank the loss that it tells of.
    bare: bool,
    time: u64,
    rank: u32,
    /// Pages that were begun since nothing else can tell their time.
    torn: u32,
}

impl PageFill {
    /// Adds a record, a multiple of four bytes and no more than [`RECORD_BYTES_MAX`]. `rank` puts it behind records of
    /// the same time and a lower rank on other CPUs; it does not go down within one time. False when the rank was too
    /// high to be written.
    pub(crate) fn push(&mut self, time: u64, rank: u32, record: &[u8]) -> bool {
        debug_assert!(record.len().is_multiple_of(4) && record.len() <= RECORD_BYTES_MAX);
        let extends = self.extends(time, rank);
        let told = extends.min((RECORD_BYTES_MAX - record.len()) / EXTEND_BYTES);
        let bytes = record.len() + (told + 2) * EXTEND_BYTES;
        let ranks_loss = self.bare && told > 0;
        let bridged = time.checked_sub(self.time).is_some_and(|delta| delta <= EXTEND_MAX);
        // A time that lies before or too far behind is written as it is, where it can be: a page for each such record would
        // make a long file of a short trace that is out of order.
        let absolute = !bridged && (time | self.time) >> ABSOLUTE_BITS == 0;
        self.torn += u32::from(self.begun && !bridged && !absolute);
        if !self.begun || ranks_loss || self.room() < bytes || !(bridged || absolute) {
            self.begin(time);
        }
        let mut delta = time.saturating_sub(self.time);
        if self.time != time && absolute {
            self.word(TIME_STAMP | (time as u32) << TYPE_BITS);
            self.word((time >> DELTA_BITS) as u32);
            delta = 0;
        }
        if delta >> DELTA_BITS != 0 || (told > 0 && delta > 0) {
            self.word(TIME_EXTEND | (delta as u32) << TYPE_BITS);
            self.word((delta >> DELTA_BITS) as u32);
            delta = 0;
        }
        self.extend_by_nothing(told);
        let words = record.len() / size_of::<u32>();
        if (1..=SHORT_WORDS_MAX).contains(&words) {
            self.word(words as u32 | (delta as u32) << TYPE_BITS);
        } else {
            self.word((delta as u32) << TYPE_BITS);
            self.word((record.len() + size_of::<u32>()) as u32);
        }
        self.bytes.extend_from_slice(record);
        (self.time, self.rank) = (time, rank);
        self.bare = false;
        told == extends
    }

    /// How many pages were begun for one record that lies before, or too far behind, the one before: at times of more than
    /// eighteen years, which nothing but a page's head can tell.
    pub(crate) fn torn(&self) -> u32 {
        self.torn
    }

    /// Says that events were missed before `time`, and how many if that is known; `rank` as for records.
    pub(crate) fn lost(&mut self, time: u64, rank: u32, count: Option<u64>) -> bool {
        let extends = self.extends(time, rank);
        self.begin(time);
        self.missed = MISSED | if count.is_some() { MISSED_COUNTED } else { 0 };
        self.missed_count = count.unwrap_or(0);
        let told = extends.min((self.room() - COUNT_BYTES) / EXTEND_BYTES);
        self.extend_by_nothing(told);
        (self.time, self.rank) = (time, rank);
        self.bare = true;
        told == extends
    }

    /// Whole pages, if there are as many as `pages`; they are forgotten here.
    pub(crate) fn take_full(&mut self, pages: usize) -> Option<Vec<u8>> {
        if self.page_at < pages * PAGE_BYTES {
            return None;
        }
        let open = self.bytes.split_off(self.page_at);
        self.page_at = 0;
        Some(std::mem::replace(&mut self.bytes, open))
    }

    /// All pages.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.begun {
            self.close();
        }
        self.bytes
    }

    /// How many time extends of zero length bring the reader to `rank` at `time`.
    fn extends(&self, time: u64, rank: u32) -> usize {
        let ranked = if self.begun && self.time == time { self.rank } else { 0 };
        rank.saturating_sub(ranked) as usize
    }

    fn extend_by_nothing(&mut self, times: usize) {
        for _ in 0..times {
            self.word(TIME_EXTEND);
            self.word(0);
        }
    }

    fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    fn room(&self) -> usize {
        let count = if self.missed & MISSED_COUNTED != 0 { COUNT_BYTES } else { 0 };
        (PAGE_BYTES - count).saturating_sub(self.bytes.len() - self.page_at)
    }

    fn begin(&mut self, time: u64) {
        if self.begun {
            self.close();
        }
        self.begun = true;
        self.page_at = self.bytes.len();
        self.bytes.extend_from_slice(&time.to_le_bytes());
        self.bytes.extend_from_slice(&[0; COMMIT_BYTES]);
        (self.missed, self.missed_count) = (0, 0);
        self.bare = false;
        self.time = time;
    }

    /// Ends the open page.
    fn close(&mut self) {
        let data = self.bytes.len() - self.page_at - HEAD_BYTES;
        let commit = self.missed | data as u64;
        self.bytes[self.page_at + COMMIT_AT..][..COMMIT_BYTES].copy_from_slice(&commit.to_le_bytes());
        if self.missed & MISSED_COUNTED != 0 {
            self.bytes.extend_from_slice(&self.missed_count.to_le_bytes());
        }
        self.bytes.resize(self.page_at + PAGE_BYTES, 0);
        self.page_at += PAGE_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::{PageCursor, PageFormat, PageHead};
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn records_out_of_order_take_some_bytes_and_no_page_each() {
        let mut fill = PageFill::default();
        let times = (0..1000_u64).map(|turn| (turn * 7919) % 1000 * 300_000_000_000);
        let expected: Vec<Recorded> = times.clone().map(|time| Recorded::Record(time, 0, 12)).collect();
        for time in times {
            assert!(fill.push(time, 0, &[time as u8; 12]));
        }
        assert_eq!(fill.torn(), 0);
        let bytes = fill.finish();
        assert_eq!(read(&bytes), expected);
        assert!(bytes.len() <= 1000 * (12 + 4 + 8) + 2 * PAGE_BYTES, "{}", bytes.len());
        let mut late = PageFill::default();
        for turn in 0..10 {
            late.push((1 << 60) + u64::from(turn % 2 == 0), 0, &[0; 12]);
        }
        assert_eq!(late.torn(), 5);
    }

    #[derive(Debug, PartialEq, Eq)]
    enum Recorded {
        /// Time, rank, and how many times the lower byte of the time.
        Record(u64, u32, usize),
        Lost(u64, u32, Option<u64>),
    }

    fn read(bytes: &[u8]) -> Vec<Recorded> {
        let format = PageFormat::of_64_bit(Endian::Little, PAGE_BYTES);
        let mut cursor = PageCursor::default();
        let mut found = Vec::new();
        for page in bytes.chunks(PAGE_BYTES) {
            let head = PageHead::read(&format, page).expect("a page");
            cursor.open(&format, &head, page);
            if let Some(count) = head.missed {
                found.push(Recorded::Lost(cursor.time, cursor.rank, count));
            }
            while let Some(data) = cursor.next(Endian::Little, page).expect("records") {
                assert!(page[data.clone()].iter().all(|&byte| byte == cursor.time as u8));
                found.push(Recorded::Record(cursor.time, cursor.rank, data.len()));
            }
        }
        found
    }

    fn check(events: &[Recorded]) -> usize {
        let mut fill = PageFill::default();
        let mut bytes = Vec::new();
        for event in events {
            assert!(match event {
                Recorded::Record(time, rank, length) => fill.push(*time, *rank, &vec![*time as u8; *length]),
                Recorded::Lost(time, rank, count) => fill.lost(*time, *rank, *count),
            });
            if let Some(full) = fill.take_full(2) {
                bytes.extend(full);
            }
        }
        bytes.extend(fill.finish());
        assert_eq!(bytes.len() % PAGE_BYTES, 0);
        assert_eq!(read(&bytes), events);
        bytes.len() / PAGE_BYTES
    }

    fn record(time: u64, rank: u32, length: usize) -> Recorded {
        Recorded::Record(time, rank, length)
    }

    #[test]
    fn records_of_all_lengths_at_all_distances_come_back() {
        let mut time = 0;
        let mut events = Vec::new();
        for distance in [0, 1, (1 << 27) - 1, 1 << 27, EXTEND_MAX, EXTEND_MAX + 1, 1 << 62] {
            for length in [8, 64, 112, 116, 2000, RECORD_BYTES_MAX] {
                time += distance / 8;
                events.push(record(time, 0, length));
                events.push(record(time + distance / 2, 0, length));
            }
        }
        events.push(record(u64::MAX, 0, 8));
        check(&events);
    }

    #[test]
    fn short_records_share_pages_and_time_may_go_back() {
        let events: Vec<Recorded> = (0..1000).map(|at| record(at * 100, 0, 64)).collect();
        assert_eq!(check(&events), 1000_usize.div_ceil(4080 / 68));
        check(&[record(1000, 0, 8), record(999, 0, 8), record(0, 0, 8), record(1, 0, 8)]);
    }

    #[test]
    fn ranks_come_back_across_pages() {
        let mut events = Vec::new();
        for rank in [0, 1, 1, 4, 5, 5, 100] {
            events.push(record(7, rank, 1200));
        }
        events.extend([record(8, 0, 8), record(8, 0, 8), record(9, 3, 8)]);
        check(&events);
        let mut fill = PageFill::default();
        assert!(!fill.push(1, 100_000, &[0; 8]));
        assert!(!fill.push(1, 100_000_000, &[0; RECORD_BYTES_MAX]));
        assert!(!fill.lost(2, 100_000, Some(3)));
        assert!(fill.push(2, 100_000, &[0; 8]));
    }

    #[test]
    fn losses_come_back() {
        check(&[
            Recorded::Lost(5, 0, Some(7)),
            Recorded::Lost(5, 0, None),
            record(5, 0, 8),
            record(6, 2, 8),
            Recorded::Lost(6, 3, Some(u64::MAX)),
            record(6, 3, RECORD_BYTES_MAX - 8),
            record(6, 3, RECORD_BYTES_MAX),
            Recorded::Lost(9, 1, None),
            record(9, 2, 8),
            record(9, 2, 8),
            Recorded::Lost(9, 2, None),
            record(9, 2, 8),
        ]);
    }
}
