//! Tests that go on until they are sure: how a bisection judges each step.
//!
//! The k-th look at the runs spends 1/(k(k+1)) of the allowed error. So all looks together, however many, are wrong at most
//! as often as allowed.
//!
//! Must not know: what is run, and when.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::course::is_one_course;
use super::describe::{mean, standard_deviation};

/// Which side of a dividing line some runs lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideOfLine {
    /// Below it.
    Below,
    /// Above it.
    Above,
}

impl SideOfLine {
    fn of(distance: f64) -> SideOfLine {
        if distance > 0.0 { SideOfLine::Above } else { SideOfLine::Below }
    }
}

/// Whether values lie below or above zero in the mean, by Student's t at each look.
#[derive(Clone, Copy, Debug)]
pub struct SignTest {
    error: f64,
    looks: u32,
}

/// Fewer values than these tell nothing of how they scatter.
pub const LOOK_MIN: usize = 3;

impl SignTest {
    /// A test that names the wrong side with a probability of at most `error`.
    pub fn new(error: f64) -> SignTest {
        SignTest { error, looks: 0 }
    }

    /// The side on which all values so far lie, if that is sure by now. Values that never differ make nothing sure.
    pub fn look(&mut self, values: &[f64]) -> Option<SideOfLine> {
        let deviation = standard_deviation(values).filter(|_| values.len() >= LOOK_MIN)?;
        if is_one_course(values) {
            return None;
        }
        let spent = self.spent();
        let centre = mean(values);
        let error = deviation / (values.len() as f64).sqrt();
        let distribution = StudentsT::new(0.0, 1.0, (values.len() - 1) as f64).ok()?;
        let sure = centre != 0.0 && distribution.sf((centre / error).abs()) <= spent;
        sure.then(|| SideOfLine::of(centre))
    }

    /// The same of differences within pairs whose members differ from pair to pair. Where all differences are equal, they count by
    /// their signs: chance gives n of them one sign in one of 2^n cases.
    pub fn look_at_pairs(&mut self, differences: &[f64]) -> Option<SideOfLine> {
        if !is_one_course(differences) {
            return self.look(differences);
        }
        let difference = *differences.first().filter(|_| differences.len() >= LOOK_MIN)?;
        let chance = 0.5_f64.powi(i32::try_from(differences.len()).unwrap_or(i32::MAX));
        let sure = difference != 0.0 && chance <= self.spent();
        sure.then(|| SideOfLine::of(difference))
    }

    /// What this look may add to the error.
    fn spent(&mut self) -> f64 {
        self.looks += 1;
        self.error / f64::from(self.looks * (self.looks + 1))
    }
}

/// Whether something holds in most runs, by Wald's sequential ratio of a share of 0.8 against one of 0.2.
///
/// Its error probability is `error` where the share is at least 0.8 or at most 0.2; in between runs disagree.
pub fn most_hold(holds: &[bool], error: f64) -> Option<bool> {
    const CLEAR: f64 = 0.8;
    let step = (CLEAR / (1.0 - CLEAR)).ln();
    let balance = holds.iter().map(|&holds| if holds { step } else { -step }).sum::<f64>();
    let bound = ((1.0 - error) / error).ln();
    if balance >= bound {
        Some(true)
    } else if balance <= -bound {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    /// Values without any side: the test must not find one more often than it says.
    #[test]
    fn errors_are_as_rare_as_stated() {
        let mut random = Random::new(11);
        let mut wrong = 0;
        for _ in 0..2_000 {
            let mut test = SignTest::new(0.05);
            let mut values = Vec::new();
            let decided = (0..40).any(|_| {
                values.push(random.normal());
                test.look(&values).is_some()
            });
            wrong += u32::from(decided);
        }
        assert!(wrong <= 110, "{wrong} of 2000");
    }

    #[test]
    fn a_clear_side_is_found_soon() {
        let mut test = SignTest::new(0.001);
        assert_eq!(test.look(&[1.0, 1.01]), None);
        assert_eq!(test.look(&[1.0, 1.01, 0.99]), Some(SideOfLine::Above));
        assert_eq!(SignTest::new(0.001).look(&[-1.0, -1.01, -0.99]), Some(SideOfLine::Below));
        assert_eq!(SignTest::new(0.5).look(&[-1.0; 40]), None, "one course of events");
        assert_eq!(SignTest::new(0.001).look(&[0.0, 0.0, 0.0]), None);
        assert_eq!(SignTest::new(0.01).look(&[-1.0, 1.2, 0.3]), None);
    }

    #[test]
    fn equal_differences_of_pairs_count_by_their_signs() {
        for (differences, side) in [
            (&[2.0; 20][..], Some(SideOfLine::Above)),
            (&[-2.0; 20], Some(SideOfLine::Below)),
            (&[2.0; 6], None),
            (&[0.0; 20], None),
            (&[2.0; 2], None),
            (&[1.0, 1.01, 0.99], Some(SideOfLine::Above)),
        ] {
            assert_eq!(SignTest::new(0.001).look_at_pairs(differences), side, "{differences:?}");
        }
    }

    #[test]
    fn most_runs_decide() {
        assert_eq!(most_hold(&[true; 4], 0.001), None);
        assert_eq!(most_hold(&[true; 5], 0.001), Some(true));
        assert_eq!(most_hold(&[false; 5], 0.001), Some(false));
        assert_eq!(most_hold(&[true, false, true, false, true, true, true, true], 0.001), None);
    }
}
