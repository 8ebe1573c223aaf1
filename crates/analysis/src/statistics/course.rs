//! Whether some runs tell anything of chance.
//!
//! Runs that all give one value, and a single run, are one course of events: they may be one possibility of many, and nothing in
//! them says how far others scatter. No test, no interval and no bound on error has anything to go by there.
//!
//! Must not know: what the values are.

/// Values that differ by less than this share of themselves are equal: arithmetic alone leaves such differences.
const ROUNDING: f64 = 1e-12;

/// Whether all values are equal, or too few to differ.
pub fn is_one_course(values: &[f64]) -> bool {
    let Some((&first, others)) = values.split_first() else { return true };
    let (low, high) =
        others.iter().fold((first, first), |(low, high), &value| (low.min(value), high.max(value)));
    let size = low.abs().max(high.abs());
    // Values that are no numbers are never the same.
    values.iter().all(|value| !value.is_nan()) && high - low <= ROUNDING * size
}

/// Whether two sides' runs say nothing of how they differ: a side has no second run, or no run of either differs from its others.
/// Where only one side's runs are alike, the other shows that chance plays a part, and how far it goes.
pub(super) fn decide_nothing(baseline: &[f64], other: &[f64]) -> bool {
    baseline.len().min(other.len()) < 2 || (is_one_course(baseline) && is_one_course(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_never_differ_are_one_course() {
        for alike in [&[][..], &[7.0], &[0.0, 0.0], &[5.0; 10], &[0.1 + 0.2, 0.3, 0.3], &[-2.0, -2.0]] {
            assert!(is_one_course(alike), "{alike:?}");
        }
        for varied in [&[1.0, 1.001][..], &[0.0, 1e-300], &[5.0, 5.0, 5.0, 6.0], &[-1.0, 1.0]] {
            assert!(!is_one_course(varied), "{varied:?}");
        }
        assert!(!is_one_course(&[f64::NAN, f64::NAN]));
    }
}
