//! One task group (`struct task_group`), as the scheduler keeps it.
//!
//! Must not know: what is done with groups.

use crate::entity::{CfsRqId, SeId};
use crate::fair::bandwidth::CfsBandwidth;
use crate::group::GroupId;
use crate::weight::LoadWeight;

/// One task group.
#[derive(Clone, Debug)]
pub(crate) struct TaskGroup {
    /// Weight of the whole group, scaled up (`tg->shares`).
    pub shares: u64,
    /// Everything in it counts as `SCHED_IDLE` (`cpu.idle`).
    pub idle: bool,
    /// It is a session's own (`tg->autogroup`).
    pub autogroup: bool,
    /// Sum of what its queues contribute, scaled down (`tg->load_avg`).
    pub load_avg: i64,
    /// Sum of what they tell of runnable tasks, 1024 for each that always is (`tg->runnable_avg`).
    pub runnable_avg: i64,
    /// Its queue on each CPU.
    pub cfs_rqs: Vec<CfsRqId>,
    /// Its entity on each CPU; none for the root.
    pub entities: Vec<SeId>,
    /// On how many CPUs its tasks may run (`cpuset_num_cpus()`).
    pub nr_cpus: usize,
    /// Groups right below it, the oldest first.
    pub children: Vec<GroupId>,
    /// What `cpu.max` allows it.
    pub pool: CfsBandwidth,
}

impl TaskGroup {
    /// The root group over the CPUs' own queues.
    pub fn root(nr_cpus: usize) -> TaskGroup {
        TaskGroup {
            shares: LoadWeight::of_nice(0).raw(),
            idle: false,
            autogroup: false,
            load_avg: 0,
            runnable_avg: 0,
            cfs_rqs: (0..nr_cpus as u32).map(CfsRqId).collect(),
            entities: Vec::new(),
            nr_cpus,
            children: Vec::new(),
            pool: CfsBandwidth::new(),
        }
    }
}
