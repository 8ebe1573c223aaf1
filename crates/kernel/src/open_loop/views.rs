//! What a driver in open loop sees: entities and queues by name, and what they hold.
//!
//! Must not know: what is compared with it.

use fairlab_event::{Cpu, Ns};

use super::{EntityId, QueueId};
use crate::cfs_rq::CurrEntity;
use crate::decision::PickReason;
use crate::fair::rules::Reschedule;
use crate::group::GroupId;
use crate::rq::EnqueueFlags;
use crate::scheduler::Scheduler;
use crate::task::{OnRq, Policy, TaskId};
use crate::vruntime::Vruntime;

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
        self.shared.groups.get(group.0 as usize)?.entities.get(cpu.index()).copied().map(EntityId)
    }

    /// A group's queue on `cpu`.
    pub fn group_queue(&self, group: GroupId, cpu: Cpu) -> Option<QueueId> {
        self.shared.groups.get(group.0 as usize)?.cfs_rqs.get(cpu.index()).copied().map(QueueId)
    }

    /// The queue on which an entity competes.
    pub fn queue_of(&self, entity: EntityId) -> QueueId {
        let view = self.se(entity.0);
        QueueId(if view.task.is_some() { self.shared.line_of(view.cfs_rq) } else { view.cfs_rq })
    }

    /// The CPU of a queue.
    pub fn cpu_of(&self, queue: QueueId) -> Cpu {
        self.cfs(queue.0).cpu
    }

    /// A task's entity and its groups', from the lowest level up, as far as they compete.
    pub fn levels(&self, task: TaskId) -> Vec<EntityId> {
        self.levels_on(task, self.task(task).cpu)
    }

    /// What these levels would be on `cpu`.
    pub fn levels_on(&self, task: TaskId, cpu: Cpu) -> Vec<EntityId> {
        let task = self.task(task);
        let group = self.shared.groups[task.group.0 as usize].entities.get(cpu.index()).copied();
        let group = group.filter(|_| !self.shared.competes_on_one_queue());
        let groups = std::iter::successors(group, |se| self.se(*se).parent);
        std::iter::once(task.se).chain(groups).map(EntityId).collect()
    }

    /// The entity that stands for a queue on the one above; the root's has none.
    pub fn entity_above(&self, queue: QueueId) -> Option<EntityId> {
        self.cfs(queue.0).entity.map(EntityId)
    }

    /// The queue on which a task would compete on `cpu`.
    pub fn task_queue_on(&self, task: TaskId, cpu: Cpu) -> QueueId {
        QueueId(
            self.shared.line_of(self.shared.groups[self.task(task).group.0 as usize].cfs_rqs[cpu.index()]),
        )
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
        self.cfs(self.se(entity.0).cfs_rq).member == Some(entity.0)
    }

    /// Where an entity would be placed if its task were woken now. Pure.
    pub fn placement_of(&self, entity: EntityId) -> (Vruntime, Option<Vruntime>) {
        let flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
        let placed = self.shared.placement(self.shared.line_of(self.se(entity.0).cfs_rq), entity.0, flags);
        (placed.vruntime, placed.deadline)
    }

    /// A queue as it stands.
    pub fn queue_view(&self, queue: QueueId) -> QueueView {
        let view = self.cfs(queue.0);
        QueueView {
            min_vruntime: view.min_vruntime,
            curr: self.shared.running_entity(queue.0).map(|se| self.entity_view(EntityId(se))),
            waiting: view.timeline.iter().map(|entry| self.entity_view(EntityId(entry.se))).collect(),
            buddies: [view.next, view.last, view.skip].map(|buddy| buddy.map(EntityId)),
        }
    }

    /// Tasks on a CPU's fair queues, of all levels, those that sleep there included.
    pub fn fair_tasks(&self, cpu: Cpu) -> Vec<TaskId> {
        self.rqs[cpu.index()].cfs_tasks.oldest_first(&self.shared.tasks).collect()
    }

    /// Whether the running entity is charged before a sleeper is woken on its queue, not after.
    pub fn charges_before_requeue(&self) -> bool {
        self.shared.generation.fair.delayed_lag.is_noted()
    }

    /// Whether fair tasks make way for each other lazily.
    pub fn reschedules_lazily(&self) -> bool {
        self.shared.generation.fair.reschedule == Reschedule::Lazily
    }

    /// The average of a queue, where lag is zero.
    pub fn queue_average(&self, queue: QueueId) -> Vruntime {
        self.shared.average(queue.0)
    }

    /// The same without an entity that waits there, the running one charged up to its runqueue's clock.
    pub fn queue_average_without(&self, queue: QueueId, entity: Option<EntityId>) -> Vruntime {
        let waits = |&entity: &EntityId| {
            let view = self.se(entity.0);
            view.on_rq && self.shared.line_of(view.cfs_rq) == queue.0 && !self.is_current(entity)
        };
        let Some(entity) = entity.filter(waits) else { return self.queue_average(queue) };
        let running = self.running_at(queue, self.rq_clock(self.cpu_of(queue)));
        let mut others = self.cfs(queue.0).clone();
        others.remove_waiting(entity.0);
        others.average_vruntime(running, self.shared.generation.fair.average_rounding)
    }

    /// A queue's current entity, even if it has left the queue already.
    pub fn current_of(&self, queue: QueueId) -> Option<EntityView> {
        self.cfs(queue.0).curr.map(|curr| self.entity_view(EntityId(curr)))
    }

    /// What it would be if the running entity were charged up to `clock`.
    pub fn queue_average_at(&self, queue: QueueId, clock: Ns) -> Vruntime {
        let running = self.running_at(queue, clock);
        self.cfs(queue.0).average_vruntime(running, self.shared.generation.fair.average_rounding)
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
    fn running_at(&self, queue: QueueId, clock: Ns) -> Option<CurrEntity> {
        let curr = self.shared.running_entity(queue.0)?;
        let charged = self.shared.virtual_time_of(curr, clock.0.saturating_sub(self.se(curr).exec_start));
        let running = self.shared.running(queue.0)?;
        Some(CurrEntity { vruntime: running.vruntime.plus(charged as i64), ..running })
    }

    /// The idle task of a CPU.
    pub fn idle_task(&self, cpu: Cpu) -> TaskId {
        self.shared.cpus[cpu.index()].idle
    }

    /// A task's policy.
    pub fn policy(&self, task: TaskId) -> Policy {
        self.task(task).policy
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
            let model = self.shared.pick_next_entity(queue.0).map(|(se, reason)| (EntityId(se), reason));
            LevelPick { queue, model, picked }
        };
        levels.into_iter().map(pick).collect()
    }

    /// The entities of the running task of `task`'s CPU and of `task` that share a queue: what a test for preemption
    /// compares. `None` when either task is not fair.
    pub fn compared_entities(&self, task: TaskId) -> Option<(EntityId, EntityId)> {
        let curr = self.curr(self.task(task).cpu);
        let both = [curr, task].map(|task| &self.shared.tasks[task.index()]);
        both.iter().all(|task| task.policy.is_fair()).then(|| {
            let (one, other) = self.shared.find_matching_se(both[0].se, both[1].se);
            (EntityId(one), EntityId(other))
        })
    }
}
