//! Points on the virtual time line, deadlines, lags and marks that are forced, in open loop.
//!
//! Must not know: why they differ from the model's.

use fairlab_event::Cpu;

use super::{EntityId, QueueId};
use crate::entity::SchedEntity;
use crate::generation::Feature;
use crate::scheduler::Scheduler;
use crate::vruntime::Vruntime;
use crate::weight::LoadWeight;

impl Scheduler {
    /// Puts an entity where the kernel had it on the virtual time line.
    pub fn force_vruntime(&mut self, entity: EntityId, vruntime: Vruntime) {
        self.change_entity(entity, |entity| entity.vruntime = vruntime);
    }

    /// The same for its deadline; a protected slice stays protected.
    pub fn force_deadline(&mut self, entity: EntityId, deadline: Vruntime) {
        self.change_entity(entity, |entity| {
            if entity.deadline_at_pick == Some(entity.deadline) {
                entity.deadline_at_pick = Some(deadline);
            }
            entity.deadline = deadline;
        });
    }

    /// Whether slices end by a timer of their own.
    pub fn has_slice_timer(&self) -> bool {
        self.has(Feature::Hrtick)
    }

    /// Sets the lag with which an entity left its queue.
    pub fn force_vlag(&mut self, entity: EntityId, vlag: i64) {
        self.se_mut(entity.0).vlag = vlag;
    }

    /// Sets an entity's distance to its deadline while it is between two queues.
    pub fn force_relative_deadline(&mut self, entity: EntityId, distance: Option<i64>) {
        self.se_mut(entity.0).relative_deadline = distance;
    }

    /// Ends the protection of a running entity's slice where the kernel had it end.
    pub fn force_protection(&mut self, entity: EntityId, until: Vruntime) {
        let entity = self.se_mut(entity.0);
        entity.protected_until = until;
        entity.deadline_at_pick = Some(until);
    }

    pub(super) fn change_entity(&mut self, entity: EntityId, change: impl FnOnce(&mut SchedEntity)) {
        let se = entity.0;
        let cfs_rq = self.shared.line_of(self.se(se).cfs_rq);
        let competes = self.se(se).task.is_some() || !self.shared.competes_on_one_queue();
        let waits = competes && self.se(se).on_rq && self.cfs(cfs_rq).curr != Some(se);
        if waits {
            self.shared.lift_off_timeline(cfs_rq, se);
        }
        change(self.se_mut(se));
        if waits {
            self.shared.lay_on_timeline(cfs_rq, se);
        }
    }

    /// Gives a task the weight that it had on its CPU's one time line; nothing where there is none.
    pub fn force_line_weight(&mut self, entity: EntityId, weight: u64) {
        if self.shared.competes_on_one_queue() {
            let load = LoadWeight::from_raw(weight.max(1));
            self.change_entity(entity, |entity| entity.line_load = load);
        }
    }

    /// Puts the zero of a queue's virtual time line where the kernel had it.
    pub fn force_min_vruntime(&mut self, queue: QueueId, min_vruntime: Vruntime) {
        if self.shared.line_of(queue.0) == queue.0 {
            self.cfs_mut(queue.0).move_zero_to(min_vruntime);
        }
    }

    /// Sets or clears the pending reschedule of a CPU, at once or lazy.
    pub fn force_need_resched(&mut self, cpu: Cpu, at_once: bool, lazy: bool) {
        let context = &mut self.shared.cpus[cpu.index()];
        (context.need_resched, context.need_resched_lazy) = (at_once, lazy);
    }
}
