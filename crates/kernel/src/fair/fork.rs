//! A new task is placed on its parent's queue.
//!
//! Must not know: where it is queued first.

use crate::fair::rules::ForkPlacement;
use crate::rq::{EnqueueFlags, LockedRq};
use crate::task::TaskId;

impl LockedRq<'_> {
    /// A new task is placed on its parent's queue; where it is queued first may be another.
    ///
    /// Kernel: `task_fork_fair()`, kernel/sched/fair.c. With lag placement the result lasts only until the child is
    /// queued, which places it again with a whole request.
    /// Departs: `sched_child_runs_first` (off by default) is not modelled.
    pub(crate) fn task_fork_fair(&mut self, child: TaskId) {
        if self.shared.generation.fair.fork_placement == ForkPlacement::WhereQueued {
            return;
        }
        self.update_rq_clock();
        let se = self.shared.tasks[child.index()].se;
        // The parent's, also where the child is born into another group (CLONE_INTO_CGROUP).
        let parent = self.shared.curr(self.rq.cpu);
        let cfs_rq = self.se(self.shared.tasks[parent.index()].se).cfs_rq;
        self.update_curr(cfs_rq);
        if let Some(curr) = self.cfs(cfs_rq).curr {
            let vruntime = self.se(curr).vruntime;
            self.se_mut(se).vruntime = vruntime;
        }
        self.place_entity(cfs_rq, se, EnqueueFlags { initial: true, ..EnqueueFlags::default() });
        if self.shared.vruntime_is_relative_off_queue() {
            self.shared.make_relative(cfs_rq, se);
        }
    }
}
