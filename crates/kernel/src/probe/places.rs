//! Probes at the functions that put entities on queues and take them off, and at those that pick, tick and yield.

use fairlab_event::probes::{ProbeField, ProbePoint, ProbeText};
use fairlab_event::{Cpu, Ns};

use super::{WF_FORK, WF_SYNC, WF_TTWU, address_of_queue};
use crate::all_cpus::Shared;
use crate::cpumask::CpuMask;
use crate::entity::{CfsRqId, SeId};
use crate::generation::Feature;
use crate::rq::{DequeueFlags, LockedRq};
use crate::scheduler::Scheduler;
use crate::task::{Policy, Task, TaskId};
use crate::vruntime::Vruntime;

/// What `dequeue_entities()` returns where the entity stays on its queue, and where it has left.
const DELAYED: i32 = -1;
const LEFT: i32 = 1;

/// Flags of a dequeue.
const DEQUEUE_SLEEP: u32 = 0x1;
const DEQUEUE_SAVE: u32 = 0x2;

impl Shared {
    /// A function that is about one entity returns.
    #[inline]
    pub(crate) fn probe_return(&mut self, point: ProbePoint, function: &'static str, se: SeId) {
        self.probe(point, move |shared| {
            let mut text = ProbeText::at_return(function, "caller");
            shared.show_entity(&mut text, se);
            text
        });
    }

    /// `dequeue_entities()` returns; it is there since sleepers may stay on their queue.
    #[inline]
    pub(crate) fn probe_dequeued(&mut self, se: SeId, delayed: bool) {
        let exists = self.generation.features.has(Feature::DelayDequeue);
        if exists {
            self.probe(ProbePoint::DequeueEntitiesReturn, move |shared| {
                let mut text = ProbeText::at_return("dequeue_entities", "dequeue_task_fair");
                text.put(ProbeField::Returned, if delayed { DELAYED } else { LEFT });
                shared.show_entity(&mut text, se);
                text
            });
        }
    }

    /// `put_prev_entity()` is entered.
    #[inline]
    pub(crate) fn probe_put(&mut self, se: SeId) {
        self.probe(ProbePoint::PutPrevEntity, move |shared| {
            let mut text = ProbeText::entry("put_prev_entity");
            text.hex(ProbeField::CfsRq, address_of_queue(shared.se(se).cfs_rq));
            shared.show_entity(&mut text, se);
            text
        });
    }

    /// `yield_task_fair()` is entered.
    pub(crate) fn probe_yield(&mut self, cpu: Cpu) {
        self.probe_call(ProbePoint::Yield, move |shared| {
            let mut text = ProbeText::entry("yield_task_fair");
            text.put(ProbeField::Cpu, cpu);
            text.put(ProbeField::CurrentPid, shared.pid_number(shared.curr(cpu)));
            text
        });
    }

    /// A sleeper that stayed on its queue is about to be woken there.
    #[inline]
    pub(crate) fn probe_requeue(&mut self, se: SeId) {
        self.probe(ProbePoint::RequeueDelayed, move |shared| {
            let mut text = ProbeText::entry("requeue_delayed_entity");
            shared.show_entity(&mut text, se);
            text
        });
    }
}

impl LockedRq<'_> {
    /// A function is entered that is about one entity and its queue.
    #[inline]
    pub(crate) fn probe_entity(
        &mut self,
        point: ProbePoint,
        function: &'static str,
        cfs_rq: CfsRqId,
        se: SeId,
    ) {
        self.probe(point, move |queue| {
            let mut text = ProbeText::entry(function);
            queue.show_queue(&mut text, cfs_rq);
            queue.shared.show_entity(&mut text, se);
            text
        });
    }

    /// `enqueue_entity()` is entered.
    #[inline]
    pub(crate) fn probe_queueing(&mut self, se: SeId) {
        self.probe(ProbePoint::EnqueueEntity, move |queue| queue.queueing("enqueue_entity", se));
    }

    /// `dequeue_entity()` is entered; of the flags it shows whether the entity goes to sleep or is to be put back.
    #[inline]
    pub(crate) fn probe_unqueueing(&mut self, se: SeId, flags: DequeueFlags) {
        self.probe(ProbePoint::DequeueEntity, move |queue| {
            let leaves = flags.sleep || flags.delayed || flags.throttle;
            let shown = match flags.migrating {
                _ if leaves => DEQUEUE_SLEEP,
                true => 0,
                false => DEQUEUE_SAVE,
            };
            let mut text = queue.queueing("dequeue_entity", se);
            text.hex(ProbeField::Flags, shown.into());
            text
        });
    }

    fn queueing(&self, function: &str, se: SeId) -> ProbeText {
        let (mut text, cfs_rq) = (ProbeText::entry(function), self.se(se).cfs_rq);
        self.show_queue(&mut text, cfs_rq);
        self.shared.show_averages(&mut text, cfs_rq);
        self.shared.show_entity(&mut text, se);
        text
    }

    /// `avg_vruntime()` returns to a function.
    #[inline]
    pub(crate) fn probe_average(&mut self, into: &'static str, cfs_rq: CfsRqId, average: Vruntime) {
        self.probe(ProbePoint::AverageReturn, move |queue| {
            let mut text = ProbeText::at_return("avg_vruntime", into);
            text.put(ProbeField::Average, average.0 as i64);
            queue.show_queue(&mut text, cfs_rq);
            text
        });
    }

    /// `reweight_entity()` is entered.
    #[inline]
    pub(crate) fn probe_reweight(&mut self, se: SeId, weight: u64) {
        self.probe(ProbePoint::ReweightEntity, move |queue| {
            let mut text = ProbeText::entry("reweight_entity");
            queue.show_queue(&mut text, queue.se(se).cfs_rq);
            queue.shared.show_entity(&mut text, se);
            text.put(ProbeField::NewWeight, weight);
            text
        });
    }

    /// `dequeue_entities()` is entered.
    #[inline]
    pub(crate) fn probe_dequeue(&mut self, se: SeId) {
        if self.shared.generation.features.has(Feature::DelayDequeue) {
            let cfs_rq = self.se(se).cfs_rq;
            self.probe_entity(ProbePoint::DequeueEntities, "dequeue_entities", cfs_rq, se);
        }
    }

    /// `task_tick_fair()` is entered.
    #[inline]
    pub(crate) fn probe_tick(&mut self, task: TaskId) {
        self.probe(ProbePoint::Tick, move |queue| {
            let cpu = queue.shared.task(task).cpu();
            let mut text = ProbeText::entry("task_tick_fair");
            text.put(ProbeField::Cpu, cpu);
            queue.shared.show_entity(&mut text, queue.shared.task(task).se);
            queue.shared.show_averages(&mut text, queue.rq.cfs);
            text.put(ProbeField::Clock, queue.rq.clock.0);
            text
        });
    }

    /// The test whether a fair task takes the CPU from another is entered; of the flags it shows new tasks and promises.
    #[inline]
    pub(crate) fn probe_test(&mut self, curr: TaskId, task: TaskId) {
        self.probe(ProbePoint::WakeupPreempt, move |queue| {
            let cpu = queue.shared.task(task).cpu();
            let flags = match queue.shared.task(task) {
                Task { is_new: true, .. } => WF_FORK,
                Task { woken_sync: true, .. } => WF_TTWU | WF_SYNC,
                _ => 0,
            };
            let mut text = ProbeText::entry("check_preempt_wakeup");
            text.put(ProbeField::Cpu, cpu)
                .put(ProbeField::CurrentPid, queue.shared.pid_number(curr))
                .put(ProbeField::Pid, queue.shared.pid_number(task))
                .hex(ProbeField::WakeFlags, flags.into())
                .put(ProbeField::Clock, queue.rq.clock.0);
            text
        });
    }
}

impl Scheduler {
    /// `sched_move_task()` is entered.
    pub(crate) fn probe_move(&mut self, task: TaskId) {
        self.shared.probe_call(ProbePoint::MoveGroup, move |scheduler| {
            let mut text = ProbeText::entry("sched_move_task");
            text.put(ProbeField::Pid, scheduler.pid_number(task));
            text.put(ProbeField::Cgroup, scheduler.task(task).group().inode());
            text
        });
    }

    /// `set_user_nice()` is entered.
    pub(crate) fn probe_nice(&mut self, task: TaskId, nice: i32) {
        self.shared.probe_call(ProbePoint::Nice, move |scheduler| {
            let mut text = ProbeText::entry("set_user_nice");
            text.put(ProbeField::Pid, scheduler.pid_number(task)).put(ProbeField::Nice, nice);
            text
        });
    }

    /// `__sched_setscheduler()` is entered.
    pub(crate) fn probe_setscheduler(
        &mut self,
        task: TaskId,
        policy: Policy,
        nice: i32,
        request: Option<Ns>,
    ) {
        let number = match policy {
            Policy::Fifo(_) => 1,
            Policy::RoundRobin(_) => 2,
            Policy::Batch => 3,
            Policy::Idle => 5,
            Policy::Deadline => 6,
            Policy::Normal | Policy::Stop | Policy::Swapper => 0,
        };
        self.shared.probe_call(ProbePoint::SetScheduler, move |scheduler| {
            let mut text = ProbeText::entry("__sched_setscheduler");
            text.put(ProbeField::Pid, scheduler.pid_number(task));
            text.put(ProbeField::Policy, number).put(ProbeField::Nice, nice);
            if let Some(request) = request {
                text.put(ProbeField::Slice, request.0);
            }
            text
        });
    }

    /// `sched_setaffinity()` is entered; the first 64 CPUs are shown.
    pub(crate) fn probe_affinity(&mut self, task: TaskId, allowed: &CpuMask) {
        self.shared.probe_call(ProbePoint::SetAffinity, move |scheduler| {
            let bits = allowed.iter().filter(|cpu| cpu.0 < 64).fold(0, |bits, cpu| bits | 1u64 << cpu.0);
            let mut text = ProbeText::entry("sched_setaffinity");
            text.put(ProbeField::Pid, scheduler.pid_number(task)).hex(ProbeField::Mask, bits);
            text
        });
    }
}
