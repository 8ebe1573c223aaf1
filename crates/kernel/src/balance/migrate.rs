//! Whether one task may be moved, and whether it should be.
//!
//! Must not know: how many are to be moved.

use fairlab_event::Cpu;

use crate::balance::attempt::Attempt;
use crate::balance::imbalance::MigrationType;
use crate::balance::reasons::TaskReason;
use crate::balance::rules::{DelayedMoves, Ineligible, PercpuKthreads, PushFailures, SmtHeat};
use crate::core::Scheduler;
use crate::domain::SdFlags;
use crate::generation::Feature;
use crate::schedstat::CpuIdleType;
use crate::task::{Policy, TaskId};

/// What a pass has learnt of its queue's tasks (`LBF_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pinned {
    /// No task that is allowed here was found yet (`LBF_ALL_PINNED`).
    pub all: bool,
    /// Some task is not allowed here (`LBF_SOME_PINNED`).
    pub some: bool,
    /// A CPU of this group on which such a task is allowed (`LBF_DST_PINNED`).
    pub other_dest: Option<Cpu>,
}

impl Scheduler {
    /// Whether `task` may go from `source` to where the attempt takes it; `Moved` and `MovedHot` say that it may.
    ///
    /// Kernel: `can_migrate_task()`, kernel/sched/fair.c. Departs: no NUMA placement, no cookies.
    pub(super) fn can_migrate_task(
        &self,
        attempt: &Attempt,
        task: TaskId,
        source: Cpu,
        pinned: &mut Pinned,
    ) -> TaskReason {
        let rules = &self.generation.balance;
        let known = &self.tasks[task.index()];
        let state = self.domain_state(attempt.cpu, attempt.level);
        let for_load = attempt.migration == MigrationType::Load;
        if rules.delayed_moves == DelayedMoves::ForLoadOnly && known.is_delayed() && !for_load {
            return TaskReason::SleepsQueued;
        }
        if self.throttled_for_balance(task, attempt.dest) {
            return TaskReason::Throttled;
        }
        if rules.ineligible == Ineligible::AfterFailure
            && state.nr_balance_failed == 0
            && self.would_wait_there(task, attempt.dest)
        {
            return TaskReason::Ineligible;
        }
        if rules.percpu_kthreads == PercpuKthreads::PassedOver && known.per_cpu_kthread {
            return TaskReason::PercpuKthread;
        }
        if !known.allowed.contains(attempt.dest) {
            pinned.some = true;
            if attempt.idle != CpuIdleType::NewlyIdle && pinned.other_dest.is_none() && !attempt.pushes {
                let group = self.local_group(attempt.cpu, attempt.level).span;
                pinned.other_dest = group.and(&attempt.cpus).and(&known.allowed).lowest();
            }
            return TaskReason::NotAllowed;
        }
        pinned.all = false;
        if self.curr(source) == task {
            return TaskReason::Running;
        }
        if attempt.pushes && rules.push_failures == PushFailures::Kept {
            return TaskReason::Moved;
        }
        match self.heat(attempt, task, source) {
            Some(_) if state.nr_balance_failed > self.cache_nice_tries(attempt) => TaskReason::MovedHot,
            Some(reason) => reason,
            None => TaskReason::Moved,
        }
    }

    pub(super) fn cache_nice_tries(&self, attempt: &Attempt) -> u32 {
        self.domain(attempt.cpu, attempt.level).cache_nice_tries
    }

    /// Why a task is taken to have its data in the caches of the CPU on which it waits; `None` if it is not.
    ///
    /// Kernel: `task_hot()`, kernel/sched/fair.c.
    fn heat(&self, attempt: &Attempt, task: TaskId, source: Cpu) -> Option<TaskReason> {
        let rules = &self.generation.balance;
        let threads = self.domain(attempt.cpu, attempt.level).flags.has(SdFlags::SHARE_CPUCAPACITY);
        if self.tasks[task.index()].policy == Policy::Idle {
            return None;
        }
        if threads && rules.smt_heat == SmtHeat::ColdBetweenThreads {
            return None;
        }
        let entity = self.entity_of(task);
        if self.has(Feature::CacheHotBuddy) && self.nr_running(attempt.dest) > 0 {
            let (queue, se) = (self.cfs(entity.cfs_rq), Some(self.tasks[task.index()].se));
            if queue.next == se || queue.last == se {
                return Some(TaskReason::Buddy);
            }
        }
        let clock = self.trace.now.0.max(self.rqs[source.index()].clock.0);
        let since = clock.wrapping_sub(entity.exec_start) as i64;
        (since < self.sysctl.migration_cost as i64).then_some(TaskReason::CacheHot)
    }

    /// Whether a task is past its queue's average while others are queued where it would go.
    ///
    /// Kernel: `task_is_ineligible_on_dst_cpu()`, kernel/sched/fair.c (873199d27bb2).
    fn would_wait_there(&self, task: TaskId, dest: Cpu) -> bool {
        let group = &self.groups[self.tasks[task.index()].group.0 as usize];
        let there = self.cfs(group.cfs_rqs[dest.index()]);
        let entity = self.entity_of(task);
        self.has(Feature::PlaceLag)
            && there.nr_running > 0
            && !self.cfs(entity.cfs_rq).is_eligible(entity.vruntime, self.running(entity.cfs_rq))
    }
}
