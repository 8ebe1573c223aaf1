//! A group leaves a CPU for want of runtime, and comes back.

use fairlab_event::Cpu;

use super::rules::ThrottledAgeing;
use super::{LastRequest, ThrottlePoint, ThrottledOrder, Throttling, UpperLevels};
use crate::all_cpus::Shared;
use crate::decision::{ThrottleDecision, ThrottleReason};
use crate::entity::{CfsRqId, SeId};
use crate::fair::load_update::LoadUpdate;
use crate::group::GroupId;
use crate::rq::{DequeueFlags, LockedRq};

/// What a whole queue counts on the queues above it.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueTaskCounts {
    pub tasks: u32,
    pub delayed: u32,
    pub idle: u32,
}

impl Shared {
    /// Whether a queue is to be throttled where its running entity is put back or passed over. Pure.
    ///
    /// Kernel: `check_cfs_rq_runtime()`, kernel/sched/fair.c, to v7.1.
    pub(crate) fn throttle_decision(&self, cfs_rq: CfsRqId) -> ThrottleDecision {
        let local = &self.cfs(cfs_rq).runtime;
        let decide = |throttle, reason| ThrottleDecision { throttle, reason };
        if !self.bandwidth_used || !local.enabled {
            return decide(false, ThrottleReason::NoQuota);
        }
        if local.remaining > 0 {
            return decide(false, ThrottleReason::RuntimeLeft);
        }
        if local.throttled {
            return decide(true, ThrottleReason::ThrottledAlready);
        }
        let pool = self.pool(self.cfs(cfs_rq).group);
        let last_request = self.generation.bandwidth.last_request == LastRequest::OneNanosecond;
        let covered = pool.runtime as i64 + local.remaining > 0 || pool.limit.quota.is_none();
        match last_request && covered {
            true => decide(false, ThrottleReason::PoolRefilled),
            false => decide(true, ThrottleReason::OutOfRuntime),
        }
    }

    /// Reports that a queue is throttled, or let back: on which CPU, whose it is, and how much runtime it has.
    ///
    /// The kernel has no tracepoint here: the names are those of its functions, the fields those of our probes.
    pub(super) fn report_throttling(&mut self, name: &'static str, cfs_rq: CfsRqId) {
        let queue = self.cfs(cfs_rq);
        let (cpu, group, remaining) = (queue.cpu, queue.group, queue.runtime.remaining);
        self.report_text(name, || format!("cpu={cpu} cg={} rem={remaining}", group.inode()));
    }

    /// What a queue counts on those above it.
    pub(super) fn counts(&self, cfs_rq: CfsRqId) -> QueueTaskCounts {
        let queue = self.cfs(cfs_rq);
        QueueTaskCounts { tasks: queue.h_nr_running, delayed: queue.h_nr_delayed, idle: queue.h_nr_idle }
    }

    /// In an idle group everything counts as idle.
    pub(super) fn counts_above(&self, se: SeId, counts: QueueTaskCounts) -> QueueTaskCounts {
        let idle = if self.is_idle_policy(se) { counts.tasks } else { counts.idle };
        QueueTaskCounts { idle, ..counts }
    }
}

impl LockedRq<'_> {
    /// Throttles a queue that has no runtime left. Returns whether it is throttled.
    pub(crate) fn check_cfs_rq_runtime(&mut self, cfs_rq: CfsRqId) -> bool {
        match self.shared.throttle_decision(cfs_rq).reason {
            ThrottleReason::NoQuota | ThrottleReason::RuntimeLeft => false,
            ThrottleReason::ThrottledAlready => true,
            ThrottleReason::PoolRefilled | ThrottleReason::OutOfRuntime => self.throttle_cfs_rq(cfs_rq),
        }
    }

    /// A queue that something was put on must have runtime, or it is throttled at once.
    ///
    /// Kernel: `check_enqueue_throttle()`, kernel/sched/fair.c.
    pub(crate) fn check_enqueue_throttle(&mut self, cfs_rq: CfsRqId) {
        let queue = self.cfs(cfs_rq);
        if !self.shared.bandwidth_used
            || !queue.runtime.enabled
            || queue.member.is_some()
            || queue.runtime.throttled
        {
            return;
        }
        self.account_cfs_rq_runtime(cfs_rq, 0);
        let at_accounting = self.shared.generation.bandwidth.throttle_point == ThrottlePoint::Accounting;
        if !at_accounting && self.cfs(cfs_rq).runtime.remaining <= 0 {
            self.throttle_cfs_rq(cfs_rq);
        }
    }

    /// Throttles a queue, unless there is runtime for it after all. Returns whether it is throttled.
    ///
    /// Kernel: `throttle_cfs_rq()`, kernel/sched/fair.c. Variants: `WholeQueue` to v6.17, `TasksAtUserReturn` from v6.18
    /// (e1fad12dcb66).
    pub(super) fn throttle_cfs_rq(&mut self, cfs_rq: CfsRqId) -> bool {
        let rules = self.shared.generation.bandwidth;
        let queue = self.cfs(cfs_rq);
        let (group, cpu) = (queue.group, queue.cpu);
        debug_assert!(!queue.runtime.throttled, "CPU {cpu}: group {} is throttled twice", group.0);
        let runs = queue.member.is_some_and(|curr| self.se(curr).on_rq);
        let at_accounting = rules.throttle_point == ThrottlePoint::Accounting;
        let target = if at_accounting && runs { self.shared.sysctl.bandwidth_slice } else { 1 };
        let asks = at_accounting || rules.last_request == LastRequest::OneNanosecond;
        if asks && self.shared.assign_cfs_rq_runtime(cfs_rq, target) {
            return false;
        }
        self.shared.report_throttling("throttle_cfs_rq", cfs_rq);
        self.leave_for_want_of_runtime(cfs_rq);
        let waiting = &mut self.shared.pool_mut(group).throttled;
        let first = waiting.is_empty();
        match rules.throttled_order {
            ThrottledOrder::NewestFirst => waiting.insert(0, cfs_rq),
            ThrottledOrder::OldestFirst => waiting.push(cfs_rq),
        }
        if !asks && first {
            self.shared.start_cfs_bandwidth(group);
        }
        if at_accounting && runs {
            self.shared.set_throttle_work(self.shared.curr(cpu));
        }
        true
    }

    /// A queue is throttled; its group's entity leaves, where groups leave as a whole.
    pub(crate) fn leave_for_want_of_runtime(&mut self, cfs_rq: CfsRqId) {
        let (group, cpu) = (self.cfs(cfs_rq).group, self.cfs(cfs_rq).cpu);
        self.throttle_down(group, cpu);
        if self.shared.generation.bandwidth.throttling == Throttling::WholeQueue {
            self.take_off_queue(cfs_rq);
        }
        self.cfs_mut(cfs_rq).runtime.throttled = true;
    }

    /// The clocks of averages of a group and of all below it stand still on a CPU while it is throttled there, and nobody ages
    /// its queues.
    ///
    /// Kernel: `tg_throttle_down()`, kernel/sched/fair.c. Variants: from v5.1 the queues leave the list of those that are aged
    /// (31bc6aeaab1d); from v6.18 a clock stops when the queue has run empty.
    fn throttle_down(&mut self, group: GroupId, cpu: Cpu) {
        let cfs_rq = self.shared.groups[group.0 as usize].cfs_rqs[cpu.index()];
        let at_once = self.shared.generation.bandwidth.throttling == Throttling::WholeQueue;
        let queue = self.cfs_mut(cfs_rq);
        queue.runtime.throttle_count += 1;
        if queue.runtime.throttle_count == 1 && (at_once || queue.nr_running == 0) {
            self.stop_pelt_clock(cfs_rq);
            if self.shared.generation.bandwidth.throttled_ageing == ThrottledAgeing::Leave {
                self.list_del_leaf_cfs_rq(cfs_rq);
            }
        }
        for index in (0..self.shared.groups[group.0 as usize].children.len()).rev() {
            self.throttle_down(self.shared.groups[group.0 as usize].children[index], cpu);
        }
    }

    /// A group's entity leaves its queue, and its groups as far as they are empty then; all above count without it.
    fn take_off_queue(&mut self, cfs_rq: CfsRqId) {
        let mut counts = self.shared.counts(cfs_rq);
        let (mut level, mut leaving) = (self.cfs(cfs_rq).entity, true);
        while let Some(se) = level {
            // It is about to be queued, or one of its groups is throttled already.
            if !self.se(se).on_rq {
                return;
            }
            let queue = self.se(se).cfs_rq;
            if leaving {
                let delayed = self.se(se).sched_delayed;
                let flags = DequeueFlags { sleep: true, special: true, delayed, ..DequeueFlags::default() };
                self.dequeue_entity(queue, se, flags);
            } else {
                self.age_level(se, LoadUpdate::AGE);
            }
            counts = self.shared.counts_above(se, counts);
            let above = self.cfs_mut(queue);
            above.h_nr_running -= counts.tasks;
            above.h_nr_delayed -= counts.delayed;
            above.h_nr_idle -= counts.idle;
            leaving &= above.nr_running == 0;
            level = self.se(se).parent;
        }
        self.count_running(-(counts.tasks as i32));
        if self.shared.fair_servers.watch() && !self.has_fair_tasks() {
            self.fair_tasks_are_gone();
        }
    }

    pub(super) fn age_level(&mut self, se: SeId, update: LoadUpdate) {
        if self.shared.generation.bandwidth.upper_levels != UpperLevels::CountsOnly {
            self.update_load_avg(se, update);
            self.shared.se_update_runnable(se);
        }
    }
}
