//! For how long the running entity is protected from others that are about as deserving.
//!
//! Must not know: who wakes and is tested.

use crate::all_cpus::Shared;
use crate::cfs_rq::CurrEntity;
use crate::entity::{CfsRqId, SeId};
use crate::fair::preemption_rules::{ProtectionUpdate, ShorterBeside};
use crate::fair::rules::{ReweightProtection, SliceProtection};
use crate::generation::Feature;
use crate::vruntime::Vruntime;

impl Shared {
    /// Whether the running entity is protected from others that are about as deserving.
    pub(crate) fn protects_slice(&self, curr: SeId) -> bool {
        let entity = self.se(curr);
        match self.generation.fair.slice_protection {
            SliceProtection::UntilNewDeadline => {
                self.has(Feature::RunToParity) && entity.deadline_at_pick == Some(entity.deadline)
            }
            SliceProtection::UntilShortestRequest => entity.vruntime.is_before(entity.protected_until),
        }
    }

    /// Where the protection of an entity that is picked now ends. Pure.
    ///
    /// Kernel: `set_protect_slice()`, kernel/sched/fair.c (3a0baa8e6c57). The entity itself has just left the time line.
    pub(crate) fn protection(&self, cfs_rq: CfsRqId, se: SeId) -> Vruntime {
        let entity = self.se(se);
        let least = match self.has(Feature::RunToParity) {
            true => self.least_of_requests(cfs_rq).unwrap_or(entity.slice).min(entity.slice),
            false => self.sysctl.normalised_slice.min(entity.slice),
        };
        if least == entity.slice {
            return entity.deadline;
        }
        if self.generation.preemption.shorter_beside == ShorterBeside::WhileEligible
            && self.has(Feature::PreemptShort)
        {
            return entity.deadline.earliest(self.ineligible_from(cfs_rq));
        }
        entity.deadline.earliest(entity.vruntime.plus(self.virtual_time_of(se, least) as i64))
    }

    /// Where on the time line the running entity would have had more than its part: just past the average of those that wait.
    ///
    /// Kernel: `ineligible_vruntime()`, kernel/sched/fair.c (0d1e7a2bab35).
    pub(crate) fn ineligible_from(&self, cfs_rq: CfsRqId) -> Vruntime {
        let rounding = self.generation.fair.average_rounding;
        self.cfs(cfs_rq).average_vruntime(None, rounding).plus(1)
    }

    /// A wakeup that did not preempt shortens the running entity's protection to the least request on the queue.
    ///
    /// Kernel: `update_protect_slice()`, kernel/sched/fair.c.
    pub(crate) fn update_protection(&mut self, cfs_rq: CfsRqId, curr: SeId) {
        let Some(least) = self.least_of_requests(cfs_rq) else { return };
        let stands = self.se(curr).vruntime;
        let from = match self.generation.preemption.protection_update {
            ProtectionUpdate::OwnPlace => stands,
            ProtectionUpdate::AverageIfEarlier => stands.earliest(self.average_vruntime(cfs_rq)),
        };
        let end = from.plus(self.virtual_time_of(curr, least) as i64);
        self.end_protection(curr, end);
    }

    /// A running entity's protection ends here, or earlier. Up to v6.19 that is written over the lag of one that has left its queue and
    /// whose CPU has not switched yet: it is placed by that when it comes back.
    ///
    /// Kernel: `cancel_protect_slice()`, kernel/sched/fair.c.
    pub(crate) fn end_protection(&mut self, curr: SeId, at: Vruntime) {
        let rules = &self.generation.fair;
        let over_lag = rules.slice_protection == SliceProtection::UntilShortestRequest
            && rules.reweight_protection == ReweightProtection::Lost;
        let entity = self.se_mut(curr);
        entity.protected_until = entity.protected_until.earliest(at);
        if over_lag && !entity.on_rq {
            entity.vlag = entity.protected_until.0 as i64;
        }
    }

    /// Whether the running entity, as it stands at `vruntime`, is no longer protected and has to make way at the next occasion.
    ///
    /// Kernel: `did_preempt_short()` in v6.12 (`PREEMPT_SHORT`); `!protect_slice()` from v6.17, eligible or not.
    #[inline]
    pub(crate) fn loses_protection(&self, cfs_rq: CfsRqId, curr: SeId, vruntime: Vruntime) -> bool {
        let entity = self.se(curr);
        match self.generation.fair.slice_protection {
            SliceProtection::UntilShortestRequest => !vruntime.is_before(entity.protected_until),
            SliceProtection::UntilNewDeadline => {
                let running = self.running(cfs_rq).map(|running| CurrEntity { vruntime, ..running });
                self.has(Feature::PreemptShort)
                    && entity.deadline_at_pick != Some(entity.deadline)
                    && !self.cfs(cfs_rq).is_eligible(vruntime, running)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::Cpu;

    use crate::group::GroupId;
    use crate::testbed::{MS, SchedulerTestbed};
    use crate::vruntime::Vruntime;

    /// Whether a group's protection stays what it is when its last task leaves, and another one brings the group back before its CPU has
    /// switched.
    fn keeps_protection(kernel: &str) -> bool {
        let mut bed = SchedulerTestbed::new(kernel, 1, 1);
        let group = bed.scheduler.new_group(GroupId::ROOT, 1024);
        let comes = bed.spawn_in(group, 0);
        bed.pass(MS);
        bed.sleep(0);
        bed.spawn_in(group, 0);
        bed.pass(MS);
        let queue = bed.scheduler.shared.cfs_rq_of_group(group, Cpu(0));
        let entity = bed.scheduler.cfs(queue).entity.expect("a group's queue");
        let until = Vruntime(12_345);
        bed.scheduler.se_mut(entity).protected_until = until;
        bed.leave(0);
        bed.wake(comes, 0);
        bed.scheduler.se(entity).protected_until == until
    }

    #[test]
    fn a_group_that_returns_has_its_lag_for_its_protection_to_v6_19() {
        let kernels = ["v6.17", "v6.18", "v6.19", "v7.0", "v7.2"];
        assert_eq!(kernels.map(keeps_protection), [false, false, false, true, true]);
    }
}
