//! A machine at rest as another kernel has booted it: what that left behind, laid into the model before anything runs.
//!
//! Must not know: whose memory it was read from.

use fairlab_event::Ns;

use crate::balance::RndState;
use crate::domain::BalanceState;
use crate::entity::CfsRqId;
use crate::pelt::SchedAvg;
use crate::scheduler::Scheduler;
use crate::vruntime::Vruntime;

/// What a machine at rest holds. Times are the kernel's own clock's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestState {
    /// For how long the kernel has been up, ns: its clock when the driver's time begins, a whole number of ticks.
    pub uptime: u64,
    /// Its jiffies then.
    pub jiffies: u64,
    /// Whether it was built preemptible (`CONFIG_PREEMPTION`); `None`: as kernels of its generation are.
    pub preemptible: Option<bool>,
    /// `rd->overload`: some CPU has tasks to spare.
    pub overloaded: bool,
    /// By CPU.
    pub cpus: Vec<RestingCpu>,
}

/// What one CPU holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestingCpu {
    /// `rq->cfs.min_vruntime`, or `zero_vruntime`.
    pub min_vruntime: u64,
    /// `rq->cfs.avg`.
    pub avg: SchedAvg,
    /// `rq->cfs.on_list`: the queue is aged though nothing is queued there.
    pub on_list: bool,
    /// `rq->avg_idle`, ns.
    pub avg_idle: u64,
    /// `rq->max_idle_balance_cost`, ns.
    pub max_idle_balance_cost: u64,
    /// `rq->idle_stamp`, ns; 0: there is none.
    pub idle_stamp: u64,
    /// `rq->next_balance`, jiffies.
    pub next_balance: u64,
    /// `rq->has_blocked_load`.
    pub has_blocked_load: bool,
    /// `rq->last_blocked_load_update_tick`, jiffies.
    pub last_blocked_load_update_tick: u64,
    /// `sched_rnd_state`, where the kernel has it.
    pub rnd_state: Option<RndState>,
    /// `sd_llc_shared->has_idle_cores`.
    pub has_idle_cores: bool,
    /// `sd_llc_shared->nr_idle_scan`, where the kernel has it.
    pub nr_idle_scan: Option<u32>,
    /// Its domains, the smallest first.
    pub domains: Vec<BalanceState>,
}

impl Scheduler {
    /// Takes over what another kernel holds at rest. To be called before anything runs, at the driver's time zero.
    pub fn adopt(&mut self, rest: &RestState) {
        self.shared.pelt_epoch = rest.uptime;
        self.shared.sysctl.first_jiffy = rest.jiffies;
        self.shared.count_jiffies(Ns::ZERO);
        self.balance.preemption = rest.preemptible;
        self.shared.overloaded = rest.overloaded;
        self.balance.nohz.next_balance = rest.jiffies;
        self.balance.nohz.next_blocked = rest.jiffies;
        for (index, cpu) in rest.cpus.iter().enumerate().take(self.rqs.len()) {
            self.adopt_cpu(index, cpu);
        }
    }

    fn adopt_cpu(&mut self, index: usize, given: &RestingCpu) {
        let root = CfsRqId(index as u32);
        if given.on_list {
            self.queue_rq_lock(root).list_add_leaf_cfs_rq(root);
        }
        let queue = self.cfs_mut(root);
        queue.move_zero_to(Vruntime(given.min_vruntime));
        queue.tracked.avg = given.avg;
        let epoch = self.shared.pelt_epoch;
        let rq = &mut self.rqs[index];
        rq.pelt.clock_pelt = epoch + rq.clock.0;
        rq.idle_time.avg_idle = given.avg_idle;
        rq.idle_time.max_idle_balance_cost = given.max_idle_balance_cost;
        let stamp = given.idle_stamp;
        rq.idle_time.idle_stamp = (stamp != 0).then_some(Ns(stamp.wrapping_sub(epoch)));
        let balance = &mut self.balance.cpus[index];
        balance.next_balance = given.next_balance;
        balance.has_blocked_load = given.has_blocked_load;
        balance.last_blocked_load_update_tick = given.last_blocked_load_update_tick;
        balance.rnd_state = given.rnd_state.unwrap_or(balance.rnd_state);
        let cpu = fairlab_event::Cpu(index as u32);
        if let Some(shared) = self.domains.of_cpu(cpu).sd_llc_shared {
            let shared = self.domains.shared_mut(shared);
            shared.has_idle_cores = given.has_idle_cores;
            shared.nr_idle_scan = given.nr_idle_scan.unwrap_or(shared.nr_idle_scan);
        }
        for (level, given) in given.domains.iter().enumerate().take(self.nr_domains(cpu)) {
            let newidle_stamp = given.newidle_stamp.wrapping_sub(epoch);
            *self.domain_state_mut(cpu, level) = BalanceState { newidle_stamp, ..*given };
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::Cpu;

    use super::*;
    use crate::struct_members::{StructMember, StructMembers};
    use crate::testbed::SchedulerTestbed;

    #[test]
    fn what_was_left_behind_is_what_begins() {
        let mut bed = SchedulerTestbed::new("v6.1", 2, 1);
        let avg =
            SchedAvg { load_avg: 7, load_sum: 9, last_update_time: 4_000_000_000, ..SchedAvg::default() };
        let domain =
            BalanceState { last_balance: 4_294_937_000, balance_interval: 8, ..BalanceState::default() };
        let cpu = RestingCpu {
            min_vruntime: 22,
            avg,
            on_list: true,
            idle_stamp: 3_000_000_000,
            domains: vec![domain],
            rnd_state: Some(RndState([1, 2, 3, 4])),
            ..RestingCpu::default()
        };
        let rest = RestState {
            uptime: 4_000_000_000,
            jiffies: 4_294_937_296,
            preemptible: Some(true),
            overloaded: true,
            cpus: vec![cpu.clone(), RestingCpu::default()],
        };
        bed.scheduler.adopt(&rest);
        assert_eq!(bed.scheduler.shared.jiffies(), 4_294_937_296);
        assert_eq!(bed.scheduler.domain_state(Cpu(0), 0).last_balance, 4_294_937_000);
        assert_eq!((bed.scheduler.balance.preemption, bed.scheduler.shared.overloaded), (Some(true), true));
        let mut members = StructMembers::new();
        bed.scheduler.members_of_queue(Cpu(0), crate::GroupId::ROOT, &mut members);
        let of = |wanted: StructMember| {
            members.iter().find(|(member, _)| *member == wanted).map(|(_, value)| *value)
        };
        assert_eq!((of(StructMember::QueueZero), of(StructMember::QueueLoadAvg)), (Some(22), Some(7)));
        assert_eq!(bed.scheduler.rqs[0].idle_time.idle_stamp, Some(Ns(1_000_000_000_u64.wrapping_neg())));
        assert_eq!(bed.scheduler.rqs[1].idle_time.idle_stamp, None);
        let chance = [0, 1].map(|cpu| bed.scheduler.balance.cpus[cpu].rnd_state);
        assert_eq!(chance, [RndState([1, 2, 3, 4]), RndState::seeded(2)]);
        assert_eq!([0, 1].map(|cpu: usize| bed.scheduler.rqs[cpu].leaf_cfs_rqs.len()), [1, 0]);
    }
}
