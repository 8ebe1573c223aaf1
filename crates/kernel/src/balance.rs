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
mod chance;
mod decided;
mod detach;
mod gathering;
mod groups;
mod imbalance;
mod interval;
mod kept_sums;
mod migrate;
mod newidle;
mod nohz;
mod packing;
mod periodic;
#[cfg(test)]
mod random;
pub mod reasons;
pub(crate) mod rules;
#[cfg(test)]
mod situations;
mod state;
mod statistics;
mod told;

use fairlab_event::{Cpu, Ns};

use crate::cfs_rq::CfsRq;
use crate::domain::{BalanceState, DomainId, SchedDomain, SchedGroup};
use crate::scheduler::Scheduler;

pub use blocked::BlockedUpdate;
pub use chance::RndState;
pub use decided::{BalanceDecision, BiasEffect, BusiestGroup, DetachPass, TaskLook};
pub use imbalance::{Imbalance, MigrationType};
pub use interval::MAX_PINNED_INTERVAL;
pub use newidle::NewidleSearch;
pub use periodic::BalanceWork;
pub use reasons::{BalancedReason, PullEnd, TaskReason};
pub use rules::*;
#[cfg(test)]
pub(crate) use situations::SITUATIONS;
pub(crate) use state::BalancerState;
pub use state::{NohzKick, NohzKind};
pub use statistics::{GroupType, SdLbStats, SgLbStats};

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

    /// Fair tasks of a CPU that count as waiting or running (`cfs.h_nr_running`, from v6.14 `cfs.h_nr_runnable`).
    pub(crate) fn waiting_tasks(&self, cpu: Cpu) -> u32 {
        self.waiting_in(self.cfs(self.rqs[cpu.index()].cfs))
    }

    pub(crate) fn waiting_in(&self, queue: &CfsRq) -> u32 {
        match self.shared.generation.balance.delayed_count {
            DelayedCount::All => queue.h_nr_running,
            DelayedCount::Runnable => queue.h_nr_running - queue.h_nr_delayed,
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
