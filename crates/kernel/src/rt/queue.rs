//! A CPU's real-time tasks, and the time that they may use.
//!
//! Must not know: who runs, and the timer.

use crate::ids::TaskId;
use crate::task::Task;

/// The queued real-time tasks of one CPU, the most urgent first; among equals the one that came first is first. The
/// running one stands on it too.
#[derive(Clone, Debug, Default)]
pub(crate) struct RtRq {
    pub(crate) queue: Vec<TaskId>,
    /// How long they may run, and have.
    pub(crate) limit: RtRuntime,
}

impl RtRq {
    /// The most urgent one; none while they have run for too long.
    pub fn first(&self) -> Option<TaskId> {
        self.queue.first().copied().filter(|_| !self.limit.throttled)
    }

    /// Number of tasks that count as running.
    pub fn len(&self) -> usize {
        if self.limit.throttled { 0 } else { self.queue.len() }
    }

    /// Number of queued tasks.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Whether they have run for too long.
    pub fn is_throttled(&self) -> bool {
        self.limit.throttled
    }

    pub(crate) fn insert(&mut self, tasks: &[Task], task: TaskId) {
        let (pid, prio) = (tasks[task.index()].pid, tasks[task.index()].prio());
        debug_assert!(!self.queue.contains(&task), "task {pid} is queued twice among the real-time ones");
        let at = self.queue.partition_point(|other| tasks[other.index()].prio() <= prio);
        self.queue.insert(at, task);
    }

    pub(crate) fn remove(&mut self, task: TaskId) {
        self.queue.retain(|&queued| queued != task);
    }
}

/// `sched_rt_runtime_us`, in ns.
pub(crate) const RUNTIME: u64 = 950_000_000;

/// What one CPU's real-time tasks have run in this period (fields of `struct rt_rq`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RtRuntime {
    /// Run time that counts, ns.
    pub(crate) time: u64,
    /// What they may run a period, ns: more than their own if others lend.
    pub(crate) runtime: u64,
    /// They have run for too long.
    pub throttled: bool,
}

impl Default for RtRuntime {
    fn default() -> RtRuntime {
        RtRuntime { time: 0, runtime: RUNTIME, throttled: false }
    }
}

/// The period of all CPUs' limits (`struct rt_bandwidth`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RtPeriod {
    pub(crate) active: bool,
    pub expires: u64,
}
