//! What was summed: `fairlab/blame/1` without the account of how traces were read.
//!
//! Must not know: how sums come about, how they are printed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fairlab_event::Ns;
use serde::Serialize;

use super::RuleWords;
use super::sums::{BlameSums, CountedTime, Culprit, Rule, SleepPlace, WakerKind, WokenBy};
use crate::causes::{CauseDecision, Causes, StretchEnd, WaitBehind, WaitKind};
use crate::histogram::greatest_in;

/// The longest waits: one in so many.
const TAIL: u64 = 100;

/// Waits of some tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlameReport {
    /// Whose, as it was asked for; empty: of all tasks.
    pub whose: Vec<String>,
    /// For how long it was looked.
    pub observed_ns: u64,
    /// How many tasks waited or ran.
    pub tasks: u64,
    /// How long they ran.
    pub ran_ns: u64,
    /// Their waits.
    pub waits: u64,
    /// How long these were in all.
    pub wait_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// Of the waits, those of tasks that were woken while they still ran. `latency` counts them by option.
    pub woken_while_running: WaitSum,
    /// What was before the wakeup, of tasks that had left as R and blocked. `latency` counts it as waiting, as perf does.
    pub left_as_runnable: WaitSum,
    /// The waits of `latency`: without the former, with the latter.
    pub latency_wait_ns: u64,
    /// Waits across holes in the trace, which are not measured.
    pub waits_across_losses: u64,
    /// Waits that go on at the end: they are in no sum.
    pub still_waiting: WaitSum,
    /// The longest waits.
    pub tail: TailSum,
    /// Another CPU was idle.
    pub idle: BesideIdle,
    /// What had the CPU; the longest time first.
    pub culprits: Vec<CulpritRow>,
    /// By which rule it kept it; the longest time first.
    pub rules: Vec<RuleRow>,
    /// What ended the stretches; the longest time first.
    pub ends: Vec<EndRow>,
    /// Why the waits began; the longest time first.
    pub begun: Vec<BegunRow>,
    /// Who woke whom; the longest time first.
    pub wakers: Vec<WakerRow>,
    /// Where tasks slept and were woken; the longest time first. Empty where no call stack shows it.
    pub places: Vec<PlaceRow>,
    /// Who waited; the longest time first.
    pub waiters: Vec<WaiterRow>,
    /// What the trace lacks, one clause each.
    #[serde(skip)]
    pub notices: Vec<String>,
}

/// Waits, and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitSum {
    /// How many.
    pub waits: u64,
    /// How long.
    pub wait_ns: u64,
}

/// The longest of all waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TailSum {
    /// How many.
    pub waits: u64,
    /// How long in all.
    pub wait_ns: u64,
    /// All waits above this, within 0.8 %.
    pub above_ns: u64,
}

/// How much of the waiting another CPU was idle on which the task may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BesideIdle {
    /// How long.
    pub beside_idle_ns: u64,
    /// The waits of tasks that are known not to run everywhere; others count as allowed on each CPU.
    pub affinity_known: WaitSum,
}

/// The waits behind one culprit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CulpritRow {
    /// What had the CPU.
    pub behind: WaitBehind,
    /// Its name; empty where no task had it.
    pub runner: String,
    /// In how many stretches.
    pub stretches: u64,
    /// For how long.
    pub time_ns: u64,
    /// The part of all waiting.
    pub share: f64,
    /// The longest that one wait was behind it.
    pub longest_ns: u64,
    /// How much of it another CPU was idle.
    pub beside_idle_ns: u64,
    /// Its time in the longest waits.
    pub tail_ns: u64,
    /// The part of these.
    pub tail_share: f64,
}

/// The waits under one rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleRow {
    /// The kind of decision; none where no task had the CPU.
    pub decision: Option<CauseDecision>,
    /// Its reason, as the kernel's model calls it; empty where it is not known.
    pub reason: String,
    /// Both in words.
    pub words: String,
    /// How many decisions.
    pub decisions: u64,
    /// For how long.
    pub time_ns: u64,
    /// The part of all waiting.
    pub share: f64,
}

/// The waits whose stretches ended in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndRow {
    /// What ended them.
    pub ended: StretchEnd,
    /// In words.
    pub words: &'static str,
    /// How many stretches.
    pub stretches: u64,
    /// How long these were.
    pub time_ns: u64,
    /// The part of all waiting.
    pub share: f64,
}

/// The waits that began in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BegunRow {
    /// Why they began; none where that is not known.
    pub wait: Option<WaitKind>,
    /// In words.
    pub words: &'static str,
    /// How many.
    pub waits: u64,
    /// How long.
    pub wait_ns: u64,
    /// The part of all waiting.
    pub share: f64,
    /// The longest.
    pub longest_ns: u64,
}

/// The waits of tasks that one waker woke.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WakerRow {
    /// Who woke: a task's name, or `an interrupt` and the like.
    pub waker: String,
    /// Whether that is a task.
    pub is_task: bool,
    /// Who was woken.
    pub wakee: String,
    /// How many waits.
    pub waits: u64,
    /// How long.
    pub wait_ns: u64,
    /// The part of all waiting.
    pub share: f64,
    /// The longest.
    pub longest_ns: u64,
}

/// The waits of tasks that slept in one function and were woken in another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceRow {
    /// Where they slept; empty where that is not shown.
    pub slept_in: String,
    /// Where the waker was; empty where that is not shown.
    pub woken_in: String,
    /// How many waits.
    pub waits: u64,
    /// How long.
    pub wait_ns: u64,
    /// The part of all waiting.
    pub share: f64,
    /// The longest.
    pub longest_ns: u64,
}

/// The waits of one name, or of one thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaiterRow {
    /// The name.
    pub waiter: String,
    /// How many tasks have it.
    pub tasks: u64,
    /// How many waits.
    pub waits: u64,
    /// How long.
    pub wait_ns: u64,
    /// The part of all waiting.
    pub share: f64,
    /// The longest.
    pub longest_ns: u64,
    /// How long it ran.
    pub ran_ns: u64,
}

/// What a report says besides the sums.
pub(super) struct Told<'f> {
    pub(super) whose: Vec<String>,
    pub(super) observed: Ns,
    pub(super) notices: Vec<String>,
    /// Functions of call stacks, from number 1.
    pub(super) functions: &'f [String],
    pub(super) rule_words: RuleWords,
}

impl From<CountedTime> for WaitSum {
    fn from(counted: CountedTime) -> WaitSum {
        WaitSum { waits: counted.count, wait_ns: counted.time.0 }
    }
}

impl BlameReport {
    /// Whether for most of the waiting a task had the CPU, and the trace does not tell by which rule.
    pub fn lacks_rules(&self) -> bool {
        let untold = self.rules.iter().filter(|row| row.decision == Some(CauseDecision::Unknown));
        untold.map(|row| row.share).sum::<f64>() > 0.5
    }

    /// Whether there was no wait, measured or not.
    pub const fn is_empty(&self) -> bool {
        self.waits + self.waits_across_losses + self.still_waiting.waits == 0
    }
}

fn part_of(part: Ns, whole: Ns) -> f64 {
    if whole == Ns::ZERO { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}

/// Rows, the longest time first.
fn rows<K: Copy, R>(
    sums: &BTreeMap<K, CountedTime>,
    row: impl Fn(K, &CountedTime) -> R,
    time: impl Fn(&R) -> u64,
) -> Vec<R> {
    let mut rows = sums.iter().map(|(&key, counted)| row(key, counted)).collect::<Vec<_>>();
    rows.sort_by_key(|row| Reverse(time(row)));
    rows
}

/// The names of a report's tasks.
struct Names(Vec<String>);

impl Names {
    fn of(&self, number: u16) -> String {
        self.0.get(usize::from(number)).or(self.0.last()).cloned().unwrap_or_default()
    }

    fn waker(&self, WokenBy { kind, name }: WokenBy) -> String {
        match kind {
            WakerKind::Task => self.of(name),
            WakerKind::Interrupt => "an interrupt".to_string(),
            WakerKind::SoftInterrupt => "a soft interrupt".to_string(),
            WakerKind::IdleTask => "the idle task".to_string(),
            WakerKind::Unknown => "not shown".to_string(),
        }
    }
}

impl BlameSums {
    /// The number of the bucket from which on the longest waits lie; none: there are no waits.
    fn tail_from(&self) -> Option<(usize, u64)> {
        let wanted = self.total.count.div_ceil(TAIL);
        let mut seen = 0;
        let buckets = self.lengths.buckets().collect::<Vec<_>>();
        for (bucket, count) in buckets.into_iter().rev() {
            seen += count;
            if seen >= wanted {
                return Some((bucket, seen));
            }
        }
        None
    }

    /// The longest waits, and each culprit's time in them.
    fn tail(&self) -> (TailSum, BTreeMap<Culprit, Ns>) {
        let Some((from, waits)) = self.tail_from().filter(|(_, waits)| *waits > 0) else {
            return (TailSum::default(), BTreeMap::new());
        };
        let mut found = BTreeMap::<Culprit, Ns>::new();
        for ((_, culprit), time) in self.by_length.range((from as u32, LEAST)..) {
            let known = found.entry(*culprit).or_default();
            *known = known.saturating_add(*time);
        }
        let time = found.values().fold(Ns::ZERO, |sum, time| sum.saturating_add(*time));
        let above_ns = from.checked_sub(1).map_or(0, greatest_in);
        (TailSum { waits, wait_ns: time.0, above_ns }, found)
    }

    fn culprit_rows(
        &self,
        names: &Names,
        tail: &TailSum,
        in_tail: &BTreeMap<Culprit, Ns>,
    ) -> Vec<CulpritRow> {
        let row = |(behind, runner): Culprit, counted: &CountedTime| {
            let tail_time = in_tail.get(&(behind, runner)).copied().unwrap_or_default();
            CulpritRow {
                behind,
                runner: if runner == 0 { String::new() } else { names.of(runner) },
                stretches: counted.count,
                time_ns: counted.time.0,
                share: part_of(counted.time, self.total.time),
                longest_ns: counted.longest.0,
                beside_idle_ns: counted.beside_idle.0,
                tail_ns: tail_time.0,
                tail_share: part_of(tail_time, Ns(tail.wait_ns)),
            }
        };
        rows(&self.culprits, row, |row| row.time_ns)
    }

    fn rule_rows(&self, causes: &Causes, words: RuleWords) -> Vec<RuleRow> {
        let row = |rule: Rule, counted: &CountedTime| {
            let (decision, reason) =
                rule.map_or((None, ""), |(decision, reason)| (Some(decision), causes.reason(reason)));
            RuleRow {
                decision,
                reason: reason.to_string(),
                words: match decision {
                    None => "no task had the CPU".to_string(),
                    Some(CauseDecision::Unknown) => "not told by this trace".to_string(),
                    Some(decision) => words(decision, reason),
                },
                decisions: if decision.is_none_or(|one| one == CauseDecision::Unknown) {
                    0
                } else {
                    counted.count
                },
                time_ns: counted.time.0,
                share: part_of(counted.time, self.total.time),
            }
        };
        rows(&self.rules, row, |row| row.time_ns)
    }

    fn end_rows(&self) -> Vec<EndRow> {
        let row = |ended: StretchEnd, counted: &CountedTime| EndRow {
            ended,
            words: ended.words(),
            stretches: counted.count,
            time_ns: counted.time.0,
            share: part_of(counted.time, self.total.time),
        };
        rows(&self.ends, row, |row| row.time_ns)
    }

    fn begun_rows(&self) -> Vec<BegunRow> {
        let row = |wait: Option<WaitKind>, counted: &CountedTime| BegunRow {
            wait,
            words: wait.map_or("not shown", WaitKind::words),
            waits: counted.count,
            wait_ns: counted.time.0,
            share: part_of(counted.time, self.total.time),
            longest_ns: counted.longest.0,
        };
        rows(&self.kinds, row, |row| row.wait_ns)
    }

    fn waker_rows(&self, names: &Names) -> Vec<WakerRow> {
        let row = |(waker, wakee): (WokenBy, u16), counted: &CountedTime| WakerRow {
            waker: names.waker(waker),
            is_task: waker.kind == WakerKind::Task,
            wakee: names.of(wakee),
            waits: counted.count,
            wait_ns: counted.time.0,
            share: part_of(counted.time, self.total.time),
            longest_ns: counted.longest.0,
        };
        rows(&self.wakers, row, |row| row.wait_ns)
    }

    fn place_rows(&self, functions: &[String]) -> Vec<PlaceRow> {
        let name = |number: u16| {
            let place = usize::from(number).checked_sub(1);
            place.and_then(|place| functions.get(place)).cloned().unwrap_or_default()
        };
        let row = |(slept, woken): SleepPlace, counted: &CountedTime| PlaceRow {
            slept_in: name(slept),
            woken_in: name(woken),
            waits: counted.count,
            wait_ns: counted.time.0,
            share: part_of(counted.time, self.total.time),
            longest_ns: counted.longest.0,
        };
        rows(&self.places, row, |row| row.wait_ns)
    }

    fn waiter_rows(&self, names: &Names) -> Vec<WaiterRow> {
        let row = |waiter: u16, counted: &CountedTime| WaiterRow {
            waiter: names.of(waiter),
            tasks: self.tasks.get(&waiter).copied().unwrap_or_default(),
            waits: counted.count,
            wait_ns: counted.time.0,
            share: part_of(counted.time, self.total.time),
            longest_ns: counted.longest.0,
            ran_ns: self.ran.get(&waiter).map_or(0, |ran| ran.0),
        };
        rows(&self.waiters, row, |row| row.wait_ns)
    }

    /// All of it.
    pub(super) fn into_report(self, told: Told<'_>, causes: &Causes) -> BlameReport {
        let names = Names(causes.names());
        let (tail, in_tail) = self.tail();
        let latency = self.total.time.0.saturating_sub(self.woken_while_running.time.0);
        BlameReport {
            whose: told.whose,
            observed_ns: told.observed.0,
            tasks: self.tasks.values().sum(),
            ran_ns: self.ran.values().fold(0, |sum, ran| ran.0.saturating_add(sum)),
            waits: self.total.count,
            wait_ns: self.total.time.0,
            longest_ns: self.total.longest.0,
            woken_while_running: self.woken_while_running.into(),
            left_as_runnable: self.seemed.into(),
            latency_wait_ns: latency.saturating_add(self.seemed.time.0),
            waits_across_losses: self.crossed,
            still_waiting: self.still_waiting.into(),
            tail,
            idle: BesideIdle {
                beside_idle_ns: self.total.beside_idle.0,
                affinity_known: self.affinity_known.into(),
            },
            culprits: self.culprit_rows(&names, &tail, &in_tail),
            rules: self.rule_rows(causes, told.rule_words),
            ends: self.end_rows(),
            begun: self.begun_rows(),
            wakers: self.waker_rows(&names),
            places: self.place_rows(told.functions),
            waiters: self.waiter_rows(&names),
            notices: told.notices,
        }
    }
}

/// The least culprit there is.
const LEAST: Culprit = (WaitBehind::KernelThread, 0);
