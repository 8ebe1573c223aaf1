//! Tasks that get another nice level or policy: probes announce it, and it takes effect when the trace shows the task taken
//! off its queue and put back.
//!
//! Must not know: how a decision is judged.

use fairlab_event::{Cpu, Pid, Prio};
use fairlab_kernel::{Policy, TaskId};

use super::super::probe::{Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::Walker;
use super::state::{ChangedBy, LentPriority, TaskParameters};

impl Walker {
    /// `set_user_nice()` begins.
    pub(super) fn on_nice(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some((task, nice)) = self.probed_task(probe).zip(nice_of(probe)) else { return };
        let policy = self.sched.policy(task);
        let parameters = TaskParameters { policy, nice, by: record.cpu, way: ChangedBy::Nice };
        let changes = policy.is_fair() && self.differs(task, &parameters);
        self.cpus[record.cpu.index()].announces = probe.task();
        if let Some(info) = self.info(task) {
            info.announced = Some(parameters).filter(|_| changes);
        }
    }

    /// `__sched_setscheduler()` begins: of a fair task that is queued it shows when this is done; of another it is done here.
    pub(super) fn on_set_scheduler(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some(task) = self.probed_task(probe) else { return };
        let Some(policy) = self.policy_of_probe(task, probe) else { return };
        self.take_request(task, probe);
        let nice = nice_of(probe).filter(|_| policy.is_fair());
        let parameters = TaskParameters {
            policy,
            nice: nice.unwrap_or(self.nice_of(task)),
            by: record.cpu,
            way: ChangedBy::Scheduler,
        };
        if self.differs(task, &parameters) {
            self.announce_or_give(record, task, parameters);
        }
    }

    /// A queued fair task shows when it is taken off its queue and put back; a running task shows it by a charge. For another
    /// task it is done here.
    fn announce_or_give(&mut self, record: &EventRecord, task: TaskId, parameters: TaskParameters) {
        if self.sched.is_on_queue(task) && (self.is_fair(task) || self.is_charged_next(task)) {
            self.cpus[record.cpu.index()].announces = Some(self.pid_of(task));
            if let Some(info) = self.info(task) {
                info.announced = Some(parameters);
            }
            return;
        }
        self.give_parameters(task, parameters);
        if self.is_fair(task) && self.sched.is_on_queue(task) {
            self.force_if_shown(task);
        }
    }

    /// Code on `cpu` has given what it announced, or there was nothing to give: another task runs there.
    pub(super) fn end_announcement(&mut self, cpu: Cpu) {
        let pid = self.cpus[cpu.index()].announces.take();
        if let Some(info) = pid.and_then(|pid| self.tasks.get_mut(&pid)) {
            info.announced = info.announced.filter(|parameters| parameters.by != cpu);
        }
    }

    /// `rt_mutex_setprio()` lends a task the priority `new`, or gives it back its own.
    pub(super) fn on_lend(&mut self, record: &EventRecord, pid: Pid, old: Prio, new: Prio) {
        let Some(info) = self.tasks.get(&pid) else { return };
        let (task, lent) = (info.id, info.lent);
        let own = lent.map_or(self.sched.policy(task), |lent| lent.own);
        let own_prio = match own {
            Policy::Fifo(urgency) | Policy::RoundRobin(urgency) => Prio(99 - i32::from(urgency)),
            _ => Prio::from_nice(self.nice_of(task)),
        };
        let policy = match new.nice() {
            None if new != own_prio => Policy::Fifo((99 - new.0).clamp(1, 99) as u8),
            _ => own,
        };
        if let Some(info) = self.info(task) {
            info.lent = Some(LentPriority { prio: new, own }).filter(|_| new != own_prio);
        }
        let way = ChangedBy::Lend { moves: old != new };
        let parameters = TaskParameters { policy, nice: self.nice_of(task), by: record.cpu, way };
        self.announce_or_give(record, task, parameters);
    }

    /// The slice that a task asks for with its policy, where the probe shows it.
    fn take_request(&mut self, task: TaskId, probe: &ProbeHit) {
        let Some(slice) = probe.unsigned(Key::Slice).filter(|_| self.sched.may_have_own_slices()) else {
            return;
        };
        self.sched.force_slice(task, slice);
    }

    /// A probe shows a task's slice, which it may have asked for.
    pub(super) fn follow_slice(&mut self, probe: &ProbeHit) {
        let shown = probe.unsigned(Key::Slice).filter(|&slice| slice > 0);
        if let (Some(task), Some(slice)) = (self.probed_task(probe), shown) {
            self.sched.force_slice(task, slice);
        }
    }

    /// Another nice level, unless the task has it already.
    pub(super) fn reniced(&self, task: TaskId, nice: i32, by: Cpu) -> Option<TaskParameters> {
        let policy = self.sched.policy(task);
        let parameters = TaskParameters { policy, nice, by, way: ChangedBy::Nice };
        Some(parameters).filter(|parameters| policy.is_fair() && self.differs(task, parameters))
    }

    /// Whether a task has not got these already.
    pub(super) fn differs(&self, task: TaskId, parameters: &TaskParameters) -> bool {
        let same_nice = !parameters.policy.is_fair() || parameters.nice == self.nice_of(task);
        let lends = matches!(parameters.way, ChangedBy::Lend { .. });
        lends || parameters.policy != self.sched.policy(task) || !same_nice
    }

    /// Gives a task what was announced.
    pub(super) fn give_parameters(&mut self, task: TaskId, parameters: TaskParameters) {
        match parameters.way {
            ChangedBy::Nice => self.sched.force_nice(task, parameters.nice, parameters.policy),
            ChangedBy::Scheduler => self.sched.force_scheduler(task, parameters.policy, parameters.nice),
            ChangedBy::Lend { moves } => self.sched.force_lent(task, parameters.policy, moves),
        }
    }

    /// Whether the next that shows of a running task is that it is charged.
    fn is_charged_next(&self, task: TaskId) -> bool {
        let runs = self.sched.curr(self.sched.task(task).cpu()) == task;
        let next = self.window.of_task(self.pid_of(task)).next();
        runs && next.is_some_and(|next| matches!(next.what, RecordKind::Runtime { .. }))
    }

    /// A running task of another class has been charged in that class: it may turn to the fair one.
    pub(super) fn turn_fair(&mut self, task: TaskId) {
        let Some(parameters) = self.info(task).and_then(|info| info.announced.take()) else { return };
        self.give_parameters(task, parameters);
        if self.is_fair(task) && self.sched.is_on_queue(task) {
            self.force_if_shown(task);
        }
    }

    /// Whether a running task is about to turn from the fair class to another.
    pub(super) fn leaves_class(&self, task: TaskId) -> bool {
        let announced = self.tasks.get(&self.pid_of(task)).and_then(|info| info.announced);
        announced.is_some_and(|parameters| !parameters.policy.is_fair())
    }

    /// The running task of a CPU, which has just been charged, turns to another class.
    pub(super) fn leave_class(&mut self, task: TaskId) {
        if let Some(parameters) = self.info(task).and_then(|info| info.announced.take()) {
            self.give_parameters(task, parameters);
        }
    }

    fn probed_task(&self, probe: &ProbeHit) -> Option<TaskId> {
        probe.task().and_then(|pid| self.tasks.get(&pid)).map(|info| info.id)
    }

    fn nice_of(&self, task: TaskId) -> i32 {
        self.sched.task(task).nice()
    }

    /// The policy that a probe names; how urgent a real-time one is shows in the task's next event.
    fn policy_of_probe(&self, task: TaskId, probe: &ProbeHit) -> Option<Policy> {
        const RESET_ON_FORK: i64 = 0x4000_0000;
        let pid = self.pid_of(task);
        let shown = || self.prio_shown_later(pid).filter(|prio| (0..99).contains(&prio.0));
        let urgency = shown().map_or(1, |prio| (99 - prio.0) as u8);
        match probe.get(Key::Policy)? as i32 as i64 & !RESET_ON_FORK {
            0 => Some(Policy::Normal),
            1 => Some(Policy::Fifo(urgency)),
            2 => Some(Policy::RoundRobin(urgency)),
            3 => Some(Policy::Batch),
            5 => Some(Policy::Idle),
            6 => Some(Policy::Deadline),
            _ => None,
        }
    }
}

fn nice_of(probe: &ProbeHit) -> Option<i32> {
    probe.get(Key::Nice).and_then(|nice| i32::try_from(nice).ok()).filter(|nice| (-20..=19).contains(nice))
}
