//! All waits by cause: behind which task, by which decision, ended by what; each cause with counts and times.
//!
//! A wait has a stretch for each task that ran on its CPU meanwhile. A stretch has a part for each decision that let that
//! task run: the wakeup that did not preempt, the pick, the tick. Modelled kernels report their decisions with reasons on
//! demand (`decided_pick`, …). Of others, probes show the decision (`probed.rs`); without these it is unknown. Memory depends on
//! tasks, CPUs and causes, not on waits.
//!
//! Groups of tasks are known as far as the trace shows them. "Another CPU was idle" ignores affinity, except for tasks bound
//! to one CPU.
//!
//! Must not know: how a scheduler decides, how causes are compared and printed.

mod cause;
mod each_wait;
mod idle_clocks;
mod interrupts;
mod probed;
mod report;
mod waiter;
mod words;

use std::collections::BTreeMap;

use fairlab_event::{
    Comm, Cpu, Event, EventKind, GenericValue, Ns, Pid, Sink, System, TextFields, UntypedTracepoint,
};

use crate::tracker::{
    CPUS_MAX, Departure, EndedWait, EnteredCpu, LeftCpu, Resched, ReschedBy, Tracker, TrackerChange,
    WaitCause,
};
pub(crate) use cause::{Cause, DecisionReason};
pub use cause::{CauseDecision, StretchEnd, WaitBehind, WaitKind, WakeupPlacement};
use cause::{family, is_kernel_thread, is_real_time};
use each_wait::EachWait;
pub(crate) use each_wait::{CausedWait, EndedCauses};
use idle_clocks::IdleClocks;
use interrupts::InterruptClock;
use probed::ProbedKernel;
pub use report::{BalanceTries, CausePart, LengthCount, PlacementTally, WaitCauses, WorkDone};
pub(crate) use waiter::{CauseTotal, add_to};
use waiter::{ConditionalClocks, Waiter};
use words::{CommNumbers, Reasons};

/// What has a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Occupant {
    #[default]
    Unknown,
    Idle,
    Task(u32),
}

/// One CPU.
#[derive(Clone, Debug, Default)]
struct CauseCpu {
    occupant: Occupant,
    /// The tasks that wait there.
    waiters: Vec<u32>,
    /// Why the latest pick was made, at each level of groups from the root.
    pick: Vec<u16>,
    interrupts: InterruptClock,
}

/// Whose waits have which cause, and how long they were.
type CauseKey = (u16, WaitKind, Cause, u8);

/// Adds up the causes of all waits among the events that it is given.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    tracker: Tracker,
    cpus: Vec<CauseCpu>,
    /// For each task of the tracker: its wait, if it waits.
    open: Vec<Option<Box<Waiter>>>,
    names: CommNumbers,
    reasons: Reasons,
    probed: ProbedKernel,
    idle: IdleClocks,
    /// Where each wait is handed out and none added up.
    each: Option<EachWait>,
    /// A test for preemption of a task whose wait is about to begin.
    tested: Option<(Pid, Ns, DecisionReason)>,
    /// A selection whose task is about to be queued.
    selected: Option<(Pid, u16)>,
    now: Ns,
    counts_from: Option<Ns>,
    rows: BTreeMap<CauseKey, CauseTotal>,
    lengths: BTreeMap<(u16, WaitKind, u8), u64>,
    placements: BTreeMap<(WakeupPlacement, u16), (u64, Ns)>,
    tries: BTreeMap<(u16, u16), (u64, u64)>,
    /// The scheduler's own work, by the number of its kind: how often, how much, how long.
    work: BTreeMap<u16, (u64, u64, Ns)>,
    waits: u64,
    crossed: u64,
}

/// Whether an event tells a decision that a kernel in virtual time was asked for, or its scheduler's own work.
pub fn tells_decision(event: &Event<'_>) -> bool {
    matches!(event.kind, EventKind::Other { name, .. } if decision(name).is_some())
}

/// Whether an event tells what the scheduler itself has done, and no decision.
pub fn tells_work(event: &Event<'_>) -> bool {
    matches!(event.kind, EventKind::Other { name, .. } if name.starts_with("done_"))
}

fn decision(name: &str) -> Option<UntypedTracepoint> {
    // Most events without a type are something else.
    let may_tell = name.starts_with("decided_") || name.starts_with("done_");
    let told = if may_tell { UntypedTracepoint::by_name(name) } else { None };
    told.filter(|told| {
        matches!(
            told,
            UntypedTracepoint::DecidedPick
                | UntypedTracepoint::DecidedPreempt
                | UntypedTracepoint::DecidedTick
                | UntypedTracepoint::DecidedCpu
                | UntypedTracepoint::DecidedBalance
                | UntypedTracepoint::DoneIdleMask
                | UntypedTracepoint::DoneIdleMaskScan
                | UntypedTracepoint::DoneWork
        )
    })
}

impl Causes {
    /// Nothing seen yet.
    pub fn new() -> Causes {
        Causes::default()
    }

    /// Waits that end from now on count. What came before is forgotten, except what still goes on.
    pub fn begin(&mut self, now: Ns) {
        self.counts_from = Some(now);
        self.rows.clear();
        self.lengths.clear();
        self.placements.clear();
        self.tries.clear();
        self.work.clear();
        (self.waits, self.crossed) = (0, 0);
    }

    /// All that was found, up to the end of the chosen time, or to the latest event if that is later.
    pub fn finish(mut self, end: Ns) -> WaitCauses {
        self.now = end.max(self.now);
        let observed = self.now.since(self.counts_from.unwrap_or(self.now));
        self.end_open_waits();
        let Causes { rows, lengths, placements, tries, work, reasons, names, .. } = self;
        let names = names.list();
        let name = |number: u16| names.get(usize::from(number)).or(names.last()).cloned().unwrap_or_default();
        let part = |((waiter, wait, cause, length_log2), cell): (CauseKey, CauseTotal)| CausePart {
            waiter: name(waiter),
            wait,
            behind: cause.behind,
            runner: name(cause.runner),
            decision: cause.rule.decision,
            reason: reasons.text(cause.rule.reason).to_string(),
            ended: cause.ended,
            length_log2,
            count: cell.count,
            time_ns: cell.time.0,
            beside_idle_ns: cell.beside_idle.0,
        };
        WaitCauses {
            observed_ns: observed.0,
            waits: self.waits,
            crossed: self.crossed,
            lengths: lengths
                .into_iter()
                .map(|((waiter, wait, log2), waits)| LengthCount { waiter: name(waiter), wait, log2, waits })
                .collect(),
            parts: rows.into_iter().map(part).collect(),
            placements: placements
                .into_iter()
                .map(|((placed, reason), (count, wait))| PlacementTally {
                    placed,
                    reason: reasons.text(reason).to_string(),
                    count,
                    wait_ns: wait.0,
                })
                .collect(),
            balancing: tries
                .into_iter()
                .map(|((idle, reason), (count, moved))| BalanceTries {
                    idle: reasons.text(idle).to_string(),
                    reason: reasons.text(reason).to_string(),
                    count,
                    moved,
                })
                .collect(),
            work: work
                .into_iter()
                .map(|(kind, (count, units, time))| WorkDone {
                    work: reasons.text(kind).to_string(),
                    count,
                    units,
                    time_ns: time.0,
                })
                .collect(),
        }
    }

    /// A task that still waits has waited until now.
    fn end_open_waits(&mut self) {
        for task in 0..self.open.len() as u32 {
            let crossed =
                self.tracker.task(task).wait.is_none_or(|wait| wait.holes != self.tracker.holes_of(task));
            if crossed {
                continue;
            }
            self.close_stretch(task, StretchEnd::StillWaiting, None);
            if let Some(waiter) = self.open[task as usize].take() {
                self.add(task, *waiter);
            }
        }
    }

    fn cpu_mut(&mut self, cpu: Cpu) -> &mut CauseCpu {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize_with(cpu.index() + 1, CauseCpu::default);
        }
        &mut self.cpus[cpu.index()]
    }

    fn waiter_mut(&mut self, task: u32) -> Option<&mut Waiter> {
        self.open.get_mut(task as usize)?.as_deref_mut()
    }

    fn clocks(&mut self, task: u32, cpu: Option<Cpu>) -> ConditionalClocks {
        let (now, known) = (self.now, self.tracker.task(task));
        let throttled = cpu.map_or(Ns::ZERO, |cpu| self.tracker.throttling().time_of(known.pid, cpu, now));
        // Another CPU is of no use to who may run on one only.
        let idle = match (known.pinned_to(), known.mask()) {
            (Some(_), _) => Ns::ZERO,
            (None, None) => self.idle.of_any(now),
            (None, Some(mask)) => {
                let idles =
                    |cpu: &Cpu| self.cpus.get(cpu.index()).is_some_and(|cpu| cpu.occupant == Occupant::Idle);
                self.idle.of(mask, self.tracker.bound().cpus(mask), idles, now)
            }
        };
        let interrupts = cpu.and_then(|cpu| self.cpus.get(cpu.index()));
        let interrupts = interrupts.map_or(Ns::ZERO, |cpu| cpu.interrupts.time(now));
        ConditionalClocks { now, idle, throttled, interrupts }
    }

    fn occupies(&mut self, cpu: Cpu, occupant: Occupant) {
        let before = std::mem::replace(&mut self.cpu_mut(cpu).occupant, occupant);
        let (idled, idles) = (before == Occupant::Idle, occupant == Occupant::Idle);
        if idled != idles {
            self.idle.changes(cpu, idles, self.now);
        }
    }

    /// The number of a task's name, or of the task itself where tasks are told apart.
    fn named(&mut self, task: u32) -> u16 {
        let task = self.tracker.task(task);
        match self.each.as_ref().is_some_and(|each| each.tells_threads) {
            true => self.names.number(task.comm, Some(task.pid)),
            false => self.names.number(family(task.comm), None),
        }
    }

    /// What has the CPU on which a task waits, as the task is related to it.
    fn behind(&mut self, task: u32, on: Option<Cpu>) -> (WaitBehind, u16) {
        let Some(cpu) = on else { return (WaitBehind::Waking, 0) };
        match self.cpu_mut(cpu).occupant {
            Occupant::Unknown => (WaitBehind::Unknown, 0),
            Occupant::Idle => (WaitBehind::Idle, 0),
            Occupant::Task(number) => {
                let (runner, waiter) = (self.tracker.task(number), self.tracker.task(task));
                let groups = self.tracker.throttling();
                let behind = if is_kernel_thread(runner.comm) {
                    WaitBehind::KernelThread
                } else if is_real_time(runner.prio) {
                    WaitBehind::RealTime
                } else if groups.group_of(runner.pid) != groups.group_of(waiter.pid) {
                    WaitBehind::OtherGroup
                } else if family(runner.comm) == family(waiter.comm) {
                    WaitBehind::OwnName
                } else {
                    WaitBehind::OtherName
                };
                (behind, self.named(number))
            }
        }
    }

    /// The latest pick on a CPU, at the level at which a task was a candidate beside the picked one.
    fn pick_for(&self, task: u32, cpu: Cpu) -> DecisionReason {
        let Some(on_cpu) = self.cpus.get(cpu.index()) else { return DecisionReason::UNKNOWN };
        let Occupant::Task(runner) = on_cpu.occupant else { return DecisionReason::UNKNOWN };
        let [runner, waiter] = [runner, task].map(|task| self.tracker.task(task).pid);
        let level = self.tracker.throttling().levels_in_common(runner, waiter);
        let reason = on_cpu.pick.get(level).or(on_cpu.pick.last());
        reason.map_or(DecisionReason::UNKNOWN, |&reason| DecisionReason {
            decision: CauseDecision::Pick,
            reason,
        })
    }

    fn begin_wait(&mut self, task: u32, kind: WaitKind) {
        self.drop_wait(task);
        let clocks = self.clocks(task, None);
        let pid = self.tracker.task(task).pid;
        let rule = match self.tested {
            Some((tested, at, rule)) if tested == pid && at == self.now => rule,
            _ => DecisionReason::UNKNOWN,
        };
        if self.open.len() <= task as usize {
            self.open.resize_with(task as usize + 1, || None);
        }
        self.open[task as usize] = Some(Box::new(Waiter::new(kind, self.now, None, rule, clocks)));
    }

    fn leave_queue(&mut self, task: u32) {
        let on = self.waiter_mut(task).and_then(|waiter| waiter.on.take());
        if let Some(cpu) = on {
            self.cpu_mut(cpu).waiters.retain(|&waiter| waiter != task);
        }
    }

    fn drop_wait(&mut self, task: u32) -> Option<Box<Waiter>> {
        self.leave_queue(task);
        self.open.get_mut(task as usize)?.take()
    }

    /// A waiting task is queued where the tracker has it.
    fn queue(&mut self, task: u32) {
        let Some(cpu) = self.tracker.task(task).waits_on() else { return };
        if self.waiter_mut(task).is_none() {
            return;
        }
        self.leave_queue(task);
        self.cpu_mut(cpu).waiters.push(task);
        let clocks = self.clocks(task, Some(cpu));
        if let Some(waiter) = self.waiter_mut(task) {
            waiter.on = Some(cpu);
            waiter.counts_from(clocks);
        }
    }

    fn close_stretch(&mut self, task: u32, ended: StretchEnd, pending: Option<Ns>) {
        let Some(on) = self.waiter_mut(task).map(|waiter| waiter.on) else { return };
        let behind = self.behind(task, on);
        let clocks = self.clocks(task, on);
        if let Some(waiter) = self.waiter_mut(task) {
            waiter.close(behind, ended, pending, clocks);
        }
    }

    /// A task is queued by its wakeup, or again.
    fn queued(&mut self, task: u32, begins: bool) {
        if begins {
            let cause = self.tracker.task(task).wait.map(|wait| wait.cause);
            let is_new = cause == Some(WaitCause::New);
            self.begin_wait(task, if is_new { WaitKind::New } else { WaitKind::Wakeup });
            self.queue(task);
        } else if self.waiter_mut(task).is_some_and(|waiter| waiter.on.is_none()) {
            self.close_stretch(task, StretchEnd::Queued, None);
            self.queue(task);
        } else {
            // It was taken to be queued already, since the trace had shown no sched_wakeup before.
            self.moved(task, StretchEnd::Moved);
        }
        let pid = self.tracker.task(task).pid;
        let reason =
            self.selected.take().filter(|(selected, _)| *selected == pid).map_or(0, |(_, reason)| reason);
        let Some(cpu) = self.tracker.task(task).waits_on() else { return };
        let any_idles = self.idle.any();
        let on_cpu = self.cpu_mut(cpu);
        let placed = match on_cpu.occupant {
            Occupant::Idle if on_cpu.waiters.len() <= 1 => WakeupPlacement::Idle,
            _ if any_idles => WakeupPlacement::BusyBesideIdle,
            _ => WakeupPlacement::Busy,
        };
        if let Some(waiter) = self.waiter_mut(task).filter(|waiter| waiter.kind == WaitKind::Wakeup) {
            waiter.placed = Some((placed, reason));
        }
    }

    fn switched(&mut self, cpu: Cpu, left: Option<LeftCpu>, entered: Option<&EnteredCpu>) {
        let resched = left
            .and_then(|left| left.resched)
            .map(|resched| self.tracker.asked_by_entering(resched, entered));
        let waiters = self.cpu_mut(cpu).waiters.clone();
        for task in waiters {
            let ended = self.ended_by(task, left, resched);
            self.close_stretch(task, ended, resched.map(|resched| resched.time));
        }
        if let Some(entered) = entered {
            let waiter = self.drop_wait(entered.task);
            self.ended(entered, waiter);
        }
        // Of a trace of some tasks alone, the idle task stands for all others.
        let without = if self.tracker.is_of_tasks() { Occupant::Unknown } else { Occupant::Idle };
        self.occupies(cpu, entered.map_or(without, |entered| Occupant::Task(entered.task)));
        if let Some(LeftCpu { task, how, .. }) = left {
            drop(self.drop_wait(task));
            if self.tracker.task(task).wait.is_some() {
                self.begin_wait(task, kind_of(how, resched));
                self.queue(task);
            }
        }
        for place in 0..self.cpu_mut(cpu).waiters.len() {
            let task = self.cpu_mut(cpu).waiters[place];
            let rule = self.pick_for(task, cpu);
            if let Some(waiter) = self.waiter_mut(task) {
                waiter.rule = rule;
            }
        }
        let now = self.now;
        let on_cpu = self.cpu_mut(cpu);
        on_cpu.pick.clear();
        on_cpu.interrupts.none(now);
    }

    fn ended_by(&self, task: u32, left: Option<LeftCpu>, resched: Option<Resched>) -> StretchEnd {
        let Some(LeftCpu { how, .. }) = left else { return StretchEnd::Began };
        match resched.map(|resched| resched.by) {
            _ if matches!(how, Departure::Slept(_) | Departure::Exited) => StretchEnd::by_departure(how),
            Some(ReschedBy::Tick) => StretchEnd::AtTick,
            Some(ReschedBy::Hrtick) => StretchEnd::AtSliceTimer,
            Some(ReschedBy::Wakeup(pid)) if pid == self.tracker.task(task).pid => StretchEnd::ByWaiter,
            Some(ReschedBy::Wakeup(_)) => StretchEnd::ByOther,
            Some(ReschedBy::Other) | None => StretchEnd::by_departure(how),
        }
    }

    fn ended(&mut self, entered: &EnteredCpu, waiter: Option<Box<Waiter>>) {
        let Some(EndedWait { crossed_loss, .. }) = entered.wait else { return };
        if let Some(each) = &mut self.each {
            return each.ended(entered, waiter);
        }
        match waiter {
            Some(waiter) if !crossed_loss => self.add(entered.task, *waiter),
            _ => self.crossed += 1,
        }
    }

    /// A wait counts.
    fn add(&mut self, task: u32, waiter: Waiter) {
        let length = self.now.since(waiter.start);
        let log2 = u8::try_from(length.0.max(1).ilog2()).unwrap_or(u8::MAX);
        let name = self.named(task);
        self.waits += 1;
        *self.lengths.entry((name, waiter.kind, log2)).or_default() += 1;
        if let Some(placed) = waiter.placed {
            let known = self.placements.entry(placed).or_default();
            *known = (known.0 + 1, known.1.saturating_add(length));
        }
        let kind = waiter.kind;
        for (cause, cell) in waiter.parts() {
            self.rows.entry((name, kind, cause, log2)).or_default().add(cell);
        }
    }

    fn moved(&mut self, task: u32, ended: StretchEnd) {
        let on = self.waiter_mut(task).and_then(|waiter| waiter.on);
        if on.is_none() || on == self.tracker.task(task).waits_on() {
            return;
        }
        self.close_stretch(task, ended, None);
        if let Some(waiter) = self.waiter_mut(task) {
            waiter.rule = DecisionReason::UNKNOWN;
        }
        match self.tracker.task(task).waits_on() {
            Some(_) => self.queue(task),
            None => self.leave_queue(task),
        }
    }

    fn lost(&mut self) {
        self.open.clear();
        self.cpus.clear();
        self.idle.none(self.now);
    }

    /// A decision, with its reason.
    fn decided(&mut self, told: UntypedTracepoint, fields: TextFields<'_>) {
        let text = |name: &str| match fields.get(name) {
            Some(GenericValue::Text(text)) => text,
            _ => "",
        };
        let pid = fields.signed("pid").and_then(|pid| i32::try_from(pid).ok()).map(Pid);
        let cpu = fields.unsigned("cpu").and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu);
        let cpu = cpu.filter(|cpu| cpu.index() < CPUS_MAX);
        match (told, pid, cpu) {
            (UntypedTracepoint::DecidedPick, Some(pid), Some(cpu)) => self.picked(pid, cpu, text("reasons")),
            (UntypedTracepoint::DecidedPreempt, Some(pid), _) => {
                let takes = fields.unsigned("preempt") == Some(1);
                self.tested(pid, takes, text("reason"));
            }
            (UntypedTracepoint::DecidedTick, _, Some(cpu)) => {
                let takes = fields.unsigned("takes") == Some(1);
                let reason = self.reasons.number(text("reason"));
                self.decided_on(
                    cpu,
                    if takes {
                        DecisionReason::PENDING
                    } else {
                        DecisionReason { decision: CauseDecision::Tick, reason }
                    },
                );
            }
            (UntypedTracepoint::DecidedCpu, Some(pid), _) => {
                self.selected = Some((pid, self.reasons.number(text("reason"))));
            }
            (UntypedTracepoint::DecidedBalance, _, _) => {
                let key = (self.reasons.number(text("idle")), self.reasons.number(text("reason")));
                let known = self.tries.entry(key).or_default();
                *known = (known.0 + 1, known.1 + fields.unsigned("moved").unwrap_or(0));
            }
            (UntypedTracepoint::DoneWork, _, _) => {
                let known = self.work.entry(self.reasons.number(text("work"))).or_default();
                let [units, ns] = ["units", "ns"].map(|name| fields.unsigned(name).unwrap_or(0));
                *known = (known.0 + 1, known.1.saturating_add(units), known.2.saturating_add(Ns(ns)));
            }
            _ => {}
        }
    }

    fn picked(&mut self, pid: Pid, cpu: Cpu, reasons: &str) {
        let reasons = reasons.split(',').map(|reason| self.reasons.number(reason)).collect::<Vec<_>>();
        let stays = match self.cpu_mut(cpu).occupant {
            Occupant::Task(running) => self.tracker.task(running).pid == pid,
            _ => false,
        };
        self.cpu_mut(cpu).pick = reasons;
        if !stays {
            return;
        }
        for place in 0..self.cpu_mut(cpu).waiters.len() {
            let task = self.cpu_mut(cpu).waiters[place];
            let rule = self.pick_for(task, cpu);
            self.rule_is(task, rule);
        }
        self.cpu_mut(cpu).pick.clear();
    }

    fn tested(&mut self, pid: Pid, takes: bool, reason: &str) {
        let reason = self.reasons.number(reason);
        let rule = if takes {
            DecisionReason::PENDING
        } else {
            DecisionReason { decision: CauseDecision::Preempt, reason }
        };
        self.tested = Some((pid, self.now, rule));
        if let Some(task) = self.tracker.index(pid) {
            self.rule_is(task, rule);
        }
    }

    fn decided_on(&mut self, cpu: Cpu, rule: DecisionReason) {
        for place in 0..self.cpu_mut(cpu).waiters.len() {
            let task = self.cpu_mut(cpu).waiters[place];
            self.rule_is(task, rule);
        }
    }

    fn rule_is(&mut self, task: u32, rule: DecisionReason) {
        let Some(on) = self.waiter_mut(task).map(|waiter| waiter.on) else { return };
        let clocks = self.clocks(task, on);
        if let Some(waiter) = self.waiter_mut(task) {
            waiter.decided(rule, clocks);
        }
    }
}

/// How a wait began that began with a departure.
fn kind_of(how: Departure, resched: Option<Resched>) -> WaitKind {
    match (how, resched.map(|resched| resched.by)) {
        (Departure::Slept(_) | Departure::Exited, _) => WaitKind::Wakeup,
        (Departure::Yielded, _) => WaitKind::Yielded,
        (_, Some(ReschedBy::Tick | ReschedBy::Hrtick)) => WaitKind::PreemptedAtTick,
        (_, Some(ReschedBy::Wakeup(_))) => WaitKind::PreemptedByWakeup,
        _ => WaitKind::Preempted,
    }
}

/// A task's name, as it stands in causes: without a number at its end that tells it from others of its kind.
pub fn name_of(comm: Comm) -> Comm {
    family(comm)
}

impl Causes {
    /// Takes the next event; returns what it meant.
    fn follow(&mut self, event: &Event<'_>) -> TrackerChange {
        if let EventKind::Other { name, fields } = event.kind {
            if let Some(told) = decision(name) {
                // What follows it shows that the reschedule is pending, as if nothing had been told.
                self.now = event.time.max(self.now);
                self.probed.is_told();
                self.decided(told, fields);
                return TrackerChange::None;
            }
            self.interrupted(name, event);
        }
        self.hear_probes(event);
        let change = self.tracker.event(event);
        if !event.kind.is_task_record() {
            self.now = event.time.max(self.now);
            self.counts_from.get_or_insert(event.time);
        }
        match change {
            TrackerChange::Woken { task, .. } => {
                self.begin_wait(task, WaitKind::Wakeup);
                // Where no sched_wakeup follows it is queued by now.
                self.queue(task);
            }
            TrackerChange::Queued { task, begins, .. } => self.queued(task, begins),
            TrackerChange::Moved { task, cause, .. } => self.moved(task, StretchEnd::by_move(cause)),
            TrackerChange::Switched { cpu, left, entered, .. } => self.switched(cpu, left, entered.as_ref()),
            TrackerChange::Lost => self.lost(),
            TrackerChange::None => {}
        }
        change
    }
}

impl Sink for Causes {
    fn event(&mut self, event: &Event<'_>) {
        self.follow(event);
    }

    fn system(&mut self, system: &System) {
        self.tracker.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.tracker.allowed(pid, cpus);
    }
}

#[cfg(test)]
mod tests;
