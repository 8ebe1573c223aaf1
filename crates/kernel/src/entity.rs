//! A schedulable entity: a task, or a group's share of one CPU (`struct sched_entity`).

use crate::ids::TaskId;
use crate::pelt::{EntityState, EntityWeight, RunnableLoad, SchedAvg};
use crate::vruntime::Vruntime;
use crate::weight::LoadWeight;

pub(crate) use crate::ids::{CfsRqId, SeId};

/// What competes on a [`CfsRq`](crate::cfs_rq::CfsRq).
///
/// What is used together stands together, in lines of 64 bytes: a machine's CPUs and tasks take turns in the first cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct SchedEntity {
    /// Its load tracking averages.
    pub avg: SchedAvg,
    /// Weight and its inverse.
    pub load: LoadWeight,
    /// What a task weighs where all of a CPU compete on one queue (`h_load`); set when it joins that, gets the CPU, and by ticks.
    pub line_load: LoadWeight,
    /// Open loop: its lag and its distance to its deadline are by the weight already that it is about to have there.
    pub scaled_before: bool,
    /// Weighted run time: a point on its queue's virtual time line. Between queues, while placement is relative to
    /// `min_vruntime`, a distance from it.
    pub vruntime: Vruntime,
    /// When its current request should be done (EEVDF).
    pub deadline: Vruntime,
    /// Up to when its run time is accounted, ns.
    pub exec_start: u64,
    /// All its run time, ns.
    pub sum_exec_runtime: u64,
    /// The queue on which it competes.
    pub cfs_rq: CfsRqId,
    /// Counted on its queue (running or waiting).
    pub on_rq: bool,
    /// Its request was set for it (`sched_setattr()`, or a group's by what is below it) and is kept.
    pub custom_slice: bool,
    /// Asleep, but still competing until its lag has burnt off.
    pub sched_delayed: bool,
    /// The entity of the group that it is in; `None` at the root.
    pub parent: Option<SeId>,
    /// The queue that it stands for, if it is a group's.
    pub my_q: Option<CfsRqId>,
    /// The task, if it is one's.
    pub task: Option<TaskId>,
    /// All its run time when it was last picked, ns.
    pub prev_sum_exec_runtime: u64,
    /// How far it was behind its queue's average when it left, virtual ns; positive means that it is owed time.
    pub vlag: i64,
    /// Its request, ns of run time.
    pub slice: u64,
    /// The largest request that it knew of when it last left the tree of a queue, ns, where such trees are kept.
    pub max_slice: u64,
    /// Its deadline when it was last picked; while it still stands, the pick is kept (`RUN_TO_PARITY`). The kernel keeps
    /// this in `vlag`, which is free while an entity runs.
    pub deadline_at_pick: Option<Vruntime>,
    /// Its distance to its deadline, virtual ns, while it is between two places on a queue (`rel_deadline`).
    pub relative_deadline: Option<i64>,
    /// Where on the time line its protection ends (`vprot`).
    pub protected_until: Vruntime,
    /// A group's: to v5.6 its runnable weight, scaled up; then how many runnable tasks it stands for.
    pub runnable_weight: u64,
    /// How many groups it is in.
    pub depth: u32,
}

impl SchedEntity {
    /// A task's entity that has never run.
    pub fn for_task(task: TaskId, load: LoadWeight, cfs_rq: CfsRqId) -> SchedEntity {
        SchedEntity {
            load,
            line_load: load,
            scaled_before: false,
            on_rq: false,
            vruntime: Vruntime(0),
            deadline: Vruntime(0),
            vlag: 0,
            slice: 0,
            max_slice: 0,
            custom_slice: false,
            relative_deadline: None,
            sched_delayed: false,
            deadline_at_pick: None,
            protected_until: Vruntime(0),
            exec_start: 0,
            avg: SchedAvg::default(),
            runnable_weight: 0,
            sum_exec_runtime: 0,
            prev_sum_exec_runtime: 0,
            parent: None,
            depth: 0,
            cfs_rq,
            my_q: None,
            task: Some(task),
        }
    }

    /// Its request, ns of run time: `base_slice` unless it has its own.
    #[inline]
    pub fn request(&self, base_slice: u64) -> u64 {
        if self.custom_slice { self.slice } else { base_slice }
    }

    /// The weights by which its averages are made.
    #[inline]
    pub fn tracked_weight(&self) -> EntityWeight {
        let weight = self.load.scaled_down();
        match self.task {
            Some(_) => EntityWeight::of_task(weight),
            None => {
                let runnable_weight = LoadWeight::from_raw(self.runnable_weight).scaled_down();
                EntityWeight { weight, runnable_weight }
            }
        }
    }

    /// What its averages are aged by; `running`: it is its queue's `curr`.
    #[inline(always)]
    pub fn tracked_state(&self, running: bool) -> EntityState {
        let runnable_tasks = match self.task {
            _ if self.sched_delayed => 0,
            Some(_) => u64::from(self.on_rq),
            None => self.runnable_weight,
        };
        EntityState { weight: self.tracked_weight(), on_rq: self.on_rq, runnable_tasks, running }
    }

    /// What it counts as runnable on its queue while runnability is load-weighted.
    #[inline(always)]
    pub fn runnable_load(&self) -> RunnableLoad {
        match self.task {
            Some(_) => RunnableLoad { weight: self.load.scaled_down(), scaled_up: self.load.raw() },
            None => group_runnable_load(self.runnable_weight),
        }
    }

    /// A group's entity on one CPU: it stands for the queue `below` on `cfs_rq`, under `parent`.
    pub fn for_group(below: CfsRqId, cfs_rq: CfsRqId, parent: Option<SeId>, depth: u32) -> SchedEntity {
        let load = LoadWeight::from_raw(LoadWeight::of_nice(0).raw());
        let entity = SchedEntity::for_task(TaskId(0), load, cfs_rq);
        SchedEntity { task: None, my_q: Some(below), parent, depth, ..entity }
    }
}

/// What a group with such a `se->runnable_weight` counts as runnable.
#[inline(always)]
pub(crate) fn group_runnable_load(runnable_weight: u64) -> RunnableLoad {
    RunnableLoad { weight: LoadWeight::from_raw(runnable_weight).scaled_down(), scaled_up: runnable_weight }
}
