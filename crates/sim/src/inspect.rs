//! A scheduler whose state can be looked at while an engine drives it.
//!
//! Must not know: who compares what is seen.

use fairlab_event::Cpu;
use fairlab_kernel::open_loop::RestState;
use fairlab_kernel::struct_members::StructMembers;
use fairlab_kernel::{GroupId, TaskId};

use crate::Model;
use crate::scheduler_core::SchedulerCore;

/// What can be seen of a scheduler between two calls.
pub trait Inspect: SchedulerCore {
    /// What the machine holds at rest, if it has booted as a kernel does; `None`: everything is at its beginning.
    fn rest(&self) -> Option<RestState>;

    /// The idle task of a CPU.
    fn idle_task(&self, cpu: Cpu) -> TaskId;

    /// The stopper of a CPU (`migration/N`).
    fn stopper(&self, cpu: Cpu) -> TaskId;

    /// The queued fair tasks of a CPU, the one that ran longest ago first (`rq->cfs_tasks`).
    fn fair_tasks(&self, cpu: Cpu, into: &mut Vec<TaskId>);

    /// What a task holds.
    fn members_of_task(&self, task: TaskId, into: &mut StructMembers);

    /// What a group's queue of one CPU holds, and its entity.
    fn members_of_queue(&self, cpu: Cpu, group: GroupId, into: &mut StructMembers);

    /// What a runqueue holds beside its queues.
    fn members_of_rq(&self, cpu: Cpu, into: &mut StructMembers);

    /// What decides whether a task is picked, beside its members, as far as this scheduler tells it.
    fn standing_of(&self, task: TaskId) -> Vec<(&'static str, i64)> {
        let _ = task;
        Vec::new()
    }

    /// What a task is called, where its name is known.
    fn label_of(&self, task: TaskId) -> String {
        format!("task {}", task.0)
    }
}

impl Inspect for Model {
    fn rest(&self) -> Option<RestState> {
        None
    }

    fn idle_task(&self, cpu: Cpu) -> TaskId {
        self.scheduler().idle_task(cpu)
    }

    fn stopper(&self, cpu: Cpu) -> TaskId {
        self.stopper_of(cpu)
    }

    fn fair_tasks(&self, cpu: Cpu, into: &mut Vec<TaskId>) {
        self.scheduler().fair_tasks_of(cpu, into);
    }

    fn members_of_task(&self, task: TaskId, into: &mut StructMembers) {
        self.scheduler().members_of_task(task, into);
    }

    fn members_of_queue(&self, cpu: Cpu, group: GroupId, into: &mut StructMembers) {
        self.scheduler().members_of_queue(cpu, group, into);
    }

    fn members_of_rq(&self, cpu: Cpu, into: &mut StructMembers) {
        self.scheduler().members_of_rq(cpu, into);
    }

    fn standing_of(&self, task: TaskId) -> Vec<(&'static str, i64)> {
        self.scheduler().standing_of(task)
    }

    fn label_of(&self, task: TaskId) -> String {
        self.scheduler().label_of(task)
    }
}
