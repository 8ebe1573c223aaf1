//! Pictures: small workloads on small machines, drawn as who ran where.

mod balance;
mod costs;
mod exec;
mod groups;
mod spin;

use fairlab_analysis::timeline::CpuTimeline;
use fairlab_event::{Cpu, DigestSink, Event, EventKind, Ns, UntypedTracepoint, sink_fn};
use fairlab_kernel::cpufreq::FrequencyDomain;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{CpuMask, Topology};

use super::Engine;
use crate::machine::{Chance, IdleState, KernelCosts, Machine, Sharing, TrueSpeeds};
use crate::workload::cgroup::GroupSpec;
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

/// Threads that each repeat a list of actions; the main thread creates them and ends.
pub(super) struct Script {
    groups: Vec<GroupSpec>,
    threads: Vec<(ThreadSpec, Vec<Action>)>,
    spawned: usize,
    steps: Vec<usize>,
}

impl Script {
    pub(super) fn new(threads: Vec<(ThreadSpec, Vec<Action>)>) -> Box<Script> {
        Script::in_groups(Vec::new(), threads)
    }

    pub(super) fn in_groups(groups: Vec<GroupSpec>, threads: Vec<(ThreadSpec, Vec<Action>)>) -> Box<Script> {
        let steps = vec![0; threads.len()];
        Box::new(Script { groups, threads, spawned: 0, steps })
    }
}

impl Workload for Script {
    fn groups(&self) -> Vec<GroupSpec> {
        self.groups.clone()
    }

    fn named_cpus(&self) -> CpuMask {
        self.threads.iter().fold(CpuMask::EMPTY, |named, (spec, _)| named.or(&spec.allowed))
    }

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

pub(super) fn spec(nice: i32, cpus: &str) -> ThreadSpec {
    let allowed = CpuMask::parse_list(cpus).expect("a list of CPUs");
    ThreadSpec { nice, allowed, ..ThreadSpec::new("task", format!("task {nice} {cpus}")) }
}

/// `cores` cores without SMT, HZ 1000, kernel work nearly free, so that pictures are exact.
pub(crate) fn machine(cores: u32) -> Machine {
    let mut costs = KernelCosts::default();
    for cost in KernelCosts::default().table() {
        costs.set(cost.name, Ns(1));
    }
    Machine {
        name: "test".to_string(),
        description: String::new(),
        topology: Topology::regular(1, 1, cores, 1, SmtNumbering::Adjacent).expect("a machine"),
        hz: 1000,
        high_res_timers: true,
        nohz_idle: true,
        chance: Chance::NONE,
        in_turn: false,
        costs,
        frequency_domains: Vec::new(),
        energy_model: Vec::new(),
        speeds: TrueSpeeds::default(),
        sharing: Sharing::NONE,
        idle_states: Vec::new(),
    }
}

fn picture(
    kernel: &str,
    machine: Machine,
    threads: Vec<(ThreadSpec, Vec<Action>)>,
    slot: Ns,
    slots: usize,
) -> String {
    picture_of(kernel, machine, Script::new(threads), slot, slots)
}

fn picture_of(kernel: &str, machine: Machine, script: Box<Script>, slot: Ns, slots: usize) -> String {
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
    engine.set_tracing(true);
    engine.start(script);
    let end = Ns(slot.0 * slots as u64);
    let mut timeline = CpuTimeline::new(Ns::ZERO, slot, slots);
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

/// Base slice 2.8 ms: from v7.1 a timer ends it, before the third tick finds it used.
#[test]
fn slices_end_by_a_timer_of_their_own() {
    let drawn = |kernel: &str| {
        let hogs = vec![(spec(0, "0"), hog()), (spec(0, "0"), hog())];
        picture(kernel, machine(8), hogs, Ns(700_000), 40)
    };
    // Four slots of 0.7 ms are a slice; each begins with half of one.
    assert_eq!(drawn("v7.2"), "  0 BBCCCCCCBBBBCCCCBBBBCCCCBBBBCCCCBBBBCCCC\n");
    assert_eq!(drawn("v7.0"), drawn("v7.2+NO_HRTICK"));
    assert_ne!(drawn("v7.0"), drawn("v7.2"));
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

/// Interrupts are off while a CPU that has nothing left to run looks around, so that the ticks of three milliseconds find
/// whoever runs then.
#[test]
fn no_tick_charges_a_task_that_has_left() {
    let mut machine = machine(2);
    machine.costs.newidle = Ns::from_ms(3);
    let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
    engine.set_tracing(true);
    let worker = vec![Action::Run(Ns::from_us(2_500)), Action::Sleep(Ns::from_ms(20))];
    engine.start(Script::new(vec![(spec(0, "1"), worker)]));
    let (mut charged, mut gaps) = (Ns::ZERO, Vec::new());
    let mut sink = sink_fn(|event: &Event<'_>| match event.kind {
        EventKind::SchedStatRuntime { pid, .. } if pid.0 == super::FIRST_PID + 1 => charged = event.time,
        EventKind::SchedSwitch(switch) if switch.prev_pid.0 == super::FIRST_PID + 1 => {
            gaps.push(event.time.since(charged));
        }
        _ => {}
    });
    engine.run_until(Ns::from_ms(200), &mut sink);
    drop(sink);
    assert!(gaps.len() > 4 && gaps.iter().all(|&gap| gap >= Ns::from_ms(3)), "{gaps:?}");
}

#[test]
fn without_high_resolution_timers_sleeps_end_at_ticks() {
    let sleeper = vec![Action::Sleep(Ns::from_us(300)), Action::Run(Ns::from_us(200))];
    let wakeups = |high_res_timers: bool| {
        let mut engine =
            Engine::new("v6.6".parse().expect("a kernel"), Machine { high_res_timers, ..machine(1) }, 1);
        engine.set_tracing(true);
        engine.start(Script::new(vec![(spec(0, "0"), sleeper.clone())]));
        let mut times = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            if let EventKind::SchedWaking(_) = event.kind {
                times.push(event.time.0);
            }
        });
        engine.run_until(Ns::from_ms(20), &mut sink);
        drop(sink);
        times
    };
    let (fine, coarse) = (wakeups(true), wakeups(false));
    assert!(coarse.iter().all(|time| time % 1_000_000 < 10) && coarse.len() > 10, "{coarse:?}");
    assert!(fine.len() > coarse.len() && fine.iter().any(|time| time % 1_000_000 > 10), "{fine:?}");
}

#[test]
fn weights_decide_shares() {
    for kernel in ["v6.5", "v6.6"] {
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine(1), 1);
        engine.start(Script::new(vec![(spec(0, "0"), hog()), (spec(5, "0"), hog()), (spec(-5, "0"), hog())]));
        engine.run_until(Ns::from_secs(20), &mut ());
        let tasks =
            engine.threads.iter().skip(1).map(|thread| engine.kernel().sum_exec_runtime(thread.task).0);
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
fn a_cpu_that_expects_to_idle_for_long_takes_long_to_wake() {
    let state = |exit_us, residency_us| IdleState {
        cpus: CpuMask::first(1),
        exit: Ns::from_us(exit_us),
        entry: Ns::ZERO,
        residency: Ns::from_us(residency_us),
        together: false,
    };
    let cycle_us = |idle_states: Vec<IdleState>, sleep_ms| {
        let machine = Machine { idle_states, ..machine(1) };
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        engine.set_tracing(true);
        let sleeps = vec![Action::Sleep(Ns::from_ms(sleep_ms)), Action::Run(Ns::from_us(200))];
        engine.start(Script::new(vec![(spec(0, "0"), sleeps)]));
        let mut times = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            if let EventKind::SchedWaking(_) = event.kind {
                times.push(event.time.0 / 1000);
            }
        });
        engine.run_until(Ns::from_ms(200), &mut sink);
        drop(sink);
        // By then it knows how long it idles.
        times[12] - times[11]
    };
    for (sleep_ms, later_us) in [(1, 5), (10, 300)] {
        let plain = cycle_us(Vec::new(), sleep_ms);
        let with_states = cycle_us(vec![state(5, 5), state(300, 2000)], sleep_ms);
        assert_eq!(with_states - plain, later_us, "after {sleep_ms} ms");
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

/// A script that the seed decides: computing, sleeping, yielding, waking its neighbour, waiting for it.
fn random_threads(random: &mut crate::rng::RandomStream, cpus: u64) -> Vec<(ThreadSpec, Vec<Action>)> {
    let count = 2 + random.below(3 * cpus) as u32;
    let thread = |random: &mut crate::rng::RandomStream| {
        let nice = random.below(40) as i32 - 20;
        let first = random.below(cpus);
        let list = if random.below(4) == 0 { format!("{first}") } else { format!("0-{}", cpus - 1) };
        let steps = 1 + random.below(5);
        let mut actions = (0..steps)
            .map(|_| match random.below(6) {
                0 => Action::Sleep(Ns(1 + random.below(4_000_000))),
                1 => Action::Yield,
                2 => Action::Wake(ThreadId(1 + random.below(u64::from(count)) as u32)),
                3 => Action::SpinUntil(Ns(random.below(50_000_000))),
                _ => Action::Run(Ns(1 + random.below(6_000_000))),
            })
            .collect::<Vec<_>>();
        actions.push(Action::Run(Ns(1 + random.below(500_000))));
        (spec(nice, &list), actions)
    };
    (0..count).map(|_| thread(random)).collect()
}

const GENERATIONS: &[&str] = &[
    "v4.18",
    "v5.10",
    "debian-5.10",
    "v6.1+NEXT_BUDDY",
    "v6.5",
    "e0c2ff903c32",
    "86bfbb7ce4f6",
    "86bfbb7ce4f6+FAIR_SLEEPERS",
    "147f3efaa241",
    "e8f331bcc270",
    "v6.6",
    "v6.6+NO_PLACE_LAG+NO_RUN_TO_PARITY",
    "v6.6+scale-deadline-off-rq",
    "v6.6.9",
    "v6.8",
    "v6.9",
    "v6.12",
    "v6.12+NO_DELAY_ZERO",
    "v6.12+NO_DELAY_DEQUEUE+NEXT_BUDDY",
    "debian-6.12",
    "v6.13",
    "v7.2",
    "v7.2+NEXT_BUDDY",
];

#[test]
fn any_workload_on_any_kernel_keeps_the_invariants() {
    for round in 0..6 {
        for kernel in GENERATIONS {
            let name = format!("{kernel} round {round}");
            let mut random = crate::rng::RandomStream::new(round, &name);
            let cpus = 1 + random.below(8);
            let topology_threads = 1 + random.below(2) as u32;
            let mut machine = machine(cpus as u32);
            machine.topology = Topology::regular(1, 1, cpus as u32, topology_threads, SmtNumbering::Spread)
                .expect("a machine");
            machine.hz = [100, 250, 1000][random.below(3) as usize];
            let cpus = cpus * u64::from(topology_threads);
            let threads = random_threads(&mut random, cpus);
            let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, round);
            engine.set_tracing(true);
            engine.start(Script::new(threads));
            for step in 1..=60 {
                engine.run_until(Ns(step * 1_700_000), &mut ());
                engine
                    .kernel()
                    .check_invariants()
                    .unwrap_or_else(|fault| panic!("{name} at {}: {fault}", engine.now));
            }
        }
    }
}

/// Time that tasks were switched in is time that was accounted to them, but for the search of a CPU that runs out of work.
#[test]
fn run_time_is_conserved() {
    for kernel in GENERATIONS {
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine(4), 5);
        engine.set_tracing(true);
        let mut random = crate::rng::RandomStream::new(7, kernel);
        engine.start(Script::new(random_threads(&mut random, 4)));
        let mut since = std::collections::BTreeMap::new();
        let (mut on_cpu, mut accounted) = (0, 0);
        let mut check = sink_fn(|event: &Event<'_>| match event.kind {
            EventKind::SchedSwitch(switch) => {
                if let Some(start) = since.remove(&switch.prev_pid) {
                    on_cpu += event.time.since(start).0;
                }
                if !switch.next_pid.is_idle() {
                    since.insert(switch.next_pid, event.time);
                }
            }
            EventKind::SchedStatRuntime { runtime, .. } => accounted += runtime.0,
            _ => {}
        });
        engine.run_until(Ns::from_ms(400), &mut check);
        drop(check);
        on_cpu += since.values().map(|&start| engine.now.since(start).0).sum::<u64>();
        let slack = 4 * 10_000_000;
        assert!(
            accounted <= on_cpu + slack && on_cpu <= accounted + slack,
            "{kernel}: {on_cpu} ns on CPUs, {accounted} accounted"
        );
        assert!(accounted > 100_000_000, "{kernel}: {accounted}");
    }
}

#[test]
fn a_run_does_not_depend_on_names() {
    let shape = |comm: &str| {
        let busy = vec![Action::Run(Ns::from_us(700)), Action::Sleep(Ns::from_us(300))];
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine(3), 1);
        engine.set_tracing(true);
        let threads =
            (0..7).map(|_| (ThreadSpec { comm: comm.into(), ..spec(0, "0-2") }, busy.clone())).collect();
        engine.start(Script::new(threads));
        let mut shape = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            if let EventKind::SchedSwitch(switch) = event.kind {
                shape.push((event.time, event.cpu, switch.prev_pid, switch.next_pid));
            }
        });
        engine.run_until(Ns::from_ms(200), &mut sink);
        drop(sink);
        shape
    };
    let (one, other) = (shape("one"), shape("another"));
    assert!(one.len() > 100);
    assert_eq!(one, other);
}

/// A machine of two CPUs that share one clock: a quarter, half or full speed.
fn with_clock(fast_switch: bool) -> Machine {
    let frequencies = vec![500_000, 1_000_000, 2_000_000];
    let clock = FrequencyDomain {
        cpus: CpuMask::first(2),
        frequencies,
        rate_limit: Ns::from_ms(1),
        fast_switch,
        invariant: true,
    };
    let mut machine = machine(2);
    machine.costs.frequency_switch = Ns::from_ms(100);
    machine.frequency_domains = vec![clock];
    machine
}

fn time_of_ten_milliseconds_work(kernel: &str, machine: Machine) -> Ns {
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
    let worker = vec![Action::Run(Ns::from_ms(10)), Action::Exit];
    engine.start(Script::new(vec![(spec(0, "1"), worker)]));
    engine.run_until(Ns::from_secs(1), &mut sink_fn(|_: &Event<'_>| {}));
    engine.now()
}

#[test]
fn work_takes_as_long_as_the_clock_is_slow() {
    for kernel in ["v5.4", "v5.10", "v6.12"] {
        let full = time_of_ten_milliseconds_work(kernel, machine(2));
        assert!((10..11).contains(&(full.0 / 1_000_000)), "{kernel}: {full:?}");
        let governed =
            [true, false].map(|fast| time_of_ten_milliseconds_work(kernel, with_clock(fast)).0 / 1_000_000);
        // A register is written at once; a thread comes too late, and all is done at a quarter of the speed.
        assert!((11..40).contains(&governed[0]) && governed[1] == 40, "{kernel}: {governed:?}");
    }
}

#[test]
fn the_kernels_own_work_is_slow_on_a_slow_clock() {
    let busy = |frequency_domains: Vec<FrequencyDomain>| {
        let machine = Machine { costs: KernelCosts::default(), frequency_domains, ..machine(2) };
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        let sleeper = vec![Action::Sleep(Ns::from_us(500)), Action::Run(Ns::from_us(1))];
        engine.start(Script::new(vec![(spec(0, "1"), sleeper)]));
        engine.run_until(Ns::from_secs(1), &mut sink_fn(|_: &Event<'_>| {}));
        engine.counters().switches
    };
    let slow = busy(vec![FrequencyDomain {
        frequencies: vec![500_000, 2_000_000],
        ..with_clock(true).frequency_domains[0].clone()
    }]);
    let full = busy(Vec::new());
    assert!(slow < full, "a switch takes longer, so there are fewer: {slow} and {full}");
}

/// It uses next to nothing of a fast clock, so that only the boost after I/O can speed it up.
#[test]
fn the_clock_is_raised_for_a_task_that_waits_for_devices() {
    for kernel in ["v5.1", "v6.6"] {
        let cycles = |wait: fn(Ns) -> Action| {
            let frequencies = vec![100_000, 400_000, 2_000_000];
            let clock = FrequencyDomain { frequencies, ..with_clock(true).frequency_domains[0].clone() };
            let machine = Machine { frequency_domains: vec![clock], ..machine(2) };
            let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
            let worker = vec![Action::Run(Ns::from_us(20)), wait(Ns::from_us(400))];
            engine.start(Script::new(vec![(spec(0, "1"), worker)]));
            let mut waits = 0;
            engine.set_tracing(true);
            engine.run_until(
                Ns::from_secs(1),
                &mut sink_fn(|event: &Event<'_>| {
                    waits += u32::from(matches!(event.kind, EventKind::SchedStatIowait(_)));
                }),
            );
            (engine.counters().switches, waits)
        };
        let (sleeping, none) = cycles(Action::Sleep);
        let (waiting, waits) = cycles(Action::Io);
        assert!(10 * waiting > 11 * sleeping, "{kernel}: {waiting} and {sleeping} switches");
        assert!(none == 0 && waits > 100, "{kernel}: {waits} waits for devices are reported");
    }
}

/// Two CPUs carried out in turn: both compute for 10 ms of instructions, and the first gets five turns of eight.
#[test]
fn cpus_that_are_carried_out_in_turn_share_the_speed_of_one() {
    let ended = |in_turn: bool| {
        let machine = Machine { in_turn, ..machine(2) };
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        let worker = vec![Action::Run(Ns::from_ms(10)), Action::Exit];
        engine.set_tracing(true);
        let threads = vec![(spec(0, "0"), worker.clone()), (spec(0, "1"), worker)];
        engine.start(Script::new(threads));
        let mut ends = [0; 2];
        let mut sink = sink_fn(|event: &Event<'_>| {
            if let EventKind::SchedProcessExit { .. } = event.kind {
                ends[event.cpu.index()] = event.time.0 / 1_000_000;
            }
        });
        engine.run_until(Ns::from_secs(1), &mut sink);
        drop(sink);
        ends
    };
    assert_eq!(ended(false), [10, 10]);
    assert_eq!(ended(true), [16, 20], "10 of 16 ms; then the second has all");
}

/// What runs CPUs in turn knows no clocks of theirs: a small CPU takes no longer, though its kernel takes it for half as fast.
#[test]
fn cpus_that_are_carried_out_in_turn_are_equally_fast() {
    let ended = |in_turn: bool| {
        let topology = machine(2).topology.with_capacities(&[512, 1024]).expect("capacities");
        let machine = Machine { in_turn, topology, ..machine(2) };
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        engine.set_tracing(true);
        engine.start(Script::new(vec![(spec(0, "0"), vec![Action::Run(Ns::from_ms(10)), Action::Exit])]));
        let mut end = 0;
        let mut sink = sink_fn(|event: &Event<'_>| {
            if let EventKind::SchedProcessExit { .. } = event.kind {
                end = event.time.0 / 1_000_000;
            }
        });
        engine.run_until(Ns::from_secs(1), &mut sink);
        drop(sink);
        end
    };
    assert_eq!((ended(false), ended(true)), (20, 10));
}

/// The clock is nobody's to slow down: who polls it ends on time.
#[test]
fn polling_ends_on_time_whoever_else_is_busy() {
    let machine = Machine { in_turn: true, ..machine(2) };
    let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
    engine.set_tracing(true);
    let polls = vec![Action::SpinUntil(Ns::from_ms(5)), Action::Exit];
    engine.start(Script::new(vec![(spec(0, "0"), hog()), (spec(0, "1"), polls)]));
    let mut end = Ns::ZERO;
    let mut sink = sink_fn(|event: &Event<'_>| {
        if let EventKind::SchedProcessExit { .. } = event.kind {
            end = event.time;
        }
    });
    engine.run_until(Ns::from_ms(20), &mut sink);
    drop(sink);
    assert_eq!(end.0 / 100_000, 50, "{end:?}");
}

#[test]
fn what_is_wanted_beside_events_is_reported() {
    let threads = || {
        vec![
            (spec(0, "0"), vec![Action::Run(Ns::from_ms(3)), Action::Wake(ThreadId(2)), Action::Exit]),
            (spec(0, "0-3"), vec![Action::Wait, Action::Exit]),
            (spec(0, "1"), vec![Action::Run(Ns::from_ms(9)), Action::Exit]),
        ]
    };
    let printed = |probes: bool| {
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine(4), 1);
        engine.set_tracing(true);
        engine.set_probes(probes);
        engine.start(Script::new(threads()));
        let mut counts = [0; 2];
        let mut sink = sink_fn(|event: &Event<'_>| {
            let text = format!("{:?}", event.kind);
            for (count, name) in counts.iter_mut().zip(["\"sel\"", "\"sel_r\""]) {
                *count += u32::from(text.contains(name));
            }
        });
        engine.run_until(Ns::from_ms(20), &mut sink);
        drop(sink);
        (counts, engine.kernel().counters(Cpu(0)).sis.search)
    };
    // Who may use one CPU only is not placed: one fork, one wakeup. Two CPUs look around; the last to run out of work knows
    // that no CPU has more than one task.
    assert_eq!(printed(true), ([2, 2], 1));
    assert_eq!(printed(false), ([0; 2], 1));
    let scanned = |told: bool| {
        let mut engine = Engine::new("v5.10+idle-cpumask-v7".parse().expect("a kernel"), machine(4), 1);
        engine.set_tracing(true);
        engine.set_balancing_told(told);
        engine.start(Script::new(threads()));
        let mut scans = 0;
        let mut sink = sink_fn(|event: &Event<'_>| {
            let is_scan = |name| name == UntypedTracepoint::DoneIdleMaskScan.name();
            scans += u32::from(matches!(event.kind, EventKind::Other { name, .. } if is_scan(name)));
        });
        engine.run_until(Ns::from_ms(20), &mut sink);
        drop(sink);
        scans
    };
    assert!(scanned(true) > 0 && scanned(false) == 0);
}

/// Runs that create tasks without end keep no more than those that there are at a time.
#[test]
fn ended_tasks_leave_nothing_behind() {
    let args = ["spawn", "-n", "3", "-r", "100", "-k", "4"].map(String::from);
    let jobs = crate::workload::jobs::Jobs::parse(&args).expect("jobs");
    let mut engine =
        Engine::new("v6.12".parse().expect("a kernel"), Machine::preset("vm4").expect("a machine"), 1);
    engine.start(Box::new(jobs));
    let mut kept = Vec::new();
    for ms in [200, 1_000] {
        engine.run_until(Ns::from_ms(ms), &mut ());
        let created = engine.created;
        assert!(created > 20 * ms as usize, "{created} tasks by {ms} ms");
        kept.push((
            engine.threads.len(),
            engine.kernel().tasks().count(),
            engine.programs[0].threads.pages(),
        ));
    }
    let [(threads, tasks, pages), later] = kept[..] else { panic!("two looks") };
    assert!(threads < 50 && tasks < 70 && pages <= 3, "{kept:?}");
    assert!(later.0 <= threads + 4 && later.1 <= tasks + 4 && later.2 <= 3, "{kept:?}");
}
