//! Mean, median and spread of some values.
//!
//! Must not know: what they are compared with.

/// The arithmetic mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The harmonic mean, which is right for rates; NaN of nothing, and 0 if a value is 0.
pub fn harmonic_mean(values: &[f64]) -> f64 {
    values.len() as f64 / values.iter().map(|value| 1.0 / value).sum::<f64>()
}

/// The value in the middle, or the mean of the two there; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_medians() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert!((harmonic_mean(&[40.0, 60.0]) - 48.0).abs() < 1e-9);
        assert_eq!((median(&[5.0, 1.0, 3.0]), median(&[4.0, 1.0, 3.0, 9.0])), (3.0, 3.5));
        assert!(median(&[]).is_nan() && mean(&[]).is_nan());
        assert_eq!(standard_deviation(&[1.0]), None);
        assert_eq!(standard_deviation(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
    }
}
