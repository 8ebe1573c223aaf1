//! The scheduler's decisions as probes of its functions show them: who a wakeup was tested against, what a tick came to, who was picked.
//!
//! A modelled kernel tells its decisions with reasons. A real one shows where its functions begin and return, and who asked for a
//! reschedule. From that follow the decision, and the reason as far as it can be seen: EEVDF keeps the deadline of who runs in its lag
//! while its slice is protected, and buddies stand in the queue. A reason that no probe shows stays empty.
//!
//! Departs: a tick counts as letting the task run until the reschedule that it asks for, some microseconds. From v6.16 on, protection has
//! a vruntime of its own: who is picked though another one has an earlier deadline was protected. Whether RUN_TO_PARITY is off is not
//! looked at.
//!
//! Must not know: who waits, how long.

use fairlab_event::probes::{ProbeField, ProbePoint};
use fairlab_event::{Cpu, Event, EventKind, GenericValue, Pid, TextFields};

use super::Causes;
use super::cause::{CauseDecision, DecisionReason};
use crate::pid_map::PidMap;
use crate::tracker::CPUS_MAX;

/// What probes have shown so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbedKernel {
    /// Decisions under way, by the CPU that reports them.
    cpus: Vec<ProbedCpu>,
    tasks: PidMap<ProbedTask>,
    /// The kernel tells its decisions itself: probes say nothing more.
    is_told: bool,
}

#[derive(Clone, Debug, Default)]
struct ProbedCpu {
    test: Option<WakeupTest>,
    /// Why each level's entity was picked since the latest switch.
    picks: Vec<&'static str>,
}

/// A woken task that is tested against who runs.
#[derive(Clone, Copy, Debug)]
struct WakeupTest {
    pid: Pid,
    curr: Pid,
    takes: bool,
    /// Who would be picked.
    picked: Option<Pid>,
}

/// What is known of a fair task.
#[derive(Clone, Copy, Debug, Default)]
struct ProbedTask {
    /// It was set to run, and has not used its slice up.
    is_protected: bool,
    /// Protection is a vruntime of its own, which the probes show too early.
    has_own: bool,
    deadline: Option<u64>,
}

/// Who asks for a reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Wakeup,
    Accounting,
    Other,
}

impl Asker {
    fn of(symbol: &str) -> Asker {
        match symbol.split('+').next().unwrap_or(symbol) {
            "check_preempt_curr"
            | "check_preempt_wakeup"
            | "check_preempt_wakeup_fair"
            | "wakeup_preempt"
            | "wakeup_preempt_fair" => Asker::Wakeup,
            "task_tick_fair" | "update_curr" | "update_deadline" | "entity_tick" | "check_preempt_tick" => {
                Asker::Accounting
            }
            _ => Asker::Other,
        }
    }
}

/// The values of a probe, by name.
#[derive(Clone, Copy, Debug)]
struct Fetched<'t>(TextFields<'t>);

impl Fetched<'_> {
    fn pid(&self, field: ProbeField) -> Option<Pid> {
        self.0.signed(field.name()).and_then(|pid| i32::try_from(pid).ok()).map(Pid)
    }

    /// A number of 64 bits, whatever its sign.
    fn bits(&self, field: ProbeField) -> Option<u64> {
        match self.0.get(field.name())? {
            GenericValue::Unsigned(value) => Some(value),
            GenericValue::Signed(value) => Some(value as u64),
            GenericValue::Text(_) => None,
        }
    }

    fn cpu(&self) -> Option<Cpu> {
        let cpu = self.0.unsigned(ProbeField::Cpu.name()).and_then(|cpu| u32::try_from(cpu).ok());
        cpu.map(Cpu).filter(|cpu| cpu.index() < CPUS_MAX)
    }

    /// Of an entity: the task that it is; none for a group's.
    fn task(&self) -> Option<Pid> {
        match self.bits(ProbeField::MyQueue) {
            Some(0) | None => self.pid(ProbeField::Pid),
            Some(_) => None,
        }
    }

    fn asker(&self) -> Asker {
        match self.0.get(ProbeField::Caller.name()) {
            Some(GenericValue::Text(symbol)) => Asker::of(symbol),
            _ => Asker::Other,
        }
    }

    /// At a return: whether that is into the test of a wakeup.
    fn returns_into_test(&self) -> bool {
        self.0.text().strip_prefix('(').is_some_and(|into| Asker::of(into) == Asker::Wakeup)
    }

    /// Whether the kernel goes by deadlines.
    fn has_deadlines(&self) -> bool {
        self.0.text().contains("<- pick_eevdf)") || self.bits(ProbeField::Deadline).is_some()
    }
}

impl ProbedKernel {
    /// The kernel has told a decision itself.
    pub(super) const fn is_told(&mut self) {
        self.is_told = true;
    }

    fn cpu_mut(&mut self, cpu: Cpu) -> &mut ProbedCpu {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize_with(cpu.index() + 1, ProbedCpu::default);
        }
        &mut self.cpus[cpu.index()]
    }

    fn task_mut(&mut self, pid: Pid) -> &mut ProbedTask {
        self.tasks.entry(pid).or_default()
    }

    fn task(&self, pid: Pid) -> ProbedTask {
        self.tasks.get(&pid).copied().unwrap_or_default()
    }

    /// An entity's state is shown.
    fn shown(&mut self, fetched: Fetched<'_>) {
        let Some(pid) = fetched.task() else { return };
        let [deadline, lag] = [ProbeField::Deadline, ProbeField::Lag].map(|field| fetched.bits(field));
        let has_own = fetched.bits(ProbeField::Protected).is_some();
        let task = self.task_mut(pid);
        task.has_own |= has_own;
        task.deadline = deadline.or(task.deadline);
        // The slice is used up once its deadline was moved.
        if !has_own && deadline.is_some() && lag.is_some() && deadline != lag {
            task.is_protected = false;
        }
    }

    /// Why `picked` is the next of its queue, where `curr` runs and `other` would like to.
    fn reason(&self, picked: Pid, curr: Pid, other: Option<Pid>) -> &'static str {
        let ProbedTask { is_protected, has_own, .. } = self.task(curr);
        let is_later = |other: Pid| match (self.task(picked).deadline, self.task(other).deadline) {
            (Some(ours), Some(theirs)) => (ours.wrapping_sub(theirs) as i64) > 0,
            _ => true,
        };
        let runs_on = picked == curr && is_protected && (!has_own || other.is_none_or(is_later));
        if runs_on { "RunToParity" } else { "EarliestDeadline" }
    }
}

impl Causes {
    /// Takes what follows from probes, up to this event.
    pub(super) fn hear_probes(&mut self, event: &Event<'_>) {
        let EventKind::Kprobe { name, fields } = event.kind else {
            return self.conclude(event);
        };
        let Some(point) = ProbePoint::by_name(name) else { return };
        if self.probed.is_told || event.cpu.index() >= CPUS_MAX {
            return;
        }
        self.now = event.time.max(self.now);
        let fetched = Fetched(fields);
        match point {
            ProbePoint::WakeupPreempt => {
                let pids = fetched.pid(ProbeField::Pid).zip(fetched.pid(ProbeField::CurrentPid));
                let test = pids.map(|(pid, curr)| WakeupTest { pid, curr, takes: false, picked: None });
                self.probed.cpu_mut(event.cpu).test = test;
            }
            ProbePoint::Resched | ProbePoint::ReschedLazy | ProbePoint::ReschedFlag => {
                self.reschedule_asked(fetched, event.cpu);
            }
            ProbePoint::Tick => self.ticked(fetched),
            ProbePoint::PickReturn => self.pick_returned(fetched, event),
            ProbePoint::SetNextEntity | ProbePoint::SetNextTask => self.set_to_run(fetched, event.cpu),
            ProbePoint::Place | ProbePoint::PlaceReturn | ProbePoint::DequeueEntity => {
                self.probed.shown(fetched);
            }
            _ => {}
        }
    }

    /// A wakeup's test has come to its end, or a switch to its task.
    fn conclude(&mut self, event: &Event<'_>) {
        let Some(on_cpu) = self.probed.cpus.get_mut(event.cpu.index()) else { return };
        match event.kind {
            EventKind::SchedWakeup(wakeup) | EventKind::SchedWakeupNew(wakeup) => {
                let Some(test) = on_cpu.test.take().filter(|test| test.pid == wakeup.pid) else { return };
                let reason = match test.picked {
                    Some(picked) if !test.takes => {
                        format!("WouldNotBePicked:{}", self.probed.reason(picked, test.curr, Some(test.pid)))
                    }
                    _ => String::new(),
                };
                self.now = event.time.max(self.now);
                self.tested(test.pid, test.takes, &reason);
            }
            EventKind::SchedSwitch(switch) => {
                let picks = std::mem::take(&mut on_cpu.picks);
                on_cpu.test = None;
                if !picks.is_empty() {
                    self.now = event.time.max(self.now);
                    self.picked(switch.next_pid, event.cpu, &picks.join(","));
                }
            }
            _ => {}
        }
    }

    fn reschedule_asked(&mut self, fetched: Fetched<'_>, by: Cpu) {
        match fetched.asker() {
            Asker::Wakeup => {
                if let Some(test) = &mut self.probed.cpu_mut(by).test {
                    test.takes = true;
                }
            }
            Asker::Accounting => {
                if let Some(pid) = fetched.pid(ProbeField::CurrentPid) {
                    self.probed.task_mut(pid).is_protected = false;
                }
                if let Some(cpu) = fetched.cpu() {
                    self.decided_on(cpu, DecisionReason::PENDING);
                }
            }
            Asker::Other => {}
        }
    }

    fn ticked(&mut self, fetched: Fetched<'_>) {
        self.probed.shown(fetched);
        let Some(cpu) = fetched.cpu() else { return };
        let reason = if fetched.has_deadlines() { "WithinSlice" } else { "" };
        let reason = self.reasons.number(reason);
        self.decided_on(cpu, DecisionReason { decision: CauseDecision::Tick, reason });
    }

    fn pick_returned(&mut self, fetched: Fetched<'_>, event: &Event<'_>) {
        let Some(picked) = fetched.pid(ProbeField::Pid) else { return };
        if fetched.returns_into_test() {
            if let Some(test) = &mut self.probed.cpu_mut(event.cpu).test {
                test.picked = Some(picked);
            }
            return;
        }
        let curr = event.context.pid;
        let reason =
            if fetched.has_deadlines() { self.probed.reason(picked, curr, None) } else { "Leftmost" };
        self.probed.cpu_mut(event.cpu).picks.push(reason);
        if picked == curr {
            // It stays: no switch follows.
            let picks = std::mem::take(&mut self.probed.cpu_mut(event.cpu).picks);
            self.picked(picked, event.cpu, &picks.join(","));
        }
    }

    /// An entity becomes the one that runs: its slice begins, and its queue shows whether it is a buddy.
    fn set_to_run(&mut self, fetched: Fetched<'_>, by: Cpu) {
        let entity = fetched.bits(ProbeField::Entity);
        let is = |buddy: ProbeField| entity.is_some() && fetched.bits(buddy) == entity;
        let buddies = [(ProbeField::Next, "NextBuddy"), (ProbeField::Last, "LastBuddy")];
        let buddy = buddies.into_iter().find(|(field, _)| is(*field)).map(|(_, reason)| reason);
        if let (Some(buddy), Some(latest)) = (buddy, self.probed.cpu_mut(by).picks.last_mut()) {
            *latest = buddy;
        }
        if let Some(pid) = fetched.task() {
            let deadline = fetched.bits(ProbeField::Deadline);
            let task = self.probed.task_mut(pid);
            (task.is_protected, task.deadline) = (deadline.is_some(), deadline);
            task.has_own |= fetched.bits(ProbeField::Protected).is_some();
        }
    }
}
