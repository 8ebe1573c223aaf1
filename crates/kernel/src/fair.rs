//! `kernel/sched/fair.c`: the fair class, CFS and EEVDF.
//!
//! Each file holds one decision or one piece of accounting, with every generation's rule for it side by side; which
//! one is followed is the generation's [`Behaviours`](crate::generation::Behaviours).

mod accounting;
mod buddies;
mod delay;
mod pick;
mod place;
mod preempt;
mod queue;
mod reweight;
mod slice;
mod statistics;
mod tick;
mod yielding;

use crate::cfs_rq::Running;
use crate::core::Scheduler;
use crate::entity::{CfsRqId, SchedEntity, SeId};

impl Scheduler {
    /// The running entity of a queue, if it is still on it.
    pub(crate) fn running_entity(&self, cfs_rq: CfsRqId) -> Option<SeId> {
        self.cfs(cfs_rq).curr.filter(|&curr| self.se(curr).on_rq)
    }

    /// The same, as averages need it.
    pub(crate) fn running(&self, cfs_rq: CfsRqId) -> Option<Running> {
        self.running_entity(cfs_rq).map(|curr| running(self.se(curr)))
    }
}

pub(crate) fn running(entity: &SchedEntity) -> Running {
    Running { vruntime: entity.vruntime, weight: entity.load.scaled_down() as i64 }
}
