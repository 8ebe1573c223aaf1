//! Pictures: small workloads on small machines, drawn as who ran where.

use fairlab_analysis::timeline::Timeline;
use fairlab_event::{Cpu, DigestSink, Event, EventKind, Ns, sink_fn};
use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{CpuMask, Topology};

use super::Engine;
use crate::machine::{Costs, Machine};
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

/// Threads that each repeat a list of actions; the main thread creates them and ends.
struct Script {
    threads: Vec<(ThreadSpec, Vec<Action>)>,
    spawned: usize,
    steps: Vec<usize>,
}

impl Script {
    fn new(threads: Vec<(ThreadSpec, Vec<Action>)>) -> Box<Script> {
        let steps = vec![0; threads.len()];
        Box::new(Script { threads, spawned: 0, steps })
    }
}

impl Workload for Script {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec { allowed: self.threads[0].0.allowed, ..ThreadSpec::new("main", "main") }
    }

    fn next(&mut self, thread: ThreadId, _: &mut View<'_>) -> Action {
        if thread == ThreadId::MAIN {
            let Some((spec, _)) = self.threads.get(self.spawned) else { return Action::Exit };
            self.spawned += 1;
            return Action::Spawn(spec.clone());
        }
        let index = thread.index() - 1;
        let actions = &self.threads[index].1;
        let step = self.steps[index];
        self.steps[index] += 1;
        actions[step % actions.len()].clone()
    }

    fn output(&self, _: Ns) -> String {
        String::new()
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        None
    }
}

fn spec(nice: i32, cpus: &str) -> ThreadSpec {
    let allowed = CpuMask::parse_list(cpus).expect("a list of CPUs");
    ThreadSpec { nice, allowed, ..ThreadSpec::new("task", format!("task {nice} {cpus}")) }
}

/// `cores` cores without SMT, HZ 1000, kernel work nearly free, so that pictures are exact.
fn machine(cores: u32) -> Machine {
    let mut costs = Costs::default();
    for cost in Costs::default().table() {
        costs.set(cost.name, Ns(1));
    }
    Machine {
        name: "test".to_string(),
        description: String::new(),
        topology: Topology::regular(1, 1, cores, 1, SmtNumbering::Adjacent).expect("a machine"),
        hz: 1000,
        costs,
    }
}

fn picture(
    kernel: &str,
    machine: Machine,
    threads: Vec<(ThreadSpec, Vec<Action>)>,
    slot: Ns,
    slots: usize,
) -> String {
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
    engine.set_tracing(true);
    engine.start(Script::new(threads));
    let end = Ns(slot.0 * slots as u64);
    let mut timeline = Timeline::new(Ns::ZERO, slot, slots);
    engine.run_until(end, &mut timeline);
    timeline.draw(end)
}

fn hog() -> Vec<Action> {
    vec![Action::Run(Ns::from_secs(1))]
}

#[test]
fn two_hogs_take_turns_of_half_a_latency_on_cfs_and_of_a_base_slice_on_eevdf() {
    let hogs = || vec![(spec(0, "0"), hog()), (spec(0, "0"), hog())];
    // 8 CPUs: latency 24 ms, so 12 ms each, ended by the first tick after it.
    assert_eq!(
        picture("v6.5", machine(8), hogs(), Ns::from_ms(1), 60),
        "  0 BBBBBBBBBBBBBCCCCCCCCCCCCBBBBBBBBBBBBCCCCCCCCCCCCBBBBBBBBBBB\n"
    );
    // 8 CPUs: base slice 3 ms.
    assert_eq!(
        picture("v6.6", machine(8), hogs(), Ns::from_ms(1), 60),
        "  0 BBBBCCCCBBBCCCBBBCCCBBBCCCBBBCCCBBBCCCBBBCCCBBBCCCBBBCCCBBBC\n"
    );
}

#[test]
fn a_newly_idle_cpu_pulls_a_waiting_task() {
    let threads = vec![
        (spec(0, "0-1"), hog()),
        (spec(0, "0-1"), hog()),
        (spec(0, "1"), vec![Action::Run(Ns::from_ms(5)), Action::Exit]),
    ];
    assert_eq!(
        picture("v6.5", machine(2), threads, Ns::from_ms(1), 20),
        "  0 CCCCCCCCCCCCCCCCCCCC\n  1 BBBBBDDDDDDDDDDDDDDD\n"
    );
}

#[test]
fn weights_decide_shares() {
    for kernel in ["v6.5", "v6.6"] {
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine(1), 1);
        engine.start(Script::new(vec![(spec(0, "0"), hog()), (spec(5, "0"), hog()), (spec(-5, "0"), hog())]));
        engine.run_until(Ns::from_secs(20), &mut ());
        let tasks = engine.threads.iter().skip(1).map(|thread| engine.kernel.sum_exec_runtime(thread.task).0);
        let runtime = tasks.collect::<Vec<_>>();
        let total = runtime.iter().sum::<u64>();
        for (ran, weight) in runtime.iter().zip([1024, 335, 3121]) {
            let fair = total * weight / (1024 + 335 + 3121);
            assert!(
                ran.abs_diff(fair) * 100 < total,
                "{kernel}: {ran} ns, {fair} ns would be fair, of {total}"
            );
        }
    }
}

#[test]
fn one_seed_one_digest() {
    let digest = |seed| {
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine(4), seed);
        engine.set_tracing(true);
        let busy = vec![Action::Run(Ns::from_us(700)), Action::Sleep(Ns::from_us(300))];
        engine.start(Script::new((0..9).map(|_| (spec(0, "0-3"), busy.clone())).collect()));
        let mut sink = DigestSink::default();
        engine.run_until(Ns::from_secs(1), &mut sink);
        (sink.digest(), engine.counters())
    };
    assert_eq!(digest(1), digest(1));
    assert!(digest(1).1.switches > 1000);
}

#[test]
fn events_come_in_order_of_time_and_switches_chain() {
    let mut engine = Engine::new("v6.5".parse().expect("a kernel"), machine(4), 3);
    engine.set_tracing(true);
    let busy = vec![Action::Run(Ns::from_us(900)), Action::Sleep(Ns::from_us(50)), Action::Yield];
    engine.start(Script::new((0..11).map(|_| (spec(0, "0-3"), busy.clone())).collect()));
    let mut last = Ns::ZERO;
    let mut running = [None; 4];
    let mut check = sink_fn(|event: &Event<'_>| {
        assert!(event.time >= last, "time goes back at {event:?}");
        last = event.time;
        if let EventKind::SchedSwitch(switch) = event.kind {
            let Cpu(cpu) = event.cpu;
            let before = running[cpu as usize].replace(switch.next_pid);
            assert!(before.is_none_or(|pid| pid == switch.prev_pid), "{event:?} after {before:?}");
            let idle = switch.next_pid.is_idle();
            assert!(
                idle || running.iter().filter(|&&pid| pid == Some(switch.next_pid)).count() == 1,
                "{event:?}"
            );
        }
    });
    engine.run_until(Ns::from_ms(500), &mut check);
}
