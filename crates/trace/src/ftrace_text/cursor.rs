//! A place in a line of bytes, and the small steps by which fields are read from it.
//!
//! Must not know: which fields an event has.

use std::cell::Cell;

use fairlab_event::{Comm, Cpu, Ns, Pid, Prio};

use super::swar;

/// The longest name that a kernel can print: `TASK_COMM_LEN` less its NUL.
const COMM_BYTES: usize = Comm::LEN - 1;

/// The longest name that is looked at where something longer than a kernel's name was printed. A limit keeps the
/// search for landmarks in a hostile line short.
const LONG_COMM_BYTES: usize = 255;

/// A place in a line. Copies are cheap: a reading that fails is given up by dropping its copy.
#[derive(Clone, Copy)]
pub(super) struct LineCursor<'l> {
    bytes: &'l [u8],
    at: usize,
    lenient: bool,
    long_names: &'l Cell<u64>,
}

impl<'l> LineCursor<'l> {
    /// At the start of `bytes`. Names longer than a kernel's are counted in `long_names`.
    #[inline]
    pub(super) fn new(bytes: &'l [u8], long_names: &'l Cell<u64>) -> LineCursor<'l> {
        LineCursor { bytes, at: 0, lenient: false, long_names }
    }

    /// The same place, read leniently: names may be longer than a kernel's, unknown words may follow the fields.
    pub(super) fn lenient(self) -> LineCursor<'l> {
        LineCursor { lenient: true, ..self }
    }

    /// The next byte; NUL at the end of the line.
    #[inline(always)]
    pub(super) fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    /// All bytes from here on.
    #[inline(always)]
    pub(super) fn rest(&self) -> &'l [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Passes `count` bytes, whatever they are.
    #[inline]
    pub(super) fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// How many bytes were passed.
    #[inline]
    pub(super) fn passed(&self) -> usize {
        self.at
    }

    /// Passes `byte` if it is next.
    #[inline(always)]
    pub(super) fn byte(&mut self, byte: u8) -> Option<()> {
        let next = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(next);
        next.then_some(())
    }

    /// Passes `text` if it is next.
    #[inline(always)]
    pub(super) fn literal<const N: usize>(&mut self, text: &[u8; N]) -> Option<()> {
        let next = self.bytes.get(self.at..)?.first_chunk::<N>()?;
        if next != text {
            return None;
        }
        self.at += N;
        Some(())
    }

    /// Passes `text` if it is next: of a length that is known where this is called.
    #[inline(always)]
    pub(super) fn text(&mut self, text: &'static str) -> Option<()> {
        if self.bytes.get(self.at..)?.get(..text.len())? != text.as_bytes() {
            return None;
        }
        self.at += text.len();
        Some(())
    }

    /// Passes blanks, if any.
    #[inline(always)]
    pub(super) fn blanks(&mut self) {
        loop {
            let blanks = swar::run_of(swar::word(self.bytes, self.at), b' ');
            self.at += blanks;
            if blanks < 8 && self.byte(b'\t').is_none() {
                return;
            }
        }
    }

    /// Passes bytes up to the next blank or the end of the line; at least one.
    #[inline(always)]
    pub(super) fn word(&mut self) -> Option<&'l [u8]> {
        let rest = self.rest();
        let length = rest.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
        self.at += length;
        (length > 0).then(|| &rest[..length])
    }

    /// Passes bytes up to the next blank, when these are at most seven; returned with NULs behind them.
    #[inline(always)]
    pub(super) fn short_word(&mut self) -> Option<[u8; 8]> {
        let word = swar::word(self.bytes, self.at);
        let length = swar::place_of(word, b' ');
        if length == 8 {
            return None;
        }
        self.at += length;
        Some((word & ((1 << (8 * length)) - 1)).to_le_bytes())
    }

    /// Passes bytes up to the next colon, which is near.
    #[inline(always)]
    pub(super) fn until_colon(&mut self) -> Option<&'l [u8]> {
        let start = self.at;
        for _ in 0..2 {
            let places = swar::places_of(swar::double_word(self.bytes, self.at), b':');
            if places != 0 {
                self.at += places.trailing_zeros() as usize / 8;
                return Some(&self.bytes[start..self.at]);
            }
            self.at += 16;
        }
        None
    }

    /// Passes the letters, digits and marks of an event's name; there may be none.
    #[inline]
    pub(super) fn identifier(&mut self) -> &'l [u8] {
        let rest = self.rest();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// A decimal number without sign; `None` when no digit is next or it does not fit.
    #[inline(always)]
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        let (count, value) = swar::digits(swar::word(self.bytes, self.at));
        self.at += count;
        match count {
            0 => None,
            8 => self.more_digits(value),
            _ => Some(value),
        }
    }

    /// The rest of a number of eight or more digits, the first of which make `value`.
    #[inline]
    fn more_digits(&mut self, mut value: u64) -> Option<u64> {
        loop {
            let (count, more) = swar::digits(swar::word(self.bytes, self.at));
            self.at += count;
            value = value.checked_mul(10_u64.pow(count as u32))?.checked_add(more)?;
            if count < 8 {
                return Some(value);
            }
        }
    }

    /// A decimal number with or without sign.
    #[inline(always)]
    pub(super) fn signed(&mut self) -> Option<i64> {
        if self.byte(b'-').is_none() {
            return i64::try_from(self.unsigned()?).ok();
        }
        0_i64.checked_sub_unsigned(self.unsigned()?)
    }

    /// A task id.
    #[inline(always)]
    pub(super) fn pid(&mut self) -> Option<Pid> {
        i32::try_from(self.signed()?).ok().map(Pid)
    }

    /// A priority.
    #[inline(always)]
    pub(super) fn prio(&mut self) -> Option<Prio> {
        i32::try_from(self.signed()?).ok().map(Prio)
    }

    /// A CPU number.
    #[inline(always)]
    pub(super) fn cpu(&mut self) -> Option<Cpu> {
        u32::try_from(self.unsigned()?).ok().map(Cpu)
    }

    /// A duration as `123 [ns]`; the unit may be missing only where unknown forms are accepted.
    #[inline(always)]
    pub(super) fn nanoseconds(&mut self) -> Option<Ns> {
        let value = self.unsigned()?;
        let with_unit = self.literal(b" [ns]").is_some();
        if !with_unit && (!self.lenient || self.rest().starts_with(b" [")) {
            return None;
        }
        Some(Ns(value))
    }

    /// The end of the fields: nothing but blanks, or, read leniently, further words.
    #[inline(always)]
    pub(super) fn end(&self) -> Option<()> {
        let rest = self.rest();
        let done = match rest.first() {
            None => true,
            Some(b' ' | b'\t') => self.lenient || rest.iter().all(|byte| matches!(byte, b' ' | b'\t')),
            Some(_) => false,
        };
        done.then_some(())
    }

    /// A task name that ends where `landmark` stands and `following` can read all that follows.
    ///
    /// A name may hold anything, a landmark too; what follows a false landmark does not read to the end of the line,
    /// since no name is long enough to hold all of an event's later fields.
    #[inline(always)]
    pub(super) fn comm_before<T>(
        self,
        landmark: &'static str,
        following: impl Fn(LineCursor<'l>) -> Option<T>,
    ) -> Option<(Comm, T)> {
        if self.lenient {
            return self.long_comm_before(landmark, following);
        }
        let window = swar::double_word(self.bytes, self.at);
        let landmark = landmark.as_bytes();
        let mut places = swar::places_of(window, landmark[0]);
        while places != 0 {
            let place = places.trailing_zeros() as usize / 8;
            places &= places - 1;
            if self.bytes.get(self.at + place..)?.get(..landmark.len())? != landmark {
                continue;
            }
            if let Some(read) = following(LineCursor { at: self.at + place + landmark.len(), ..self }) {
                let name = window & ((1 << (8 * place)) - 1);
                return Some((Comm::from_padded(name.to_le_bytes()), read));
            }
        }
        None
    }

    #[cold]
    fn long_comm_before<T>(
        self,
        landmark: &'static str,
        following: impl Fn(LineCursor<'l>) -> Option<T>,
    ) -> Option<(Comm, T)> {
        for length in 0..=LONG_COMM_BYTES {
            if !self.bytes.get(self.at + length..)?.starts_with(landmark.as_bytes()) {
                continue;
            }
            let at = self.at + length + landmark.len();
            if let Some(read) = following(LineCursor { at, ..self }) {
                return Some((self.comm(&self.bytes[self.at..self.at + length]), read));
            }
        }
        None
    }

    /// `name` as a task name, counted when it has to be cut.
    #[inline]
    pub(super) fn comm(&self, name: &[u8]) -> Comm {
        if name.len() > COMM_BYTES {
            self.long_names.set(self.long_names.get() + 1);
        }
        Comm::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> (Option<u64>, Option<i64>) {
        let counter = Cell::new(0);
        let cursor = LineCursor::new(text.as_bytes(), &counter);
        (cursor.clone().unsigned(), cursor.clone().signed())
    }

    #[test]
    fn numbers_are_exact_or_absent() {
        assert_eq!(numbers("18446744073709551615"), (Some(u64::MAX), None));
        assert_eq!(numbers("18446744073709551616"), (None, None));
        assert_eq!(numbers("99999999999999999999999999"), (None, None));
        assert_eq!(numbers("-9223372036854775808"), (None, Some(i64::MIN)));
        assert_eq!(numbers("-9223372036854775809"), (None, None));
        assert_eq!(numbers("00000000000000000000012x"), (Some(12), Some(12)));
        assert_eq!(numbers(""), (None, None));
        assert_eq!(numbers("-"), (None, None));
    }

    #[test]
    fn a_name_that_holds_its_own_landmark_is_read_whole() {
        let counter = Cell::new(0);
        let read = |text: &'static str| {
            LineCursor::new(text.as_bytes(), &counter).comm_before(" pid=", |mut after| {
                let pid = after.pid()?;
                after.end()?;
                Some(pid)
            })
        };
        assert_eq!(read(" pid=1 pid=7"), Some((Comm::from(" pid=1"), Pid(7))));
        assert_eq!(read(" pid=7"), Some((Comm::from(""), Pid(7))));
        assert_eq!(read("sixteen bytes ab pid=7"), None);
        assert_eq!(read("a pid=7x"), None);
        assert_eq!(counter.get(), 0);
    }

    #[test]
    fn a_long_name_is_cut_and_counted_when_read_leniently() {
        let counter = Cell::new(0);
        let cursor = LineCursor::new(b"kworker/u8:0-events_unbound pid=7 new=1", &counter).lenient();
        let read = cursor.comm_before(" pid=", |mut after| {
            let pid = after.pid()?;
            after.end()?;
            Some(pid)
        });
        assert_eq!(read, Some((Comm::from("kworker/u8:0-ev"), Pid(7))));
        assert_eq!(counter.get(), 1);
    }
}
