//! Which tasks of a queue are moved: a pass over them from the one that ran longest ago.
//!
//! Must not know: why this queue, and what follows.

#[cfg(test)]
pub(super) mod tests;

use std::collections::VecDeque;

use fairlab_event::Cpu;

use crate::balance::decided::{DetachPass, LbEnv, TaskLook};
use crate::balance::imbalance::MigrationType;
use crate::balance::migrate::LbfFlags;
use crate::balance::reasons::{PullEnd, TaskReason};
use crate::balance::rules::{AllPinned, LoadStep, LookLimit, MisfitSize, NewidlePull, NoLoad, UtilStep};
use crate::entity::CfsRqId;
use crate::pelt::CfsRqLoad;
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

/// How many tasks of a queue are looked at (`sysctl_sched_nr_migrate`).
pub(super) const NR_MIGRATE: u32 = 32;

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
    /// Averages of the queues that tasks have left.
    left: Vec<(CfsRqId, CfsRqLoad)>,
    /// Where groups share the queue: the machine once those tasks have left.
    after: Option<Box<Scheduler>>,
    /// Queues whose part of the load was asked for before.
    asked: Vec<CfsRqId>,
    /// Tasks that have left it so far, and where to.
    departed: Vec<(TaskId, Cpu)>,
}

impl Scheduler {
    pub(super) fn source_queue(&self, cpu: Cpu) -> SourceQueue {
        let rq = &self.rqs[cpu.index()];
        let mut tasks = rq.cfs_tasks.oldest_first(&self.shared.tasks).collect::<VecDeque<_>>();
        tasks.make_contiguous().reverse();
        let (nr_running, look_limit) = (rq.nr_running, NR_MIGRATE.min(rq.nr_running));
        SourceQueue { tasks, nr_running, look_limit, ..SourceQueue::of(cpu) }
    }

    /// Balancing has looked at `tasks` of the queue of `cpu`, which stay: they stand in front of the others from now on.
    /// Those that have left since count for nothing.
    pub fn pass_over(&mut self, cpu: Cpu, tasks: &[TaskId]) {
        let list = self.rqs[cpu.index()].cfs_tasks;
        let queued = list.oldest_first(&self.shared.tasks).collect::<Vec<_>>();
        for &task in tasks.iter().filter(|task| queued.contains(task)) {
            self.stand_in_front(cpu, task);
        }
    }

    /// Balancing has looked at a task of the queue of `cpu` and left it there.
    pub(super) fn stand_in_front(&mut self, cpu: Cpu, task: TaskId) {
        let list = &mut self.rqs[cpu.index()].cfs_tasks;
        list.remove(&mut self.shared.tasks, task);
        list.push_newest(&mut self.shared.tasks, task);
    }

    /// Looks at the tasks of `queue` until enough is moved. Changes what is left to be moved.
    ///
    /// Kernel: `detach_tasks()`, kernel/sched/fair.c.
    pub(super) fn detach_tasks(
        &self,
        attempt: &mut LbEnv,
        queue: &mut SourceQueue,
        pinned: &mut LbfFlags,
    ) -> DetachPass {
        let mut pull = DetachPass {
            source: queue.cpu,
            dest: attempt.dest,
            imbalance: attempt.imbalance,
            by_load: attempt.migration == MigrationType::Load,
            looks: Vec::new(),
            end: PullEnd::Exhausted,
        };
        if self.shared.generation.balance.all_pinned == AllPinned::UntilMovable && queue.nr_running <= 1 {
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
                let further =
                    self.shared.generation.balance.look_limit == LookLimit::UntilOneAllowed && pinned.all;
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
        attempt: &mut LbEnv,
        task: TaskId,
        queue: &mut SourceQueue,
        pinned: &mut LbfFlags,
    ) -> TaskLook {
        let reason = self.can_leave(attempt, task, queue, pinned);
        if !reason.is_moved() {
            return TaskLook { task, reason, size: 0 };
        }
        let may = reason;
        let failed = self.domain_state(attempt.cpu, attempt.level).nr_balance_failed;
        let (reason, size) = match attempt.migration {
            MigrationType::Load => self.take_load(attempt, task, queue, failed),
            MigrationType::Util => {
                let util = self.task_util_est(task);
                let counted = match self.shared.generation.balance.util_step {
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
            MigrationType::Task | MigrationType::LlcTask => {
                attempt.imbalance -= 1;
                (TaskReason::Moved, 1)
            }
            MigrationType::Misfit => self.take_misfit(attempt, task, queue.cpu),
        };
        if !reason.is_moved() {
            return TaskLook { task, reason, size };
        }
        queue.note_leaving(self, task, attempt);
        TaskLook { task, reason: may, size }
    }

    fn take_load(
        &self,
        attempt: &mut LbEnv,
        task: TaskId,
        queue: &mut SourceQueue,
        failed: u32,
    ) -> (TaskReason, u64) {
        let rules = &self.shared.generation.balance;
        let least = u64::from(rules.no_load == NoLoad::One);
        let load = queue.task_h_load(self, task).max(least);
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

    fn take_misfit(&self, attempt: &mut LbEnv, task: TaskId, source: Cpu) -> (TaskReason, u64) {
        let (fits, size) = match self.shared.generation.balance.misfit_size {
            MisfitSize::ByLoad => {
                let load = self.shared.task_h_load(task);
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
    /// That of `cpu`, of which nobody has looked at a task yet.
    pub(super) fn of(cpu: Cpu) -> SourceQueue {
        SourceQueue {
            cpu,
            tasks: VecDeque::new(),
            nr_running: 0,
            looked: 0,
            look_limit: 0,
            look_break: NR_MIGRATE,
            left: Vec::new(),
            after: None,
            asked: Vec::new(),
            departed: Vec::new(),
        }
    }

    /// An attempt with the same queue begins again: as many tasks are looked at again.
    pub fn restart(&mut self) {
        self.looked = 0;
        self.look_break = NR_MIGRATE;
    }

    /// What a task counts of the load once those before it have left.
    fn task_h_load(&mut self, scheduler: &Scheduler, task: TaskId) -> u64 {
        let cfs_rq = scheduler.entity_of(task).cfs_rq;
        if let Some(after) = &mut self.after {
            after.shared.update_cfs_rq_h_load(cfs_rq);
            return after.shared.task_h_load(task);
        }
        self.asked.push(cfs_rq);
        let left = self.left.iter().find(|(queue, _)| *queue == cfs_rq);
        scheduler.shared.task_h_load_after(task, left.map(|(_, tracked)| tracked.avg.load_avg))
    }

    /// A task is detached. Where load counts its queue's averages are aged and lose it; with groups the queues above follow, and
    /// weights.
    fn note_leaving(&mut self, scheduler: &Scheduler, task: TaskId, attempt: &LbEnv) {
        let root = scheduler.cfs(scheduler.rqs[self.cpu.index()].cfs);
        let by_load = attempt.migration == MigrationType::Load;
        if by_load && root.nr_running != root.h_nr_running {
            self.begin_after(scheduler);
        }
        self.departed.push((task, attempt.dest));
        if let Some(after) = &mut self.after {
            return after.detach_task(task, attempt.dest);
        }
        if !by_load {
            return;
        }
        let cfs_rq = scheduler.entity_of(task).cfs_rq;
        let at = self.left.iter().position(|(queue, _)| *queue == cfs_rq).unwrap_or_else(|| {
            self.left.push((cfs_rq, scheduler.cfs(cfs_rq).tracked));
            self.left.len() - 1
        });
        let rq = &scheduler.rqs[self.cpu.index()];
        scheduler.shared.averages_without(rq, task, &mut self.left[at].1);
    }

    /// The machine as it is once those that have left are gone.
    fn begin_after(&mut self, scheduler: &Scheduler) -> &Scheduler {
        self.after.get_or_insert_with(|| {
            let mut after = Box::new(scheduler.clone());
            after.set_tracing(false);
            after.rq_lock(self.cpu).update_rq_clock();
            self.asked.iter().for_each(|&queue| after.shared.update_cfs_rq_h_load(queue));
            self.departed.iter().for_each(|&(task, dest)| after.detach_task(task, dest));
            after
        })
    }

    /// Whether a task of the queue has no negative lag, now that others have left.
    pub(super) fn is_eligible(&mut self, scheduler: &Scheduler, task: TaskId) -> bool {
        let departed = || self.departed.iter().map(|&(task, _)| task);
        if self.after.is_some() || departed().any(|left| scheduler.shared.weighed_on(left, task)) {
            return self.begin_after(scheduler).shared.is_eligible_without(task, std::iter::empty());
        }
        scheduler.shared.is_eligible_without(task, departed())
    }
}

/// Shifts right, by as much as a word has bits at most (`shr_bound()`).
const fn shr_bound(value: u64, shift: u32) -> u64 {
    if shift < u64::BITS { value >> shift } else { value >> (u64::BITS - 1) }
}
