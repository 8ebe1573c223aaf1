//! CFS's time slices: an entity's share of a period in which each entity runs once.

use crate::all_cpus::Shared;
use crate::entity::{CfsRqId, SeId};
use crate::generation::{Feature, Tunable};

impl Shared {
    /// An entity's slice, ns of run time.
    ///
    /// Kernel: `sched_slice()`, `__sched_period()`, kernel/sched/fair.c; `ALT_PERIOD` and `BASE_SLICE` from v5.13
    /// (0c2de3f054a5); idle entities beside others get `idle_min_granularity` at least from v5.16 (51ce83ed523b).
    pub(crate) fn sched_slice(&self, cfs_rq: CfsRqId, se: SeId) -> u64 {
        let queue = self.cfs(cfs_rq);
        let counted = match self.has(Feature::AltPeriod) {
            true => self.cfs(CfsRqId::root(queue.cpu)).h_nr_running,
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
        let less = self.generation.tunables.has(Tunable::IdleMinGranularity);
        let beside_others = less && self.is_idle_policy(se) && !self.holds_only_idle(cfs_rq);
        slice.max(if beside_others { self.sysctl.idle_min_granularity } else { self.sysctl.min_granularity })
    }

    /// Whether all entities of a queue, and at least one, are idle (`sched_idle_cfs_rq()`).
    fn holds_only_idle(&self, cfs_rq: CfsRqId) -> bool {
        let waiting = self.cfs(cfs_rq).timeline.iter().map(|entry| entry.se);
        let mut all = waiting.chain(self.running_entity(cfs_rq)).peekable();
        all.peek().is_some() && all.all(|se| self.is_idle_policy(se))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::ablation::AblationSituation;
    use crate::testbed::SchedulerTestbed;

    /// The slice of one of 12 equal tasks on two CPUs where 24 ms instead of 12 have been written for the latency.
    fn slice_of_twelve(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(&format!("{kernel},latency_ns=24000000"), 2, 1);
        let tasks = (0..12).map(|_| bed.spawn(0, 0)).collect::<Vec<_>>();
        let se = bed.scheduler.shared.tasks[tasks[0].index()].se;
        bed.scheduler.shared.sched_slice(bed.scheduler.se(se).cfs_rq, se)
    }

    /// 16 tasks of 1.5 ms fit into 24 ms, and 8 into 12.
    #[test]
    fn a_written_latency_is_for_as_many_tasks_as_before_it_or_as_fit_into_it() {
        assert_eq!(slice_of_twelve("debian-5.10") / 1000, 1_999);
        assert_eq!(slice_of_twelve("debian-6.1"), 1_500_000);
    }

    pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[("tunables-in-debugfs", slice_of_twelve)];
}
