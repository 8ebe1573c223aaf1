//! Who makes tasks wait, in all: the waits of some tasks, summed by what had the CPU, by which rule it kept it, what ended the stretch,
//! and who woke the task.
//!
//! [`Causes`] follows each wait and tells its parts. Waits count that end in the chosen time, as in `latency` and `explain`. Memory
//! depends on names, CPUs and causes, not on waits. Call stacks name where tasks slept and were woken (`stacks.rs`).
//!
//! Must not know: how a scheduler decides, how sums reach a user.

pub mod answer;
pub mod change;
pub mod report;
mod stacks;
mod sums;
pub mod text;

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::probes::{ProbeField, ProbePoint};
use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Sink, System, TextFields, Tracepoint};

use crate::causes::{CauseDecision, Causes, EndedCauses};
use crate::selector::{NothingChosen, SelectorState, TraceSelector};
use crate::tracker::{Departure, LeftCpu, StayOnCpu, TrackerChange, UnfinishedStay};
use crate::{Census, MissingEvents, Needs};
use report::BlameReport;
use stacks::{StackOf, Stacks};
use sums::{BlameSums, WaitFacts, WakerKind, WokenBy};

/// A rule of the scheduler in words: the kind of decision, and its reason as the kernel's model calls it.
pub type RuleWords = fn(CauseDecision, &str) -> String;

/// What is to be summed.
#[derive(Clone, Debug)]
pub struct BlameOptions {
    /// Only waits of these tasks that end in this time.
    pub chosen: TraceSelector,
    /// Threads of one name stay apart.
    pub by_thread: bool,
    /// How rules are called.
    pub rule_words: RuleWords,
}

/// The events that the sums are made from.
pub const NEEDS: Needs = Needs {
    analysis: "blame",
    required: &[Tracepoint::SchedSwitch],
    one_of: (
        &[Tracepoint::SchedWaking, Tracepoint::SchedWakeup],
        "only waits after a preemption or a yield are summed",
    ),
    useful: &[
        (Tracepoint::SchedWakeup, "on which CPU a task was queued is known by migrations only"),
        (Tracepoint::SchedMigrateTask, "moves of waiting tasks are not seen"),
    ],
};

/// What is noted of a task besides.
#[derive(Clone, Copy, Debug, Default)]
struct TaskNotes {
    /// Who woke it, for the wait that goes on.
    waker: Option<WokenBy>,
    /// For how long it was taken to wait before it was woken: it had left as `R`, and had blocked.
    seemed: Ns,
    /// It is among the tasks that are counted.
    is_counted: bool,
    /// The number of the function in which it slept, and of that in which it was woken; 0: not shown.
    slept_in: u16,
    woken_in: u16,
}

/// Sums up the waits among the events that it is given.
#[derive(Clone, Debug)]
pub struct Blame {
    rule_words: RuleWords,
    choosing: SelectorState,
    causes: Causes,
    /// For each task of the tracker.
    notes: Vec<TaskNotes>,
    stacks: Stacks,
    /// Tasks that may not run everywhere, by what lies beside the trace.
    affinity_told: BTreeSet<Pid>,
    /// The waits of each name have sums of their own.
    tells_waiters: bool,
    /// A machine's CPUs are bits of one word, as probes fetch them.
    fits_a_word: bool,
    /// By the number of the waiter's name; 0 where all waits are in one.
    sums: BTreeMap<u16, BlameSums>,
    census: Census,
}

impl Blame {
    /// Nothing summed yet.
    pub fn new(options: BlameOptions) -> Blame {
        Blame {
            rule_words: options.rule_words,
            choosing: SelectorState::new(options.chosen),
            causes: Causes::of_each_wait(options.by_thread),
            notes: Vec::new(),
            stacks: Stacks::default(),
            affinity_told: BTreeSet::new(),
            tells_waiters: false,
            fits_a_word: false,
            sums: BTreeMap::new(),
            census: Census::default(),
        }
    }

    /// Has the waits of each name summed for themselves.
    #[must_use]
    pub fn of_each_waiter(self) -> Blame {
        Blame { tells_waiters: true, ..self }
    }

    /// Whether the events so far hold what was chosen.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), NothingChosen> {
        self.choosing.check()
    }

    /// What to say where no wait was chosen.
    pub fn no_wait(&self) -> NothingChosen {
        self.choosing.none_of("wait")
    }

    /// The sums over all events so far; of each name apart, those of the first.
    ///
    /// # Errors
    /// There was no `sched_switch`.
    pub fn finish(mut self) -> Result<BlameReport, MissingEvents> {
        let mut notices = NEEDS.check(&self.census)?;
        notices.extend(self.causes.tracker().notices(self.census.total()));
        self.end();
        let sums = self.sums.pop_first().map(|(_, sums)| sums).unwrap_or_default();
        if sums.woken_while_running.count > 0 {
            notices.push(format!(
                "{} waits of tasks that were woken while they still ran are counted from the switch on; latency counts them with \
                 --woken-while-running only",
                sums.woken_while_running.count
            ));
        }
        let whose = self.choosing.whose().iter().map(ToString::to_string).collect();
        Ok(self.report(sums, whose, notices))
    }

    /// The sums of each name, those that waited longest first.
    ///
    /// # Errors
    /// There was no `sched_switch`.
    pub fn finish_each_waiter(mut self) -> Result<Vec<BlameReport>, MissingEvents> {
        NEEDS.check(&self.census)?;
        self.end();
        let names = self.causes.names();
        let name = |number: u16| names.get(usize::from(number)).or(names.last()).cloned().unwrap_or_default();
        let sums = std::mem::take(&mut self.sums).into_iter();
        let report = |(number, sums)| self.report(sums, vec![name(number)], Vec::new());
        let mut reports = sums.map(report).filter(|report| report.waits > 0).collect::<Vec<_>>();
        reports.sort_by_key(|report| std::cmp::Reverse(report.wait_ns));
        Ok(reports)
    }

    /// Counts what goes on when the trace ends.
    fn end(&mut self) {
        for stay in self.causes.tracker().last_stays().collect::<Vec<_>>() {
            self.ran(&stay);
        }
        let (_, end) = self.causes.tracker().span().unwrap_or_default();
        for (task, wait, crossed) in self.causes.tracker().open_waits().collect::<Vec<_>>() {
            if !crossed && self.choosing.means(self.pid(task)) {
                self.sums_of(task).still_waiting.add(end.since(wait.start));
            }
        }
    }

    fn report(&self, sums: BlameSums, whose: Vec<String>, notices: Vec<String>) -> BlameReport {
        let span = self.causes.tracker().span().unwrap_or_default();
        let observed = self.choosing.time().part(span.0, span.1);
        let functions = self.stacks.functions();
        let told = report::Told { whose, observed, notices, functions, rule_words: self.rule_words };
        sums.into_report(told, &self.causes)
    }

    /// The sums in which a task's waits count.
    fn sums_of(&mut self, task: u32) -> &mut BlameSums {
        let name = if self.tells_waiters { self.causes.name_of(task) } else { 0 };
        self.sums.entry(name).or_default()
    }

    fn notes_mut(&mut self, task: u32) -> &mut TaskNotes {
        let task = task as usize;
        if self.notes.len() <= task {
            self.notes.resize(task + 1, TaskNotes::default());
        }
        &mut self.notes[task]
    }

    fn pid(&self, task: u32) -> Pid {
        self.causes.tracker().task(task).pid
    }

    /// A task is woken, or begins: a wait of its begins.
    fn woken(&mut self, task: u32, seemed: Ns, event: &Event<'_>) {
        let waker = self.waker(event);
        let notes = self.notes_mut(task);
        (notes.waker, notes.seemed, notes.woken_in) = (Some(waker), seemed, 0);
        self.stacks.is_of(event.cpu, Some(StackOf::Wakeup(task)));
    }

    /// Takes an event that may be of a call stack.
    fn hear_stack(&mut self, event: &Event<'_>) {
        let (is_one, found) = self.stacks.frame(event);
        match found {
            Some((StackOf::Sleep(task), function)) => self.notes_mut(task).slept_in = function,
            Some((StackOf::Wakeup(task), function)) => self.notes_mut(task).woken_in = function,
            None => {}
        }
        if !is_one {
            self.stacks.is_of(event.cpu, None);
        }
    }

    /// The waker of a task: the context that reported the event.
    fn waker(&mut self, event: &Event<'_>) -> WokenBy {
        let (context, flags) = (&event.context, event.context.flags);
        let kind = match () {
            () if flags.in_hardirq() => WakerKind::Interrupt,
            () if flags.in_softirq() => WakerKind::SoftInterrupt,
            () if context.comm.is_empty() && context.pid.is_idle() => WakerKind::Unknown,
            () if context.pid.is_idle() => WakerKind::IdleTask,
            () => WakerKind::Task,
        };
        if kind != WakerKind::Task {
            return WokenBy { kind, name: 0 };
        }
        match self.causes.tracker().index(context.pid) {
            Some(task) => WokenBy { kind, name: self.causes.name_of(task) },
            None => WokenBy { kind: WakerKind::Unknown, name: 0 },
        }
    }

    fn ended(&mut self, EndedCauses { task, wait }: EndedCauses, now: Ns) {
        let notes = self.notes_mut(task);
        let (waker, seemed) = (notes.waker.take(), std::mem::take(&mut notes.seemed));
        let place = (std::mem::take(&mut notes.slept_in), std::mem::take(&mut notes.woken_in));
        if !self.choosing.counts(self.pid(task), now) {
            return;
        }
        let Some(wait) = wait else {
            self.sums_of(task).crossed += 1;
            return;
        };
        let known = self.causes.tracker().task(task);
        let knows_affinity = known.pinned_to().is_some() || self.affinity_told.contains(&known.pid);
        let waiter = self.causes.name_of(task);
        self.sums_of(task).add(&wait, WaitFacts { waiter, waker, seemed, knows_affinity, place });
        self.count_task(task, waiter);
    }

    fn count_task(&mut self, task: u32, name: u16) {
        if !std::mem::replace(&mut self.notes_mut(task).is_counted, true) {
            *self.sums_of(task).tasks.entry(name).or_default() += 1;
        }
    }

    /// A wait whose end is not in the trace.
    fn lost(&mut self, task: u32, now: Ns) {
        let counts = self.choosing.counts(self.pid(task), now);
        self.sums_of(task).crossed += u64::from(counts);
    }

    /// A task's stay on a CPU came to this.
    fn ran(&mut self, stay: &UnfinishedStay) {
        let time = self.choosing.time().part(stay.since, stay.since.saturating_add(stay.ran));
        if self.choosing.means(self.pid(stay.task)) && time > Ns::ZERO {
            let name = self.causes.name_of(stay.task);
            self.sums_of(stay.task).ran(name, time);
            self.count_task(stay.task, name);
        }
    }

    fn count_stays(&mut self, change: &TrackerChange) {
        for place in 0..self.causes.tracker().vanished().len() {
            let stay = self.causes.tracker().vanished()[place];
            self.ran(&stay);
        }
        if let TrackerChange::Switched { cpu, stay, left: Some(left), .. } = *change {
            let StayOnCpu { seen_since, .. } = stay;
            self.ran(&UnfinishedStay {
                task: left.task,
                cpu,
                number: 0,
                since: seen_since,
                ran: stay.known(),
            });
        }
    }

    fn changed(&mut self, change: &TrackerChange, event: &Event<'_>) {
        match *change {
            TrackerChange::Woken { task, seemed, lost_wait, .. } => {
                if lost_wait {
                    self.lost(task, event.time);
                }
                self.woken(task, seemed.map_or(Ns::ZERO, |(_, since)| event.time.since(since)), event);
            }
            TrackerChange::Queued { task, begins: true, .. } => self.woken(task, Ns::ZERO, event),
            TrackerChange::Switched { left: Some(LeftCpu { task, lost_wait, how, .. }), .. } => {
                if lost_wait {
                    self.lost(task, event.time);
                }
                // A wait that begins as it leaves has no waker that the trace shows.
                let notes = self.notes_mut(task);
                (notes.waker, notes.seemed) = (None, Ns::ZERO);
                (notes.slept_in, notes.woken_in) = (0, 0);
                let sleeps = matches!(how, Departure::Slept(_));
                self.stacks.is_of(event.cpu, sleeps.then_some(StackOf::Sleep(task)));
            }
            _ => {}
        }
    }
}

impl Blame {
    /// A probe shows where a task may run from now on, as far as that fits into a word.
    fn allowed_by_probe(&mut self, fields: TextFields<'_>) {
        let pid = fields.signed(ProbeField::Pid.name()).and_then(|pid| i32::try_from(pid).ok()).map(Pid);
        let mask = fields.unsigned(ProbeField::Mask.name()).filter(|mask| self.fits_a_word && *mask != 0);
        if let (Some(pid), Some(mask)) = (pid, mask) {
            let cpus = (0..u64::BITS).filter(|bit| mask >> bit & 1 == 1).map(Cpu);
            self.allowed(pid, &cpus.collect::<Vec<_>>());
        }
    }
}

impl Sink for Blame {
    fn event(&mut self, event: &Event<'_>) {
        self.census.event(event);
        let heard = self.choosing.hear(event);
        if let Some(end) = heard.ends {
            self.causes.end_at(end);
        }
        if !heard.is_followed {
            return;
        }
        self.hear_stack(event);
        if let EventKind::Kprobe { name, fields } = event.kind
            && ProbePoint::by_name(name) == Some(ProbePoint::SetAllowed)
        {
            self.allowed_by_probe(fields);
        }
        let (change, ended) = self.causes.next(event);
        self.count_stays(&change);
        self.changed(&change, event);
        if let Some(ended) = ended {
            self.ended(ended, event.time);
        }
    }

    fn system(&mut self, system: &System) {
        self.census.system(system);
        self.choosing.system(system);
        self.causes.system(system);
        self.fits_a_word = system.cpus.is_some_and(|cpus| cpus <= u64::BITS);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        // No CPUs: none are told any more.
        match cpus.is_empty() {
            true => self.affinity_told.remove(&pid),
            false => self.affinity_told.insert(pid),
        };
        self.causes.allowed(pid, cpus);
    }
}

#[cfg(test)]
mod tests;
