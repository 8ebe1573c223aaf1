//! `kernel/sched/fair.c`: the fair class, CFS and EEVDF.
//!
//! Each file holds one decision or one piece of accounting, with every generation's rule for it side by side; which
//! one is followed is the generation's [`FairRules`](rules::FairRules).

pub(crate) mod accounting;
pub(crate) mod bandwidth;
mod buddies;
mod delay;
#[cfg(test)]
mod edges;
mod follow;
pub(crate) mod load;
mod one_queue;
mod pick;
mod place;
mod preempt;
pub(crate) mod preemption_rules;
mod queue;
mod reweight;
pub(crate) mod rules;
pub(crate) mod slice;
mod statistics;
mod tick;
mod yielding;

use crate::cfs_rq::Running;
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::Arithmetic;
use crate::shared::Shared;
use crate::weight::LoadWeight;

pub use preemption_rules::{
    DelayedShort, FailedTest, PendingTest, PreemptionEffect, PreemptionRules, ProtectionUpdate, ShortBuddy,
    ShortTest, ShorterBeside,
};
pub(crate) use queue::Dequeued;

impl Shared {
    /// The running entity of a queue, if it is still on it.
    pub(crate) fn running_entity(&self, cfs_rq: CfsRqId) -> Option<SeId> {
        self.cfs(cfs_rq).curr.filter(|&curr| self.se(curr).on_rq)
    }

    /// The same, as averages need it.
    pub(crate) fn running(&self, cfs_rq: CfsRqId) -> Option<Running> {
        self.running_entity(cfs_rq).map(|curr| self.as_running(curr))
    }

    pub(crate) fn as_running(&self, se: SeId) -> Running {
        Running { vruntime: self.se(se).vruntime, weight: self.weight_in_averages(self.competing_load(se)) }
    }

    /// What an entity weighs where it competes.
    #[inline(always)]
    pub(crate) fn competing_load(&self, se: SeId) -> LoadWeight {
        let entity = self.se(se);
        if self.competes_on_one_queue() { entity.line_load } else { entity.load }
    }

    /// Virtual time of `run_time` ns of an entity, virtual ns.
    #[inline(always)]
    pub(crate) fn virtual_time_of(&self, se: SeId, run_time: u64) -> u64 {
        self.calc_delta_fair(self.competing_load(se), run_time)
    }

    /// Virtual time of `run_time` ns at weight `load`, virtual ns.
    pub(crate) fn calc_delta_fair(&self, load: LoadWeight, run_time: u64) -> u64 {
        self.generation.fair.arithmetic.calc_delta_fair(&load, run_time)
    }

    /// What a weight counts in a queue's averages (`avg_vruntime_weight()`).
    pub(crate) fn weight_in_averages(&self, load: LoadWeight) -> i64 {
        match self.generation.fair.arithmetic {
            Arithmetic::InverseTable => load.scaled_down() as i64,
            Arithmetic::WholeWeight => load.raw() as i64,
        }
    }
}

impl Arithmetic {
    #[inline(always)]
    fn calc_delta_fair(self, load: &LoadWeight, run_time: u64) -> u64 {
        match load.is_nice_0() {
            true => run_time,
            false => self.calc_delta_of(load, run_time),
        }
    }

    #[inline(never)]
    fn calc_delta_of(self, load: &LoadWeight, run_time: u64) -> u64 {
        match self {
            Arithmetic::InverseTable => load.virtual_time(run_time),
            Arithmetic::WholeWeight => load.virtual_time_exact(run_time),
        }
    }
}
