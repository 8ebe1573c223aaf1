//! Requests: how much run time entities ask for at a time, and what that makes of their deadlines.
//!
//! Must not know: who is served.

use crate::all_cpus::Shared;
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
        match self.own_requests {
            true => self.requests(cfs_rq).min(),
            false => self.common_request(cfs_rq),
        }
    }

    /// The largest request of what is queued here, ns (`cfs_rq_max_slice()`).
    pub(crate) fn largest_request(&self, cfs_rq: CfsRqId) -> u64 {
        let largest = match self.own_requests {
            true => self.requests(cfs_rq).max(),
            false => self.common_request(cfs_rq),
        };
        largest.unwrap_or(0)
    }

    pub(crate) fn requests(&self, cfs_rq: CfsRqId) -> impl Iterator<Item = u64> {
        let waiting = self.cfs(cfs_rq).timeline.iter().map(|entry| self.se(entry.se).slice);
        waiting.chain(self.running_entity(cfs_rq).map(|curr| self.se(curr).slice))
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
