//! Runs that fall into two kinds: a lottery at the start that some runs win.
//!
//! Facts: the ratio of variance between and within the best split in two, Engelman and Hartigan (1969). Must not know:
//! which kernel ran.

use super::describe::mean;

/// One kind of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunMode {
    /// How many runs are of it.
    pub runs: usize,
    /// Their mean.
    pub mean: f64,
}

/// Two kinds of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunModes {
    /// Those with lesser values.
    pub low: RunMode,
    /// Those with greater ones.
    pub high: RunMode,
}

impl RunModes {
    /// `v6.6's 20 runs are of two kinds: 13 near 8 us, 7 near 4 ms`: that of more runs first; `show` writes a value.
    pub fn told(&self, whose: &str, show: impl Fn(f64) -> String) -> String {
        let RunModes { low, high } = self;
        let (first, second) = if low.runs < high.runs { (high, low) } else { (low, high) };
        let (all, many, few) = (low.runs + high.runs, first.runs, second.runs);
        let (usual, other) = (show(first.mean), show(second.mean));
        format!("{whose}'s {all} runs are of two kinds: {many} near {usual}, {few} near {other}")
    }
}

/// Fewer runs than these show no modes.
const RUNS_MIN: usize = 6;

/// A mode has at least two runs and this share of them; what is rarer is an outlier.
const SHARE_MIN: f64 = 0.15;

/// The gap between two modes is at least this part of the way from mean to mean.
const GAP_MIN: f64 = 1.0 / 3.0;

/// What the ratio exceeds in 1 % of samples of one normal distribution, by their size; the calibration recomputes it.
const CRITICAL: [(usize, f64); 11] = [
    (6, 29.2),
    (7, 20.8),
    (8, 14.0),
    (10, 10.1),
    (12, 7.94),
    (15, 6.21),
    (20, 4.94),
    (30, 3.88),
    (50, 3.15),
    (100, 2.62),
    (200, 2.27),
];

/// The two modes that values fall into, if they do. Values that are all positive are split by their logarithms.
pub fn two_modes(values: &[f64]) -> Option<RunModes> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let positive = sorted.first().is_some_and(|&least| least > 0.0);
    let scaled = sorted.iter().map(|&value| if positive { value.ln() } else { value }).collect::<Vec<_>>();
    let (split, ratio) = best_split(&scaled)?;
    let (low, high) = scaled.split_at(split);
    let gap = high[0] - low[split - 1];
    let apart = gap > 0.0 && gap >= GAP_MIN * (mean(high) - mean(low));
    if ratio <= critical(values.len())? || !apart {
        return None;
    }
    let mode = |values: &[f64]| RunMode { runs: values.len(), mean: mean(values) };
    Some(RunModes { low: mode(&sorted[..split]), high: mode(&sorted[split..]) })
}

/// Where sorted values fall apart most, and the ratio of the variance between both parts to that within.
fn best_split(sorted: &[f64]) -> Option<(usize, f64)> {
    let count = sorted.len();
    let least = 2.max((SHARE_MIN * count as f64).ceil() as usize);
    let total = sorted.iter().sum::<f64>();
    let centre = total / count as f64;
    let squares = sorted.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
    let mut below = 0.0;
    let mut best = None;
    for (index, value) in sorted.iter().enumerate() {
        below += value;
        let (low, high) = ((index + 1) as f64, (count - index - 1) as f64);
        if index + 1 < least || count - index - 1 < least {
            continue;
        }
        let between = low * high / count as f64 * (below / low - (total - below) / high).powi(2);
        let ratio = between / (squares - between).max(squares * 1e-12);
        if best.is_none_or(|(_, most)| ratio > most) {
            best = Some((index + 1, ratio));
        }
    }
    best.filter(|(_, ratio)| ratio.is_finite())
}

/// The critical ratio for so many values; `None` when they are too few.
fn critical(count: usize) -> Option<f64> {
    let above = CRITICAL.iter().position(|&(size, _)| size >= count);
    match above {
        _ if count < RUNS_MIN => None,
        None => Some(CRITICAL[CRITICAL.len() - 1].1),
        Some(0) => Some(CRITICAL[0].1),
        Some(above) => {
            let ((small, upper), (large, lower)) = (CRITICAL[above - 1], CRITICAL[above]);
            let way = (count - small) as f64 / (large - small) as f64;
            Some(upper + (lower - upper) * way)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    #[test]
    fn a_lottery_is_noticed() {
        let runs = [107.0, 105.0, 12_900.0, 108.0, 13_100.0, 106.0, 12_800.0, 104.0, 110.0, 12_950.0];
        let modes = two_modes(&runs).expect("two modes");
        assert_eq!((modes.low.runs, modes.high.runs), (6, 4));
        let told = modes.told("v6.6", |value| format!("{value:.0}"));
        assert_eq!(told, "v6.6's 10 runs are of two kinds: 6 near 107, 4 near 12938");
        assert!((modes.low.mean - 106.67).abs() < 0.01 && (modes.high.mean - 12_937.5).abs() < 0.01);
    }

    #[test]
    fn one_kind_of_runs_is_one() {
        assert_eq!(two_modes(&[100.0, 101.0, 99.0, 103.0, 98.0, 100.5, 99.4, 101.7]), None);
        let even = (1..=100).map(|value| 1000.0 + f64::from(value)).collect::<Vec<_>>();
        assert_eq!(two_modes(&even), None, "even spread has no gap");
        let outlier = [100.0, 101.0, 99.0, 103.0, 98.0, 100.5, 99.4, 900.0];
        assert_eq!(two_modes(&outlier), None, "one run is no mode");
        assert_eq!(two_modes(&[5.0; 10]), None);
        assert_eq!(two_modes(&[1.0, 1.0, 9.0, 9.0]), None, "four runs are too few");
        assert_eq!(two_modes(&[]), None);
    }

    #[test]
    fn critical_ratios_are_exceeded_in_one_sample_of_a_hundred() {
        let mut random = Random::new(3);
        for (size, critical) in CRITICAL {
            let experiments = if size > 50 { 2_000 } else { 8_000 };
            let mut beyond = 0;
            for _ in 0..experiments {
                let mut values = (0..size).map(|_| random.normal()).collect::<Vec<_>>();
                values.sort_by(f64::total_cmp);
                beyond += usize::from(best_split(&values).is_some_and(|(_, ratio)| ratio > critical));
            }
            let share = beyond as f64 / experiments as f64;
            assert!((0.005..=0.016).contains(&share), "{size}: {share}");
        }
    }
}
