//! Verdicts: the one place where a decision of the kernel is compared with what the model's rules allow.
//!
//! The model decides in every state that the unknowns allow. If all answers are the kernel's, it agrees. If only some are,
//! the kernel's decision is admissible, however likely those states are. If none is, it is missed. If the states cannot be
//! enumerated, it is not judged.
//!
//! Must not know: how a decision is asked for, and which state is likely.

use fairlab_event::Cpu;
use fairlab_kernel::balance::MigrationType;
use fairlab_kernel::open_loop::EntityId;
use fairlab_kernel::{TaskId, Vruntime};

/// An answer as numbers: one, or two that belong together.
pub type AnswerCode = [u64; 2];

/// What can be the answer to a decision. Different answers have different codes.
pub(super) trait DecisionAnswer {
    fn code(self) -> AnswerCode;
}

impl DecisionAnswer for bool {
    fn code(self) -> AnswerCode {
        [u64::from(self), 0]
    }
}

impl DecisionAnswer for i64 {
    fn code(self) -> AnswerCode {
        [self as u64, 0]
    }
}

impl DecisionAnswer for Cpu {
    fn code(self) -> AnswerCode {
        [u64::from(self.0), 0]
    }
}

impl DecisionAnswer for TaskId {
    fn code(self) -> AnswerCode {
        [self.index() as u64, 0]
    }
}

impl DecisionAnswer for EntityId {
    fn code(self) -> AnswerCode {
        [self.index() as u64, 0]
    }
}

impl DecisionAnswer for Vruntime {
    fn code(self) -> AnswerCode {
        [self.0, 0]
    }
}

impl DecisionAnswer for MigrationType {
    fn code(self) -> AnswerCode {
        [self as u64, 0]
    }
}

/// A place on the time line, and the deadline.
impl DecisionAnswer for (Vruntime, Vruntime) {
    fn code(self) -> AnswerCode {
        [self.0.0, self.1.0]
    }
}

/// `None`: nothing is chosen. Only numbers that have an end of their own are wrapped so.
impl<A: DecisionAnswer> DecisionAnswer for Option<A> {
    fn code(self) -> AnswerCode {
        self.map_or([u64::MAX; 2], A::code)
    }
}

/// Answers that lie within a distance of one, each number by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NearAnswers {
    /// The answer.
    pub at: AnswerCode,
    /// How far from it others may lie; zero twice where there is only this one.
    pub within: AnswerCode,
}

impl NearAnswers {
    /// Whether an answer is one of these.
    pub fn holds(&self, answer: AnswerCode) -> bool {
        let off = |index: usize| (answer[index].wrapping_sub(self.at[index]) as i64).unsigned_abs();
        (0..2).all(|index| off(index) <= self.within[index])
    }
}

/// What the model's rules answer in the states that the unknowns allow, all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelAnswers(Vec<NearAnswers>);

impl ModelAnswers {
    /// All states give this answer.
    pub(super) fn one(answer: impl DecisionAnswer) -> ModelAnswers {
        ModelAnswers::within(answer, [0, 0])
    }

    /// States differ by numbers that nothing shows to the last unit.
    pub(super) fn within(answer: impl DecisionAnswer, within: AnswerCode) -> ModelAnswers {
        ModelAnswers(vec![NearAnswers { at: answer.code(), within }])
    }

    /// What these states give.
    pub(super) fn of<A: DecisionAnswer>(answers: impl IntoIterator<Item = A>) -> ModelAnswers {
        ModelAnswers::default().and(answers)
    }

    /// These as well.
    pub(super) fn and<A: DecisionAnswer>(mut self, answers: impl IntoIterator<Item = A>) -> ModelAnswers {
        for answer in answers {
            let near = NearAnswers { at: answer.code(), within: [0, 0] };
            if !self.0.contains(&near) {
                self.0.push(near);
            }
        }
        self
    }

    /// The answers, each once.
    pub fn iter(&self) -> impl Iterator<Item = &NearAnswers> {
        self.0.iter()
    }

    /// Whether all states give one answer.
    fn is_one(&self) -> bool {
        matches!(self.0[..], [NearAnswers { within: [0, 0], .. }])
    }

    fn holds(&self, answer: AnswerCode) -> bool {
        self.0.iter().any(|near| near.holds(answer))
    }
}

/// What the comparison of one decision found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionOutcome {
    /// Every state that the unknowns allow gives what the kernel did.
    Agree,
    /// Some of them do.
    Admissible,
    /// None of them does; the reason says the class of the miss.
    Missed(&'static str),
    /// The trace does not show enough; the reason says what it lacks.
    NotJudged(&'static str),
}

/// What a judged decision was judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictGround {
    /// What the model's rules allow.
    pub answers: ModelAnswers,
    /// What the kernel did.
    pub kernel: AnswerCode,
}

/// What came of one decision. Agreement is decided here alone.
#[derive(Clone, Debug)]
pub(super) struct DecisionVerdict {
    outcome: DecisionOutcome,
    ground: Option<VerdictGround>,
}

impl DecisionVerdict {
    /// Holds the kernel's answer against all that the unknowns allow. `missed` is the class of a miss.
    pub fn of(answers: ModelAnswers, kernel: impl DecisionAnswer, missed: &'static str) -> DecisionVerdict {
        let kernel = kernel.code();
        let outcome = match (answers.holds(kernel), answers.is_one()) {
            (true, true) => DecisionOutcome::Agree,
            (true, false) => DecisionOutcome::Admissible,
            (false, _) => DecisionOutcome::Missed(missed),
        };
        DecisionVerdict { outcome, ground: Some(VerdictGround { answers, kernel }) }
    }

    /// The states cannot be enumerated, or the trace does not show what the kernel did.
    pub fn not_judged(why: &'static str) -> DecisionVerdict {
        DecisionVerdict { outcome: DecisionOutcome::NotJudged(why), ground: None }
    }

    /// The verdict, unless something speaks against judging.
    pub fn unless(self, why_not: Option<&'static str>) -> DecisionVerdict {
        match (self.outcome, why_not) {
            (DecisionOutcome::NotJudged(_), _) | (_, None) => self,
            (_, Some(why)) => DecisionVerdict::not_judged(why),
        }
    }

    /// What was found.
    pub fn outcome(&self) -> DecisionOutcome {
        self.outcome
    }

    /// Whether it was judged.
    pub fn is_judged(&self) -> bool {
        self.ground.is_some()
    }

    /// Whether the kernel's answer is none of those that are allowed.
    pub fn is_miss(&self) -> bool {
        matches!(self.outcome, DecisionOutcome::Missed(_))
    }

    /// What it was judged by.
    pub fn into_ground(self) -> Option<VerdictGround> {
        self.ground
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(answers: &ModelAnswers, kernel: impl DecisionAnswer) -> DecisionOutcome {
        DecisionVerdict::of(answers.clone(), kernel, "other").outcome()
    }

    /// Every set of up to three CPUs against every answer, in every order of the states: likelihood, which the order tells, does
    /// not count.
    #[test]
    fn only_a_single_answer_agrees_and_order_does_not_count() {
        let cpus = [0, 1, 2].map(Cpu);
        for first in cpus {
            for second in cpus {
                for third in cpus {
                    let states = [first, second, third];
                    let answers = ModelAnswers::of(states);
                    for kernel in [0, 1, 2, 3].map(Cpu) {
                        let expected = match states.iter().filter(|&&cpu| cpu == kernel).count() {
                            0 => DecisionOutcome::Missed("other"),
                            3 => DecisionOutcome::Agree,
                            _ => DecisionOutcome::Admissible,
                        };
                        assert_eq!(outcome(&answers, kernel), expected, "{states:?} {kernel}");
                    }
                }
            }
        }
    }

    #[test]
    fn another_answer_within_the_set_is_as_admissible() {
        let answers = ModelAnswers::one(Cpu(1)).and([Cpu(4), Cpu(1)]);
        for kernel in [1, 4].map(Cpu) {
            assert_eq!(outcome(&answers, kernel), DecisionOutcome::Admissible);
        }
        // The state is known: it decides.
        assert_eq!(outcome(&ModelAnswers::one(Cpu(1)), Cpu(1)), DecisionOutcome::Agree);
        assert_eq!(outcome(&ModelAnswers::one(Cpu(4)), Cpu(1)), DecisionOutcome::Missed("other"));
        assert_eq!(
            outcome(&ModelAnswers::of([None, Some(Cpu(0))]), None::<Cpu>),
            DecisionOutcome::Admissible
        );
    }

    #[test]
    fn a_value_within_rounding_is_no_agreement() {
        let answers = ModelAnswers::within(Vruntime(100), [2, 0]);
        for (kernel, expected) in [
            (100, DecisionOutcome::Admissible),
            (102, DecisionOutcome::Admissible),
            (98, DecisionOutcome::Admissible),
            (103, DecisionOutcome::Missed("other")),
        ] {
            assert_eq!(outcome(&answers, Vruntime(kernel)), expected, "{kernel}");
        }
        assert_eq!(outcome(&ModelAnswers::one(Vruntime(100)), Vruntime(100)), DecisionOutcome::Agree);
        let wraps = ModelAnswers::within(Vruntime(u64::MAX), [2, 0]);
        assert_eq!(outcome(&wraps, Vruntime(1)), DecisionOutcome::Admissible);
    }

    #[test]
    fn what_is_not_judged_stays_so() {
        let judged = || DecisionVerdict::of(ModelAnswers::one(true), true, "other");
        assert_eq!(judged().unless(Some("hidden")).outcome(), DecisionOutcome::NotJudged("hidden"));
        assert_eq!(judged().unless(None).outcome(), DecisionOutcome::Agree);
        let unknown = DecisionVerdict::not_judged("unknown").unless(Some("hidden"));
        assert_eq!(unknown.outcome(), DecisionOutcome::NotJudged("unknown"));
        assert!(!unknown.is_judged() && unknown.into_ground().is_none());
    }
}
