//! One CPU's runqueue (`struct rq`).

use fairlab_event::Ns;

use crate::entity::CfsRqId;
use crate::pelt::{RqClock, SchedAvg};
use crate::rt::{RtRq, RtTime};
use crate::schedstat::RqCounters;
use crate::select::IdleTime;
use crate::task::{Task, TaskId};

/// The state of one CPU.
///
/// What is used together stands together, in lines of 64 bytes: a machine's CPUs and tasks take turns in the first cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Rq {
    /// The time that this queue's accounting uses; set when the queue is locked (`update_rq_clock()`).
    pub clock: Ns,
    /// The clock of load tracking.
    pub pelt: RqClock,
    pub curr: TaskId,
    pub idle: TaskId,
    /// Queued tasks of all classes.
    pub nr_running: u32,
    /// The root `cfs_rq`.
    pub cfs: CfsRqId,
    /// Wakeups on their way here through the wake list (`ttwu_pending`).
    pub ttwu_pending: u32,
    /// `TIF_NEED_RESCHED` of `curr`.
    pub need_resched: bool,
    /// `TIF_NEED_RESCHED_LAZY` of `curr`.
    pub need_resched_lazy: bool,
    /// The switch to come goes by the clock as it is (`RQCF_REQ_SKIP`).
    pub skips_clock_update: bool,
    /// Queued tasks of the stop class, oldest first.
    pub stop: Vec<TaskId>,
    /// Queued tasks of the deadline class, oldest first.
    pub dl: Vec<TaskId>,
    pub cfs_tasks: TaskList,
    pub rt: RtRq,
    /// When the timer expires that ends the running slice, if it runs.
    pub hrtick: Option<Ns>,
    pub idle_time: IdleTime,
    /// How much of the CPU real-time tasks use.
    pub avg_rt: SchedAvg,
    /// The same of threads that set clocks.
    pub avg_dl: SchedAvg,
    /// For `/proc/schedstat`.
    pub counters: RqCounters,
    /// How long the CPU takes to leave the idle state that it is in, ns (`idle_state->exit_latency`); where states are told.
    pub exit_latency: Option<u64>,
    /// Queues whose averages are aged while nothing runs on them, children first (`leaf_cfs_rq_list`).
    pub leaf_cfs_rqs: Vec<CfsRqId>,
    /// Groups' queues that this CPU has been called to unthrottle.
    pub unthrottle: Vec<CfsRqId>,
    /// Groups' entities that are asleep on its queues.
    pub nr_delayed_groups: u32,
    /// What real-time tasks have used of late, to v4.18.
    pub rt_time: RtTime,
}

impl Rq {
    pub fn new(idle: TaskId, cfs: CfsRqId, idle_time: IdleTime) -> Rq {
        Rq {
            clock: Ns::ZERO,
            skips_clock_update: false,
            pelt: RqClock::default(),
            curr: idle,
            idle,
            nr_running: 0,
            need_resched: false,
            need_resched_lazy: false,
            cfs,
            stop: Vec::new(),
            dl: Vec::new(),
            rt: RtRq::default(),
            avg_rt: SchedAvg::default(),
            avg_dl: SchedAvg::default(),
            rt_time: RtTime::default(),
            ttwu_pending: 0,
            cfs_tasks: TaskList::default(),
            leaf_cfs_rqs: Vec::new(),
            counters: RqCounters::default(),
            idle_time,
            exit_latency: None,
            nr_delayed_groups: 0,
            hrtick: None,
            unthrottle: Vec::new(),
        }
    }
}

/// `rq::cfs_tasks`: the queued fair tasks, the most recently picked or queued first. Balancing takes from the tail.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskList {
    newest: Option<TaskId>,
    oldest: Option<TaskId>,
}

impl TaskList {
    pub fn push_newest(&mut self, tasks: &mut [Task], task: TaskId) {
        let next = self.newest;
        let unlisted = tasks[task.index()].newer.is_none() && self.newest != Some(task);
        // Twice on a list, and walking it would never end.
        assert!(unlisted, "a task is listed once");
        tasks[task.index()].newer = None;
        tasks[task.index()].older = next;
        match next {
            Some(next) => tasks[next.index()].newer = Some(task),
            None => self.oldest = Some(task),
        }
        self.newest = Some(task);
    }

    pub fn remove(&mut self, tasks: &mut [Task], task: TaskId) {
        let (newer, older) = (tasks[task.index()].newer, tasks[task.index()].older);
        match newer {
            Some(newer) => tasks[newer.index()].older = older,
            None => {
                assert_eq!(self.newest, Some(task), "a task that is listed leaves");
                self.newest = older;
            }
        }
        match older {
            Some(older) => tasks[older.index()].newer = newer,
            None => self.oldest = newer,
        }
        tasks[task.index()].newer = None;
        tasks[task.index()].older = None;
    }

    /// From the tail: the task that ran longest ago first.
    pub fn oldest_first(self, tasks: &[Task]) -> impl Iterator<Item = TaskId> {
        std::iter::successors(self.oldest, |task| tasks[task.index()].newer)
    }
}
