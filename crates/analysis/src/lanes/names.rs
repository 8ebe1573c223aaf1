//! Tasks and sets of tasks with their courses.
//!
//! A task belongs to one set: its control group, if that is known and not the root. Else the set is the tasks whose names differ
//! from its own only in a number at the end.
//!
//! Must not know: CPUs' courses.

use std::collections::BTreeMap;

use fairlab_event::{Comm, Cpu, Event, Ns, Pid, Prio};

use super::course::LaneSeries;
use super::stretch::{LaneWait, LeaveReason};
use crate::task_selector::stem;
use crate::tracker::{TrackedTask, Tracker};

/// How the root is called where no path is known: its number is 1.
const ROOT: &str = "cgroup 1";

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneTask {
    /// Its id.
    pub pid: Pid,
    /// Its process, where the trace has it.
    pub tgid: Pid,
    /// Its last name.
    pub comm: Comm,
    /// Its last priority.
    pub prio: Prio,
    /// Its set, by number.
    pub set: u32,
    /// For how long it ran.
    pub ran: u64,
    /// For how long it waited in measured waits.
    pub waited: u64,
    /// What it did.
    pub course: LaneSeries,
    /// From when to when its group had used up its quota while it waited, in order.
    pub throttled: Vec<(Ns, Ns)>,
    /// When it exited.
    pub exited: Option<Ns>,
    /// How it left last.
    pub left: Option<LeaveReason>,
}

/// Tasks that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSet {
    /// A control group's path, or the name of the tasks.
    pub name: String,
    /// It is a control group.
    pub is_group: bool,
    /// What its tasks did.
    pub course: LaneSeries,
}

#[derive(Clone, Debug)]
struct TaskLife {
    tgid: Pid,
    set: Option<u32>,
    comm: Comm,
    group: Option<u32>,
    waited: Ns,
    blocked: Ns,
    ran_all: u64,
    waited_all: u64,
    course: LaneSeries,
    exited: Option<Ns>,
    left: Option<LeaveReason>,
}

/// All of them up to now.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneNames {
    lives: Vec<TaskLife>,
    sets: Vec<TaskSet>,
    numbers: BTreeMap<(bool, String), u32>,
    /// What came before does not count.
    start: Ns,
}

impl LaneNames {
    /// Everything counts from now on.
    pub(super) fn begin_at(&mut self, now: Ns) {
        self.start = now;
        for life in &mut self.lives {
            (life.waited, life.blocked) = (Ns::ZERO, Ns::ZERO);
            (life.ran_all, life.waited_all, life.course) = (0, 0, LaneSeries::default());
        }
        for set in &mut self.sets {
            set.course = LaneSeries::default();
        }
    }

    fn life(&mut self, task: u32) -> &mut TaskLife {
        let task = task as usize;
        if self.lives.len() <= task {
            self.lives.resize_with(task + 1, || TaskLife {
                tgid: Pid::UNKNOWN,
                set: None,
                comm: Comm::default(),
                group: None,
                waited: Ns::ZERO,
                blocked: Ns::ZERO,
                ran_all: 0,
                waited_all: 0,
                course: LaneSeries::default(),
                exited: None,
                left: None,
            });
        }
        &mut self.lives[task]
    }

    /// The task in whose context an event was reported.
    pub(super) fn process(&mut self, task: u32, event: &Event<'_>) {
        if event.context.tgid != Pid::UNKNOWN {
            self.life(task).tgid = event.context.tgid;
        }
    }

    pub(super) fn exits(&mut self, task: u32, time: Ns) {
        self.life(task).exited = Some(time);
    }

    pub(super) fn end(&mut self, task: u32, told: &TrackedTask, left: Option<LeaveReason>) {
        let life = self.life(task);
        (life.comm, life.left) = (told.comm, left);
    }

    /// A task comes on a CPU after a wait, and before that left in some way.
    pub(super) fn begins(
        &mut self,
        task: u32,
        now: Ns,
        wait: Option<&LaneWait>,
        left: Option<(LeaveReason, Ns)>,
    ) {
        let start = self.start;
        let life = self.life(task);
        let measured = wait.filter(|wait| !wait.crossed).map_or(Ns::ZERO, |wait| wait.length);
        life.waited = measured.min(now.since(start));
        life.waited_all += measured.0;
        let asleep_until = Ns(now.0.saturating_sub(wait.map_or(0, |wait| wait.length.0)));
        life.blocked = match left {
            Some((LeaveReason::Blocked, since)) => asleep_until.since(since.max(start)),
            _ => Ns::ZERO,
        };
    }

    /// A task's slice is over.
    pub(super) fn ran(
        &mut self,
        task: u32,
        told: &TrackedTask,
        tracker: &Tracker,
        cpu: Cpu,
        from: Ns,
        to: Ns,
    ) {
        let group = tracker.throttling().group_of(told.pid);
        let life = self.life(task);
        let (waited, blocked) = (std::mem::take(&mut life.waited), std::mem::take(&mut life.blocked));
        life.ran_all += to.since(from).0;
        life.course.run((from, to), cpu, waited, blocked);
        let is_known = life.set.is_some() && life.comm == told.comm && life.group == group;
        let set = match life.set {
            Some(set) if is_known => set,
            _ => self.set_of(task, told, tracker, group),
        };
        self.sets[set as usize].course.run((from, to), cpu, waited, blocked);
    }

    fn set_of(&mut self, task: u32, told: &TrackedTask, tracker: &Tracker, group: Option<u32>) -> u32 {
        let path = group.map(|group| tracker.throttling().name(group));
        let path = path.filter(|path| path.len() > 1 && path != ROOT);
        let is_group = path.is_some();
        let name = path.unwrap_or_else(|| stem(&told.comm.to_str()).to_string());
        let next = self.sets.len() as u32;
        let set = *self.numbers.entry((is_group, name.clone())).or_insert(next);
        if set == next {
            self.sets.push(TaskSet { name, is_group, course: LaneSeries::default() });
        }
        let life = self.life(task);
        (life.set, life.comm, life.group) = (Some(set), told.comm, group);
        set
    }

    /// Every task that the tracker knows, whether or not it ran.
    pub(super) fn finish(mut self, tracker: &Tracker) -> (Vec<LaneTask>, Vec<TaskSet>) {
        let mut tasks = Vec::new();
        for task in 0..tracker.task_count() {
            let told = tracker.task(task);
            let group = tracker.throttling().group_of(told.pid);
            let set = match self.life(task).set {
                Some(set) => set,
                None => self.set_of(task, told, tracker, group),
            };
            let life = std::mem::replace(self.life(task), LaneNames::default().life(0).clone());
            tasks.push(LaneTask {
                pid: told.pid,
                tgid: life.tgid,
                comm: told.comm,
                prio: told.prio,
                set,
                ran: life.ran_all,
                waited: life.waited_all,
                course: life.course,
                throttled: Vec::new(),
                exited: life.exited,
                left: life.left,
            });
        }
        (tasks, self.sets)
    }
}
