//! How evenly replies come: the intervals between them, and how much one differs from the one before.
//!
//! Must not know: what is replied to.

use fairlab_event::Ns;

use super::histogram::TimeHistogram;

/// The last reply of a thread or to a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastReply {
    at: Option<Ns>,
    interval: Option<Ns>,
}

/// Intervals between replies.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplyRhythm {
    /// From each reply to the next one.
    pub intervals: TimeHistogram,
    /// By how much intervals differ from the ones before them, in all, and how often they were compared.
    differences: (Ns, u64),
}

impl ReplyRhythm {
    /// A reply comes now; `counts`: the interval that it ends does.
    pub fn reply(&mut self, last: &mut LastReply, now: Ns, counts: bool) {
        let before = last.interval;
        last.interval = last.at.replace(now).map(|at| now.since(at));
        let Some(interval) = last.interval.filter(|_| counts) else { return };
        self.intervals.add(interval);
        if let Some(before) = before {
            let (sum, number) = &mut self.differences;
            *sum += Ns(interval.0.abs_diff(before.0));
            *number += 1;
        }
    }

    /// The mean difference of an interval from the one before, ns; `None`: there are no two.
    pub fn jitter(&self) -> Option<f64> {
        let (sum, number) = self.differences;
        (number > 0).then(|| sum.0 as f64 / number as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replies at 0, 10, 20, 50 and 60 us, the first of them while it settles: intervals of 10, 10, 30 and 10 us.
    #[test]
    fn a_late_reply_is_two_differences() {
        let (mut rhythm, mut last) = (ReplyRhythm::default(), LastReply::default());
        rhythm.reply(&mut last, Ns::ZERO, false);
        assert_eq!((rhythm.intervals.total(), rhythm.jitter()), (0, None));
        for us in [10, 20, 50, 60] {
            rhythm.reply(&mut last, Ns::from_us(us), true);
        }
        assert_eq!((rhythm.intervals.total(), rhythm.intervals.max()), (4, Ns::from_us(30)));
        let jitter = rhythm.jitter().expect("three differences");
        assert!((jitter - 40_000.0 / 3.0).abs() < 1e-6, "{jitter}");
    }
}
