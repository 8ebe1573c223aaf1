//! The sums while a trace is read: by culprit, rule, end of the stretch, waker and waiter.
//!
//! The parts of each wait come to its length; what its parts do not tell is counted as not shown. Must not know: how waits are
//! followed, which of them count.

use std::collections::BTreeMap;

use fairlab_event::Ns;

use crate::causes::{
    Cause, CauseDecision, CauseTotal, CausedWait, DecisionReason, StretchEnd, WaitBehind, WaitKind, add_to,
};
use crate::histogram::{Histogram, bucket_of};

/// Who woke a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WokenBy {
    pub(super) kind: WakerKind,
    /// The number of the task's name; 0 where no task did.
    pub(super) name: u16,
}

/// What kind of waker it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WakerKind {
    Task,
    Interrupt,
    SoftInterrupt,
    IdleTask,
    Unknown,
}

/// What is known of a wait besides its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitFacts {
    pub(super) waiter: u16,
    pub(super) waker: Option<WokenBy>,
    /// For how long it was taken to wait before it was woken.
    pub(super) seemed: Ns,
    /// Where its task may run is known.
    pub(super) knows_affinity: bool,
    /// The numbers of the functions in which it slept and was woken; 0: not shown.
    pub(super) place: SleepPlace,
}

/// In which function a task slept, and in which it was woken.
pub(super) type SleepPlace = (u16, u16);

/// How often, and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CountedTime {
    pub(super) count: u64,
    pub(super) time: Ns,
    pub(super) longest: Ns,
    pub(super) beside_idle: Ns,
}

/// What had the CPU, and the number of its name.
pub(super) type Culprit = (WaitBehind, u16);

/// A rule; none where no task had the CPU.
pub(super) type Rule = Option<(CauseDecision, u16)>;

/// All sums.
#[derive(Clone, Debug, Default)]
pub(super) struct BlameSums {
    pub(super) lengths: Histogram,
    pub(super) total: CountedTime,
    pub(super) woken_while_running: CountedTime,
    pub(super) seemed: CountedTime,
    pub(super) still_waiting: CountedTime,
    pub(super) affinity_known: CountedTime,
    pub(super) crossed: u64,
    pub(super) kinds: BTreeMap<Option<WaitKind>, CountedTime>,
    pub(super) culprits: BTreeMap<Culprit, CountedTime>,
    /// The culprits' time in waits of a length, by the length's bucket.
    pub(super) by_length: BTreeMap<(u32, Culprit), Ns>,
    pub(super) rules: BTreeMap<Rule, CountedTime>,
    pub(super) ends: BTreeMap<StretchEnd, CountedTime>,
    /// By the waker, and the number of the name of the task that was woken.
    pub(super) wakers: BTreeMap<(WokenBy, u16), CountedTime>,
    /// By where the task slept and was woken, where call stacks show it.
    pub(super) places: BTreeMap<SleepPlace, CountedTime>,
    pub(super) waiters: BTreeMap<u16, CountedTime>,
    pub(super) ran: BTreeMap<u16, Ns>,
    /// How many tasks waited or ran, by name.
    pub(super) tasks: BTreeMap<u16, u64>,
}

impl CountedTime {
    /// One more, of this length.
    pub(super) fn add(&mut self, time: Ns) {
        self.add_part(CauseTotal { count: 1, stretches: 1, time, beside_idle: Ns::ZERO });
    }

    /// Of one wait, this is due to one cause.
    fn add_part(&mut self, part: CauseTotal) {
        self.count += part.stretches;
        self.time = self.time.saturating_add(part.time);
        self.beside_idle = self.beside_idle.saturating_add(part.beside_idle);
        self.longest = self.longest.max(part.time);
    }
}

/// The parts of one wait, those together that have a cause in common.
fn in_common<K: PartialEq>(parts: &[(Cause, CauseTotal)], key: impl Fn(&Cause) -> K) -> Vec<(K, CauseTotal)> {
    let mut found = Vec::new();
    parts.iter().for_each(|(cause, total)| add_to(&mut found, key(cause), *total));
    found
}

/// The parts of a wait, which come to its length.
fn whole_parts(wait: &CausedWait) -> Vec<(Cause, CauseTotal)> {
    let told = wait.parts.iter().fold(0_u64, |sum, (_, part)| sum.saturating_add(part.time.0));
    let mut parts = if told <= wait.length.0 { wait.parts.clone() } else { Vec::new() };
    let told = if parts.is_empty() { 0 } else { told };
    let untold = Ns(wait.length.0 - told);
    if untold > Ns::ZERO {
        let cause = Cause {
            behind: WaitBehind::Unknown,
            runner: 0,
            rule: DecisionReason::UNKNOWN,
            ended: StretchEnd::NotShown,
        };
        let total = CauseTotal { count: 1, stretches: 1, time: untold, beside_idle: Ns::ZERO };
        parts.push((cause, total));
    }
    parts
}

/// The rule by which a task kept the CPU.
fn rule_of(cause: &Cause) -> Rule {
    let by_task = match cause.behind {
        WaitBehind::KernelThread
        | WaitBehind::RealTime
        | WaitBehind::OtherGroup
        | WaitBehind::OwnName
        | WaitBehind::OtherName => true,
        WaitBehind::Interrupts
        | WaitBehind::Throttled
        | WaitBehind::Idle
        | WaitBehind::Waking
        | WaitBehind::Unknown => false,
    };
    by_task.then_some((cause.rule.decision, cause.rule.reason))
}

impl BlameSums {
    /// A wait counts.
    pub(super) fn add(&mut self, wait: &CausedWait, facts: WaitFacts) {
        let length = wait.length;
        self.lengths.record(length.0);
        self.total.add(length);
        self.kinds.entry(wait.kind).or_default().add(length);
        self.waiters.entry(facts.waiter).or_default().add(length);
        if let Some(waker) = facts.waker {
            self.wakers.entry((waker, facts.waiter)).or_default().add(length);
        }
        if facts.place != (0, 0) {
            self.places.entry(facts.place).or_default().add(length);
        }
        if wait.woken_while_running {
            self.woken_while_running.add(length);
        }
        if facts.seemed > Ns::ZERO {
            self.seemed.add(facts.seemed);
        }
        if facts.knows_affinity {
            self.affinity_known.add(length);
        }
        self.add_parts(&whole_parts(wait), bucket_of(length.0) as u32);
    }

    fn add_parts(&mut self, parts: &[(Cause, CauseTotal)], bucket: u32) {
        for (culprit, part) in in_common(parts, |cause| (cause.behind, cause.runner)) {
            self.culprits.entry(culprit).or_default().add_part(part);
            let known = self.by_length.entry((bucket, culprit)).or_default();
            *known = known.saturating_add(part.time);
            self.total.beside_idle = self.total.beside_idle.saturating_add(part.beside_idle);
        }
        for (rule, part) in in_common(parts, rule_of) {
            // Each decision is one.
            let part = CauseTotal { stretches: part.count, ..part };
            self.rules.entry(rule).or_default().add_part(part);
        }
        for (ended, part) in in_common(parts, |cause| cause.ended) {
            self.ends.entry(ended).or_default().add_part(part);
        }
    }

    /// Tasks of a name ran for so long.
    pub(super) fn ran(&mut self, name: u16, time: Ns) {
        let known = self.ran.entry(name).or_default();
        *known = known.saturating_add(time);
    }
}
