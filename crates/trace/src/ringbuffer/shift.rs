//! A guest's time stamps to its host's: corrections that the recorder measured now and then, for each CPU.
//!
//! Facts: trace-cmd.dat.v7(5), `TIME_SHIFT`. Must not know: what comes of the host's stamps.

/// The corrections of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockCorrection {
    /// Whether corrections change steadily between two measurements.
    interpolate: bool,
    /// In order of time, each at a time of its own.
    samples: Vec<ClockSample>,
}

/// What was measured at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockSample {
    /// When, on the guest's clock.
    pub(crate) time: u64,
    /// What is to be added.
    pub(crate) offset: i64,
    /// How many ticks of the host's clock are 2^`fraction` of the guest's.
    pub(crate) scaling: u64,
    /// See `scaling`.
    pub(crate) fraction: u32,
}

impl ClockCorrection {
    /// The corrections that `samples` give; `None` when there are none.
    pub(crate) fn new(interpolate: bool, mut samples: Vec<ClockSample>) -> Option<ClockCorrection> {
        samples.sort_by_key(|sample| sample.time);
        samples.dedup_by_key(|sample| sample.time);
        (!samples.is_empty()).then_some(ClockCorrection { interpolate, samples })
    }

    /// The host's stamp for the guest's `stamp`: by the measurements before and after it, or the two nearest.
    pub(crate) fn apply(&self, stamp: u64) -> u64 {
        let [first, .., last] = self.samples.as_slice() else {
            let offset = self.samples.first().map_or(0, |only| only.offset);
            return stamp.wrapping_add_signed(offset);
        };
        let before = self.samples.partition_point(|sample| sample.time <= stamp).saturating_sub(1);
        let before = before.min(self.samples.len() - 2);
        let (from, to) = match self.samples.get(before..before + 2) {
            Some(&[from, to]) => (from, to),
            _ => (*first, *last),
        };
        let mut offset = i128::from(from.offset);
        if self.interpolate {
            let between = i128::from(to.time) - i128::from(from.time);
            let passed = i128::from(stamp) - i128::from(from.time);
            let change = i128::from(to.offset) - i128::from(from.offset);
            offset += (passed.saturating_mul(change) + between / 2) / between.max(1);
        }
        let scaled = (u128::from(stamp) * u128::from(from.scaling)).checked_shr(from.fraction).unwrap_or(0);
        // As the recorder's own arithmetic, in 64 bits.
        (scaled as u64).wrapping_add(offset as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time: u64, offset: i64) -> ClockSample {
        ClockSample { time, offset, scaling: 1, fraction: 0 }
    }

    #[test]
    fn stamps_are_shifted_by_the_measurements_around_them() {
        let samples = [sample(300, 50), sample(100, 10), sample(200, 20), sample(200, 99)];
        let shift = ClockCorrection::new(false, samples.to_vec()).expect("corrections");
        for (stamp, shifted) in
            [(50, 60), (100, 110), (150, 160), (200, 220), (299, 319), (300, 320), (400, 420)]
        {
            assert_eq!(shift.apply(stamp), shifted, "{stamp}");
        }
        let shift = ClockCorrection::new(true, samples.to_vec()).expect("corrections");
        for (stamp, shifted) in
            [(50, 56), (100, 110), (150, 165), (200, 220), (250, 285), (300, 350), (400, 480)]
        {
            assert_eq!(shift.apply(stamp), shifted, "{stamp}");
        }
    }

    #[test]
    fn one_measurement_is_an_offset_and_scaling_needs_two() {
        assert_eq!(ClockCorrection::new(true, Vec::new()), None);
        let one = ClockCorrection::new(true, vec![ClockSample { scaling: 7, ..sample(100, -30) }])
            .expect("corrections");
        assert_eq!((one.apply(50), one.apply(10)), (20, u64::MAX - 19));
        let scaled = |time| ClockSample { scaling: 3, fraction: 1, ..sample(time, 5) };
        let two = ClockCorrection::new(false, vec![scaled(0), scaled(10)]).expect("corrections");
        assert_eq!((two.apply(4), two.apply(100)), (11, 155));
        let wild = |time| ClockSample { scaling: u64::MAX, fraction: u32::MAX, ..sample(time, i64::MIN) };
        let wild = ClockCorrection::new(true, vec![wild(0), wild(u64::MAX)]).expect("corrections");
        let _ = (wild.apply(0), wild.apply(u64::MAX));
    }
}
