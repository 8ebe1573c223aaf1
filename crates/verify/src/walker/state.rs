//! What the walk knows besides the core's state: what is certain, and what was announced and is to come.
//!
//! Must not know: how a decision is judged.

use std::collections::BTreeSet;

use fairlab_event::{Cpu, Ns, Pid, Prio};
use fairlab_kernel::open_loop::{EntityId, QueueId};
use fairlab_kernel::{GroupId, Policy, TaskId, Vruntime};

use super::super::probe::ProbeHit;
use super::Walker;
use super::affinity::Affinity;
use super::balancing::{BalanceSearch, CpuBalancing, LeavingTask};
use super::bandwidth::Unthrottled;
use super::judging::JoiningEntity;
use super::selections::UtilDoubt;

/// How many values of a queue's minimum are remembered, for reads of it without its lock.
const MINIMA_KEPT: usize = 16;

/// What is known of a task.
#[derive(Clone, Debug)]
pub(super) struct TaskInfo {
    pub id: TaskId,
    /// A wakeup of it is under way.
    pub waking: bool,
    /// The event with which its last wakeup began.
    pub waking_since: u64,
    /// It was moved to another CPU while waking: from where, and with what.
    pub moved: Option<MovedWhileWaking>,
    pub exiting: bool,
    /// It has been taken off its queue and put back for that.
    pub requeued_to_end: bool,
    /// The group of its session.
    pub session: Option<GroupId>,
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
    /// The trace shows when it leaves the queue on which it sleeps.
    pub stay_shown: bool,
    /// Whether it stays on its queue rested on what was known.
    pub stay_known: bool,
    /// A probe has shown it queued by the wakeup that is under way.
    pub activated: bool,
    /// The CPU to which that wakeup was left.
    pub coming_to: Option<Cpu>,
    /// How far its utilization may be from the kernel's.
    pub util_doubt: UtilDoubt,
    pub affinity: Affinity,
}

impl TaskInfo {
    pub fn new(id: TaskId) -> TaskInfo {
        TaskInfo {
            id,
            waking: false,
            waking_since: 0,
            moved: None,
            exiting: false,
            requeued_to_end: false,
            stay_known: false,
            session: None,
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
            stay_shown: false,
            activated: false,
            coming_to: None,
            util_doubt: UtilDoubt::default(),
            affinity: Affinity::default(),
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

/// A move of a task that is being woken.
#[derive(Clone, Copy, Debug)]
pub(super) struct MovedWhileWaking {
    pub orig: QueueId,
    /// Its vruntime on the queue that it left.
    pub vruntime: Vruntime,
    /// The event that reports the move.
    pub event: u64,
    /// Whether the minimum of that queue was known.
    pub orig_known: bool,
}

/// What is known of an entity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EntityInfo {
    /// Whether the core's vruntime (and deadline) of it is the kernel's.
    pub known: bool,
    /// Whether its lag of when it last left a queue is the kernel's.
    pub lag_known: bool,
    /// Whether its distance to its deadline is the kernel's, wherever it stands.
    pub request_known: bool,
    /// It may have asked for a slice of its own, of a size that probes show, or nothing.
    pub request_shown: bool,
    pub request_hidden: bool,
    /// How far the core's lag may be from the kernel's, because the weights that scaled it are not shown to the last bit;
    /// virtual ns.
    pub lag_slack: u64,
    /// Where a probe has just shown it being placed.
    pub placed: Option<ReturnedPlacement>,
    /// That has been judged already, before the step that includes it.
    pub place_judged: bool,
    /// How often it has been charged, since the kernel's place of it was last seen, at moments that the trace does not
    /// print.
    pub unprinted: u32,
}

/// What `place_entity()` returned with.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReturnedPlacement {
    pub event: u64,
    pub vruntime: Vruntime,
    pub deadline: Option<Vruntime>,
}

/// What is known of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueInfo {
    /// Whether the core's minimum (or zero) of it is the kernel's.
    pub min_known: bool,
    /// Whether something on it has another weight than the core's, and nothing shows since when.
    pub weights_doubted: bool,
    /// Past values of the minimum, newest last, each with the event since which it held; and how many there were in all.
    pub minima: Vec<(Vruntime, u64)>,
    pub minima_seen: u64,
    /// The latter when the reading of the snapshot began.
    pub minima_at_snapshot: u64,
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

/// What is known of a CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuInfo {
    /// Whether every task on its queues is known to be there.
    pub queue_known: bool,
    /// The event from which on that holds again, after events of this CPU were lost.
    pub known_again: Option<u64>,
    /// The idle state that it is in, by its number.
    pub idle_state: Option<u32>,
    /// Its running task has left the queue and the switch is to come.
    pub blocked: bool,
    /// Its running task, once it has switched: in the core it sleeps on the queue, in the kernel not. Beside it whether the core
    /// knew what that rests on.
    pub leaves_by_switch: Option<(TaskId, bool)>,
    /// Sleepers that leave their queue in the test for preemption of a task that code on this CPU is waking.
    pub leaves_in_test: Vec<TaskId>,
    /// The task that code on this CPU is waking.
    pub waking: Option<Pid>,
    /// Tasks that code on this CPU has taken off a queue and not yet put on another, each with the event of that.
    pub detached: Vec<(Pid, u64)>,
    /// Whether that was in a hardware and in a soft interrupt.
    pub detached_in: (bool, bool),
    /// Whether a reschedule was pending when this CPU last reported, and since which event.
    pub need_resched: bool,
    /// The flag as its last event showed it.
    pub resched_shown: bool,
    pub pending_since: u64,
    /// Whether a search for an idle CPU by code on this one went over the whole cache when it last showed, or over as few CPUs as
    /// possible.
    pub searches_go_far: Option<bool>,
    /// The CPU whose running task code on this one has just charged.
    pub charged: Option<Cpu>,
    /// The charge that it has just reported asks for a reschedule.
    pub charge_asks: bool,
    /// The last event of a wakeup that code on this CPU is about, before `sched_wakeup` itself.
    pub waking_seen: u64,
    /// The event with which that wakeup began.
    pub waking_began: u64,
    /// The task whose change of nice level or policy code on this CPU has announced, until it switches.
    pub announces: Option<Pid>,
    /// The last that a probe has shown of code on this CPU: it asked for a reschedule of that CPU.
    pub asked_resched: Option<Cpu>,
    /// The CPU that code on this one has last interrupted in a test for preemption, and the event of that.
    pub preempts: Option<(Cpu, u64)>,
    /// The test for preemption that a probe has shown code on this CPU entering.
    pub tested: Option<PreemptionTest>,
    /// Its running task was moved between groups: once it has been put back, a reschedule is pending.
    pub resched_due: bool,
    /// The queue on which code on this CPU places an entity, and that entity if it sleeps there in the core still: the
    /// kernel has taken it off for the time.
    pub placing: Option<(QueueId, Option<EntityId>)>,
    /// The event up to which changes of weight that code on this CPU makes have been made in the core already.
    pub weights_given: u64,
    /// The event up to which the core is ahead: its running task has been off its queue and on again already.
    pub ahead_until: u64,
    /// The group's entity whose weight code on this CPU is changing, and to what.
    pub reweighting: Option<(EntityId, u64)>,
    /// The CPU on whose queue code on this one reweights an entity, since its group has got new shares.
    pub weighs: Option<Cpu>,
    /// Whether code on this CPU has begun something that reweights entities, and in which interrupts.
    pub step: Option<(bool, bool)>,
    /// The running task, while a probe has shown it being taken off its queue and not yet the end of that.
    pub dequeuing: Option<Pid>,
    /// The running task that a probe has shown going to sleep, until it has left.
    pub falling_asleep: Option<Pid>,
    /// The tick's probe was hit and its accounting is to come.
    pub in_tick: bool,
    /// The high-resolution tick has come, and its accounting is to come.
    pub in_hrtick: bool,
    /// The timer that expired last here is that of a group with a quota: what is accounted in it is no tick.
    pub in_group_timer: bool,
    /// Whether a reschedule was pending before the queue's last accounting, and the event of that.
    pub pending_before_charge: (bool, u64),
    /// The task whose sleep code on this CPU has just reported as ended: it had left its queue.
    pub sleep_ended: Option<Pid>,
    /// The CPU whose queues code on this one takes an entity off, and the event that began this.
    pub dequeues: Option<Cpu>,
    pub dequeues_since: u64,
    /// An entity that slept on its queue and that code on this CPU takes off it.
    pub leaves_late: Option<EntityId>,
    /// The task that code on this CPU takes off a queue to put it back, as a probe has shown. If the core has put back a waiting
    /// task, where that comes to stand, until its place is shown.
    pub taken_off: Option<Pid>,
    pub put_back: Option<JoiningEntity>,
    /// The task that a probe has shown code on this CPU waking where it slept on its queue.
    pub requeued: Option<Pid>,
    /// The entity to be requeued, while the charge that comes before is awaited.
    pub requeue_due: Option<EntityId>,
    /// What code on this CPU lets back after it was throttled, until it is placed.
    pub returning: Option<Unthrottled>,
    /// The task that a probe has shown leaving since its group is throttled.
    pub leaving_throttled: Option<TaskId>,
    /// The task that a probe has shown code on this CPU queueing last.
    pub queues: Option<Pid>,
    /// The last that a probe has shown a task being queued here.
    pub enqueued: Option<EnqueueSeen>,
    /// When this CPU last reported anything.
    pub reported: Ns,
    /// The event that last told its runqueue's clock where no accounting was printed.
    pub clock_shown: u64,
    /// How much its runqueue's clock was ahead of the trace's at its last accounting, ns.
    pub clock_ahead: Option<i64>,
    /// Placements and changes of weight that code on this CPU has traced, of a step that the core has not done yet, each with its
    /// event. Then the events of steps that it has done.
    pub traced: Vec<(u64, ProbeHit)>,
    pub traced_done: BTreeSet<u64>,
    /// Whether a switch here has shown since when its running task runs.
    pub pick_seen: bool,
    /// What was shown last of its root queue's averages, and how far at least their clock is behind the trace's (less than
    /// nothing: ahead of it), once that is known.
    pub averages: Option<AveragesShown>,
    pub averages_behind: Option<i64>,
    /// Its running task was picked again since it last got the CPU: whether its slice is still protected hangs on more than
    /// itself.
    pub picked_again: bool,
    /// When in the tick's period the tick comes, where only that tells it from other timers, ns.
    pub tick_phase: Option<u64>,
    /// When its last tick came.
    pub ticked_at: Option<Ns>,
    /// When it was last called to queue what was left to it, in kernels where it looks idle from then on.
    pub called_at: Option<Ns>,
    /// It has begun to balance in the soft interrupt with the last that it reported.
    pub in_balancing: bool,
    /// It is in the interrupt that ticks, and has not come to that.
    pub tick_comes: bool,
    /// Whether it idled at its last tick, if it has run nothing else since: a balancing that follows is that of an idle CPU.
    pub idled_at_tick: Option<bool>,
    /// It has done new-idle balancing since it last balanced.
    pub wanted_work: bool,
    /// Whether the trace has shown it going idle, or a probe since when it idles.
    pub idle_time_known: bool,
    /// Since when it idles, until a task is woken there.
    pub idle_since: Option<Ns>,
    /// Wakeups that were left to this CPU and have not arrived.
    pub wakeups_coming: u32,
    /// Whether its cache may have a wholly idle core is known, since one has gone idle or a search has found none.
    pub idle_cores_known: bool,
    /// When a task last joined its queue that brought load of before the trace.
    pub load_doubted: Option<Ns>,
    /// Whether this CPU has reported anything.
    pub seen: bool,
    /// What code on it balances.
    pub balancing: CpuBalancing,
    /// What it looks for to take.
    pub looking: Option<BalanceSearch>,
    /// When it last reported anything.
    pub reported_at: Ns,
    /// Its task had left its queues, or was to, before its last report.
    pub was_blocked: bool,
    /// Its task is about to leave its queues.
    pub leaving: Option<LeavingTask>,
    /// Code on it leaves this wakeup to another CPU.
    pub leaves_wakeup: Option<(Pid, Cpu)>,
}

/// A probe has shown a task being queued: its runqueue's clock was updated since code on this CPU last reported anything.
#[derive(Clone, Copy, Debug)]
pub(super) struct EnqueueSeen {
    pub event: u64,
    pub time: Ns,
    pub not_before: Ns,
}

/// Averages of a root queue as a probe shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AveragesShown {
    /// When it was shown.
    pub time: Ns,
    /// When they were computed, on their own clock.
    pub computed: u64,
    pub load: u64,
    pub runnable: u64,
    pub util: u64,
}

/// Knowledge by entity, queue and CPU; grows as they come.
#[derive(Clone, Debug, Default)]
pub(super) struct WalkerKnowledge {
    entities: Vec<EntityInfo>,
    queues: Vec<QueueInfo>,
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

    pub fn queue(&self, queue: QueueId) -> Option<&QueueInfo> {
        self.queues.get(queue.index())
    }

    pub fn queue_mut(&mut self, queue: QueueId) -> &mut QueueInfo {
        if self.queues.len() <= queue.index() {
            self.queues.resize(queue.index() + 1, QueueInfo::default());
        }
        &mut self.queues[queue.index()]
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
        let info = self.knowledge.entity(entity);
        info.known && !info.request_hidden
    }

    pub(super) fn set_known(&mut self, task: TaskId, known: bool) {
        self.knowledge.entity_mut(self.sched.task_entity(task)).known = known;
    }

    pub(super) fn lag_known(&self, task: TaskId) -> bool {
        self.knowledge.entity(self.sched.task_entity(task)).lag_known
    }

    pub(super) fn min_known(&self, queue: QueueId) -> bool {
        self.knowledge.queue(queue).is_some_and(|info| info.min_known)
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

    /// Whether all that competes on a queue is known.
    pub(super) fn all_known(&self, queue: QueueId) -> bool {
        let view = self.sched.queue_view(queue);
        let cpu = self.sched.cpu_of(queue);
        self.cpus[cpu.index()].queue_known && view.entities().all(|view| self.is_entity_known(view.id))
    }

    /// Whether the average of a queue is known: all that is on it is, or its zero if nothing is.
    ///
    /// Where nothing shows points of the time line, only distances count, and an empty queue may have its zero anywhere.
    pub(super) fn average_known(&self, queue: QueueId) -> bool {
        let cpu = self.sched.cpu_of(queue);
        match self.sched.queue_view(queue).entities().next() {
            None if self.by_lag && !self.points_shown => self.cpus[cpu.index()].queue_known,
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
                let queue = self.sched.queue_of(entity);
                let is_empty = self.sched.queue_view(queue).entities().next().is_none();
                // An empty queue's zero is where its average was.
                self.knowledge.queue_mut(queue).min_known |= self.by_lag && average && is_empty;
            }
        }
    }

    /// Notes a queue's minimum after something may have moved it.
    pub(super) fn note_minimum(&mut self, queue: QueueId) {
        let minimum = self.sched.queue_view(queue).min_vruntime;
        let event = self.seen.events;
        let info = self.knowledge.queue_mut(queue);
        if info.minima.last().is_none_or(|(last, _)| *last != minimum) {
            if info.minima.len() == MINIMA_KEPT {
                info.minima.remove(0);
            }
            info.minima.push((minimum, event));
            info.minima_seen += 1;
        }
    }

    /// Notes the minima of the queues of all levels of a task.
    pub(super) fn note_minima(&mut self, task: TaskId) {
        for entity in self.sched.levels(task) {
            self.note_minimum(self.sched.queue_of(entity));
        }
    }
}
