//! Periodic balancing: from the tick, in the SCHED softirq, each level when it is due.
//!
//! Must not know: what is found at a level.

use fairlab_event::Cpu;

use crate::balance::attempt::BalanceDecision;
use crate::balance::blocked::BlockedUpdate;
use crate::core::Scheduler;
use crate::generation::Feature;
use crate::schedstat::CpuIdleType;

/// What a tick asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickBalance {
    /// The SCHED softirq is to be run.
    pub softirq: bool,
    /// This CPU is to be kicked.
    pub kick: Option<Cpu>,
}

/// What balancing did, for the driver to charge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BalanceWork {
    /// Blocked load that was aged.
    pub blocked: BlockedUpdate,
    /// Tries.
    pub tries: u32,
    /// Runqueues looked at.
    pub scanned: u32,
    /// Tasks looked at.
    pub looked: u32,
    /// Tasks moved.
    pub moved: u32,
    /// CPUs whose stopper is to push a task.
    pub pushes: Vec<Cpu>,
}

impl BalanceWork {
    /// Counts a decision that was applied.
    pub fn add(&mut self, decision: &BalanceDecision) {
        self.tries += 1;
        self.scanned += decision.scanned;
        self.looked += decision.looked();
        self.moved += decision.moved();
        self.pushes.extend(decision.source.filter(|_| decision.push));
    }
}

impl Scheduler {
    /// The end of the tick: what is due on this CPU and on idle ones.
    ///
    /// Kernel: the end of `scheduler_tick()`, `trigger_load_balance()`.
    pub fn trigger_load_balance(&mut self, cpu: Cpu) -> TickBalance {
        let (is_idle, jiffies) = (self.idle_cpu(cpu), self.jiffies());
        if self.generation.features.has(Feature::LbBias) {
            let load = self.balanced_load(cpu);
            self.balance.cpus[cpu.index()].cpu_load.tick(load, jiffies, false);
        }
        let state = &mut self.balance.cpus[cpu.index()];
        state.idle_balance = is_idle;
        let softirq = jiffies >= state.next_balance && self.nr_domains(cpu) > 0;
        TickBalance { softirq, kick: self.nohz_balancer_kick(cpu) }
    }

    /// The SCHED softirq.
    ///
    /// Kernel: `run_rebalance_domains()` (v6.10: `sched_balance_softirq()`), kernel/sched/fair.c.
    pub fn run_rebalance_domains(&mut self, cpu: Cpu) -> BalanceWork {
        if let Some(work) = self.nohz_idle_balance(cpu) {
            return work;
        }
        let idle = match self.balance.cpus[cpu.index()].idle_balance {
            true => CpuIdleType::Idle,
            false => CpuIdleType::NotIdle,
        };
        let mut work = BalanceWork { blocked: self.update_blocked_averages(cpu), ..BalanceWork::default() };
        self.rebalance_domains(cpu, idle, &mut work);
        work
    }

    /// Balances each level that is due.
    ///
    /// Kernel: `rebalance_domains()` (v6.10: `sched_balance_domains()`), kernel/sched/fair.c.
    pub(super) fn rebalance_domains(&mut self, cpu: Cpu, mut idle: CpuIdleType, work: &mut BalanceWork) {
        let jiffies = self.jiffies();
        let mut next_balance = jiffies + 60 * self.ticks_per_second();
        let mut found_next = false;
        let (mut continues, mut decayed, mut max_cost) = (true, false, 0);
        for level in 0..self.nr_domains(cpu) {
            decayed = self.decay_newidle_cost(cpu, level, decayed);
            max_cost += self.domain_state(cpu, level).max_newidle_lb_cost;
            if !continues {
                if decayed {
                    continue;
                }
                break;
            }
            let mut interval = self.get_sd_balance_interval(cpu, level, self.balances_as_busy(cpu, idle));
            if jiffies >= self.domain_state(cpu, level).last_balance + interval {
                self.probe_balance(cpu, level, idle);
                let decision = self.decide_balance(cpu, level, idle);
                continues = decision.continues;
                if self.apply_balance(&decision) > 0 {
                    idle = if self.idle_cpu(cpu) { CpuIdleType::Idle } else { CpuIdleType::NotIdle };
                }
                work.add(&decision);
                self.domain_state_mut(cpu, level).last_balance = jiffies;
                interval = self.get_sd_balance_interval(cpu, level, self.balances_as_busy(cpu, idle));
            }
            let due = self.domain_state(cpu, level).last_balance + interval;
            found_next |= due < next_balance;
            next_balance = next_balance.min(due);
        }
        if decayed {
            let least = self.sysctl.migration_cost;
            self.set_max_idle_balance_cost(cpu, least.max(max_cost));
        }
        if found_next {
            self.balance.cpus[cpu.index()].next_balance = next_balance;
            self.pull_next_kick_forward(idle, next_balance);
        }
    }
}
