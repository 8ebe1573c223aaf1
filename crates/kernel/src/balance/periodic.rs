//! Periodic balancing: from the tick, in the SCHED softirq, each level when it is due.
//!
//! Must not know: what is found at a level.

use fairlab_event::Cpu;

use crate::balance::blocked::BlockedUpdate;
use crate::balance::decided::BalanceDecision;
use crate::balance::rules::LeftForFair;
use crate::generation::Feature;
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;

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
        let (is_idle, jiffies) = (self.idle_cpu(cpu), self.shared.jiffies());
        if self.shared.generation.features.has(Feature::LbBias) {
            let load = self.balanced_load(cpu);
            self.balance.cpus[cpu.index()].cpu_load.tick(load, jiffies, false);
        }
        if self.shared.generation.balance.left_for_fair == LeftForFair::ShareOfTime {
            let rq = &mut self.rqs[cpu.index()];
            rq.rt_time.age(rq.clock.0);
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
        let jiffies = self.shared.jiffies();
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
            let least = self.shared.sysctl.migration_cost;
            self.set_max_idle_balance_cost(cpu, least.max(max_cost));
        }
        if found_next {
            self.balance.cpus[cpu.index()].next_balance = next_balance;
            self.pull_next_kick_forward(idle, next_balance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::{MS, SchedulerTestbed};
    use crate::topology::{SmtNumbering, Topology};

    /// Two nodes of two cores of two threads, 100 ticks after the start; the cost of new-idle balancing is not to decay.
    fn machine(kernel: &str) -> SchedulerTestbed {
        let topology = Topology::regular(2, 1, 2, 2, SmtNumbering::Adjacent).expect("a machine");
        let mut bed = SchedulerTestbed::on(kernel, topology);
        bed.pass(100 * MS);
        for cpu in 0..8 {
            bed.at(cpu);
            for level in 0..3 {
                bed.scheduler.domain_state_mut(Cpu(cpu), level).decay_max_lb_cost = 1 << 40;
            }
        }
        bed.at(0);
        bed
    }

    fn balanced_at(bed: &mut SchedulerTestbed, cpu: u32, last: [u64; 3]) {
        for (level, last) in last.into_iter().enumerate() {
            bed.scheduler.domain_state_mut(Cpu(cpu), level).last_balance = last;
        }
    }

    fn last_balanced(bed: &SchedulerTestbed, cpu: u32) -> [u64; 3] {
        [0, 1, 2].map(|level| bed.scheduler.domain_state(Cpu(cpu), level).last_balance)
    }

    fn rebalance(bed: &mut SchedulerTestbed, cpu: u32, idle: CpuIdleType) -> BalanceWork {
        let mut work = BalanceWork::default();
        bed.at(cpu);
        bed.scheduler.rebalance_domains(Cpu(cpu), idle, &mut work);
        work
    }

    #[test]
    fn the_softirq_is_run_from_the_tick_on_at_which_a_level_is_due() {
        let mut bed = machine("v5.10");
        let mut softirq = |next| {
            bed.scheduler.balance.cpus[0].next_balance = next;
            bed.scheduler.trigger_load_balance(Cpu(0)).softirq
        };
        assert_eq!([99, 100, 101].map(&mut softirq), [true, true, false]);
        let mut alone = SchedulerTestbed::new("v5.10", 1, 1);
        alone.at(0);
        assert!(!alone.scheduler.trigger_load_balance(Cpu(0)).softirq, "there is nobody to balance with");
    }

    #[test]
    fn the_tick_tells_the_softirq_whether_the_cpu_idles() {
        let idle_calls = |busy: bool| {
            let mut bed = machine("v5.10");
            if busy {
                bed.spawn(0, 0);
            }
            bed.at(0);
            bed.scheduler.trigger_load_balance(Cpu(0));
            bed.scheduler.run_rebalance_domains(Cpu(0));
            let lb = bed.scheduler.domain(Cpu(0), 0).counters.lb;
            [CpuIdleType::Idle, CpuIdleType::NotIdle].map(|idle| lb[idle.index()].count)
        };
        assert_eq!(idle_calls(false), [1, 0]);
        assert_eq!(idle_calls(true), [0, 1]);
    }

    /// Idle, the levels of two threads, four and eight CPUs are due every 2, 4 and 8 ms.
    #[test]
    fn each_level_is_balanced_when_it_is_due_and_the_next_softirq_comes_when_one_is() {
        let after = |last| {
            let mut bed = machine("v5.10");
            balanced_at(&mut bed, 0, last);
            let work = rebalance(&mut bed, 0, CpuIdleType::Idle);
            (last_balanced(&bed, 0), work.scanned, bed.scheduler.balance.cpus[0].next_balance)
        };
        assert_eq!(after([99, 96, 93]), ([99, 100, 93], 4, 101));
        assert_eq!(after([99, 97, 92]), ([99, 97, 100], 8, 101));
        assert_eq!(after([98, 98, 95]), ([100, 98, 95], 2, 102), "the level above comes before it again");
        assert_eq!(after([99, 99, 99]), ([99, 99, 99], 0, 101));
        assert_eq!(after([0, 0, 0]), ([100, 100, 100], 2 + 4 + 8, 104), "each in vain: intervals double");
    }

    #[test]
    fn levels_above_one_that_another_cpu_balances_are_left_to_that() {
        let levels = |kernel: &str, next_decay| {
            let mut bed = machine(kernel);
            balanced_at(&mut bed, 1, [0, 0, 0]);
            bed.scheduler.domain_state_mut(Cpu(1), 0).decay_max_lb_cost = next_decay;
            bed.scheduler.set_max_idle_balance_cost(Cpu(1), 0);
            for (level, cost) in [256_000, 256_000, 512_000].into_iter().enumerate() {
                bed.scheduler.domain_state_mut(Cpu(1), level).max_newidle_lb_cost = cost;
            }
            let work = rebalance(&mut bed, 1, CpuIdleType::Idle);
            (last_balanced(&bed, 1), work.tries, bed.scheduler.max_idle_balance_cost(Cpu(1)))
        };
        // Every CPU may balance the threads of its core; CPU 0 balances for its core and its node.
        assert_eq!(levels("v5.10", 1 << 40), ([100, 100, 0], 2, 0));
        let summed = 253_000 + 256_000 + 512_000;
        assert_eq!(
            levels("v5.10", 99),
            ([100, 100, 0], 2, summed),
            "all costs are summed up once one decays"
        );
    }

    #[test]
    fn what_new_idle_balancing_may_take_falls_to_the_migration_cost_and_no_lower() {
        let mut bed = machine("v5.10");
        bed.scheduler.domain_state_mut(Cpu(0), 2).decay_max_lb_cost = 99;
        bed.scheduler.set_max_idle_balance_cost(Cpu(0), 900_000);
        rebalance(&mut bed, 0, CpuIdleType::Idle);
        assert_eq!(bed.scheduler.max_idle_balance_cost(Cpu(0)), 500_000);
    }

    /// An idle CPU that has pulled a task waits as long as a busy one.
    #[test]
    fn what_was_pulled_decides_when_the_next_balance_is_due() {
        let mut bed = SchedulerTestbed::new("v5.10", 2, 1);
        for _ in 0..3 {
            bed.spawn(0, 1);
        }
        bed.pass(100 * MS);
        let work = rebalance(&mut bed, 0, CpuIdleType::Idle);
        assert_eq!((work.tries, work.scanned, work.looked, work.moved), (1, 2, 2, 1));
        assert!(work.pushes.is_empty());
        assert_eq!(bed.scheduler.balance.cpus[0].next_balance, 100 + 16 * 2 - 1);
        let mut bed = SchedulerTestbed::new("v5.10", 2, 1);
        bed.pass(100 * MS);
        rebalance(&mut bed, 0, CpuIdleType::Idle);
        assert_eq!(bed.scheduler.balance.cpus[0].next_balance, 100 + 2 * 2, "in vain: the interval doubles");
    }

    #[test]
    fn a_try_that_begins_a_push_names_the_cpu_whose_stopper_is_to_run() {
        let pushes = |failed| {
            let mut bed = SchedulerTestbed::new("v5.10", 2, 1);
            bed.spawn(0, 1);
            bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(1)));
            bed.pass(100 * MS);
            bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = failed;
            let work = rebalance(&mut bed, 0, CpuIdleType::Idle);
            assert_eq!(work.moved, 0, "who waits is pinned");
            work.pushes
        };
        assert_eq!((pushes(2), pushes(3)), (vec![], vec![Cpu(1)]), "more than one try and two");
    }

    #[test]
    fn an_idle_balance_pulled_the_next_kick_forward_up_to_v5_12() {
        let next_kick = |kernel, idle| {
            let mut bed = machine(kernel);
            bed.scheduler.balance.nohz.next_balance = 5_000;
            balanced_at(&mut bed, 0, [100, 100, 100]);
            rebalance(&mut bed, 0, idle);
            bed.scheduler.balance.nohz.next_balance
        };
        assert_eq!(next_kick("v5.12", CpuIdleType::Idle), 102);
        assert_eq!(next_kick("v5.12", CpuIdleType::NotIdle), 5_000);
        assert_eq!(next_kick("v5.13", CpuIdleType::Idle), 5_000);
    }
}
