//! How much of a published claim comes out.
//!
//! Must not know: kernels, how runs are made.

use fairlab_analysis::statistics::MetricVerdict;
use serde::Serialize;

use super::file::{PublishedDifference, PublishedDirection};

/// How far a measured effect may be from the published one, as a factor of its size.
const SIZE_FACTOR: f64 = 2.0;

/// What came of a claim or of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReproductionOutcome {
    /// Direction, size and commit are as published.
    Reproduced,
    /// The direction is as published, and size or commit is not.
    InPart,
    /// No difference in the published direction is sure.
    NotShown,
    /// The difference is sure, and goes the other way.
    Contrary,
    /// It could not be run.
    CannotBeSaid,
}

impl ReproductionOutcome {
    /// The words for people.
    pub const fn words(self) -> &'static str {
        match self {
            ReproductionOutcome::Reproduced => "reproduced",
            ReproductionOutcome::InPart => "in part",
            ReproductionOutcome::NotShown => "not shown",
            ReproductionOutcome::Contrary => "the other way",
            ReproductionOutcome::CannotBeSaid => "cannot be said",
        }
    }
}

/// What is asked of a claim, and the answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClaimVerdict {
    /// The difference is sure and goes as published, or it is sure that there is none where none was published; `None`: it is sure, and
    /// goes the other way.
    pub direction: Option<bool>,
    /// The effect is at least half as large as the published one, and at most twice, both as logarithms of ratios; or at least as large as
    /// it was published to be at least. `None`: no size was published.
    pub size: Option<bool>,
    /// A search names the published commit; `None`: none was published, or nothing was searched.
    pub commit: Option<bool>,
}

impl ClaimVerdict {
    /// Judges a ratio against what was published: 0 of what vanishes, infinite of what appears from nothing. `compared`: what a comparison
    /// comes to.
    pub fn of(
        published: PublishedDifference,
        measured: Option<f64>,
        compared: MetricVerdict,
        commit: Option<bool>,
    ) -> ClaimVerdict {
        let found = measured.filter(|ratio| *ratio >= 0.0).map(f64::ln);
        let sure = compared.is_difference();
        let (wanted, sizes) = match published {
            PublishedDifference::Figures([from, to]) => {
                ((to / from).ln(), Some(1.0 / SIZE_FACTOR..=SIZE_FACTOR))
            }
            PublishedDifference::AtLeast { at_least } => (at_least.ln(), Some(1.0..=f64::INFINITY)),
            PublishedDifference::Direction(PublishedDirection::Rises) => (1.0, None),
            PublishedDifference::Direction(PublishedDirection::Falls) => (-1.0, None),
            PublishedDifference::Direction(PublishedDirection::Same) => {
                let direction = (!sure).then_some(compared == MetricVerdict::Equivalent);
                return ClaimVerdict { direction, size: None, commit: None };
            }
        };
        let along = found.is_some_and(|found| wanted * found > 0.0);
        let size = sizes.map(|sizes| found.is_some_and(|found| sizes.contains(&(found / wanted))));
        let direction = match (sure, along) {
            (true, true) => Some(true),
            (true, false) => None,
            (false, _) => Some(false),
        };
        ClaimVerdict { direction, size, commit }
    }

    /// What that comes to.
    pub fn outcome(&self) -> ReproductionOutcome {
        match self.direction {
            None => ReproductionOutcome::Contrary,
            Some(false) => ReproductionOutcome::NotShown,
            Some(true) if self.size != Some(false) && self.commit != Some(false) => {
                ReproductionOutcome::Reproduced
            }
            Some(true) => ReproductionOutcome::InPart,
        }
    }
}

/// What a report comes to: as its claims where all are alike. One that goes the other way decides; otherwise it is a part.
pub fn of_report(claims: impl Iterator<Item = ReproductionOutcome> + Clone) -> ReproductionOutcome {
    let (least, most) = (claims.clone().min(), claims.max());
    match (least, most) {
        (_, Some(ReproductionOutcome::Contrary)) => ReproductionOutcome::Contrary,
        (Some(least), Some(most)) if least == most => most,
        (Some(ReproductionOutcome::NotShown), _) => ReproductionOutcome::NotShown,
        (Some(_), Some(_)) => ReproductionOutcome::InPart,
        _ => ReproductionOutcome::CannotBeSaid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sure: bool) -> MetricVerdict {
        if sure { MetricVerdict::Changed } else { MetricVerdict::Undecided }
    }

    #[test]
    fn what_stays_and_what_is_at_least_something_is_judged() {
        let same = PublishedDifference::Direction(PublishedDirection::Same);
        let of_same = |compared| ClaimVerdict::of(same, Some(1.2), compared, None).outcome();
        assert_eq!(of_same(MetricVerdict::Equivalent), ReproductionOutcome::Reproduced);
        assert_eq!(of_same(MetricVerdict::Undecided), ReproductionOutcome::NotShown);
        assert_eq!(of_same(MetricVerdict::Worse), ReproductionOutcome::Contrary);
        let of = |at_least, measured: f64| {
            let published = PublishedDifference::AtLeast { at_least };
            ClaimVerdict::of(published, Some(measured), told(true), None).outcome()
        };
        assert_eq!(of(2.0, 9.0), ReproductionOutcome::Reproduced);
        assert_eq!(of(2.0, 1.9), ReproductionOutcome::InPart);
        assert_eq!(of(2.0, 0.4), ReproductionOutcome::Contrary);
        assert_eq!(of(0.5, 0.1), ReproductionOutcome::Reproduced);
        assert_eq!(of(0.5, 0.6), ReproductionOutcome::InPart);
    }

    #[test]
    fn direction_size_and_commit_decide() {
        let halves = PublishedDifference::Figures([2.0, 1.0]);
        let of = |measured: f64, sure, commit| {
            ClaimVerdict::of(halves, Some(measured), told(sure), commit).outcome()
        };
        assert_eq!(of(0.5, true, Some(true)), ReproductionOutcome::Reproduced);
        assert_eq!(of(0.26, true, None), ReproductionOutcome::Reproduced);
        assert_eq!(of(0.24, true, None), ReproductionOutcome::InPart);
        assert_eq!(of(0.71, true, None), ReproductionOutcome::InPart);
        assert_eq!(of(0.5, true, Some(false)), ReproductionOutcome::InPart);
        assert_eq!(of(0.5, false, Some(true)), ReproductionOutcome::NotShown);
        assert_eq!(of(1.1, true, Some(true)), ReproductionOutcome::Contrary);
        assert_eq!(of(1.1, false, None), ReproductionOutcome::NotShown);
        assert_eq!(
            ClaimVerdict::of(halves, None, told(false), None).outcome(),
            ReproductionOutcome::NotShown
        );
        assert_eq!(
            ClaimVerdict::of(PublishedDifference::Figures([1.0, 2.0]), Some(3.0), told(true), None).outcome(),
            ReproductionOutcome::Reproduced
        );
        let falls = PublishedDifference::Direction(PublishedDirection::Falls);
        assert_eq!(
            ClaimVerdict::of(falls, Some(0.99), told(true), None).outcome(),
            ReproductionOutcome::Reproduced
        );
        assert_eq!(
            ClaimVerdict::of(falls, Some(1.01), told(true), None).outcome(),
            ReproductionOutcome::Contrary
        );
        assert_eq!(
            ClaimVerdict::of(falls, Some(0.0), told(true), None).outcome(),
            ReproductionOutcome::Reproduced,
            "it vanishes"
        );
        let rises = PublishedDifference::Direction(PublishedDirection::Rises);
        assert_eq!(
            ClaimVerdict::of(rises, Some(f64::INFINITY), told(true), None).outcome(),
            ReproductionOutcome::Reproduced
        );
        assert_eq!(
            ClaimVerdict::of(halves, Some(0.0), told(true), None).outcome(),
            ReproductionOutcome::InPart,
            "more than twice"
        );
    }

    #[test]
    fn a_report_is_as_its_claims() {
        use ReproductionOutcome::{CannotBeSaid, Contrary, InPart, NotShown, Reproduced};
        for (claims, whole) in [
            (vec![Reproduced, Reproduced], Reproduced),
            (vec![Reproduced, NotShown], InPart),
            (vec![InPart, NotShown], InPart),
            (vec![NotShown], NotShown),
            (vec![Reproduced, Contrary], Contrary),
            (vec![], CannotBeSaid),
        ] {
            assert_eq!(of_report(claims.iter().copied()), whole, "{claims:?}");
        }
    }
}
