//! The timers of a group with a quota: the end of a period, and returned runtime.

use fairlab_event::{Cpu, Ns};

use super::{GroupTimer, GroupTimerKind, Refill, SliceExpiry, ThrottlePoint, Unthrottling};
use crate::all_cpus::Shared;
use crate::entity::CfsRqId;
use crate::fair::bandwidth::CfsLimit;
use crate::fair::bandwidth::rules::InitialRuntime;
use crate::group::GroupId;
use crate::scheduler::Scheduler;

impl Shared {
    /// The pool at the beginning of a period, ns. Pure.
    ///
    /// Kernel: `__refill_cfs_bandwidth_runtime()`, kernel/sched/fair.c. Variants: `Replaces` to v5.13, `Accumulates` from
    /// v5.14 (f4183717b370).
    fn refilled(&self, group: GroupId) -> u64 {
        let pool = self.pool(group);
        let Some(quota) = pool.limit.quota else { return pool.runtime };
        match self.generation.bandwidth.refill {
            Refill::Replaces => quota.0,
            Refill::Accumulates => (pool.runtime + quota.0).min(quota.0 + pool.limit.burst.0),
        }
    }

    pub(super) fn refill(&mut self, group: GroupId) {
        if self.pool(group).limit.quota.is_none() {
            return;
        }
        let (runtime, now) = (self.refilled(group), self.trace.now.0);
        let expires = self.generation.bandwidth.slice_expiry != SliceExpiry::Never;
        let pool = self.pool_mut(group);
        pool.runtime = runtime;
        if expires {
            pool.runtime_expires = now + pool.limit.period.0;
            pool.expires_seq = pool.expires_seq.wrapping_add(1);
        }
    }
}

impl Scheduler {
    /// A timer has expired, on this CPU. One that was restarted or stopped meanwhile does nothing.
    ///
    /// Kernel: `sched_cfs_period_timer()`, `sched_cfs_slack_timer()`, kernel/sched/fair.c.
    /// Departs: a period is never scaled up, since the handler takes no virtual time.
    pub fn group_timer_expires(&mut self, timer: GroupTimer) {
        let pool = self.shared.pool(timer.group);
        match timer.kind {
            GroupTimerKind::Period => {
                if !pool.period_active || pool.period_expires != timer.expires.0 {
                    return;
                }
                self.shared.forward_period(timer.group);
                if self.period_is_idle(timer.group) {
                    self.shared.pool_mut(timer.group).period_active = false;
                } else {
                    let expires = Ns(self.shared.pool(timer.group).period_expires);
                    self.shared.start_timer(timer.group, GroupTimerKind::Period, expires);
                }
            }
            GroupTimerKind::RealTime => {
                if self.rt_period.expires == timer.expires.0 {
                    self.rt_period_ends();
                }
            }
            GroupTimerKind::Slack => {
                if pool.slack_expires == Some(timer.expires.0) {
                    self.distribute_slack(timer.group);
                }
            }
        }
    }

    /// Begins a period. Returns whether the group does not need the timer any more.
    ///
    /// Kernel: `do_sched_cfs_period_timer()`, kernel/sched/fair.c.
    fn period_is_idle(&mut self, group: GroupId) -> bool {
        if self.shared.pool(group).limit.quota.is_none() {
            return true;
        }
        let accumulates = self.shared.generation.bandwidth.refill == Refill::Accumulates;
        if accumulates {
            self.shared.refill(group);
        }
        let waiting = self.shared.pool(group).throttled.len();
        if self.shared.pool(group).idle && waiting == 0 {
            return true;
        }
        if !accumulates {
            self.shared.refill(group);
        }
        if waiting == 0 {
            self.shared.pool_mut(group).idle = true;
            return false;
        }
        // Each round serves at least one of those that wait, or leaves nothing.
        for _ in 0..waiting {
            let still_throttled = self.distribute_cfs_runtime(group);
            if !still_throttled || self.shared.pool(group).runtime == 0 {
                break;
            }
        }
        self.shared.pool_mut(group).idle = false;
        false
    }

    /// Kernel: `do_sched_cfs_slack_timer()`, kernel/sched/fair.c.
    fn distribute_slack(&mut self, group: GroupId) {
        let pool = self.shared.pool_mut(group);
        pool.slack_expires = None;
        pool.slack_started = false;
        if self.shared.refresh_is_near(group) {
            return;
        }
        let pool = self.shared.pool(group);
        if pool.limit.quota.is_some() && pool.runtime > self.shared.sysctl.bandwidth_slice {
            self.distribute_cfs_runtime(group);
        }
    }

    /// Pays throttled queues' debts, one after the other, as far as the pool goes. Returns whether any stays throttled.
    ///
    /// Kernel: `distribute_cfs_runtime()`, kernel/sched/fair.c. Variants: `ByTimer` to v6.2, `ByItsCpu` from v6.3
    /// (8ad075c2eb1f).
    fn distribute_cfs_runtime(&mut self, group: GroupId) -> bool {
        let rules = self.shared.generation.bandwidth;
        let (mut here, mut still_throttled) = (Vec::new(), false);
        for cfs_rq in self.shared.pool(group).throttled.clone() {
            if self.shared.pool(group).runtime == 0 {
                still_throttled = true;
                break;
            }
            let local = &self.cfs(cfs_rq).runtime;
            if !local.throttled || local.unthrottle_queued {
                continue;
            }
            if !self.pay_debt(group, cfs_rq) {
                still_throttled = true;
                if rules.throttle_point == ThrottlePoint::Accounting {
                    break;
                }
                continue;
            }
            match rules.unthrottling {
                Unthrottling::ByTimer => self.queue_rq_lock(cfs_rq).unthrottle_cfs_rq(cfs_rq),
                Unthrottling::ByItsCpu if self.cfs(cfs_rq).cpu == self.shared.trace.here => here.push(cfs_rq),
                Unthrottling::ByItsCpu => self.call_to_unthrottle(cfs_rq),
            }
        }
        for cfs_rq in here {
            self.queue_rq_lock(cfs_rq).unthrottle_cfs_rq(cfs_rq);
        }
        match rules.unthrottling {
            Unthrottling::ByTimer => !self.shared.pool(group).throttled.is_empty(),
            Unthrottling::ByItsCpu => still_throttled,
        }
    }

    /// Gives a throttled queue what it owes and one nanosecond, if the pool has it. Returns whether it may run.
    fn pay_debt(&mut self, group: GroupId, cfs_rq: CfsRqId) -> bool {
        let rules = self.shared.generation.bandwidth;
        if rules.throttle_point == ThrottlePoint::Accounting && self.cfs(cfs_rq).member.is_some() {
            self.rq_lock(self.cfs(cfs_rq).cpu).update_rq_clock();
            self.queue_rq_lock(cfs_rq).update_curr(cfs_rq);
        }
        // Unsigned, as in the kernel: where a throttled queue could take runtime, its credit is taken for a large debt.
        let debt = 1_i64.wrapping_sub(self.cfs(cfs_rq).runtime.remaining) as u64;
        let pool = self.shared.pool_mut(group);
        let paid = debt.min(pool.runtime);
        pool.runtime -= paid;
        let expires = pool.runtime_expires;
        let local = &mut self.cfs_mut(cfs_rq).runtime;
        local.remaining += paid as i64;
        if rules.slice_expiry != SliceExpiry::Never {
            local.expires = expires;
        }
        local.remaining > 0
    }

    fn call_to_unthrottle(&mut self, cfs_rq: CfsRqId) {
        let cpu = self.cfs(cfs_rq).cpu;
        self.cfs_mut(cfs_rq).runtime.unthrottle_queued = true;
        let waiting = &mut self.rqs[cpu.index()].unthrottle;
        waiting.push(cfs_rq);
        if waiting.len() == 1 {
            self.shared.unthrottle_calls.push(cpu);
        }
    }

    /// CPUs that are to be interrupted to unthrottle groups ([`Scheduler::unthrottle_queued`]) since the last call.
    pub fn take_unthrottle_calls(&mut self, into: &mut Vec<Cpu>) {
        into.append(&mut self.shared.unthrottle_calls);
    }

    /// This CPU brings back the groups that it was called for.
    ///
    /// Kernel: `__cfsb_csd_unthrottle()`, kernel/sched/fair.c (8ad075c2eb1f).
    pub fn unthrottle_queued(&mut self, cpu: Cpu) {
        self.rq_lock(cpu).update_rq_clock();
        for cfs_rq in std::mem::take(&mut self.rqs[cpu.index()].unthrottle) {
            self.cfs_mut(cfs_rq).runtime.unthrottle_queued = false;
            if self.cfs(cfs_rq).runtime.throttled {
                self.queue_rq_lock(cfs_rq).unthrottle_cfs_rq(cfs_rq);
            }
        }
    }
}

impl Scheduler {
    /// Gives a group below the root a limit, or takes it away. `offset`: a random time below the period; from v6.4 on
    /// it keeps periods of groups apart.
    ///
    /// Kernel: `tg_set_cfs_bandwidth()`, kernel/sched/core.c.
    pub fn set_group_bandwidth(&mut self, group: GroupId, limit: CfsLimit, offset: Ns) {
        if group == GroupId::ROOT {
            return;
        }
        let enabled = limit.quota.is_some();
        self.shared.bandwidth_used |= enabled;
        let first = !self.shared.pool(group).period_active && self.shared.pool(group).period_expires == 0;
        if first && self.shared.generation.bandwidth.period_start == super::PeriodStart::Interleaved {
            self.shared.pool_mut(group).period_expires = offset.0 % limit.period.0;
        }
        self.shared.pool_mut(group).limit = limit;
        self.shared.refill(group);
        if enabled {
            self.shared.start_cfs_bandwidth(group);
        }
        let remaining = match self.shared.generation.bandwidth.initial_runtime {
            InitialRuntime::None => 0,
            InitialRuntime::OneNanosecond => 1,
        };
        for cpu in self.shared.topology.cpus() {
            let cfs_rq = self.shared.groups[group.0 as usize].cfs_rqs[cpu.index()];
            let local = &mut self.cfs_mut(cfs_rq).runtime;
            (local.enabled, local.remaining) = (enabled, remaining);
            if local.throttled {
                self.rq_lock(cpu).update_rq_clock();
                self.queue_rq_lock(cfs_rq).unthrottle_cfs_rq(cfs_rq);
            }
        }
    }

    /// Timers that were started since the last call, in order.
    pub fn take_started_timers(&mut self, into: &mut Vec<GroupTimer>) {
        into.append(&mut self.shared.started_timers);
    }
}
