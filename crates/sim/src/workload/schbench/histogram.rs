//! How schbench counts latencies: buckets of growing width, exact extremes, percentiles.
//!
//! Must not know: threads, time, what is printed.

const GROUP_BITS: u32 = 8;
const GROUP: u32 = 1 << GROUP_BITS;
const GROUPS: u32 = 19;

/// How many buckets there are: 19 groups of 256.
pub const BUCKETS: usize = (GROUPS * GROUP) as usize;

/// The percentiles that are printed, per cent.
pub const PERCENTILES: [f64; 7] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9];

/// The bucket that counts a latency of `us` µs. Below 512 µs each has its own; from there each octave has 256; what is
/// 2²⁶ µs (67 s) or more shares the last one.
pub fn bucket_of(us: u32) -> usize {
    let magnitude = us.checked_ilog2().unwrap_or(0);
    if magnitude <= GROUP_BITS {
        return us as usize;
    }
    let dropped_bits = magnitude - GROUP_BITS;
    let bucket = (dropped_bits + 1) * GROUP + ((us >> dropped_bits) & (GROUP - 1));
    (bucket as usize).min(BUCKETS - 1)
}

/// The latency that a bucket stands for, µs: the middle of its range. Buckets beyond the last count as the last.
pub fn value_of(bucket: usize) -> u32 {
    let bucket = bucket.min(BUCKETS - 1) as u32;
    if bucket < 2 * GROUP {
        return bucket;
    }
    let dropped_bits = bucket / GROUP - 1;
    let place = bucket % GROUP;
    (1 << (dropped_bits + GROUP_BITS)) + ((2 * place + 1) << (dropped_bits - 1))
}

/// A percentile as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchbenchPercentile {
    /// The value of the bucket that it falls into, µs.
    pub us: u32,
    /// How many samples lie between this percentile's bucket (inclusive) and the previous one's (exclusive).
    pub samples: u64,
}

/// Latencies of all workers, counted.
///
/// The real program has one for each worker and adds them up to print; sums are the same.
#[derive(Clone, Debug)]
pub struct SchbenchHistogram {
    buckets: Vec<u32>,
    samples: u64,
}

impl Default for SchbenchHistogram {
    fn default() -> SchbenchHistogram {
        SchbenchHistogram { buckets: vec![0; BUCKETS], samples: 0 }
    }
}

impl SchbenchHistogram {
    /// Counts one latency, µs.
    pub fn add(&mut self, us: u32) {
        let bucket = &mut self.buckets[bucket_of(us)];
        *bucket = bucket.wrapping_add(1);
        self.samples += 1;
    }

    /// Counts so many latencies of a bucket; buckets beyond the last count as the last.
    pub fn add_to_bucket(&mut self, bucket: usize, count: u32) {
        let own = &mut self.buckets[bucket.min(BUCKETS - 1)];
        *own = own.wrapping_add(count);
        self.samples += u64::from(count);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.buckets.fill(0);
        self.samples = 0;
    }

    /// How many latencies were counted.
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// The value of the first bucket at which `percent` per cent of all samples are reached, µs; 0 without samples.
    pub fn percentile(&self, percent: f64) -> u32 {
        value_of(self.reached(percent).0)
    }

    /// The printed percentiles with their counts, in the order of [`PERCENTILES`].
    pub fn percentiles(&self) -> [SchbenchPercentile; PERCENTILES.len()] {
        let mut before = 0;
        PERCENTILES.map(|percent| {
            let (bucket, sum) = self.reached(percent);
            let samples = sum - before;
            before = sum;
            SchbenchPercentile { us: value_of(bucket), samples }
        })
    }

    /// The percentiles of a list, which rises, with their counts.
    pub fn percentiles_of(&self, percents: &[f64]) -> Vec<SchbenchPercentile> {
        let mut before = 0;
        let of = |&percent: &f64| {
            let (bucket, sum) = self.reached(percent);
            let samples = sum - before;
            before = sum;
            SchbenchPercentile { us: value_of(bucket), samples }
        };
        percents.iter().map(of).collect()
    }

    /// The first bucket at which `percent` per cent are reached, and how many samples lie up to its end.
    ///
    /// In floating point, in the program's order of operations, because it decides by that: of 1000 samples 99.9 % are
    /// 1000, not 999, since 99.9 / 100 × 1000 comes out a little above 999.
    fn reached(&self, percent: f64) -> (usize, u64) {
        let wanted = percent / 100.0 * self.samples as f64;
        let mut sum = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            sum += u64::from(count);
            if sum as f64 >= wanted {
                return (bucket, sum);
            }
        }
        (BUCKETS - 1, sum)
    }
}

/// The exact smallest and largest latency of a worker, µs; 0 until there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// The smallest.
    pub min: u32,
    /// The largest.
    pub max: u32,
}

impl Extremes {
    /// Takes one latency, µs, into account.
    pub fn add(&mut self, us: u32) {
        self.max = self.max.max(us);
        if self.min == 0 || us < self.min {
            self.min = us;
        }
    }

    /// The extremes of all workers, combined in their order as the program does it: a worker without samples counts as
    /// one with a minimum of 0, and a 0 gives way to whatever comes next. So the result misses the workers before the
    /// last one without samples, and is 0 if that is the last of all.
    pub fn combine(workers: impl Iterator<Item = Extremes>) -> Extremes {
        workers.fold(Extremes::default(), |all, worker| Extremes {
            min: if all.min == 0 { worker.min } else { all.min.min(worker.min) },
            max: all.max.max(worker.max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every percentile in the tables of the reports on the load balancer (good, bad) and on blocked load (without,
    /// with the patch).
    const PRINTED: [[u32; 7]; 4] = [
        [155, 189, 216, 227, 256, 1510, 3132],
        [147, 182, 205, 224, 12240, 12752, 13104],
        [210, 619, 665, 703, 12656, 12784, 13424],
        [188, 238, 623, 657, 717, 725, 725],
    ];

    #[test]
    fn every_percentile_of_the_reports_is_a_bucket_value() {
        for us in PRINTED.into_iter().flatten() {
            assert_eq!(value_of(bucket_of(us)), us);
        }
        // Not every number is: the test can fail.
        assert_ne!(value_of(bucket_of(12_241)), 12_241);
        assert_ne!(value_of(bucket_of(512)), 512);
    }

    #[test]
    fn buckets_follow_the_formula() {
        for us in 0..512 {
            assert_eq!((bucket_of(us), value_of(us as usize)), (us as usize, us));
        }
        assert_eq!((bucket_of(512), value_of(512)), (512, 513));
        assert_eq!((bucket_of(513), bucket_of(514)), (512, 513));
        assert_eq!((bucket_of(1023), value_of(767)), (767, 1023));
        assert_eq!((bucket_of(1024), value_of(768)), (768, 1026));
        assert_eq!(12_240, 8_192 + 126 * 32 + 16);
        assert_eq!(bucket_of(12_240), 6 * 256 + 126);
        assert_eq!((bucket_of((1 << 26) - 1), bucket_of(1 << 26)), (BUCKETS - 1, BUCKETS - 1));
        assert_eq!((bucket_of(u32::MAX), value_of(BUCKETS - 1)), (BUCKETS - 1, 67_043_328));
        assert_eq!(value_of(usize::MAX), value_of(BUCKETS - 1));
    }

    #[test]
    fn every_bucket_round_trips_and_values_rise() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(value_of(bucket)), bucket);
            assert!(bucket == 0 || value_of(bucket) > value_of(bucket - 1));
        }
    }

    fn histogram(samples: &[(u32, u32)]) -> SchbenchHistogram {
        let mut histogram = SchbenchHistogram::default();
        for &(us, count) in samples {
            (0..count).for_each(|_| histogram.add(us));
        }
        histogram
    }

    #[test]
    fn percentiles_are_the_first_bucket_that_reaches_them() {
        let histogram = histogram(&[(10, 50), (20, 25), (30, 15), (40, 5), (50, 4), (60, 1)]);
        let values = histogram.percentiles().map(|percentile| (percentile.us, percentile.samples));
        assert_eq!(values, [(10, 50), (20, 25), (30, 15), (40, 5), (50, 4), (60, 1), (60, 0)]);
        assert_eq!(histogram.percentile(0.0), 0, "reached before the first sample");
        assert_eq!(histogram.percentile(100.0), 60);
        assert_eq!(histogram.percentile(101.0), value_of(BUCKETS - 1), "never reached");
    }

    #[test]
    fn rounding_of_the_last_percentile_is_the_programs() {
        assert_eq!(histogram(&[(10, 999), (20, 1)]).percentile(99.9), 20, "999 of 1000 are not enough");
        assert_eq!(histogram(&[(10, 1_000), (20, 1)]).percentile(99.9), 10);
        assert_eq!(histogram(&[(10, 99), (20, 1)]).percentile(99.0), 10);
        assert_eq!(histogram(&[(10, 199), (20, 1)]).percentile(99.5), 10);
    }

    #[test]
    fn an_empty_histogram_has_zeros() {
        let mut histogram = histogram(&[(7, 3)]);
        histogram.clear();
        assert_eq!(histogram.samples(), 0);
        assert_eq!(histogram.percentiles(), [SchbenchPercentile { us: 0, samples: 0 }; 7]);
    }

    #[test]
    fn extremes_are_exact_and_combine_as_the_program_does() {
        let worker = |latencies: &[u32]| {
            let mut extremes = Extremes::default();
            latencies.iter().for_each(|&us| extremes.add(us));
            extremes
        };
        let combine = |workers: &[Extremes]| {
            let all = Extremes::combine(workers.iter().copied());
            (all.min, all.max)
        };
        let (low, high, none) = (worker(&[21, 900]), worker(&[1_000, 513, 13_172]), worker(&[]));
        assert_eq!(combine(&[low, high]), (21, 13_172));
        assert_eq!(
            combine(&[low, none, high]),
            (513, 13_172),
            "the minimum before a worker without samples is lost"
        );
        assert_eq!(combine(&[low, high, none]), (0, 13_172));
        assert_eq!(combine(&[none, low]), (21, 900));
        assert_eq!(combine(&[]), (0, 0));
    }
}
