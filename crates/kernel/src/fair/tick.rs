//! The tick.

use crate::all_cpus::Shared;
use crate::decision::{TickDecision, TickReason};
use crate::entity::{CfsRqId, SeId};
use crate::fair::load_update::LoadUpdate;
use crate::fair::rules::{TickPreemption, VirtualZero};
use crate::rq::LockedRq;
use crate::task::TaskId;

impl Shared {
    /// What accounting found out: EEVDF has no test of its own at the tick.
    fn deadline_passed(&self, cfs_rq: CfsRqId, was_pending: bool) -> TickDecision {
        let queue = self.cfs(cfs_rq);
        let resched = self.need_resched(queue.cpu) && !was_pending;
        let reason = match (resched, self.competitors_on(cfs_rq)) {
            (true, _) => TickReason::SliceUsed,
            (false, 1) => TickReason::Alone,
            (false, _) => TickReason::WithinSlice,
        };
        TickDecision { resched, reason }
    }

    /// Whether the running entity of a queue has had its share. Pure; run time must be accounted up to now.
    ///
    /// Kernel: `check_preempt_tick()`, kernel/sched/fair.c; the cap at the latency from v6.3 (79ba1e607d68). Mind that
    /// the last test compares virtual time with run time.
    pub(crate) fn check_preempt_tick(&self, cfs_rq: CfsRqId, se: SeId) -> TickDecision {
        let decide = |resched, reason| TickDecision { resched, reason };
        let queue = self.cfs(cfs_rq);
        if queue.nr_running <= 1 {
            return decide(false, TickReason::Alone);
        }
        let mut ideal = self.sched_slice(cfs_rq, se);
        if self.generation.fair.tick_preemption == TickPreemption::IdealSliceWithinLatency {
            ideal = ideal.min(self.sysctl.latency);
        }
        let entity = self.se(se);
        let ran = entity.sum_exec_runtime - entity.prev_sum_exec_runtime;
        if ran > ideal {
            return decide(true, TickReason::SliceUsed);
        }
        if ran < self.sysctl.min_granularity {
            return decide(false, TickReason::BelowMinGranularity);
        }
        let Some(leftmost) = queue.timeline.leftmost() else { return decide(false, TickReason::Alone) };
        match entity.vruntime.minus(leftmost.vruntime) {
            ahead if ahead < 0 => decide(false, TickReason::LeftmostAhead),
            ahead if ahead as u64 > ideal => decide(true, TickReason::FarAhead),
            _ => decide(false, TickReason::WithinSlice),
        }
    }

    fn apply_tick(&mut self, cfs_rq: CfsRqId, se: SeId, decision: TickDecision) {
        if decision.resched {
            self.resched_curr(self.cfs(cfs_rq).cpu, "check_preempt_tick");
        }
        if decision.reason == TickReason::SliceUsed {
            // Otherwise a buddy could be picked again at once.
            self.clear_buddies(se);
        }
    }
}

impl LockedRq<'_> {
    /// Accounts a running task at every level and takes the CPU away if any level says so.
    ///
    /// Returns the decision of the level that took it, or else the root's. Kernel: `task_tick_fair()`, `entity_tick()`.
    pub(crate) fn task_tick_fair(&mut self, task: TaskId) -> TickDecision {
        self.probe_tick(task);
        let decided = self.tick_levels(task);
        self.task_tick_cache(task);
        decided
    }

    fn tick_levels(&mut self, task: TaskId) -> TickDecision {
        if self.shared.competes_on_one_queue() {
            let line = self.rq.cfs;
            let pending = self.shared.need_resched(self.cfs(line).cpu);
            self.account_tick(task);
            return self.shared.deadline_passed(line, pending);
        }
        let mut level = Some(self.shared.tasks[task.index()].se);
        let mut decided = TickDecision { resched: false, reason: TickReason::Alone };
        while let Some(se) = level {
            let cfs_rq = self.se(se).cfs_rq;
            let pending = self.shared.need_resched(self.cfs(cfs_rq).cpu);
            self.account_level(se);
            let decision = match self.shared.generation.fair.tick_preemption {
                TickPreemption::Deadline => self.shared.deadline_passed(cfs_rq, pending),
                TickPreemption::IdealSlice | TickPreemption::IdealSliceWithinLatency => {
                    let decision = self.shared.check_preempt_tick(cfs_rq, se);
                    self.shared.apply_tick(cfs_rq, se, decision);
                    decision
                }
            };
            if !decided.resched {
                decided = decision;
            }
            level = self.se(se).parent;
        }
        decided
    }

    /// Accounts a running task at every level.
    pub(crate) fn account_tick(&mut self, task: TaskId) {
        let mut level = Some(self.shared.tasks[task.index()].se);
        while let Some(se) = level {
            self.account_level(se);
            level = self.se(se).parent;
        }
        if self.shared.competes_on_one_queue() {
            self.shared.reweigh_running(self.shared.tasks[task.index()].se);
        }
    }

    fn account_level(&mut self, se: SeId) {
        let cfs_rq = self.se(se).cfs_rq;
        self.update_curr(cfs_rq);
        self.update_load_avg(se, LoadUpdate::TELL);
        self.update_cfs_group(se);
        if self.shared.generation.fair.virtual_zero == VirtualZero::AverageAtTick {
            self.shared.average_vruntime(cfs_rq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{MS, SchedulerTestbed};

    fn turns(kernel: &str, cpus: u32, nices: &[i32], milliseconds: u64) -> Vec<(usize, usize)> {
        let mut bed = SchedulerTestbed::new(kernel, cpus, 1);
        let tasks = nices.iter().map(|&nice| bed.spawn(nice, 0)).collect::<Vec<_>>();
        let ran = bed.run(0, milliseconds);
        let runs = ran.chunk_by(|one, other| one == other);
        runs.map(|run| (tasks.iter().position(|task| *task == run[0]).expect("a task"), run.len())).collect()
    }

    /// Two equal hogs on 8 CPUs: half of 24 ms each; on one CPU half of 6 ms.
    #[test]
    fn cfs_hogs_share_the_latency() {
        assert_eq!(turns("v6.5", 8, &[0, 0], 60)[1..4], [(1, 12), (0, 12), (1, 12)]);
        assert_eq!(turns("v6.5", 1, &[0, 0], 30)[1..5], [(1, 3), (0, 3), (1, 3), (0, 3)]);
    }

    /// Ten hogs do not fit into the latency: each gets the minimal granularity of 3 ms.
    #[test]
    fn cfs_slices_do_not_shrink_below_the_minimal_granularity() {
        let turns = turns("v6.5", 8, &[0; 10], 120);
        assert!(turns[1..turns.len() - 1].iter().all(|&(_, length)| (3..=4).contains(&length)), "{turns:?}");
    }

    /// The base slice each: 3 ms on 8 CPUs. A short sleep puts the hogs out of step with the tick, otherwise their
    /// deadlines would tie, and the running one wins ties.
    #[test]
    fn eevdf_hogs_share_by_the_base_slice() {
        for (kernel, slice) in [("v6.6", 3), ("v6.6,base_slice_ns=10000000", 10)] {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            bed.spawn(0, 0);
            bed.spawn(0, 0);
            bed.run(0, slice as u64 + 1);
            bed.pass(MS / 2);
            let sleeper = bed.sleep(0);
            bed.pass(MS / 5);
            bed.wake(sleeper, 0);
            let ran = bed.run(0, 80);
            let turns = ran.chunk_by(|one, other| one == other).map(<[_]>::len).collect::<Vec<_>>();
            let regular = &turns[3..turns.len() - 1];
            assert!(regular.len() > 2 && regular.iter().all(|&turn| turn == slice), "{kernel}: {turns:?}");
        }
    }

    #[test]
    fn eevdf_lets_the_running_one_win_a_tie_of_deadlines() {
        let turns = turns("v6.6", 8, &[0, 0], 40);
        assert!(turns[1..5].iter().all(|&(_, length)| length == 6), "{turns:?}");
    }

    #[test]
    fn a_lone_task_is_never_preempted() {
        for kernel in ["v6.5", "v6.6"] {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let task = bed.spawn(0, 0);
            assert!(bed.run(0, 100).iter().all(|&ran| ran == task));
            bed.pass(MS);
            assert_eq!(bed.tick(0), TickDecision { resched: false, reason: TickReason::Alone });
        }
    }
}
