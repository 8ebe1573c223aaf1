//! The rules of the tables that kernel people know, which call a difference one: for comparison only.
//!
//! Facts: mmtests' `Compare.pm` and `Stat.pm`; lkp-tests' `lib/changed_stat.rb`. Both lose power as runs are added, or cry
//! wolf at few: docs/statistics.md has the figures. Must not know: our own rules.

use super::describe::{harmonic_mean, mean, median, standard_deviation};
use super::estimate::BetterDirection;

/// The mean that mmtests prints: harmonic for rates, arithmetic otherwise.
pub fn mmtests_mean(values: &[f64], better: BetterDirection) -> f64 {
    match better {
        BetterDirection::Higher => harmonic_mean(values),
        BetterDirection::Lower | BetterDirection::Neither => mean(values),
    }
}

/// mmtests' percentage of a new mean: positive is better, halving a latency is 50 %, doubling it −100 %.
pub fn mmtests_change(baseline: f64, other: f64, better: BetterDirection) -> f64 {
    match better {
        _ if baseline == other => 0.0,
        BetterDirection::Higher => other * 100.0 / baseline - 100.0,
        BetterDirection::Lower | BetterDirection::Neither => 100.0 - other * 100.0 / baseline,
    }
}

/// Whether mmtests marks a difference with stars: the means lie further apart than 1.96 standard deviations of both sides
/// together; the number of runs does not come into it.
pub fn mmtests_marks(baseline: &[f64], other: &[f64], better: BetterDirection) -> bool {
    const QUANTILE: f64 = 1.959_964;
    let spread = |values: &[f64]| match better {
        BetterDirection::Lower | BetterDirection::Neither => standard_deviation(values).unwrap_or(0.0),
        BetterDirection::Higher => harmonic_deviation(values),
    };
    let difference = mmtests_mean(other, better) - mmtests_mean(baseline, better);
    baseline.len() > 1 && other.len() > 1 && difference.abs() > QUANTILE * (spread(baseline) + spread(other))
}

/// The spread that goes with a harmonic mean there: that of the reciprocals (n), scaled back by the mean's square.
fn harmonic_deviation(values: &[f64]) -> f64 {
    let centre = harmonic_mean(values);
    let squares = values.iter().map(|value| (1.0 / value - 1.0 / centre).powi(2)).sum::<f64>();
    (squares / values.len() as f64).sqrt() * centre.powi(2)
}

/// lkp's spread: standard deviation (n) in per cent of the mean.
pub fn lkp_spread(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares = values.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
    if centre == 0.0 { 0.0 } else { (squares / values.len() as f64).sqrt() / centre * 100.0 }
}

/// Whether lkp shows a metric as changed: one side's values all lie beyond the other's median, and its median beyond all of
/// the other's. `None` when it would not say, below three runs on both sides.
pub fn lkp_shows(baseline: &[f64], other: &[f64]) -> Option<bool> {
    if baseline.len().max(other.len()) < 3 || baseline.is_empty() || other.is_empty() {
        return None;
    }
    let (base, new) = (TrimmedExtremes::of(baseline), TrimmedExtremes::of(other));
    Some(new.beyond(&base) || base.beyond(&new))
}

/// Least, middle and greatest, without a 32nd at each end.
struct TrimmedExtremes {
    least: f64,
    median: f64,
    greatest: f64,
}

impl TrimmedExtremes {
    fn of(values: &[f64]) -> TrimmedExtremes {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let cut = sorted.len() >> 5;
        let kept = &sorted[cut..sorted.len() - cut];
        TrimmedExtremes { least: kept[0], median: median(kept), greatest: kept[kept.len() - 1] }
    }

    fn beyond(&self, other: &TrimmedExtremes) -> bool {
        self.least > other.median && self.median > other.greatest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mmtests_counts_in_its_own_way() {
        assert_eq!(mmtests_change(100.0, 50.0, BetterDirection::Lower), 50.0);
        assert_eq!(mmtests_change(100.0, 200.0, BetterDirection::Lower), -100.0);
        assert_eq!(mmtests_change(100.0, 110.0, BetterDirection::Higher).round(), 10.0);
        assert_eq!(mmtests_change(0.0, 0.0, BetterDirection::Lower), 0.0);
        // Standard deviation 1 on both sides: 3.92 apart is not enough, more is.
        let base = [99.0, 100.0, 101.0];
        let by = |shift: f64| mmtests_marks(&base, &base.map(|value| value + shift), BetterDirection::Lower);
        assert!(!by(3.91) && by(3.93) && by(-3.93));
        assert!(!mmtests_marks(&[1.0], &[9.0], BetterDirection::Lower));
    }

    #[test]
    fn lkp_compares_ends_with_medians() {
        let base = [1.0, 2.0, 3.0];
        assert_eq!(lkp_shows(&base, &[2.5, 3.5, 4.0]), Some(true));
        assert_eq!(lkp_shows(&base, &[1.9, 3.5, 4.0]), Some(false));
        assert_eq!(lkp_shows(&base, &[2.5, 2.9, 4.0]), Some(false));
        assert_eq!(lkp_shows(&[2.5, 3.5, 4.0], &base), Some(true));
        assert_eq!(lkp_shows(&[1.0, 2.0], &[3.0, 4.0]), None);
        assert_eq!(lkp_spread(&[1.0, 3.0]), 50.0);
    }
}
