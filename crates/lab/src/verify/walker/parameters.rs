//! Tasks that are given another nice level or policy: probes announce it, and it is done where the trace shows that the task
//! is taken off its queue and put back.
//!
//! Must not know: how a decision is judged.

use fairlab_event::Cpu;
use fairlab_kernel::{Policy, TaskId};

use super::super::probe::{Key, Probe};
use super::super::record::Record;
use super::Walker;
use super::state::Parameters;

impl Walker {
    /// `set_user_nice()` begins.
    pub(super) fn on_nice(&mut self, record: &Record, probe: &Probe) {
        let Some((task, nice)) = self.probed_task(probe).zip(nice_of(probe)) else { return };
        let policy = self.sched.policy(task);
        let parameters = Parameters { policy, nice, by: record.cpu, as_nice: true };
        let changes = policy.is_fair() && self.differs(task, &parameters);
        if let Some(info) = self.info(task) {
            info.announced = Some(parameters).filter(|_| changes);
        }
    }

    /// `__sched_setscheduler()` begins: of a fair task that is queued it shows when this is done; of another it is done here.
    pub(super) fn on_set_scheduler(&mut self, record: &Record, probe: &Probe) {
        let Some(task) = self.probed_task(probe) else { return };
        let Some(policy) = self.policy_of_probe(task, probe) else { return };
        let old = self.sched.policy(task);
        let nice = nice_of(probe).filter(|_| policy.is_fair());
        let parameters =
            Parameters { policy, nice: nice.unwrap_or(self.nice_of(task)), by: record.cpu, as_nice: false };
        if !self.differs(task, &parameters) {
            return;
        }
        if self.sched.is_on_queue(task) && old.is_fair() {
            if let Some(info) = self.info(task) {
                info.announced = Some(parameters);
            }
            return;
        }
        self.follow_clock(record, self.sched.task(task).cpu());
        self.give_parameters(task, parameters);
        if self.is_fair(task) && self.sched.is_on_queue(task) {
            self.force_if_shown(task);
        }
    }

    /// Another nice level, unless the task has it already.
    pub(super) fn reniced(&self, task: TaskId, nice: i32, by: Cpu) -> Option<Parameters> {
        let policy = self.sched.policy(task);
        let parameters = Parameters { policy, nice, by, as_nice: true };
        Some(parameters).filter(|parameters| policy.is_fair() && self.differs(task, parameters))
    }

    /// Whether a task has not got these already.
    pub(super) fn differs(&self, task: TaskId, parameters: &Parameters) -> bool {
        let same_nice = !parameters.policy.is_fair() || parameters.nice == self.nice_of(task);
        parameters.policy != self.sched.policy(task) || !same_nice
    }

    /// Gives a task what was announced.
    pub(super) fn give_parameters(&mut self, task: TaskId, parameters: Parameters) {
        match parameters.as_nice {
            true => self.sched.force_nice(task, parameters.nice, parameters.policy),
            false => self.sched.force_scheduler(task, parameters.policy, parameters.nice),
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
            self.note_minima(task);
        }
    }

    fn probed_task(&self, probe: &Probe) -> Option<TaskId> {
        probe.task().and_then(|pid| self.tasks.get(&pid)).map(|info| info.id)
    }

    fn nice_of(&self, task: TaskId) -> i32 {
        self.sched.task(task).nice()
    }

    /// The policy that a probe names; how urgent a real-time one is shows in the task's next event.
    fn policy_of_probe(&self, task: TaskId, probe: &Probe) -> Option<Policy> {
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
            _ => None,
        }
    }
}

fn nice_of(probe: &Probe) -> Option<i32> {
    probe.get(Key::Nice).and_then(|nice| i32::try_from(nice).ok()).filter(|nice| (-20..=19).contains(nice))
}
