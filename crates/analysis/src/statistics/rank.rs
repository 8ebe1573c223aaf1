//! What the order of values tells: the rank-sum test and the shift that fits it.
//!
//! Facts: Wilcoxon (1945), Mann and Whitney (1947), Hodges and Lehmann (1963). Exact up to 24 runs in all, ties included;
//! beyond, the normal approximation, which is right to three digits there.
//!
//! Must not know: where the values come from.

use statrs::distribution::{ContinuousCDF, Normal};

use super::describe::median;

/// The most values in all for which every arrangement is counted.
const EXACT_MAX: usize = 24;

/// How often chance alone orders two samples as unequally as this (two-sided).
pub fn rank_sum_p(base: &[f64], new: &[f64]) -> f64 {
    let ranks = double_ranks(base, new);
    let (chosen, others) = ranks.split_at(new.len());
    let sum = chosen.iter().sum::<usize>();
    let all = sum + others.iter().sum::<usize>();
    let mean = all as f64 * new.len() as f64 / ranks.len() as f64;
    let distance = (sum as f64 - mean).abs();
    if ranks.len() <= EXACT_MAX {
        let ways = arrangements(&ranks, new.len());
        let far = |(at, _): &(usize, &f64)| (*at as f64 - mean).abs() >= distance - 1e-9;
        let far = ways.iter().enumerate().filter(far).map(|(_, ways)| ways).sum::<f64>();
        return (far / ways.iter().sum::<f64>()).min(1.0);
    }
    // Doubled ranks: the variance is four times that of the ranks; sampling without replacement.
    let (count, total) = (new.len() as f64, ranks.len() as f64);
    let centre = all as f64 / total;
    let variance = ranks.iter().map(|&rank| (rank as f64 - centre).powi(2)).sum::<f64>() / (total - 1.0);
    let deviation = (variance * count * (total - count) / total).sqrt();
    if deviation == 0.0 {
        return 1.0;
    }
    // Half a rank for continuity, doubled.
    (2.0 * Normal::standard().sf((distance - 1.0).max(0.0) / deviation)).min(1.0)
}

/// The shift from `base` to `new` by Hodges and Lehmann, and the interval that the rank-sum test leaves at `level`
/// (0.05 for 95 %). `None` where there are too few values for an interval.
pub fn shift_of_ranks(base: &[f64], new: &[f64], level: f64) -> Option<(f64, f64, f64)> {
    let pairs = new.iter().flat_map(|new| base.iter().map(move |base| new - base));
    let mut shifts = pairs.collect::<Vec<_>>();
    shifts.sort_by(f64::total_cmp);
    let outside = cut_off(base.len(), new.len(), level / 2.0);
    let low = *shifts.get(outside.checked_sub(1)?)?;
    let high = shifts[shifts.len() - outside];
    Some((median(&shifts), low, high))
}

/// The greatest k with P(U < k) ≤ `tail`, for samples without ties.
fn cut_off(base: usize, new: usize, tail: f64) -> usize {
    let total = base + new;
    if total > EXACT_MAX {
        let (one, other) = (base as f64, new as f64);
        let deviation = (one * other * (one + other + 1.0) / 12.0).sqrt();
        let quantile = Normal::standard().inverse_cdf(tail);
        return (one * other / 2.0 + 0.5 + quantile * deviation).floor().max(0.0) as usize;
    }
    let ranks = (1..=total).map(|rank| 2 * rank).collect::<Vec<_>>();
    let ways = arrangements(&ranks, new);
    let all = ways.iter().sum::<f64>();
    // U = 0 is the least rank sum; each step of U is a step of two in doubled ranks.
    let least = new * (new + 1);
    let mut below = 0.0;
    for (u, &ways) in ways.iter().skip(least).step_by(2).enumerate() {
        below += ways;
        if below / all > tail {
            return u;
        }
    }
    0
}

/// Twice the rank of each value, those of `new` first; equal values share the mean of their ranks.
fn double_ranks(base: &[f64], new: &[f64]) -> Vec<usize> {
    let all = new.iter().chain(base).copied().collect::<Vec<_>>();
    let rank = |value: f64| {
        let below = all.iter().filter(|&&other| other < value).count();
        let same = all.iter().filter(|&&other| other == value).count();
        2 * below + same + 1
    };
    all.iter().map(|&value| rank(value)).collect()
}

/// In how many ways `chosen` of the ranks give each sum.
fn arrangements(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let most = ranks.iter().sum::<usize>();
    let mut ways = vec![vec![0.0; most + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        for count in (1..=chosen).rev() {
            let (fewer, more) = ways.split_at_mut(count);
            let (before, after) = (&fewer[count - 1], &mut more[0]);
            for sum in (rank..=most).rev() {
                after[sum] += before[sum - rank];
            }
        }
    }
    ways.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Permeability of placental membranes, Hollander and Wolfe (1973), table 4.1: W = 35 of 50, one-sided p 0.1272.
    const TERM: [f64; 10] = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    const EARLY: [f64; 5] = [1.15, 0.88, 0.90, 0.74, 1.21];

    #[test]
    fn the_rank_sum_is_the_published_one() {
        let p = rank_sum_p(&EARLY, &TERM);
        assert!((p - 2.0 * 0.1272).abs() < 1e-4, "{p}");
        let (shift, low, high) = shift_of_ranks(&EARLY, &TERM, 0.05).expect("enough");
        assert!((shift - 0.305).abs() < 1e-9, "{shift}");
        assert!((low + 0.15).abs() < 1e-9 && (high - 0.76).abs() < 1e-9, "{low} {high}");
    }

    /// Three against three: 20 arrangements, so p is never below 0.1; four against four: 2 of 70.
    #[test]
    fn few_values_cannot_be_sure() {
        assert!((rank_sum_p(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]) - 0.1).abs() < 1e-12);
        assert!((rank_sum_p(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]) - 2.0 / 70.0).abs() < 1e-12);
        assert_eq!(shift_of_ranks(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.05), None);
        assert_eq!(shift_of_ranks(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 0.05), Some((4.0, 1.0, 7.0)));
    }

    /// Critical values of U at 5 %, two-sided, as tables have them: 2 for 5 and 5, 8 for 7 and 7, 23 for 10 and 10, 37 for
    /// 12 and 12; by the approximation 127 for 20 and 20.
    #[test]
    fn critical_values_are_those_of_tables() {
        for (runs, critical) in [(5, 2), (7, 8), (10, 23), (12, 37), (20, 127)] {
            assert_eq!(cut_off(runs, runs, 0.025), critical + 1, "{runs}");
        }
    }

    #[test]
    fn ties_are_shared_and_large_samples_agree() {
        assert_eq!(rank_sum_p(&[1.0; 5], &[1.0; 5]), 1.0);
        assert_eq!(rank_sum_p(&[1.0; 20], &[1.0; 20]), 1.0);
        let (base, new) = ((0..12).map(f64::from), (0..12).map(|value| f64::from(value) + 3.4));
        let (base, new) = (base.collect::<Vec<_>>(), new.collect::<Vec<_>>());
        let exact = rank_sum_p(&base, &new);
        let again = |values: &[f64]| [values, &[5.05]].concat();
        let approximate = rank_sum_p(&again(&base), &again(&new));
        assert!((exact - approximate).abs() < 0.02, "{exact} {approximate}");
    }
}
