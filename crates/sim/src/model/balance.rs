//! Periodic and NOHZ balancing: done at the instant of its softirq, then charged as a whole.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::balance::{BalanceWork, BlockedUpdate};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::work_events::SchedulerWork;

use super::Model;
use crate::scheduler_core::SchedulerCore;

impl Model {
    /// The end of the tick: kicks an idle CPU, balances here if something is due. Returns what that took.
    #[inline]
    pub(super) fn balance_at_tick(&mut self, cpu: Cpu) -> Ns {
        let due = self.scheduler.trigger_load_balance(cpu);
        self.kick(due.kick);
        if due.softirq { self.sched_softirq(cpu) } else { Ns::ZERO }
    }

    /// A busy CPU asks this idle one to balance for idle ones. Returns what that took.
    pub(super) fn nohz_kicked(&mut self, cpu: Cpu) -> Ns {
        if self.scheduler.nohz_kicked(cpu) { self.sched_softirq(cpu) } else { Ns::ZERO }
    }

    fn sched_softirq(&mut self, cpu: Cpu) -> Ns {
        self.set_here(cpu, KernelContext::Softirq, self.now);
        let work = self.scheduler.run_rebalance_domains(cpu);
        self.begin_pushes(&work);
        self.tell_balance(&work);
        self.costs.softirq + self.cost_of_balance(&work)
    }

    /// Tells what periodic or NOHZ balancing did.
    pub(super) fn tell_balance(&mut self, work: &BalanceWork) {
        self.tell_ageing(SchedulerWork::Ageing, work.blocked);
        self.tell_looks(SchedulerWork::Balance, work);
    }

    pub(super) fn tell_ageing(&mut self, kind: SchedulerWork, update: BlockedUpdate) {
        self.scheduler.tell_work(kind, u64::from(update.queues), self.cost_of_update(update));
    }

    /// Tells the looks of a try, and the tasks that it moved.
    pub(super) fn tell_looks(&mut self, kind: SchedulerWork, work: &BalanceWork) {
        let looks = times(self.costs.balance_cpu, work.scanned + work.looked);
        self.scheduler.tell_work(kind, u64::from(work.scanned), looks);
        self.scheduler.tell_work(
            SchedulerWork::Moves,
            u64::from(work.moved),
            times(self.costs.migrate, work.moved),
        );
    }

    pub(super) fn cost_of_update(&self, update: BlockedUpdate) -> Ns {
        times(self.costs.blocked_cpu, update.cpus) + times(self.costs.blocked_queue, update.queues)
    }

    pub(super) fn cost_of_balance(&self, work: &BalanceWork) -> Ns {
        self.cost_of_update(work.blocked)
            + times(self.costs.balance_cpu, work.scanned + work.looked)
            + times(self.costs.migrate, work.moved)
    }
}

pub(super) fn times(cost: Ns, count: u32) -> Ns {
    Ns(cost.0 * u64::from(count))
}
