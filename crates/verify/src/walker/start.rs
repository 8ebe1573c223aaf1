//! The state at the beginning of the trace, from the recorder's snapshot.
//!
//! A snapshot is read while the kernel runs. If the trace has marks around the reading, the walk begins before them. State
//! that did not change between the beginning and the reading is then known from the first event on. If the snapshot is older
//! than the trace, nothing is known by it but groups, masks and policies.

use std::collections::BTreeSet;

use fairlab_event::{Comm, Cpu, Pid, Prio};
use fairlab_kernel::open_loop::QueueId;
use fairlab_kernel::{Policy, TaskId, Vruntime};

use super::super::record::{Marker, RecordKind};
use super::Walker;
use super::state::EntityInfo;
use fairlab_recording::{CpuDump, QueueDump, TaskDump};

impl Walker {
    /// Puts the snapshot's tasks where it has them.
    pub(super) fn lay_initial_state(&mut self) {
        let Some(debug) = self.recording.debug.take() else { return };
        for dump in &debug.cpus {
            if dump.cpu.index() >= self.cpus.len() {
                continue;
            }
            for queue in &dump.queues {
                self.lay_queue(dump.cpu, queue);
            }
            for task in &dump.tasks {
                self.lay_task(dump, task);
            }
        }
        self.recording.debug = Some(debug);
    }

    /// The queue that a dump's line is about.
    fn dumped_queue(&self, cpu: Cpu, path: &str) -> Option<QueueId> {
        self.groups.named(path).and_then(|group| self.sched.group_queue(group, cpu))
    }

    /// A queue's zero, and the entity that stands for it on the one above.
    fn lay_queue(&mut self, cpu: Cpu, dump: &QueueDump) {
        let Some(queue) = self.dumped_queue(cpu, &dump.path) else { return };
        if let Some(zero) = dump.zero() {
            self.sched.force_min_vruntime(queue, Vruntime(zero));
        }
        let Some(entity) = self.sched.entity_above(queue) else { return };
        if let Some(vruntime) = dump.nanoseconds("se->vruntime") {
            self.sched.force_vruntime(entity, Vruntime(vruntime));
            // A lag is printed of no entity.
            let known = self.probed;
            *self.knowledge.entity_mut(entity) = EntityInfo { known, ..EntityInfo::default() };
        }
        if let Some(weight) = dump.number("se->load.weight").and_then(|weight| u64::try_from(weight).ok()) {
            self.sched.force_weight(entity, weight);
        }
    }

    fn lay_task(&mut self, dump: &CpuDump, line: &TaskDump) {
        let prio = Prio(line.prio);
        let comm = Comm::from(line.comm.as_str());
        let id = self.new_task(line.pid, prio, comm, dump.cpu);
        if let Some(group) = self.groups.named(&line.group) {
            self.sched.set_task_group(id, group);
        }
        self.take_listed(id, line.pid, prio);
        self.sched.lay_asleep(id, dump.cpu);
        let entity = self.sched.task_entity(id);
        self.sched.force_vruntime(entity, Vruntime(line.vruntime));
        if let Some(deadline) = line.deadline {
            self.sched.force_deadline(entity, Vruntime(deadline));
        }
        if let Some(weight) = line.weight {
            self.sched.force_line_weight(entity, weight);
        }
        if let Some(slice) = line.slice.filter(|_| line.own_slice) {
            self.sched.force_slice(id, slice);
        }
        // What runs while the snapshot is read moves; the others stand still until the trace shows them.
        self.set_known(id, dump.curr != Some(line.pid) && !line.runnable);
    }

    /// Takes over what the recorder listed of a task: its group, where it may run, its policy.
    pub(super) fn take_listed(&mut self, id: TaskId, pid: Pid, prio: Prio) {
        const SCHED_BATCH: u32 = 3;
        const SCHED_IDLE: u32 = 5;
        let Some(listed) = self.recording.tasks.iter().find(|task| task.tid == pid) else { return };
        let (allowed, bound) = (listed.allowed, listed.kthread && listed.allowed.weight() == 1);
        let policy = listed.policy;
        if let Some(group) = self.groups.named(&listed.cgroup) {
            self.sched.set_task_group(id, group);
        }
        self.sched.force_allowed(id, allowed);
        self.sched.force_per_cpu_kthread(id, bound);
        match policy {
            SCHED_BATCH => self.sched.force_nice(id, prio.nice().unwrap_or(0), Policy::Batch),
            SCHED_IDLE => self.sched.force_nice(id, prio.nice().unwrap_or(0), Policy::Idle),
            _ => {}
        }
    }

    /// Whether the trace holds the snapshot, and which tasks it shows before that: their values are later ones.
    pub(super) fn look_for_markers(&mut self) {
        let read =
            self.window.all().position(|record| matches!(record.what, RecordKind::Marker(Marker::DebugRead)));
        self.has_markers = read.is_some();
        let mut moving = BTreeSet::new();
        for record in self.window.all().take(read.unwrap_or(0)) {
            match &record.what {
                RecordKind::Switch(switch) => moving.extend([switch.prev_pid, switch.next_pid]),
                what => moving.extend(what.task()),
            }
        }
        let moves = |pid: &Pid| read.is_none() || moving.contains(pid);
        let moving = self.tasks.iter().filter(|(pid, _)| moves(pid)).map(|(_, info)| info.id);
        for task in moving.collect::<Vec<_>>() {
            for entity in self.sched.levels(task) {
                self.knowledge.entity_mut(entity).known = false;
            }
        }
    }

    /// The snapshot has been read: what it has queued is queued.
    pub(super) fn on_debug_read(&mut self) {
        self.warm = true;
        let Some(debug) = self.recording.debug.take() else { return };
        let nr_cpus = self.cpus.len();
        for dump in debug.cpus.iter().filter(|dump| dump.cpu.index() < nr_cpus) {
            self.lay_queued(dump);
        }
        self.recording.debug = Some(debug);
    }

    /// Tasks that the snapshot shows waiting and that the trace has not shown yet.
    fn lay_queued(&mut self, dump: &CpuDump) {
        let cpu: Cpu = dump.cpu;
        for line in dump.tasks.iter().filter(|line| line.runnable && dump.curr != Some(line.pid)) {
            let Some(info) = self.tasks.get(&line.pid) else { continue };
            let (id, seen) = (info.id, info.seen);
            if !seen && !self.sched.is_on_queue(id) {
                self.sched.lay_on_queue(id, cpu);
                self.force_vruntime(self.sched.task_entity(id), Vruntime(line.vruntime));
            }
        }
        self.cpus[cpu.index()].queue_known = true;
    }
}
