//! What balancing promises of every kernel: work does not wait beside idle CPUs for long, and what is even stays even.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Event, EventKind, GenericValue, Ns, Pid, UntypedTracepoint, sink_fn};
use fairlab_kernel::balance::{Comparison, MAX_PINNED_INTERVAL};
use fairlab_kernel::domain::SchedDomain;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{CpuMask, Topology};

use super::{Script, machine, spec};
use crate::engine::{Engine, FIRST_PID};
use crate::machine::{IdleState, Machine};
use crate::rng::RandomStream;
use crate::workload::sessions::Sessions;
use crate::workload::{Action, ThreadSpec};

const KERNELS: [&str; 9] = ["v4.18", "v5.2", "v5.4", "v5.5", "v5.10", "v6.1", "v6.6", "v6.12", "v7.2"];

/// Who runs and who waits, as events tell.
#[derive(Default)]
struct Queues {
    running: BTreeMap<Cpu, Pid>,
    waiting: BTreeMap<Pid, Cpu>,
    allowed: BTreeMap<Pid, CpuMask>,
    cpus: u32,
    /// Since when a task has waited while a CPU that it may use was idle, and the longest of that.
    since: Option<Ns>,
    longest: Ns,
    moves: Vec<(Ns, Pid, Cpu, Cpu)>,
}

impl Queues {
    fn event(&mut self, event: &Event<'_>) {
        match event.kind {
            EventKind::SchedSwitch(switch) => {
                if !switch.prev_pid.is_idle() && switch.prev_state.is_runnable() {
                    self.waiting.insert(switch.prev_pid, event.cpu);
                }
                self.waiting.remove(&switch.next_pid);
                self.running.insert(event.cpu, switch.next_pid);
            }
            EventKind::SchedWakeup(wakeup) | EventKind::SchedWakeupNew(wakeup)
                if !self.running.values().any(|&pid| pid == wakeup.pid) =>
            {
                self.waiting.insert(wakeup.pid, wakeup.target_cpu);
            }
            EventKind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } => {
                if let Some(cpu) = self.waiting.get_mut(&pid) {
                    *cpu = dest_cpu;
                    self.moves.push((event.time, pid, orig_cpu, dest_cpu));
                }
            }
            _ => {}
        }
        self.follow(event.time);
    }

    fn follow(&mut self, now: Ns) {
        let idle = (0..self.cpus).map(Cpu).filter(|cpu| {
            self.running.get(cpu).is_none_or(|pid| pid.is_idle())
                && !self.waiting.values().any(|at| at == cpu)
        });
        let idle = idle.collect::<CpuMask>();
        let could = |pid: &Pid| self.allowed.get(pid).is_some_and(|allowed| !allowed.and(&idle).is_empty());
        let wasted = !idle.is_empty() && self.waiting.keys().any(could);
        if let Some(since) = self.since {
            self.longest = self.longest.max(now.since(since));
        }
        self.since = if wasted { Some(self.since.unwrap_or(now)) } else { None };
    }
}

fn run(kernel: &str, machine: Machine, threads: Vec<(ThreadSpec, Vec<Action>)>, end: Ns) -> Queues {
    let engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
    run_on(engine, threads, end)
}

fn run_on(mut engine: Engine, threads: Vec<(ThreadSpec, Vec<Action>)>, end: Ns) -> Queues {
    // The first is the thread that creates them.
    let pids = (FIRST_PID + 1..).map(Pid);
    let allowed = pids.zip(&threads).map(|(pid, (spec, _))| (pid, spec.allowed)).collect();
    let mut queues = Queues { allowed, cpus: engine.cpus.len() as u32, ..Queues::default() };
    engine.set_tracing(true);
    engine.start(Script::new(threads));
    let mut sink = sink_fn(|event: &Event<'_>| queues.event(event));
    engine.run_until(end, &mut sink);
    drop(sink);
    queues
}

/// How long a task of a CPU-bound load may wait beside an idle CPU under one cache by the rules of a kernel.
///
/// * Before balancing went by types of groups, idle CPUs only relieved CPUs whose capacity is used up, which
///   tells after three half-lives of utilization.
/// * The idle CPU looks at last when its interval has grown to the limit: twice the least one, or what is beyond
///   [`MAX_PINNED_INTERVAL`] once if it met only tasks that may not run there.
/// * What was hot is moved after more than `cache_nice_tries` failures. A failure resets the interval.
/// * Each look needs a tick of a busy CPU that kicks, and one more where the next kick comes a tick late.
fn patience(engine: &Engine, pinned: bool) -> Ns {
    const HALF_LIFE_MS: u64 = 32;
    let tick_ms = engine.machine.tick().0 / 1_000_000;
    let rules = &engine.kernel().generation().balance;
    let used_up = if rules.comparison == Comparison::GroupTypes { 0 } else { 3 * HALF_LIFE_MS };
    let of_domain = |domain: &SchedDomain| {
        let [least, most] = [domain.min_interval, domain.max_interval].map(u64::from);
        let most = if pinned { most.max(2 * u64::from(MAX_PINNED_INTERVAL)) } else { most };
        let failures = u64::from(domain.cache_nice_tries) + 1;
        most + failures * least + (failures + 1) * 2 * tick_ms
    };
    let domains = engine.machine.topology.cpus().flat_map(|cpu| engine.kernel().domains().domains_of(cpu));
    Ns::from_ms(used_up + domains.map(of_domain).max().unwrap_or_default())
}

/// Threads that run for long and sleep a little; what hardly runs may be left where it is.
fn bursts(random: &mut RandomStream, cpus: u32, pinned: bool) -> Vec<(ThreadSpec, Vec<Action>)> {
    let threads = 1 + random.below(2 * u64::from(cpus));
    let thread = |_| {
        let run = Action::Run(Ns::from_ms(20 + random.below(180)));
        let sleep = Action::Sleep(Ns::from_ms(1 + random.below(60)));
        let first = random.below(u64::from(cpus) - 1) * u64::from(pinned);
        (spec(0, &format!("{first}-{}", cpus - 1)), vec![run, sleep])
    };
    (0..threads).map(thread).collect()
}

#[test]
fn no_task_waits_longer_beside_an_idle_cpu_than_the_rules_allow() {
    for round in 0..12 {
        for kernel in KERNELS {
            let name = format!("{kernel} round {round}");
            let mut random = RandomStream::new(round, &name);
            let (cpus, pinned) = (2 + random.below(7) as u32, round % 2 == 1);
            let threads = bursts(&mut random, cpus, pinned);
            let engine = Engine::new(kernel.parse().expect("a kernel"), machine(cpus), 1);
            let bound = patience(&engine, pinned);
            let queues = run_on(engine, threads, Ns::from_secs(2));
            assert!(queues.longest <= bound, "{name}: {cpus} CPUs, {:?} beyond {bound:?}", queues.longest);
        }
    }
}

/// A CPU that idles already is told by kicks alone that a task which it may run has come to wait elsewhere.
#[test]
fn a_kernel_whose_kicks_are_lost_is_told_by_how_long_tasks_wait() {
    for kernel in KERNELS {
        let longest = |loses_kicks| {
            let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine(2), 1);
            let bound = patience(&engine, true);
            let allow = |cpus| Action::SetScheduler {
                policy: None,
                nice: None,
                request: None,
                allowed: CpuMask::parse_list(cpus).ok(),
            };
            let run = |ms| Action::Run(Ns::from_ms(ms));
            // Two tasks share the first CPU while the second idles, then they may go there.
            let freed = vec![allow("0"), run(30), allow("0-1"), run(4000)];
            let threads = vec![(spec(0, "0-1"), freed); 2];
            engine.core.loses_kicks = loses_kicks;
            (run_on(engine, threads, Ns::from_secs(3)).longest, bound)
        };
        let ((sound, bound), (deaf, _)) = (longest(false), longest(true));
        assert!(sound <= bound && deaf > bound, "{kernel}: {sound:?} and {deaf:?} of {bound:?}");
    }
}

/// From the rework on (v5.5), groups with CPUs to spare exchange nothing once they are even.
#[test]
fn groups_with_idle_cpus_do_not_pass_a_task_to_and_fro() {
    for round in 0..8 {
        for kernel in &KERNELS[3..] {
            let name = format!("{kernel} round {round}");
            let mut random = RandomStream::new(round, &name);
            let cores = 2 + random.below(4) as u32;
            let topology = Topology::regular(1, 2, cores, 1, SmtNumbering::Adjacent).expect("a machine");
            let cpus = 2 * cores;
            let threads = 1 + random.below(u64::from(cpus) - 1);
            let hog = (spec(0, &format!("0-{}", cpus - 1)), super::hog());
            let threads = vec![hog; threads as usize];
            let queues = run(kernel, Machine { topology, ..machine(cpus) }, threads, Ns::from_secs(2));
            let mut last = BTreeMap::new();
            for &(time, pid, orig, dest) in &queues.moves {
                let before = last.insert(pid, (orig, dest));
                let returns = before == Some((dest, orig)) && orig.0 / cores != dest.0 / cores;
                assert!(!returns, "{name}: {pid} from {orig} back to {dest} at {} ns", time.0);
            }
        }
    }
}

/// A thread that forbids itself its CPU goes on elsewhere without sleeping: the stopper moves it.
#[test]
fn the_stopper_moves_a_task_off_a_cpu_that_it_forbids_itself() {
    for kernel in KERNELS {
        let only = |cpu| Action::SetScheduler {
            policy: None,
            nice: None,
            request: None,
            allowed: Some(CpuMask::single(Cpu(cpu))),
        };
        let run = || Action::Run(Ns::from_ms(5));
        let threads = vec![(spec(0, "0"), vec![run(), only(1), run(), only(0)])];
        let (mut moves, mut stops, mut sleeps) = (Vec::new(), 0, 0);
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine(2), 1);
        engine.set_tracing(true);
        engine.start(Script::new(threads));
        let thread = Pid(FIRST_PID + 1);
        let mut sink = sink_fn(|event: &Event<'_>| match event.kind {
            EventKind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } if pid == thread => {
                moves.push((event.cpu, orig_cpu, dest_cpu));
            }
            EventKind::SchedSwitch(switch) if switch.prev_pid == thread => {
                let to_stopper = switch.next_comm.as_bytes().starts_with(b"migration/");
                stops += u32::from(to_stopper);
                sleeps += u32::from(!switch.prev_state.is_runnable());
            }
            _ => {}
        });
        engine.run_until(Ns::from_ms(21), &mut sink);
        drop(sink);
        let (to_1, to_0) = ((Cpu(0), Cpu(0), Cpu(1)), (Cpu(1), Cpu(1), Cpu(0)));
        assert_eq!((moves, stops, sleeps), (vec![to_1, to_0, to_1, to_0], 4, 0), "{kernel}");
    }
}

/// Forks of a group stay on the node, since its load is small; CPUs of the other node, which never ran anything, are asked
/// to balance all the same.
#[test]
fn cpus_that_never_ran_a_task_are_kicked_to_balance() {
    let machine = || Machine {
        topology: Topology::regular(2, 1, 8, 1, SmtNumbering::Adjacent).expect("a machine"),
        ..machine(16)
    };
    let mut engine = Engine::new("v5.4".parse().expect("a kernel"), machine(), 1);
    let sessions = Sessions::parse(&["16:5000:300".to_string()]).expect("a session");
    let number = engine.start(Box::new(sessions));
    engine.run_until(Ns::from_secs(2), &mut ());
    let operations = engine.workload(number).progress().expect("operations").1;
    assert!(operations > 16 * 2000 * 10 / 53 * 9 / 10, "{operations} operations of 5.3 ms on 16 CPUs in 2 s");
}

/// Tries to balance of CPU 1 until then, for that if it is said.
fn tries_of_1(engine: &mut Engine, until: Ns, idle: Option<&str>) -> usize {
    let mut tries = 0;
    engine.set_tracing(true);
    engine.set_balancing_told(true);
    let mut sink = sink_fn(|event: &Event<'_>| {
        let EventKind::Other { name, fields } = event.kind else { return };
        let is_for = |told| idle.is_none_or(|idle| told == Some(GenericValue::Text(idle)));
        let is_one = name == UntypedTracepoint::DecidedBalance.name() && fields.unsigned("cpu") == Some(1);
        tries += usize::from(is_one && is_for(fields.get("idle")));
    });
    engine.run_until(until, &mut sink);
    drop(sink);
    tries
}

/// CPU 1 idles for two ticks and a half, again and again, beside a hog: it balances for itself at ticks that find it idle.
#[test]
fn a_cpu_that_goes_idle_has_one_more_tick_from_v7_0_on() {
    let tries = |kernel: &str, idle_states: Vec<IdleState>, sleep_us| {
        let mut engine =
            Engine::new(kernel.parse().expect("a kernel"), Machine { idle_states, ..machine(2) }, 1);
        let nap = vec![Action::Sleep(Ns::from_us(sleep_us)), Action::Run(Ns::from_us(270))];
        engine.start(Script::new(vec![
            (spec(0, "0"), vec![Action::Run(Ns::from_secs(1))]),
            (spec(0, "1"), nap),
        ]));
        tries_of_1(&mut engine, Ns::from_secs(1), Some("Idle"))
    };
    let naps = |kernel| tries(kernel, Vec::new(), 10_000);
    assert_eq!([naps("v6.19"), naps("v7.0-f4c31b07b136")], [0, 0]);
    assert!((50..=97).contains(&naps("v7.0")), "{}", naps("v7.0"));
    // A driver's states: what is expected decides, under any kernel.
    let state = || {
        vec![IdleState {
            cpus: CpuMask::first(2),
            exit: Ns(1),
            entry: Ns::ZERO,
            residency: Ns(1),
            together: false,
        }]
    };
    for kernel in ["v6.6", "v7.0"] {
        // The first time it remembers idle times of nothing.
        assert!(tries(kernel, state(), 10_000) <= 1, "{kernel}: longer than a tick");
        assert!(tries(kernel, state(), 700) > 20, "{kernel}: shorter, while ticks come all the same");
    }
}

/// A hog that may run nowhere else on CPU 0, and CPU 1 without work.
#[test]
fn a_cpu_that_ticks_while_it_idles_balances_for_itself() {
    let tries = |nohz_idle: bool| {
        let hog = vec![Action::Run(Ns::from_secs(1))];
        let mut engine =
            Engine::new("v6.5".parse().expect("a kernel"), Machine { nohz_idle, ..machine(2) }, 1);
        engine.start(Script::new(vec![(spec(0, "0"), hog)]));
        tries_of_1(&mut engine, Ns::from_ms(200), None)
    };
    let (stopped, ticking) = (tries(true), tries(false));
    assert!(ticking > 20 && stopped < ticking / 5, "{stopped} {ticking}");
}
