//! Fork, first wakeup, exit, and changes of nice level and affinity.

use fairlab_event::{Cpu, EventKind, Ns, Prio, TaskState};

use crate::core::rules::AffinityDest;
use crate::cpumask::CpuMask;
use crate::entity::SchedEntity;
use crate::fair::rules::{ForkDeadline, ForkPlacement, LonePrioChange, NiceChange, Request};
use crate::group::IdleReweight;
use crate::pelt::ClassChange;
use crate::rq::{DequeueFlags, EnqueueFlags};
use crate::scheduler::Scheduler;
use crate::task::{OnRq, Policy, TaskId};

/// The least and the largest request that a task may have, ns.
const LEAST_REQUEST: u64 = 100_000;
const LARGEST_REQUEST: u64 = 100_000_000;

impl Scheduler {
    /// The running task of this CPU creates `child`: it is placed on its parent's queue for now, and the fork reported.
    ///
    /// Kernel: `sched_cgroup_fork()`, `task_fork_fair()`.
    pub fn fork(&mut self, child: TaskId) {
        let cpu = self.shared.trace.here;
        let parent = self.curr(cpu);
        let known = &self.shared.tasks[child.index()];
        debug_assert_eq!(known.on_rq, OnRq::New, "task {} is forked on CPU {cpu} once", known.pid);
        self.shared.move_entity_to(child, cpu);
        // dup_task_struct() copies the parent's waking history.
        let (flips, decay, wakee) = {
            let parent = &self.shared.tasks[parent.index()];
            (parent.wakee_flips, parent.wakee_flip_decay, parent.last_wakee)
        };
        let task = &mut self.shared.tasks[child.index()];
        (task.wakee_flips, task.wakee_flip_decay, task.last_wakee) = (flips, decay, wakee);
        let child_se = task.se;
        let is_fair = task.policy.is_fair();
        if self.shared.generation.fair.request != Request::BaseSlice {
            let SchedEntity { slice, custom_slice, max_slice, .. } = *self.entity_of(parent);
            let entity = self.se_mut(child_se);
            (entity.slice, entity.custom_slice, entity.max_slice) = (slice, custom_slice, max_slice);
        }
        if self.shared.generation.fair.fork_deadline == ForkDeadline::MayBeParents {
            let noted = self.entity_of(parent).relative_deadline;
            self.se_mut(child_se).relative_deadline = noted;
        }
        if is_fair {
            self.task_rq_lock(child).task_fork_fair(child);
        }
        self.report_fork(parent, child);
    }

    /// Reports a fork, and in what the child differs from its parent from the start.
    fn report_fork(&mut self, parent: TaskId, child: TaskId) {
        let (old, new) = (&self.shared.tasks[parent.index()], &self.shared.tasks[child.index()]);
        let allowed = (new.allowed != old.allowed).then_some(new.allowed);
        self.shared.report(EventKind::SchedProcessFork {
            comm: old.comm,
            pid: old.pid,
            child_comm: new.comm,
            child_pid: new.pid,
        });
        if let Some(allowed) = allowed {
            self.probe_affinity(child, &allowed);
        }
    }

    /// Queues a new task on `cpu` for the first time.
    ///
    /// Kernel: `wake_up_new_task()`.
    pub fn wake_up_new_task(&mut self, task: TaskId, cpu: Cpu) {
        let known = &self.shared.tasks[task.index()];
        assert_eq!(known.on_rq, OnRq::New, "task {} is new once, and is queued on CPU {cpu}", known.pid);
        self.shared.tasks[task.index()].recent_used_cpu = self.shared.tasks[task.index()].cpu;
        self.shared.move_entity_to(task, cpu);
        self.rq_lock(cpu).update_rq_clock();
        self.task_rq_lock(task).init_task_load(task);
        let initial = self.shared.generation.fair.fork_placement == ForkPlacement::WhereQueued;
        self.enqueue_task(task, EnqueueFlags { initial, ..EnqueueFlags::default() });
        self.shared.report(EventKind::SchedWakeupNew(self.shared.wakeup_of(task)));
        self.shared.tasks[task.index()].is_new = true;
        self.check_preempt(task);
        self.shared.tasks[task.index()].is_new = false;
    }

    /// A task begins to exit: it does not sleep after wakeups that promise so, which do not pull any more. It leaves its process.
    ///
    /// Kernel: `exit_signals()`, kernel/signal.c; `sched_cache_exit_mm()`, kernel/sched/fair.c.
    pub fn exit_signals(&mut self, task: TaskId) {
        let task = &mut self.shared.tasks[task.index()];
        task.exiting = true;
        let pid = task.pid;
        if let Some(process) = task.process.take() {
            self.shared.processes.leave(process, pid);
        }
    }

    /// The running task of `cpu` ends: it leaves its queue and is never seen again after the switch that follows.
    ///
    /// Kernel: `do_exit()`, `do_task_dead()`.
    pub fn exit(&mut self, cpu: Cpu) {
        let task = self.curr(cpu);
        assert!(!self.runs_idle_task(cpu), "CPU {cpu}: the idle task ends");
        let (comm, pid, prio) = {
            let task = &self.shared.tasks[task.index()];
            (task.comm, task.pid, task.prio())
        };
        self.shared.report(EventKind::SchedProcessExit { comm, pid, prio, group_dead: None });
        self.exit_signals(task);
        self.autogroup_exit_task(task);
        self.begin_schedule(cpu, TaskState::DEAD);
        self.shared.tasks[task.index()].on_rq = OnRq::Dead;
    }

    /// Changes a task's nice level.
    ///
    /// Kernel: `set_user_nice()`, `prio_changed_fair()`. Variants: `Reschedules` to v5.5, `Tested` from v5.6 (5443a0be6121).
    pub fn set_user_nice(&mut self, task: TaskId, nice: i32) {
        assert!((-20..=19).contains(&nice), "nice level {nice} is out of range");
        if self.shared.tasks[task.index()].nice == nice {
            return;
        }
        self.probe_nice(task, nice);
        let cpu = self.shared.tasks[task.index()].cpu;
        self.rq_lock(cpu).update_rq_clock();
        let old_prio = self.shared.tasks[task.index()].prio();
        self.while_off_queue(task, true, |scheduler| {
            scheduler.shared.tasks[task.index()].nice = nice;
            let policy = scheduler.shared.tasks[task.index()].policy;
            scheduler.change_weight(task, policy.is_fair());
        });
        if !self.shared.tasks[task.index()].is_queued() {
            return;
        }
        match self.shared.generation.fair.nice_change {
            NiceChange::Reschedules => {
                let (prio, runs) = (self.shared.tasks[task.index()].prio(), self.curr(cpu) == task);
                if prio < old_prio || (prio > old_prio && runs) {
                    self.shared.resched_curr(cpu, "set_user_nice");
                }
            }
            NiceChange::Tested if self.tests_new_prio(task, old_prio) => self.prio_changed(task, old_prio),
            NiceChange::Tested => {}
        }
    }

    /// Whether a queued task that has been given another priority is tested against what runs: a lone fair entity of its
    /// CPU's root queue is not, from v5.6 on.
    ///
    /// Kernel: `check_class_changed()`, the first lines of `prio_changed_fair()` (7c2e8bbd87db).
    pub fn tests_new_prio(&self, task: TaskId, old_prio: Prio) -> bool {
        let known = &self.shared.tasks[task.index()];
        let may_be_spared = self.shared.generation.fair.lone_prio_change == LonePrioChange::Ignored;
        let alone = may_be_spared
            && known.policy.is_fair()
            && self.shared.competitors_on(self.rqs[known.cpu.index()].cfs) == 1;
        known.prio() != old_prio && !alone
    }

    fn prio_changed(&mut self, task: TaskId, old_prio: Prio) {
        let known = &self.shared.tasks[task.index()];
        let (cpu, prio, is_rt) = (known.cpu, known.prio(), known.policy.is_rt());
        if self.curr(cpu) != task {
            self.check_preempt(task);
        } else if is_rt && self.has_more_urgent(task) {
            self.shared.resched_curr(cpu, "prio_changed_rt");
        } else if !is_rt && prio > old_prio {
            self.shared.resched_curr(cpu, "prio_changed_fair");
        }
    }

    /// Whether a task already is what `sched_setattr()` asks for: its queue is left alone.
    ///
    /// Kernel: `__sched_setscheduler()`. Where tasks may have slices of their own, one that asks for none is changed all the
    /// same. `SCHED_IDLE` takes neither.
    fn has_attributes(&self, task: TaskId, policy: Policy, nice: i32, request: Option<Ns>) -> bool {
        let known = &self.shared.tasks[task.index()];
        if known.policy != policy {
            return false;
        }
        let has_slice = self.shared.generation.fair.request == Request::BaseSlice
            || request.is_some_and(|request| request.0 == self.entity_of(task).slice);
        !policy.takes_nice() || (known.nice == nice && has_slice)
    }

    /// Changes a task's policy, nice level and request (`None`: the base slice). Whoever turns to real-time while it runs goes on.
    ///
    /// Kernel: `__sched_setscheduler()`, `check_class_changed()`, `switched_to_fair()`, `switched_to_rt()`.
    pub fn set_scheduler(&mut self, task: TaskId, policy: Policy, nice: i32, request: Option<Ns>) {
        assert!((-20..=19).contains(&nice), "nice level {nice} is out of range");
        self.probe_setscheduler(task, policy, nice, request);
        let cpu = self.shared.tasks[task.index()].cpu;
        self.rq_lock(cpu).update_rq_clock();
        if self.has_attributes(task, policy, nice, request) {
            return;
        }
        let was_fair = self.shared.tasks[task.index()].policy.is_fair();
        let old_prio = self.shared.tasks[task.index()].prio();
        self.change_scheduler(task, policy, nice, Some(request));
        if !self.shared.tasks[task.index()].is_queued() {
            return;
        }
        if was_fair != policy.is_fair() {
            if self.curr(cpu) != task {
                self.check_preempt(task);
            } else if policy.is_fair() {
                self.shared.resched_curr(cpu, "switched_to_fair");
            }
        } else if self.tests_new_prio(task, old_prio) {
            self.prio_changed(task, old_prio);
        }
    }

    /// The change itself, without what it leads to; `request`: what the task asks for from now on, if that changes.
    ///
    /// Its averages leave and join their queue last, by the weight that it then has.
    ///
    /// Kernel: from `dequeue_task()` to `switched_to()` in `__sched_setscheduler()`; `switched_from_fair()`.
    pub(crate) fn change_scheduler(
        &mut self,
        task: TaskId,
        policy: Policy,
        nice: i32,
        request: Option<Option<Ns>>,
    ) {
        let old = self.shared.tasks[task.index()].policy;
        let was_fair = old.is_fair();
        if let (OnRq::Delayed(_), false) = (self.shared.tasks[task.index()].on_rq, policy.is_fair()) {
            // Who sleeps leaves nothing behind.
            self.task_rq_lock(task).dequeue_delayed(task);
        }
        let mut after = self.shared.tasks[task.index()].clone();
        (after.policy, after.nice) = (policy, nice);
        // DEQUEUE_MOVE, unless its priority stays.
        let stays = after.prio() == self.shared.tasks[task.index()].prio();
        self.while_off_queue(task, stays, |scheduler| {
            let changed = &mut scheduler.shared.tasks[task.index()];
            changed.policy = policy;
            if policy.takes_nice() {
                changed.nice = nice;
                if let Some(request) = request {
                    scheduler.set_request(task, request);
                }
            }
            scheduler.change_weight(task, was_fair);
        });
        match (was_fair, policy.is_fair()) {
            (true, false) => self.detach_task_cfs_rq(task),
            (false, true) => self.attach_task_cfs_rq(task),
            _ => {}
        }
        self.begin_in_class(task, old);
    }

    /// A task that turns to another class while it runs: from now on that is what has the CPU.
    ///
    /// Kernel: `switched_to_rt()`, kernel/sched/rt.c, `switched_to_dl()`, kernel/sched/deadline.c, from v5.14 (fecfcbc288e9,
    /// d7d607096ae6).
    fn begin_in_class(&mut self, task: TaskId, old: Policy) {
        let (policy, cpu) = (self.shared.tasks[task.index()].policy, self.shared.tasks[task.index()].cpu);
        if self.shared.generation.pelt.class_change == ClassChange::CountsBefore || self.curr(cpu) != task {
            return;
        }
        if policy.is_rt() && !old.is_rt() {
            self.rq_lock(cpu).update_rt_rq_load_avg(false);
        } else if policy == Policy::Deadline && old != Policy::Deadline {
            self.rq_lock(cpu).update_dl_rq_load_avg(false);
        }
    }

    /// A task gets the weight of its policy and nice level; one that is not in the fair class counts on no queue.
    ///
    /// Kernel: `set_load_weight()`, kernel/sched/core.c. Variants: `WeightOnly` to v6.10, `WithLoad` from v6.11
    /// (d32960528702).
    fn change_weight(&mut self, task: TaskId, counts: bool) {
        let sets_only = self.shared.tasks[task.index()].policy == Policy::Idle
            && self.shared.generation.groups.idle_reweight == IdleReweight::WeightOnly;
        if counts && !sets_only {
            self.task_rq_lock(task).reweight_task(task);
        } else {
            let se = self.shared.tasks[task.index()].se;
            self.se_mut(se).load = self.shared.tasks[task.index()].load_weight();
        }
    }

    /// A task asks for `request` ns of run time at a time: 0.1 to 100 ms.
    ///
    /// Kernel: `__setparam_fair()` (857b158dc5e8).
    fn set_request(&mut self, task: TaskId, request: Option<Ns>) {
        if self.shared.generation.fair.request == Request::BaseSlice {
            return;
        }
        let base_slice = self.shared.sysctl.base_slice;
        let entity = &mut self.shared.entities[self.shared.tasks[task.index()].se.0 as usize];
        entity.custom_slice = request.is_some();
        entity.slice = request.map_or(base_slice, |request| request.0.clamp(LEAST_REQUEST, LARGEST_REQUEST));
        self.shared.own_requests |= entity.slice != base_slice;
    }

    /// A task leaves its queue's averages, and if it sleeps its virtual time, where that is relative between queues.
    ///
    /// Kernel: `detach_task_cfs_rq()`, `vruntime_normalized()`, kernel/sched/fair.c.
    pub(crate) fn detach_task_cfs_rq(&mut self, task: TaskId) {
        let (cfs_rq, se) = (self.entity_of(task).cfs_rq, self.shared.tasks[task.index()].se);
        if self.is_asleep(task) && self.shared.vruntime_is_relative_off_queue() {
            self.queue_rq_lock(cfs_rq).place_entity(cfs_rq, se, EnqueueFlags::default());
            self.shared.make_relative(cfs_rq, se);
        }
        self.entity_rq_lock(se).detach_entity_cfs_rq(se);
    }

    /// The reverse. Kernel: `attach_task_cfs_rq()`, kernel/sched/fair.c.
    pub(crate) fn attach_task_cfs_rq(&mut self, task: TaskId) {
        let se = self.shared.tasks[task.index()].se;
        self.entity_rq_lock(se).attach_entity_cfs_rq(se);
        if self.is_asleep(task) && self.shared.vruntime_is_relative_off_queue() {
            let (cfs_rq, se) = (self.entity_of(task).cfs_rq, self.shared.tasks[task.index()].se);
            self.shared.make_absolute(cfs_rq, se);
        }
    }

    fn is_asleep(&self, task: TaskId) -> bool {
        matches!(self.shared.tasks[task.index()].on_rq, OnRq::Sleeping(_))
    }

    /// Changes the CPUs that a task may use. Returns whether it stands on one that it may no longer use: the driver
    /// then moves it to the CPU that is chosen here.
    ///
    /// Kernel: `__set_cpus_allowed_ptr()`, `set_cpus_allowed_common()`. Nothing is done for the mask that the task has.
    pub fn set_cpus_allowed(&mut self, task: TaskId, allowed: CpuMask) -> bool {
        let (pid, online) = (self.shared.tasks[task.index()].pid, self.shared.topology.online());
        assert!(!allowed.and(online).is_empty(), "task {pid} may use {allowed}, of CPUs {online}");
        self.probe_affinity(task, &allowed);
        self.rq_lock(self.shared.tasks[task.index()].cpu).update_rq_clock();
        let online = *self.shared.topology.online();
        if self.shared.tasks[task.index()].allowed.and(&online) == allowed.and(&online) {
            return false;
        }
        self.shared.tasks[task.index()].affinity_dest = self.cpu_of_mask(&allowed.and(&online));
        self.while_off_queue(task, true, |scheduler| scheduler.shared.tasks[task.index()].allowed = allowed);
        self.report_allowed(self.shared.tasks[task.index()].pid, &allowed);
        let task = &self.shared.tasks[task.index()];
        !allowed.contains(task.cpu)
    }

    /// To which of these CPUs a task goes that may use them from now on.
    ///
    /// Kernel: `cpumask_any_and()`, `cpumask_any_and_distribute()`, lib/cpumask.c. Variants: `First` to v5.6; `InTurn` from v5.7
    /// (46a87b3851f0): the next after the one that this CPU chose last.
    fn cpu_of_mask(&mut self, allowed: &CpuMask) -> Cpu {
        let last = self.rqs[self.shared.trace.here.index()].last_distributed;
        let from = match self.shared.generation.core.affinity_dest {
            AffinityDest::First => Cpu(0),
            AffinityDest::InTurn => Cpu(last.0 + 1),
        };
        let chosen = allowed.iter_wrap(from).next().expect("a task must be allowed on some CPU");
        self.rqs[self.shared.trace.here.index()].last_distributed = chosen;
        chosen
    }

    /// What the stopper of a CPU does for a task that waits there and no longer may: it goes to the CPU that was chosen when
    /// its mask changed. Returns whether it went; it may have been moved before.
    ///
    /// Kernel: `migration_cpu_stop()`, `__migrate_task()`, kernel/sched/core.c.
    pub fn migration_cpu_stop(&mut self, task: TaskId) -> bool {
        let known = &self.shared.tasks[task.index()];
        let (cpu, queued) = (known.cpu, known.is_queued());
        let dest = known.affinity_dest;
        let moves = queued && !known.allowed.contains(cpu) && self.curr(cpu) != task;
        if moves {
            self.move_queued_task(task, dest);
        }
        moves
    }

    /// A task that sleeps on its queue leaves that, and sleeps on.
    pub fn end_delayed_sleep(&mut self, task: TaskId) {
        let cpu = self.shared.tasks[task.index()].cpu;
        self.rq_lock(cpu).update_rq_clock();
        self.task_rq_lock(task).dequeue_delayed(task);
    }

    /// Takes a task off its queue, lets `change` work on it, and puts it back (`DEQUEUE_SAVE`, `ENQUEUE_RESTORE`; where it
    /// does not stay what it is, `DEQUEUE_MOVE`, too).
    pub(crate) fn while_off_queue(&mut self, task: TaskId, stays: bool, change: impl FnOnce(&mut Scheduler)) {
        let known = &self.shared.tasks[task.index()];
        let queued = (known.is_queued() || known.is_delayed()) && known.policy != Policy::Swapper;
        let running = self.curr(self.shared.tasks[task.index()].cpu) == task;
        let (rt_place, old_prio) = (self.place_among_rt(task).filter(|_| stays), known.prio());
        if queued {
            self.dequeue_task(task, DequeueFlags { save: stays, ..DequeueFlags::default() });
        }
        if running {
            self.put_prev_task(task);
        }
        change(self);
        if queued {
            self.enqueue_task(task, EnqueueFlags::default());
            self.keep_place_among_rt(task, rt_place, old_prio);
        }
        if running {
            self.set_next_task(task, false);
            self.task_rq_lock(task).account_new_levels(None, task);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::ablation::AblationSituation;
    use crate::cpumask::CpuMask;
    use crate::group::GroupId;
    use crate::task::{Policy, TaskId};
    use crate::testbed::{MS, SchedulerTestbed};
    use fairlab_event::{Cpu, Ns};

    pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[
        ("affinity-in-turn", |kernel| u64::from(second_dest(kernel).0)),
        ("fork-deadline", request_of_child),
    ];

    /// How far a fair child of a parent that has just turned to real-time has to its first deadline, ns.
    fn request_of_child(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 4, 1);
        let parent = bed.spawn(0, 0);
        bed.spawn(0, 0);
        bed.pass(MS);
        bed.at(0);
        bed.scheduler.set_scheduler(parent, Policy::Fifo(1), 0, None);
        let child = bed.spawn(0, 0);
        bed.entity(child).deadline.minus(bed.entity(child).vruntime) as u64
    }

    /// From v6.12 a change of class leaves the distance to the deadline noted; to v7.0 a child took it over.
    #[test]
    fn a_childs_first_request_is_its_own() {
        let requests = ["v6.11", "v6.12", "v7.0", "v7.1"].map(request_of_child);
        let of = |kernel: &str| {
            let bed = SchedulerTestbed::new(kernel, 4, 1);
            bed.scheduler.shared.sysctl.base_slice
        };
        assert_eq!(requests[0], of("v6.11"));
        assert!(requests[1] < of("v6.12") && requests[2] < of("v7.0"), "{requests:?}");
        assert_eq!(requests[3], of("v7.1") / 2, "it joins with half a request");
    }

    /// Where the second of two running tasks goes that may use CPUs 1 to 3 from now on.
    fn second_dest(kernel: &str) -> Cpu {
        let mut bed = SchedulerTestbed::new(kernel, 4, 1);
        let tasks = [bed.spawn(0, 0), bed.spawn(0, 0)];
        let allowed = [1, 2, 3].into_iter().map(Cpu).collect::<CpuMask>();
        bed.at(0);
        for task in tasks {
            assert!(bed.scheduler.set_cpus_allowed(task, allowed), "{kernel}: it may not stay");
        }
        bed.scheduler.shared.tasks[tasks[1].index()].affinity_dest
    }

    #[test]
    fn tasks_that_may_not_stay_are_spread_from_v5_7() {
        assert_eq!(["v5.6", "v5.7", "v6.1", "v7.2"].map(second_dest), [1, 2, 2, 2].map(Cpu));
    }

    #[test]
    fn the_mask_that_a_task_has_chooses_nothing() {
        let mut bed = SchedulerTestbed::new("v6.1", 4, 1);
        let task = bed.spawn(0, 0);
        let pair = [1, 2].into_iter().map(Cpu).collect::<CpuMask>();
        bed.at(0);
        assert!(bed.scheduler.set_cpus_allowed(task, pair));
        assert!(!bed.scheduler.set_cpus_allowed(task, pair), "as it was");
        assert_eq!(bed.scheduler.rqs[0].last_distributed, Cpu(1));
    }

    /// A running task asks for what it has: it is not even charged, unless its slice might be another.
    #[test]
    fn attributes_that_a_task_has_leave_its_queue_alone() {
        let charged = |kernel: &str, nice: i32, slice: Option<Ns>| {
            let mut bed = SchedulerTestbed::new(kernel, 1, 1);
            let task = bed.spawn(3, 0);
            bed.spawn(0, 0);
            bed.at(0);
            bed.scheduler.set_scheduler(task, Policy::Normal, 3, Some(Ns(2_000_000)));
            bed.pass(MS);
            bed.at(0);
            let before = bed.scheduler.sum_exec_runtime(task);
            bed.scheduler.set_scheduler(task, Policy::Normal, nice, slice);
            bed.scheduler.sum_exec_runtime(task) != before
        };
        for kernel in ["v5.10", "v6.1", "v6.11"] {
            assert!(!charged(kernel, 3, None), "{kernel}");
            assert!(charged(kernel, 4, None), "{kernel}: another nice level");
        }
        let mut bed = SchedulerTestbed::new("v6.1", 1, 1);
        let idle = bed.spawn_with(0, 0, Policy::Idle, CpuMask::ALL);
        bed.at(0);
        bed.scheduler.set_scheduler(idle, Policy::Idle, 7, None);
        assert_eq!(bed.scheduler.task(idle).nice(), 0, "SCHED_IDLE takes no nice level");
        for kernel in ["v6.12", "v7.2"] {
            assert!(charged(kernel, 3, None), "{kernel}: to the base slice");
            assert!(!charged(kernel, 3, Some(Ns(2_000_000))), "{kernel}: the slice that it has");
        }
    }

    /// What a fair task that weighs little brought to its queue leaves with it, whatever it weighs in its new class.
    #[test]
    fn a_task_leaves_the_fair_class_with_what_it_brought() {
        for kernel in ["v5.10", "v6.1", "v6.12", "v7.2"] {
            let mut bed = SchedulerTestbed::new(kernel, 1, 1);
            let task = bed.spawn_with(0, 0, Policy::Idle, CpuMask::ALL);
            bed.run(0, 50);
            bed.at(0);
            bed.scheduler.set_scheduler(task, Policy::Fifo(1), 0, None);
            let left = bed.scheduler.cfs(bed.scheduler.rqs[0].cfs).tracked.avg;
            assert_eq!((left.load_avg, left.util_avg), (0, 0), "{kernel}");
            assert!(!bed.scheduler.need_resched(Cpu(0)), "{kernel}: it goes on");
        }
    }

    fn order_of(bed: &SchedulerTestbed) -> Vec<TaskId> {
        bed.scheduler.shared.cpus[0].rt.queue.clone()
    }

    #[test]
    fn a_change_of_cpus_keeps_a_real_time_task_in_its_place() {
        let mut bed = SchedulerTestbed::new("v6.1", 2, 1);
        let tasks = [0, 1, 2].map(|_| bed.spawn_with(0, 0, Policy::Fifo(5), CpuMask::ALL));
        bed.at(0);
        bed.scheduler.set_cpus_allowed(tasks[0], CpuMask::single(Cpu(0)));
        assert_eq!(order_of(&bed), tasks, "DEQUEUE_SAVE moves nobody");
        bed.scheduler.set_scheduler(tasks[2], Policy::Fifo(7), 0, None);
        bed.scheduler.set_scheduler(tasks[2], Policy::Fifo(5), 0, None);
        assert_eq!(order_of(&bed), [tasks[2], tasks[0], tasks[1]], "less urgent: before its equals");
    }

    /// A waiting task far behind takes the CPU when it is given another priority; not when it is given the one that it has,
    /// nor as long as its group is all that the root queue has. (From v6.6 the charge alone would ask for a reschedule.)
    #[test]
    fn a_new_priority_is_tested_beside_others() {
        for kernel in ["v5.10", "v6.1"] {
            let mut bed = SchedulerTestbed::new(kernel, 1, 1);
            let group = bed.scheduler.new_group(GroupId::ROOT, 100);
            let (_, waiting) = (bed.spawn_in(group, 0), bed.spawn_in(group, 0));
            bed.pass(100 * MS);
            bed.at(0);
            bed.scheduler.set_scheduler(waiting, Policy::Normal, 0, None);
            assert!(!bed.scheduler.need_resched(Cpu(0)), "{kernel}: the same priority");
            bed.scheduler.set_user_nice(waiting, -1);
            assert!(!bed.scheduler.need_resched(Cpu(0)), "{kernel}: nothing but its group");
            let mut bed = SchedulerTestbed::new(kernel, 1, 1);
            let (_, waiting) = (bed.spawn(0, 0), bed.spawn(0, 0));
            bed.pass(100 * MS);
            bed.at(0);
            bed.scheduler.set_user_nice(waiting, -1);
            assert!(bed.scheduler.need_resched(Cpu(0)), "{kernel}: another priority");
        }
    }

    /// To v5.5 a task that comes to weigh more has its CPU rescheduled, however far it is ahead; then it is tested.
    #[test]
    fn a_heavier_task_took_the_cpu_without_a_test() {
        let asks = |kernel: &str, nice: i32, runs: bool| {
            let mut bed = SchedulerTestbed::new(kernel, 1, 1);
            let tasks = [bed.spawn(0, 0), bed.spawn(0, 0)];
            bed.at(0);
            bed.scheduler.set_user_nice(tasks[usize::from(!runs)], nice);
            bed.scheduler.need_resched(Cpu(0))
        };
        for (kernel, tests) in [("v5.5", false), ("7c2e8bbd87db", false), ("v5.6", true)] {
            assert_eq!(asks(kernel, -1, false), !tests, "{kernel}: it waits");
            assert_eq!(asks(kernel, -1, true), !tests, "{kernel}: it runs");
            assert!(!asks(kernel, 1, false), "{kernel}: it waits and weighs less");
            assert!(asks(kernel, 1, true), "{kernel}: it runs and weighs less");
        }
    }

    /// From v5.6 a lone fair task's new priority leads to nothing.
    #[test]
    fn a_lone_task_goes_on_with_another_priority() {
        let asks = |kernel: &str, by_nice: bool| {
            let mut bed = SchedulerTestbed::new(kernel, 1, 1);
            let task = bed.spawn(0, 0);
            bed.at(0);
            match by_nice {
                true => bed.scheduler.set_user_nice(task, 5),
                false => bed.scheduler.set_scheduler(task, Policy::Normal, 5, None),
            }
            bed.scheduler.need_resched(Cpu(0))
        };
        assert_eq!([asks("v5.5", true), asks("v5.5", false)], [true, true]);
        assert_eq!([asks("7c2e8bbd87db", true), asks("7c2e8bbd87db", false)], [true, false]);
        assert_eq!([asks("v5.6", true), asks("v5.6", false)], [false, false]);
    }
}
