//! Groups' entities get the weights that their queues' shares earn them.
//!
//! Must not know: when that is due.

use crate::all_cpus::SharedLine;
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::Reweight;
use crate::rq::LockedRq;
use crate::weight::LoadWeight;

impl LockedRq<'_> {
    /// Gives a group's entity the weight that its queue's share of the group's load earns. Nothing for a task's entity.
    ///
    /// Kernel: `update_cfs_group()`, kernel/sched/fair.c.
    #[inline]
    pub(crate) fn update_cfs_group(&mut self, se: SeId) {
        if let Some(below) = self.se(se).my_q {
            self.update_group_entity(se, below);
        }
    }

    #[inline]
    fn update_group_entity(&mut self, se: SeId, below: CfsRqId) {
        let due = match self.shared.hooks.answers_weights() {
            false => {
                let group = self.cfs(below).group;
                self.shared.note_line(SharedLine::GroupLoad(group), false);
                self.shared.shares_now(self.cfs(below))
            }
            true => self.shared.hooks.take_weight(se),
        };
        if let Some(shares) = due {
            self.take_shares(se, shares);
        }
    }

    #[inline(never)]
    fn take_shares(&mut self, se: SeId, shares: u64) {
        if self.se(se).load.raw() != shares {
            self.reweight_entity(se, LoadWeight::from_raw(shares));
        } else if self.shared.generation.fair.reweight == Reweight::KeepVruntime {
            // To v6.5 the weight is set again all the same.
            self.keep_weight_of_entity(se);
        }
    }
}
