//! Who counts as `SCHED_IDLE`: idle tasks, and all of an idle group.
//!
//! Must not know: what follows from that.

use crate::all_cpus::Shared;
use crate::entity::{CfsRqId, SeId};
use crate::task::Policy;

impl Shared {
    /// Whether an entity is a `SCHED_IDLE` task's or an idle group's (`se_is_idle()`).
    #[inline]
    pub(crate) fn is_idle_policy(&self, se: SeId) -> bool {
        self.idle_policy_used && self.has_idle_policy(se)
    }

    pub(crate) fn has_idle_policy(&self, se: SeId) -> bool {
        match (self.se(se).task, self.se(se).my_q) {
            (Some(task), _) => self.tasks[task.index()].policy == Policy::Idle,
            (None, Some(below)) => self.groups[self.cfs(below).group.0 as usize].idle,
            (None, None) => false,
        }
    }

    /// Whether what is on a queue counts as `SCHED_IDLE` above it (`cfs_rq_is_idle()`).
    pub(crate) fn counts_as_idle(&self, cfs_rq: CfsRqId) -> bool {
        self.idle_policy_used && self.groups[self.cfs(cfs_rq).group.0 as usize].idle
    }
}
