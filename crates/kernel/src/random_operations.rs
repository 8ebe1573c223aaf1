//! Any sequence of operations, on any kernel: the state stays sound, and every rule of the change log is felt.

use fairlab_event::{Comm, Cpu, Digest, DigestSink, Ns, Pid, TaskState};

use crate::Generation;
use crate::core::{Mode, Scheduler};
use crate::cpufreq::FrequencyDomain;
use crate::cpumask::CpuMask;
use crate::generation::{Change, Effect, LOG};
use crate::group::GroupId;
use crate::task::{OnRq, Policy, TaskId, TaskSpec};
use crate::topology::{SmtNumbering, Topology};

const MS: u64 = 1_000_000;

/// Operations chosen by a seed, and the scheduler that they are carried out on.
struct Driver {
    scheduler: Scheduler,
    cpus: u64,
    random: u64,
    now: Ns,
    tasks: Vec<TaskId>,
    groups: Vec<GroupId>,
    digest: DigestSink,
    /// A checksum of all averages after each operation.
    averages: u64,
}

impl Driver {
    fn new(generation: Generation, seed: u64) -> Driver {
        let cpus = 3 - seed % 3;
        let topology = Topology::regular(1, 1, cpus as u32, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut scheduler = Scheduler::new(generation, topology, Ns(MS));
        scheduler.set_tracing(true);
        if seed % 2 == 1 {
            scheduler.set_frequency_domains(clocks());
        }
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut driver = Driver {
            scheduler,
            cpus,
            random,
            now: Ns(MS),
            tasks: Vec::new(),
            groups: vec![GroupId::ROOT],
            digest: DigestSink::default(),
            averages: 0,
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
        self.scheduler.set_here(cpu, Mode::Task, self.now);
        cpu
    }

    fn spawn(&mut self) {
        let cpu = self.cpu();
        self.here(cpu);
        let pid = Pid(100 + self.tasks.len() as i32);
        let (policy, nice) = (self.policy(), self.nice());
        let comm = Comm::from("task");
        let allowed = CpuMask::ALL;
        let spec = TaskSpec { comm, pid, tgid: pid, policy, nice, allowed, per_cpu_kthread: false };
        let task = self.scheduler.new_task(&spec, cpu);
        let index = self.below(self.groups.len() as u64) as usize;
        let group = self.groups[index];
        self.scheduler.set_task_group(task, group);
        self.scheduler.fork(task);
        let target = self.cpu();
        self.scheduler.wake_up_new_task(task, target);
        self.tasks.push(task);
    }

    /// Switches, as `__schedule()` does. `sleeps`: the running task goes to sleep.
    fn schedule(&mut self, cpu: Cpu, sleeps: bool) {
        self.here(cpu);
        let sleeps = sleeps && !self.scheduler.runs_idle_task(cpu);
        if sleeps {
            self.scheduler.deactivate_task(cpu, TaskState::INTERRUPTIBLE);
        }
        self.scheduler.account(cpu);
        self.scheduler.finish_delayed_dequeues(cpu);
        let pick = self.scheduler.pick_next_task(cpu);
        let state = if sleeps { TaskState::INTERRUPTIBLE } else { TaskState::RUNNABLE };
        self.scheduler.context_switch(cpu, pick.task, state);
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
        if self.scheduler.ttwu_begin(task) == crate::core::WakeStart::Slept {
            let kind = crate::core::WakeKind::Wakeup { sync: false };
            let decision = self.scheduler.select_task_rq(task, cpu, kind);
            let migrated = decision.cpu != self.scheduler.task(task).cpu();
            self.scheduler.apply_cpu(task, decision);
            self.scheduler.ttwu_do_activate(task, migrated);
        }
    }

    fn migrate(&mut self, task: TaskId) {
        let dest = self.cpu();
        self.here(dest);
        let known = self.scheduler.task(task);
        let waits = known.is_queued() && self.scheduler.curr(known.cpu()) != task;
        if waits && known.cpu() != dest && known.policy.is_fair() {
            self.scheduler.move_queued_task(task, dest);
        }
    }

    fn step(&mut self) {
        let passed = self.below(2 * MS);
        self.now += Ns(passed);
        let cpu = self.cpu();
        self.here(cpu);
        let index = self.below(self.tasks.len() as u64) as usize;
        let task = self.tasks[index];
        match self.below(20) {
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
            _ => {
                if !self.scheduler.runs_idle_task(cpu) {
                    self.scheduler.yield_task(cpu);
                    self.schedule(cpu, false);
                }
            }
        }
        self.schedule_marked();
        self.switch_frequencies();
        self.scheduler.drain_events(&mut self.digest);
        self.sum_averages();
    }

    fn switch_frequencies(&mut self) {
        let mut requests = Vec::new();
        self.averages ^= u64::from(self.scheduler.take_frequency_requests(&mut requests));
        for request in requests {
            self.averages = self.averages.rotate_left(7) ^ u64::from(request.khz);
            self.scheduler.set_frequency(request.policy, request.khz);
        }
    }

    fn sum_averages(&mut self) {
        let of_entities = self.scheduler.entities.iter().map(|entity| entity.avg);
        let of_queues = self.scheduler.cfs_rqs.iter().map(|queue| queue.tracked.avg);
        for avg in of_entities.chain(of_queues) {
            let estimates = u64::from(avg.util_est.enqueued) << 32 | u64::from(avg.util_est.ewma);
            for part in [avg.load_sum, avg.runnable_sum, avg.util_sum.into(), avg.load_avg, estimates] {
                self.averages = self.averages.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part;
            }
        }
    }
}

/// Two CPUs that share a clock, and one with its own.
fn clocks() -> Vec<FrequencyDomain> {
    let clock = |cpus: &str, fast_switch| FrequencyDomain {
        cpus: CpuMask::parse_list(cpus).expect("a list of CPUs"),
        frequencies: (300_000..=2_000_000).step_by(100).collect(),
        rate_limit: Ns(MS),
        fast_switch,
    };
    vec![clock("0-1", true), clock("2", false)]
}

/// Runs `steps` operations and returns the digest of all that was reported, and of all averages.
fn run(generation: Generation, seed: u64, steps: u32) -> (Digest, u64) {
    let name = generation.name().to_string();
    let mut driver = Driver::new(generation, seed);
    for _ in 0..8 {
        driver.spawn();
    }
    for step in 0..steps {
        driver.step();
        if step % 32 == 0 && driver.tasks.len() < 60 {
            driver.spawn();
        }
        driver
            .scheduler
            .check_invariants()
            .unwrap_or_else(|fault| panic!("{name}, seed {seed}, step {step}: {fault}"));
    }
    (driver.digest.digest(), driver.averages)
}

#[test]
fn the_state_stays_sound_on_every_prefix_of_the_log() {
    for length in 0..=LOG.len() {
        run(Generation::prefix(length), length as u64, 600);
    }
}

/// Why some changes are not felt here, and which.
const UNFELT: &[(&str, &[&str])] = &[
    ("periodic balancing is not driven here", &["no-lb-bias", "no-cpu-load"]),
    ("the machine is too small for a bounded search", &["sis-util"]),
    (
        "it removes what was off, replaced or only called otherwise",
        &["commit-to-lag", "commit-to-eevdf", "base-slice"],
    ),
    (
        "every queue is visited, whether listed or not",
        &["leaf-list-kept", "leaf-list-trimmed", "leaf-list-children", "stalled-contribution"],
    ),
    ("above the highest frequency there is nothing to ask for", &["governor-effective"]),
    ("few CPUs are less than full, where waiting would count", &["no-util-est-boost", "boost-with-task"]),
    ("every CPU is the biggest", &["util-est-capacity", "util-est-any-capacity"]),
    ("nothing is throttled here", &["throttled-pelt-clock"]),
    ("only what another CPU reads meanwhile differs", &["util-est-flag-masked", "util-est-in-update"]),
    ("the feature is on by default before", &["util-est-rise"]),
    ("it takes a CPU that was full, and a real-time task that leaves it idle", &["lost-idle"]),
    ("it takes more than 90 runnable tasks on a CPU", &["group-runnable-wide"]),
];

/// Taking a change away alters what happens: no rule is dead, none is wired to nothing.
///
/// What changes only how domains are built is felt on machines of other shapes than this one: see the tests there.
#[test]
fn every_modelled_change_is_felt() {
    let mut wrong = Vec::new();
    let builds_domains = |change: &Change| {
        let effects = change.effects.iter();
        change.tracking.is_empty() && effects.clone().all(|effect| matches!(effect, Effect::Domain(_)))
    };
    let modelled = |change: &Change| change.is_modelled() && !builds_domains(change);
    for (index, change) in LOG.iter().enumerate().filter(|(_, change)| modelled(change)) {
        let after = |length, seed| run(Generation::prefix(length), seed, 2_000);
        let felt = (0..40).any(|seed| after(index, seed) != after(index + 1, seed));
        let excused = UNFELT.iter().any(|(_, names)| names.contains(&change.name));
        if felt == excused {
            wrong.push(format!("{} ({}): felt {felt}, excused {excused}", change.id(), change.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
