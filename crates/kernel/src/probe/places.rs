//! Probes at the functions that put entities on queues and take them off, and at those that pick, tick and yield.

use fairlab_event::Cpu;

use super::address_of_queue;
use super::selection::{WF_FORK, WF_SYNC, WF_TTWU};
use crate::core::{DequeueFlags, Scheduler};
use crate::cpumask::CpuMask;
use crate::entity::{CfsRqId, SeId};
use crate::generation::Feature;
use crate::task::{Policy, Task, TaskId};
use crate::vruntime::Vruntime;

/// What `dequeue_entities()` returns where the entity stays on its queue, and where it has left.
const DELAYED: i32 = -1;
const LEFT: i32 = 1;

/// Flags of a dequeue.
const DEQUEUE_SLEEP: u32 = 0x1;
const DEQUEUE_SAVE: u32 = 0x2;

impl Scheduler {
    /// A function is entered that is about one entity and its queue.
    #[inline]
    pub(crate) fn probe_entity(&mut self, name: &'static str, function: &'static str, se: SeId) {
        self.probe(name, move |scheduler| {
            let queue = scheduler.queue_fields(scheduler.se(se).cfs_rq);
            format!("({function}+0x0/0x0) {queue} {}", scheduler.entity_fields(se))
        });
    }

    /// `enqueue_entity()` is entered.
    #[inline]
    pub(crate) fn probe_queueing(&mut self, se: SeId) {
        self.probe("enqe", move |scheduler| {
            format!("(enqueue_entity+0x0/0x0) {}", scheduler.queueing_fields(se))
        });
    }

    /// `dequeue_entity()` is entered; of the flags it shows whether the entity goes to sleep or is to be put back.
    #[inline]
    pub(crate) fn probe_unqueueing(&mut self, se: SeId, flags: DequeueFlags) {
        self.probe("deqe", move |scheduler| {
            let leaves = flags.sleep || flags.delayed || flags.throttle;
            let shown = match flags.migrating {
                _ if leaves => DEQUEUE_SLEEP,
                true => 0,
                false => DEQUEUE_SAVE,
            };
            format!("(dequeue_entity+0x0/0x0) {} fl={shown:#x}", scheduler.queueing_fields(se))
        });
    }

    fn queueing_fields(&self, se: SeId) -> String {
        let cfs_rq = self.se(se).cfs_rq;
        let (queue, averages) = (self.queue_fields(cfs_rq), self.average_fields(cfs_rq));
        format!("{queue} {averages} {}", self.entity_fields(se))
    }

    /// A function that is about one entity returns.
    #[inline]
    pub(crate) fn probe_return(&mut self, name: &'static str, function: &'static str, se: SeId) {
        self.probe(name, move |scheduler| {
            format!("(caller+0x0/0x0 <- {function}) {}", scheduler.entity_fields(se))
        });
    }

    /// `avg_vruntime()` returns to a function.
    #[inline]
    pub(crate) fn probe_average(&mut self, into: &'static str, cfs_rq: CfsRqId, average: Vruntime) {
        self.probe("avgv_r", move |scheduler| {
            let queue = scheduler.queue_fields(cfs_rq);
            format!("({into}+0x0/0x0 <- avg_vruntime) V={} {queue}", average.0 as i64)
        });
    }

    /// `reweight_entity()` is entered.
    #[inline]
    pub(crate) fn probe_reweight(&mut self, se: SeId, weight: u64) {
        self.probe("rew", move |scheduler| {
            let queue = scheduler.queue_fields(scheduler.se(se).cfs_rq);
            let entity = scheduler.entity_fields(se);
            format!("(reweight_entity+0x0/0x0) {queue} {entity} neww={weight}")
        });
    }

    /// `dequeue_entities()` returns; it is there since sleepers may stay on their queue.
    #[inline]
    pub(crate) fn probe_dequeued(&mut self, se: SeId, delayed: bool) {
        let exists = self.generation.features.has(Feature::DelayDequeue);
        if exists {
            self.probe("deqs_r", move |scheduler| {
                let returned = if delayed { DELAYED } else { LEFT };
                let entity = scheduler.entity_fields(se);
                format!("(dequeue_task_fair+0x0/0x0 <- dequeue_entities) ret={returned} {entity}")
            });
        }
    }

    /// `dequeue_entities()` is entered.
    #[inline]
    pub(crate) fn probe_dequeue(&mut self, se: SeId) {
        if self.generation.features.has(Feature::DelayDequeue) {
            self.probe_entity("deqs", "dequeue_entities", se);
        }
    }

    /// `put_prev_entity()` is entered.
    #[inline]
    pub(crate) fn probe_put(&mut self, se: SeId) {
        self.probe("putp", move |scheduler| {
            let cfs_rq = scheduler.se(se).cfs_rq;
            let entity = scheduler.entity_fields(se);
            format!("(put_prev_entity+0x0/0x0) cf={:#x} {entity}", address_of_queue(cfs_rq))
        });
    }

    /// `task_tick_fair()` is entered.
    #[inline]
    pub(crate) fn probe_tick(&mut self, task: TaskId) {
        self.probe("tick", move |scheduler| {
            let cpu = scheduler.task(task).cpu();
            let averages = scheduler.average_fields(scheduler.rqs[cpu.index()].cfs);
            let entity = scheduler.entity_fields(scheduler.task(task).se);
            let clock = scheduler.rqs[cpu.index()].clock.0;
            format!("(task_tick_fair+0x0/0x0) cpu={cpu} {entity} {averages} ck={clock}")
        });
    }

    /// The test whether a fair task takes the CPU from another is entered; of the flags it shows new tasks and promises.
    #[inline]
    pub(crate) fn probe_test(&mut self, curr: TaskId, task: TaskId) {
        self.probe("wkpre", move |scheduler| {
            let cpu = scheduler.task(task).cpu();
            let (running, woken) = (scheduler.pid_number(curr), scheduler.pid_number(task));
            let clock = scheduler.rqs[cpu.index()].clock.0;
            let flags = match scheduler.task(task) {
                Task { is_new: true, .. } => WF_FORK,
                Task { woken_sync: true, .. } => WF_TTWU | WF_SYNC,
                _ => 0,
            };
            format!(
                "(check_preempt_wakeup+0x0/0x0) cpu={cpu} cpid={running} pid={woken} wf={flags:#x} ck={clock}"
            )
        });
    }

    /// `yield_task_fair()` is entered.
    pub(crate) fn probe_yield(&mut self, cpu: Cpu) {
        self.probe("yld", move |scheduler| {
            let running = scheduler.pid_number(scheduler.curr(cpu));
            format!("(yield_task_fair+0x0/0x0) cpu={cpu} cpid={running}")
        });
    }

    /// `sched_move_task()` is entered.
    pub(crate) fn probe_move(&mut self, task: TaskId) {
        self.probe("movegrp", move |scheduler| {
            let inode = scheduler.task(task).group().inode();
            format!("(sched_move_task+0x0/0x0) pid={} cg={inode}", scheduler.pid_number(task))
        });
    }

    /// A task has come into the cgroup that it is in (`cgroup_attach_task`).
    pub(crate) fn probe_attached(&mut self, task: TaskId) {
        self.probe_event("cgroup_attach_task", |scheduler| {
            let (task, inode) = (scheduler.task(task), scheduler.task(task).group().inode());
            format!("dst_root=1 dst_id={inode} dst_level=1 dst_path=/ pid={} comm={}", task.pid.0, task.comm)
        });
    }

    /// `set_user_nice()` is entered.
    pub(crate) fn probe_nice(&mut self, task: TaskId, nice: i32) {
        self.probe("nice", move |scheduler| {
            format!("(set_user_nice+0x0/0x0) pid={} nice={nice}", scheduler.pid_number(task))
        });
    }

    /// `__sched_setscheduler()` is entered.
    pub(crate) fn probe_setscheduler(&mut self, task: TaskId, policy: Policy, nice: i32) {
        let number = match policy {
            Policy::Fifo(_) => 1,
            Policy::RoundRobin(_) => 2,
            Policy::Batch => 3,
            Policy::Idle => 5,
            Policy::Deadline => 6,
            Policy::Normal | Policy::Stop | Policy::Swapper => 0,
        };
        self.probe("setsched", move |scheduler| {
            let pid = scheduler.pid_number(task);
            format!("(__sched_setscheduler+0x0/0x0) pid={pid} policy={number} nice={nice}")
        });
    }

    /// `sched_setaffinity()` is entered; the first 64 CPUs are shown.
    pub(crate) fn probe_affinity(&mut self, task: TaskId, allowed: &CpuMask) {
        self.probe("setaff", move |scheduler| {
            let bits = allowed.iter().filter(|cpu| cpu.0 < 64).fold(0, |bits, cpu| bits | 1u64 << cpu.0);
            format!("(sched_setaffinity+0x0/0x0) pid={} mask={bits:#x}", scheduler.pid_number(task))
        });
    }

    /// A sleeper that stayed on its queue is about to be woken there.
    #[inline]
    pub(crate) fn probe_requeue(&mut self, se: SeId) {
        self.probe("requeue", move |scheduler| {
            format!("(requeue_delayed_entity+0x0/0x0) {}", scheduler.entity_fields(se))
        });
    }
}
