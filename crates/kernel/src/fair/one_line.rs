//! One time line for all fair tasks of a CPU: how tasks come onto it and leave it, and what they weigh there.
//!
//! Must not know: what groups they are queued in.

use crate::all_cpus::Shared;
use crate::entity::SeId;
use crate::fair::rules::SliceProtection;
use crate::pelt::MIN_SHARES;
use crate::weight::LoadWeight;

impl Shared {
    /// What a task weighs on its CPU's time line: of its own weight the part that each of its groups has of what is beside it.
    ///
    /// Kernel: `__calc_prop_weight()`, kernel/sched/fair.c. Units: scaled up, quotients truncated.
    pub(crate) fn part_of_weight(&self, se: SeId) -> LoadWeight {
        let whole = LoadWeight::of_nice(0).raw();
        let (mut level, mut weight) = (Some(se), whole);
        while let Some(se) = level {
            let entity = self.se(se);
            let beside = if entity.parent.is_some() { self.cfs(entity.cfs_rq).load.raw() } else { whole };
            weight = (weight.wrapping_mul(entity.load.raw()) / beside.max(1)).max(MIN_SHARES as u64);
            level = entity.parent;
        }
        LoadWeight::from_raw(weight)
    }

    /// A task that had the CPU joins those that wait, if it is still queued (`put_prev_task_fair()`).
    pub(crate) fn put_on_line(&mut self, se: SeId) {
        let line = self.line_of(self.se(se).cfs_rq);
        if self.cfs(line).curr == Some(se) {
            self.cfs_mut(line).curr = None;
            if self.se(se).on_rq {
                self.insert_waiting(line, se);
            }
        }
    }

    /// A task gets the CPU: it no longer waits (the beginning of `set_next_task_fair()`).
    pub(crate) fn take_off_line(&mut self, se: SeId) {
        let line = self.line_of(self.se(se).cfs_rq);
        self.forget_buddy_on_line(se);
        if self.se(se).on_rq {
            self.remove_waiting(line, se);
        }
    }

    /// It runs, with the weight that it has now (the end of `set_next_task_fair()`).
    pub(crate) fn run_on_line(&mut self, se: SeId, picked: bool) {
        let line = self.line_of(self.se(se).cfs_rq);
        self.cfs_mut(line).curr = Some(se);
        let on_rq = self.se(se).on_rq;
        self.reweigh_running(se);
        let protects =
            picked && on_rq && self.generation.fair.slice_protection == SliceProtection::UntilShortestRequest;
        let protected_until = protects.then(|| self.protection(line, se));
        let entity = self.se_mut(se);
        entity.deadline_at_pick = on_rq.then_some(entity.deadline);
        entity.protected_until = protected_until.unwrap_or(entity.protected_until);
    }

    /// A running task takes the weight that its groups leave it now, if it is still queued.
    pub(crate) fn reweigh_running(&mut self, se: SeId) {
        if self.se(se).on_rq {
            self.reweigh_on_line(se, self.part_of_weight(se), true);
        }
    }

    /// Open loop: a task that stands on its queues stands on its CPU's time line, too.
    pub(crate) fn lay_on_line(&mut self, se: SeId) {
        let line = self.line_of(self.se(se).cfs_rq);
        self.se_mut(se).line_load = self.part_of_weight(se);
        if self.cfs(line).curr != Some(se) {
            self.lay_on_timeline(line, se);
        }
    }
}
