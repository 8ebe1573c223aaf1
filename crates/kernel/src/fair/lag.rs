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

    /// Whether lag and the end of the protection stand in one field: who writes the one overwrites the other. To v6.19 (80390ead2080).
    fn lag_stands_with_protection(&self) -> bool {
        self.generation.fair.reweight_protection == ReweightProtection::Lost
    }

    /// Notes a lag. One that leaves its queue and comes back before its CPU has switched stays the running entity, and is not
    /// protected any more.
    pub(crate) fn note_lag(&mut self, se: SeId, lag: i64) {
        let together = self.lag_stands_with_protection();
        let entity = self.se_mut(se);
        entity.vlag = lag;
        if together {
            (entity.deadline_at_pick, entity.protected_until) = (None, Vruntime(lag as u64));
        }
    }

    /// Lets a protection end at `until` at the latest. Of one that has left its queue this cuts the lag: what its CPU pulls before
    /// it switches is tested against it.
    pub(crate) fn protect_at_most(&mut self, se: SeId, until: Vruntime) {
        let together = self.lag_stands_with_protection();
        let entity = self.se_mut(se);
        entity.protected_until = entity.protected_until.earliest(until);
        if together && !entity.on_rq {
            entity.vlag = entity.protected_until.0 as i64;
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

#[cfg(test)]
mod tests {
    use fairlab_event::{Cpu, Ns};

    use crate::group::GroupId;
    use crate::task::{Policy, TaskId};
    use crate::testbed::{MS, SchedulerTestbed};
    use crate::vruntime::Vruntime;

    /// A task of CPU 1 comes to CPU 0, where the last task has just left its queue and still is the running one.
    fn pulled_before_the_switch(bed: &mut SchedulerTestbed, task: TaskId) {
        bed.leave(0);
        bed.scheduler.detach_task(task, Cpu(0));
        bed.scheduler.attach_task(task);
    }

    #[test]
    fn a_group_that_comes_back_before_the_switch_keeps_its_protection_from_v7_0_on() {
        let lost = |kernel: &str| {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let group = bed.scheduler.new_group(GroupId::ROOT, 1024);
            bed.spawn_in(group, 0);
            bed.spawn_in(group, 1);
            let next = bed.spawn_in(group, 1);
            bed.pass(MS / 10);
            pulled_before_the_switch(&mut bed, next);
            let entity = bed.entity(next).parent.expect("its group's");
            assert!(bed.scheduler.cfs(bed.scheduler.rqs[0].cfs).curr == Some(entity), "{kernel}");
            let entity = bed.scheduler.se(entity);
            entity.protected_until == Vruntime(entity.vlag as u64)
        };
        assert_eq!(["v6.12", "v6.18", "v6.19", "v7.0"].map(lost), [true, true, true, false]);
    }

    #[test]
    fn who_has_left_loses_lag_to_a_shorter_request_from_v6_17_to_v6_19() {
        let lag = |kernel: &str| {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let leaves = bed.spawn(0, 0);
            bed.spawn(0, 1);
            let short = bed.spawn(0, 1);
            bed.scheduler.set_scheduler(short, Policy::Normal, 0, Some(Ns(MS / 10)));
            bed.pass(MS / 10);
            pulled_before_the_switch(&mut bed, short);
            bed.entity(leaves).vlag
        };
        let kernels = ["v6.16", "v6.17", "v6.19", "v7.0"];
        assert_eq!(kernels.map(|kernel| lag(kernel) < 0), [false, true, true, false]);
    }
}
