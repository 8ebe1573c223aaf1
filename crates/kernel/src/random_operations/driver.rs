//! The hand that carries out random operations, and the clockwork that a kernel would have beside it.

use fairlab_event::{Comm, Cpu, Ns, Pid, TaskState};

use super::mixed;
use super::properties::{RelativeDigest, RunFrame};
use crate::core::{KernelContext, WakeFlags, WakeKind, WakeStart};
use crate::cpufreq::FrequencyDomain;
use crate::cpumask::CpuMask;
use crate::group::GroupId;
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;
use crate::task::{OnRq, Policy, TaskId, TaskSpec};
use crate::topology::{SmtNumbering, Topology};
use crate::{CfsLimit, Generation, GroupTimer};

const MS: u64 = 1_000_000;

/// Operations chosen by a seed, and the scheduler that they are carried out on.
pub struct RandomOperations {
    pub scheduler: Scheduler,
    cpus: u64,
    random: u64,
    now: Ns,
    pub tasks: Vec<TaskId>,
    groups: Vec<GroupId>,
    pub observed: RelativeDigest,
    /// Of all averages after each operation, and of what wakeups cost.
    pub checksum: u64,
    /// Operations on groups and quotas are among those chosen.
    regroups: bool,
    frame: RunFrame,
    /// Time that tasks have run so far, and since when the running one of each CPU has.
    ran: u64,
    runs_since: Vec<Ns>,
    timers: Vec<GroupTimer>,
    calls: Vec<Cpu>,
}

impl RandomOperations {
    pub fn new(generation: Generation, seed: u64) -> RandomOperations {
        RandomOperations::in_frame(generation, seed, RunFrame::USUAL)
    }

    pub fn in_frame(generation: Generation, seed: u64, frame: RunFrame) -> RandomOperations {
        RandomOperations::on(generation, seed, machine(seed).0, frame)
    }

    /// Among groups that stand in a random hierarchy, on CPUs of which some are slow.
    pub fn in_hierarchy(generation: Generation, seed: u64) -> RandomOperations {
        let (mut topology, threads) = machine(seed);
        if seed.is_multiple_of(3) {
            let capacity = |cpu: usize| if (cpu / threads).is_multiple_of(2) { 1024 } else { 446 };
            let capacities = (0..topology.nr_cpus()).map(capacity).collect::<Vec<_>>();
            topology = topology.with_capacities(&capacities).expect("a capacity a core");
        }
        let mut driver = RandomOperations::on(generation, seed, topology, RunFrame::USUAL);
        for _ in 0..driver.below(6) {
            let index = driver.below(driver.groups.len() as u64) as usize;
            let weight = 2 + driver.below(2_000);
            let below = driver.scheduler.new_group(driver.groups[index], weight);
            driver.groups.push(below);
        }
        driver
    }

    fn on(generation: Generation, seed: u64, topology: Topology, frame: RunFrame) -> RandomOperations {
        let cpus = topology.nr_cpus() as u64;
        let mut scheduler = Scheduler::new(generation, topology, Ns(MS));
        scheduler.set_tracing(true);
        if seed % 2 == 1 {
            scheduler.set_frequency_domains(clocks());
        }
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut driver = RandomOperations {
            scheduler,
            cpus,
            random,
            now: frame.start,
            tasks: Vec::new(),
            groups: vec![GroupId::ROOT],
            observed: RelativeDigest::new(frame),
            checksum: 0,
            regroups: seed % 4 >= 2,
            frame,
            ran: 0,
            runs_since: vec![Ns::ZERO; cpus as usize],
            timers: Vec::new(),
            calls: Vec::new(),
        };
        for weight in [100, 300] {
            let group = driver.scheduler.new_group(GroupId::ROOT, weight);
            driver.groups.push(group);
        }
        let below = driver.scheduler.new_group(driver.groups[1], 50);
        driver.groups.push(below);
        driver
    }

    /// A number below `limit` (xorshift64*).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn cpu(&mut self) -> Cpu {
        Cpu(self.below(self.cpus) as u32)
    }

    fn nice(&mut self) -> i32 {
        self.below(40) as i32 - 20
    }

    fn policy(&mut self) -> Policy {
        match self.below(12) {
            0 => Policy::Batch,
            1 => Policy::Idle,
            2 => Policy::RoundRobin(1),
            3 => Policy::Fifo(2),
            _ => Policy::Normal,
        }
    }

    fn request(&mut self) -> Option<Ns> {
        let request = Ns(50_000 + self.below(20 * MS));
        self.chance(60).then_some(request)
    }

    fn here(&mut self, cpu: Cpu) -> Cpu {
        let mode = if self.random.is_multiple_of(8) { KernelContext::Hardirq } else { KernelContext::Task };
        self.scheduler.set_here(cpu, mode, self.now);
        cpu
    }

    pub fn spawn(&mut self) {
        let cpu = self.cpu();
        self.here(cpu);
        let pid = Pid(self.frame.first_pid + self.scheduler.shared.tasks.len() as i32);
        let (policy, nice) = (self.policy(), self.nice());
        let comm = Comm::from(self.frame.comm);
        let bound_to = self.cpu();
        let per_cpu_kthread = self.chance(10);
        let allowed = if per_cpu_kthread { CpuMask::single(bound_to) } else { CpuMask::ALL };
        let spec = TaskSpec {
            comm,
            pid,
            tgid: pid,
            policy,
            nice,
            allowed,
            kthread: per_cpu_kthread,
            per_cpu_kthread,
        };
        let task = self.scheduler.new_task(&spec, cpu);
        let index = self.below(self.groups.len() as u64) as usize;
        let group = self.groups[index];
        self.scheduler.set_task_group(task, group);
        self.scheduler.fork(task);
        let target = self.scheduler.select_task_rq(task, cpu, WakeKind::Fork).cpu;
        self.scheduler.wake_up_new_task(task, target);
        self.tasks.push(task);
    }

    /// Switches, as `__schedule()` does. `sleeps`: the running task goes to sleep.
    fn schedule(&mut self, cpu: Cpu, sleeps: bool) {
        self.here(cpu);
        let sleeps = sleeps && !self.scheduler.runs_idle_task(cpu);
        let state = if sleeps { TaskState::INTERRUPTIBLE } else { TaskState::RUNNABLE };
        self.scheduler.begin_schedule(cpu, state);
        self.scheduler.before_pick(cpu);
        let pick = self.scheduler.pick_next_task(cpu);
        let was_idle = self.scheduler.runs_idle_task(cpu);
        if self.scheduler.context_switch(cpu, pick.task, state) {
            // A wakeup that takes the CPU ends the run, not the switch.
            let clock = self.scheduler.rq_clock(cpu);
            let since = std::mem::replace(&mut self.runs_since[cpu.index()], clock);
            self.ran += if was_idle { 0 } else { clock.since(since).0 };
        }
        // Some stay in the kernel for longer.
        if self.regroups && self.chance(60) && self.scheduler.user_mode_work(cpu) {
            self.schedule(cpu, false);
        }
    }

    /// Time that tasks have run, all of it charged to them.
    pub fn time_on_cpus(&mut self) -> u64 {
        for cpu in (0..self.cpus as u32).map(Cpu) {
            self.here(cpu);
            self.scheduler.scheduler_tick(cpu);
            if !self.scheduler.runs_idle_task(cpu) {
                self.ran += self.now.since(self.runs_since[cpu.index()]).0;
            }
        }
        self.ran
    }

    fn schedule_marked(&mut self) {
        for cpu in 0..self.cpus as u32 {
            if self.scheduler.need_resched(Cpu(cpu)) {
                self.schedule(Cpu(cpu), false);
            }
        }
    }

    fn wake(&mut self, task: TaskId) {
        let cpu = self.cpu();
        self.here(cpu);
        if !matches!(self.scheduler.task(task).on_rq, OnRq::Sleeping(_) | OnRq::Delayed(_)) {
            return;
        }
        let sync = self.chance(30);
        if self.scheduler.ttwu_begin(task, WakeFlags { sync, migrated: false }) == WakeStart::Slept {
            self.scheduler.record_wakee(self.scheduler.curr(cpu), task);
            let decision = self.scheduler.select_task_rq(task, cpu, WakeKind::Wakeup { sync });
            let migrated = decision.cpu != self.scheduler.task(task).cpu();
            self.scheduler.apply_cpu(task, decision);
            let time = Ns(u64::from(decision.scanned) * 200);
            self.scheduler.account_search(cpu, decision, time);
            self.note(time.0 << 32 | self.scheduler.avg_idle(cpu));
            let leaves = self.chance(50);
            self.note(u64::from(self.scheduler.ttwu_queue_cond(task, decision.cpu, leaves)));
            self.scheduler.ttwu_do_activate(task, WakeFlags { sync, migrated });
        }
    }

    fn migrate(&mut self, task: TaskId) {
        let dest = self.cpu();
        self.here(dest);
        let known = self.scheduler.task(task);
        let waits = known.is_queued() && self.scheduler.curr(known.cpu()) != task;
        let waits = waits && known.allowed.contains(dest);
        if waits && known.cpu() != dest && known.policy.is_fair() {
            self.scheduler.move_queued_task(task, dest);
        }
    }

    pub fn step(&mut self) {
        let passed = self.below(2 * MS);
        self.now += Ns(passed);
        let cpu = self.cpu();
        self.here(cpu);
        let index = self.below(self.tasks.len() as u64) as usize;
        let task = self.tasks[index];
        self.expire_timers();
        self.end_slices();
        match self.below(if self.regroups { 30 } else { 20 }) {
            0..8 => drop(self.scheduler.scheduler_tick(cpu)),
            8..11 => self.schedule(cpu, true),
            11..15 => self.wake(task),
            15 => self.migrate(task),
            16 => {
                let nice = self.nice();
                self.scheduler.set_user_nice(task, nice);
            }
            17 => {
                let (policy, nice, request) = (self.policy(), self.nice(), self.request());
                self.scheduler.set_scheduler(task, policy, nice, request);
            }
            18 => {
                let index = 1 + self.below(3) as usize;
                let group = self.groups[index];
                let weight = 1 + self.below(1000);
                self.scheduler.set_group_weight(group, weight);
            }
            19 => {
                if !self.scheduler.runs_idle_task(cpu) {
                    self.scheduler.yield_task(cpu);
                    self.schedule(cpu, false);
                }
            }
            _ => self.regroup(cpu, task),
        }
        self.schedule_marked();
        self.scheduler.take_started_timers(&mut self.timers);
        self.scheduler.take_unthrottle_calls(&mut self.calls);
        self.switch_frequencies();
        self.scheduler.drain_events(&mut self.observed);
        self.sum_averages();
    }

    /// What user space does to groups, and tasks on their way back to it.
    fn regroup(&mut self, cpu: Cpu, task: TaskId) {
        let index = 1 + self.below(self.groups.len() as u64 - 1) as usize;
        let group = self.groups[index];
        match self.below(24) {
            0..8 => {
                if self.scheduler.user_mode_work(cpu) {
                    self.schedule(cpu, false);
                }
            }
            8..10 => self.limit(group),
            10..16 => {
                let to = if self.chance(80) { group } else { GroupId::ROOT };
                self.scheduler.move_task_to_group(task, to);
            }
            16 => {
                let idle = self.chance(40);
                self.scheduler.set_group_idle(group, idle);
            }
            17 if self.groups.len() < 8 => {
                let below = self.scheduler.new_group(group, 100);
                self.groups.push(below);
            }
            18 if self.tasks.len() > 20 && !self.scheduler.runs_idle_task(cpu) => {
                let ends = self.scheduler.curr(cpu);
                self.tasks.retain(|&task| task != ends);
                self.scheduler.exit(cpu);
                self.schedule(cpu, false);
            }
            19 => drop(self.scheduler.update_blocked_averages(cpu)),
            _ => self.pull(cpu),
        }
    }

    fn pull(&mut self, cpu: Cpu) {
        for level in 0..self.scheduler.nr_domains(cpu) {
            if self.scheduler.runs_idle_task(cpu) && self.scheduler.nr_running(cpu) == 0 {
                let decision = self.scheduler.decide_balance(cpu, level, CpuIdleType::NewlyIdle);
                self.scheduler.apply_balance(&decision);
            }
        }
    }

    fn limit(&mut self, group: GroupId) {
        let quota = MS + if self.chance(50) { self.below(6 * MS) } else { self.below(40 * MS) };
        let period = 4 * MS + if self.chance(50) { self.below(20 * MS) } else { self.below(90 * MS) };
        let (burst, offset) = (self.below(quota), self.below(period));
        let limit = match self.chance(15) {
            true => CfsLimit::UNLIMITED,
            false => CfsLimit::new(Ns(quota), Ns(period), Ns(burst)).expect("within the kernel's limits"),
        };
        self.scheduler.set_group_bandwidth(group, limit, Ns(offset));
    }

    /// Timers that are due expire, and called CPUs unthrottle: some late.
    fn expire_timers(&mut self) {
        let now = self.now;
        let here = self.scheduler.shared.trace.here;
        let (due, later) =
            std::mem::take(&mut self.timers).into_iter().partition(|timer| timer.expires <= now);
        self.timers = later;
        for timer in due {
            if self.chance(15) {
                self.timers.push(timer);
                continue;
            }
            self.here(timer.cpu);
            self.scheduler.group_timer_expires(timer);
        }
        for cpu in self.scheduler.shared.topology.cpus() {
            self.here(cpu);
            self.scheduler.server_timers_expire(cpu);
        }
        for cpu in std::mem::take(&mut self.calls) {
            if self.chance(20) {
                self.calls.push(cpu);
                continue;
            }
            self.here(cpu);
            self.scheduler.unthrottle_queued(cpu);
        }
        self.here(here);
    }

    fn end_slices(&mut self) {
        let mut called = Vec::new();
        self.scheduler.take_hrtick_calls(&mut called);
        called.into_iter().for_each(|cpu| self.scheduler.hrtick_called(cpu));
        for cpu in (0..self.cpus as u32).map(Cpu) {
            if self.scheduler.hrtick_expires(cpu).is_some_and(|expires| expires <= self.now) {
                let here = self.scheduler.shared.trace.here;
                self.here(cpu);
                self.scheduler.hrtick(cpu);
                self.here(here);
            }
        }
    }

    fn switch_frequencies(&mut self) {
        let mut requests = Vec::new();
        self.checksum ^= u64::from(self.scheduler.take_frequency_requests(&mut requests));
        for request in requests {
            self.checksum = self.checksum.rotate_left(7) ^ u64::from(request.khz);
            self.scheduler.set_frequency(request.policy, request.khz);
        }
    }

    fn sum_averages(&mut self) {
        let of_entities = self.scheduler.shared.entities.iter().map(|entity| entity.avg);
        let of_queues = self.scheduler.shared.cfs_rqs.iter().map(|queue| queue.tracked.avg);
        let mut checksum = self.checksum;
        for avg in of_entities.chain(of_queues) {
            let estimates = u64::from(avg.util_est.enqueued) << 32 | u64::from(avg.util_est.ewma);
            for part in [avg.load_sum, avg.runnable_sum, avg.util_sum.into(), avg.load_avg, estimates] {
                checksum = mixed(checksum, part);
            }
        }
        self.checksum = checksum;
    }

    fn note(&mut self, part: u64) {
        self.checksum = mixed(self.checksum, part);
    }
}

/// A machine by a seed, and how many threads its cores have.
fn machine(seed: u64) -> (Topology, usize) {
    // Nodes, caches a node, cores a cache, threads a core.
    let (nodes, llcs, cores, threads) =
        [(1, 1, 3, 1), (1, 1, 2, 1), (1, 1, 1, 1), (1, 1, 2, 2), (1, 2, 2, 1), (1, 1, 6, 1)]
            [seed as usize % 6];
    let topology = Topology::regular(nodes, llcs, cores, threads, SmtNumbering::Adjacent).expect("a machine");
    (topology, threads as usize)
}

/// Two CPUs that share a clock, and one with its own.
fn clocks() -> Vec<FrequencyDomain> {
    let clock = |cpus: &str, fast_switch| FrequencyDomain {
        cpus: CpuMask::parse_list(cpus).expect("a list of CPUs"),
        frequencies: (300_000..=2_000_000).step_by(100).collect(),
        rate_limit: Ns(MS),
        fast_switch,
        invariant: true,
    };
    vec![clock("0-1", true), clock("2", false)]
}
