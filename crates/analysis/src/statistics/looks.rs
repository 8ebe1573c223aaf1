//! When runs are looked at while more are made, and how sure each look must be so that all of them together are wrong no more often
//! than one look at the end.
//!
//! Each look spends an equal part of the allowed error (Lan and DeMets, 1983). Its level follows from the chance that a sum without
//! drift has crossed the bounds of no earlier look (Armitage, McPherson and Rowe, 1969), and holds for Student's t too (the significance
//! level approach: Pocock, 1977). An interval at a look's level is one of repeated confidence intervals (Jennison and Turnbull, 1989):
//! whatever is concluded from it holds wherever the runs stop.
//!
//! Must not know: what is run, what is concluded.

use statrs::distribution::{ContinuousCDF, Normal};

/// Runs a side at each look; later ones lie a factor of 1.5 apart.
const FIRST: [usize; 6] = [4, 6, 9, 14, 20, 30];

/// Points on which the sum's density is followed, an odd number.
const POINTS: usize = 121;

/// Overall errors of which levels are computed; between them levels are interpolated.
const ERRORS: [f64; 12] = [1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// The numbers of runs a side at which they are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookPlan {
    runs: Vec<usize>,
}

/// How sure one look must be. By default it is the only one: each level is the error itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LookLevels {
    /// Natural logarithms of an overall error and of the level that keeps it, the smallest error first.
    known: Vec<(f64, f64)>,
}

impl LookPlan {
    /// Looks until there are `runs_max` runs a side.
    pub fn up_to(runs_max: usize) -> LookPlan {
        let later = std::iter::successors(Some(45), |runs| Some(runs * 3 / 2));
        let mut runs = FIRST.into_iter().chain(later).take_while(|&runs| runs < runs_max).collect::<Vec<_>>();
        runs.push(runs_max);
        LookPlan { runs }
    }

    /// One look, once there are so many runs a side.
    pub fn at_end(runs: usize) -> LookPlan {
        LookPlan { runs: vec![runs] }
    }

    /// The numbers of runs a side, the last of which is the greatest.
    pub fn runs(&self) -> &[usize] {
        &self.runs
    }

    /// The levels of the look at so many runs a side. Between two looks they are those of the later one.
    pub fn levels(&self, runs: usize) -> LookLevels {
        let look = self.runs.iter().position(|&at| at >= runs).unwrap_or(self.runs.len() - 1);
        if self.runs.len() == 1 {
            return LookLevels::default();
        }
        LookLevels { known: ERRORS.map(|error| (error.ln(), self.level(look, error).ln())).to_vec() }
    }

    /// The two-sided level of a look at which all together cross their bounds with a probability of `error` where there is no drift.
    fn level(&self, look: usize, error: f64) -> f64 {
        if error >= 1.0 {
            return 1.0;
        }
        let each = error / self.runs.len() as f64;
        let mut sum = Sum::at(self.runs[0] as f64, normal_bound(each));
        for pair in self.runs[..=look].windows(2) {
            let next = pair[1] as f64;
            let bound = sum.bound(next, each);
            sum = sum.moved(next, bound);
        }
        2.0 * normal().sf(sum.bound)
    }
}

impl LookLevels {
    /// The level of this look that keeps `error` over all looks.
    pub fn level(&self, error: f64) -> f64 {
        interpolated(&self.known, error, |&(error, level)| (error, level))
    }

    /// The error over all looks that a probability at this look amounts to.
    pub fn overall(&self, p: f64) -> f64 {
        interpolated(&self.known, p, |&(error, level)| (level, error))
    }
}

/// Where `x` leads, by straight lines between logarithms. Without any it is what it was.
fn interpolated(known: &[(f64, f64)], x: f64, axes: impl Fn(&(f64, f64)) -> (f64, f64)) -> f64 {
    if known.len() < 2 || x <= 0.0 {
        return x;
    }
    let x = x.ln();
    let after = known.iter().position(|point| axes(point).0 >= x).unwrap_or(known.len() - 1).max(1);
    let ((x0, y0), (x1, y1)) = (axes(&known[after - 1]), axes(&known[after]));
    (y0 + (x - x0) * (y1 - y0) / (x1 - x0)).exp().min(1.0)
}

/// The sum of standard normal values where it has crossed no bound so far: its density between the last look's bounds.
struct Sum {
    runs: f64,
    /// The bound, in standard deviations of the sum.
    bound: f64,
    /// The density at equal steps from one bound to the other.
    density: [f64; POINTS],
}

impl Sum {
    /// The sum at the first look.
    fn at(runs: f64, bound: f64) -> Sum {
        let deviation = runs.sqrt();
        let place = |index: usize| place(index, bound);
        Sum { runs, bound, density: std::array::from_fn(|index| bell(place(index)) / deviation) }
    }

    /// The probability that the sum crosses `bound` at the look with `next` runs.
    fn crosses(&self, next: f64, bound: f64) -> f64 {
        let step = (next - self.runs).sqrt();
        let edge = bound * next.sqrt();
        let beyond = |at: f64| normal().sf((edge - at) / step) + normal().sf((edge + at) / step);
        self.integral(|at, density| density * beyond(at))
    }

    /// The bound that it crosses at the look with `next` runs with a probability of `wanted`.
    fn bound(&self, next: f64, wanted: f64) -> f64 {
        let (mut low, mut high) = (0.0, 40.0);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if self.crosses(next, middle) > wanted { low = middle } else { high = middle }
        }
        high
    }

    /// The sum at the look with `next` runs.
    fn moved(&self, next: f64, bound: f64) -> Sum {
        let step = (next - self.runs).sqrt();
        let to = |index: usize| place(index, bound) * next.sqrt();
        let density = |index: usize| {
            let to = to(index);
            self.integral(|at, density| density * bell((to - at) / step) / step)
        };
        Sum { runs: next, bound, density: std::array::from_fn(density) }
    }

    /// Simpson's rule over all places.
    fn integral(&self, value: impl Fn(f64, f64) -> f64) -> f64 {
        let deviation = self.runs.sqrt();
        let width = 2.0 * self.bound * deviation / (POINTS - 1) as f64;
        let weight = |index: usize| match index {
            0 => 1.0,
            last if last == POINTS - 1 => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let at = |index: usize| place(index, self.bound) * deviation;
        let all = self.density.iter().enumerate();
        all.map(|(index, &density)| weight(index) * value(at(index), density)).sum::<f64>() * width / 3.0
    }
}

/// A place between two bounds, in standard deviations.
fn place(index: usize, bound: f64) -> f64 {
    bound * (2.0 * index as f64 / (POINTS - 1) as f64 - 1.0)
}

fn normal() -> Normal {
    Normal::standard()
}

fn bell(at: f64) -> f64 {
    (-at * at / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// What a standard normal value crosses on either side with this probability.
fn normal_bound(probability: f64) -> f64 {
    -normal().inverse_cdf(probability / 2.0)
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    #[test]
    fn looks_come_soon_and_end_where_they_must() {
        assert_eq!(LookPlan::up_to(30).runs(), [4, 6, 9, 14, 20, 30]);
        assert_eq!(LookPlan::up_to(10).runs(), [4, 6, 9, 10]);
        assert_eq!(LookPlan::up_to(100).runs(), [4, 6, 9, 14, 20, 30, 45, 67, 100]);
        assert_eq!(LookPlan::up_to(3).runs(), [3]);
    }

    /// Pocock's constants are of equal levels; two looks that spend 2.5 % each have 2.24 first and about 2.12 then at equal steps
    /// (Lan and DeMets, 1983, for a spending in proportion to time).
    #[test]
    fn published_bounds_come_out() {
        let plan = LookPlan { runs: vec![10, 20] };
        let bounds = [10, 20].map(|runs| normal_bound(plan.levels(runs).level(0.05)));
        assert!((bounds[0] - 2.241).abs() < 0.01 && (bounds[1] - 2.125).abs() < 0.01, "{bounds:?}");
    }

    #[test]
    fn a_single_look_has_the_whole_error() {
        let levels = LookPlan::up_to(4).levels(4);
        assert_eq!((levels.level(0.05), levels.overall(0.03)), (0.05, 0.03));
    }

    #[test]
    fn a_level_and_its_error_belong_together() {
        let plan = LookPlan::up_to(30);
        for runs in [4, 9, 11, 30] {
            let levels = plan.levels(runs);
            for error in [0.05, 0.003, 1e-7] {
                let level = levels.level(error);
                assert!(
                    level < error && (levels.overall(level) / error - 1.0).abs() < 1e-9,
                    "{runs} {error} {level}"
                );
            }
        }
    }

    /// Without any difference, all looks together find one as often as is allowed, by Student's t from four values on.
    #[test]
    fn all_looks_together_keep_the_error() {
        let plan = LookPlan::up_to(30);
        let levels = plan.runs().iter().map(|&runs| (runs, plan.levels(runs))).collect::<Vec<_>>();
        let mut random = Random::new(5);
        let mut alarms = 0;
        for _ in 0..20_000 {
            let values = (0..30).map(|_| 100.0 + random.normal()).collect::<Vec<_>>();
            let base = (0..30).map(|_| 100.0 + random.normal()).collect::<Vec<_>>();
            let sure = |(runs, levels): &(usize, LookLevels)| {
                let p = super::super::paired(&base[..*runs], &values[..*runs]).p;
                p.is_some_and(|p| levels.overall(p) <= 0.05)
            };
            alarms += u32::from(levels.iter().any(sure));
        }
        assert!((800..=1200).contains(&alarms), "{alarms} of 20,000");
    }
}
