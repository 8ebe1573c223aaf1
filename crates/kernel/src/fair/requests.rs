//! Requests: how much run time entities ask for at a time, and what that makes of their deadlines.
//!
//! Must not know: who is served.

use crate::all_cpus::Shared;
use crate::cfs_rq::tree::{AugmentedFields, RbTree};
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::{Request, VirtualZero};

impl Shared {
    /// The least request of what is queued here, ns; `None` when nothing is, or where groups have no requests of their own.
    ///
    /// Kernel: `cfs_rq_min_slice()` (aef6987d8954).
    pub(crate) fn least_request(&self, cfs_rq: CfsRqId) -> Option<u64> {
        if self.generation.fair.request != Request::OwnAndLeastBelow {
            return None;
        }
        self.least_of_requests(cfs_rq)
    }

    /// The same, whatever groups do with it.
    pub(crate) fn least_of_requests(&self, cfs_rq: CfsRqId) -> Option<u64> {
        if !self.own_requests {
            return self.common_request(cfs_rq);
        }
        match self.tree_knows(cfs_rq, |fields| fields.least_request) {
            Some(tree) => {
                let waiting = tree.whole().map(|whole| whole.min_slice);
                waiting.into_iter().chain(self.request_of_running(cfs_rq)).min()
            }
            None => self.requests(cfs_rq).min(),
        }
    }

    /// The largest request of what is queued here, `se` of that, ns.
    ///
    /// Kernel: `cfs_rq_max_slice()` (6e3c0a4e1ad1). What the tree knows may be of before, up to 9a8bc9bb4c3f and 51b0e68cfa0a.
    pub(crate) fn largest_request(&self, cfs_rq: CfsRqId, se: SeId) -> u64 {
        if let Some(tree) = self.tree_knows(cfs_rq, |fields| fields.largest_request) {
            let waiting = tree.whole().map(|whole| whole.max_slice);
            return waiting.into_iter().chain(self.request_of_running(cfs_rq)).max().unwrap_or(0);
        }
        let largest = match self.own_requests {
            true => self.requests(cfs_rq).max(),
            false => self.common_request(cfs_rq),
        };
        largest.unwrap_or(0).max(self.se(se).slice)
    }

    /// The tree of a queue where one is kept whose nodes know something.
    fn tree_knows(&self, cfs_rq: CfsRqId, knows: fn(AugmentedFields) -> bool) -> Option<&RbTree> {
        self.cfs(cfs_rq).timeline.tree().filter(|tree| knows(tree.fields()))
    }

    fn request_of_running(&self, cfs_rq: CfsRqId) -> Option<u64> {
        self.running_entity(cfs_rq).map(|curr| self.se(curr).slice)
    }

    pub(crate) fn requests(&self, cfs_rq: CfsRqId) -> impl Iterator<Item = u64> {
        let waiting = self.cfs(cfs_rq).timeline.iter().map(|entry| self.se(entry.se).slice);
        waiting.chain(self.request_of_running(cfs_rq))
    }

    /// The request of all that is queued here, ns, where nobody has one of its own.
    #[inline]
    pub(crate) fn common_request(&self, cfs_rq: CfsRqId) -> Option<u64> {
        let base = self.sysctl.base_slice;
        debug_assert!(self.requests(cfs_rq).all(|request| request == base), "nobody asked for another");
        let is_empty = self.cfs(cfs_rq).timeline.len() == 0 && self.running_entity(cfs_rq).is_none();
        (!is_empty).then_some(base)
    }

    /// A group that is about to be queued asks for what is asked for below it.
    pub(crate) fn keep_request_from_below(&mut self, se: SeId, request: Option<u64>) {
        if let Some(request) = request {
            let entity = self.se_mut(se);
            (entity.slice, entity.custom_slice) = (request, true);
        }
    }

    /// A group that is queued takes over another request from below.
    pub(crate) fn take_request_from_below(&mut self, se: SeId, request: Option<u64>) {
        if let Some(request) = request {
            self.se_mut(se).slice = request;
            self.request_changes(se);
        }
    }

    /// Another request of an entity that waits is known in its queue's tree (`min_vruntime_cb_propagate()`).
    pub(crate) fn request_changes(&mut self, se: SeId) {
        let (entity, queue) = self.entity_and_queue(se, self.se(se).cfs_rq);
        if queue.timeline.tree().is_some() && queue.curr != Some(se) {
            queue.timeline.set_slice(se, entity.slice);
        }
    }

    /// The request of an entity, ns of run time: the base slice unless it has its own.
    pub(crate) fn request(&self, se: SeId) -> u64 {
        self.se(se).request(self.sysctl.base_slice)
    }

    /// Gives an entity that has used its request a new one.
    ///
    /// Kernel: `update_deadline()`, kernel/sched/fair.c (147f3efaa241).
    pub(crate) fn update_deadline(&mut self, cfs_rq: CfsRqId, se: SeId) {
        if !self.se(se).vruntime.is_before(self.se(se).deadline) {
            self.take_new_request(cfs_rq, se);
        }
    }

    #[inline(never)]
    pub(crate) fn take_new_request(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let request = self.request(se);
        let distance = self.virtual_time_of(se, request) as i64;
        let entity = self.se_mut(se);
        entity.slice = request;
        entity.deadline = entity.vruntime.plus(distance);
        if self.generation.fair.virtual_zero == VirtualZero::Average {
            self.average_vruntime(cfs_rq);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fairlab_event::Ns;

    use crate::ablation::AblationSituation;
    use crate::task::Policy;
    use crate::testbed::{MS, SchedulerTestbed};

    pub(crate) const SITUATIONS: &[(&str, AblationSituation)] =
        &[("tree-copies-slices", least_after_a_turn), ("max-slice-of-leaf", largest_beside_a_leaf)];

    /// A task that runs with a request of 8 ms, beside new ones that wait with these requests in ms.
    fn beside(kernel: &str, requests: &[u64]) -> SchedulerTestbed {
        let mut bed = SchedulerTestbed::new(kernel, 1, 1);
        let runs = bed.spawn(0, 0);
        for request in requests.iter().chain(&[8]) {
            bed.scheduler.set_scheduler(runs, Policy::Normal, 0, Some(Ns(request * MS)));
            if *request != 8 {
                // It has the request of who creates it.
                bed.spawn(0, 0);
            }
        }
        bed
    }

    /// The least request of a queue whose tree turns when the third comes, ms.
    fn least_after_a_turn(kernel: &str) -> u64 {
        let bed = beside(kernel, &[1, 5, 6]);
        bed.scheduler.shared.least_of_requests(bed.scheduler.rqs[0].cfs).unwrap_or(0) / MS
    }

    #[test]
    fn a_turn_of_the_tree_forgets_the_least_request_to_v7_2() {
        let kernels =
            ["v6.11", "v6.12", "debian-6.12", "v7.2", "v7.2+tree-copies-slices", "debian-7.2", "v7.3"];
        assert_eq!(kernels.map(least_after_a_turn), [0, 5, 5, 5, 1, 1, 1]);
    }

    /// One more comes, and whoever is above it looks again.
    #[test]
    fn the_next_arrival_reminds_the_tree() {
        let bed = beside("v7.2", &[1, 5, 6, 7]);
        assert_eq!(bed.scheduler.shared.least_of_requests(bed.scheduler.rqs[0].cfs), Some(MS));
    }

    /// The largest request of a queue on which one waits that has never been in a tree with another, ms.
    fn largest_beside_a_leaf(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 1, 1);
        let (runs, waits) = (bed.spawn(0, 0), bed.spawn(0, 0));
        bed.scheduler.set_scheduler(waits, Policy::Normal, 0, Some(Ns(50 * MS)));
        let se = bed.scheduler.shared.tasks[runs.index()].se;
        bed.scheduler.shared.largest_request(bed.scheduler.rqs[0].cfs, se) / MS
    }

    #[test]
    fn a_new_leaf_knows_the_largest_request_of_before_to_v7_2() {
        let kernels =
            ["v7.0", "v7.2", "v7.2+max-slice-of-leaf", "v7.2+tree-copies-slices", "debian-7.2", "v7.3"];
        assert_eq!(kernels.map(largest_beside_a_leaf), [0, 0, 50, 0, 50, 50]);
    }
}
