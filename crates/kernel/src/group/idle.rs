//! Groups that count as `SCHED_IDLE` (`cpu.idle`).

use crate::entity::CfsRqId;
use crate::group::{GroupId, IdleGroups};
use crate::scheduler::Scheduler;
use crate::weight::{IDLE_POLICY_WEIGHT, LoadWeight};

/// Shares of an idle group, scaled up.
pub(crate) const IDLE_SHARES: u64 = LoadWeight::from_scaled_down(IDLE_POLICY_WEIGHT).raw();

impl Scheduler {
    /// Whether groups can be made idle.
    pub fn knows_idle_groups(&self) -> bool {
        self.shared.generation.groups.idle_groups == IdleGroups::Known
    }

    /// Makes a group below the root count as idle, or no longer. Returns whether the kernel knows idle groups; if not,
    /// nothing changes.
    ///
    /// An idle group has the weight of an idle task; one that is idle no longer has that of nice 0.
    ///
    /// Kernel: `sched_group_set_idle()`, kernel/sched/fair.c, from v5.15 (304000390f88).
    pub fn set_group_idle(&mut self, group: GroupId, idle: bool) -> bool {
        if !self.knows_idle_groups() {
            return false;
        }
        if group == GroupId::ROOT || self.shared.groups[group.0 as usize].idle == idle {
            return true;
        }
        self.mark_group_idle(group, idle);
        let shares = if idle { IDLE_SHARES } else { LoadWeight::of_nice(0).raw() };
        self.set_group_shares(group, shares);
        true
    }

    /// What is in a group counts as idle from now on, or no longer; its weight stays.
    pub(crate) fn mark_group_idle(&mut self, group: GroupId, idle: bool) {
        self.shared.groups[group.0 as usize].idle = idle;
        self.shared.idle_policy_used |= idle;
        for cpu in self.shared.topology.cpus() {
            self.count_group_as_idle(self.shared.cfs_rq_of_group(group, cpu), idle);
        }
    }

    /// The queues above one whose group has just become idle, or is no longer, count its tasks again.
    fn count_group_as_idle(&mut self, cfs_rq: CfsRqId, idle: bool) {
        let queue = self.cfs(cfs_rq);
        let others = (queue.h_nr_running - queue.h_nr_idle) as i32;
        let change = if idle { others } else { -others };
        let mut level = queue.entity;
        while let Some(se) = level.filter(|&se| self.se(se).on_rq) {
            let above = self.se(se).cfs_rq;
            let queue = self.cfs_mut(above);
            queue.h_nr_idle = queue.h_nr_idle.checked_add_signed(change).expect("idle tasks are tasks");
            if self.shared.groups[self.cfs(above).group.0 as usize].idle {
                return;
            }
            level = self.se(se).parent;
        }
    }
}
