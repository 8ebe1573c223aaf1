//! What an rt-app file says: threads, their phases, and the steps that each event is made of.
//!
//! Must not know: time, who runs.

use fairlab_event::Ns;
use fairlab_kernel::{CpuMask, Policy};

use crate::workload::cgroup::GroupSpec;

/// A mutex, a condition variable, a semaphore, a barrier or a timer, each numbered among its kind.
pub(super) type Resource = usize;

/// One step of a thread. Events that are more than one system call are several steps.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RtAppStep {
    /// Computes for this long at full speed, and however long that takes (`run`).
    Run(Ns),
    /// Computes for this long by the clock (`runtime`).
    RunFor(Ns),
    Sleep(Ns),
    /// Sleeps until a period after the last time; relative: after a miss it begins again.
    Timer {
        timer: Resource,
        period: Ns,
        relative: bool,
        /// One of each thread, not shared by those of the same name.
        unique: bool,
    },
    Lock(Resource),
    Unlock(Resource),
    /// Enters the list of a condition variable and unlocks the mutex.
    BeginWait(Resource, Resource),
    /// Sleeps until taken off the list.
    Block,
    Signal(Resource),
    Broadcast(Resource),
    /// The last one wakes the others and goes on; others wait, which is the three steps that follow.
    Arrive(Resource),
    /// Back from waiting at a barrier.
    Depart(Resource),
    SemPost(Resource),
    SemWait(Resource),
    Yield,
    /// Creates one more thread of the task with this number.
    Fork(usize),
}

/// Where a task goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskGroupPath {
    /// `/`.
    Root,
    /// One of the plan's.
    Below(usize),
}

/// What a thread asks the scheduler for at the start of a task or phase; `None`: nothing changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ThreadAttributes {
    pub policy: Option<Policy>,
    /// The nice level, for fair policies.
    pub nice: Option<i32>,
    /// A slice of its own.
    pub request: Option<Ns>,
    pub cpus: Option<CpuMask>,
    /// The task group that it enters, by its index among the plan's, or the root.
    pub group: Option<TaskGroupPath>,
}

/// A sequence of events that is repeated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RtAppPhase {
    /// How often; negative: for ever.
    pub repeat: i64,
    pub attributes: ThreadAttributes,
    pub steps: Vec<RtAppStep>,
}

/// A task of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RtAppTask {
    pub name: String,
    pub instances: u32,
    pub delay: Ns,
    /// How often all phases; negative: for ever.
    pub repeat: i64,
    pub attributes: ThreadAttributes,
    pub phases: Vec<RtAppPhase>,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RtAppPlan {
    /// When everything ends; `None`: when the threads do.
    pub duration: Option<Ns>,
    pub cumulative_slack: bool,
    pub tasks: Vec<RtAppTask>,
    pub mutexes: usize,
    pub conditions: usize,
    pub semaphores: usize,
    /// Per barrier: its mutex, its condition variable, and how many others must come before the last.
    pub barriers: Vec<RtAppBarrier>,
    pub timers: usize,
    /// Task groups by their paths, each behind the one that it is below.
    pub groups: Vec<GroupSpec>,
    /// What the file says and the model leaves out, one line each.
    pub left_out: Vec<String>,
    /// Tasks that end by a `loop` beside their events, without `phases`.
    pub looped_without_phases: Vec<String>,
}

/// A barrier, as rt-app makes it of a mutex and a condition variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RtAppBarrier {
    pub mutex: Resource,
    pub condition: Resource,
    pub others: u32,
}
