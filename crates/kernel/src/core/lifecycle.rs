//! Fork, first wakeup, exit, and changes of nice level and affinity.

use fairlab_event::{Cpu, EventKind, TaskState};

use crate::core::{DequeueFlags, EnqueueFlags, Scheduler};
use crate::cpumask::CpuMask;
use crate::generation::behaviour::ForkPlacement;
use crate::task::{OnRq, Policy, TaskId};

impl Scheduler {
    /// The running task of this CPU creates `child`: it is placed on its parent's queue for now, and the fork reported.
    ///
    /// Kernel: `sched_cgroup_fork()`, `task_fork_fair()`.
    pub fn fork(&mut self, child: TaskId) {
        let cpu = self.trace.here;
        self.update_rq_clock(cpu);
        let parent = self.curr(cpu);
        self.move_entity_to(child, cpu);
        // dup_task_struct() copies the parent's waking history.
        let (flips, decay, wakee) = {
            let parent = &self.tasks[parent.index()];
            (parent.wakee_flips, parent.wakee_flip_decay, parent.last_wakee)
        };
        let task = &mut self.tasks[child.index()];
        (task.wakee_flips, task.wakee_flip_decay, task.last_wakee) = (flips, decay, wakee);
        if task.policy.is_fair() {
            self.task_fork_fair(child);
        }
        let (parent, child) = (&self.tasks[parent.index()], &self.tasks[child.index()]);
        self.report(EventKind::SchedProcessFork {
            comm: parent.comm,
            pid: parent.pid,
            child_comm: child.comm,
            child_pid: child.pid,
        });
    }

    /// Queues a new task on `cpu` for the first time.
    ///
    /// Kernel: `wake_up_new_task()`.
    pub fn wake_up_new_task(&mut self, task: TaskId, cpu: Cpu) {
        assert_eq!(self.tasks[task.index()].on_rq, OnRq::New, "a task is new once");
        self.tasks[task.index()].recent_used_cpu = self.tasks[task.index()].cpu;
        self.move_entity_to(task, cpu);
        self.update_rq_clock(cpu);
        let initial = self.generation.behaviours.fork_placement == ForkPlacement::WhereQueued;
        self.enqueue_task(task, EnqueueFlags { initial, ..EnqueueFlags::default() });
        self.report(EventKind::SchedWakeupNew(self.wakeup_of(task)));
        self.tasks[task.index()].is_new = true;
        self.check_preempt(task);
        self.tasks[task.index()].is_new = false;
    }

    /// The running task of `cpu` ends: it leaves its queue and is never seen again after the switch that follows.
    ///
    /// Kernel: `do_exit()`, `do_task_dead()`.
    pub fn exit(&mut self, cpu: Cpu) {
        let task = self.curr(cpu);
        let (comm, pid, prio) = {
            let task = &self.tasks[task.index()];
            (task.comm, task.pid, task.prio())
        };
        self.report(EventKind::SchedProcessExit { comm, pid, prio, group_dead: None });
        self.deactivate_task(cpu, TaskState::DEAD);
        self.tasks[task.index()].on_rq = OnRq::Dead;
    }

    /// Changes a task's nice level.
    ///
    /// Kernel: `set_user_nice()`, `prio_changed_fair()`.
    pub fn set_user_nice(&mut self, task: TaskId, nice: i32) {
        assert!((-20..=19).contains(&nice), "nice level {nice} is out of range");
        if self.tasks[task.index()].nice == nice {
            return;
        }
        let cpu = self.tasks[task.index()].cpu;
        self.update_rq_clock(cpu);
        let old_prio = self.tasks[task.index()].prio();
        self.while_off_queue(task, |scheduler| {
            scheduler.tasks[task.index()].nice = nice;
            scheduler.reweight_task(task);
        });
        let queued = self.tasks[task.index()].is_queued();
        if !queued || self.cfs(self.entity_of(task).cfs_rq).nr_running == 1 {
            return;
        }
        if self.curr(cpu) != task {
            self.check_preempt(task);
        } else if self.tasks[task.index()].prio() > old_prio {
            self.resched_curr(cpu);
        }
    }

    /// Changes the CPUs that a task may use. Returns whether it stands on one that it may no longer use: the driver
    /// then moves it.
    ///
    /// Kernel: `set_cpus_allowed_common()`.
    pub fn set_cpus_allowed(&mut self, task: TaskId, allowed: CpuMask) -> bool {
        assert!(!allowed.and(self.topology.online()).is_empty(), "a task must be allowed on some CPU");
        self.update_rq_clock(self.tasks[task.index()].cpu);
        self.while_off_queue(task, |scheduler| scheduler.tasks[task.index()].allowed = allowed);
        let task = &self.tasks[task.index()];
        !allowed.contains(task.cpu)
    }

    /// Takes a task off its queue, lets `change` work on it, and puts it back (`DEQUEUE_SAVE`, `ENQUEUE_RESTORE`).
    fn while_off_queue(&mut self, task: TaskId, change: impl FnOnce(&mut Scheduler)) {
        let queued =
            self.tasks[task.index()].is_queued() && self.tasks[task.index()].policy != Policy::Swapper;
        let running = self.curr(self.tasks[task.index()].cpu) == task;
        if queued {
            self.dequeue_task(task, DequeueFlags { save: true, ..DequeueFlags::default() });
        }
        if running {
            self.put_prev_task(task);
        }
        change(self);
        if queued {
            self.enqueue_task(task, EnqueueFlags::default());
        }
        if running {
            self.set_next_task(task);
        }
    }
}
