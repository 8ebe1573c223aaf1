//! What work on any CPU's runqueue may reach beside that runqueue: entities and their queues, tasks, groups, the rules, the
//! trace, and what the driver is asked for.
//!
//! Must not know: runqueues, domains, and whatever else only they reach that look at all CPUs.

use fairlab_event::Cpu;

use crate::cfs_rq::CfsRq;
use crate::cfs_rqs::CfsRqs;
use crate::cpufreq::Cpufreq;
use crate::cpumask::CpuMask;
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair::bandwidth::GroupTimer;
use crate::fair_server::state::FairServers;
use crate::generation::{Feature, Generation};
use crate::group::{GroupId, TaskGroup};
use crate::pelt::SchedAvg;
use crate::process::Processes;
use crate::rt::RtRq;
use crate::state_overrides::StateOverrides;
use crate::sysctl::Sysctl;
use crate::table::IdTable;
use crate::task::{Task, TaskId};
use crate::topology::Topology;
use crate::trace::TraceBuffer;

/// What others read of a CPU without the lock of its runqueue: what it runs, and how much other classes use of it.
///
/// What is used together stands together, in lines of 64 bytes.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct CpuContext {
    pub curr: TaskId,
    pub idle: TaskId,
    /// `TIF_NEED_RESCHED` of `curr`.
    pub need_resched: bool,
    /// `TIF_NEED_RESCHED_LAZY` of `curr`.
    pub need_resched_lazy: bool,
    /// Queued real-time tasks.
    pub rt: RtRq,
    /// How much of the CPU real-time tasks use.
    pub avg_rt: SchedAvg,
    /// How much threads use that set clocks.
    pub avg_dl: SchedAvg,
}

impl CpuContext {
    /// A CPU that runs its idle task.
    pub fn new(idle: TaskId) -> CpuContext {
        CpuContext {
            curr: idle,
            idle,
            need_resched: false,
            need_resched_lazy: false,
            rt: RtRq::default(),
            avg_rt: SchedAvg::default(),
            avg_dl: SchedAvg::default(),
        }
    }
}

/// A cache line that several CPUs use, by what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedLine {
    /// `tg->load_avg`, which the queues of a group on all CPUs share.
    GroupLoad(GroupId),
    /// The lock of a CPU's runqueue.
    QueueLock(Cpu),
    /// The wakeups that were left to a CPU (`call_single_queue`).
    WakeList(Cpu),
    /// Whether some CPU has tasks to spare (`rd->overload`).
    Overload,
    /// How many CPUs have stopped their tick, and when they are balanced next (`struct nohz`).
    IdleCount,
    /// Which they are (`nohz.idle_cpus_mask`).
    IdleMask,
    /// What is known of the CPUs under one cache (`struct sched_domain_shared`), by its number.
    CacheState(u32),
}

/// A use of such a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineUse {
    /// What is used.
    pub line: SharedLine,
    /// Who uses it.
    pub cpu: Cpu,
    /// It is written, not only read.
    pub writes: bool,
}

/// Uses of lines that all CPUs share, where a driver wants to know them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineUses {
    pub wanted: bool,
    pub uses: Vec<LineUse>,
}

/// What all CPUs share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub generation: Generation,
    pub topology: Topology,
    pub sysctl: Sysctl,
    pub cpus: IdTable<CpuContext>,
    pub cfs_rqs: CfsRqs,
    pub entities: IdTable<SchedEntity>,
    pub tasks: IdTable<Task>,
    pub groups: IdTable<TaskGroup>,
    pub processes: Processes,
    pub cpufreq: Cpufreq,
    pub trace: TraceBuffer,
    /// CPUs that have nothing to do and nothing on the way.
    pub idle_cpus: CpuMask,
    /// Some CPU has tasks to spare, as balancing last saw it (`rd->overload`, `overloaded`).
    pub overloaded: bool,
    /// Whether any task that is idle by policy has ever been queued, or any group made idle.
    pub idle_policy_used: bool,
    /// Whether queued entities may have requests of their own; otherwise each is the base slice.
    pub own_requests: bool,
    /// Whether any group has ever had a quota (`cfs_bandwidth_used()`).
    pub bandwidth_used: bool,
    /// CPUs whose `need_resched` was set since the driver last asked.
    pub marked: Vec<Cpu>,
    /// Groups' timers started, and CPUs called to unthrottle, since the driver last asked.
    pub started_timers: Vec<GroupTimer>,
    pub unthrottle_calls: Vec<Cpu>,
    /// What all CPUs' fair servers share.
    pub fair_servers: FairServers,
    /// CPUs whose slice timer, or a fair server's there, has changed since the driver last asked.
    pub hrticks_moved: Vec<Cpu>,
    /// CPUs that are to be interrupted to start their slice timer, since the driver last asked.
    pub hrtick_calls: Vec<Cpu>,
    /// Uses of lines that all CPUs share, since the driver last asked.
    pub line_uses: LineUses,
    /// What the clocks of load tracking are ahead of the others'.
    pub pelt_epoch: u64,
    /// What a driver answers in the state's place.
    pub hooks: StateOverrides,
}

impl Shared {
    /// The CPU at work reads or writes a line that others use, too.
    #[inline]
    pub(crate) fn note_line(&mut self, line: SharedLine, writes: bool) {
        if self.line_uses.wanted {
            self.line_uses.uses.push(LineUse { line, cpu: self.trace.here, writes });
        }
    }

    /// Whether some CPU has tasks to spare is known anew: the line is read, and written if that is news.
    #[inline]
    pub(crate) fn set_overloaded(&mut self, overloaded: bool) {
        self.note_line(SharedLine::Overload, self.overloaded != overloaded);
        self.overloaded = overloaded;
    }

    /// A task.
    #[inline]
    pub(crate) fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }

    /// The task that `cpu` runs.
    #[inline]
    pub(crate) fn curr(&self, cpu: Cpu) -> TaskId {
        self.cpus[cpu.index()].curr
    }

    /// Whether `cpu` runs its idle task.
    #[inline]
    pub(crate) fn runs_idle_task(&self, cpu: Cpu) -> bool {
        let context = &self.cpus[cpu.index()];
        context.curr == context.idle
    }

    /// Whether a reschedule is pending on `cpu`, lazily or not: it happens when the CPU next goes back to user mode.
    #[inline]
    pub(crate) fn need_resched(&self, cpu: Cpu) -> bool {
        let context = &self.cpus[cpu.index()];
        context.need_resched || context.need_resched_lazy
    }

    /// Whether a reschedule is pending on `cpu` that does not wait for a return to user mode (`test_tsk_need_resched()`).
    #[inline]
    pub(crate) fn need_resched_at_once(&self, cpu: Cpu) -> bool {
        self.cpus[cpu.index()].need_resched
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.generation.features.enabled(feature)
    }

    pub(crate) fn entity_of(&self, task: TaskId) -> &SchedEntity {
        &self.entities[self.tasks[task.index()].se.0 as usize]
    }

    pub(crate) fn se(&self, se: SeId) -> &SchedEntity {
        &self.entities[se.0 as usize]
    }

    pub(crate) fn se_mut(&mut self, se: SeId) -> &mut SchedEntity {
        &mut self.entities[se.0 as usize]
    }

    /// An entity and a queue, to change both.
    #[inline(always)]
    pub(crate) fn entity_and_queue(&mut self, se: SeId, cfs_rq: CfsRqId) -> (&mut SchedEntity, &mut CfsRq) {
        (&mut self.entities[se.0 as usize], &mut self.cfs_rqs[cfs_rq.0 as usize])
    }

    pub(crate) fn cfs(&self, cfs_rq: CfsRqId) -> &CfsRq {
        &self.cfs_rqs[cfs_rq.0 as usize]
    }

    pub(crate) fn cfs_mut(&mut self, cfs_rq: CfsRqId) -> &mut CfsRq {
        &mut self.cfs_rqs[cfs_rq.0 as usize]
    }
}

impl Shared {
    /// How big a CPU is against the biggest at its highest frequency, 0…1024.
    ///
    /// Kernel: `arch_scale_cpu_capacity()`, without a domain: what threads of a core share is not asked for.
    pub(crate) fn arch_scale_cpu_capacity(&self, cpu: Cpu) -> u64 {
        u64::from(self.topology.capacity(cpu))
    }
}
