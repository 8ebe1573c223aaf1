//! Comparing two kernels: the effect first, then how sure it is.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Latencies, switches, idleness.
    Lower,
    /// Throughput.
    Higher,
}

impl Better {
    /// The direction of the metric called `name`.
    pub fn of_metric(name: &str) -> Better {
        if name == "throughput" { Better::Higher } else { Better::Lower }
    }
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies on the better side.
    Better,
    /// The whole interval lies on the worse side.
    Worse,
    /// The whole interval lies within the margin.
    Equivalent,
    /// The interval allows more than one of these.
    Undecided,
}

impl Verdict {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
        }
    }
}

/// How one kernel's metric relates to the baseline's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Geometric mean of the paired ratios where all values are positive, otherwise ratio of the means. `None` when the
    /// baseline is zero.
    pub ratio: Option<f64>,
    /// Lower end of its 95 % interval; `None` when there are too few runs to tell.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What it comes to.
    pub verdict: Verdict,
}

/// Differences smaller than this share of the baseline are of no interest.
pub const MARGIN: f64 = 0.01;

/// Compares paired runs: `baseline[i]` and `other[i]` had the same seed.
///
/// The interval is Student's t at 95 % over the pairs: of the logarithms of the ratios where all values are positive,
/// otherwise of the differences relative to the baseline's mean.
pub fn compare_paired(baseline: &[f64], other: &[f64], better: Better) -> Ratio {
    assert_eq!(baseline.len(), other.len(), "paired runs come in pairs");
    let positive = baseline.iter().chain(other).all(|&value| value > 0.0);
    let pairs = baseline.iter().zip(other);
    let base_mean = mean(baseline);
    let (centre, half_width) = if positive {
        let logs: Vec<f64> = pairs.map(|(base, other)| (other / base).ln()).collect();
        (mean(&logs), half_width(&logs))
    } else {
        let shifts: Vec<f64> = pairs.map(|(base, other)| (other - base) / base_mean).collect();
        (mean(&shifts), half_width(&shifts))
    };
    if baseline == other && !baseline.is_empty() {
        let verdict = if baseline.len() > 1 { Verdict::Equivalent } else { Verdict::Undecided };
        let bound = (baseline.len() > 1).then_some(1.0);
        return Ratio { ratio: Some(1.0), low: bound, high: bound, verdict };
    }
    if !centre.is_finite() {
        return Ratio { ratio: None, low: None, high: None, verdict: Verdict::Undecided };
    }
    // No metric is negative, so no ratio is.
    let back = |value: f64| if positive { value.exp() } else { (1.0 + value).max(0.0) };
    let (low, high) =
        (half_width.map(|half| back(centre - half)), half_width.map(|half| back(centre + half)));
    let verdict = match (low, high) {
        (Some(low), Some(high)) => judge(low, high, better),
        _ => Verdict::Undecided,
    };
    Ratio { ratio: Some(back(centre)), low, high, verdict }
}

fn judge(low: f64, high: f64, better: Better) -> Verdict {
    let (falls, rises) = match better {
        Better::Lower => (Verdict::Better, Verdict::Worse),
        Better::Higher => (Verdict::Worse, Verdict::Better),
    };
    if low >= 1.0 - MARGIN && high <= 1.0 + MARGIN {
        Verdict::Equivalent
    } else if high < 1.0 {
        falls
    } else if low > 1.0 {
        rises
    } else {
        Verdict::Undecided
    }
}

/// The arithmetic mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample's standard deviation (n − 1); `None` below two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values);
    let squares = values.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Half the width of Student's 95 % interval of the mean; `None` below two values.
fn half_width(values: &[f64]) -> Option<f64> {
    let deviation = standard_deviation(values)?;
    let freedom = (values.len() - 1) as f64;
    let quantile = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975);
    Some(quantile * deviation / (values.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's own data (1908) on the extra sleep of ten patients under two drugs: mean 1.58, 95 % interval of the
    /// paired difference 0.70 to 2.46.
    #[test]
    fn the_interval_is_students() {
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let other = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences: Vec<f64> = one.iter().zip(other).map(|(one, other)| other - one).collect();
        let half = half_width(&differences).expect("ten values");
        assert!((mean(&differences) - 1.58).abs() < 1e-9);
        assert!((mean(&differences) - half - 0.700_114).abs() < 1e-4, "{half}");
        assert!((mean(&differences) + half - 2.459_885).abs() < 1e-4, "{half}");
    }

    #[test]
    fn verdicts_follow_the_interval() {
        let base = [100.0, 102.0, 98.0, 101.0];
        let scaled = |factor: f64| base.map(|value| value * factor + value / 1e4);
        assert_eq!(compare_paired(&base, &scaled(0.5), Better::Lower).verdict, Verdict::Better);
        assert_eq!(compare_paired(&base, &scaled(0.5), Better::Higher).verdict, Verdict::Worse);
        assert_eq!(compare_paired(&base, &scaled(2.0), Better::Lower).verdict, Verdict::Worse);
        assert_eq!(compare_paired(&base, &scaled(1.002), Better::Lower).verdict, Verdict::Equivalent);
        assert_eq!(
            compare_paired(&base, &[80.0, 140.0, 90.0, 101.0], Better::Lower).verdict,
            Verdict::Undecided
        );
        assert_eq!(compare_paired(&base, &base, Better::Lower).verdict, Verdict::Equivalent);
    }

    #[test]
    fn one_pair_decides_nothing_and_zeros_break_nothing() {
        let single = compare_paired(&[100.0], &[50.0], Better::Lower);
        assert_eq!((single.ratio.map(|ratio| (ratio * 1e9).round()), single.low), (Some(5e8), None));
        assert_eq!(single.verdict, Verdict::Undecided);
        assert_eq!(compare_paired(&[0.0, 0.0], &[1.0, 2.0], Better::Lower).ratio, None);
        let zeros = compare_paired(&[0.0, 0.0], &[0.0, 0.0], Better::Lower);
        assert_eq!((zeros.ratio, zeros.verdict), (Some(1.0), Verdict::Equivalent));
        let half_zero = compare_paired(&[0.0, 2.0], &[0.0, 1.0], Better::Lower);
        assert_eq!(half_zero.ratio, Some(0.5));
    }
}
