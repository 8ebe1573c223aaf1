//! What came of a verification: counts by kind of decision, and the first misses.
//!
//! Must not know: how a decision is asked for.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns};

use serde::{Deserialize, Serialize};

use super::verdict::{Ground, Outcome, Verdict};

/// A kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
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

impl Kind {
    /// Every kind, in order of report.
    pub const ALL: [Kind; 12] = [
        Kind::Vruntime,
        Kind::Placement,
        Kind::Pick,
        Kind::WakeupPreempt,
        Kind::TickPreempt,
        Kind::QueueTime,
        Kind::Lag,
        Kind::DelayedDequeue,
        Kind::Reweight,
        Kind::WakeupCpu,
        Kind::Balance,
        Kind::BalanceTry,
    ];

    /// Its name in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Vruntime => "vruntime",
            Kind::Placement => "placement",
            Kind::Pick => "pick",
            Kind::WakeupPreempt => "wakeup_preempt",
            Kind::TickPreempt => "tick_preempt",
            Kind::QueueTime => "queue_time",
            Kind::Lag => "lag",
            Kind::DelayedDequeue => "delayed_dequeue",
            Kind::Reweight => "reweight",
            Kind::WakeupCpu => "wakeup_cpu",
            Kind::Balance => "balance",
            Kind::BalanceTry => "balance_try",
        }
    }
}

/// Decisions of one kind (or of one case of a kind) that were judged, and how many the model shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Judged.
    pub judged: u64,
    /// Of these, every state that the unknowns allow gives what the kernel did.
    pub agree: u64,
    /// Of these, some of the states that the unknowns allow give what the kernel did, and others not.
    pub admissible: u64,
}

impl Share {
    /// Judged, and no state that the unknowns allow gives what the kernel did.
    pub fn missed(self) -> u64 {
        self.judged.saturating_sub(self.agree + self.admissible)
    }
}

/// Counts of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindTally {
    /// Judged decisions.
    pub all: Share,
    /// Misses by reason.
    pub misses: BTreeMap<&'static str, u64>,
    /// Decisions not judged, by reason.
    pub not_judged: BTreeMap<&'static str, u64>,
    /// Judged decisions by case: cause of a placement, what the kernel did (`yes`, `no`).
    pub cases: BTreeMap<&'static str, Share>,
    /// How many of the judged decisions a trivial rule shares, where there is one.
    pub baseline: Option<Baseline>,
}

/// A trivial rule and its agreement, so that the model's is not read alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Baseline {
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
pub struct Miss {
    /// The event of the trace at which it was judged, counted from 1; header lines do not count.
    pub event: u64,
    /// When.
    pub time: Ns,
    /// On which CPU's queue.
    pub cpu: Cpu,
    /// The kind of decision.
    pub kind: Kind,
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
pub struct Decision {
    /// The event at which it was judged, by its number in the walk.
    pub event: u64,
    /// The kind of decision.
    pub kind: Kind,
    /// The case of it.
    pub case: &'static str,
    /// What was found.
    pub outcome: Outcome,
    /// The allowed answers and the kernel's; `None` where it was not judged.
    pub ground: Option<Ground>,
}

/// Counts of all kinds.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    kinds: BTreeMap<Kind, KindTally>,
    pub misses: Vec<Miss>,
    misses_max: usize,
    /// Every decision, where they are kept.
    decisions: Option<Vec<Decision>>,
    /// The event that is being walked.
    pub event: u64,
}

impl Tally {
    /// No counts yet; up to `misses_max` misses will be kept.
    pub fn new(misses_max: usize) -> Tally {
        Tally { misses_max, ..Tally::default() }
    }

    /// Keeps every decision from now on.
    pub fn keep_decisions(&mut self) {
        self.decisions = Some(Vec::new());
    }

    /// Counts one verdict. `case` is counted where the decision is judged.
    pub fn count(&mut self, kind: Kind, case: &'static str, verdict: Verdict) {
        let tally = self.kinds.entry(kind).or_default();
        let outcome = verdict.outcome();
        if let Some(decisions) = &mut self.decisions {
            decisions.push(Decision {
                event: self.event,
                kind,
                case,
                outcome,
                ground: verdict.into_ground(),
            });
        }
        match outcome {
            Outcome::NotJudged(reason) => {
                *tally.not_judged.entry(reason).or_default() += 1;
                return;
            }
            Outcome::Missed(reason) => *tally.misses.entry(reason).or_default() += 1,
            Outcome::Agree | Outcome::Admissible => {}
        }
        for share in [&mut tally.all, tally.cases.entry(case).or_default()] {
            share.judged += 1;
            share.agree += u64::from(outcome == Outcome::Agree);
            share.admissible += u64::from(outcome == Outcome::Admissible);
        }
    }

    /// Counts what a trivial rule would have decided, for a judged decision.
    pub fn count_baseline(&mut self, kind: Kind, rule: &'static str, agrees: bool) {
        let tally = self.kinds.entry(kind).or_default();
        tally.baseline.get_or_insert(Baseline { rule, agree: 0 }).agree += u64::from(agrees);
    }

    /// Takes back what was judged of some kinds: what it rests on turns out not to be in the trace.
    pub fn withdraw(&mut self, kinds: &[Kind], reason: &'static str) {
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
                decision.outcome = Outcome::NotJudged(reason);
            }
        }
    }

    /// Whether another miss would be kept.
    pub fn keeps_misses(&self) -> bool {
        self.misses.len() < self.misses_max
    }

    /// The counts, every kind named, the first misses, and the decisions that were kept.
    pub fn into_kinds(mut self) -> (Vec<(Kind, KindTally)>, Vec<Miss>, Vec<Decision>) {
        let kinds = Kind::ALL.map(|kind| (kind, self.kinds.remove(&kind).unwrap_or_default()));
        (kinds.into(), self.misses, self.decisions.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Answers;
    use super::*;

    fn verdict(answers: &[bool], kernel: bool) -> Verdict {
        Verdict::of(Answers::of(answers.iter().copied()), kernel, "leftmost")
    }

    #[test]
    fn what_is_taken_back_counts_as_not_judged() {
        let mut tally = Tally::default();
        for verdict in [verdict(&[true], true), verdict(&[true], false), Verdict::not_judged("unknown")] {
            tally.count(Kind::Pick, "two", verdict.clone());
            tally.count(Kind::Lag, "two", verdict);
        }
        tally.withdraw(&[Kind::Pick, Kind::Balance], "not shown");
        let (kinds, ..) = tally.into_kinds();
        let of = |wanted: Kind| kinds.iter().find(|(kind, _)| *kind == wanted).map(|(_, tally)| tally);
        let pick = of(Kind::Pick).expect("every kind is named");
        assert_eq!((pick.all, pick.misses.len(), pick.cases.len()), (Share::default(), 0, 0));
        assert_eq!(pick.not_judged, BTreeMap::from([("not shown", 2), ("unknown", 1)]));
        assert_eq!(of(Kind::Lag).map(|lag| lag.all.judged), Some(2));
        assert_eq!(of(Kind::Balance), Some(&KindTally::default()));
    }

    #[test]
    fn what_is_not_judged_is_no_agreement() {
        let mut tally = Tally::default();
        tally.count(Kind::Pick, "two", verdict(&[true], true));
        tally.count(Kind::Pick, "two", verdict(&[false], true));
        tally.count(Kind::Pick, "two", verdict(&[false, true], true));
        tally.count(Kind::Pick, "two", Verdict::not_judged("unknown"));
        let (kinds, ..) = tally.into_kinds();
        let pick = &kinds[2].1;
        assert_eq!(pick.all, Share { judged: 3, agree: 1, admissible: 1 });
        assert_eq!((pick.all.missed(), pick.not_judged_total()), (1, 1));
        assert_eq!(pick.cases["two"], pick.all);
        assert_eq!(kinds[0].1, KindTally::default());
    }
}
