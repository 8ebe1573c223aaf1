//! What each CPU and each task did, and when: the data of a picture of a trace.
//!
//! There are two views. *Stretches* hold every switch, in pieces of time that can be read independently. They are handed on
//! as they fill, so memory does not grow with the trace. *Courses* hold each CPU, task and set of tasks in few entries, for a
//! picture of the whole.
//!
//! Time in a hole is unknown. A CPU's time ends at the last event that shows what ran there, and begins again at the next
//! such event.
//!
//! Must not know: how pictures are drawn, how stretches are kept.

mod course;
mod held;
mod names;
mod stretch;
#[cfg(test)]
mod tests;

use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Place, Sink, System, UntypedTracepoint};

use crate::explain::story::CpuMode;
use crate::throttling::ThrottleChange;
use crate::tracker::{
    CPUS_MAX, Departure, EndedWait, EnteredCpu, LeftCpu, TrackedTaskPhase, Tracker, TrackerChange, WaitCause,
};
use crate::{Census, MissingEvents, Needs};
pub use course::{LaneSeries, LaneSums};
use held::HeldSpans;
use names::LaneNames;
pub use names::{LaneTask, TaskSet};
pub use stretch::{
    LaneOccupant, LaneStretch, LaneWait, LeaveReason, MovedWaiting, StartingState, StillWaits, SwitchIn,
    VirtualFacts, WaitBegan,
};

/// The events that lanes are made from.
pub const NEEDS: Needs = Needs {
    analysis: "view",
    required: &[fairlab_event::Tracepoint::SchedSwitch],
    one_of: (
        &[fairlab_event::Tracepoint::SchedWaking, fairlab_event::Tracepoint::SchedWakeup],
        "only waits after a preemption or a yield are drawn",
    ),
    useful: &[(fairlab_event::Tracepoint::SchedMigrateTask, "moves of waiting tasks are not drawn")],
};

/// How many switches are in a stretch.
const SWITCHES: usize = 1 << 14;

/// How many marks of user space are kept.
const MARKS_MAX: usize = 1000;

/// What is known when all events are over.
#[derive(Clone, Debug, Default)]
pub struct LanesReport {
    /// The times of the first event and the last.
    pub span: (Ns, Ns),
    /// How many events there were.
    pub events: u64,
    /// How many switches.
    pub switches: u64,
    /// What each CPU did; a CPU's depth is in its entries' peaks.
    pub cpus: Vec<LaneSeries>,
    /// What each task did, in the order of their numbers.
    pub tasks: Vec<LaneTask>,
    /// Control groups, and tasks of one name where no group is known.
    pub sets: Vec<TaskSet>,
    /// Clocks' frequencies: when, whose, kHz.
    pub frequencies: Vec<(Ns, Cpu, u32)>,
    /// What user space marked: when, and the text. The first thousand.
    pub marks: Vec<(Ns, String)>,
    /// How many marks there were in all.
    pub mark_count: u64,
    /// What the trace lacks, one clause each.
    pub notices: Vec<String>,
}

/// One CPU up to now.
#[derive(Clone, Debug, Default)]
struct Lane {
    what: LaneOccupant,
    since: Ns,
    /// The number of the stay that is drawn, and of breaks that are.
    number: u32,
    breaks: u32,
    /// How many tasks wait, and since when.
    waiting: u32,
    waiting_since: Ns,
    /// Waiting times of all tasks since the entry began, and the depth that was reached.
    waited: u64,
    depth: u32,
    course: LaneSeries,
}

/// One task up to now.
#[derive(Clone, Copy, Debug, Default)]
struct OffCpuTask {
    /// How it left its CPU last, and when; none: it was lost sight of.
    left: Option<(LeaveReason, Ns)>,
    waker: Option<(Cpu, CpuMode)>,
    facts: VirtualFacts,
    has_facts: bool,
}

/// Takes events, hands on stretches.
pub struct Lanes<F: FnMut(LaneStretch)> {
    tracker: Tracker,
    lanes: Vec<Lane>,
    rests: Vec<OffCpuTask>,
    names: LaneNames,
    held: HeldSpans,
    stretch: LaneStretch,
    give: F,
    frequencies: Vec<(Ns, Cpu, u32)>,
    marks: Vec<(Ns, String)>,
    mark_count: u64,
    switches: u64,
    census: Census,
    window: DrawnWindow,
}

/// The time that is drawn.
#[derive(Clone, Copy, Debug, Default)]
struct DrawnWindow {
    from: Option<Ns>,
    to: Option<Ns>,
    has_begun: bool,
    is_over: bool,
    /// When it began, if the trace began before.
    began: Option<Ns>,
}

impl<F: FnMut(LaneStretch)> Lanes<F> {
    /// Nothing drawn yet; `give` takes each stretch when it is full.
    pub fn new(give: F) -> Lanes<F> {
        Lanes {
            tracker: Tracker::default(),
            lanes: Vec::new(),
            rests: Vec::new(),
            names: LaneNames::default(),
            held: HeldSpans::default(),
            stretch: LaneStretch::default(),
            give,
            frequencies: Vec::new(),
            marks: Vec::new(),
            mark_count: 0,
            switches: 0,
            census: Census::default(),
            window: DrawnWindow { has_begun: true, ..DrawnWindow::default() },
        }
    }

    /// Draws this time alone. Earlier events are followed, so that the state at its beginning is known.
    #[must_use]
    pub fn within(mut self, from: Option<Ns>, to: Option<Ns>) -> Lanes<F> {
        self.window = DrawnWindow { from, to, has_begun: from.is_none(), ..DrawnWindow::default() };
        self
    }

    /// Forgets what was drawn: from `now` on it counts.
    fn begin_window(&mut self, now: Ns) {
        self.window.has_begun = true;
        if self.tracker.span().is_none() {
            return;
        }
        self.window.began = Some(now);
        for lane in &mut self.lanes {
            (lane.since, lane.waiting_since) = (now, now);
            (lane.waited, lane.course) = (0, LaneSeries::default());
            lane.depth = lane.waiting + u32::from(lane.what.task().is_some());
        }
        self.names.begin_at(now);
        self.held.begin_at(now);
        self.switches = 0;
        (self.marks, self.mark_count) = (Vec::new(), 0);
        self.open_stretch(now);
    }

    /// Whether the event lies in the drawn stretch, or before it.
    fn is_followed(&mut self, event: &Event<'_>) -> bool {
        if self.window.is_over || event.kind.is_task_record() {
            return !self.window.is_over;
        }
        self.window.is_over = self.window.to.is_some_and(|to| event.time > to);
        if let Some(from) = self.window.from.filter(|&from| !self.window.has_begun && event.time >= from) {
            self.begin_window(from);
        }
        !self.window.is_over
    }

    /// Hands on the last stretch and says what there was.
    ///
    /// # Errors
    /// There was no `sched_switch`.
    pub fn finish(mut self) -> Result<LanesReport, MissingEvents> {
        let mut notices = NEEDS.check(&self.census)?;
        notices.extend(self.tracker.notices(self.census.total()));
        let (first, last) = self.tracker.span().unwrap_or_default();
        let first = self.window.began.unwrap_or(first);
        let last = self.window.to.filter(|_| self.window.is_over).unwrap_or(last);
        let span = (first, last.max(first));
        self.close_stretch(span.1);
        for cpu in 0..self.lanes.len() {
            self.end_slice(cpu, span.1);
        }
        self.end_held(span.1);
        let Lanes { tracker, lanes, rests, mut names, mut held, .. } = self;
        for (task, rest) in (0..).zip(&rests) {
            names.end(task, tracker.task(task), rest.left.map(|(how, _)| how));
        }
        let (mut tasks, sets) = names.finish(&tracker);
        for (number, task) in (0..).zip(&mut tasks) {
            task.throttled = held.take(number);
        }
        Ok(LanesReport {
            span,
            events: self.census.total(),
            switches: self.switches,
            cpus: lanes.into_iter().map(|lane| lane.course.finished(span.1)).collect(),
            tasks,
            sets,
            frequencies: self.frequencies,
            marks: self.marks,
            mark_count: self.mark_count,
            notices,
        })
    }

    fn rest(&mut self, task: u32) -> &mut OffCpuTask {
        let task = task as usize;
        if self.rests.len() <= task {
            self.rests.resize(task + 1, OffCpuTask::default());
        }
        &mut self.rests[task]
    }

    /// What a stretch that begins at `now` takes over.
    fn open_stretch(&mut self, now: Ns) {
        let standing = |(task, rest): (u32, &OffCpuTask)| {
            let standing = match self.tracker.task(task).doing {
                TrackedTaskPhase::Unknown | TrackedTaskPhase::Gone => return None,
                TrackedTaskPhase::Running(_) => StartingState::Runs,
                TrackedTaskPhase::Waking | TrackedTaskPhase::Waiting(_) => StartingState::Waits,
                TrackedTaskPhase::Sleeping => {
                    StartingState::Sleeps(rest.left.map_or(LeaveReason::Unknown, |(how, _)| how))
                }
            };
            Some((task, standing))
        };
        let running = (0..).map(Cpu).zip(&self.lanes).map(|(cpu, lane)| (cpu, lane.what));
        self.stretch = LaneStretch {
            from: now,
            to: now,
            standing: (0..).zip(&self.rests).filter_map(standing).collect(),
            running: running.collect(),
            ..LaneStretch::default()
        };
    }

    fn close_stretch(&mut self, now: Ns) {
        let waits = self.tracker.open_waits().map(|(task, wait, _)| StillWaits {
            task,
            cpu: self.tracker.task(task).waits_on(),
            since: wait.start,
        });
        self.stretch.waiting = waits.collect();
        self.stretch.to = now;
        let stretch = std::mem::take(&mut self.stretch);
        if self.window.has_begun {
            (self.give)(stretch);
        }
    }

    fn end_slice(&mut self, cpu: usize, to: Ns) {
        let lane = &mut self.lanes[cpu];
        let (from, what) = (lane.since, lane.what);
        let until = to.max(lane.waiting_since);
        lane.waited += until.since(lane.waiting_since).0 * u64::from(lane.waiting);
        lane.waiting_since = until;
        let depth = u64::from(lane.depth);
        lane.course.slice(from, to, what, std::mem::take(&mut lane.waited), depth);
        lane.depth = lane.waiting;
        if let Some(task) = what.task() {
            self.names.ran(task, self.tracker.task(task), &self.tracker, Cpu(cpu as u32), from, to);
        }
    }

    /// From `time` on a CPU does something else.
    fn begin_slice(
        &mut self,
        cpu: Cpu,
        what: LaneOccupant,
        time: Ns,
        left: LeaveReason,
        wait: Option<LaneWait>,
    ) {
        let time = time.max(self.lanes[cpu.index()].since);
        self.end_slice(cpu.index(), time);
        let lane = &mut self.lanes[cpu.index()];
        (lane.what, lane.since) = (what, time);
        lane.depth = lane.depth.max(lane.waiting + u32::from(what.task().is_some()));
        if let Some(task) = what.task() {
            let slept = self.rest(task).left.take();
            self.names.begins(task, time, wait.as_ref(), slept);
            let rest = self.rest(task);
            if std::mem::take(&mut rest.has_facts) {
                let facts = rest.facts;
                self.stretch.facts.push((self.stretch.switches.len() as u32, facts));
            }
        }
        self.stretch.switches.push(SwitchIn { time, cpu, what, left, wait });
    }

    /// What the latest event changed on a CPU.
    fn look_at(&mut self, cpu: Cpu, now: Ns, left: LeaveReason, wait: Option<LaneWait>) {
        let Some(state) = self.tracker.cpu(cpu) else { return };
        let (known, running, number) = (state.known, state.running, state.number());
        let (seen_since, broke_at, breaks) = (state.seen_since, state.broke_at, state.broken_stays);
        let waiting = state.waiting;
        let start = self.tracker.span().map_or(now, |(start, _)| start);
        if self.lanes.len() <= cpu.index() {
            self.lanes.resize_with(cpu.index() + 1, || Lane {
                what: LaneOccupant::UNKNOWN,
                since: start,
                waiting_since: start,
                ..Lane::default()
            });
        }
        let lane = &mut self.lanes[cpu.index()];
        if waiting != lane.waiting {
            let until = now.max(lane.waiting_since);
            lane.waited += until.since(lane.waiting_since).0 * u64::from(lane.waiting);
            (lane.waiting, lane.waiting_since) = (waiting, until);
            lane.depth = lane.depth.max(waiting + u32::from(lane.what.task().is_some()));
        }
        if lane.breaks != breaks {
            lane.breaks = breaks;
            if lane.what != LaneOccupant::UNKNOWN {
                self.begin_slice(cpu, LaneOccupant::UNKNOWN, broke_at, LeaveReason::Unknown, None);
            }
        }
        let lane = &mut self.lanes[cpu.index()];
        let what = match running {
            _ if !known => LaneOccupant::UNKNOWN,
            None => LaneOccupant::IDLE,
            Some(task) => LaneOccupant::of(task),
        };
        if what == lane.what && number == lane.number {
            return;
        }
        lane.number = number;
        if what != lane.what || wait.is_some() {
            self.begin_slice(cpu, what, seen_since, left, wait);
        }
    }

    fn woken(&mut self, task: u32, event: &Event<'_>) {
        let flags = event.context.flags;
        let mode = match () {
            () if flags.in_hardirq() => CpuMode::HardInterrupt,
            () if flags.in_softirq() => CpuMode::SoftInterrupt,
            () => CpuMode::Task,
        };
        self.rest(task).waker = Some((event.cpu, mode));
    }

    fn waited(&mut self, task: u32, ended: &EndedWait) -> LaneWait {
        let waker = self.rest(task).waker.take();
        let began = match ended.wait.cause {
            WaitCause::Wakeup => WaitBegan::Wakeup,
            WaitCause::New => WaitBegan::New,
            WaitCause::PreemptedInKernel | WaitCause::Preempted => WaitBegan::Preempted,
            WaitCause::Yielded => WaitBegan::Yielded,
            WaitCause::LeftRunnable => WaitBegan::LeftRunnable,
        };
        let waker = waker.filter(|_| matches!(began, WaitBegan::Wakeup | WaitBegan::New));
        LaneWait { length: ended.length, began, waker, crossed: ended.crossed_loss }
    }

    fn switched(&mut self, left: Option<&LeftCpu>, entered: Option<&EnteredCpu>, event: &Event<'_>) {
        self.switches += 1;
        let leaving = left.map_or(LeaveReason::Nothing, |left| LeaveReason::of(left.how));
        if let Some(left) = left {
            self.rest(left.task).left = Some((leaving, event.time));
            self.names.process(left.task, event);
            if left.how == Departure::Exited {
                self.names.exits(left.task, event.time);
            }
        }
        let wait = entered.and_then(|entered| Some((entered.task, entered.wait.as_ref()?)));
        let wait = wait.map(|(task, wait)| self.waited(task, wait));
        if let Some(entered) = entered {
            self.rest(entered.task);
        }
        self.look_at(event.cpu, event.time, leaving, wait);
    }

    /// What the latest event changed in which tasks are throttled.
    fn hear_throttling(&mut self, change: &TrackerChange, now: Ns) {
        if !self.tracker.throttling().tells() {
            return;
        }
        for place in 0..self.tracker.throttling().changes().len() {
            let change = self.tracker.throttling().changes()[place];
            let to = if let ThrottleChange::Back { to, .. } = change { to } else { now };
            for task in 0..self.tracker.task_count() {
                let waits_on = self.tracker.task(task).waits_on().filter(|cpu| change.cpu() == Some(*cpu));
                if waits_on
                    .is_some_and(|cpu| !self.tracker.throttling().holds(self.tracker.task(task).pid, cpu))
                {
                    self.held.up_to(task, self.tracker.throttled_so_far(task), to);
                }
            }
        }
        let ends = match change {
            TrackerChange::Moved { task, .. } | TrackerChange::Queued { task, .. } => Some(*task),
            TrackerChange::Switched { entered, .. } => entered.map(|entered| entered.task),
            _ => None,
        };
        if let Some(task) = ends {
            self.held.up_to(task, self.tracker.throttled_so_far(task), now);
        }
    }

    /// Who is throttled when the trace ends is so until then.
    fn end_held(&mut self, end: Ns) {
        self.tracker.end_at(end);
        for task in 0..self.tracker.task_count() {
            if self.tracker.task(task).waits_on().is_some() {
                self.held.up_to(task, self.tracker.throttled_so_far(task), end);
            }
        }
    }

    /// What an event tells beside what tasks do.
    fn hear(&mut self, event: &Event<'_>) {
        match &event.kind {
            EventKind::Other { name, fields } if *name == UntypedTracepoint::CpuFrequency.name() => {
                let number = |name| fields.unsigned(name).and_then(|number| u32::try_from(number).ok());
                if let (Some(cpu), Some(khz)) = (number("cpu_id"), number("state")) {
                    self.frequencies.push((event.time, Cpu(cpu), khz));
                }
            }
            EventKind::Marker { text } => {
                self.mark_count += 1;
                if self.marks.len() < MARKS_MAX {
                    self.marks.push((event.time, (*text).to_string()));
                }
            }
            EventKind::SchedPlace(place) if !place.pid.is_idle() => self.placed(place),
            EventKind::SchedStatRuntime { pid, vruntime: Some(vruntime), .. } => {
                if let Some(task) = self.tracker.index(*pid) {
                    let rest = self.rest(task);
                    rest.facts = VirtualFacts { vruntime: *vruntime, placed: None };
                    rest.has_facts = true;
                }
            }
            _ => {}
        }
    }

    fn placed(&mut self, place: &Place) {
        let Some(task) = self.tracker.index(place.pid) else { return };
        let rest = self.rest(task);
        rest.facts = VirtualFacts { vruntime: place.sev, placed: Some((place.sel, place.sed)) };
        rest.has_facts = true;
    }
}

impl<F: FnMut(LaneStretch)> Sink for Lanes<F> {
    fn event(&mut self, event: &Event<'_>) {
        self.census.event(event);
        if !self.is_followed(event) {
            return;
        }
        let change = self.tracker.event(event);
        let Some((start, now)) = self.tracker.span() else { return };
        if self.stretch.from == Ns::ZERO && self.stretch.switches.is_empty() {
            self.stretch.from = start;
        }
        self.hear(event);
        self.hear_throttling(&change, event.time);
        for place in 0..self.tracker.vanished().len() {
            let task = self.tracker.vanished()[place].task;
            self.rest(task).left = None;
        }
        match &change {
            TrackerChange::Woken { task, .. } => self.woken(*task, event),
            TrackerChange::Queued { task, begins: true, .. } => self.woken(*task, event),
            TrackerChange::Moved { task, from, to, .. } if self.tracker.task(*task).wait.is_some() => {
                let (time, task, from, to) = (event.time, *task, *from, *to);
                self.stretch.moves.push(MovedWaiting { time, task, from, to });
            }
            TrackerChange::Switched { left, entered, .. } => {
                self.switched(left.as_ref(), entered.as_ref(), event);
            }
            _ => {}
        }
        for cpu in self.tracker.touched().filter(|cpu| cpu.index() < CPUS_MAX) {
            self.look_at(cpu, event.time, LeaveReason::Unknown, None);
        }
        if self.stretch.switches.len() >= SWITCHES {
            self.close_stretch(now);
            self.open_stretch(now);
        }
    }

    fn system(&mut self, system: &System) {
        self.census.system(system);
        self.tracker.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.tracker.allowed(pid, cpus);
    }
}
