//! Load tracking as the fair class drives it: when averages are aged, joined, left and passed up.
//!
//! The arithmetic is [`pelt`](crate::pelt)'s; here stands at which point of which operation it is done.

use crate::rq::LockedRq;
use crate::shared::Shared;
use fairlab_event::Cpu;

use crate::cfs_rq::CfsRq;
use crate::cpufreq::rules::GovernorHook;
use crate::entity::{CfsRqId, SchedEntity, SeId, group_runnable_load};
use crate::fair::bandwidth::ThrottledPropagation;
use crate::generation::Feature;
use crate::group::GroupId;
use crate::pelt::{
    AttachPoint, CfsRqLoad, CpuScale, DetachPoint, EntityWeight, FairInitialUtil, GroupEntity, GroupLoad,
    IdleCpuTimes, Invariance, LostIdleCheck, PeltRules, RqTime, RunnableKind, UtilEst, UtilEstFeatures,
    calc_group_runnable,
};
use crate::rq::Rq;
use crate::scheduler::Scheduler;
use crate::task::{Policy, Task, TaskId};
use crate::weight::LoadWeight;

/// What an update does beside ageing (`UPDATE_TG`, `DO_ATTACH`, `DO_DETACH`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadUpdate {
    /// The group is told if something changed.
    pub tell_group: bool,
    /// An entity that belongs to no queue joins this one.
    pub attach: bool,
    /// The entity leaves for another CPU's queue.
    pub detach: bool,
}

impl LoadUpdate {
    /// Ages, no more.
    pub const AGE: LoadUpdate = LoadUpdate { tell_group: false, attach: false, detach: false };
    /// Ages and tells the group.
    pub const TELL: LoadUpdate = LoadUpdate { tell_group: true, attach: false, detach: false };
}

/// A CPU's clocks at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// `rq_clock()`, ns.
    pub clock: u64,
    /// `rq_clock_pelt()`, ns.
    pub pelt: u64,
    /// What contributions to load tracking are scaled by.
    pub scale: CpuScale,
}

/// The machine has been up for a while when a run starts: an average's age of 0 means that it belongs to no queue.
pub(crate) const UPTIME: u64 = 1 << 30;

impl Shared {
    fn entity_weight(&self, se: SeId) -> EntityWeight {
        self.se(se).tracked_weight()
    }

    /// Whether an entity's CPU is slower than the fastest, and what it contributes is scaled by that.
    #[inline(always)]
    pub(crate) fn scales_contributions(&self, se: SeId) -> bool {
        self.generation.pelt.invariance == Invariance::Contribution
            && self.cpu_scale(self.cfs(self.se(se).cfs_rq).cpu) != CpuScale::FULL
    }

    /// How big a CPU is against the biggest at its highest frequency, 0…1024.
    ///
    /// Kernel: `arch_scale_cpu_capacity()`, without a domain: what threads of a core share is not asked for.
    pub(crate) fn arch_scale_cpu_capacity(&self, cpu: Cpu) -> u64 {
        u64::from(self.topology.capacity(cpu))
    }

    /// What contributions on a CPU are scaled by; where the clock is scaled instead, the CPU is not asked.
    #[inline]
    fn contribution_scale(&self, cpu: Cpu) -> CpuScale {
        match self.generation.pelt.invariance {
            Invariance::Contribution => self.cpu_scale(cpu),
            Invariance::PeltClock => CpuScale::FULL,
        }
    }

    /// What changed below a group's entity is passed up to it and to its queue.
    fn propagate_entity_load_avg(&mut self, se: SeId) -> bool {
        let (cfs_rq, Some(below)) = (self.se(se).cfs_rq, self.se(se).my_q) else { return false };
        let entity = GroupEntity {
            weight: self.entity_weight(se),
            on_rq: self.se(se).on_rq,
            group_weight: self.cfs(below).load.scaled_down(),
            capacity: self.arch_scale_cpu_capacity(self.cfs(cfs_rq).cpu),
        };
        let (mut parent, mut group) = (self.cfs(cfs_rq).tracked, self.cfs(below).tracked);
        let rules = self.generation.pelt;
        let changed =
            rules.propagate_entity_load_avg(&mut parent, &mut self.se_mut(se).avg, &mut group, entity);
        self.cfs_mut(cfs_rq).tracked = parent;
        self.cfs_mut(below).tracked = group;
        changed
    }

    /// A sleeping or ending task leaves its queue; what it counted goes with the queue's next update.
    pub(crate) fn remove_entity_load_avg(&mut self, task: TaskId) {
        let se = self.tasks[task.index()].se;
        let (cfs_rq, weight, rules) = (self.se(se).cfs_rq, self.entity_weight(se), self.generation.pelt);
        let queue = &mut self.cfs_rqs[cfs_rq.0 as usize].tracked;
        rules.remove_entity_load_avg(queue, &mut self.entities[se.0 as usize].avg, weight);
    }

    /// A task's entity will compete on another queue: its age is told by that queue's clock (`set_task_rq_fair()`).
    pub(crate) fn change_clock(&mut self, se: SeId, next: CfsRqId) {
        let last_update = |cfs_rq: CfsRqId| self.cfs(cfs_rq).tracked.avg.last_update_time;
        let (previous, next) = (last_update(self.se(se).cfs_rq), last_update(next));
        let (weight, rules) = (self.entity_weight(se), self.generation.pelt);
        rules.set_task_rq_fair(&mut self.se_mut(se).avg, weight, previous, next);
    }

    /// Notes how many runnable tasks a group's entity stands for (`se_update_runnable()`).
    pub(crate) fn se_update_runnable(&mut self, se: SeId) {
        if self.generation.pelt.runnable == RunnableKind::TaskCount {
            let entity = &mut self.entities[se.0 as usize];
            if let Some(below) = entity.my_q {
                entity.runnable_weight = self.cfs_rqs[below.0 as usize].runnable_tasks(&self.generation.pelt);
            }
        }
    }

    /// An entity counts as runnable on its queue (`enqueue_runnable_load_avg()`, to v5.6).
    pub(crate) fn enqueue_runnable_load_avg(&mut self, se: SeId) {
        let (rules, entity) = (&self.generation.pelt, &self.entities[se.0 as usize]);
        if rules.runnable == RunnableKind::LoadWeighted {
            let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize].tracked;
            queue.add_runnable(&entity.avg, entity.runnable_load());
        }
    }

    /// It no longer does (`dequeue_runnable_load_avg()`, to v5.6).
    pub(crate) fn dequeue_runnable_load_avg(&mut self, se: SeId) {
        let (rules, entity) = (&self.generation.pelt, &self.entities[se.0 as usize]);
        if rules.runnable == RunnableKind::LoadWeighted {
            let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize].tracked;
            queue.remove_runnable(&entity.avg, entity.runnable_load());
        }
    }

    /// An entity's weight changes, and a group's runnable weight with it: its averages leave the queue with the old ones
    /// and join with the new ones (`reweight_entity()`).
    pub(crate) fn set_entity_weight(&mut self, se: SeId, load: LoadWeight) {
        if self.generation.pelt.runnable == RunnableKind::LoadWeighted {
            return self.set_runnable_weight(se, load);
        }
        let entity = &mut self.entities[se.0 as usize];
        let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize].tracked;
        let (old, new) = (entity.load.scaled_down(), load.scaled_down());
        self.generation.pelt.reweight_entity(queue, &mut entity.avg, old, new);
        entity.load = load;
    }

    /// The same with the weight that the entity has.
    pub(crate) fn keep_entity_weight(&mut self, se: SeId) {
        let entity = &mut self.entities[se.0 as usize];
        if self.generation.pelt.runnable == RunnableKind::LoadWeighted {
            let load = entity.load;
            return self.set_runnable_weight(se, load);
        }
        let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize].tracked;
        self.generation.pelt.rejoin(queue, &mut entity.avg, entity.load.scaled_down());
    }

    /// The same to v5.6, where a group has a runnable weight beside its weight.
    #[inline(never)]
    fn set_runnable_weight(&mut self, se: SeId, load: LoadWeight) {
        let runnable_weight = self.group_runnable(se, load.raw());
        let (rules, entity) = (&self.generation.pelt, &mut self.entities[se.0 as usize]);
        let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize].tracked;
        set_runnable_weight(rules, queue, entity, load, runnable_weight);
    }

    /// The runnable weight of a group's entity that weighs `shares`, scaled up; a task's is its weight.
    pub(crate) fn group_runnable(&self, se: SeId, shares: u64) -> u64 {
        let Some(below) = self.se(se).my_q else { return shares };
        let below = self.cfs(below);
        self.group_runnable_of(below, self.group_load(below), shares)
    }

    /// The same, where `below` is the queue that the entity stands for.
    #[inline(always)]
    pub(crate) fn group_runnable_of(&self, below: &CfsRq, load: GroupLoad, shares: u64) -> u64 {
        let queue = &below.tracked;
        let runnable_weight = LoadWeight::from_raw(queue.runnable_weight).scaled_down() as i64;
        calc_group_runnable(load, queue.avg.runnable_avg as i64, runnable_weight, shares as i64) as u64
    }

    /// The root queue expects a queued task's estimate (`util_est_enqueue()`).
    pub(crate) fn util_est_enqueue(&mut self, task: TaskId) {
        self.change_util_est(task, PeltRules::util_est_enqueue);
    }

    /// The root queue no longer expects it (`util_est_dequeue()`).
    pub(crate) fn util_est_dequeue(&mut self, task: TaskId) {
        self.change_util_est(task, PeltRules::util_est_dequeue);
    }

    #[inline(always)]
    fn change_util_est(&mut self, task: TaskId, change: impl Fn(&PeltRules, &mut UtilEst, &UtilEst)) {
        if self.has(Feature::UtilEst) {
            let Task { cpu, se, .. } = self.tasks[task.index()];
            let root = CfsRqId::root(cpu);
            let (entity, queue) = (&self.entities[se.0 as usize], &mut self.cfs_rqs[root.0 as usize]);
            change(&self.generation.pelt, &mut queue.tracked.avg.util_est, &entity.avg.util_est);
        }
    }

    /// What a task counts of its CPU's load, its groups' weights considered. Its queue's part of that load is that of when
    /// it was asked for first in this jiffy, whatever has come and gone since.
    ///
    /// Kernel: `task_h_load()`, kernel/sched/fair.c.
    pub(crate) fn task_h_load(&self, task: TaskId) -> u64 {
        self.task_h_load_after(task, 0)
    }

    /// The same after others have taken so much load from its queue, which the CPU's load still counts for a while.
    pub(crate) fn task_h_load_after(&self, task: TaskId, left: u64) -> u64 {
        if self.tasks[task.index()].policy == Policy::Swapper {
            return 0;
        }
        self.part_of(task, self.h_load(self.entity_of(task).cfs_rq), left)
    }

    /// The same if the task's queue counts `load` of its CPU's.
    pub(crate) fn part_of(&self, task: TaskId, load: u64, left: u64) -> u64 {
        let se = self.entity_of(task);
        let queue = self.cfs(se.cfs_rq).tracked.avg.load_avg.saturating_sub(left);
        se.avg.load_avg * load / (queue + 1)
    }

    /// Whether somebody has asked in this jiffy what a queue counts of its CPU's load.
    pub(crate) fn h_load_known(&self, cfs_rq: CfsRqId) -> bool {
        self.cfs(cfs_rq).h_load.is_some_and(|(_, jiffy)| jiffy == self.jiffies())
    }

    /// What a queue counts of its CPU's load.
    pub(crate) fn h_load(&self, cfs_rq: CfsRqId) -> u64 {
        if let Some((load, _)) = self.cfs(cfs_rq).h_load.filter(|(_, jiffy)| *jiffy == self.jiffies()) {
            return load;
        }
        self.h_load_anew(cfs_rq)
    }

    /// The same as it is now.
    pub(crate) fn h_load_anew(&self, cfs_rq: CfsRqId) -> u64 {
        let Some(entity) = self.cfs(cfs_rq).entity else { return self.cfs(cfs_rq).tracked.avg.load_avg };
        let above = self.se(entity).cfs_rq;
        self.h_load(above) * self.se(entity).avg.load_avg / (self.cfs(above).tracked.avg.load_avg + 1)
    }

    /// Somebody has asked for what tasks of this queue count: until the jiffy is over, the queue's part stays.
    ///
    /// Kernel: `update_cfs_rq_h_load()`, kernel/sched/fair.c.
    /// Departs: who looks for misfit tasks or balances memory does not ask.
    pub(crate) fn update_cfs_rq_h_load(&mut self, cfs_rq: CfsRqId) {
        let now = self.jiffies();
        let mut next = Some(cfs_rq);
        while let Some(queue) = next {
            if self.h_load_known(queue) {
                return;
            }
            let load = self.h_load(queue);
            self.cfs_mut(queue).h_load = Some((load, now));
            next = self.cfs(queue).entity.map(|entity| self.se(entity).cfs_rq);
        }
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
            LostIdleCheck::EveryIdling => true,
        };
        if checks {
            let root = self.rq.cfs;
            let context = &self.shared.cpus[self.rq.cpu.index()];
            let others = context.avg_rt.util_sum.wrapping_add(context.avg_dl.util_sum);
            let util_sum = self.cfs(root).tracked.avg.util_sum.wrapping_add(others);
            self.rq.pelt.enter_idle(&rules, time, util_sum);
        }
    }

    /// Ages the averages of a CPU's real-time tasks; `running`: one of them has run up to now. True if they were made anew.
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
    pub(crate) fn now_of(&self) -> Now {
        let cpu = self.rq.cpu;
        let scale = self.shared.contribution_scale(cpu);
        Now { clock: self.rq.clock.0, pelt: self.rq_clock_pelt(), scale }
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
            self.update_load_avg_at(se, update, now, passes_up);
        }
    }

    /// The same whatever happens, at `now` on its queue's clock; `passes_up`: something changed below it.
    #[inline(never)]
    fn update_load_avg_at(&mut self, se: SeId, update: LoadUpdate, now: u64, passes_up: bool) {
        let cfs_rq = self.se(se).cfs_rq;
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
            self.follow_new_averages(se, attached, decayed, update);
        }
    }

    /// What is done when a queue's averages have changed, or an entity joins or leaves it.
    fn follow_new_averages(&mut self, se: SeId, attached: bool, decayed: bool, update: LoadUpdate) {
        let cfs_rq = self.se(se).cfs_rq;
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
        let now = self.shared.pelt_epoch + self.rq.clock.0;
        let told = queue.tracked.tg_runnable_avg_contrib;
        let delta = self.shared.generation.pelt.update_tg_load_avg(now, &mut queue.tracked);
        let group = &mut self.shared.groups[queue.group.0 as usize];
        group.load_avg += delta;
        group.runnable_avg += queue.tracked.tg_runnable_avg_contrib.wrapping_sub(told) as i64;
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

    fn propagate_entity_cfs_rq(&mut self, se: SeId) {
        let stops = self.shared.generation.bandwidth.throttled_propagation == ThrottledPropagation::Stops;
        let is_end =
            |queue: &LockedRq<'_>, se: SeId| stops && queue.cfs(queue.se(se).cfs_rq).runtime.throttled;
        let mut level = Some(se).filter(|&se| !is_end(self, se)).and_then(|se| self.se(se).parent);
        while let Some(se) = level {
            self.update_load_avg(se, LoadUpdate::TELL);
            level = self.se(se).parent.filter(|_| !is_end(self, se));
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

impl Scheduler {
    /// What a CPU has when nothing but fair tasks uses it; to v4.20 threads of a core share it.
    ///
    /// Kernel: `capacity_orig_of()`, kernel/sched/fair.c.
    pub(crate) fn capacity_orig_of(&self, cpu: Cpu) -> u64 {
        self.rqs[cpu.index()].cpu_capacity_orig
    }

    /// A sleeping task leaves its queue to wake up elsewhere (`remove_entity_load_avg()`, `migrate_se_pelt_lag()`).
    pub(crate) fn leave_averages_while_waking(&mut self, task: TaskId) {
        let (se, cpu) = (self.shared.tasks[task.index()].se, self.shared.tasks[task.index()].cpu);
        self.shared.remove_entity_load_avg(task);
        let (cfs_rq, weight, rules) =
            (self.se(se).cfs_rq, self.shared.entity_weight(se), self.shared.generation.pelt);
        let rq = &self.rqs[cpu.index()];
        let idle = self.runs_idle_task(cpu).then(|| IdleCpuTimes {
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
}

/// A CPU's time as its averages see it, which are `epoch` ns ahead.
fn rq_time(rq: &Rq, epoch: u64) -> RqTime {
    let clock = epoch + rq.clock.0;
    RqTime { clock, clock_task: clock }
}

/// Gives an entity a weight and a runnable weight, by which its averages join its queue; load-weighted runnability only.
///
/// Kernel: `reweight_entity()`, kernel/sched/fair.c, to v5.6.
fn set_runnable_weight(
    rules: &PeltRules,
    queue: &mut CfsRqLoad,
    entity: &mut SchedEntity,
    load: LoadWeight,
    runnable_weight: u64,
) {
    let old = entity.load;
    if entity.on_rq {
        queue.remove_runnable(&entity.avg, entity.runnable_load());
    }
    (entity.load, entity.runnable_weight) = (load, runnable_weight);
    match old.raw() == load.raw() {
        true => rules.rejoin(queue, &mut entity.avg, load.scaled_down()),
        false => rules.reweight_entity(queue, &mut entity.avg, old.scaled_down(), load.scaled_down()),
    }
    let runnable = entity.runnable_load();
    entity.avg.update_runnable_avg(runnable.weight);
    if entity.on_rq {
        queue.add_runnable(&entity.avg, runnable);
    }
}

/// The same for a group's entity that keeps its weight.
#[inline(always)]
pub(crate) fn keep_group_weight(
    rules: &PeltRules,
    queue: &mut CfsRqLoad,
    entity: &mut SchedEntity,
    runnable_weight: u64,
) {
    let [old, new] = [entity.runnable_weight, runnable_weight].map(group_runnable_load);
    entity.runnable_weight = runnable_weight;
    rules.rejoin(queue, &mut entity.avg, entity.load.scaled_down());
    if entity.on_rq {
        queue.remove_runnable(&entity.avg, old);
    }
    entity.avg.update_runnable_avg(new.weight);
    if entity.on_rq {
        queue.add_runnable(&entity.avg, new);
    }
}

/// Ages an entity and its queue up to `now`, if nothing is to be done but to let their sums grow. Returns whether it was so;
/// if not, the entity's may have grown, and the queue is left. `kind` is the rules', where it is known beforehand.
#[inline(always)]
pub(crate) fn grow_sums(
    rules: &PeltRules,
    kind: RunnableKind,
    se: SeId,
    entity: &mut SchedEntity,
    queue: &mut CfsRq,
    (now, scale): (u64, CpuScale),
) -> bool {
    if entity.avg.last_update_time == 0 || queue.tracked.removed.nr > 0 {
        return false;
    }
    match entity.avg.units_within_period(now) {
        None => return false,
        Some(0) => {}
        Some(units) => {
            let state = entity.tracked_state(queue.member == Some(se));
            kind.grow_se(units, scale, &mut entity.avg, state);
        }
    }
    match queue.tracked.avg.units_within_period(now) {
        None => return false,
        Some(0) => {}
        Some(units) => {
            let state = queue.tracked_state(rules);
            kind.grow_cfs_rq(units, scale, &mut queue.tracked.avg, state);
        }
    }
    true
}
