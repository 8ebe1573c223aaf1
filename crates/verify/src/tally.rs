//! What came of a verification: counts by kind of decision, and the first misses.
//!
//! Must not know: how a decision is asked for.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns};

use serde::{Deserialize, Serialize};

use super::verdict::{DecisionOutcome, DecisionVerdict, VerdictGround};

/// A kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DecisionKind {
    /// Where accounting moves a task on its queue's virtual time line.
    Vruntime,
    /// Where an entity joins a queue: wakeup, fork, move.
    Placement,
    /// Which task runs next, of two or more.
    Pick,
    /// Whether a task that joins takes the CPU.
    WakeupPreempt,
    /// Whether the tick takes the CPU.
    TickPreempt,
    /// A queue's virtual zero or average, where a probe shows it.
    QueueTime,
    /// The lag with which an entity leaves its queue, where a probe shows it.
    Lag,
    /// Whether a task that goes to sleep stays on its queue.
    DelayedDequeue,
    /// Where a change of its weight puts an entity, where the trace shows it.
    Reweight,
    /// On which CPU a woken or new task is queued.
    WakeupCpu,
    /// Which queue balancing takes from, and which task.
    Balance,
    /// Whether balancing of a level finds something, by which measure, and whether it moves a task; where probes show it.
    BalanceTry,
}

impl DecisionKind {
    /// Every kind, in order of report.
    pub const ALL: [DecisionKind; 12] = [
        DecisionKind::Vruntime,
        DecisionKind::Placement,
        DecisionKind::Pick,
        DecisionKind::WakeupPreempt,
        DecisionKind::TickPreempt,
        DecisionKind::QueueTime,
        DecisionKind::Lag,
        DecisionKind::DelayedDequeue,
        DecisionKind::Reweight,
        DecisionKind::WakeupCpu,
        DecisionKind::Balance,
        DecisionKind::BalanceTry,
    ];

    /// Its name in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            DecisionKind::Vruntime => "vruntime",
            DecisionKind::Placement => "placement",
            DecisionKind::Pick => "pick",
            DecisionKind::WakeupPreempt => "wakeup_preempt",
            DecisionKind::TickPreempt => "tick_preempt",
            DecisionKind::QueueTime => "queue_time",
            DecisionKind::Lag => "lag",
            DecisionKind::DelayedDequeue => "delayed_dequeue",
            DecisionKind::Reweight => "reweight",
            DecisionKind::WakeupCpu => "wakeup_cpu",
            DecisionKind::Balance => "balance",
            DecisionKind::BalanceTry => "balance_try",
        }
    }
}

/// Decisions of one kind (or of one case of a kind) that were judged, and how many the model shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JudgedShare {
    /// Judged.
    pub judged: u64,
    /// Of these, every state that the unknowns allow gives what the kernel did.
    pub agree: u64,
    /// Of these, some of the states that the unknowns allow give what the kernel did, and others not.
    pub admissible: u64,
}

impl JudgedShare {
    /// Judged, and no state that the unknowns allow gives what the kernel did.
    pub fn missed(self) -> u64 {
        self.judged.saturating_sub(self.agree + self.admissible)
    }
}

/// Counts of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindTally {
    /// Judged decisions.
    pub all: JudgedShare,
    /// Misses by reason.
    pub misses: BTreeMap<&'static str, u64>,
    /// Decisions not judged, by reason.
    pub not_judged: BTreeMap<&'static str, u64>,
    /// Judged decisions by case: cause of a placement, what the kernel did (`yes`, `no`).
    pub cases: BTreeMap<&'static str, JudgedShare>,
    /// How many of the judged decisions a trivial rule shares, where there is one.
    pub baseline: Option<TrivialRule>,
}

/// A trivial rule and its agreement, so that the model's is not read alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrivialRule {
    /// The rule.
    pub rule: &'static str,
    /// How many of the judged decisions it shares.
    pub agree: u64,
}

impl KindTally {
    /// Decisions not judged.
    pub fn not_judged_total(&self) -> u64 {
        self.not_judged.values().sum()
    }
}

/// A judged decision that the model does not share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissedDecision {
    /// The event of the trace at which it was judged, counted from 1; header lines do not count.
    pub event: u64,
    /// When.
    pub time: Ns,
    /// On which CPU's queue.
    pub cpu: Cpu,
    /// The kind of decision.
    pub kind: DecisionKind,
    /// The case: cause of a placement, `yes`, `no`.
    pub case: &'static str,
    /// Class of the miss.
    pub reason: &'static str,
    /// What the model says.
    pub model: String,
    /// What the kernel did.
    pub kernel: String,
    /// The queue and its entities at that time, one line each.
    pub state: Vec<String>,
}

/// One decision, and what it was judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedDecision {
    /// The event at which it was judged, by its number in the walk.
    pub event: u64,
    /// The kind of decision.
    pub kind: DecisionKind,
    /// The case of it.
    pub case: &'static str,
    /// What was found.
    pub outcome: DecisionOutcome,
    /// The allowed answers and the kernel's; `None` where it was not judged.
    pub ground: Option<VerdictGround>,
}

/// Counts of all kinds.
#[derive(Clone, Debug, Default)]
pub(super) struct DecisionTally {
    kinds: BTreeMap<DecisionKind, KindTally>,
    pub misses: Vec<MissedDecision>,
    misses_max: usize,
    /// Every decision, where they are kept.
    decisions: Option<Vec<JudgedDecision>>,
    /// The event that is being walked.
    pub event: u64,
}

impl DecisionTally {
    /// No counts yet; up to `misses_max` misses will be kept.
    pub fn new(misses_max: usize) -> DecisionTally {
        DecisionTally { misses_max, ..DecisionTally::default() }
    }

    /// Keeps every decision from now on.
    pub fn keep_decisions(&mut self) {
        self.decisions = Some(Vec::new());
    }

    /// Counts one verdict. `case` is counted where the decision is judged.
    pub fn count(&mut self, kind: DecisionKind, case: &'static str, verdict: DecisionVerdict) {
        let tally = self.kinds.entry(kind).or_default();
        let outcome = verdict.outcome();
        if let Some(decisions) = &mut self.decisions {
            decisions.push(JudgedDecision {
                event: self.event,
                kind,
                case,
                outcome,
                ground: verdict.into_ground(),
            });
        }
        match outcome {
            DecisionOutcome::NotJudged(reason) => {
                *tally.not_judged.entry(reason).or_default() += 1;
                return;
            }
            DecisionOutcome::Missed(reason) => *tally.misses.entry(reason).or_default() += 1,
            DecisionOutcome::Agree | DecisionOutcome::Admissible => {}
        }
        for share in [&mut tally.all, tally.cases.entry(case).or_default()] {
            share.judged += 1;
            share.agree += u64::from(outcome == DecisionOutcome::Agree);
            share.admissible += u64::from(outcome == DecisionOutcome::Admissible);
        }
    }

    /// Counts what a trivial rule would have decided, for a judged decision.
    pub fn count_baseline(&mut self, kind: DecisionKind, rule: &'static str, agrees: bool) {
        let tally = self.kinds.entry(kind).or_default();
        tally.baseline.get_or_insert(TrivialRule { rule, agree: 0 }).agree += u64::from(agrees);
    }

    /// Takes back what was judged of some kinds: what it rests on turns out not to be in the trace.
    pub fn withdraw(&mut self, kinds: &[DecisionKind], reason: &'static str) {
        for kind in kinds {
            let Some(tally) = self.kinds.get_mut(kind) else { continue };
            let judged = tally.all.judged;
            let mut not_judged = std::mem::take(&mut tally.not_judged);
            if judged > 0 {
                *not_judged.entry(reason).or_default() += judged;
            }
            *tally = KindTally { not_judged, ..KindTally::default() };
        }
        self.misses.retain(|miss| !kinds.contains(&miss.kind));
        for decision in self.decisions.iter_mut().flatten().filter(|decision| kinds.contains(&decision.kind))
        {
            if decision.ground.take().is_some() {
                decision.outcome = DecisionOutcome::NotJudged(reason);
            }
        }
    }

    /// Whether another miss would be kept.
    pub fn keeps_misses(&self) -> bool {
        self.misses.len() < self.misses_max
    }

    /// The counts, every kind named, the first misses, and the decisions that were kept.
    pub fn into_kinds(
        mut self,
    ) -> (Vec<(DecisionKind, KindTally)>, Vec<MissedDecision>, Vec<JudgedDecision>) {
        let kinds = DecisionKind::ALL.map(|kind| (kind, self.kinds.remove(&kind).unwrap_or_default()));
        (kinds.into(), self.misses, self.decisions.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::ModelAnswers;
    use super::*;

    fn verdict(answers: &[bool], kernel: bool) -> DecisionVerdict {
        DecisionVerdict::of(ModelAnswers::of(answers.iter().copied()), kernel, "leftmost")
    }

    #[test]
    fn what_is_taken_back_counts_as_not_judged() {
        let mut tally = DecisionTally::default();
        for verdict in
            [verdict(&[true], true), verdict(&[true], false), DecisionVerdict::not_judged("unknown")]
        {
            tally.count(DecisionKind::Pick, "two", verdict.clone());
            tally.count(DecisionKind::Lag, "two", verdict);
        }
        tally.withdraw(&[DecisionKind::Pick, DecisionKind::Balance], "not shown");
        let (kinds, ..) = tally.into_kinds();
        let of =
            |wanted: DecisionKind| kinds.iter().find(|(kind, _)| *kind == wanted).map(|(_, tally)| tally);
        let pick = of(DecisionKind::Pick).expect("every kind is named");
        assert_eq!((pick.all, pick.misses.len(), pick.cases.len()), (JudgedShare::default(), 0, 0));
        assert_eq!(pick.not_judged, BTreeMap::from([("not shown", 2), ("unknown", 1)]));
        assert_eq!(of(DecisionKind::Lag).map(|lag| lag.all.judged), Some(2));
        assert_eq!(of(DecisionKind::Balance), Some(&KindTally::default()));
    }

    #[test]
    fn what_is_not_judged_is_no_agreement() {
        let mut tally = DecisionTally::default();
        tally.count(DecisionKind::Pick, "two", verdict(&[true], true));
        tally.count(DecisionKind::Pick, "two", verdict(&[false], true));
        tally.count(DecisionKind::Pick, "two", verdict(&[false, true], true));
        tally.count(DecisionKind::Pick, "two", DecisionVerdict::not_judged("unknown"));
        let (kinds, ..) = tally.into_kinds();
        let pick = &kinds[2].1;
        assert_eq!(pick.all, JudgedShare { judged: 3, agree: 1, admissible: 1 });
        assert_eq!((pick.all.missed(), pick.not_judged_total()), (1, 1));
        assert_eq!(pick.cases["two"], pick.all);
        assert_eq!(kinds[0].1, KindTally::default());
    }
}
