//! Autogroups: a group for each session, in which its tasks are while their cgroup is the root group's. `setsid()` makes one,
//! children have their parent's, and an ending task leaves it.
//!
//! Must not know: how a decision is judged.

use fairlab_event::Pid;
use fairlab_kernel::weight::NICE_WEIGHTS;
use fairlab_kernel::{GroupId, TaskId};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::Walker;
use fairlab_recording::AUTOGROUP;

/// The default weight of a cgroup, which is that of nice 0.
const DEFAULT_WEIGHT: u64 = 100;

/// What an autogroup's inode is in probes: it belongs to no cgroup.
const NO_INODE: u64 = 0;

impl Walker {
    /// Creates the autogroups that the snapshot shows.
    pub(super) fn create_autogroups(&mut self) {
        for (path, nice) in self.recording.autogroups.clone() {
            let group = self.sched.new_group(GroupId::ROOT, DEFAULT_WEIGHT);
            if let Some(shares) = shares_of(nice).filter(|_| nice != 0) {
                self.sched.force_group_shares(group, shares);
            }
            self.groups.name_autogroup(path, group);
        }
    }

    /// What the snapshot says of a task's session.
    pub(super) fn take_session(&mut self, task: TaskId, pid: Pid, dumped: Option<&str>) {
        let process = self.recording.tasks.iter().find(|task| task.tid == pid).map_or(pid, |task| task.pid);
        let listed = self.recording.sessions.get(&process).map(String::as_str);
        let session = listed.or(dumped).filter(|path| path.starts_with(AUTOGROUP));
        let session = session.and_then(|path| self.groups.named(path));
        if let Some(info) = self.info(task) {
            info.session = session;
        }
    }

    /// The group of a task whose cgroup's is `group`.
    ///
    /// Kernel: `autogroup_task_group()`, kernel/sched/autogroup.h.
    pub(super) fn autogroup_of(&self, pid: Pid, group: GroupId) -> GroupId {
        let info = self.tasks.get(&pid).filter(|info| group == GroupId::ROOT && !info.exiting);
        info.and_then(|info| info.session).filter(|_| self.recording.autogroups_enabled).unwrap_or(group)
    }

    /// The group to which `sched_move_task()` moves a task that is not attached to a cgroup: its session's, or its cgroup's as it
    /// ends.
    pub(super) fn group_of_session(&self, pid: Pid) -> Option<GroupId> {
        let info = self.tasks.get(&pid).filter(|info| info.session.is_some())?;
        let is_autogroup = |group| self.groups.is_autogroup(group) || group == GroupId::ROOT;
        is_autogroup(self.sched.group_of(info.id)).then(|| self.autogroup_of(pid, GroupId::ROOT))
    }

    /// `sched_move_task()` begins, of a task that is not attached to a cgroup and does not end. The running task begins a
    /// session, and the other threads of its process with it.
    pub(super) fn begin_session(&mut self, record: &EventRecord, pid: Pid) {
        let ends = self.tasks.get(&pid).is_none_or(|info| info.exiting);
        if !self.recording.autogroups_enabled || ends {
            return;
        }
        let first = self.tasks.get(&record.context).and_then(|info| info.session);
        let begun = if pid == record.context { None } else { first };
        let group = begun.unwrap_or_else(|| self.sched.new_group(GroupId::ROOT, DEFAULT_WEIGHT));
        if begun.is_none() {
            self.know_fresh_group(group);
            let path = format!("{AUTOGROUP}of-{}-at-{}", pid.0, record.number);
            self.groups.name_autogroup(path, group);
        }
        if let Some(info) = self.tasks.get_mut(&pid) {
            info.session = Some(group);
        }
        self.learn_first_queue(pid, group);
    }

    /// A probe that is to come shows the queue on which the task joins its new session.
    fn learn_first_queue(&mut self, pid: Pid, group: GroupId) {
        let joins = self.window.of_task(pid).find_map(|record| match &record.what {
            RecordKind::Probe(probe) if matches!(probe.at, At::EnqueueEntity | At::Place) => Some(probe),
            _ => None,
        });
        let joins = joins.filter(|probe| probe.unsigned(Key::Cgroup) == Some(NO_INODE));
        let told = joins.and_then(|probe| Some((probe.unsigned(Key::CfsRq)?, probe.cpu()?)));
        if let Some((address, cpu)) = told
            && let Some(queue) = self.sched.group_queue(group, cpu)
        {
            self.groups.learn_queue(address, queue);
        }
    }

    /// A child has its parent's session.
    pub(super) fn inherit_session(&mut self, parent: TaskId, child: TaskId) {
        let session = self.info(parent).and_then(|info| info.session);
        if let Some(info) = self.info(child) {
            info.session = session;
        }
    }

    /// The group that gets new shares: that of the cgroup, or of the session of a task that writes to its own
    /// `/proc/PID/autogroup`.
    pub(super) fn group_given_shares(&self, record: &EventRecord, probe: &ProbeHit) -> Option<GroupId> {
        match probe.unsigned(Key::Cgroup)? {
            NO_INODE => self.tasks.get(&record.context)?.session,
            inode => self.groups.with_inode(inode),
        }
    }

    /// A probe shows a task on a queue of no cgroup: it is its session's.
    pub(super) fn learn_session_queue(&mut self, probe: &ProbeHit) {
        let (Some(address), Some(cpu), Some(NO_INODE)) =
            (probe.unsigned(Key::CfsRq), probe.cpu(), probe.unsigned(Key::Cgroup))
        else {
            return;
        };
        let info = probe.task().and_then(|pid| self.tasks.get(&pid));
        let group =
            info.map(|info| self.sched.group_of(info.id)).filter(|&group| self.groups.is_autogroup(group));
        if let Some(queue) = group.and_then(|group| self.sched.group_queue(group, cpu)) {
            self.groups.learn_queue(address, queue);
        }
    }
}

/// The shares that a nice level gives an autogroup, scaled up.
///
/// Kernel: `proc_sched_autogroup_set_nice()`, kernel/sched/autogroup.c.
fn shares_of(nice: i32) -> Option<u64> {
    let index = usize::try_from(nice.checked_add(20)?).ok()?;
    NICE_WEIGHTS.get(index).map(|&weight| u64::from(weight) << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_autogroup_weighs_as_a_task_of_its_nice_level() {
        assert_eq!([-1, 3].map(shares_of), [Some(1_307_648), Some(538_624)], "as traced by kernels");
        assert_eq!([-21, 20, i32::MAX].map(shares_of), [None; 3]);
    }
}
