//! Which tasks of a queue are moved: a pass over them from the one that ran longest ago.
//!
//! Must not know: why this queue, and what follows.

use std::collections::VecDeque;

use fairlab_event::Cpu;

use crate::balance::attempt::Attempt;
use crate::balance::imbalance::MigrationType;
use crate::balance::migrate::Pinned;
use crate::balance::reasons::{PullEnd, TaskReason};
use crate::balance::rules::{AllPinned, LoadStep, LookLimit, MisfitSize, NewidlePull, NoLoad, UtilStep};
use crate::core::Scheduler;
use crate::entity::CfsRqId;
use crate::schedstat::CpuIdleType;
use crate::task::TaskId;

/// How many tasks of a queue are looked at (`sysctl_sched_nr_migrate`).
const NR_MIGRATE: u32 = 32;

/// One pass over a queue (`detach_tasks()`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The queue's CPU.
    pub source: Cpu,
    /// Where its tasks go.
    pub dest: Cpu,
    /// What was to be moved when it began.
    pub imbalance: i64,
    /// Every task that was looked at, in order.
    pub looks: Vec<TaskLook>,
    /// Why it ended.
    pub end: PullEnd,
}

/// A task that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLook {
    /// The task.
    pub task: TaskId,
    /// What becomes of it.
    pub reason: TaskReason,
    /// What it counts: load, utilization or 1, where it was asked.
    pub size: u64,
}

impl Pull {
    /// The tasks that are moved, in the order in which they leave their queue.
    pub fn moved(&self) -> impl DoubleEndedIterator<Item = TaskId> {
        self.looks.iter().filter(|look| look.reason.is_moved()).map(|look| look.task)
    }
}

/// A queue as it will be in the course of an attempt.
#[derive(Clone, Debug)]
pub(super) struct SourceQueue {
    pub cpu: Cpu,
    /// Its tasks; the one that ran longest ago is last.
    tasks: VecDeque<TaskId>,
    pub nr_running: u32,
    /// Tasks looked at so far (`env.loop`).
    pub looked: u32,
    look_limit: u32,
    /// After how many a breather is taken (`env.loop_break`).
    look_break: u32,
    /// Load that has left each queue.
    left: Vec<(CfsRqId, u64)>,
}

impl Scheduler {
    pub(super) fn source_queue(&self, cpu: Cpu) -> SourceQueue {
        let rq = &self.rqs[cpu.index()];
        let mut tasks = rq.cfs_tasks.oldest_first(&self.tasks).collect::<VecDeque<_>>();
        tasks.make_contiguous().reverse();
        let (nr_running, look_limit) = (rq.nr_running, NR_MIGRATE.min(rq.nr_running));
        SourceQueue {
            cpu,
            tasks,
            nr_running,
            looked: 0,
            look_limit,
            look_break: NR_MIGRATE,
            left: Vec::new(),
        }
    }

    /// Looks at the tasks of `queue` until enough is moved. Changes what is left to be moved.
    ///
    /// Kernel: `detach_tasks()`, kernel/sched/fair.c.
    pub(super) fn detach_tasks(
        &self,
        attempt: &mut Attempt,
        queue: &mut SourceQueue,
        pinned: &mut Pinned,
    ) -> Pull {
        let mut pull = Pull {
            source: queue.cpu,
            dest: attempt.dest,
            imbalance: attempt.imbalance,
            looks: Vec::new(),
            end: PullEnd::Exhausted,
        };
        if self.generation.balance.all_pinned == AllPinned::UntilMovable && queue.nr_running <= 1 {
            pinned.all = false;
        }
        if attempt.imbalance <= 0 {
            pull.end = PullEnd::Enough;
            return pull;
        }
        while let Some(&task) = queue.tasks.back() {
            if attempt.idle != CpuIdleType::NotIdle && queue.nr_running <= 1 {
                pull.end = PullEnd::LeavesOne;
                break;
            }
            queue.looked += 1;
            if queue.looked > queue.look_limit {
                let further = self.generation.balance.look_limit == LookLimit::UntilOneAllowed && pinned.all;
                // A breather every 32 tasks, after which the pass goes on if the queue is longer than that.
                let breathes = queue.looked > queue.look_break;
                if !further || (breathes && queue.looked >= queue.nr_running) {
                    pull.end = PullEnd::LookLimit;
                    break;
                }
                if breathes {
                    queue.look_break += NR_MIGRATE;
                    continue;
                }
            }
            queue.tasks.pop_back();
            let look = self.look_at(attempt, task, queue, pinned);
            pull.looks.push(look);
            if !look.reason.is_moved() {
                queue.tasks.push_front(task);
                continue;
            }
            queue.nr_running -= 1;
            if attempt.idle == CpuIdleType::NewlyIdle && self.newidle_pull() == NewidlePull::OneTask {
                pull.end = PullEnd::OneForNewidle;
                break;
            }
            if attempt.imbalance <= 0 {
                pull.end = PullEnd::Enough;
                break;
            }
        }
        pull
    }

    fn look_at(
        &self,
        attempt: &mut Attempt,
        task: TaskId,
        queue: &mut SourceQueue,
        pinned: &mut Pinned,
    ) -> TaskLook {
        let reason = self.can_migrate_task(attempt, task, queue.cpu, pinned);
        if !reason.is_moved() {
            return TaskLook { task, reason, size: 0 };
        }
        let may = reason;
        let failed = self.domain_state(attempt.cpu, attempt.level).nr_balance_failed;
        let (reason, size) = match attempt.migration {
            MigrationType::Load => self.take_load(attempt, task, queue, failed),
            MigrationType::Util => {
                let util = self.task_util_est(task);
                let counted = match self.generation.balance.util_step {
                    UtilStep::TheImbalance => util,
                    UtilStep::DoublingWithFailures => shr_bound(util, failed),
                };
                if counted as i64 > attempt.imbalance {
                    (TaskReason::UtilTooLarge, util)
                } else {
                    attempt.imbalance -= util as i64;
                    (TaskReason::Moved, util)
                }
            }
            MigrationType::Task => {
                attempt.imbalance -= 1;
                (TaskReason::Moved, 1)
            }
            MigrationType::Misfit => self.take_misfit(attempt, task, queue.cpu),
        };
        if !reason.is_moved() {
            return TaskLook { task, reason, size };
        }
        queue.note_leaving(self, task);
        TaskLook { task, reason: may, size }
    }

    fn take_load(
        &self,
        attempt: &mut Attempt,
        task: TaskId,
        queue: &SourceQueue,
        failed: u32,
    ) -> (TaskReason, u64) {
        let rules = &self.generation.balance;
        let least = u64::from(rules.no_load == NoLoad::One);
        let load = self.task_h_load_after(task, queue.load_left(self.entity_of(task).cfs_rq)).max(least);
        let imbalance = attempt.imbalance as u64;
        let too_large = match rules.load_step {
            LoadStep::TwiceTheImbalance => load / 2 > imbalance,
            LoadStep::TwiceUnlessFailing => load / 2 > imbalance && failed <= self.cache_nice_tries(attempt),
            // A shift by more than the width of a word shifts by the rest on x86.
            LoadStep::DoublingWithFailures => load.wrapping_shr(failed) > imbalance,
            LoadStep::DoublingWithinWord => shr_bound(load, failed) > imbalance,
        };
        if too_large {
            return (TaskReason::LoadTooLarge, load);
        }
        attempt.imbalance -= load as i64;
        (TaskReason::Moved, load)
    }

    fn take_misfit(&self, attempt: &mut Attempt, task: TaskId, source: Cpu) -> (TaskReason, u64) {
        let (fits, size) = match self.generation.balance.misfit_size {
            MisfitSize::ByLoad => {
                let load = self.task_h_load(task);
                (((load / 2) as i64) < attempt.imbalance, load)
            }
            MisfitSize::ByCapacity => (self.task_fits_capacity(task, source), self.task_util_est(task)),
        };
        if fits {
            return (TaskReason::FitsItsCpu, size);
        }
        attempt.imbalance = 0;
        (TaskReason::Moved, size)
    }
}

impl SourceQueue {
    /// An attempt with the same queue begins anew: as many tasks are looked at again.
    pub fn restart(&mut self) {
        self.looked = 0;
        self.look_break = NR_MIGRATE;
    }

    fn load_left(&self, cfs_rq: CfsRqId) -> u64 {
        self.left.iter().find(|(queue, _)| *queue == cfs_rq).map_or(0, |(_, load)| *load)
    }

    fn note_leaving(&mut self, scheduler: &Scheduler, task: TaskId) {
        let entity = scheduler.entity_of(task);
        let load = entity.avg.load_avg;
        match self.left.iter_mut().find(|(queue, _)| *queue == entity.cfs_rq) {
            Some((_, left)) => *left += load,
            None => self.left.push((entity.cfs_rq, load)),
        }
    }
}

/// Shifts right, by as much as a word has bits at most (`shr_bound()`).
const fn shr_bound(value: u64, shift: u32) -> u64 {
    if shift < u64::BITS { value >> shift } else { value >> (u64::BITS - 1) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::balance::Balanced;
    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::{Bed, MS};

    fn idle_cpu_0(bed: &mut Bed) -> crate::balance::BalanceDecision {
        bed.pass(MS);
        bed.at(0);
        bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::Idle)
    }

    #[test]
    fn the_task_that_ran_longest_ago_goes_first_and_arrives_last() {
        let mut bed = Bed::new("v5.10", 2, 1);
        let running = bed.spawn(0, 1);
        let waiting = (0..4).map(|_| bed.spawn(0, 1)).collect::<Vec<_>>();
        let decision = idle_cpu_0(&mut bed);
        let seen = decision.pulls[0].looks.iter().map(|look| (look.task, look.reason)).collect::<Vec<_>>();
        let (running, moved) = ((running, TaskReason::Running), TaskReason::Moved);
        assert_eq!(
            seen,
            [running, (waiting[0], moved), (waiting[1], moved)],
            "5 and 0: half of the difference"
        );
        assert_eq!(bed.scheduler.apply_balance(&decision), 2);
        let arrived = bed.scheduler.rqs[0].cfs_tasks.oldest_first(&bed.scheduler.tasks).collect::<Vec<_>>();
        assert_eq!(arrived, [waiting[1], waiting[0]]);
        assert!(bed.scheduler.need_resched(Cpu(0)), "the idle CPU is told");
    }

    /// How many tasks a CPU takes that goes idle beside one with five.
    pub(crate) fn moved_when_newly_idle(kernel: &str) -> u64 {
        let mut bed = Bed::new(kernel, 2, 1);
        for _ in 0..5 {
            bed.spawn(0, 1);
        }
        bed.pass(MS);
        bed.at(0);
        bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::NewlyIdle).moved() as u64
    }

    #[test]
    fn a_cpu_that_goes_idle_takes_one_task_of_a_preemptible_kernel() {
        let preemptible = ["v6.1+preemptible", "debian-6.1", "debian-6.12", "v7.0", "debian-7.2"];
        let others = ["v6.1", "debian-5.10", "v6.19"];
        assert_eq!(preemptible.map(moved_when_newly_idle), [1; 5]);
        assert_eq!(others.map(moved_when_newly_idle), [2; 3]);
    }

    #[test]
    fn a_pass_ends_after_32_tasks_if_none_of_them_is_allowed() {
        for (kernel, moves) in [("v6.0", false), ("v6.1", true), ("v6.10", false)] {
            let mut bed = Bed::new(kernel, 2, 1);
            for _ in 0..40 {
                bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(1)));
            }
            let free = bed.spawn(0, 1);
            let decision = idle_cpu_0(&mut bed);
            assert_eq!(decision.moved() > 0, moves, "{kernel}");
            if moves {
                assert!(decision.pulls[0].moved().eq([free]));
            } else {
                assert_eq!(decision.balanced, Some(Balanced::AllPinned));
            }
        }
    }

    #[test]
    fn a_task_that_just_ran_is_hot_for_a_while_but_not_for_the_other_thread() {
        let hot = |kernel: &str, threads, wait| {
            let mut bed = Bed::new(kernel, 2 / threads, threads);
            let first = bed.spawn(0, 1);
            bed.spawn(0, 1);
            while bed.scheduler.curr(Cpu(1)) == first {
                bed.run(1, 1);
            }
            bed.pass(wait);
            bed.at(0);
            let decision = bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::NewlyIdle);
            decision.pulls[0]
                .looks
                .iter()
                .any(|look| look.task == first && look.reason == TaskReason::CacheHot)
        };
        assert!(hot("v5.9", 1, 400_000) && !hot("v5.9", 1, 600_000));
        assert!(hot("v5.9", 2, 400_000) && !hot("v5.10", 2, 400_000), "ec73240b1627");
        assert!(hot("v5.10", 1, 400_000));
    }

    /// How many tasks are pulled after 64 failures, of a queue whose waiting task is more than twice the imbalance.
    pub(crate) fn moved_after_64_failures(kernel: &str) -> u64 {
        let mut bed = Bed::new(kernel, 2, 1);
        for _ in 0..2 {
            bed.spawn(-20, 1);
            bed.spawn(-18, 0);
        }
        for _ in 0..200 {
            bed.run(0, 1);
            bed.tick(1);
            bed.return_to_user(1);
        }
        bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = 64;
        bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::NotIdle).moved() as u64
    }

    #[test]
    fn the_more_failures_the_larger_a_task_may_be() {
        assert_eq!(["v5.12", "v5.13"].map(moved_after_64_failures), [0, 1], "39a2a6eb5c9b");
    }

    #[test]
    fn shifts_are_bound_by_the_word() {
        assert_eq!((shr_bound(1024, 3), shr_bound(u64::MAX, 64), shr_bound(u64::MAX, 1000)), (128, 1, 1));
        assert_eq!(1024_u64.wrapping_shr(64), 1024, "what x86 did before 39a2a6eb5c9b");
    }
}
