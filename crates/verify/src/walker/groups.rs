//! Task groups: which there are, how probes name them, and the weights that the kernel gave their entities.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Cpu, Pid};
use fairlab_kernel::open_loop::{EntityId, QueueId};
use fairlab_kernel::{GroupId, Vruntime};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{CgroupName, EventRecord, RecordKind};
use super::Walker;
use super::state::WeighingStep;
use super::wakeups::contexts;
use fairlab_recording::CgroupLine;

/// The groups of a recording, by every name that it has for them.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedGroups {
    by_path: BTreeMap<String, GroupId>,
    by_inode: BTreeMap<u64, GroupId>,
    /// Queues by the kernel's address of them.
    queues: BTreeMap<u64, QueueId>,
    /// Groups' entities by address, and the other way round.
    entities: BTreeMap<u64, EntityId>,
    addresses: BTreeMap<EntityId, u64>,
    /// Groups with a quota; and with them those that are in one.
    with_quota: BTreeSet<GroupId>,
    limited: BTreeSet<GroupId>,
}

/// Inode of the root cgroup.
const ROOT_INODE: u64 = 1;

impl RecordedGroups {
    pub fn named(&self, path: &str) -> Option<GroupId> {
        self.by_path.get(path).copied()
    }

    pub fn with_inode(&self, inode: u64) -> Option<GroupId> {
        self.by_inode.get(&inode).copied()
    }

    /// The one that an event is about: by its path, where the recording lists that. Paths of a container's list are not the
    /// event's.
    pub fn called(&self, cgroup: &CgroupName) -> Option<GroupId> {
        self.named(&cgroup.path).or_else(|| self.with_inode(cgroup.id))
    }

    /// Every group, the root's included.
    pub fn all(&self) -> Vec<GroupId> {
        let mut groups = self.by_path.values().copied().collect::<Vec<_>>();
        groups.sort();
        groups.dedup();
        groups
    }

    /// Whether there is no group but the root's.
    pub fn is_flat(&self) -> bool {
        self.by_path.values().all(|&group| group == GroupId::ROOT)
    }

    /// Whether a group has a quota of its own.
    pub fn is_limited_itself(&self, group: GroupId) -> bool {
        self.with_quota.contains(&group)
    }

    /// Groups that can run out of runtime.
    pub fn limited(&self) -> impl Iterator<Item = GroupId> {
        self.limited.iter().copied()
    }

    /// Whether a group can run out of runtime.
    pub fn is_limited(&self, group: GroupId) -> bool {
        self.limited.contains(&group)
    }

    /// The address of a group's entity.
    pub fn address(&self, entity: EntityId) -> Option<u64> {
        self.addresses.get(&entity).copied()
    }
}

impl Walker {
    /// Creates the recording's groups, parents first.
    pub(super) fn create_groups(&mut self) {
        self.groups.by_path.insert("/".to_string(), GroupId::ROOT);
        self.groups.by_inode.insert(ROOT_INODE, GroupId::ROOT);
        let mut lines: Vec<CgroupLine> = self.recording.cgroups.clone();
        lines.sort_by_key(|line| line.path.split('/').count());
        for line in lines.iter().filter(|line| line.path != "/") {
            self.create_group(line);
        }
        if self.probed {
            self.sched.take_weights_as_given();
        }
    }

    fn create_group(&mut self, line: &CgroupLine) {
        let parent = line.path.rsplit_once('/').map_or("/", |(parent, _)| parent);
        let Some(parent) = self.groups.named(if parent.is_empty() { "/" } else { parent }) else { return };
        // Without the cpu controller a cgroup is no task group: its tasks are its parent's.
        let group = line.weight.map_or(parent, |weight| self.new_group(parent, weight));
        if line.idle && line.weight.is_some() {
            self.sched.set_group_idle(group, true);
        }
        self.groups.by_path.insert(line.path.clone(), group);
        self.groups.by_inode.insert(line.inode, group);
        if line.limited {
            self.groups.with_quota.insert(group);
        }
        if line.limited || self.groups.is_limited(parent) {
            self.groups.limited.insert(group);
        }
        if line.unused {
            self.know_fresh_group(group);
        }
    }

    /// A cgroup has the weight of all when it is made. One that gets another is reweighted before anything runs in it, and so
    /// are those above.
    fn new_group(&mut self, parent: GroupId, weight: u64) -> GroupId {
        const DEFAULT: u64 = 100;
        let group = self.sched.new_group(parent, DEFAULT);
        if weight != DEFAULT {
            self.sched.set_group_weight(group, weight.clamp(1, 10_000));
        }
        group
    }

    /// Whether tasks may compete in groups below the root's.
    pub fn has_groups(&self) -> bool {
        !self.groups.is_flat()
    }

    /// What is to be said where nothing tells of groups.
    pub fn note_on_groups(&self) -> Option<String> {
        const HIDDEN: &str =
            "nothing beside the trace tells in which groups tasks compete: what hangs on that is not judged";
        const NONE: &str = "all tasks are taken to be in the root's group";
        let taken = self.recording.tells_no_groups().then_some(NONE);
        self.groups_hidden.then_some(HIDDEN).or(taken).map(str::to_string)
    }

    /// A group that is made during the recording is there from when it is read of: events that are looked ahead at name it, and
    /// while it has no task, it changes nothing.
    pub(super) fn learn_group(&mut self, record: &EventRecord) {
        /// The inode of the root's group.
        const ROOT: u64 = 1;
        match &record.what {
            RecordKind::Group(line) if self.groups.with_inode(line.inode).is_none() => {
                self.create_group(&CgroupLine { unused: true, ..line.clone() });
            }
            RecordKind::CgroupAttach { cgroup, .. } if self.recording.cgroups.is_empty() => {
                self.groups_hidden |= cgroup.id != ROOT && self.groups.called(cgroup).is_none();
            }
            _ => {}
        }
    }

    /// A group has the weight from now on that its maker says, and is idle or not.
    pub(super) fn follow_group(&mut self, line: &CgroupLine) {
        if let (Some(group), Some(weight)) = (self.groups.with_inode(line.inode), line.weight) {
            self.sched.set_group_idle(group, line.idle);
            self.sched.set_group_weight(group, weight.clamp(1, 10_000));
        }
    }

    /// Nothing has run in a group yet: its queues and entities are as they were made.
    fn know_fresh_group(&mut self, group: GroupId) {
        for cpu in 0..self.cpus.len() {
            let cpu = Cpu(cpu as u32);
            if let Some(queue) = self.sched.group_queue(group, cpu) {
                self.knowledge.set_minimum_known(queue, true);
            }
            // Where a group's entity comes to stand hangs on its weight, which only probes show.
            if let Some(entity) = self.sched.group_entity(group, cpu).filter(|_| self.probed) {
                let info = self.knowledge.entity_mut(entity);
                (info.known, info.lag_known) = (true, true);
            }
        }
    }

    /// Learns what the kernel's addresses in a probe stand for.
    pub(super) fn learn_addresses(&mut self, record: &EventRecord) {
        let RecordKind::Probe(probe) = &record.what else { return };
        if let (Some(address), Some(cpu), Some(inode)) =
            (probe.unsigned(Key::CfsRq), probe.cpu(), probe.unsigned(Key::Cgroup))
            && let Some(queue) =
                self.groups.with_inode(inode).and_then(|group| self.sched.group_queue(group, cpu))
        {
            self.groups.queues.insert(address, queue);
        }
    }

    /// The queue that a probe is about.
    pub(super) fn probed_queue(&self, probe: &ProbeHit) -> Option<QueueId> {
        self.groups.queues.get(&probe.unsigned(Key::CfsRq)?).copied()
    }

    /// The entity that a probe is about: a fair task's, or a group's.
    pub(super) fn probed_entity(&mut self, probe: &ProbeHit) -> Option<EntityId> {
        let Some(address) = probe.group_entity() else {
            let info = probe.task().filter(|pid| !pid.is_idle()).and_then(|pid| self.tasks.get(&pid))?;
            return Some(info.id).filter(|&task| self.is_fair(task)).map(|task| self.sched.task_entity(task));
        };
        if let Some(entity) = self.groups.entities.get(&address) {
            return Some(*entity);
        }
        let below = self.groups.queues.get(&probe.unsigned(Key::MyQueue)?).copied()?;
        let entity = self.sched.entity_above(below)?;
        self.groups.entities.insert(address, entity);
        self.groups.addresses.insert(entity, address);
        Some(entity)
    }

    /// The kernel gives an entity another weight: the next update in the core does so, too. One that is part of no step, as its group
    /// has got new shares, is done now.
    pub(super) fn on_reweight(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let entity = probe.group_entity().and_then(|_| self.probed_entity(probe));
        let queued = entity.filter(|_| probe.get(Key::OnRq) == Some(1));
        self.cpus[record.cpu.index()].reweighting = queued.zip(probe.unsigned(Key::NewWeight));
        if record.number > self.cpus[record.cpu.index()].weights_given {
            self.give_weight(probe);
        }
        let step = self.cpus[record.cpu.index()].step.filter(|step| step.contexts == contexts(record));
        if let Some(entity) = entity.filter(|_| step.is_none() && !self.by_lag) {
            self.take_new_weight(entity);
        }
        if let Some(entity) = queued.filter(|_| self.by_lag && !self.clocks_shown) {
            self.doubt_reweighted(entity, step.is_some_and(|step| step.of_running));
        }
    }

    /// What is queued keeps its distance from the queue's average, for which the running entity is charged: at the clock of the
    /// running task's charge, which is printed, only in a step of that task.
    fn doubt_reweighted(&mut self, entity: EntityId, of_running: bool) {
        let queue = self.sched.queue_of(entity);
        let running = self.sched.current_of(queue).filter(|curr| curr.task.is_none() && !of_running);
        if let Some(running) = running {
            self.knowledge.entity_mut(running.id).known = false;
            self.knowledge.set_minimum_known(queue, false);
        }
        if !self.average_known(queue) {
            self.knowledge.entity_mut(entity).known = false;
        }
    }

    /// It has been given it: where the core has done so already, they are compared.
    pub(super) fn after_reweight(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some((entity, weight)) = self.cpus[record.cpu.index()].reweighting.take() else { return };
        if probe.in_set_shares {
            self.take_new_weight(entity);
        }
        let ahead = record.number < self.cpus[record.cpu.index()].ahead_until;
        if self.by_lag && !ahead && self.sched.entity_view(entity).weight == weight {
            self.compare_entity(record, probe);
        }
    }

    /// The running entity of its queue has been charged for that, at a moment that nothing shows.
    fn take_new_weight(&mut self, entity: EntityId) {
        let cpu = self.sched.cpu_of(self.sched.queue_of(entity));
        self.doubt_running_groups(cpu);
        self.sched.stand_on(cpu);
        self.sched.flush_given_weight(entity);
    }

    /// A group gets new shares. Those of an idle one are far below the least that a group can be given.
    pub(super) fn on_set_shares(&mut self, probe: &ProbeHit) {
        let inode = probe.unsigned(Key::Cgroup);
        let group = inode.and_then(|inode| self.groups.with_inode(inode));
        if let (Some(group), Some(shares), false) = (group, probe.unsigned(Key::Shares), self.probed) {
            self.sched.force_group_shares(group, shares);
        }
    }

    /// Notes steps that reweight entities, as probes show them.
    pub(super) fn follow_steps(&mut self, record: &EventRecord) {
        let running = self.pid_of(self.sched.curr(record.cpu));
        let step = &mut self.cpus[record.cpu.index()].step;
        let begins = |probe: &ProbeHit| {
            let of_running = probe.cpu() == Some(record.cpu) && probe.task() == Some(running);
            WeighingStep { contexts: contexts(record), of_running }
        };
        match &record.what {
            RecordKind::Probe(probe) => match probe.at {
                // It goes on with the groups above.
                At::DequeueEntity if probe.group_entity().is_some() && step.is_some() => {}
                At::EnqueueEntity
                | At::EnqueueTask
                | At::DequeueEntity
                | At::DequeueEntities
                | At::Tick
                | At::Throttle
                | At::Unthrottle => *step = Some(begins(probe)),
                At::PickReturn | At::SetNextEntity | At::PutPrevEntity | At::SelectTaskRq => *step = None,
                _ => {}
            },
            RecordKind::Switch(_)
            | RecordKind::Waking(_)
            | RecordKind::Wakeup(_)
            | RecordKind::WakeupNew(_) => *step = None,
            _ => {}
        }
    }

    /// The weights that the kernel gives on `cpu` from here to the end of the step that is being walked, which `ends` tells.
    pub(super) fn give_coming_weights(&mut self, cpu: Cpu, ends: impl Fn(&EventRecord) -> bool) {
        if !self.probed {
            return;
        }
        let coming = self.window.on_cpu(cpu).take_while(|record| !ends(record));
        let weights = coming.filter_map(|record| match &record.what {
            RecordKind::Probe(probe) if probe.at == At::ReweightEntity => {
                Some((record.number, probe.clone()))
            }
            _ => None,
        });
        for (number, probe) in weights.collect::<Vec<_>>() {
            let given = &mut self.cpus[cpu.index()].weights_given;
            if number > std::mem::replace(given, number.max(*given)) {
                self.give_weight(&probe);
            }
        }
    }

    fn give_weight(&mut self, probe: &ProbeHit) {
        let (Some(entity), Some(weight)) = (self.probed_entity(probe), probe.unsigned(Key::NewWeight)) else {
            return;
        };
        let view = self.sched.entity_view(entity);
        // Even the same weight lets the kernel charge the entity.
        if view.task.is_none() {
            self.sched.give_weight(entity, weight);
        }
    }

    /// A probe shows an entity's weight: takes it over where the core has another.
    pub(super) fn follow_weight(&mut self, entity: EntityId, probe: &ProbeHit) {
        let view = self.sched.entity_view(entity);
        if let Some(weight) = probe.unsigned(Key::Weight).filter(|&weight| weight > 0 && view.task.is_none())
            && view.weight != weight
        {
            self.sched.force_weight(entity, weight);
        }
    }

    /// The first group of a new task, where that is not its parent's.
    pub(super) fn group_from_start(&self, child: Pid) -> Option<GroupId> {
        let mut coming =
            self.window.of_task(child).take_while(|record| !matches!(record.what, RecordKind::WakeupNew(_)));
        coming.find_map(|record| match &record.what {
            RecordKind::CgroupAttach { cgroup, .. } => self.groups.called(cgroup),
            _ => None,
        })
    }

    /// Where a group's entity stands on its queue from now until it is picked, reweighted or taken off. If it is charged
    /// meanwhile, nothing shows it.
    pub(super) fn group_vruntime_shown_later(&self, entity: EntityId) -> Option<Vruntime> {
        let address = self.groups.address(entity).filter(|_| !self.sched.is_current(entity))?;
        let next = self.window.of_entity(address).find_map(|record| match &record.what {
            RecordKind::Probe(probe) => match probe.at {
                At::SetNextEntity | At::Remove | At::DequeueEntity => Some(Some(probe)),
                At::PickReturn => probe.get(Key::Vruntime).map(|_| Some(probe)),
                At::ReweightEntity => (probe.get(Key::OnRq) == Some(1)).then_some(Some(probe)),
                // It has been off its queue meanwhile.
                At::EnqueueEntity => Some(None),
                _ => None,
            },
            _ => None,
        });
        next.flatten()?.unsigned(Key::Vruntime).map(Vruntime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_calls_a_group_by_its_path_or_by_its_inode() {
        let mut groups = RecordedGroups::default();
        for (path, inode, group) in [("/", 1, 0), ("/a", 37, 1), ("/a/b", 3, 2)] {
            groups.by_path.insert(path.to_string(), GroupId(group));
            groups.by_inode.insert(inode, GroupId(group));
        }
        let called = |id, path: &str| groups.called(&CgroupName { id, path: path.to_string() });
        assert_eq!(called(3, "/a"), Some(GroupId(1)), "to v5.4 the number is no inode");
        assert_eq!(called(37, "/docker/x/a"), Some(GroupId(1)), "a container has other paths");
        assert_eq!(called(3, ""), Some(GroupId(2)), "no path is told");
        assert_eq!(called(9, "/c"), None);
    }
}
