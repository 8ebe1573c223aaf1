//! CFS's time slices: an entity's share of a period in which each entity runs once.

use crate::core::Scheduler;
use crate::entity::{CfsRqId, SeId};
use crate::generation::Feature;

impl Scheduler {
    /// An entity's slice, ns of run time.
    ///
    /// Kernel: `sched_slice()`, `__sched_period()`, kernel/sched/fair.c; `ALT_PERIOD` and `BASE_SLICE` from v5.13
    /// (0c2de3f054a5).
    pub(crate) fn sched_slice(&self, cfs_rq: CfsRqId, se: SeId) -> u64 {
        let queue = self.cfs(cfs_rq);
        let counted = match self.has(Feature::AltPeriod) {
            true => self.cfs(self.rqs[queue.cpu.index()].cfs).h_nr_running,
            false => queue.nr_running,
        };
        let tasks = u64::from(counted) + u64::from(!self.se(se).on_rq);
        let mut slice = match tasks > self.sysctl.nr_latency {
            true => tasks * self.sysctl.min_granularity,
            false => self.sysctl.latency,
        };
        let mut level = Some(se);
        while let Some(se) = level {
            let entity = self.se(se);
            let mut load = self.cfs(entity.cfs_rq).load;
            if !entity.on_rq {
                load.add(entity.load);
            }
            slice = entity.load.share_of(slice, load);
            level = entity.parent;
        }
        if !self.has(Feature::BaseSlice) {
            return slice;
        }
        let beside_others = self.is_idle_policy(se) && !self.sched_idle_cpu(queue.cpu);
        slice.max(if beside_others { self.sysctl.idle_min_granularity } else { self.sysctl.min_granularity })
    }
}
