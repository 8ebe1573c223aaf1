//! The records of one CPU, one after another, out of pages that come in pieces.
//!
//! Must not know: other CPUs, what records mean, how pages are stored.

use std::io;
use std::ops::Range;

use fairlab_event::Cpu;

use super::page::{CorruptPage, PageCursor, PageFormat, PageHead};
use super::shift::ClockCorrection;
use crate::endian::Endian;
use crate::{ImportStats, Trouble};

/// Where the pages of a CPU come from.
pub(crate) trait PageSource {
    /// Replaces the content of `buffer` by the next pages: whole ones, but for the last of a file that is cut.
    fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<PagesRead>;

    /// Where in the file that begins which was read last.
    fn position(&self) -> u64;
}

/// What came of reading pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PagesRead {
    /// At least one page.
    Pages,
    /// Pages are there and cannot be read; others may follow.
    Unreadable(Trouble),
    /// There are no more.
    End,
}

/// What comes next of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamItem {
    /// A record, which [`CpuStream::record`] has.
    Record,
    /// Events were missed before what follows; how many if it is known.
    Lost(Option<u64>),
    /// Nothing.
    End,
}

/// The records of one CPU.
pub(crate) struct CpuStream<'s> {
    /// The CPU that wrote them.
    pub(crate) cpu: Cpu,
    /// Which of the trace's buffers they are from.
    pub(crate) instance: usize,
    endian: Endian,
    format: PageFormat,
    pages: Box<dyn PageSource + Send + 's>,
    buffer: Vec<u8>,
    /// The page at hand, in `buffer`.
    page: Range<usize>,
    cursor: PageCursor,
    /// The record at hand, in the page.
    record: Range<usize>,
    /// Whether something unreadable was passed since the last record.
    hole: bool,
    /// Whether the file ends before the CPU's records do.
    cut_off: bool,
    /// Whether the page at hand is cut, hence perhaps its last record.
    cut: bool,
    /// The time before this page; none in the beginning.
    before: Option<u64>,
    next: StreamItem,
    /// What makes its stamps comparable with those of other machines.
    shift: Option<ClockCorrection>,
}

impl<'s> CpuStream<'s> {
    /// The records in `pages` of format `format`; nothing is read yet.
    pub(crate) fn new(
        cpu: Cpu,
        instance: usize,
        endian: Endian,
        format: PageFormat,
        pages: Box<dyn PageSource + Send + 's>,
    ) -> CpuStream<'s> {
        CpuStream {
            cpu,
            instance,
            endian,
            format,
            pages,
            buffer: Vec::new(),
            page: 0..0,
            cursor: PageCursor::default(),
            record: 0..0,
            hole: false,
            cut_off: false,
            cut: false,
            before: None,
            next: StreamItem::End,
            shift: None,
        }
    }

    /// The same, its stamps shifted.
    pub(crate) fn shifted(self, shift: Option<ClockCorrection>) -> CpuStream<'s> {
        CpuStream { shift, ..self }
    }

    /// The same, of a file that ends before the CPU's records do, if so: what follows the last one is lost.
    pub(crate) fn cut_off(self, cut_off: bool) -> CpuStream<'s> {
        CpuStream { cut_off, ..self }
    }

    /// Time and rank of what is at hand.
    #[inline]
    pub(crate) fn time(&self) -> (u64, u32) {
        let time = match &self.shift {
            None => self.cursor.time,
            Some(shift) => shift.apply(self.cursor.time),
        };
        (time, self.cursor.rank)
    }

    /// What is at hand.
    #[inline]
    pub(crate) fn next(&self) -> StreamItem {
        self.next
    }

    /// The record at hand.
    #[inline]
    pub(crate) fn record(&self) -> &[u8] {
        self.buffer.get(self.page.clone()).and_then(|page| page.get(self.record.clone())).unwrap_or_default()
    }

    /// Where in the file the page at hand begins; for compressed pages, where the piece begins that holds it.
    pub(crate) fn position(&self) -> u64 {
        self.pages.position().saturating_add(self.page.start as u64)
    }

    /// Goes on to the next record or loss.
    #[inline]
    pub(crate) fn advance(&mut self, stats: &mut ImportStats) -> io::Result<StreamItem> {
        let page = self.buffer.get(self.page.clone()).unwrap_or_default();
        self.next = match self.cursor.next(self.endian, page) {
            Ok(Some(record)) => {
                self.record = record;
                StreamItem::Record
            }
            other => self.leave_page(other.err(), stats)?,
        };
        Ok(self.next)
    }

    /// Goes on to another page.
    #[cold]
    fn leave_page(
        &mut self,
        corrupt: Option<CorruptPage>,
        stats: &mut ImportStats,
    ) -> io::Result<StreamItem> {
        let mut corrupt = corrupt;
        loop {
            if let Some(CorruptPage) = corrupt.take() {
                self.cursor.close();
                if !std::mem::take(&mut self.cut) {
                    stats.add(Trouble::CorruptRecord, 1, self.position());
                    self.hole = true;
                }
            }
            if !self.turn_page(stats)? {
                let is_lost = std::mem::take(&mut self.hole) | std::mem::take(&mut self.cut_off);
                return Ok(if is_lost { StreamItem::Lost(None) } else { StreamItem::End });
            }
            let page = self.buffer.get(self.page.clone()).unwrap_or_default();
            let head = match PageHead::read(&self.format, page) {
                Ok(head) => head,
                Err(fault) => {
                    corrupt = Some(fault);
                    continue;
                }
            };
            if head.is_empty() {
                continue;
            }
            self.cursor.open(&self.format, &head, page);
            self.cut = head.cut;
            if head.cut {
                stats.add(Trouble::TruncatedFile, 1, self.position());
            }
            if self.before.is_some_and(|before| head.time < before) {
                stats.add(Trouble::TimeWentBack, 1, self.position());
            }
            let hole = std::mem::take(&mut self.hole).then_some(None);
            if let Some(count) = head.missed.or(hole) {
                return Ok(StreamItem::Lost(count));
            }
            match self.cursor.next(self.endian, page) {
                Ok(Some(record)) => {
                    self.record = record;
                    return Ok(StreamItem::Record);
                }
                Ok(None) => {}
                Err(fault) => corrupt = Some(fault),
            }
        }
    }

    /// Takes the next page, whatever it holds; false at the end.
    fn turn_page(&mut self, stats: &mut ImportStats) -> io::Result<bool> {
        if self.page.end > 0 {
            self.before = Some(self.cursor.time);
        }
        self.page.start = self.page.end;
        while self.page.start >= self.buffer.len() {
            self.page = 0..0;
            match self.pages.read(&mut self.buffer)? {
                PagesRead::Pages => {}
                PagesRead::Unreadable(trouble) => {
                    stats.add(trouble, 1, self.pages.position());
                    self.hole = true;
                    self.buffer.clear();
                }
                PagesRead::End => {
                    self.buffer.clear();
                    return Ok(false);
                }
            }
        }
        self.page.end = self.buffer.len().min(self.page.start + self.format.size());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fill::{PAGE_BYTES, PageFill};
    use super::*;

    /// Pieces of content; `None` cannot be read.
    struct Pieces(std::vec::IntoIter<Option<Vec<u8>>>);

    impl PageSource for Pieces {
        fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<PagesRead> {
            Ok(match self.0.next() {
                Some(Some(bytes)) => {
                    *buffer = bytes;
                    PagesRead::Pages
                }
                Some(None) => PagesRead::Unreadable(Trouble::CorruptRecord),
                None => PagesRead::End,
            })
        }

        fn position(&self) -> u64 {
            1_000_000
        }
    }

    /// The events of `pieces` in short, and what was wrong with them.
    fn walk(pieces: Vec<Option<Vec<u8>>>) -> (String, Vec<(Trouble, u64)>) {
        let format = PageFormat::of_64_bit(Endian::Little, PAGE_BYTES);
        let pages = Box::new(Pieces(pieces.into_iter()));
        let mut stream = CpuStream::new(Cpu(0), 0, Endian::Little, format, pages);
        let mut stats = ImportStats::default();
        let mut story = String::new();
        loop {
            let next = stream.advance(&mut stats).expect("memory");
            assert_eq!(next, stream.next());
            let (time, _) = stream.time();
            match next {
                StreamItem::Record => {
                    assert!(stream.record().iter().all(|&byte| byte == time as u8));
                    story.push_str(&format!("{time} "));
                }
                StreamItem::Lost(count) => story.push_str(&format!("{time}:lost {count:?} ")),
                StreamItem::End => break,
            }
        }
        assert_eq!(stream.advance(&mut stats).expect("memory"), StreamItem::End);
        let troubles = stats.troubles().iter().map(|count| (count.trouble, count.count)).collect();
        (story, troubles)
    }

    fn page(times: &[u64]) -> Vec<u8> {
        let mut fill = PageFill::default();
        for &time in times {
            fill.push(time, 0, &[time as u8; 8]);
        }
        fill.finish()
    }

    #[test]
    fn records_go_on_across_pages_and_pieces() {
        let pieces = vec![
            Some([page(&[1, 2]), page(&[3])].concat()),
            Some(page(&[4, 4])),
            Some(vec![0; 2 * PAGE_BYTES]),
            Some([page(&[5]), vec![0; PAGE_BYTES], page(&[6])].concat()),
        ];
        assert_eq!(walk(pieces), ("1 2 3 4 4 5 6 ".to_string(), Vec::new()));
        assert_eq!(walk(Vec::new()), (String::new(), Vec::new()));
    }

    #[test]
    fn losses_stand_before_what_follows_them() {
        let mut fill = PageFill::default();
        fill.push(1, 0, &[1; 8]);
        fill.lost(5, 0, Some(3));
        fill.push(6, 0, &[6; 8]);
        fill.lost(9, 0, None);
        assert_eq!(walk(vec![Some(fill.finish())]).0, "1 5:lost Some(3) 6 9:lost None ");
    }

    #[test]
    fn what_cannot_be_read_is_a_loss() {
        let mut torn = page(&[3, 4]);
        torn[16] = 28;
        let mut long = page(&[5]);
        long[9] = 0xff;
        let mut inside = page(&[6, 7]);
        inside[28] = 28;
        let pieces = vec![
            Some([page(&[1]), torn, page(&[5]), long, page(&[6]), inside].concat()),
            None,
            None,
            Some(page(&[9])),
            None,
        ];
        let (story, troubles) = walk(pieces);
        assert_eq!(story, "1 5:lost None 5 6:lost None 6 6 9:lost None 9 9:lost None ");
        assert_eq!(troubles, [(Trouble::CorruptRecord, 6)]);
    }

    #[test]
    fn a_cut_page_and_a_step_back_in_time_are_told() {
        let cut = page(&[7, 8])[..30].to_vec();
        let (story, troubles) = walk(vec![Some([page(&[9]), page(&[5]), page(&[6]), cut].concat())]);
        assert_eq!(story, "9 5 6 7 ");
        assert_eq!(troubles, [(Trouble::TimeWentBack, 1), (Trouble::TruncatedFile, 1)]);
    }
}
