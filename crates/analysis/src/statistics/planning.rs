//! How many more runs would decide.
//!
//! Must not know: how the runs so far were compared, beyond how far they scatter.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::estimate::{Estimate, Noise};

/// Runs beyond this are not promised: something else is wrong then.
const RUNS_MAX: usize = 10_000;

/// The chance that the runs asked for will decide, if the difference is what it looks like.
const POWER: f64 = 0.8;

/// So many pairs that differ alike have the same sign by chance in less than 5 % of all cases.
const COUNTED: usize = 6;

/// What it would take to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoreRuns {
    /// About so many more on each side.
    About(usize),
    /// More than ten thousand.
    TooMany,
}

/// How many more runs on each side would probably decide between a difference and none beyond `margin`, if the difference is what
/// it looks like now. `level` is how often chance may pass for a difference. `None` when nothing is known of how runs scatter;
/// two runs tell.
pub fn more_runs(estimate: &Estimate, margin: f64, level: f64) -> Option<MoreRuns> {
    let noise = estimate.noise?;
    let room = (1.0 + margin).ln() - noise.shift.abs();
    let wanted = noise.shift.abs().max(room);
    if noise.deviation == 0.0 {
        // All pairs differ alike: as many as it takes until counting is sure of a single metric.
        return Some(MoreRuns::About(COUNTED.saturating_sub(noise.runs).max(1)));
    }
    if wanted <= 0.0 {
        return Some(MoreRuns::TooMany);
    }
    let enough = |runs: usize| {
        let different = half_width(noise, runs, level) <= noise.shift.abs();
        // The interval of 95 % must fit the margin, whatever the level.
        different || half_width(noise, runs, 0.05) <= room
    };
    Some(runs_until(noise.runs, enough))
}

/// How many more runs on each side would probably show on which side of `bound` the truth lies, if it is what it looks like now.
pub(super) fn more_runs_past(noise: Noise, bound: f64, level: f64) -> MoreRuns {
    let distance = (noise.shift - bound).abs();
    if noise.deviation == 0.0 {
        return MoreRuns::About(COUNTED.saturating_sub(noise.runs).max(1));
    }
    runs_until(noise.runs, |runs| half_width(noise, runs, level) <= distance)
}

fn runs_until(made: usize, enough: impl Fn(usize) -> bool) -> MoreRuns {
    if made >= RUNS_MAX || !enough(RUNS_MAX) {
        return MoreRuns::TooMany;
    }
    let (mut too_few, mut plenty) = (made, RUNS_MAX);
    while plenty - too_few > 1 {
        let middle = usize::midpoint(too_few, plenty);
        if enough(middle) { plenty = middle } else { too_few = middle }
    }
    MoreRuns::About(plenty - made)
}

/// The chance that `most` runs a side will show a difference at `level`, if it is what it looks like now (conditional power under the
/// current trend; Lan, Wittes, *The B-value*, Biometrics 1988). To stop where it is small adds no false finding. `None` when nothing
/// is known of how runs scatter.
pub fn chance_to_show(estimate: &Estimate, most: usize, level: f64) -> Option<f64> {
    let noise = estimate.noise?;
    let left = most.saturating_sub(noise.runs);
    let beyond =
        noise.shift.abs() - quantile(noise, most, 1.0 - level / 2.0) * noise.deviation / (most as f64).sqrt();
    // What the runs to come still move the mean of all by.
    let open = noise.deviation * (left as f64).sqrt() / most as f64;
    if open == 0.0 {
        return Some(if beyond > 0.0 { 1.0 } else { 0.0 });
    }
    Normal::standard().cdf(beyond / open).into()
}

/// How far the truth must lie from a bound for so many runs to see it with [`POWER`].
fn half_width(noise: Noise, runs: usize, level: f64) -> f64 {
    let quantiles = quantile(noise, runs, 1.0 - level / 2.0) + quantile(noise, runs, POWER);
    quantiles * noise.deviation / (runs as f64).sqrt()
}

/// The quantile of the mean of so many runs, in standard errors.
fn quantile(noise: Noise, runs: usize, probability: f64) -> f64 {
    let freedom = (noise.freedom_per_run * (runs - 1)) as f64;
    StudentsT::new(0.0, 1.0, freedom)
        .map_or(f64::INFINITY, |distribution| distribution.inverse_cdf(probability))
}

#[cfg(test)]
mod tests {
    use super::super::{paired, unpaired};
    use super::*;

    /// Textbooks: to see a difference of one standard deviation with power 0.8 at 5 % takes 17 runs on each side, of half
    /// a one 64; in pairs 10 and 34.
    #[test]
    fn textbooks_agree() {
        for (shift, freedom_per_run, deviation, expected) in
            [(1.0, 2, 2.0_f64.sqrt(), 17), (0.5, 2, 2.0_f64.sqrt(), 64), (1.0, 1, 1.0, 10), (0.5, 1, 1.0, 34)]
        {
            let noise = Noise { shift, deviation, freedom_per_run, runs: 2, is_log: true };
            let estimate = Estimate { noise: Some(noise), ..Estimate::only(Some(1.0)) };
            let runs = more_runs(&estimate, 0.0, 0.05);
            assert_eq!(runs, Some(MoreRuns::About(expected - 2)), "{shift} {freedom_per_run}");
        }
    }

    /// Half of the runs with half of what is needed: the trend leads just there, so the chance is one half. A trend of nothing hardly
    /// gets there, and a trend of twice as much nearly always.
    #[test]
    fn what_a_trend_leads_to() {
        let (most, level) = (200, 0.05);
        let chance = |errors: f64| {
            let noise = Noise {
                shift: errors / (most as f64).sqrt(),
                deviation: 1.0,
                freedom_per_run: 1,
                runs: 100,
                is_log: true,
            };
            chance_to_show(&Estimate { noise: Some(noise), ..Estimate::only(Some(1.0)) }, most, level)
                .expect("noise")
        };
        let needed = 1.972;
        assert!((chance(needed) - 0.5).abs() < 0.001, "{}", chance(needed));
        // The rest of the way is 1.972 against a scatter of the square root of one half.
        assert!((chance(0.0) - 0.0026).abs() < 0.0002, "{}", chance(0.0));
        assert!(chance(2.0 * needed) > 0.997);
        assert_eq!(chance_to_show(&paired(&[1.0], &[2.0]), 9, 0.05), None);
        assert_eq!(chance_to_show(&paired(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]), 9, 0.05), Some(1.0));
    }

    #[test]
    fn equality_takes_runs_too() {
        let base = [100.0, 101.0, 99.0, 100.5];
        let other = [100.4, 100.6, 99.1, 100.4];
        let Some(MoreRuns::About(wide)) = more_runs(&unpaired(&base, &other), 0.02, 0.05) else { panic!() };
        let Some(MoreRuns::About(narrow)) = more_runs(&unpaired(&base, &other), 0.005, 0.05) else {
            panic!()
        };
        assert!(wide < narrow && narrow > 20, "{wide} {narrow}");
        assert_eq!(more_runs(&paired(&[1.0], &[2.0]), 0.01, 0.05), None);
        assert_eq!(more_runs(&unpaired(&[1.0; 3], &[2.0; 3]), 0.01, 0.05), None);
        assert_eq!(
            more_runs(&paired(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]), 0.01, 0.05),
            Some(MoreRuns::About(3))
        );
        assert_eq!(more_runs(&unpaired(&[1.0, 9.0], &[9.0, 1.01]), 1e-9, 0.05), Some(MoreRuns::TooMany));
    }
}
