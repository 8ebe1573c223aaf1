//! Tasks change groups.

use crate::group::{ExitMove, GroupId, MovedRunning, MovedWaiting};
use crate::rq::{DequeueFlags, EnqueueFlags};
use crate::scheduler::Scheduler;
use crate::task::{OnRq, TaskId};

impl Scheduler {
    /// Puts a task into another group, wherever it is: running, waiting, asleep, or new.
    ///
    /// Where vruntimes are relative between queues the task keeps its distance to the queue's minimum, later its lag.
    ///
    /// Kernel: `sched_move_task()`, kernel/sched/core.c, `task_change_group_fair()`, kernel/sched/fair.c.
    pub fn move_task_to_group(&mut self, task: TaskId, group: GroupId) {
        self.probe_move(task);
        let on_rq = self.shared.tasks[task.index()].on_rq;
        let known = &self.shared.tasks[task.index()];
        let queued = known.is_queued() || known.is_delayed();
        let cpu = known.cpu;
        let running = self.curr(cpu) == task;
        self.rq_lock(cpu).update_rq_clock();
        if queued {
            // The queue's minimum may move on while the task is away (DEQUEUE_MOVE).
            self.dequeue_task(task, DequeueFlags::default());
        }
        if running {
            self.put_prev_task(task);
        }
        match on_rq {
            OnRq::New | OnRq::Dead => self.set_group(task, group),
            _ if self.shared.tasks[task.index()].policy.is_fair() => self.change_group_fair(task, group),
            _ => self.set_group(task, group),
        }
        if queued {
            self.enqueue_task(task, EnqueueFlags::default());
        }
        if running {
            self.set_next_task(task, false);
            self.rq_lock(cpu).account_new_levels(None, task);
        }
        let rules = self.shared.generation.groups;
        if running && rules.moved_running == MovedRunning::Rescheduled {
            self.shared.resched_curr(cpu, "sched_move_task");
        } else if queued && !running && rules.moved_waiting == MovedWaiting::MayPreempt {
            self.check_preempt(task);
        }
    }

    fn set_group(&mut self, task: TaskId, group: GroupId) {
        self.shared.tasks[task.index()].group = group;
        self.shared.set_task_rq(task, self.shared.tasks[task.index()].cpu);
    }

    fn change_group_fair(&mut self, task: TaskId, group: GroupId) {
        self.detach_task_cfs_rq(task);
        self.se_mut(self.shared.tasks[task.index()].se).avg.last_update_time = 0;
        self.set_group(task, group);
        self.attach_task_cfs_rq(task);
    }

    /// An ending task leaves its autogroup for the root group. That it is in none does not keep most kernels from taking it off its queue
    /// and putting it back, after which the queue's minimum may be another.
    ///
    /// Kernel: `sched_autogroup_exit_task()`, kernel/sched/autogroup.c.
    pub(crate) fn autogroup_exit_task(&mut self, task: TaskId) {
        let group = self.shared.tasks[task.index()].group;
        let in_autogroup = self.shared.groups[group.0 as usize].autogroup;
        if in_autogroup || self.shared.generation.groups.exit_move == ExitMove::Always {
            self.move_task_to_group(task, if in_autogroup { GroupId::ROOT } else { group });
        }
    }
}
