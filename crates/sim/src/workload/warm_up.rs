//! Settling: a program is at work for a while before anything that it does counts.
//!
//! At its start a machine's queues are empty, its load averages are zero and its balancing intervals short. What the
//! program counts, what ends it by a count or a time, and what it prints begins when that is over.
//!
//! Must not know: how long a machine needs.

use fairlab_event::Ns;

/// How long a program settles, and since when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmUp {
    length: Ns,
    at_work: Option<Ns>,
}

impl WarmUp {
    /// It will take this long from when all threads are at work; zero: everything counts from the start.
    pub fn set(&mut self, length: Ns) {
        self.length = length;
    }

    /// How long it takes.
    pub fn length(&self) -> Ns {
        self.length
    }

    /// All threads are at work, since now or an earlier call. Returns when what they do counts.
    pub fn begin(&mut self, now: Ns) -> Ns {
        *self.at_work.get_or_insert(now) + self.length
    }

    /// When it is over; `None` while some threads are not at work.
    pub fn end(&self) -> Option<Ns> {
        self.at_work.map(|since| since + self.length)
    }

    /// Whether what happens now counts.
    pub fn is_over(&self, now: Ns) -> bool {
        self.length == Ns::ZERO || self.end().is_some_and(|end| now >= end)
    }
}

/// A number that is counted from the end of settling on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountAfterWarmUp {
    all: u64,
    before: u64,
    last: Option<Ns>,
}

impl CountAfterWarmUp {
    /// So many more.
    pub fn add(&mut self, more: u64, is_settled: bool) {
        self.all += more;
        self.before += if is_settled { 0 } else { more };
    }

    /// One more, at a time that is noted.
    pub fn add_at(&mut self, now: Ns, is_settled: bool) {
        self.add(1, is_settled);
        self.last = is_settled.then_some(now);
    }

    /// When the last one came that counts, where times are noted.
    pub fn last(&self) -> Option<Ns> {
        self.last
    }

    /// How many count.
    pub fn count(&self) -> u64 {
        self.all - self.before
    }

    /// How many there were in all.
    pub fn all(&self) -> u64 {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_once_and_takes_its_time() {
        let mut settling = WarmUp::default();
        assert!(settling.is_over(Ns::ZERO), "where it takes no time, all counts");
        settling.set(Ns(50));
        assert!(!settling.is_over(Ns(1_000)), "not all are at work");
        assert_eq!(settling.begin(Ns(100)), Ns(150));
        assert_eq!(settling.begin(Ns(120)), Ns(150));
        assert_eq!((settling.is_over(Ns(149)), settling.is_over(Ns(150))), (false, true));
        let mut loops = CountAfterWarmUp::default();
        loops.add(3, false);
        loops.add(4, true);
        assert_eq!((loops.count(), loops.all(), loops.last()), (4, 7, None));
        loops.add_at(Ns(9), true);
        assert_eq!((loops.count(), loops.last()), (5, Some(Ns(9))));
    }
}
