//! Every switch of a trace, with how long the task that leaves ran, waited and slept: `perf sched timehist`.
//!
//! Rows are those of perf 6.12, in its layout byte by byte ([`text`]). They are handed out while events come in; memory
//! is that of the tasks and CPUs. Where perf loses a task's past when the task exits, sums and the plain fields of a
//! row keep it.
//!
//! Must not know: where rows go.

mod history;
pub mod text;
mod threads;
mod totals;

use fairlab_event::{
    Comm, Cpu, Event, EventKind, Ns, Pid, Sink, Switch, System, TaskState, Tracepoint, Wakeup,
};

use crate::selector::{NothingChosen, SelectorState, TimeRange, TraceSelector};
use crate::tracker::{StayOnCpu, Tracker, TrackerChange};
use crate::{Census, MissingEvents, Needs};
pub use history::OffCpu;
use history::{CpuStay, History, MeasuredMoment, ReadyBy};
pub use threads::Label;
use threads::PerfThreads;
use totals::StayTotals;
pub use totals::{CpuSummary, TaskSummary, TimehistSummary};

/// What is to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimehistOptions {
    /// Only tasks of these processes; empty: all.
    pub pids: Vec<Pid>,
    /// Only these threads; empty: all.
    pub tids: Vec<Pid>,
    /// Only what these CPUs reported; empty: all.
    pub cpus: Vec<Cpu>,
    /// Only these tasks, and this time: a stay that begins before it or goes on longer is cut there.
    pub chosen: TraceSelector,
    /// Rows for wakeups too.
    pub wakeups: bool,
    /// Rows for migrations too.
    pub migrations: bool,
}

/// One line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimehistRow {
    /// A task left its CPU.
    Switch(SwitchRow),
    /// A task was woken.
    Wakeup {
        /// When.
        time: Ns,
        /// On which CPU the waker ran.
        cpu: Cpu,
        /// The task that ran there.
        waker: Label,
        /// The task that was woken.
        wakee: Label,
    },
    /// A task was moved to another CPU.
    Migration {
        /// When.
        time: Ns,
        /// Which CPU moved it.
        cpu: Cpu,
        /// The task that ran there.
        by: Label,
        /// The task that was moved.
        task: Label,
        /// Where it was.
        orig_cpu: Cpu,
        /// Where it went.
        dest_cpu: Cpu,
    },
    /// Events are missing here.
    Lost {
        /// When.
        time: Ns,
        /// On which CPU.
        cpu: Cpu,
        /// How many, where the trace tells.
        count: Option<u64>,
    },
}

/// A task's stay on a CPU, reported when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchRow {
    /// When the task left; the end of the window if that is earlier.
    pub time: Ns,
    /// Where it ran.
    pub cpu: Cpu,
    /// The task.
    pub task: Label,
    /// How long it was off the CPU before, by the state in which it had left.
    pub off: OffCpu,
    /// Of that, how long it was ready to run.
    pub delay: Ns,
    /// How long it ran; 0 when its begin is not in the trace.
    pub run: Ns,
    /// What of this is not known, and 0, since events are missing.
    pub crossed: UnmeasuredParts,
    /// The state in which it left.
    pub state: TaskState,
    /// Name of the task that ran next.
    pub next_comm: Comm,
    /// The task that ran next.
    pub next_pid: Pid,
    /// What perf knows of this.
    pub shown: PerfStayTimes,
}

/// What of a stay is not measured since events are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmeasuredParts {
    /// The stay itself.
    pub run: bool,
    /// The time off the CPU before it.
    pub off: bool,
    /// The time for which it was ready to run.
    pub delay: bool,
}

/// What perf shows of a stay, after it has forgotten what the task did before its EXIT record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfStayTimes {
    /// The task.
    pub label: Label,
    /// Time off the CPU: "wait time".
    pub wait: Ns,
    /// "sch delay".
    pub delay: Ns,
}

/// Lists the events that it is given. Rows go to `F`.
#[derive(Clone, Debug)]
pub struct Timehist<F> {
    options: TimehistOptions,
    rows: F,
    threads: PerfThreads,
    cpus: Vec<CpuHistory>,
    wake_source: TimehistWakeEvent,
    window: Option<(Ns, Ns)>,
    switches: u64,
    /// Which task runs where, and where events are missing.
    tracker: Tracker,
    census: Census,
    choosing: SelectorState,
}

/// One CPU.
#[derive(Clone, Debug, Default)]
struct CpuHistory {
    /// When what runs there now came.
    switched_at: Option<MeasuredMoment>,
    switches: u64,
    idle: History,
    idle_totals: StayTotals,
}

/// Which event says that a task is woken: `sched_waking` where the trace has it, since a trace may begin between the
/// two. Until that is known rows are held back.
#[derive(Clone, Debug)]
enum TimehistWakeEvent {
    Unknown { held: Vec<PendingRow>, wakeups: usize },
    Known(ReadyBy),
}

/// A row that cannot be printed yet.
#[derive(Clone, Debug)]
enum PendingRow {
    Stay(FinishedStay),
    /// A row that stands in any case.
    Certain(TimehistRow),
    /// A row about a `sched_wakeup`.
    OfWakeup(TimehistRow),
}

/// A stay with what it takes to make its row.
#[derive(Clone, Debug)]
struct FinishedStay {
    row: SwitchRow,
    /// The task's place among all tasks; none for the idle task.
    task: Option<u32>,
    own: CpuStay,
    shown: CpuStay,
}

/// The part of a stay that lies in the window: when it began, if that is known, and when it ended.
type WindowPart = Option<(Option<MeasuredMoment>, Ns)>;

/// So many rows or `sched_wakeup` without a `sched_waking` mean that the trace has none.
const HELD_MAX: usize = 4096;

/// Higher CPU numbers are garbage.
const CPUS_MAX: usize = 1 << 13;

/// The events that the list is made from.
pub const NEEDS: Needs = Needs {
    analysis: "timehist",
    required: &[Tracepoint::SchedSwitch],
    one_of: (
        &[Tracepoint::SchedWaking, Tracepoint::SchedWakeup],
        "scheduling delays are those after a preemption or a yield only",
    ),
    useful: &[],
};

impl<F: FnMut(&TimehistRow)> Timehist<F> {
    /// Lists nothing yet.
    pub fn new(options: TimehistOptions, rows: F) -> Timehist<F> {
        Timehist {
            choosing: SelectorState::new(options.chosen.clone()),
            options,
            rows,
            threads: PerfThreads::default(),
            cpus: Vec::new(),
            wake_source: TimehistWakeEvent::Unknown { held: Vec::new(), wakeups: 0 },
            window: None,
            switches: 0,
            tracker: Tracker::default(),
            census: Census::default(),
        }
    }

    /// Whether the events so far hold what was chosen.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), NothingChosen> {
        self.choosing.check()
    }

    /// Hands out what is held back and sums up.
    ///
    /// # Errors
    /// There was no `sched_switch`.
    pub fn finish(mut self) -> Result<TimehistSummary, MissingEvents> {
        let mut notices = NEEDS.check(&self.census)?;
        if self.options.migrations && !self.census.has(Tracepoint::SchedMigrateTask) {
            let name = Tracepoint::SchedMigrateTask.name();
            notices.push(format!("the trace has no {name} events: no migration is listed"));
        }
        notices.extend(self.tracker.notices(self.census.total()));
        self.decide(ReadyBy::Wakeup);
        let threads = &self.threads;
        let mut tasks: Vec<TaskSummary> = (0..)
            .zip(&threads.tasks)
            .filter(|(_, task)| task.totals.count > 0)
            .map(|(index, task)| task.totals.summary(threads.label(index), task.parent))
            .collect();
        tasks.sort_by(|one, other| other.run.cmp(&one.run).then(one.label.tid.cmp(&other.label.tid)));
        let crossed = threads.tasks.iter().fold(0, |sum, task| sum + task.totals.crossed);
        let cpus = (0..).zip(&self.cpus).map(|(cpu, history)| CpuSummary {
            cpu: Cpu(cpu),
            switches: history.switches,
            idle: history.idle_totals.run(),
        });
        let idle_is_listed = self.wants(&Label::idle());
        Ok(TimehistSummary {
            cpus: cpus.filter(|cpu| idle_is_listed && self.wants_cpu(cpu.cpu)).collect(),
            switches: self.switches,
            run: tasks.iter().fold(Ns::ZERO, |sum, task| sum.saturating_add(task.run)),
            tasks,
            span: self.window.map_or(Ns::ZERO, |(first, last)| last.since(first)),
            nr_cpus: self.cpus.iter().filter(|cpu| cpu.switches > 0).count(),
            crossed,
            notices,
        })
    }

    /// A time in the life of a task, or of the idle task of `cpu`.
    fn moment(&self, time: Ns, pid: Pid, cpu: Cpu) -> MeasuredMoment {
        let holes = match pid.is_idle() {
            true => self.tracker.holes_of_cpu(cpu),
            false => self.tracker.index(pid).map_or(0, |task| self.tracker.holes_of(task)),
        };
        MeasuredMoment { time, holes }
    }

    fn wants_cpu(&self, cpu: Cpu) -> bool {
        self.options.cpus.is_empty() || self.options.cpus.contains(&cpu)
    }

    fn wants(&self, task: &Label) -> bool {
        let among = |wanted: &[Pid], id: Pid| wanted.is_empty() || wanted.contains(&id);
        among(&self.options.pids, task.tgid)
            && among(&self.options.tids, task.tid)
            && self.choosing.means(task.tid)
    }

    fn in_window(&self, time: Ns) -> bool {
        self.options.chosen.time.has(time)
    }

    /// Cuts a stay to the window: when it began, if that is known, and when it ended.
    fn cut(&self, began: Option<MeasuredMoment>, now: Ns) -> WindowPart {
        let TimeRange { from, to } = self.options.chosen.time;
        let start = from.unwrap_or_default();
        if now < start {
            return None;
        }
        let began = began.map(|began| MeasuredMoment { time: began.time.max(start), ..began });
        match to {
            Some(end) if began.is_none_or(|began| began.time > end) => None,
            Some(end) => Some((began, now.min(end))),
            None => Some((began, now)),
        }
    }

    fn switch(&mut self, switch: &Switch, event: &Event<'_>, stay: &StayOnCpu) {
        let (now, cpu) = (event.time, event.cpu.index());
        if cpu >= CPUS_MAX {
            return;
        }
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, CpuHistory::default());
        }
        let next = self.moment(now, switch.next_pid, event.cpu);
        let before = self.cpus[cpu].switched_at.replace(next);
        self.cpus[cpu].switches += 1;
        // Whether a stay lies in the window is told by the switch before, also where the stay did not begin with it.
        let is_whole = stay.since.is_some();
        let cut = self.cut(before, now).map(|(began, left_at)| (began.filter(|_| is_whole), left_at));
        let left_at = if switch.prev_pid.is_idle() {
            self.idle_leaves(switch, event, cut, stay.after_hole)
        } else {
            self.task_leaves(switch, event, cut, stay.after_hole)
        };
        let TimeRange { from, to } = self.options.chosen.time;
        if from.is_none_or(|start| left_at >= start) {
            self.window.get_or_insert((left_at, left_at));
        }
        if let Some((_, last)) = &mut self.window
            && to.is_none_or(|end| left_at <= end)
        {
            *last = left_at;
        }
    }

    /// The idle task leaves; returns when, as far as the window goes.
    fn idle_leaves(&mut self, switch: &Switch, event: &Event<'_>, cut: WindowPart, after_hole: bool) -> Ns {
        // Of some tasks' switches it stands for whatever else ran.
        if !self.wants(&Label::idle()) || self.tracker.is_of_tasks() {
            return event.time;
        }
        let cpu = event.cpu.index();
        let left_at = cut.map_or(event.time, |(_, left_at)| left_at);
        if let Some((began, left_at)) = cut {
            let stay = self.cpus[cpu].idle.stay(began, left_at);
            let mut row = row(switch, event, left_at, Label::idle(), Label::idle());
            row.crossed.run = after_hole;
            self.end_stay(FinishedStay { row, task: None, own: stay, shown: stay });
        }
        let now = self.moment(event.time, Pid::IDLE, event.cpu);
        self.cpus[cpu].idle.leave(switch.prev_state, now, left_at);
        left_at
    }

    /// A task leaves; returns when, as far as the window goes.
    fn task_leaves(&mut self, switch: &Switch, event: &Event<'_>, cut: WindowPart, after_hole: bool) -> Ns {
        let index = self.threads.see(switch.prev_pid, switch.prev_comm, &event.context);
        let tid = self.threads.sample_tid(switch.prev_pid, &event.context);
        self.threads.shown(tid, event.context.tgid);
        let (label, shown_label) = (self.threads.label(index), self.threads.label_shown(tid));
        if !self.wants(&label) {
            return event.time;
        }
        let left_at = cut.map_or(event.time, |(_, left_at)| left_at);
        if let Some((began, left_at)) = cut {
            let own = self.threads.task(index).history.stay(began, left_at);
            let shown = self.threads.shown(tid, event.context.tgid).history.stay_across(began, left_at);
            let mut row = row(switch, event, left_at, label, shown_label);
            row.crossed.run = after_hole;
            self.end_stay(FinishedStay { row, task: Some(index), own, shown });
        }
        let now = self.moment(event.time, switch.prev_pid, event.cpu);
        let leave = |history: &mut History| history.leave(switch.prev_state, now, left_at);
        leave(&mut self.threads.task(index).history);
        leave(&mut self.threads.shown(tid, event.context.tgid).history);
        left_at
    }

    fn end_stay(&mut self, stay: FinishedStay) {
        if !self.wants_cpu(stay.row.cpu) {
            return;
        }
        match &mut self.wake_source {
            TimehistWakeEvent::Known(by) => {
                let by = *by;
                self.tell(&stay, by);
            }
            TimehistWakeEvent::Unknown { held, .. } => {
                held.push(PendingRow::Stay(stay));
                self.decide_when_full();
            }
        }
    }

    fn tell(&mut self, stay: &FinishedStay, by: ReadyBy) {
        let mut row = stay.row;
        (row.run, row.off, row.delay) = (stay.own.run, stay.own.off, stay.own.delay(by).time);
        row.crossed.off = row.crossed.run || stay.own.off_crossed;
        row.crossed.delay = row.crossed.run || stay.own.delay(by).crossed;
        (row.shown.wait, row.shown.delay) = (stay.shown.off.total(), stay.shown.delay(by).time);
        self.switches += 1;
        match stay.task {
            Some(index) => self.threads.task(index).totals.add(&stay.own, row.crossed, by),
            None => {
                if let Some(cpu) = self.cpus.get_mut(row.cpu.index()) {
                    cpu.idle_totals.add(&stay.own, row.crossed, by);
                }
            }
        }
        (self.rows)(&TimehistRow::Switch(row));
    }

    /// Hands out a row that stands in any case.
    fn certain(&mut self, row: TimehistRow) {
        match &mut self.wake_source {
            TimehistWakeEvent::Known(_) => (self.rows)(&row),
            TimehistWakeEvent::Unknown { held, .. } => {
                held.push(PendingRow::Certain(row));
                self.decide_when_full();
            }
        }
    }

    fn decide_when_full(&mut self) {
        if let TimehistWakeEvent::Unknown { held, wakeups } = &self.wake_source
            && (held.len() >= HELD_MAX || *wakeups >= HELD_MAX)
        {
            self.decide(ReadyBy::Wakeup);
        }
    }

    /// It is known which events say that a task is woken: rows held back can be printed.
    fn decide(&mut self, by: ReadyBy) {
        if matches!(self.wake_source, TimehistWakeEvent::Known(_)) {
            return;
        }
        let TimehistWakeEvent::Unknown { held, .. } =
            std::mem::replace(&mut self.wake_source, TimehistWakeEvent::Known(by))
        else {
            return;
        };
        for row in held {
            match row {
                PendingRow::Stay(stay) => self.tell(&stay, by),
                PendingRow::Certain(row) => (self.rows)(&row),
                PendingRow::OfWakeup(row) if by == ReadyBy::Wakeup => (self.rows)(&row),
                PendingRow::OfWakeup(_) => {}
            }
        }
    }

    fn woken(&mut self, wakeup: &Wakeup, event: &Event<'_>, by: ReadyBy) {
        let index = self.threads.see(wakeup.pid, wakeup.comm, &event.context);
        let now = self.moment(event.time, wakeup.pid, event.cpu);
        let wake = |history: &mut History| match by {
            ReadyBy::Waking => history.waking(now),
            ReadyBy::Wakeup => history.wakeup(now),
        };
        wake(&mut self.threads.task(index).history);
        wake(&mut self.threads.shown_object(wakeup.pid).history);
    }

    fn wakeup_row(&mut self, wakeup: &Wakeup, event: &Event<'_>) -> Option<TimehistRow> {
        if !(self.options.wakeups && self.in_window(event.time) && self.wants_cpu(event.cpu)) {
            return None;
        }
        let waker = self.threads.sampled(&event.context);
        let wakee = self.threads.label_shown(wakeup.pid);
        let is_wanted = self.wants(&waker) || self.wants(&wakee);
        is_wanted.then_some(TimehistRow::Wakeup { time: event.time, cpu: event.cpu, waker, wakee })
    }

    fn waking(&mut self, wakeup: &Wakeup, event: &Event<'_>) {
        self.woken(wakeup, event, ReadyBy::Waking);
        if let Some(row) = self.wakeup_row(wakeup, event) {
            self.certain(row);
        }
    }

    fn wakeup(&mut self, wakeup: &Wakeup, event: &Event<'_>) {
        if matches!(self.wake_source, TimehistWakeEvent::Known(ReadyBy::Waking)) {
            return;
        }
        self.woken(wakeup, event, ReadyBy::Wakeup);
        let row = self.wakeup_row(wakeup, event);
        match &mut self.wake_source {
            TimehistWakeEvent::Known(_) => row.iter().for_each(|row| (self.rows)(row)),
            TimehistWakeEvent::Unknown { held, wakeups } => {
                *wakeups += 1;
                held.extend(row.map(PendingRow::OfWakeup));
                self.decide_when_full();
            }
        }
    }

    fn migrated(&mut self, pid: Pid, comm: Comm, cpus: (Cpu, Cpu), event: &Event<'_>) {
        let index = self.threads.see(pid, comm, &event.context);
        if self.in_window(event.time) {
            self.threads.task(index).totals.migrations += 1;
        }
        if !(self.options.migrations && self.in_window(event.time) && self.wants_cpu(event.cpu)) {
            return;
        }
        self.threads.shown_object(pid);
        let by = self.threads.sampled(&event.context);
        let task = self.threads.label_shown(pid);
        if self.wants(&by) || self.wants(&task) {
            let (time, cpu, (orig_cpu, dest_cpu)) = (event.time, event.cpu, cpus);
            self.certain(TimehistRow::Migration { time, cpu, by, task, orig_cpu, dest_cpu });
        }
    }
}

/// The row of a stay, times left open.
fn row(switch: &Switch, event: &Event<'_>, time: Ns, task: Label, shown: Label) -> SwitchRow {
    SwitchRow {
        time,
        cpu: event.cpu,
        task,
        off: OffCpu::default(),
        delay: Ns::ZERO,
        run: Ns::ZERO,
        crossed: UnmeasuredParts::default(),
        state: switch.prev_state,
        next_comm: switch.next_comm,
        next_pid: switch.next_pid,
        shown: PerfStayTimes { label: shown, wait: Ns::ZERO, delay: Ns::ZERO },
    }
}

impl<F: FnMut(&TimehistRow)> Sink for Timehist<F> {
    fn event(&mut self, event: &Event<'_>) {
        self.census.event(event);
        self.choosing.hear(event);
        let change = self.tracker.event(event);
        match &event.kind {
            EventKind::SchedSwitch(switch) => {
                if let TrackerChange::Switched { stay, .. } = &change {
                    self.switch(switch, event, stay);
                }
            }
            EventKind::SchedWaking(wakeup) => {
                self.decide(ReadyBy::Waking);
                self.waking(wakeup, event);
            }
            EventKind::SchedWakeupNew(wakeup) => self.waking(wakeup, event),
            EventKind::SchedWakeup(wakeup) => self.wakeup(wakeup, event),
            EventKind::SchedMigrateTask { comm, pid, orig_cpu, dest_cpu, .. } => {
                self.migrated(*pid, *comm, (*orig_cpu, *dest_cpu), event);
            }
            EventKind::SchedProcessFork { pid, child_pid, child_comm, .. } => {
                self.threads.fork(*child_pid, *child_comm, *pid);
            }
            EventKind::TaskName { pid, tgid, comm } => self.threads.name(*pid, *tgid, *comm),
            EventKind::TaskStart { pid, tgid, parent_pid } => self.threads.start(*pid, *tgid, *parent_pid),
            EventKind::TaskExit { pid, .. } => self.threads.exit(*pid),
            EventKind::Lost { count } => {
                self.certain(TimehistRow::Lost { time: event.time, cpu: event.cpu, count: *count });
            }
            _ => {}
        }
    }

    fn system(&mut self, system: &System) {
        self.census.system(system);
        self.choosing.system(system);
        self.tracker.system(system);
    }
}

#[cfg(test)]
mod tests;
