//! A distribution that costs little where there are few values: one for each task.
//!
//! Must not know: what the values are.

use crate::bucket_counts::BucketCounts;
use crate::histogram::{bucket_of, greatest_in};

/// Counts of values in the buckets of [`Histogram`](crate::histogram::Histogram), each within 1/128 of its size; the
/// least, the greatest and the sum are exact. Room is taken by buckets in use, and by few others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueSpread {
    counts: BucketCounts,
    total: u64,
    sum: u128,
    least: u64,
    greatest: u64,
}

/// One percentile of a [`ValueSpread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpreadPercentile {
    /// Which, in thousandths: 990 is p99.
    pub per_mille: u64,
    /// The least value such that so many values are no greater, within 1/128 of its size.
    pub value: u64,
    /// How many values lie above the percentile before it and not above this one.
    pub samples: u64,
}

/// The percentiles that schbench prints, in thousandths.
pub const PERCENTILES: [u64; 7] = [500, 750, 900, 950, 990, 995, 999];

impl ValueSpread {
    /// Counts one value.
    pub(super) fn record(&mut self, value: u64) {
        self.counts.add(bucket_of(value) as u32, 1);
        self.least = if self.total == 0 { value } else { self.least.min(value) };
        self.greatest = self.greatest.max(value);
        self.total += 1;
        self.sum += u128::from(value);
    }

    /// Adds another's counts.
    pub(super) fn merge(&mut self, other: &ValueSpread) {
        if other.total == 0 {
            return;
        }
        for (bucket, count) in other.counts.iter() {
            self.counts.add(bucket, count);
        }
        self.least = if self.total == 0 { other.least } else { self.least.min(other.least) };
        self.greatest = self.greatest.max(other.greatest);
        self.total += other.total;
        self.sum += other.sum;
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The sum of all values, or the largest number if it is larger.
    pub fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// The least value.
    pub fn min(&self) -> Option<u64> {
        (self.total > 0).then_some(self.least)
    }

    /// The greatest value.
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.greatest)
    }

    /// The greatest value of each bucket that is not empty, ascending, with the bucket's count.
    pub fn sizes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(bucket, count)| (greatest_in(bucket as usize).min(self.greatest), count))
    }

    /// The mean, rounded down.
    pub fn mean(&self) -> Option<u64> {
        let mean = self.sum.checked_div(u128::from(self.total))?;
        u64::try_from(mean).ok()
    }

    /// One percentile, in thousandths; `None` when nothing was counted.
    pub fn percentile(&self, per_mille: u64) -> Option<u64> {
        self.rank(per_mille).map(|(value, _)| value)
    }

    /// The value of a percentile, and how many values are no greater.
    fn rank(&self, per_mille: u64) -> Option<(u64, u64)> {
        let wanted = (u128::from(self.total) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter() {
            seen += count;
            if u128::from(seen) >= wanted {
                return Some((greatest_in(bucket as usize).clamp(self.least, self.greatest), seen));
            }
        }
        None
    }

    /// schbench's percentiles with the number of values between each and the one before; none when nothing was counted.
    pub fn percentiles(&self) -> Vec<SpreadPercentile> {
        let mut below = 0;
        let percentile = |per_mille: u64| {
            let (value, up_to) = self.rank(per_mille)?;
            let samples = up_to - below;
            below = up_to;
            Some(SpreadPercentile { per_mille, value, samples })
        };
        PERCENTILES.into_iter().map_while(percentile).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    #[test]
    fn it_agrees_with_the_histogram() {
        let (mut spread, mut histogram) = (ValueSpread::default(), Histogram::default());
        assert_eq!((spread.percentile(500), spread.percentiles()), (None, Vec::new()));
        let mut value = 3_u64;
        for _ in 0..5_000 {
            value = value * 48_271 % 0x7fff_ffff;
            spread.record(value >> (value % 20));
            histogram.record(value >> (value % 20));
        }
        for per_mille in [0, 1, 500, 990, 999, 1000] {
            assert_eq!(spread.percentile(per_mille), histogram.percentile(per_mille), "{per_mille}");
        }
        assert_eq!((spread.min(), spread.max()), (histogram.min(), histogram.max()));
        assert_eq!(spread.mean(), histogram.mean().map(|mean| mean as u64));
    }

    #[test]
    fn merging_is_counting_all_and_samples_lie_between_percentiles() {
        let (mut one, mut other, mut all) =
            (ValueSpread::default(), ValueSpread::default(), ValueSpread::default());
        for value in 1..=1000 {
            if value % 3 == 0 { &mut one } else { &mut other }.record(value);
            all.record(value);
        }
        one.merge(&other);
        one.merge(&ValueSpread::default());
        assert_eq!(one, all);
        let mut empty = ValueSpread::default();
        empty.merge(&all);
        assert_eq!(empty, all);
        let percentiles = all.percentiles();
        assert_eq!(percentiles.len(), 7);
        assert!(percentiles[0].samples >= 500 && percentiles[0].value >= 500);
        let up_to_p999: u64 = percentiles.iter().map(|percentile| percentile.samples).sum();
        assert!((999..=1000).contains(&up_to_p999), "{up_to_p999}");
    }
}
