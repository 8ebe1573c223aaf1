//! How fast the engine goes: context switches a second of CPU time of its one thread, on machines of several sizes.
//!
//! `cargo bench -p fairlab-sim --bench engine`. The load is that of the simulators it is compared with in
//! docs/performance.md: two sleepers and half a hog a CPU, with sleeps as short as the work and with longer ones, and CPU
//! hogs alone. The time in which the threads are created, and a little more, is not measured. Words behind `--` choose
//! lines that contain them all: `cargo bench -p fairlab-sim --bench engine -- v6.6 ' 40 CPUs'`.

use std::fs;

use fairlab_event::{DigestSink, Ns, Sink};
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_sim::machine::{Chance, Costs};
use fairlab_sim::workload::{Action, ThreadId, ThreadSpec, View, Workload};
use fairlab_sim::{Engine, Machine};

/// How long a run goes on between two looks at whether all threads are there.
const SETTLING: Ns = Ns(20_000_000);

/// Sleepers that compute and sleep for random times, and hogs.
struct Mix {
    sleepers: u32,
    hogs: u32,
    /// The least that a sleep takes.
    sleep: Ns,
    spawned: u32,
    computed: Vec<bool>,
}

impl Mix {
    fn new(sleepers: u32, hogs: u32, sleep: Ns) -> Box<Mix> {
        let computed = vec![false; (sleepers + hogs) as usize + 1];
        Box::new(Mix { sleepers, hogs, sleep, spawned: 0, computed })
    }
}

impl Workload for Mix {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("main", "main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        if thread == ThreadId::MAIN {
            if self.spawned == self.sleepers + self.hogs {
                return Action::Exit;
            }
            self.spawned += 1;
            return Action::Spawn(ThreadSpec::new("load", format!("load-{}", self.spawned)));
        }
        if thread.0 > self.sleepers {
            return Action::Run(Ns::from_secs(1));
        }
        let computed = &mut self.computed[thread.index()];
        *computed = !*computed;
        let more = Ns(view.random.below(100_000));
        if *computed { Action::Run(Ns(100_000) + more) } else { Action::Sleep(self.sleep + more) }
    }

    fn output(&self, _: Ns) -> String {
        String::new()
    }

    /// Nothing once all threads are there.
    fn progress(&self) -> Option<(&'static str, u64)> {
        let threads = self.sleepers + self.hogs;
        (self.spawned < threads).then_some(("threads", self.spawned.into()))
    }
}

fn machine(cpus: u32, hz: u64) -> Machine {
    let cores_an_llc = if cpus > 48 { 24 } else { cpus / 2 };
    let llcs = cpus / 2 / cores_an_llc;
    Machine {
        name: format!("{cpus} CPUs"),
        description: String::new(),
        topology: Topology::regular(llcs, 1, cores_an_llc, 2, SmtNumbering::Spread).expect("a machine"),
        hz,
        high_res_timers: true,
        nohz_idle: true,
        chance: Chance::NONE,
        in_turn: false,
        costs: Costs::default(),
        frequency_domains: Vec::new(),
        energy_model: Vec::new(),
        idle_states: Vec::new(),
    }
}

fn measure(
    kernel: &str,
    cpus: u32,
    hz: u64,
    load: &str,
    workload: Box<Mix>,
    simulated: Ns,
    sink: Option<&mut dyn Sink>,
) {
    let label = format!(
        "{kernel} {cpus:>4} CPUs, {load:<20} {:<9}",
        if sink.is_some() { "digest" } else { "no trace" }
    );
    if !std::env::args().skip(1).filter(|word| !word.starts_with("--")).all(|word| label.contains(&word)) {
        return;
    }
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine(cpus, hz), 1);
    engine.set_tracing(sink.is_some());
    let workload = engine.start(workload);
    while engine.workload(workload).progress().is_some() {
        engine.run_until(engine.now() + SETTLING, &mut ());
    }
    let (before, end) = (engine.counters(), engine.now() + simulated);
    let start = time_on_cpu();
    match sink {
        Some(sink) => engine.run_until(end, sink),
        None => engine.run_until(end, &mut ()),
    }
    let spent = Ns(time_on_cpu() - start).as_secs_f64();
    let counters = engine.counters();
    println!(
        "{label} {:>6.2} M switches/s of {} {:>6.2} M occurrences/s {:>7.1} x real time",
        (counters.switches - before.switches) as f64 / spent / 1e6,
        counters.switches - before.switches,
        (counters.occurrences - before.occurrences) as f64 / spent / 1e6,
        simulated.as_secs_f64() / spent,
    );
}

/// How long this thread has run, ns.
fn time_on_cpu() -> u64 {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux host");
    let first = schedstat.split(' ').next().and_then(|field| field.parse().ok());
    first.expect("the first field is run time in ns")
}

fn main() {
    for kernel in ["v6.5", "v6.6"] {
        for cpus in [4, 40, 192, 1024] {
            let simulated = Ns(40_000_000_000 / u64::from(cpus));
            let mix = |sleep| Mix::new(2 * cpus, cpus / 2, Ns(sleep));
            measure(kernel, cpus, 1000, "2 sleepers, 1/2 hog", mix(100_000), simulated, None);
            measure(
                kernel,
                cpus,
                1000,
                "2 sleepers, 1/2 hog",
                mix(100_000),
                simulated,
                Some(&mut DigestSink::default()),
            );
            let longer = Ns(simulated.0 * 5);
            measure(kernel, cpus, 1000, "the same, 4 ms", mix(4_000_000), longer, None);
            measure(kernel, cpus, 250, "4 ms, HZ 250", mix(4_000_000), longer, None);
            let hogs = Mix::new(0, 3 * cpus, Ns::ZERO);
            measure(kernel, cpus, 1000, "3 hogs", hogs, Ns(simulated.0 * 10), None);
        }
    }
}
