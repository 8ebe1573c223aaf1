//! The scheduler of one machine: all runqueues, what they share, and what only they reach that look at all CPUs.

use fairlab_event::Cpu;

use crate::all_cpus::Shared;
use crate::balance::BalancerState;
use crate::cfs_rq::CfsRq;
use crate::cpumask::CpuMask;
use crate::domain::SchedDomains;
use crate::energy::EnergyModel;
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::generation::Feature;
use crate::pelt::CpuScale;
use crate::rq::{LockedRq, Rq};
use crate::rt::RtPeriod;
use crate::select::GivenCpu;
use crate::table::IdTable;
use crate::task::{Task, TaskId};

/// The scheduler of one machine.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) shared: Shared,
    pub(crate) rqs: IdTable<Rq>,
    pub(crate) domains: SchedDomains,
    pub(crate) balance: BalancerState,
    /// What CPUs draw, where tasks are placed by it.
    pub(crate) energy: Option<Box<EnergyModel>>,
    /// Of each last-level cache, by what its CPUs share: those marked idle (the RFC `idle-cpumask-v7`).
    pub(crate) idle_masks: Vec<CpuMask>,
    /// Open loop: what the core had of the CPUs of which something else is given, until that is over.
    pub(crate) own_cpus: Vec<GivenCpu>,
    /// The period of real-time tasks' limit.
    pub(crate) rt_period: RtPeriod,
    /// Places of ended tasks, if they are given away again; the next one last.
    pub(crate) ended: Option<Vec<TaskId>>,
}

impl Scheduler {
    /// Work on one CPU's queue (`rq_lock()`).
    #[inline(always)]
    pub(crate) fn rq_lock(&mut self, cpu: Cpu) -> LockedRq<'_> {
        LockedRq { rq: &mut self.rqs[cpu.index()], shared: &mut self.shared }
    }

    /// Work on the queue of the CPU that a task is on (`task_rq_lock()`).
    #[inline(always)]
    pub(crate) fn task_rq_lock(&mut self, task: TaskId) -> LockedRq<'_> {
        self.rq_lock(self.shared.tasks[task.index()].cpu)
    }

    /// Work on a `cfs_rq`, whose CPU it names.
    #[inline(always)]
    pub(crate) fn queue_rq_lock(&mut self, cfs_rq: CfsRqId) -> LockedRq<'_> {
        self.rq_lock(self.shared.cfs(cfs_rq).cpu)
    }

    /// Work on the `cfs_rq` that an entity competes on.
    #[inline(always)]
    pub(crate) fn entity_rq_lock(&mut self, se: SeId) -> LockedRq<'_> {
        self.queue_rq_lock(self.shared.se(se).cfs_rq)
    }

    /// A task.
    #[inline]
    pub fn task(&self, task: TaskId) -> &Task {
        self.shared.task(task)
    }

    /// The task that `cpu` runs.
    #[inline]
    pub fn curr(&self, cpu: Cpu) -> TaskId {
        self.shared.curr(cpu)
    }

    /// Whether `cpu` runs its idle task.
    #[inline]
    pub fn runs_idle_task(&self, cpu: Cpu) -> bool {
        self.shared.runs_idle_task(cpu)
    }

    /// Whether a reschedule is pending on `cpu`, lazily or not: it happens when the CPU next goes back to user mode.
    #[inline]
    pub fn need_resched(&self, cpu: Cpu) -> bool {
        self.shared.need_resched(cpu)
    }

    /// Whether a reschedule is pending on `cpu` that does not wait for a return to user mode (`test_tsk_need_resched()`).
    #[inline]
    pub fn need_resched_at_once(&self, cpu: Cpu) -> bool {
        self.shared.need_resched_at_once(cpu)
    }

    /// The frequency of `cpu` as a part of 1024 (`arch_scale_freq_capacity()`), and its capacity.
    pub fn cpu_scale(&self, cpu: Cpu) -> CpuScale {
        self.shared.cpu_scale(cpu)
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.shared.has(feature)
    }

    pub(crate) fn entity_of(&self, task: TaskId) -> &SchedEntity {
        self.shared.entity_of(task)
    }

    pub(crate) fn se(&self, se: SeId) -> &SchedEntity {
        self.shared.se(se)
    }

    pub(crate) fn se_mut(&mut self, se: SeId) -> &mut SchedEntity {
        self.shared.se_mut(se)
    }

    pub(crate) fn cfs(&self, cfs_rq: CfsRqId) -> &CfsRq {
        self.shared.cfs(cfs_rq)
    }

    pub(crate) fn cfs_mut(&mut self, cfs_rq: CfsRqId) -> &mut CfsRq {
        self.shared.cfs_mut(cfs_rq)
    }
}

impl Scheduler {
    /// What a CPU has when nothing but fair tasks uses it; to v4.20 threads of a core share it.
    ///
    /// Kernel: `capacity_orig_of()`, kernel/sched/fair.c.
    pub(crate) fn capacity_orig_of(&self, cpu: Cpu) -> u64 {
        self.rqs[cpu.index()].cpu_capacity_orig
    }
}
