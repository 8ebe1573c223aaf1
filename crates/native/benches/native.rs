//! How fast a kernel's own code goes: context switches a second of CPU time, on machines of several sizes, with the loads of
//! `crates/sim/benches/engine.rs`, costs on.
//!
//! `cargo bench -p fairlab-native --bench native`, and behind `--` a source (`debian:6.12`, a folder) if not Debian's 6.1, and words
//! that choose lines: those that contain them all (`-- debian:7.2 ' 40 CPUs' 'no trace'`).

use std::fs;
use std::sync::atomic::AtomicBool;

use fairlab_event::{DigestSink, Ns, Sink};
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_native::build::{Options, Source, build};
use fairlab_native::worker::in_worker;
use fairlab_native::{Image, ImageFile, NativeScheduler};
use fairlab_sim::machine::{Chance, Costs};
use fairlab_sim::workload::{Action, ThreadId, ThreadSpec, View, Workload};
use fairlab_sim::{Engine, Machine, SchedulerCore};

/// How long a run goes on between two looks at whether all threads are there.
const SETTLING: Ns = Ns(20_000_000);

/// Two sleepers and half a hog a CPU.
struct Mix {
    sleepers: u32,
    hogs: u32,
    /// The least that a sleep takes.
    sleep: Ns,
    spawned: u32,
    computed: Vec<bool>,
}

impl Mix {
    fn new(cpus: u32, sleep: Ns) -> Box<Mix> {
        let (sleepers, hogs) = (2 * cpus, cpus / 2);
        Box::new(Mix {
            sleepers,
            hogs,
            sleep,
            spawned: 0,
            computed: vec![false; (sleepers + hogs) as usize + 1],
        })
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

/// How long this thread has run, ns.
fn time_on_cpu() -> u64 {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux host");
    let first = schedstat.split(' ').next().and_then(|field| field.parse().ok());
    first.expect("the first field is run time in ns")
}

fn measure<C: SchedulerCore>(mut engine: Engine<C>, mix: Box<Mix>, simulated: Ns, traced: bool) -> String {
    engine.set_tracing(traced);
    let workload = engine.start(mix);
    while engine.workload(workload).progress().is_some() {
        engine.run_until(engine.now() + SETTLING, &mut ());
    }
    let (before, end, start) = (engine.counters(), engine.now() + simulated, time_on_cpu());
    let mut digest = DigestSink::default();
    let sink: &mut dyn Sink = if traced { &mut digest } else { &mut () };
    engine.run_until(end, sink);
    let (spent, counters) = (Ns(time_on_cpu() - start).as_secs_f64(), engine.counters());
    format!(
        "{:>6.2} M switches/s of {} {:>6.2} M occurrences/s",
        (counters.switches - before.switches) as f64 / spent / 1e6,
        counters.switches - before.switches,
        (counters.occurrences - before.occurrences) as f64 / spent / 1e6,
    )
}

fn main() {
    let words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let (sources, words): (Vec<String>, Vec<String>) = words.partition(|word| word.contains([':', '/']));
    let source = sources.first().cloned().unwrap_or("debian:6.1".to_string());
    let chosen = |label: &str| words.iter().all(|word| label.contains(word.as_str()));
    let options = Options::default();
    let stop = AtomicBool::new(false);
    let parsed = Source::parse(&source).expect("a source");
    let built = build(&parsed, &options, &|step, _| println!("{step}"), &stop).expect("a kernel");
    let image = ImageFile::open(&built.image()).expect("an image");
    for cpus in [4, 40, 192] {
        for (sleep, share, load) in [(100_000, 1, "sleeps of 0.1 ms"), (4_000_000, 5, "sleeps of 4 ms")] {
            for traced in [false, true] {
                let machine = machine(cpus, options.hz.into());
                let simulated = Ns(40_000_000_000 / u64::from(cpus) * share);
                let work = |image: Image, _: &mut fairlab_native::worker::Outbox| {
                    let start = time_on_cpu();
                    let core = NativeScheduler::boot(image, &machine)?;
                    let boot = Ns(time_on_cpu() - start).as_ms_f64();
                    let engine = Engine::with_core(core, machine.clone(), 1);
                    let speed = measure(engine, Mix::new(cpus, Ns(sleep)), simulated, traced);
                    Ok(format!("{speed}, boot {boot:.1} ms").into_bytes())
                };
                let how = if traced { "digest" } else { "no trace" };
                let label = |kernel: &str| format!("{kernel:<10} {cpus:>4} CPUs, {load:<17} {how:<9}");
                if chosen(&label(&source)) {
                    let result = in_worker(&image, &stop, work, &mut |_| ()).expect("a run");
                    println!("{} {}", label(&source), String::from_utf8_lossy(&result.unwrap_or_default()));
                }
                if !chosen(&label("v6.1")) {
                    continue;
                }
                let engine = Engine::new("v6.1".parse().expect("a kernel"), machine.clone(), 1);
                let speed = measure(engine, Mix::new(cpus, Ns(sleep)), simulated, traced);
                println!("{} {speed}", label("v6.1"));
            }
        }
    }
}
