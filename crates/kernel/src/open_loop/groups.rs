//! Groups that somebody gives another weight, in open loop: each CPU stands at the time of its own runqueue.
//!
//! Must not know: who does, and how a recording shows it.

use crate::core::Scheduler;
use crate::group::GroupId;

impl Scheduler {
    /// A group has `shares` from now on, scaled up; entities get the weights that this earns them. Those of an idle group
    /// stay.
    ///
    /// Kernel: `sched_group_set_shares()`, kernel/sched/fair.c.
    pub fn force_group_shares(&mut self, group: GroupId, shares: u64) {
        if self.groups[group.0 as usize].idle {
            return;
        }
        self.groups[group.0 as usize].shares = shares;
        for cpu in self.topology.cpus() {
            self.stand_on(cpu);
            self.take_new_shares(group, cpu);
        }
    }
}
