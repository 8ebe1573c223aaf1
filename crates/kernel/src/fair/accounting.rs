//! Charging run time: vruntime, deadline, `min_vruntime`.

use fairlab_event::{EventKind, Ns};

use crate::all_cpus::Shared;
use crate::cfs_rq::CfsRq;
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair::rules::{FairRules, TickPreemption};
use crate::rq::LockedRq;
use crate::task::Task;

impl Shared {
    /// Whether charging moves an entity on its time line, and does nothing else.
    pub(crate) fn charging_is_plain(&self) -> bool {
        let by_deadline = self.generation.fair.tick_preemption == TickPreemption::Deadline;
        !(by_deadline || self.trace.enabled || self.bandwidth_used)
    }

    #[inline(never)]
    pub(crate) fn report_runtime(&mut self, se: SeId, runtime: Ns) {
        let Some(task) = self.se(se).task else { return };
        let vruntime = Some(self.se(se).vruntime.0);
        let Task { comm, pid, .. } = self.tasks[task.index()];
        self.report(EventKind::SchedStatRuntime { comm, pid, runtime, vruntime });
    }
}

impl LockedRq<'_> {
    /// Accounts the run time of `cpu`'s running fair task at every level.
    pub(crate) fn update_curr_of(&mut self) {
        let cpu = self.rq.cpu;
        let task = self.shared.curr(cpu);
        if !self.shared.tasks[task.index()].policy.is_fair() {
            return;
        }
        let now = self.rq.clock.0;
        let mut level = Some(self.shared.tasks[task.index()].se);
        while let Some(se) = level {
            let entity = self.se(se);
            level = entity.parent;
            let cfs_rq = entity.cfs_rq;
            if entity.on_rq && now > entity.exec_start && self.cfs(cfs_rq).member == Some(se) {
                self.charge_at_level(cfs_rq, se, now);
            }
        }
    }

    /// Charges the running entity of a queue for the time since it was last charged.
    ///
    /// Kernel: `update_curr()`, kernel/sched/fair.c.
    /// Units: run time in ns of the CPU's task clock; vruntime in virtual ns, truncated as the kernel truncates.
    /// Departs: interrupt and steal time are not taken off the task clock.
    #[inline(always)]
    pub(crate) fn update_curr(&mut self, cfs_rq: CfsRqId) {
        let queue = self.cfs(cfs_rq);
        let Some(curr) = queue.member else { return };
        let now = self.rq.clock.0;
        if now > self.se(curr).exec_start {
            self.charge_curr(cfs_rq, curr, now);
        }
    }

    /// The same, where it has run since.
    #[inline(never)]
    pub(crate) fn charge_curr(&mut self, cfs_rq: CfsRqId, curr: SeId, now: u64) {
        let since = self.se(curr).exec_start;
        debug_assert!(since < now, "entity {} is charged from {since} to {now} ns", curr.0);
        debug_assert_eq!(self.cfs(cfs_rq).member, Some(curr), "cfs_rq {}: whoever runs is charged", cfs_rq.0);
        self.charge_at_level(cfs_rq, curr, now);
    }

    #[inline(always)]
    fn charge_at_level(&mut self, cfs_rq: CfsRqId, curr: SeId, now: u64) {
        if self.shared.competes_on_one_queue() {
            return self.charge_on_one_queue(cfs_rq, curr, now);
        }
        let rules = &self.shared.generation.fair;
        let entity = &mut self.shared.entities[curr.0 as usize];
        let queue = &mut self.shared.cfs_rqs[cfs_rq.0 as usize];
        let delta = now - entity.exec_start;
        move_on(rules, queue, entity, now);
        let task = entity.task;
        // It depends on *this* queue having others: a lone task in a group is never preempted by its own deadline.
        let by_deadline = rules.tick_preemption == TickPreemption::Deadline;
        let request_used = by_deadline && !entity.vruntime.is_before(entity.deadline);
        let may_make_way = by_deadline && queue.nr_running > 1;
        if request_used || may_make_way || self.shared.trace.enabled || self.shared.bandwidth_used {
            self.follow_charge(cfs_rq, curr, delta, (request_used, may_make_way));
        }
        if let Some(task) = task {
            self.account_process(task, delta);
        }
        if self.rq.fair_server.active && self.se(curr).task.is_some() {
            self.charge_server(delta);
        }
    }

    /// What else comes of `delta` ns of run time.
    #[inline(never)]
    fn follow_charge(
        &mut self,
        cfs_rq: CfsRqId,
        curr: SeId,
        delta: u64,
        (request_used, may_make_way): (bool, bool),
    ) {
        if request_used {
            self.shared.take_new_request(cfs_rq, curr);
        }
        if self.shared.trace.enabled {
            self.shared.report_runtime(curr, Ns(delta));
        }
        if self.shared.bandwidth_used {
            self.account_cfs_rq_runtime(cfs_rq, delta);
        }
        if may_make_way
            && (request_used || self.shared.loses_protection(cfs_rq, curr, self.se(curr).vruntime))
        {
            self.shared.resched_curr_lazy(self.cfs(cfs_rq).cpu, "update_curr");
            self.shared.clear_buddies(curr);
        }
    }
}

/// Moves the running entity of a queue on by what it has run up to `now`.
#[inline(always)]
pub(crate) fn move_on(rules: &FairRules, queue: &mut CfsRq, curr: &mut SchedEntity, now: u64) {
    let delta = now - curr.exec_start;
    let virtual_delta = rules.arithmetic.calc_delta_fair(&curr.load, delta) as i64;
    curr.exec_start = now;
    curr.sum_exec_runtime += delta;
    curr.vruntime = curr.vruntime.plus(virtual_delta);
    if !rules.virtual_zero.follows_average() {
        queue.update_min_vruntime(curr.on_rq.then_some(curr.vruntime));
    }
}

impl LockedRq<'_> {
    /// Accounts the run time of the running fair task before the pick: at every level where one is picked at each. On one queue
    /// only at the task's own, and its groups are charged when they are put back.
    ///
    /// Kernel: `pick_task_fair()`, kernel/sched/fair.c, with `update_curr_eevdf()` from v7.3 (85570f10a4c6).
    pub(crate) fn charge_before_pick(&mut self) {
        match self.shared.competes_on_one_queue() {
            true => self.charge_line(self.rq.cfs),
            false => self.update_curr_of(),
        }
    }

    /// Charges whoever runs on a time line, at its own level (`update_curr_eevdf()`).
    pub(crate) fn charge_line(&mut self, line: CfsRqId) {
        match self.cfs(line).curr {
            Some(curr) if self.shared.competes_on_one_queue() => self.update_curr(self.se(curr).cfs_rq),
            _ => self.update_curr(line),
        }
    }

    /// Charges a queue for its running member: a group's only counts, a task moves on its CPU's time line.
    ///
    /// Kernel: `update_curr()`, kernel/sched/fair.c.
    #[inline(never)]
    pub(crate) fn charge_on_one_queue(&mut self, cfs_rq: CfsRqId, curr: SeId, now: u64) {
        let entity = self.se_mut(curr);
        let (delta, task) = (now - entity.exec_start, entity.task);
        entity.exec_start = now;
        entity.sum_exec_runtime += delta;
        if self.shared.bandwidth_used {
            self.account_cfs_rq_runtime(cfs_rq, delta);
        }
        let Some(task) = task else { return };
        self.account_process(task, delta);
        let (line, gained) = (self.shared.line_of(cfs_rq), self.shared.virtual_time_of(curr, delta) as i64);
        let entity = self.se_mut(curr);
        entity.vruntime = entity.vruntime.plus(gained);
        let (vruntime, request_used) = (entity.vruntime, !entity.vruntime.is_before(entity.deadline));
        if request_used {
            self.shared.take_new_request(line, curr);
        }
        if self.shared.trace.enabled {
            self.shared.report_runtime(curr, Ns(delta));
        }
        let has_others = self.shared.competitors_on(line) > 1;
        if has_others && (request_used || self.shared.loses_protection(line, curr, vruntime)) {
            self.shared.resched_curr_lazy(self.cfs(line).cpu, "update_curr");
            self.shared.clear_buddies(curr);
        }
        self.charge_server(delta);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::ablation::AblationSituation;
    use crate::testbed::{MS, SchedulerTestbed};

    /// Where the zero of a time line stands after a tick within the running entity's request, virtual us from its start: nothing
    /// else shows whether ticks compute the average, for whoever leaves or joins computes it as well.
    fn zero_after_a_tick(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 8, 1);
        bed.spawn(0, 0);
        bed.spawn(0, 0);
        let root = bed.scheduler.rqs[0].cfs;
        let before = bed.scheduler.cfs(root).min_vruntime;
        bed.pass(MS / 2);
        bed.tick(0);
        bed.scheduler.cfs(root).min_vruntime.minus(before) as u64 / 1000
    }

    #[test]
    fn a_tick_moves_the_zero_only_where_it_computes_the_average() {
        assert!(zero_after_a_tick("b3d99f43c72b") > 200);
        assert_eq!(zero_after_a_tick("v7.0"), 0);
    }

    pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[("zero-tracking-fix", zero_after_a_tick)];
}
