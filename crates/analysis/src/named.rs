//! Sums of tasks by name, by control group and by workload, and where they ran, as a tracker finds them.
//!
//! Must not know: how it is printed.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Event, Ns, Pid, System};

use crate::by_name::{ByName, Does, NamesWanted, Places, Waited};
use crate::counts::NameCounts;
use crate::tracker::{CPUS_MAX, Change, Departure, Doing, EndedWait, Left, Task, Tracker, WaitCause};
use crate::who::{NameKind, Who};

/// Counts by name what a tracker finds.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    names: ByName,
    /// For how long each group was throttled before counting began, by its path.
    throttled_before: BTreeMap<String, Ns>,
}

impl Named {
    /// Counts what is wanted from `start` on. What CPUs do then is what the tracker knows of it.
    pub(crate) fn new(wanted: NamesWanted, places: Option<Places>, tracker: &Tracker, start: Ns) -> Named {
        let cpus = places.as_ref().map_or(0, Places::cpus).min(CPUS_MAX);
        let mut named =
            Named { names: ByName::new(wanted, places, start), throttled_before: BTreeMap::new() };
        (0..cpus).for_each(|cpu| named.see_cpu(Cpu(cpu as u32), tracker));
        named
    }

    /// Counts from the first event on: of these, or of all tasks by name and all groups where there are none.
    pub(crate) fn of_recording(whose: &[Who], places: Option<&Places>, system: &System, start: Ns) -> Named {
        let kinds = if whose.is_empty() { vec![NameKind::Task, NameKind::Group] } else { Vec::new() };
        let wanted = NamesWanted { kinds, asked: whose.to_vec() };
        let mut named = Named::new(wanted, places.cloned(), &Tracker::default(), start);
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
    }

    /// Takes an event and what the tracker made of it. `counts`: whether anything is asked of a task.
    pub(crate) fn follow(
        &mut self,
        event: &Event<'_>,
        change: &Change,
        tracker: &Tracker,
        counts: impl Fn(&Task) -> bool,
    ) {
        let of = |task: u32| Some(tracker.task(task)).filter(|task| counts(task));
        self.names.hear(event);
        for stay in tracker.vanished() {
            let pid = tracker.task(stay.task).pid;
            self.names.lose(pid);
            self.names.becomes(pid, Does::Nothing);
        }
        tracker.touched().for_each(|cpu| self.see_cpu(cpu, tracker));
        if !matches!(change, Change::Switched { .. }) {
            self.show_up(tracker, &counts);
        }
        match change {
            Change::Switched { left, entered, .. } => {
                if let Some((left, task)) = left.as_ref().and_then(|left| Some((left, of(left.task)?))) {
                    self.changes(task);
                    self.left(left, task.pid);
                }
                if let Some((entered, task)) = entered.as_ref().and_then(|one| Some((one, of(one.task)?))) {
                    if let Some(wait) = &entered.wait {
                        self.waited(task.pid, wait);
                    }
                    self.changes(task);
                }
            }
            Change::Woken { task, lost_wait, seemed } => {
                let Some(task) = of(*task) else { return };
                if *lost_wait {
                    self.names.lose(task.pid);
                }
                if let Some((_, left)) = seemed {
                    self.names.slept_after_all(task.pid, *left);
                }
                self.changes(task);
            }
            Change::Queued { task, .. } => of(*task).into_iter().for_each(|task| self.changes(task)),
            Change::Moved { task, from, to, .. } => {
                let Some(task) = of(*task) else { return };
                if from != to {
                    self.names.moved(task.pid, *from, *to);
                }
                self.changes(task);
            }
            Change::Lost => self.names.lose_waits(),
            Change::None => {}
        }
    }

    /// Tasks may turn out to run where others were thought to: what they did before is unknown.
    fn show_up(&mut self, tracker: &Tracker, counts: impl Fn(&Task) -> bool) {
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
    fn changes(&mut self, task: &Task) {
        let does = match task.doing {
            Doing::Unknown | Doing::Sleeping | Doing::Gone => Does::Nothing,
            Doing::Waking | Doing::Waiting(_) => Does::Waits,
            Doing::Running(cpu) => Does::Runs(cpu),
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
                WaitCause::Wakeup => Waited::Wakeup,
                WaitCause::New => Waited::Fork,
                _ => Waited::Preemption,
            };
            self.names.waited(pid, kind, ended.length, ended.throttled);
        }
    }

    fn left(&mut self, left: &Left, pid: Pid) {
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
    pub(crate) fn finish(self, end: Ns, tracker: &Tracker) -> BTreeMap<Who, NameCounts> {
        let throttling = tracker.throttling();
        let (now, is_known) = (throttling.paths_until(end), throttling.is_known());
        let time = |path: &str| {
            let of = |times: &BTreeMap<String, Ns>| times.get(path).copied().unwrap_or_default();
            is_known.then(|| of(&now).since(of(&self.throttled_before)))
        };
        self.names.into_counts(end, &time)
    }
}
