//! Taking runtime from a group's pool, charging it, and giving it back.

use fairlab_event::Ns;

use super::{
    GroupTimer, GroupTimerKind, KEPT_RUNTIME, NEAR_REFRESH, RefreshSoon, SLACK_PERIOD, SlackRestart,
    SliceExpiry, ThrottlePoint, ThrottledAssign,
};
use crate::all_cpus::Shared;
use crate::entity::CfsRqId;
use crate::group::GroupId;
use crate::rq::LockedRq;

impl Shared {
    pub(super) fn pool(&self, group: GroupId) -> &super::CfsBandwidth {
        &self.groups[group.0 as usize].pool
    }

    pub(super) fn pool_mut(&mut self, group: GroupId) -> &mut super::CfsBandwidth {
        &mut self.groups[group.0 as usize].pool
    }

    /// Lets a group's period timer run, if it does not yet.
    ///
    /// Kernel: `start_cfs_bandwidth()`, kernel/sched/fair.c.
    pub(super) fn start_cfs_bandwidth(&mut self, group: GroupId) {
        if self.pool(group).period_active {
            return;
        }
        let overrun = self.forward_period(group);
        let expiry = self.generation.bandwidth.slice_expiry;
        let pool = self.pool_mut(group);
        pool.period_active = true;
        if expiry != SliceExpiry::Never {
            pool.runtime_expires += (overrun + 1) * pool.limit.period.0;
            pool.expires_seq = pool.expires_seq.wrapping_add(1);
        }
        let expires = Ns(pool.period_expires);
        self.start_timer(group, GroupTimerKind::Period, expires);
    }

    pub(crate) fn start_timer(&mut self, group: GroupId, kind: GroupTimerKind, expires: Ns) {
        let cpu = self.trace.here;
        self.started_timers.push(GroupTimer { group, kind, expires, cpu });
    }

    /// Moves the end of the period behind now, by whole periods. Returns by how many (`hrtimer_forward_now()`).
    pub(super) fn forward_period(&mut self, group: GroupId) -> u64 {
        let now = self.trace.now.0;
        let pool = self.pool_mut(group);
        if now < pool.period_expires {
            return 0;
        }
        let overrun = (now - pool.period_expires) / pool.limit.period.0 + 1;
        pool.period_expires += overrun * pool.limit.period.0;
        overrun
    }

    /// How much of the pool a queue would get that asks for `target` beyond its debt, ns. Pure.
    ///
    /// Kernel: `__assign_cfs_rq_runtime()`, kernel/sched/fair.c.
    fn assignable_runtime(&self, cfs_rq: CfsRqId, target: u64) -> u64 {
        let (queue, pool) = (self.cfs(cfs_rq), self.pool(self.cfs(cfs_rq).group));
        let wanted = (target as i64).wrapping_sub(queue.runtime.remaining) as u64;
        if pool.limit.quota.is_some() { wanted.min(pool.runtime) } else { wanted }
    }

    /// Takes runtime from the pool. Returns whether the queue may run.
    pub(super) fn assign_cfs_rq_runtime(&mut self, cfs_rq: CfsRqId, target: u64) -> bool {
        let group = self.cfs(cfs_rq).group;
        let amount = self.assignable_runtime(cfs_rq, target);
        if self.pool(group).limit.quota.is_some() {
            self.start_cfs_bandwidth(group);
            let pool = self.pool_mut(group);
            if pool.runtime > 0 {
                pool.runtime -= amount;
                pool.idle = false;
            }
        }
        let (expires, expires_seq) = (self.pool(group).runtime_expires, self.pool(group).expires_seq);
        let by_count = self.generation.bandwidth.slice_expiry != SliceExpiry::SeldomEver;
        let local = &mut self.cfs_mut(cfs_rq).runtime;
        local.remaining += amount as i64;
        let is_later = match by_count {
            true => local.expires_seq != expires_seq,
            false => (expires.wrapping_sub(local.expires) as i64) > 0,
        };
        if is_later {
            (local.expires, local.expires_seq) = (expires, expires_seq);
        }
        local.remaining > 0
    }

    /// A queue that has run empty gives back what it has left but for 1 ms.
    ///
    /// Kernel: `return_cfs_rq_runtime()`, kernel/sched/fair.c.
    pub(crate) fn return_cfs_rq_runtime(&mut self, cfs_rq: CfsRqId) {
        let queue = self.cfs(cfs_rq);
        if !self.bandwidth_used || !queue.runtime.enabled || queue.nr_running > 0 {
            return;
        }
        let (group, slack) = (queue.group, queue.runtime.remaining - KEPT_RUNTIME);
        if slack <= 0 {
            return;
        }
        let is_good = match self.generation.bandwidth.slice_expiry {
            SliceExpiry::SeldomEver | SliceExpiry::WithPeriod => {
                queue.runtime.expires == self.pool(group).runtime_expires
            }
            SliceExpiry::Never => true,
        };
        if is_good && self.pool(group).limit.quota.is_some() {
            let slice = self.sysctl.bandwidth_slice;
            let pool = self.pool_mut(group);
            pool.runtime += slack as u64;
            if pool.runtime > slice && !pool.throttled.is_empty() {
                self.start_cfs_slack_bandwidth(group);
            }
        }
        self.cfs_mut(cfs_rq).runtime.remaining -= slack;
    }

    /// Whether the period ends within `time` ns. Pure.
    ///
    /// Kernel: `runtime_refresh_within()`, kernel/sched/fair.c (signed from 72d0ad7cb5ba).
    fn runtime_refresh_within(&self, group: GroupId, time: u64) -> bool {
        let remaining = self.pool(group).period_expires.wrapping_sub(self.trace.now.0);
        match self.generation.bandwidth.refresh_soon {
            RefreshSoon::Unsigned => remaining < time,
            RefreshSoon::Signed => (remaining as i64) < time as i64,
        }
    }

    /// Whether the end of the period is so near that returned runtime is left to it. Pure.
    pub(super) fn refresh_is_near(&self, group: GroupId) -> bool {
        self.runtime_refresh_within(group, NEAR_REFRESH)
    }

    /// Kernel: `start_cfs_slack_bandwidth()`, kernel/sched/fair.c.
    fn start_cfs_slack_bandwidth(&mut self, group: GroupId) {
        if self.runtime_refresh_within(group, SLACK_PERIOD + NEAR_REFRESH) {
            return;
        }
        let leaves_alone = self.generation.bandwidth.slack_restart == SlackRestart::LeavesAlone;
        if leaves_alone && self.pool(group).slack_started {
            return;
        }
        let expires = self.trace.now + Ns(SLACK_PERIOD);
        let pool = self.pool_mut(group);
        pool.slack_started = true;
        pool.slack_expires = Some(expires.0);
        self.start_timer(group, GroupTimerKind::Slack, expires);
    }
}

impl LockedRq<'_> {
    /// Charges a queue whose group has a quota. Returns whether it is throttled, where that is found out here.
    ///
    /// Kernel: `account_cfs_rq_runtime()`, kernel/sched/fair.c. Variants: `PickAndPut` to v7.1, `Accounting` from v7.2.
    /// Units: run time in ns, whatever the weight.
    pub(crate) fn account_cfs_rq_runtime(&mut self, cfs_rq: CfsRqId, run_time: u64) -> bool {
        if !self.shared.bandwidth_used || !self.cfs(cfs_rq).runtime.enabled {
            return false;
        }
        self.cfs_mut(cfs_rq).runtime.remaining -= run_time as i64;
        self.expire_cfs_rq_runtime(cfs_rq);
        let local = &self.cfs(cfs_rq).runtime;
        if local.remaining > 0 {
            return false;
        }
        let rules = self.shared.generation.bandwidth;
        if rules.throttle_point == ThrottlePoint::Accounting {
            return local.throttled || self.throttle_cfs_rq(cfs_rq);
        }
        if local.throttled && rules.throttled_assign == ThrottledAssign::Refused {
            return false;
        }
        let may_run = self.shared.assign_cfs_rq_runtime(cfs_rq, self.shared.sysctl.bandwidth_slice);
        if !may_run && self.cfs(cfs_rq).member.is_some() {
            self.shared.resched_curr(self.cfs(cfs_rq).cpu, "__account_cfs_rq_runtime");
        }
        false
    }

    /// Runtime of an earlier period is void, unless this CPU's clock may be ahead of the one that ends the period.
    ///
    /// Kernel: `expire_cfs_rq_runtime()`, kernel/sched/fair.c, to v5.3. Variants: `SeldomEver` until 512ac999d275 of v4.18: what
    /// speaks for a fast clock there is what speaks against it since.
    fn expire_cfs_rq_runtime(&mut self, cfs_rq: CfsRqId) {
        let rule = self.shared.generation.bandwidth.slice_expiry;
        if rule == SliceExpiry::Never {
            return;
        }
        let queue = self.cfs(cfs_rq);
        let (clock, pool) = (self.rq.clock.0, self.shared.pool(queue.group));
        let may_be_ahead = match rule {
            SliceExpiry::SeldomEver => queue.runtime.expires != pool.runtime_expires,
            _ => queue.runtime.expires_seq == pool.expires_seq,
        };
        let tick = self.shared.sysctl.tick;
        let local = &mut self.cfs_mut(cfs_rq).runtime;
        if (clock.wrapping_sub(local.expires) as i64) < 0 || local.remaining < 0 {
            return;
        }
        if may_be_ahead {
            local.expires += tick;
        } else {
            local.remaining = 0;
        }
    }
}
