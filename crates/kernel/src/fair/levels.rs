//! The levels of the hierarchy: where two entities meet, and how far what is counted on a queue is counted above it.
//!
//! Must not know: what is decided there.

use crate::all_cpus::Shared;
use crate::cfs_rq::QueueCountChange;
use crate::entity::{CfsRqId, SeId};
use crate::task::TaskId;

impl Shared {
    /// The entities of two tasks, or of their groups, that compete on one queue.
    #[inline(always)]
    pub(crate) fn competitors(&self, curr: TaskId, task: TaskId) -> (SeId, SeId) {
        self.find_matching_se(self.tasks[curr.index()].se, self.tasks[task.index()].se)
    }

    /// The two entities, or those of their groups, that compete on one queue (`find_matching_se()`).
    #[inline(always)]
    pub(crate) fn find_matching_se(&self, one: SeId, other: SeId) -> (SeId, SeId) {
        if self.competes_on_one_queue() { (one, other) } else { self.meeting_levels(one, other) }
    }

    /// The two entities, or those of their groups, that are members of one queue.
    #[inline(always)]
    pub(crate) fn meeting_levels(&self, one: SeId, other: SeId) -> (SeId, SeId) {
        match self.se(one).cfs_rq == self.se(other).cfs_rq {
            true => (one, other),
            false => self.find_matching_groups(one, other),
        }
    }

    #[inline(never)]
    pub(crate) fn find_matching_groups(&self, mut one: SeId, mut other: SeId) -> (SeId, SeId) {
        let depth = |se: SeId| self.se(se).depth;
        let up = |se: SeId| self.se(se).parent.expect("entities of one CPU meet at its root queue");
        while depth(one) > depth(other) {
            one = up(one);
        }
        while depth(other) > depth(one) {
            other = up(other);
        }
        while self.se(one).cfs_rq != self.se(other).cfs_rq {
            (one, other) = (up(one), up(other));
        }
        (one, other)
    }

    /// Counts tasks that came or went on a queue. Returns whether the way up goes on.
    #[inline]
    pub(crate) fn count_change(&mut self, cfs_rq: CfsRqId, change: &mut QueueCountChange) -> bool {
        self.cfs_mut(cfs_rq).count(*change);
        self.change_goes_on(cfs_rq, change)
    }

    /// Whether what was counted on a queue is counted above it, and as what.
    #[inline]
    pub(crate) fn change_goes_on(&self, cfs_rq: CfsRqId, change: &mut QueueCountChange) -> bool {
        if self.cuts_off(cfs_rq) {
            return false;
        }
        if self.counts_as_idle(cfs_rq) {
            change.idle = change.tasks;
        }
        true
    }
}
