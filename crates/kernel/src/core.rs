//! `kernel/sched/core.c`: runqueues and tasks, wakeups, the switch, the tick — what the classes have in common.
//!
//! Methods come in the order in which a driver calls them: say where and when ([`Scheduler::set_here`]), ask for a
//! decision (`&self`), apply one (`&mut self`). An applied action reports the kernel's tracepoints and may mark CPUs
//! for rescheduling; the driver collects both.

mod hrtick;
mod idle;
mod lifecycle;
pub(crate) mod rules;
mod sched_info;
mod switch;
mod wakeup;

use fairlab_event::probes::ProbePoint;
use fairlab_event::{Comm, Cpu, Ns, Pid};

use crate::balance::Balance;
use crate::cfs_rq::CfsRq;
use crate::cpufreq::Cpufreq;
use crate::cpumask::CpuMask;
use crate::domain::Domains;
use crate::energy::EnergyModel;
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair::bandwidth::GroupTimer;
use crate::fair::load::UPTIME;
use crate::fair::rules::{LatencyCount, Placement, Reschedule};
use crate::generation::{Feature, Generation, Tunable};
use crate::group::TaskGroup;
use crate::open_loop::{GivenWeights, UnseenAsks};
use crate::rq::Rq;
use crate::rt::RtPeriod;
use crate::schedstat::RqCounters;
use crate::select::IdleMaskNote;
use crate::select::{GivenCpu, IdleTime};
use crate::table::Table;
use crate::task::{OnRq, Policy, Task, TaskId, TaskSpec};
use crate::topology::Topology;
use crate::tracepoint::TraceBuffer;
use crate::weight::LoadWeight;

pub use crate::tracepoint::Mode;
pub(crate) use sched_info::SchedInfo;
pub use wakeup::{WakeFlags, WakeKind, WakeStart};

/// Why a task is put on a queue (`ENQUEUE_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnqueueFlags {
    /// From sleep (`ENQUEUE_WAKEUP`).
    pub wakeup: bool,
    /// From sleep, on another CPU than before (`ENQUEUE_MIGRATED`).
    pub migrated: bool,
    /// Placed for the first time (`ENQUEUE_INITIAL`).
    pub initial: bool,
}

/// Why a task is taken off a queue (`DEQUEUE_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DequeueFlags {
    /// It goes to sleep (`DEQUEUE_SLEEP`).
    pub sleep: bool,
    /// It comes back to this queue at once (`DEQUEUE_SAVE` without `DEQUEUE_MOVE`).
    pub save: bool,
    /// It sleeps in a way that must not be put off (`DEQUEUE_SPECIAL`).
    pub special: bool,
    /// It slept already and leaves now (`DEQUEUE_DELAYED`).
    pub delayed: bool,
    /// It moves to another CPU (`task_on_rq_migrating()`).
    pub migrating: bool,
    /// Its group is throttled (`DEQUEUE_THROTTLE`).
    pub throttle: bool,
}

/// Tunables in force on this machine, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sysctl {
    pub latency: u64,
    pub min_granularity: u64,
    pub idle_min_granularity: u64,
    pub wakeup_granularity: u64,
    pub base_slice: u64,
    /// The same before it is scaled to the machine.
    pub normalised_slice: u64,
    /// How many tasks fit into one latency (`sched_nr_latency`).
    pub nr_latency: u64,
    /// How much runtime a queue takes from its group's pool at a time.
    pub bandwidth_slice: u64,
    /// One tick.
    pub tick: u64,
    /// How long a jiffy lasts, ns: a tick, unless the driver's kernel counts them otherwise.
    pub jiffy: u64,
    /// How long after a whole number of them on the driver's clock one begins, ns.
    pub jiffy_phase: u64,
    /// Ticks in a second (`HZ`).
    pub hz: u64,
    /// How long after running a task counts as cache-hot.
    pub migration_cost: u64,
}

/// The scheduler of one machine.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) generation: Generation,
    pub(crate) topology: Topology,
    pub(crate) domains: Domains,
    pub(crate) balance: Balance,
    pub(crate) sysctl: Sysctl,
    pub(crate) rqs: Table<Rq>,
    pub(crate) cfs_rqs: Table<CfsRq>,
    pub(crate) entities: Table<SchedEntity>,
    pub(crate) tasks: Table<Task>,
    pub(crate) groups: Table<TaskGroup>,
    pub(crate) cpufreq: Cpufreq,
    /// What CPUs draw, where tasks are placed by it.
    pub(crate) energy: Option<Box<EnergyModel>>,
    /// Of each last-level cache, by what its CPUs share: those marked idle (the RFC `idle-cpumask-v7`).
    pub(crate) idle_masks: Vec<CpuMask>,
    /// What becomes of them, if that is wanted.
    pub(crate) idle_mask_notes: Option<Vec<IdleMaskNote>>,
    pub(crate) trace: TraceBuffer,
    /// CPUs that have nothing to do and nothing on the way ([`note_idle`](Self::note_idle)).
    pub(crate) idle_cpus: CpuMask,
    /// Whether any task that is idle by policy has ever been queued, or any group made idle.
    pub(crate) idle_policy_used: bool,
    /// Whether queued entities may have requests of their own; otherwise each is the base slice.
    pub(crate) own_requests: bool,
    /// CPUs whose `need_resched` was set since the driver last asked.
    marked: Vec<Cpu>,
    /// Whether any group has ever had a quota (`cfs_bandwidth_used()`).
    pub(crate) bandwidth_used: bool,
    /// Groups' timers started, and CPUs called to unthrottle, since the driver last asked.
    pub(crate) started_timers: Vec<GroupTimer>,
    pub(crate) unthrottle_calls: Vec<Cpu>,
    /// What the clocks of load tracking are ahead of the others' (see [`UPTIME`]).
    pub(crate) pelt_epoch: u64,
    /// Open loop: what the core had of the CPUs of which something else is given, until that is over.
    pub(crate) own_cpus: Vec<GivenCpu>,
    /// Open loop: tasks of which it is known what a selection counts of their CPU's load.
    pub(crate) given_loads: Vec<(TaskId, u64)>,
    /// Open loop: queues that balancing may have asked for their loads, unseen.
    pub(crate) unseen_asks: UnseenAsks,
    /// The period of real-time tasks' limit.
    pub(crate) rt_period: RtPeriod,
    /// CPUs whose slice timer has changed since the driver last asked.
    pub(crate) hrticks_moved: Vec<Cpu>,
    /// Open loop: groups' entities have the weights that a real kernel gave them.
    pub(crate) given_weights: Option<GivenWeights>,
    /// Places of ended tasks, if they are given away again; the next one last.
    pub(crate) ended: Option<Vec<TaskId>>,
}

impl Scheduler {
    /// A machine at rest: every CPU runs its idle task. `tick_ns` is the tick's period (1 s / HZ).
    pub fn new(generation: Generation, topology: Topology, tick_ns: Ns) -> Scheduler {
        let sysctl = Sysctl::new(&generation, topology.nr_cpus(), tick_ns);
        let idle_time = IdleTime::new(sysctl.migration_cost);
        let order = generation.fair.pick.timeline_order();
        let cfs_rqs = topology.cpus().map(|cpu| CfsRq::new(cpu, order)).collect();
        let domains = Domains::new(&topology, &generation.domain);
        // Only placing by lag gives every entity that is queued a request.
        let own_requests = generation.fair.placement != Placement::Lag;
        let mut scheduler = Scheduler {
            generation,
            domains,
            balance: Balance::new(topology.nr_cpus()),
            sysctl,
            rqs: Table::with_capacity(topology.nr_cpus()),
            cfs_rqs,
            entities: Table::new(),
            tasks: Table::new(),
            groups: [TaskGroup::root(topology.nr_cpus())].into_iter().collect(),
            cpufreq: Cpufreq::default(),
            energy: None,
            idle_masks: Vec::new(),
            idle_mask_notes: None,
            trace: TraceBuffer::default(),
            idle_cpus: *topology.online(),
            idle_policy_used: false,
            own_requests,
            marked: Vec::new(),
            bandwidth_used: false,
            started_timers: Vec::new(),
            unthrottle_calls: Vec::new(),
            pelt_epoch: UPTIME,
            own_cpus: Vec::new(),
            given_loads: Vec::new(),
            unseen_asks: UnseenAsks::default(),
            rt_period: RtPeriod::default(),
            hrticks_moved: Vec::new(),
            given_weights: None,
            ended: None,
            topology,
        };
        for cpu in scheduler.topology.cpus() {
            let idle = scheduler.add_idle_task(cpu);
            scheduler.rqs.push(Rq::new(idle, CfsRqId(cpu.0), idle_time));
        }
        scheduler.init_llc_shared();
        scheduler
    }

    fn add_idle_task(&mut self, cpu: Cpu) -> TaskId {
        let idle = self.new_task(
            &TaskSpec {
                comm: Comm::swapper(cpu),
                pid: Pid::IDLE,
                tgid: Pid::IDLE,
                policy: Policy::Swapper,
                nice: 0,
                allowed: CpuMask::single(cpu),
                per_cpu_kthread: false,
            },
            cpu,
        );
        self.tasks[idle.index()].on_rq = OnRq::Queued;
        idle
    }

    /// From now on a new task may have the number of one that has ended and left its CPU: memory goes by how many there are.
    pub fn reuse_tasks(&mut self) {
        self.ended = Some(Vec::new());
    }

    /// Creates a task that is not queued yet; its CPU is `cpu` (its parent's).
    pub fn new_task(&mut self, spec: &TaskSpec, cpu: Cpu) -> TaskId {
        self.report_allowed(spec.pid, &spec.allowed);
        if let Some(id) = self.ended.as_mut().and_then(Vec::pop) {
            let se = self.tasks[id.index()].se;
            self.tasks[id.index()] = Task::new(spec, se, cpu);
            self.entities[se.0 as usize] = SchedEntity::for_task(id, self.first_load(id), CfsRqId(cpu.0));
            return id;
        }
        let id = TaskId(self.tasks.len() as u32);
        let se = SeId(self.entities.len() as u32);
        self.tasks.push(Task::new(spec, se, cpu));
        self.entities.push(SchedEntity::for_task(id, self.first_load(id), CfsRqId(cpu.0)));
        id
    }

    fn first_load(&self, task: TaskId) -> LoadWeight {
        let task = &self.tasks[task.index()];
        if task.policy.is_fair() { task.load_weight() } else { LoadWeight::of_nice(0) }
    }

    /// The rules in force.
    #[inline]
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// The machine.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Its scheduling domains.
    pub fn domains(&self) -> &Domains {
        &self.domains
    }

    /// What `cpu` counted for `/proc/schedstat`.
    pub fn counters(&self, cpu: Cpu) -> &RqCounters {
        &self.rqs[cpu.index()].counters
    }

    /// A task.
    #[inline]
    pub fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }

    /// Every task, in order of creation; those that have ended, too, unless their numbers are given away again.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter()
    }

    /// The task that `cpu` runs.
    #[inline]
    pub fn curr(&self, cpu: Cpu) -> TaskId {
        self.rqs[cpu.index()].curr
    }

    /// Whether `cpu` runs its idle task.
    #[inline]
    pub fn runs_idle_task(&self, cpu: Cpu) -> bool {
        let rq = &self.rqs[cpu.index()];
        rq.curr == rq.idle
    }

    /// Queued tasks of all classes on `cpu`, the running one included.
    #[inline]
    pub fn nr_running(&self, cpu: Cpu) -> u32 {
        self.rqs[cpu.index()].nr_running
    }

    /// All run time accounted to `task` so far, ns.
    pub fn sum_exec_runtime(&self, task: TaskId) -> Ns {
        Ns(self.entity_of(task).sum_exec_runtime)
    }

    /// The slice that a task asked for, if it did (`custom_slice`).
    pub fn own_request(&self, task: TaskId) -> Option<Ns> {
        let entity = self.entity_of(task);
        entity.custom_slice.then_some(Ns(entity.slice))
    }

    /// Whether a reschedule is pending on `cpu`, lazily or not: it happens when the CPU next goes back to user mode.
    #[inline]
    pub fn need_resched(&self, cpu: Cpu) -> bool {
        let rq = &self.rqs[cpu.index()];
        rq.need_resched || rq.need_resched_lazy
    }

    /// Whether a reschedule is pending on `cpu` that does not wait for a return to user mode (`test_tsk_need_resched()`).
    #[inline]
    pub fn need_resched_at_once(&self, cpu: Cpu) -> bool {
        self.rqs[cpu.index()].need_resched
    }

    /// Whether CPUs were marked for rescheduling since the driver last asked.
    #[inline]
    pub fn has_marked(&self) -> bool {
        !self.marked.is_empty()
    }

    /// Whether timers, calls of other CPUs or frequencies wait for the driver: what `take_started_timers()`,
    /// `take_unthrottle_calls()`, `take_moved_hrticks()` and `take_frequency_requests()` give.
    #[inline]
    pub fn asks_driver(&self) -> bool {
        self.bandwidth_used || !self.hrticks_moved.is_empty() || self.cpufreq.asks_driver()
    }

    /// CPUs marked for rescheduling since the last call, in order of marking.
    pub fn take_marked(&mut self, into: &mut Vec<Cpu>) {
        into.append(&mut self.marked);
    }

    /// Marks `cpu`'s running task for rescheduling (`resched_curr()`); `by` is the kernel's function that asks.
    pub(crate) fn resched_curr(&mut self, cpu: Cpu, by: &'static str) {
        self.probe_resched(ProbePoint::Resched, cpu, by);
        let rq = &mut self.rqs[cpu.index()];
        if !rq.need_resched {
            rq.need_resched = true;
            self.marked.push(cpu);
        }
    }

    /// The same for a fair task that makes way for another: no interrupt is sent for that where it is put off.
    ///
    /// Kernel: `resched_curr_lazy()`, kernel/sched/core.c (7c70cb94d29c).
    pub(crate) fn resched_curr_lazy(&mut self, cpu: Cpu, by: &'static str) {
        match self.generation.fair.reschedule {
            Reschedule::AtOnce => self.resched_curr(cpu, by),
            Reschedule::Lazily => {
                self.probe_resched(ProbePoint::ReschedLazy, cpu, by);
                self.rqs[cpu.index()].need_resched_lazy = true;
            }
        }
    }

    pub(crate) fn clear_need_resched(&mut self, cpu: Cpu) {
        let rq = &mut self.rqs[cpu.index()];
        (rq.need_resched, rq.need_resched_lazy) = (false, false);
    }

    /// Sets the queue's clock to now (`update_rq_clock()`).
    pub(crate) fn update_rq_clock(&mut self, cpu: Cpu) {
        let delta = self.trace.now.since(self.rqs[cpu.index()].clock).0;
        self.rqs[cpu.index()].clock = self.trace.now;
        self.update_rq_clock_pelt(cpu, delta);
    }

    /// The queue's clock has just been set and a switch is to come, which needs no other one.
    ///
    /// Kernel: `rq_clock_skip_update()`, kernel/sched/sched.h.
    pub(crate) fn rq_clock_skip_update(&mut self, cpu: Cpu) {
        self.rqs[cpu.index()].skips_clock_update = true;
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

/// How many tasks fit into one latency; `written` are latency and granularity in force. Scaling leaves the quotient as it is.
///
/// Kernel: `sched_nr_latency`, `sched_proc_update_handler()`; from v5.13 (8a99b6833c88) only `sched_update_scaling()` counts anew.
fn nr_latency(generation: &Generation, written: [u64; 2]) -> u64 {
    let own =
        [Tunable::Latency, Tunable::MinGranularity].map(|tunable| generation.tunables.normalised(tunable));
    let [latency, granularity] = match generation.fair.latency_count {
        LatencyCount::Written => written,
        LatencyCount::Unwritten => own.map(Option::unwrap_or_default),
    };
    latency.div_ceil(granularity.max(1))
}

impl Sysctl {
    fn new(generation: &Generation, nr_cpus: usize, tick: Ns) -> Sysctl {
        let value = |tunable| generation.tunables.effective(tunable, nr_cpus);
        let (latency, min_granularity) =
            (value(Tunable::Latency).unwrap_or(0), value(Tunable::MinGranularity));
        // Until it had a tunable of its own, EEVDF's request was the minimal granularity.
        let base_slice = value(Tunable::BaseSlice).or(min_granularity).unwrap_or(0);
        let min_granularity = min_granularity.unwrap_or(0);
        Sysctl {
            latency,
            min_granularity,
            idle_min_granularity: value(Tunable::IdleMinGranularity).unwrap_or(0),
            wakeup_granularity: value(Tunable::WakeupGranularity).unwrap_or(0),
            base_slice,
            normalised_slice: generation.tunables.normalised(Tunable::BaseSlice).unwrap_or(base_slice),
            nr_latency: nr_latency(generation, [latency, min_granularity]),
            bandwidth_slice: value(Tunable::BandwidthSlice).unwrap_or(0),
            tick: tick.0,
            jiffy: tick.0,
            jiffy_phase: 0,
            hz: Ns::from_secs(1).0 / tick.0.max(1),
            migration_cost: value(Tunable::MigrationCost).unwrap_or(0),
        }
    }
}
