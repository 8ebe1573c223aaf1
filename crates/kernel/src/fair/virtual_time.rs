//! What run time is worth in virtual time, and which time line an entity competes on.
//!
//! Must not know: who is placed or picked there.

use crate::all_cpus::Shared;
use crate::cfs_rq::CurrEntity;
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::{Arithmetic, AverageWeight};
use crate::group::Competition;
use crate::task::TaskId;
use crate::weight::LoadWeight;

impl Arithmetic {
    #[inline(always)]
    pub(crate) fn calc_delta_fair(self, load: &LoadWeight, run_time: u64) -> u64 {
        match load.is_nice_0() {
            true => run_time,
            false => self.calc_delta_of(load, run_time),
        }
    }

    #[inline(never)]
    pub(crate) fn calc_delta_of(self, load: &LoadWeight, run_time: u64) -> u64 {
        match self {
            Arithmetic::InverseTable => load.virtual_time(run_time),
            Arithmetic::WholeWeight => load.virtual_time_exact(run_time),
        }
    }
}

impl Shared {
    /// The running entity of a queue, if it is still on it.
    pub(crate) fn running_entity(&self, cfs_rq: CfsRqId) -> Option<SeId> {
        self.cfs(cfs_rq).curr.filter(|&curr| self.se(curr).on_rq)
    }

    /// The same, as averages need it.
    pub(crate) fn running(&self, cfs_rq: CfsRqId) -> Option<CurrEntity> {
        self.running_entity(cfs_rq).map(|curr| self.as_running(curr))
    }

    pub(crate) fn as_running(&self, se: SeId) -> CurrEntity {
        CurrEntity {
            vruntime: self.se(se).vruntime,
            weight: self.weight_in_averages(self.competing_load(se)),
        }
    }

    /// Whether a task would have no negative lag if others had left its CPU: who runs on the queue that they leave is charged then.
    pub(crate) fn is_eligible_without(&self, task: TaskId, left: impl Iterator<Item = TaskId>) -> bool {
        let entity = self.se(self.tasks[task.index()].se);
        let line = self.line_of(entity.cfs_rq);
        let entities = left.map(|left| self.tasks[left.index()].se);
        let mut left = entities.filter(|&se| self.line_of(self.se(se).cfs_rq) == line).peekable();
        let mut running = self.running(line);
        if let (Some(_), Some(curr)) = (left.peek(), self.running_entity(line)) {
            let ran = self.trace.now.0.saturating_sub(self.se(curr).exec_start);
            let charged = self.se(curr).vruntime.plus(self.virtual_time_of(curr, ran) as i64);
            running = running.map(|running| CurrEntity { vruntime: charged, ..running });
        }
        let eligibility = left.fold(self.cfs(line).eligibility(running), |sums, se| {
            sums.without(self.se(se).vruntime, self.weight_in_averages(self.competing_load(se)))
        });
        eligibility.admits(entity.vruntime)
    }

    /// Whether weights change on the queue of a task when `left` leaves its CPU: those of groups that hold it.
    pub(crate) fn weighed_on(&self, left: TaskId, task: TaskId) -> bool {
        let line = self.line_of(self.se(self.tasks[task.index()].se).cfs_rq);
        let above = |se: &SeId| self.se(*se).parent;
        let groups = std::iter::successors(above(&self.tasks[left.index()].se), above);
        groups.into_iter().any(|group| self.line_of(self.se(group).cfs_rq) == line)
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
        match self.generation.fair.average_weight {
            AverageWeight::ScaledDown => load.scaled_down() as i64,
            AverageWeight::Whole => load.raw() as i64,
        }
    }

    /// Whether all fair tasks of a CPU compete on its root queue (85570f10a4c6).
    #[inline(always)]
    pub(crate) fn competes_on_one_queue(&self) -> bool {
        self.generation.groups.competition == Competition::OneQueue
    }

    /// The queue on whose time line those on `cfs_rq` compete.
    #[inline(always)]
    pub(crate) fn line_of(&self, cfs_rq: CfsRqId) -> CfsRqId {
        if self.competes_on_one_queue() { CfsRqId::root(self.cfs(cfs_rq).cpu) } else { cfs_rq }
    }

    /// How many entities compete on a time line, the running one included.
    #[inline(always)]
    pub(crate) fn competitors_on(&self, line: CfsRqId) -> u32 {
        let queue = self.cfs(line);
        if self.competes_on_one_queue() { queue.h_nr_running } else { queue.nr_running }
    }

    /// Whether there are others where an entity is about to be placed.
    #[inline]
    pub(crate) fn has_company(&self, line: CfsRqId, se: SeId) -> bool {
        let queue = self.cfs(line);
        match self.competes_on_one_queue() {
            true => queue.timeline.len() > 0 || self.running_entity(line).is_some_and(|curr| curr != se),
            false => queue.nr_running > 0,
        }
    }
}
