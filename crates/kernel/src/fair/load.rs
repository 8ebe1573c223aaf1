//! Load tracking as the fair class drives it: when averages are aged, joined, left and passed up.
//!
//! The arithmetic is [`pelt`](crate::pelt)'s; here stands at which point of which operation it is done.

use crate::all_cpus::{Shared, SharedLine};
use crate::cpufreq::rules::GovernorHook;
use crate::entity::SchedEntity;
use crate::fair::bandwidth::rules::{AttachListing, ThrottledListing};
use crate::fair::bandwidth::{ThrottledPropagation, Throttling};
use crate::fair::contributions::grow_sums;
use crate::fair::load_update::{LoadUpdate, RqClocks};
use crate::generation::Feature;
use crate::ids::{CfsRqId, GroupId, SeId, TaskId};
use crate::pelt::rules::TgClock;
use crate::pelt::{
    AttachPoint, CfsRqLoad, CpuScale, DetachPoint, FairInitialUtil, IdleCpuTimes, LostIdleCheck, PeltRules,
    RqTime, RunnableKind, UtilEstFeatures,
};
use crate::rq::{LockedRq, Rq};

impl Shared {
    /// What is left of the averages of a task's queue when it is dequeued now to move away.
    pub(crate) fn averages_without(&self, rq: &Rq, task: TaskId, tracked: &mut CfsRqLoad) {
        let (rules, se) = (&self.generation.pelt, self.tasks[task.index()].se);
        let (entity, queue) = (self.se(se), self.cfs(self.se(se).cfs_rq));
        let now = queue.pelt_clock.now(self.rq_clock_pelt_now(rq));
        let scale = self.contribution_scale(rq.cpu);
        let estimates = self.generation.features.enabled(Feature::UtilEst);
        let mut avg = entity.avg;
        let member = (&mut avg, entity.tracked_state(queue.member == Some(se)));
        rules.update_se_and_queue(now, scale, member, (tracked, queue.tracked_state(rules)), estimates);
        rules.detach_entity_load_avg(tracked, &avg, self.entity_weight(se));
    }

    /// The time for averages of a CPU once its queue's clock is set, ns.
    fn rq_clock_pelt_now(&self, rq: &Rq) -> u64 {
        let (rules, idle) = (&self.generation.pelt, self.runs_idle_task(rq.cpu));
        let delta = self.trace.now.since(rq.clock).0;
        let clock = self.pelt_epoch + rq.clock.0 + delta;
        let (mut pelt, time) = (rq.pelt, RqTime { clock, clock_task: clock });
        if delta > 0 || idle {
            let scale = if idle { CpuScale::FULL } else { self.cpu_scale(rq.cpu) };
            pelt.update(rules, delta, time, idle, scale);
        }
        pelt.now(rules, time)
    }
}

impl LockedRq<'_> {
    /// Lets a CPU's PELT clock follow its clock (`update_rq_clock_pelt()`).
    pub(crate) fn update_rq_clock_pelt(&mut self, delta: u64) {
        let cpu = self.rq.cpu;
        let idle = self.shared.runs_idle_task(cpu);
        if delta == 0 && !idle {
            return;
        }
        // An idle CPU's clock only follows.
        let scale = if idle { CpuScale::FULL } else { self.shared.cpu_scale(cpu) };
        let time = self.rq_time();
        self.rq.pelt.update(&self.shared.generation.pelt, delta, time, idle, scale);
    }

    /// A CPU turns from `prev` to its idle task (`update_idle_rq_clock_pelt()`).
    pub(crate) fn turn_idle(&mut self, prev: TaskId) {
        let cpu = self.rq.cpu;
        self.shared.count_idle_call(cpu);
        let (time, rules) = (self.rq_time(), self.shared.generation.pelt);
        let checks = match rules.lost_idle_check {
            LostIdleCheck::FairPick => self.shared.tasks[prev.index()].policy.is_fair(),
            LostIdleCheck::EveryPick | LostIdleCheck::EveryIdling => true,
        };
        if checks {
            let root = self.rq.cfs;
            let context = &self.shared.cpus[self.rq.cpu.index()];
            let others = context.avg_rt.util_sum.wrapping_add(context.avg_dl.util_sum);
            let util_sum = self.cfs(root).tracked.avg.util_sum.wrapping_add(others);
            self.rq.pelt.enter_idle(&rules, time, util_sum);
        }
    }

    /// Ages the averages of a CPU's real-time tasks; `running`: one of them has run up to now. True if they were recomputed.
    ///
    /// Kernel: `update_rt_rq_load_avg()`, kernel/sched/pelt.c, from v4.19.
    pub(crate) fn update_rt_rq_load_avg(&mut self, running: bool) -> bool {
        let cpu = self.rq.cpu;
        let (time, scale) = (self.rq_time(), self.shared.contribution_scale(cpu));
        let rules = &self.shared.generation.pelt;
        let now = self.rq.pelt.now(rules, time);
        rules.update_class(now, scale, &mut self.shared.cpus[cpu.index()].avg_rt, running)
    }

    /// The same for its threads that set clocks (`update_dl_rq_load_avg()`).
    pub(crate) fn update_dl_rq_load_avg(&mut self, running: bool) -> bool {
        let cpu = self.rq.cpu;
        let (time, scale) = (self.rq_time(), self.shared.contribution_scale(cpu));
        let rules = &self.shared.generation.pelt;
        let now = self.rq.pelt.now(rules, time);
        rules.update_class(now, scale, &mut self.shared.cpus[cpu.index()].avg_dl, running)
    }

    fn rq_time(&self) -> RqTime {
        rq_time(self.rq, self.shared.pelt_epoch)
    }

    /// The time for averages of a queue, ns (`cfs_rq_clock_pelt()`).
    fn cfs_rq_clock_pelt(&self, cfs_rq: CfsRqId) -> u64 {
        let queue = self.cfs(cfs_rq);
        queue.pelt_clock.now(self.rq_clock_pelt())
    }

    /// The time for averages of a CPU, ns (`rq_clock_pelt()`).
    fn rq_clock_pelt(&self) -> u64 {
        self.rq.pelt.now(&self.shared.generation.pelt, self.rq_time())
    }

    /// The clocks of a CPU.
    pub(crate) fn now_of(&self) -> RqClocks {
        let cpu = self.rq.cpu;
        let scale = self.shared.contribution_scale(cpu);
        RqClocks { clock: self.rq.clock.0, pelt: self.rq_clock_pelt(), scale }
    }

    /// Averages of a queue stand still while its group is throttled.
    pub(crate) fn stop_pelt_clock(&mut self, cfs_rq: CfsRqId) {
        let (rules, now, time) = self.throttle_clocks();
        self.cfs_mut(cfs_rq).pelt_clock.throttle(&rules, now, time);
    }

    /// Time goes on for the averages of a queue.
    pub(crate) fn start_pelt_clock(&mut self, cfs_rq: CfsRqId) {
        let (rules, now, time) = self.throttle_clocks();
        self.cfs_mut(cfs_rq).pelt_clock.unthrottle(&rules, now, time);
    }

    fn throttle_clocks(&self) -> (PeltRules, u64, RqTime) {
        let (rules, time) = (self.shared.generation.pelt, self.rq_time());
        (rules, self.rq.pelt.now(&rules, time), time)
    }

    /// Ages an entity and its queue, passes up what changed below it, and lets it join or leave.
    ///
    /// Kernel: `update_load_avg()`, kernel/sched/fair.c.
    pub(crate) fn update_load_avg(&mut self, se: SeId, update: LoadUpdate) {
        let passes_up = self.se(se).my_q.is_some_and(|below| self.cfs(below).tracked.propagate);
        let goes_far = passes_up || update.detach || self.shared.scales_contributions(se);
        let (rules, entity) = (&self.shared.generation.pelt, &mut self.shared.entities[se.0 as usize]);
        let queue = &mut self.shared.cfs_rqs[entity.cfs_rq.0 as usize];
        let rq = &*self.rq;
        let now = queue.pelt_clock.now(rq.pelt.now(rules, rq_time(rq, self.shared.pelt_epoch)));
        let at = (now, CpuScale::FULL);
        // Mostly the kind is known when this is compiled.
        let grown = match rules.runnable {
            _ if goes_far => false,
            RunnableKind::TaskCount => grow_sums(rules, RunnableKind::TaskCount, se, entity, queue, at),
            RunnableKind::LoadWeighted => grow_sums(rules, RunnableKind::LoadWeighted, se, entity, queue, at),
        };
        if !grown {
            let cfs_rq = self.se(se).cfs_rq;
            self.update_load_avg_at((cfs_rq, se), update, now, passes_up);
        }
    }

    /// Ages a task's entity by the clock of its CPU's time line, and that queue with it, not the task's own.
    ///
    /// Kernel: `update_load_avg()` as `requeue_delayed_entity()` calls it, kernel/sched/fair.c (85570f10a4c6).
    pub(crate) fn age_by_line(&mut self, line: CfsRqId, se: SeId) {
        let now = self.cfs_rq_clock_pelt(line);
        self.update_load_avg_at((line, se), LoadUpdate::AGE, now, false);
    }

    /// The same whatever happens, at `now` on the queue's clock; `passes_up`: something changed below it.
    #[inline(never)]
    fn update_load_avg_at(
        &mut self,
        (cfs_rq, se): (CfsRqId, SeId),
        update: LoadUpdate,
        now: u64,
        passes_up: bool,
    ) {
        let scale = self.shared.contribution_scale(self.cfs(cfs_rq).cpu);
        let (rules, entity) = (&self.shared.generation.pelt, &mut self.shared.entities[se.0 as usize]);
        let queue = &mut self.shared.cfs_rqs[cfs_rq.0 as usize];
        let attached = entity.avg.last_update_time != 0;
        let queue_state = queue.tracked_state(rules);
        let mut decayed = if attached {
            let estimates = self.shared.generation.features.enabled(Feature::UtilEst);
            let state = entity.tracked_state(queue.member == Some(se));
            let queue = (&mut queue.tracked, queue_state);
            rules.update_se_and_queue(now, scale, (&mut entity.avg, state), queue, estimates)
        } else {
            rules.update_cfs_rq_load_avg(now, scale, &mut queue.tracked, queue_state)
        };
        self.after_decay(cfs_rq, decayed);
        if passes_up {
            decayed |= self.shared.propagate_entity_load_avg(se);
        }
        if decayed || !attached || update.detach {
            self.follow_new_averages((cfs_rq, se), attached, decayed, update);
        }
    }

    /// What is done when a queue's averages have changed, or an entity joins or leaves it.
    fn follow_new_averages(
        &mut self,
        (cfs_rq, se): (CfsRqId, SeId),
        attached: bool,
        decayed: bool,
        update: LoadUpdate,
    ) {
        let joins = !attached && update.attach;
        if decayed
            && !joins
            && !update.detach
            && self.shared.generation.frequency.governor_hook == GovernorHook::EntityUpdate
        {
            self.cfs_rq_util_change(cfs_rq);
        }
        if joins {
            self.attach_entity_load_avg(se);
        } else if update.detach {
            self.detach_entity_load_avg(se);
        } else if decayed && update.tell_group {
            self.update_tg_load_avg(cfs_rq);
        }
    }

    pub(crate) fn update_cfs_rq_load_avg(&mut self, cfs_rq: CfsRqId) -> bool {
        let (now, scale) =
            (self.cfs_rq_clock_pelt(cfs_rq), self.shared.contribution_scale(self.cfs(cfs_rq).cpu));
        let queue = &mut self.shared.cfs_rqs[cfs_rq.0 as usize];
        let rules = &self.shared.generation.pelt;
        let state = queue.tracked_state(rules);
        let decayed = rules.update_cfs_rq_load_avg(now, scale, &mut queue.tracked, state);
        self.after_decay(cfs_rq, decayed);
        decayed
    }

    /// Asks the governor where it is asked at each decay of a queue.
    fn after_decay(&mut self, cfs_rq: CfsRqId, decayed: bool) {
        if decayed && self.shared.generation.frequency.governor_hook == GovernorHook::EveryQueueUpdate {
            self.cfs_rq_util_change(cfs_rq);
        }
    }

    /// Asks the governor if the queue is a root queue (`cfs_rq_util_change()`).
    ///
    /// Variants: at each decay to v5.4, after an entity's update from v5.5 (bef69dd87828).
    fn cfs_rq_util_change(&mut self, cfs_rq: CfsRqId) {
        if self.cfs(cfs_rq).group == GroupId::ROOT {
            self.cpufreq_update_util();
        }
    }

    fn attach_entity_load_avg(&mut self, se: SeId) {
        let (cfs_rq, weight, rules) =
            (self.se(se).cfs_rq, self.shared.entity_weight(se), self.shared.generation.pelt);
        let queue = &mut self.shared.cfs_rqs[cfs_rq.0 as usize].tracked;
        rules.attach_entity_load_avg(queue, &mut self.shared.entities[se.0 as usize].avg, weight);
        self.cfs_rq_util_change(cfs_rq);
        self.update_tg_load_avg(cfs_rq);
    }

    fn detach_entity_load_avg(&mut self, se: SeId) {
        let (cfs_rq, weight, rules) =
            (self.se(se).cfs_rq, self.shared.entity_weight(se), self.shared.generation.pelt);
        let queue = &mut self.shared.cfs_rqs[cfs_rq.0 as usize].tracked;
        rules.detach_entity_load_avg(queue, &self.shared.entities[se.0 as usize].avg, weight);
        self.cfs_rq_util_change(cfs_rq);
        self.update_tg_load_avg(cfs_rq);
    }

    /// Tells a group what one of its queues weighs now (`update_tg_load_avg()`).
    #[inline]
    pub(crate) fn update_tg_load_avg(&mut self, cfs_rq: CfsRqId) {
        if self.cfs(cfs_rq).group != GroupId::ROOT {
            self.update_group_load_avg(cfs_rq);
        }
    }

    fn update_group_load_avg(&mut self, cfs_rq: CfsRqId) {
        let queue = &mut self.shared.cfs_rqs[cfs_rq.0 as usize];
        let clock = match self.shared.generation.pelt.tg_clock {
            TgClock::Machine => self.shared.trace.now,
            TgClock::Queue => self.rq.clock,
        };
        let now = self.shared.pelt_epoch + clock.0;
        let told = queue.tracked.tg_runnable_avg_contrib;
        let delta = self.shared.generation.pelt.update_tg_load_avg(now, &mut queue.tracked);
        let group = &mut self.shared.groups[queue.group.0 as usize];
        group.load_avg += delta;
        group.runnable_avg += queue.tracked.tg_runnable_avg_contrib.wrapping_sub(told) as i64;
        let of = queue.group;
        if delta != 0 {
            self.shared.note_line(SharedLine::GroupLoad(of), true);
        }
    }

    /// The entity joins its queue outside of an enqueue (`attach_entity_cfs_rq()`).
    pub(crate) fn attach_entity_cfs_rq(&mut self, se: SeId) {
        self.update_load_avg(se, LoadUpdate::AGE);
        self.attach_entity_load_avg(se);
        self.propagate_entity_cfs_rq(se);
    }

    /// The entity leaves its queue outside of a dequeue (`detach_entity_cfs_rq()`).
    pub(crate) fn detach_entity_cfs_rq(&mut self, se: SeId) {
        if self.se(se).avg.last_update_time == 0 {
            // It belongs to no queue.
            return;
        }
        self.update_load_avg(se, LoadUpdate::AGE);
        self.detach_entity_load_avg(se);
        self.propagate_entity_cfs_rq(se);
    }

    /// Averages have joined or left a queue outside of an enqueue: all queues above are told, and aged from now on.
    ///
    /// Kernel: `propagate_entity_cfs_rq()`, kernel/sched/fair.c. Variants: see `ThrottledPropagation`, `AttachListing` and
    /// `ThrottledListing`; a throttled queue itself is told from v6.0 (51bf903b64bd).
    fn propagate_entity_cfs_rq(&mut self, se: SeId) {
        let rules = self.shared.generation.bandwidth;
        let stops = rules.throttled_propagation == ThrottledPropagation::Stops;
        let tells_throttled = rules.throttled_listing == ThrottledListing::StaysOut;
        let ends = |queue: &LockedRq<'_>, cfs_rq| stops && queue.cfs(cfs_rq).runtime.throttled;
        let SchedEntity { cfs_rq, parent, .. } = *self.se(se);
        if tells_throttled && ends(self, cfs_rq) {
            return;
        }
        self.list_after_change(cfs_rq);
        let mut level = parent;
        while let Some(se) = level {
            let SchedEntity { cfs_rq, parent, .. } = *self.se(se);
            let throttled = ends(self, cfs_rq);
            if tells_throttled || !throttled {
                self.update_load_avg(se, LoadUpdate::TELL);
            }
            if throttled {
                return;
            }
            self.list_after_change(cfs_rq);
            level = parent;
        }
    }

    /// A queue whose averages have changed is aged from now on, unless its clock stands still.
    fn list_after_change(&mut self, cfs_rq: CfsRqId) {
        let rules = self.shared.generation.bandwidth;
        let whole_queues = rules.throttling == Throttling::WholeQueue;
        let stands_still = match rules.throttled_listing {
            ThrottledListing::StaysOut => self.shared.throttled_hierarchy(cfs_rq),
            ThrottledListing::Joins => !whole_queues && self.cfs(cfs_rq).pelt_clock.throttled_since.is_some(),
        };
        if rules.attach_listing == AttachListing::QueuedOrAttached && !stands_still {
            self.list_add_leaf_cfs_rq(cfs_rq);
        }
    }

    /// A new task's averages, before it has run.
    ///
    /// Kernel: `init_entity_runnable_average()`, `post_init_entity_util_avg()`.
    pub(crate) fn init_task_load(&mut self, task: TaskId) {
        let se = self.shared.tasks[task.index()].se;
        let (rules, weight) = (self.shared.generation.pelt, self.se(se).load);
        let mut avg = rules.init_entity_runnable_average(Some(weight.scaled_down()));
        let queue = self.cfs(self.se(se).cfs_rq).tracked.avg;
        let from = FairInitialUtil {
            capacity: self.shared.arch_scale_cpu_capacity(self.shared.tasks[task.index()].cpu),
            queue_util_avg: queue.util_avg,
            queue_load_avg: queue.load_avg,
            weight: weight.scaled_down(),
            weight_scaled_up: weight.raw(),
        };
        rules.post_init_entity_util_avg(&mut avg, from);
        let is_fair = self.shared.tasks[task.index()].policy.is_fair();
        if !is_fair {
            avg.last_update_time = self.cfs_rq_clock_pelt(self.se(se).cfs_rq);
        }
        self.se_mut(se).avg = avg;
        if is_fair && rules.attach_point == AttachPoint::Fork {
            self.attach_entity_cfs_rq(se);
        }
    }

    /// A sleeping task leaves its queue to wake up elsewhere (`remove_entity_load_avg()`, `migrate_se_pelt_lag()`).
    pub(crate) fn leave_averages_while_waking(&mut self, task: TaskId) {
        let se = self.shared.tasks[task.index()].se;
        self.shared.remove_entity_load_avg(task);
        let (cfs_rq, weight, rules) =
            (self.se(se).cfs_rq, self.shared.entity_weight(se), self.shared.generation.pelt);
        let rq = &*self.rq;
        let idle = self.shared.runs_idle_task(rq.cpu).then(|| IdleCpuTimes {
            clock_pelt_idle: rq.pelt.clock_pelt_idle,
            clock_idle: rq.pelt.clock_idle,
            throttled_when_idle: self.cfs(cfs_rq).pelt_clock.throttled_when_idle,
            queue_last_update_time: self.cfs(cfs_rq).tracked.avg.last_update_time,
            sched_clock: self.shared.pelt_epoch + self.shared.trace.now.0,
        });
        let avg = &mut self.shared.entities[se.0 as usize].avg;
        rules.migrate_se_pelt_lag(avg, weight, idle);
        avg.last_update_time = 0;
    }

    /// A waiting task has been dequeued to move to another CPU (`migrate_task_rq_fair()`).
    pub(crate) fn leave_averages_while_moving(&mut self, task: TaskId) {
        let se = self.shared.tasks[task.index()].se;
        if self.shared.generation.pelt.detach_point == DetachPoint::Migration {
            self.detach_entity_cfs_rq(se);
        }
        self.se_mut(se).avg.last_update_time = 0;
    }

    /// A task that goes to sleep takes a new sample (`util_est_update()`).
    pub(crate) fn util_est_update(&mut self, task: TaskId) {
        let features = UtilEstFeatures {
            util_est: self.has(Feature::UtilEst),
            fastup: self.has(Feature::UtilEstFastup),
        };
        let (se, capacity) = (self.shared.tasks[task.index()].se, self.rq.cpu_capacity_orig);
        let avg = &mut self.shared.entities[se.0 as usize].avg;
        self.shared.generation.pelt.util_est_update(avg, capacity, features);
    }
}

/// A CPU's time as its averages see it, which are `epoch` ns ahead.
fn rq_time(rq: &Rq, epoch: u64) -> RqTime {
    let clock = epoch + rq.clock.0;
    RqTime { clock, clock_task: clock }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::ablation::AblationSituation;
    use crate::group::GroupId;
    use crate::testbed::{MS, SchedulerTestbed};

    /// What a group knows of its load once a second task has joined it, 2 ms after the first, by a clock that stands since then.
    fn told_by_a_clock_that_stands(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 8, 1);
        let group = bed.scheduler.new_group(GroupId::ROOT, 1024);
        bed.spawn_in(group, 0);
        let cfs_rq = bed.scheduler.shared.groups[group.0 as usize].cfs_rqs[0];
        let told = |bed: &SchedulerTestbed| bed.scheduler.shared.groups[group.0 as usize].load_avg as u64;
        let before = told(&bed);
        bed.scheduler.rqs[0].clock_stands = true;
        bed.pass(2 * MS);
        bed.at(0);
        bed.scheduler.cfs_mut(cfs_rq).tracked.avg.load_avg += 512;
        bed.scheduler.queue_rq_lock(cfs_rq).update_tg_load_avg(cfs_rq);
        told(&bed) - before
    }

    #[test]
    fn a_report_to_the_group_waits_for_the_queues_clock_from_v7_2_on() {
        assert_eq!(["v6.7", "v7.1", "v7.2"].map(told_by_a_clock_that_stands), [512, 512, 0]);
    }

    pub(crate) const SITUATIONS: &[(&str, AblationSituation)] =
        &[("report-clock", told_by_a_clock_that_stands)];
}
