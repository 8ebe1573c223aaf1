//! What balancing remembers beside what stands in the domains.
//!
//! Must not know: what is decided by it.

use fairlab_event::Cpu;

use crate::balance::chance::RndState;
use crate::balance::kept_sums::SumsCache;
use crate::cpumask::CpuMask;
use crate::ids::TaskId;
use crate::pelt::CpuLoad;

/// What balancing remembers beside what stands in the domains.
#[derive(Clone, Debug)]
pub(crate) struct BalancerState {
    /// By CPU.
    pub cpus: Vec<CpuBalance>,
    pub nohz: Nohz,
    /// By CPU: the stoppers, as far as they are known.
    pub stoppers: Vec<TaskId>,
    /// Whether this kernel was built preemptible (`CONFIG_PREEMPTION`); `None`: as kernels of its generation are.
    pub preemption: Option<bool>,
    pub sums: SumsCache,
}

/// What balancing remembers of a CPU (`struct rq`).
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuBalance {
    /// Tick at which some domain may be due.
    pub next_balance: u64,
    /// It was idle at the last tick or kick.
    pub idle_balance: bool,
    /// A push is under way, to this CPU.
    pub push_cpu: Option<Cpu>,
    /// That push is of a task which prefers the last-level cache to which it goes (`active_load_balance_llc_cpu_stop()`).
    pub pushes_llc_task: bool,
    /// Sleeping tasks' load is left on its queues.
    pub has_blocked_load: bool,
    /// How often another CPU aged that because it looked at this one, not because it was asked to.
    pub remote_updates: u64,
    /// Tick at which that was last aged.
    pub last_blocked_load_update_tick: u64,
    /// Its tick is stopped, as far as balancing knows.
    pub nohz_tick_stopped: bool,
    /// What it was asked to do for idle CPUs (`nohz_flags()`).
    pub kick: NohzKick,
    /// The interrupt for that has come (`nohz_idle_balance`, from v5.8).
    pub told: NohzKick,
    /// `cpu_load[]`.
    pub cpu_load: CpuLoad,
    /// State of its pseudo-random numbers (`sched_rnd_state`).
    pub rnd_state: RndState,
}

#[cfg(test)]
impl CpuBalance {
    /// It was asked, and the interrupt has come.
    pub fn ask(&mut self, kick: NohzKick) {
        (self.kick, self.told) = (kick, kick);
    }
}

impl BalancerState {
    /// Balancing at rest on a machine with so many CPUs.
    pub fn new(nr_cpus: usize) -> BalancerState {
        let cpu = |index: usize| CpuBalance {
            rnd_state: RndState::seeded(index as u32 + 1),
            ..CpuBalance::default()
        };
        BalancerState {
            cpus: (0..nr_cpus).map(cpu).collect(),
            nohz: Nohz::default(),
            stoppers: Vec::new(),
            preemption: None,
            sums: SumsCache::default(),
        }
    }
}

/// What all CPUs share (`struct nohz`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Nohz {
    /// CPUs whose tick is stopped, or was at their last tick.
    pub idle_cpus: CpuMask,
    /// Some of them have blocked load.
    pub has_blocked: bool,
    /// Tick at which one of them is due.
    pub next_balance: u64,
    /// Tick from which blocked load should be aged.
    pub next_blocked: u64,
    /// A CPU has gone idle since `next_balance` was computed.
    pub needs_update: bool,
}

/// What an idle CPU is asked to do for all idle ones (`NOHZ_*_KICK`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NohzKick {
    /// Balance.
    pub balance: bool,
    /// Age blocked load.
    pub stats: bool,
    /// Compute when the next one is due.
    pub next: bool,
    /// Age blocked load before going idle (`NOHZ_NEWILB_KICK`).
    pub newly_idle: bool,
}

impl NohzKick {
    pub(crate) const STATS: NohzKick =
        NohzKick { balance: false, stats: true, next: false, newly_idle: false };
    pub(crate) const BALANCE: NohzKick = NohzKick { balance: true, ..NohzKick::STATS };

    pub(crate) fn asks(self) -> bool {
        self.balance || self.stats || self.next
    }

    pub(crate) fn with(self, other: NohzKick) -> NohzKick {
        NohzKick {
            balance: self.balance || other.balance,
            stats: self.stats || other.stats,
            next: self.next || other.next,
            newly_idle: self.newly_idle || other.newly_idle,
        }
    }
}

/// In what situation a CPU does it for the idle ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NohzKind {
    /// It was kicked.
    Kicked,
    /// It is about to go idle.
    NewlyIdle,
}
