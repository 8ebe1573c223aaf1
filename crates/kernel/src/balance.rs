//! Load balancing: what a CPU takes from others, when it is idle, about to be, or busy.
//!
//! A *decision* ([`Scheduler::decide_balance`]) says for one CPU and one level of its domains what would be moved and why,
//! task by task; applying it ([`Scheduler::apply_balance`]) is another call. Who asks when stands in `periodic`,
//! `newidle`, `nohz` and `active`; blocked load is kept up to date by `blocked`.
//!
//! Must not know: clocks (time is an argument), costs, what wakeups choose.

mod active;
mod attempt;
mod bias;
mod blocked;
mod busiest_group;
mod busiest_queue;
mod capacity;
mod detach;
mod groups;
mod imbalance;
mod interval;
mod migrate;
mod newidle;
mod nohz;
mod notes;
mod open_loop;
mod packing;
mod periodic;
#[cfg(test)]
mod random;
pub mod reasons;
pub(crate) mod rules;
#[cfg(test)]
mod situations;
mod statistics;

use fairlab_event::{Cpu, Ns};

use crate::domain::{BalanceState, DomainId, SchedDomain, SchedGroup};
use crate::pelt::CpuLoad;
use crate::scheduler::Scheduler;

pub use attempt::{BalanceDecision, BusiestGroup};
pub use bias::BiasEffect;
pub use blocked::BlockedUpdate;
pub use detach::{Pull, TaskLook};
pub use imbalance::{Imbalance, MigrationType};
pub use interval::MAX_PINNED_INTERVAL;
pub use newidle::NewidleSearch;
pub use nohz::{Kick, NohzKind};
pub use notes::BalanceNote;
pub use open_loop::FoundTask;
pub use periodic::BalanceWork;
pub use reasons::{Balanced, PullEnd, TaskReason};
pub use rules::*;
#[cfg(test)]
pub(crate) use situations::SITUATIONS;
pub use statistics::{GroupType, SdLbStats, SgLbStats};

/// What balancing remembers beside what stands in the domains.
#[derive(Clone, Debug)]
pub(crate) struct Balance {
    /// By CPU.
    pub cpus: Vec<CpuBalance>,
    pub nohz: nohz::Nohz,
    /// Whether this kernel was built preemptible (`CONFIG_PREEMPTION`); `None`: as kernels of its generation are.
    pub preemption: Option<bool>,
    /// Every try is noted here, if that is wanted.
    pub notes: Option<Vec<BalanceNote>>,
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
    /// Sleeping tasks' load is left on its queues.
    pub has_blocked_load: bool,
    /// How often another CPU aged that because it looked at this one, not because it was asked to.
    pub remote_updates: u64,
    /// Tick at which that was last aged.
    pub last_blocked_load_update_tick: u64,
    /// Its tick is stopped, as far as balancing knows.
    pub nohz_tick_stopped: bool,
    /// What it was asked to do for idle CPUs.
    pub kick: Kick,
    /// `cpu_load[]`.
    pub cpu_load: CpuLoad,
    /// State of its pseudo-random numbers (`sched_rng()`).
    pub random: u64,
}

impl Balance {
    /// Balancing at rest on a machine with so many CPUs.
    pub fn new(nr_cpus: usize) -> Balance {
        let cpu = |index: usize| CpuBalance {
            random: (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ..CpuBalance::default()
        };
        Balance {
            cpus: (0..nr_cpus).map(cpu).collect(),
            nohz: nohz::Nohz::default(),
            preemption: None,
            notes: None,
        }
    }
}

impl Scheduler {
    /// Says whether this very kernel was built preemptible, however others of its generation are.
    pub fn set_preemption(&mut self, preemptible: bool) {
        self.balance.preemption = Some(preemptible);
    }

    /// How much a CPU takes that goes idle.
    pub(crate) fn newidle_pull(&self) -> NewidlePull {
        match self.balance.preemption {
            Some(true) => NewidlePull::OneTask,
            Some(false) => NewidlePull::ByImbalance,
            None => self.shared.generation.balance.newidle_pull,
        }
    }

    /// Ticks in a second (`HZ`).
    pub(crate) fn ticks_per_second(&self) -> u64 {
        self.shared.sysctl.hz
    }

    /// Milliseconds as ticks, rounded up (`msecs_to_jiffies()`).
    pub(crate) fn msecs_to_jiffies(&self, milliseconds: u64) -> u64 {
        (milliseconds * Ns::from_ms(1).0).div_ceil(self.shared.sysctl.tick)
    }

    /// How many levels of domains a CPU has.
    pub fn nr_domains(&self, cpu: Cpu) -> usize {
        self.domains.of_cpu(cpu).count as usize
    }

    /// The name of a CPU's domain, counted from the smallest.
    pub(crate) fn domain_id(&self, cpu: Cpu, level: usize) -> DomainId {
        let base = self.domains.of_cpu(cpu).base.map_or(0, |base| base.0);
        DomainId(base + level as u32)
    }

    pub(crate) fn domain(&self, cpu: Cpu, level: usize) -> &SchedDomain {
        self.domains.domain(self.domain_id(cpu, level))
    }

    pub(crate) fn domain_mut(&mut self, cpu: Cpu, level: usize) -> &mut SchedDomain {
        let id = self.domain_id(cpu, level);
        self.domains.domain_mut(id)
    }

    pub(crate) fn domain_state(&self, cpu: Cpu, level: usize) -> &BalanceState {
        &self.domain(cpu, level).balance
    }

    pub(crate) fn domain_state_mut(&mut self, cpu: Cpu, level: usize) -> &mut BalanceState {
        &mut self.domain_mut(cpu, level).balance
    }

    /// The cost of new-idle balancing at a CPU's level as it is remembered (`sd->max_newidle_lb_cost`).
    pub fn max_newidle_lb_cost(&self, cpu: Cpu, level: usize) -> Ns {
        Ns(self.domain_state(cpu, level).max_newidle_lb_cost)
    }

    /// The group of a domain that its own CPU is in.
    pub(crate) fn local_group(&self, cpu: Cpu, level: usize) -> &SchedGroup {
        self.domains.group(self.domains.local_group(self.domain_id(cpu, level)))
    }
}
