//! What `/proc/schedstat` counts: of a runqueue, of a domain.
//!
//! Must not know: when anything is counted.

mod file;

/// For what a CPU balances (`enum cpu_idle_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuIdleType {
    /// It is busy; periodic.
    NotIdle,
    /// It is idle; periodic, or on behalf of it.
    Idle,
    /// It is about to go idle.
    NewlyIdle,
}

impl CpuIdleType {
    /// All of them, in the order of the kernel's arrays from v6.10 on.
    pub const ALL: [CpuIdleType; 3] = [CpuIdleType::NotIdle, CpuIdleType::Idle, CpuIdleType::NewlyIdle];

    /// Its place in [`DomainCounters::lb`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What balancing at one level for one kind of idleness counted (`sched_domain::lb_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadBalanceCounters {
    /// Calls of `load_balance()`.
    pub count: u64,
    /// Calls that found nothing to do.
    pub balanced: u64,
    /// Calls that found an imbalance and moved nothing.
    pub failed: u64,
    /// Sum of imbalances that were measured in load; layouts before version 17 show the sum of all kinds.
    pub imbalance_load: u64,
    /// The same in utilization.
    pub imbalance_util: u64,
    /// The same in tasks.
    pub imbalance_task: u64,
    /// The same in misfits.
    pub imbalance_misfit: u64,
    /// Tasks moved here.
    pub gained: u64,
    /// Of those the ones that were cache hot.
    pub hot_gained: u64,
    /// Calls that found a group but no queue in it.
    pub nobusyq: u64,
    /// Calls that found no busiest group.
    pub nobusyg: u64,
}

/// What a CPU's domain counted (`sched_domain`, under `CONFIG_SCHEDSTATS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainCounters {
    /// By [`CpuIdleType::index`].
    pub lb: [LoadBalanceCounters; 3],
    /// Active balancing was tried.
    pub alb_count: u64,
    /// It moved nothing.
    pub alb_failed: u64,
    /// It moved a task.
    pub alb_pushed: u64,
    /// Tasks woken here that had slept elsewhere in this domain.
    pub ttwu_wake_remote: u64,
    /// Tasks that a wakeup moved to the waker's CPU.
    pub ttwu_move_affine: u64,
}

/// What a search for an idle CPU counted (`SIS_*` of the schedstat patches beside the idle cpumask RFC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SisCounters {
    /// Calls of `select_idle_sibling()`.
    pub search: u64,
    /// Calls that went on to search the domain.
    pub domain_search: u64,
    /// CPUs that were looked at.
    pub scanned: u64,
    /// Calls that found no idle CPU.
    pub failed: u64,
    /// The recently used CPU was taken.
    pub recent_hit: u64,
    /// It was considered and not taken.
    pub recent_miss: u64,
    /// Searches for a wholly idle core.
    pub core_search: u64,
    /// Those that found none.
    pub core_miss: u64,
}

/// What a runqueue counted (`struct rq`, under `CONFIG_SCHEDSTATS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RqCounters {
    /// Calls of `sched_yield()`.
    pub yld_count: u64,
    /// Calls of `schedule()`.
    pub sched_count: u64,
    /// Switches to the idle task.
    pub sched_goidle: u64,
    /// Wakeups that this CPU did.
    pub ttwu_count: u64,
    /// Of those the ones of tasks that were queued here.
    pub ttwu_local: u64,
    /// Time that tasks ran, ns.
    pub rq_cpu_time: u64,
    /// Time that tasks waited, ns.
    pub run_delay: u64,
    /// How often a task was given the CPU.
    pub pcount: u64,
    /// Searches for idle CPUs.
    pub sis: SisCounters,
}
