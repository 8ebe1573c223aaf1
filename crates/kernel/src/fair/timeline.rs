//! A queue's time line: entities come and go on it, its average and its zero follow.
//!
//! Must not know: why an entity stands where it stands.

use crate::all_cpus::Shared;
use crate::cfs_rq::{EntityRequests, TimelineEntry};
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::{Placement, Reweight, VirtualZero};
use crate::vruntime::Vruntime;

impl Shared {
    /// Puts an entity on the time line. Kernel: `__enqueue_entity()`.
    pub(crate) fn insert_waiting(&mut self, cfs_rq: CfsRqId, se: SeId) {
        self.lay_on_timeline(cfs_rq, se);
        self.zero_follows_queueing(cfs_rq);
    }

    /// The same, and nothing else moves.
    pub(crate) fn lay_on_timeline(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let weight = self.weight_in_averages(self.competing_load(se));
        let (entity, queue) = self.entity_and_queue(se, cfs_rq);
        let entry = TimelineEntry::new(se, entity.vruntime, entity.deadline, weight);
        queue.insert_waiting(entry, EntityRequests { slice: entity.slice, max_slice: entity.max_slice });
    }

    /// Whether another weight leaves a waiting entity where it hangs in its queue's tree, among equals, too: its vruntime stays.
    ///
    /// Kernel: `reweight_entity()` to eab03c23c2a1, which takes it out and hangs it up again, kernel/sched/fair.c.
    pub(crate) fn reweighs_where_it_hangs(&self) -> bool {
        matches!(
            self.generation.fair.reweight,
            Reweight::KeepVruntime
                | Reweight::ScaleLagOffQueue
                | Reweight::ScaleDeadline
                | Reweight::ScaleDeadlineAlways
        )
    }

    /// An entity that hangs on the time line has another weight and deadline (`min_deadline_cb_propagate()`).
    pub(crate) fn renew_waiting(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let weight = self.weight_in_averages(self.competing_load(se));
        let (entity, queue) = self.entity_and_queue(se, cfs_rq);
        queue.renew_waiting(TimelineEntry::new(se, entity.vruntime, entity.deadline, weight));
    }

    /// Takes an entity off the time line. Kernel: `__dequeue_entity()`.
    pub(crate) fn remove_waiting(&mut self, cfs_rq: CfsRqId, se: SeId) {
        self.lift_off_timeline(cfs_rq, se);
        self.zero_follows_queueing(cfs_rq);
    }

    /// The same, and nothing else moves.
    pub(crate) fn lift_off_timeline(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let (entity, queue) = self.entity_and_queue(se, cfs_rq);
        if let Some(max_slice) = queue.remove_waiting(se) {
            entity.max_slice = max_slice;
        }
    }

    /// Kernel: `update_zero_vruntime()` of 79f3f9bedd14.
    #[inline(always)]
    pub(crate) fn zero_follows_queueing(&mut self, cfs_rq: CfsRqId) {
        if self.generation.fair.virtual_zero == VirtualZero::AverageAtQueueing {
            let average = self.average(cfs_rq);
            self.cfs_mut(cfs_rq).move_zero_to(average);
        }
    }

    /// The average of a queue; where that is also its virtual zero, the zero is moved there.
    ///
    /// Kernel: `avg_vruntime()`, kernel/sched/fair.c.
    pub(crate) fn average_vruntime(&mut self, cfs_rq: CfsRqId) -> Vruntime {
        let average = self.average(cfs_rq);
        if self.generation.fair.virtual_zero.moves_when_computed() {
            self.cfs_mut(cfs_rq).move_zero_to(average);
        }
        average
    }

    /// The average of a queue. Pure.
    pub(crate) fn average(&self, cfs_rq: CfsRqId) -> Vruntime {
        let rounding = self.generation.fair.average_rounding;
        self.cfs(cfs_rq).average_vruntime(self.running(cfs_rq), rounding)
    }

    /// Moves a queue's `min_vruntime` up. Kernel: `update_min_vruntime()`.
    pub(crate) fn update_min_vruntime(&mut self, cfs_rq: CfsRqId) {
        if self.generation.fair.virtual_zero.follows_average() {
            return;
        }
        let queue = &mut self.cfs_rqs[cfs_rq.0 as usize];
        let curr = queue.curr.map(|curr| &self.entities[curr.0 as usize]).filter(|curr| curr.on_rq);
        queue.update_min_vruntime(curr.map(|curr| curr.vruntime));
    }

    /// Whether an entity between two queues keeps its distance to `min_vruntime` instead of its lag alone.
    pub(crate) fn vruntime_is_relative_off_queue(&self) -> bool {
        self.generation.fair.placement != Placement::Lag
    }

    pub(crate) fn make_relative(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let distance = self.se(se).vruntime.minus(self.cfs(cfs_rq).min_vruntime);
        self.se_mut(se).vruntime = Vruntime(0).plus(distance);
    }

    pub(crate) fn make_absolute(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let distance = self.se(se).vruntime.minus(Vruntime(0));
        self.se_mut(se).vruntime = self.cfs(cfs_rq).min_vruntime.plus(distance);
    }
}
