//! How a group's weight is shared out among its queues.
//!
//! Must not know: what a new weight leads to.

use crate::all_cpus::Shared;
use crate::cfs_rq::CfsRq;
use crate::fair::bandwidth::rules::ThrottledWeight;
use crate::fair::rules::EmptyGroup;
use crate::group::TaskGroup;
use crate::group::rules::SharedShares;
use crate::pelt::{GroupLoad, calc_group_shares};
use crate::weight::LoadWeight;

/// `tg->shares` of a cgroup v2 weight: 100 is nice 0 (`sched_weight_from_cgroup()`, rounded to the nearest).
pub(crate) fn shares_of_cgroup_weight(weight: u64) -> u64 {
    let scaled_down = (weight * 1024 + 50) / 100;
    LoadWeight::from_scaled_down(scaled_down.clamp(2, 1 << 18)).raw()
}

impl Shared {
    /// What the entity of `queue` is to weigh, scaled up; `None` where it keeps its weight.
    #[inline]
    pub(crate) fn shares_now(&self, queue: &CfsRq) -> Option<u64> {
        self.shares_of(queue, self.group_load(queue))
    }

    /// The same, where what it is computed from is known.
    #[inline(always)]
    pub(crate) fn shares_of(&self, queue: &CfsRq, load: GroupLoad) -> Option<u64> {
        let throttled = self.bandwidth_used
            && self.generation.bandwidth.throttled_weight == ThrottledWeight::Kept
            && queue.runtime.throttle_count > 0;
        let keeps =
            throttled || (load.weight == 0 && self.generation.fair.empty_group == EmptyGroup::KeepsWeight);
        (!keeps).then(|| calc_group_shares(load) as u64)
    }

    /// How many times its shares a group's queues share.
    ///
    /// Kernel: `calc_concur_shares()`, `tg_tasks()`, `tg_cpus()`, kernel/sched/fair.c (5c0b58bd1c9f, by default from fb1050ac8e40);
    /// `cpuset_num_cpus()`, kernel/cgroup/cpuset.c. Tasks that are bound to fewer CPUs than their group by their own masks count for
    /// all of the group's.
    /// Departs: `cgroup_mode` is what it is by default.
    pub(crate) fn concurrency(&self, group: &TaskGroup) -> i64 {
        match self.generation.groups.shared_shares {
            SharedShares::Group => 1,
            SharedShares::Concurrent => {
                let (tasks, cpus) = (group.runnable_avg >> 10, group.nr_cpus as i64);
                tasks.max(1).min(cpus.max(1))
            }
        }
    }

    /// What the weight of a group's entity is computed from; `queue` is the one that it stands for.
    pub(crate) fn group_load(&self, queue: &CfsRq) -> GroupLoad {
        let group = &self.groups[queue.group.0 as usize];
        GroupLoad {
            tg_shares: group.shares as i64 * self.concurrency(group),
            tg_load_avg: group.load_avg,
            tg_load_avg_contrib: queue.tracked.tg_load_avg_contrib as i64,
            weight: queue.load.scaled_down() as i64,
            load_avg: queue.tracked.avg.load_avg as i64,
        }
    }
}
