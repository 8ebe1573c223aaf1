//! Sums of tasks by name, by control group and by workload, and where they ran, as a tracker finds them.
//!
//! Must not know: how it is printed.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Event, Ns, Pid, System};

use crate::by_name::{ByName, FinishedWait, MachinePlaces, NameTaskState, NamesWanted};
use crate::counts::{GroupThrottled, NameCounts};
use crate::task_selector::{NameKind, TaskSelector};
use crate::throttling::ThrottledTime;
use crate::tracker::{
    CPUS_MAX, Departure, EndedWait, LeftCpu, TrackedTask, TrackedTaskPhase, Tracker, TrackerChange, WaitCause,
};

/// Counts by name what a tracker finds.
#[derive(Clone, Debug)]
pub(crate) struct NameCounter {
    names: ByName,
    /// For how long each group was throttled before counting began, by its path.
    throttled_before: BTreeMap<String, ThrottledTime>,
    /// When counting began.
    start: Ns,
}

impl NameCounter {
    /// Counts what is wanted from `start` on. What CPUs do then is what the tracker knows of it.
    pub(crate) fn new(
        wanted: NamesWanted,
        places: Option<MachinePlaces>,
        tracker: &Tracker,
        start: Ns,
    ) -> NameCounter {
        let cpus = places.as_ref().map_or(0, MachinePlaces::cpus).min(CPUS_MAX);
        let mut named = NameCounter {
            names: ByName::new(wanted, places, start),
            throttled_before: BTreeMap::new(),
            start,
        };
        (0..cpus).for_each(|cpu| named.see_cpu(Cpu(cpu as u32), tracker));
        named
    }

    /// Counts from the first event on: of these, or of all tasks by name and all groups where there are none.
    pub(crate) fn of_recording(
        whose: &[TaskSelector],
        places: Option<&MachinePlaces>,
        system: &System,
        start: Ns,
    ) -> NameCounter {
        let kinds = if whose.is_empty() { vec![NameKind::Task, NameKind::Group] } else { Vec::new() };
        let wanted = NamesWanted { kinds, asked: whose.to_vec(), ..NamesWanted::default() };
        let mut named = NameCounter::new(wanted, places.cloned(), &Tracker::default(), start);
        named.system(system);
        named
    }

    /// Takes the groups that there were, and which tasks were in them.
    pub(crate) fn system(&mut self, system: &System) {
        self.names.system(system);
    }

    /// Takes which workload of a mix a task belongs to.
    pub(crate) fn member(&mut self, pid: Pid, name: &str) {
        self.names.member(pid, name);
    }

    /// Takes where a task may run, by a number that is equal for equal sets.
    pub(crate) fn allowed(&mut self, pid: Pid, mask: Option<u32>) {
        self.names.allowed(pid, mask);
    }

    /// What was before does not count.
    pub(crate) fn begin(&mut self, now: Ns, tracker: &Tracker) {
        self.names.begin(now);
        self.throttled_before = tracker.throttling().paths_until(now);
        self.start = now;
    }

    /// Takes an event and what the tracker made of it. `counts`: whether anything is asked of a task.
    pub(crate) fn follow(
        &mut self,
        event: &Event<'_>,
        change: &TrackerChange,
        tracker: &Tracker,
        counts: impl Fn(&TrackedTask) -> bool,
    ) {
        // What a recorder knows of tasks is noted beyond the trace's time, too.
        if event.kind.is_task_record() {
            return;
        }
        let of = |task: u32| Some(tracker.task(task)).filter(|task| counts(task));
        self.names.hear(event);
        for stay in tracker.vanished() {
            let pid = tracker.task(stay.task).pid;
            self.names.lose(pid);
            self.names.becomes(pid, NameTaskState::Nothing);
        }
        tracker.touched().for_each(|cpu| self.see_cpu(cpu, tracker));
        if !matches!(change, TrackerChange::Switched { .. }) {
            self.show_up(tracker, &counts);
        }
        match change {
            TrackerChange::Switched { stay, left, entered, .. } => {
                if let Some((left, task)) = left.as_ref().and_then(|left| Some((left, of(left.task)?))) {
                    self.changes(task);
                    if stay.since.is_some() && !stay.after_hole {
                        self.names.ran(task.pid, stay.known());
                    }
                    self.left(left, task.pid);
                }
                if let Some((entered, task)) = entered.as_ref().and_then(|one| Some((one, of(one.task)?))) {
                    if let Some(wait) = &entered.wait {
                        self.waited(task.pid, wait);
                    }
                    self.changes(task);
                }
            }
            TrackerChange::Woken { task, lost_wait, seemed, .. } => {
                let Some(task) = of(*task) else { return };
                if *lost_wait {
                    self.names.lose(task.pid);
                }
                if let Some((_, left)) = seemed {
                    self.names.slept_after_all(task.pid, *left);
                }
                self.changes(task);
            }
            TrackerChange::Queued { task, .. } => of(*task).into_iter().for_each(|task| self.changes(task)),
            TrackerChange::Moved { task, from, to, .. } => {
                let Some(task) = of(*task) else { return };
                if from != to {
                    self.names.moved(task.pid, *from, *to);
                }
                self.changes(task);
            }
            TrackerChange::Lost => self.names.lose_waits(),
            TrackerChange::None => {}
        }
    }

    /// Tasks may turn out to run where others were thought to: what they did before is unknown.
    fn show_up(&mut self, tracker: &Tracker, counts: impl Fn(&TrackedTask) -> bool) {
        for cpu in tracker.touched() {
            let running = tracker.cpu(cpu).and_then(|state| state.running).map(|task| tracker.task(task));
            if let Some(task) = running.filter(|task| counts(task)) {
                self.names.shows_up(task.pid, cpu);
            }
        }
    }

    fn see_cpu(&mut self, cpu: Cpu, tracker: &Tracker) {
        let runs = tracker.cpu(cpu).filter(|state| state.known).map(|state| state.running);
        self.names.cpu_runs(cpu, runs.map(|task| task.map_or(Pid::IDLE, |task| tracker.task(task).pid)));
    }

    /// A task does something else.
    fn changes(&mut self, task: &TrackedTask) {
        let does = match task.doing {
            TrackedTaskPhase::Unknown | TrackedTaskPhase::Sleeping | TrackedTaskPhase::Gone => {
                NameTaskState::Nothing
            }
            TrackedTaskPhase::Waking | TrackedTaskPhase::Waiting(_) => NameTaskState::Waits,
            TrackedTaskPhase::Running(cpu) => NameTaskState::Runs(cpu),
        };
        self.names.becomes(task.pid, does);
    }

    fn waited(&mut self, pid: Pid, ended: &EndedWait) {
        // When it began, or what it was, is not in the trace.
        if ended.crossed_loss {
            return self.names.lose(pid);
        }
        if ended.wait.is_measured {
            let kind = match ended.wait.cause {
                WaitCause::Wakeup => FinishedWait::Wakeup,
                WaitCause::New => FinishedWait::Fork,
                _ => FinishedWait::Preemption,
            };
            self.names.waited(pid, kind, ended.length, ended.throttled);
        }
    }

    fn left(&mut self, left: &LeftCpu, pid: Pid) {
        if left.lost_wait {
            self.names.lose(pid);
        }
        match left.how {
            Departure::Exited => self.names.ended(pid),
            _ if left.is_involuntary() => self.names.left_runnable(pid),
            _ => {}
        }
    }

    /// What was counted by `end`.
    pub(crate) fn finish(self, end: Ns, tracker: &Tracker) -> BTreeMap<TaskSelector, NameCounts> {
        let throttling = tracker.throttling();
        let (now, is_known) = (throttling.paths_until(end), throttling.is_known());
        let observed = end.since(self.start);
        let throttled = |path: &str| {
            let of = |times: &BTreeMap<String, ThrottledTime>| times.get(path).copied().unwrap_or_default();
            let (now, before) = (of(&now), of(&self.throttled_before));
            is_known.then(|| GroupThrottled {
                throttled_ns: now.each_cpu.since(before.each_cpu).0,
                some_cpu_ns: Some(now.some_cpu.since(before.some_cpu).0),
                quota_ns: now.quota_in(observed).map(|quota| quota.0),
            })
        };
        self.names.into_counts(end, &throttled)
    }
}
