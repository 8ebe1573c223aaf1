//! A bench for tests of single rules: one scheduler, time moved by hand, nothing costs anything.

use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, TaskState, sink_fn};

use crate::core::{KernelContext, WakeFlags, WakeKind, WakeStart};
use crate::cpufreq::FrequencyDomain;
use crate::cpumask::CpuMask;
use crate::decision::{CpuDecision, PickDecision, TickDecision};
use crate::energy::{PerfDomain, PerfState};
use crate::entity::SchedEntity;
use crate::fair::bandwidth::{CfsLimit, GroupTimer};
use crate::group::GroupId;
use crate::scheduler::Scheduler;
use crate::task::{Policy, TaskId, TaskSpec};
use crate::topology::{SmtNumbering, Topology};
use crate::vruntime::Vruntime;

/// One millisecond.
pub const MS: u64 = 1_000_000;

/// The scheduler and the hand that moves time.
pub struct SchedulerTestbed {
    pub scheduler: Scheduler,
    pub(crate) now: Ns,
    next_pid: i32,
    timers: Vec<GroupTimer>,
    calls: Vec<Cpu>,
}

impl SchedulerTestbed {
    /// `cores` cores of `threads` threads under one cache, HZ 1000.
    pub fn new(kernel: &str, cores: u32, threads: u32) -> SchedulerTestbed {
        SchedulerTestbed::on(
            kernel,
            Topology::regular(1, 1, cores, threads, SmtNumbering::Adjacent).expect("a machine"),
        )
    }

    /// Any machine, HZ 1000.
    pub fn on(kernel: &str, topology: Topology) -> SchedulerTestbed {
        let kernel = kernel.parse().expect("a kernel");
        let mut scheduler = Scheduler::new(kernel, topology, Ns::from_ms(1));
        scheduler.set_tracing(true);
        SchedulerTestbed { scheduler, now: Ns::ZERO, next_pid: 100, timers: Vec::new(), calls: Vec::new() }
    }

    /// Two small CPUs and two of twice their capacity, under one cache.
    pub fn small_and_big(kernel: &str) -> SchedulerTestbed {
        let topology = Topology::regular(1, 1, 4, 1, SmtNumbering::Adjacent).expect("a machine");
        SchedulerTestbed::on(kernel, topology.with_capacities(&[512, 512, 1024, 1024]).expect("capacities"))
    }

    /// A bench of four small CPUs and two of over twice their capacity, with clocks, governors and an energy model: the middle one
    /// of three speeds takes the least energy, the highest the most, and the big ones draw four times as much.
    pub fn with_energy_model(kernel: &str) -> SchedulerTestbed {
        let topology = Topology::regular(1, 1, 6, 1, SmtNumbering::Adjacent).expect("a machine");
        let topology = topology.with_capacities(&[446, 446, 446, 446, 1024, 1024]).expect("capacities");
        let mut bed = SchedulerTestbed::on(kernel, topology);
        let clock = |cpus: &str| FrequencyDomain {
            cpus: CpuMask::parse_list(cpus).expect("a list"),
            frequencies: vec![500_000, 750_000, 1_000_000],
            rate_limit: Ns(1 << 50),
            fast_switch: true,
            invariant: true,
        };
        bed.scheduler.set_frequency_domains(vec![clock("0-3"), clock("4-5")]);
        let state = PerfState::of_milliwatts;
        let domain = |cpus: &str, times: u32| PerfDomain {
            cpus: CpuMask::parse_list(cpus).expect("a list"),
            states: vec![
                state(500_000, 30 * times),
                state(750_000, 40 * times),
                state(1_000_000, 90 * times),
            ],
        };
        let can_place = bed.scheduler.set_energy_model(&[domain("0-3", 1), domain("4-5", 4)]);
        assert!(can_place, "{kernel}");
        bed
    }

    /// Gives `cpu` fair use without any task, as if one had slept there.
    pub fn use_cpu(&mut self, cpu: u32, util: u64) {
        let root = self.scheduler.rqs[cpu as usize].cfs;
        let avg = &mut self.scheduler.cfs_mut(root).tracked.avg;
        (avg.util_avg, avg.runnable_avg) = (util, util);
    }

    /// Gives a task this use, estimates included.
    pub fn use_task(&mut self, task: TaskId, util: u64) {
        let se = self.scheduler.shared.tasks[task.index()].se;
        let avg = &mut self.scheduler.se_mut(se).avg;
        (avg.util_avg, avg.runnable_avg) = (util, util);
        (avg.util_est.enqueued, avg.util_est.ewma) = (util as u32, util as u32);
    }

    /// What follows happens on `cpu`, now.
    pub fn at(&mut self, cpu: u32) {
        self.here(cpu);
    }

    fn here(&mut self, cpu: u32) -> Cpu {
        self.scheduler.set_here(Cpu(cpu), KernelContext::Task, self.now);
        Cpu(cpu)
    }

    /// Creates a task and queues it on `cpu`; it runs at once if the CPU was idle.
    pub fn spawn(&mut self, nice: i32, cpu: u32) -> TaskId {
        self.spawn_with(nice, cpu, Policy::Normal, CpuMask::ALL)
    }

    /// The same in a group.
    pub fn spawn_in(&mut self, group: GroupId, cpu: u32) -> TaskId {
        self.create(0, cpu, Policy::Normal, CpuMask::ALL, group)
    }

    pub fn spawn_with(&mut self, nice: i32, cpu: u32, policy: Policy, allowed: CpuMask) -> TaskId {
        self.create(nice, cpu, policy, allowed, GroupId::ROOT)
    }

    /// Another thread of a task's process.
    pub fn spawn_thread(&mut self, of: TaskId, cpu: u32) -> TaskId {
        let tgid = self.scheduler.task(of).tgid();
        self.create_in(Some(tgid), 0, cpu, Policy::Normal, CpuMask::ALL, GroupId::ROOT)
    }

    fn create(&mut self, nice: i32, cpu: u32, policy: Policy, allowed: CpuMask, group: GroupId) -> TaskId {
        self.create_in(None, nice, cpu, policy, allowed, group)
    }

    fn create_in(
        &mut self,
        process: Option<Pid>,
        nice: i32,
        cpu: u32,
        policy: Policy,
        allowed: CpuMask,
        group: GroupId,
    ) -> TaskId {
        // The queue's minimum moves only when time passes.
        self.pass(1);
        let here = self.here(cpu);
        let pid = Pid(self.next_pid);
        self.next_pid += 1;
        let (comm, tgid) = (Comm::from("task"), process.unwrap_or(pid));
        let kthread = policy == Policy::Stop;
        let spec = TaskSpec { comm, pid, tgid, policy, nice, allowed, kthread, per_cpu_kthread: false };
        let task = self.scheduler.new_task(&spec, here);
        self.scheduler.set_task_group(task, group);
        self.scheduler.fork(task);
        self.scheduler.wake_up_new_task(task, here);
        if self.scheduler.runs_idle_task(here) {
            self.schedule(cpu);
        }
        task
    }

    /// Lets `ns` pass; whoever runs, runs.
    pub fn pass(&mut self, ns: u64) {
        self.now += Ns(ns);
    }

    /// Picks and switches on `cpu`.
    pub fn schedule(&mut self, cpu: u32) -> PickDecision {
        let here = self.here(cpu);
        self.scheduler.begin_schedule(here, TaskState::RUNNABLE);
        self.switch(here)
    }

    fn switch(&mut self, here: Cpu) -> PickDecision {
        self.scheduler.before_pick(here);
        let pick = self.scheduler.pick_next_task(here);
        self.scheduler.context_switch(here, pick.task, TaskState::RUNNABLE);
        pick
    }

    /// The running task of `cpu` goes to sleep and the next one runs.
    pub fn sleep(&mut self, cpu: u32) -> TaskId {
        let here = self.here(cpu);
        let task = self.scheduler.curr(here);
        self.leave(cpu);
        self.switch(here);
        task
    }

    /// The running task of `cpu` goes to sleep, and the CPU looks for work before it switches.
    pub fn leave(&mut self, cpu: u32) {
        let here = self.here(cpu);
        self.scheduler.begin_schedule(here, TaskState::INTERRUPTIBLE);
    }

    /// Wakes `task` where it slept, from `cpu`. Returns whether a reschedule is pending there then.
    pub fn wake(&mut self, task: TaskId, cpu: u32) -> bool {
        self.here(cpu);
        assert_eq!(self.scheduler.ttwu_begin(task, WakeFlags::default()), WakeStart::Slept);
        self.scheduler.ttwu_do_activate(task, WakeFlags::default());
        self.scheduler.need_resched(self.scheduler.task(task).cpu())
    }

    /// Where `task` would be woken by `cpu`'s running task.
    pub fn select(&mut self, task: TaskId, cpu: u32, sync: bool) -> CpuDecision {
        let here = self.here(cpu);
        self.scheduler.select_task_rq(task, here, WakeKind::Wakeup { sync })
    }

    /// The same by an interrupt that has come to that CPU.
    pub fn select_in_interrupt(&mut self, task: TaskId, cpu: u32) -> CpuDecision {
        self.scheduler.set_here(Cpu(cpu), KernelContext::Hardirq, self.now);
        self.scheduler.select_task_rq(task, Cpu(cpu), WakeKind::Wakeup { sync: false })
    }

    /// No cache knows of a wholly idle core.
    pub fn forget_idle_cores(&mut self) {
        for cpu in self.scheduler.shared.topology.cpus() {
            if let Some(shared) = self.scheduler.domains.of_cpu(cpu).sd_llc_shared {
                self.scheduler.domains.shared_mut(shared).has_idle_cores = false;
            }
        }
    }

    /// Whether the cache of `cpu` may have a wholly idle core.
    pub fn expects_idle_core(&self, cpu: u32) -> bool {
        let shared = self.scheduler.domains.of_cpu(Cpu(cpu)).sd_llc_shared;
        shared.is_some_and(|shared| self.scheduler.domains.shared(shared).has_idle_cores)
    }

    pub fn tick(&mut self, cpu: u32) -> TickDecision {
        let here = self.here(cpu);
        self.scheduler.scheduler_tick(here)
    }

    /// Ticks every millisecond on each of the first CPUs at once.
    pub fn run_all(&mut self, cpus: u32, milliseconds: u64) {
        for _ in 0..milliseconds {
            self.pass(MS);
            for cpu in 0..cpus {
                self.tick(cpu);
                self.return_to_user(cpu);
            }
        }
    }

    /// Ticks every millisecond, reschedules when asked to, and names who ran each millisecond.
    pub fn run(&mut self, cpu: u32, milliseconds: u64) -> Vec<TaskId> {
        let mut ran = Vec::new();
        for _ in 0..milliseconds {
            ran.push(self.scheduler.curr(Cpu(cpu)));
            self.pass(MS);
            self.expire_timers();
            self.tick(cpu);
            self.return_to_user(cpu);
        }
        ran
    }

    /// The end of a stay in the kernel: a pending reschedule is acted on, and a throttled task leaves.
    pub fn return_to_user(&mut self, cpu: u32) {
        while self.scheduler.need_resched(Cpu(cpu)) || self.scheduler.user_mode_work(Cpu(cpu)) {
            self.schedule(cpu);
        }
    }

    /// Gives a group a quota a period, both in ms, and a burst.
    pub fn limit(&mut self, group: GroupId, quota_ms: u64, period_ms: u64, burst_ms: u64) {
        let (quota, period, burst) = (Ns(quota_ms * MS), Ns(period_ms * MS), Ns(burst_ms * MS));
        self.here(0);
        let limit = CfsLimit::new(quota, period, burst).expect("within the kernel's limits");
        self.scheduler.set_group_bandwidth(group, limit, Ns::ZERO);
    }

    /// Timers of groups that are due expire, and CPUs that are called for it unthrottle groups.
    pub fn expire_timers(&mut self) {
        self.scheduler.take_started_timers(&mut self.timers);
        let now = self.now;
        let (due, later) =
            std::mem::take(&mut self.timers).into_iter().partition(|timer| timer.expires <= now);
        self.timers = later;
        for timer in due {
            self.here(timer.cpu.0);
            self.scheduler.group_timer_expires(timer);
        }
        if self.scheduler.shared.fair_servers.watch() {
            for cpu in self.scheduler.shared.topology.cpus() {
                self.here(cpu.0);
                self.scheduler.server_timers_expire(cpu);
            }
        }
        self.scheduler.take_unthrottle_calls(&mut self.calls);
        for cpu in std::mem::take(&mut self.calls) {
            self.here(cpu.0);
            self.scheduler.unthrottle_queued(cpu);
        }
    }

    pub fn entity(&self, task: TaskId) -> &SchedEntity {
        self.scheduler.entity_of(task)
    }

    /// The queue's `min_vruntime` on `cpu`.
    pub fn min_vruntime(&self, cpu: u32) -> Vruntime {
        self.scheduler.cfs(self.scheduler.rqs[cpu as usize].cfs).min_vruntime
    }

    /// The queue's average vruntime on `cpu`.
    pub fn average(&self, cpu: u32) -> Vruntime {
        let root = self.scheduler.rqs[cpu as usize].cfs;
        self.scheduler.shared.average(root)
    }

    /// Names of the events since the last call, and those of the last one's kinds.
    pub fn events(&mut self) -> Vec<EventKind<'static>> {
        let mut events = Vec::new();
        self.scheduler.drain_events(&mut sink_fn(|event: &Event<'_>| {
            // Simulated events carry no text, but their type may.
            if let EventKind::SchedPlace(place) = event.kind {
                events.push(EventKind::SchedPlace(place));
            } else if let EventKind::SchedStatWait(delay) = event.kind {
                events.push(EventKind::SchedStatWait(delay));
            }
        }));
        events
    }
}
