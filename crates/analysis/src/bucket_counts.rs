//! Counts of values in numbered buckets, in little room where there are few values.
//!
//! Must not know: which values a bucket holds.

/// How many values are in each bucket. Room is taken by buckets in use, and by few others: there is one for each name and task.
#[derive(Clone, Debug)]
pub(crate) enum BucketCounts {
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

impl Default for BucketCounts {
    fn default() -> BucketCounts {
        BucketCounts::Few(Vec::new())
    }
}

impl BucketCounts {
    /// Counts values of a bucket.
    #[inline]
    pub(crate) fn add(&mut self, bucket: u32, count: u64) {
        if let BucketCounts::Row { first, counts } = self
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
            BucketCounts::Few(few) => match few.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
                Ok(place) => few[place].1 += count,
                Err(place) => {
                    few.insert(place, (bucket, count));
                    self.become_row();
                }
            },
            BucketCounts::Row { first, counts } => {
                let last = bucket.max(*first + counts.len() as u32 - 1);
                let row = (last - bucket.min(*first)) as usize + 1;
                let in_use = counts.iter().filter(|&&count| count > 0).count();
                if takes_more_than(2 * ROW_ROOM, row, in_use) {
                    *self = BucketCounts::Few(self.iter().collect());
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
        let BucketCounts::Few(few) = self else { return };
        let (Some(&(first, _)), Some(&(last, _))) = (few.first(), few.last()) else { return };
        let row = (last - first) as usize + 1;
        if few.len() < FEW || takes_more_than(ROW_ROOM, row, few.len()) {
            return;
        }
        let mut counts = vec![0; row];
        for &(bucket, count) in &*few {
            counts[(bucket - first) as usize] = count;
        }
        *self = BucketCounts::Row { first, counts };
    }

    /// The buckets in use, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        let (few, row, first) = match self {
            BucketCounts::Few(few) => (few.as_slice(), [].as_slice(), 0),
            BucketCounts::Row { first, counts } => ([].as_slice(), counts.as_slice(), *first),
        };
        let row = (first..).zip(row.iter().copied()).filter(|&(_, count)| count > 0);
        few.iter().copied().chain(row)
    }
}

impl Eq for BucketCounts {}

impl PartialEq for BucketCounts {
    fn eq(&self, other: &BucketCounts) -> bool {
        self.iter().eq(other.iter())
    }
}

#[cfg(test)]
impl BucketCounts {
    /// How many bytes the counts take.
    pub(crate) fn room(&self) -> usize {
        match self {
            BucketCounts::Few(few) => few.capacity() * size_of::<(u32, u64)>(),
            BucketCounts::Row { counts, .. } => counts.capacity() * size_of::<u64>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_buckets_count_as_few_do() {
        let counts = |buckets: &[u32]| {
            let mut counts = BucketCounts::default();
            buckets.iter().for_each(|&bucket| counts.add(bucket, 1));
            counts
        };
        let up = (100..200).chain([300, 90]).collect::<Vec<_>>();
        let mut mixed = up.clone();
        mixed.reverse();
        let (up, mixed) = (counts(&up), counts(&mixed));
        assert!(matches!(
            (&up, &mixed),
            (BucketCounts::Row { first: 90, .. }, BucketCounts::Row { first: 90, .. })
        ));
        assert_eq!((&up, up.iter().count()), (&mixed, 102));
        assert_ne!(up, counts(&[90]));
        let one_far = counts(&(100..130).chain([7000, 90]).collect::<Vec<_>>());
        assert!(matches!(one_far, BucketCounts::Few(_)), "a row of 6911 for 32 buckets");
        assert_eq!(one_far.iter().map(|(_, count)| count).sum::<u64>(), 32);
        let far = counts(&(0..40).map(|place| place * 100).collect::<Vec<_>>());
        assert!(matches!(far, BucketCounts::Few(_)), "a row of 3901 for 40 buckets");
        assert_eq!(far.iter().map(|(bucket, _)| bucket).max(), Some(3900));
    }

    #[test]
    fn a_few_values_take_little_room_however_large_they_are() {
        let mut counts = BucketCounts::default();
        assert_eq!(counts.room(), 0);
        for (bucket, room) in [(2944, 64), (7295, 64), (0, 64), (5000, 64), (5001, 128)] {
            counts.add(bucket, 1);
            assert!(counts.room() <= room, "{bucket}: {}", counts.room());
        }
    }
}
