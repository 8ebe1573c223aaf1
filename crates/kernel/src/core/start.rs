//! A machine at rest, and tasks that are new to it.

use fairlab_event::{Comm, Cpu, Ns, Pid};

use crate::all_cpus::{CpuContext, LineUses, Shared};
use crate::balance::{BalancerState, Gathering};
use crate::cfs_rq::CfsRq;
use crate::cfs_rqs::CfsRqs;
use crate::cpufreq::Cpufreq;
use crate::cpumask::CpuMask;
use crate::domain::SchedDomains;
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair::load_update::UPTIME;
use crate::fair::rules::Placement;
use crate::fair_server::state::FairServers;
use crate::generation::Generation;
use crate::group::TaskGroup;
use crate::process::Processes;
use crate::rq::Rq;
use crate::rt::RtPeriod;
use crate::scheduler::Scheduler;
use crate::select::IdleTime;
use crate::state_overrides::StateOverrides;
use crate::sysctl::Sysctl;
use crate::table::IdTable;
use crate::task::{OnRq, Policy, Task, TaskId, TaskSpec};
use crate::topology::Topology;
use crate::trace::TraceBuffer;
use crate::weight::LoadWeight;

impl Scheduler {
    /// A machine at rest: every CPU runs its idle task. `tick_ns` is the tick's period (1 s / HZ).
    pub fn new(generation: Generation, topology: Topology, tick_ns: Ns) -> Scheduler {
        let sysctl = Sysctl::new(&generation, topology.nr_cpus(), tick_ns);
        let idle_time = IdleTime::new(sysctl.migration_cost);
        let kind = generation.fair.timeline_kind();
        let cfs_rqs = CfsRqs::of_cpus(topology.cpus().map(|cpu| CfsRq::new(cpu, kind)));
        let domains = SchedDomains::new(&topology, &generation.domain);
        let gathers = generation.balance.gathering != Gathering::None;
        let processes = Processes::new(gathers, &topology, &domains, sysctl.hz);
        let shared = Shared {
            cpus: IdTable::with_capacity(topology.nr_cpus()),
            sysctl,
            cfs_rqs,
            entities: IdTable::new(),
            tasks: IdTable::new(),
            groups: [TaskGroup::root(topology.nr_cpus())].into_iter().collect(),
            processes,
            cpufreq: Cpufreq::default(),
            trace: TraceBuffer::default(),
            idle_cpus: *topology.online(),
            overloaded: false,
            idle_policy_used: false,
            // Only placing by lag gives every entity that is queued a request.
            own_requests: generation.fair.placement != Placement::Lag,
            bandwidth_used: false,
            marked: Vec::new(),
            started_timers: Vec::new(),
            unthrottle_calls: Vec::new(),
            fair_servers: FairServers::new(topology.nr_cpus(), sysctl.fair_server_runtime),
            hrticks_moved: Vec::new(),
            hrtick_calls: Vec::new(),
            line_uses: LineUses::default(),
            pelt_epoch: UPTIME,
            hooks: StateOverrides::default(),
            generation,
            topology,
        };
        let nr_cpus = shared.topology.nr_cpus();
        let mut scheduler = Scheduler {
            shared,
            rqs: IdTable::with_capacity(nr_cpus),
            domains,
            balance: BalancerState::new(nr_cpus),
            energy: None,
            idle_masks: Vec::new(),
            own_cpus: Vec::new(),
            rt_period: RtPeriod::default(),
            ended: None,
        };
        for cpu in (0..nr_cpus as u32).map(Cpu) {
            let idle = scheduler.add_idle_task(cpu);
            scheduler.shared.cpus.push(CpuContext::new(idle));
            let capacity = scheduler.domains.cpu_capacity_orig(cpu);
            let mut rq = Rq::new(cpu, capacity, idle_time);
            if scheduler.shared.processes.active() {
                rq.llc_counts = vec![0; nr_cpus];
            }
            scheduler.rqs.push(rq);
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
                kthread: true,
                per_cpu_kthread: false,
            },
            cpu,
        );
        self.shared.tasks[idle.index()].on_rq = OnRq::Queued;
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
            let se = self.shared.tasks[id.index()].se;
            self.shared.tasks[id.index()] = self.task_of(spec, se, cpu);
            self.shared.entities[se.0 as usize] =
                SchedEntity::for_task(id, self.first_load(id), CfsRqId::root(cpu));
            return id;
        }
        let id = TaskId(self.shared.tasks.len() as u32);
        let se = SeId(self.shared.entities.len() as u32);
        let task = self.task_of(spec, se, cpu);
        self.shared.tasks.push(task);
        self.shared.entities.push(SchedEntity::for_task(id, self.first_load(id), CfsRqId::root(cpu)));
        id
    }

    /// The task, as a thread of its process.
    fn task_of(&mut self, spec: &TaskSpec, se: SeId, cpu: Cpu) -> Task {
        let mut task = Task::new(spec, se, cpu);
        if self.shared.processes.active() && !spec.kthread {
            let epochs = self.rqs.iter().map(|rq| rq.cache_epoch);
            task.process = Some(self.shared.processes.join(spec.tgid, epochs));
        }
        task
    }

    fn first_load(&self, task: TaskId) -> LoadWeight {
        let task = &self.shared.tasks[task.index()];
        if task.policy.is_fair() { task.load_weight() } else { LoadWeight::of_nice(0) }
    }
}
