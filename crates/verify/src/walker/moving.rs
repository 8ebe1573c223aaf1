//! Tasks that are moved between groups: a probe announces it (`sched_move_task()`), and the cgroup event that follows names
//! the group.
//!
//! A running task is taken off its queue and put back when it is charged. A waiting task changes when probes, or the end of
//! its wait, show it leaving and joining. Any other task has changed at once.
//!
//! Must not know: how a decision is judged.

use std::collections::BTreeSet;

use fairlab_event::Pid;
use fairlab_kernel::{GroupId, TaskId};

use super::super::probe::{At, ProbeHit};
use super::super::record::{CgroupName, EventRecord, RecordKind};
use super::Walker;

/// How many events after the beginning of a move the cgroup event that reports it is looked for.
const ATTACHED_WITHIN: usize = 1 << 14;

impl Walker {
    /// `sched_move_task()` begins.
    pub(super) fn on_move_group(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let task = probe.task().and_then(|pid| self.tasks.get(&pid)).map(|info| info.id);
        let Some(task) = task else { return };
        let group = self.group_of_move(record, self.pid_of(task));
        let begins_session = group.is_none() && self.recording.autogroups_enabled;
        let Some(info) = self.info(task) else { return };
        info.moved_to = group;
        let ends = info.exiting;
        // Which queues such a group has is not followed.
        self.groups_hidden |= begins_session && !ends;
        let runs = self.sched.curr(self.sched.task(task).cpu()) == task;
        if self.sched.is_in_limbo(task) {
            // Where that is not throttled, it comes back with the next probe.
            if let Some(group) = self.group_moved_to(self.pid_of(task)) {
                self.sched.regroup_in_limbo(task, group);
            }
        } else if runs || (self.waits(task) && self.is_fair(task)) {
            if let Some(info) = self.info(task) {
                info.moving_group = Some(record.cpu);
            }
        } else {
            self.regroup(task);
        }
    }

    /// A task that was still to be switched when code on another CPU began to move it has left its queue by itself.
    pub(super) fn regroup_departed(&mut self, task: TaskId) {
        let sleeps = !self.sched.is_on_queue(task);
        if sleeps && self.info(task).is_some_and(|info| info.moving_group.take().is_some()) {
            self.regroup(task);
        }
    }

    /// The group that a task is being moved to. One that ends is attached to a cgroup in name only.
    pub(super) fn group_moved_to(&self, pid: Pid) -> Option<GroupId> {
        self.tasks.get(&pid).filter(|info| !info.exiting)?.moved_to
    }

    /// The group that a task is being moved to as `sched_move_task()` begins: that of the cgroup to which code of the caller reports
    /// next that it attached the task's process.
    fn group_of_move(&self, record: &EventRecord, pid: Pid) -> Option<GroupId> {
        self.groups.called(&self.attached_next(record.context, pid)?)
    }

    /// The cgroup to which `by` moves a task: the event that tells of it comes after all threads of a process
    /// have been moved, the first one first, and names that one.
    fn attached_next(&self, by: Pid, pid: Pid) -> Option<CgroupName> {
        let mut moved_later = BTreeSet::new();
        let coming = self.window.all().take(ATTACHED_WITHIN).filter(|record| record.context == by);
        for record in coming {
            match &record.what {
                RecordKind::CgroupAttach { pid: first, cgroup } => {
                    let others = *first != pid && (pid == by || moved_later.contains(first));
                    return Some(cgroup.clone()).filter(|_| !others);
                }
                RecordKind::Exit(ended) if *ended == by => return None,
                RecordKind::Probe(probe) if probe.at == At::MoveGroup && probe.task() == Some(pid) => {
                    return None;
                }
                RecordKind::Probe(probe) if probe.at == At::MoveGroup => moved_later.extend(probe.task()),
                _ => {}
            }
        }
        None
    }

    /// A task that does not run is moved to another group.
    pub(super) fn regroup(&mut self, task: TaskId) {
        let pid = self.pid_of(task);
        if let Some(group) = self.group_moved_to(pid) {
            let relative_known = self.is_known(task) && self.min_known(self.queue_of(task));
            self.sched.regroup_sleeping(task, group);
            let known = relative_known && self.min_known(self.queue_of(task));
            if !self.by_lag {
                self.set_known(task, known);
            }
        }
    }

    /// A probe shows that a waiting task has left its queue, or is about to join one: if it is being moved, it has left that of
    /// its old group.
    pub(super) fn take_off_old_group(&mut self, record: &EventRecord, probe: &ProbeHit) {
        if let Some(pid) = probe.task() {
            self.leave_old_group(record, pid);
        }
    }

    /// A waiting task leaves the queue of its old group; it joins that of its new one with the step's end.
    fn leave_old_group(&mut self, record: &EventRecord, pid: Pid) {
        let moved = self.tasks.get(&pid).filter(|info| info.moving_group == Some(record.cpu));
        let Some(task) = moved.map(|info| info.id) else { return };
        if !self.waits(task) {
            return;
        }
        let group = self.group_moved_to(pid);
        let (cpu, queue) = (self.sched.task(task).cpu(), self.queue_of(task));
        self.doubt_running_groups(cpu);
        let lag_known = self.average_known(queue) && self.is_known(task);
        let known = self.is_known(task) && (self.by_lag || self.min_known(queue));
        self.sched.leave_for_group(task, group);
        self.note_detached(record, task, cpu);
        self.cpus[record.cpu.index()].taken_off = None;
        let info = self.knowledge.entity_mut(self.sched.task_entity(task));
        (info.known, info.lag_known) = (known, lag_known);
        if let Some(info) = self.info(task) {
            (info.moving_group, info.joins_group) = (None, true);
        }
    }
}
