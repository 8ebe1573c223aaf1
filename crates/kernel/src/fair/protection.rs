//! For how long the running entity is protected from others that are about as deserving.
//!
//! Must not know: who wakes and is tested.

use crate::all_cpus::Shared;
use crate::cfs_rq::CurrEntity;
use crate::entity::{CfsRqId, SeId};
use crate::fair::preemption_rules::{ProtectionUpdate, ShorterBeside};
use crate::fair::rules::SliceProtection;
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
        self.protect_at_most(curr, end);
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
