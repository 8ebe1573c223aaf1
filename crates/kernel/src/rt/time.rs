//! How much of a CPU real-time tasks have used of late, as it was counted before PELT did that (to v4.18).
//!
//! Must not know: tasks, who asks.

/// After how long what was used counts half, ns: half of `sched_time_avg_ms`.
const PERIOD: u64 = 500_000_000;

/// Time that real-time tasks have used (`rq::rt_avg`, `rq::age_stamp`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RtTime {
    /// Time times frequency (1024 at the highest), ns; halved every [`PERIOD`].
    used: u64,
    /// When it was last halved, ns.
    halved: u64,
}

impl RtTime {
    /// Real-time tasks have used this, up to `now` (`sched_rt_avg_update()`).
    pub fn charge(&mut self, used: u64, now: u64) {
        self.used += used;
        self.age(now);
    }

    /// Halves what was used as often as it is time to (`sched_avg_update()`).
    pub fn age(&mut self, now: u64) {
        let periods = now.saturating_sub(self.halved + 1) / PERIOD;
        self.halved += periods * PERIOD;
        self.used = self.used.checked_shr(periods.min(u64::from(u32::MAX)) as u32).unwrap_or(0);
    }

    /// What they leave of a CPU, 1…1024 (`scale_rt_capacity()`).
    pub fn left(&self, now: u64) -> u64 {
        let used = self.used / (PERIOD + now.saturating_sub(self.halved));
        1024_u64.saturating_sub(used).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_second_of_real_time_tasks_leaves_next_to_nothing_and_half_a_second_later_a_half() {
        let mut time = RtTime::default();
        assert_eq!(time.left(0), 1024);
        for ms in 1..=10_000 {
            time.charge(MS * 1024, ms * MS);
        }
        assert!(time.left(10_000 * MS) <= 2);
        // 500 ms count half a second later, of three quarters of a second, then of one.
        let mut after = |ms: u64| {
            time.age((10_000 + ms) * MS);
            time.left((10_000 + ms) * MS)
        };
        assert_eq!([250, 500].map(&mut after), [343, 513]);
        assert_eq!(after(100_000), 1024);
    }

    #[test]
    fn a_tenth_of_the_time_takes_a_tenth() {
        let mut time = RtTime::default();
        for ms in (10..=10_000).step_by(10) {
            time.charge(MS * 1024, ms * MS);
        }
        let left = time.left(10_000 * MS);
        assert!((1024 * 88 / 100..=1024 * 91 / 100).contains(&left), "{left}");
    }
}
