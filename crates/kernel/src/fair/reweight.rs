//! Changing the weight of an entity: a task's by its nice level, a group's all the time.

use fairlab_event::probes::ProbePoint;

use crate::entity::SeId;
use crate::fair::rules::Reweight;
use crate::fair::scaling::WeightRatio;
use crate::group::{ReweightCharge, ReweightMinimum};
use crate::rq::{EnqueueFlags, LockedRq};
use crate::weight::LoadWeight;

impl LockedRq<'_> {
    /// Gives an entity another weight, on its queue or off it.
    ///
    /// Kernel: `reweight_entity()`, kernel/sched/fair.c. Variants: `KeepVruntime` to v6.5; `ScaleDeadline` in v6.6.0 to
    /// v6.6.2; `ScaleAroundOthers` from eab03c23c2a1; `ScaleAroundAverage` from afae8002b4fd, where the queue is charged
    /// from 11b1b8bc2b98 and lag is limited from 1560d1f6eb6b; `PlaceAnew` from 6d71a9c61604; `ScaleAllAroundAverage` from
    /// 101f3498b4bd.
    /// What is left of a running entity's protection: lost up to v6.19, where the lag is noted in its field; scaled from
    /// ff38424030f9.
    /// Units: lag and deadlines in virtual ns, quotients truncated towards zero.
    pub(crate) fn reweight_entity(&mut self, se: SeId, load: LoadWeight) {
        debug_assert!(load.raw() > 0, "entity {} is given no weight", se.0);
        self.probe_reweight(se, load.raw());
        let keeps_place = self.shared.generation.fair.reweight == Reweight::KeepVruntime;
        match keeps_place && self.se(se).load.raw() == load.raw() {
            true => self.round_averages_anew(se),
            false => self.change_entity_weight(se, load),
        }
        self.shared.probe_return(ProbePoint::ReweightEntityReturn, "reweight_entity", se);
    }

    /// The same with the weight that the entity has: nothing moves, but it is charged and its averages are rounded.
    #[inline(never)]
    pub(crate) fn keep_weight_of_entity(&mut self, se: SeId) {
        match self.shared.trace.probes {
            true => self.reweight_entity(se, self.se(se).load),
            false => self.round_averages_anew(se),
        }
    }

    #[inline(always)]
    fn round_averages_anew(&mut self, se: SeId) {
        let entity = self.se(se);
        let cfs_rq = entity.cfs_rq;
        if entity.on_rq && self.cfs(cfs_rq).curr == Some(se) {
            self.update_curr(cfs_rq);
        }
        self.shared.keep_entity_weight(se);
    }

    #[inline(never)]
    fn change_entity_weight(&mut self, se: SeId, load: LoadWeight) {
        let cfs_rq = self.se(se).cfs_rq;
        if self.shared.competes_on_one_queue() {
            return self.shared.change_load_alone(cfs_rq, se, load);
        }
        let rule = self.shared.generation.fair.reweight;
        let (queued, is_curr) = (self.se(se).on_rq, self.cfs(cfs_rq).curr == Some(se));
        let ratio = WeightRatio { old: self.se(se).load, new: load };
        let mut protected = None;
        if queued {
            if is_curr || self.shared.generation.groups.reweight_charge == ReweightCharge::Queued {
                self.update_curr(cfs_rq);
            }
            if rule == Reweight::PlaceAnew {
                self.shared.leave_for_reweight(se);
            }
            let average = self.shared.average_vruntime(cfs_rq);
            protected = self.shared.protection_left(se, is_curr, average);
            let limit = self.shared.lag_limit_of_reweight(se);
            if !is_curr && !self.shared.reweighs_where_it_hangs() {
                self.shared.remove_waiting(cfs_rq, se);
            }
            let others = match rule {
                Reweight::ScaleAroundOthers => self.shared.average_vruntime(cfs_rq),
                _ => average,
            };
            let old = self.se(se).load;
            self.cfs_mut(cfs_rq).load.subtract(old);
            self.shared.scale_on_queue(se, ratio, (average, others), limit);
        } else {
            self.shared.scale_off_queue(se, ratio);
        }
        self.shared.set_entity_weight(se, load);
        if queued {
            if rule == Reweight::PlaceAnew {
                self.place_entity(cfs_rq, se, EnqueueFlags::default());
            }
            self.shared.protect_after_reweight(se, ratio, protected);
            self.cfs_mut(cfs_rq).load.add(load);
            match is_curr {
                true => {}
                false if self.shared.reweighs_where_it_hangs() => self.shared.renew_waiting(cfs_rq, se),
                false => self.shared.insert_waiting(cfs_rq, se),
            }
            if rule == Reweight::PlaceAnew {
                self.cfs_mut(cfs_rq).nr_running += 1;
            }
            let looks = match self.shared.generation.groups.reweight_minimum {
                ReweightMinimum::Never => false,
                ReweightMinimum::Waiting => !is_curr,
                ReweightMinimum::Queued => true,
            };
            if looks {
                self.shared.update_min_vruntime(cfs_rq);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::Cpu;

    use crate::group::GroupId;
    use crate::testbed::{MS, SchedulerTestbed};

    /// Whether a waiting group stays before a task that stands at its vruntime and came later, when its weight changes.
    fn stays_before_its_equal(kernel: &str) -> bool {
        let mut bed = SchedulerTestbed::new(kernel, 1, 1);
        let group = bed.scheduler.new_group(GroupId::ROOT, 1024);
        bed.spawn(0, 0);
        bed.spawn_in(group, 0);
        bed.pass(MS);
        bed.spawn(0, 0);
        let queue = bed.scheduler.shared.cfs_rq_of_group(group, Cpu(0));
        let entity = bed.scheduler.cfs(queue).entity.expect("a group's queue");
        let root = bed.scheduler.rqs[0].cfs;
        let waiting = bed.scheduler.cfs(root).timeline.iter().map(|entry| entry.se).collect::<Vec<_>>();
        let last = *waiting.last().expect("some wait");
        let place = bed.scheduler.se(entity).vruntime;
        bed.scheduler.shared.lift_off_timeline(root, last);
        bed.scheduler.se_mut(last).vruntime = place;
        bed.scheduler.shared.insert_waiting(root, last);
        bed.scheduler.set_group_weight(group, 2048);
        let waiting = bed.scheduler.cfs(root).timeline.iter().map(|entry| entry.se).collect::<Vec<_>>();
        let place_of = |se| waiting.iter().position(|&other| other == se);
        place_of(entity) < place_of(last)
    }

    #[test]
    fn a_weight_moves_nobody_behind_its_equals_to_v6_5() {
        let kernels = ["v4.18", "v5.15", "v6.5", "86bfbb7ce4f6"];
        assert_eq!(kernels.map(stays_before_its_equal), [true; 4]);
    }
}
