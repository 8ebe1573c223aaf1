//! The longest waits, each as a chain of causes: the waker, the queue, the tasks that ran instead and why they stopped, the idle
//! CPUs, and virtual time.
//!
//! Events on CPUs are kept only while a wait that may need them goes on, and up to a bound. Of finished waits only the
//! longest are kept. Traces of modelled and of real kernels are treated alike.
//!
//! Must not know: how a scheduler decides, how stories reach a user.

pub mod answer;
mod build;
mod log;
mod open;
mod placement;
mod pulls;
pub mod story;
pub mod text;

use std::collections::BTreeSet;

use fairlab_event::{
    Cpu, Event, EventKind, Ns, Pid, Place, Sink, System, TextFields, Tracepoint, UntypedTracepoint,
};

use crate::blame::report::BlameReport;
use crate::blame::{Blame, BlameOptions, RuleWords};
use crate::selector::{NothingChosen, SelectorState, TraceSelector};
use crate::throttling::ThrottleChange;
use crate::tracker::{
    CPUS_MAX, EndedWait, EnteredCpu, LeftCpu, MoveCause, StayOnCpu, Tracker, TrackerChange,
};
use crate::{Census, MissingEvents, Needs};
use build::UntoldParts;
use log::{CpuLog, CpuLogEntry, MovedEntry, RanEntry};
use open::OpenWait;
use placement::VirtualState;
pub use placement::{ExplainedPlacement, Reweight, deadline_ahead, group_weight, virtual_distance};
use pulls::Pulls;
use story::{NamedPid, Story, WaiterMove};

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainOptions {
    /// Only waits of these tasks that end in this time.
    pub chosen: TraceSelector,
    /// How many stories.
    pub worst: usize,
}

impl Default for ExplainOptions {
    fn default() -> ExplainOptions {
        ExplainOptions { chosen: TraceSelector::default(), worst: 5 }
    }
}

/// The events that stories are made from.
pub const NEEDS: Needs = Needs {
    analysis: "explain",
    required: &[Tracepoint::SchedSwitch],
    one_of: (
        &[Tracepoint::SchedWaking, Tracepoint::SchedWakeup],
        "only waits after a preemption or a yield are explained",
    ),
    useful: &[
        (Tracepoint::SchedWakeup, "on which CPU a task was queued is known by migrations only"),
        (Tracepoint::SchedMigrateTask, "moves of waiting tasks are not seen"),
        (Tracepoint::SchedStatRuntime, "ticks that went by without a switch are not seen"),
    ],
};

/// A task that still waits when the trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillWaiting {
    /// The task.
    pub task: NamedPid,
    /// The CPU on which it is queued, if it is.
    pub cpu: Option<Cpu>,
    /// Since when.
    pub since: Ns,
    /// For how long up to the trace's end.
    pub so_far: Ns,
    /// What runs on its CPU when the trace ends.
    pub behind: Option<NamedPid>,
}

/// The answer.
///
/// Printed (`{}`) it is for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// All waits summed, by what had the CPU, where that is asked for.
    pub waiting: Option<BlameReport>,
    /// The worst waits, the longest first.
    pub stories: Vec<Story>,
    /// How many waits were measured.
    pub measured: u64,
    /// How many waits ended across a hole, where events are missing: they are not measured.
    pub crossed: u64,
    /// Tasks that still wait when the trace ends, the longest first, as many as there may be stories.
    pub still_waiting: Vec<StillWaiting>,
    /// How many there are in all.
    pub still_waiting_count: u64,
    /// What the trace lacks, one clause each.
    pub notices: Vec<String>,
}

/// One of the worst waits so far.
#[derive(Clone, Debug)]
struct KeptStory {
    task: u32,
    story: Story,
    /// What is yet to be told of it.
    untold: Option<Box<UntoldParts>>,
    /// Whether its task's next accounting may tell back what its vruntime was when it waited, and what that was.
    awaits_vruntime: bool,
    vruntime: Option<u64>,
}

/// Explains the events that it is given.
#[derive(Clone, Debug)]
pub struct Explain {
    worst: usize,
    choosing: SelectorState,
    tracker: Tracker,
    /// For each CPU.
    logs: Vec<CpuLog>,
    /// For each task of the tracker: its wait, if it waits.
    open: Vec<Option<Box<OpenWait>>>,
    /// When the waits that go on began, the oldest first.
    beginnings: BTreeSet<(Ns, u32)>,
    /// For each task of the tracker.
    virtual_states: Vec<VirtualState>,
    /// The task that is being placed level by level, by the reporting CPU.
    placing: Vec<Option<u32>>,
    pulls: Pulls,
    /// The task that is being switched in: its wait is over and not reported yet.
    entering: Option<u32>,
    /// The worst waits so far, the longest first.
    kept: Vec<KeptStory>,
    /// The beginning of the oldest of those of which something is yet to be told; the largest time if there is none.
    untold_since: Ns,
    measured: u64,
    /// Of these, those of tasks that were woken while they still ran.
    woken_while_running: u64,
    crossed: u64,
    census: Census,
    /// Sums up all waits.
    sums: Option<Box<Blame>>,
}

impl Explain {
    /// Nothing explained yet.
    pub fn new(options: ExplainOptions) -> Explain {
        Explain {
            worst: options.worst,
            choosing: SelectorState::new(options.chosen),
            tracker: Tracker::default(),
            logs: Vec::new(),
            open: Vec::new(),
            beginnings: BTreeSet::new(),
            virtual_states: Vec::new(),
            placing: Vec::new(),
            pulls: Pulls::default(),
            entering: None,
            kept: Vec::new(),
            untold_since: Ns::MAX,
            measured: 0,
            woken_while_running: 0,
            crossed: 0,
            census: Census::default(),
            sums: None,
        }
    }

    /// Has all waits summed besides, with rules of the scheduler called so.
    #[must_use]
    pub fn with_sums(self, rule_words: RuleWords) -> Explain {
        let chosen = self.choosing.chosen().clone();
        let sums = Blame::new(BlameOptions { chosen, by_thread: false, rule_words });
        Explain { sums: Some(Box::new(sums)), ..self }
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

    /// The stories of the worst waits among all events so far.
    ///
    /// # Errors
    /// There was no `sched_switch`.
    pub fn finish(mut self) -> Result<Explanation, MissingEvents> {
        let mut notices = NEEDS.check(&self.census)?;
        self.tell_all();
        notices.extend(self.tracker.notices(self.census.total()));
        if self.woken_while_running > 0 {
            let untold = match self.tracker.has_wakeup() {
                true => String::new(),
                false => {
                    let wakeup = Tracepoint::SchedWakeup.name();
                    format!("; the trace has no {wakeup}, which would tell whether they were to sleep")
                }
            };
            notices.push(format!(
                "{} waits of tasks that were woken while they still ran are counted from the switch on; latency counts them with \
                 --woken-while-running only{untold}",
                self.woken_while_running
            ));
        }
        let mut still_waiting = self.still_waiting();
        let still_waiting_count = still_waiting.len() as u64;
        still_waiting.truncate(self.worst);
        Ok(Explanation {
            waiting: self.sums.map(|sums| sums.finish()).transpose()?,
            stories: self.kept.into_iter().map(|kept| kept.story).collect(),
            measured: self.measured,
            crossed: self.crossed,
            still_waiting,
            still_waiting_count,
            notices,
        })
    }

    fn still_waiting(&self) -> Vec<StillWaiting> {
        let (_, end) = self.tracker.span().unwrap_or_default();
        let wanted = self.tracker.open_waits().filter(|&(task, _, crossed)| !crossed && self.wants(task));
        let mut waiting: Vec<StillWaiting> = wanted
            .map(|(index, wait, _)| {
                let cpu = self.tracker.task(index).waits_on();
                let running = cpu.and_then(|cpu| self.tracker.cpu(cpu)).and_then(|cpu| cpu.running);
                StillWaiting {
                    task: self.who(index),
                    cpu,
                    since: wait.start,
                    so_far: end.since(wait.start),
                    behind: running.map(|task| self.who(task)),
                }
            })
            .collect();
        waiting.sort_by(|one, other| other.so_far.cmp(&one.so_far).then(one.task.pid.cmp(&other.task.pid)));
        waiting
    }

    fn wants(&self, task: u32) -> bool {
        self.choosing.means(self.tracker.task(task).pid)
    }

    fn counts(&self, task: u32, now: Ns) -> bool {
        self.choosing.counts(self.tracker.task(task).pid, now)
    }

    fn who(&self, task: u32) -> NamedPid {
        let task = self.tracker.task(task);
        NamedPid { comm: task.comm, pid: task.pid }
    }

    /// The beginning of the oldest wait: what ended before is not needed. Waits that were lost sight of are forgotten.
    fn horizon(&mut self, now: Ns) -> Ns {
        let now = self.untold_since.min(now);
        while let Some(&(start, task)) = self.beginnings.first() {
            let goes_on = self.tracker.task(task).wait.is_some_and(|wait| wait.start == start);
            if goes_on || self.entering == Some(task) {
                return start.min(now);
            }
            drop(self.close(task));
            self.beginnings.remove(&(start, task));
        }
        now
    }

    fn log(&mut self, cpu: Cpu, entry: CpuLogEntry) {
        let horizon = self.horizon(entry.time());
        let Some(log) = log_of(&mut self.logs, cpu) else { return };
        log.push(entry, horizon);
        if self.logs[cpu.index()].is_full() {
            self.tell_all();
            self.logs[cpu.index()].drop_forgotten();
        }
    }

    /// Tells what is yet to be told.
    fn tell_all(&mut self) {
        for place in 0..self.kept.len() {
            let Some(untold) = self.kept[place].untold.take() else { continue };
            let mut story = self.kept[place].story.clone();
            self.tell(&mut story, &untold);
            let kept = &mut self.kept[place];
            let wants = story.wants_accounting();
            kept.awaits_vruntime &= wants;
            if let Some(view) = story.virtual_time.as_mut().filter(|_| wants) {
                view.waiter_vruntime = kept.vruntime;
            }
            kept.story = story;
        }
        self.untold_since = Ns::MAX;
    }

    /// Ticks count where somebody waits.
    fn hear_tick(&mut self, event: &Event<'_>) {
        let Some(cpu) = self.tracker.cpu(event.cpu) else { return };
        let Some(log) = log_of(&mut self.logs, event.cpu) else { return };
        let running = cpu.running.map(|task| (task, self.tracker.task(task).pid));
        let is_needed = cpu.waiting > 0;
        // Where sched_wakeup is recorded it tells that an accounting was made for a wakeup.
        let is_waking = !self.tracker.has_wakeup() && cpu.is_waking();
        let tick = log.hear(event, running, is_waking);
        if let Some(tick) = tick.filter(|_| is_needed) {
            self.log(event.cpu, CpuLogEntry::Tick(tick));
        }
    }

    fn hear_virtual_time(&mut self, event: &Event<'_>) {
        match event.kind {
            EventKind::SchedPlace(place) => self.placed(place, event),
            EventKind::SchedStatRuntime { pid, runtime, vruntime: Some(vruntime), .. } => {
                self.stop_placing(event);
                let Some(task) = self.tracker.index(pid) else { return };
                self.virtual_state(task).vruntime = Some((event.time, vruntime));
                self.reckon_back(task, runtime, vruntime);
            }
            EventKind::Other { name, fields } if name == UntypedTracepoint::SchedReweight.name() => {
                self.reweighted(fields, event);
            }
            _ if placement::goes_on_placing(event) => {}
            _ => self.stop_placing(event),
        }
    }

    /// Groups that were throttled are back.
    fn hear_throttling(&mut self) {
        for place in 0..self.tracker.throttling().changes().len() {
            if let ThrottleChange::Back { group, cpu, since, to } = self.tracker.throttling().changes()[place]
            {
                self.log(cpu, CpuLogEntry::Throttled { group, from: since, to });
            }
        }
    }

    fn placed(&mut self, place: Place, event: &Event<'_>) {
        let cpu = event.cpu.index();
        if cpu >= CPUS_MAX {
            return;
        }
        if self.placing.len() <= cpu {
            self.placing.resize(cpu + 1, None);
        }
        if place.pid.is_idle() {
            if let Some(task) = self.placing[cpu] {
                self.virtual_state(task).place_group(place);
            }
            return;
        }
        self.stop_placing(event);
        let task = self.tracker.index_or_new(place.pid, place.comm);
        self.virtual_state(task).place(place, event.time);
        self.placing[cpu] = Some(task);
    }

    fn reweighted(&mut self, fields: TextFields<'_>, event: &Event<'_>) {
        let placing = self.placing.get(event.cpu.index()).copied().flatten();
        if let (Some(task), Some(reweight)) = (placing, Reweight::parse(fields, event.time)) {
            self.virtual_state(task).reweight(reweight);
        }
    }

    fn stop_placing(&mut self, event: &Event<'_>) {
        let placing = self.placing.get_mut(event.cpu.index()).and_then(Option::take);
        if let Some(task) = placing {
            self.virtual_state(task).placed();
        }
    }

    fn virtual_state(&mut self, task: u32) -> &mut VirtualState {
        let task = task as usize;
        if self.virtual_states.len() <= task {
            self.virtual_states.resize_with(task + 1, VirtualState::default);
        }
        &mut self.virtual_states[task]
    }

    fn switched(
        &mut self,
        cpu: Cpu,
        left: Option<LeftCpu>,
        entered: Option<&EnteredCpu>,
        stay: StayOnCpu,
        event: &Event<'_>,
    ) {
        let now = event.time;
        if let Some(LeftCpu { task, how, resched, lost_wait, .. }) = left {
            self.crossed += u64::from(lost_wait && self.counts(task, now));
            let resched = resched.map(|resched| self.tracker.asked_by_entering(resched, entered));
            drop(self.close(task));
            self.log(cpu, CpuLogEntry::Ran(RanEntry { task, stay, how, resched }));
            if self.tracker.task(task).wait.is_some() {
                self.begin(task, None, resched, event);
                if self.tracker.task(task).waits_on() == Some(cpu) {
                    self.begin_stay(task, cpu, None, now);
                }
            }
        } else if let StayOnCpu { seen_since, to, .. } = stay
            && seen_since < to
        {
            self.log(cpu, CpuLogEntry::Idled { from: seen_since, to });
        }
    }

    /// A task that was taken to have left its CPU runnable had blocked.
    fn blocked_after_all(&mut self, task: u32) {
        let ran_on = self.tracker.task(task).ran_on;
        if let Some(log) = ran_on.and_then(|cpu| self.logs.get_mut(cpu.index())) {
            log.blocked_after_all(task);
        }
    }

    fn moved(&mut self, task: u32, from: Cpu, to: Cpu, cause: MoveCause, event: &Event<'_>) {
        let by = NamedPid { comm: event.context.comm, pid: event.context.pid };
        if let Some(state) = self.virtual_states.get_mut(task as usize) {
            state.vruntime = None;
        }
        self.await_no_vruntime(task);
        if cause != MoveCause::Wakeup && !self.beginnings.is_empty() {
            self.log(from, CpuLogEntry::Moved(MovedEntry { time: event.time, task, to, cause, by }));
        }
        let told = WaiterMove { time: event.time, from, to, cause, by };
        self.move_open(task, told);
    }

    /// The next accounting of a task tells nothing of waits that are over.
    fn await_no_vruntime(&mut self, task: u32) {
        self.kept.iter_mut().filter(|kept| kept.task == task).for_each(|kept| kept.awaits_vruntime = false);
    }

    fn lost(&mut self) {
        self.tell_all();
        self.logs.iter_mut().for_each(CpuLog::clear);
        self.open.clear();
        self.beginnings.clear();
    }

    fn ended(&mut self, task: u32, ended: &EndedWait, cpu: Cpu, now: Ns) {
        let Some(open) = self.close(task) else {
            self.crossed += u64::from(ended.crossed_loss && self.counts(task, now));
            return;
        };
        if !self.counts(task, now) {
            return;
        }
        if ended.crossed_loss {
            self.crossed += 1;
            return;
        }
        self.measured += 1;
        self.woken_while_running += u64::from(ended.wait.woken_while_running);
        let is_full = self.kept.len() >= self.worst;
        let shortest = self.kept.last().map_or(Ns::ZERO, |kept| kept.story.length());
        if self.worst == 0 || is_full && ended.length <= shortest {
            return;
        }
        let kept = self.begin_story(task, &open, cpu, now);
        if kept.awaits_vruntime {
            self.await_no_vruntime(task);
        }
        let place = self.kept.partition_point(|other| other.story.length() >= kept.story.length());
        self.kept.insert(place, kept);
        self.kept.truncate(self.worst);
        let untold = self.kept.iter().filter(|kept| kept.untold.is_some());
        self.untold_since = untold.map(|kept| kept.story.start).min().unwrap_or(Ns::MAX);
    }

    /// The first accounting of a task that has waited tells back what its vruntime was when it waited.
    fn reckon_back(&mut self, task: u32, runtime: Ns, vruntime: u64) {
        let awaits = |kept: &&mut KeptStory| kept.task == task && kept.awaits_vruntime;
        let Some(kept) = self.kept.iter_mut().find(awaits) else { return };
        let stood = Some(vruntime.wrapping_sub(runtime.0));
        (kept.awaits_vruntime, kept.vruntime) = (false, stood);
        if let (None, Some(view)) = (&kept.untold, &mut kept.story.virtual_time) {
            view.waiter_vruntime = stood;
        }
    }
}

/// The log of a CPU, which begins with this if there is none.
fn log_of(logs: &mut Vec<CpuLog>, cpu: Cpu) -> Option<&mut CpuLog> {
    if (logs.len()..CPUS_MAX).contains(&cpu.index()) {
        logs.resize(cpu.index() + 1, CpuLog::default());
    }
    logs.get_mut(cpu.index())
}

impl Sink for Explain {
    fn event(&mut self, event: &Event<'_>) {
        self.census.event(event);
        let heard = self.choosing.hear(event);
        if let Some(end) = heard.ends {
            self.tracker.end_at(end);
        }
        if heard.is_followed {
            self.follow(event);
        }
        if let Some(sums) = &mut self.sums {
            sums.event(event);
        }
    }

    fn system(&mut self, system: &System) {
        self.census.system(system);
        self.choosing.system(system);
        self.tracker.system(system);
        if let Some(sums) = &mut self.sums {
            sums.system(system);
        }
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.tracker.allowed(pid, cpus);
        if let Some(sums) = &mut self.sums {
            sums.allowed(pid, cpus);
        }
    }
}

impl Explain {
    fn follow(&mut self, event: &Event<'_>) {
        self.hear_tick(event);
        let change = self.tracker.event(event);
        // The story of the task that starts is yet to be written.
        self.entering = match &change {
            TrackerChange::Switched { entered, .. } => entered.as_ref().map(|entered| entered.task),
            _ => None,
        };
        self.hear_throttling();
        self.hear_virtual_time(event);
        match change {
            TrackerChange::Woken { task, seemed, lost_wait, .. } => {
                self.crossed += u64::from(lost_wait && self.counts(task, event.time));
                if seemed.is_some() {
                    self.blocked_after_all(task);
                }
                self.woken(task, event);
            }
            TrackerChange::Queued { task, cpu, begins } => self.queued(task, cpu, begins, event),
            TrackerChange::Moved { task, from, to, cause } => self.moved(task, from, to, cause, event),
            TrackerChange::Switched { cpu, stay, left, entered } => {
                self.switched(cpu, left, entered.as_ref(), stay, event);
                if let Some(entered) = entered {
                    match &entered.wait {
                        Some(wait) => self.ended(entered.task, wait, cpu, event.time),
                        None => drop(self.close(entered.task)),
                    }
                }
                self.entering = None;
            }
            TrackerChange::Lost => self.lost(),
            TrackerChange::None => self.pulls.hear(event, self.beginnings.first().map(|&(start, _)| start)),
        }
    }
}

#[cfg(test)]
mod tests;
