//! Random machines under random load with all balancing on: the state stays sound, counters add up, and every rule of the
//! change log makes a difference.

use fairlab_event::{Comm, Cpu, Ns, Pid, TaskState};

use crate::Generation;
use crate::ablation::{ShownBy, before, place};
use crate::balance::{BalanceDecision, BalanceWork};
use crate::core::{KernelContext, WakeFlags, WakeKind, WakeStart};
use crate::cpufreq::FrequencyDomain;
use crate::cpumask::CpuMask;
use crate::decision::PickReason;
use crate::energy::{PerfDomain, PerfState};
use crate::generation::{LOG, LoggedCommit};
use crate::group::GroupId;
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;
use crate::task::{OnRq, Policy, TaskId, TaskSpec};
use crate::topology::{CpuPlace, SmtNumbering, Topology};

const TICK: u64 = 4_000_000;

/// From this seed on, machines of several kinds of CPUs have an energy model.
const PLAIN_SEEDS: u64 = 210;

/// A machine of one of several shapes.
fn machine(shape: u64) -> Topology {
    let regular = |nodes, llcs, cores, threads| {
        Topology::regular(nodes, llcs, cores, threads, SmtNumbering::Adjacent).expect("a machine")
    };
    match shape % 7 {
        0 => regular(1, 1, 4, 2),
        1 => regular(2, 1, 4, 2),
        2 => regular(1, 2, 3, 1),
        3 => regular(1, 1, 6, 1),
        4 => regular(1, 3, 2, 1).with_capacities(&[1024, 1024, 900, 900, 400, 400]).expect("a machine"),
        5 => regular(2, 2, 4, 1),
        // Two cores of two threads beside four of one.
        _ => {
            let place = |core| CpuPlace { core, llc: 0, node: 0 };
            Topology::new([0, 0, 1, 1, 2, 3, 4, 5].map(place).to_vec()).expect("a machine")
        }
    }
}

/// Gives a machine of three kinds of CPUs clocks, governors and an energy model.
fn model_energy(scheduler: &mut Scheduler) {
    let cpus = |first: u32| [Cpu(first), Cpu(first + 1)].into_iter().collect::<CpuMask>();
    let clock = |first| FrequencyDomain {
        cpus: cpus(first),
        frequencies: vec![1_000_000],
        rate_limit: Ns(TICK),
        fast_switch: true,
        invariant: true,
    };
    scheduler.set_frequency_domains([0, 2, 4].map(clock).to_vec());
    let domain = |(first, milliwatts): (u32, u32)| {
        let states = [(500_000, 1), (1_000_000, 3)];
        let states = states.map(|(khz, times)| PerfState::of_milliwatts(khz, milliwatts * times));
        PerfDomain { cpus: cpus(first), states: states.to_vec() }
    };
    scheduler.set_energy_model(&[(0, 200), (2, 120), (4, 30)].map(domain));
}

/// A machine in time, without costs; what happens is chosen by a seed.
struct RandomMachine {
    scheduler: Scheduler,
    random: u64,
    now: Ns,
    tasks: Vec<TaskId>,
    stoppers: Vec<TaskId>,
    /// A checksum of all that balancing did.
    digest: u64,
}

impl RandomMachine {
    fn new(generation: Generation, seed: u64) -> RandomMachine {
        let mut scheduler = Scheduler::new(generation, machine(seed), Ns(TICK));
        if seed >= PLAIN_SEEDS && seed % 7 == 4 {
            model_energy(&mut scheduler);
        }
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut driver = RandomMachine {
            scheduler,
            random,
            now: Ns(100 * TICK),
            tasks: Vec::new(),
            stoppers: Vec::new(),
            digest: 0,
        };
        for cpu in driver.cpus() {
            let pid = Pid(10_000 + cpu.0 as i32);
            let spec = spec(pid, Policy::Stop, 0, CpuMask::single(cpu), true);
            let stopper = driver.scheduler.new_task(&spec, cpu);
            driver.scheduler.lay_asleep(stopper, cpu);
            driver.stoppers.push(stopper);
        }
        let group = driver.scheduler.new_group(GroupId::ROOT, 100);
        driver.scheduler.new_group(group, 300);
        driver
    }

    fn cpus(&self) -> Vec<Cpu> {
        self.scheduler.shared.topology.cpus().collect()
    }

    /// A number below `limit` (xorshift64*).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn note(&mut self, value: u64) {
        self.digest = self.digest.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ value;
    }

    fn here(&mut self, cpu: Cpu, mode: KernelContext) {
        self.scheduler.set_here(cpu, mode, self.now);
    }

    fn spawn(&mut self) {
        let cpus = self.cpus().len() as u64;
        let cpu = Cpu(self.below(cpus) as u32);
        self.here(cpu, KernelContext::Task);
        let policy = match self.below(16) {
            0 | 1 => Policy::Idle,
            2 => Policy::RoundRobin(1),
            _ => Policy::Normal,
        };
        let bound = self.below(12) == 0;
        let allowed = match self.below(6) {
            _ if bound => CpuMask::single(cpu),
            0 => [self.below(cpus), self.below(cpus), self.below(cpus)]
                .iter()
                .map(|&cpu| Cpu(cpu as u32))
                .collect(),
            _ => *self.scheduler.shared.topology.online(),
        };
        let target = allowed.lowest().unwrap_or(cpu);
        let nice = if self.below(3) == 0 { self.below(40) as i32 - 20 } else { 0 };
        let pid = Pid(100 + self.tasks.len() as i32);
        let task = self.scheduler.new_task(&spec(pid, policy, nice, allowed, bound), cpu);
        let group = GroupId(self.below(5).saturating_sub(2) as u32);
        self.scheduler.set_task_group(task, group);
        self.scheduler.fork(task);
        self.scheduler.wake_up_new_task(task, target);
        self.tasks.push(task);
    }

    /// `__schedule()`: new-idle balancing when nothing is left.
    fn schedule(&mut self, cpu: Cpu, sleeps: bool) {
        self.here(cpu, KernelContext::Task);
        let sleeps = sleeps && !self.scheduler.runs_idle_task(cpu);
        let state = if sleeps { TaskState::INTERRUPTIBLE } else { TaskState::RUNNABLE };
        self.scheduler.begin_schedule(cpu, state);
        let skips = self.scheduler.skips_newidle(cpu);
        self.scheduler.before_pick(cpu);
        let pick = self.scheduler.pick_next_task(cpu);
        if pick.reason == PickReason::Nothing && !skips && !self.scheduler.runs_idle_task(cpu) {
            self.newidle(cpu);
        }
        self.scheduler.before_pick(cpu);
        let pick = self.scheduler.pick_next_task(cpu);
        self.scheduler.context_switch(cpu, pick.task, state);
        if self.scheduler.runs_idle_task(cpu) {
            let work = self.scheduler.nohz_run_idle_balance(cpu);
            self.note_work(&work);
            self.scheduler.nohz_balance_enter_idle(cpu);
        } else if self.stoppers[cpu.index()] == pick.task {
            let pushed = self.scheduler.apply_push(cpu);
            self.note(pushed.map_or(7, |task| u64::from(task.0)));
            self.schedule(cpu, true);
        }
    }

    fn newidle(&mut self, cpu: Cpu) {
        let on_its_way = self.below(8) == 0;
        if on_its_way {
            self.scheduler.ttwu_pending(cpu);
        }
        let (mut search, update) = self.scheduler.newidle_begin(cpu);
        self.note(u64::from(update.queues) << 8 | u64::from(search.searches));
        let cost = self.cost();
        self.scheduler.newidle_updated(&mut search, cost);
        while let Some(level) = self.scheduler.newidle_next(cpu, &mut search) {
            let update = self.scheduler.newidle_update_stats(cpu, level);
            self.note(update.queues.into());
            if self.below(20) == 0 {
                self.wake_something(cpu);
            }
            let decision = self.scheduler.decide_balance(cpu, level, CpuIdleType::NewlyIdle);
            self.note_decision(&decision);
            self.scheduler.apply_balance(&decision);
            let mut work = BalanceWork::default();
            work.add(&decision);
            self.begin_pushes(&work);
            let cost = self.cost();
            self.scheduler.newidle_searched(&decision, cost, &mut search);
        }
        let (work, kick) = self.scheduler.newidle_end(cpu, &search);
        self.note_work(&work);
        if on_its_way {
            self.scheduler.ttwu_arrived(cpu);
        }
        self.kick(kick);
    }

    /// What a search takes: now and then very long.
    fn cost(&mut self) -> Ns {
        let longest = if self.below(6) == 0 { 900_000 } else { 60_000 };
        Ns(self.below(longest))
    }

    fn note_decision(&mut self, decision: &BalanceDecision) {
        self.note(decision.level as u64 | u64::from(decision.cpu.0) << 8);
        self.note(decision.balanced.map_or(99, |reason| reason as u64));
        self.note(decision.source.map_or(0, |source| 1 + u64::from(source.0)));
        self.note(decision.imbalance.amount as u64 ^ decision.imbalance.migration as u64);
        for look in decision.pulls.iter().flat_map(|pull| &pull.looks) {
            self.note(u64::from(look.task.0) << 8 | look.reason as u64);
        }
        self.note(u64::from(decision.push));
    }

    fn note_work(&mut self, work: &BalanceWork) {
        self.note(u64::from(work.tries) << 32 | u64::from(work.scanned));
        self.note(u64::from(work.looked) << 32 | u64::from(work.moved));
        let blocked = &work.blocked;
        self.note(
            u64::from(blocked.queues) << 32 | u64::from(blocked.dropped) << 16 | u64::from(blocked.cpus),
        );
    }

    fn begin_pushes(&mut self, work: &BalanceWork) {
        for &source in &work.pushes {
            let stopper = self.stoppers[source.index()];
            if !self.scheduler.task(stopper).is_queued() {
                self.scheduler.ttwu_begin(stopper, WakeFlags::default());
                self.scheduler.ttwu_do_activate(stopper, WakeFlags::default());
            }
        }
    }

    fn kick(&mut self, cpu: Option<Cpu>) {
        let Some(cpu) = cpu else { return };
        self.note(u64::from(cpu.0) + 1000);
        // Now and then it is on its way to something else.
        if self.below(8) == 0 {
            self.scheduler.force_need_resched(cpu, true, false);
        }
        self.here(cpu, KernelContext::Hardirq);
        if self.scheduler.nohz_kicked(cpu) {
            if self.below(8) == 0 {
                self.scheduler.force_need_resched(cpu, true, false);
            }
            self.softirq(cpu);
        }
    }

    fn softirq(&mut self, cpu: Cpu) {
        self.here(cpu, KernelContext::Softirq);
        let work = self.scheduler.run_rebalance_domains(cpu);
        self.note_work(&work);
        self.begin_pushes(&work);
    }

    fn tick(&mut self) {
        for cpu in self.cpus() {
            if self.scheduler.runs_idle_task(cpu) {
                continue;
            }
            self.here(cpu, KernelContext::Hardirq);
            self.scheduler.scheduler_tick(cpu);
            let due = self.scheduler.trigger_load_balance(cpu);
            self.kick(due.kick);
            if due.softirq {
                self.softirq(cpu);
            }
        }
    }

    fn wake_something(&mut self, cpu: Cpu) {
        let index = self.below(self.tasks.len() as u64) as usize;
        let task = self.tasks[index];
        let known = self.scheduler.task(task);
        let still_leaving = self.scheduler.curr(known.cpu()) == task;
        if still_leaving || !matches!(known.on_rq, OnRq::Sleeping(_) | OnRq::Delayed(_)) {
            return;
        }
        if self.scheduler.ttwu_begin(task, WakeFlags::default()) == WakeStart::Slept {
            let decision = self.scheduler.select_task_rq(task, cpu, WakeKind::Wakeup { sync: false });
            let migrated = decision.cpu != self.scheduler.task(task).cpu();
            self.scheduler.apply_cpu(task, decision);
            self.scheduler.ttwu_do_activate(task, WakeFlags { migrated, ..WakeFlags::default() });
        }
    }

    fn step(&mut self, calm: bool) {
        let tick = self.now.0 / TICK;
        let passed = self.below(if calm { TICK } else { TICK / [16, 100][(self.digest % 2) as usize] });
        self.now += Ns(passed);
        if self.now.0 / TICK != tick {
            self.now = Ns(self.now.0 / TICK * TICK);
            self.tick();
        }
        let cpu = Cpu(self.below(self.cpus().len() as u64) as u32);
        self.here(cpu, KernelContext::Task);
        match self.below(if calm { 60 } else { 10 }) {
            0..4 => self.wake_something(cpu),
            4..7 => self.schedule(cpu, true),
            _ => {}
        }
        for cpu in self.cpus() {
            if self.scheduler.need_resched(cpu) {
                self.schedule(cpu, false);
            }
        }
    }
}

fn spec(pid: Pid, policy: Policy, nice: i32, allowed: CpuMask, per_cpu_kthread: bool) -> TaskSpec {
    let kthread = per_cpu_kthread;
    TaskSpec { comm: Comm::from("task"), pid, tgid: pid, policy, nice, allowed, kthread, per_cpu_kthread }
}

/// Runs `steps` steps and returns a checksum of what balancing did.
fn run(generation: Generation, seed: u64, steps: u32) -> u64 {
    let name = generation.name().to_string();
    let mut driver = RandomMachine::new(generation, seed);
    let tasks = driver.cpus().len() as u64 * (seed / 7 % 4) + 2 + seed % 5;
    for _ in 0..tasks {
        driver.spawn();
    }
    for step in 0..steps {
        // Times of many wakeups and times of long runs take turns.
        driver.step(step / 400 % 2 == 1);
        if step % 64 == 0 {
            let state = driver.scheduler.check_invariants().and_then(|()| counters_add_up(&driver.scheduler));
            state.unwrap_or_else(|fault| panic!("{name}, seed {seed}, step {step}: {fault}"));
        }
    }
    driver.digest
}

/// Every call is counted once as what it came to.
fn counters_add_up(scheduler: &Scheduler) -> Result<(), String> {
    for cpu in scheduler.shared.topology.cpus() {
        for sd in scheduler.domains.domains_of(cpu) {
            for lb in &sd.counters.lb {
                if lb.nobusyg + lb.nobusyq > lb.balanced || lb.balanced + lb.failed > lb.count {
                    return Err(format!("CPU {}, {}: {lb:?}", cpu.0, sd.name));
                }
            }
            let counters = &sd.counters;
            if counters.alb_count != counters.alb_pushed + counters.alb_failed {
                return Err(format!("CPU {}, {}: {counters:?}", cpu.0, sd.name));
            }
        }
    }
    Ok(())
}

#[test]
fn the_state_stays_sound_under_every_kernel() {
    for length in 0..=LOG.len() {
        run(Generation::prefix(length), length as u64, 1_200);
    }
}

#[test]
fn every_change_of_balancing_shows() {
    let here = |change: &LoggedCommit| place(change) == Some(ShownBy::Balancing);
    let without_effect = LOG.iter().enumerate().filter(|(_, change)| here(change)).filter(|(index, _)| {
        let after = Generation::prefix(index + 1);
        let differs = |before: &Generation| {
            (0..PLAIN_SEEDS + 42)
                .any(|seed| run(before.clone(), seed, 2_400) != run(after.clone(), seed, 2_400))
        };
        !before(*index).iter().any(differs)
    });
    assert_eq!(without_effect.map(|(_, change)| change.name).collect::<Vec<_>>(), Vec::<&str>::new());
}
