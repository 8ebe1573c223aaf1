//! Distributions in bounded memory: counts in buckets whose width grows with the value.

use crate::bucket_counts::BucketCounts;

/// Bits of a value that its bucket keeps: 128 buckets to each doubling.
const KEPT_BITS: u32 = 7;

/// Buckets of one doubling.
const BUCKETS: usize = 1 << KEPT_BITS;

/// Counts of values, each kept within 1/128 (0.8 %) of its size; the least and the greatest are exact.
///
/// Histograms of the same kind can be added, so that many runs or hosts make one distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: BucketCounts,
    total: u64,
    sum: u128,
    least: Option<u64>,
    greatest: Option<u64>,
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.counts.add(bucket_of(value) as u32, 1);
        self.total += 1;
        self.sum += u128::from(value);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.greatest = Some(self.greatest.map_or(value, |greatest| greatest.max(value)));
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Histogram) {
        other.counts.iter().for_each(|(bucket, count)| self.counts.add(bucket, count));
        self.total += other.total;
        self.sum += other.sum;
        self.least = [self.least, other.least].into_iter().flatten().min();
        self.greatest = [self.greatest, other.greatest].into_iter().flatten().max();
    }

    /// The buckets that are not empty, by number, with their counts; with [`sum`](Self::sum), [`min`](Self::min) and
    /// [`max`](Self::max) all there is to it.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        self.counts.iter().map(|(bucket, count)| (bucket as usize, count))
    }

    /// The greatest value of each bucket that is not empty, ascending, with the bucket's count.
    pub fn sizes(&self) -> impl Iterator<Item = (u64, u64)> {
        let greatest = self.greatest.unwrap_or(u64::MAX);
        self.buckets().map(move |(bucket, count)| (greatest_in(bucket).min(greatest), count))
    }

    /// The sum of all values, exact.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// A histogram of these parts. `None` when they cannot be those of one: a bucket that there is not, ends that lie in
    /// other buckets than the first and the last, a sum that such values cannot have.
    pub fn from_parts(
        buckets: impl IntoIterator<Item = (usize, u64)>,
        sum: u128,
        ends: Option<(u64, u64)>,
    ) -> Option<Histogram> {
        let mut histogram = Histogram { sum, ..Histogram::default() };
        let (mut least, mut greatest) = (0_u128, 0_u128);
        let mut next = 0;
        for (bucket, count) in buckets {
            if count == 0 || bucket < next || bucket > bucket_of(u64::MAX) {
                return None;
            }
            next = bucket + 1;
            histogram.counts.add(bucket as u32, count);
            histogram.total = histogram.total.checked_add(count)?;
            let below = bucket.checked_sub(1).map_or(0, |before| u128::from(greatest_in(before)) + 1);
            least += below * u128::from(count);
            greatest += u128::from(greatest_in(bucket)) * u128::from(count);
        }
        let bounds = histogram.buckets().next().zip(histogram.buckets().last());
        match (ends, bounds) {
            (None, None) if sum == 0 => Some(histogram),
            (Some((min, max)), Some(((first, _), (last, _)))) => {
                let fits = bucket_of(min) == first && bucket_of(max) == last && min <= max;
                histogram.least = Some(min);
                histogram.greatest = Some(max);
                (fits && (least..=greatest).contains(&sum)).then_some(histogram)
            }
            _ => None,
        }
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

    /// How far two distributions lie apart: the greatest difference between the shares of values up to any size, 0 to 1 (Kolmogorov
    /// and Smirnov), as far as buckets tell. `None` when nothing was counted in one of them.
    pub fn distance(&self, other: &Histogram) -> Option<f64> {
        let (mine, theirs) = (i128::from(self.total), i128::from(other.total));
        let steps = self.buckets().map(|(bucket, count)| (bucket, i128::from(count) * theirs));
        let others = other.buckets().map(|(bucket, count)| (bucket, -i128::from(count) * mine));
        let mut steps = steps.chain(others).collect::<Vec<_>>();
        steps.sort_unstable();
        let (mut ahead, mut farthest) = (0_i128, 0_i128);
        for bucket in steps.chunk_by(|one, other| one.0 == other.0) {
            ahead += bucket.iter().map(|(_, step)| step).sum::<i128>();
            farthest = farthest.max(ahead.abs());
        }
        (mine > 0 && theirs > 0).then(|| farthest as f64 / (mine * theirs) as f64)
    }

    /// The least value such that at least `per_mille` thousandths of all values are no greater (990 is p99), within
    /// 1/128 of its size. `None` when nothing was counted.
    pub fn percentile(&self, per_mille: u64) -> Option<u64> {
        let wanted = (u128::from(self.total) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets() {
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
    fn a_value_of_seconds_takes_no_more_room_than_one_of_nanoseconds() {
        for value in [1, 1_000_000_000, u64::MAX] {
            let mut histogram = Histogram::default();
            histogram.record(value);
            assert!(histogram.counts.room() <= 64, "{value}: {}", histogram.counts.room());
        }
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
    fn the_distance_is_the_greatest_difference_of_shares() {
        let of = |values: &[u64]| {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.record(value));
            histogram
        };
        let some = of(&[1, 2, 3, 50]);
        for (other, distance) in [
            (&[1, 2, 3, 50][..], Some(0.0)),
            (&[50, 50, 1, 1, 2, 2, 3, 3], Some(0.0)),
            (&[1, 2, 50, 60], Some(0.25)),
            (&[2, 2, 2, 2], Some(0.5)),
            (&[100, 1_000_000], Some(1.0)),
            (&[], None),
        ] {
            assert_eq!(some.distance(&of(other)), distance, "{other:?}");
            assert_eq!(of(other).distance(&some), distance, "{other:?}");
        }
    }

    #[test]
    fn sizes_count_every_value_once() {
        let mut histogram = Histogram::default();
        let values = [3, 3, 1_000_003, 77_000_000_001];
        values.into_iter().for_each(|value| histogram.record(value));
        let sizes = histogram.sizes().collect::<Vec<_>>();
        assert_eq!(sizes.iter().map(|(_, count)| count).sum::<u64>(), histogram.total());
        assert_eq!((sizes[0], sizes[2]), ((3, 2), (77_000_000_001, 1)));
        assert!((1_000_003..=1_007_816).contains(&sizes[1].0), "{sizes:?}");
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

    #[test]
    fn its_parts_make_it_up_again_and_others_do_not() {
        let mut histogram = Histogram::default();
        for value in [0, 5, 5, 130, 131, 77_777, u64::MAX] {
            histogram.record(value);
        }
        let parts = || histogram.buckets().collect::<Vec<_>>();
        let again = Histogram::from_parts(parts(), histogram.sum(), Some((0, u64::MAX)));
        assert_eq!(again, Some(histogram.clone()));
        assert_eq!(Histogram::from_parts([], 0, None), Some(Histogram::default()));
        let made_up = [
            Histogram::from_parts(parts(), 3, Some((0, u64::MAX))),
            Histogram::from_parts(parts(), histogram.sum(), Some((1, u64::MAX))),
            Histogram::from_parts(parts(), histogram.sum(), None),
            Histogram::from_parts([(1 << 40, 1)], 1, Some((1, 1))),
            Histogram::from_parts([(5, 1), (5, 1)], 10, Some((5, 5))),
            Histogram::from_parts([(5, u64::MAX), (6, 2)], 10, Some((5, 6))),
            Histogram::from_parts([], 1, None),
        ];
        assert!(made_up.iter().all(Option::is_none), "{made_up:?}");
    }
}
