//! A distribution that costs little where there are few values: one for each task.
//!
//! Must not know: what the values are.

use crate::histogram::{bucket_of, greatest_in};

/// Counts of values in the buckets of [`Histogram`](crate::histogram::Histogram), each within 1/128 of its size; the
/// least, the greatest and the sum are exact. Room is taken by buckets in use, and by few others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueSpread {
    counts: SpreadBuckets,
    total: u64,
    sum: u128,
    least: u64,
    greatest: u64,
}

/// How many values are in each bucket.
#[derive(Clone, Debug)]
enum SpreadBuckets {
    /// Bucket and count, by bucket: only those in use.
    Few(Vec<(u32, u64)>),
    /// All from the bucket `first` on: a bucket is found by its place.
    Row { first: u32, counts: Vec<u64> },
}

/// Counts become a row when it takes at most so many times their room, and are one no more when it would take twice that.
const ROW_ROOM: usize = 4;

/// Whether a row of `row` buckets takes more than `times` the room of the `in_use` alone.
fn takes_more_than(times: usize, row: usize, in_use: usize) -> bool {
    row * size_of::<u64>() > times * in_use * size_of::<(u32, u64)>()
}

/// Fewer than these are found as fast without a row.
const FEW: usize = 16;

impl Default for SpreadBuckets {
    fn default() -> SpreadBuckets {
        SpreadBuckets::Few(Vec::new())
    }
}

impl SpreadBuckets {
    #[inline]
    fn add(&mut self, bucket: u32, count: u64) {
        if let SpreadBuckets::Row { first, counts } = self
            && let Some(place) = bucket.checked_sub(*first)
            && let Some(counted) = counts.get_mut(place as usize)
        {
            *counted += count;
            return;
        }
        self.add_seldom(bucket, count);
    }

    fn add_seldom(&mut self, bucket: u32, count: u64) {
        match self {
            SpreadBuckets::Few(few) => match few.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
                Ok(place) => few[place].1 += count,
                Err(place) => {
                    few.insert(place, (bucket, count));
                    self.become_row();
                }
            },
            SpreadBuckets::Row { first, counts } => {
                let last = bucket.max(*first + counts.len() as u32 - 1);
                let row = (last - bucket.min(*first)) as usize + 1;
                let in_use = counts.iter().filter(|&&count| count > 0).count();
                if takes_more_than(2 * ROW_ROOM, row, in_use) {
                    *self = SpreadBuckets::Few(self.iter().collect());
                    return self.add_seldom(bucket, count);
                }
                if bucket < *first {
                    counts.splice(0..0, std::iter::repeat_n(0, (*first - bucket) as usize));
                    *first = bucket;
                }
                counts.resize(row, 0);
                counts[(bucket - *first) as usize] += count;
            }
        }
    }

    /// Becomes a row where that is worth its room.
    fn become_row(&mut self) {
        let SpreadBuckets::Few(few) = self else { return };
        let (Some(&(first, _)), Some(&(last, _))) = (few.first(), few.last()) else { return };
        let row = (last - first) as usize + 1;
        if few.len() < FEW || takes_more_than(ROW_ROOM, row, few.len()) {
            return;
        }
        let mut counts = vec![0; row];
        for &(bucket, count) in &*few {
            counts[(bucket - first) as usize] = count;
        }
        *self = SpreadBuckets::Row { first, counts };
    }

    /// The buckets in use, by number.
    fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        let (few, row, first) = match self {
            SpreadBuckets::Few(few) => (few.as_slice(), [].as_slice(), 0),
            SpreadBuckets::Row { first, counts } => ([].as_slice(), counts.as_slice(), *first),
        };
        let row = (first..).zip(row.iter().copied()).filter(|&(_, count)| count > 0);
        few.iter().copied().chain(row)
    }
}

impl Eq for SpreadBuckets {}

impl PartialEq for SpreadBuckets {
    fn eq(&self, other: &SpreadBuckets) -> bool {
        self.iter().eq(other.iter())
    }
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
    fn rows_of_buckets_count_as_few_do() {
        let counts = |buckets: &[u32]| {
            let mut counts = SpreadBuckets::default();
            buckets.iter().for_each(|&bucket| counts.add(bucket, 1));
            counts
        };
        let up = (100..200).chain([300, 90]).collect::<Vec<_>>();
        let mut mixed = up.clone();
        mixed.reverse();
        let (up, mixed) = (counts(&up), counts(&mixed));
        assert!(matches!(
            (&up, &mixed),
            (SpreadBuckets::Row { first: 90, .. }, SpreadBuckets::Row { first: 90, .. })
        ));
        assert_eq!((&up, up.iter().count()), (&mixed, 102));
        assert_ne!(up, counts(&[90]));
        let one_far = counts(&(100..130).chain([7000, 90]).collect::<Vec<_>>());
        assert!(matches!(one_far, SpreadBuckets::Few(_)), "a row of 6911 for 32 buckets");
        assert_eq!(one_far.iter().map(|(_, count)| count).sum::<u64>(), 32);
        let far = counts(&(0..40).map(|place| place * 100).collect::<Vec<_>>());
        assert!(matches!(far, SpreadBuckets::Few(_)), "a row of 3901 for 40 buckets");
        assert_eq!(far.iter().map(|(bucket, _)| bucket).max(), Some(3900));
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
