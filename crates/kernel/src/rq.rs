//! One CPU's runqueue (`struct rq`).

use fairlab_event::{Cpu, Ns};

use crate::all_cpus::Shared;
use crate::cfs_rq::CfsRq;
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair_server::state::FairServer;
use crate::generation::Feature;
use crate::pelt::RqClock;
use crate::process::CpuEpoch;
use crate::rt::RtTime;
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
    pub cpu: Cpu,
    /// Queued tasks of all classes.
    pub nr_running: u32,
    /// The root `cfs_rq`.
    pub cfs: CfsRqId,
    /// Wakeups on their way here through the wake list (`ttwu_pending`).
    pub ttwu_pending: u32,
    /// The switch to come goes by the clock as it is (`RQCF_REQ_SKIP`).
    pub skips_clock_update: bool,
    /// A switch has begun that does, and nobody sets the clock (`RQCF_ACT_SKIP`).
    pub clock_stands: bool,
    /// Queued tasks of the stop class, oldest first.
    pub stop: Vec<TaskId>,
    /// Queued tasks of the deadline class, oldest first.
    pub dl: Vec<TaskId>,
    pub cfs_tasks: TaskList,
    pub fair_server: FairServer,
    /// When the timer expires that ends the running slice, if it runs.
    pub hrtick: Option<Ns>,
    /// When the timer was last asked to expire (`hrtick_time`).
    pub hrtick_time: Ns,
    /// An interrupt is on its way here that starts the timer (`hrtick_csd`).
    pub hrtick_called: bool,
    /// The pick that is under way follows no search for work, since something fair is queued, if only asleep; or one in vain.
    pub newidle_skipped: bool,
    /// A task that left has left nothing but `SCHED_IDLE` behind: the next balance is due.
    pub balances_early: bool,
    pub idle_time: IdleTime,
    /// The CPU's capacity when nothing but fair tasks uses it.
    pub cpu_capacity_orig: u64,
    /// For `/proc/schedstat`.
    pub counters: RqCounters,
    /// How long the CPU takes to leave the idle state that it is in, ns (`idle_state->exit_latency`); where states are known.
    pub exit_latency: Option<u64>,
    /// Queues whose averages are aged while nothing runs on them, children first (`leaf_cfs_rq_list`).
    pub leaf_cfs_rqs: Vec<CfsRqId>,
    /// The last one of a branch of that list that has not reached the tree yet (`tmp_alone_branch`).
    pub tmp_alone_branch: Option<CfsRqId>,
    /// Groups' queues that this CPU has been called to unthrottle.
    pub unthrottle: Vec<CfsRqId>,
    /// Groups' entities that are asleep on its queues.
    pub nr_delayed_groups: u32,
    /// What real-time tasks have used of late, to v4.18.
    pub rt_time: RtTime,
    /// The CPU that work here last chose out of a mask (`distribute_cpu_mask_prev`).
    pub last_distributed: Cpu,
    /// Run time of late of all processes whose threads may gather.
    pub cache_epoch: CpuEpoch,
    /// Queued tasks by the last-level cache that they prefer (`sd->llc_counts` of the lowest domain); empty where none can be.
    pub llc_counts: Vec<u32>,
    /// Runnable tasks that stand under the one that they prefer.
    pub nr_pref_llc_running: u32,
}

impl Rq {
    pub fn new(cpu: Cpu, cpu_capacity_orig: u64, idle_time: IdleTime) -> Rq {
        Rq {
            clock: Ns::ZERO,
            skips_clock_update: false,
            clock_stands: false,
            pelt: RqClock::default(),
            nr_running: 0,
            cpu,
            cpu_capacity_orig,
            cfs: CfsRqId::root(cpu),
            stop: Vec::new(),
            dl: Vec::new(),
            rt_time: RtTime::default(),
            last_distributed: Cpu(0),
            cache_epoch: CpuEpoch::default(),
            llc_counts: Vec::new(),
            nr_pref_llc_running: 0,
            ttwu_pending: 0,
            cfs_tasks: TaskList::default(),
            fair_server: FairServer::default(),
            leaf_cfs_rqs: Vec::new(),
            tmp_alone_branch: None,
            counters: RqCounters::default(),
            idle_time,
            exit_latency: None,
            nr_delayed_groups: 0,
            hrtick: None,
            hrtick_time: Ns::ZERO,
            hrtick_called: false,
            newidle_skipped: false,
            balances_early: false,
            unthrottle: Vec::new(),
        }
    }
}

/// One CPU's runqueue under its lock, and what all CPUs share: no more than this is in reach of work on a queue.
pub(crate) struct LockedRq<'s> {
    pub rq: &'s mut Rq,
    pub shared: &'s mut Shared,
}

impl LockedRq<'_> {
    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.shared.has(feature)
    }

    pub(crate) fn entity_of(&self, task: TaskId) -> &SchedEntity {
        self.shared.entity_of(task)
    }

    pub(crate) fn se(&self, se: SeId) -> &SchedEntity {
        self.shared.se(se)
    }

    pub(crate) fn se_mut(&mut self, se: SeId) -> &mut SchedEntity {
        self.shared.se_mut(se)
    }

    /// An entity and a queue, to change both.
    #[inline(always)]
    pub(crate) fn entity_and_queue(&mut self, se: SeId, cfs_rq: CfsRqId) -> (&mut SchedEntity, &mut CfsRq) {
        self.shared.entity_and_queue(se, cfs_rq)
    }

    /// A queue of this CPU.
    pub(crate) fn cfs(&self, cfs_rq: CfsRqId) -> &CfsRq {
        let queue = self.shared.cfs(cfs_rq);
        debug_assert_eq!(queue.cpu, self.rq.cpu, "another CPU's queue is not locked");
        queue
    }

    /// A queue of this CPU, to change it.
    pub(crate) fn cfs_mut(&mut self, cfs_rq: CfsRqId) -> &mut CfsRq {
        debug_assert_eq!(self.shared.cfs(cfs_rq).cpu, self.rq.cpu, "another CPU's queue is not locked");
        self.shared.cfs_mut(cfs_rq)
    }
}

/// Why a task is put on a queue (`ENQUEUE_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnqueueFlags {
    /// From sleep (`ENQUEUE_WAKEUP`).
    pub wakeup: bool,
    /// From sleep, on another CPU than before (`ENQUEUE_MIGRATED`).
    pub migrated: bool,
    /// Placed for the first time (`ENQUEUE_INITIAL`).
    pub initial: bool,
}

/// Why a task is taken off a queue (`DEQUEUE_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DequeueFlags {
    /// It goes to sleep (`DEQUEUE_SLEEP`).
    pub sleep: bool,
    /// It comes back to this queue at once (`DEQUEUE_SAVE` without `DEQUEUE_MOVE`).
    pub save: bool,
    /// It sleeps in a way that must not be put off (`DEQUEUE_SPECIAL`).
    pub special: bool,
    /// It slept already and leaves now (`DEQUEUE_DELAYED`).
    pub delayed: bool,
    /// It moves to another CPU (`task_on_rq_migrating()`).
    pub migrating: bool,
    /// Its group is throttled (`DEQUEUE_THROTTLE`).
    pub throttle: bool,
}

/// What became of an entity that was to leave its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DequeueOutcome {
    /// It sleeps there until its lag has burnt off.
    Delayed,
    /// It is gone, and so it is from the root queue's count.
    Counted,
    /// It is gone from below a throttled group, or was not on its queue: the root queue did not count it.
    Uncounted,
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
