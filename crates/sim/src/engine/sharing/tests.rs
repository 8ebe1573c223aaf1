//! What sharing does to whole runs: each effect moves what it should, and is gone when it is off.

use fairlab_event::{Cpu, Event, EventKind, Ns, sink_fn};
use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{CpuMask, Topology};

use crate::engine::Engine;
use crate::engine::tests::{Script, machine, spec};
use crate::machine::{Machine, Sharing};
use crate::workload::cgroup::GroupSpec;
use crate::workload::{Action, MemoryUse, ThreadId, ThreadSpec};

/// Nodes, last-level caches a node, cores a cache, threads a core; nothing but sharing costs anything worth telling.
fn shared(shape: [u32; 4], figures: &[(&str, u64)]) -> Machine {
    let [nodes, llcs, cores, threads] = shape;
    let mut sharing = Sharing::NONE;
    for &(name, value) in figures {
        assert_eq!(sharing.set(name, value), Ok(()));
    }
    let topology = Topology::regular(nodes, llcs, cores, threads, SmtNumbering::Adjacent);
    Machine { topology: topology.expect("a machine"), sharing, ..machine(1) }
}

fn on(cpus: &str, memory: MemoryUse) -> ThreadSpec {
    ThreadSpec { memory, ..spec(0, cpus) }
}

/// When each thread that runs its actions once and ends has ended, us.
fn ends(machine: Machine, threads: Vec<(ThreadSpec, Vec<Action>)>) -> Vec<u64> {
    ends_in(machine, Vec::new(), threads)
}

fn ends_in(machine: Machine, groups: Vec<GroupSpec>, threads: Vec<(ThreadSpec, Vec<Action>)>) -> Vec<u64> {
    let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, 1);
    engine.set_tracing(true);
    let with_end = |(spec, mut actions): (ThreadSpec, Vec<Action>)| {
        actions.push(Action::Exit);
        (spec, actions)
    };
    engine.start(Script::in_groups(groups, threads.into_iter().map(with_end).collect()));
    let mut ends = Vec::new();
    let mut sink = sink_fn(|event: &Event<'_>| {
        if let EventKind::SchedProcessExit { pid, .. } = event.kind
            && pid.0 > 1000
        {
            ends.push((pid, event.time.0 / 1000));
        }
    });
    engine.run_until(Ns::from_secs(10), &mut sink);
    drop(sink);
    ends.sort();
    ends.into_iter().map(|(_, end)| end).collect()
}

fn run(ms: u64) -> Vec<Action> {
    vec![Action::Run(Ns::from_ms(ms))]
}

#[test]
fn threads_of_a_core_slow_each_other_while_both_run() {
    let together = |smt: &[(&str, u64)], cpus: [&str; 2], ms: [u64; 2]| {
        let threads = cpus.into_iter().zip(ms);
        let threads = threads.map(|(cpu, ms)| (on(cpu, MemoryUse::default()), run(ms)));
        ends(shared([1, 1, 2, 2], smt), threads.collect())
    };
    let near = |ends: Vec<u64>, wanted: [u64; 2]| {
        let all = ends.iter().zip(wanted).all(|(end, wanted)| end.abs_diff(wanted) < 200);
        assert!(all && ends.len() == 2, "{ends:?}, not {wanted:?}");
    };
    let half = [("smt_speed_2", 512)];
    near(together(&half, ["0", "1"], [100, 100]), [200_000, 200_000]);
    near(together(&half, ["0", "2"], [100, 100]), [100_000, 100_000]);
    near(together(&[], ["0", "1"], [100, 100]), [100_000, 100_000]);
    // 50 ms take 100, and the rest of the other one goes on at full speed.
    near(together(&half, ["0", "1"], [100, 50]), [150_000, 100_000]);
}

#[test]
fn traffic_on_one_node_takes_longer_than_on_two_and_nothing_else_does() {
    let figures =
        [("core_megabytes_per_s", 10_000), ("llc_megabytes_per_s", 30_000), ("node_megabytes_per_s", 20_000)];
    let traffic = |figures: &[(&str, u64)], cpus: [&str; 4], action: Action| {
        let threads = cpus.map(|cpu| (on(cpu, MemoryUse::default()), vec![action.clone()]));
        *ends(shared([2, 1, 4, 1], figures), threads.to_vec()).iter().max().expect("threads") / 1000
    };
    // A GB at 10 GB/s.
    let (bytes, work) = (Action::Traffic(1_000_000_000), Action::Run(Ns::from_ms(100)));
    assert_eq!(traffic(&figures, ["0", "1", "2", "3"], bytes.clone()), 200);
    assert_eq!(traffic(&figures, ["0", "1", "4", "5"], bytes.clone()), 100);
    assert_eq!(traffic(&figures, ["0", "1", "2", "3"], work.clone()), 100);
    assert_eq!(traffic(&[], ["0", "1", "2", "3"], work), 100);
    assert_eq!(traffic(&[], ["0", "1", "2", "3"], bytes.clone()), 83, "at the nominal speed");
    let twice = [("core_megabytes_per_s", 20_000)];
    assert_eq!(traffic(&twice, ["0", "1", "2", "3"], bytes), 50, "no limit is known");
}

#[test]
fn who_computes_from_memory_for_a_part_of_the_time_is_slowed_in_that_part() {
    let figures = [("core_megabytes_per_s", 10_000), ("node_megabytes_per_s", 5_000)];
    let ends = |figures: &[(&str, u64)], traffic_permille| {
        let memory = MemoryUse { traffic_permille, working_set_kb: None };
        let threads = vec![(on("0", memory), run(100)), (on("1", memory), run(100))];
        ends(shared([1, 1, 2, 1], figures), threads)[0] / 1000
    };
    // Each gets half of a half: its half of the time takes twice as long.
    assert_eq!(ends(&figures, 500), 150);
    assert_eq!(ends(&figures, 1000), 400);
    assert_eq!([ends(&figures, 0), ends(&[], 500)], [100, 100]);
}

#[test]
fn a_move_costs_the_refill_of_what_is_worked_with() {
    let figures = [
        ("core_kb", 1024),
        ("llc_kb", 32_768),
        ("refill_core_ns_per_kb", 10),
        ("refill_llc_ns_per_kb", 100),
        ("refill_node_ns_per_kb", 1000),
    ];
    let to = |cpu: u32| Action::SetScheduler {
        policy: None,
        nice: None,
        request: None,
        allowed: Some(CpuMask::single(Cpu(cpu))),
    };
    let moved = |figures: &[(&str, u64)], cpu, kb| {
        let memory = MemoryUse { traffic_permille: 0, working_set_kb: Some(kb) };
        let work = Action::Run(Ns::from_ms(5));
        let actions = vec![work.clone(), to(cpu), work];
        ends(shared([2, 2, 2, 1], figures), vec![(on("0", memory), actions)])[0]
    };
    let stays = moved(&figures, 0, 1000);
    let costs = |cpu, kb| moved(&figures, cpu, kb) - stays;
    let near = |cost: u64, wanted: u64| assert!(cost.abs_diff(wanted) < 30, "{cost} us, not {wanted}");
    near(costs(1, 1000), 10);
    near(costs(2, 1000), 10 + 100);
    near(costs(4, 1000), 10 + 1000);
    near(costs(2, 10_000), 10 + 1000);
    near(moved(&[], 4, 10_000) - moved(&[], 0, 10_000), 0);
}

#[test]
fn a_far_wakeup_takes_longer_than_a_near_one() {
    let figures = [("wakeup_llc_ns", 100_000), ("wakeup_node_ns", 200_000), ("wakeup_remote_ns", 400_000)];
    let woken = |figures: &[(&str, u64)], cpu: &str| {
        let waker = vec![Action::Run(Ns::from_ms(5)), Action::Wake(ThreadId(2)), Action::Run(Ns::from_ms(1))];
        let wakee = vec![Action::Wait];
        let threads = vec![(on("0", MemoryUse::default()), waker), (on(cpu, MemoryUse::default()), wakee)];
        ends(shared([2, 2, 2, 1], figures), threads)[0]
    };
    let near = woken(&[], "1");
    let costs = |cpu| woken(&figures, cpu).saturating_sub(near);
    assert_eq!(["1", "2", "4"].map(costs), [100, 200, 400]);
    assert_eq!([woken(&[], "2"), woken(&[], "4")], [near, near]);
}

/// Threads of one group on a CPU each, which sleep and wake all the time.
#[test]
fn what_a_groups_queues_share_costs_more_the_more_cpus_use_it() {
    let last_end = |figures: &[(&str, u64)], threads: usize| {
        let step = [Action::Run(Ns::from_us(100)), Action::Sleep(Ns::from_us(200))];
        let actions = step.iter().cycle().take(400).cloned().collect::<Vec<_>>();
        let thread = |cpu: usize| {
            let spec = ThreadSpec { group: Some(0), ..spec(0, &cpu.to_string()) };
            (spec, actions.clone())
        };
        let groups = vec![GroupSpec::new("group".to_string())];
        let threads = (0..threads).map(thread).collect();
        ends_in(shared([1, 1, 8, 1], figures), groups, threads).into_iter().max().expect("threads")
    };
    let extra = |threads| last_end(&[("line_llc_ns", 2_000)], threads) - last_end(&[], threads);
    let [one, two, eight] = [1, 2, 8].map(extra);
    assert!(one < 50, "nobody contends: {one} us");
    assert!(two > 40 && eight > two + 20, "{two} us, {eight} us");
}

#[test]
fn a_search_for_work_takes_longer_the_farther_the_runqueues_are() {
    let search = |shape: [u32; 4], figures: &[(&str, u64)]| {
        let actions = vec![Action::Run(Ns::from_ms(1)), Action::Sleep(Ns::from_ms(2))];
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), shared(shape, figures), 1);
        engine.start(Script::new(vec![(spec(0, "0"), actions)]));
        engine.run_until(Ns::from_ms(500), &mut ());
        let counters = engine.counters();
        assert!(counters.newidle > 50, "{counters:?}");
        counters.newidle_time.0 / counters.newidle
    };
    let figures = [("line_llc_ns", 1_000), ("line_node_ns", 3_000), ("line_remote_ns", 10_000)];
    let off = search([1, 1, 4, 1], &[]);
    assert_eq!(off, search([2, 1, 2, 1], &[]), "no distance without figures");
    let near = search([1, 1, 4, 1], &figures);
    let far = search([2, 1, 2, 1], &figures);
    // Few searches look anywhere: no CPU has more than it runs.
    assert!(near > off + 10 && far > 4 * near, "{off} {near} {far} ns");
}

/// Threads of the root group on a CPU each, all woken from CPU 0.
#[test]
fn what_idle_cpus_share_costs_more_the_more_cpus_come_and_go() {
    let last_end = |figures: &[(&str, u64)], threads: usize| {
        let step = [Action::Run(Ns::from_us(20)), Action::Sleep(Ns::from_us(20))];
        let actions = step.iter().cycle().take(800).cloned().collect::<Vec<_>>();
        let threads = (0..threads).map(|cpu| (spec(0, &cpu.to_string()), actions.clone())).collect();
        ends(shared([1, 1, 8, 1], figures), threads).into_iter().max().expect("threads")
    };
    let extra = |threads| last_end(&[("line_llc_ns", 2_000)], threads) - last_end(&[], threads);
    let [one, eight] = [1, 8].map(extra);
    assert!(one < 100 && eight > one + 100, "{one} us, {eight} us");
    assert_eq!(last_end(&[("smt_speed_2", 1024)], 8), last_end(&[], 8), "lines that cost nothing");
}

/// A wakeup that is left to its CPU does not wait for the lock of that CPU's queue.
#[test]
fn a_wakeup_that_is_left_takes_no_lock_of_another_queue() {
    let woken = |kernel: &str, figures: &[(&str, u64)]| {
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), shared([1, 2, 1, 1], figures), 1);
        let waker = vec![Action::Run(Ns::from_ms(5)), Action::Wake(ThreadId(2)), Action::Exit];
        let wakee = vec![Action::Wait, Action::Exit];
        let threads = vec![(on("0", MemoryUse::default()), waker), (on("1", MemoryUse::default()), wakee)];
        engine.start(Script::new(threads));
        let mut end = 0;
        let mut sink = sink_fn(|event: &Event<'_>| {
            if let EventKind::SchedProcessExit { pid, .. } = event.kind
                && pid.0 > 1000
            {
                end = event.time.0;
            }
        });
        engine.set_tracing(true);
        engine.run_until(Ns::from_ms(20), &mut sink);
        drop(sink);
        end
    };
    let costs = |kernel| woken(kernel, &[("line_node_ns", 50_000)]) - woken(kernel, &[]);
    let [left, at_once] = ["v6.12", "v6.12+NO_TTWU_QUEUE"].map(costs);
    assert!(left >= 50_000 && at_once >= 50_000, "a line comes: {left}, {at_once} ns");
    let held = |kernel| woken(kernel, &[("line_node_ns", 1), ("rq_lock_ns", 50_000)]) - woken(kernel, &[]);
    assert!(held("v6.12") < 1_000, "nobody holds it: {} ns", held("v6.12"));
}
