//! On which side of a bound a change lies, and how sure that is.
//!
//! The interval is that of a comparison: of the ratio where the bound is a share, of the difference where it is an amount. It is
//! wider by the number of bounds that are judged together (Bonferroni). So all of them together are wrong in at most 5 % of all
//! cases, in either direction. Must not know: what is bounded, and what for.

use super::course::decide_nothing;
use super::describe::{mean, standard_deviation};
use super::difference::{MeanDifference, paired_difference_at, unpaired_difference_at};
use super::estimate::{Estimate, Noise};
use super::looks::LookLevels;
use super::modes::two_modes;
use super::planning::{MoreRuns, more_runs_past};
use super::rank::shift_of_ranks;
use super::student::{paired_at, unpaired_at};

/// All bounds together are wrong in at most this share of all cases.
const ERROR: f64 = 0.05;

/// How much of a change a bound allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChangeBound {
    /// A share of the baseline: 0.05 is 5 % more.
    Share(f64),
    /// An amount in the metric's own unit.
    Amount(f64),
}

/// Which way a bound is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundSide {
    /// By a change above it.
    Above,
    /// By one below it.
    Below,
}

/// Where a change stands to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundStanding {
    /// For sure within.
    Within,
    /// For sure past it.
    Past,
    /// Either may be; so many more runs on each side would probably tell, where that is known.
    Open(Option<MoreRuns>),
    /// A side's runs are one course of events, which decides nothing.
    OneCourse,
}

/// A change beside a bound, both as shares of the baseline or both as amounts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundedChange {
    /// The change that was found; `None`: the baseline is nothing, so that there is no share of it.
    pub change: Option<f64>,
    /// The lower end of its interval; `None` where too little is known.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// What that comes to.
    pub standing: BoundStanding,
}

/// Holds a change against a bound, one of `count` that are judged together at a look with these levels. `are_paired`: `baseline[i]` and `other[i]` had one seed.
///
/// # Panics
/// Runs are paired and not equally many.
pub fn bounded(
    (baseline, other): (&[f64], &[f64]),
    are_paired: bool,
    (limit, bound): (BoundSide, ChangeBound),
    (count, levels): (usize, &LookLevels),
) -> BoundedChange {
    let level = levels.level(ERROR / count.max(1) as f64);
    if decide_nothing(baseline, other) {
        let change = match bound {
            ChangeBound::Share(_) => {
                paired_or_not(baseline, other, are_paired, level).ratio.map(|ratio| ratio - 1.0)
            }
            ChangeBound::Amount(_) => {
                (!baseline.is_empty() && !other.is_empty()).then(|| mean(other) - mean(baseline))
            }
        };
        return BoundedChange { change, low: None, high: None, standing: BoundStanding::OneCourse };
    }
    match bound {
        ChangeBound::Share(share) => {
            let Estimate { ratio, low, high, noise, .. } = paired_or_not(baseline, other, are_paired, level);
            let [change, low, high] = [ratio, low, high].map(|end| end.map(|ratio| ratio - 1.0));
            let on_scale = |noise: Noise| if noise.is_log { (1.0 + share).max(0.0).ln() } else { share };
            let more = noise.map(|noise| more_runs_past(noise, on_scale(noise), level));
            BoundedChange { change, low, high, standing: standing((low, high), limit, share, more) }
        }
        ChangeBound::Amount(amount) => {
            let (MeanDifference { mean, low, high, .. }, noise) =
                difference(baseline, other, are_paired, level);
            let more = noise.map(|noise| more_runs_past(noise, amount, level));
            BoundedChange {
                change: Some(mean),
                low,
                high,
                standing: standing((low, high), limit, amount, more),
            }
        }
    }
}

fn paired_or_not(baseline: &[f64], other: &[f64], are_paired: bool, level: f64) -> Estimate {
    match are_paired {
        true => paired_at(baseline, other, 1.0 - level),
        false => unpaired_at(baseline, other, 1.0 - level),
    }
}

/// The difference as it stands; by ranks where the runs of a side fall into two modes.
fn difference(
    baseline: &[f64],
    other: &[f64],
    are_paired: bool,
    level: f64,
) -> (MeanDifference, Option<Noise>) {
    let runs = baseline.len().min(other.len());
    if are_paired {
        let differences = baseline.iter().zip(other).map(|(base, new)| new - base).collect::<Vec<_>>();
        let noise = standard_deviation(&differences).map(|deviation| Noise {
            shift: mean(&differences),
            deviation,
            freedom_per_run: 1,
            runs,
            is_log: false,
        });
        return (paired_difference_at(baseline, other, 1.0 - level), noise);
    }
    let spreads = standard_deviation(baseline).zip(standard_deviation(other));
    let noise = spreads.map(|(base, new)| Noise {
        shift: mean(other) - mean(baseline),
        deviation: base.hypot(new),
        freedom_per_run: 2,
        runs,
        is_log: false,
    });
    let has_modes = two_modes(baseline).is_some() || two_modes(other).is_some();
    let by_ranks = has_modes.then(|| shift_of_ranks(baseline, other, level)).flatten();
    let difference = match by_ranks {
        Some((mean, low, high)) => MeanDifference { mean, low: Some(low), high: Some(high), p: None },
        None => unpaired_difference_at(baseline, other, 1.0 - level),
    };
    (difference, noise)
}

fn standing(
    (low, high): (Option<f64>, Option<f64>),
    limit: BoundSide,
    bound: f64,
    more: Option<MoreRuns>,
) -> BoundStanding {
    let Some(low) = low else { return BoundStanding::Open(more) };
    let high = high.unwrap_or(f64::INFINITY);
    let (is_within, is_past) = match limit {
        BoundSide::Above => (high <= bound, low > bound),
        BoundSide::Below => (low >= bound, high < bound),
    };
    match (is_within, is_past) {
        (true, _) => BoundStanding::Within,
        (_, true) => BoundStanding::Past,
        _ => BoundStanding::Open(more),
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    const BASE: [f64; 6] = [100.0, 103.0, 98.0, 101.0, 99.0, 102.0];

    fn scaled(factor: f64) -> [f64; 6] {
        const NOISE: [f64; 6] = [1.001, 0.999, 1.002, 0.998, 1.0, 1.001];
        std::array::from_fn(|at| BASE[at] * factor * NOISE[at])
    }

    fn standing_of(other: &[f64], limit: BoundSide, bound: ChangeBound) -> BoundStanding {
        bounded((&BASE, other), true, (limit, bound), (1, &LookLevels::default())).standing
    }

    #[test]
    fn what_is_past_a_bound_for_sure_is_told_from_what_may_be() {
        let five = ChangeBound::Share(0.05);
        assert_eq!(standing_of(&scaled(1.02), BoundSide::Above, five), BoundStanding::Within);
        assert_eq!(standing_of(&scaled(1.08), BoundSide::Above, five), BoundStanding::Past);
        assert!(matches!(standing_of(&scaled(1.05), BoundSide::Above, five), BoundStanding::Open(Some(_))));
        let less = ChangeBound::Share(-0.02);
        assert_eq!(standing_of(&scaled(0.9), BoundSide::Below, less), BoundStanding::Past);
        assert_eq!(standing_of(&scaled(1.5), BoundSide::Below, less), BoundStanding::Within);
        assert_eq!(
            standing_of(&scaled(1.08), BoundSide::Above, ChangeBound::Amount(4.0)),
            BoundStanding::Past
        );
        assert_eq!(
            standing_of(&scaled(1.08), BoundSide::Above, ChangeBound::Amount(20.0)),
            BoundStanding::Within
        );
        assert_eq!(
            standing_of(&BASE, BoundSide::Above, ChangeBound::Share(0.0)),
            BoundStanding::Within,
            "the very runs"
        );
        assert_eq!(
            standing_of(&[7.0; 6], BoundSide::Above, five),
            BoundStanding::Within,
            "far less in each run"
        );
        let alike =
            bounded((&[7.0; 6], &[9.0; 6]), true, (BoundSide::Above, five), (1, &LookLevels::default()));
        assert_eq!(alike.standing, BoundStanding::OneCourse);
    }

    #[test]
    fn the_more_bounds_the_wider_the_interval() {
        let of = |count| {
            bounded(
                (&BASE, &scaled(1.0495)),
                true,
                (BoundSide::Above, ChangeBound::Share(0.05)),
                (count, &LookLevels::default()),
            )
        };
        let width = |bounded: BoundedChange| bounded.high.zip(bounded.low).map(|(high, low)| high - low);
        assert!(width(of(10)) > width(of(1)));
        assert_eq!(of(1).change, of(10).change);
        let [few, many] = [of(1), of(10)].map(|bounded| match bounded.standing {
            BoundStanding::Open(Some(MoreRuns::About(more))) => more,
            other => panic!("{other:?}"),
        });
        assert!(few <= many, "{few} {many}");
    }

    #[test]
    fn nothing_has_no_share_but_an_amount() {
        let (base, other) = ([0.0, 0.0, 0.0, 1e-9], [5.0, 6.0, 5.5, 5.2]);
        let amount = bounded(
            (&base, &other),
            false,
            (BoundSide::Above, ChangeBound::Amount(2.0)),
            (1, &LookLevels::default()),
        );
        assert_eq!(amount.standing, BoundStanding::Past, "{amount:?}");
        let zeros = bounded(
            (&[0.0; 4], &other),
            false,
            (BoundSide::Above, ChangeBound::Share(0.1)),
            (1, &LookLevels::default()),
        );
        assert_eq!(
            (zeros.change, zeros.standing),
            (None, BoundStanding::Past),
            "more than any share of nothing"
        );
    }

    /// Of changes that lie right at the bound, one of forty passes for sure on either side, at most; of three bounds together as
    /// many.
    #[test]
    fn wrong_answers_are_as_seldom_as_promised() {
        let mut random = Random::new(35);
        let (mut wrong, cases) = (0, 2_000);
        for _ in 0..cases {
            let side = |random: &mut Random, centre: f64| {
                (0..5).map(|_| centre * (0.1 * random.normal()).exp()).collect::<Vec<_>>()
            };
            let any_past = (0..3).any(|_| {
                let (base, other) = (side(&mut random, 100.0), side(&mut random, 105.0));
                let found = bounded(
                    (&base, &other),
                    false,
                    (BoundSide::Above, ChangeBound::Share(0.05)),
                    (3, &LookLevels::default()),
                );
                found.standing == BoundStanding::Past || found.standing == BoundStanding::Within
            });
            wrong += u32::from(any_past);
        }
        let share = f64::from(wrong) / f64::from(cases);
        assert!((0.02..=0.065).contains(&share), "{share}");
    }
}
