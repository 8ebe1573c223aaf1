//! How much more there is of something that may be nothing: differences as they stand, where a ratio has no meaning.
//!
//! Must not know: what the interval decides.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::course::is_one_course;
use super::describe::{mean, standard_deviation};

/// Intervals hold in this share of all cases.
const CONFIDENCE: f64 = 0.95;

/// The other side's mean less the baseline's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeanDifference {
    /// The difference.
    pub mean: f64,
    /// The lower end of its interval; none where nothing is known of chance.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// How often chance alone makes as much.
    pub p: Option<f64>,
}

impl MeanDifference {
    const fn only(mean: f64) -> MeanDifference {
        MeanDifference { mean, low: None, high: None, p: None }
    }

    fn by_t(mean: f64, error: f64, freedom: f64, confidence: f64) -> MeanDifference {
        let Ok(t) = StudentsT::new(0.0, 1.0, freedom) else { return MeanDifference::only(mean) };
        let reach = t.inverse_cdf(f64::midpoint(1.0, confidence)) * error;
        let p = 2.0 * (1.0 - t.cdf((mean / error).abs()));
        MeanDifference { mean, low: Some(mean - reach), high: Some(mean + reach), p: Some(p.clamp(0.0, 1.0)) }
    }
}

/// Runs in pairs: `baseline[i]` and `other[i]` had one seed.
///
/// # Panics
/// The two are not equally long.
pub fn paired_difference(baseline: &[f64], other: &[f64]) -> MeanDifference {
    paired_difference_at(baseline, other, CONFIDENCE)
}

/// [`paired_difference`] with an interval that holds in another share of all cases.
pub(super) fn paired_difference_at(baseline: &[f64], other: &[f64], confidence: f64) -> MeanDifference {
    assert_eq!(baseline.len(), other.len(), "paired runs come in pairs");
    let differences = baseline.iter().zip(other).map(|(base, new)| new - base).collect::<Vec<_>>();
    let shift = if differences.is_empty() { 0.0 } else { mean(&differences) };
    if is_one_course(baseline) && is_one_course(other) {
        return MeanDifference::only(shift);
    }
    match standard_deviation(&differences) {
        Some(0.0) if shift == 0.0 => {
            MeanDifference { mean: 0.0, low: Some(0.0), high: Some(0.0), p: Some(1.0) }
        }
        Some(deviation) if deviation > 0.0 => {
            let runs = differences.len() as f64;
            MeanDifference::by_t(shift, deviation / runs.sqrt(), runs - 1.0, confidence)
        }
        _ => MeanDifference::only(shift),
    }
}

/// Runs that have nothing in common but what is compared: Welch's t.
pub fn unpaired_difference(baseline: &[f64], other: &[f64]) -> MeanDifference {
    unpaired_difference_at(baseline, other, CONFIDENCE)
}

/// [`unpaired_difference`] with an interval that holds in another share of all cases.
pub(super) fn unpaired_difference_at(baseline: &[f64], other: &[f64], confidence: f64) -> MeanDifference {
    if baseline.is_empty() || other.is_empty() {
        return MeanDifference::default();
    }
    let shift = mean(other) - mean(baseline);
    let spreads = standard_deviation(baseline).zip(standard_deviation(other));
    let Some((base, new)) = spreads else { return MeanDifference::only(shift) };
    let (base_count, new_count) = (baseline.len() as f64, other.len() as f64);
    let (base, new) = (base.powi(2) / base_count, new.powi(2) / new_count);
    if base + new == 0.0 {
        return MeanDifference::only(shift);
    }
    let freedom =
        (base + new).powi(2) / (base.powi(2) / (base_count - 1.0) + new.powi(2) / (new_count - 1.0));
    MeanDifference::by_t(shift, (base + new).sqrt(), freedom, confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_nothing_before_has_a_difference() {
        let found = paired_difference(&[0.0, 0.0, 0.0, 0.0], &[10.0, 11.0, 9.0, 10.0]);
        assert!(found.p.is_some_and(|p| p < 0.001) && found.low.is_some_and(|low| low > 8.0), "{found:?}");
        let chance = paired_difference(&[1.0, 5.0, 3.0], &[5.0, 1.0, 3.5]);
        assert!(chance.p.is_some_and(|p| p > 0.5), "{chance:?}");
    }

    #[test]
    fn one_course_of_events_has_no_interval() {
        for (base, new) in [(&[1.0][..], &[2.0][..]), (&[1.0, 1.0], &[3.0, 3.0])] {
            let found = paired_difference(base, new);
            assert_eq!((found.p, found.low), (None, None));
            assert_eq!(found.mean, unpaired_difference(base, new).mean);
        }
        let alike = paired_difference(&[1.0, 2.0], &[1.0, 2.0]);
        assert_eq!((alike.mean, alike.p), (0.0, Some(1.0)));
    }

    #[test]
    fn two_samples_are_compared_by_what_they_scatter() {
        let found = unpaired_difference(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0]);
        assert!(found.p.is_some_and(|p| p < 0.001) && (found.mean - 10.0).abs() < 1e-9, "{found:?}");
        assert_eq!(unpaired_difference(&[], &[1.0]), MeanDifference::default());
    }
}
