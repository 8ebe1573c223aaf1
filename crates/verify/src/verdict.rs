//! Verdicts: a model's answer held against what the kernel did. The one place where one is formed.
//!
//! Where the state that a decision rests on is known, the model has one answer, and the kernel's agrees or is missed. Where it is not,
//! the decision is not judged, with a reason.
//!
//! Must not know: how a state is asked for, and what is counted.

/// What came of one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionOutcome {
    /// The kernel did what the model says.
    Agree,
    /// The kernel did something else, by class of miss.
    Missed(&'static str),
    /// What it rests on is not known, or what the kernel did is not shown.
    NotJudged(&'static str),
}

impl DecisionOutcome {
    /// Whether the kernel did what the model says; if not, it is missed as `missed`.
    pub(super) fn of<T: PartialEq + Copy>(model: T, kernel: T, missed: &'static str) -> DecisionOutcome {
        if model == kernel { DecisionOutcome::Agree } else { DecisionOutcome::Missed(missed) }
    }

    /// Not judged if there is a reason against it, and it was to be judged.
    #[must_use]
    pub(super) fn unless(self, why_not: Option<&'static str>) -> DecisionOutcome {
        match (self, why_not) {
            (DecisionOutcome::NotJudged(_), _) | (_, None) => self,
            (_, Some(why)) => DecisionOutcome::NotJudged(why),
        }
    }

    /// Whether it was judged.
    pub(super) fn is_judged(self) -> bool {
        !matches!(self, DecisionOutcome::NotJudged(_))
    }
}

#[cfg(test)]
mod tests {
    use super::DecisionOutcome::{self, Agree, Missed, NotJudged};

    #[test]
    fn what_is_not_judged_stays_so() {
        assert_eq!(DecisionOutcome::of(1, 1, "other"), Agree);
        assert_eq!(DecisionOutcome::of(1, 2, "other"), Missed("other"));
        for judged in [Agree, Missed("other")] {
            assert_eq!(judged.unless(Some("hidden")), NotJudged("hidden"));
            assert_eq!(judged.unless(None), judged);
            assert!(judged.is_judged());
        }
        assert_eq!(NotJudged("unknown").unless(Some("hidden")), NotJudged("unknown"));
        assert!(!NotJudged("unknown").is_judged());
    }
}
