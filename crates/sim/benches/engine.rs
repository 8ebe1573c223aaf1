//! How fast the engine goes: context switches a second of CPU time of its one thread, on machines of several sizes.
//!
//! `cargo bench -p fairlab-sim --bench engine`. The load is that of the simulators it is compared with in
//! docs/performance.md: two sleepers and half a hog a CPU, with sleeps as short as the work and with longer ones, and CPU
//! hogs alone. The time in which the threads are created, and a little more, is not measured. Words behind `--` choose
//! lines that contain them all: `cargo bench -p fairlab-sim --bench engine -- v6.6 ' 40 CPUs'`.

#[path = "load/mix.rs"]
mod load;
#[path = "load/timed.rs"]
mod timing;

use fairlab_analysis::metrics::Metrics;
use fairlab_event::{DigestSink, Ns, Sink};
use fairlab_sim::machine::Chance;
use fairlab_sim::{Engine, Machine};
use load::{Mix, machine};
use timing::timed;

/// `sink`: its name, and where events go.
fn measure(
    kernel: &str,
    (load, machine): (&str, Machine),
    workload: Box<Mix>,
    simulated: Ns,
    (name, sink): (&str, Option<&mut dyn Sink>),
) {
    let label = format!("{kernel} {:>4} CPUs, {load:<20} {name:<9}", machine.topology.nr_cpus());
    if !std::env::args().skip(1).filter(|word| !word.starts_with("--")).all(|word| label.contains(&word)) {
        return;
    }
    let engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
    let speed = timed(engine, workload, simulated, sink);
    println!("{label} {speed} {:>7.1} x real time", simulated.as_secs_f64() / speed.spent);
}

/// As `fairlab run` has it: with the chance of machines, the digest of all events and the metrics.
fn measure_usual(kernel: &str, cpus: u32, simulated: Ns) {
    let machine = Machine { chance: Chance::USUAL, ..machine(cpus, 250) };
    let mut sinks = (DigestSink::default(), Metrics::new(cpus as usize, Ns::ZERO));
    let mix = Mix::new(2 * cpus, cpus / 2, Ns(4_000_000));
    measure(kernel, ("as users run it, 4 ms", machine), mix, simulated, ("metrics", Some(&mut sinks)));
}

fn main() {
    for kernel in ["v6.5", "v6.6"] {
        for cpus in [4, 40, 192, 1024] {
            let simulated = Ns(40_000_000_000 / u64::from(cpus));
            let mix = |sleep| Mix::new(2 * cpus, cpus / 2, Ns(sleep));
            let (load, untraced) = (("2 sleepers, 1/2 hog", machine(cpus, 1000)), || ("no trace", None));
            measure(kernel, load.clone(), mix(100_000), simulated, untraced());
            let mut digest = DigestSink::default();
            measure(kernel, load, mix(100_000), simulated, ("digest", Some(&mut digest)));
            let longer = Ns(simulated.0 * 5);
            measure(kernel, ("the same, 4 ms", machine(cpus, 1000)), mix(4_000_000), longer, untraced());
            measure(kernel, ("4 ms, HZ 250", machine(cpus, 250)), mix(4_000_000), longer, untraced());
            let hogs = Mix::new(0, 3 * cpus, Ns::ZERO);
            measure(kernel, ("3 hogs", machine(cpus, 1000)), hogs, Ns(simulated.0 * 10), untraced());
        }
        measure_usual(kernel, 40, Ns(5_000_000_000));
        measure_usual(kernel, 192, Ns(1_000_000_000));
    }
}
