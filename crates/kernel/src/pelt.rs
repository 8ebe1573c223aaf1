//! Per-entity load tracking (PELT): geometric averages of load, runnability and utilization, as pure arithmetic.
//!
//! Kernel: kernel/sched/pelt.[ch] and the load tracking parts of kernel/sched/fair.c. Integers are the kernel's own on
//! 64-bit machines: `u64` for `unsigned long` and `u64`, `u32` where the kernel has `u32` or `unsigned int`, with the same
//! truncation and wrapping. What changed from release to release is data: [`PeltRules`].
//!
//! Units. A *period* is 1024 · 1024 ns; what is added in one period is halved after 32 of them. `util_avg` is 0…1024 of the
//! biggest CPU; `load_avg` is a weight, 1024 for a nice-0 task that always wants to run; `runnable_avg` is 1024 times the
//! mean number of runnable tasks. Weights are scaled down (1024 for nice 0) unless a parameter says otherwise.
//!
//! Order of steps in the kernel's `update_load_avg(cfs_rq, se, flags)`, which a runqueue builds from these pieces with
//! `now` = [`CfsRqClock::now`]:
//!
//! 1. `se` has a `last_update_time` and its age is not to be skipped: [`PeltRules::update_se`];
//! 2. [`PeltRules::update_cfs_rq_load_avg`] (first what was removed, then the age);
//! 3. a group's entity: [`PeltRules::propagate_entity_load_avg`];
//! 4. `se` has no `last_update_time` and is to be attached: [`PeltRules::attach_entity_load_avg`], then
//!    [`PeltRules::update_tg_load_avg`]; else it is to be detached: [`PeltRules::detach_entity_load_avg`] and the same;
//!    else, if 2 or 3 said so and the caller wants it: [`PeltRules::update_tg_load_avg`];
//! 5. the cpufreq hook, only for a root `cfs_rq`, when 2 to 4 changed something.
//!
//! Must not know: runqueues, entities, tasks, clocks (time is an argument), generations.

mod average;
mod clock;
mod cpu_load;
mod entity;
mod group;
mod queue;
pub(crate) mod rules;
mod series;
mod shares;
mod util_est;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod situations;

pub use average::{CpuScale, EntityState, EntityWeight, QueueState, SchedAvg, load_avg_is_decayed};
pub use clock::{CfsRqClock, RqClock, RqTime};
pub use cpu_load::{CPU_LOAD_INDEXES, CpuLoad, source_load, target_load};
pub use entity::{FairInitialUtil, IdleCpuTimes};
pub use group::GroupEntity;
pub use queue::{CfsRqLoad, RemovedLoad, RunnableLoad};
pub use rules::{
    AttachLoadSum, AttachPoint, ClassChange, DelayedTasks, DetachPoint, GroupDivider, GroupLoadUnchanged,
    GroupRunnableSum, IdleSync, InitialRunnable, InitialUtilWeight, Invariance, LostIdleCheck, MigrationLag,
    PeltEffect, PeltRules, QueueDecay, RunnableBoost, RunnableKind, SumSync, TgContribution, ThrottleClock,
    UtilEstCapacity, UtilEstDequeue, UtilEstFlag, UtilEstForm, UtilEstMargin, UtilEstRise, UtilEstSample,
    UtilEstWaiting,
};
pub use series::{LOAD_AVG_MAX, LOAD_AVG_PERIOD, PELT_MIN_DIVIDER, UTIL_SUM_MAX};
pub use shares::{GroupLoad, MIN_SHARES, calc_group_runnable, calc_group_shares};
#[cfg(test)]
pub(crate) use situations::SITUATIONS;
pub use util_est::{CpuUtil, TaskUtil, UtilEst, UtilEstFeatures};

/// The rules of a kernel, by its name.
#[cfg(test)]
fn rules_of(kernel: &str) -> PeltRules {
    kernel.parse::<crate::Generation>().expect(kernel).pelt
}
