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
pub type Code = [u64; 2];

/// What can be the answer to a decision. Different answers have different codes.
pub(super) trait Answer {
    fn code(self) -> Code;
}

impl Answer for bool {
    fn code(self) -> Code {
        [u64::from(self), 0]
    }
}

impl Answer for i64 {
    fn code(self) -> Code {
        [self as u64, 0]
    }
}

impl Answer for Cpu {
    fn code(self) -> Code {
        [u64::from(self.0), 0]
    }
}

impl Answer for TaskId {
    fn code(self) -> Code {
        [self.index() as u64, 0]
    }
}

impl Answer for EntityId {
    fn code(self) -> Code {
        [self.index() as u64, 0]
    }
}

impl Answer for Vruntime {
    fn code(self) -> Code {
        [self.0, 0]
    }
}

impl Answer for MigrationType {
    fn code(self) -> Code {
        [self as u64, 0]
    }
}

/// A place on the time line, and the deadline.
impl Answer for (Vruntime, Vruntime) {
    fn code(self) -> Code {
        [self.0.0, self.1.0]
    }
}

/// `None`: nothing is chosen. Only numbers that have an end of their own are wrapped so.
impl<A: Answer> Answer for Option<A> {
    fn code(self) -> Code {
        self.map_or([u64::MAX; 2], A::code)
    }
}

/// Answers that lie within a distance of one, each number by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Near {
    /// The answer.
    pub at: Code,
    /// How far from it others may lie; zero twice where there is only this one.
    pub within: Code,
}

impl Near {
    /// Whether an answer is one of these.
    pub fn holds(&self, answer: Code) -> bool {
        let off = |index: usize| (answer[index].wrapping_sub(self.at[index]) as i64).unsigned_abs();
        (0..2).all(|index| off(index) <= self.within[index])
    }
}

/// What the model's rules answer in the states that the unknowns allow, all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers(Vec<Near>);

impl Answers {
    /// All states give this answer.
    pub(super) fn one(answer: impl Answer) -> Answers {
        Answers::within(answer, [0, 0])
    }

    /// States differ by numbers that nothing shows to the last unit.
    pub(super) fn within(answer: impl Answer, within: Code) -> Answers {
        Answers(vec![Near { at: answer.code(), within }])
    }

    /// What these states give.
    pub(super) fn of<A: Answer>(answers: impl IntoIterator<Item = A>) -> Answers {
        Answers::default().and(answers)
    }

    /// These as well.
    pub(super) fn and<A: Answer>(mut self, answers: impl IntoIterator<Item = A>) -> Answers {
        for answer in answers {
            let near = Near { at: answer.code(), within: [0, 0] };
            if !self.0.contains(&near) {
                self.0.push(near);
            }
        }
        self
    }

    /// The answers, each once.
    pub fn iter(&self) -> impl Iterator<Item = &Near> {
        self.0.iter()
    }

    /// Whether all states give one answer.
    fn is_one(&self) -> bool {
        matches!(self.0[..], [Near { within: [0, 0], .. }])
    }

    fn holds(&self, answer: Code) -> bool {
        self.0.iter().any(|near| near.holds(answer))
    }
}

/// What the comparison of one decision found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
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
pub struct Ground {
    /// What the model's rules allow.
    pub answers: Answers,
    /// What the kernel did.
    pub kernel: Code,
}

/// What came of one decision. Agreement is told here alone.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    outcome: Outcome,
    ground: Option<Ground>,
}

impl Verdict {
    /// Holds the kernel's answer against all that the unknowns allow. `missed` is the class of a miss.
    pub fn of(answers: Answers, kernel: impl Answer, missed: &'static str) -> Verdict {
        let kernel = kernel.code();
        let outcome = match (answers.holds(kernel), answers.is_one()) {
            (true, true) => Outcome::Agree,
            (true, false) => Outcome::Admissible,
            (false, _) => Outcome::Missed(missed),
        };
        Verdict { outcome, ground: Some(Ground { answers, kernel }) }
    }

    /// The states cannot be enumerated, or the trace does not show what the kernel did.
    pub fn not_judged(why: &'static str) -> Verdict {
        Verdict { outcome: Outcome::NotJudged(why), ground: None }
    }

    /// The verdict, unless something speaks against judging.
    pub fn unless(self, why_not: Option<&'static str>) -> Verdict {
        match (self.outcome, why_not) {
            (Outcome::NotJudged(_), _) | (_, None) => self,
            (_, Some(why)) => Verdict::not_judged(why),
        }
    }

    /// What was found.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether it was judged.
    pub fn is_judged(&self) -> bool {
        self.ground.is_some()
    }

    /// Whether the kernel's answer is none of those that are allowed.
    pub fn is_miss(&self) -> bool {
        matches!(self.outcome, Outcome::Missed(_))
    }

    /// What it was judged by.
    pub fn into_ground(self) -> Option<Ground> {
        self.ground
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(answers: &Answers, kernel: impl Answer) -> Outcome {
        Verdict::of(answers.clone(), kernel, "other").outcome()
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
                    let answers = Answers::of(states);
                    for kernel in [0, 1, 2, 3].map(Cpu) {
                        let expected = match states.iter().filter(|&&cpu| cpu == kernel).count() {
                            0 => Outcome::Missed("other"),
                            3 => Outcome::Agree,
                            _ => Outcome::Admissible,
                        };
                        assert_eq!(outcome(&answers, kernel), expected, "{states:?} {kernel}");
                    }
                }
            }
        }
    }

    #[test]
    fn another_answer_within_the_set_is_as_admissible() {
        let answers = Answers::one(Cpu(1)).and([Cpu(4), Cpu(1)]);
        for kernel in [1, 4].map(Cpu) {
            assert_eq!(outcome(&answers, kernel), Outcome::Admissible);
        }
        // The state is known: it decides.
        assert_eq!(outcome(&Answers::one(Cpu(1)), Cpu(1)), Outcome::Agree);
        assert_eq!(outcome(&Answers::one(Cpu(4)), Cpu(1)), Outcome::Missed("other"));
        assert_eq!(outcome(&Answers::of([None, Some(Cpu(0))]), None::<Cpu>), Outcome::Admissible);
    }

    #[test]
    fn a_value_within_rounding_is_no_agreement() {
        let answers = Answers::within(Vruntime(100), [2, 0]);
        for (kernel, expected) in [
            (100, Outcome::Admissible),
            (102, Outcome::Admissible),
            (98, Outcome::Admissible),
            (103, Outcome::Missed("other")),
        ] {
            assert_eq!(outcome(&answers, Vruntime(kernel)), expected, "{kernel}");
        }
        assert_eq!(outcome(&Answers::one(Vruntime(100)), Vruntime(100)), Outcome::Agree);
        let wraps = Answers::within(Vruntime(u64::MAX), [2, 0]);
        assert_eq!(outcome(&wraps, Vruntime(1)), Outcome::Admissible);
    }

    #[test]
    fn what_is_not_judged_stays_so() {
        let judged = || Verdict::of(Answers::one(true), true, "other");
        assert_eq!(judged().unless(Some("hidden")).outcome(), Outcome::NotJudged("hidden"));
        assert_eq!(judged().unless(None).outcome(), Outcome::Agree);
        let unknown = Verdict::not_judged("unknown").unless(Some("hidden"));
        assert_eq!(unknown.outcome(), Outcome::NotJudged("unknown"));
        assert!(!unknown.is_judged() && unknown.into_ground().is_none());
    }
}
