//! What came of a verification: counts by kind of decision, and the first misses.
//!
//! Must not know: how a decision is asked for.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns};

use serde::{Deserialize, Serialize};

use super::verdict::DecisionOutcome;

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
    /// On which CPU a woken or new task is queued.
    WakeupCpu,
    /// Which task balancing takes, and from where: never judged, since nothing shows what it finds.
    Balance,
}

impl DecisionKind {
    /// Every kind, in order of report.
    pub const ALL: [DecisionKind; 10] = [
        DecisionKind::Vruntime,
        DecisionKind::Placement,
        DecisionKind::Pick,
        DecisionKind::WakeupPreempt,
        DecisionKind::TickPreempt,
        DecisionKind::QueueTime,
        DecisionKind::Lag,
        DecisionKind::DelayedDequeue,
        DecisionKind::WakeupCpu,
        DecisionKind::Balance,
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
            DecisionKind::WakeupCpu => "wakeup_cpu",
            DecisionKind::Balance => "balance",
        }
    }

    /// Whether it rests on where entities stand on a queue, beside the one that it is about.
    pub(super) const fn is_on_queue(self) -> bool {
        !matches!(self, DecisionKind::Vruntime | DecisionKind::WakeupCpu | DecisionKind::Balance)
    }
}

/// Decisions of one kind (or of one case of a kind) that were judged, and how many the model shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JudgedShare {
    /// Judged.
    pub judged: u64,
    /// Of these, the model does what the kernel did.
    pub agree: u64,
}

impl JudgedShare {
    /// Of these, it does not.
    pub fn missed(self) -> u64 {
        self.judged.saturating_sub(self.agree)
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

/// Counts of all kinds.
#[derive(Clone, Debug, Default)]
pub(super) struct DecisionTally {
    kinds: BTreeMap<DecisionKind, KindTally>,
    pub misses: Vec<MissedDecision>,
    misses_max: usize,
}

impl DecisionTally {
    /// No counts yet; up to `misses_max` misses will be kept.
    pub fn new(misses_max: usize) -> DecisionTally {
        DecisionTally { misses_max, ..DecisionTally::default() }
    }

    /// Counts one outcome. `case` is counted where the decision is judged.
    pub fn count(&mut self, kind: DecisionKind, case: &'static str, outcome: DecisionOutcome) {
        let tally = self.kinds.entry(kind).or_default();
        match outcome {
            DecisionOutcome::NotJudged(reason) => {
                *tally.not_judged.entry(reason).or_default() += 1;
                return;
            }
            DecisionOutcome::Missed(reason) => *tally.misses.entry(reason).or_default() += 1,
            DecisionOutcome::Agree => {}
        }
        for share in [&mut tally.all, tally.cases.entry(case).or_default()] {
            share.judged += 1;
            share.agree += u64::from(outcome == DecisionOutcome::Agree);
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
    }

    /// Whether another miss would be kept.
    pub fn keeps_misses(&self) -> bool {
        self.misses.len() < self.misses_max
    }

    /// The counts, every kind named, and the first misses.
    pub fn into_kinds(mut self) -> (Vec<(DecisionKind, KindTally)>, Vec<MissedDecision>) {
        let kinds = DecisionKind::ALL.map(|kind| (kind, self.kinds.remove(&kind).unwrap_or_default()));
        (kinds.into(), self.misses)
    }
}

#[cfg(test)]
mod tests {
    use super::DecisionOutcome::{Agree, Missed, NotJudged};
    use super::*;

    #[test]
    fn what_is_not_judged_is_no_agreement_and_neither_is_what_is_taken_back() {
        let mut tally = DecisionTally::default();
        for outcome in [Agree, Missed("other"), NotJudged("unknown")] {
            tally.count(DecisionKind::Pick, "two", outcome);
            tally.count(DecisionKind::Lag, "two", outcome);
        }
        tally.withdraw(&[DecisionKind::Pick, DecisionKind::Balance], "not shown");
        let (kinds, _) = tally.into_kinds();
        let of =
            |wanted| kinds.iter().find(|(kind, _)| *kind == wanted).map(|(_, tally)| tally).expect("all");
        let (pick, lag) = (of(DecisionKind::Pick), of(DecisionKind::Lag));
        assert_eq!((lag.all, lag.cases["two"]), (JudgedShare { judged: 2, agree: 1 }, lag.all));
        assert_eq!((lag.all.missed(), lag.misses["other"], lag.not_judged_total()), (1, 1, 1));
        assert_eq!((pick.all, pick.misses.len(), pick.cases.len()), (JudgedShare::default(), 0, 0));
        assert_eq!(pick.not_judged, BTreeMap::from([("not shown", 2), ("unknown", 1)]));
        assert_eq!(of(DecisionKind::Balance), &KindTally::default());
    }
}
