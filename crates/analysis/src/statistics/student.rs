//! Intervals by Student's t, of pairs and of two samples.
//!
//! Runs are compared by the logarithms of their values, so that what comes out is a ratio, and since latencies and rates
//! scatter by factors. Where a value is zero, differences relative to the baseline's mean take their place.
//!
//! Must not know: what the interval decides.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use super::course::decide_nothing;
use super::describe::{mean, standard_deviation};
use super::estimate::{Estimate, IntervalMethod, Noise};
use super::looks::LookLevels;
use super::modes::two_modes;
use super::rank::{rank_sum_p, shift_of_ranks};

/// Intervals hold in this share of all cases.
const CONFIDENCE: f64 = 0.95;

/// Differences that scatter by less than this are equal: arithmetic alone leaves as much.
const ROUNDING: f64 = 1e-12;

/// Two samples count as spread alike unless an F test at this level says otherwise.
const SPREADS_DIFFER: f64 = 0.05;

/// The scale on which values are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ComparisonScale {
    /// Logarithms.
    Ratio,
    /// Shares of the baseline's mean.
    Shift(f64),
}

impl ComparisonScale {
    fn of(baseline: &[f64], other: &[f64]) -> ComparisonScale {
        let positive = baseline.iter().chain(other).all(|&value| value > 0.0);
        if positive { ComparisonScale::Ratio } else { ComparisonScale::Shift(mean(baseline)) }
    }

    fn map(self, values: &[f64]) -> Vec<f64> {
        let one = |&value: &f64| match self {
            ComparisonScale::Ratio => value.ln(),
            ComparisonScale::Shift(base_mean) => value / base_mean,
        };
        values.iter().map(one).collect()
    }

    /// From a difference on this scale to a ratio. No metric is negative, so no ratio is.
    fn ratio(self, shift: f64) -> f64 {
        match self {
            ComparisonScale::Ratio => shift.exp(),
            ComparisonScale::Shift(_) => (1.0 + shift).max(0.0),
        }
    }
}

/// The mean of independent values, and how far it may be from the truth either way with this confidence, by Student's t. `None`
/// of fewer than two values, and where all are equal: then nothing is known of how they scatter.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let deviation = standard_deviation(values).filter(|&deviation| deviation > 0.0)?;
    let count = values.len() as f64;
    let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(f64::midpoint(1.0, confidence));
    Some((mean(values), t * deviation / count.sqrt()))
}

/// Compares runs in pairs: `baseline[i]` and `other[i]` had the same seed.
///
/// # Panics
/// The two are not equally long.
pub fn paired(baseline: &[f64], other: &[f64]) -> Estimate {
    paired_at(baseline, other, CONFIDENCE)
}

/// [`paired`] at one of several looks: the interval holds at all of them together, and so does the probability.
///
/// # Panics
/// The two are not equally long.
pub fn paired_at_look(baseline: &[f64], other: &[f64], levels: &LookLevels) -> Estimate {
    over_all_looks(paired_at(baseline, other, 1.0 - levels.level(1.0 - CONFIDENCE)), levels)
}

/// [`paired_at_look`] of runs whose seeds are known to alter events: where a metric is the same in all runs of a side, all pairs differ
/// alike, and their sign is counted. To [`paired`], which does not know what the seeds do, such runs are one course of events.
///
/// # Panics
/// The two are not equally long.
pub fn paired_seeds_at_look(baseline: &[f64], other: &[f64], levels: &LookLevels) -> Estimate {
    let estimate = paired_at_look(baseline, other, levels);
    let scale = ComparisonScale::of(baseline, other);
    let shift = mean(&scale.map(other)) - mean(&scale.map(baseline));
    let runs = baseline.len();
    if !estimate.one_course || runs < 2 || !shift.is_finite() || estimate.ratio == Some(1.0) {
        return estimate;
    }
    let noise =
        Noise { shift, deviation: 0.0, freedom_per_run: 1, runs, is_log: scale == ComparisonScale::Ratio };
    over_all_looks(by_signs(scale, noise, 1.0 - levels.level(1.0 - CONFIDENCE)), levels)
}

/// [`unpaired`] at one of several looks.
pub fn unpaired_at_look(baseline: &[f64], other: &[f64], levels: &LookLevels) -> Estimate {
    over_all_looks(unpaired_at(baseline, other, 1.0 - levels.level(1.0 - CONFIDENCE)), levels)
}

fn over_all_looks(estimate: Estimate, levels: &LookLevels) -> Estimate {
    Estimate { p: estimate.p.map(|p| levels.overall(p)), ..estimate }
}

/// [`paired`] with an interval that holds in another share of all cases.
pub(super) fn paired_at(baseline: &[f64], other: &[f64], confidence: f64) -> Estimate {
    assert_eq!(baseline.len(), other.len(), "paired runs come in pairs");
    if decide_nothing(baseline, other) {
        return one_course(baseline, other);
    }
    if is_nothing(baseline) {
        return from_nothing(paired_at(other, baseline, confidence));
    }
    if baseline == other {
        let one = Some(1.0);
        let method = Some(IntervalMethod::Identical);
        return Estimate { low: one, high: one, p: one, method, ..Estimate::only(one) };
    }
    let scale = ComparisonScale::of(baseline, other);
    let (base, new) = (scale.map(baseline), scale.map(other));
    let differences = base.iter().zip(&new).map(|(base, new)| new - base).collect::<Vec<_>>();
    let shift = mean(&differences);
    if !shift.is_finite() {
        return Estimate::only(None);
    }
    let Some(deviation) = standard_deviation(&differences) else {
        return Estimate::only(Some(scale.ratio(shift)));
    };
    let runs = differences.len();
    let noise = Noise { shift, deviation, freedom_per_run: 1, runs, is_log: scale == ComparisonScale::Ratio };
    if deviation <= ROUNDING * (1.0 + shift.abs()) {
        return by_signs(scale, Noise { deviation: 0.0, ..noise }, confidence);
    }
    let error = deviation / (runs as f64).sqrt();
    by_t(scale, IntervalMethod::PairedT, noise, (error, (runs - 1) as f64), confidence)
}

/// Compares runs that have nothing in common but what is compared.
///
/// Two samples that spread alike, as far as an F test can tell, are compared by Student's t. At three runs a side it keeps its
/// promise, where Welch's is too cautious. Other samples are compared by Welch's t. Where the runs of a side fall into two modes,
/// both means say little: then ranks decide.
pub fn unpaired(baseline: &[f64], other: &[f64]) -> Estimate {
    unpaired_at(baseline, other, CONFIDENCE)
}

/// [`unpaired`] with an interval that holds in another share of all cases.
pub(super) fn unpaired_at(baseline: &[f64], other: &[f64], confidence: f64) -> Estimate {
    if decide_nothing(baseline, other) {
        return one_course(baseline, other);
    }
    if is_nothing(baseline) {
        return from_nothing(unpaired_at(other, baseline, confidence));
    }
    let scale = ComparisonScale::of(baseline, other);
    let (base, new) = (scale.map(baseline), scale.map(other));
    let shift = mean(&new) - mean(&base);
    if !shift.is_finite() {
        return Estimate::only(None);
    }
    let spreads = standard_deviation(&base).zip(standard_deviation(&new));
    let Some((base_spread, new_spread)) = spreads else { return Estimate::only(Some(scale.ratio(shift))) };
    let (base_count, new_count) = (base.len() as f64, new.len() as f64);
    let runs = base.len().min(new.len());
    let noise = Noise {
        shift,
        deviation: base_spread.hypot(new_spread),
        freedom_per_run: 2,
        runs,
        is_log: scale == ComparisonScale::Ratio,
    };
    if (two_modes(baseline).is_some() || two_modes(other).is_some())
        && let Some(estimate) = by_ranks(scale, (&base, &new), noise, confidence)
    {
        return estimate;
    }
    if spread_alike((base_spread, base.len()), (new_spread, new.len())) {
        let freedom = base_count + new_count - 2.0;
        let squares = (base_count - 1.0) * base_spread.powi(2) + (new_count - 1.0) * new_spread.powi(2);
        let error = (squares / freedom * (1.0 / base_count + 1.0 / new_count)).sqrt();
        return by_t(scale, IntervalMethod::StudentT, noise, (error, freedom), confidence);
    }
    let (base_error, new_error) = (base_spread.powi(2) / base_count, new_spread.powi(2) / new_count);
    let freedom = (base_error + new_error).powi(2)
        / (base_error.powi(2) / (base_count - 1.0) + new_error.powi(2) / (new_count - 1.0));
    by_t(scale, IntervalMethod::WelchT, noise, ((base_error + new_error).sqrt(), freedom), confidence)
}

fn is_nothing(values: &[f64]) -> bool {
    values.iter().all(|&value| value == 0.0)
}

/// The estimate of something beside nothing, from that of nothing beside it: it has no ratio, but the ratio is at least so much.
fn from_nothing(turned: Estimate) -> Estimate {
    let low = turned.high.filter(|&high| high > 0.0).map(|high| 1.0 / high);
    Estimate { ratio: None, low, high: None, ..turned }
}

/// What is left where the runs are one course of events: how the values relate.
fn one_course(baseline: &[f64], other: &[f64]) -> Estimate {
    let scale = ComparisonScale::of(baseline, other);
    let shift = mean(&scale.map(other)) - mean(&scale.map(baseline));
    // Nothing on both sides is as much on both sides.
    let none = !baseline.is_empty() && baseline.iter().chain(other).all(|&value| value == 0.0);
    let ratio = if none { Some(1.0) } else { shift.is_finite().then(|| scale.ratio(shift)) };
    Estimate { one_course: true, ..Estimate::only(ratio) }
}

/// Runs scatter, and all pairs differ alike: then only their sign is counted. An interval from the least to the greatest
/// difference holds unless chance gave all of them the same sign.
fn by_signs(scale: ComparisonScale, noise: Noise, confidence: f64) -> Estimate {
    let p = 0.5_f64.powf((noise.runs - 1) as f64);
    let ratio = Some(scale.ratio(noise.shift));
    let end = ratio.filter(|_| p <= 1.0 - confidence);
    Estimate {
        low: end,
        high: end,
        p: Some(p),
        method: Some(IntervalMethod::Signs),
        noise: Some(noise),
        ..Estimate::only(ratio)
    }
}

/// Whether an F test finds nothing against equal spreads; each is a standard deviation and how many runs it is of.
fn spread_alike(one: (f64, usize), other: (f64, usize)) -> bool {
    if one.0 == other.0 {
        return true;
    }
    let (wide, narrow) = if one.0 > other.0 { (one, other) } else { (other, one) };
    if narrow.0 == 0.0 {
        return false;
    }
    let (freedom, freedom_narrow) = ((wide.1 - 1) as f64, (narrow.1 - 1) as f64);
    let distribution = FisherSnedecor::new(freedom, freedom_narrow);
    let ratio = (wide.0 / narrow.0).powi(2);
    distribution.is_ok_and(|distribution| 2.0 * distribution.sf(ratio) >= SPREADS_DIFFER)
}

fn by_t(
    scale: ComparisonScale,
    method: IntervalMethod,
    noise: Noise,
    (error, freedom): (f64, f64),
    confidence: f64,
) -> Estimate {
    let shift = noise.shift;
    let known =
        Estimate { method: Some(method), noise: Some(noise), ..Estimate::only(Some(scale.ratio(shift))) };
    let Ok(distribution) = StudentsT::new(0.0, 1.0, freedom) else { return known };
    let half = distribution.inverse_cdf(f64::midpoint(1.0, confidence)) * error;
    Estimate {
        low: Some(scale.ratio(shift - half)),
        high: Some(scale.ratio(shift + half)),
        p: Some((2.0 * distribution.sf((shift / error).abs())).min(1.0)),
        ..known
    }
}

/// `None` where there are too few runs for an interval by ranks.
fn by_ranks(
    scale: ComparisonScale,
    (base, new): (&[f64], &[f64]),
    noise: Noise,
    confidence: f64,
) -> Option<Estimate> {
    let (shift, low, high) = shift_of_ranks(base, new, 1.0 - confidence)?;
    Some(Estimate {
        ratio: Some(scale.ratio(shift)),
        low: Some(scale.ratio(low)),
        high: Some(scale.ratio(high)),
        p: Some(rank_sum_p(base, new)),
        method: Some(IntervalMethod::RankSum),
        noise: Some(Noise { shift, ..noise }),
        one_course: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's own data (1908): the extra sleep of ten patients under two drugs.
    const ONE: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    const OTHER: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

    fn close(value: Option<f64>, expected: f64) -> bool {
        value.is_some_and(|value| (value - expected).abs() < 1e-4)
    }

    /// Runs that never differ tell nothing, but where seeds are known to alter events each pair has a sign.
    #[test]
    fn seeds_that_leave_a_metric_alone_count() {
        let levels = LookLevels::default();
        let of = |count: usize, new: f64| paired_seeds_at_look(&vec![2.0; count], &vec![new; count], &levels);
        assert!(paired(&[2.0; 14], &[4.0; 14]).one_course);
        let doubled = of(14, 4.0);
        assert!(
            !doubled.one_course && close(doubled.p, 0.5_f64.powi(13)) && close(doubled.low, 2.0),
            "{doubled:?}"
        );
        // Three equal signs are chance in one case of four.
        let few = of(3, 4.0);
        assert!(close(few.p, 0.25) && few.low.is_none(), "{few:?}");
        assert!(of(14, 2.0).one_course && of(1, 4.0).one_course && of(0, 4.0).one_course);
    }

    /// In shares of the baseline's mean, 0.75: mean difference 1.58, interval 0.7001 to 2.4599, p 0.0028.
    #[test]
    fn pairs_are_students() {
        let estimate = paired(&ONE, &OTHER);
        assert!(close(estimate.ratio, 1.0 + 1.58 / 0.75), "{estimate:?}");
        assert!(close(estimate.low, 1.0 + 0.700_114 / 0.75), "{estimate:?}");
        assert!(close(estimate.high, 1.0 + 2.459_886 / 0.75), "{estimate:?}");
        assert!(close(estimate.p, 0.002_833), "{estimate:?}");
    }

    /// These data as two samples, as textbooks print it: pooled, t = −1.8608 with 18 degrees of freedom, p 0.0792, interval
    /// −0.2039 to 3.3639.
    #[test]
    fn two_samples_are_students() {
        let estimate = unpaired(&ONE, &OTHER);
        assert_eq!(estimate.method, Some(IntervalMethod::StudentT));
        assert!(close(estimate.p, 0.079_19), "{estimate:?}");
        // A ratio is never negative: the lower end, 1 − 0.2039/0.75, is not cut off yet.
        assert!(close(estimate.low, 1.0 - 0.203_874 / 0.75), "{estimate:?}");
        assert!(close(estimate.high, 1.0 + 3.363_874 / 0.75), "{estimate:?}");
    }

    /// By hand: variances 1 and 100 of four each, the standard error √25.25, 3.06 degrees of freedom.
    #[test]
    fn samples_that_spread_differently_are_welchs() {
        let spread = [-1.161_895, -0.387_298, 0.387_298, 1.161_895];
        let base = spread.map(|value| 100.0 + value);
        let other = spread.map(|value| 110.0 + 10.0 * value);
        let scaled = |values: [f64; 4]| [values.as_slice(), &[0.0]].concat();
        assert_eq!(unpaired(&base, &other).method, Some(IntervalMethod::WelchT));
        let alike = unpaired(&base, &base.map(|value| value * 1.1));
        assert_eq!(alike.method, Some(IntervalMethod::StudentT));
        // A zero among the values: shares of the mean, not logarithms.
        let estimate = unpaired(&scaled(base), &scaled(base));
        assert!(close(estimate.ratio, 1.0) && close(estimate.p, 1.0), "{estimate:?}");
    }

    /// Runs that scatter, and pairs that all differ by one factor: chance gives n of them one sign in 2 of 2^n cases.
    #[test]
    fn pairs_that_differ_alike_are_counted() {
        let base = [4.0, 8.0, 2.0, 3.0, 7.0, 5.0, 9.0];
        let estimate = |runs: usize| {
            paired(&base[..runs], &base[..runs].iter().map(|value| value * 2.1).collect::<Vec<_>>())
        };
        for runs in 2..=7 {
            let estimate = estimate(runs);
            assert!(close(estimate.p, 2.0 / 2.0_f64.powi(runs as i32)), "{runs}: {estimate:?}");
            assert!(close(estimate.ratio, 2.1) && estimate.method == Some(IntervalMethod::Signs));
            assert_eq!(estimate.low.is_some(), runs >= 6, "{runs}: {estimate:?}");
        }
    }

    #[test]
    fn one_run_decides_nothing_and_zeros_break_nothing() {
        let single = paired(&[100.0], &[50.0]);
        assert_eq!((single.ratio.map(|ratio| (ratio * 1e9).round()), single.low), (Some(5e8), None));
        assert_eq!(unpaired(&[100.0], &[50.0, 60.0]).low, None);
        assert_eq!(paired(&[0.0, 0.0], &[1.0, 2.0]).ratio, None);
        assert_eq!(unpaired(&[0.0, 0.0], &[1.0, 2.0]).ratio, None);
        let zeros = paired(&[0.0, 0.0], &[0.0, 0.0]);
        assert_eq!((zeros.ratio, zeros.low, zeros.one_course), (Some(1.0), None, true));
        assert_eq!(paired(&[0.0, 2.0], &[0.0, 1.0]).ratio, Some(0.5));
        assert_eq!(unpaired(&[], &[]).ratio, None);
        let alike = paired(&[3.0, 0.0, 1.0], &[3.0, 0.0, 1.0]);
        assert_eq!((alike.low, alike.high, alike.p), (Some(1.0), Some(1.0), Some(1.0)));
    }
}
