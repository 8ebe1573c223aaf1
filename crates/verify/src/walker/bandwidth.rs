//! Groups with a quota: which are throttled, as probes show. Runtime itself is not followed.
//!
//! Must not know: quotas, periods, pools.

use fairlab_event::Cpu;
use fairlab_kernel::TaskId;
use fairlab_kernel::open_loop::{EntityId, QueueId};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::Walker;
use super::judging::JoiningEntity;

/// What comes back after it was throttled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unthrottled {
    /// A queue, with the entities of its groups.
    Queue(QueueId),
    /// A task that waited for its group, where tasks leave one by one.
    Task(TaskId),
}

impl Walker {
    /// Whether a decision hangs on whether a group with a quota is throttled, and nothing shows that: the group has tasks
    /// on the queue's CPU, or, where CPUs are compared, on any.
    pub(super) fn hides_throttling(&self, kind: DecisionKind, case: &str, queue: QueueId) -> bool {
        let all = match kind {
            _ if self.recording.shows_throttling => return false,
            // What a task is charged is its own.
            DecisionKind::Vruntime if !case.starts_with("group ") => return false,
            DecisionKind::WakeupCpu | DecisionKind::Balance => true,
            _ => false,
        };
        let here = self.sched.cpu_of(queue);
        let cpus = (0..self.cpus.len()).map(|cpu| Cpu(cpu as u32)).filter(|&cpu| all || cpu == here);
        let has_tasks = |group, cpu| {
            let queue = self.sched.group_queue(group, cpu);
            queue.is_some_and(|queue| self.sched.queue_view(queue).entities().next().is_some())
        };
        cpus.into_iter().any(|cpu| self.groups.limited().any(|group| has_tasks(group, cpu)))
    }

    /// Whether a task that is queued on a CPU that goes idle waits for its throttled group: where nothing else shows that,
    /// it shows it now.
    pub(super) fn is_throttled_by_now(&mut self, task: TaskId) -> bool {
        if !self.sched.is_throttled(self.queue_of(task)) && !self.recording.shows_throttling {
            let limited = |queue: &QueueId| self.groups.is_limited_itself(self.sched.group_of_queue(*queue));
            let queues = self.sched.levels(task).into_iter().map(|entity| self.sched.queue_of(entity));
            if let Some(queue) = queues.collect::<Vec<_>>().into_iter().find(limited) {
                self.sched.force_throttled(queue);
            }
        }
        self.sched.is_throttled(self.queue_of(task))
    }

    /// A task that gets the CPU is not throttled any more: where nothing has shown that, its groups are back, somewhere.
    pub(super) fn return_unseen(&mut self, next: TaskId) {
        if self.recording.shows_throttling || !self.sched.is_throttled(self.queue_of(next)) {
            return;
        }
        for entity in self.sched.levels(next) {
            self.sched.force_unthrottled(self.sched.queue_of(entity));
        }
        for entity in self.sched.levels(next).into_iter().skip(1) {
            let info = self.knowledge.entity_mut(entity);
            (info.known, info.lag_known) = (false, false);
        }
    }

    /// A queue is about to be throttled. Where tasks leave one by one, that shows in themselves.
    pub(super) fn on_throttle(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let queue = self.probed_queue(probe).filter(|_| !self.sched.throttles_tasks());
        let Some(queue) = queue.filter(|_| self.is_throttled_by(record.number, probe)) else { return };
        let levels = self.levels_above(queue);
        let cpu = self.sched.cpu_of(queue);
        self.cpus[cpu.index()].throttles = true;
        if levels.first().is_some_and(|&entity| self.sched.is_current(entity)) {
            self.account_levels(cpu);
            self.doubt_running_groups(cpu);
        }
        let averages = self.averages_known(&levels);
        self.give_coming_weights(record.cpu, |later| !is_part_of_step(later));
        self.sched.force_throttled(queue);
        self.sched.flush_given_weights(cpu);
        self.know_lags_of_gone(&levels, &averages);
    }

    /// Whether a queue that has used its runtime is throttled at event `number`, which a probe shows: if the pool has some, it
    /// gets that instead, without a word. One that is throttled leaves the queue above, if it was there, picks nothing, and
    /// is not throttled again before it is back.
    fn is_throttled_by(&self, number: u64, throttle: &ProbeHit) -> bool {
        let address = throttle.unsigned(Key::CfsRq);
        let next = self.window.all().filter(|later| later.number > number).find_map(|later| {
            let RecordKind::Probe(probe) = &later.what else { return None };
            match probe.at {
                At::DequeueEntity if probe.unsigned(Key::MyQueue) == address => Some(true),
                At::Unthrottle if probe.unsigned(Key::CfsRq) == address => Some(true),
                At::Throttle | At::PickReturn if probe.unsigned(Key::CfsRq) == address => Some(false),
                _ => None,
            }
        });
        next.unwrap_or(true)
    }

    /// Queues that are throttled when a task of `cpu` joins them, in a step that begins here and that `ends` ends.
    pub(super) fn throttle_before(&mut self, cpu: Cpu, ends: impl Fn(&EventRecord) -> bool) {
        if self.sched.throttles_tasks() {
            return;
        }
        let coming = self.window.on_cpu(cpu).take_while(|record| !ends(record));
        let throttled = coming.filter_map(|record| match &record.what {
            RecordKind::Probe(probe)
                if probe.at == At::Throttle && self.is_throttled_by(record.number, probe) =>
            {
                self.probed_queue(probe)
            }
            _ => None,
        });
        for queue in throttled.collect::<Vec<_>>() {
            self.sched.force_throttled(queue);
        }
    }

    /// A throttled queue is about to run again: what it queues is queued once its place is shown.
    pub(super) fn on_unthrottle(&mut self, record: &EventRecord, probe: &ProbeHit) {
        if let Some(queue) = self.probed_queue(probe).filter(|_| !self.sched.throttles_tasks()) {
            self.return_throttled(record, false);
            self.cpus[record.cpu.index()].returning = Some(Unthrottled::Queue(queue));
        }
    }

    /// A task that waited for its group is about to be queued, unless it only comes to wait for another that is throttled, too:
    /// then it is not placed.
    pub(super) fn note_return_of_task(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let task = probe.task().and_then(|pid| self.tasks.get(&pid)).map(|info| info.id);
        let Some(task) = task.filter(|&task| self.sched.is_in_limbo(task)) else { return };
        let is_placed = {
            let mut coming = self.window.on_cpu(record.cpu).take_while(|later| is_part_of_step(later));
            coming.any(|later| {
                matches!(&later.what, RecordKind::Probe(later) if later.at == At::Place && later.task() == probe.task())
            })
        };
        if is_placed {
            self.return_throttled(record, false);
            self.cpus[record.cpu.index()].returning = Some(Unthrottled::Task(task));
        }
    }

    /// A task leaves its queue; a flag says whether that is because its group is throttled.
    pub(super) fn note_throttled_leave(&mut self, record: &EventRecord, probe: &ProbeHit) {
        /// `DEQUEUE_THROTTLE`.
        const THROTTLE: u64 = 1 << 17;
        let throttled = probe.unsigned(Key::Flags).is_some_and(|flags| flags & THROTTLE != 0);
        let task = probe.task().and_then(|pid| self.tasks.get(&pid)).map(|info| info.id);
        self.cpus[record.cpu.index()].leaving_throttled =
            task.filter(|_| throttled && self.sched.throttles_tasks());
    }

    /// It has been charged, and has left.
    pub(super) fn leave_throttled(&mut self, record: &EventRecord) {
        let Some(task) = self.cpus[record.cpu.index()].leaving_throttled.take() else { return };
        // When another is picked then shows nowhere.
        let cpu = self.sched.task(task).cpu();
        self.cpus[cpu.index()].throttles = true;
        self.doubt_running_groups(cpu);
        let levels = self.sched.levels(task);
        let averages = self.averages_known(&levels);
        self.account_levels(self.sched.task(task).cpu());
        self.sched.force_into_limbo(task);
        self.sched.flush_given_weights(self.sched.task(task).cpu());
        self.know_lags_of_gone(&levels, &averages);
    }

    /// A place is shown of what code on this CPU lets back: after the last one it is queued.
    pub(super) fn return_if_placed(&mut self, record: &EventRecord) {
        let places =
            |later: &EventRecord| matches!(&later.what, RecordKind::Probe(probe) if probe.at == At::Place);
        let is_last = {
            let mut coming = self.window.on_cpu(record.cpu).take_while(|later| is_part_of_step(later));
            !coming.any(places)
        };
        if is_last {
            self.return_throttled(record, true);
        }
    }

    /// What code on this CPU lets back is queued now, and its places are compared. `weights_come`: the step goes on, and
    /// with it what gives groups' entities their weights.
    fn return_throttled(&mut self, record: &EventRecord, weights_come: bool) {
        let Some(returning) = self.cpus[record.cpu.index()].returning.take() else { return };
        let (cpu, entities) = match returning {
            Unthrottled::Queue(queue) => (self.sched.cpu_of(queue), self.levels_above(queue)),
            Unthrottled::Task(task) => (self.sched.task(task).cpu(), self.sched.levels(task)),
        };
        self.doubt_running_groups(cpu);
        let joining = self.returning(record, entities);
        if weights_come {
            self.give_coming_weights(record.cpu, |later| !is_part_of_step(later));
        }
        match returning {
            Unthrottled::Queue(queue) => self.sched.force_unthrottled(queue),
            Unthrottled::Task(task) => self.sched.force_out_of_limbo(task),
        }
        self.sched.flush_given_weights(cpu);
        // An empty queue comes back without its entity.
        let joined = joining.into_iter().filter(|joined| self.sched.entity_view(joined.entity).on_rq);
        self.judge_placements(record, joined.collect());
    }

    fn returning(&self, record: &EventRecord, entities: Vec<EntityId>) -> Vec<JoiningEntity> {
        let waiting = entities.into_iter().take_while(|&entity| !self.sched.entity_view(entity).on_rq);
        let since = record.number.saturating_sub(1);
        let joining = |entity| {
            let known = self.group_place_known(entity);
            JoiningEntity { entity, case: "after throttling", known, since }
        };
        waiting.map(joining).collect()
    }

    /// Where nothing had to be placed, a throttled queue has come back once the step is over.
    pub(super) fn settle_returned(&mut self, record: &EventRecord) {
        if !is_part_of_step(record) {
            self.return_throttled(record, false);
        }
    }

    /// The entities above a queue, from its own group's up to the root.
    fn levels_above(&self, queue: QueueId) -> Vec<EntityId> {
        let up = |entity: &EntityId| self.sched.entity_above(self.sched.queue_of(*entity));
        std::iter::successors(self.sched.entity_above(queue), up).collect()
    }
}

/// Whether an event is part of a step that takes entities off queues or puts them there, and not what follows.
pub(super) fn is_part_of_step(record: &EventRecord) -> bool {
    match &record.what {
        RecordKind::Runtime { .. } | RecordKind::OtherProbe => true,
        RecordKind::Probe(probe) => !matches!(
            probe.at,
            At::Tick
                | At::EnqueueTask
                | At::WakeupPreempt
                | At::Throttle
                | At::Unthrottle
                | At::PickReturn
                | At::PutPrevEntity
                | At::SetNextEntity
                | At::SetNextTask
                | At::SelectTaskRq
                | At::DequeueEntities
                | At::NewidleBalanceReturn
        ),
        _ => false,
    }
}
