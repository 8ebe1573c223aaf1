//! Whether one task may be moved, and whether it should be.
//!
//! Must not know: how many are to be moved.

use fairlab_event::Cpu;

use crate::balance::decided::LbEnv;
use crate::balance::detach::SourceQueue;
use crate::balance::imbalance::MigrationType;
use crate::balance::reasons::TaskReason;
use crate::balance::rules::{DelayedMoves, Ineligible, PercpuKthreads, PushFailures, SmtHeat};
use crate::domain::SdFlags;
use crate::generation::Feature;
use crate::process::ProcessId;
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;
use crate::task::{Policy, TaskId};

/// What a pass has learnt of its queue's tasks (`LBF_*`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LbfFlags {
    /// No task that is allowed here was found yet (`LBF_ALL_PINNED`).
    pub all: bool,
    /// Some task is not allowed here (`LBF_SOME_PINNED`).
    pub some: bool,
    /// A CPU of this group on which such a task is allowed (`LBF_DST_PINNED`).
    pub other_dest: Option<Cpu>,
    /// Some task was left where its process is (`LBF_LLC_PINNED`).
    pub llc: bool,
    /// Processes whose preference for a cache turned out to have no use.
    pub forgets: Vec<ProcessId>,
}

impl Scheduler {
    /// Whether `task` may go from `source` to where the attempt takes it; `Moved` and `MovedHot` say that it may.
    ///
    /// Kernel: `can_migrate_task()`, kernel/sched/fair.c. Departs: no NUMA placement, no cookies.
    pub(super) fn can_migrate_task(
        &self,
        attempt: &LbEnv,
        task: TaskId,
        source: Cpu,
        pinned: &mut LbfFlags,
    ) -> TaskReason {
        self.can_leave(attempt, task, &mut SourceQueue::of(source), pinned)
    }

    /// The same of a queue that some have left already.
    pub(super) fn can_leave(
        &self,
        attempt: &LbEnv,
        task: TaskId,
        queue: &mut SourceQueue,
        pinned: &mut LbfFlags,
    ) -> TaskReason {
        let source = queue.cpu;
        let rules = &self.shared.generation.balance;
        let known = &self.shared.tasks[task.index()];
        let state = self.domain_state(attempt.cpu, attempt.level);
        let for_load = attempt.migration == MigrationType::Load;
        if rules.delayed_moves == DelayedMoves::ForLoadOnly && known.is_delayed() && !for_load {
            return TaskReason::SleepsQueued;
        }
        if self.shared.throttled_for_balance(task, attempt.dest) {
            return TaskReason::Throttled;
        }
        if rules.ineligible == Ineligible::AfterFailure
            && state.nr_balance_failed == 0
            && self.has_company_there(task, attempt.dest)
            && !queue.is_eligible(self, task)
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
            return match self.prefers_other_cache(attempt, task) {
                true => TaskReason::PrefersOtherCache,
                false => TaskReason::Moved,
            };
        }
        if let Some(reason) = self.degrades_llc(attempt, task, source, pinned) {
            return reason;
        }
        match self.heat(attempt, task, source) {
            Some(_) if state.nr_balance_failed > self.cache_nice_tries(attempt) => TaskReason::MovedHot,
            Some(reason) => reason,
            None => TaskReason::Moved,
        }
    }

    pub(super) fn cache_nice_tries(&self, attempt: &LbEnv) -> u32 {
        self.domain(attempt.cpu, attempt.level).cache_nice_tries
    }

    /// Why a task is taken to have its data in the caches of the CPU on which it waits; `None` if it is not.
    ///
    /// Kernel: `task_hot()`, kernel/sched/fair.c.
    fn heat(&self, attempt: &LbEnv, task: TaskId, source: Cpu) -> Option<TaskReason> {
        let rules = &self.shared.generation.balance;
        let threads = self.domain(attempt.cpu, attempt.level).flags.has(SdFlags::SHARE_CPUCAPACITY);
        if self.shared.tasks[task.index()].policy == Policy::Idle {
            return None;
        }
        if threads && rules.smt_heat == SmtHeat::ColdBetweenThreads {
            return None;
        }
        let entity = self.entity_of(task);
        if self.has(Feature::CacheHotBuddy) && self.nr_running(attempt.dest) > 0 {
            let (queue, se) =
                (self.cfs(self.shared.line_of(entity.cfs_rq)), Some(self.shared.tasks[task.index()].se));
            if queue.next == se || queue.last == se {
                return Some(TaskReason::Buddy);
            }
        }
        let clock = self.shared.trace.now.0.max(self.rqs[source.index()].clock.0);
        // Who has not run here since it came may be moved, even when the driver's clock has just begun: the kernel's is far from 0.
        let uptime = if entity.exec_start == 0 { self.shared.pelt_epoch } else { 0 };
        let since = (clock + uptime).wrapping_sub(entity.exec_start) as i64;
        (since < self.shared.sysctl.migration_cost as i64).then_some(TaskReason::CacheHot)
    }

    /// Whether others are queued where a task would go, so that it would wait there if it is past its queue's average.
    ///
    /// Kernel: `task_is_ineligible_on_dst_cpu()`, kernel/sched/fair.c (873199d27bb2).
    fn has_company_there(&self, task: TaskId, dest: Cpu) -> bool {
        let group = &self.shared.groups[self.shared.tasks[task.index()].group.0 as usize];
        let there = self.shared.line_of(group.cfs_rqs[dest.index()]);
        self.has(Feature::PlaceLag) && self.shared.competitors_on(there) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpumask::CpuMask;
    use crate::task::OnRq;
    use crate::testbed::{MS, SchedulerTestbed};
    use fairlab_event::TaskState;

    /// CPU 0, which idles, balances the level of all CPUs with the first task of CPU 1 in mind.
    fn attempt(bed: &SchedulerTestbed, idle: CpuIdleType, migration: MigrationType) -> LbEnv {
        LbEnv { migration, imbalance: 10, lb_bias: false, ..bed.scheduler.attempt(Cpu(0), 0, idle) }
    }

    fn verdict(bed: &SchedulerTestbed, attempt: &LbEnv, task: TaskId) -> (TaskReason, LbfFlags) {
        let mut pinned = LbfFlags { all: true, ..LbfFlags::default() };
        let reason = bed.scheduler.can_migrate_task(attempt, task, Cpu(1), &mut pinned);
        (reason, pinned)
    }

    /// A task that waits on CPU 1 behind a running one, long enough to be cold.
    fn waiting(kernel: &str, allowed: CpuMask) -> (SchedulerTestbed, TaskId) {
        let mut bed = SchedulerTestbed::new(kernel, 2, 2);
        bed.spawn(0, 1);
        let task = bed.spawn_with(0, 1, Policy::Normal, allowed);
        bed.pass(20 * MS);
        bed.at(0);
        (bed, task)
    }

    #[test]
    fn a_task_that_may_not_come_here_may_go_to_another_cpu_of_the_group() {
        let (mut bed, _) = waiting("v5.10", CpuMask::ALL);
        let task = bed.spawn_with(0, 1, Policy::Normal, [1, 2, 3].map(Cpu).into_iter().collect());
        let level = LbEnv { level: 1, ..attempt(&bed, CpuIdleType::Idle, MigrationType::Task) };
        // The group is the core of CPUs 0 and 1.
        let (reason, pinned) = verdict(&bed, &level, task);
        assert_eq!(
            (reason, pinned.some, pinned.all, pinned.other_dest),
            (TaskReason::NotAllowed, true, true, Some(Cpu(1)))
        );
        let none = |attempt: LbEnv| verdict(&bed, &attempt, task).1.other_dest;
        assert_eq!(
            none(LbEnv { idle: CpuIdleType::NewlyIdle, ..level.clone() }),
            None,
            "only the CPU that goes idle takes"
        );
        assert_eq!(none(LbEnv { pushes: true, ..level.clone() }), None, "a push has one destination");
        let mut without = level.clone();
        without.cpus.clear(Cpu(1));
        assert_eq!(none(without), None, "CPU 1 takes no part any more");
        let mut pinned = LbfFlags { other_dest: Some(Cpu(3)), ..LbfFlags::default() };
        bed.scheduler.can_migrate_task(&level, task, Cpu(1), &mut pinned);
        assert_eq!(pinned.other_dest, Some(Cpu(3)), "the first one found stands");
        let far = bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(3)));
        assert_eq!(verdict(&bed, &level, far).1.other_dest, None, "it may not run in the group at all");
    }

    #[test]
    fn a_task_that_may_come_ends_the_belief_that_all_are_pinned_even_while_it_runs() {
        let (bed, task) = waiting("v5.10", CpuMask::ALL);
        let attempt = attempt(&bed, CpuIdleType::Idle, MigrationType::Task);
        let (reason, pinned) = verdict(&bed, &attempt, task);
        assert_eq!((reason, pinned.all, pinned.some), (TaskReason::Moved, false, false));
        let running = bed.scheduler.curr(Cpu(1));
        let (reason, pinned) = verdict(&bed, &attempt, running);
        assert_eq!((reason, pinned.all), (TaskReason::Running, false));
    }

    #[test]
    fn a_kthread_of_its_cpu_is_passed_over_from_v5_13_on() {
        let seen = |kernel| {
            let (mut bed, task) = waiting(kernel, CpuMask::single(Cpu(1)));
            bed.scheduler.shared.tasks[task.index()].per_cpu_kthread = true;
            let (reason, pinned) =
                verdict(&bed, &attempt(&bed, CpuIdleType::Idle, MigrationType::Task), task);
            (reason, pinned.some)
        };
        assert_eq!(seen("v5.12"), (TaskReason::NotAllowed, true));
        assert_eq!(seen("v5.13"), (TaskReason::PercpuKthread, false));
        let (bed, task) = waiting("v5.13", CpuMask::single(Cpu(1)));
        let (reason, _) = verdict(&bed, &attempt(&bed, CpuIdleType::Idle, MigrationType::Task), task);
        assert_eq!(reason, TaskReason::NotAllowed, "others that are bound there are looked at");
    }

    /// A task that ran a moment ago on CPU 1 waits there again, as on the two cores of a machine without threads.
    fn hot(kernel: &str, since: u64) -> (SchedulerTestbed, TaskId) {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        let first = bed.spawn(0, 1);
        bed.spawn(0, 1);
        while bed.scheduler.curr(Cpu(1)) == first {
            bed.run(1, 1);
        }
        let ran = bed.entity(first).exec_start;
        let now = bed.scheduler.shared.trace.now.0;
        bed.pass((ran + since).checked_sub(now).expect("less has passed"));
        bed.at(0);
        (bed, first)
    }

    #[test]
    fn a_task_is_hot_for_half_a_millisecond_unless_tries_fail() {
        let seen = |since, failed| {
            let (mut bed, task) = hot("v5.10", since);
            bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = failed;
            verdict(&bed, &attempt(&bed, CpuIdleType::Idle, MigrationType::Task), task).0
        };
        assert_eq!([499_999, 500_000].map(|since| seen(since, 0)), [TaskReason::CacheHot, TaskReason::Moved]);
        assert_eq!(
            [1, 2].map(|failed| seen(499_999, failed)),
            [TaskReason::CacheHot, TaskReason::MovedHot],
            "one try"
        );
    }

    #[test]
    fn a_task_that_has_not_run_is_cold_from_the_start() {
        let mut bed = SchedulerTestbed::new("v6.1", 2, 1);
        bed.spawn(0, 1);
        let task = bed.spawn(0, 1);
        bed.at(0);
        let seen = verdict(&bed, &attempt(&bed, CpuIdleType::NewlyIdle, MigrationType::Task), task).0;
        assert_eq!(seen, TaskReason::Moved, "the clock began {} ago", bed.now);
    }

    #[test]
    fn a_task_that_was_moved_may_be_moved_on() {
        let (mut bed, task) = hot("v6.1", 100_000);
        let attempt = attempt(&bed, CpuIdleType::Idle, MigrationType::Task);
        assert_eq!(verdict(&bed, &attempt, task).0, TaskReason::CacheHot);
        bed.scheduler.detach_task(task, Cpu(0));
        bed.scheduler.attach_task(task);
        bed.scheduler.detach_task(task, Cpu(1));
        bed.scheduler.attach_task(task);
        assert_eq!(verdict(&bed, &attempt, task).0, TaskReason::Moved);
    }

    #[test]
    fn a_sched_idle_task_is_never_hot() {
        let (mut bed, task) = hot("v5.10", 100_000);
        bed.scheduler.shared.tasks[task.index()].policy = Policy::Idle;
        let seen = verdict(&bed, &attempt(&bed, CpuIdleType::Idle, MigrationType::Task), task).0;
        assert_eq!(seen, TaskReason::Moved);
    }

    #[test]
    fn what_is_pushed_may_be_hot_from_v5_13_on() {
        let seen = |kernel| {
            let (bed, task) = hot(kernel, 100_000);
            let pushes = LbEnv { pushes: true, ..attempt(&bed, CpuIdleType::Idle, MigrationType::Task) };
            verdict(&bed, &pushes, task).0
        };
        assert_eq!(["v5.12", "v5.13"].map(seen), [TaskReason::CacheHot, TaskReason::Moved]);
        let (bed, task) = hot("v5.13", 100_000);
        let pulled = verdict(&bed, &attempt(&bed, CpuIdleType::Idle, MigrationType::Task), task).0;
        assert_eq!(pulled, TaskReason::CacheHot);
    }

    #[test]
    fn a_buddy_stays_while_something_runs_where_it_would_go() {
        let seen = |switch: &str, busy: bool, next: bool| {
            let (mut bed, task) = waiting(&format!("v5.10{switch}"), CpuMask::ALL);
            if busy {
                bed.spawn(0, 0);
            }
            let (root, se) = (bed.scheduler.rqs[1].cfs, bed.scheduler.shared.tasks[task.index()].se);
            let queue = bed.scheduler.cfs_mut(root);
            (queue.next, queue.last) = if next { (Some(se), None) } else { (None, Some(se)) };
            let level = LbEnv { level: 1, ..attempt(&bed, CpuIdleType::Idle, MigrationType::Task) };
            verdict(&bed, &level, task).0
        };
        assert_eq!([true, false].map(|next| seen("", true, next)), [TaskReason::Buddy; 2]);
        assert_eq!(seen("", false, true), TaskReason::Moved, "nothing runs there");
        assert_eq!(seen("+NO_CACHE_HOT_BUDDY", true, true), TaskReason::Moved);
    }

    #[test]
    fn a_sleeper_that_is_still_queued_moves_for_its_load_only_from_v6_14_on() {
        let seen = |kernel, migration| {
            let (mut bed, task) = waiting(kernel, CpuMask::ALL);
            let level = attempt(&bed, CpuIdleType::Idle, migration);
            bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = 1;
            bed.scheduler.shared.tasks[task.index()].on_rq = OnRq::Delayed(TaskState::INTERRUPTIBLE);
            verdict(&bed, &level, task).0
        };
        assert_eq!(seen("v6.13", MigrationType::Task), TaskReason::Moved);
        assert_eq!(seen("v6.14", MigrationType::Task), TaskReason::SleepsQueued);
        assert_eq!(seen("v6.14", MigrationType::Load), TaskReason::Moved);
    }

    #[test]
    fn a_task_past_the_average_waits_for_a_failure_where_others_are_queued() {
        let seen = |kernel: &str, busy: bool, past: bool, failed| {
            let (mut bed, task) = waiting(kernel, CpuMask::ALL);
            if busy {
                bed.spawn(0, 0);
            }
            bed.pass(20 * MS);
            bed.at(1);
            bed.scheduler.account(Cpu(1));
            let (running, se) = (bed.scheduler.curr(Cpu(1)), bed.scheduler.shared.tasks[task.index()].se);
            let task = if past { running } else { task };
            assert_ne!(bed.scheduler.shared.tasks[running.index()].se, se);
            bed.at(0);
            bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = failed;
            verdict(&bed, &attempt(&bed, CpuIdleType::Idle, MigrationType::Task), task).0
        };
        assert_eq!(
            ["v6.13", "v6.14"].map(|kernel| seen(kernel, true, true, 0)),
            [TaskReason::Running, TaskReason::Ineligible]
        );
        assert_eq!(seen("v6.14", true, true, 1), TaskReason::Running, "after a failure");
        assert_eq!(seen("v6.14", false, true, 0), TaskReason::Running, "nobody is queued there");
        assert_eq!(seen("v6.14+NO_PLACE_LAG", true, true, 0), TaskReason::Running, "lag would be lost");
        assert_eq!(seen("v6.14", true, false, 0), TaskReason::Moved, "it has got less than its share");
    }
}
