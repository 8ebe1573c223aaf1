//! Distributions in bounded memory: counts in buckets whose width grows with the value.

/// Bits of a value that its bucket keeps: 128 buckets to each doubling.
const KEPT_BITS: u32 = 7;

/// Buckets of one doubling.
const BUCKETS: usize = 1 << KEPT_BITS;

/// Counts of values, each kept within 1/128 (0.8 %) of its size; the least and the greatest are exact.
///
/// Histograms of the same kind can be added, so that many runs or hosts make one distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    least: Option<u64>,
    greatest: Option<u64>,
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        let bucket = bucket_of(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.sum += u128::from(value);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.greatest = Some(self.greatest.map_or(value, |greatest| greatest.max(value)));
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.least = [self.least, other.least].into_iter().flatten().min();
        self.greatest = [self.greatest, other.greatest].into_iter().flatten().max();
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The least value.
    pub fn min(&self) -> Option<u64> {
        self.least
    }

    /// The greatest value.
    pub fn max(&self) -> Option<u64> {
        self.greatest
    }

    /// The mean, exact.
    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// The least value such that at least `per_mille` thousandths of all values are no greater (990 is p99), within
    /// 1/128 of its size. `None` when nothing was counted.
    pub fn percentile(&self, per_mille: u64) -> Option<u64> {
        let wanted = (u128::from(self.total) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= wanted {
                return Some(greatest_in(bucket).clamp(self.least?, self.greatest?));
            }
        }
        None
    }
}

/// Values below 128 have a bucket each; above, the leading bits decide.
pub(crate) fn bucket_of(value: u64) -> usize {
    let magnitude = (u64::BITS - value.leading_zeros()).saturating_sub(KEPT_BITS + 1);
    magnitude as usize * BUCKETS + (value >> magnitude) as usize
}

/// The greatest value of a bucket.
pub(crate) fn greatest_in(bucket: usize) -> u64 {
    if bucket < 2 * BUCKETS {
        return bucket as u64;
    }
    let magnitude = bucket / BUCKETS - 1;
    let leading = (bucket - magnitude * BUCKETS) as u64;
    (((u128::from(leading) + 1) << magnitude) - 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_within_the_stated_error() {
        let mut value = 1_u64;
        for step in 0..4_000_u64 {
            for probe in [value - 1, value, value.saturating_add(step % 7)] {
                let greatest = greatest_in(bucket_of(probe));
                assert!(greatest >= probe && greatest - probe <= probe / 128, "{probe}: {greatest}");
            }
            value = value.saturating_add(value / 90 + 1);
        }
        assert_eq!(greatest_in(bucket_of(u64::MAX)), u64::MAX);
        let buckets = (0..1_000_u64).map(bucket_of).collect::<Vec<_>>();
        assert!(buckets.windows(2).all(|pair| pair[0] <= pair[1] && pair[1] <= pair[0] + 1));
    }

    #[test]
    fn percentiles_are_ranks() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(500), None);
        (1..=100).for_each(|value| histogram.record(value));
        let ranks = [0, 10, 500, 990, 999, 1000].map(|per_mille| histogram.percentile(per_mille));
        assert_eq!(ranks, [Some(1), Some(1), Some(50), Some(99), Some(100), Some(100)]);
        assert_eq!((histogram.min(), histogram.max(), histogram.mean()), (Some(1), Some(100), Some(50.5)));
    }

    #[test]
    fn merging_is_counting_all() {
        let (mut one, mut other, mut all) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for value in 0..5_000_u64 {
            let value = value * value % 77_777;
            if value % 3 == 0 { &mut one } else { &mut other }.record(value);
            all.record(value);
        }
        one.merge(&other);
        assert_eq!(one, all);
        one.merge(&Histogram::default());
        assert_eq!(one, all);
    }
}
