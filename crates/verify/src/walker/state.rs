//! What the walk knows besides the core's state: what is certain, and what was announced and is to come.
//!
//! Must not know: how a decision is judged.

use fairlab_event::{Cpu, Ns, Pid, Prio};
use fairlab_kernel::open_loop::{EntityId, QueueId};
use fairlab_kernel::{GroupId, Policy, TaskId, Vruntime};

use super::Walker;
use super::bandwidth::Unthrottled;
use super::judging::JoiningEntity;

/// What is known of a task.
#[derive(Clone, Debug)]
pub(super) struct TaskInfo {
    pub id: TaskId,
    /// A wakeup of it is under way.
    pub waking: bool,
    /// The event with which its last wakeup began.
    pub waking_since: u64,
    /// It was moved to another CPU while waking.
    pub moved: bool,
    pub exiting: bool,
    /// A change of nice level or policy that code on a CPU has announced and that is not applied yet.
    pub announced: Option<TaskParameters>,
    /// The priority that it is lent by one that waits for its lock.
    pub lent: Option<LentPriority>,
    /// The CPU whose code has announced a `sched_move_task()` that is not applied yet.
    pub moving_group: Option<Cpu>,
    /// The group that it was last moved to.
    pub moved_to: Option<GroupId>,
    /// It has left the queue of its old group for that, and is about to join that of the new one.
    pub joins_group: bool,
    /// It has called `sched_yield()`; and that has been applied since it was last switched.
    pub yielding: bool,
    pub yielded: bool,
    /// A wakeup of it has begun since it got the CPU.
    pub woken_running: bool,
    /// An event of this trace was about it.
    pub seen: bool,
    /// Its vruntime has been printed in this trace.
    pub printed: bool,
    /// It has been woken where it slept on its queue, and whether that queue was known then.
    pub requeued: Option<bool>,
    /// Whether it stays on its queue rested on what was known.
    pub stay_known: bool,
    /// A probe has shown it queued by the wakeup that is under way.
    pub activated: bool,
    /// The CPU to which that wakeup was left.
    pub coming_to: Option<Cpu>,
}

impl TaskInfo {
    pub fn new(id: TaskId) -> TaskInfo {
        TaskInfo {
            id,
            waking: false,
            waking_since: 0,
            moved: false,
            exiting: false,
            announced: None,
            lent: None,
            moving_group: None,
            moved_to: None,
            joins_group: false,
            yielding: false,
            yielded: false,
            woken_running: false,
            seen: false,
            printed: false,
            requeued: None,
            stay_known: false,
            activated: false,
            coming_to: None,
        }
    }
}

/// What a task is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskParameters {
    pub policy: Policy,
    pub nice: i32,
    /// The CPU whose code does so.
    pub by: Cpu,
    pub way: ChangedBy,
}

/// Which code gives it that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangedBy {
    /// `set_user_nice()`, which changes nice levels alone.
    Nice,
    /// `__sched_setscheduler()`.
    Scheduler,
    /// `rt_mutex_setprio()`, which changes no weight; and whether it changes the priority.
    Lend { moves: bool },
}

/// A priority that a task is lent.
#[derive(Clone, Copy, Debug)]
pub(super) struct LentPriority {
    pub prio: Prio,
    /// Its own policy meanwhile.
    pub own: Policy,
}

/// What is known of an entity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EntityInfo {
    /// Whether the core's vruntime (and deadline) of it is the kernel's.
    pub known: bool,
    /// Whether its lag of when it last left a queue is the kernel's.
    pub lag_known: bool,
    /// It is a group's that nothing is below, and whether it sleeps on its queue or has left it hangs on an average that was not known.
    pub stay_hidden: bool,
    /// Where a probe has just shown it being placed.
    pub placed: Option<ReturnedPlacement>,
    /// That has been judged already, before the step that includes it.
    pub place_judged: bool,
}

/// What `place_entity()` returned with.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReturnedPlacement {
    pub event: u64,
    pub vruntime: Vruntime,
    pub deadline: Option<Vruntime>,
}

/// A test for preemption that code on a CPU has entered.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreemptionTest {
    pub pid: Pid,
    /// A reschedule was pending where the task is queued: accounting follows, which may ask for one.
    pub pending: bool,
    /// Its waker is about to sleep, if that is shown.
    pub sync: Option<bool>,
}

/// A step that reweights entities.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeighingStep {
    /// In which interrupts it is done.
    pub contexts: (bool, bool),
    /// Whether it is one of the running task: its tick, or its dequeue.
    pub of_running: bool,
}

/// What is known of a CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuInfo {
    /// Whether every task on its queues is known to be there.
    pub queue_known: bool,
    /// The event from which on that holds again, after events of this CPU were lost.
    pub known_again: Option<u64>,
    /// Whether this CPU has reported anything, and when it did last.
    pub seen: bool,
    pub reported: Ns,
    /// Whether a switch here has shown since when its running task runs.
    pub pick_seen: bool,
    /// Whether it is known if its cache may have a wholly idle core.
    pub idle_cores_known: bool,
    /// Wakeups that were left to this CPU and have not arrived.
    pub wakeups_coming: u32,

    /// Its running task has left the queue and the switch is to come.
    pub blocked: bool,
    /// Code on this CPU takes something off its queues.
    pub in_dequeue: bool,
    /// The running task, while a probe has shown it being taken off its queue and not yet the end of that.
    pub dequeuing: Option<Pid>,
    /// The running task that a probe has shown going to sleep, until it has left.
    pub falling_asleep: Option<Pid>,
    /// Its running task was moved between groups: once it has been put back, a reschedule is pending.
    pub resched_due: bool,

    /// Whether a reschedule was pending when this CPU last reported, and whether the event itself showed that.
    pub need_resched: bool,
    pub resched_shown: bool,
    /// The charge that it has just reported asks for a reschedule.
    pub charge_asks: bool,
    /// Whether a reschedule was pending before the queue's last accounting, and the event of that.
    pub pending_before_charge: (bool, u64),
    /// The tick's probe was hit and its accounting is to come.
    pub in_tick: bool,
    /// The high-resolution tick has come, and its accounting is to come.
    pub in_hrtick: bool,
    /// The timer that expired last here is that of a group with a quota: what is accounted in it is no tick.
    pub in_group_timer: bool,

    /// The event with which the wakeup began that code on this CPU is about.
    pub waking_began: u64,
    /// The last that a probe has shown of code on this CPU: it asked for a reschedule of that CPU.
    pub asked_resched: Option<Cpu>,
    /// The test for preemption that a probe has shown code on this CPU entering.
    pub tested: Option<PreemptionTest>,
    /// Code on it leaves this wakeup to another CPU.
    pub leaves_wakeup: Option<(Pid, Cpu)>,
    /// The task that a probe has shown code on this CPU queueing last.
    pub queues: Option<Pid>,
    /// The task that a probe has shown code on this CPU waking where it slept on its queue.
    pub requeued: Option<Pid>,
    /// The entity to be requeued, while the charge that comes before is awaited.
    pub requeue_due: Option<EntityId>,

    /// Tasks that code on this CPU has taken off a queue and not yet put on another, each with the event of that.
    pub detached: Vec<(Pid, u64)>,
    /// Whether that was in a hardware and in a soft interrupt.
    pub detached_in: (bool, bool),
    /// The task whose change of nice level or policy code on this CPU has announced, until it switches.
    pub announces: Option<Pid>,
    /// The task that code on this CPU takes off a queue to put it back, as a probe has shown. If the core has put back a waiting
    /// task, where that comes to stand, until its place is shown.
    pub taken_off: Option<Pid>,
    pub put_back: Option<JoiningEntity>,
    /// The queue on which code on this CPU places an entity, and that entity if it sleeps there in the core still: the
    /// kernel has taken it off for the time.
    pub placing: Option<(QueueId, Option<EntityId>)>,
    /// An entity that slept on its queue and that code on this CPU takes off it.
    pub leaves_late: Option<EntityId>,
    /// Something was throttled here since the last switch: whether before or after another was picked is not told.
    pub throttles: bool,
    /// What code on this CPU lets back after it was throttled, until it is placed.
    pub returning: Option<Unthrottled>,
    /// The task that a probe has shown leaving since its group is throttled.
    pub leaving_throttled: Option<TaskId>,

    /// The event up to which changes of weight that code on this CPU makes have been made in the core already.
    pub weights_given: u64,
    /// The event up to which the core is ahead: its running task has been off its queue and on again already.
    pub ahead_until: u64,
    /// The group's entity whose weight code on this CPU is changing, and to what.
    pub reweighting: Option<(EntityId, u64)>,
    /// What code on this CPU has begun that reweights entities.
    pub step: Option<WeighingStep>,
}

/// Knowledge by entity and queue; grows as they come.
#[derive(Clone, Debug, Default)]
pub(super) struct WalkerKnowledge {
    entities: Vec<EntityInfo>,
    /// Whether the core's minimum (or zero) of a queue is the kernel's.
    minima: Vec<bool>,
}

impl WalkerKnowledge {
    pub fn entity(&self, entity: EntityId) -> EntityInfo {
        self.entities.get(entity.index()).copied().unwrap_or_default()
    }

    pub fn entity_mut(&mut self, entity: EntityId) -> &mut EntityInfo {
        if self.entities.len() <= entity.index() {
            self.entities.resize(entity.index() + 1, EntityInfo::default());
        }
        &mut self.entities[entity.index()]
    }

    fn knows_minimum(&self, queue: QueueId) -> bool {
        self.minima.get(queue.index()).copied().unwrap_or(false)
    }

    pub fn set_minimum_known(&mut self, queue: QueueId, known: bool) {
        if self.minima.len() <= queue.index() {
            self.minima.resize(queue.index() + 1, false);
        }
        self.minima[queue.index()] = known;
    }
}

impl Walker {
    pub(super) fn info(&mut self, task: TaskId) -> Option<&mut TaskInfo> {
        let pid = self.pid_of(task);
        self.tasks.get_mut(&pid)
    }

    /// Whether a task's vruntime is known.
    pub(super) fn is_known(&self, task: TaskId) -> bool {
        self.is_entity_known(self.sched.task_entity(task))
    }

    pub(super) fn is_entity_known(&self, entity: EntityId) -> bool {
        self.knowledge.entity(entity).known
    }

    pub(super) fn set_known(&mut self, task: TaskId, known: bool) {
        self.knowledge.entity_mut(self.sched.task_entity(task)).known = known;
    }

    pub(super) fn lag_known(&self, task: TaskId) -> bool {
        self.knowledge.entity(self.sched.task_entity(task)).lag_known
    }

    /// Whether a queue's minimum is known: nothing moves it that is not.
    pub(super) fn min_known(&self, queue: QueueId) -> bool {
        let moves = self.sched.current_of(queue);
        self.knowledge.knows_minimum(queue) && moves.is_none_or(|curr| self.is_entity_known(curr.id))
    }

    /// The root group's queue of a CPU.
    pub(super) fn root_queue(&self, cpu: Cpu) -> QueueId {
        // Every CPU has one.
        let root = self.sched.group_queue(GroupId::ROOT, cpu);
        root.unwrap_or_else(|| self.sched.queue_of(self.sched.task_entity(self.sched.idle_task(cpu))))
    }

    /// The queue on which a task competes, or competed last.
    pub(super) fn queue_of(&self, task: TaskId) -> QueueId {
        self.sched.queue_of(self.sched.task_entity(task))
    }

    /// Whether all that competes on a queue is known, and nothing is on its way there.
    pub(super) fn all_known(&self, queue: QueueId) -> bool {
        let view = self.sched.queue_view(queue);
        let cpu = self.sched.cpu_of(queue);
        self.cpus[cpu.index()].queue_known
            && !self.is_awaited(cpu)
            && !self.hides_sleeper(queue)
            && view.entities().all(|view| self.is_entity_known(view.id))
    }

    /// Whether a group's entity may sleep on a queue, or not.
    fn hides_sleeper(&self, queue: QueueId) -> bool {
        let cpu = self.sched.cpu_of(queue);
        let all = self.groups.all();
        let mut entities = all.into_iter().filter_map(|group| self.sched.group_entity(group, cpu));
        entities
            .any(|entity| self.knowledge.entity(entity).stay_hidden && self.sched.queue_of(entity) == queue)
    }

    /// Whether code on another CPU has taken a task off its queue to put it on one of `cpu`.
    fn is_awaited(&self, cpu: Cpu) -> bool {
        let others = (0..).map(Cpu).zip(&self.cpus).filter(|(by, _)| *by != cpu);
        let mut coming = others.flat_map(|(_, by)| &by.detached).filter_map(|(pid, _)| self.tasks.get(pid));
        coming.any(|info| self.sched.task(info.id).cpu() == cpu)
    }

    /// Whether the average of a queue is known: all that is on it is, or its zero if nothing is.
    pub(super) fn average_known(&self, queue: QueueId) -> bool {
        match self.sched.queue_view(queue).entities().next() {
            None => self.min_known(queue),
            Some(_) => self.all_known(queue),
        }
    }

    /// Whether the averages of entities' queues are known, before some of them leave.
    pub(super) fn averages_known(&self, entities: &[EntityId]) -> Vec<bool> {
        entities.iter().map(|&entity| self.average_known(self.sched.queue_of(entity))).collect()
    }

    /// Of entities that have left, the lag is known if they were and their queue's average was.
    pub(super) fn know_lags_of_gone(&mut self, entities: &[EntityId], averages: &[bool]) {
        for (&entity, &average) in entities.iter().zip(averages) {
            let view = self.sched.entity_view(entity);
            if !view.on_rq || view.delayed {
                let info = self.knowledge.entity_mut(entity);
                info.lag_known = average && info.known;
                info.stay_hidden = self.may_delay && view.task.is_none() && !info.lag_known;
                let queue = self.sched.queue_of(entity);
                let is_empty = self.sched.queue_view(queue).entities().next().is_none();
                // An empty queue's zero is where its average was.
                if self.by_lag && average && is_empty {
                    self.knowledge.set_minimum_known(queue, true);
                }
            }
        }
    }

    /// Something joins or leaves queues of `cpu`: running groups' entities are charged there at a moment that nothing shows, unless
    /// probes show the clock. Where they stand is not known until it is shown.
    pub(super) fn doubt_running_groups(&mut self, cpu: Cpu) {
        if !self.clocks_shown {
            self.forget_running_groups(cpu);
        }
    }

    /// Where the running groups' entities of `cpu` stand is not known until it is shown.
    pub(super) fn forget_running_groups(&mut self, cpu: Cpu) {
        for entity in self.sched.levels(self.sched.curr(cpu)).into_iter().skip(1) {
            self.knowledge.entity_mut(entity).known = false;
            self.knowledge.set_minimum_known(self.sched.queue_of(entity), false);
        }
    }
}
