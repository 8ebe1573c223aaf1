//! What an open-loop driver needs and nobody else: to bring the state to where a real kernel had it.
//!
//! A verifier walks a recording, asks for decisions (`&self`), and then applies what the kernel *did*. Where that is
//! not what the model decides, the methods here force it. The time of a runqueue is then not the trace's clock but the
//! sum of what the kernel charged: [`Scheduler::charge`] takes a run time as the kernel printed it.
//!
//! Must not know: traces, and what counts as agreement.

mod averages;
mod bandwidth;
mod groups;
mod parameters;

pub use averages::RecordedAverages;

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns, TaskState};

use crate::cfs_rq::Running;
use crate::core::{DequeueFlags, EnqueueFlags, Mode, Scheduler};
use crate::decision::{PickReason, PreemptDecision, TickDecision};
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair::load::LoadUpdate;
use crate::generation::Feature;
use crate::generation::behaviour::{
    DelayedLag, ForkPlacement, Request, Reschedule, Reweight, SliceProtection,
};
use crate::group::{GroupId, MovedWaiting};
use crate::task::{OnRq, Policy, TaskId};
use crate::vruntime::Vruntime;
use crate::weight::LoadWeight;

/// No entity weighs nothing; where a recording says so, it is damaged.
const LEAST_WEIGHT: u64 = 1;

/// An entity, a task's or a group's on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(SeId);

impl EntityId {
    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0.0 as usize
    }
}

/// A queue: one group's on one CPU, or the root's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(CfsRqId);

impl QueueId {
    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0.0 as usize
    }
}

/// What an entity holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityView {
    /// Which one.
    pub id: EntityId,
    /// The task; `None` for a group's entity.
    pub task: Option<TaskId>,
    /// Its point on the queue's virtual time line.
    pub vruntime: Vruntime,
    /// When its request should be done (EEVDF).
    pub deadline: Vruntime,
    /// Lag when it last left a queue, virtual ns.
    pub vlag: i64,
    /// Its distance to its deadline between two queues, virtual ns (`rel_deadline`).
    pub relative_deadline: Option<i64>,
    /// Asleep, but still competing.
    pub delayed: bool,
    /// Its weight as the kernel keeps it, scaled up.
    pub weight: u64,
    /// Whether it counts on its queue.
    pub on_rq: bool,
}

/// One queue as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// The zero of its virtual time line.
    pub min_vruntime: Vruntime,
    /// The running entity, if it is still on the queue.
    pub curr: Option<EntityView>,
    /// The waiting ones, in order of the time line.
    pub waiting: Vec<EntityView>,
    /// Buddies: preferred, preferred after it, passed over.
    pub buddies: [Option<EntityId>; 3],
}

impl QueueView {
    /// All that compete.
    pub fn entities(&self) -> impl Iterator<Item = &EntityView> {
        self.curr.iter().chain(&self.waiting)
    }
}

/// The pick at one level of the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelPick {
    /// The queue.
    pub queue: QueueId,
    /// What the model picks there; `None` when nothing is queued.
    pub model: Option<(EntityId, PickReason)>,
    /// What was picked there.
    pub picked: EntityId,
}

/// Weights that the next update of a group's entity takes instead of computing one; without one it keeps its weight.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenWeights(BTreeMap<SeId, u64>);

/// Time.
impl Scheduler {
    /// The time of a CPU's runqueue.
    pub fn rq_clock(&self, cpu: Cpu) -> Ns {
        self.rqs[cpu.index()].clock
    }

    /// Sets the time of a CPU's runqueue.
    pub fn set_rq_clock(&mut self, cpu: Cpu, clock: Ns) {
        let passed = clock.0.saturating_sub(self.rqs[cpu.index()].clock.0);
        self.rqs[cpu.index()].clock = clock;
        self.update_rq_clock_pelt(cpu, passed);
    }

    /// Stands on `cpu` at the time of its own runqueue, so that no step charges anything by itself.
    pub fn stand_on(&mut self, cpu: Cpu) {
        let clock = self.rq_clock(cpu);
        self.set_here(cpu, Mode::Task, clock);
    }

    /// Charges the running fair task of `cpu` with `runtime`, at its own level, as the kernel reported it. The queue's
    /// clock follows. Returns where that leads; `None` when no fair task runs.
    pub fn charge(&mut self, cpu: Cpu, runtime: Ns) -> Option<Vruntime> {
        let task = self.curr(cpu);
        if !self.task(task).policy.is_fair() {
            return None;
        }
        let entity = self.entity_of(task);
        let cfs_rq = entity.cfs_rq;
        self.set_rq_clock(cpu, Ns(entity.exec_start + runtime.0));
        self.update_curr(cfs_rq);
        Some(self.entity_of(task).vruntime)
    }

    /// Accounts the running task of `cpu` at every level up to `clock`. Where the runqueue's clock is ahead of that, it
    /// stays there: the accounting was some time ago.
    pub fn account_until(&mut self, cpu: Cpu, clock: Ns) {
        let ahead = Some(self.rq_clock(cpu)).filter(|&now| now > clock);
        match ahead {
            Some(_) => self.rqs[cpu.index()].clock = clock,
            None => self.set_rq_clock(cpu, clock),
        }
        self.stand_on(cpu);
        self.account(cpu);
        if let Some(now) = ahead {
            self.rqs[cpu.index()].clock = now;
        }
    }

    /// Charges the running entity of one queue up to the time of its runqueue.
    pub fn charge_queue(&mut self, queue: QueueId) {
        self.update_curr(queue.0);
    }

    /// Up to when the running fair task of `cpu` is charged, on the runqueue's clock.
    pub fn charged_until(&self, cpu: Cpu) -> Option<Ns> {
        let task = self.curr(cpu);
        self.task(task).policy.is_fair().then(|| Ns(self.entity_of(task).exec_start))
    }

    /// Virtual time that `task`'s weight makes of `runtime`.
    pub fn virtual_time(&self, task: TaskId, runtime: Ns) -> u64 {
        self.calc_delta_fair(self.entity_of(task).load, runtime.0)
    }
}

/// Naming.
impl Scheduler {
    /// A task's entity.
    pub fn task_entity(&self, task: TaskId) -> EntityId {
        EntityId(self.task(task).se)
    }

    /// A task's group.
    pub fn group_of(&self, task: TaskId) -> GroupId {
        self.task(task).group
    }

    /// A group's entity on `cpu`; the root has none.
    pub fn group_entity(&self, group: GroupId, cpu: Cpu) -> Option<EntityId> {
        self.groups.get(group.0 as usize)?.entities.get(cpu.index()).copied().map(EntityId)
    }

    /// A group's queue on `cpu`.
    pub fn group_queue(&self, group: GroupId, cpu: Cpu) -> Option<QueueId> {
        self.groups.get(group.0 as usize)?.cfs_rqs.get(cpu.index()).copied().map(QueueId)
    }

    /// The queue on which an entity competes.
    pub fn queue_of(&self, entity: EntityId) -> QueueId {
        QueueId(self.se(entity.0).cfs_rq)
    }

    /// The CPU of a queue.
    pub fn cpu_of(&self, queue: QueueId) -> Cpu {
        self.cfs(queue.0).cpu
    }

    /// A task's entity and its groups', from the lowest level up.
    pub fn levels(&self, task: TaskId) -> Vec<EntityId> {
        self.levels_on(task, self.task(task).cpu)
    }

    /// What these levels would be on `cpu`.
    pub fn levels_on(&self, task: TaskId, cpu: Cpu) -> Vec<EntityId> {
        let task = self.task(task);
        let group = self.groups[task.group.0 as usize].entities.get(cpu.index()).copied();
        let groups = std::iter::successors(group, |se| self.se(*se).parent);
        std::iter::once(task.se).chain(groups).map(EntityId).collect()
    }

    /// What a task's levels would be on `cpu` if it were in `group`.
    pub fn levels_in(&self, task: TaskId, group: GroupId, cpu: Cpu) -> Vec<EntityId> {
        let group = self.group_entity(group, cpu).map(|entity| entity.0);
        let groups = std::iter::successors(group, |se| self.se(*se).parent);
        std::iter::once(self.task(task).se).chain(groups).map(EntityId).collect()
    }

    /// The entity that stands for a queue on the one above; the root's has none.
    pub fn entity_above(&self, queue: QueueId) -> Option<EntityId> {
        self.cfs(queue.0).entity.map(EntityId)
    }

    /// The queue on which a task would compete on `cpu`.
    pub fn task_queue_on(&self, task: TaskId, cpu: Cpu) -> QueueId {
        QueueId(self.groups[self.task(task).group.0 as usize].cfs_rqs[cpu.index()])
    }
}

/// Looking.
impl Scheduler {
    /// What an entity holds.
    pub fn entity_view(&self, entity: EntityId) -> EntityView {
        let view = self.se(entity.0);
        EntityView {
            id: entity,
            task: view.task,
            vruntime: view.vruntime,
            deadline: view.deadline,
            vlag: view.vlag,
            relative_deadline: view.relative_deadline,
            delayed: view.sched_delayed,
            weight: view.load.raw(),
            on_rq: view.on_rq,
        }
    }

    /// Whether an entity is its queue's current one, even if it has left the queue already.
    pub fn is_current(&self, entity: EntityId) -> bool {
        self.cfs(self.se(entity.0).cfs_rq).curr == Some(entity.0)
    }

    /// The clock at which an entity that is current would have been charged `gained` of virtual time since it was charged
    /// last, the earliest up to `latest`. `None` where no clock leads there; where `near`, two virtual ns or one of run time
    /// may be missing.
    pub fn clock_after(&self, entity: EntityId, gained: i64, latest: Ns, near: bool) -> Option<Ns> {
        let view = self.se(entity.0);
        let charged = |clock: u64| self.calc_delta_fair(view.load, clock.saturating_sub(view.exec_start));
        let wanted = u64::try_from(gained).unwrap_or(0);
        let (mut low, mut high) = (view.exec_start, latest.0.max(view.exec_start));
        while low < high {
            let middle = low + (high - low) / 2;
            match charged(middle) < wanted {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let rounding = if near { 2 + self.calc_delta_fair(view.load, 1) } else { 0 };
        (gained.abs_diff(charged(low) as i64) <= rounding).then_some(Ns(low))
    }

    /// Where an entity would be placed if its task were woken now. Pure.
    pub fn placement_of(&self, entity: EntityId) -> (Vruntime, Option<Vruntime>) {
        let flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
        let placed = self.placement(self.se(entity.0).cfs_rq, entity.0, flags);
        (placed.vruntime, placed.deadline)
    }

    /// A queue as it stands.
    pub fn queue_view(&self, queue: QueueId) -> QueueView {
        let view = self.cfs(queue.0);
        QueueView {
            min_vruntime: view.min_vruntime,
            curr: self.running_entity(queue.0).map(|se| self.entity_view(EntityId(se))),
            waiting: view.timeline.iter().map(|entry| self.entity_view(EntityId(entry.se))).collect(),
            buddies: [view.next, view.last, view.skip].map(|buddy| buddy.map(EntityId)),
        }
    }

    /// Tasks on a CPU's fair queues, of all levels, those that sleep there included.
    pub fn fair_tasks(&self, cpu: Cpu) -> Vec<TaskId> {
        self.rqs[cpu.index()].cfs_tasks.oldest_first(&self.tasks).collect()
    }

    /// Whether the running entity is charged before a sleeper is woken on its queue, not after.
    pub fn charges_before_requeue(&self) -> bool {
        self.generation.behaviours.delayed_lag == DelayedLag::NeverWorse
    }

    /// Whether fair tasks make way for each other lazily.
    pub fn reschedules_lazily(&self) -> bool {
        self.generation.behaviours.reschedule == Reschedule::Lazily
    }

    /// The average of a queue, where lag is zero.
    pub fn queue_average(&self, queue: QueueId) -> Vruntime {
        self.average(queue.0)
    }

    /// The same without an entity that waits there, the running one charged up to its runqueue's clock.
    pub fn queue_average_without(&self, queue: QueueId, entity: Option<EntityId>) -> Vruntime {
        let waits = |&entity: &EntityId| {
            let view = self.se(entity.0);
            view.on_rq && view.cfs_rq == queue.0 && !self.is_current(entity)
        };
        let Some(entity) = entity.filter(waits) else { return self.queue_average(queue) };
        let running = self.running_at(queue, self.rq_clock(self.cpu_of(queue)));
        let mut others = self.cfs(queue.0).clone();
        others.remove_waiting(entity.0);
        others.average_vruntime(running, self.generation.behaviours.average_rounding)
    }

    /// How far one ns of run time moves a queue's average at most, virtual ns.
    pub fn average_step(&self, queue: QueueId) -> u64 {
        self.running_entity(queue.0).map_or(0, |curr| self.calc_delta_fair(self.se(curr).load, 1))
    }

    /// A queue's current entity, even if it has left the queue already.
    pub fn current_of(&self, queue: QueueId) -> Option<EntityView> {
        self.cfs(queue.0).curr.map(|curr| self.entity_view(EntityId(curr)))
    }

    /// What it would be if the running entity were charged up to `clock`.
    pub fn queue_average_at(&self, queue: QueueId, clock: Ns) -> Vruntime {
        let running = self.running_at(queue, clock);
        self.cfs(queue.0).average_vruntime(running, self.generation.behaviours.average_rounding)
    }

    /// Where a queue's minimum would be if the running entity were charged up to `clock`.
    pub fn queue_minimum_at(&self, queue: QueueId, clock: Ns) -> Vruntime {
        // Where nothing is charged, nothing is looked at.
        let charged = self.cfs(queue.0).curr.is_some_and(|curr| self.se(curr).exec_start < clock.0);
        match charged {
            true => self.cfs(queue.0).minimum_with(self.running_at(queue, clock).map(|curr| curr.vruntime)),
            false => self.cfs(queue.0).min_vruntime,
        }
    }

    /// The running entity of a queue as it would be if it were charged up to `clock`.
    fn running_at(&self, queue: QueueId, clock: Ns) -> Option<Running> {
        let entity = self.se(self.running_entity(queue.0)?);
        let charged = self.calc_delta_fair(entity.load, clock.0.saturating_sub(entity.exec_start));
        let running = self.running(queue.0)?;
        Some(Running { vruntime: running.vruntime.plus(charged as i64), ..running })
    }

    /// The idle task of a CPU.
    pub fn idle_task(&self, cpu: Cpu) -> TaskId {
        self.rqs[cpu.index()].idle
    }

    /// A task's policy.
    pub fn policy(&self, task: TaskId) -> Policy {
        self.task(task).policy
    }

    /// Whether a task that goes to sleep may stay on its queue in this generation.
    pub fn may_delay_dequeues(&self) -> bool {
        self.has(Feature::DelayDequeue)
    }

    /// Whether a sleeper that leaves its queue late is not ahead of it any more.
    pub fn forgets_delayed_lag(&self) -> bool {
        self.has(Feature::DelayZero)
    }

    /// Whether a task sleeps on its queue.
    pub fn is_delayed(&self, task: TaskId) -> bool {
        matches!(self.task(task).on_rq, OnRq::Delayed(_))
    }

    /// Whether a task is on a runqueue: running, waiting, or left there asleep.
    pub fn is_on_queue(&self, task: TaskId) -> bool {
        matches!(self.task(task).on_rq, OnRq::Queued | OnRq::Delayed(_))
    }

    /// What would be picked at each level at which `next` or one of its groups was picked, from the root down. Pure.
    pub fn pick_levels(&self, next: TaskId) -> Vec<LevelPick> {
        let mut levels = self.levels(next);
        levels.reverse();
        let pick = |picked: EntityId| {
            let queue = self.queue_of(picked);
            let model = self.pick_next_entity(queue.0).map(|(se, reason)| (EntityId(se), reason));
            LevelPick { queue, model, picked }
        };
        levels.into_iter().map(pick).collect()
    }

    /// The entities of the running task of `task`'s CPU and of `task` that share a queue: what a test for preemption
    /// compares. `None` when either task is not fair.
    pub fn compared_entities(&self, task: TaskId) -> Option<(EntityId, EntityId)> {
        let curr = self.curr(self.task(task).cpu);
        let both = [curr, task].map(|task| &self.tasks[task.index()]);
        both.iter().all(|task| task.policy.is_fair()).then(|| {
            let (one, other) = self.find_matching_se(both[0].se, both[1].se);
            (EntityId(one), EntityId(other))
        })
    }
}

/// Weights of groups.
impl Scheduler {
    /// From now on groups' entities have the weights that [`give_weight`](Self::give_weight) says.
    pub fn take_weights_as_given(&mut self) {
        self.given_weights = Some(GivenWeights::default());
    }

    /// The next update of a group's entity gives it `weight`, scaled up.
    pub fn give_weight(&mut self, entity: EntityId, weight: u64) {
        if let Some(given) = &mut self.given_weights {
            given.0.insert(entity.0, weight.max(LEAST_WEIGHT));
        }
    }

    /// Gives the weights that no update has taken, of entities on queues of `cpu`.
    pub fn flush_given_weights(&mut self, cpu: Cpu) {
        let given = self.given_weights.iter().flat_map(|given| given.0.keys().copied());
        let left = given.filter(|&se| self.cfs(self.se(se).cfs_rq).cpu == cpu).collect::<Vec<_>>();
        for se in left {
            self.update_cfs_group(se);
        }
    }

    /// The same for one entity.
    pub fn flush_given_weight(&mut self, entity: EntityId) {
        if self.given_weights.as_ref().is_some_and(|given| given.0.contains_key(&entity.0)) {
            self.update_cfs_group(entity.0);
        }
    }

    /// Whether updates give groups' entities only weights that are given.
    pub(crate) fn weights_are_given(&self) -> bool {
        self.given_weights.is_some()
    }

    /// The weight that an update has to give a group's entity, if one is given.
    pub(crate) fn take_given_weight(&mut self, se: SeId) -> Option<u64> {
        self.given_weights.as_mut()?.0.remove(&se)
    }

    /// Gives a group's entity that is off its queue another weight, with all that this changes.
    pub fn reweigh_off_queue(&mut self, entity: EntityId, weight: u64) {
        if !self.se(entity.0).on_rq && self.se(entity.0).load.raw() != weight {
            self.reweight_entity(entity.0, LoadWeight::from_raw(weight.max(LEAST_WEIGHT)));
        }
    }

    /// The point around which a change of weight scales an entity's distances on the time line, for one that stood at
    /// `vruntime`, on its queue or off it; `None` where it scales none.
    pub fn reweight_pivot(&self, entity: EntityId, vruntime: Vruntime, queued: bool) -> Option<Vruntime> {
        match self.generation.behaviours.reweight {
            Reweight::KeepVruntime | Reweight::ScaleLagOffQueue => None,
            Reweight::ScaleDeadlineAlways => Some(vruntime),
            _ if !queued => None,
            Reweight::ScaleDeadline => Some(vruntime),
            Reweight::ScaleAroundOthers
            | Reweight::ScaleAroundAverage
            | Reweight::PlaceAnew
            | Reweight::ScaleAllAroundAverage => Some(self.average(self.se(entity.0).cfs_rq)),
        }
    }

    /// Gives an entity a weight, without anything else that a change of weight does.
    pub fn force_weight(&mut self, entity: EntityId, weight: u64) {
        let load = LoadWeight::from_raw(weight.max(LEAST_WEIGHT));
        if self.se(entity.0).on_rq {
            let (cfs_rq, old) = (self.se(entity.0).cfs_rq, self.se(entity.0).load);
            self.cfs_mut(cfs_rq).load.subtract(old);
            self.cfs_mut(cfs_rq).load.add(load);
        }
        self.change_entity(entity, |entity| entity.load = load);
    }
}

/// Forcing values.
impl Scheduler {
    /// Puts an entity where the kernel had it on the virtual time line.
    pub fn force_vruntime(&mut self, entity: EntityId, vruntime: Vruntime) {
        self.change_entity(entity, |entity| entity.vruntime = vruntime);
    }

    /// The same for its deadline; a protected slice stays protected.
    pub fn force_deadline(&mut self, entity: EntityId, deadline: Vruntime) {
        self.change_entity(entity, |entity| {
            if entity.deadline_at_pick == Some(entity.deadline) {
                entity.deadline_at_pick = Some(deadline);
            }
            entity.deadline = deadline;
        });
    }

    /// Gives an entity a new request, as if it had used up the one that it has.
    ///
    /// Kernel: the second half of `update_deadline()`.
    pub fn force_new_request(&mut self, entity: EntityId) {
        let request = self.request(entity.0);
        let distance = self.calc_delta_fair(self.se(entity.0).load, request) as i64;
        let deadline = self.se(entity.0).vruntime.plus(distance);
        self.change_entity(entity, |entity| (entity.slice, entity.deadline) = (request, deadline));
    }

    /// Whether a slice is protected until its deadline, whatever wakes meanwhile.
    pub fn protects_until_deadline(&self) -> bool {
        self.generation.behaviours.slice_protection == SliceProtection::UntilNewDeadline
    }

    /// Whether slices end by a timer of their own.
    pub fn has_slice_timer(&self) -> bool {
        self.has(Feature::Hrtick)
    }

    /// Sets the lag with which an entity left its queue.
    pub fn force_vlag(&mut self, entity: EntityId, vlag: i64) {
        self.se_mut(entity.0).vlag = vlag;
    }

    /// Sets an entity's distance to its deadline while it is between two queues.
    pub fn force_relative_deadline(&mut self, entity: EntityId, distance: Option<i64>) {
        self.se_mut(entity.0).relative_deadline = distance;
    }

    /// Ends the protection of a running entity's slice where the kernel had it end.
    pub fn force_protection(&mut self, entity: EntityId, until: Vruntime) {
        let entity = self.se_mut(entity.0);
        entity.protected_until = until;
        entity.deadline_at_pick = Some(until);
    }

    fn change_entity(&mut self, entity: EntityId, change: impl FnOnce(&mut SchedEntity)) {
        let se = entity.0;
        let cfs_rq = self.se(se).cfs_rq;
        let waits = self.se(se).on_rq && self.cfs(cfs_rq).curr != Some(se);
        if waits {
            self.remove_waiting(cfs_rq, se);
        }
        change(self.se_mut(se));
        if waits {
            self.insert_waiting(cfs_rq, se);
        }
    }

    /// Puts the zero of a queue's virtual time line where the kernel had it.
    pub fn force_min_vruntime(&mut self, queue: QueueId, min_vruntime: Vruntime) {
        self.cfs_mut(queue.0).move_zero_to(min_vruntime);
    }

    /// Sets or clears the pending reschedule of a CPU, at once or lazy.
    pub fn force_need_resched(&mut self, cpu: Cpu, at_once: bool, lazy: bool) {
        let rq = &mut self.rqs[cpu.index()];
        (rq.need_resched, rq.need_resched_lazy) = (at_once, lazy);
    }
}

/// Forcing places.
impl Scheduler {
    /// Puts a task on `cpu`'s queue where its vruntime says, without placing it: as a snapshot shows it.
    pub fn lay_on_queue(&mut self, task: TaskId, cpu: Cpu) {
        if self.is_on_queue(task) || self.task(task).policy == Policy::Swapper {
            return;
        }
        self.bring(task, cpu);
        if !self.task(task).policy.is_fair() {
            self.stand_on(cpu);
            self.enqueue_task(task, EnqueueFlags::default());
            return;
        }
        self.tasks[task.index()].on_rq = OnRq::Queued;
        self.rqs[cpu.index()].nr_running += 1;
        self.domains.root_mut().overloaded |= self.rqs[cpu.index()].nr_running == 2;
        self.note_idle(cpu);
        // What its averages were is not known; they count on this queue from now on.
        self.stand_on(cpu);
        self.update_load_avg(self.task(task).se, LoadUpdate { attach: true, ..LoadUpdate::AGE });
        self.util_est_enqueue(task);
        let mut level = Some(self.task(task).se);
        let mut idle = self.task(task).policy == Policy::Idle;
        self.idle_policy_used |= idle;
        while let Some(se) = level {
            let cfs_rq = self.se(se).cfs_rq;
            if !self.se(se).on_rq {
                self.enqueue_runnable_load_avg(se);
                self.lay_entity(cfs_rq, se);
            } else if self.se(se).sched_delayed {
                self.clear_delayed(se);
            }
            self.cfs_mut(cfs_rq).h_nr_running += 1;
            self.cfs_mut(cfs_rq).h_nr_idle += u32::from(idle);
            idle |= self.counts_as_idle(cfs_rq);
            level = self.se(se).parent;
        }
        let mut list = self.rqs[cpu.index()].cfs_tasks;
        list.push_newest(&mut self.tasks, task);
        self.rqs[cpu.index()].cfs_tasks = list;
    }

    fn lay_entity(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let load = self.se(se).load;
        let queue = self.cfs_mut(cfs_rq);
        queue.load.add(load);
        queue.nr_running += 1;
        self.se_mut(se).on_rq = true;
        if self.cfs(cfs_rq).curr != Some(se) {
            self.insert_waiting(cfs_rq, se);
        }
    }

    /// A task that is on no queue goes to `cpu`. Where it was the running one of another, that one idles until the
    /// recording shows what it runs; a sleep on a queue that it no longer stands on is over.
    fn bring(&mut self, task: TaskId, cpu: Cpu) {
        if self.task(task).cpu != cpu {
            self.leave_cpu(task);
        }
        let se = self.task(task).se;
        self.se_mut(se).sched_delayed = false;
        self.move_entity_to(task, cpu);
    }

    fn leave_cpu(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        let idle = self.rqs[cpu.index()].idle;
        if self.curr(cpu) == task && task != idle {
            self.stand_on(cpu);
            self.context_switch(cpu, idle, TaskState::RUNNABLE);
        }
    }

    /// Lets a task sleep on `cpu` that is known to sleep there.
    pub fn lay_asleep(&mut self, task: TaskId, cpu: Cpu) {
        if self.is_on_queue(task) {
            return;
        }
        self.bring(task, cpu);
        self.tasks[task.index()].on_rq = OnRq::Sleeping(TaskState::INTERRUPTIBLE);
    }

    /// Lets `cpu` run `task`, whatever it ran.
    pub fn force_curr(&mut self, cpu: Cpu, task: TaskId) {
        if !self.is_on_queue(task) {
            self.lay_on_queue(task, cpu);
        }
        if self.task(task).cpu == cpu {
            // Whoever runs has been woken.
            self.force_delayed_awake(task);
            self.stand_on(cpu);
            self.context_switch(cpu, task, TaskState::RUNNABLE);
        }
    }

    /// Takes a waiting task off its queue and gives it to `dest`, where it is not queued yet; also one that sleeps there.
    ///
    /// Kernel: `detach_task()`, the first half of `move_queued_task()`.
    pub fn detach(&mut self, task: TaskId, dest: Cpu) {
        self.leave_cpu(task);
        let cpu = self.task(task).cpu;
        self.stand_on(cpu);
        self.dequeue_task(task, DequeueFlags { migrating: true, ..DequeueFlags::default() });
        self.tasks[task.index()].on_rq = OnRq::Waking;
        if self.task(task).policy.is_fair() {
            self.leave_averages_while_moving(task);
        }
        self.move_entity_to(task, dest);
    }

    /// Queues a detached task on its CPU.
    ///
    /// Kernel: `attach_task()`, without its test for preemption.
    pub fn attach(&mut self, task: TaskId) {
        self.stand_on(self.task(task).cpu);
        self.enqueue_task(task, EnqueueFlags::default());
        if self.entity_of(task).sched_delayed {
            self.tasks[task.index()].on_rq = OnRq::Delayed(TaskState::INTERRUPTIBLE);
        }
    }

    /// A sleeping task's CPU becomes `dest`, before it is queued there, at `now`.
    ///
    /// Kernel: `set_task_cpu()`, `migrate_task_rq_fair()`.
    pub fn migrate_waking(&mut self, task: TaskId, dest: Cpu, now: Ns) {
        self.leave_cpu(task);
        self.set_here(dest, Mode::Task, now);
        self.leave_queue_while_waking(task);
        if self.task(task).policy.is_fair() {
            self.leave_averages_while_waking(task);
        }
        self.bring(task, dest);
    }

    /// Queues a woken task on its CPU.
    ///
    /// Kernel: `ttwu_do_activate()`, without its test for preemption.
    pub fn activate_woken(&mut self, task: TaskId, migrated: bool) {
        self.stand_on(self.task(task).cpu);
        let se = self.task(task).se;
        self.se_mut(se).sched_delayed = false;
        self.enqueue_task(task, EnqueueFlags { wakeup: true, migrated, initial: false });
    }

    /// Places a new task on the queue of the running task of `cpu`, which creates it.
    pub fn place_forked(&mut self, child: TaskId, cpu: Cpu) {
        self.stand_on(cpu);
        self.fork(child);
    }

    /// Queues a new task on `cpu` for the first time, without its test for preemption
    /// ([`apply_preempt`](Self::apply_preempt) ends that).
    pub fn activate_new(&mut self, task: TaskId, cpu: Cpu) {
        self.bring(task, cpu);
        self.stand_on(cpu);
        self.init_task_load(task);
        let initial = self.generation.behaviours.fork_placement == ForkPlacement::WhereQueued;
        self.enqueue_task(task, EnqueueFlags { initial, ..EnqueueFlags::default() });
        self.tasks[task.index()].is_new = true;
    }

    /// The running task of `cpu` leaves its queue, to come back at once. Returns whether it was there.
    ///
    /// Kernel: the first half of `sched_move_task()`, also at a task's exit with autogroups (`moved`); or of a change of
    /// affinity.
    pub fn take_running_off(&mut self, cpu: Cpu, moved: bool) -> bool {
        let task = self.curr(cpu);
        let queued = self.is_on_queue(task) && self.task(task).policy.is_fair();
        if queued {
            self.stand_on(cpu);
            self.dequeue_task(task, DequeueFlags { save: !moved, ..DequeueFlags::default() });
            self.put_prev_task(task);
        }
        queued
    }

    /// It comes back to its queue, or to that of another group: the second half.
    pub fn put_running_back(&mut self, cpu: Cpu, group: Option<GroupId>) {
        let task = self.curr(cpu);
        self.stand_on(cpu);
        self.change_group(task, group);
        self.enqueue_task(task, EnqueueFlags::default());
        self.set_next_task(task, false);
    }

    /// A waiting task leaves its queue for that of another group, which it joins by [`attach`](Self::attach).
    ///
    /// Kernel: `sched_move_task()`, up to where the task is queued again.
    pub fn leave_for_group(&mut self, task: TaskId, group: Option<GroupId>) {
        self.stand_on(self.task(task).cpu);
        self.dequeue_task(task, DequeueFlags::default());
        self.tasks[task.index()].on_rq = OnRq::Waking;
        self.change_group(task, group);
    }

    /// Whether a waiting task that has changed groups is tested for preemption (`MovedWaiting`).
    pub fn tests_regrouped(&self) -> bool {
        self.generation.groups.moved_waiting == MovedWaiting::MayPreempt
    }

    /// A task that does not run changes groups.
    ///
    /// Kernel: `sched_move_task()`, `task_move_group_fair()`.
    pub fn regroup_sleeping(&mut self, task: TaskId, group: GroupId) {
        let relative = self.vruntime_is_relative_off_queue() && self.task(task).policy.is_fair();
        let se = self.task(task).se;
        if self.is_on_queue(task) {
            self.stand_on(self.task(task).cpu);
            self.off_and_on(task, false, |scheduler| scheduler.change_group(task, Some(group)));
            return;
        }
        if relative {
            self.place_entity(self.se(se).cfs_rq, se, EnqueueFlags::default());
            self.make_relative(self.se(se).cfs_rq, se);
        }
        self.change_group(task, Some(group));
        if relative {
            self.make_absolute(self.se(se).cfs_rq, se);
        }
    }

    fn change_group(&mut self, task: TaskId, group: Option<GroupId>) {
        if let Some(group) = group.filter(|group| (group.0 as usize) < self.groups.len()) {
            let se = self.task(task).se;
            self.detach_entity_cfs_rq(se);
            self.se_mut(se).avg.last_update_time = 0;
            self.set_task_group(task, group);
            self.attach_entity_cfs_rq(se);
        }
    }

    /// Takes a task off its queue, lets `change` work on it, and puts it back.
    fn off_and_on(&mut self, task: TaskId, save: bool, change: impl FnOnce(&mut Scheduler)) {
        let (queued, runs) = (self.is_on_queue(task), self.curr(self.task(task).cpu) == task);
        if queued {
            self.dequeue_task(task, DequeueFlags { save, ..DequeueFlags::default() });
        }
        if runs {
            self.put_prev_task(task);
        }
        change(self);
        if queued {
            self.enqueue_task(task, EnqueueFlags::default());
        }
        if runs {
            self.set_next_task(task, false);
        }
    }

    /// A task that sleeps on its queue is woken there, without its test for preemption (`ttwu_runnable()`).
    pub fn force_delayed_awake(&mut self, task: TaskId) {
        if self.is_delayed(task) {
            self.stand_on(self.task(task).cpu);
            self.tasks[task.index()].on_rq = OnRq::Queued;
            self.requeue_delayed_entity(self.task(task).se);
        }
    }

    /// A group's entity that stays on its queue though nothing is below it is about to have something again.
    pub fn force_delayed_group_awake(&mut self, entity: EntityId) {
        let view = self.se(entity.0);
        if view.task.is_none() && view.on_rq && view.sched_delayed {
            self.stand_on(self.cfs(view.cfs_rq).cpu);
            self.requeue_delayed_entity(entity.0);
        }
    }

    /// A task that sleeps on its queue leaves it now.
    pub fn force_delayed_out(&mut self, task: TaskId) {
        if let OnRq::Delayed(state) = self.task(task).on_rq {
            self.stand_on(self.task(task).cpu);
            self.tasks[task.index()].on_rq = OnRq::Sleeping(state);
            self.dequeue_task(task, DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() });
        }
    }

    /// A group's entity that stays on its queue though nothing is below it leaves it now.
    pub fn force_delayed_group_out(&mut self, entity: EntityId) {
        let view = self.se(entity.0);
        if view.task.is_none() && view.on_rq && view.sched_delayed {
            self.stand_on(self.cfs(view.cfs_rq).cpu);
            self.dequeue_entities(
                entity.0,
                DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() },
            );
        }
    }

    /// A task that has just left its queue is on it again, asleep: the kernel has put its dequeue off.
    pub fn lay_delayed(&mut self, task: TaskId, cpu: Cpu) {
        let OnRq::Sleeping(state) = self.task(task).on_rq else { return };
        self.lay_on_queue(task, cpu);
        self.util_est_dequeue(task);
        let se = self.task(task).se;
        self.tasks[task.index()].on_rq = OnRq::Delayed(state);
        self.set_delayed(se);
    }

    /// Applies what a test for preemption found, or what the kernel did instead.
    pub fn apply_preempt(&mut self, task: TaskId, decision: PreemptDecision) {
        if self.task(task).policy.is_fair() {
            self.set_buddies_after(task, decision);
            self.protection_after(task, decision);
        }
        self.tasks[task.index()].is_new = false;
        self.resched_after(task, decision);
    }

    /// The tick of `cpu`, at the time of its runqueue: accounts what is not accounted yet, and asks at every level.
    pub fn tick_here(&mut self, cpu: Cpu) -> TickDecision {
        self.stand_on(cpu);
        self.scheduler_tick(cpu)
    }
}
