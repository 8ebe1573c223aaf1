//! Enqueue, dequeue, and the running entity's way on and off the time line, at every level of the hierarchy.

use fairlab_event::Cpu;

use crate::cfs_rq::Waiting;
use crate::core::{DequeueFlags, EnqueueFlags, Scheduler};
use crate::entity::{CfsRqId, SeId};
use crate::generation::behaviour::Placement;
use crate::task::TaskId;

impl Scheduler {
    /// Queues a task on its CPU: at each level up to the first group that is queued already.
    ///
    /// Kernel: `enqueue_task_fair()`, kernel/sched/fair.c.
    pub(crate) fn enqueue_task_fair(&mut self, task: TaskId, mut flags: EnqueueFlags) {
        let cpu = self.tasks[task.index()].cpu;
        let mut level = Some(self.tasks[task.index()].se);
        while let Some(se) = level {
            if !self.se(se).on_rq {
                self.enqueue_entity(self.se(se).cfs_rq, se, flags);
                // Groups are placed as if they woke, whatever brought the task.
                flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
            }
            let cfs_rq = self.se(se).cfs_rq;
            self.cfs_mut(cfs_rq).h_nr_running += 1;
            level = self.se(se).parent;
        }
        self.rqs[cpu.index()].cfs_tasks.push_newest(&mut self.tasks, task);
    }

    /// Takes a task off its CPU's queue: at each level up to the first group that still has others.
    ///
    /// Kernel: `dequeue_task_fair()`, kernel/sched/fair.c.
    pub(crate) fn dequeue_task_fair(&mut self, task: TaskId, mut flags: DequeueFlags) {
        let cpu = self.tasks[task.index()].cpu;
        let sleeps = flags.sleep;
        let mut level = Some(self.tasks[task.index()].se);
        let mut empty_so_far = true;
        while let Some(se) = level {
            let cfs_rq = self.se(se).cfs_rq;
            level = self.se(se).parent;
            if empty_so_far {
                self.dequeue_entity(cfs_rq, se, flags);
                empty_so_far = self.cfs(cfs_rq).nr_running == 0;
                flags = DequeueFlags { sleep: true, save: false };
                if let (false, true, Some(group)) = (empty_so_far, sleeps, level) {
                    // Stay in the group that the sleeper was in.
                    self.set_next_buddy(group);
                }
            }
            self.cfs_mut(cfs_rq).h_nr_running -= 1;
        }
        self.rqs[cpu.index()].cfs_tasks.remove(&mut self.tasks, task);
    }

    /// Kernel: `enqueue_entity()`, kernel/sched/fair.c. The order of its steps decides what the placement sees: an
    /// entity that is still `curr` is placed before it is charged, any other one after.
    fn enqueue_entity(&mut self, cfs_rq: CfsRqId, se: SeId, flags: EnqueueFlags) {
        let is_curr = self.cfs(cfs_rq).curr == Some(se);
        let rule = self.generation.behaviours.placement;
        let comes_relative = rule != Placement::Lag && (!flags.wakeup || flags.migrated);
        if is_curr {
            self.join(cfs_rq, se, flags, comes_relative);
        }
        self.update_curr(cfs_rq);
        if !is_curr {
            self.join(cfs_rq, se, flags, comes_relative);
        }
        let load = self.se(se).load;
        let queue = self.cfs_mut(cfs_rq);
        queue.load.add(load);
        queue.nr_running += 1;
        if rule != Placement::Lag && flags.wakeup {
            self.place_entity(cfs_rq, se, flags);
        }
        if flags.migrated {
            self.se_mut(se).exec_start = 0;
        }
        if flags.wakeup {
            self.sleep_ends(se);
        }
        if !is_curr {
            self.wait_starts(se);
            self.insert_waiting(cfs_rq, se);
        }
        self.se_mut(se).on_rq = true;
    }

    /// Gives an entity its place on the virtual time line of a queue that it joins, before it is counted there.
    fn join(&mut self, cfs_rq: CfsRqId, se: SeId, flags: EnqueueFlags, comes_relative: bool) {
        if self.generation.behaviours.placement == Placement::Lag {
            self.place_entity(cfs_rq, se, flags);
        } else if comes_relative {
            self.make_absolute(cfs_rq, se);
        }
    }

    /// Kernel: `dequeue_entity()`, kernel/sched/fair.c.
    fn dequeue_entity(&mut self, cfs_rq: CfsRqId, se: SeId, flags: DequeueFlags) {
        self.update_curr(cfs_rq);
        let is_curr = self.cfs(cfs_rq).curr == Some(se);
        if !is_curr {
            self.wait_is_interrupted(se);
        }
        if flags.sleep {
            self.sleep_starts(se);
        }
        self.clear_buddies(se);
        let keeps_lag = match self.generation.behaviours.placement {
            Placement::MinVruntime => false,
            Placement::LagOnWakeup => flags.sleep,
            Placement::Lag => true,
        };
        if keeps_lag {
            self.update_entity_lag(cfs_rq, se);
        }
        if !is_curr {
            self.remove_waiting(cfs_rq, se);
        }
        self.se_mut(se).on_rq = false;
        let load = self.se(se).load;
        let queue = self.cfs_mut(cfs_rq);
        queue.load.subtract(load);
        queue.nr_running -= 1;
        if !flags.sleep && self.vruntime_is_relative_off_queue() {
            self.make_relative(cfs_rq, se);
        }
        if !flags.save {
            self.update_min_vruntime(cfs_rq);
        }
    }

    /// The running task stays runnable but leaves the CPU, or has left the queue already.
    ///
    /// Kernel: `put_prev_entity()` at every level.
    pub(crate) fn put_prev_task_fair(&mut self, task: TaskId) {
        let mut level = Some(self.tasks[task.index()].se);
        while let Some(se) = level {
            let cfs_rq = self.se(se).cfs_rq;
            if self.se(se).on_rq {
                self.update_curr(cfs_rq);
                self.wait_starts(se);
                self.insert_waiting(cfs_rq, se);
            }
            self.cfs_mut(cfs_rq).curr = None;
            level = self.se(se).parent;
        }
    }

    /// A task gets the CPU. Kernel: `set_next_entity()` at every level, from the root down.
    pub(crate) fn set_next_task_fair(&mut self, task: TaskId) {
        let se = self.tasks[task.index()].se;
        self.set_next_entity(se);
        if self.tasks[task.index()].is_queued() {
            let cpu = self.tasks[task.index()].cpu;
            let mut list = self.rqs[cpu.index()].cfs_tasks;
            list.remove(&mut self.tasks, task);
            list.push_newest(&mut self.tasks, task);
            self.rqs[cpu.index()].cfs_tasks = list;
        }
    }

    fn set_next_entity(&mut self, se: SeId) {
        if let Some(parent) = self.se(se).parent {
            self.set_next_entity(parent);
        }
        let cfs_rq = self.se(se).cfs_rq;
        let clock = self.rqs[self.cfs(cfs_rq).cpu.index()].clock.0;
        self.clear_buddies(se);
        if self.se(se).on_rq {
            self.wait_ends(se);
            self.remove_waiting(cfs_rq, se);
        }
        let entity = self.se_mut(se);
        entity.deadline_at_pick = entity.on_rq.then_some(entity.deadline);
        entity.exec_start = clock;
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
        self.cfs_mut(cfs_rq).curr = Some(se);
    }

    fn insert_waiting(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let entity = self.se(se);
        let (vruntime, deadline, weight) =
            (entity.vruntime, entity.deadline, entity.load.scaled_down() as i64);
        self.cfs_mut(cfs_rq).insert_waiting(Waiting { vruntime, deadline, weight, se });
    }

    fn remove_waiting(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let vruntime = self.se(se).vruntime;
        self.cfs_mut(cfs_rq).remove_waiting(se, vruntime);
    }

    /// Makes `cpu` the task's CPU (`__set_task_cpu()`); it must not be queued.
    pub(crate) fn move_entity_to(&mut self, task: TaskId, cpu: Cpu) {
        let se = self.tasks[task.index()].se;
        debug_assert!(!self.se(se).on_rq, "a queued task does not change queues");
        self.tasks[task.index()].cpu = cpu;
        self.se_mut(se).cfs_rq = CfsRqId(cpu.0);
    }

    /// Gives a task the weight of its policy and nice level; it is off its queue.
    ///
    /// Kernel: `reweight_task()`, `reweight_entity()`: lag is virtual time and scales with the inverse of the weight.
    pub(crate) fn reweight_task(&mut self, task: TaskId) {
        let load = self.tasks[task.index()].load_weight();
        let keeps_lag = self.generation.behaviours.placement == Placement::Lag;
        let se = self.tasks[task.index()].se;
        let entity = self.se_mut(se);
        debug_assert!(!entity.on_rq, "a task is reweighted off its queue");
        if keeps_lag {
            entity.vlag = entity.vlag * entity.load.scaled_down() as i64 / load.scaled_down() as i64;
        }
        entity.load = load;
    }
}
