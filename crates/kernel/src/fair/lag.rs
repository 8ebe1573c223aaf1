//! Lag: what an entity that leaves is owed, and how much of that it may keep.
//!
//! Must not know: why it leaves.

use crate::all_cpus::Shared;
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::{LagLimit, ReweightProtection};
use crate::generation::Feature;
use crate::task::TaskId;
use crate::vruntime::Vruntime;

impl Shared {
    /// Notes how far an entity is from its queue's average as it leaves, so that it can be placed alike later.
    ///
    /// Kernel: `update_entity_lag()`, kernel/sched/fair.c. Units: virtual ns, positive when it is owed time, within
    /// two requests or one tick.
    pub(crate) fn update_entity_lag(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let average = self.average_vruntime(cfs_rq);
        let limit = self.lag_limit(cfs_rq, se);
        let never_worse = self.generation.fair.delayed_lag.is_noted();
        let drops_credit = self.has(Feature::DelayZero);
        let entity = self.se(se);
        let mut lag = average.minus(entity.vruntime).clamp(-limit, limit);
        if entity.sched_delayed && never_worse {
            lag = lag.max(entity.vlag);
            lag = if drops_credit { lag.min(0) } else { lag };
        }
        self.note_lag(se, lag);
    }

    /// Writes an entity's lag where the kernel does: up to v6.19 over what protects it while it runs. An entity that is dequeued and
    /// queued again before its CPU has switched runs on so.
    pub(crate) fn note_lag(&mut self, se: SeId, lag: i64) {
        let in_one_field = self.generation.fair.reweight_protection == ReweightProtection::Lost;
        let entity = self.se_mut(se);
        entity.vlag = lag;
        if in_one_field {
            (entity.deadline_at_pick, entity.protected_until) = (None, Vruntime(lag as u64));
        }
    }

    /// How much lag an entity may carry, virtual ns.
    pub(crate) fn lag_limit(&self, cfs_rq: CfsRqId, se: SeId) -> i64 {
        let entity = self.se(se);
        let run_time = match self.generation.fair.lag_limit {
            LagLimit::None => return i64::MAX,
            LagLimit::TwoRequests => self.sysctl.tick.max(2 * entity.slice),
            LagLimit::LargestRequest => self.largest_request(cfs_rq, se) + self.sysctl.tick,
        };
        self.virtual_time_of(se, run_time) as i64
    }

    /// A waking task leaves the queue that it slept on: its vruntime becomes relative to that queue's minimum of *now*.
    ///
    /// Kernel: `migrate_task_rq_fair()` to v6.5. The kernel reads the minimum without the queue's lock.
    pub(crate) fn leave_queue_while_waking(&mut self, task: TaskId) {
        if self.tasks[task.index()].policy.is_fair() && self.vruntime_is_relative_off_queue() {
            let se = self.tasks[task.index()].se;
            self.make_relative(self.se(se).cfs_rq, se);
        }
    }

    /// Notes how far an entity is from its deadline, for where it is placed next.
    pub(crate) fn keep_distance_to_deadline(&mut self, se: SeId) {
        let entity = self.se_mut(se);
        entity.relative_deadline = Some(entity.deadline.minus(entity.vruntime));
    }
}
