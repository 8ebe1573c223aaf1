//! From v7.2 on the threads of a process come together under one last-level cache, if that has room for them.

use fairlab_event::{Cpu, Event, EventKind, Ns, sink_fn};
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_sim::workload::catalogue;
use fairlab_sim::{Engine, Machine};

/// So many caches of eight CPUs, on as many nodes.
fn machine(nodes: u32, caches: u32) -> Machine {
    let topology = Topology::regular(nodes, caches, 8, 1, SmtNumbering::Adjacent).expect("a machine");
    Machine { topology, idle_states: Vec::new(), ..Machine::preset("laptop8").expect("a machine").exact() }
}

/// The time that hogs run under each of two caches, percent, in the last 200 of 400 ms.
fn shares(kernel: &str, machine: Machine, hogs: u32, processes: bool) -> [u64; 2] {
    let file =
        format!("[[task]]\nname = \"hog\"\ncount = {hogs}\nprocess = {processes}\nsteps = [\"run 1ms\"]\n");
    let files = |_: &str| Ok(file.clone());
    let command = ["tasks", "file"].map(String::from);
    let workload = catalogue::build(&command, &files).unwrap_or_else(|error| panic!("{error}"));
    let mut engine = Engine::new(kernel.parse().expect(kernel), machine, 1);
    engine.set_tracing(true);
    engine.start(workload);
    let first_look = Ns::from_ms(200);
    let mut since = [None::<Ns>; 16];
    let mut ran = [0; 2];
    let mut count = |cpu: Cpu, until: Ns, next: Option<Ns>| {
        if let Some(from) = std::mem::replace(&mut since[cpu.index()], next) {
            ran[cpu.index() / 8] += until.since(from.max(first_look)).0;
        }
    };
    let mut see = |event: &Event<'_>| {
        if let EventKind::SchedSwitch(switch) = &event.kind {
            let hog = switch.next_comm.to_string() == "hog";
            count(event.cpu, event.time, hog.then_some(event.time));
        }
    };
    let end = Ns::from_ms(400);
    engine.run_until(end, &mut sink_fn(&mut see));
    (0..16).for_each(|cpu| count(Cpu(cpu), end, None));
    let all = (ran[0] + ran[1]).max(1);
    ran.map(|ran| (ran * 100 + all / 2) / all)
}

fn gathered(shares: [u64; 2]) -> bool {
    shares.iter().any(|&share| share >= 95)
}

#[test]
fn threads_of_a_process_gather_in_one_cache_from_v7_2_on() {
    for kernel in ["v7.1", "v7.2-cache-aware"] {
        let spread = shares(kernel, machine(1, 2), 3, false);
        assert!(!gathered(spread), "{kernel}: {spread:?}");
    }
    for kernel in ["v7.2", "v7.3", "debian-7.2"] {
        let together = shares(kernel, machine(1, 2), 3, false);
        assert!(gathered(together), "{kernel}: {together:?}");
    }
}

#[test]
fn they_gather_where_each_node_has_a_cache() {
    let together = shares("v7.2", machine(2, 1), 3, false);
    assert!(gathered(together), "{together:?}");
}

#[test]
fn processes_do_not_gather() {
    let spread = shares("v7.2", machine(1, 2), 3, true);
    assert!(!gathered(spread), "{spread:?}");
}

/// Twelve threads are more than four fifths of a cache's eight CPUs.
#[test]
fn a_process_that_is_too_large_does_not_gather() {
    let spread = shares("v7.2", machine(1, 2), 12, false);
    assert!(spread.iter().all(|&share| share > 35), "{spread:?}");
}
