//! What balancing promises of every kernel: work does not wait beside idle CPUs for long, and what is even stays even.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, sink_fn};
use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{CpuMask, Topology};

use super::{Script, machine, spec};
use crate::engine::{Engine, FIRST_PID};
use crate::machine::Machine;
use crate::rng::Stream;
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
    // The first is the thread that creates them.
    let pids = (FIRST_PID + 1..).map(Pid);
    let allowed = pids.zip(&threads).map(|(pid, (spec, _))| (pid, spec.allowed)).collect();
    let mut queues = Queues { allowed, cpus: machine.topology.nr_cpus() as u32, ..Queues::default() };
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
    engine.set_tracing(true);
    engine.start(Script::new(threads));
    let mut sink = sink_fn(|event: &Event<'_>| queues.event(event));
    engine.run_until(end, &mut sink);
    drop(sink);
    queues
}

/// An idle CPU looks around at least once in twice as many ticks as its domain has CPUs; a task that ran a moment ago is
/// left to its CPU until a few tries have failed. CPU-bound tasks only: what hardly runs may be left where it is. In every
/// other round tasks may use some CPUs only.
#[test]
fn no_task_waits_long_beside_an_idle_cpu_that_it_may_use() {
    for round in 0..12 {
        for kernel in KERNELS {
            let name = format!("{kernel} round {round}");
            let mut random = Stream::new(round, &name);
            let cpus = 2 + random.below(7) as u32;
            let threads = 1 + random.below(2 * u64::from(cpus));
            let bursts = |random: &mut Stream| {
                let run = Action::Run(Ns::from_ms(20 + random.below(180)));
                let sleep = Action::Sleep(Ns::from_ms(1 + random.below(60)));
                let first = random.below(u64::from(cpus) - 1) * (round % 2);
                (spec(0, &format!("{first}-{}", cpus - 1)), vec![run, sleep])
            };
            let threads = (0..threads).map(|_| bursts(&mut random)).collect();
            let queues = run(kernel, machine(cpus), threads, Ns::from_secs(2));
            let bound = Ns::from_ms(2 * u64::from(cpus) * 6);
            assert!(queues.longest <= bound, "{name}: {} CPUs, {} ns", cpus, queues.longest.0);
        }
    }
}

/// From the rework on (v5.5), groups with CPUs to spare exchange nothing once they are even.
#[test]
fn groups_with_idle_cpus_do_not_pass_a_task_to_and_fro() {
    for round in 0..8 {
        for kernel in &KERNELS[3..] {
            let name = format!("{kernel} round {round}");
            let mut random = Stream::new(round, &name);
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

/// A hog that may run nowhere else on CPU 0, and CPU 1 without work.
#[test]
fn a_cpu_that_ticks_while_it_idles_balances_for_itself() {
    let tries = |nohz_idle: bool| {
        let hog = vec![Action::Run(Ns::from_secs(1))];
        let mut engine =
            Engine::new("v6.5".parse().expect("a kernel"), Machine { nohz_idle, ..machine(2) }, 1);
        engine.set_balance_notes(true);
        engine.start(Script::new(vec![(spec(0, "0"), hog)]));
        engine.run_until(Ns::from_ms(200), &mut ());
        engine.take_balance_notes().iter().filter(|note| note.decision.cpu == Cpu(1)).count()
    };
    let (stopped, ticking) = (tries(true), tries(false));
    assert!(ticking > 20 && stopped < ticking / 5, "{stopped} {ticking}");
}
