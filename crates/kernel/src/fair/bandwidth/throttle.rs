//! A group leaves a CPU for want of runtime, and comes back.

use crate::rq::LockedRq;
use crate::shared::Shared;
use fairlab_event::Cpu;

use super::{LastRequest, PickRestart, ThrottlePoint, ThrottledOrder, Throttling, UpperLevels};
use crate::decision::{ThrottleDecision, ThrottleReason};
use crate::entity::{CfsRqId, SeId};
use crate::fair::load::LoadUpdate;
use crate::group::GroupId;
use crate::rq::{DequeueFlags, EnqueueFlags};
use crate::scheduler::Scheduler;
use crate::task::TaskId;

/// What a whole queue counts on the queues above it.
#[derive(Clone, Copy, Debug)]
struct Counts {
    tasks: u32,
    delayed: u32,
    idle: u32,
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
    fn report_throttling(&mut self, name: &'static str, cfs_rq: CfsRqId) {
        let queue = self.cfs(cfs_rq);
        let (cpu, group, remaining) = (queue.cpu, queue.group, queue.runtime.remaining);
        self.report_text(name, || format!("cpu={cpu} cg={} rem={remaining}", group.inode()));
    }

    /// What a queue counts on those above it.
    fn counts(&self, cfs_rq: CfsRqId) -> Counts {
        let queue = self.cfs(cfs_rq);
        Counts { tasks: queue.h_nr_running, delayed: queue.h_nr_delayed, idle: queue.h_nr_idle }
    }

    /// In an idle group everything counts as idle.
    fn counts_above(&self, se: SeId, counts: Counts) -> Counts {
        let idle = if self.is_idle_policy(se) { counts.tasks } else { counts.idle };
        Counts { idle, ..counts }
    }

    /// Whether a queue's group, or one that it is in, is throttled on its CPU (`throttled_hierarchy()`).
    pub(crate) fn throttled_hierarchy(&self, cfs_rq: CfsRqId) -> bool {
        self.bandwidth_used && self.cfs(cfs_rq).runtime.throttle_count > 0
    }

    /// Whether the way up from a queue ends there: it is throttled, and its entity off the queue above.
    pub(crate) fn cuts_off(&self, cfs_rq: CfsRqId) -> bool {
        self.bandwidth_used
            && self.cfs(cfs_rq).runtime.throttled
            && self.generation.bandwidth.throttling == Throttling::WholeQueue
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

    /// The clocks of averages of a group and of all below it stand still on a CPU while it is throttled there.
    ///
    /// Kernel: `tg_throttle_down()`, kernel/sched/fair.c. From v6.18 a clock stops when the queue has run empty.
    fn throttle_down(&mut self, group: GroupId, cpu: Cpu) {
        let cfs_rq = self.shared.groups[group.0 as usize].cfs_rqs[cpu.index()];
        let at_once = self.shared.generation.bandwidth.throttling == Throttling::WholeQueue;
        let queue = self.cfs_mut(cfs_rq);
        queue.runtime.throttle_count += 1;
        if queue.runtime.throttle_count == 1 && (at_once || queue.nr_running == 0) {
            self.stop_pelt_clock(cfs_rq);
        }
        for index in (0..self.shared.groups[group.0 as usize].children.len()).rev() {
            self.throttle_down(self.shared.groups[group.0 as usize].children[index], cpu);
        }
    }

    /// The reverse, children first.
    ///
    /// Kernel: `tg_unthrottle_up()`, kernel/sched/fair.c.
    fn unthrottle_up(&mut self, group: GroupId, cpu: Cpu) {
        for index in (0..self.shared.groups[group.0 as usize].children.len()).rev() {
            self.unthrottle_up(self.shared.groups[group.0 as usize].children[index], cpu);
        }
        let cfs_rq = self.shared.groups[group.0 as usize].cfs_rqs[cpu.index()];
        if self.shared.generation.bandwidth.throttle_point == ThrottlePoint::Accounting {
            self.update_curr(cfs_rq);
        }
        let queue = self.cfs_mut(cfs_rq);
        queue.runtime.throttle_count -= 1;
        if queue.runtime.throttle_count == 0 {
            self.start_pelt_clock(cfs_rq);
            self.leave_limbo(cfs_rq);
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
    }

    fn age_level(&mut self, se: SeId, update: LoadUpdate) {
        if self.shared.generation.bandwidth.upper_levels != UpperLevels::CountsOnly {
            self.update_load_avg(se, update);
            self.shared.se_update_runnable(se);
        }
    }

    /// Lets a throttled queue run again, if it has runtime.
    ///
    /// Kernel: `unthrottle_cfs_rq()`, kernel/sched/fair.c.
    pub(crate) fn unthrottle_cfs_rq(&mut self, cfs_rq: CfsRqId) {
        let rules = self.shared.generation.bandwidth;
        let (group, cpu) = (self.cfs(cfs_rq).group, self.cfs(cfs_rq).cpu);
        if rules.throttle_point == ThrottlePoint::Accounting {
            self.update_curr(cfs_rq);
        }
        let local = &self.cfs(cfs_rq).runtime;
        let whole = rules.throttling == Throttling::WholeQueue;
        if !whole && local.enabled && local.remaining <= 0 {
            return;
        }
        self.shared.report_throttling("unthrottle_cfs_rq", cfs_rq);
        self.cfs_mut(cfs_rq).runtime.throttled = false;
        self.update_rq_clock();
        self.shared.pool_mut(group).throttled.retain(|&waiting| waiting != cfs_rq);
        self.unthrottle_up(group, cpu);
        if self.cfs(cfs_rq).load.raw() == 0 {
            return;
        }
        if whole {
            self.put_back_on_queue(cfs_rq);
        }
        if self.shared.runs_idle_task(cpu) && self.cfs(self.rq.cfs).nr_running > 0 {
            self.shared.resched_curr(cpu, "unthrottle_cfs_rq");
        }
    }

    /// A group's entity joins its queue as if it woke, and so do its groups as far as they are not queued; all above
    /// count it, up to the next that is throttled.
    fn put_back_on_queue(&mut self, cfs_rq: CfsRqId) {
        let mut counts = self.shared.counts(cfs_rq);
        let (mut level, mut joining) = (self.cfs(cfs_rq).entity, true);
        let wakeup = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
        let told = match self.shared.generation.bandwidth.upper_levels {
            UpperLevels::Told => LoadUpdate::TELL,
            UpperLevels::Aged | UpperLevels::CountsOnly => LoadUpdate::AGE,
        };
        while let Some(se) = level {
            let queue = self.se(se).cfs_rq;
            if joining && self.se(se).sched_delayed {
                let flags = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
                self.dequeue_entity(queue, se, flags);
            }
            joining &= !self.se(se).on_rq;
            if joining {
                self.enqueue_entity(queue, se, wakeup);
            } else {
                self.age_level(se, told);
            }
            counts = self.shared.counts_above(se, counts);
            let above = self.cfs_mut(queue);
            above.h_nr_running += counts.tasks;
            above.h_nr_delayed += counts.delayed;
            above.h_nr_idle += counts.idle;
            if above.runtime.throttled {
                return;
            }
            level = self.se(se).parent;
        }
        self.count_running(counts.tasks as i32);
    }

    fn throttle_before_pick(&mut self) {
        let checks = self.shared.generation.bandwidth.throttle_point == ThrottlePoint::PickAndPut
            && self.shared.pick_above_fair(self.rq).is_none();
        if checks {
            match self.shared.generation.bandwidth.pick_restart {
                PickRestart::PutsFirst => self.throttle_running_first(),
                PickRestart::KeepsRunning => {
                    self.throttle_on_the_way();
                    // Other queues may stand on the way once a sleeper has left.
                    while self.shared.delayed_candidate(self.rq.cfs).is_some() {
                        self.finish_delayed_dequeues();
                        self.throttle_on_the_way();
                    }
                }
            }
        }
    }

    /// Looks at queues with a running entity; at the first without runtime the running task is put back.
    fn throttle_running_first(&mut self) {
        let cpu = self.rq.cpu;
        let curr = self.shared.curr(cpu);
        if !self.shared.tasks[curr.index()].policy.is_fair() {
            return;
        }
        let root = self.rq.cfs;
        let mut queue = root;
        loop {
            if self.cfs(queue).curr.is_some() && self.check_cfs_rq_runtime(queue) {
                if self.cfs(root).nr_running > 0 {
                    self.put_prev_task_fair(curr);
                }
                return;
            }
            let Some((se, _)) = self.shared.pick_next_entity(queue) else { return };
            let Some(below) = self.se(se).my_q else { return };
            queue = below;
        }
    }

    /// Looks at every queue on the way to the task that would be picked; that task leaves when it returns to user mode
    /// if any is throttled.
    fn throttle_on_the_way(&mut self) {
        let root = self.rq.cfs;
        let (mut queue, mut throttled) = (root, false);
        loop {
            if self.check_cfs_rq_runtime(queue) {
                if self.shared.generation.bandwidth.throttling == Throttling::WholeQueue {
                    // It is off its queue now, so that another is met next time.
                    queue = root;
                    continue;
                }
                throttled = true;
            }
            let Some((se, _)) = self.shared.pick_next_entity(queue) else { return };
            match (self.se(se).task, self.se(se).my_q) {
                _ if self.se(se).sched_delayed => return,
                (Some(task), _) => {
                    if throttled {
                        self.shared.set_throttle_work(task);
                    }
                    return;
                }
                (None, Some(below)) => queue = below,
                (None, None) => return,
            }
        }
    }

    /// A task that takes over from `prev`, or goes on elsewhere, charges the queues that `prev` was not on; any that is
    /// throttled makes it leave when it returns to user mode.
    ///
    /// Kernel: `set_next_task_fair()`, kernel/sched/fair.c, from v7.2.
    #[inline]
    pub(crate) fn account_new_levels(&mut self, prev: Option<TaskId>, next: TaskId) {
        if self.shared.bandwidth_used {
            self.account_levels_since(prev, next);
        }
    }

    fn account_levels_since(&mut self, prev: Option<TaskId>, next: TaskId) {
        let point = self.shared.generation.bandwidth.throttle_point;
        if point == ThrottlePoint::PickAndPut || !self.shared.tasks[next.index()].policy.is_fair() {
            return;
        }
        let next_se = self.shared.tasks[next.index()].se;
        let shares = |prev: &TaskId| {
            let (prev, next) = (&self.shared.tasks[prev.index()], &self.shared.tasks[next.index()]);
            prev.policy.is_fair() && prev.cpu == next.cpu
        };
        let shared = prev.filter(shares).map(|prev| {
            let (_, next) = self.shared.meeting_levels(self.shared.tasks[prev.index()].se, next_se);
            self.se(next).cfs_rq
        });
        let (mut level, mut throttled) = (Some(next_se), false);
        while let Some(se) = level {
            let cfs_rq = self.se(se).cfs_rq;
            throttled |= self.account_cfs_rq_runtime(cfs_rq, 0);
            level = self.se(se).parent.filter(|_| Some(cfs_rq) != shared);
        }
        if throttled {
            self.shared.set_throttle_work(next);
        }
    }
}

impl Scheduler {
    /// Does what a pick does beside picking: throttles queues without runtime on its way, and lets delayed sleepers
    /// leave that would be picked. To be called before each [`pick_next_task`](Scheduler::pick_next_task). Where a task of a higher
    /// class is there, nobody looks at fair ones.
    ///
    /// Kernel: `pick_task_fair()`, kernel/sched/fair.c, and to v6.11 the fast path of `pick_next_task_fair()`.
    #[inline]
    pub fn before_pick(&mut self, cpu: Cpu) {
        if self.shared.bandwidth_used {
            self.rq_lock(cpu).throttle_before_pick();
        }
        if self.shared.pick_above_fair(&self.rqs[cpu.index()]).is_none() {
            self.rq_lock(cpu).finish_delayed_dequeues();
        }
    }
}
