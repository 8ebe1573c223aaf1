//! Which tasks go to the last-level cache that their process prefers, and which stay there: decided by how much of both
//! caches is used.
//!
//! Must not know: how a process comes to prefer a cache.

#[cfg(test)]
pub(super) mod tests;

use fairlab_event::Cpu;

use crate::balance::decided::{BalanceDecision, CacheUse, LbEnv};
use crate::balance::imbalance::MigrationType;
use crate::balance::migrate::LbfFlags;
use crate::balance::reasons::TaskReason;
use crate::balance::rules::GatheringFit;
use crate::balance::statistics::SgLbStats;
use crate::cpumask::CpuMask;
use crate::domain::{SchedGroupId, SdFlags, SharedId};
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

/// From this part of its capacity on a cache counts as busy, percent (`llc_overaggr_pct`).
const BUSY_PERCENT: u64 = 50;

/// By so much a cache's use must exceed another's to count as greater, percent (`llc_imb_pct`).
const GREATER_PERCENT: u64 = 20;

/// What the use of two caches says of a task that would go from one to the other (`enum llc_mig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LlcMigration {
    /// It stays (`mig_forbid`).
    Forbidden,
    /// It goes for its process (`mig_llc`).
    ForProcess,
    /// That is left to balancing of other kinds (`mig_unrestricted`).
    Unrestricted,
}

/// A task of so much utilization that goes from under one cache to another.
#[derive(Clone, Copy)]
struct GatheringMove {
    source: Cpu,
    dest: Cpu,
    util: u64,
    /// To the cache that is preferred, not away from it.
    to_preferred: bool,
}

impl Scheduler {
    /// How many queued tasks of `cpu`, which is under another last-level cache, prefer that of `dest`.
    pub(super) fn tasks_that_prefer(&self, dest: Cpu, cpu: Cpu) -> u32 {
        let preferred = self.shared.processes.llc_id(dest);
        if self.shared.processes.llc_id(cpu) == preferred {
            return 0;
        }
        self.rqs[cpu.index()].llc_counts.get(preferred as usize).copied().unwrap_or(0)
    }

    /// What is used of a last-level cache's CPUs is kept for balancing between caches.
    ///
    /// Kernel: `record_sg_llc_stats()`, kernel/sched/fair.c.
    pub(super) fn record_sg_llc_stats(&self, attempt: &mut LbEnv, group: SchedGroupId, sums: &SgLbStats) {
        if !self.shared.processes.active() || attempt.idle == CpuIdleType::NewlyIdle {
            return;
        }
        let sd = self.domain(attempt.cpu, attempt.level);
        if sd.child.is_none() || sd.child != self.domains.of_cpu(attempt.dest).sd_llc {
            return;
        }
        let first = self.domains.group(group).span.lowest();
        let Some(cache) = first.and_then(|cpu| self.domains.of_cpu(cpu).sd_llc_shared) else { return };
        let seen = CacheUse { cache, util: sums.group_util, capacity: sums.group_capacity };
        match attempt.cache_use.iter_mut().find(|known| known.cache == cache) {
            Some(known) => *known = seen,
            None => attempt.cache_use.push(seen),
        }
    }

    /// What a decision has seen of caches and processes stays.
    pub(super) fn note_caches(&mut self, decision: &BalanceDecision) {
        for seen in &decision.cache_use {
            let shared = self.domains.shared_mut(seen.cache);
            (shared.util_avg, shared.capacity) = (seen.util, seen.capacity);
        }
        for &process in &decision.forgets {
            self.shared.processes.forget(process);
        }
    }

    /// Whether tasks of a group should be moved to the last-level cache of the CPU that balances because they prefer it.
    ///
    /// Kernel: `llc_balance()`, kernel/sched/fair.c; large tasks go first from f0d243a96f26 on.
    pub(super) fn llc_balance(&self, attempt: &LbEnv, span: &CpuMask, sums: &SgLbStats) -> bool {
        let fits = self.shared.generation.balance.gathering_fit == GatheringFit::FittingCpu;
        let asym = self.domain(attempt.cpu, attempt.level).flags.has(SdFlags::ASYM_CPUCAPACITY);
        if (fits && asym && sums.misfit_load > 0)
            || self.gathers_no_more(attempt)
            || sums.nr_pref_dst_llc == 0
        {
            return false;
        }
        span.lowest().is_some_and(|source| {
            let moved = GatheringMove { source, dest: attempt.dest, util: 0, to_preferred: true };
            self.can_migrate_llc(attempt, moved) == LlcMigration::ForProcess
        })
    }

    /// Whether so many tries have failed that tasks go wherever they can.
    fn gathers_no_more(&self, attempt: &LbEnv) -> bool {
        self.domain_state(attempt.cpu, attempt.level).nr_balance_failed > self.cache_nice_tries(attempt)
    }

    /// Why a task stays for its process's sake; `None` if it may go.
    ///
    /// Kernel: `migrate_degrades_llc()`, kernel/sched/fair.c.
    pub(super) fn degrades_llc(
        &self,
        attempt: &LbEnv,
        task: TaskId,
        source: Cpu,
        pinned: &mut LbfFlags,
    ) -> Option<TaskReason> {
        if !self.shared.processes.active() || self.gathers_no_more(attempt) {
            return None;
        }
        if self.prefers_other_cache(attempt, task) {
            return Some(TaskReason::PrefersOtherCache);
        }
        if self.can_migrate_llc_task(attempt, task, source, pinned) != LlcMigration::Forbidden {
            return None;
        }
        pinned.llc |= attempt.migration != MigrationType::LlcTask;
        Some(TaskReason::StaysWithProcess)
    }

    /// Whether tasks are moved to the cache that they prefer, and this one prefers another (`migrate_llc_task_wrong_dst()`).
    pub(super) fn prefers_other_cache(&self, attempt: &LbEnv, task: TaskId) -> bool {
        let goes_for_it = attempt.migration == MigrationType::LlcTask || attempt.pushes_llc_task;
        goes_for_it
            && self.shared.tasks[task.index()].preferred_llc
                != Some(self.shared.processes.llc_id(attempt.dest))
    }

    /// Kernel: `can_migrate_llc_task()`, kernel/sched/fair.c.
    fn can_migrate_llc_task(
        &self,
        attempt: &LbEnv,
        task: TaskId,
        source: Cpu,
        pinned: &mut LbfFlags,
    ) -> LlcMigration {
        let dest = attempt.dest;
        if self.task_misfits_asym_cpu(attempt, task, source) {
            return LlcMigration::Forbidden;
        }
        let Some(process) = self.shared.tasks[task.index()].process else {
            return LlcMigration::Unrestricted;
        };
        let Some(preferred) = self.shared.processes.preferred_cpu(process) else {
            return LlcMigration::Unrestricted;
        };
        if self.domains.cpus_share_cache(source, dest) {
            return LlcMigration::Unrestricted;
        }
        if self.shared.processes.has_no_use(process, dest) {
            pinned.forgets.push(process);
            return LlcMigration::Unrestricted;
        }
        let to_preferred = self.domains.cpus_share_cache(dest, preferred);
        if !to_preferred && !self.domains.cpus_share_cache(source, preferred) {
            return LlcMigration::Unrestricted;
        }
        let util = self.entity_of(task).avg.util_avg;
        self.can_migrate_llc(attempt, GatheringMove { source, dest, util, to_preferred })
    }

    /// Whether a task that fits the CPU on which it waits is too large for the one to which it would go.
    ///
    /// Kernel: `task_misfits_asym_cpu()`, kernel/sched/fair.c (f0d243a96f26).
    fn task_misfits_asym_cpu(&self, attempt: &LbEnv, task: TaskId, source: Cpu) -> bool {
        self.shared.generation.balance.gathering_fit == GatheringFit::FittingCpu
            && self.domain(attempt.cpu, attempt.level).flags.has(SdFlags::ASYM_CPUCAPACITY)
            && !self.task_fits_capacity(task, attempt.dest)
            && self.task_fits_capacity(task, source)
    }

    /// What the use of both caches says of a task that would go from one to the other. While one of them is not busy, a task may
    /// go to the preferred one unless that gets busy and more so than the other. It may leave only if that stays busy and more so.
    ///
    /// Kernel: `can_migrate_llc()`, kernel/sched/fair.c.
    fn can_migrate_llc(&self, attempt: &LbEnv, moved: GatheringMove) -> LlcMigration {
        let (Some(from), Some(to)) =
            (self.cache_use(attempt, moved.source), self.cache_use(attempt, moved.dest))
        else {
            return LlcMigration::Unrestricted;
        };
        let from = CacheUse { util: from.util.saturating_sub(moved.util), ..from };
        let to = CacheUse { util: to.util + moved.util, ..to };
        let is_busy = |known: CacheUse| !self.fits_llc_capacity(known);
        if is_busy(to) && is_busy(from) {
            return LlcMigration::Unrestricted;
        }
        let stays = match moved.to_preferred {
            true => is_busy(to) && util_greater(to.util, from.util),
            false => !is_busy(from) || !util_greater(from.util, to.util),
        };
        if stays { LlcMigration::Forbidden } else { LlcMigration::ForProcess }
    }

    /// Kernel: `fits_llc_capacity()`, kernel/sched/fair.c: half as much again where cores have one thread.
    fn fits_llc_capacity(&self, known: CacheUse) -> bool {
        let percent = match self.shared.processes.smt_threads() {
            1 => BUSY_PERCENT * 3 / 2,
            _ => BUSY_PERCENT,
        };
        known.util * 100 < known.capacity * percent
    }

    /// What is known of the use of a CPU's last-level cache (`get_llc_stats()`).
    fn cache_use(&self, attempt: &LbEnv, cpu: Cpu) -> Option<CacheUse> {
        let cache: SharedId = self.domains.of_cpu(cpu).sd_llc_shared?;
        let seen = attempt.cache_use.iter().find(|known| known.cache == cache).copied();
        let shared = self.domains.shared(cache);
        Some(seen.unwrap_or(CacheUse { cache, util: shared.util_avg, capacity: shared.capacity }))
    }

    /// Whether a push of the running task would take it from the cache that it prefers, as all runnable tasks of its CPU do.
    ///
    /// Kernel: `alb_break_llc()`, kernel/sched/fair.c.
    pub(super) fn push_breaks_preference(&self, attempt: &LbEnv, source: Cpu) -> bool {
        let dest = attempt.dest;
        if !self.shared.processes.active() || self.domains.cpus_share_cache(source, dest) {
            return false;
        }
        let rq = &self.rqs[source.index()];
        let all = rq.nr_pref_llc_running > 0 && rq.nr_pref_llc_running == self.waiting_tasks(source);
        if !all || attempt.migration == MigrationType::Misfit {
            return false;
        }
        if rq.nr_running <= 1 {
            return true;
        }
        let running = self.curr(source);
        let is_fair = self.shared.tasks[running.index()].policy.is_fair();
        let util = if is_fair { self.entity_of(running).avg.util_avg } else { 0 };
        self.task_misfits_asym_cpu(attempt, running, source)
            || self.can_migrate_llc(attempt, GatheringMove { source, dest, util, to_preferred: false })
                == LlcMigration::Forbidden
    }
}

/// Whether one use of CPUs exceeds another noticeably.
const fn util_greater(one: u64, other: u64) -> bool {
    one * 100 > other * (100 + GREATER_PERCENT)
}
