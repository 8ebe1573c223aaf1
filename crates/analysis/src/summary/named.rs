//! Sums of tasks by name and by control group, and where they ran.
//!
//! The tracker reports their changes. Must not know: how it is printed.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Event, Ns, Pid, System};

use crate::by_name::{ByName, Does, NamesWanted, Places, Waited};
use crate::counts::NameCounts;
use crate::tracker::{CPUS_MAX, Departure, Doing, EndedWait, Left, Tracker};
use crate::who::{NameKind, Who};

/// Counts by name what a tracker finds.
#[derive(Clone, Debug)]
pub(super) struct Named {
    names: ByName,
    /// For how long each group was throttled before counting began, by its path.
    throttled_before: BTreeMap<String, Ns>,
}

impl Named {
    /// Counts from `start` on: of these, or of all tasks by name and all groups where there are none. What CPUs do is unknown then.
    pub(super) fn new(whose: &[Who], places: Option<&Places>, system: &System, start: Ns) -> Named {
        let kinds = if whose.is_empty() { vec![NameKind::Task, NameKind::Group] } else { Vec::new() };
        let wanted = NamesWanted { kinds, asked: whose.to_vec(), ..NamesWanted::default() };
        let mut names = ByName::new(wanted, places.cloned(), start);
        names.system(system);
        let cpus = places.map_or(0, Places::cpus).min(CPUS_MAX);
        (0..cpus).for_each(|cpu| names.cpu_runs(Cpu(cpu as u32), None));
        Named { names, throttled_before: BTreeMap::new() }
    }

    pub(super) fn hear(&mut self, event: &Event<'_>) {
        self.names.hear(event);
    }

    pub(super) fn allowed(&mut self, pid: Pid, mask: Option<u32>) {
        self.names.allowed(pid, mask);
    }

    /// What was before does not count.
    pub(super) fn begin(&mut self, now: Ns, tracker: &Tracker) {
        self.names.begin(now);
        self.throttled_before = tracker.throttling().paths_until(now);
    }

    /// Takes the running tasks of CPUs that an event touched, and tasks that were lost sight of.
    pub(super) fn see(&mut self, tracker: &Tracker) {
        for stay in tracker.vanished() {
            let pid = tracker.task(stay.task).pid;
            self.names.lose(pid);
            self.names.becomes(pid, Does::Nothing);
        }
        for cpu in tracker.touched() {
            let Some(state) = tracker.cpu(cpu) else { continue };
            let runs = state.running.map_or(Pid::IDLE, |task| tracker.task(task).pid);
            self.names.cpu_runs(cpu, state.known.then_some(runs));
        }
    }

    /// A task does something else.
    pub(super) fn changes(&mut self, task: u32, tracker: &Tracker) {
        let task = tracker.task(task);
        let does = match task.doing {
            Doing::Unknown | Doing::Sleeping | Doing::Gone => Does::Nothing,
            Doing::Waking | Doing::Waiting(_) => Does::Waits,
            Doing::Running(cpu) => Does::Runs(cpu),
        };
        self.names.becomes(task.pid, does);
    }

    /// When a task's wait began, or what it was, is not in the trace.
    pub(super) fn lose(&mut self, task: u32, tracker: &Tracker) {
        self.names.lose(tracker.task(task).pid);
    }

    pub(super) fn waited(&mut self, task: u32, ended: &EndedWait, tracker: &Tracker) {
        if ended.crossed_loss {
            return self.lose(task, tracker);
        }
        let is_preemption = ended.wait.cause.is_off_cpu_runnable();
        let length = |is_it: bool| is_it.then_some(ended.length);
        let waited = Waited {
            wakeup: length(!is_preemption),
            preemption: length(is_preemption),
            held: ended.throttled,
        };
        self.names.waited(tracker.task(task).pid, waited);
    }

    pub(super) fn left(&mut self, left: &Left, tracker: &Tracker) {
        let pid = tracker.task(left.task).pid;
        if left.lost_wait {
            self.names.lose(pid);
        }
        match left.how {
            Departure::Exited => self.names.ended(pid),
            Departure::Slept(_) => {}
            _ => self.names.left_runnable(pid),
        }
    }

    pub(super) fn moved(&mut self, task: u32, from: Cpu, to: Cpu, tracker: &Tracker) {
        self.names.moved(tracker.task(task).pid, from, to);
    }

    /// What was counted by `end`.
    pub(super) fn finish(self, end: Ns, tracker: &Tracker) -> BTreeMap<Who, NameCounts> {
        let throttling = tracker.throttling();
        let (now, is_told) = (throttling.paths_until(end), throttling.tells());
        let time = |path: &str| {
            let of = |times: &BTreeMap<String, Ns>| times.get(path).copied().unwrap_or_default();
            is_told.then(|| of(&now).since(of(&self.throttled_before)))
        };
        self.names.into_counts(end, &time)
    }
}
