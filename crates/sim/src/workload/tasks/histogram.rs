//! How often each time occurred: percentiles within 1 %.
//!
//! Must not know: what took so long.

use fairlab_event::Ns;

/// Each doubling of time is so many buckets.
const BUCKETS: u64 = 128;

/// Times, counted in buckets that are less than 1 % wide.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeHistogram {
    counts: Vec<u64>,
    total: u64,
    max: Ns,
}

impl TimeHistogram {
    /// One more.
    pub fn add(&mut self, time: Ns) {
        let bucket = bucket(time.0);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.max = self.max.max(time);
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The longest.
    pub fn max(&self) -> Ns {
        self.max
    }

    /// The time that so many per mille do not exceed; zero if there is none.
    pub fn permille(&self, permille: u64) -> Ns {
        let rank = (self.total * permille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Ns(upper(bucket as u64)).min(self.max);
            }
        }
        self.max
    }
}

fn bucket(time: u64) -> usize {
    if time < BUCKETS {
        return time as usize;
    }
    let doublings = u64::from(time.ilog2() - BUCKETS.ilog2());
    ((doublings + 1) * BUCKETS + ((time >> doublings) - BUCKETS)) as usize
}

/// The longest time of a bucket.
fn upper(bucket: u64) -> u64 {
    if bucket < BUCKETS {
        return bucket;
    }
    let (doublings, place) = (bucket / BUCKETS - 1, bucket % BUCKETS);
    ((BUCKETS + place + 1) << doublings) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_within_a_percent() {
        let mut histogram = TimeHistogram::default();
        assert_eq!(histogram.permille(500), Ns::ZERO);
        (1..=100_000).for_each(|number| histogram.add(Ns(number * 17)));
        for (permille, exact) in [(500, 850_000.0), (990, 1_683_000.0), (999, 1_698_300.0)] {
            let found = histogram.permille(permille).0 as f64;
            assert!((0.0..0.01).contains(&(found / exact - 1.0)), "{permille}: {found}");
        }
        assert_eq!((histogram.permille(1000), histogram.max()), (Ns(1_700_000), Ns(1_700_000)));
        for time in [0, 127, 128, 129, 255, 256, 1 << 40] {
            assert!(upper(bucket(time) as u64) >= time && upper(bucket(time) as u64) <= time + time / 100);
        }
    }
}
