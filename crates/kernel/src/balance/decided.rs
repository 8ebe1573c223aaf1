//! What a CPU would do at one level of its domains, and why; what was done, for those who explain it.
//!
//! Must not know: how it is decided.

use fairlab_event::Cpu;

use crate::balance::imbalance::{Imbalance, MigrationType};
use crate::balance::reasons::{BalancedReason, PullEnd, TaskReason};
use crate::balance::statistics::{GroupType, SgLbStats};
use crate::cpumask::CpuMask;
use crate::domain::{GroupExtent, SharedId};
use crate::ids::TaskId;
use crate::process::ProcessId;
use crate::schedstat::CpuIdleType;

/// What a try goes by (`struct lb_env`).
#[derive(Clone, Debug)]
pub(crate) struct LbEnv {
    /// The CPU that balances, or for which another does.
    pub cpu: Cpu,
    pub level: usize,
    pub idle: CpuIdleType,
    /// Where tasks go: `cpu`, or another CPU of its group for tasks that may not run there.
    pub dest: Cpu,
    /// CPUs that take part.
    pub cpus: CpuMask,
    pub migration: MigrationType,
    pub imbalance: i64,
    /// A running task is pushed (`LBF_ACTIVE_LB`).
    pub pushes: bool,
    /// It is one that prefers the last-level cache to which it goes (`LBF_ACTIVE_LB_LLC`).
    pub pushes_llc_task: bool,
    /// To v5.4: the source is chosen by its misfit task.
    pub takes_misfit: bool,
    /// Loads of the past count, too (LB_BIAS).
    pub lb_bias: bool,
    /// What the group of `cpu` has left for fair tasks, where that is recomputed.
    pub extent: Option<GroupExtent>,
    /// What was seen of the groups, the local one first, where that is not what they are now.
    pub seen: Vec<SgLbStats>,
    /// What was seen of last-level caches' use.
    pub cache_use: Vec<CacheUse>,
}

/// How much of a last-level cache's CPUs is used, as the last look has seen it (`sd_llc_shared`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheUse {
    pub cache: SharedId,
    /// Σ utilization.
    pub util: u64,
    /// Σ capacity left for fair tasks.
    pub capacity: u64,
}

/// The group that is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusiestGroup {
    /// Its first CPU.
    pub first: Cpu,
    /// Its state.
    pub kind: GroupType,
    /// The state of the group that takes.
    pub local: GroupType,
}

/// What a CPU would do at one level of its domains, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceDecision {
    /// The CPU.
    pub cpu: Cpu,
    /// The level, from the lowest.
    pub level: usize,
    /// For what it balances.
    pub idle: CpuIdleType,
    /// Whether it would go on with the next level.
    pub continues: bool,
    /// Why it takes nothing; `None` if it tries.
    pub balanced: Option<BalancedReason>,
    /// The group that is taken from.
    pub group: Option<BusiestGroup>,
    /// How much of what is to be moved.
    pub imbalance: Imbalance,
    /// The same at looks before the last: all tasks of the queue that each led to were pinned.
    pub(crate) redone: Vec<Imbalance>,
    /// The queue that is taken from.
    pub source: Option<Cpu>,
    /// Passes over queues, in order.
    pub pulls: Vec<DetachPass>,
    /// The source's running task is to be pushed here by its stopper.
    pub push: bool,
    /// Runqueues looked at.
    pub scanned: u32,
    /// Some runqueue of the machine has two tasks or more; set by the highest level only.
    pub(crate) overload: Option<bool>,
    /// Some runqueue is overutilized, where there is an energy model; set by the highest level, or by any that sees one.
    pub(crate) overutilized: Option<bool>,
    /// Σ utilization of the last-level cache, where this is its level.
    pub(crate) cache_util: Option<u64>,
    /// Use of the last-level caches that it looked at.
    pub(crate) cache_use: Vec<CacheUse>,
    /// Processes whose preference for a cache turned out to have no use.
    pub(crate) forgets: Vec<ProcessId>,
    /// What its group has left for fair tasks, where that was recomputed.
    pub(crate) extent: Option<GroupExtent>,
    /// Affinity left something to move.
    pub(crate) left_pinned: bool,
    pub(crate) all_pinned: bool,
    /// Some task was left where its process is (`LBF_LLC_PINNED`).
    pub(crate) llc_pinned: bool,
    /// The running task of the source may not run here.
    pub(crate) one_pinned: bool,
    /// The source's running task should be pushed, whether that was begun or not.
    pub(crate) needs_push: bool,
    pub(crate) voluntary: bool,
    pub(crate) nr_balance_failed: u32,
}

/// What decides how long a CPU waits after a try that gave up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackOffFacts {
    pub all_pinned: bool,
    pub misfit: bool,
}

/// What decides how long a CPU waits after a try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushFacts {
    pub begun: bool,
    pub voluntary: bool,
    pub needed: bool,
}

impl BalanceDecision {
    pub(crate) fn new(attempt: &LbEnv) -> BalanceDecision {
        BalanceDecision {
            cpu: attempt.cpu,
            level: attempt.level,
            idle: attempt.idle,
            continues: true,
            balanced: None,
            group: None,
            imbalance: Imbalance::default(),
            redone: Vec::new(),
            source: None,
            pulls: Vec::new(),
            push: false,
            scanned: 0,
            overload: None,
            overutilized: None,
            cache_util: None,
            cache_use: Vec::new(),
            forgets: Vec::new(),
            extent: None,
            left_pinned: false,
            all_pinned: false,
            llc_pinned: false,
            one_pinned: false,
            needs_push: false,
            voluntary: false,
            nr_balance_failed: 0,
        }
    }

    /// How many tasks are moved.
    pub fn moved(&self) -> u32 {
        self.pulls.iter().map(|pull| pull.moved().count() as u32).sum()
    }

    /// What is to be moved by the look for the busiest group of that number, the first being 0; a try looks again where all
    /// tasks of a queue are pinned. `None` if it finds none.
    pub fn found_at(&self, look: usize) -> Option<Imbalance> {
        self.redone.get(look).copied().or(self.group.map(|_| self.imbalance))
    }

    /// Whether it does not look for anything: another CPU balances for its group, or it has work by now.
    pub fn left_to_others(&self) -> bool {
        matches!(self.balanced, Some(BalancedReason::NotItsTurn | BalancedReason::Woken))
    }

    /// How many tasks are looked at.
    pub fn looked(&self) -> u32 {
        self.pulls.iter().map(|pull| pull.looks.len() as u32).sum()
    }
}

impl BalanceDecision {
    pub(crate) fn back_off_facts(&self) -> BackOffFacts {
        BackOffFacts {
            all_pinned: self.all_pinned,
            misfit: self.imbalance.migration == MigrationType::Misfit,
        }
    }

    pub(crate) fn push_facts(&self) -> PushFacts {
        PushFacts { begun: self.push, voluntary: self.voluntary, needed: self.needs_push }
    }
}

/// One pass over a queue (`detach_tasks()`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetachPass {
    /// The queue's CPU.
    pub source: Cpu,
    /// Where its tasks go.
    pub dest: Cpu,
    /// What was to be moved when it began.
    pub imbalance: i64,
    /// Tasks that may move were asked for their load.
    pub by_load: bool,
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

impl DetachPass {
    /// The tasks that are moved, in the order in which they leave their queue.
    pub fn moved(&self) -> impl DoubleEndedIterator<Item = TaskId> {
        self.looks.iter().filter(|look| look.reason.is_moved()).map(|look| look.task)
    }
}

/// What one try came to with LB_BIAS, and what it would have come to without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BiasEffect {
    /// Tasks that are moved.
    pub moved: u32,
    /// Tasks that would be moved by present loads alone.
    pub unbiased: u32,
    /// It differs in anything: in queue, amount, tasks.
    pub differs: bool,
}

impl BiasEffect {
    /// Tasks that the bias left where they are.
    pub const fn suppressed(&self) -> u32 {
        self.unbiased.saturating_sub(self.moved)
    }

    /// Tasks that are moved because of it only.
    pub const fn brought(&self) -> u32 {
        self.moved.saturating_sub(self.unbiased)
    }
}
